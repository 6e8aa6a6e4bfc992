"""A round: faults disturb a run of an hour and are repaired, the hour is run again, and the result is compared.

Most rounds run the hour of one app, with its detectors and tickets, so that each app meets many more faults in the same
time. All tables of the warehouse are compared, except for columns that differ between two undisturbed runs (times and
durations), and the tickets in the tracker.
"""

from __future__ import annotations

import itertools
import queue
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from streamwarden.base.catalog import APPS

from tests.chaos.faults import FAULTS, TWO_RUNS, Fault
from tests.chaos.runners import Runner
from tests.chaos.world import Kind, World

ALL = tuple(APPS)
ALL_SHARE, AIRFLOW_SHARE = 0.04, 0.01
"""Shares of the rounds that run the hour of all apps: in one process, and as the hourly DAG, which takes minutes."""
BACKFILL_SHARE = 0.04
"""Share of the rounds that run an app for several hours in random order."""
_TABLES = """
    select c.oid::regclass::text as name,
      (select array_agg(a.attname::text order by a.attnum) from pg_attribute as a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
    from pg_class as c
    where c.relkind in ('r', 'p') and not c.relispartition
    and c.relnamespace::regnamespace::text in ('inventory', 'metrics', 'detect', 'tickets')
    and c.oid <> 'detect.run_turn'::regclass -- only runs of the DAG write it, and a reference has none
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
_COLUMNS_OF_ORDER = {"tickets.change": {"hour", "since", *_COLUMNS_OF_DELIVERY["tickets.change"]}}
"""A ticket is created for the first firing hour that is run. An earlier one moves its `opened_hour` afterwards, and the
delivered change stays."""

Rows = dict[str, list[dict[str, str]]]
"""Rows by table, each value as text."""


class Subject(NamedTuple):
    """What a round runs."""

    apps: tuple[str, ...]
    kind: Kind


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
    """The content of the undisturbed hours of a subject."""

    subject: Subject
    rows: Rows
    steady: dict[str, list[str]]
    """Columns of each table that do not change between runs."""
    titles: Counter[str]
    blocked: frozenset[str]
    """Detectors that are not evaluated without the other apps."""
    run_seconds: float

    @classmethod
    def of(cls, world: World, runner: Runner, subject: Subject) -> Reference:
        """Runs the hours undisturbed, in order, in two new warehouses.

        Raises:
            RuntimeError: a further run in the same warehouse changes something.
        """
        apps, hours = subject.apps, world.hours(subject.kind)
        seen = []
        for _ in range(2):
            warehouse = fresh(world)
            begun = time.monotonic()
            answer = _undisturbed(runner, hours, apps)
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
        reference = cls(subject, rows, steady, titles, frozenset(answer["not_evaluated"]), run_seconds)
        _undisturbed(runner, hours, apps)
        if wrong := reference.against(world, rows_of(warehouse)):
            raise RuntimeError(f"the undisturbed hour changes when it is run again: {wrong}")
        return reference

    def against(self, world: World, rows: Rows, *, delivered_with_gaps: bool = False) -> list[str]:
        """Differences from the reference, one line each."""
        wrong = []
        first, *_ = world.hours(self.subject.kind)
        loose = _COLUMNS_OF_DELIVERY if delivered_with_gaps else {}
        if self.subject.kind == "backfill":
            loose = _COLUMNS_OF_ORDER
        for table, steady in self.steady.items():
            columns = [one for one in steady if one not in loose.get(table, ())]
            ours, theirs = (_counted(_since(first, all_rows[table]), columns) for all_rows in (self.rows, rows))
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


def _undisturbed(runner: Runner, hours: Sequence[datetime], apps: tuple[str, ...]) -> dict[str, Any]:
    answer = runner.run(hours, apps)
    if answer["failed"] or (apps == ALL and answer["not_evaluated"]):
        raise RuntimeError(f"the undisturbed hour is incomplete: {answer}")
    return answer


def one_round(
    world: World, runner: Runner, reference: Reference, faults: Sequence[Fault], chance: random.Random
) -> Outcome:
    """Runs the hours under these faults, and again if they are incomplete; returns what is wrong afterwards.

    Several hours are run in random order, each time in another one.
    """
    apps, kind = reference.subject
    hours = world.hours(kind)
    warehouse = fresh(world)
    runner.start()
    met = [fault for fault in faults if fault.is_beforehand]
    for fault in met:
        fault.begin(world, runner.process, chance)
    answers: queue.Queue[dict[str, Any]] = queue.Queue()
    twin_answers: queue.Queue[dict[str, Any]] = queue.Queue()
    has_twin = TWO_RUNS in met
    if has_twin:
        runner.twin.ask(chance.sample(hours, len(hours)), apps, twin_answers)
    runner.ask(chance.sample(hours, len(hours)), apps, answers)
    later = [fault for fault in faults if not fault.is_beforehand]
    share = 0.0
    for fault in later:
        share += (step := chance.uniform(0, 1 / len(later)))
        runner.advance(step * reference.run_seconds, share)
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
        wrong += unreported(reference, warehouse, hours)
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
    # One of two runs may create a ticket before the other one loads the rest.
    with_gaps = has_twin or bool(apps_with_gaps(warehouse) | apps_not_loaded(warehouse, apps, hours))
    left = reference.against(world, rows_of(warehouse), delivered_with_gaps=with_gaps) + leftovers(warehouse)
    if disturbed != "complete" or left:
        repaired = "by restart and rerun" if restarts else "by rerun"
        wrong += _run_again(runner, reference, warehouse, hours, chance)
        left = reference.against(world, rows_of(warehouse), delivered_with_gaps=with_gaps) + leftovers(warehouse)
    seconds = time.monotonic() - begun
    return Outcome(apps, [fault.name for fault in met], disturbed, seconds, repaired, wrong + left)


def _run_again(
    runner: Runner, reference: Reference, warehouse: sa.Engine, hours: Sequence[datetime], chance: random.Random
) -> list[str]:
    """Runs the hours again; returns what is incomplete afterwards.

    Several hours are run twice more: an hour is evaluated with the earlier hours that are loaded by then.
    """
    wrong = []
    for _ in range(min(len(hours), 2)):
        again = runner.run(chance.sample(hours, len(hours)), reference.subject.apps)
        if "got no clear response" in str(again.get("failed")):  # a lost response: the tracker gets time to settle
            _let_trackers_settle(warehouse)
            again = runner.run(chance.sample(hours, len(hours)), reference.subject.apps)
        if again.get("failed") or {*again.get("not_evaluated", ())} - reference.blocked:
            wrong.append(f"the hour is incomplete after the repair: {again}")
    return wrong


def _answer(runner: Runner, answers: queue.Queue[dict[str, Any]]) -> dict[str, Any]:
    try:
        return answers.get(timeout=runner.run_seconds)
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
        return [f"{run} hung:\n{answer['hung']}"]
    return [f"{run} ended with a traceback: {answer['traceback']}"] if "traceback" in answer else []


def fresh(world: World) -> sa.Engine:
    """An empty warehouse and an empty tracker."""
    world.forget_issues()
    return world.fresh_warehouse()


def _let_trackers_settle(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update tickets.issue set unsure_at = least(unsure_at, now()) - interval '1 day'")


def unreported(reference: Reference, warehouse: sa.Engine, hours: Sequence[datetime]) -> list[str]:
    """Missing rows of apps that reported a complete load of all hours with all sources answered.

    A single failed reading is reported by the number of `samples` instead. A row of five minutes counts as five rows of
    one minute: CloudWatch returns five-minute rows for an hour long past, and the clock may have jumped ahead.
    """
    rows = rows_of(warehouse)
    with warehouse.connect() as connection:
        found = connection.execute(sa.text("select app, rows from detect.load where status = 'loaded'")).tuples().all()
    loads = defaultdict[str, list[dict[str, int]]](list)
    for app, loaded in found:
        loads[app].append(loaded)
    gaps = apps_with_gaps(warehouse)
    wrong = []
    for app, by_hour in loads.items():
        tables = {table for loaded in by_hour for table in loaded}
        if app in gaps or len(by_hour) < len(hours) or _samples(rows, tables) < _samples(reference.rows, tables):
            continue
        for table in sorted(tables):
            number, known = sum(loaded[table] for loaded in by_hour), len(reference.rows[table])
            if number < known and _seconds_of(rows[table]) < _seconds_of(reference.rows[table]):
                wrong.append(f"{table}: {known - number} rows are missing, and {app} reported no missing data")
    return wrong


def apps_with_gaps(warehouse: sa.Engine) -> set[str]:
    """Apps with a source that did not respond."""
    with warehouse.connect() as connection:
        return set(connection.execute(sa.text("select app from detect.coverage where status <> 'complete'")).scalars())


def apps_not_loaded(warehouse: sa.Engine, apps: Iterable[str], hours: Sequence[datetime]) -> set[str]:
    """Apps that were not loaded for all of the hours when tickets were filed."""
    with warehouse.connect() as connection:
        loads = connection.execute(sa.text("select app from detect.load where status = 'loaded'")).scalars()
        loaded = Counter(loads)
        return {app for app in apps if loaded[app] < len(hours)}


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


def draw_subject(chance: random.Random, wanted: Sequence[Fault] = ()) -> Subject:
    """One app that all these faults can disturb, or all apps; the kind of round that has these faults."""
    draw = chance.random()
    kinds = frozenset[Kind]({"hour", "backfill", "airflow"}).intersection(*(fault.kinds for fault in wanted))
    if "hour" not in kinds:
        [kind] = kinds
    elif wanted:
        kind = "hour"
    else:
        kind = "airflow" if draw < AIRFLOW_SHARE else "backfill" if draw > 1 - BACKFILL_SHARE else "hour"
    meeting = sorted(frozenset(ALL).intersection(*(fault.meets for fault in wanted)))
    is_whole = kind == "airflow" or AIRFLOW_SHARE <= draw < AIRFLOW_SHARE + ALL_SHARE or not meeting
    return Subject(ALL if is_whole else (chance.choice(meeting),), kind)


def draw_faults(chance: random.Random, reference: Reference) -> list[Fault]:
    """Two to six different faults that can disturb these apps; the last ones may come too late.

    A fault that prevents every run is drawn alone: no other fault could take effect. A fault that only this kind of
    round has is always among them.
    """
    apps, kind = reference.subject
    met = [
        fault for fault in FAULTS
        if fault.is_available and fault.meets.intersection(apps) and kind in fault.kinds
        and (reference.titles or not fault.is_trackers)
    ]  # fmt: skip
    first = chance.choice([fault for fault in met if fault.kinds == {kind}] or met)
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
