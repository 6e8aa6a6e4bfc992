"""What `make chaos` tells of a round, and faults that must be what they say."""

from __future__ import annotations

import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
import sqlalchemy as sa
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import ensure_day
from streamwarden.store.migrate import migrate, require_migrated

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.rounds import ALL, Reference, Rows, Runner, draw_faults, one_round, untold
from tests.chaos.share import share
from tests.chaos.world import FAKETIME, Clock, World


class _World:
    """Of the real one, what a round asks; its warehouse is emptied instead of made anew."""

    hour = datetime(2026, 1, 5, 10, 2, tzinfo=UTC)

    def __init__(self, warehouse: sa.Engine) -> None:
        self.warehouse, self.is_broken = warehouse, False

    def fresh_warehouse(self) -> sa.Engine:
        with self.warehouse.begin() as connection:
            connection.exec_driver_sql("truncate detect.owner")
        return self.warehouse

    def forget_issues(self) -> None:
        """There are none."""

    def issues(self) -> list[dict[str, Any]]:
        return []


class _Runner:
    """Its hour is two rows, where the world isn't broken; the third is the run's own time."""

    def __init__(self, world: _World, rerun_loses: str = "false") -> None:
        self.world, self.rerun_loses, self.runs = world, rerun_loses, 0
        self.process = psutil.Process()

    def start(self) -> None:
        """It runs."""

    def ask(self, apps: Sequence[str], answers: queue.Queue[dict[str, Any]]) -> None:
        answers.put(self.run(apps))

    def run(self, _: Sequence[str]) -> dict[str, Any]:
        if self.world.is_broken:
            return {"failed": {"run": "broken"}, "not_evaluated": {}}
        self.runs += 1
        with self.world.warehouse.begin() as connection:
            connection.exec_driver_sql(
                f"""insert into detect.owner
                  select n, 'a' || n, '{self.runs}' from generate_series(1, 2) as n on conflict (position) do nothing"""
            )
            connection.exec_driver_sql(f"delete from detect.owner where position = 2 and {self.rerun_loses}")
        return {"failed": {}, "not_evaluated": {}}


def _break(world: Any, *_: object) -> None:
    world.is_broken = True


def _mend(world: Any) -> None:
    world.is_broken = False


BROKEN = Fault("broken", _break, _mend, is_beforehand=True)
HARMLESS = Fault("harmless", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "rerun_loses", "met", "came"),
    [
        ([BROKEN], "false", ["broken"], ("incomplete", "by rerun", [])),
        # The hour is over, or refused, before the second one begins: it isn't counted.
        ([BROKEN, HARMLESS], "false", ["broken"], ("incomplete", "by rerun", [])),
        ([HARMLESS], "false", [], ("whole", "by itself", [])),
        ([BROKEN], "true", ["broken"], ("incomplete", "by rerun", ["detect.owner: 1 lost, 0 too many"])),
    ],
)
def test_a_round_tells_what_was_met_how_it_was_repaired_and_what_is_lost(
    faults: list[Fault], rerun_loses: str, met: list[str], came: tuple[str, str, list[str]], warehouse: sa.Engine
) -> None:
    world = _World(warehouse)
    runner = _Runner(world)
    reference = Reference.of(cast(World, world), cast(Runner, runner), ("machines",))
    assert reference.steady["detect.owner"] == ["key_pattern", "position"]  # not what changes from run to run
    runner.rerun_loses = rerun_loses
    outcome = one_round(cast(World, world), cast(Runner, runner), reference, faults, random.Random(1))  # noqa: S311
    assert outcome.faults == met
    wrong = [line.partition(", e.g.")[0] for line in outcome.wrong]
    assert (outcome.disturbed, outcome.repaired, wrong) == came


def test_what_a_ticket_was_told_by_may_differ_only_where_a_source_had_a_gap_then(warehouse: sa.Engine) -> None:
    world = cast(World, _World(warehouse))
    output = {"action": "create", "finding": "a c5.large"}
    rows = {"tickets.change": [output]}
    reference = Reference(("machines",), rows, {"tickets.change": sorted(output)}, Counter(), frozenset(), 1.0)
    less = {"tickets.change": [output | {"finding": "no answer"}]}
    assert reference.against(world, less) and not reference.against(world, less, told_with_gaps=True)
    assert reference.against(world, {"tickets.change": []}, told_with_gaps=True)
    corrected = {"tickets.change": [*less["tickets.change"], output | {"action": "comment"}]}
    assert reference.against(world, corrected) and not reference.against(world, corrected, told_with_gaps=True)
    assert reference.against(world, {"tickets.change": [output, output]}, told_with_gaps=True)


def test_only_five_minutes_that_begin_before_the_hour_are_not_its(warehouse: sa.Engine) -> None:
    world = cast(World, _World(warehouse))
    columns = ["at", "period_seconds"]
    reference = Reference(("machines",), {"m": []}, {"m": columns}, Counter(), frozenset(), 1.0)
    for at, seconds, is_wrong in (("10:00", "300", False), ("10:00", "60", True), ("10:05", "300", True)):
        rows = {"m": [{"at": f"2026-01-05 {at}:00+00:00", "period_seconds": seconds}]}
        assert bool(reference.against(world, rows)) == is_wrong


def test_an_hour_that_a_rerun_changes_is_no_reference(warehouse: sa.Engine) -> None:
    changing = _Runner(_World(warehouse))
    original = changing.run

    def run(apps: Sequence[str]) -> dict[str, Any]:
        changing.rerun_loses = str(changing.runs == 2)  # the third
        return original(apps)

    changing.run = run  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="isn't the same when it is run again"):
        Reference.of(cast(World, changing.world), cast(Runner, changing), ("machines",))


@pytest.mark.parametrize(
    ("period_seconds", "missing"), [(60, ["metrics.volume_sample: 4 rows are missing"]), (300, [])]
)
def test_rows_that_nobody_says_are_missing_are_found_but_not_in_longer_periods(
    period_seconds: int, missing: list[str], warehouse: sa.Engine
) -> None:
    hour = datetime(2026, 1, 5, 10, tzinfo=UTC)
    ensure_day(warehouse, hour.date())
    with warehouse.begin() as connection:
        connection.execute(
            sa.text("""
                insert into metrics.volume_sample (account, region, volume_id, at, period_seconds)
                values ('1', 'eu-central-1', 'vol-1', :hour, :period_seconds)"""),
            {"hour": hour, "period_seconds": period_seconds},
        )
        connection.execute(
            sa.text("""
                insert into detect.load (hour, app, status, rows, started_at, finished_at)
                values (:hour, 'ebs_volumes', 'loaded', '{"metrics.volume_sample": 1}', now(), now())"""),
            {"hour": hour},
        )
    known: Rows = {"metrics.volume_sample": [{"period_seconds": "60"}] * 5}
    output = untold(Reference(("ebs_volumes",), known, {}, Counter(), frozenset(), 1.0), warehouse)
    assert [line.partition(", and no gap")[0] for line in output] == missing


def test_a_round_that_breaks_off_is_told_and_the_next_one_has_a_new_world(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = []

    def outcomes_of(folder: Path, numbers: Iterator[int], *_: object) -> Iterator[tuple[int, str]]:
        worlds.append(folder)
        for number in numbers:
            if number in (1, 3):
                raise OSError(f"{number} broke")
            yield number, "whole"

    monkeypatch.setattr("tests.chaos.share.outcomes_of", outcomes_of)
    output: queue.Queue[Any] = queue.Queue()
    share(range(3), 7, (), output, threading.Event())
    said = [output.get() for _ in range(output.qsize())]
    assert [said[0], said[2]] == [(0, "whole"), (2, "whole")] and "1 broke" in said[1]
    assert len(set(worlds)) == 2
    with pytest.raises(RuntimeError, match="3 broke"):
        share([3], 7, (), output, threading.Event())


def test_what_no_run_begins_with_meets_it_alone() -> None:
    reference = Reference(ALL, {}, {}, Counter(), frozenset(), 1.0)
    drawn = [draw_faults(random.Random(seed), reference) for seed in range(300)]  # noqa: S311 — not for secrets
    assert {len(met) for met in drawn if met[0].is_refused} == {1}
    others = [met for met in drawn if not met[0].is_refused]
    assert {len(met) for met in others} == {2, 3, 4, 5, 6} and not any(one.is_refused for met in others for one in met)
    assert all(len(set(met)) == len(met) for met in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["older schema", "newer release's schema"])
def test_a_version_skew_is_refused_until_it_is_mended(name: str, empty_warehouse: sa.Engine) -> None:
    migrate(empty_warehouse)
    world = cast(World, SimpleNamespace(url=empty_warehouse.url.render_as_string(hide_password=False)))
    [fault] = [fault for fault in FAULTS if fault.name == name]
    fault.begin(world, psutil.Process(), random.Random(1))  # noqa: S311 — not for secrets
    with pytest.raises(StreamwardenError):
        require_migrated(empty_warehouse)
    fault.end(world)
    require_migrated(empty_warehouse)


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.skipif(FAKETIME is None, reason="libfaketime isn't installed")
def test_a_clock_jumps_while_what_sees_it_waits_as_long_as_ever(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    code = "import sys, time\nfor _ in sys.stdin: time.sleep(2.2); print(time.time(), time.monotonic(), flush=True)"
    folders = f"{Path(__file__).parent / 'clocked'}:{os.environ.get('PYTHONPATH', '')}"
    seeing = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **clock.environment, "PYTHONPATH": folders},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    def seen(jump: str) -> tuple[timedelta, float]:
        """How far it is off, and how far its monotonic clock is."""
        clock.jump(jump)
        assert seeing.stdin and seeing.stdout
        print(file=seeing.stdin, flush=True)
        wall, monotonic = map(float, seeing.stdout.readline().split())
        return datetime.fromtimestamp(wall, UTC) - datetime.now(UTC), abs(monotonic - time.monotonic())

    with seeing:
        for jump, by in {"+40d": timedelta(days=40), "-2h": timedelta(hours=-2), "+0": timedelta(0)}.items():
            off, monotonic_off = seen(jump)
            assert abs(off - by) < timedelta(seconds=30) and monotonic_off < 30
        assert seeing.stdin
        seeing.stdin.close()
