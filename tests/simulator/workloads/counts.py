"""Faults of partition counts, and decoys. See `topics`."""

from __future__ import annotations

from tests.simulator.workloads.process_lifetimes import COMPACTED, DAY, NOW, Life

BROKEN = "copartition_broken"
APP = "joiner"


def _joiner(life: Life, *partitions: int) -> None:
    """An application on topics with so many partitions; its changelog has as many as the first topic."""
    names = [f"source-{n}" for n in range(len(partitions))]
    for name, count in zip(names, partitions, strict=True):
        life.topic(name, partitions=count)
    life.application(APP, *names)
    life.topics[f"{APP}-totals-changelog"].partitions = partitions[0]


def _grow(life: Life, name: str, to: int, at: float) -> None:
    """The topic gets more partitions at that time."""
    topic = life.topics[name]
    life.may.add("topic_overpartitioned")
    if at < NOW:
        topic.partitions_before, topic.partitions = (at, topic.partitions), to


def _count(life: Life) -> int:
    return life.chance.choice([4, 6, 12])


# Co-partitioned sets


def one_of_two_joined_topics_grows(life: Life) -> None:
    count = _count(life)
    _joiner(life, count, count)
    _grow(life, "source-1", 2 * count, life.onset(1, 12 * DAY))
    life.fault(BROKEN, "broken", application_id=APP)


def source_of_a_store_grows(life: Life) -> None:
    count = _count(life)
    _joiner(life, count)
    _grow(life, "source-0", count + 2, life.onset(1, 12 * DAY))
    life.fault(BROKEN, "broken", application_id=APP)


def all_topics_grow_but_the_changelog(life: Life) -> None:
    count, at = _count(life), life.onset(1, 12 * DAY)
    _joiner(life, count, count)
    for name in ("source-0", "source-1"):
        _grow(life, name, 2 * count, at)
    life.fault(BROKEN, "broken", application_id=APP)


def one_of_two_merged_topics_grows(life: Life) -> None:
    """The topics never had the same number of partitions."""
    count = _count(life)
    _joiner(life, count, count + 3)
    _grow(life, "source-1", 2 * count + 3, NOW - life.uniform(1, 12 * DAY))


def all_grow_together(life: Life) -> None:
    count, at = _count(life), NOW - life.uniform(1, 12 * DAY)
    _joiner(life, count, count)
    for name in ("source-0", "source-1", f"{APP}-totals-changelog"):
        _grow(life, name, 2 * count, at)


def has_differed_for_long(life: Life) -> None:
    count = _count(life)
    _joiner(life, count, count)
    _grow(life, "source-1", 2 * count, NOW - life.uniform(16, 30) * DAY)


def topic_that_the_application_has_left_grows(life: Life) -> None:
    count = _count(life)
    _joiner(life, count, count)
    life.groups[APP].topics.remove("source-1")
    life.groups[APP].left = {"source-1": NOW - life.uniform(0.5, 5) * DAY}
    life.group("search", "source-1")
    _grow(life, "source-1", 2 * count, NOW - life.uniform(1, 8))


def topic_of_plain_consumers_grows(life: Life) -> None:
    count = _count(life)
    for name in ("orders", "customers"):
        life.topic(name, partitions=count)
    life.group("search", "orders", "customers")
    _grow(life, "orders", 2 * count, NOW - life.uniform(1, 12 * DAY))


def new_application_on_topics_that_differ(life: Life) -> None:
    life.topic("orders", partitions=6)
    life.topic("wide", life.uniform(4, 10) * 18, partitions=18)  # as much as so many partitions are for
    life.application(APP, "orders", "wide")
    life.topics[f"{APP}-totals-changelog"].configs = dict(COMPACTED)


FAULTS = (one_of_two_joined_topics_grows, source_of_a_store_grows, all_topics_grow_but_the_changelog)
DECOYS = (
    one_of_two_merged_topics_grows,
    all_grow_together,
    has_differed_for_long,
    topic_that_the_application_has_left_grows,
    topic_of_plain_consumers_grows,
    new_application_on_topics_that_differ,
)
