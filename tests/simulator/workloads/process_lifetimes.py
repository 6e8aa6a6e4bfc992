"""A small Kafka cluster by hour: traffic of its topics, positions of its groups, and states of its processes.

Times are hours since the start of the simulation; `NOW` is the end of the evaluated hour. Traffic follows the hour of
the day and the day of the week by the clock of the case, so each cluster is evaluated at another hour of the week. A
topic's log is its cumulated records and bytes. The position of a group is a time in that log. All rows of the sources
are computed from these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator.scenario import EVALUATED, Case

DAY = 24
NOW = 130 * DAY
"""End of the evaluated hour, in hours since the start. One more is simulated: sources respond after its end."""
HOURS = NOW + 1
MINUTE, SECOND = 1 / 60, 1 / 3600
BEHIND = 2 * SECOND
"""Lag of a group that keeps up, in hours."""
COMMIT_EVERY = 5 * MINUTE
MIB, GIB = 2**20, 2**30
MEMORY, PAGE_CACHE = 32 * GIB, 0.5
PARKED = 9
"""The ID of a parked broker, which holds unused topics."""
PLAIN = {"cleanup.policy": "delete", "retention.ms": str(3 * DAY * 3_600_000), "min.insync.replicas": "2"}
COMPACTED = PLAIN | {"cleanup.policy": "compact"}
NEVER = 10 * NOW


def _at(steps: np.ndarray, t: np.ndarray | float) -> Any:
    """Interpolates a cumulated value at a time from its values at the end of each hour."""
    return np.interp(t, np.arange(len(steps)), steps)


def _pace(topics: Iterable[Topic]) -> np.ndarray:
    """Fetches per hour of a consumer that waits for records of topics: two per second, or one per record."""
    came = sum((topic.messages for topic in topics), np.zeros(HOURS))
    return np.minimum(np.maximum(came, 2 * 3600), 500 * 3600)


@dataclass
class Topic:
    """A topic's log: records and bytes by hour."""

    name: str
    messages: np.ndarray
    size: np.ndarray
    """Bytes of a record in the log and on the wire."""
    configs: dict[str, str] = field(default_factory=lambda: dict(PLAIN))
    partitions: int = 6
    brokers: tuple[int, ...] = (1, 2, 3)
    """Brokers with a replica of each partition; the first one leads."""
    made: float = 0.0
    configs_before: tuple[float, dict[str, str]] | None = None
    """Time until which it had other configs."""
    partitions_before: tuple[float, int] | None = None
    """Time until which it had another number of partitions."""
    stable: Callable[[int, float], float] | None = None
    """Last stable position by time and partition; None: no transactions."""
    purged_by: Group | None = None
    """Records are deleted as soon as this group has read them."""
    others_read: np.ndarray | float = 0.0
    """Bytes per hour sent to consumers without a group."""
    others_poll: np.ndarray | float = 0.0
    """Fetches per second and partition of those consumers."""
    leaderless: int | None = None
    """The partition without a leader."""
    shares: np.ndarray | None = None
    """Share of each hour's records by partition; None: equal shares."""

    @cached_property
    def records(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.messages)])

    @cached_property
    def weight(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.messages * self.size)])

    def bytes(self, t: float | np.ndarray) -> Any:
        """Bytes appended by then."""
        return _at(self.weight, t)

    @cached_property
    def _own(self) -> np.ndarray:
        """As `records`, for one partition."""
        assert self.shares is not None
        return np.pad(np.cumsum(self.messages * self.shares, axis=1), ((0, 0), (1, 0)))

    def after(self, place: float, records: float | np.ndarray) -> Any:
        """Position (time in the log) of a reader after so many records from its start."""
        return np.interp(_at(self.records, place) + records, self.records, np.arange(len(self.records)))

    def end(self, t: float | np.ndarray, partition: int | None = None) -> Any:
        """Log-end offset of a partition, or of the mean one."""
        if self.shares is None or partition is None:
            return np.floor(_at(self.records, t) / self.partitions + 1e-6)
        return np.floor(_at(self._own[partition], t) + 1e-6)

    @cached_property
    def _rising(self) -> np.ndarray:
        return self.records + np.arange(len(self.records)) * 1e-9

    def time_of(self, offset: float | np.ndarray, partition: int | None = None) -> Any:
        """Append time of the record at an offset."""
        hours = np.arange(len(self.records))
        if self.shares is None or partition is None:
            return np.interp((offset + 0.5) * self.partitions, self._rising, hours)
        return np.interp(offset + 0.5, self._own[partition] + hours * 1e-9, hours)

    def first(self, t: float) -> float:
        """Append time of the oldest retained record."""
        if self.purged_by is not None:
            return self.purged_by.read_up_to(t)
        if "compact" in self.configs["cleanup.policy"]:
            return 0.0
        kept = float(self.configs["retention.ms"]) / 3_600_000
        begins = max(t - kept, 0.0) if kept > 0 else 0.0
        if limit := float(self.configs.get("retention.bytes", 0)):
            wanted = float(self.bytes(t)) - limit * self.partitions
            begins = max(begins, float(np.interp(wanted, self.weight, np.arange(len(self.weight)))))
        return begins

    def start(self, t: float, partition: int | None = None) -> int:
        """Log-start offset of a partition, or of the mean one."""
        return int(self.end(self.first(t), partition))

    def last_stable(self, partition: int, t: float) -> int:
        """Last stable offset: no transaction is open below it."""
        return int(self.end(min(self.stable(partition, t), t) if self.stable else t, partition))

    def held(self, t: float) -> float:
        """Bytes of one replica of all partitions."""
        return float(self.bytes(t) - self.bytes(self.first(t)))

    def share(self, partition: int) -> float:
        """Mean bytes of all its records."""
        return 1 / self.partitions if self.shares is None else float(self._own[partition, -1] / self.records[-1])

    def settings(self, t: float) -> dict[str, str]:
        """Topic configs at a time."""
        return self.configs_before[1] if self.configs_before and t < self.configs_before[0] else self.configs


@dataclass(frozen=True)
class Member:
    """A member of a group in one generation."""

    member_id: str
    client: str
    host: str
    assignment: dict[str, list[int]]


@dataclass(frozen=True)
class Generation:
    """A generation of a group's members."""

    began: float
    members: tuple[Member, ...] | None
    """Members of the generation; None: not contained in records of this protocol."""


@dataclass
class Group:
    """A consumer group: its topics and its position in their logs."""

    name: str
    topics: list[str]
    path: list[tuple[float, float]] = field(default_factory=list)
    """(time, position in the log), linear between the points. None: the group keeps up."""
    born: float = 0.0
    died: float = NEVER
    """Time from which on it has no members."""
    commit_every: float = COMMIT_EVERY
    """Commit interval; 0: no commits."""
    client: str = "client"
    members: int = 2
    left: dict[str, float] = field(default_factory=dict)
    """Topics with remaining offsets of the group, and the time of its last read."""
    silent_on: list[str] = field(default_factory=list)
    """Topics of the group without any commit."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Topics on which it is stuck at one offset of each partition."""
    stops_at_open: bool = False
    """isolation.level is read_committed."""
    kept_for: float = 7 * DAY
    """offsets.retention.minutes: how long the group is listed after its last member left."""
    own_paths: dict[tuple[str, int], list[tuple[float, float]]] = field(default_factory=dict)
    """Positions of partitions that differ from the rest, as `path`."""
    generations: list[Generation] = field(default_factory=list)
    """The latest generations, in order."""
    poll_interval: float = 5 * MINUTE
    session_timeout: float = 45 * SECOND
    polls_empty: np.ndarray | float = 0.0
    """Fetches per second of each member without waiting, although there are no records."""
    hasty_on: str = ""
    """Each topic is read by a client of its own; only the client of this topic fetches that way."""

    def assignments(self, topics: dict[str, Topic]) -> list[tuple[str, dict[str, list[int]]]]:
        """Client ID and partitions (round-robin) of each member."""
        if self.hasty_on:
            return [(f"{self.client}-{name}", {name: [*range(topics[name].partitions)]}) for name in self.topics]
        shares = (
            {name: [*range(n, topics[name].partitions, self.members)] for name in self.topics}
            for n in range(self.members)
        )
        of_members = ({name: share for name, share in each.items() if share} for each in shares)
        return [(self.client, partitions) for partitions in of_members]

    def read_up_to(self, t: float | np.ndarray) -> Any:
        """Position of the group in the log (time) at a time."""
        last = np.clip(t, self.born, self.died)
        if not self.path:
            return last - BEHIND
        moments, places = zip(*self.path, strict=True)
        return np.minimum(np.interp(last, moments, places), last - BEHIND)

    def read_of(self, topic: str, partition: int, t: float) -> float:
        """Position of the group in the log of a partition (time) at a time."""
        own = self.own_paths.get((topic, partition))
        return min(float(np.interp(t, *zip(*own, strict=True))), t - BEHIND) if own else float(self.read_up_to(t))

    def committed_at(self, t: float, topic: str | None = None) -> float | None:
        """Time of its last commit on a topic before then; None: no commit."""
        last = min(t, self.died, self.left.get(topic or "", NEVER))
        first = self.born + self.commit_every
        if not self.commit_every or last < first:
            return None
        return float(first + np.floor((last - first) / self.commit_every + 1e-9) * self.commit_every)

    def is_listed(self, t: float) -> bool:
        """Whether the coordinator lists the group."""
        return self.born <= t < self.died + self.kept_for

    def committed(self, topic: Topic, partition: int, t: float) -> int | None:
        """Committed offset of a partition at a time."""
        at = self.committed_at(t, topic.name)
        if at is None or topic.name in self.silent_on or topic.name not in (*self.topics, *self.left):
            return None
        if topic.name in self.offsets:
            return self.offsets[topic.name]
        offset = int(topic.end(self.read_of(topic.name, partition, at), partition))
        return min(offset, topic.last_stable(partition, t)) if self.stops_at_open else offset

    def bytes_read(self, topic: Topic) -> np.ndarray:
        """Bytes sent to the group by hour; a rewind itself sends nothing, rereads do."""
        knots = np.array([t for t, _ in self.path], float)
        moments = np.unique(np.concatenate([np.arange(HOURS + 1, dtype=float), knots[(knots > 0) & (knots < HOURS)]]))
        steps = np.maximum(np.diff(topic.bytes(self.read_up_to(moments))), 0)
        return np.bincount(np.floor(moments[:-1]).astype(int), steps, minlength=HOURS)[:HOURS]


@dataclass
class Store:
    """A state store in one process."""

    name: str
    kind: str
    tasks: np.ndarray
    size: np.ndarray
    """Bytes of its SST files at the end of each hour."""
    keys: np.ndarray


@dataclass
class Way:
    """Record latency of an application outside of the log: minimum, mean, and maximum in seconds."""

    topic: Topic
    group: Group
    before: tuple[float, float, float]
    """From the record's timestamp until its append time, including clock skew."""
    inside: tuple[float, float, float]
    holds_back: bool = False
    """Whether it aggregates windows."""
    reports_topics: bool = True
    """Clients before Kafka 3.3 do not."""

    def ages(self, partition: int, t: float) -> tuple[list[float], list[float]] | None:
        """Record ages in ms at the source node and at the terminal nodes of a partition; None: no records."""
        place = self.group.read_of(self.topic.name, partition, t)
        if self.topic.end(place) == self.topic.end(self.group.read_of(self.topic.name, partition, t - MINUTE)):
            return None
        late = (t - place) / SECOND
        taken = [1000 * (late + seconds) for seconds in self.before]
        return taken, [age + 1000 * seconds for age, seconds in zip(taken, self.inside, strict=True)]


Steps = list[tuple[float, float]]
"""A step function: (start time, value)."""


def now(steps: Steps, t: float) -> float:
    """The value at a time."""
    return [value for since, value in steps if since <= t][-1]


def until(steps: Steps, t: float, amount: Callable[[float], float]) -> float:
    """Integral of the step function over `amount`, up to a time."""
    ends = [*(since for since, _ in steps[1:]), NEVER]
    return sum(
        value * (amount(min(end, t)) - amount(since))
        for (since, value), end in zip(steps, ends, strict=True)
        if since < t
    )


@dataclass
class Work:
    """Processing time of a stream thread per record, in ms, by activity."""

    cpu: Steps
    outside: Steps
    """Waits for another system."""
    overhead: float = 0.01
    """CPUs that the process uses for everything else."""
    sending: Steps = field(default_factory=lambda: [(0.0, 0.0)])
    """Waits for space in a producer's buffer."""
    disk: Steps | None = None
    """Reads from disk for its stores; None: no stores."""
    collecting: Steps = field(default_factory=lambda: [(0.0, 0.005)])
    """Share of the time in GC pauses."""
    stretched: Steps = field(default_factory=lambda: [(0.0, 1.0)])
    """Factor on CPU time while another process uses the CPU."""
    pool: Steps | None = None
    """Threads that wait for one of the two connections of the pool."""
    machine: Literal["calm", "full", "stolen"] | None = None
    """State of the host by node exporter: calm, CPUs used by this process or by others, or steal."""
    has_limit: bool = False
    """Whether its container has a CPU limit whose throttling stretches CPU time."""
    seen_cpu: float = 0.3
    """CPU utilization that the JVM exposes, as a share of the CPUs or of the container's limit."""
    exposes_latency: bool = True

    def latency(self, t: float) -> float:
        waits = now(self.outside, t) + now(self.sending, t) + (now(self.disk, t) if self.disk else 0)
        return (now(self.cpu, t) * now(self.stretched, t) + waits) / (1 - now(self.collecting, t))


@dataclass
class Producer:
    """A Kafka producer of a process, and its lost records."""

    client: str
    topic: str
    records: float
    """Records sent per hour."""
    gives_up: Steps = field(default_factory=lambda: [(0.0, 0.0)])
    """Records per hour that failed."""
    has_no_room_for: Steps = field(default_factory=lambda: [(0.0, 0.0)])
    """Failed records per hour that were rejected because the buffer was full."""


EMPTY_ANSWER = 22
"""Bytes of a fetch response without records: size, header, throttle time, error, and session."""
BATCH_HEAD, OF_PARTITION = 61, 60
"""Overhead in bytes of a record batch, and of a partition in a response."""
HEARTBEATS, HEARTBEAT = 1200, 16
"""Fetches per hour, and bytes of a response."""


@dataclass
class Consumer:
    """A member of a group that exposes its fetch metrics."""

    life: Life
    group: Group
    client: str
    partitions: dict[str, list[int]]

    def _of_each(self) -> Iterable[tuple[Topic, int]]:
        return ((self.life.topics[name], p) for name, partitions in self.partitions.items() for p in partitions)

    def fetches(self, t: float) -> float:
        """Fetches: one at a time per broker that leads one of its partitions."""
        asked = [topic.brokers[p % len(topic.brokers)] for topic, p in self._of_each()]
        if not asked:
            return 0.0
        pace = self.life.asks(self.group, next(iter(self.partitions)))
        return len({*asked}) * float(_at(np.concatenate([[0.0], np.cumsum(pace)]), t))

    def records(self, t: float) -> float:
        return float(sum(topic.end(self.group.read_up_to(t), p) for topic, p in self._of_each()))

    def bytes(self, t: float) -> float:
        return float(sum(topic.bytes(self.group.read_up_to(t)) * topic.share(p) for topic, p in self._of_each()))

    def received(self, t: float) -> float:
        """Bytes of all responses; records that arrive singly are single-record batches."""
        with_records = min(self.records(t), self.fetches(t))
        heads = EMPTY_ANSWER * self.fetches(t) + (BATCH_HEAD + OF_PARTITION) * with_records
        return self.bytes(t) + heads + HEARTBEATS * HEARTBEAT * t


@dataclass
class Process:
    """A JVM of an application."""

    app: str
    number: int
    application_id: str | None
    starts: list[float] = field(default_factory=lambda: [-DAY])
    threads: list[tuple[float, int | None, int | None]] = field(default_factory=lambda: [(-NEVER, 4, 0)])
    """(time, stream threads alive, failed stream threads since the start); None: not exposed."""
    states: list[tuple[float, str]] = field(default_factory=lambda: [(-NEVER, "RUNNING")])
    """(time, state of its Kafka Streams client)."""
    is_archived: bool = False
    """Whether a Prometheus server has its metrics, at five-minute intervals."""
    disk: tuple[float, float] | None = None
    """Size and free bytes of its host's file system; None: not reported."""
    silent_from: float = NEVER
    to_restore: float = 0.0
    """Records left to restore at the first sample."""
    restores_per_second: float = 0.0
    restored: list[tuple[float, float]] = field(default_factory=list)
    """(time of a sample during a restore, records per second)."""
    stores: list[Store] = field(default_factory=list)
    latency_ms: float | None = None
    """Record latency; None: not exposed."""
    poll_ratio: float = 0.2
    reads: list[Topic] = field(default_factory=list)
    """Topics of which it processes a share."""
    share: float = 1.0
    way: Way | None = None
    work: Work | None = None
    producers: list[Producer] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    follows: Group | None = None
    """Group whose reads it processes; None: all records."""

    def processed(self, t: float) -> float:
        """Records processed by then."""
        place = self.follows.read_up_to(t) if self.follows else t
        return float(sum(topic.end(place) * topic.partitions for topic in self.reads)) * self.share

    def busy(self, t: float) -> float:
        """Share of an hour for which each of its stream threads is busy."""
        assert self.work is not None
        records = self.processed(t) - self.processed(t - 1)
        return min(records * self.work.latency(t) / 3_600_000 / self.alive(t)[0], 1.0)

    def started(self, t: float) -> float:
        return max(start for start in self.starts if start <= t)

    def alive(self, t: float) -> tuple[Any, int | None]:
        return [each[1:] for each in self.threads if each[0] <= t][-1]

    def state(self, t: float) -> str:
        return [state for since, state in self.states if since <= t][-1]


@dataclass(frozen=True)
class Right:
    """The expected finding of a detector on a cluster."""

    reason: tuple[str, ...]
    """Valid reasons."""
    resource: dict[str, str]
    """Key columns of the resource, besides the cluster."""
    topics: tuple[str, ...] = ()
    """Topics that a finding on a cluster must name."""
    metrics: dict[str, str] = field(default_factory=dict)
    """Other expected metrics."""


@dataclass
class Life:
    """A cluster and the truth about it."""

    case: Case
    kind: str
    chance: random.Random
    draws: np.random.Generator
    known: int = 36 * DAY
    """Hours for which it is in the warehouse."""
    brokers: tuple[int, ...] = (1, 2, 3)
    racks: dict[int, str] = field(default_factory=dict)
    """Rack by broker; empty: the cluster's brokers are not reported."""
    handlers_idle: float = 0.9
    """Idle share of the brokers' request handlers."""
    other_reads: float = 0.2 * MIB
    """Bytes per second that each disk reads for unknown consumers."""
    topics: dict[str, Topic] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    clients: dict[str, float] = field(default_factory=dict)
    """Bytes per second by client from all brokers; empty: no quotas, so that brokers do not expose clients."""
    targets: dict[str, float] = field(default_factory=dict)
    """Latency targets of applications, in seconds."""
    begins: float | None = None
    """Begin of its fault."""
    rights: dict[str, Right] = field(default_factory=dict)
    """Detector → finding that it must give."""
    unknown: dict[str, Right] = field(default_factory=dict)
    """Detector → reason for which its verdict must be unknown."""
    may: set[str] = field(default_factory=set)
    """Detectors for which firing and not firing are both right: the fault affects them too."""
    before: bool = False
    """Whether it is evaluated before the begin of its fault."""

    @property
    def cluster(self) -> str:
        return self.case.name

    def clock(self, t: float) -> datetime:
        """Hour of the day by the clock of the case."""
        return self.case.hour + HOUR + timedelta(hours=t - NOW)

    @staticmethod
    def at(t: float) -> datetime:
        """The time in the warehouse."""
        return EVALUATED + HOUR + timedelta(hours=t - NOW)

    def uniform(self, low: float, high: float) -> float:
        return self.chance.uniform(low, high)

    def onset(self, least: float, most: float) -> float:
        """Draws the begin of the fault, in hours before now; NEVER if the cluster is evaluated before it."""
        return self.since(NOW - self.uniform(least, most))

    def since(self, begins: float) -> float:
        """Sets the begin of the fault, if it follows from other values."""
        self.begins = begins
        return NEVER if self.before else begins

    def fault(
        self, rule: str, *reason: str, names: str = "", metrics: dict[str, str] | None = None, **resource: str
    ) -> None:
        """The detector must fire for the resource with this reason, or name these topics."""
        if not self.before:
            self.rights[rule] = Right(reason, resource, tuple(names.split()), metrics or {})

    def not_evaluated(self, rule: str, reason: str, **resource: str) -> None:
        """The verdict for the resource must be unknown, with this reason."""
        if not self.before:
            self.unknown[rule] = Right((reason,), resource)

    def rhythm(self, a_day: float = 0.5, weekend: float = 0.7, noise: float = 0.05) -> np.ndarray:
        """Traffic by hour relative to the mean: more by day, less on weekends."""
        first = self.clock(0)
        hours = np.arange(HOURS) + first.hour
        of_week = first.weekday() + hours // DAY
        wave = 1 + a_day * np.sin((hours % DAY - 8) / DAY * 2 * np.pi)
        return wave * np.where(of_week % 7 >= 5, weekend, 1.0) * self.draws.lognormal(0, noise, HOURS)

    def hour_of_day(self) -> np.ndarray:
        return (np.arange(HOURS) + self.clock(0).hour) % DAY

    def weekday(self) -> np.ndarray:
        first = self.clock(0)
        return (first.weekday() + (np.arange(HOURS) + first.hour) // DAY) % 7

    def topic(self, name: str, a_second: float | None = None, **more: Any) -> Topic:
        """A topic with daily cycles; mean rate in records per second."""
        a_second = self.uniform(20, 80) if a_second is None else a_second
        given: dict[str, Any] = {
            "messages": a_second * 3600 * self.rhythm(),
            "size": self.uniform(300, 1500) * self.draws.lognormal(0, 0.01, HOURS),
            "brokers": self.brokers[:3],
        }
        made = Topic(name, **(given | more))
        self.topics[name] = made
        return made

    def group(self, name: str, *topics: str, **more: Any) -> Group:
        """Adds a group that keeps up."""
        made = Group(name, list(topics), client=more.pop("client", name), **more)
        self.groups[name] = made
        return made

    def consumers(self, group: Group) -> None:
        """The members expose their fetches, each in a process of its own."""
        for number, (client, partitions) in enumerate(group.assignments(self.topics)):
            consumers = [Consumer(self, group, client, partitions)]
            self.processes.append(Process(group.name, number, None, consumers=consumers))

    def application(self, name: str, *sources: str, processes: int = 2, changelog: str = "totals") -> None:
        """A Kafka Streams application: its group, its processes and a changelog."""
        self.group(name, *sources, client=f"{name}-1-StreamThread-1-consumer")
        for number in range(processes):
            self.processes.append(Process(name, number, name))
        self.topic(f"{name}-{changelog}-changelog", 5, configs=dict(COMPACTED))

    def write_bytes_per_second(self, hours: np.ndarray) -> np.ndarray:
        """Bytes written by all brokers, including all replicas."""
        return sum(
            ((t.messages * t.size)[hours] * len(t.brokers) / 3600 for t in self.topics.values()), np.zeros(len(hours))
        )

    def cached_hours(self) -> float:
        """Hours of writes that fit into the brokers' page cache."""
        day = self.write_bytes_per_second(np.arange(NOW - DAY, NOW)).mean() * 3600
        return MEMORY * PAGE_CACHE * len(self.brokers) / max(day, 1.0)

    def sent(self, topic: Topic, t: float | np.ndarray) -> Any:
        """Bytes of a topic sent to consumers by then."""
        return _at(self._sent[topic.name], t)

    @cached_property
    def _sent(self) -> dict[str, np.ndarray]:
        found = {}
        for topic in self.topics.values():
            of_hour = np.zeros(HOURS) + topic.others_read
            for group in self.groups.values():
                if topic.name in group.topics:
                    of_hour = of_hour + group.bytes_read(topic)
            found[topic.name] = np.concatenate([[0.0], np.cumsum(of_hour)])
        return found

    def fetched(self, topic: Topic, t: float) -> float:
        """Fetches of the topic's partitions by then, by members and followers."""
        return float(_at(self._fetched[topic.name], t))

    @cached_property
    def _fetched(self) -> dict[str, np.ndarray]:
        """A fetch of a session counts for each of its partitions, with or without records."""
        found = {}
        for topic in self.topics.values():
            of_hour = (len(topic.brokers) - 1) * self.follower_fetches + np.multiply(topic.others_poll, 3600)
            for group in self.groups.values():
                if topic.name in group.topics:
                    of_hour = of_hour + self.asks(group, topic.name)
            found[topic.name] = np.concatenate([[0.0], np.cumsum(of_hour * topic.partitions)])
        return found

    def asks(self, group: Group, topic: str) -> np.ndarray:
        """Fetches per hour and broker of the group's consumers of the topic."""
        hours, read = np.arange(HOURS), [topic] if group.hasty_on else group.topics
        empty = group.polls_empty if group.hasty_on in ("", topic) else 0.0
        asked = _pace(self.topics[name] for name in read) + np.multiply(empty, 3600)
        return np.where((hours >= group.born) & (hours < group.died), asked, 0)

    @cached_property
    def follower_fetches(self) -> np.ndarray:
        """Fetches per hour of a follower from a leader."""
        return _pace(self.topics.values())

    def follower_fetches_until(self, t: float) -> float:
        return float(_at(np.concatenate([[0.0], np.cumsum(self.follower_fetches)]), t))

    def cold(self, hours: np.ndarray) -> np.ndarray:
        """Bytes per hour that groups read from disk, beyond the page cache."""
        cached, total = self.cached_hours(), np.zeros(len(hours))
        for group in self.groups.values():
            late = (
                np.maximum(hours - group.read_up_to(hours + 1e-5), hours + 1 - group.read_up_to(hours + 1.0)) > cached
            )
            for name in group.topics:
                total += np.where(late, group.bytes_read(self.topics[name])[hours], 0)
        return total
