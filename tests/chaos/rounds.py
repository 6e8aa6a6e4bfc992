"""A round: an hour is run while faults meet it, what broke is mended, it is run again, and the outcome compared.

Mostly it is the hour of one app, with all that is judged and filed by it: so each app meets many more faults in the
same time. Compared are all tables of the warehouse, but for columns that differ between two undisturbed runs (when, how
long), and the tracker's tickets.
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
"""Of the rounds: the hour of all apps."""
RUN_SECONDS = 240
"""What an hour may take however it is disturbed: more is a run that hangs."""
LONGEST_WAIT_SECONDS = 900
"""For an undisturbed one, on a machine that has other things to do too."""
_TABLES = """
    select c.oid::regclass::text as name,
      (select array_agg(a.attname::text order by a.attnum) from pg_attribute as a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
    from pg_class as c
    where c.relkind in ('r', 'p') and not c.relispartition
    and c.relnamespace::regnamespace::text in ('inventory', 'metrics', 'detect', 'tickets')
    order by 1"""

# How much of CloudWatch an hour still lacked, in which order tickets were told, how often it was tried, and whether the
# tracker was asked since (`state`).
_PASSING = {
    "detect.load": {"rows"},
    "tickets.change": {"change_id", "ticket_id"},
    "tickets.ticket": {"ticket_id"},
    "tickets.issue": {"ticket_id", "delivered_change_id", "attempts", "external_key", "external_url", "error", "state"},
}
_KNOWN_THEN = {"tickets.change": {"reason", "finding", "incident"}}
"""What a ticket was told by. Where a source had a gap then, or an app had nothing loaded, it says less, and stays when
the hour is run again; a comment may say more."""

Rows = dict[str, list[dict[str, str]]]
"""Rows by table, each value as text."""


class Runner:
    """A process that runs hours, warm from one to the next."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._log = world.folder / "runner.log"
        self._child: subprocess.Popen[str] | None = None

    @cached_property
    def twin(self) -> Runner:
        """Another one, for a second run of the hour at the same time."""
        return Runner(self._world)

    @property
    def process(self) -> psutil.Process:
        assert self._child
        return psutil.Process(self._child.pid)

    def start(self) -> None:
        """Starts one, unless it runs."""
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.runner"],
                env=environment_of(self._world),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log.open("a"),
                text=True, start_new_session=True,
            )  # fmt: skip

    def ask(self, apps: Sequence[str], answers: queue.Queue[dict[str, Any]]) -> None:
        """Runs these apps' hour; the answer, or that there is none any more, comes through the queue."""
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
        """Runs the world's hour, undisturbed, and waits."""
        answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.ask(apps, answers)
        try:
            return answers.get(timeout=LONGEST_WAIT_SECONDS)
        except queue.Empty:
            raise TimeoutError(f"undisturbed, the hour didn't end:\n{self.stacks()}") from None

    def stacks(self) -> str:
        """Where the run and its JVM stand, for who looks for why."""
        with self._log.open("a") as log:
            before = self._log.stat().st_size
            self.process.send_signal(signal.SIGUSR1)
            for jvm in jvms(self.process):
                subprocess.run(["jstack", str(jvm.pid)], stdout=log, stderr=log, timeout=30, check=False)
        return self._log.read_bytes()[before:].decode(errors="replace")

    def close(self) -> None:
        """Ends it and its twin."""
        self.kill()
        if "twin" in vars(self):
            self.twin.kill()

    def kill(self) -> None:
        """Ends it and all that it started."""
        if self._child is not None:
            with suppress(psutil.NoSuchProcess):
                for process in tree(self.process):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
            self._child.wait()
            self._child = None


@dataclass
class Outcome:
    """What came of a round."""

    apps: tuple[str, ...]
    faults: list[str]
    disturbed: str
    """How the disturbed run ended: whole, incomplete (it said so), gone (killed), hung."""
    seconds: float
    """From the faults' end until the hour was whole again."""
    repaired: str
    """How it became so: by itself, by a rerun, by a rerun after a restart."""
    wrong: list[str] = field(default_factory=list)
    """What was lost, doubled or not told."""


@dataclass
class Reference:
    """What the hour of some apps holds when nothing disturbs it."""

    apps: tuple[str, ...]
    rows: Rows
    steady: dict[str, list[str]]
    """Columns of each table that don't change from run to run."""
    titles: Counter[str]
    blocked: frozenset[str]
    """Detectors that can't judge without the other apps."""
    run_seconds: float

    @classmethod
    def of(cls, world: World, runner: Runner, apps: tuple[str, ...]) -> Reference:
        """From two undisturbed runs, each into a warehouse of its own; one more must change nothing."""
        seen = []
        for _ in range(2):
            warehouse = fresh(world)
            begun = time.monotonic()
            said = _undisturbed(runner, apps)
            run_seconds = time.monotonic() - begun  # the second one's: the first may warm up
            seen.append((rows_of(warehouse), Counter(one["title"] for one in world.issues())))
        (_, _), (rows, titles) = seen
        steady = {}
        for table, lines in rows.items():
            columns = sorted(lines[0]) if lines else []
            steady[table] = [
                one for one in columns
                if _values(lines, one) == _values(seen[0][0][table], one) and one not in _PASSING.get(table, ())
            ]  # fmt: skip
        reference = cls(apps, rows, steady, titles, frozenset(said["not_evaluated"]), run_seconds)
        _undisturbed(runner, apps)
        if wrong := reference.against(world, rows_of(warehouse)):
            raise RuntimeError(f"undisturbed, the hour isn't the same when it is run again: {wrong}")
        return reference

    def against(self, world: World, rows: Rows, *, told_with_gaps: bool = False) -> list[str]:
        """What differs, a line each."""
        wrong = []
        for table, steady in self.steady.items():
            columns = [one for one in steady if not (told_with_gaps and one in _KNOWN_THEN.get(table, ()))]
            ours, theirs = (_counted(_since(world.hour, all_rows[table]), columns) for all_rows in (self.rows, rows))
            lost, more = ours - theirs, theirs - ours
            if told_with_gaps and table in _KNOWN_THEN and columns:  # none where the reference has no rows
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
    said = runner.run(apps)
    if said["failed"] or (apps == ALL and said["not_evaluated"]):
        raise RuntimeError(f"undisturbed, the hour isn't whole: {said}")
    return said


def one_round(
    world: World, runner: Runner, reference: Reference, faults: Sequence[Fault], chance: random.Random
) -> Outcome:
    """The hour under these faults, and what is left of them, after one more run where it isn't whole yet."""
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
        if not answers.empty():  # it is over: nothing is there to be met
            break
        with suppress(sa.exc.OperationalError):  # PostgreSQL is down by another one: likewise
            fault.begin(world, runner.process, chance)
            met.append(fault)
    time.sleep(chance.uniform(0.5, 4))
    begun = time.monotonic()
    for fault in sorted(met, key=lambda one: not one.name.startswith("PostgreSQL")):  # which others' ends may ask
        fault.end(world)
    said = _answer(runner, answers)  # both have ended before it is looked at what they left
    twin_said = _answer(runner.twin, twin_answers) if has_twin else {}
    disturbed = "hung" if "hung" in said else "gone" if "gone" in said else "incomplete" if said["failed"] else "whole"
    wrong = [*_astray("the disturbed run", said), *(untold(reference, warehouse) if "failed" in said else ())]
    if has_twin:
        wrong += _astray("the second run", twin_said)
        if "gone" in twin_said:
            wrong.append("the second run is gone, though nobody killed it")
        if "hung" in twin_said:
            runner.twin.kill()
    restarts = disturbed in ("hung", "gone") or any(fault.kills_runner for fault in met)
    if restarts:
        runner.kill()
    repaired = "by itself"
    with_gaps = bool(apps_with_gaps(warehouse) | apps_not_loaded(warehouse, reference.apps))
    left = reference.against(world, rows_of(warehouse), told_with_gaps=with_gaps) + leftovers(warehouse)
    if disturbed != "whole" or left:
        repaired = "by restart and rerun" if restarts else "by rerun"
        again = runner.run(reference.apps)
        if "is sent again from" in str(again.get("failed")):  # a lost answer: the tracker gets time to settle
            _let_trackers_settle(warehouse)
            again = runner.run(reference.apps)
        if again.get("failed") or {*again.get("not_evaluated", ())} - reference.blocked:
            wrong.append(f"mended, the hour isn't whole: {again}")
        left = reference.against(world, rows_of(warehouse), told_with_gaps=with_gaps) + leftovers(warehouse)
    seconds = time.monotonic() - begun
    return Outcome(reference.apps, [fault.name for fault in met], disturbed, seconds, repaired, wrong + left)


def _answer(runner: Runner, answers: queue.Queue[dict[str, Any]]) -> dict[str, Any]:
    try:
        return answers.get(timeout=RUN_SECONDS)
    except queue.Empty:
        return {"hung": runner.stacks()}


def _astray(run: str, said: dict[str, Any]) -> list[str]:
    """What no run may do, whatever meets it."""
    if "hung" in said:
        return [f"{run} hadn't ended after {RUN_SECONDS} s:\n{said['hung']}"]
    return [f"{run} ended with a traceback: {said['traceback']}"] if "traceback" in said else []


def fresh(world: World) -> sa.Engine:
    """An empty warehouse and an empty tracker."""
    world.forget_issues()
    return world.fresh_warehouse()


def _let_trackers_settle(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update tickets.issue set unsure_at = least(unsure_at, now()) - interval '1 day'")


def untold(reference: Reference, warehouse: sa.Engine) -> list[str]:
    """Rows that an app should have loaded and hasn't, though it says that it loaded and that all had answered.

    One reading of three that failed is told by the number of `samples` instead. A row of five minutes, as CloudWatch
    gives them to who believes that the hour is long past, is as much as five of one.
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
            if number < known and _stand_for(rows[table]) < _stand_for(reference.rows[table]):
                wrong.append(f"{table}: {known - number} rows are missing, and no gap of {app} says so")
    return wrong


def apps_with_gaps(warehouse: sa.Engine) -> set[str]:
    """Apps of which a source didn't answer."""
    with warehouse.connect() as connection:
        return set(connection.execute(sa.text("select app from detect.coverage where status <> 'answered'")).scalars())


def apps_not_loaded(warehouse: sa.Engine, apps: Iterable[str]) -> set[str]:
    """Apps of which the hour's tickets knew nothing."""
    with warehouse.connect() as connection:
        loaded = connection.execute(sa.text("select app from detect.load where status = 'loaded'")).scalars()
        return set(apps) - set(loaded)


def _samples(rows: Rows, tables: Iterable[str]) -> int:
    """Readings that these tables' rows are made of, where they tell them."""
    return sum(int(one["samples"]) for table in tables for one in rows[table] if one.get("samples", "None") != "None")


def _since(hour: datetime, rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Without points of five minutes that begin before the hour: who believes that it is long past is given them on
    their own grid, on which a world's hour, that begins at any minute, need not be."""
    return [
        row for row in rows
        if row.get("period_seconds", "60") == "60" or datetime.fromisoformat(row["at"]) >= hour
    ]  # fmt: skip


def _stand_for(rows: Sequence[dict[str, str]]) -> int:
    """Seconds that these rows stand for, where they tell a period; else their number."""
    return sum(int(one.get("period_seconds", 1)) for one in rows)


def leftovers(warehouse: sa.Engine) -> list[str]:
    """What nobody cleans up any more."""
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
                {c: str(v) for c, v in row.items()}
                for row in connection.execute(sa.text(f"select * from {name}")).mappings()
            ]
            for name, _ in tables
        }


def draw_apps(chance: random.Random, wanted: Sequence[Fault] = ()) -> tuple[str, ...]:
    """One app that meets all these faults, or now and then all apps."""
    meeting = sorted(frozenset(ALL).intersection(*(fault.meets for fault in wanted)))
    return ALL if chance.random() < ALL_SHARE or not meeting else (chance.choice(meeting),)


def draw_faults(chance: random.Random, reference: Reference) -> list[Fault]:
    """Two to six that can meet these apps, each at most once, of which the last may come too late. What no run begins
    with meets it alone: nothing else could.
    """
    met = [
        fault for fault in FAULTS
        if fault.can_be and fault.meets.intersection(reference.apps) and (reference.titles or not fault.is_trackers)
    ]  # fmt: skip
    first = chance.choice(met)
    others = [fault for fault in met if fault is not first and not fault.is_refused]
    return [first] if first.is_refused else [first, *chance.sample(others, chance.choice((1, 2, 3, 3, 4, 5)))]


def _values(lines: list[dict[str, str]], column: str) -> Counter[str]:
    return Counter(line[column] for line in lines)


def _counted(lines: list[dict[str, str]], columns: list[str]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(line[column] for column in columns) for line in lines)


def _example(columns: list[str], lost: Counter[tuple[str, ...]], more: Counter[tuple[str, ...]]) -> str:
    """A row that differs; of two that are alike, the columns in which they do."""
    if not lost or not more:
        return str(dict(zip(columns, next(iter(lost or more)), strict=True)))
    one = next(iter(lost))
    other = max(more, key=lambda row: sum(a == b for a, b in zip(one, row, strict=True)))
    return "; ".join(f"{c}: {_differing(a, b)}" for c, a, b in zip(columns, one, other, strict=True) if a != b)


def _differing(one: str, other: str) -> str:
    """Both, from shortly before they part."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(sum(1 for _ in alike) - 60, 0)
    return f"{one[start : start + 200]} -> {other[start : start + 200]}"
