"""Clusters, and for each rule on brokers and their disks what was done to them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator.clusters import PAST, Cluster
from tests.simulator.scenario import JUDGED, Fault, Scenario, Truth

RULES = (
    "broker_file_descriptors_high",
    "broker_slow",
    "log_flush_slow",
    "broker_imbalanced",
    "broker_partitions_too_many",
    "controllers_missing",
    "partitions_under_replicated",
    "partitions_leaderless",
    "disk_filling",
    "page_cache_small",
    "broker_down",
    "produce_failing",
    "compaction_stalled",
    "broker_requests_high",
    "reassignment_impact",
    "reassignment_stuck",
    "replication_throttle_leftover",
)
# fmt: off
(FILES, SLOW, FLUSHES, UNEVEN, MANY, CONTROLLERS, LACKING, LEADERLESS, DISK, COLD, DOWN, REFUSED, UNCLEANED,
 REQUESTS, MOVES, STUCK, THROTTLE) = RULES
# fmt: on


@dataclass
class Fleet:
    """All clusters, and for each rule what was done to them."""

    scenario: Scenario
    clusters: list[Cluster] = field(default_factory=list)
    truth: dict[str, Truth] = field(default_factory=lambda: {rule: Truth() for rule in RULES})

    flush_limits: dict[str, float] = field(default_factory=dict)
    """By cluster, in ms, where the config has another one for it."""

    shortages: dict[str, set[str]] = field(default_factory=dict)
    """By broker that is down, figures that tell what it was short of, beside its because."""

    def fault(self, rule: str, cluster: Cluster, broker: int | None = None, *verdicts: str) -> None:
        """Must be told in the judged hour, as one of these: severities, of brokers that are down becauses."""
        resource_name = cluster.name if broker is None else cluster.broker(broker)
        self.truth[rule].faults.append(Fault.judged(resource_name, cluster.kind, *verdicts))

    def unclear(self, rule: str, cluster: Cluster, broker: int | None = None) -> None:
        """Nobody can say whether it should be told."""
        resource_name = cluster.name if broker is None else cluster.broker(broker)
        self.truth[rule].unclear.append((resource_name, JUDGED, JUDGED + HOUR))


def a_broker(cluster: Cluster) -> int:
    return int(cluster.chance.integers(0, cluster.brokers))


def since(cluster: Cluster, least: int = 2, most: int = 30) -> slice:
    """The last hours, so many by chance."""
    return slice(PAST + 1 - int(cluster.chance.integers(least, most + 1)), None)


def requests_to(cluster: Cluster, broker: int, rate: np.ndarray | float, hours: slice | np.ndarray) -> None:
    """So many a second in these hours, each taking as long as before."""
    requests, took = cluster.rates["produce_requests"], cluster.rates["produce_ms"]
    mean = took[broker, hours] / requests[broker, hours]
    requests[broker, hours] = rate * cluster.chance.normal(1, 0.02, requests[broker, hours].shape).clip(0.95, 1.05)
    took[broker, hours] = requests[broker, hours] * mean


def few_requests(cluster: Cluster) -> None:
    """What keeps its brokers busy is something else."""
    for broker in range(cluster.brokers):
        requests_to(cluster, broker, cluster.chance.uniform(100, 800), slice(None))
