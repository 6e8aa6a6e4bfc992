"""Simulated clusters and, per detector on brokers and disks, the faults that were put into them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator.clusters import PAST, Cluster
from tests.simulator.scenario import EVALUATED, Fault, Scenario, Truth

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
(FILES, SLOW, FLUSHES, UNEVEN, MANY, CONTROLLERS, UNDER_REPLICATED, LEADERLESS, DISK, COLD, DOWN, REFUSED, UNCLEANED,
 REQUESTS, MOVES, STUCK, THROTTLE) = RULES
# fmt: on


@dataclass
class Fleet:
    """All clusters, and the truth per detector."""

    scenario: Scenario
    clusters: list[Cluster] = field(default_factory=list)
    truth: dict[str, Truth] = field(default_factory=lambda: {rule: Truth() for rule in RULES})

    flush_limits: dict[str, float] = field(default_factory=dict)
    """Limit of the log flush latency by cluster, in ms, where the config overrides the default."""

    shortages: dict[str, set[str]] = field(default_factory=dict)
    """Broker that is down → metrics that show which resources it ran out of, in addition to its reason."""

    def fault(self, rule: str, cluster: Cluster, broker: int | None = None, *verdicts: str) -> None:
        """The detector must fire in the evaluated hour. `verdicts`: valid severities (of DOWN: valid reasons)."""
        resource_name = cluster.name if broker is None else cluster.broker(broker)
        self.truth[rule].faults.append(Fault.in_evaluated_hour(resource_name, cluster.kind, *verdicts))

    def unclear(self, rule: str, cluster: Cluster, broker: int | None = None) -> None:
        """Firing and not firing are both right in the evaluated hour."""
        resource_name = cluster.name if broker is None else cluster.broker(broker)
        self.truth[rule].unclear.append((resource_name, EVALUATED, EVALUATED + HOUR))


def a_broker(cluster: Cluster) -> int:
    return int(cluster.chance.integers(0, cluster.brokers))


def since(cluster: Cluster, least: int = 2, most: int = 30) -> slice:
    """The last hours: a random number of them."""
    return slice(PAST + 1 - int(cluster.chance.integers(least, most + 1)), None)


def requests_to(cluster: Cluster, broker: int, rate: np.ndarray | float, hours: slice | np.ndarray) -> None:
    """Sets the produce requests per second in these hours; the mean latency stays as before."""
    requests, took = cluster.rates["produce_requests"], cluster.rates["produce_ms"]
    mean = took[broker, hours] / requests[broker, hours]
    requests[broker, hours] = rate * cluster.chance.normal(1, 0.02, requests[broker, hours].shape).clip(0.95, 1.05)
    took[broker, hours] = requests[broker, hours] * mean


def few_requests(cluster: Cluster) -> None:
    """Low produce request rates on all brokers: they are busy with something else."""
    for broker in range(cluster.brokers):
        requests_to(cluster, broker, cluster.chance.uniform(100, 800), slice(None))
