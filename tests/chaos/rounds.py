"""A round: faults disturb a run of an hour and are repaired, the hour is run again, and the result is compared.

Most rounds run the hour of one app, with its detectors and tickets, so that each app meets many more faults in the same
time. All tables of the warehouse are compared, except for columns that differ between two undisturbed runs (times and
durations), and the tickets in the tracker.
"""

from __future__ import annotations

import itertools
import json
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import psutil
import sqlalchemy as sa
from streamwarden.base.catalog import APPS

from tests.chaos.faults import FAULTS, TWO_RUNS, Fault, jvms
from tests.chaos.world import World, environment_of, tree

ALL = tuple(APPS)
ALL_SHARE = 0.04
"""Share of the rounds that run the hour of all apps."""
RUN_SECONDS = 240
"""Longest duration of a disturbed run; a longer one hangs."""
LONGEST_WAIT_SECONDS = 900
"""Longest duration of an undisturbed run, on a host that is busy with other work."""
_TABLES = """
    select c.oid::regclass::text as name,
      (select array_agg(a.attname::text order by a.attnum) from pg_attribute as a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
    from pg_class as c
    where c.relkind in ('r', 'p') and not c.relispartition
    and c.relnamespace::regnamespace::text in ('inventory', 'metrics', 'detect', 'tickets')
    order by 1"""

# Columns that may differ: rows that CloudWatch did not have yet, the order of changes, delivery attempts, and whether
# the tracker was read since (`state`).
_VARIABLE = {
    "detect.load": {"rows"},
    "tickets.change": {"change_id", "ticket_id"},
    "tickets.ticket": {"ticket_id"},
    "tickets.issue": {"ticket_id", "delivered_change_id", "attempts", "external_key", "external_url", "error", "state"},
}
_COLUMNS_OF_DELIVERY = {"tickets.change": {"reason", "finding", "incident"}}
"""Content of a delivered change. If a source had missing data or an app was not loaded, it has less content, and it is
not changed when the hour is run again; a comment may add the rest."""

Rows = dict[str, list[dict[str, str]]]
"""Rows by table, each value as text."""


class Runner:
    """A process that runs hours, and stays warm between them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._log = world.folder / "runner.log"
        self._child: subprocess.Popen[str] | None = None

    @cached_property
    def twin(self) -> Runner:
        """A second process, for a concurrent run of the hour."""
        return Runner(self._world)

    @property
    def process(self) -> psutil.Process:
        assert self._child
        return psutil.Process(self._child.pid)

    def start(self) -> None:
        """Starts the process, unless it is running."""
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.runner"],
                env=environment_of(self._world),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log.open("a"),
                text=True, start_new_session=True,
            )  # fmt: skip

    def ask(self, apps: Sequence[str], answers: queue.Queue[dict[str, Any]]) -> None:
        """Runs the hour of these apps. Puts the answer into the queue, or `{"gone": True}` if the process has ended."""
        self.start()
        child = self._child
        assert child and child.stdin and child.stdout
        child.stdin.write(json.dumps({"hour": self._world.hour.isoformat(), "apps": apps}) + "\n")
        child.stdin.flush()

        def listen() -> None:
            line = child.stdout.readline() if child.stdout else ""
            answers.put(json.loads(line) if line else {"gone": True})

        threading.Thread(target=listen, daemon=True).start()

    def run(self, apps: Sequence[str]) -> dict[str, Any]:
        """Runs the hour of the world, undisturbed, and returns the answer.

        Raises:
            TimeoutError: no answer within LONGEST_WAIT_SECONDS; with the stacks.
        """
        answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.ask(apps, answers)
        try:
            return answers.get(timeout=LONGEST_WAIT_SECONDS)
        except queue.Empty:
            raise TimeoutError(f"the undisturbed hour did not end:\n{self.stacks()}") from None

    def stacks(self) -> str:
        """Stack traces of the process and its JVMs."""
        with self._log.open("a") as log:
            before = self._log.stat().st_size
            self.process.send_signal(signal.SIGUSR1)
            for jvm in jvms(self.process):
                subprocess.run(["jstack", str(jvm.pid)], stdout=log, stderr=log, timeout=30, check=False)
        return self._log.read_bytes()[before:].decode(errors="replace")

    def close(self) -> None:
        """Kills the process and its twin."""
        self.kill()
        if "twin" in vars(self):
            self.twin.kill()

    def kill(self) -> None:
        """Kills the process and its children."""
        if self._child is not None:
            with suppress(psutil.NoSuchProcess):
                for process in tree(self.process):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
            self._child.wait()
            self._child = None


@dataclass
class Outcome:
    """The result of a round."""

    apps: tuple[str, ...]
    faults: list[str]
    disturbed: str
    """How the disturbed run ended: complete, incomplete (as reported), gone (killed), hung."""
    seconds: float
    """Time from the end of the faults until the hour was complete."""
    repaired: str
    """How the hour became complete: by itself, by rerun, by restart and rerun."""
    wrong: list[str] = field(default_factory=list)
    """Rows and tickets that were lost, doubled, or not reported as missing."""


@dataclass
class Reference:
    """The content of the undisturbed hour of some apps."""

    apps: tuple[str, ...]
    rows: Rows
    steady: dict[str, list[str]]
    """Columns of each table that do not change between runs."""
    titles: Counter[str]
    blocked: frozenset[str]
    """Detectors that are not evaluated without the other apps."""
    run_seconds: float

    @classmethod
    def of(cls, world: World, runner: Runner, apps: tuple[str, ...]) -> Reference:
        """Runs the hour undisturbed in two new warehouses.

        Raises:
            RuntimeError: a further run in the same warehouse changes something.
        """
        seen = []
        for _ in range(2):
            warehouse = fresh(world)
            begun = time.monotonic()
            answer = _undisturbed(runner, apps)
            run_seconds = time.monotonic() - begun  # kept from the second run: the first one may warm up
            seen.append((rows_of(warehouse), Counter(one["title"] for one in world.issues())))
        (_, _), (rows, titles) = seen
        steady = {}
        for table, lines in rows.items():
            columns = sorted(lines[0]) if lines else []
            steady[table] = [
                one for one in columns
                if _values(lines, one) == _values(seen[0][0][table], one) and one not in _VARIABLE.get(table, ())
            ]  # fmt: skip
        reference = cls(apps, rows, steady, titles, frozenset(answer["not_evaluated"]), run_seconds)
        _undisturbed(runner, apps)
        if wrong := reference.against(world, rows_of(warehouse)):
            raise RuntimeError(f"the undisturbed hour changes when it is run again: {wrong}")
        return reference

    def against(self, world: World, rows: Rows, *, delivered_with_gaps: bool = False) -> list[str]:
        """Differences from the reference, one line each."""
        wrong = []
        for table, steady in self.steady.items():
            columns = [
                one for one in steady if not (delivered_with_gaps and one in _COLUMNS_OF_DELIVERY.get(table, ()))
            ]
            ours, theirs = (_counted(_since(world.hour, all_rows[table]), columns) for all_rows in (self.rows, rows))
            lost, more = ours - theirs, theirs - ours
            if (
                delivered_with_gaps and table in _COLUMNS_OF_DELIVERY and columns
            ):  # none where the reference has no rows
                action = columns.index("action")
                more = Counter({row: times for row, times in more.items() if row[action] != "comment"})
            if lost or more:
                wrong.append(
                    f"{table}: {lost.total()} lost, {more.total()} too many, e.g. {_example(columns, lost, more)}"
                )
        titles = Counter(one["title"] for one in world.issues())
        wrong += [f"ticket lost: {title}" for title in (self.titles - titles).elements()]
        wrong += [f"ticket doubled or unasked for: {title}" for title in (titles - self.titles).elements()]
        return wrong


def _undisturbed(runner: Runner, apps: tuple[str, ...]) -> dict[str, Any]:
    answer = runner.run(apps)
    if answer["failed"] or (apps == ALL and answer["not_evaluated"]):
        raise RuntimeError(f"the undisturbed hour is incomplete: {answer}")
    return answer


def one_round(
    world: World, runner: Runner, reference: Reference, faults: Sequence[Fault], chance: random.Random
) -> Outcome:
    """Runs the hour under these faults, and again if it is incomplete; returns what is wrong afterwards."""
    warehouse = fresh(world)
    runner.start()
    met = [fault for fault in faults if fault.is_beforehand]
    for fault in met:
        fault.begin(world, runner.process, chance)
    answers: queue.Queue[dict[str, Any]] = queue.Queue()
    twin_answers: queue.Queue[dict[str, Any]] = queue.Queue()
    has_twin = TWO_RUNS in met
    if has_twin:
        runner.twin.ask(reference.apps, twin_answers)
    runner.ask(reference.apps, answers)
    later = [fault for fault in faults if not fault.is_beforehand]
    for fault in later:
        time.sleep(chance.uniform(0, reference.run_seconds / len(later)))
        if not answers.empty():  # the run has ended
            break
        with suppress(sa.exc.OperationalError):  # PostgreSQL is down because of another fault
            fault.begin(world, runner.process, chance)
            met.append(fault)
    time.sleep(chance.uniform(0.5, 4))
    begun = time.monotonic()
    for fault in sorted(
        met, key=lambda one: not one.name.startswith("PostgreSQL")
    ):  # the end of other faults may need it
        fault.end(world)
    answer = _answer(runner, answers)  # both runs end before their result is read
    twin_answer = _answer(runner.twin, twin_answers) if has_twin else {}
    disturbed = _ending(answer)
    wrong = [*_violations("the disturbed run", answer)]
    if "failed" in answer:
        wrong += unreported(reference, warehouse)
    if has_twin:
        wrong += _violations("the second run", twin_answer)
        if "gone" in twin_answer:
            wrong.append("the second run ended without an answer, although no fault killed it")
        if "hung" in twin_answer:
            runner.twin.kill()
    restarts = disturbed in ("hung", "gone") or any(fault.kills_runner for fault in met)
    if restarts:
        runner.kill()
    repaired = "by itself"
    with_gaps = bool(apps_with_gaps(warehouse) | apps_not_loaded(warehouse, reference.apps))
    left = reference.against(world, rows_of(warehouse), delivered_with_gaps=with_gaps) + leftovers(warehouse)
    if disturbed != "complete" or left:
        repaired = "by restart and rerun" if restarts else "by rerun"
        again = runner.run(reference.apps)
        if "got no clear response" in str(again.get("failed")):  # a lost response: the tracker gets time to settle
            _let_trackers_settle(warehouse)
            again = runner.run(reference.apps)
        if again.get("failed") or {*again.get("not_evaluated", ())} - reference.blocked:
            wrong.append(f"the hour is incomplete after the repair: {again}")
        left = reference.against(world, rows_of(warehouse), delivered_with_gaps=with_gaps) + leftovers(warehouse)
    seconds = time.monotonic() - begun
    return Outcome(reference.apps, [fault.name for fault in met], disturbed, seconds, repaired, wrong + left)


def _answer(runner: Runner, answers: queue.Queue[dict[str, Any]]) -> dict[str, Any]:
    try:
        return answers.get(timeout=RUN_SECONDS)
    except queue.Empty:
        return {"hung": runner.stacks()}


def _ending(answer: dict[str, Any]) -> str:
    """How a run ended, as `Outcome.disturbed`."""
    if "hung" in answer:
        return "hung"
    if "gone" in answer:
        return "gone"
    return "incomplete" if answer["failed"] else "complete"


def _violations(run: str, answer: dict[str, Any]) -> list[str]:
    """What no run may do under any fault: hang, or end with a traceback."""
    if "hung" in answer:
        return [f"{run} had not ended after {RUN_SECONDS} s:\n{answer['hung']}"]
    return [f"{run} ended with a traceback: {answer['traceback']}"] if "traceback" in answer else []


def fresh(world: World) -> sa.Engine:
    """An empty warehouse and an empty tracker."""
    world.forget_issues()
    return world.fresh_warehouse()


def _let_trackers_settle(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update tickets.issue set unsure_at = least(unsure_at, now()) - interval '1 day'")


def unreported(reference: Reference, warehouse: sa.Engine) -> list[str]:
    """Missing rows of apps that reported a complete load with all sources answered.

    A single failed reading is reported by the number of `samples` instead. A row of five minutes counts as five rows of
    one minute: CloudWatch returns five-minute rows for an hour long past, and the clock may have jumped ahead.
    """
    rows = rows_of(warehouse)
    with warehouse.connect() as connection:
        loads = connection.execute(sa.text("select app, rows from detect.load where status = 'loaded'")).tuples().all()
    gaps = apps_with_gaps(warehouse)
    wrong = []
    for app, loaded in loads:
        if app in gaps or _samples(rows, loaded) < _samples(reference.rows, loaded):
            continue
        for table, number in loaded.items():
            known = len(reference.rows[table])
            if number < known and _seconds_of(rows[table]) < _seconds_of(reference.rows[table]):
                wrong.append(f"{table}: {known - number} rows are missing, and {app} reported no missing data")
    return wrong


def apps_with_gaps(warehouse: sa.Engine) -> set[str]:
    """Apps with a source that did not respond."""
    with warehouse.connect() as connection:
        return set(connection.execute(sa.text("select app from detect.coverage where status <> 'complete'")).scalars())


def apps_not_loaded(warehouse: sa.Engine, apps: Iterable[str]) -> set[str]:
    """Apps that were not loaded when tickets were filed."""
    with warehouse.connect() as connection:
        loaded = connection.execute(sa.text("select app from detect.load where status = 'loaded'")).scalars()
        return set(apps) - set(loaded)


def _samples(rows: Rows, tables: Iterable[str]) -> int:
    """Total number of readings in the rows of these tables, from the column `samples` where they have it."""
    return sum(int(one["samples"]) for table in tables for one in rows[table] if one.get("samples", "None") != "None")


def _since(hour: datetime, rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Rows without five-minute points that begin before the hour.

    CloudWatch returns five-minute points for an hour long past (the clock may have jumped ahead). They start at
    multiples of five minutes; the hour of a world starts at any minute.
    """
    return [
        row for row in rows
        if row.get("period_seconds", "60") == "60" or datetime.fromisoformat(row["at"]) >= hour
    ]  # fmt: skip


def _seconds_of(rows: Sequence[dict[str, str]]) -> int:
    """Sum of `period_seconds` of the rows; a row without it counts as 1."""
    return sum(int(one.get("period_seconds", 1)) for one in rows)


def leftovers(warehouse: sa.Engine) -> list[str]:
    """Staging tables that were not dropped, as one line."""
    with warehouse.connect() as connection:
        staging = connection.execute(
            sa.text("select count(*) from pg_tables where schemaname = 'staging'")
        ).scalar_one()
    return [f"{staging} staging tables are left"] if staging else []


def rows_of(warehouse: sa.Engine) -> Rows:
    """All rows of all tables."""
    with warehouse.connect() as connection:
        tables = connection.execute(sa.text(_TABLES)).tuples().all()
        return {
            name: [
                {c: str(_rounded(v)) for c, v in row.items()}
                for row in connection.execute(sa.text(f"select * from {name}")).mappings()
            ]
            for name, _ in tables
        }


def _rounded(value: Any) -> Any:
    """Numbers to 12 digits: the last ones of a sum depend on the order in which Spark's tasks end."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def draw_apps(chance: random.Random, wanted: Sequence[Fault] = ()) -> tuple[str, ...]:
    """One app that all these faults can disturb; with a chance of ALL_SHARE, all apps."""
    meeting = sorted(frozenset(ALL).intersection(*(fault.meets for fault in wanted)))
    return ALL if chance.random() < ALL_SHARE or not meeting else (chance.choice(meeting),)


def draw_faults(chance: random.Random, reference: Reference) -> list[Fault]:
    """Two to six different faults that can disturb these apps; the last ones may come too late.

    A fault that prevents every run is drawn alone: no other fault could take effect.
    """
    met = [
        fault for fault in FAULTS
        if fault.is_available and fault.meets.intersection(reference.apps)
        and (reference.titles or not fault.is_trackers)
    ]  # fmt: skip
    first = chance.choice(met)
    others = [fault for fault in met if fault is not first and not fault.is_refused]
    return [first] if first.is_refused else [first, *chance.sample(others, chance.choice((1, 2, 3, 3, 4, 5)))]


def _values(lines: list[dict[str, str]], column: str) -> Counter[str]:
    return Counter(line[column] for line in lines)


def _counted(lines: list[dict[str, str]], columns: list[str]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(line[column] for column in columns) for line in lines)


def _example(columns: list[str], lost: Counter[tuple[str, ...]], more: Counter[tuple[str, ...]]) -> str:
    """A row that differs; if a similar row exists, only the columns that differ."""
    if not lost or not more:
        return str(dict(zip(columns, next(iter(lost or more)), strict=True)))
    one = next(iter(lost))
    other = max(more, key=lambda row: sum(a == b for a, b in zip(one, row, strict=True)))
    return "; ".join(f"{c}: {_differing(a, b)}" for c, a, b in zip(columns, one, other, strict=True) if a != b)


def _differing(one: str, other: str) -> str:
    """Both values, from shortly before their first difference."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(sum(1 for _ in alike) - 60, 0)
    return f"{one[start : start + 200]} -> {other[start : start + 200]}"
