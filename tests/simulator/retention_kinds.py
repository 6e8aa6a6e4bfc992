"""Topics with retention by time: brokers that do not delete, and decoys."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tests.simulator.cluster_fleet import UNCLEANED, Fleet, a_broker
from tests.simulator.clusters import NOW, PAST, Cluster, Topic
from tests.simulator.logs import Batch, Log

YEAR = 365 * 24


def _topic(cluster: Cluster, retention: int | None = None, segment: int | None = None) -> Topic:
    """A topic with its logs, at one to thousands of records per hour."""
    chance = cluster.chance
    retention = retention or int(chance.choice([6, 24, 48, 72, 120]))
    segment = segment or int(chance.choice([1, 12, 24, 120]))
    topic = cluster.topics[-1]
    rate = float(chance.choice([1, 50, 4000]))
    counts = chance.poisson(rate, PAST + 1)
    size = int(chance.choice([10 * rate, 1e9]))
    batches = [Batch(hour, int(count), float(hour)) for hour, count in enumerate(counts)]
    topic.logs = [Log(retention, segment, size, list(batches)) for _ in topic.replicas]
    topic.configs |= {"cleanup.policy": "delete", "retention.ms": str(retention * 3_600_000),
                      "segment.ms": str(segment * 3_600_000)}  # fmt: skip
    return topic


def _dated(topic: Topic, hours: Iterable[int], date: float, records: int) -> None:
    """Records appended in these hours, with timestamps so many hours later."""
    for log in topic.logs:
        log.batches += [Batch(hour, records, hour + date) for hour in hours]
        log.batches.sort(key=lambda batch: batch.hour)


# Faults


def nothing_is_deleted(fleet: Fleet, cluster: Cluster) -> None:
    """The broker's retention task is stuck for so long that segments should have been deleted a day ago."""
    broker = a_broker(cluster)
    topic = _topic(cluster)
    for log, leader in zip(topic.logs, topic.leaders, strict=True):
        if leader == broker:
            log.stands_from = NOW - log.segment - 24 - int(cluster.chance.integers(4, 60))
    if broker in topic.leaders:
        fleet.fault(UNCLEANED, cluster, broker, "warning")


def one_log_is_not_deleted(fleet: Fleet, cluster: Cluster) -> None:
    topic = _topic(cluster)
    log = topic.logs[0]
    log.stands_from = NOW - log.segment - 24 - int(cluster.chance.integers(4, 60))
    fleet.fault(UNCLEANED, cluster, topic.leaders[0], "warning")


# Decoys


def retention_runs(fleet: Fleet, cluster: Cluster) -> None:
    """Segments roll by size or by time."""
    _topic(cluster)


def filled_with_old_records(fleet: Fleet, cluster: Cluster) -> None:
    """A backfill of past years with event times, for hours or days."""
    first = NOW - int(cluster.chance.integers(0, 60))
    _dated(_topic(cluster), range(first, NOW + 1), -YEAR * cluster.chance.uniform(0.05, 3), 500)


def late_records_dated_old(fleet: Fleet, cluster: Cluster) -> None:
    """Devices that were offline for weeks send late records, all the time."""
    _dated(_topic(cluster), range(PAST + 1), -24 * cluster.chance.uniform(5, 40), 3)


def a_clock_is_years_ahead(fleet: Fleet, cluster: Cluster) -> None:
    """The clock of one producer, now and then."""
    hours = np.flatnonzero(cluster.chance.random(PAST + 1) < cluster.chance.choice([0.01, 0.2, 1]))
    _dated(_topic(cluster), map(int, hours), YEAR, 2)


def all_clocks_are_ahead(fleet: Fleet, cluster: Cluster) -> None:
    """All clocks, by a time zone or by days."""
    ahead = float(cluster.chance.choice([0.5, 2, 9, 50]))
    for log in _topic(cluster).logs:
        log.batches = [Batch(batch.hour, batch.records, batch.date + ahead) for batch in log.batches]


def written_long_ago(fleet: Fleet, cluster: Cluster) -> None:
    """Records for a while and then none: the last segment is deleted too."""
    ends = NOW - int(cluster.chance.integers(24, 400))
    for log in _topic(cluster).logs:
        log.batches = [batch for batch in log.batches if batch.hour < ends]


def recreated_each_night(fleet: Fleet, cluster: Cluster) -> None:
    """Deleted, recreated, and filled with as many records within the hour."""
    topic = _topic(cluster)
    every = int(cluster.chance.choice([24, 168]))
    hours = range(int(cluster.chance.integers(0, every)), PAST + 1, every)
    for log in topic.logs:
        log.batches = [Batch(hour, 5000, float(hour)) for hour in hours]
        log.made_at = frozenset(hours)


def recreated_once(fleet: Fleet, cluster: Cluster) -> None:
    moment = NOW - int(cluster.chance.integers(2, 200))
    for log in _topic(cluster).logs:
        log.made_at = frozenset([moment])


def kept_for_ever(fleet: Fleet, cluster: Cluster) -> None:
    topic = _topic(cluster)
    topic.configs["retention.ms"] = "-1"
    for log in topic.logs:
        log.stands_from = 0


def old_segments_are_joined(fleet: Fleet, cluster: Cluster) -> None:
    """compact,delete: the cleaner merges old and new records into one segment, kept as long as the newest record."""
    topic = _topic(cluster)
    topic.configs["cleanup.policy"] = "compact,delete"
    for log in topic.logs:
        log.stands_from = 0


def tiered(fleet: Fleet, cluster: Cluster) -> None:
    """The log start offset is that of the remote log, which is deleted separately."""
    topic = _topic(cluster)
    topic.configs["remote.storage.enable"] = "true"
    for log in topic.logs:
        log.stands_from = NOW - 300


def retention_shortened(fleet: Fleet, cluster: Cluster) -> None:
    """Retention was shortened minutes ago, before Kafka's next check; or yesterday."""
    topic = _topic(cluster, 24, 1)
    ago = int(cluster.chance.integers(0, 24))
    topic.configs_before = {"retention.ms": str(240 * 3_600_000)}
    topic.changed_hours_ago = ago
    for log in topic.logs:
        log.longer, log.longer_until = 240, NOW - ago + (ago == 0)


FAULTS = (nothing_is_deleted, one_log_is_not_deleted)
DECOYS = (retention_runs, filled_with_old_records, late_records_dated_old, a_clock_is_years_ahead, all_clocks_are_ahead,
          written_long_ago, recreated_each_night, recreated_once, kept_for_ever, old_segments_are_joined, tiered,
          retention_shortened)  # fmt: skip
