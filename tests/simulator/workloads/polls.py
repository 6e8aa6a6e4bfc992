"""Topics that are fetched often: because somebody doesn't wait, and what only looks so. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.life import HOURS, Group, Life

POLLED = "topic_polled_empty"
QUIET = "alerts"


def _waited_for(life: Life, *beside: str) -> Group:
    """A topic that gets a record now and then, and a group that waits for it, in a cluster that has others."""
    life.topic("events")
    life.group("billing", "events")
    life.topic(QUIET, life.uniform(0.001, 0.5), partitions=life.chance.choice([1, 3, 6, 10]))
    return life.group("pager", QUIET, *beside)


def _hasty(life: Life, group: Group) -> None:
    """It fetches without waiting."""
    since = life.onset(1.1, 40)
    group.polls_empty = np.where(np.arange(HOURS) >= np.floor(since), life.uniform(60, 600), 0.0)
    life.fault(POLLED, "polled", topic=QUIET)


def polled_without_waiting(life: Life) -> None:
    _hasty(life, _waited_for(life))


def polled_without_waiting_while_handlers_are_busy(life: Life) -> None:
    life.handlers_idle = life.uniform(0.05, 0.25)
    _hasty(life, _waited_for(life))


def one_of_two_groups_does_not_wait(life: Life) -> None:
    group = _waited_for(life)
    life.group("audit", QUIET)
    _hasty(life, group)


def all_wait(life: Life) -> None:
    _waited_for(life)


def many_groups_wait(life: Life) -> None:
    _waited_for(life)
    for number in range(life.chance.randint(6, 20)):
        life.group(f"watcher-{number}", QUIET)


def a_fetch_for_each_record(life: Life) -> None:
    life.topic("ticks", life.uniform(50, 400), partitions=life.chance.choice([1, 6, 10]))
    life.group("trader", "ticks")


def reads_a_busy_topic_in_the_same_session(life: Life) -> None:
    _waited_for(life, "events")


def does_not_wait_beside_a_busy_topic(life: Life) -> None:
    """That it asks more often than records come can't be seen there."""
    group = _waited_for(life, "events")
    group.polls_empty = life.uniform(10, 100)


def followers_fetch_for_busy_topics(life: Life) -> None:
    _waited_for(life)
    life.topic("clicks", life.uniform(400, 2000))
    life.group("search", "clicks")


FAULTS = (
    polled_without_waiting,
    polled_without_waiting_while_handlers_are_busy,
    one_of_two_groups_does_not_wait,
)
DECOYS = (
    all_wait,
    many_groups_wait,
    a_fetch_for_each_record,
    reads_a_busy_topic_in_the_same_session,
    does_not_wait_beside_a_busy_topic,
    followers_fetch_for_busy_topics,
)
