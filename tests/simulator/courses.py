"""Courses of incidents, hour by hour, from the sources on: a throttled broker volume, and the group that reads slowly
from that broker. They clear, flap, and miss hours: sources do not respond, or the hour is not evaluated at all.

The volume is a simulated disk (`volumes`), the group reads simulated logs (`lag`). The apps make the hours of both from
the sources, and the detectors evaluate them. The findings are stored hour by hour in a warehouse with the topology, and
the product weighs causes and reconciles tickets. The truth is the disk's throttled minutes and the age of the first
unread record.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import sqlalchemy as sa
from demo.ebs_load import LoadModel, Surge
from demo.world import World
from streamwarden.base.hours import HOUR
from streamwarden.causes import find_causes
from streamwarden.detectors import Finding
from streamwarden.detectors.results import store_findings
from streamwarden.tickets import reconcile

from tests.simulator import lag, volumes
from tests.simulator.bench import Bench
from tests.simulator.incidents import CONFIG, DETECTORS, Cluster, _empty, _found, insert_many
from tests.simulator.lag_loads import lag_seconds
from tests.simulator.scenario import EVALUATED, SMALL, START, Case, Scenario
from tests.simulator.score import Goal, Score
from tests.simulator.volume_kinds import ACCOUNT, MINUTE, REGION
from tests.simulator.volume_kinds import Fleet as Disks

FIRST, HOURS = lag.FIRST_HOUR, lag.HOURS
DAY = timedelta(days=1)
"""The disks are a day ahead of the logs: their app looks back a day."""
HURTS, LATE_SECONDS, WELL_SECONDS = 25, 720, 60
"""Throttled minutes of an hour, and the age of the first unread record, from which on an hour hurts; and a lag that is
none."""
CLEAR_AFTER = 3
"""Healthy hours with data after which nothing is open: the detectors' two, and the one in which the incident ended."""
BROKERS, PARTITIONS = (1, 2, 3), 9
SLOW = BROKERS[0]
READS_ALL = 1e6
Span = tuple[float, float]
"""Start and end in hours of the course."""


@dataclass
class Course:
    """A cluster with one volume and one group that matter."""

    kind: str
    name: str
    throttled: list[Span] = field(default_factory=list)
    silent: set[int] = field(default_factory=set)
    """Hours of the course in which CloudWatch has no data points and Kafka does not respond."""
    is_read_slowly: bool = True
    """Whether the group cannot keep up meanwhile."""

    @property
    def volume_id(self) -> str:
        return f"{self.name}-v{SLOW}"


@dataclass
class CoursesScore(Score):
    """Tickets by hour compared with the course."""

    right: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)
    """Hours in which a goal was met, and in which it applied."""
    issues: int = 0

    def count(self, goal: str, is_right: bool, wrong: str) -> None:
        """Counts an hour of a goal; `wrong` is what differs if it is not met."""
        self.right[goal] += is_right
        self.of[goal] += 1
        if not is_right:
            self.wrong.append(f"{goal}: {wrong}")

    @property
    def goals(self) -> list[Goal]:
        rows = [Goal(f"{name}, of {of}", self.right[name] / of, 0.98) for name, of in self.of.items()]
        name = f"issues per incident, of {self.faults}"
        return [*rows, Goal(name, self.issues / max(self.faults, 1), 1.05, at_most=True)]


# Kinds: their spans within the 16 hours of a course


def clears(course: Course, dice: random.Random) -> None:
    start = dice.uniform(1, 6)
    course.throttled = [(start, start + dice.uniform(1.5, 5))]


def throttled_alone(course: Course, dice: random.Random) -> None:
    """The group has spare capacity."""
    clears(course, dice)
    course.is_read_slowly = False


def flaps(course: Course, dice: random.Random) -> None:
    """It ends and begins again, with at most one healthy hour in between."""
    at, end = dice.uniform(1, 2), dice.uniform(8, 10)
    while at < end:
        on = dice.uniform(1.2, 1.8)
        course.throttled.append((at, at + on))
        at += on + dice.uniform(0.4, 1.0)


def returns(course: Course, dice: random.Random) -> None:
    """It clears for hours and returns, within the time in which a ticket is reopened."""
    first, second = dice.uniform(1, 2), dice.uniform(8.5, 9.5)
    course.throttled = [(first, first + dice.uniform(1.5, 2)), (second, second + dice.uniform(1.5, 2))]


def misses_hours(course: Course, dice: random.Random) -> None:
    """The sources do not respond for some hours in the middle."""
    start = dice.uniform(1, 4)
    course.throttled = [(start, start + dice.uniform(5, 7))]
    gap = int(start) + 2
    course.silent = set(range(gap, gap + dice.randint(1, 3)))


def misses_its_end(course: Course, dice: random.Random) -> None:
    """The incident ends while the sources do not respond."""
    start, end = dice.uniform(1, 4), dice.uniform(7, 9)
    course.throttled = [(start, end)]
    course.silent = set(range(int(end), int(end) + dice.randint(1, 2)))


def misses_its_start(course: Course, dice: random.Random) -> None:
    """The sources do not respond when the incident begins."""
    start = dice.uniform(3, 5)
    course.throttled = [(start, start + dice.uniform(4, 6))]
    course.silent = set(range(int(start), int(start) + dice.randint(1, 2)))


def well(course: Course, dice: random.Random) -> None:
    """Nothing happens."""


def well_and_silent(course: Course, dice: random.Random) -> None:
    """Nothing happens, and the sources do not respond for some hours."""
    course.silent = set(dice.sample(range(1, HOURS), 3))


def short_peaks(course: Course, dice: random.Random) -> None:
    """A few minutes at the limit, several times."""
    at = dice.uniform(1, 2)
    while at < HOURS - 2:
        course.throttled.append((at, at + dice.uniform(2, 7) / 60))
        at += dice.uniform(1.5, 4)
    course.is_read_slowly = False


Make = Callable[[Course, random.Random], None]
FAULTS: tuple[Make, ...] = (clears, throttled_alone, flaps, returns, misses_hours, misses_its_end, misses_its_start)
DECOYS: tuple[Make, ...] = (well, well_and_silent, short_peaks)


def build(scenario: Scenario) -> list[Course]:
    """Courses of all kinds."""
    courses, kinds = [], (*scenario.some(FAULTS), *DECOYS)
    for n in range(len(kinds) * (1 if scenario.days <= SMALL.days else 4)):
        make = kinds[n % len(kinds)]
        course = Course(make.__name__.replace("_", " "), f"course{n}")
        make(course, random.Random(f"{scenario.seed} course {n}"))  # noqa: S311 a simulation
        courses.append(course)
    return courses


def _moment(hours: float) -> datetime:
    """Time of a log; a disk's is a day later."""
    return START + (FIRST + hours) * HOUR


def disks_of(scenario: Scenario, courses: list[Course]) -> Disks:
    """A gp3 volume per course, above its limit in the throttled spans."""
    end = START + 2 * DAY
    fleet = Disks(replace(scenario, days=2), World(scenario.seed, lambda: end))
    dice = random.Random(f"{scenario.seed} disks")  # noqa: S311
    for course in courses:
        instance_id = f"{course.name}-i{SLOW}"
        fleet.world.add_instance(ACCOUNT, REGION, instance_id, "m5.2xlarge", {}, START)
        each = 3000 * dice.uniform(1.15, 1.5) / 2
        surges = tuple(Surge(_moment(a) + DAY, _moment(b) + DAY, each, each) for a, b in course.throttled)
        load = LoadModel(20, 20, noise=0.1, surges=surges)
        fleet.world.add_volume(ACCOUNT, REGION, course.volume_id, "gp3", 300, instance_id=instance_id,
                               device="/dev/sdf", load=load, created_at=START)  # fmt: skip
        for hour in course.silent:
            fleet.world.lose_points(course.volume_id, _moment(hour) + DAY, _moment(hour + 1) + DAY)
    return fleet


def groups_of(scenario: Scenario, courses: list[Course]) -> lag.Fleet:
    """A group per course: slow on the partitions that the broker of the volume leads, while that is throttled."""
    builder = lag.Builder(scenario)
    for course in courses:
        rate = builder.chance.uniform(1, 5)
        slow = [(START, READS_ALL)]
        for start, end in course.throttled if course.is_read_slowly else ():
            slow += [(_moment(start), rate * builder.chance.uniform(0, 0.3)), (_moment(end), rate * 20)]
        readers = [lag.Reader(slow, commit_every=MINUTE), lag.Reader([(START, READS_ALL)], commit_every=MINUTE)]
        logs = [builder.log(rate), builder.log(rate)]
        led = [int(_leader(p) != SLOW) for p in range(PARTITIONS)]
        builder.add(course.kind, [logs[n] for n in led], [readers[n] for n in led])
    return builder.fleet


def _leader(partition: int) -> int:
    return BROKERS[partition % len(BROKERS)]


def cluster_of(course: Course) -> Cluster:
    """The topology of a course: three brokers, one topic, one group."""
    cluster = Cluster(random.Random(course.name), course.name)  # noqa: S311
    spots = [("events", partition) for partition in range(PARTITIONS)]
    cluster.brokers = list(BROKERS)
    cluster.leaders = {spot: _leader(spot[1]) for spot in spots}
    cluster.replicas = {spot: [_leader(spot[1]), *(b for b in BROKERS if b != _leader(spot[1]))] for spot in spots}
    cluster.groups = {lag.GROUP: dict.fromkeys(spots, cluster.machines[0])}
    cluster.rates = {lag.GROUP: 100.0}
    cluster.apps = {}
    return cluster


# The course of the product


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Evaluates all hours from the sources on, then stores their findings hour by hour; scores the tickets."""
    courses = build(scenario)
    disks, groups = disks_of(scenario, courses), groups_of(scenario, courses)
    by_hour = _findings(bench, courses, disks, groups)
    dice = random.Random(f"{scenario.seed} skipped")  # noqa: S311
    skipped = {dice.randrange(4, HOURS - 5)}
    _empty(bench.warehouse)
    clusters = [cluster_of(course) for course in courses]
    unknown = sum(row.status == "unknown" for found in by_hour.values() for row in found)
    result = CoursesScore("courses of incidents", HOURS * len(courses), len(courses), unknown, 0)
    seen: dict[str, list[dict[str, tuple[int, str]]]] = {course.name: [] for course in courses}
    for hour in range(HOURS):
        if hour not in skipped:
            _run(bench.warehouse, clusters, by_hour[hour], _at(hour))
        tickets = _open_tickets(bench.warehouse)
        for course in courses:
            seen[course.name].append({f: t for f, t in tickets.items() if f.split(" ")[1].startswith(_keys(course))})
    for number, course in enumerate(courses):
        states = _states(course, disks, groups, number)
        _score(result, course, states, seen[course.name], skipped)
    return result


def _findings(bench: Bench, courses: list[Course], disks: Disks, groups: lag.Fleet) -> dict[int, list[Finding]]:
    """Findings of the detectors on all courses, by hour of the course."""
    by_hour: dict[int, list[Finding]] = {n: [] for n in range(HOURS)}
    volumes.load(bench, disks, [Case(c.volume_id, _moment(n) + DAY) for c in courses for n in range(HOURS)])
    for row in bench.findings(volumes.DETECTOR):
        case = Case.of(row.resource.columns["volume_id"])
        one = _found(row.detector, f"volume:1/r/{case.resource_name}", None)
        by_hour[_number(case.hour - DAY)].append(replace(row, resource=one.resource))
    answered = [
        Case(name, _moment(n))
        for name, course in zip(groups.timelines, courses, strict=True)
        for n in range(HOURS)
        if n not in course.silent
    ]
    lag.load(bench, groups, answered)
    names = dict(zip(groups.timelines, courses, strict=True))
    for row in bench.findings(lag.DETECTOR):
        case = Case.of(row.resource.columns["cluster"])
        one = _found(row.detector, f"group:{names[case.resource_name].name}/{lag.GROUP}", None)
        by_hour[_number(case.hour)].append(replace(row, resource=one.resource))
    return by_hour


def _number(hour: datetime) -> int:
    return round((hour - _moment(0)) / HOUR)


def _at(hour: int) -> datetime:
    return EVALUATED + (hour - HOURS + 1) * HOUR


def _run(warehouse: sa.Engine, clusters: list[Cluster], found: list[Finding], at: datetime) -> None:
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": at.date()})
        insert_many(connection, (row for cluster in clusters for row in cluster.rows(at)))
        store_findings(connection, found, at, datetime.now(UTC))
        run = {"hour": at, "status": "evaluated", "firing": 0}
        insert_many(connection, (("detect.detector_run", run | {"detector": d}) for d in DETECTORS))
    find_causes(warehouse, DETECTORS, at)
    reconcile(warehouse, CONFIG, DETECTORS, at + HOUR)


def _keys(course: Course) -> tuple[str, ...]:
    return f"volume:1/r/{course.name}-", f"group:{course.name}/"


def _open_tickets(warehouse: sa.Engine) -> dict[str, tuple[int, str]]:
    """Issue and root of each open ticket, by its detector and resource."""
    with warehouse.connect() as connection:
        rows = connection.execute(_OPEN).all()
    return {f"{detector} {resource}": (issue, root) for detector, resource, issue, root in rows}


_OPEN = sa.text("""
    select t.detector, t.resource, coalesce(t.summary_ticket_id, t.ticket_id) as issue, root.resource as root
    from tickets.ticket as t
    inner join tickets.ticket as c on coalesce(t.summary_ticket_id, t.ticket_id) = c.ticket_id
    inner join tickets.ticket as root on coalesce(c.root_ticket_id, c.ticket_id) = root.ticket_id
    where t.state = 'open' and t.resolved_hour is null""")


# The truth


@dataclass(frozen=True)
class State:
    """An hour of a course."""

    hurts: bool
    is_throttled: bool
    """Whether the volume is throttled for so long that it must fire."""
    is_well: bool
    has_data: bool


def _states(course: Course, disks: Disks, groups: lag.Fleet, number: int) -> list[State]:
    held = volumes._hurt(disks, disks.world.volumes[course.volume_id]).held
    # Without data points the disk is throttled all the same: the demand decides there.
    demand = np.zeros(len(held), bool)
    for start, end in course.throttled:
        first, last = (round((_moment(at) + DAY - START) / MINUTE) for at in (start, end))
        demand[first:last] = True
    held = held | demand
    timeline = list(groups.timelines.values())[number]
    led_by_slow = replace(timeline, logs=timeline.logs[:1], paths=timeline.paths[:1])
    states = []
    for hour in range(HOURS):
        first = round((_moment(hour) + DAY - START) / MINUTE)
        minutes, late = int(held[first : first + 60].sum()), lag_seconds(led_by_slow, _moment(hour + 1))
        is_throttled = minutes >= HURTS
        is_well = minutes == 0 and late < WELL_SECONDS
        states.append(State(is_throttled or late >= LATE_SECONDS, is_throttled, is_well, hour not in course.silent))
    return states


def _score(
    result: CoursesScore, course: Course, states: list[State], seen: list[dict[str, tuple[int, str]]], skipped: set[int]
) -> None:
    is_fault = course.kind in {make.__name__.replace("_", " ") for make in FAULTS}
    result.faults += is_fault
    issues = {issue for tickets in seen for issue, _ in tickets.values()}
    result.issues += len(issues) if is_fault else 0
    if not is_fault:
        result.count("nothing opens without an incident", not issues, f"{course.name} ({course.kind})")
        return
    if len(issues) != 1:
        result.wrong.append(f"{len(issues)} issues: {course.name} ({course.kind})")
    well_for, is_root_due = 0, False
    for hour, (state, tickets) in enumerate(zip(states, seen, strict=True)):
        where = f"{course.name} ({course.kind}), hour {hour}"
        if hour in skipped or not state.has_data:
            before = set(seen[hour - 1]) if hour else set()
            result.count("nothing changes without data", set(tickets) == before, f"{where}: {set(tickets) ^ before}")
            continue
        well_for = well_for + 1 if state.is_well else 0
        is_root_due |= state.is_throttled  # a volume that does not fire yet is no cause
        if state.hurts:
            result.count("open while it hurts", bool(tickets), where)
        if well_for >= CLEAR_AFTER:
            result.count("resolved once it is well", not tickets, f"{where}: {', '.join(tickets)}")
        for ticket, (_, root) in tickets.items():
            if ticket.startswith(lag.DETECTOR) and is_root_due:
                result.count("root is the volume", root.startswith("volume:"), f"{where}: {root}")
