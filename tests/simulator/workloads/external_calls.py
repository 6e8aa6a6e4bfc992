"""Applications blocked on external calls, and applications that are slow for other reasons. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import BEHIND, DAY, NEVER, NOW, Life, Steps, Work, now

WAITS = "app_blocked_on_external_calls"
TOPIC, APP = "orders", "pricing"
PARTITIONS = 10
STEP = 0.05
"""Hours."""
CLEARLY = 0.55
"""Share of processing time that only waiting explains; the detector needs half."""


def _application(life: Life, busy: float | None = None, threads: int = 0, look_up: bool = True) -> Work:
    """Two processes whose stream threads are busy for this share of the time while healthy."""
    cpu, overhead = life.uniform(0.2, 2), life.uniform(0.005, 0.03)
    work = Work([(0.0, cpu)], [(0.0, life.uniform(2, 8) if look_up else 0.0)], overhead)
    threads = threads or life.chance.choice([2, 4, 6])
    busy = life.uniform(0.05, 0.25) if busy is None else busy
    life.may |= {"topic_underpartitioned"}  # threads with longer waits have less spare capacity at the peak
    topic = life.topic(TOPIC, busy * threads * 1000 / work.latency(0.0), partitions=PARTITIONS)
    life.group("search", TOPIC)
    life.application(APP, TOPIC)
    for process in life.processes:
        process.threads = [(-NEVER, threads // 2, 0)]
        process.reads, process.share, process.work = [topic], 1 / len(life.processes), work
    return work


def _lately(life: Life) -> float:
    return NOW - life.uniform(2, 20)


def _becomes(steps: Steps, since: float, factor: float) -> None:
    steps.append((since, steps[0][1] * factor))


def _falls_behind(life: Life, work: Work, since: float, share: float = 1.0) -> None:
    """From then on the application processes as many records as its threads can in that share of the time."""
    life.may |= {"consumer_replaying", "consumer_data_at_risk"}
    if since == NEVER:
        return
    topic, group = life.topics[TOPIC], life.groups[APP]
    moments = np.arange(since, NOW + 1, STEP)
    threads = sum(process.alive(since)[0] for process in life.processes)
    hours = np.arange(len(topic.records), dtype=float)
    places, done = list[float](), float(np.interp(since - BEHIND, hours, topic.records))
    for moment in map(float, moments):
        places.append(float(np.interp(done, topic.records, hours)))
        able = share * threads * 3_600_000 / work.latency(moment) * STEP
        done = min(done + able, float(np.interp(moment + STEP - BEHIND, hours, topic.records)))
    group.path = [(0.0, -BEHIND), (since, since - BEHIND), *zip(map(float, moments[1:]), places[1:], strict=True)]
    for process in life.processes:
        process.follows = group


def _must_fire(life: Life, work: Work, reason: str) -> None:
    """The detector must fire, unless the CPU use of the process could fill half of the time of its stream threads.

    The JVM exposes CPU per process, not per stream thread. With few records and much other work, `ok` is right too.
    """
    threads = sum(process.alive(NOW)[0] for process in life.processes)
    records = sum(process.processed(NOW) - process.processed(NOW - 1) for process in life.processes)
    stopped = now(work.collecting, NOW) * (2 * len(life.processes) + threads)
    beside = (work.overhead * len(life.processes) + stopped) * 3_600_000
    waits = work.latency(NOW) - now(work.cpu, NOW) - beside / records
    if life.before or waits >= CLEARLY * work.latency(NOW):
        life.fault(WAITS, reason, application_id=APP)
    else:
        life.may.add(WAITS)


def external_calls_become_slow(life: Life) -> None:
    """The threads have spare capacity: no lag."""
    work = _application(life, life.uniform(0.02, 0.05))
    _becomes(work.outside, life.onset(2, 20), life.uniform(6, 12))
    _must_fire(life, work, "external_wait")


def external_calls_are_slower_than_records_come(life: Life) -> None:
    work, since = _application(life, life.uniform(0.2, 0.3)), life.onset(2, 20)
    _becomes(work.outside, since, life.uniform(9, 15))
    _falls_behind(life, work, since)
    _must_fire(life, work, "external_wait")


def external_calls_come_with_a_deploy(life: Life) -> None:
    work, since = _application(life, life.uniform(0.01, 0.02), look_up=False), life.onset(2, 20)
    work.outside.append((since, life.uniform(15, 40)))
    for process in life.processes:
        process.starts = [-DAY, *([since] if since != NEVER else [])]
    _must_fire(life, work, "external_wait")


def pool_is_too_small(life: Life) -> None:
    """Two connections for five threads: three threads wait as soon as calls are slow."""
    work, since = _application(life, life.uniform(0.03, 0.05), threads=PARTITIONS), life.onset(2, 20)
    _becomes(work.outside, since, life.uniform(25, 45) * 5 / 2)
    work.pool = [(0.0, 0.0), (since, 3.0)]
    _falls_behind(life, work, since)
    _must_fire(life, work, "connection_pool_exhausted")


def external_calls_become_slow_beside_stores(life: Life) -> None:
    """The disk has little I/O, as node exporter reports."""
    work = _application(life, life.uniform(0.05, 0.08))
    work.disk, work.machine = [(0.0, 0.05)], "calm"
    _becomes(work.outside, life.onset(2, 20), life.uniform(6, 12))
    _must_fire(life, work, "external_wait")


# Decoys


def external_calls_take_as_long_as_ever(life: Life) -> None:
    _application(life).outside = [(0.0, life.uniform(15, 30))]
    life.topics[TOPIC].messages *= 0.1


def external_calls_take_twice_as_long(life: Life) -> None:
    _becomes(_application(life, life.uniform(0.05, 0.12)).outside, _lately(life), life.uniform(1.2, 2.2))


def external_calls_were_slow_until_an_hour_ago(life: Life) -> None:
    work = _application(life, life.uniform(0.02, 0.05))
    _becomes(work.outside, NOW - life.uniform(4, 20), life.uniform(6, 12))
    _becomes(work.outside, NOW - 1.1, 1)


def records_become_dear(life: Life) -> None:
    """A larger model or a slow regular expression: CPU time."""
    _becomes(_application(life, life.uniform(0.02, 0.05), look_up=False).cpu, _lately(life), life.uniform(6, 15))


def collections_take_the_time(life: Life) -> None:
    work = _application(life, life.uniform(0.1, 0.2))
    work.collecting.append((_lately(life), life.uniform(0.72, 0.8)))


def producers_wait_for_brokers(life: Life) -> None:
    work = _application(life, life.uniform(0.02, 0.05))
    work.sending.append((_lately(life), life.uniform(6, 12) * work.latency(0.0)))


def stores_wait_for_a_disk(life: Life) -> None:
    """The stores no longer fit into the page cache: each record reads from disk."""
    work = _application(life, life.uniform(0.02, 0.05))
    work.disk, work.machine = [(0.0, 0.05), (_lately(life), life.uniform(6, 12) * work.latency(0.0))], "calm"


def _has_little_cpu(life: Life) -> Work:
    """Another process uses the CPUs for most of the time (steal)."""
    work = _application(life, life.uniform(0.1, 0.2), look_up=False)
    work.stretched.append((_lately(life), life.uniform(4, 5)))
    return work


def container_is_throttled(life: Life) -> None:
    """The work is the same; the container is throttled for most of each CFS period."""
    _has_little_cpu(life).has_limit = True


def limit_of_the_container_is_used_up(life: Life) -> None:
    _has_little_cpu(life).seen_cpu = life.uniform(0.9, 1)


def neighbours_fill_the_machine(life: Life) -> None:
    _has_little_cpu(life).machine = "full"


def hypervisor_takes_the_processor(life: Life) -> None:
    _has_little_cpu(life).machine = "stolen"


def few_records_wait(life: Life) -> None:
    _becomes(_application(life).outside, _lately(life), 20)
    life.topics[TOPIC].messages *= life.uniform(100, 900) / life.topics[TOPIC].messages.max()


def waits_while_it_restores(life: Life) -> None:
    work, since = _application(life, life.uniform(0.02, 0.05)), NOW - life.uniform(0.2, 0.9)
    work.disk = [(0.0, 0.05), (since, life.uniform(6, 12) * work.latency(0.0))]
    for process in life.processes:
        process.starts, process.to_restore, process.restores_per_second = [-DAY, since], 4e6, life.uniform(1e4, 3e4)


def punctuations_wait(life: Life) -> None:
    """Calls in a punctuator take time of the threads, not of records: records lag."""
    _falls_behind(life, _application(life, life.uniform(0.1, 0.2)), _lately(life), life.uniform(0.02, 0.04))


def new_application_waits(life: Life) -> None:
    work, since = _application(life, life.uniform(0.01, 0.02)), NOW - life.uniform(3, 20)
    work.outside = [(0.0, 40.0)]
    life.groups[APP].born = since
    for process in life.processes:
        process.starts = [since]
    life.may |= {"consumer_trial_failed"}


def client_does_not_expose_its_latency(life: Life) -> None:
    work = _application(life, 0.02)
    _becomes(work.outside, _lately(life), 10)
    work.exposes_latency = False


def waiting_processes_are_silent(life: Life) -> None:
    _becomes(_application(life, 0.02).outside, _lately(life), 10)
    for process in life.processes:
        process.silent_from = NOW - 0.5


FAULTS = (
    external_calls_become_slow,
    external_calls_are_slower_than_records_come,
    external_calls_come_with_a_deploy,
    pool_is_too_small,
    external_calls_become_slow_beside_stores,
)
DECOYS = (
    external_calls_take_as_long_as_ever,
    external_calls_take_twice_as_long,
    external_calls_were_slow_until_an_hour_ago,
    records_become_dear,
    collections_take_the_time,
    producers_wait_for_brokers,
    stores_wait_for_a_disk,
    container_is_throttled,
    limit_of_the_container_is_used_up,
    neighbours_fill_the_machine,
    hypervisor_takes_the_processor,
    few_records_wait,
    waits_while_it_restores,
    punctuations_wait,
    new_application_waits,
    client_does_not_expose_its_latency,
    waiting_processes_are_silent,
)
