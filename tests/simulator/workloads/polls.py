"""Topics with many fetches: consumers without fetch.max.wait.ms, and decoys. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import HOURS, Group, Life

POLLED = "topic_polled_empty"
QUIET = "alerts"


def _waited_for(life: Life, *beside: str) -> Group:
    """A topic with a record now and then, and a group that reads it, in a cluster with other topics."""
    life.topic("events")
    life.group("billing", "events")
    life.topic(QUIET, life.uniform(0.001, 0.5), partitions=life.chance.choice([1, 3, 6, 10]))
    return life.group("pager", QUIET, *beside)


def _without_waiting(life: Life) -> np.ndarray:
    """Fetches per second."""
    since = life.onset(1.1, 40)
    return np.where(np.arange(HOURS) >= np.floor(since), life.uniform(60, 600), 0.0)


def _hasty(life: Life, group: Group) -> None:
    group.polls_empty = _without_waiting(life)
    life.fault(POLLED, "polled", topic=QUIET)


def _hasty_and_says_so(life: Life, group: Group, client: str) -> None:
    """All members of all groups expose their fetches, including this one."""
    group.polls_empty = _without_waiting(life)
    for each in life.groups.values():
        life.consumers(each)
    metrics = {"first_group_id": group.name, "client_id": client}
    life.fault(POLLED, "client_polling", topic=QUIET, metrics=metrics)


def polled_without_waiting(life: Life) -> None:
    _hasty(life, _waited_for(life))


def polled_without_waiting_while_handlers_are_busy(life: Life) -> None:
    life.handlers_idle = life.uniform(0.05, 0.25)
    _hasty(life, _waited_for(life))


def one_of_two_groups_does_not_wait(life: Life) -> None:
    group = _waited_for(life)
    life.group("audit", QUIET)
    _hasty(life, group)


def client_polls_without_waiting(life: Life) -> None:
    group = _waited_for(life)
    _hasty_and_says_so(life, group, group.client)


def client_of_one_of_two_groups_does_not_wait(life: Life) -> None:
    """The other group is first by name."""
    group = _waited_for(life)
    life.group("audit", QUIET)
    _hasty_and_says_so(life, group, group.client)


def client_does_not_wait_beside_another_with_a_busy_topic(life: Life) -> None:
    """Both topics belong to one group: by the brokers' counters the fetches may be for the busy topic. A record now and
    then is larger than the empty responses before it."""
    group = _waited_for(life, "events")
    group.hasty_on = QUIET
    life.topics[QUIET].size *= life.uniform(1, 20)
    _hasty_and_says_so(life, group, f"{group.client}-{QUIET}")


def clients_say_that_they_wait(life: Life) -> None:
    _waited_for(life)
    life.group("audit", QUIET, "events")
    for group in life.groups.values():
        life.consumers(group)


def client_fetches_each_of_few_small_records(life: Life) -> None:
    """As many fetches as records, with responses twice as large as the record."""
    life.topic("ticks", life.uniform(50, 400), partitions=life.chance.choice([1, 6, 10]), size=np.full(HOURS, 90.0))
    life.consumers(life.group("trader", "ticks"))


def somebody_without_a_group_does_not_wait(life: Life) -> None:
    """Not the group of the topic: its members expose that they wait."""
    life.consumers(_waited_for(life))
    life.topics[QUIET].others_poll = _without_waiting(life)
    life.not_evaluated(POLLED, "unknown_reader", topic=QUIET)


def nobody_of_a_group_reads_it(life: Life) -> None:
    life.topic("events")
    life.group("billing", "events")
    life.topic(QUIET, life.uniform(0.001, 0.5)).others_poll = _without_waiting(life)
    life.not_evaluated(POLLED, "no_group", topic=QUIET)


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
    """Fetches in excess of records are not visible there."""
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
    client_polls_without_waiting,
    client_of_one_of_two_groups_does_not_wait,
    client_does_not_wait_beside_another_with_a_busy_topic,
)
DECOYS = (
    clients_say_that_they_wait,
    client_fetches_each_of_few_small_records,
    somebody_without_a_group_does_not_wait,
    nobody_of_a_group_reads_it,
    all_wait,
    many_groups_wait,
    a_fetch_for_each_record,
    reads_a_busy_topic_in_the_same_session,
    does_not_wait_beside_a_busy_topic,
    followers_fetch_for_busy_topics,
)
