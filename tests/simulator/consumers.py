"""Kafka clusters whose brokers read their disks: for a rogue consumer, or for somebody who may.

Consumers at the log's end are served from the page cache. A disk is read when somebody wants what isn't there any more:
that is a rogue when nobody commits for it, and a decoy when a known group lags or was rewound, a store is restored, a
replica is filled, or the broker's own housekeeping reads. Every cluster lives through one such event after the other;
some have a nightly backfill, several disks a broker, readers at the log's end that never commit, or a group that
nobody runs any more and whose lag explains nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import sqlalchemy as sa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import Finding

from spark_apps.apps import brokers, consumer_groups, ebs_volumes
from spark_apps.apps.consumer_groups.positions import positions
from spark_apps.apps.ebs_volumes.series import Metric
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.simulator.bench import Bench
from tests.simulator.frames import (
    KNOWN_BROKERS,
    KNOWN_COMMITS,
    MEMBERS,
    NO_GROUPS_UNLISTED,
    NO_KNOWN_ENDS,
    SAMPLED_SINCE,
    commits_read,
    null_filled,
    rows_frame,
)
from tests.simulator.scenario import EVALUATED, START, Case, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, score
from tests.simulator.volume_kinds import ACCOUNT, REGION
from tests.simulator.volume_sources import Points

DETECTOR = "consumer_rogue"
MIB, GIB = 2**20, 2**30
MINUTE = timedelta(minutes=1)
BROKERS, PARTITIONS, REPLICAS = 3, 3, 3
RETENTION = timedelta(days=3)
JMX_AT, OFFSETS_AT = 2 * MINUTE, 3 * MINUTE
"""When a run reads those, after the end of its hour."""
COMMIT_EVERY, FIRST_COMMIT, LAST_COMMIT = 5 * MINUTE, timedelta(seconds=5), timedelta(seconds=5)
"""Groups commit every 5 s, the default; of those only some are written down: the first of all, and the hour's last."""
SEEN = 10
"""Minutes of an hour that an event must fill before that hour has to tell."""
CONTROL_HOURS = 3
USUAL_HOURS = 26
"""Of what topics were sent before, as far as detectors need it to call something usual."""
NIGHT, NIGHTS_BEFORE = 2 * HOUR, 28
MEMORY, PAGE_CACHE = 32 * GIB, 0.65
GROUPS, RETIRED = ("billing", "search"), "retired"
ROGUE, MIRROR, FORGOTTEN_AFTER = "notebook", "mirror", HOUR
"""Clients that commit nothing: the rogue, who reads at the end; and when brokers forget one after its last request."""


@dataclass(frozen=True)
class Topic:
    """A topic with an even in-rate."""

    name: str
    rate: float
    """Records per second and partition."""
    size: float
    """Bytes per record, as they lie on the disk."""

    @property
    def bytes_per_second(self) -> float:
        return self.rate * self.size * PARTITIONS

    def end(self, moment: datetime) -> int:
        """Log-end offset of each partition."""
        return int(self.rate * (moment - START + RETENTION).total_seconds())


@dataclass(frozen=True)
class Event:
    """Somebody reads cold data of a topic in [start, end), so many bytes a second."""

    kind: str
    start: datetime
    end: datetime
    rate: float
    topic: Topic | None
    group: str | None = None
    back: timedelta = timedelta(0)
    """How far behind a known group begins."""

    def seconds(self, moment: datetime) -> float:
        """How much of it has passed."""
        return min(max((moment - self.start).total_seconds(), 0), (self.end - self.start).total_seconds())


@dataclass
class Cluster:
    """Three brokers, their topics, groups, and what happens to them."""

    name: str
    topics: list[Topic]
    changelog: Topic
    calm: float
    """Bytes per second that each disk reads when nothing happens."""
    history: timedelta
    """For how long its disks have been measured."""
    shares: tuple[float, ...] = (1.0,)
    """What part of a broker's reads each of its volumes does."""
    has_silent_readers: bool = False
    """Of the first topic, and of the changelog (standbys): always at the log's end, never committing."""
    has_quotas: bool = False
    """Its brokers count by client."""
    has_retired_group: bool = False
    """Its offsets are still there; it reads nothing."""
    nights: list[Event] = field(default_factory=list)
    """A known backfill each night, also before the days that are simulated."""
    events: list[Event] = field(default_factory=list)

    def position(self, group: str, topic: Topic, moment: datetime) -> int:
        """What a group has committed of each partition: near the end, or where an event has brought it."""
        if group == RETIRED:
            return topic.end(START - HOUR)
        near = topic.end(moment - timedelta(seconds=2))
        for event in (*self.nights, *self.events):
            if event.group == group and event.topic == topic and event.start <= moment:
                begun = topic.end(event.start - event.back)
                read = event.rate / topic.size / PARTITIONS * (moment - event.start).total_seconds()
                near = min(near, begun + int(read))
        return near

    def groups(self, topic: Topic, moment: datetime) -> list[str]:
        """Groups that have committed of a topic by then."""
        new = {e.group for e in self.events if e.topic == topic and e.group and e.start + FIRST_COMMIT <= moment}
        return sorted({*GROUPS} | new | ({RETIRED} if self.has_retired_group else set()))

    def begun(self, group: str, topic: Topic) -> datetime:
        """When it committed of the topic for the first time."""
        if group in (*GROUPS, RETIRED):
            return START - RETENTION
        return min(e.start for e in self.events if e.group == group and e.topic == topic) + FIRST_COMMIT

    def sent(self, topic: Topic, moment: datetime) -> float:
        """Bytes of a topic that consumers had by then, since some day before."""
        readers = 0 if topic is self.changelog else 2
        if self.has_silent_readers and topic in (self.topics[0], self.changelog):
            readers += 1
        total = readers * topic.bytes_per_second * (moment - START + RETENTION).total_seconds()
        for event in (*self.nights, *self.events):
            if event.topic == topic and event.kind != "replica is filled":
                # A group reads either there or at the end, where a new one stays.
                beyond = event.rate - (topic.bytes_per_second if event.group in GROUPS else 0)
                total += beyond * event.seconds(moment)
                if event.group and event.group not in GROUPS:
                    total += topic.bytes_per_second * max((moment - event.end).total_seconds(), 0)
        return total

    def fetched(self, moment: datetime) -> dict[str, float]:
        """What each client that the brokers know fetches a second: 0 where it has stopped, until they forget it."""
        if not self.has_quotas:
            return {}
        total = sum(topic.bytes_per_second for topic in self.topics)
        mirrored = self.topics[0].bytes_per_second + self.changelog.bytes_per_second
        known = dict.fromkeys(GROUPS, total) | ({MIRROR: mirrored} if self.has_silent_readers else {})
        for event in self.events:
            if event.kind in ROGUES and event.start <= moment < event.end + FORGOTTEN_AFTER:
                known[ROGUE] = known.get(ROGUE, 0.0) + (event.rate if moment < event.end else 0.0)
        return known

    def started(self, broker: int, moment: datetime) -> datetime:
        """When a broker's process began, as it is then."""
        restarts = [e.start for e in self.events if e.kind == "broker restarts" and e.start <= moment and broker == 1]
        return max(restarts, default=START - timedelta(days=30))

    def cold_until(self, event: Event) -> datetime:
        """When a group that catches up reaches what memory still holds; others never do."""
        if not event.group:
            return event.end
        written = REPLICAS * sum(topic.bytes_per_second for topic in (*self.topics, self.changelog))
        warm = timedelta(seconds=PAGE_CACHE * BROKERS * MEMORY / written)
        return event.end - (event.end - event.start) * min(warm / event.back, 1)

    def disk(self, broker: int, start: datetime, minutes: int) -> np.ndarray:
        """Bytes that a broker's volume reads in each minute."""
        chance = np.random.default_rng([hash_of(self.name), broker, int(start.timestamp() // 60)])
        read = self.calm * 60 * chance.lognormal(0, 0.4, minutes)
        for event in (*self.nights, *self.events):
            if event.kind == "hot reader":
                continue
            first, last = ((at - start) / MINUTE for at in (event.start, self.cold_until(event)))
            inside = np.clip(np.minimum(np.arange(minutes) + 1, last) - np.maximum(np.arange(minutes), first), 0, 1)
            # The kernel reads ahead, and leaders are never quite even.
            read = read + inside * 60 * event.rate / BROKERS * chance.uniform(1.0, 1.15) * (0.85, 1.0, 1.15)[broker]
        return np.round(read)


def hash_of(text: str) -> int:
    """The same number in every process."""
    return sum(ord(notification) * 31**i for i, notification in enumerate(text)) % 2**31


@dataclass
class Fleet:
    """All clusters."""

    scenario: Scenario
    truth: Truth = field(default_factory=Truth)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    hours: dict[str, set[datetime]] = field(default_factory=dict)


ROGUES = (
    "rogue",
    "rogue among members",
    "slow rogue",
    "short rogue",
    "two rogues",
    "rogue beside a lagging group",
    "rogue at night",
    "rogue in bursts",
    "rogue for half a day",
)
DECOYS = (
    "lagging group",
    "rewound group",
    "store is restored",
    "replica is filled",
    "broker's own reads",
    "hot reader",
    "one-minute spike",
    "new group from the beginning",
    "slowly lagging group",
    "four-minute spike",
    "broker restarts",
)


def build(scenario: Scenario) -> Fleet:
    """Clusters of three brokers, an event every day and a half; each kind by turns."""
    fleet = Fleet(scenario)
    chance = random.Random(f"{scenario.seed} consumers")  # noqa: S311 a simulation
    kinds = [kind for pair in zip_longest(scenario.some(ROGUES), DECOYS) for kind in pair if kind]
    turn = 0
    for number in range(scenario.brokers // BROKERS):
        cluster = _cluster(number, scenario, chance)
        fleet.clusters[cluster.name] = cluster
        moment = START + 26 * HOUR
        hours = fleet.hours.setdefault(cluster.name, set())
        while moment < scenario.end - 12 * HOUR:
            event = _event(kinds[turn % len(kinds)], cluster, moment + MINUTE * chance.randrange(600), chance)
            turn += 1
            events = [event, *_beside(event, cluster, chance)]
            cluster.events += events
            ends = max(each.end for each in events)
            _label(fleet, cluster, event, ends)
            first = start_of_hour(event.start) - HOUR
            hours |= {first + n * HOUR for n in range(int((ends - first) / HOUR) + 2)}
            moment = ends + 24 * HOUR
        hours |= {start_of_hour(sample_fleet.start) for sample_fleet in cluster.nights[-2:]}
        hours |= {START + HOUR * chance.randrange(24, scenario.days * 24 - 1) for _ in range(CONTROL_HOURS)}
    return fleet


def _cluster(number: int, scenario: Scenario, chance: random.Random) -> Cluster:
    topics = [
        Topic(f"topic-{n}", chance.uniform(200, 3000), chance.choice([200, 500, 1000]))
        for n in range(chance.randint(3, 5))
    ]
    changelog = Topic("orders-totals-changelog", chance.uniform(100, 400), 300)
    history = timedelta(days=chance.choice([3, 28, 28]))
    cluster = Cluster(f"cluster{number}", topics, changelog, chance.uniform(0.05, 1.5) * MIB, history)
    if number % 3 == 1:
        cluster.shares = (0.4, 0.3, 0.2, 0.1)
    cluster.has_silent_readers = number % 3 == 2
    cluster.has_quotas = number % 3 != 1
    cluster.has_retired_group = number % 3 == 0
    if number % 2 == 0:
        first = _catching_up(
            "nightly backfill", START - NIGHTS_BEFORE * 24 * HOUR + NIGHT, topics[-1], "search", chance
        )
        days = range(NIGHTS_BEFORE + scenario.days)
        cluster.nights = [
            replace(first, start=first.start + d * 24 * HOUR, end=first.end + d * 24 * HOUR) for d in days
        ]
    return cluster


def _catching_up(
    kind: str, start: datetime, topic: Topic, group: str, chance: random.Random, faster: float | None = None
) -> Event:
    """A group reads old records until it has caught up, so much faster than the topic grows."""
    back = timedelta(hours=chance.uniform(8, 20))
    rate = topic.bytes_per_second * (faster or chance.uniform(8, 15))
    seconds = back.total_seconds() * topic.bytes_per_second / (rate - topic.bytes_per_second)
    return Event(kind, start, start + timedelta(seconds=seconds), rate, topic, group, back)


def _beside(event: Event, cluster: Cluster, chance: random.Random) -> list[Event]:
    """What goes on at the same time."""
    if event.kind == "two rogues":
        others = [topic for topic in cluster.topics if topic != event.topic]
        return [replace(event, rate=event.rate * chance.uniform(0.3, 1.5), topic=chance.choice(others))]
    if event.kind == "rogue in bursts":
        every = timedelta(minutes=chance.randint(6, 12))
        return [replace(event, start=event.start + n * every, end=event.end + n * every) for n in range(1, 12)]
    if event.kind == "rogue beside a lagging group":
        lags = _catching_up("lagging group", event.start, cluster.topics[0], "billing", chance)
        rate = event.rate * chance.uniform(0.1, 1.5)
        back = timedelta(seconds=rate * (event.end - event.start).total_seconds() / cluster.topics[0].bytes_per_second)
        return [replace(lags, end=event.end, rate=rate + cluster.topics[0].bytes_per_second, back=back)]
    return []


def _event(kind: str, cluster: Cluster, start: datetime, chance: random.Random) -> Event:
    topic: Topic | None = chance.choice(cluster.topics)
    rate, minutes = chance.uniform(60, 220) * MIB, chance.randint(25, 150)
    match kind:
        case "slow rogue":
            return Event(kind, start, start + MINUTE * minutes, chance.uniform(40, 60) * MIB, topic)
        case "short rogue":
            return Event(kind, start, start + MINUTE * chance.randint(12, 18), rate, topic)
        case "rogue at night":
            sample_fleet = min((n.start for n in cluster.nights if n.start >= start), default=start)
            return Event(kind, sample_fleet, sample_fleet + MINUTE * minutes, rate, topic)
        case "rogue beside a lagging group":
            return Event(kind, start, start + MINUTE * minutes, rate, chance.choice(cluster.topics[1:]))
        case "rogue in bursts":
            return Event(kind, start, start + MINUTE * chance.randint(2, 4), rate, topic)
        case "rogue for half a day":
            return Event(kind, start, start + HOUR * chance.uniform(6, 12), rate, topic)
        case "slowly lagging group":
            busiest = max(cluster.topics, key=lambda t: t.bytes_per_second)
            return _catching_up(kind, start, busiest, "billing", chance, faster=chance.uniform(2, 4))
        case "new group from the beginning":
            smallest = min(cluster.topics, key=lambda t: t.bytes_per_second)
            return _catching_up(kind, start, smallest, "audit", chance, faster=chance.uniform(15, 25))
        case "lagging group" | "rewound group":
            return _catching_up(kind, start, max(cluster.topics, key=lambda t: t.bytes_per_second), "billing", chance)
        case "store is restored":
            return Event(kind, start, start + MINUTE * minutes, rate, cluster.changelog)
        case "broker's own reads":
            return Event(kind, start, start + MINUTE * minutes, rate, None)
        case "one-minute spike":
            return Event(kind, start.replace(second=0), start.replace(second=0) + MINUTE, rate, None)
        case "four-minute spike":
            return Event(kind, start, start + MINUTE * chance.uniform(3, 4), rate, None)
        case "broker restarts":
            # The broker reads its logs for recovery, and its counters restart at 0.
            return Event(kind, start, start + MINUTE * chance.randint(8, 25), rate / 3, None)
        case _:
            return Event(kind, start, start + MINUTE * minutes, rate, topic)


def _label(fleet: Fleet, cluster: Cluster, event: Event, ends: datetime) -> None:
    if event.kind not in ROGUES:
        return
    due = start_of_hour(event.start)
    if due + HOUR - event.start < SEEN * MINUTE * (4 if event.kind == "rogue in bursts" else 1):
        due += HOUR
    fleet.truth.faults.append(Fault(cluster.name, event.kind, event.start, due, ends))


def cases(fleet: Fleet) -> list[Case]:
    """The hours of clusters to evaluate."""
    last = fleet.scenario.end - HOUR
    return [Case(name, hour) for name, hours in fleet.hours.items() for hour in sorted(hours) if hour <= last]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    scored = prepare(bench, scenario)
    return scored(bench.findings(DETECTOR))


def prepare(bench: Bench, scenario: Scenario) -> Callable[[list[Finding]], Score]:
    """Simulates and loads; returns what scores findings of the detector, with whatever parameters they were made."""
    fleet = build(scenario)
    chosen = cases(fleet)
    with TemporaryDirectory() as folder:
        writer = _Sources(bench, fleet, chosen, Path(folder))
        bench.load("ebs_volumes", writer.volumes())
        bench.load("brokers", writer.brokers())
        bench.load("consumer_groups", writer.groups())
        writer.remember()
    return lambda found: _scored(bench, fleet, found)


def _scored(bench: Bench, fleet: Fleet, found: list[Finding]) -> Score:
    verdicts = [Verdict.of(name, rows[0]) for name, rows in sorted(_by_cluster(found).items())]
    for cluster in fleet.clusters.values():
        fleet.truth.decoys[cluster.name] = "nothing near"
    result = score("rogue consumers", bench.detector(DETECTOR), verdicts, fleet.truth)
    result.false_alarms = [(v, _near(fleet.clusters[v.resource_name], v.hour)) for v, _ in result.false_alarms]
    _check_clients(result, fleet, verdicts)
    _check_findings(result, fleet, found)
    return result


def _by_cluster(found: list[Finding]) -> dict[str, list[Finding]]:
    """Findings by cluster and hour: of several readers, the one with most bytes comes first."""
    by_cluster: dict[str, list[Finding]] = {}
    for finding in sorted(found, key=lambda one: -(one.metrics["unaccounted_bytes_per_second"] or 0)):
        by_cluster.setdefault(finding.resource.columns["cluster"], []).append(finding)
    return by_cluster


def _check_findings(result: Score, fleet: Fleet, found: list[Finding]) -> None:
    """A reader is one finding, whatever it reads."""
    for name, rows in _by_cluster(found).items():
        verdict, firing = Verdict.of(name, rows[0]), [row.resource.key for row in rows if row.status == "firing"]
        for fault in fleet.truth.faults:
            is_of = (
                fault.resource_name == verdict.resource_name and fault.begins < verdict.hour + HOUR <= fault.ends + HOUR
            )
            if is_of and firing:
                most = 2 if fault.kind == "two rogues" else 1
                result.claim("one finding", fault, verdict, None if len(firing) <= most else ", ".join(firing))


def _check_clients(result: Score, fleet: Fleet, verdicts: list[Verdict]) -> None:
    """Where brokers count by client, the rogue is among those that are named, also when it has stopped."""
    for verdict in verdicts:
        cluster, read_at = fleet.clusters[verdict.resource_name], verdict.hour + HOUR + JMX_AT
        for fault in fleet.truth.faults:
            is_of = (
                fault.resource_name == verdict.resource_name and fault.begins < verdict.hour + HOUR <= fault.ends + HOUR
            )
            if is_of and verdict.status == "firing" and ROGUE in cluster.fetched(read_at):
                named = [each["client_id"] for each in verdict.metrics["fetching_clients"] or []]
                suspect = verdict.metrics["top_client"]
                is_right = ROGUE in named and suspect in ((ROGUE, None) if MIRROR in named else (ROGUE,))
                result.claim("client named", fault, verdict, None if is_right else f"{suspect} of {', '.join(named)}")


def _near(cluster: Cluster, hour: datetime) -> str:
    kinds = [e.kind for e in cluster.events if start_of_hour(e.start) <= hour <= e.end]
    return ", ".join(kinds) or "nothing near"


@dataclass
class _Sources:
    """What the three apps' `extract` would give."""

    bench: Bench
    fleet: Fleet
    chosen: list[Case]
    folder: Path
    fetched_before: list[dict[str, Any]] = field(default_factory=list)

    def _frame(self, name: str, rows: Iterator[dict[str, Any]] | list[dict[str, Any]], **rest: str) -> DataFrame:
        return null_filled(self.bench.spark, self.folder / f"{name}.parquet", rows, **rest)

    def _hosts(self, case: Case) -> list[str]:
        return [Case(f"i-{case.resource_name}-{broker}", case.hour).name for broker in range(BROKERS)]

    def volumes(self) -> dict[str, DataFrame]:
        """The gp3 volumes of each broker, with their last minutes and their weeks."""
        end = EVALUATED + HOUR
        minutes, weeks = Points(), Points()
        instances, disks = [], []
        place = {
            "account": ACCOUNT,
            "region": REGION,
            "tags": {},
            "observed_at": end,
            "resource": ACCOUNT,
            "gap": None,
        }
        for case in self.chosen:
            cluster = self.fleet.clusters[case.resource_name]
            for broker, host in enumerate(self._hosts(case)):
                born = EVALUATED - cluster.history
                instances.append(place | {"instance_id": host, "instance_type": "r5.xlarge", "state": "running",
                                          "launched_at": born, "memory_bytes": MEMORY, "nitro": True})  # fmt: skip
                attachment = {"instance_id": host, "device": "/dev/sdf", "state": "attached", "attached_at": born}
                read = cluster.disk(broker, case.hour - ebs_volumes.OVERLAP, 75)
                written = np.full(75, sum(t.bytes_per_second for t in cluster.topics) * 60)
                earlier = self._weeks(cluster, broker, case)
                for number, share in enumerate(cluster.shares):
                    volume = f"vol-{host}-{number}"
                    disks.append(place | {"volume_id": volume, "volume_type": "gp3", "size_gib": 4000, "iops": 3000,
                                          "throughput_mib_s": 500, "state": "in-use", "multi_attach": False,
                                          "created_at": born, "attachments": [attachment]})  # fmt: skip
                    for metric, values in {"read_bytes": read, "write_bytes": written, "read_ops": read / 131072,
                                           "write_ops": written / 65536}.items():  # fmt: skip
                        minutes.add(volume, metric, EVALUATED - ebs_volumes.OVERLAP, 60, np.round(values * share))
                    weeks.add(volume, "read_bytes", born, 3600, earlier * share)
        samples = minutes.frame(self.bench.spark, self.folder / "minutes.parquet")
        none = samples.limit(0)
        until = {"known_until": f.lit(end)}
        hosts = rows_frame(self.bench.spark, instances, Ec2Instances({}).schema())
        of_hosts = rows_frame(self.bench.spark, disks, Ec2Volumes({}).schema())
        sources = {
            "instances": ebs_volumes.instances_of(hosts, end).withColumns(until),
            "volumes": ebs_volumes.volumes_of(of_hosts, end).withColumns(until),
            "cloudwatch": samples,
            "cloudwatch_look_back": none,
            "cloudwatch_read_baseline": weeks.frame(self.bench.spark, self.folder / "weeks.parquet"),
            "sampled_since": rows_frame(self.bench.spark, [], SAMPLED_SINCE),
            "volume_samples": _samples(samples, "volume_id", ebs_volumes.VOLUME_METRICS).cache(),
            "last_day_samples": _samples(none, "volume_id", ebs_volumes.LOOK_BACK_METRICS),
            "instance_samples": _samples(
                none, "instance_id", ebs_volumes.INSTANCE_METRICS, *ebs_volumes.AGENT_METRICS.values()
            ),
        }
        return ebs_volumes.transform(sources, EVALUATED, Config())

    def _weeks(self, cluster: Cluster, broker: int, case: Case) -> np.ndarray:
        """Bytes read in each hour before, quiet ones and those of earlier events."""
        hours = int(cluster.history / HOUR)
        chance = np.random.default_rng([hash_of(case.name), broker])
        read = cluster.calm * 3600 * chance.lognormal(0, 0.1, hours)
        for event in (*cluster.nights, *cluster.events):
            cold = replace(event, end=cluster.cold_until(event))
            seconds = [cold.seconds(case.hour - n * HOUR) for n in range(hours, -1, -1)]
            read += np.diff(seconds) * event.rate / BROKERS
        return read

    def brokers(self) -> dict[str, DataFrame]:
        """Counters of this run and of the one before, as the brokers' JVMs say them."""
        endpoints, clusters = [], []
        now: list[dict[str, Any]] = []
        before: list[dict[str, Any]] = []
        for case in self.chosen:
            cluster = self.fleet.clusters[case.resource_name]
            clusters.append(KafkaCluster(name=case.name, bootstrap_servers="127.0.0.1:1"))
            for broker, host in enumerate(self._hosts(case)):
                url = f"http://{host.replace('@', '-')}:8778/jolokia"
                endpoints.append(
                    JmxEndpoint(role="broker", cluster=case.name, url=url, broker_id=broker, instance_id=host)
                )
                for rows, at in ((before, case.hour + JMX_AT), (now, case.hour + HOUR + JMX_AT)):
                    key = {"cluster": case.name, "endpoint": url, "at": at + case.shift,
                           "process_started_at": cluster.started(broker, at) + case.shift}  # fmt: skip
                    rows += [key | {"metric": metric, "labels": json.dumps(labels), "value": value}
                             for metric, labels, value in _broker(cluster, broker, at)]  # fmt: skip
        kind = f.when(f.col("metric").endswith("_total"), "counter").otherwise("gauge")
        started = {"kind": kind, "resource": f.col("endpoint")}
        sources = {
            "jmx": self._frame("now", now).withColumns(started),
            "earlier_counters": self._frame("before", before)
            .filter("metric like '%_total'")
            .drop("gap", "process_started_at"),
            "known_brokers": rows_frame(self.bench.spark, [], KNOWN_BROKERS),
        }
        frames = brokers.transform(sources, EVALUATED, Config(kafka=clusters, jmx=endpoints))
        # Of single readings only those of clients are asked for, of the run before as well.
        frames["metrics.broker_sample"] = frames["metrics.broker_sample"].filter(f.col("metric") == CLIENT_FETCHES)
        frames["metrics.broker_topic_sample"] = frames["metrics.broker_topic_sample"].limit(0)
        self.fetched_before = [row for row in before if row["metric"] == CLIENT_FETCHES]
        return frames

    def remember(self) -> None:
        """What earlier runs counted of topics that readers without commits follow, and by client."""
        rows = []
        fetched = [each | {"hour": EVALUATED - HOUR} for each in self.fetched_before]
        for case in self.chosen:
            cluster = self.fleet.clusters[case.resource_name]
            for topic in (cluster.topics[0], cluster.changelog) if cluster.has_silent_readers else ():
                sent = [cluster.sent(topic, case.hour - n * HOUR) for n in range(USUAL_HOURS + 1)]
                incoming = topic.bytes_per_second * 3600
                rows += [
                    {"hour": EVALUATED - n * HOUR, "cluster": case.name, "topic": topic.name, "bytes_in": incoming,
                     "bytes_out": sent[n - 1] - sent[n]}
                    for n in range(1, USUAL_HOURS + 1)
                ]  # fmt: skip
            fetched += [
                {"hour": EVALUATED - n * HOUR, "cluster": case.name, "endpoint": "any", "metric": CLIENT_FETCHES,
                 "labels": json.dumps({"client": client, "user": ""}), "value": rate,
                 "at": case.hour - (n - 1) * HOUR + JMX_AT + case.shift}
                for n in range(2, USUAL_HOURS + 1)
                for client, rate in cluster.fetched(case.hour - (n - 1) * HOUR + JMX_AT).items()
            ]  # fmt: skip
        with self.bench.warehouse.begin() as connection:
            connection.execute(sa.text(_TOPIC_HOUR), rows)
            connection.execute(sa.text(_CLIENT_BEFORE), fetched)

    def groups(self) -> dict[str, DataFrame]:
        """Topics, groups with their members, offsets and commits."""
        topics, groups, offsets, commits, times = [], [], [], [], []
        for case in self.chosen:
            cluster = self.fleet.clusters[case.resource_name]
            topics += _topics(case, cluster)
            groups += _groups(case, cluster)
            for topic in (*cluster.topics, cluster.changelog):
                offsets += _logs(case, topic)
            for topic in cluster.topics:
                for group in cluster.groups(topic, case.hour + HOUR):
                    committed, history, written = _commits(case, cluster, topic, group)
                    offsets += committed
                    commits += history
                    times += written
        read = commits_read(self.bench.spark, [case.name for case in self.chosen])
        output = self._frame("commits", commits, generation="int", members=MEMBERS, resource="string")
        exact = {"earliest_at": f.col("record_at"), "latest_at": f.col("record_at"),
                 "next_offset": f.lit(None).cast("bigint"), "read_end": f.lit(None).cast("bigint")}  # fmt: skip
        sources = {
            "kafka_topics": rows_frame(self.bench.spark, topics, KafkaTopics({}).schema()),
            "kafka_groups": rows_frame(self.bench.spark, groups, KafkaGroups({}).schema()),
            "kafka_log_dirs": rows_frame(self.bench.spark, [], KafkaLogDirs({}).schema()),
            "unlisted_groups": rows_frame(self.bench.spark, [], NO_GROUPS_UNLISTED),
            "kafka_offsets": self._frame("offsets", offsets, resource="string"),
            "kafka_commits": output.unionByName(read, allowMissingColumns=True),
            "kafka_record_times": self._frame("times", times, resource="string").withColumns(exact),
            "known_ends": rows_frame(self.bench.spark, [], NO_KNOWN_ENDS),
            "known_commits": rows_frame(self.bench.spark, [], KNOWN_COMMITS),
        }
        sources["positions"] = positions(sources, EVALUATED)
        return consumer_groups.transform(sources, EVALUATED, Config())


_TOPIC_HOUR = """
    insert into metrics.topic_hourly (hour, cluster, topic, brokers, bytes_in, bytes_out)
    values (:hour, :cluster, :topic, 3, :bytes_in, :bytes_out)"""
CLIENT_FETCHES = "client_fetch_bytes_per_second"
_CLIENT_BEFORE = """
    insert into metrics.broker_sample (hour, cluster, endpoint, metric, labels, at, kind, value)
    values (:hour, :cluster, :endpoint, :metric, :labels, :at, 'gauge', :value)"""


def _samples(metrics: DataFrame, id_column: str, of: tuple[Metric, ...], *more: str) -> DataFrame:
    return ebs_volumes.samples(metrics, id_column, [*(metric.column for metric in of), *more])


Reading = tuple[str, dict[str, str], float]


def _broker(cluster: Cluster, broker: int, at: datetime) -> Iterator[Reading]:
    """One broker's counters since its process began, and its gauges."""
    for client, rate in cluster.fetched(at).items():
        yield CLIENT_FETCHES, {"client": client, "user": ""}, rate / BROKERS
    begun = cluster.started(broker, at)
    if begun < START:
        yield from _since_ever(cluster, at)
        return
    before = {(name, *labels.values()): value for name, labels, value in _since_ever(cluster, begun)}
    for name, labels, value in _since_ever(cluster, at):
        yield name, labels, value - (before[name, *labels.values()] if name.endswith("_total") else 0)


def _since_ever(cluster: Cluster, at: datetime) -> Iterator[Reading]:
    """One broker's third of all counters."""
    since = (at - START + RETENTION).total_seconds()
    totals = {"bytes_in_total": 0.0, "bytes_out_total": 0.0, "messages_in_total": 0.0}
    for topic in (*cluster.topics, cluster.changelog):
        counters = {
            "bytes_in_total": topic.bytes_per_second * since,
            "bytes_out_total": cluster.sent(topic, at),
            "messages_in_total": topic.rate * PARTITIONS * since,
        }
        for name, value in counters.items():
            totals[name] += value / BROKERS
            yield name, {"topic": topic.name}, value / BROKERS
        kept = topic.bytes_per_second * RETENTION.total_seconds() * REPLICAS
        yield "log_bytes", {"topic": topic.name}, kept / BROKERS
    replicated = totals["bytes_in_total"] * (REPLICAS - 1)
    filled = sum(e.rate * e.seconds(at) for e in cluster.events if e.kind == "replica is filled") / BROKERS
    whole = totals | {
        "replication_bytes_out_total": replicated + filled,
        "replication_bytes_in_total": replicated + filled,
    }
    yield from ((name, {}, value) for name, value in whole.items())


def _topics(case: Case, cluster: Cluster) -> list[dict[str, Any]]:
    everywhere = list(range(BROKERS))
    partitions = [{"partition": p, "leader": p, "replicas": everywhere, "isr": everywhere} for p in range(PARTITIONS)]
    known = {"cluster": case.name, "configs": {}, "observed_at": EVALUATED + HOUR, "resource": case.name}
    return [known | {"topic": t.name, "partitions": partitions} for t in (*cluster.topics, cluster.changelog)]


def _groups(case: Case, cluster: Cluster) -> list[dict[str, Any]]:
    known = {
        "cluster": case.name,
        "state": "STABLE",
        "protocol": "classic",
        "observed_at": EVALUATED + HOUR,
        "resource": case.name,
    }
    assigned = {topic.name: list(range(PARTITIONS)) for topic in cluster.topics}
    rows = [known | {"group_id": group, "members": [_member(group, assigned)]} for group in GROUPS]
    if cluster.has_retired_group:
        rows.append(known | {"group_id": RETIRED, "state": "EMPTY", "members": []})
    for topic in cluster.topics:
        for group in {*cluster.groups(topic, case.hour + HOUR)} - {*GROUPS, RETIRED}:
            rows.append(known | {"group_id": group, "members": [_member(group, {topic.name: [*range(PARTITIONS)]})]})
    read_at = case.hour + HOUR + OFFSETS_AT
    for event in cluster.events:
        if event.kind == "rogue among members" and event.topic and event.start <= read_at < event.end:
            members = [_member(ROGUE, {event.topic.name: list(range(PARTITIONS))})]
            rows.append(known | {"group_id": "adhoc", "members": members})
    return rows


def _member(client: str, assigned: dict[str, list[int]]) -> dict[str, Any]:
    return {"member_id": f"{client}-1", "client_id": client, "host": "10.0.0.9", "assignment": assigned}


def _clock(case: Case) -> dict[str, Any]:
    return {"cluster": case.name, "as_of": EVALUATED + HOUR, "read_at": EVALUATED + HOUR + OFFSETS_AT}


def _logs(case: Case, topic: Topic) -> list[dict[str, Any]]:
    end = case.hour + HOUR
    now = topic.end(end + OFFSETS_AT)
    offsets = {
        "log_start_offset": topic.end(end + OFFSETS_AT - RETENTION),
        "log_end_offset": now,
        "last_stable_offset": now,
        "offset_at_from": topic.end(case.hour),
        "offset_at_to": topic.end(end),
        "recent_offset": topic.end(end - MINUTE),
    }
    head = _clock(case) | {"kind": "log", "topic": topic.name}
    return [head | {"partition": p} | offsets for p in range(PARTITIONS)]


def _commits(
    case: Case, cluster: Cluster, topic: Topic, group: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """What the group has committed now, its commits of the hour, and the time of its first uncommitted record."""
    end = case.hour + HOUR
    place = {"group_id": group, "topic": topic.name}
    now = cluster.position(group, topic, end + OFFSETS_AT)
    committed = [
        _clock(case) | place | {"kind": "committed", "partition": p, "committed_offset": now} for p in range(PARTITIONS)
    ]
    history = []
    first = case.hour - consumer_groups.LOOK_BACK
    moments = [first + n * COMMIT_EVERY for n in range(int((end - first) / COMMIT_EVERY))] + [end - LAST_COMMIT]
    begun = cluster.begun(group, topic)
    if begun > first:
        moments = [begun, *(at for at in moments if at > begun)]
    for n, at in enumerate(moments if group != RETIRED else []):
        for p in range(PARTITIONS):
            history.append(
                {"cluster": case.name, "kind": "commit", **place, "partition": p,
                 "committed_offset": cluster.position(group, topic, at), "committed_at": at + case.shift,
                 "log_partition": 0, "log_offset": n * PARTITIONS + p, "written_at": at + case.shift}
            )  # fmt: skip
    last = cluster.position(group, topic, moments[-1])
    written = START - RETENTION + timedelta(seconds=last / topic.rate) + case.shift
    times = [
        {"cluster": case.name, "topic": topic.name, "partition": p, "offset": last, "record_at": written}
        for p in range(PARTITIONS)
    ]
    return committed, history, times
