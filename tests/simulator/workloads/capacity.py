"""Topics near the capacity of their consumers, and decoys. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import BEHIND, DAY, HOURS, NOW, Group, Life, Topic

SHORT = "topic_underpartitioned"
TOPIC, APP, READER = "orders", "joiner", "search"
WEEKS = 14 * DAY
"""Hours of which the peak is the 99th percentile."""


def _topic(life: Life, peak: float, partitions: int, since: float = 0.0) -> Topic:
    """Sets the peak in records per second, and half of that before the fault; hours vary little otherwise."""
    topic = life.topic(TOPIC, partitions=partitions)
    rhythm = life.rhythm(noise=0.03)
    grown = np.where(np.arange(HOURS) >= np.floor(life.begins or 0), 1.0, 0.5)
    now = np.where(np.arange(HOURS) >= np.floor(since), 1.0, 0.5)
    topic.messages = rhythm * now * peak * 3600 / np.quantile((rhythm * grown)[NOW - WEEKS : NOW], 0.99)
    return topic


def _application(life: Life, threads: int, partitions: int, used: float, since: float = 0.0) -> float:
    """Kafka Streams with so many threads, whose peak is this share of their capacity. Returns records/s per thread."""
    latency = life.uniform(2, 12)
    topic = _topic(life, used * min(threads, partitions) * 1000 / latency, partitions, since)
    life.application(APP, TOPIC)
    life.groups[APP].members = threads
    for process in life.processes:
        process.threads = [(-1e9, threads // len(life.processes), 0)]
        process.latency_ms, process.reads, process.share = latency, [topic], 1 / len(life.processes)
    life.topics[f"{APP}-totals-changelog"].partitions = partitions
    return 1000 / latency


def _keys(life: Life, hot: float, used: float, since: float = 0.0, quiet: np.ndarray | None = None) -> None:
    """Kafka Streams with one thread per partition. One partition gets a multiple (`hot`) of the mean traffic.

    `used`: share of the capacity of its thread at the peak. With `quiet`, traffic is uneven in these hours only.
    """
    count = life.chance.choice([8, 10])
    _application(life, count, count, used / hot, since)
    topic, share = life.topics[TOPIC], np.full(HOURS, hot / count)
    if quiet is not None:
        share[~quiet] = 1 / count
        topic.messages = topic.messages * np.where(quiet, 0.1, 1.0)
    topic.shares = np.tile((1 - share) / (count - 1), (count, 1))
    topic.shares[life.chance.randrange(count)] = share


def _used(life: Life) -> float:
    return life.uniform(0.84, 0.9)


def _names(life: Life, reason: str, group: str) -> None:
    life.fault(SHORT, reason, topic=TOPIC, group_id=group)


def peak_fills_the_threads_of_all_partitions(life: Life) -> None:
    count = life.chance.choice([4, 6, 8])
    _application(life, count, count, _used(life), life.onset(26, 9 * DAY))
    _names(life, "too_few_partitions", APP)


def peak_fills_fewer_threads_than_partitions(life: Life) -> None:
    count = life.chance.choice([2, 4])
    _application(life, count, 3 * count, _used(life), life.onset(26, 9 * DAY))
    _names(life, "too_few_threads", APP)


def key_fills_the_thread_of_its_partition(life: Life) -> None:
    """The other threads have spare capacity, and so have all together."""
    _keys(life, life.uniform(3.5, 6), _used(life), life.onset(26, 9 * DAY))
    _names(life, "hot_key", APP)


def _catches_up(life: Life, used: float, thread: float) -> Group:
    """Plain consumers that were stopped for hours some days ago, and then caught up at full speed."""
    count = life.chance.choice([4, 6])
    topic = _topic(life, used * count * thread, count)
    group = life.group(READER, TOPIC, members=count)
    stood = NOW - life.uniform(4, 10) * DAY
    moments = np.arange(0, 4 * DAY, 0.25)
    places = topic.after(stood, moments * 3600 * count * thread)
    back = stood + life.uniform(8, 14)
    behind = places < back + moments
    last = int(np.argmin(behind)) if not behind.all() else len(moments) - 1
    group.path = [(0.0, -BEHIND), (stood, stood - BEHIND), (back, stood - BEHIND)]
    group.path += [(back + float(m), float(p)) for m, p in zip(moments[1:last], places[1:last], strict=True)]
    group.path += [(back + float(moments[last]) + 0.1, back + float(moments[last]) + 0.1), (NOW + 1, NOW + 1)]
    life.may |= {"consumer_replaying"}  # while catching up it read records that were not in the page cache
    return group


def peak_fills_what_was_read_while_behind(life: Life) -> None:
    _catches_up(life, _used(life), life.uniform(50, 300))
    _names(life, "too_few_partitions", READER)


def readers_that_caught_up_have_room(life: Life) -> None:
    _catches_up(life, life.uniform(0.3, 0.7), life.uniform(50, 300))


def threads_have_room(life: Life) -> None:
    _application(life, 4, 6, life.uniform(0.2, 0.72))


def thread_of_the_hot_key_has_room(life: Life) -> None:
    _keys(life, life.uniform(3.5, 6), life.uniform(0.2, 0.72))


def key_gets_most_of_quiet_hours(life: Life) -> None:
    """A nightly batch: in busy hours all partitions get the same traffic."""
    quiet = (np.arange(HOURS) - NOW) % DAY >= DAY - life.chance.randint(2, 4)
    _keys(life, life.uniform(3.5, 6), _used(life), quiet=quiet)


def keys_are_spread_by_chance(life: Life) -> None:
    _keys(life, life.uniform(1.2, 2.5), life.uniform(0.4, 0.72))


def threads_wait(life: Life) -> None:
    """Records are processed in batches, so the time per record is not conclusive."""
    _application(life, 4, 6, _used(life))
    for process in life.processes:
        process.poll_ratio = life.uniform(0.6, 0.95)


def latency_of_few_records(life: Life) -> None:
    _application(life, 2, 2, 1.0)
    topic, a_second = life.topics[TOPIC], life.uniform(0.02, 0.2)
    topic.messages *= a_second * 3600 / topic.messages.max()
    for process in life.processes:
        process.latency_ms = 1000 / a_second * 2 * 0.9


def single_hours_are_full(life: Life) -> None:
    """One burst of two hours in two weeks."""
    thread = _application(life, 4, 6, life.uniform(0.4, 0.6))
    begin = NOW - life.chance.randrange(4, WEEKS - 4)
    life.topics[TOPIC].messages[begin : begin + 2] = 0.95 * 4 * thread * 3600


def replays_at_full_speed(life: Life) -> None:
    """The group reset its offsets and rereads: its rate is not the produce rate."""
    thread = _application(life, 4, 6, life.uniform(0.4, 0.6))
    topic, group = life.topics[TOPIC], life.groups[APP]
    went = NOW - life.uniform(2, 5)
    moments = np.arange(0.25, NOW + 1 - went, 0.25)
    places = topic.after(went - 30, moments * 3600 * 4 * thread * 0.95)
    group.path = [(0.0, -BEHIND), (went, went - BEHIND), (went + 1e-6, went - 30)]
    group.path += [(went + float(m), float(p)) for m, p in zip(moments, places, strict=True)]
    life.may |= {"consumer_replaying"}


FAULTS = (
    peak_fills_the_threads_of_all_partitions,
    peak_fills_fewer_threads_than_partitions,
    key_fills_the_thread_of_its_partition,
    peak_fills_what_was_read_while_behind,
)
DECOYS = (
    readers_that_caught_up_have_room,
    threads_have_room,
    thread_of_the_hot_key_has_room,
    key_gets_most_of_quiet_hours,
    keys_are_spread_by_chance,
    threads_wait,
    latency_of_few_records,
    single_hours_are_full,
    replays_at_full_speed,
)
