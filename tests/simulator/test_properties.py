"""Properties of the verdicts of any detector: a worse fault is never milder, and unrelated changes have no effect.

Each ladder is one fault in several strengths, evaluated in the same hours; rungs are resources of one fleet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from demo.ebs_load import LoadModel, Surge
from demo.world import World
from streamwarden.base.hours import HOUR

from tests.simulator import lag, volumes
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import START, Case, Scenario, Verdict
from tests.simulator.volume_kinds import ACCOUNT, REGION, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(1800)]

MINUTE = timedelta(minutes=1)
SCENARIO = Scenario(seed=3, days=4)
BEGINS = START + timedelta(days=2, hours=10, minutes=5)
FIRST, HOURS = START + timedelta(days=2, hours=9), 7
RANK = {"ok": 0, "warning": 1, "critical": 2}
STEADY = {"daily_swing": 0.0, "weekend_factor": 1.0, "noise": 0.02}


@pytest.fixture(scope="module")
def spark_session(spark: Any) -> Any:
    return spark


@pytest.fixture
def bench(spark_session: Any) -> Iterator[Bench]:
    with a_bench(spark_session) as made:
        yield made


Rung = Callable[[World, str, float], None]


def _volume(world: World, name: str, volume_type: str, size_gib: int, load: LoadModel, **more: Any) -> None:
    world.add_volume(ACCOUNT, REGION, f"vol-{name}", volume_type, size_gib, instance_id=f"i-{name}",
                     device="/dev/sdf", load=load, created_at=START, **more)  # fmt: skip


def _surging(volume_type: str, size_gib: int, kib: float) -> Rung:
    def rung(world: World, name: str, iops: float) -> None:
        surge = Surge(BEGINS, SCENARIO.end, iops / 2, iops / 2)
        _volume(world, name, volume_type, size_gib, LoadModel(5, 5, kib, kib, surges=(surge,), **STEADY))

    return rung


def _stalling(world: World, name: str, minutes: float) -> None:
    _volume(world, name, "gp3", 200, LoadModel(100, 100, **STEADY))
    if minutes:
        world.stall(f"vol-{name}", BEGINS, BEGINS + minutes * MINUTE)


def _slow(world: World, name: str, factor: float) -> None:
    _volume(world, name, "gp3", 200, LoadModel(200, 200, **STEADY))
    world.slow(f"vol-{name}", BEGINS, SCENARIO.end, factor)


LADDERS: dict[str, tuple[Rung, tuple[float, ...]]] = {
    "gp2": (_surging("gp2", 100, 16), (50, 250, 400, 800, 1600, 2800)),
    "gp2-large-io": (_surging("gp2", 300, 256), (100, 500, 850, 970)),
    "gp3": (_surging("gp3", 300, 16), (500, 2500, 3200, 4500, 9000)),
    "gp3-bytes": (_surging("gp3", 300, 256), (100, 450, 550, 700, 1500)),
    "st1": (_surging("st1", 500, 1024), (5, 15, 40, 80, 120)),
    "stall": (_stalling, (0, 1, 5, 20, 45)),
    "slow": (_slow, (1, 10, 40, 100)),
}


def _fleet() -> Fleet:
    world = World(SCENARIO.seed, lambda: SCENARIO.end)
    for ladder, (rung, levels) in LADDERS.items():
        for n, level in enumerate(levels):
            name = f"{ladder}-{n}"
            world.add_instance(ACCOUNT, REGION, f"i-{name}", "m5.4xlarge", {"Name": name}, START)
            rung(world, name, level)
    return Fleet(SCENARIO, world)


def _hours(fleet: Fleet, first: Any = FIRST, hours: int = HOURS) -> list[Case]:
    return [Case(name, first + n * HOUR) for name in fleet.world.volumes for n in range(hours)]


def _never_milder(verdicts: list[Verdict], ladders: dict[str, list[str]]) -> list[str]:
    """Rungs with a milder verdict than the rung below in the same hour."""
    said = {(verdict.resource_name, verdict.hour): verdict for verdict in verdicts}
    milder = []
    for names in ladders.values():
        for hour in sorted({hour for _, hour in said}):
            ranks = [_rank(said[name, hour]) for name in names if (name, hour) in said]
            milder += [
                f"{names[n + 1]} at {hour:%d %H:%M}: {said[names[n + 1], hour].message} Below it:"
                f" {said[names[n], hour].message}"
                for n in range(len(ranks) - 1)
                if ranks[n + 1] < ranks[n]
            ]
    return milder


def _rank(verdict: Verdict) -> int:
    assert verdict.status != "unknown", verdict.message
    return RANK[(verdict.severity or "critical") if verdict.status == "firing" else "ok"]


def test_a_worse_volume_never_has_a_milder_verdict_and_neighbors_and_history_change_none(
    bench: Bench, spark_session: Any
) -> None:
    fleet = _fleet()
    alone = volumes.verdicts_of(bench, fleet, _hours(fleet))
    names = {ladder: [f"vol-{ladder}-{n}" for n in range(len(levels))] for ladder, (_, levels) in LADDERS.items()}
    assert sum(verdict.status == "firing" for verdict in alone) > 20
    assert _never_milder(alone, names) == []
    # Again with other volumes, and with a quiet day before.
    chance = random.Random(3)  # noqa: S311 a simulation
    mine = set(fleet.world.volumes)
    for n in range(40):
        fleet.world.add_instance(ACCOUNT, REGION, f"i-other-{n}", "m5.xlarge", {}, START)
        load = LoadModel(chance.uniform(5, 40), chance.uniform(5, 40))
        _volume(fleet.world, f"other-{n}", chance.choice(["gp2", "gp3"]), chance.choice([50, 200, 1000]), load)
    chosen = [*_hours(fleet), *_hours(fleet, FIRST - 20 * HOUR, 4)]
    with a_bench(spark_session) as other:
        among = volumes.verdicts_of(other, fleet, chosen)
    output = {(v.resource_name, v.hour): (v.status, v.severity, v.message) for v in alone}
    again = {(v.resource_name, v.hour): (v.status, v.severity, v.message) for v in among if v.resource_name in mine}
    assert {key: again[key] for key in output} == output
    assert not [v.message for v in among if v.resource_name not in mine and v.status == "firing"]


def test_a_worse_group_never_has_a_milder_verdict(bench: Bench) -> None:
    builder = lag.Builder(Scenario(seed=3))
    ladders: dict[str, list[str]] = {}
    at = START + 8 * HOUR
    rate = 4.0

    def add(ladder: str, reader: lag.Reader, **more: Any) -> None:
        builder.add(ladder, builder.logs(rate), reader, **more)
        ladders.setdefault(ladder, []).append(list(builder.fleet.timelines)[-1])

    for minutes in (-5, 2, 8, 20, 45):  # before the end of the hour; negative: not yet
        since = at + HOUR - minutes * MINUTE
        add("stopped", lag.Reader([(START, 1e6), (since, 0)]), stopped_at=since)
    for share in (2.0, 0.95, 0.6, 0.2, 0.0):
        add("slower", lag.Reader([(START, 1e6), (at, rate * share)]))
    for back, speed in ((0.5, 40), (3, 10), (6, 1.5), (6, 1.05)):
        reader = lag.Reader([(START, 1e6), (at + 50 * MINUTE, rate * speed)], [(at + 50 * MINUTE, back * HOUR)])
        add("rewound", reader)
    chosen = [Case(name, START + n * HOUR) for name in builder.fleet.timelines for n in range(6, 14)]
    verdicts = lag.verdicts_of(bench, builder.fleet, chosen)
    assert sum(verdict.status == "firing" for verdict in verdicts) > 10
    assert _never_milder(verdicts, ladders) == []
