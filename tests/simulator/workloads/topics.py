"""Faults of topics, and decoys: the cases of the catalog for which their detectors must not fire.

Each function sets up a cluster. If it calls `fault`, that detector must fire, else none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.simulator.workloads.process_lifetimes import COMPACTED, DAY, HOURS, MIB, NOW, PARKED, PLAIN, Life, Topic

LONG = {"retention.ms": str(30 * DAY * 3_600_000)}
SIZE, WASTED, WEAK = "topic_message_size_changed", "topic_overpartitioned", "topic_replication_weak"
KEPT, ABANDONED, ASTRAY = "topic_retention_wasteful", "topic_abandoned", "topic_on_parked_broker"
HANGS = "transaction_hanging"


def _events(life: Life, **more: Any) -> Topic:
    """A topic in use, with a group that keeps up."""
    topic = life.topic("events", **more)
    life.group("billing", "events")
    return topic


def all_is_well(life: Life) -> None:
    _events(life)
    life.topic("orders")
    life.group("search", "events", "orders")


# Messages


def messages_jump(life: Life) -> None:
    topic, since = _events(life), life.onset(1, 20)
    topic.size[np.arange(HOURS) >= since] *= life.uniform(1.65, 4)
    life.fault(SIZE, "jumped", topic="events")


def compression_is_switched_off(life: Life) -> None:
    """A deliberate change: the finding names it."""
    topic, since = _events(life), life.onset(1, 20)
    topic.size[np.arange(HOURS) >= since] *= life.uniform(2, 5)
    topic.configs_before = (since, topic.configs | {"compression.type": "zstd"})
    topic.configs = topic.configs | {"compression.type": "uncompressed"}
    life.fault(SIZE, "jumped", topic="events")


def messages_grow_by_the_day(life: Life) -> None:
    topic, grown = _events(life), life.uniform(1.5, 2.5)
    begun = life.onset(16 * DAY, 28 * DAY)
    topic.size *= grown ** (np.maximum(np.arange(HOURS) - begun, 0) / (14 * DAY))
    life.fault(SIZE, "grew", "jumped", topic="events")


def nightly_batch_of_large_messages(life: Life) -> None:
    topic, hour = _events(life), life.chance.randrange(24)
    topic.size[(life.hour_of_day() - hour) % DAY < life.chance.choice([1, 2, 4])] *= life.uniform(2, 6)


def weekly_batch_of_large_messages(life: Life) -> None:
    topic, day, hour = _events(life), life.chance.randrange(7), life.chance.randrange(24)
    week = (life.weekday() - day) % 7 * DAY + life.hour_of_day()
    topic.size[(week - hour) % (7 * DAY) < 5] *= life.uniform(2, 6)


def nightly_batch_an_hour_later_since_summer(life: Life) -> None:
    topic, hour, shifted = _events(life), life.chance.randrange(24), NOW - life.chance.randrange(0, 6 * DAY)
    late = np.arange(HOURS) >= shifted
    topic.size[(life.hour_of_day() - hour - late) % DAY < 2] *= life.uniform(2, 5)


def new_topic(life: Life) -> None:
    topic = _events(life)
    topic.made = NOW - life.uniform(1, 6) * DAY
    topic.messages[: int(topic.made)] = 0
    topic.size[NOW - life.chance.randrange(3, 20) :] *= 3
    life.groups["billing"].born = topic.made
    # New groups are on trial, and the detector of the trial may fire.
    life.may = {"consumer_trial_failed"}


def traffic_rises_and_messages_stay(life: Life) -> None:
    topic = _events(life)
    topic.messages[NOW - life.chance.randrange(2, 40) :] *= life.uniform(3, 8)


def less_traffic_in_smaller_batches(life: Life) -> None:
    topic, since = _events(life), NOW - life.chance.randrange(2, 30)
    topic.messages[since:] *= life.uniform(0.2, 0.4)
    topic.size[since:] *= life.uniform(1.6, 2.2)


def few_messages_of_any_size(life: Life) -> None:
    topic = _events(life, a_second=life.uniform(0.05, 0.8))
    topic.size *= life.draws.lognormal(0, 0.8, HOURS)


def sizes_that_always_vary(life: Life) -> None:
    topic = _events(life)
    topic.size *= life.draws.lognormal(0, life.uniform(0.1, 0.25), HOURS)


# Partitions


def low_rate_on_many_partitions(life: Life) -> None:
    """Peak traffic is about twice the mean, and even a twelfth of the partitions would exceed the need."""
    count = life.chance.choice([12, 24, 48])
    topic = _events(life, partitions=count)
    topic.messages *= count * life.uniform(50, 500) / float(np.mean(topic.messages * topic.size) / 3600)
    life.fault(WASTED, "overpartitioned", names="events")


def low_rate_on_many_partitions_of_a_changelog(life: Life) -> None:
    life.topic("orders")
    life.application("joiner", "orders")
    for name in ("joiner-totals-changelog", "joiner-by-customer-repartition"):
        configs = dict(COMPACTED if name.endswith("changelog") else PLAIN)
        life.topic(name, 0.2, partitions=24, configs=configs)
    life.groups["joiner"].topics.append("joiner-by-customer-repartition")


def set_whose_other_topic_is_busy(life: Life) -> None:
    _events(life, partitions=24, a_second=400)
    life.topic("refunds", 0.3, partitions=24)
    life.group("joiner", "events", "refunds")


def bursts_on_many_partitions(life: Life) -> None:
    topic = _events(life, partitions=24, a_second=1)
    topic.messages[np.arange(HOURS) % life.chance.choice([6, 8, 12]) == 0] *= 500


def young_topic_with_many_partitions(life: Life) -> None:
    life.topic("orders")
    life.group("search", "orders")
    topic = _events(life, a_second=0.5, partitions=24)
    topic.made = NOW - life.uniform(2, 12) * DAY
    topic.messages[: int(topic.made)] = 0


def low_rate_on_few_partitions(life: Life) -> None:
    _events(life, a_second=0.2, partitions=life.chance.choice([1, 3, 10]))


# Replicas


def one_replica(life: Life) -> None:
    _events(life, brokers=(life.chance.choice((1, 2, 3)),))
    life.topic("orders")
    life.group("search", "orders")
    life.fault(WEAK, "single_replica", names="events")


def changelog_with_one_replica(life: Life) -> None:
    _events(life)
    life.application("joiner", "events")
    life.topics["joiner-totals-changelog"].brokers = (2,)
    life.fault(WEAK, "single_replica", names="joiner-totals-changelog")


def all_replicas_needed(life: Life) -> None:
    two = life.chance.random() < 0.5
    _events(life, brokers=(1, 2) if two else (1, 2, 3),
            configs=PLAIN | {"min.insync.replicas": "2" if two else "3"})  # fmt: skip
    life.fault(WEAK, "min_isr_too_high", names="events")


def one_copy_is_enough(life: Life) -> None:
    """With fewer replicas in sync acks=all waits for fewer of them, down to one."""
    brokers = life.chance.choice(((1, 2), (1, 2, 3)))
    _events(life)
    life.topic("payments", brokers=brokers, configs=PLAIN | {"min.insync.replicas": "1"})
    life.group("ledger", "payments")
    life.fault(WEAK, "min_isr_too_low", names="payments")


def one_copy_of_a_changelog_is_enough(life: Life) -> None:
    """Kafka Streams uses acks=all since 3.0."""
    _events(life)
    life.application("payments", "events")
    changelog = life.topics["payments-totals-changelog"]
    changelog.configs = changelog.configs | {"min.insync.replicas": "1"}
    life.fault(WEAK, "min_isr_too_low", names=changelog.name)


def one_copy_is_enough_beside_one_that_stops(life: Life) -> None:
    """The finding has the worse reason and names both topics."""
    life.topic("payments", configs=PLAIN | {"min.insync.replicas": "1"})
    life.group("ledger", "payments")
    _events(life, configs=PLAIN | {"min.insync.replicas": "3"})
    life.fault(WEAK, "min_isr_too_high", names="payments events")


def two_copies_are_enough(life: Life) -> None:
    _events(life)
    life.topic("payments")
    life.group("ledger", "payments")


def one_copy_is_enough_for_who_does_not_wait(life: Life) -> None:
    _events(life, configs=PLAIN | {"min.insync.replicas": "1"})


def one_copy_is_enough_without_traffic(life: Life) -> None:
    _events(life)
    topic = life.topic("payments", configs=PLAIN | {"min.insync.replicas": "1"})
    life.group("ledger", "payments")
    topic.messages[NOW - int(life.uniform(2, 6) * DAY) :] = 0


def one_copy_is_enough_of_what_may_be_lost(life: Life) -> None:
    _events(life)
    life.topic("scratch-payments", configs=PLAIN | {"min.insync.replicas": "1"})
    life.group("search", "scratch-payments")


def replicas_in_one_rack(life: Life) -> None:
    life.racks = {1: "a", 2: "a", 3: "b"}
    _events(life, brokers=(1, 2), configs=PLAIN | {"min.insync.replicas": "1"})
    life.topic("orders")
    life.group("search", "orders")
    life.fault(WEAK, "one_rack", names="events")


def replicas_in_two_racks(life: Life) -> None:
    life.racks = {1: "a", 2: "a", 3: "b"}
    _events(life, brokers=life.chance.choice(((1, 3), (2, 3))), configs=PLAIN | {"min.insync.replicas": "1"})


def all_brokers_in_one_rack(life: Life) -> None:
    life.racks = dict.fromkeys(life.brokers, "a")
    _events(life, brokers=(1, 2), configs=PLAIN | {"min.insync.replicas": "1"})


def replicas_in_one_rack_without_traffic(life: Life) -> None:
    life.racks = {1: "a", 2: "a", 3: "b"}
    life.topic("orders")
    topic = _events(life, brokers=(1, 2), configs=PLAIN | {"min.insync.replicas": "1"})
    topic.messages[NOW - int(life.uniform(2, 6) * DAY) :] = 0


def one_replica_without_traffic(life: Life) -> None:
    life.topic("orders")
    topic = _events(life, brokers=(1,))
    topic.messages[NOW - int(life.uniform(2, 6) * DAY) :] = 0


def one_replica_of_what_may_be_lost(life: Life) -> None:
    _events(life)
    life.topic("scratch-try", brokers=(1,))
    life.group("search", "scratch-try")


def one_broker(life: Life) -> None:
    life.brokers = (1,)
    _events(life, configs=PLAIN | {"min.insync.replicas": "1"})
    life.topic("payments", configs=PLAIN | {"min.insync.replicas": "1"})
    life.group("ledger", "payments")


def parked_with_one_replica(life: Life) -> None:
    life.brokers = (1, 2, 3, PARKED)
    _events(life)
    life.topic("old-events", 0.001, brokers=(PARKED,))
    life.group("seldom", "old-events")


# Retention


def kept_for_a_month_and_read_at_once(life: Life) -> None:
    _events(life, configs=PLAIN | LONG, a_second=life.uniform(60, 120))
    life.fault(KEPT, "wasteful", names="events")


def kept_for_a_month_and_read_within_hours(life: Life) -> None:
    _events(life, configs=PLAIN | LONG, a_second=life.uniform(60, 120))
    late = life.uniform(2, 20)
    life.groups["billing"].path = [(0, -late), (HOURS + 1, HOURS + 1 - late)]
    life.fault(KEPT, "wasteful", names="events")


def kept_by_law(life: Life) -> None:
    life.topic("ledger-entries", configs=PLAIN | LONG)
    life.group("billing", "ledger-entries")


def compacted(life: Life) -> None:
    _events(life, configs=COMPACTED | LONG)


def bound_by_size(life: Life) -> None:
    _events(life, configs=PLAIN | LONG | {"retention.bytes": str(20 * 1024 * MIB)})


def kept_remotely(life: Life) -> None:
    local = {"remote.storage.enable": "true", "local.retention.ms": str(2 * DAY * 3_600_000)}
    _events(life, configs=PLAIN | LONG | local)


def read_by_nobody(life: Life) -> None:
    _events(life)
    life.topic("audit", configs=PLAIN | LONG)


def read_from_weeks_ago(life: Life) -> None:
    _events(life, configs=PLAIN | LONG)
    back = NOW - life.uniform(5, 25) * DAY
    life.groups["billing"].path = [(0, 0), (back, back), (back + 1e-6, back - 20 * DAY), (back + 30, back + 30),
                                   (HOURS + 1, HOURS + 1)]  # fmt: skip


def kept_for_as_long_as_it_lags(life: Life) -> None:
    _events(life, configs=PLAIN | LONG)
    late = life.uniform(7, 12) * DAY
    life.groups["billing"].path = [(0, -late), (HOURS + 1, HOURS + 1 - late)]
    # Reads from disk, beyond the page cache, every day.
    life.may = {"consumer_replaying"}


# Use


def _rests(life: Life, name: str, days: float) -> Topic:
    """A topic whose last record is so many days old, and that was read until then."""
    life.known = 100 * DAY
    _events(life)
    topic = life.topic(name)
    last = NOW - int(days * DAY)
    topic.messages[last:] = 0
    life.group("old-reader", name, died=last + 2.0)
    return topic


def nobody_writes_or_reads(life: Life) -> None:
    _rests(life, "old-events", life.uniform(9, 40))
    life.fault(ABANDONED, "abandoned", names="old-events")


def nobody_ever_wrote(life: Life) -> None:
    _rests(life, "old-events", 120)
    life.fault(ABANDONED, "abandoned", names="old-events")


def dead_letters(life: Life) -> None:
    _rests(life, life.chance.choice(["events.dlq", "events-retry", "billing_errors"]), 30)


def kept_by_its_owner(life: Life) -> None:
    _rests(life, "ledger-2019", 30)


def monthly_batch(life: Life) -> None:
    topic = _rests(life, "invoices", life.uniform(8, 28))
    last = int(np.flatnonzero(topic.messages)[-1])
    ago = last - np.arange(HOURS)
    topic.messages[:] = np.where((ago >= 0) & (ago % (30 * DAY) < 12), topic.messages, 0)


def weekly_batch(life: Life) -> None:
    topic = _rests(life, "invoices", life.uniform(1, 6.9))
    last = int(np.flatnonzero(topic.messages)[-1])
    ago = last - np.arange(HOURS)
    topic.messages[:] = np.where((ago >= 0) & (ago % (7 * DAY) < 3), topic.messages, 0)


def only_read(life: Life) -> None:
    """A table of settings that each start reads completely, without a group."""
    topic = _rests(life, "countries", 60)
    topic.configs = dict(COMPACTED)
    topic.others_read = np.where(np.arange(HOURS) % 37 == 0, 3.0 * MIB, 0.0)


def waited_for(life: Life) -> None:
    """No records, and a group is subscribed."""
    _rests(life, "alerts", 60)
    life.group("pager", "alerts")


def rests_for_days(life: Life) -> None:
    _rests(life, "old-events", life.uniform(1, 5.5))


def cluster_known_for_days(life: Life) -> None:
    _rests(life, "old-events", 60)
    life.known = int(life.uniform(2, 6) * DAY)


# Parked brokers


def replica_on_a_parked_broker(life: Life) -> None:
    life.brokers = (1, 2, 3, PARKED)
    _events(life, brokers=life.chance.choice([(1, 2, PARKED), (PARKED, 1, 3)]))
    life.fault(ASTRAY, "misplaced", names="events")


def offsets_on_a_parked_broker(life: Life) -> None:
    life.brokers = (1, 2, 3, PARKED)
    _events(life)
    life.topic("__consumer_offsets", 3, brokers=(1, 2, PARKED), configs=dict(COMPACTED))
    life.fault(ASTRAY, "misplaced", names="__consumer_offsets")


def parked_topics_only(life: Life) -> None:
    life.brokers = (1, 2, 3, PARKED)
    _events(life)
    life.topic("old-events", 0.001, brokers=(PARKED,))
    life.group("seldom", "old-events")


# Transactions


def transaction_hangs_and_readers_stand(life: Life) -> None:
    since = life.onset(2.2, 12)
    stuck = life.chance.randrange(6)
    _events(life, stable=lambda p, t: min(since, t) if p == stuck else t)
    life.groups["billing"].stops_at_open = True
    life.fault(HANGS, "blocks_readers", topic="events")


def transaction_hangs(life: Life) -> None:
    since = life.onset(2.2, 12)
    stuck = life.chance.randrange(6)
    _events(life, stable=lambda p, t: min(since, t) if p == stuck else t)
    life.fault(HANGS, "hanging", topic="events")


def long_transactions_that_end(life: Life) -> None:
    lasts, phase = life.uniform(0.2, 1.6), life.uniform(0, 2)
    _events(life, stable=lambda p, t: (t - phase) // lasts * lasts + phase)
    life.groups["billing"].stops_at_open = True


def open_transaction_without_growth(life: Life) -> None:
    rests = NOW - life.chance.randrange(6, 20)
    topic = _events(life, stable=lambda p, t: min(rests - 0.01, t) if p == 0 else t)
    topic.messages[rests:] = 0


def short_transactions_all_the_time(life: Life) -> None:
    _events(life, stable=lambda p, t: t - 0.002)
    life.groups["billing"].stops_at_open = True


FAULTS = (
    messages_jump,
    compression_is_switched_off,
    messages_grow_by_the_day,
    low_rate_on_many_partitions,
    one_replica,
    changelog_with_one_replica,
    all_replicas_needed,
    one_copy_is_enough,
    one_copy_of_a_changelog_is_enough,
    one_copy_is_enough_beside_one_that_stops,
    replicas_in_one_rack,
    kept_for_a_month_and_read_at_once,
    kept_for_a_month_and_read_within_hours,
    nobody_writes_or_reads,
    nobody_ever_wrote,
    replica_on_a_parked_broker,
    offsets_on_a_parked_broker,
    transaction_hangs_and_readers_stand,
    transaction_hangs,
)
DECOYS = (
    all_is_well,
    nightly_batch_of_large_messages,
    weekly_batch_of_large_messages,
    nightly_batch_an_hour_later_since_summer,
    new_topic,
    traffic_rises_and_messages_stay,
    less_traffic_in_smaller_batches,
    few_messages_of_any_size,
    sizes_that_always_vary,
    low_rate_on_many_partitions_of_a_changelog,
    set_whose_other_topic_is_busy,
    bursts_on_many_partitions,
    young_topic_with_many_partitions,
    low_rate_on_few_partitions,
    one_replica_without_traffic,
    one_replica_of_what_may_be_lost,
    two_copies_are_enough,
    one_copy_is_enough_for_who_does_not_wait,
    one_copy_is_enough_without_traffic,
    one_copy_is_enough_of_what_may_be_lost,
    replicas_in_two_racks,
    all_brokers_in_one_rack,
    replicas_in_one_rack_without_traffic,
    one_broker,
    parked_with_one_replica,
    kept_by_law,
    compacted,
    bound_by_size,
    kept_remotely,
    read_by_nobody,
    read_from_weeks_ago,
    kept_for_as_long_as_it_lags,
    dead_letters,
    kept_by_its_owner,
    monthly_batch,
    weekly_batch,
    only_read,
    waited_for,
    rests_for_days,
    cluster_known_for_days,
    parked_topics_only,
    long_transactions_that_end,
    open_transaction_without_growth,
    short_transactions_all_the_time,
)
