"""Consumer groups on logs with realistic clocks, transaction markers, and commits: groups with lag, and decoys.

A log is a sequence of offsets with two times each: append time and producer timestamp. Readable records, markers, and
aborted records are known, and so is the true lag: the age of the first readable record that the group has not read.
The rows of the sources follow Kafka's rules: an offset by time is the first whose timestamp is not earlier (KIP-79),
and the time of an offset is where these responses pass it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import Finding

from spark_apps.apps import consumer_groups as app
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_next_records import RECORDS, appended_ms
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.simulator import lag_loads
from tests.simulator.bench import Bench
from tests.simulator.frames import KNOWN_COMMITS, MEMBERS, NO_GROUPS_UNLISTED, commits_read, null_filled, rows_frame
from tests.simulator.scenario import EVALUATED, START, Case, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, score

DETECTOR = "consumer_group_lagging"
GROUP, PARTITIONS = "checkout", 3
MANY = 100
FIRST_HOUR, HOURS = 2, 16
"""Evaluated hours of each timeline; the hours before are the history of the logs."""
READ_AFTER = timedelta(minutes=3)
RECENT = timedelta(seconds=60)
STANDS = timedelta(minutes=5)
AHEAD = timedelta(minutes=50)
AUTO_COMMIT = timedelta(seconds=5)
WRITTEN_DOWN = timedelta(minutes=1)
"""Resolution of the commits that the product reads: at most one per minute, and the last one."""
DETECTED_AFTER = timedelta(minutes=20)
"""The detector must fire in the hour in which a group has been stuck for so long."""
HALVINGS = 5
"""Bisection steps by time that fit the budget of the source; the remaining interval is some tens of minutes."""


@dataclass
class Log:
    """A partition's offsets from 0 on, in seconds since START."""

    appended: np.ndarray
    stamped: np.ndarray
    readable: np.ndarray
    kept: timedelta | None = None
    """Retention; None: unlimited."""

    def start(self, moment: datetime) -> int:
        """Log-start offset."""
        return self.end(moment - self.kept) if self.kept else 0

    def end(self, moment: datetime) -> int:
        return int(np.searchsorted(self.appended, _seconds(moment), side="right"))

    def offset_at(self, moment: datetime, asked_at: datetime) -> int:
        """ListOffsets by time, asked at a later moment."""
        end = self.end(asked_at)
        later = np.flatnonzero(self.stamped[:end] >= _seconds(moment))
        return max(int(later[0]), self.start(asked_at)) if len(later) else end

    def next_from(self, offset: int, asked_at: datetime) -> tuple[int, int, float]:
        """First record from here for a read_committed consumer (-1: none), end of 100 records, and its append time."""
        offset = max(offset, self.start(asked_at))
        got = offset + np.flatnonzero(self.readable[offset : self.end(asked_at)])[:RECORDS]
        if not len(got):
            return -1, -1, float("inf")
        times_ms = [int(second * 1000) for second in self.stamped[got].tolist()]
        return int(got[0]), int(got[-1]) + 1, appended_ms(times_ms) / 1000

    def time_of(self, offset: int) -> float:
        """Append time of an offset, by a search over ListOffsets by time."""
        return float(self.stamped[: offset + 1].max())

    def time_between(self, offset: int, asked_at: datetime) -> tuple[float, float, float]:
        """Result of a search by time that ends early: the estimate and the two bounds of the time of an offset."""
        start = self.start(asked_at)
        low, high = (start, float(self.stamped[start])), (self.end(asked_at), _seconds(asked_at))
        for _ in range(HALVINGS):
            middle = (low[1] + high[1]) / 2
            answer = self.offset_at(START + timedelta(seconds=middle), asked_at)
            low, high = ((answer, float(self.stamped[answer])), high) if answer <= offset else (low, (answer, middle))
        if low[0] == offset:
            return low[1], low[1], low[1]
        share = (offset - low[0]) / max(high[0] - low[0], 1)
        return low[1] + share * (high[1] - low[1]), low[1], high[1]


@dataclass
class Reader:
    """How a group reads a log: records per second by time."""

    speed: list[tuple[datetime, float]]
    """Records per second from a time on; 0: the group is stuck."""
    rewinds: list[tuple[datetime, timedelta]] = field(default_factory=list)
    """At a time, the offset is reset to the records appended so long before."""
    commit_every: timedelta = AUTO_COMMIT
    commits_last: bool = False
    """Whether commits hold the offset of the last record instead of the next one."""

    def positions(self, log: Log, until: datetime) -> np.ndarray:
        """Position of the reader (next offset) every 5 seconds from START on."""
        step = int(AUTO_COMMIT.total_seconds())
        ends = np.searchsorted(log.appended, np.arange(step, _seconds(until) + step, step), side="right")
        position, at = 0.0, []
        for n, end in enumerate(ends.tolist()):
            moment = START + timedelta(seconds=n * step)
            for rewind, back in self.rewinds:
                if rewind <= moment < rewind + AUTO_COMMIT:
                    position = float(log.end(rewind - back))
            speed = [rate for since, rate in self.speed if since <= moment][-1]
            position = min(position + speed * step, float(end))
            at.append(int(position))
        return np.array(at)


@dataclass
class Timeline:
    """A cluster with one topic and one group, from START on."""

    kind: str
    logs: list[Log]
    readers: list[Reader]
    stopped_at: datetime | None = None
    """Time from which on the group has no members."""
    assigned: bool = True
    """Whether the topic is still assigned to members of the group."""
    committed_beyond: bool = False
    is_guessed: bool = False
    """Whether record times had to be estimated."""
    paths: list[np.ndarray] = field(default_factory=list)

    def consumed(self, partition: int, moment: datetime) -> int:
        """Position of the reader: the next offset to read."""
        n = int(_seconds(moment) // AUTO_COMMIT.total_seconds()) - 1
        return int(self.paths[partition][n]) if n >= 0 else 0

    def committed(self, partition: int, moment: datetime) -> tuple[int, datetime]:
        """Committed offset at a time, and the time of that commit."""
        reader = self.readers[partition]
        every = reader.commit_every.total_seconds()
        # A group that commits rarely does not commit exactly on the hour.
        phase = 0.37 * every if reader.commit_every > AUTO_COMMIT else 0.0
        last = self.stopped_at if self.stopped_at and self.stopped_at < moment else moment
        at = START + timedelta(seconds=(_seconds(last) - phase) // every * every + phase)
        position = self.consumed(partition, at)
        return (max(position - 1, 0) if reader.commits_last else position), at


@dataclass
class Fleet:
    scenario: Scenario
    truth: Truth = field(default_factory=Truth)
    timelines: dict[str, Timeline] = field(default_factory=dict)
    guessed: list[Fault] = field(default_factory=list)
    """Faults that the offsets can neither prove nor rule out: `ok` is wrong, firing is not required."""


class Builder:
    """Adds timelines to a fleet."""

    def __init__(self, scenario: Scenario) -> None:
        self.fleet = Fleet(scenario)
        self.chance = random.Random(f"{scenario.seed} lag")  # noqa: S311 a simulation
        self.draws = np.random.default_rng([scenario.seed, 7])
        self.until = START + (FIRST_HOUR + HOURS + 1) * HOUR

    def log(self, rate: float) -> Log:
        """Steady traffic; the timestamp of each record is its append time."""
        count = int(rate * _seconds(self.until))
        return self.log_of(self.draws.uniform(0, _seconds(self.until), count))

    def log_of(self, seconds: np.ndarray) -> Log:
        """A log whose records were produced at these times, and appended at once."""
        appended = np.sort(seconds)
        return Log(appended, appended.copy(), np.ones(len(appended), bool))

    def logs(self, rate: float | None = None) -> list[Log]:
        each = rate or self.chance.uniform(1, 8)
        return [self.log(each) for _ in range(PARTITIONS)]

    def moment(self, first: float = 5, last: float = 10) -> datetime:
        return START + HOUR * self.chance.uniform(first, last)

    def add(self, kind: str, logs: list[Log], readers: list[Reader] | Reader, **more: Any) -> Timeline:
        each = readers if isinstance(readers, list) else [readers] * len(logs)
        timeline = Timeline(kind, logs, each, **more)
        paths: dict[tuple[int, int], np.ndarray] = {}  # partitions that share log and reader share their path
        for reader, log in zip(each, logs, strict=True):
            if (id(reader), id(log)) not in paths:
                paths[id(reader), id(log)] = reader.positions(log, self.until)
            timeline.paths.append(paths[id(reader), id(log)])
        name = f"lag{len(self.fleet.timelines):04d}"
        self.fleet.timelines[name] = timeline
        self.fleet.truth.decoys[f"{name}"] = kind
        return timeline

    def fault(self, kind: str, begins: datetime, seen: datetime, ends: datetime | None = None) -> None:
        """The detector must fire for the group added last, in the hour that contains `seen`."""
        name = list(self.fleet.timelines)[-1]
        until = ends or self.until
        hurts_from = start_of_hour(seen)
        self.fleet.truth.faults.append(Fault(name, kind, begins, start_of_hour(seen), until, hurts_from=hurts_from))

    # Faults

    def stopped(self, kind: str = "stopped", logs: list[Log] | None = None, **more: Any) -> Timeline:
        """The application has stopped."""
        at = self.moment()
        reader = Reader([(START, 1e6), (at, 0)], **more)
        timeline = self.add(kind, logs or self.logs(), reader, stopped_at=at)
        self.fault(kind, at, at + max(DETECTED_AFTER, 2 * reader.commit_every))
        return timeline

    def stopped_and_a_clock_ahead(self) -> None:
        """While the group was stopped, one record with a future timestamp was appended: offsets by time end there."""
        timeline = self.stopped("stopped, and a clock ahead")
        at = timeline.stopped_at or START
        for log in timeline.logs:
            self.date_ahead(log, at - timedelta(minutes=10))

    @staticmethod
    def date_ahead(log: Log, moment: datetime) -> None:
        offset = log.end(moment)
        log.stamped[offset] = log.appended[offset] + AHEAD.total_seconds()

    def stopped_that_commits_seldom(self) -> None:
        self.stopped("stopped, commits seldom", commit_every=timedelta(minutes=self.chance.randint(8, 20)))

    def stopped_that_commits_the_last(self) -> None:
        self.stopped("stopped, commits the last offset", commits_last=True)

    def uneven(self, rate: float) -> Log:
        """Most records arrive in a few minutes of each ten, so times cannot be interpolated from offsets."""
        log = self.log(4 * rate)
        is_busy = log.appended % 600 < 120
        kept = is_busy | (self.draws.random(len(is_busy)) < 0.05)
        return Log(log.appended[kept], log.stamped[kept], log.readable[kept])

    def behind(self, kind: str, late: timedelta) -> tuple[datetime, datetime]:
        """A group whose lag grows to `late`, with estimated times. Returns when lag begins and reaches `late`."""
        at = self.moment(4, 7)
        logs = [self.uneven(self.chance.uniform(2, 6)) for _ in range(PARTITIONS)]
        timeline = self.add(kind, logs, Reader([(START, 1e6)]), is_guessed=True)
        step = AUTO_COMMIT.total_seconds()
        moments = np.arange(1, len(timeline.paths[0]) + 1) * step
        wanted = moments - np.clip(moments - _seconds(at), 0, late.total_seconds())
        timeline.paths = [np.searchsorted(log.appended, wanted, side="right") for log in logs]
        return at, at + late

    def hours_behind_by_a_guess(self) -> None:
        """So far behind that every estimate of the lag says so."""
        kind = "hours behind by a guess"
        at, _ = self.behind(kind, timedelta(minutes=self.chance.uniform(100, 150)))
        self.fault(kind, at, at + DETECTED_AFTER)

    def late_by_a_guess(self) -> None:
        """As far behind as the estimate is wide: the lag is not provable, and `ok` is wrong."""
        at, since = self.behind("late by a guess", timedelta(minutes=self.chance.uniform(14, 25)))
        self.unclear(at - HOUR, self.until)
        name = list(self.fleet.timelines)[-1]
        self.fleet.guessed.append(Fault(name, "late by a guess", since, start_of_hour(since) + HOUR, self.until))

    def stopped_and_its_records_deleted(self) -> None:
        """Retention deletes unread records of a stopped group: its unread records begin at the log start offset."""
        logs = self.logs()
        for log in logs:
            log.kept = timedelta(hours=self.chance.uniform(2, 4))
        self.stopped("stopped, its records deleted", logs)

    def one_is_stuck(self) -> None:
        """A record whose processing never ends, on one partition."""
        at = self.moment()
        readers = [Reader([(START, 1e6), (at, 0)]), *[Reader([(START, 1e6)])] * (PARTITIONS - 1)]
        self.add("one partition stuck", self.logs(), readers)
        self.fault("one partition stuck", at, at + DETECTED_AFTER)

    def falls_behind(self) -> None:
        """After a release the group reads fewer records than are produced."""
        at, rate = self.moment(3, 7), self.chance.uniform(2, 8)
        share = self.chance.uniform(0.3, 0.75)
        self.add("falls behind", self.logs(rate), Reader([(START, 1e6), (at, rate * share)]))
        late = at + timedelta(minutes=12) / (1 - share)
        self.fault("falls behind", at, late)
        self.unclear(at, late)

    def falls_behind_on_event_time(self) -> None:
        """Record timestamps are event times, up to two hours ago."""
        at = self.moment(3, 6)
        logs = self.logs(6)
        self.stamp_with_events(logs)
        self.add("falls behind on event time", logs, Reader([(START, 1e6), (at, 3.0)]))
        self.fault("falls behind on event time", at, at + timedelta(minutes=40))
        self.unclear(at, at + timedelta(minutes=40))

    def stamp_with_events(self, logs: list[Log]) -> None:
        for log in logs:
            log.stamped = log.appended - self.draws.uniform(0, 7200, len(log.appended))

    def rewound_too_far(self) -> None:
        """A catch-up that will take hours."""
        at, rate = self.moment(9, 11), self.chance.uniform(2, 6)
        back = timedelta(hours=self.chance.uniform(5, 7))
        reader = Reader([(START, 1e6), (at, rate * self.chance.uniform(1.3, 1.8))], [(at, back)])
        self.add("rewound too far", self.logs(rate), reader)
        self.fault("rewound too far", at, at + timedelta(minutes=10), at + 4 * HOUR)

    # Decoys

    def healthy(self) -> None:
        self.add("healthy", self.logs(), Reader([(START, 1e6)]))

    def clock_ahead(self) -> None:
        """One record with a future timestamp, in a log whose group keeps up."""
        logs = self.logs()
        for log in logs:
            self.date_ahead(log, self.moment())
        self.add("clock ahead", logs, Reader([(START, 1e6)]))

    def ends_in_markers(self) -> None:
        """Transactions: only a marker, or aborted records, follow the last committed record."""
        aborted = self.chance.randint(0, 20)
        logs = []
        for _ in range(PARTITIONS):
            log, at = self.log(self.chance.uniform(1, 4)), _seconds(self.moment(4, 8))
            kept = log.appended < at
            tail = at + np.arange(1 + aborted) * 0.01
            appended = np.concatenate([log.appended[kept], tail])
            readable = np.concatenate([np.ones(kept.sum(), bool), np.zeros(len(tail), bool)])
            logs.append(Log(appended, appended.copy(), readable))
        timeline = self.add("ends in markers", logs, Reader([(START, 1e6)]))
        # The reader's position is after the last record, which precedes the marker.
        for n, log in enumerate(logs):
            last = int(np.flatnonzero(log.readable)[-1]) + 1
            timeline.paths[n] = np.minimum(timeline.paths[n], last)

    def punctual_by_a_guess(self) -> None:
        """Always a few minutes behind, although the estimate is imprecise."""
        self.behind("punctual by a guess", timedelta(minutes=self.chance.uniform(2, 5)))

    def commits_seldom(self) -> None:
        """A sink that commits once per file."""
        every = timedelta(minutes=self.chance.randint(7, 20))
        self.add("commits seldom", self.logs(), Reader([(START, 1e6)], commit_every=every))

    def left_the_topic(self) -> None:
        """The group is active and reads another topic now; its old offsets remain."""
        at = self.moment(3, 6)
        self.add("left the topic", self.logs(), Reader([(START, 1e6), (at, 0)]), assigned=False, stopped_at=at)

    def commits_the_last(self) -> None:
        """Commits of the last offset instead of the next, on a quiet topic: one record always seems unread."""
        self.add("commits the last offset", self.logs(0.003), Reader([(START, 1e6)], commits_last=True))

    def rewound_and_soon_back(self) -> None:
        """A replay that takes minutes and is still running at the end of the hour."""
        at, rate = start_of_hour(self.moment(9, 11)) + timedelta(minutes=self.chance.randint(50, 57)), 5.0
        reader = Reader([(START, 1e6), (at, rate * 16)], [(at, timedelta(hours=self.chance.uniform(3, 5)))])
        self.add("rewound and soon back", self.logs(rate), reader)

    def event_time(self) -> None:
        logs = self.logs(6)
        self.stamp_with_events(logs)
        self.add("event time", logs, Reader([(START, 1e6)]))

    def quiet(self) -> None:
        """One record every ten minutes, read at once."""
        self.add("quiet topic", self.logs(0.0017), Reader([(START, 1e6)]))

    def all_is_deleted(self) -> None:
        """No producers, no consumers, and retention has deleted all records: nothing is left to read."""
        at = self.moment(3, 4)
        logs = self.logs()
        for log in logs:
            kept = log.appended < _seconds(at)
            log.appended, log.stamped, log.readable = log.appended[kept], log.stamped[kept], log.readable[kept]
            log.kept = timedelta(hours=1)
        reader = Reader([(START, 1e6), (at - timedelta(minutes=2), 0)])
        self.add("all is deleted", logs, reader, stopped_at=at - timedelta(minutes=2))
        self.unclear(at - HOUR, at + 2 * HOUR)

    def unclear(self, start: datetime, end: datetime) -> None:
        self.fleet.truth.unclear.append((list(self.fleet.timelines)[-1], start, end))


FAULTS: tuple[Callable[[Builder], object], ...] = (
    Builder.stopped,
    Builder.stopped_and_a_clock_ahead,
    Builder.stopped_that_commits_seldom,
    Builder.stopped_that_commits_the_last,
    Builder.stopped_and_its_records_deleted,
    Builder.one_is_stuck,
    Builder.falls_behind,
    Builder.falls_behind_on_event_time,
    Builder.rewound_too_far,
    Builder.hours_behind_by_a_guess,
    *lag_loads.FAULTS,
)
DECOYS: tuple[Callable[[Builder], object], ...] = (
    Builder.healthy,
    Builder.clock_ahead,
    Builder.ends_in_markers,
    Builder.commits_seldom,
    Builder.left_the_topic,
    Builder.commits_the_last,
    Builder.rewound_and_soon_back,
    Builder.event_time,
    Builder.quiet,
    Builder.all_is_deleted,
    Builder.punctual_by_a_guess,
    Builder.late_by_a_guess,
    *lag_loads.DECOYS,
)


def build(scenario: Scenario) -> Fleet:
    """Timelines of all kinds in rotation."""
    builder = Builder(scenario)
    kinds = (*scenario.some(FAULTS), *DECOYS)
    for turn in range(scenario.groups):
        kinds[turn % len(kinds)](builder)
    return builder.fleet


def cases(fleet: Fleet) -> list[Case]:
    """All evaluated hours of each timeline; of one with thousands of partitions only those around its fault."""
    every = [START + (FIRST_HOUR + n) * HOUR for n in range(HOURS)]
    due = {fault.resource_name: fault.due for fault in fleet.truth.faults}
    return [
        Case(name, hour)
        for name, timeline in fleet.timelines.items()
        for hour in every
        if len(timeline.logs) < MANY or abs(hour - due.get(name, every[HOURS // 2])) <= HOUR
    ]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    scored = prepare(bench, scenario)
    return scored(bench.findings(DETECTOR))


def prepare(bench: Bench, scenario: Scenario) -> Callable[[list[Finding]], Score]:
    """Simulates and loads; returns what scores findings of the detector, with whatever parameters they were made."""
    fleet = build(scenario)
    load(bench, fleet, cases(fleet))
    return lambda found: _scored(bench, fleet, found)


def _scored(bench: Bench, fleet: Fleet, found: list[Finding]) -> Score:
    verdicts = [_verdict(row) for row in found]
    result = score("lagging groups", bench.detector(DETECTOR), verdicts, fleet.truth)
    result.errors, result.error_of = list(_errors(fleet, verdicts)), "time to catch up"
    for verdict in verdicts:
        for fault in fleet.guessed:
            if verdict.resource_name == fault.resource_name and fault.due <= verdict.hour < fault.ends - HOUR:
                wrong = verdict.message if verdict.status == "ok" else None
                result.claim("what is guessed isn't ok", fault, verdict, wrong)
    return result


def verdicts_of(bench: Bench, fleet: Fleet, chosen: list[Case]) -> list[Verdict]:
    """Verdicts of the detector on these hours."""
    load(bench, fleet, chosen)
    return [_verdict(row) for row in bench.findings(DETECTOR)]


def _verdict(row: Finding) -> Verdict:
    return Verdict.of(row.resource.columns["cluster"], row)


def load(bench: Bench, fleet: Fleet, chosen: list[Case]) -> None:
    """Loads these hours of groups into the warehouse, as the app does."""
    with TemporaryDirectory() as folder:
        bench.load("consumer_groups", app.transform(_sources(bench, fleet, chosen, Path(folder)), EVALUATED, Config()))
    for table in ("metrics.consumer_partition_hourly", "metrics.consumer_group_hourly", "metrics.partition_hourly"):
        bench.remember(table, "cluster")


def _errors(fleet: Fleet, verdicts: list[Verdict]) -> Iterator[float]:
    """Relative errors of the forecasts for groups that are catching up."""
    for verdict in verdicts:
        output = verdict.metrics["catches_up_in_seconds"]
        timeline = fleet.timelines[verdict.resource_name]
        if verdict.status == "firing" and output and timeline.kind == "rewound too far":
            reader, end = timeline.readers[0], verdict.hour + HOUR
            log = timeline.logs[0]
            rate = len(log.appended) / _seconds(START + (FIRST_HOUR + HOURS + 1) * HOUR)
            true = (log.end(end) - timeline.consumed(0, end)) / (reader.speed[-1][1] - rate)
            if true > 600:
                yield abs(output - true) / true


# Rows of the sources


def _sources(bench: Bench, fleet: Fleet, chosen: list[Case], folder: Path) -> dict[str, DataFrame]:
    topics, groups, offsets, commits, times, ends = [], [], [], [], [], []
    for case in chosen:
        timeline = fleet.timelines[case.resource_name]
        topics += _topics(case, len(timeline.logs))
        groups.append(_group(case, timeline))
        for partition in range(len(timeline.logs)):
            offsets += _offsets(case, timeline, partition)
            history, written = _commits(case, timeline, partition)
            commits += history
            times += written
            ends.append(_known_end(case, timeline.logs[partition], partition))
    read = commits_read(bench.spark, [case.name for case in chosen])
    output = null_filled(bench.spark, folder / "commits", commits, generation="int", members=MEMBERS, resource="string")
    sources = {
        "kafka_topics": rows_frame(bench.spark, topics, KafkaTopics({}).schema()),
        "kafka_groups": rows_frame(bench.spark, groups, KafkaGroups({}).schema()),
        "kafka_log_dirs": rows_frame(bench.spark, [], KafkaLogDirs({}).schema()),
        "unlisted_groups": rows_frame(bench.spark, [], NO_GROUPS_UNLISTED),
        "kafka_offsets": null_filled(bench.spark, folder / "offsets", offsets, resource="string"),
        "kafka_commits": output.unionByName(read, allowMissingColumns=True),
        "kafka_record_times": null_filled(bench.spark, folder / "times", times, resource="string"),
    }
    sources["known_commits"] = rows_frame(bench.spark, [], KNOWN_COMMITS)
    sources["known_ends"] = null_filled(bench.spark, folder / "ends", ends)
    sources["positions"] = app.positions(sources, EVALUATED)
    return sources


def _topics(case: Case, count: int) -> list[dict[str, Any]]:
    partitions = [{"partition": p, "leader": 0, "replicas": [0], "isr": [0]} for p in range(count)]
    config = {"message.timestamp.type": {"value": "CreateTime", "source": "DEFAULT_CONFIG"}}
    head = {"cluster": case.name, "configs": config, "observed_at": EVALUATED + HOUR, "resource": case.name}
    return [head | {"topic": topic, "partitions": partitions} for topic in ("events", "elsewhere")]


def _group(case: Case, timeline: Timeline) -> dict[str, Any]:
    is_gone = timeline.assigned and timeline.stopped_at is not None and timeline.stopped_at < case.hour + HOUR
    topic = "events" if timeline.assigned else "elsewhere"
    assignment = {topic: [*range(len(timeline.logs))]}
    member = {"member_id": "m-1", "client_id": "c-1", "host": "10.0.0.9", "assignment": assignment}
    return {
        "cluster": case.name, "group_id": GROUP, "protocol": "classic", "state": "EMPTY" if is_gone else "STABLE",
        "members": [] if is_gone else [member], "observed_at": EVALUATED + HOUR, "resource": case.name,
    }  # fmt: skip


def _offsets(case: Case, timeline: Timeline, partition: int) -> list[dict[str, Any]]:
    end, read_at = case.hour + HOUR, case.hour + HOUR + READ_AFTER
    log = timeline.logs[partition]
    clock = {"cluster": case.name, "as_of": EVALUATED + HOUR, "read_at": EVALUATED + HOUR + READ_AFTER}
    place = clock | {"topic": "events", "partition": partition}
    committed, _ = timeline.committed(partition, read_at)
    now = log.end(read_at)
    return [
        place | {"kind": "committed", "group_id": GROUP, "committed_offset": committed},
        place
        | {
            "kind": "log",
            "log_start_offset": log.start(read_at),
            "log_end_offset": now,
            "last_stable_offset": now,
            "offset_at_from": log.offset_at(case.hour, read_at),
            "offset_at_to": log.offset_at(end, read_at),
            "recent_offset": log.offset_at(end - RECENT, read_at),
        },
    ]


def _known_end(case: Case, log: Log, partition: int) -> dict[str, Any]:
    """End offset of the log when the previous hour was read."""
    seen = case.hour + READ_AFTER
    at = {"cluster": case.name, "topic": "events", "partition": partition}
    return at | {"log_end_offset": log.end(seen), "known_at": seen + case.shift}


def _commits(case: Case, timeline: Timeline, partition: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Commits of the hour in `__consumer_offsets`, and the time of the first uncommitted record."""
    end, first = case.hour + HOUR, case.hour - app.LOOK_BACK
    place = {"cluster": case.name, "topic": "events", "partition": partition}
    said: dict[datetime, int] = {}
    moments = [first + n * WRITTEN_DOWN for n in range(int((end - first) / WRITTEN_DOWN))] + [end - AUTO_COMMIT]
    for moment in moments:
        offset, at = timeline.committed(partition, moment)
        if first <= at < end:
            said[at] = offset
    history = [
        place | {"kind": "commit", "group_id": GROUP, "committed_offset": offset, "committed_at": at + case.shift,
                 "log_partition": 0, "log_offset": n * len(timeline.logs) + partition, "written_at": at + case.shift}
        for n, (at, offset) in enumerate(sorted(said.items()))
    ]  # fmt: skip
    log = timeline.logs[partition]
    offset = said[max(said)] if said else timeline.committed(partition, end + READ_AFTER)[0]
    offset = max(offset, log.start(end + READ_AFTER))
    if offset >= log.end(end + READ_AFTER):
        return history, []
    by_time = earliest = latest = log.time_of(offset)
    if timeline.is_guessed:
        by_time, earliest, latest = log.time_between(offset, end + READ_AFTER)
    output: dict[str, Any] = {"offset": offset, "next_offset": None, "read_end": None}
    if timeline.committed(partition, end - STANDS)[0] == offset:
        output["next_offset"], output["read_end"], seen = log.next_from(offset, end + READ_AFTER)
        is_own = output["next_offset"] in (offset, -1)
        by_time, earliest, latest = (min(each, seen) if is_own else seen for each in (by_time, earliest, latest))
    times = {"record_at": by_time, "earliest_at": earliest, "latest_at": latest}
    written = {name: START + timedelta(seconds=seconds) + case.shift for name, seconds in times.items()}
    return history, [place | written | output]


def _seconds(moment: datetime) -> float:
    return (moment - START).total_seconds()
