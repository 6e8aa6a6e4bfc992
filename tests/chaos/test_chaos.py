"""What `make chaos` reports of a round, and faults that must have their documented effect."""

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
from streamwarden.base.embedded import stop_server
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import engine
from streamwarden.store.migrate import migrate, require_migrated

from spark_apps.sources.recognition import recognized
from tests.chaos.faults import FAULTS, TWO_RUNS, Fault
from tests.chaos.rounds import ALL, Reference, Rows, Subject, draw_faults, draw_subject, one_round, unreported
from tests.chaos.runners import Answers, Runner
from tests.chaos.share import BLOCK, share, shares_of, subject_of
from tests.chaos.world import FAKETIME, Clock, Kind, World, page_of
from tests.spark_apps.sources.test_rule_sets import metrics_of, read
from tests.variations import rare_after


class _World:
    """The parts of a World that a round uses. Its warehouse is emptied instead of recreated."""

    hour = datetime(2026, 1, 5, 10, 2, tzinfo=UTC)

    def __init__(self, warehouse: sa.Engine) -> None:
        self.warehouse, self.is_broken = warehouse, False

    def hours(self, kind: Kind) -> list[datetime]:
        return [self.hour - timedelta(hours=back) for back in ((2, 1, 0) if kind == "backfill" else (0,))]

    def fresh_warehouse(self) -> sa.Engine:
        with self.warehouse.begin() as connection:
            connection.exec_driver_sql("truncate detect.owner")
        return self.warehouse

    def forget_issues(self) -> None:
        """Does nothing: this world has no issues."""

    def issues(self) -> list[dict[str, Any]]:
        return []


class _Runner:
    """A Runner whose hour has two rows, with the number of the run in the third column. It fails in a broken world."""

    run_seconds = 240.0

    def __init__(self, world: _World, rerun_loses: str = "false") -> None:
        self.world, self.rerun_loses, self.runs = world, rerun_loses, 0
        self.process = psutil.Process()
        self.orders: list[Sequence[datetime]] = []

    @property
    def twin(self) -> _Runner:
        return _Runner(self.world)

    def start(self) -> None:
        """Does nothing: the runner is always running."""

    def ask(self, hours: Sequence[datetime], apps: Sequence[str], answers: Answers) -> None:
        answers.put(self.run(hours, apps))

    def advance(self, *_: float) -> None:
        """Does nothing: its runs have ended."""

    def run(self, hours: Sequence[datetime], _: Sequence[str]) -> dict[str, Any]:
        self.orders.append(hours)
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


def _repair(world: Any) -> None:
    world.is_broken = False


BROKEN = Fault("broken", _break, _repair, is_beforehand=True)
HARMLESS = Fault("harmless", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "rerun_loses", "met", "expected"),
    rare_after(
        1,
        [
            ([BROKEN], "true", ["broken"], ("incomplete", "by rerun", ["detect.owner: 1 lost, 0 too many"])),
            ([BROKEN], "false", ["broken"], ("incomplete", "by rerun", [])),
            # The run has ended, or refused to start, before the second fault begins: it is not counted.
            ([BROKEN, HARMLESS], "false", ["broken"], ("incomplete", "by rerun", [])),
            ([HARMLESS], "false", [], ("complete", "by itself", [])),
        ],
    ),
)
def test_a_round_reports_its_faults_its_repair_and_what_was_lost(
    faults: list[Fault], rerun_loses: str, met: list[str], expected: tuple[str, str, list[str]], warehouse: sa.Engine
) -> None:
    world = _World(warehouse)
    runner = _Runner(world)
    reference = Reference.of(cast(World, world), cast(Runner, runner), Subject(("machines",), "hour"))
    assert reference.steady["detect.owner"] == ["key_pattern", "position"]  # without columns that change between runs
    runner.rerun_loses = rerun_loses
    outcome = one_round(cast(World, world), cast(Runner, runner), reference, faults, random.Random(1))  # noqa: S311
    assert outcome.faults == met
    wrong = [line.partition(", e.g.")[0] for line in outcome.wrong]
    assert (outcome.disturbed, outcome.repaired, wrong) == expected


def test_no_metric_is_missing_before_a_fault() -> None:
    for role in ("broker", "app"):
        found = metrics_of(read(page_of(role).encode(), role))
        assert recognized(role, found).gap is None


def test_the_content_of_a_change_may_differ_only_if_a_source_had_missing_data(warehouse: sa.Engine) -> None:
    world = cast(World, _World(warehouse))
    output = {"action": "create", "finding": "a c5.large"}
    rows = {"tickets.change": [output]}
    reference = Reference(
        Subject(("machines",), "hour"), rows, {"tickets.change": sorted(output)}, Counter(), frozenset(), 1.0
    )
    less = {"tickets.change": [output | {"finding": "no answer"}]}
    assert reference.against(world, less) and not reference.against(world, less, delivered_with_gaps=True)
    assert reference.against(world, {"tickets.change": []}, delivered_with_gaps=True)
    corrected = {"tickets.change": [*less["tickets.change"], output | {"action": "comment"}]}
    assert reference.against(world, corrected) and not reference.against(world, corrected, delivered_with_gaps=True)
    assert reference.against(world, {"tickets.change": [output, output]}, delivered_with_gaps=True)


@pytest.mark.parametrize(("fault", "may_differ"), [(HARMLESS, False), (TWO_RUNS, True)])
def test_one_of_two_runs_may_create_a_ticket_before_the_other_one_loads_the_rest(
    fault: Fault, may_differ: bool, warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = _World(warehouse)
    runner = _Runner(world)
    reference = Reference.of(cast(World, world), cast(Runner, runner), Subject(("machines",), "hour"))
    allowed = []

    def against(*_: object, delivered_with_gaps: bool) -> list[str]:
        allowed.append(delivered_with_gaps)
        return []

    monkeypatch.setattr(Reference, "against", against)
    with warehouse.begin() as connection:  # complete
        connection.exec_driver_sql(
            "insert into detect.load values (%s, 'machines', 'loaded', '{}', null, now(), now())", (world.hour,)
        )
    one_round(cast(World, world), cast(Runner, runner), reference, [fault], random.Random(1))  # noqa: S311
    assert allowed == [may_differ]


@pytest.mark.parametrize(("kind", "is_wrong"), [("hour", True), ("backfill", False)])
def test_in_a_backfill_a_ticket_may_be_created_for_another_firing_hour(
    kind: Kind, is_wrong: bool, warehouse: sa.Engine
) -> None:
    world, created = cast(World, _World(warehouse)), {"action": "create", "hour": "09:00"}
    steady = {"tickets.change": sorted(created)}
    reference = Reference(
        Subject(("machines",), kind), {"tickets.change": [created]}, steady, Counter(), frozenset(), 1.0
    )
    assert bool(reference.against(world, {"tickets.change": [created | {"hour": "10:00"}]})) == is_wrong
    assert reference.against(world, {"tickets.change": [created, created]})


def test_five_minute_rows_that_begin_before_the_hour_are_ignored(warehouse: sa.Engine) -> None:
    world = cast(World, _World(warehouse))
    columns = ["at", "period_seconds"]
    reference = Reference(Subject(("machines",), "hour"), {"m": []}, {"m": columns}, Counter(), frozenset(), 1.0)
    for at, seconds, is_wrong in (("10:00", "300", False), ("10:00", "60", True), ("10:05", "300", True)):
        rows = {"m": [{"at": f"2026-01-05 {at}:00+00:00", "period_seconds": seconds}]}
        assert bool(reference.against(world, rows)) == is_wrong


def test_an_hour_that_changes_in_a_rerun_is_no_reference(warehouse: sa.Engine) -> None:
    changing = _Runner(_World(warehouse))
    original = changing.run

    def run(hours: Sequence[datetime], apps: Sequence[str]) -> dict[str, Any]:
        changing.rerun_loses = str(changing.runs == 2)  # the third run
        return original(hours, apps)

    changing.run = run  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="changes when it is run again"):
        Reference.of(cast(World, changing.world), cast(Runner, changing), Subject(("machines",), "hour"))


@pytest.mark.parametrize(
    ("period_seconds", "missing"), [(60, ["metrics.volume_sample: 4 rows are missing"]), (300, [])]
)
def test_unreported_missing_rows_are_found_but_not_in_rows_of_longer_periods(
    period_seconds: int, missing: list[str], warehouse: sa.Engine
) -> None:
    hour = datetime(2026, 1, 5, 10, tzinfo=UTC)
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
    output = unreported(
        Reference(Subject(("ebs_volumes",), "hour"), known, {}, Counter(), frozenset(), 1.0), warehouse, [hour]
    )
    assert [line.partition(", and ebs_volumes reported")[0] for line in output] == missing


def test_a_round_that_raises_is_reported_and_the_next_one_has_a_new_world(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = []

    def outcomes_of(folder: Path, numbers: Iterator[int], *_: object) -> Iterator[tuple[int, str]]:
        worlds.append(folder)
        for number in numbers:
            if number in (1, 3):
                raise OSError(f"{number} broke")
            yield number, "complete"

    monkeypatch.setattr("tests.chaos.share.outcomes_of", outcomes_of)
    output: queue.Queue[Any] = queue.Queue()
    share(range(3), 7, (), output, threading.Event())
    reported = [output.get() for _ in range(output.qsize())]
    assert [reported[0], reported[2]] == [(0, "complete"), (2, "complete")] and "1 broke" in reported[1]
    assert len(set(worlds)) == 2
    with pytest.raises(RuntimeError, match="3 broke"):
        share([3], 7, (), output, threading.Event())


def test_rounds_of_the_same_subject_are_in_the_same_world_and_each_round_is_in_one() -> None:
    shares = shares_of(range(600), 7, (), 3)
    assert sorted(number for part in shares for number in part) == [*range(600)]
    subjects = [{subject_of(number, 7, ()) for number in part} for part in shares]
    assert len(subjects) == 3 and sum(map(len, subjects)) == len(set().union(*subjects))
    assert max(map(len, shares)) < 2 * min(map(len, shares))
    kinds = [[subject_of(number, 7, ()).kind for number in part if number < BLOCK] for part in shares]
    [airflow] = [part for part in kinds if "airflow" in part]
    assert set(airflow[airflow.index("airflow") :]) == {"airflow"}


def test_a_kind_of_round_has_its_faults_and_a_wanted_fault_its_kind() -> None:
    drawn = [draw_subject(random.Random(seed)) for seed in range(1000)]  # noqa: S311 — not for secrets
    assert {subject.kind for subject in drawn} == {"hour", "backfill", "airflow"}
    assert {subject.apps == ALL for subject in drawn if subject.kind == "airflow"} == {True}
    for kind in ("airflow", "backfill"):
        reference = Reference(Subject(ALL, cast(Kind, kind)), {}, {}, Counter({"a ticket": 1}), frozenset(), 1.0)
        rounds = [draw_faults(random.Random(seed), reference) for seed in range(100)]  # noqa: S311
        assert all(any(fault.kinds == {kind} for fault in met) for met in rounds)
        assert all(kind in fault.kinds and not fault.is_refused for met in rounds for fault in met)
    for fault in FAULTS:
        kinds = {draw_subject(random.Random(seed), [fault]).kind for seed in range(100)}  # noqa: S311
        assert kinds == ({"hour"} if "hour" in fault.kinds else fault.kinds)


def test_hours_of_a_backfill_run_in_random_order_and_again_in_another(warehouse: sa.Engine) -> None:
    world = _World(warehouse)
    runner = _Runner(world)
    reference = Reference.of(cast(World, world), cast(Runner, runner), Subject(("machines",), "backfill"))
    in_order = [datetime(2026, 1, 5, hour, 2, tzinfo=UTC) for hour in (8, 9, 10)]
    assert runner.orders == [in_order] * 3
    orders = set()
    for seed in range(3):
        world.is_broken = False
        one_round(cast(World, world), cast(Runner, runner), reference, [BROKEN], random.Random(seed))  # noqa: S311
        assert [sorted(order) for order in runner.orders[-3:]] == [in_order] * 3  # disturbed, completed, with all hours
        orders.add(tuple(runner.orders[-1]))
    assert len(runner.orders) == 3 + 3 * 3
    assert len(orders) > 1


def test_a_fault_that_prevents_every_run_is_drawn_alone() -> None:
    reference = Reference(Subject(ALL, "hour"), {}, {}, Counter(), frozenset(), 1.0)
    drawn = [draw_faults(random.Random(seed), reference) for seed in range(300)]  # noqa: S311 — not for secrets
    assert {len(met) for met in drawn if met[0].is_refused} == {1}
    others = [met for met in drawn if not met[0].is_refused]
    assert {len(met) for met in others} == {2, 3, 4, 5, 6} and not any(one.is_refused for met in others for one in met)
    assert all(len(set(met)) == len(met) for met in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["older schema", "newer release's schema"])
def test_a_version_skew_is_refused_until_it_is_repaired(name: str, empty_warehouse: sa.Engine) -> None:
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
@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
def test_a_jump_of_the_clock_does_not_change_monotonic_waits(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    code = "import sys, time\nfor _ in sys.stdin: time.sleep(2.2); print(time.time(), time.monotonic(), flush=True)"
    folders = f"{Path(__file__).parent / 'clocked'}:{os.environ.get('PYTHONPATH', '')}"
    seeing = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **clock.environment, "PYTHONPATH": folders},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    def seen(jump: str) -> tuple[timedelta, float]:
        """Offset of its wall clock, and of its monotonic clock in seconds."""
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


@pytest.mark.rare
def test_a_full_disk_does_not_limit_shared_memory(tmp_path: Path) -> None:
    world = World(tmp_path)
    [full] = [fault for fault in FAULTS if fault.name == "PostgreSQL disk full"]
    try:
        with engine(world.create_postgres()).connect() as connection:
            connection.exec_driver_sql("set debug_parallel_query = on")  # messages of workers are in shared memory
            connection.exec_driver_sql(in_parallel := "select count(*) from pg_class")
            connection.exec_driver_sql("checkpoint")  # nothing is left to be written
            full.begin(world, psutil.Process(), random.Random(1))  # noqa: S311
            assert connection.exec_driver_sql(in_parallel).scalar_one()
            with pytest.raises(sa.exc.DBAPIError, match=r"File too large"):
                connection.exec_driver_sql("create table large as select generate_series(1, 100000) as n")
            connection.invalidate()
    finally:
        full.end(world)
        stop_server(world.postgres)
