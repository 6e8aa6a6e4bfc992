"""Incidents: simultaneous faults in several clusters with their effects on brokers, replicas, and groups, and decoys
with a cause of their own. Is each incident one issue, with the right root cause and no other finding?

A small physical model computes the effects of a fault, not the product's detectors: a slow broker is slow on every
partition that it leads, a group without spare capacity falls behind on those partitions, a follower on a full disk
leaves the ISR. Findings and topology are written as detectors store them. The product weighs causes and groups.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR
from streamwarden.causes import find_causes
from streamwarden.detectors import Finding, load_detectors
from streamwarden.detectors.resources import KINDS, Resource
from streamwarden.detectors.results import store_findings
from streamwarden.tickets import reconcile

from tests.simulator.bench import Bench
from tests.simulator.scenario import EVALUATED, STANDARD, Scenario
from tests.simulator.score import Goal, Score
from tests.sql.rows import NEUTRAL

WORLDS, HOURS, CLUSTERS = 12, 5, 3
TABLES = (
    "inventory.volume_hourly", "inventory.instance_hourly", "inventory.consumer_member_hourly", "metrics.broker_hourly",
    "metrics.partition_hourly", "metrics.consumer_partition_hourly", "metrics.replica_sample", "metrics.volume_sample",
    "metrics.jvm_app_hourly", "metrics.state_store_hourly", "detect.evaluation", "detect.detector_run", "detect.cause",
    "detect.weighing", "detect.load", "tickets.ticket", "tickets.change", "tickets.issue",
)  # fmt: skip
Row = dict[str, Any]
Spot = tuple[str, int]
"""Topic and partition."""


@dataclass
class IncidentScore(Score):
    """Score over pairs of findings: those of one fault belong to one issue, others do not."""

    rightly_together: int = 0
    wrongly_together: int = 0
    wrongly_apart: int = 0
    roots_right: int = 0
    roots: int = 0
    issues: int = 0
    incidents: int = 0
    alone_merged: int = 0
    alone: int = 0

    @property
    def goals(self) -> list[Goal]:
        together = self.rightly_together + self.wrongly_together
        pairs = self.rightly_together + self.wrongly_apart
        return [
            Goal(f"pairs: precision, of {together}", self.rightly_together / max(together, 1), 0.99),
            Goal(f"pairs: recall, of {pairs}", self.rightly_together / max(pairs, 1), 0.95),
            Goal(f"right root, of {self.roots}", self.roots_right / max(self.roots, 1), 0.95),
            Goal(f"issues per incident, of {self.incidents}", self.issues / max(self.incidents, 1), 1.05, at_most=True),
            Goal(f"own cause, yet merged, of {self.alone}", self.alone_merged / max(self.alone, 1), 0.01, at_most=True),
        ]


@dataclass
class Symptom:
    """A finding that fires from an hour on."""

    detector: str
    resource: str
    reason: str
    begins: int
    incident: str
    ends: int = HOURS
    affected: list[Spot] = field(default_factory=list)
    metrics: Row = field(default_factory=dict)
    is_root: bool = False
    also: set[str] = field(default_factory=set)
    """Other incidents that contribute to it."""


class Cluster:
    """Brokers on hosts with one disk each, topics, plain groups with members on hosts, and Streams applications."""

    def __init__(self, dice: random.Random, name: str) -> None:
        self.dice, self.name = dice, name
        is_small = dice.random() < 0.4
        self.brokers = list(range(1, dice.randint(4, 5) if is_small else dice.randint(5, 10)))
        self.leaders: dict[Spot, int] = {}
        self.replicas: dict[Spot, list[int]] = {}
        for topic in (f"t{n}" for n in range(dice.randint(4, 7) if is_small else dice.randint(8, 14))):
            one_leader = dice.sample(self.brokers, 3) if dice.random() < 0.15 else None  # small, or never balanced
            for partition in range(dice.choice([1, 3, 6]) if one_leader else dice.choice([6, 8, 12, 24])):
                holders = one_leader or dice.sample(self.brokers, 3)
                self.replicas[topic, partition], self.leaders[topic, partition] = holders, holders[0]
        topics = sorted({topic for topic, _ in self.leaders})
        self.groups: dict[str, dict[Spot, str]] = {}
        """Group → its partitions, each with the host of the member that owns it."""
        machines = [f"{name}-m{n}" for n in range(8)]
        self.machines = machines
        for n in range(dice.randint(6, 10) if is_small else dice.randint(15, 30)):
            spots = [s for s in self.leaders if s[0] in dice.sample(topics, dice.randint(1, 2))]
            hosts = dice.sample(machines, dice.randint(1, 3))
            self.groups[f"g{n}"] = {spot: hosts[i % len(hosts)] for i, spot in enumerate(sorted(spots))}
        self.rates = {name: dice.lognormvariate(4, 1.5) for name in self.groups}
        """Group → records per second of each of its partitions; most groups read little."""
        self.apps = {f"app{n}": f"{name}-a{n}" for n in range(4)}
        for app, machine in self.apps.items():
            spots = [s for s in self.leaders if s[0] == dice.choice(topics)] or [next(iter(self.leaders))]
            self.groups[app] = dict.fromkeys(spots, machine)
        self.silent: set[int] = set()
        self.reports_isr = dice.random() < 0.7
        """Whether the cluster reports the ISR of each partition."""
        self.out_of_sync: dict[Spot, set[int]] = defaultdict(set)
        """Partition → the brokers whose replicas are out of sync."""
        self.reads: dict[int, float] = defaultdict(lambda: 0.1)
        """Broker → share of reads in the I/O of its disk."""
        self.hanging: set[Spot] = set()
        """Partitions with a hanging transaction."""
        self.waiting: set[tuple[str, Spot]] = set()
        """Groups and the partitions where they have read everything before it."""
        self.busy: set[str] = set()
        """Groups that have a finding already."""

    def volume(self, broker: int) -> str:
        return f"volume:1/r/{self.name}-v{broker}"

    def group(self, name: str) -> str:
        return f"group:{self.name}/{name}"

    def led(self, group: str, broker: int) -> list[Spot]:
        return [spot for spot in self.groups[group] if self.leaders[spot] == broker]

    def rows(self, hour: datetime) -> Iterable[tuple[str, Row]]:
        """Topology rows of an hour."""
        at, place = {"hour": hour}, {"account": "1", "region": "r"}
        for broker in self.brokers:
            machine, volume = f"{self.name}-i{broker}", f"{self.name}-v{broker}"
            yield "inventory.volume_hourly", at | place | {"volume_id": volume, "instance_id": machine}
            yield "inventory.instance_hourly", at | place | {"instance_id": machine, "private_ip": f"ip-{machine}"}
            output = {} if broker in self.silent and hour == EVALUATED else {"broker_id": broker}
            known = {"cluster": self.name, "endpoint": f"b{broker}", "instance_id": machine}
            yield "metrics.broker_hourly", at | known | output
            share = self.reads[broker]
            sample = {"at": hour, "volume_id": volume, "read_bytes": share, "write_bytes": 1 - share}
            yield "metrics.volume_sample", place | sample
        for machine in (*self.machines, *self.apps.values()):
            yield "inventory.instance_hourly", at | place | {"instance_id": machine, "private_ip": f"ip-{machine}"}
            yield "inventory.volume_hourly", at | place | {"volume_id": f"{machine}-v", "instance_id": machine}
        for app, machine in self.apps.items():
            known = {"cluster": self.name, "app": app, "application_id": app, "instance_id": machine}
            yield "metrics.jvm_app_hourly", at | known | {"endpoint": f"jmx-{app}"}
            store = {"cluster": self.name, "topic": f"{app}-s-changelog", "application_id": app, "store": "s"}
            yield "metrics.state_store_hourly", at | store
        for spot, leader in self.leaders.items():
            out_of_sync = self.out_of_sync.get(spot, set())
            one = {"topic": spot[0], "partition": spot[1], "leader": leader, "replicas": 3, "isr": 3 - len(out_of_sync)}
            missing = sorted(out_of_sync) if self.reports_isr and out_of_sync else None
            one["last_stable_offset"] = 500 if spot in self.hanging else None
            yield "metrics.partition_hourly", at | {"cluster": self.name, "missing_brokers": missing} | one
        for name, spots in self.groups.items():
            for spot, machine in spots.items():
                one = {"group_id": name, "topic": spot[0], "partition": spot[1], "host": f"/ip-{machine}"}
                one["arriving_per_second"] = self.rates.get(name)
                one["committed_offset"] = 500 if (name, spot) in self.waiting else 400
                yield "metrics.consumer_partition_hourly", at | {"cluster": self.name} | one
        held: dict[tuple[str, int], Row] = defaultdict(lambda: {"bytes": {}, "lags": {}})
        for (topic, partition), holders in self.replicas.items():
            for broker in holders:
                held[topic, broker]["bytes"][str(partition)] = 1
                if broker in self.out_of_sync.get((topic, partition), ()):
                    held[topic, broker]["lags"][str(partition)] = 500
        for (topic, broker), known in held.items():
            one = {"topic": topic, "broker_id": broker, "log_dir": "/d"}
            sizes = {"partition_bytes": known["bytes"], "partition_lags": known["lags"]}
            yield "metrics.replica_sample", at | {"cluster": self.name} | one | sizes


class World:
    """Clusters and the faults in them."""

    def __init__(self, dice: random.Random, clusters: list[Cluster] | None = None) -> None:
        self.dice = dice
        self.clusters = clusters or [Cluster(dice, f"c{n}") for n in range(CLUSTERS)]
        self.symptoms: list[Symptom] = []
        for number, cluster in enumerate(self.clusters):
            kinds = [self.disk, self.disk, self.cpu, self.values, self.memory, self.rogue, self.transaction]
            faults = dice.sample([*kinds, self.machine], 3)
            faults.sort(key=lambda fault: fault not in (self.values, self.memory))  # while applications are healthy
            for n, fault in enumerate(faults):
                fault(cluster, f"{cluster.name}/{n} {fault.__name__}")
            if number == 0 and len(self.clusters) > 1:
                self.namesake(cluster, self.clusters[1])
            dice.choice([self.poison, self.early, self.peak, self.elsewhere])(cluster)
            self.poison(cluster)

    def add(
        self, detector: str, resource: str, reason: str, begins: int, incident: str, affected: Iterable[Spot] = (),
        is_root: bool = False, also: Iterable[str] = (), **metrics: Any,
    ) -> None:  # fmt: skip
        known = next((s for s in self.symptoms if (s.detector, s.resource) == (detector, resource)), None)
        if known is not None:
            known.also.add(incident)
        else:
            found = Symptom(detector, resource, reason, begins, incident, HOURS, list(affected), metrics, is_root)
            found.also.update(also)
            self.symptoms.append(found)

    def calm(self, cluster: Cluster) -> int:
        """A broker without any symptom of its own."""
        ill = {s.resource for s in self.symptoms if s.detector != "partitions_under_replicated"}
        return self.dice.choice(
            [b for b in cluster.brokers if not {cluster.volume(b), f"broker:{cluster.name}/{b}"} & ill]
        )

    def spread(self, cluster: Cluster, broker: int, since: int, incident: str) -> None:
        """A slow broker: its replicas or its followers fall behind, and so do groups on partitions that it leads."""
        dice = self.dice
        follows = [(spot, broker) for spot, held in cluster.replicas.items() if broker in held[1:]]
        leads = [(spot, peer) for spot, held in cluster.replicas.items() if broker == held[0] for peer in held[1:]]
        if dice.random() < 0.6:
            lost = follows if not cluster.reports_isr or dice.random() < 0.6 else leads
            self.lose(cluster, [one for one in lost if dice.random() < 0.95], since, incident)
        reading = {
            name: len(cluster.led(name, broker)) * cluster.rates.get(name, 100) for name in sorted(cluster.groups)
        }
        reads = sorted(records for records in reading.values() if records)
        # What a slow broker still serves: groups that read less there are well, and a few that have much to spare.
        served = reads[int(len(reads) * dice.choice([0, 0.2, 0.5, 0.7, 0.85]))] if reads else 0
        for name in reading:
            led = cluster.led(name, broker)
            if not led or name in cluster.busy or reading[name] < served or dice.random() < 0.05:
                continue
            late = [spot for spot in led if dice.random() < 0.95] or led
            own = [spot for spot in sorted(cluster.groups[name]) if spot not in led]
            own = [dice.choice(own)] if own and len(cluster.groups[name]) > 6 and dice.random() < 0.04 else []
            # One partition is late for another reason. Above a fifth of all late ones, a finding of its own is right.
            also = [f"{cluster.name} itself {name}"] * (len(own) > 0.2 * len(late + own))
            self.late(cluster, name, since + dice.randint(0, 1), incident, sorted(late + own), also=also)
            if dice.random() < 0.1:
                self.add("consumer_data_at_risk", cluster.group(name), "at_risk", since + 1, incident, also=also)

    def lose(self, cluster: Cluster, lost: list[tuple[Spot, int]], since: int, incident: str) -> None:
        """Replicas leave the ISR. The finding is on their brokers, or on the leaders if the cluster reports no ISR."""
        output: set[int] = set()
        for spot, broker in lost:
            if cluster.reports_isr or spot not in cluster.out_of_sync:
                cluster.out_of_sync[spot].add(broker)
                output.add(broker if cluster.reports_isr else cluster.leaders[spot])
        reason = "missing" if cluster.reports_isr else "followers_missing"
        for broker in sorted(output):
            resource = f"broker:{cluster.name}/{broker}"
            self.add("partitions_under_replicated", resource, reason, since + self.dice.randint(0, 1), incident)

    def late(self, cluster: Cluster, name: str, since: int, incident: str, spots: list[Spot], **how: Any) -> None:
        cluster.busy.add(name)
        reason = how.pop("reason", None) or self.dice.choice(["falling_behind", "slow_recovery", "stuck"])
        self.add("consumer_group_lagging", cluster.group(name), reason, since, incident, spots, **how)

    def disk(self, cluster: Cluster, incident: str, *, broker: int | None = None, is_root: bool = True) -> None:
        dice, broker, since = self.dice, broker or self.calm(cluster), self.dice.randint(0, 2)
        if dice.random() < 0.2:
            cluster.silent.add(broker)
        reason = dice.choice(["bucket_empty", "at_iops_limit", "at_throughput_limit"])
        self.add("ebs_volume_starving", cluster.volume(broker), reason, since, incident, is_root=is_root)
        for detector, verdicts, chance in (("broker_slow", "clients_affected", 0.7), ("log_flush_slow", "slow", 0.5)):
            if broker not in cluster.silent and dice.random() < chance:
                self.add(detector, f"broker:{cluster.name}/{broker}", verdicts, since + dice.randint(0, 1), incident)
        self.spread(cluster, broker, since, incident)

    def cpu(self, cluster: Cluster, incident: str) -> None:
        broker, since = self.calm(cluster), self.dice.randint(0, 2)
        self.add("broker_slow", f"broker:{cluster.name}/{broker}", "clients_affected", since, incident, is_root=True)
        if self.dice.random() < 0.5:
            self.add("log_flush_slow", f"broker:{cluster.name}/{broker}", "slow", since, incident)
        self.spread(cluster, broker, since, incident)

    def rogue(self, cluster: Cluster, incident: str) -> None:
        broker = self.calm(cluster)
        share = self.dice.uniform(70, 100)
        resource = f"topic:{cluster.name}/{min(topic for topic, _ in cluster.leaders)}"
        known: Row = {"unaccounted_of_excess_percent": share}
        self.add("consumer_rogue", resource, "rogue", 0, incident, is_root=True, **known)
        cluster.reads[broker] = self.dice.uniform(0.7, 0.95)
        self.disk(cluster, incident, broker=broker, is_root=False)

    def values(self, cluster: Cluster, incident: str) -> None:
        app, since = self.app(cluster), self.dice.randint(1, 2)
        store = f"store:{cluster.name}/{app}-s-changelog"
        self.add("state_store_schema_drift", store, "breaks_restore", since - 1, incident, is_root=True)
        self.add("stream_threads_dead", f"process:{cluster.name}/jmx-{app}", "none_alive", since, incident)
        self.late(cluster, app, since, incident, sorted(cluster.groups[app]), reason="stuck")

    def memory(self, cluster: Cluster, incident: str) -> None:
        """Memory or heap runs out: threads or processes end, restart, and their group is late meanwhile."""
        dice, app, since = self.dice, self.app(cluster), self.dice.randint(1, 2)
        application, process = f"application:{cluster.name}/{app}", f"process:{cluster.name}/jmx-{app}"
        reason = dice.choice(["host_memory_full", "over_budget", "overcommitted", "heap_full", "gc_overhead"])
        is_heap_full = reason in ("overcommitted", "heap_full", "gc_overhead")
        if dice.random() < 0.3:  # it grew before: that is the root
            self.add("app_memory_growing", process, "heap_growth" if is_heap_full else "memory_growth", -3, incident,
                     is_root=True)  # fmt: skip
        is_root = not any(s.incident == incident for s in self.symptoms)
        self.add(
            "app_memory_heavy", application, reason, since - 1, incident, is_root=is_root, is_heap_full=is_heap_full
        )
        if is_heap_full or dice.random() < 0.8:
            ended = dice.choice(["error", "none_alive", "closed", "some_dead"]) if is_heap_full else "application_down"
            self.add("stream_threads_dead", process, ended, since, incident)
        if dice.random() < 0.7:  # known after three short runs; the first of them ended before the group was late
            first = _at(since - 1) + timedelta(minutes=dice.randint(5, 55))
            self.add(
                "app_crash_looping", process, "restarting", since + 2, incident, restarting_since=first.isoformat()
            )
        late = dice.choice(["stuck", "falling_behind"]) if is_heap_full else "no_members"
        self.late(cluster, app, since, incident, sorted(cluster.groups[app]), reason=late)

    def app(self, cluster: Cluster) -> str:
        return self.dice.choice([app for app in cluster.apps if app not in cluster.busy])

    def transaction(self, cluster: Cluster, incident: str) -> None:
        topic, since = self.dice.choice(sorted({topic for topic, _ in cluster.leaders})), self.dice.randint(0, 2)
        spots = [s for s in sorted(cluster.leaders) if s[0] == topic]
        spots = self.dice.sample(spots, min(2, len(spots)))
        resource = f"topic:{cluster.name}/{topic}"
        cluster.hanging.update(spots)
        self.add("transaction_hanging", resource, "blocks_readers", since, incident, spots, is_root=True)
        for name in sorted(cluster.groups):
            held = [spot for spot in spots if spot in cluster.groups[name]]
            if held and name not in cluster.busy and self.dice.random() < 0.6:
                cluster.waiting.update((name, spot) for spot in held)
                reason = "partition_stuck" if len(held) == 1 else "stuck"
                self.late(cluster, name, since + self.dice.randint(0, 1), incident, held, reason=reason)

    def machine(self, cluster: Cluster, incident: str) -> None:
        """A slow disk of a host on which members of groups run."""
        machine, since = self.dice.choice(cluster.machines), self.dice.randint(0, 2)
        volume = f"volume:1/r/{machine}-v"
        self.add("ebs_volume_starving", volume, "at_iops_limit", since, incident, is_root=True)
        for name, spots in sorted(cluster.groups.items()):
            owned = [spot for spot, host in spots.items() if host == machine]
            if len(owned) > 1 and name not in cluster.busy and self.dice.random() < 0.9:
                self.late(cluster, name, since + self.dice.randint(0, 1), incident, sorted(owned))

    def poison(self, cluster: Cluster) -> None:
        """A poison-pill record on any partition, possibly one of a slow broker."""
        free = [name for name in sorted(cluster.groups) if name not in cluster.busy and name.startswith("g")]
        if free:
            name = self.dice.choice(free)
            spot = self.dice.choice(sorted(cluster.groups[name]))
            reason = "stuck" if len(cluster.groups[name]) == 1 else "partition_stuck"
            label = f"{cluster.name} poison {name}"
            self.late(cluster, name, self.dice.randint(0, 2), label, [spot], reason=reason, is_root=True)

    def early(self, cluster: Cluster) -> None:
        """A group that had lag for hours before the broker of its partitions becomes slow."""
        for name in sorted(cluster.groups):
            if name not in cluster.busy and name.startswith("g"):
                spots = sorted(cluster.groups[name])[:3]
                self.late(cluster, name, -6, f"{cluster.name} early {name}", spots, is_root=True)
                return

    def peak(self, cluster: Cluster) -> None:
        """Many groups lag for reasons of their own, each on some of its partitions."""
        for name in sorted(cluster.groups):
            if name not in cluster.busy and name.startswith("g") and self.dice.random() < 0.6:
                spots = sorted(cluster.groups[name])
                late = self.dice.sample(spots, max(2, len(spots) // 2))
                self.late(cluster, name, self.dice.randint(0, 2), f"{cluster.name} peak {name}", late, is_root=True)

    def elsewhere(self, cluster: Cluster) -> None:
        """A group that lags for its own reason on partitions of healthy brokers."""
        ill = {s.resource for s in self.symptoms}
        well = [b for b in cluster.brokers if cluster.volume(b) not in ill and f"broker:{cluster.name}/{b}" not in ill]
        for name in sorted(cluster.groups):
            spots = [s for s in sorted(cluster.groups[name]) if cluster.leaders[s] in well]
            if name not in cluster.busy and name.startswith("g") and len(spots) > 1:
                self.late(cluster, name, 1, f"{cluster.name} elsewhere {name}", spots, is_root=True)
                return

    def namesake(self, cluster: Cluster, other: Cluster) -> None:
        """The application of that name in another cluster fails for another reason."""
        hit = [s.resource.partition("/jmx-")[2] for s in self.symptoms if s.detector == "stream_threads_dead"]
        for app in hit:
            label = f"{other.name} namesake {app}"
            if app in other.apps and app not in other.busy:
                other.busy.add(app)
                resource = f"process:{other.name}/jmx-{app}"
                self.add("stream_threads_dead", resource, "some_dead", 1, label, is_root=True)

    def write(self, connection: sa.Connection, hour: int) -> None:
        """Topology and findings of an hour."""
        at = _at(hour)
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": at.date()})
        insert_many(connection, (row for cluster in self.clusters for row in cluster.rows(at)))
        found = []
        for symptom in self.symptoms:
            if symptom.begins <= hour < symptom.ends:
                found.append(
                    _found(symptom.detector, symptom.resource, symptom.reason, symptom.affected, symptom.metrics)
                )
        ill = {(s.detector, s.resource) for s in self.symptoms if s.begins <= hour}
        for cluster in self.clusters:
            well = [("consumer_group_lagging", cluster.group(name)) for name in cluster.groups]
            well += [("stream_threads_dead", f"process:{cluster.name}/jmx-{app}") for app in cluster.apps]
            for broker in cluster.brokers:
                well += [("ebs_volume_starving", cluster.volume(broker))]
                well += [(name, f"broker:{cluster.name}/{broker}") for name in ("broker_slow", "log_flush_slow")]
            found += [
                _found(detector, resource, None) for detector, resource in well if (detector, resource) not in ill
            ]
        store_findings(connection, found, at, datetime.now(UTC))
        insert_many(
            connection,
            (
                ("detect.detector_run", {"hour": at, "detector": d, "status": "evaluated", "firing": 0})
                for d in DETECTORS
            ),
        )


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Several worlds, hour by hour."""
    result = IncidentScore("incidents", 0, 0, 0, 0)
    dice = random.Random(scenario.seed)  # noqa: S311
    for number in range(WORLDS // 3 if scenario.days < STANDARD.days else WORLDS):
        world = World(random.Random(dice.random()))  # noqa: S311
        _empty(bench.warehouse)
        for hour in range(-6, HOURS):
            if hour >= 0 or any(symptom.begins <= hour for symptom in world.symptoms):
                with bench.warehouse.begin() as connection:
                    world.write(connection, hour)
                find_causes(bench.warehouse, DETECTORS, _at(hour))
                reconcile(bench.warehouse, CONFIG, DETECTORS, _at(hour) + HOUR)
        _score(bench.warehouse, world, number, result)
    return result


def _score(warehouse: sa.Engine, world: World, number: int, result: IncidentScore) -> None:
    with warehouse.connect() as connection:
        rows = connection.execute(_ISSUES).mappings().all()
    issue_of = {(row["detector"], row["resource"]): row["issue"] for row in rows}
    root_of = {row["issue"]: row["root"] for row in rows}
    output = [s for s in world.symptoms if (s.detector, s.resource) in issue_of]
    filed = {
        issue_of[s.detector, s.resource] for s in output if not s.also
    }  # an effect of two incidents may be an issue of its own
    result.faults += len(world.symptoms)
    result.cases += HOURS
    result.resources += len(world.symptoms)
    labels = {s.incident for s in output if not s.also}
    result.incidents += len(labels)
    result.issues += len(filed)
    for one, other in combinations(output, 2):
        same = issue_of[one.detector, one.resource] == issue_of[other.detector, other.resource]
        if one.also or other.also:  # an effect of two incidents: either root is right
            if same and not {one.incident, *one.also} & {other.incident, *other.also}:
                result.wrongly_together += 1
        elif same and one.incident == other.incident:
            result.rightly_together += 1
        elif same:
            result.wrongly_together += 1
            result.wrong.append(f"world {number}: together: {_named(one)} and {_named(other)}")
        elif one.incident == other.incident:
            result.wrongly_apart += 1
            result.wrong.append(f"world {number}: apart: {_named(one)} and {_named(other)}")
    sizes: dict[str, int] = defaultdict(int)
    for symptom in output:
        sizes[symptom.incident] += 1
    for symptom in output:
        issue = issue_of[symptom.detector, symptom.resource]
        if symptom.is_root and sizes[symptom.incident] > 1:
            result.roots += 1
            is_right = root_of[issue] == symptom.resource
            result.roots_right += is_right
            if not is_right:
                result.wrong.append(f"world {number}: root of {symptom.incident} is {root_of[issue]}")
        elif symptom.is_root:
            result.alone += 1
            result.alone_merged += sum(issue_of[s.detector, s.resource] == issue for s in output) > 1


def _named(symptom: Symptom) -> str:
    return f"{symptom.resource} ({symptom.detector} {symptom.reason}, {symptom.incident}, from {symptom.begins})"


def insert_many(connection: sa.Connection, rows: Iterable[tuple[str, Row]]) -> None:
    """Inserts rows by table; NOT NULL columns that are not given get a neutral value."""
    by_table: dict[str, list[Row]] = defaultdict(list)
    for table, row in rows:
        by_table[table].append(row)
    for table, many in by_table.items():
        schema, relation = table.split(".")
        must = connection.execute(_MUST, {"schema": schema, "relation": relation}).all()
        neutral = {name: NEUTRAL.get(kind, EVALUATED.isoformat()) for name, kind in must}
        columns = ", ".join(neutral | dict.fromkeys(many[0]))
        for start in range(0, len(many), 50_000):
            text = json.dumps([neutral | row for row in many[start : start + 50_000]], default=str)
            connection.exec_driver_sql(
                f"insert into {table} ({columns}) select {columns} from jsonb_populate_recordset(null::{table}, %s)"
                " on conflict do nothing",
                (text.replace('"{}"', "{}"),),
            )


def _found(
    detector: str, resource: str, reason: str | None, affected: Iterable[Spot] = (), metrics: Row | None = None
) -> Finding:  # fmt: skip
    kind, _, parts = resource.partition(":")
    resource = Resource(kind, dict(zip(KINDS[kind], parts.split("/"), strict=True)), parts)
    spots = tuple({"topic": topic, "partition": partition} for topic, partition in affected)
    status: Any = "firing" if reason else "ok"
    severity = "warning" if reason else None
    return Finding(detector, resource, reason or "fine", status, severity, metrics or {}, "So it is.", affected=spots)


def _at(hour: int) -> datetime:
    return EVALUATED + timedelta(hours=hour - HOURS + 1)


def _empty(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql(f"truncate {', '.join(TABLES)} cascade")


DETECTORS = load_detectors()
CONFIG = Config(tickets={"max_new_per_run": 10_000, "least_severity": "warning"})  # type: ignore[arg-type]
_MUST = sa.text("""
    select column_name, data_type from information_schema.columns
    where
      table_schema = :schema and table_name = :relation and is_identity = 'NO' and is_nullable = 'NO'
      and column_default is null""")
_ISSUES = sa.text("""
    select t.detector, t.resource, coalesce(t.summary_ticket_id, t.ticket_id) as issue, root.resource as root
    from tickets.ticket as t
    inner join tickets.ticket as c on coalesce(t.summary_ticket_id, t.ticket_id) = c.ticket_id
    inner join tickets.ticket as root on coalesce(c.root_ticket_id, c.ticket_id) = root.ticket_id
    where t.state = 'open'""")
