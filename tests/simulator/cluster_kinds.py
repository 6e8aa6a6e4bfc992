"""Faults and decoys of partitions, disks, and the page cache."""

from __future__ import annotations

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator.cluster_fleet import (
    COLD,
    DISK,
    DOWN,
    FILES,
    LEADERLESS,
    UNDER_REPLICATED,
    UNEVEN,
    Fleet,
    a_broker,
    since,
)
from tests.simulator.clusters import GIB, NOW, PAST, Cluster, Topic, drift
from tests.simulator.scenario import EVALUATED

# Replicas


def goes_down(cluster: Cluster, broker: int) -> None:
    """The broker does not respond, and its peers lead its partitions."""
    cluster.answers[broker, NOW] = False
    cluster.unlisted.add(broker)
    cluster.drop_from_isr(broker)
    cluster.update_isr_gauges()


def broker_down(fleet: Fleet, cluster: Cluster) -> None:
    """The process was killed; its heap was as full as is normal before a collection."""
    broker = a_broker(cluster)
    cluster.gauges["heap_used_bytes"][broker] *= cluster.chance.uniform(0.5, 1.8)
    is_lost(fleet, cluster, broker, "down")


def is_lost(fleet: Fleet, cluster: Cluster, broker: int, reason: str, *shortages: str) -> None:
    goes_down(cluster, broker)
    fleet.fault(DOWN, cluster, broker, reason)
    fleet.shortages[cluster.broker(broker)] = {*shortages}
    fleet.fault(UNDER_REPLICATED, cluster, broker, "warning")


STATES = ("stopping", "stopped", "shutting-down", "terminated", None)
"""EC2 reports a terminated instance for about an hour."""


def its_machine_is_gone(fleet: Fleet, cluster: Cluster) -> None:
    """The instance was stopped or terminated, or its host failed."""
    broker = a_broker(cluster)
    cluster.machines[broker] = STATES[int(cluster.chance.integers(0, len(STATES)))]
    is_lost(fleet, cluster, broker, "instance_gone")


def its_machine_is_gone_while_peers_restart(fleet: Fleet, cluster: Cluster) -> None:
    """A rolling restart stops no instances. Under-replicated partitions may be attributed to the restart."""
    broker = a_broker(cluster)
    cluster.machines[broker] = "stopped"
    goes_down(cluster, broker)
    cluster.restart((broker + 1) % cluster.brokers, cluster.chance.uniform(0.1, 0.8))
    fleet.fault(DOWN, cluster, broker, "instance_gone")
    fleet.unclear(UNDER_REPLICATED, cluster, broker)


def its_region_is_not_read(fleet: Fleet, cluster: Cluster) -> None:
    """EC2 of this region was not read in this hour, other regions were: the instance may be running."""
    cluster.region, cluster.is_region_read = "eu-south-1", False
    is_lost(fleet, cluster, a_broker(cluster), "down")


def nears(limit: np.ndarray | float, cluster: Cluster, least: float, most: float) -> np.ndarray:
    """Increase per hour as a share of the limit, which is reached within the evaluated hour."""
    hours = NOW - np.arange(PAST + 1) - cluster.chance.uniform(0, 1)
    return np.asarray(limit * (1 - cluster.chance.uniform(least, most) * hours).clip(0, 1))


def its_disk_filled(fleet: Fleet, cluster: Cluster) -> None:
    """Without space for a segment the only log directory fails, and then the broker shuts down."""
    broker = a_broker(cluster)
    used = cluster.used_bytes[broker]
    used[:] = np.maximum(used, nears(cluster.disk_bytes, cluster, 0.005, 0.04))
    is_lost(fleet, cluster, broker, "disk_full")
    fleet.unclear(UNEVEN, cluster)


def its_files_were_used_up(fleet: Fleet, cluster: Cluster) -> None:
    """No further segment can be opened, so the log directory fails."""
    broker = a_broker(cluster)
    files, limit = cluster.gauges["open_file_descriptors"][broker], cluster.gauges["max_file_descriptors"][broker]
    files[:] = np.maximum(files, nears(limit, cluster, 0.01, 0.08))
    is_lost(fleet, cluster, broker, "file_descriptors_exhausted")


def fill_heap(cluster: Cluster, broker: int, hours: slice) -> None:
    cluster.gauges["heap_used_bytes"][broker, hours] = cluster.chance.uniform(0.965, 1) * 6 * GIB


def spend_credits(cluster: Cluster, broker: int, hours: slice) -> None:
    """Its volume is throttled to its baseline: flushes wait."""
    cluster.balances[broker, hours] = cluster.chance.uniform(0, 0.9)
    for name in ("log_flush_p95_ms", "log_flush_p999_ms", "produce_p99_ms"):
        cluster.gauges[name][broker, hours] *= cluster.chance.uniform(4, 10)


def its_heap_was_full(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    fill_heap(cluster, broker, slice(NOW - int(cluster.chance.integers(1, 20)), NOW))
    is_lost(fleet, cluster, broker, "down", "is_heap_full")


def its_credits_were_spent(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    spend_credits(cluster, broker, slice(NOW - int(cluster.chance.integers(1, 5)), NOW))
    is_lost(fleet, cluster, broker, "down", "is_volume_empty")


def down_after_it_had_been_short(fleet: Fleet, cluster: Cluster) -> None:
    """Short of every resource, until that was fixed some hours ago."""
    broker = a_broker(cluster)
    hours = slice(NOW - int(cluster.chance.integers(12, 24)), NOW - int(cluster.chance.integers(2, 10)))
    fill_heap(cluster, broker, hours)
    spend_credits(cluster, broker, hours)
    cluster.used_bytes[broker, hours] = 0.98 * cluster.disk_bytes
    cluster.gauges["open_file_descriptors"][broker, hours] = 0.98 * cluster.gauges["max_file_descriptors"][broker, NOW]
    is_lost(fleet, cluster, broker, "down")


def down_beside_a_short_peer(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    peer, hours = (broker + 1) % cluster.brokers, slice(NOW - 3, NOW + 1)
    fill_heap(cluster, peer, hours)
    cluster.balances[peer, hours] = 0
    cluster.used_bytes[peer, hours] = 0.98 * cluster.disk_bytes
    cluster.gauges["open_file_descriptors"][peer, hours] = 0.98 * cluster.gauges["max_file_descriptors"][peer, NOW]
    is_lost(fleet, cluster, broker, "down")
    fleet.fault(FILES, cluster, peer, "critical")
    fault_of_disk(fleet, cluster, peer, "critical")


def two_down(fleet: Fleet, cluster: Cluster) -> None:
    """Partitions with replicas on both brokers accept no writes."""
    broker = a_broker(cluster)
    other = (broker + 1) % cluster.brokers
    for each in (broker, other):
        goes_down(cluster, each)
        fleet.fault(DOWN, cluster, each, "down")
        fleet.fault(UNDER_REPLICATED, cluster, each, "critical")


def cannot_keep_up(fleet: Fleet, cluster: Cluster) -> None:
    """The broker is up, and some of its replicas leave the ISR. A finding on the moved leaders is right too."""
    broker = a_broker(cluster)
    count = int(cluster.chance.integers(1, len(cluster.topics)))
    cluster.drop_from_isr(broker, [t for t in cluster.topics if any(broker in r for r in t.replicas)][:count])
    cluster.update_isr_gauges()
    fleet.unclear(UNEVEN, cluster)
    fleet.fault(UNDER_REPLICATED, cluster, broker, "warning")


def metadata_refused(fleet: Fleet, cluster: Cluster) -> None:
    """Metadata is refused: only JMX reports the leaders of under-replicated partitions."""
    goes_down(cluster, a_broker(cluster))
    cluster.returns_metadata = False
    for broker in range(cluster.brokers):
        if cluster.answers[broker, NOW] and cluster.gauges["under_replicated_partitions"][broker, NOW] > 0:
            fleet.fault(UNDER_REPLICATED, cluster, broker, "warning")


def down_during_a_reassignment(fleet: Fleet, cluster: Cluster) -> None:
    reassigned(cluster, 1.0)
    broker = a_broker(cluster)
    goes_down(cluster, broker)
    fleet.fault(DOWN, cluster, broker, "down")
    fleet.fault(UNDER_REPLICATED, cluster, broker, "warning")
    for other in range(cluster.brokers):
        fleet.unclear(UNDER_REPLICATED, cluster, other)


def reassigned(cluster: Cluster, part: float) -> None:
    """A share of a topic's partitions get one more replica, which is not in sync yet."""
    topic = cluster.topics[0]
    for n, replicas in enumerate(topic.replicas):
        free = [broker for broker in range(cluster.brokers) if broker not in replicas]
        if free and n < part * len(topic.replicas):
            replicas.append(free[n % len(free)])
    cluster.update_isr_gauges()


def replicas_added(fleet: Fleet, cluster: Cluster) -> None:
    """A reassignment of some partitions of a topic is in progress."""
    reassigned(cluster, 0.5)


def all_replicas_added(fleet: Fleet, cluster: Cluster) -> None:
    """The same for all partitions of the topic."""
    reassigned(cluster, 1.0)


def just_started(fleet: Fleet, cluster: Cluster) -> None:
    """The broker was restarted minutes ago and catches up."""
    broker = a_broker(cluster)
    cluster.restart(broker, cluster.chance.uniform(0.05, 0.22))
    cluster.drop_from_isr(broker)
    cluster.update_isr_gauges()


def rolls(fleet: Fleet, cluster: Cluster) -> None:
    """A rolling restart: some brokers are back, one is down now."""
    down = int(cluster.chance.integers(1, cluster.brokers))
    for broker in range(down):
        cluster.restart(broker, 0.1 + 0.12 * (down - broker))
    goes_down(cluster, down)


def back_between_samples(fleet: Fleet, cluster: Cluster) -> None:
    """Replicas out of sync when metadata was read, and in sync in a later sample."""
    broker = a_broker(cluster)
    cluster.drop_from_isr(broker, cluster.topics[:1])
    cluster.update_isr_gauges()
    for other in range(cluster.brokers):
        count = float(cluster.gauges["under_replicated_partitions"][other, NOW])
        cluster.own_samples[other, "under_replicated_partitions"] = (0.0, count, count)


# Brokers


def taken_out(fleet: Fleet, cluster: Cluster) -> None:
    """A broker whose replicas were moved away, and which was stopped in this hour."""
    broker = cluster.brokers - 1
    for topic in cluster.topics:
        topic.replicas = [[r for r in replicas if r != broker] or [0] for replicas in topic.replicas]
        topic.configs["min.insync.replicas"] = "1"
        topic.settle()
    cluster.update_partition_gauges()
    cluster.answers[broker, NOW] = False
    cluster.unlisted.add(broker)
    cluster.machines[broker] = "terminated"
    fleet.unclear(UNEVEN, cluster)


def comes_up(fleet: Fleet, cluster: Cluster) -> None:
    """The broker is not listed yet, but its JVM responds: it recovers its logs."""
    broker = a_broker(cluster)
    cluster.restart(broker, cluster.chance.uniform(0.02, 0.2))
    cluster.drop_from_isr(broker)
    cluster.unlisted.add(broker)
    cluster.update_isr_gauges()


def out_of_reach(fleet: Fleet, cluster: Cluster) -> None:
    """Our own network fails: no JVM of the cluster responds, and no broker returns metadata."""
    cluster.answers[:, NOW] = False
    cluster.returns_metadata = False


def most_out_of_reach(fleet: Fleet, cluster: Cluster) -> None:
    """Most JVMs do not respond; the cluster lists all brokers."""
    cluster.answers[1:, NOW] = False


# Leaders


def single_replica_down(fleet: Fleet, cluster: Cluster) -> None:
    """A topic with one replica, and the broker of the replica is down."""
    topic, broker = cluster.topics[0], a_broker(cluster)
    topic.replicas = [[replicas[0]] for replicas in topic.replicas]
    topic.configs["min.insync.replicas"] = "1"
    topic.settle()
    cluster.update_partition_gauges()
    goes_down(cluster, broker)
    for n, leader in enumerate(topic.leaders):
        if leader is None:
            topic.isr[n] = list(topic.replicas[n])
    fleet.fault(DOWN, cluster, broker, "down")
    fleet.fault(LEADERLESS, cluster, None, "critical")
    fleet.fault(UNDER_REPLICATED, cluster, broker, "warning")


def last_in_sync_down(fleet: Fleet, cluster: Cluster) -> None:
    """Followers were out of sync, then the leader died."""
    topic, broker = cluster.topics[0], cluster.topics[0].replicas[0][0]
    for n, replicas in enumerate(topic.replicas):
        if replicas[0] == broker:
            topic.isr[n], topic.leaders[n] = [broker], None
    for other in cluster.topics[1:]:
        cluster.drop_from_isr(broker, [other])
    cluster.answers[broker, NOW] = False
    cluster.unlisted.add(broker)
    cluster.update_isr_gauges()
    fleet.fault(DOWN, cluster, broker, "down")
    fleet.fault(LEADERLESS, cluster, None, "critical")
    for other_broker in range(cluster.brokers):
        fleet.unclear(UNDER_REPLICATED, cluster, other_broker)


def a_listener_is_lost(fleet: Fleet, cluster: Cluster) -> None:
    """A broker restarted without the listener that the product uses, so metadata no longer lists it."""
    broker = a_broker(cluster)
    cluster.restart(broker, cluster.chance.uniform(0.3, 0.9))
    for topic in cluster.topics:
        topic.hidden = {n for n, leader in enumerate(topic.leaders) if leader == broker}
    cluster.unlisted.add(broker)
    fleet.fault(LEADERLESS, cluster, None, "critical")


def elected_uncleanly(fleet: Fleet, cluster: Cluster) -> None:
    """Followers were out of sync, the leader died, and an unclean election followed. Records are lost."""
    topic = cluster.topics[0]
    chosen = [n for n, replicas in enumerate(topic.replicas) if len(replicas) > 1]
    for n in chosen:
        topic.out_of_sync_before[n] = topic.replicas[n][1:]
        topic.leaders[n] = topic.replicas[n][1]
    cluster.unclean_elections = (int(cluster.chance.integers(0, 9)), len(chosen))
    cluster.update_isr_gauges()
    fleet.unclear(UNEVEN, cluster)
    fleet.fault(LEADERLESS, cluster, None, "warning")


def elected_uncleanly_before(fleet: Fleet, cluster: Cluster) -> None:
    """An unclean election days ago. A replica that was out of sync an hour ago caught up before it became leader."""
    topic = cluster.topics[0]
    for n, replicas in enumerate(topic.replicas):
        topic.out_of_sync_before[n] = replicas[:1]
    cluster.unclean_elections = (int(cluster.chance.integers(1, 99)), 0)


def topic_just_made(fleet: Fleet, cluster: Cluster) -> None:
    """Leaders are not elected yet when metadata is read."""
    first = cluster.topics[0]
    made = Topic("new-topic", 0.0, [list(replicas) for replicas in first.replicas], begun=EVALUATED + 2 * HOUR)
    count = int(cluster.chance.integers(1, len(made.replicas) + 1))
    for n in range(count):
        made.leaders[n], made.isr[n] = None, []
    cluster.topics.append(made)


# Disks


def fault_of_disk(fleet: Fleet, cluster: Cluster, broker: int, *severities: str) -> None:
    """The peers of the broker hold less, so a finding on imbalance is right too."""
    fleet.fault(DISK, cluster, broker, *severities)
    fleet.unclear(UNEVEN, cluster)


def fills(cluster: Cluster, broker: int, hours: int, left: float) -> None:
    """Usage has grown for so many hours and reaches 100 % in so many more. Its daily change by retention is so small
    that the disk was never full before."""
    used = cluster.used_bytes[broker]
    now = used[NOW]
    grown = (cluster.disk_bytes - now) / (hours + left) * (np.arange(PAST + 1) - NOW + hours).clip(0)
    more = used > now
    room = (0.999 * cluster.disk_bytes - now - grown)[more] / (used[more] - now)
    used[:] = now + room.min(initial=1).clip(0) * (used - now) + grown


def producer_grew(fleet: Fleet, cluster: Cluster) -> None:
    """With a retention of weeks: the disk is full in about two days."""
    broker = a_broker(cluster)
    fills(cluster, broker, int(cluster.chance.integers(5 * 24, 20 * 24)), cluster.chance.uniform(20, 55))
    fault_of_disk(fleet, cluster, broker, "warning", "critical")


def producer_grew_much(fleet: Fleet, cluster: Cluster) -> None:
    """The same, and the disk is full tonight."""
    broker = a_broker(cluster)
    fills(cluster, broker, int(cluster.chance.integers(5 * 24, 12 * 24)), cluster.chance.uniform(3, 8))
    fault_of_disk(fleet, cluster, broker, "critical")


def producer_grew_yesterday(fleet: Fleet, cluster: Cluster) -> None:
    """With little free space the past week is irrelevant: the disk is full within hours of the finding, or never."""
    broker = a_broker(cluster)
    hours = int(cluster.chance.integers(30, 60))
    used = cluster.used_bytes[broker]
    top = cluster.chance.uniform(0.87, 0.94) * cluster.disk_bytes
    used[NOW - hours :] += (top - used[NOW]) / hours * np.arange(hours + 1)
    fault_of_disk(fleet, cluster, broker, "warning", "critical")


def nearly_full(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    used = cluster.used_bytes[broker]
    used *= cluster.chance.uniform(0.96, 0.99) * cluster.disk_bytes / used[NOW]
    used[:] = used.clip(0, cluster.disk_bytes * 0.995)
    fault_of_disk(fleet, cluster, broker, "critical")


def slowly_full(fleet: Fleet, cluster: Cluster) -> None:
    """Above 85 %, and a little more each day."""
    broker = a_broker(cluster)
    used, hours = cluster.used_bytes[broker], np.arange(PAST + 1)
    per_day = cluster.chance.uniform(0.008, 0.012) * cluster.disk_bytes
    top = cluster.chance.uniform(0.88, 0.93) * cluster.disk_bytes
    noise = 1 + 0.0005 * cluster.chance.normal(0, 1, PAST + 1)
    used[:] = (top - (NOW - hours) * per_day / 24) * noise
    fault_of_disk(fleet, cluster, broker, "warning")


def full_but_steady(fleet: Fleet, cluster: Cluster) -> None:
    """At 88 % for weeks: retention deletes as much as comes in, more by day and on weekdays."""
    chance, hours = cluster.chance, np.arange(PAST + 1) + int(cluster.chance.integers(0, 168))
    rhythm = 1 + chance.uniform(0, 0.03) * np.sin(2 * np.pi * hours / 24)
    rhythm *= 1 + chance.uniform(0, 0.04) * np.sin(2 * np.pi * hours / 168)
    for broker in range(cluster.brokers):
        held = rhythm * (1 + drift(chance, PAST + 1, 0.01))
        cluster.used_bytes[broker] = chance.uniform(0.86, 0.9) * cluster.disk_bytes * held / held.max()


def saw_teeth(fleet: Fleet, cluster: Cluster) -> None:
    """Compaction, or segments of a day and more: usage rises for days and drops at once."""
    period = int(cluster.chance.integers(20, 80))
    tooth = ((np.arange(PAST + 1) + cluster.chance.integers(0, period)) % period) / period
    height = cluster.chance.uniform(0.1, 0.25) * cluster.disk_bytes
    top = cluster.chance.uniform(0.7, 0.9)
    for broker in range(cluster.brokers):
        used = cluster.used_bytes[broker]
        used[:] = used / used.max() * (top * cluster.disk_bytes - height) + height * tooth


def moved_in(fleet: Fleet, cluster: Cluster) -> None:
    """A finished reassignment filled a fifth of the disk. A finding on imbalance is right too."""
    fleet.unclear(UNEVEN, cluster)
    broker, hours = a_broker(cluster), int(cluster.chance.integers(4, 16))
    ago = int(cluster.chance.integers(0, 40))
    ends = NOW + 1 - ago
    used = cluster.used_bytes[broker]
    more = min(0.2, 0.8 - float(used.max() / cluster.disk_bytes)) * cluster.disk_bytes
    used[ends - hours : ends] += np.linspace(0, more, hours)
    used[ends:] += more


def young_disk(fleet: Fleet, cluster: Cluster) -> None:
    """Two days old: usage rises until retention takes effect."""
    cluster.disk_since = NOW - int(cluster.chance.integers(20, 60))
    age = np.arange(PAST + 1) - cluster.disk_since
    retention = cluster.chance.uniform(70, 170)
    cluster.used_bytes *= (age / retention).clip(0.01, 1)


def rises_on_weekdays(fleet: Fleet, cluster: Cluster) -> None:
    """Retention of three days: usage is highest on Fridays and lowest on Mondays."""
    phase = int(cluster.chance.integers(0, 168))
    week = np.arange(PAST + 1 + 72) + phase
    load = np.where(week // 24 % 7 < 5, 1.0, cluster.chance.uniform(0.2, 0.6))
    held = np.convolve(load, np.ones(72) / 72, "valid")[: PAST + 1]
    for broker in range(cluster.brokers):
        cluster.used_bytes[broker] = cluster.chance.uniform(0.5, 0.78) * cluster.disk_bytes * held / held.max()


def disk_sizes_not_reported(fleet: Fleet, cluster: Cluster) -> None:
    """Before Kafka 3.3 brokers do not report the sizes of their disks."""
    cluster.reports_disk_sizes = False


def traffic_rose(fleet: Fleet, cluster: Cluster) -> None:
    """Traffic rose by half a day ago, permanently; retention is two days, and the space suffices."""
    hours = since(cluster, 20, 40)
    rises = np.linspace(1, 1.5, 48)
    for broker in range(cluster.brokers):
        used = cluster.used_bytes[broker]
        used *= min(1.0, 0.5 * cluster.disk_bytes / used.max())
        used[hours] *= rises[: PAST + 1 - hours.start]


# Page cache


def read_cold(cluster: Cluster, hours: np.ndarray, ratio: float) -> None:
    """Adds disk reads in these hours: this share of the bytes sent."""
    sent = (cluster.rates["bytes_out_total"] + cluster.rates["replication_bytes_out_total"]) * 3600
    noise = cluster.chance.lognormal(0, 0.2, sent.shape)
    cluster.read_bytes[:, hours] += (ratio * sent * noise)[:, hours]


def hours_of(days: int, first: int, count: int) -> np.ndarray:
    """Hour indices: on each of the last `days` days `count` hours from `first` hours before its end."""
    return np.concatenate([NOW - 24 * day - first + np.arange(count) for day in range(days)])


def page_cache_too_small(fleet: Fleet, cluster: Cluster) -> None:
    """Consumers are minutes behind, and the page cache holds less than that."""
    days = int(cluster.chance.choice([4, 6, 10]))
    read_cold(cluster, np.arange(NOW - days * 24, NOW + 1), cluster.chance.uniform(0.14, 0.5))
    fleet.fault(COLD, cluster, None, "info")


def page_cache_too_small_and_disks_busy(fleet: Fleet, cluster: Cluster) -> None:
    read_cold(cluster, np.arange(NOW - 200, NOW + 1), cluster.chance.uniform(0.2, 0.7))
    cluster.busy_ratio = cluster.chance.uniform(0.66, 0.95)
    fleet.fault(COLD, cluster, None, "warning")


def page_cache_too_small_by_day(fleet: Fleet, cluster: Cluster) -> None:
    """Only at the daily peak: a third of the bytes of the day."""
    read_cold(cluster, hours_of(10, 14, 8), cluster.chance.uniform(0.5, 0.9))
    fleet.fault(COLD, cluster, None, "info")


def page_cache_too_small_during_a_batch(fleet: Fleet, cluster: Cluster) -> None:
    """A known group reads once a night, and is hours behind for the rest of the day."""
    read_cold(cluster, np.arange(NOW - 200, NOW + 1), cluster.chance.uniform(0.2, 0.5))
    backfill_each_night(fleet, cluster)
    fleet.fault(COLD, cluster, None, "info")


def page_cache_too_small_by_node_exporter(fleet: Fleet, cluster: Cluster) -> None:
    """Disks without EBS metrics, on hosts with node exporter."""
    cluster.has_volumes, cluster.node_exporter_reports_reads = False, True
    read_cold(cluster, np.arange(NOW - 200, NOW + 1), cluster.chance.uniform(0.2, 0.5))
    fleet.fault(COLD, cluster, None, "info")


def backfill_each_night(fleet: Fleet, cluster: Cluster) -> None:
    """A group resets its offsets by a day and catches up within hours; it ends the last one without lag."""
    first, count = int(cluster.chance.integers(6, 20)), int(cluster.chance.integers(2, 5))
    for day in range(9):
        hours = NOW - 24 * day - first + np.arange(count)
        read_cold(cluster, hours, cluster.chance.uniform(1, 3))
        cluster.lag_seconds[hours] = np.linspace(86_400, 0, count)
        cluster.rewinds[hours[0]] = True


def batch_each_night(fleet: Fleet, cluster: Cluster) -> None:
    """A group that runs once per night: it is hours behind at the end of any other hour."""
    first = int(cluster.chance.integers(6, 20))
    for day in range(9):
        end = NOW - 24 * day - first
        read_cold(cluster, np.array([end]), cluster.chance.uniform(2, 6))
        cluster.lag_seconds[end : end + 24] = 3600.0 * np.arange(len(cluster.lag_seconds[end : end + 24]))


def starts_read(fleet: Fleet, cluster: Cluster) -> None:
    """Each broker was restarted this week, on different days, and read its logs."""
    for broker in range(cluster.brokers):
        ago = 20 + broker * 26
        cluster.restart(broker, ago + 0.6)
        read_cold(cluster, np.array([NOW - ago]), 5)


def restores_read(fleet: Fleet, cluster: Cluster) -> None:
    """An application loses its stores on some days, and restores them within two hours."""
    for day in cluster.chance.choice(7, 5, replace=False):
        hour = NOW - 24 * int(day) - 5
        read_cold(cluster, np.array([hour]), cluster.chance.uniform(1, 3))
        read_cold(cluster, np.array([hour + 1]), cluster.chance.uniform(0.2, 1))
        cluster.restores[hour] = 1e7


def replicas_read(fleet: Fleet, cluster: Cluster) -> None:
    """On some days replicas of a restarted broker catch up."""
    for day in range(1, 6):
        hours = NOW - 24 * day - 9 + np.arange(3)
        read_cold(cluster, hours, cluster.chance.uniform(0.5, 2))
        cluster.gauges["under_replicated_partitions"][:, hours] = 5


def moves_read(fleet: Fleet, cluster: Cluster) -> None:
    """Reassignments for some hours of some days: leaders read the partitions from disk."""
    for day in range(1, 6):
        hours = NOW - 24 * day - 9 + np.arange(int(cluster.chance.integers(3, 7)))
        read_cold(cluster, hours, cluster.chance.uniform(0.8, 2))
        cluster.gauges["reassigning_partitions"][a_broker(cluster), hours] = cluster.chance.integers(1, 40)


def rogues_read(fleet: Fleet, cluster: Cluster) -> None:
    """A rogue consumer, reported on some days. Its reads end within the last hour in which it reads."""
    for day in range(1, 5):
        hours = NOW - 24 * day - 12 + np.arange(int(cluster.chance.integers(4, 9)))
        read_cold(cluster, hours, cluster.chance.uniform(0.8, 3))
        read_cold(cluster, hours[-1:] + 1, cluster.chance.uniform(0, 0.8))
        cluster.rogues[hours] = True


def little_is_read_by_node_exporter(fleet: Fleet, cluster: Cluster) -> None:
    """The same on disks that only node exporter reports."""
    cluster.has_volumes, cluster.node_exporter_reports_reads = False, True
    little_is_read(fleet, cluster)


def two_cold_days(fleet: Fleet, cluster: Cluster) -> None:
    """A repair: two days of cold reads."""
    for day in cluster.chance.choice(6, 2, replace=False):
        read_cold(cluster, NOW - 24 * int(day) - 4 - np.arange(12), cluster.chance.uniform(0.5, 2))


def little_is_read(fleet: Fleet, cluster: Cluster) -> None:
    cluster.read_bytes[:] = 0
    read_cold(cluster, np.arange(PAST + 1), cluster.chance.uniform(0.05, 0.08))


def disks_of_the_machine(fleet: Fleet, cluster: Cluster) -> None:
    """NVMe instance storage without EBS metrics."""
    cluster.has_volumes = False
    read_cold(cluster, np.arange(PAST + 1), 0.5)
