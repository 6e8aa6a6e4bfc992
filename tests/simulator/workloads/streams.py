"""Faults of Kafka Streams applications, and decoys. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import (
    COMPACTED,
    DAY,
    GIB,
    HOURS,
    MIB,
    MINUTE,
    NEVER,
    NOW,
    PARKED,
    SECOND,
    Life,
    Process,
    Store,
    Topic,
)

UNUSED, GROWS = "changelog_abandoned", "state_store_growing"
DEAD, RESTARTS = "stream_threads_dead", "app_crash_looping"
APP, CHANGELOG = "joiner", "joiner-totals-changelog"


def _joiner(life: Life, processes: int = 2) -> Topic:
    """An application on a topic with another consumer group; returns its changelog."""
    life.topic("orders")
    life.group("search", "orders")
    life.application(APP, "orders", processes=processes)
    return life.topics[CHANGELOG]


# Changelogs


def _stopped(life: Life, ago: float) -> Topic:
    """The application ran until that time."""
    life.known = 100 * DAY
    changelog = _joiner(life)
    until = NOW - ago
    changelog.messages[int(until) :] = 0
    life.groups[APP].died = until
    for process in life.processes:
        process.silent_from = until
    return changelog


def application_is_gone(life: Life) -> None:
    _stopped(life, life.uniform(9, 40) * DAY)
    life.fault(UNUSED, "abandoned", "large", application_id=APP)


def large_application_is_gone(life: Life) -> None:
    changelog = _stopped(life, life.uniform(9, 20) * DAY)
    changelog.size *= 30 * GIB / float(np.sum(changelog.messages * changelog.size))
    life.fault(UNUSED, "large", application_id=APP)


def gone_and_parked(life: Life) -> None:
    life.brokers = (1, 2, 3, PARKED)
    _stopped(life, life.uniform(9, 40) * DAY).brokers = (PARKED,)


def monthly_application(life: Life) -> None:
    changelog = _stopped(life, life.uniform(8, 28) * DAY)
    ago = int(life.groups[APP].died) - np.arange(HOURS)
    changelog.messages[:] = np.where((ago > 0) & (ago % (30 * DAY) < 12), changelog.messages, 0)


def stopped_for_maintenance(life: Life) -> None:
    _stopped(life, life.uniform(1, 6) * DAY)
    # Dead threads with waiting records are reported whatever the reason, and records that retention deleted are lost.
    life.may = {DEAD, "consumer_data_at_risk"}


def global_table(life: Life) -> None:
    """No producers; each start reads the topic completely, without a group."""
    life.known = 100 * DAY
    life.topic("orders")
    life.group("search", "orders")
    table = life.topic("prices-by-day-changelog", 5, configs=dict(COMPACTED))
    table.messages[NOW - 30 * DAY :] = 0
    table.others_read = np.where(np.arange(HOURS) % 41 == 0, 20.0 * MIB, 0.0)


def runs_without_work(life: Life) -> None:
    life.known = 100 * DAY
    changelog = _joiner(life)
    for topic in (changelog, life.topics["orders"]):
        topic.messages[NOW - 30 * DAY :] = 0


def source_topic_as_changelog(life: Life) -> None:
    """Topology optimization: the source topic of a table is its changelog, without writes for weeks."""
    life.known = 100 * DAY
    life.topic("orders")
    life.topic("customers", 5, configs=dict(COMPACTED)).messages[NOW - 30 * DAY :] = 0
    life.application(APP, "orders", "customers")


def known_for_days(life: Life) -> None:
    _stopped(life, 30 * DAY)
    life.known = int(life.uniform(2, 6) * DAY)


# Stores


def _stored(life: Life, size: np.ndarray, kind: str = "key_value", keys: np.ndarray | None = None) -> None:
    """Sets the application's store to so many bytes, evenly over its processes; RocksDB compacts in steps."""
    _joiner(life)
    for process in life.processes:
        steps = life.draws.normal(1, 0.01, HOURS)
        share = size / len(life.processes) * steps
        process.stores = [Store("totals", kind, np.full(HOURS, 3), share, keys if keys is not None else share / 100)]


def _disks(life: Life, free: float) -> None:
    """Each process has a host with so many bytes free; other data uses the rest."""
    for process in life.processes:
        process.disk = (200.0 * GIB, free)


def _line(now: float, a_day: float) -> np.ndarray:
    return np.maximum(now - (NOW - np.arange(HOURS)) / DAY * a_day, 64 * MIB)


def store_grows(life: Life) -> None:
    now = life.uniform(8, 20) * GIB
    _stored(life, _line(now, now * life.uniform(0.025, 0.06)))
    life.fault(GROWS, "growing", topic=CHANGELOG)


def values_of_a_store_grow(life: Life) -> None:
    """The free space lasts for a month and more."""
    now, a_day = life.uniform(8, 20) * GIB, life.uniform(0.025, 0.06)
    _stored(life, _line(now, now * a_day), keys=np.full(HOURS, 1e6))
    _disks(life, life.uniform(30, 90) * now * a_day / len(life.processes))
    life.fault(GROWS, "growing", topic=CHANGELOG)


def store_fills_its_disk(life: Life) -> None:
    now, a_day = life.uniform(8, 20) * GIB, life.uniform(0.025, 0.06)
    _stored(life, _line(now, now * a_day))
    _disks(life, life.uniform(1, 11) * now * a_day / len(life.processes))
    life.fault(GROWS, "exhausts_capacity", topic=CHANGELOG)


def windowed_store_fills(life: Life) -> None:
    now = life.uniform(8, 20) * GIB
    _stored(life, _line(now, now / 12), kind="window")
    _disks(life, 2 * GIB)


def store_was_reset(life: Life) -> None:
    size, ago = np.full(HOURS, life.uniform(8, 20) * GIB), life.uniform(1, 6) * DAY
    since = NOW - int(ago)
    size[since:] = np.linspace(0.02, 0.9, HOURS - since) * size[0]
    _stored(life, size)
    _disks(life, 2 * GIB)


def standbys_were_added(life: Life) -> None:
    """Each task is on two processes from then on (standby)."""
    _stored(life, np.full(HOURS, life.uniform(8, 20) * GIB))
    _disks(life, 2 * GIB)
    since = NOW - int(life.uniform(2, 6) * DAY)
    for process in life.processes:
        for store in process.stores:
            store.tasks[since:] *= 2
            store.size[since:] *= 2


def tasks_move_to_a_new_process(life: Life) -> None:
    _stored(life, np.full(HOURS, life.uniform(8, 20) * GIB))
    since = NOW - int(life.uniform(2, 6) * DAY)
    first = life.processes[0].stores[0]
    moved = Process(APP, 2, APP, starts=[since])
    moved.stores = [Store("totals", "key_value", np.ones(HOURS, int), first.size / 3, first.keys / 3)]
    life.processes.append(moved)
    first.tasks[since:] -= 1
    first.size[since:] *= 2 / 3


def store_grows_slowly(life: Life) -> None:
    _stored(life, _line(life.uniform(8, 20) * GIB, 30 * MIB))
    _disks(life, 2 * GIB)


def store_that_breathes(life: Life) -> None:
    wave = 1 + 0.3 * np.sin(np.arange(HOURS) / DAY * 2 * np.pi)
    _stored(life, life.uniform(8, 20) * GIB * wave)
    _disks(life, 2 * GIB)


# Threads


def some_threads_die(life: Life) -> None:
    _joiner(life)
    dead = life.chance.randint(1, 3)
    life.processes[0].threads.append((life.onset(0.5, 60), 4 - dead, dead))
    life.fault(DEAD, "some_dead", endpoint="joiner-0.")


def all_threads_die(life: Life) -> None:
    _joiner(life)
    life.processes[1].threads.append((life.onset(0.5, 60), 0, 4))
    life.fault(DEAD, "none_alive", endpoint="joiner-1.")


def threads_die_before_kafka_2_8(life: Life) -> None:
    """Kafka Streams exposes failed threads from 2.8 on."""
    _joiner(life)
    life.processes[0].threads = [(-NEVER, 4, None), (life.onset(0.5, 20), 2, None)]
    life.processes[1].threads = [(-NEVER, 4, None)]
    life.fault(DEAD, "some_dead", endpoint="joiner-0.")


def client_ends_in_an_error(life: Life) -> None:
    """An old client that exposes its state only."""
    _joiner(life)
    for process in life.processes:
        process.threads = [(-NEVER, None, None)]
    life.processes[0].states.append((life.onset(0.5, 60), "ERROR"))
    life.fault(DEAD, "error", endpoint="joiner-0.")


def client_does_not_come_to_its_end(life: Life) -> None:
    _joiner(life)
    since = life.onset(1.5, 60)
    life.processes[0].states.append((since, "PENDING_SHUTDOWN"))
    life.processes[0].threads.append((since, 0, 0))
    life.fault(DEAD, "shutdown_stuck", endpoint="joiner-0.")


def application_ends(life: Life) -> None:
    _joiner(life)
    since = life.onset(1.5, 40)
    life.groups[APP].died = since
    for process in life.processes:
        process.silent_from = since
    life.fault(DEAD, "application_down")


def threads_die_and_are_replaced(life: Life) -> None:
    _joiner(life)
    life.processes[0].threads.append((life.onset(0.5, 60), 4, life.chance.randint(1, 6)))
    life.fault(DEAD, "replaced", endpoint="joiner-0.")


def only_the_state_is_exposed(life: Life) -> None:
    _joiner(life)
    for process, state in zip(life.processes, ("RUNNING", "REBALANCING"), strict=True):
        process.threads = [(-NEVER, None, None)]
        process.states.append((NOW - life.uniform(0, 2), state))


def process_is_just_ending(life: Life) -> None:
    _joiner(life)
    at = NOW + life.uniform(0, 1.9) * MINUTE
    life.processes[0].states.append((at, "PENDING_SHUTDOWN"))
    life.processes[0].threads.append((at, 0, 0))


def process_has_just_started(life: Life) -> None:
    _joiner(life)
    at = NOW - life.uniform(0, 10) * MINUTE
    life.processes[0].starts.append(at)
    life.processes[0].threads.append((at, life.chance.choice([0, 1]), 0))


def threads_were_removed(life: Life) -> None:
    _joiner(life)
    for process in life.processes:
        process.threads.append((NOW - life.uniform(0.5, 6) * DAY, 2, 0))


def process_is_silent_and_its_group_works(life: Life) -> None:
    _joiner(life)
    life.processes[0].silent_from = NOW - life.uniform(0.5, 30)


def all_are_silent_and_the_group_works(life: Life) -> None:
    _joiner(life)
    for process in life.processes:
        process.silent_from = NOW - life.uniform(0.5, 30)


def restarted_with_fewer_threads(life: Life) -> None:
    _joiner(life)
    at = NOW - life.uniform(2, 100)
    life.processes[0].starts.append(at)
    life.processes[0].threads.append((at, 2, 0))


# Restarts


def crash_loop(life: Life) -> None:
    _joiner(life)
    t = life.onset(6, 22)
    while t < NOW - 2 * MINUTE:
        life.processes[0].starts.append(t)
        t += life.uniform(6, 55) * MINUTE
    life.fault(RESTARTS, "restarting", endpoint="joiner-0.")


def starts_all_the_time(life: Life) -> None:
    _joiner(life)
    process = life.processes[0]
    process.is_archived = True
    t = life.onset(2, 22)
    while t < NOW:
        process.starts.append(t)
        t += life.uniform(5.5, 12) * MINUTE
    life.fault(RESTARTS, "crash_loop", endpoint="joiner-0.")


def job_by_the_quarter(life: Life) -> None:
    _joiner(life)
    process, past = life.processes[0], life.uniform(3, 12) * MINUTE
    process.is_archived = True
    process.starts += [NOW - n / 4 - past + life.uniform(0, 4) * SECOND for n in range(120, -1, -1)]


def deployed_three_times(life: Life) -> None:
    """Within the hour: deployed, rolled back, and deployed again."""
    _joiner(life)
    for n, process in enumerate(life.processes):
        process.is_archived = True
        process.starts += [NOW - ago + n * 3 * MINUTE for ago in (0.9, 0.6, life.uniform(0.2, 0.3))]


def deploy(life: Life) -> None:
    _joiner(life)
    at = NOW - life.uniform(1, 10)
    for n, process in enumerate(life.processes):
        process.starts.append(at + n * 3 * MINUTE)


def deploy_that_is_taken_back(life: Life) -> None:
    _joiner(life)
    for after in (0, 0.8):
        at = NOW - 5 + after
        for n, process in enumerate(life.processes):
            process.starts.append(at + n * 3 * MINUTE)


def job_by_the_hour(life: Life) -> None:
    _joiner(life)
    past = life.uniform(2, 50) * MINUTE
    life.processes[0].starts += [NOW - n - past + life.uniform(0, 60) * SECOND for n in range(30, -1, -1)]


def scaled_out(life: Life) -> None:
    _joiner(life)
    life.processes += [Process(APP, n, APP, starts=[NOW - life.uniform(0.5, 20)]) for n in (2, 3, 4)]


def ends_every_few_hours(life: Life) -> None:
    """Frequent restarts without a crash loop: each process runs for hours."""
    _joiner(life)
    life.processes[0].starts += [NOW - n * life.uniform(3.7, 4.3) for n in range(12, 0, -1)]


FAULTS = (
    application_is_gone,
    large_application_is_gone,
    store_grows,
    values_of_a_store_grow,
    store_fills_its_disk,
    some_threads_die,
    all_threads_die,
    threads_die_before_kafka_2_8,
    client_ends_in_an_error,
    client_does_not_come_to_its_end,
    application_ends,
    threads_die_and_are_replaced,
    crash_loop,
    starts_all_the_time,
)
DECOYS = (
    gone_and_parked,
    monthly_application,
    stopped_for_maintenance,
    global_table,
    runs_without_work,
    source_topic_as_changelog,
    known_for_days,
    windowed_store_fills,
    store_was_reset,
    standbys_were_added,
    tasks_move_to_a_new_process,
    store_grows_slowly,
    store_that_breathes,
    only_the_state_is_exposed,
    process_is_just_ending,
    process_has_just_started,
    threads_were_removed,
    process_is_silent_and_its_group_works,
    all_are_silent_and_the_group_works,
    restarted_with_fewer_threads,
    deploy,
    deploy_that_is_taken_back,
    deployed_three_times,
    job_by_the_hour,
    job_by_the_quarter,
    scaled_out,
    ends_every_few_hours,
)
