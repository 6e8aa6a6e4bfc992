"""Faults and decoys of brokers: open files, flushes, load, partitions, and controllers."""

from __future__ import annotations

import numpy as np

from tests.simulator.cluster_fleet import (
    CONTROLLERS,
    FILES,
    MANY,
    REFUSED,
    SLOW,
    UNCLEANED,
    UNEVEN,
    Fleet,
    a_broker,
    few_requests,
    since,
)
from tests.simulator.clusters import MIB, NOW, PAST, Cluster, Controller

# Open files


def files_to(cluster: Cluster, broker: int, ratio: float, hours: slice) -> None:
    """Raises open files to this share of the limit in the evaluated hour, by a step at the first of the hours."""
    files, limit = cluster.gauges["open_file_descriptors"], cluster.gauges["max_file_descriptors"]
    files[broker, hours] += ratio * limit[broker, NOW] - files[broker, NOW]


def files_high(fleet: Fleet, cluster: Cluster) -> None:
    """Topics were added."""
    broker = a_broker(cluster)
    files_to(cluster, broker, cluster.chance.uniform(0.77, 0.88), since(cluster, 6, 400))
    fleet.fault(FILES, cluster, broker, "warning")


def files_nearly_full(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    files_to(cluster, broker, cluster.chance.uniform(0.92, 0.99), since(cluster, 1, 48))
    fleet.fault(FILES, cluster, broker, "critical")


def files_leak(fleet: Fleet, cluster: Cluster) -> None:
    """A client leaks connections: no file descriptor is left within a day."""
    broker, days = a_broker(cluster), int(cluster.chance.integers(8, 14))
    files, limit = cluster.gauges["open_file_descriptors"], cluster.gauges["max_file_descriptors"]
    left = cluster.chance.uniform(4, 17)
    start = files[broker, NOW]
    slope = (limit[broker, NOW] - start) / (days * 24 + left)
    files[broker, NOW - days * 24 :] += slope * np.arange(days * 24 + 1)
    fleet.fault(FILES, cluster, broker, "critical")


def files_at_a_start(fleet: Fleet, cluster: Cluster) -> None:
    """All clients reconnect at once, and every segment is opened."""
    broker = a_broker(cluster)
    cluster.restart(broker, cluster.chance.uniform(0.1, 0.9))
    files_to(cluster, broker, cluster.chance.uniform(0.78, 0.97), slice(NOW, None))


def files_of_a_million(fleet: Fleet, cluster: Cluster) -> None:
    """A very high limit, and many open files."""
    cluster.gauges["max_file_descriptors"][:] = 1_048_576.0
    for broker in range(cluster.brokers):
        files_to(cluster, broker, cluster.chance.uniform(0.2, 0.45), slice(None))


def files_without_limit(fleet: Fleet, cluster: Cluster) -> None:
    """JMX exposes no limit for one broker, and an unlimited one for another."""
    cluster.gauges["max_file_descriptors"][0] = np.nan
    cluster.gauges["max_file_descriptors"][1] = 2.0**63 - 1


def files_by_day(fleet: Fleet, cluster: Cluster) -> None:
    """Clients connect each morning and disconnect each night."""
    swing = cluster.chance.uniform(0.1, 0.25) * cluster.gauges["max_file_descriptors"]
    rhythm = 0.5 + 0.5 * np.sin(2 * np.pi * (np.arange(PAST + 1) + cluster.chance.integers(0, 24)) / 24)
    cluster.gauges["open_file_descriptors"] += swing * rhythm


def files_by_a_step(fleet: Fleet, cluster: Cluster) -> None:
    """New topics were added yesterday."""
    broker = a_broker(cluster)
    files_to(cluster, broker, cluster.chance.uniform(0.5, 0.7), since(cluster, 3, 22))


def files_by_saw_teeth(fleet: Fleet, cluster: Cluster) -> None:
    """Segments roll all day and are deleted at once."""
    period = int(cluster.chance.integers(20, 72))
    tooth = ((np.arange(PAST + 1) + cluster.chance.integers(0, period)) % period) / period
    cluster.gauges["open_file_descriptors"] += 0.25 * cluster.gauges["max_file_descriptors"] * tooth


MAPS = 65_530
"""Linux' default of vm.max_map_count."""


def segments_to(cluster: Cluster, broker: int, maps: float) -> None:
    """Small segments of many partitions: this share of vm.max_map_count, with a sufficient limit of open files."""
    cluster.gauges["log_segments"][broker] = maps * MAPS / 2
    cluster.gauges["max_file_descriptors"][:] = 1_048_576.0


def maps_high(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    segments_to(cluster, broker, cluster.chance.uniform(0.78, 0.87))
    fleet.fault(FILES, cluster, broker, "warning")


def maps_nearly_gone(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    segments_to(cluster, broker, cluster.chance.uniform(0.92, 1.4))
    fleet.fault(FILES, cluster, broker, "critical")


def many_segments(fleet: Fleet, cluster: Cluster) -> None:
    """On all brokers, below their limits."""
    for broker in range(cluster.brokers):
        segments_to(cluster, broker, cluster.chance.uniform(0.5, 0.72))


# Flushes


def slow(cluster: Cluster, broker: int, hours: slice, times: float, *, tail: float = 1.0, floor: float = 0.0) -> None:
    """Multiplies flush times, by at least `floor` ms; the tail increases more."""
    p95 = cluster.gauges["log_flush_p95_ms"]
    times = max(times, 1 + floor / float(np.median(p95[broker])))
    p95[broker, hours] *= times
    cluster.gauges["log_flush_p999_ms"][broker, hours] *= times * tail
    cluster.rates["log_flush_ms_total"][broker, hours] *= times


def wait(cluster: Cluster, broker: int, hours: slice, times: float) -> None:
    """Producers wait for acknowledgments."""
    cluster.gauges["produce_p99_ms"][broker, hours] *= times
    cluster.rates["produce_ms"][broker, hours] *= times


def flushes_slowed(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    slow(cluster, broker, since(cluster), cluster.chance.uniform(2.3, 5), floor=16)
    fleet.fault(SLOW, cluster, broker, "warning")


def flushes_creep(fleet: Fleet, cluster: Cluster) -> None:
    """From 10 to 26 ms in 16 hours by small steps; a calm hour is a seventh lower."""
    broker, times = a_broker(cluster), cluster.chance.uniform(2.6, 3.4)
    usual = float(np.median(cluster.gauges["log_flush_p95_ms"][broker]))
    for n in range(16):
        slow(cluster, broker, slice(PAST - n, PAST - n + 1), 1 + (max(times, 1 + 16 / usual) - 1) * (16 - n) / 16)
    fleet.fault(SLOW, cluster, broker, "warning")


def flushes_breathe(fleet: Fleet, cluster: Cluster) -> None:
    """A third more by day than by night: the increase each morning is part of the baseline."""
    hours = np.arange(PAST + 1)
    for broker in range(cluster.brokers):
        swing = 1 + 0.17 * (1 + np.sin(2 * np.pi * (hours - NOW + 6) / 24))
        cluster.gauges["log_flush_p95_ms"][broker] *= swing


def producers_wait(fleet: Fleet, cluster: Cluster) -> None:
    broker, hours = a_broker(cluster), since(cluster)
    slow(cluster, broker, hours, cluster.chance.uniform(2.6, 5), floor=22)
    wait(cluster, broker, hours, cluster.chance.uniform(3, 6))
    fleet.fault(SLOW, cluster, broker, "critical")


def slow_tail(fleet: Fleet, cluster: Cluster) -> None:
    """One flush in some hundred meets a full queue: visible in the mean, not in the 95th percentile."""
    broker, hours = a_broker(cluster), since(cluster, 2, 12)
    cluster.gauges["log_flush_p999_ms"][broker, hours] *= cluster.chance.uniform(9, 20)
    cluster.rates["log_flush_ms_total"][broker, hours] *= cluster.chance.uniform(6, 9)
    fleet.fault(SLOW, cluster, broker, "warning")


def slow_since_ever(fleet: Fleet, cluster: Cluster) -> None:
    """Its disk is of another type: the broker has always been slower than its peers."""
    broker = a_broker(cluster)
    slow(cluster, broker, slice(None), cluster.chance.uniform(6, 9))
    fleet.fault(SLOW, cluster, broker, "warning")


def read_little(cluster: Cluster) -> None:
    """All disks together read at most 0.5 MiB/s: background reads."""
    cluster.read_bytes *= min(0.03, 0.5 * MIB * 3600 / cluster.read_bytes.sum(axis=0).max())


def hardly_any_traffic(fleet: Fleet, cluster: Cluster) -> None:
    """A test cluster: little traffic, and now and then a slow flush."""
    for rate in cluster.rates.values():
        rate *= cluster.chance.uniform(0.0005, 0.004)
    read_little(cluster)
    slow(cluster, a_broker(cluster), since(cluster), cluster.chance.uniform(2, 8))


def flush_settings_changed(fleet: Fleet, cluster: Cluster) -> None:
    """On all brokers, in a finished rolling restart."""
    hours, times = since(cluster, 4, 48), cluster.chance.uniform(2, 3)
    for broker in range(cluster.brokers):
        slow(cluster, broker, hours, times)
        cluster.restart(broker, PAST + 1 - hours.start - 0.2 * broker + 0.9)


def slow_after_a_start(fleet: Fleet, cluster: Cluster) -> None:
    """The broker restarted and catches up."""
    broker = a_broker(cluster)
    cluster.restart(broker, cluster.chance.uniform(0.1, 0.95))
    slow(cluster, broker, slice(NOW, None), cluster.chance.uniform(2, 4))
    cluster.rates["replication_bytes_in_total"][broker, NOW] *= cluster.chance.uniform(2, 5)


def slow_each_week(fleet: Fleet, cluster: Cluster) -> None:
    """A weekly batch in this hour, on the whole cluster."""
    times = cluster.chance.uniform(2, 4)
    for weeks in range(5):
        hours = slice(max(NOW - weeks * 168, 0), NOW - weeks * 168 + 1)
        for broker in range(cluster.brokers):
            slow(cluster, broker, hours, times)
            for name in ("bytes_in_total", "bytes_out_total", "replication_bytes_in_total", "messages_in_total"):
                cluster.rates[name][broker, hours] *= times


def slow_each_week_on_one(fleet: Fleet, cluster: Cluster) -> None:
    """The same, on a topic led by one broker."""
    broker, times = a_broker(cluster), cluster.chance.uniform(2, 3)
    for weeks in range(5):
        slow(cluster, broker, slice(max(NOW - weeks * 168, 0), NOW - weeks * 168 + 1), times)


def one_slow_sample(fleet: Fleet, cluster: Cluster) -> None:
    """A stall that the histogram shows in the last sample only."""
    broker = a_broker(cluster)
    value = float(cluster.gauges["log_flush_p95_ms"][broker, NOW])
    cluster.own_samples[broker, "log_flush_p95_ms"] = (value, value, min(value * 5, 90.0))


def flushes_over_the_limit(fleet: Fleet, cluster: Cluster) -> None:
    """On all brokers for the whole history: no broker is slower than its baseline."""
    worst = cluster.gauges["log_flush_p95_ms"][:, NOW].min()
    times = 125 / float(worst) * cluster.chance.uniform(1, 3)
    for broker in range(cluster.brokers):
        slow(cluster, broker, slice(None), times)


def flushes_below_the_limit(fleet: Fleet, cluster: Cluster) -> None:
    worst = cluster.gauges["log_flush_p95_ms"][:, NOW].max()
    for broker in range(cluster.brokers):
        slow(cluster, broker, slice(None), 85 / float(worst))


def flushes_over_a_limit_of_its_own(fleet: Fleet, cluster: Cluster) -> None:
    """The same topics as elsewhere; the owners of this cluster have a lower limit."""
    limit = fleet.flush_limits[cluster.name] = 30.0
    _flushes_to(cluster, limit * cluster.chance.uniform(1.1, 2.5))


def flushes_below_a_limit_of_its_own(fleet: Fleet, cluster: Cluster) -> None:
    """Mail, for which latency is accepted."""
    limit = fleet.flush_limits[cluster.name] = 400.0
    _flushes_to(cluster, limit * cluster.chance.uniform(0.4, 0.6))


def _flushes_to(cluster: Cluster, ms: float) -> None:
    """On all brokers for the whole history: no broker is slower than its baseline."""
    times = ms / float(cluster.gauges["log_flush_p95_ms"][:, NOW].min())
    for broker in range(cluster.brokers):
        slow(cluster, broker, slice(None), times)


def few_flushes(fleet: Fleet, cluster: Cluster) -> None:
    """Kafka leaves flushing to the OS: only rolled segments are flushed, some twenty files per hour."""
    for name in ("log_flushes_total", "log_flush_ms_total"):
        cluster.rates[name] *= 20 / 3600 / cluster.rates["log_flushes_total"].max()
    slow(cluster, a_broker(cluster), since(cluster), 8)


# Work


def take_over(cluster: Cluster, broker: int, hours: slice, part: float, names: tuple[str, ...]) -> None:
    """Moves this share of each peer's load to the broker."""
    peers = [b for b in range(cluster.brokers) if b != broker]
    for name in names:
        rates = cluster.rates.get(name, cluster.gauges.get(name))
        assert rates is not None
        moved = rates[peers, hours] * part
        rates[peers, hours] -= moved
        rates[broker, hours] += moved.sum(axis=0)


LED = ("bytes_in_total", "bytes_out_total", "messages_in_total", "produce_requests", "produce_ms")


def leaders_left_behind(fleet: Fleet, cluster: Cluster) -> None:
    """Leaders did not return after a restart: preferred leader election is disabled."""
    broker, hours = a_broker(cluster), since(cluster, 4, 40)
    cluster.restart(broker, PAST + 1 - hours.start)
    peers = [b for b in range(cluster.brokers) if b != broker]
    for name in (*LED, "leaders"):
        rates = cluster.rates.get(name, cluster.gauges.get(name))
        assert rates is not None
        moved = rates[broker, hours] * 0.97
        rates[broker, hours] -= moved
        rates[peers, hours] += moved / len(peers)
    cluster.gauges["leaders"] = np.round(cluster.gauges["leaders"])
    fleet.fault(UNEVEN, cluster, None, "warning")


def hot_topic(fleet: Fleet, cluster: Cluster) -> None:
    """A topic with one partition gets more traffic than all others on its broker."""
    broker, hours, times = a_broker(cluster), since(cluster, 3, 40), cluster.chance.uniform(2.3, 5)
    for name in LED:
        rate = cluster.rates[name]
        rate[broker, hours] *= times
    fleet.fault(UNEVEN, cluster, None, "warning")


def uneven_since_ever(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    take_over(cluster, broker, slice(None), cluster.chance.uniform(0.35, 0.6), LED)
    fleet.fault(UNEVEN, cluster, None, "info")


def uneven_and_near_a_limit(fleet: Fleet, cluster: Cluster) -> None:
    """One broker has most of the load, and its CPUs are saturated."""
    few_requests(cluster)
    broker = a_broker(cluster)
    take_over(cluster, broker, slice(None), cluster.chance.uniform(0.4, 0.6), LED)
    cpu = cluster.rates["cpu_seconds_total"]
    cpu[broker] *= 8 * cluster.chance.uniform(0.84, 0.95) / cpu[broker, NOW]
    cpu[broker] = cpu[broker].clip(0, 8 * 0.99)
    fleet.fault(UNEVEN, cluster, None, "warning")


def leaders_return(fleet: Fleet, cluster: Cluster) -> None:
    """A broker was restarted within the hour, and leads its partitions again."""
    broker, away = a_broker(cluster), cluster.chance.uniform(0.2, 0.5)
    cluster.restart(broker, cluster.chance.uniform(0.3, 0.95))
    for name in LED:
        rate = cluster.rates[name]
        moved = rate[broker, NOW] * away
        rate[broker, NOW] -= moved
        rate[[b for b in range(cluster.brokers) if b != broker], NOW] += moved / (cluster.brokers - 1)


def leaders_returned(fleet: Fleet, cluster: Cluster) -> None:
    """The same at the end of the previous hour: its peers led in the first minutes of this hour."""
    broker, away = a_broker(cluster), 5 / 60
    cluster.restart(broker, cluster.chance.uniform(1.05, 1.2))
    for name in LED:
        rate = cluster.rates[name]
        moved = rate[broker, NOW] * away
        rate[broker, NOW] -= moved
        rate[[b for b in range(cluster.brokers) if b != broker], NOW] += moved / (cluster.brokers - 1)


def unequal_machines(fleet: Fleet, cluster: Cluster) -> None:
    """Half of the brokers have twice the CPUs, and twice the load."""
    for broker in range(0, cluster.brokers, 2):
        cluster.vcpus[broker] *= 2
        for name in (*LED, "cpu_seconds_total", "leaders", "partitions"):
            rates = cluster.rates.get(name, cluster.gauges.get(name))
            assert rates is not None
            rates[broker] *= 2
        used = cluster.used_bytes[broker]
        used *= min(1.6, 0.8 * cluster.disk_bytes / used.max())  # and free space on their disks


def controllers_beside(fleet: Fleet, cluster: Cluster) -> None:
    """Three dedicated controllers."""
    cluster.gauges["active_controllers"][:] = np.nan
    cluster.controllers = [Controller((float(n == 1),) * 3) for n in range(3)]


def even_surge(fleet: Fleet, cluster: Cluster) -> None:
    hours, times = since(cluster, 1, 20), cluster.chance.uniform(2, 4)
    for name in (*LED, "replication_bytes_in_total", "replication_bytes_out_total"):
        cluster.rates[name][:, hours] *= times
    for broker in range(cluster.brokers):
        slow(cluster, broker, hours, cluster.chance.uniform(1.3, 1.5))


def two_brokers(fleet: Fleet, cluster: Cluster) -> None:
    take_over(cluster, 0, since(cluster), cluster.chance.uniform(0.4, 0.8), LED)


def uneven_but_idle(fleet: Fleet, cluster: Cluster) -> None:
    for rate in cluster.rates.values():
        rate *= 0.15 * MIB / cluster.rates["bytes_in_total"].max()
    read_little(cluster)
    take_over(cluster, a_broker(cluster), since(cluster), 0.6, LED)


# Partitions


def hold(cluster: Cluster, partitions: float) -> None:
    """Raises the partitions per broker to this number: topics get more partitions."""
    now = float(cluster.gauges["partitions"].mean())
    times = max(round(partitions / now), 1)
    for topic in cluster.topics:
        topic.replicas = topic.replicas * times
        topic.settle()
    # Remainder of the rounding.
    extra = int((partitions - now * times) * cluster.brokers / len(cluster.topics[0].replicas[0]))
    topic = cluster.topics[0]
    for n in range(max(extra, 0)):
        topic.replicas.append([(n + r) % cluster.brokers for r in range(len(topic.replicas[0]))])
    topic.settle()
    cluster.update_partition_gauges()


def many_and_calm(fleet: Fleet, cluster: Cluster) -> None:
    hold(cluster, cluster.chance.uniform(4_300, 7_000))
    fleet.fault(MANY, cluster, None, "info")


def many_and_busy(fleet: Fleet, cluster: Cluster) -> None:
    hold(cluster, cluster.chance.uniform(4_300, 6_000))
    few_requests(cluster)
    cluster.gauges["request_handler_idle_ratio"][a_broker(cluster), since(cluster)] = cluster.chance.uniform(0.05, 0.25)
    fleet.fault(MANY, cluster, None, "warning")


def many_and_files(fleet: Fleet, cluster: Cluster) -> None:
    hold(cluster, cluster.chance.uniform(4_300, 6_000))
    for broker in range(cluster.brokers):
        files_to(cluster, broker, cluster.chance.uniform(0.55, 0.7), slice(None))
    fleet.fault(MANY, cluster, None, "warning")


def many_and_more(fleet: Fleet, cluster: Cluster) -> None:
    hold(cluster, cluster.chance.uniform(4_300, 6_000))
    cluster.partitions_before = cluster.chance.uniform(0.5, 0.78)
    fleet.fault(MANY, cluster, None, "warning")


def far_too_many(fleet: Fleet, cluster: Cluster) -> None:
    hold(cluster, cluster.chance.uniform(10_400, 12_000))
    fleet.fault(MANY, cluster, None, "warning")


def fewer_and_busy(fleet: Fleet, cluster: Cluster) -> None:
    hold(cluster, cluster.chance.uniform(2_500, 3_700))
    few_requests(cluster)
    cluster.gauges["request_handler_idle_ratio"][:] = cluster.chance.uniform(0.1, 0.4)


def few_and_more(fleet: Fleet, cluster: Cluster) -> None:
    cluster.partitions_before = cluster.chance.uniform(0.3, 0.7)


# Controllers


def no_controller(fleet: Fleet, cluster: Cluster) -> None:
    cluster.gauges["active_controllers"][:, NOW] = 0
    fleet.fault(CONTROLLERS, cluster, None, "critical")


def no_dedicated_controller(fleet: Fleet, cluster: Cluster) -> None:
    controllers_beside(fleet, cluster)
    cluster.controllers = [Controller((0.0,) * 3) for _ in range(3)]
    fleet.fault(CONTROLLERS, cluster, None, "critical")


def two_controllers(fleet: Fleet, cluster: Cluster) -> None:
    """One controller was partitioned from the network and still reports itself as active."""
    cluster.gauges["active_controllers"][:2, NOW] = 1
    cluster.gauges["active_controllers"][2:, NOW] = 0
    fleet.fault(CONTROLLERS, cluster, None, "critical")


def controller_moves(fleet: Fleet, cluster: Cluster) -> None:
    """An election between two samples of the run."""
    cluster.gauges["active_controllers"][:, NOW] = 0
    cluster.own_samples[0, "active_controllers"] = (1.0, 0.0, 0.0)
    cluster.own_samples[1, "active_controllers"] = (0.0, 0.0, 1.0)


def a_controller_is_silent(fleet: Fleet, cluster: Cluster) -> None:
    """The active controller is possibly among those without a response."""
    controllers_beside(fleet, cluster)
    cluster.controllers = [Controller((0.0,) * 3), Controller((1.0,) * 3, answers=False), Controller((0.0,) * 3)]


def controllers_elsewhere(fleet: Fleet, cluster: Cluster) -> None:
    """The controllers are not in the config."""
    cluster.gauges["active_controllers"][:] = np.nan


# Producers


def refuse(cluster: Cluster, error: str, hours: slice, share: float) -> None:
    """This share of produce requests fails with the error."""
    rate = np.zeros((cluster.brokers, PAST + 1))
    rate[:, hours] = share * cluster.rates["produce_requests"][:, hours]
    cluster.refused[error] = rate


def too_large(fleet: Fleet, cluster: Cluster) -> None:
    """A release sends batches above the topic's max.message.bytes."""
    refuse(cluster, "MESSAGE_TOO_LARGE", since(cluster), cluster.chance.uniform(0.0013, 0.05))
    fleet.fault(REFUSED, cluster, None, "warning")


def without_keys(fleet: Fleet, cluster: Cluster) -> None:
    """Records without keys for a compacted topic, while leaders move."""
    refuse(cluster, "INVALID_RECORD", since(cluster, 1, 5), cluster.chance.uniform(0.002, 0.3))
    refuse(cluster, "NOT_LEADER_OR_FOLLOWER", slice(NOW, None), 0.02)
    fleet.fault(REFUSED, cluster, None, "warning")


def min_isr_not_met_for_hours(fleet: Fleet, cluster: Cluster) -> None:
    """NOT_ENOUGH_REPLICAS of a topic whose min.insync.replicas is not met."""
    refuse(cluster, "NOT_ENOUGH_REPLICAS", since(cluster, 2, 12), cluster.chance.uniform(0.005, 0.2))
    fleet.fault(REFUSED, cluster, None, "warning")


def refused_without_a_reason(fleet: Fleet, cluster: Cluster) -> None:
    """The exporter exposes no metrics by error."""
    cluster.reports_errors = False
    refuse(cluster, "INVALID_TIMESTAMP", since(cluster), cluster.chance.uniform(0.002, 0.1))
    fleet.fault(REFUSED, cluster, None, "warning")


def leaders_move(fleet: Fleet, cluster: Cluster) -> None:
    """Producers send to the old leader first, then to the new one."""
    refuse(cluster, "NOT_LEADER_OR_FOLLOWER", since(cluster, 1, 5), cluster.chance.uniform(0.01, 0.1))
    refuse(cluster, "LEADER_NOT_AVAILABLE", slice(NOW, None), 0.01)


def unauthorized_client_retries(fleet: Fleet, cluster: Cluster) -> None:
    """A client without the ACL retries."""
    refuse(cluster, "TOPIC_AUTHORIZATION_FAILED", since(cluster), cluster.chance.uniform(0.005, 0.1))


def replicas_out_of_sync_for_minutes(fleet: Fleet, cluster: Cluster) -> None:
    """Only in this hour, or only in the previous one."""
    hour = NOW - int(cluster.chance.integers(0, 2))
    refuse(cluster, "NOT_ENOUGH_REPLICAS", slice(hour, hour + 1), cluster.chance.uniform(0.005, 0.1))


def restarts_for_two_hours(fleet: Fleet, cluster: Cluster) -> None:
    """A rolling restart: producers wait a minute for replicas at each broker."""
    for broker in range(cluster.brokers):
        cluster.restart(broker, 0.2 + 1.6 * broker / cluster.brokers)
    refuse(cluster, "NOT_ENOUGH_REPLICAS", slice(NOW - 1, None), cluster.chance.uniform(0.005, 0.05))


def somebody_tries(fleet: Fleet, cluster: Cluster) -> None:
    """A few dozen records of a developer."""
    requests = 3600 * float(cluster.rates["produce_requests"][:, NOW].sum())
    refuse(cluster, "INVALID_RECORD", since(cluster), cluster.chance.uniform(20, 80) / requests)


def one_of_thousands(fleet: Fleet, cluster: Cluster) -> None:
    """A failed batch now and then."""
    refuse(cluster, "MESSAGE_TOO_LARGE", slice(None), cluster.chance.uniform(0.0001, 0.0007))


def refused_until_an_hour_ago(fleet: Fleet, cluster: Cluster) -> None:
    """The producer was rolled back."""
    refuse(cluster, "INVALID_RECORD", slice(NOW - 8, NOW), cluster.chance.uniform(0.01, 0.1))


# Cleaners


def cleaner_dies(fleet: Fleet, cluster: Cluster) -> None:
    """Its only thread died some hours ago; or one of several, and the others continue."""
    broker, hours = a_broker(cluster), since(cluster)
    cluster.gauges["dead_cleaner_threads"][broker, hours] = 1
    if cluster.chance.random() < 0.5:
        cluster.gauges["cleaner_last_run_seconds"][broker, NOW] = 3600.0 * (PAST + 1 - hours.start)
    fleet.fault(UNCLEANED, cluster, broker, "critical")


def log_given_up(fleet: Fleet, cluster: Cluster) -> None:
    broker = a_broker(cluster)
    cluster.gauges["uncleanable_partitions"][broker, since(cluster)] = float(cluster.chance.integers(1, 4))
    fleet.fault(UNCLEANED, cluster, broker, "warning")


def cleaner_hangs(fleet: Fleet, cluster: Cluster) -> None:
    """The thread is alive by its metrics."""
    broker = a_broker(cluster)
    cluster.gauges["cleaner_last_run_seconds"][broker, NOW] = 3600 * cluster.chance.uniform(24.6, 300)
    fleet.fault(UNCLEANED, cluster, broker, "warning")


def cleaner_has_much_to_do(fleet: Fleet, cluster: Cluster) -> None:
    """The cleaner needs hours for one log."""
    hours = cluster.chance.uniform(1, 22)
    cluster.gauges["cleaner_last_run_seconds"][a_broker(cluster), NOW] = 3600 * hours


def nothing_is_compacted(fleet: Fleet, cluster: Cluster) -> None:
    """No topic is compacted, so the cleaner has been idle for weeks."""
    for topic in cluster.topics:
        topic.configs["cleanup.policy"] = "delete"
    cluster.gauges["cleaner_last_run_seconds"][:, NOW] = 3600 * cluster.chance.uniform(30, 300)


def cleaner_came_back(fleet: Fleet, cluster: Cluster) -> None:
    """Its thread was dead until the broker was restarted in the previous hour."""
    broker = a_broker(cluster)
    cluster.gauges["dead_cleaner_threads"][broker, NOW - 9 : NOW] = 1
    cluster.restart(broker, cluster.chance.uniform(1.05, 1.4))


def cleaner_metrics_not_exposed(fleet: Fleet, cluster: Cluster) -> None:
    """The MBeans of the log cleaner are not exposed."""
    for name in ("dead_cleaner_threads", "uncleanable_partitions", "cleaner_last_run_seconds"):
        cluster.gauges[name][:] = np.nan


# Nothing


def healthy(fleet: Fleet, cluster: Cluster) -> None:
    """A healthy cluster with its weekly load."""


def rolling_upgrade(fleet: Fleet, cluster: Cluster) -> None:
    """A rolling upgrade: the brokers were restarted one after the other, the last some minutes ago."""
    for broker in range(cluster.brokers):
        cluster.restart(broker, 0.1 + 0.25 * broker)
        files_to(cluster, broker, 0.3, slice(NOW, None))


def silent_broker(fleet: Fleet, cluster: Cluster) -> None:
    """Its agent does not respond; its peers show that the broker is up."""
    cluster.answers[a_broker(cluster), NOW] = False


def unknown_figures(fleet: Fleet, cluster: Cluster) -> None:
    """The MBeans of a broker return NaN."""
    for name in ("log_flush_p95_ms", "open_file_descriptors", "leaders", "request_handler_idle_ratio"):
        cluster.gauges[name][0, NOW] = np.nan
