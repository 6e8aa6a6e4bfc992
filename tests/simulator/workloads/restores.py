"""Slow state restores, and decoys. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import DAY, HOURS, MINUTE, NEVER, NOW, Life, Process, Store

SLOW = "state_store_restore_slow"
APP, CHANGELOG = "joiner", "joiner-totals-changelog"
KEY_BYTES = 100
TASKS = 2


def _stored(life: Life, keys: float, processes: int = 3, kind: str = "key_value", tasks: int = TASKS) -> list[Process]:
    """An application with so many keys in each process, in tasks of its own; its log has some 200 million offsets."""
    life.topic("orders")
    life.group("search", "orders")
    life.application(APP, "orders", processes=processes)
    changelog = life.topics[CHANGELOG]
    changelog.messages *= 4
    changelog.partitions = TASKS * processes
    for process in life.processes:
        held = np.full(HOURS, keys)
        process.stores = [Store("totals", kind, np.full(HOURS, tasks), held * KEY_BYTES, held)]
    return life.processes


def _seen(life: Life, rate: float) -> None:
    """A restore was measured within the last week, in records per second."""
    for process in life.processes:
        process.restored = [(NOW - life.uniform(0.3, 6.5) * DAY, rate * life.uniform(0.9, 1.1)) for _ in range(2)]


def _large(life: Life, tasks: int = TASKS) -> list[Process]:
    """So much state that the remaining two processes need 11 to 20 minutes at the measured rate."""
    processes = _stored(life, life.uniform(3.2, 4.8) * 1e7, tasks=tasks)
    _seen(life, 20_000)
    return processes


def _restart(life: Life, offsets: float, rate: float) -> None:
    """A process restarts within the hour, and has so many offsets left when it is read."""
    process, at = life.processes[0], life.onset(3 * MINUTE, 25 * MINUTE)
    if at == NEVER:
        return
    process.starts.append(at)
    process.to_restore, process.restores_per_second = offsets, rate
    process.stores[0].keys[NOW:] /= 20
    process.stores[0].size[NOW:] /= 20


def _offsets(life: Life) -> float:
    """Offsets of the tasks of one process; nine tenths of them are distinct keys."""
    processes = _stored(life, 0.0)
    held = float(life.topics[CHANGELOG].end(NOW)) * TASKS
    for each in processes:
        each.stores[0].keys += held * 0.9
        each.stores[0].size += held * KEY_BYTES
    _seen(life, 150_000)
    return held


def large_state_without_standbys(life: Life) -> None:
    _large(life)
    life.fault(SLOW, "slow_failover", application_id=APP)


def large_state_of_a_few_threads(life: Life) -> None:
    """No restore was measured."""
    for process in _stored(life, life.uniform(4, 7) * 1e7, processes=2):
        process.threads = [(-NEVER, 1, 0)]
    life.fault(SLOW, "slow_failover", application_id=APP)


def restores_for_long(life: Life) -> None:
    """Many records were appended since its files were written; compaction kept nine tenths of them."""
    held = _offsets(life)
    _restart(life, held * life.uniform(0.5, 0.75), 10_000)
    life.fault(SLOW, "restoring", application_id=APP)


def state_directory_is_lost(life: Life) -> None:
    held = _offsets(life)
    _restart(life, held * life.uniform(0.9, 0.98), 10_000)
    life.fault(SLOW, "restoring_from_scratch", application_id=APP)


def large_state_with_standbys(life: Life) -> None:
    _large(life, tasks=2 * TASKS)


def tasks_of_large_state_warm_up(life: Life) -> None:
    _large(life)[2].stores[0].tasks[NOW:] += 1


def large_state_and_a_silent_process(life: Life) -> None:
    """The process may hold standbys of all tasks."""
    _large(life)[1].silent_from = NOW - life.uniform(0.5, 10)


def small_state_of_a_long_log(life: Life) -> None:
    """Compaction keeps the newest of each key."""
    _stored(life, life.uniform(1e5, 1e6))
    _seen(life, 20_000)


def windowed_state_of_a_long_log(life: Life) -> None:
    _stored(life, life.uniform(1e5, 1e6), kind="window")
    _seen(life, 20_000)


def large_state_that_is_restored_fast(life: Life) -> None:
    _stored(life, life.uniform(3.2, 4.8) * 1e7)
    _seen(life, 150_000)


def small_state_in_memory(life: Life) -> None:
    """An in-memory store, restored at each start."""
    _stored(life, 1e6)
    for process in life.processes:
        process.stores = []
    life.processes[0].starts.append(NOW - 5 * MINUTE)
    life.processes[0].to_restore, life.processes[0].restores_per_second = 2e6, 20_000


def stateless_application(life: Life) -> None:
    _stored(life, 1e6)
    del life.topics[CHANGELOG]
    for process in life.processes:
        process.stores = []


def restarted_with_its_files(life: Life) -> None:
    """The records appended in the meantime are restored soon."""
    _restart(life, _offsets(life) * life.uniform(0.01, 0.1), 20_000)


def gauge_that_stands(life: Life) -> None:
    """On a compacted log the gauge never reaches 0: it starts as offsets, and decreases by records."""
    _stored(life, 1.5e7)
    for process in life.processes:
        process.to_restore = float(life.topics[CHANGELOG].end(NOW)) * TASKS - 1.5e7


FAULTS = (large_state_without_standbys, large_state_of_a_few_threads, restores_for_long, state_directory_is_lost)
DECOYS = (
    large_state_with_standbys,
    tasks_of_large_state_warm_up,
    large_state_and_a_silent_process,
    small_state_of_a_long_log,
    windowed_state_of_a_long_log,
    large_state_that_is_restored_fast,
    small_state_in_memory,
    stateless_application,
    restarted_with_its_files,
    gauge_that_stands,
)
