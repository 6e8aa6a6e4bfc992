"""Kafka clusters and the metrics of their brokers by hour, for the four weeks before the evaluated hour.

Load follows the hour of the day and the day of the week, and brokers share it nearly evenly. Disk usage follows
retention and drops when segments are deleted. Open files follow segments and clients. Each cluster has had one rolling
upgrade, and now and then a broker does not respond. The evaluated hour is at a random position in the week.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator.scenario import EVALUATED
from tests.simulator.volume_kinds import REGION

if TYPE_CHECKING:
    from tests.simulator.logs import Log

MIB, GIB = 2**20, 2**30
DAYS = 28
PAST = DAYS * 24
NOW = PAST
"""Index of the evaluated hour in each array of hours."""
READ_AFTER = timedelta(minutes=2)
SAMPLES, APART = 3, 5.0
"""Samples of gauges per run, and seconds between them."""
SPREAD = (0.99, 1.0, 1.01)
"""Factors of the samples of a run."""
LONG_AGO = EVALUATED - timedelta(days=60)
WEEK = 168
LONGEST_RETENTION = 168


@dataclass
class Topic:
    """A topic with replicas spread round-robin over the brokers."""

    name: str
    share: float
    """Share of the cluster's traffic."""
    replicas: list[list[int]]
    """Brokers of each partition, the preferred leader first."""
    leaders: list[int | None] = field(default_factory=list)
    isr: list[list[int]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)
    """Partitions whose leader does not have our listener."""
    begun: datetime = LONG_AGO
    configs: dict[str, str] = field(default_factory=dict)
    before: list[list[int]] = field(default_factory=list)
    """Replicas in the previous hours."""
    out_of_sync_before: dict[int, list[int]] = field(default_factory=dict)
    """Partition → brokers whose replicas were out of sync in the previous hours."""
    logs: list[Log] = field(default_factory=list)
    """The log of each partition; empty: its offsets are not reported."""
    configs_before: dict[str, str] = field(default_factory=dict)
    changed_hours_ago: int = 0
    """So many hours ago `configs_before` was replaced by the present configs."""

    def settings(self, hours_ago: int) -> dict[str, str]:
        return self.configs | (self.configs_before if hours_ago > self.changed_hours_ago else {})

    def __post_init__(self) -> None:
        self.settle()

    def settle(self) -> None:
        """Sets all replicas in sync and the preferred ones as leaders, now and before."""
        self.leaders = [each[0] for each in self.replicas]
        self.isr = [list(each) for each in self.replicas]
        self.before = [list(each) for each in self.replicas]

    def led_by(self, broker: int) -> int:
        return sum(leader == broker for leader in self.leaders)


@dataclass
class Move:
    """A partition under reassignment: a broker gets a replica of it."""

    topic: str
    partition: int
    target: int
    size_bytes: int
    left_bytes: list[int]
    """Bytes left to copy, in the evaluated hour and in those before, back to the start of the reassignment."""
    ended: int = 0
    """Hours ago in which it was last in progress; 0: in progress now."""

    def left(self, hours_ago: int) -> int | None:
        """Bytes left to copy so many hours ago; None: not in progress."""
        return self.left_bytes[hours_ago] if self.ended <= hours_ago < len(self.left_bytes) else None


@dataclass
class Cluster:
    """Brokers from 0 on. Arrays have a row per broker and a column per hour up to the evaluated one."""

    name: str
    kind: str
    brokers: int
    chance: np.random.Generator
    topics: list[Topic]
    rates: dict[str, np.ndarray] = field(default_factory=dict)
    """Counters as increase per second; the hour lasts from one run to the next."""
    gauges: dict[str, np.ndarray] = field(default_factory=dict)
    """Gauges at the end of the hour; NaN: not exposed."""
    own_samples: dict[tuple[int, str], tuple[float, ...]] = field(default_factory=dict)
    """Samples of the evaluated hour that differ by more than SPREAD."""
    started: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Start time of the process, in seconds since the epoch."""
    answers: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Whether the JVM responded."""
    used_bytes: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Bytes used on the disk of the logs."""
    disk_bytes: float = 0.0
    reports_disk_sizes: bool = True
    returns_metadata: bool = True
    refused: dict[str, np.ndarray] = field(default_factory=dict)
    """Produce responses per second with this error, by broker; all for the last topic."""
    unclean_elections: tuple[int, int] = (0, 0)
    """Unclean elections before and in the evaluated hour; each controller counts them."""
    reports_errors: bool = True
    """The brokers expose produce responses by error."""
    unlisted: set[int] = field(default_factory=set)
    """Brokers that the cluster does not list in the evaluated hour."""
    disk_since: int = 0
    """The first hour in which the disks existed."""
    vcpus: list[int] = field(default_factory=list)
    memory_bytes: float = 0.0
    read_bytes: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Bytes that the disks read per hour."""
    busy_ratio: float = 0.2
    """Utilization of the busiest disk in the evaluated hour."""
    has_volumes: bool = True
    """Whether its disks are EBS volumes."""
    balances: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Burst balance of each broker's volume, in percent."""
    machines: dict[int, str | None] = field(default_factory=dict)
    """Broker → state of its instance in the evaluated hour, if not running; None: EC2 no longer reports it."""
    region: str = REGION
    is_region_read: bool = True
    """Whether EC2 responded in the evaluated hour."""
    node_exporter_reports_reads: bool = False
    """Node exporter reports the reads of its disks."""
    rogues: np.ndarray = field(default_factory=lambda: np.zeros(PAST + 1, bool))
    """Hours in which a rogue consumer was reported."""
    lag_seconds: np.ndarray = field(default_factory=lambda: np.zeros(PAST + 1))
    """Lag of the slowest group at the end of the hour, in seconds."""
    rewinds: np.ndarray = field(default_factory=lambda: np.zeros(PAST + 1, bool))
    """Hours in which a group reset its offsets backward."""
    restores: np.ndarray = field(default_factory=lambda: np.zeros(PAST + 1))
    """Records that a Streams application still has to restore."""
    controllers: list[Controller] = field(default_factory=list)
    """Dedicated controllers."""
    moves: list[Move] = field(default_factory=list)
    reports_reassignments: bool = True
    throttles: dict[int, dict[str, str]] = field(default_factory=dict)
    """Throttle configs by broker."""
    throttled_hours: int = 0
    """Hours before the evaluated one for which throttles of brokers and topics have existed."""
    partitions_before: float = 1.0
    """Partitions a month ago, as a share of now."""

    def broker(self, number: int) -> str:
        return f"{self.name}/{number}"

    @cached_property
    def read_at(self) -> np.ndarray:
        """Time at which each hour was read, in seconds since the epoch."""
        first = (EVALUATED - PAST * HOUR + HOUR + READ_AFTER).timestamp()
        return first + 3600.0 * np.arange(PAST + 1)

    def restart(self, broker: int, hours_ago: float) -> None:
        """Restarts the broker so long before the evaluated hour was read: its counters begin at 0."""
        moment = self.read_at[NOW] - hours_ago * 3600
        later = self.read_at >= moment
        self.started[broker, later] = np.maximum(self.started[broker, later], moment)

    def drop_from_isr(self, broker: int, topics: list[Topic] | None = None) -> None:
        """The broker's replicas leave the ISR; other replicas lead its partitions."""
        for topic in self.topics if topics is None else topics:
            for partition, isr in enumerate(topic.isr):
                if broker in isr:
                    isr.remove(broker)
                    if topic.leaders[partition] == broker:
                        topic.leaders[partition] = isr[0] if isr else None

    def update_partition_gauges(self) -> None:
        """Sets the brokers' gauges of all hours from the topics."""
        shape = (self.brokers, PAST + 1)
        led = [[sum(t.led_by(b) for t in self.topics)] for b in range(self.brokers)]
        held = [[sum(b in each for t in self.topics for each in t.replicas)] for b in range(self.brokers)]
        self.gauges["partitions"], self.gauges["leaders"] = (np.array(n, float) * np.ones(shape) for n in (held, led))

    def update_isr_gauges(self) -> None:
        """Sets the brokers' gauges of the evaluated hour from the present leaders and ISRs."""
        under_replicated, below, leaders = (np.zeros(self.brokers) for _ in range(3))
        for topic in self.topics:
            least = int(topic.configs.get("min.insync.replicas", 1))
            for leader, isr, replicas in zip(topic.leaders, topic.isr, topic.replicas, strict=True):
                if leader is not None:
                    leaders[leader] += 1
                    under_replicated[leader] += len(isr) < len(replicas)
                    below[leader] += len(isr) < least
        self.gauges["under_replicated_partitions"][:, NOW] = under_replicated
        self.gauges["under_min_isr_partitions"][:, NOW] = below
        self.gauges["leaders"][:, NOW] = leaders


@dataclass
class Controller:
    """A process that is only a member of the KRaft quorum."""

    active: tuple[float | None, ...]
    """ActiveControllerCount in the samples of the evaluated hour."""
    answers: bool = True


def cluster_of(name: str, kind: str, chance: np.random.Generator, brokers: int | None = None) -> Cluster:
    """A healthy cluster and its four weeks."""
    count = brokers or int(chance.integers(3, 7))
    cluster = Cluster(name, kind, count, chance, _topics(count, chance))
    hours = PAST + 1
    load = load_of(chance)
    share = chance.normal(1, 0.04, (count, 1)).clip(0.85, 1.15)
    wobble = chance.normal(1, 0.02, (count, hours))
    relative = load[LONGEST_RETENTION:] * share * wobble
    shape = (count, hours)
    _traffic(cluster, relative)
    _latencies(cluster, relative, shape)
    _processes(cluster, relative, shape)
    _disks(cluster, load, share)
    _incidents(cluster)
    return cluster


def load_of(chance: np.random.Generator) -> np.ndarray:
    """Load by hour, around 1. The array is a week longer than the reported history, for records still on disk."""
    hours = np.arange(PAST + 1 + LONGEST_RETENTION) + int(chance.integers(0, WEEK))
    day = 1 + chance.uniform(0.1, 0.6) * np.sin(2 * np.pi * hours / 24)
    week = np.where((hours // 24) % 7 >= 5, chance.uniform(0.5, 1.0), 1.0)
    grows = np.exp(np.linspace(chance.uniform(-0.12, 0.02), 0, len(hours)))
    return np.asarray(day * week * grows * (1 + drift(chance, len(hours), 0.08)).clip(0.6, 1.6))


def drift(chance: np.random.Generator, hours: int, deviation: float) -> np.ndarray:
    """Autocorrelated noise around 0, by hour."""
    steps = chance.normal(0, deviation * 0.6, hours)
    wandered = np.empty(hours)
    last = 0.0
    for n, step in enumerate(steps):
        last = 0.8 * last + step
        wandered[n] = last
    return wandered


def _topics(brokers: int, chance: np.random.Generator) -> list[Topic]:
    count, factor = int(chance.integers(4, 9)), min(3, brokers)
    shares = chance.dirichlet(np.full(count, 4.0))
    topics, first = [], 0
    for n, share in enumerate(shares):
        partitions = brokers * int(chance.integers(1, 4))
        spots = [[(first + p + r) % brokers for r in range(factor)] for p in range(partitions)]
        topics.append(
            Topic(f"topic-{n}", float(share), spots, configs={"min.insync.replicas": str(max(factor - 1, 1))})
        )
        first += partitions
    return topics


def _traffic(cluster: Cluster, relative: np.ndarray) -> None:
    chance, factor = cluster.chance, len(cluster.topics[0].replicas[0])
    into = chance.uniform(4, 60) * MIB * relative
    readers, message = chance.uniform(1.2, 3), chance.uniform(300, 3000)
    followers = into * (factor - 1)
    cluster.rates |= {
        "bytes_in_total": into,
        "bytes_out_total": into * readers * chance.normal(1, 0.02, into.shape),
        "messages_in_total": into / message,
        "replication_bytes_in_total": followers,
        "replication_bytes_out_total": followers * chance.normal(1, 0.01, into.shape),
        "reassignment_bytes_in_total": np.zeros(into.shape),
        "reassignment_bytes_out_total": np.zeros(into.shape),
        "log_flushes_total": np.full(into.shape, chance.uniform(0.05, 3)) * relative,
        "produce_requests": into / message / chance.uniform(5, 50),
    }


def _latencies(cluster: Cluster, relative: np.ndarray, shape: tuple[int, int]) -> None:
    chance = cluster.chance
    p95 = chance.uniform(4, 28) * (0.75 + 0.25 * relative) * chance.lognormal(0, 0.1, shape)
    p95 *= np.stack([1 + drift(chance, shape[1], 0.06).clip(-0.3, 0.5) for _ in range(shape[0])])
    produce = (chance.uniform(5, 30) + 1.2 * p95) * chance.lognormal(0, 0.12, shape)
    cluster.gauges |= {
        "log_flush_p95_ms": p95,
        "log_flush_p999_ms": p95 * chance.uniform(2.5, 5) * np.exp(0.2 * chance.standard_t(4, shape)).clip(0.4, 4),
        "produce_p99_ms": produce,
        "fetch_follower_p99_ms": chance.uniform(300, 510) * chance.lognormal(0, 0.05, shape),
    }
    cluster.rates["log_flush_ms_total"] = cluster.rates["log_flushes_total"] * p95 * 0.4
    cluster.rates["produce_ms"] = cluster.rates["produce_requests"] * produce * 0.2


def _processes(cluster: Cluster, relative: np.ndarray, shape: tuple[int, int]) -> None:
    chance, count = cluster.chance, cluster.brokers
    cluster.started = np.full(shape, LONG_AGO.timestamp())
    upgraded = chance.uniform(1.5 * 24, 25 * 24)
    for broker in range(count):
        cluster.restart(broker, upgraded - broker * chance.uniform(0.1, 0.3))
    cluster.answers = chance.random(shape) > 0.004
    cluster.answers[:, NOW - 1 :] = True
    limit = float(chance.choice([65_536, 100_000, 128_000]))
    segments = limit * chance.uniform(0.05, 0.4) * np.ones(shape)
    rolled = (np.arange(shape[1]) + chance.integers(0, 24)) % int(chance.integers(6, 30))
    files = segments * (1 + 0.01 * rolled / 10) + chance.uniform(300, 3000) * (0.7 + 0.3 * relative)
    active = np.zeros(shape)
    active[int(chance.integers(0, count))] = 1
    cluster.gauges |= {
        "open_file_descriptors": files * chance.normal(1, 0.003, shape),
        "max_file_descriptors": np.full(shape, limit),
        "log_segments": np.full(shape, chance.uniform(500, 20_000)).round(),
        "request_handler_idle_ratio": (chance.uniform(0.75, 0.95) - 0.15 * relative).clip(0.4, 0.99),
        "under_replicated_partitions": np.zeros(shape),
        "under_min_isr_partitions": np.zeros(shape),
        "reassigning_partitions": np.zeros(shape),
        "active_controllers": active,
        "dead_cleaner_threads": np.zeros(shape),
        "uncleanable_partitions": np.zeros(shape),
        "cleaner_last_run_seconds": np.full(shape, 7.0),
        "heap_used_bytes": np.full(shape, 3.0 * GIB),
        "heap_max_bytes": np.full(shape, 6.0 * GIB),
    }
    cluster.topics[0].configs["cleanup.policy"] = "compact"
    cluster.update_partition_gauges()
    cluster.vcpus = [8] * count
    cluster.memory_bytes = 64.0 * GIB
    cluster.rates["cpu_seconds_total"] = 8 * (chance.uniform(0.1, 0.3) * (0.5 + 0.5 * relative)).clip(0, 0.75)


def _disks(cluster: Cluster, load: np.ndarray, share: np.ndarray) -> None:
    """Bytes used per broker: the retained traffic, plus up to one segment."""
    chance, hours = cluster.chance, PAST + 1
    retention = int(chance.choice([24, 48, 72, 120, 168]))
    total = np.concatenate([[0.0], np.cumsum(load)])
    ends = np.arange(len(load) - hours + 1, len(load) + 1)
    held = (total[ends] - total[ends - retention]) / retention
    segment = int(chance.integers(2, 13))
    tooth = 1 + 0.02 * ((np.arange(hours) + int(chance.integers(0, segment))) % segment) / segment
    cluster.disk_bytes = float(chance.choice([500, 1000, 2000, 4000])) * GIB
    cluster.used_bytes = cluster.disk_bytes * chance.uniform(0.25, 0.6) * share * held * tooth
    sent = (cluster.rates["bytes_out_total"] + cluster.rates["replication_bytes_out_total"]) * 3600
    cluster.read_bytes = sent * chance.uniform(0.002, 0.04) * chance.lognormal(0, 0.3, sent.shape)
    cluster.balances = np.full(sent.shape, 100.0)


def _incidents(cluster: Cluster) -> None:
    """Past events that have ended: a broker with a slow disk for some hours, a nightly backup."""
    chance = cluster.chance
    for _ in range(int(chance.integers(0, 4))):
        broker, begun = int(chance.integers(0, cluster.brokers)), int(chance.integers(0, NOW - 30))
        hours, times = slice(begun, begun + int(chance.integers(1, 20))), chance.uniform(2, 6)
        for name in ("log_flush_p95_ms", "log_flush_p999_ms", "produce_p99_ms"):
            cluster.gauges[name][broker, hours] *= times
        cluster.rates["log_flush_ms_total"][broker, hours] *= times
    if chance.random() < 0.3:
        nights = slice(int(chance.integers(0, 24)), None, 24)
        cluster.gauges["log_flush_p95_ms"][:, nights] *= chance.uniform(1.2, 1.6)
        cluster.read_bytes[:, nights] *= chance.uniform(1.2, 2)


def hour_at(n: int) -> datetime:
    return EVALUATED - (NOW - n) * HOUR
