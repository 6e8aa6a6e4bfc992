"""Produce request rates of brokers and their utilization, and decoys."""

from __future__ import annotations

import numpy as np

from tests.simulator.cluster_fleet import (
    DOWN,
    REQUESTS,
    UNDER_REPLICATED,
    Fleet,
    a_broker,
    few_requests,
    requests_to,
    since,
)
from tests.simulator.cluster_kinds import goes_down
from tests.simulator.clusters import NOW, PAST, Cluster


def strain(cluster: Cluster, broker: int, hours: slice | np.ndarray) -> None:
    """Saturates the broker's CPUs or its request handlers."""
    if cluster.chance.random() < 0.3:
        cluster.rates["cpu_seconds_total"][broker, hours] = 8 * cluster.chance.uniform(0.85, 0.97)
    else:
        cluster.gauges["request_handler_idle_ratio"][broker, hours] = cluster.chance.uniform(0.05, 0.27)


def by_day(cluster: Cluster, least: float, most: float) -> np.ndarray:
    """A rate between these, with the peak in the evaluated hour."""
    wave = np.cos(2 * np.pi * (np.arange(PAST + 1) - NOW) / 24)
    return least + (most - least) * (1 + wave) / 2


def too_many_for_days(fleet: Fleet, cluster: Cluster) -> None:
    """Above capacity for the whole history of the broker."""
    broker, hours = a_broker(cluster), since(cluster, 12, PAST)
    requests_to(cluster, broker, cluster.chance.uniform(4500, 9000), hours)
    strain(cluster, broker, hours)
    fleet.fault(REQUESTS, cluster, broker, "warning")


def too_many_since_a_release(fleet: Fleet, cluster: Cluster) -> None:
    """Producers no longer wait for full batches (lower linger.ms)."""
    few_requests(cluster)
    broker, hours = a_broker(cluster), since(cluster, 3, 8)
    requests_to(cluster, broker, cluster.chance.uniform(4500, 9000), hours)
    strain(cluster, broker, hours)
    fleet.fault(REQUESTS, cluster, broker, "warning")


def beyond_a_knee_of_its_own(fleet: Fleet, cluster: Cluster) -> None:
    """A small instance: producers wait at each daily peak, and now the peak does not end."""
    broker, knee = a_broker(cluster), cluster.chance.uniform(1600, 2600)
    rate = by_day(cluster, 0.3 * knee, 1.35 * knee)
    rate[since(cluster, 14, 30)] = cluster.chance.uniform(1.3, 1.5) * knee
    requests_to(cluster, broker, rate, slice(None))
    slow = cluster.rates["produce_requests"][broker] > knee
    cluster.gauges["produce_p99_ms"][broker, slow] *= cluster.chance.uniform(3.5, 6)
    strain(cluster, broker, slow)
    fleet.fault(REQUESTS, cluster, broker, "warning")


def many_requests_at_ease(fleet: Fleet, cluster: Cluster) -> None:
    for broker in range(cluster.brokers):
        requests_to(cluster, broker, cluster.chance.uniform(6000, 15000), slice(None))


def busy_with_something_else(fleet: Fleet, cluster: Cluster) -> None:
    few_requests(cluster)
    strain(cluster, a_broker(cluster), since(cluster))


def peak_of_each_night(fleet: Fleet, cluster: Cluster) -> None:
    """The same hours each night; the evaluated hour is one of them, not the first."""
    few_requests(cluster)
    broker, lasts = a_broker(cluster), int(cluster.chance.integers(2, 7))
    hours = (NOW - np.arange(PAST + 1) + int(cluster.chance.integers(0, 2))) % 24 < lasts
    requests_to(cluster, broker, cluster.chance.uniform(4500, 9000), hours)
    strain(cluster, broker, hours)


def many_for_an_hour(fleet: Fleet, cluster: Cluster) -> None:
    few_requests(cluster)
    broker, hour = a_broker(cluster), slice(NOW, None)
    requests_to(cluster, broker, cluster.chance.uniform(4500, 9000), hour)
    strain(cluster, broker, hour)


def takes_the_share_of_one_that_is_down(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    few_requests(cluster)
    share = cluster.chance.uniform(0.85, 0.93) * 4000
    for other in range(cluster.brokers):
        requests_to(cluster, other, share, slice(None))
        requests_to(cluster, other, share * cluster.brokers / (cluster.brokers - 1), slice(NOW - 1, None))
        strain(cluster, other, slice(NOW - 1, None))
    goes_down(cluster, broker)
    fleet.fault(DOWN, cluster, broker, "down")
    fleet.fault(UNDER_REPLICATED, cluster, broker, "warning")
