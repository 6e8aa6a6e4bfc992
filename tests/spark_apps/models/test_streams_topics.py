"""Whose an internal topic is: names as Kafka Streams makes them, with dashes on both sides."""

from __future__ import annotations

import pytest

from spark_apps.models.streams_topics import StreamsTopics

AGGREGATE = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"
JOIN = "KSTREAM-JOINTHIS-0000000016-store"


@pytest.mark.parametrize(
    ("topic", "groups", "others", "expected"),
    [
        ("orders-totals-changelog", [], [], ("orders", "totals")),
        ("orders-eu-totals-changelog", ["orders-eu"], [], ("orders-eu", "totals")),
        ("orders-eu-totals-changelog", ["orders", "orders-eu"], [], ("orders-eu", "totals")),
        ("orders-eu-totals-changelog", ["orders-europe", "totals"], [], ("orders", "eu-totals")),
        (f"orders-eu-{AGGREGATE}-changelog", [], [], ("orders-eu", AGGREGATE)),
        (
            "orders-eu-KSTREAM-JOINTHIS-0000000016-store-changelog",
            [],
            [],
            ("orders-eu", "KSTREAM-JOINTHIS-0000000016-store"),
        ),
        ("orders-eu-by-customer-repartition", [], [], ("orders", "eu-by-customer")),
        # A sibling whose name was generated tells the application.
        (
            "orders-by-day-changelog",
            [],
            [f"orders-{AGGREGATE}-repartition", "orders-by-week-changelog"],
            ("orders", "by-day"),
        ),
        # What siblings share is the application; a store whose name begins as another's doesn't lengthen it.
        (
            "orders-eu-totals-changelog",
            [],
            ["orders-eu-counts-changelog", "orders-us-x-changelog"],
            ("orders-eu", "totals"),
        ),
        ("orders-totals-late-changelog", [], ["orders-totals-changelog"], ("orders", "totals-late")),
        ("orders-changelog", ["orders"], [], None),
        ("orders", ["orders"], [], None),
    ],
)
def test_split(topic: str, groups: list[str], others: list[str], expected: tuple[str, str] | None) -> None:
    assert StreamsTopics(groups, [topic, *others]).split(topic) == expected


def test_ten_thousand_topics_are_split_at_once() -> None:
    topics = [f"app-{i % 500}-store-{i}-changelog" for i in range(10_000)]
    names = StreamsTopics([f"app-{i}" for i in range(500)], topics)
    assert {names.split(topic) for topic in topics} == {(f"app-{i % 500}", f"store-{i}") for i in range(10_000)}


STREAMS = {"message.timestamp.type": {"value": "CreateTime", "source": "dynamic_topic_config"}}
COMPACT = {"cleanup.policy": {"value": "compact,delete", "source": "dynamic_topic_config"}}
DELETE = {"cleanup.policy": {"value": "delete", "source": "default_config"}}


@pytest.mark.parametrize(
    ("topic", "groups", "settings", "expected"),
    [
        ("orders-totals-changelog", ["orders"], COMPACT, True),
        ("orders-totals-changelog", ["orders"], None, True),
        ("orders-totals-changelog", [], COMPACT | STREAMS, True),  # stopped for so long that its group is gone
        (f"orders-{AGGREGATE}-changelog", [], COMPACT, True),
        # A company's own topics.
        ("audit-changelog", ["audit"], DELETE, False),
        ("billing-audit-changelog", ["billing"], DELETE, False),
        ("billing-audit-changelog", [], COMPACT, False),
        ("billing-audit-changelog", [], None, False),
        ("orders-by-customer-repartition", ["orders"], COMPACT | STREAMS, False),
    ],
)
def test_a_changelog_is_a_store_s_with_evidence_only(
    topic: str, groups: list[str], settings: dict[str, dict[str, str]] | None, expected: bool
) -> None:
    assert StreamsTopics(groups, [topic]).has_store(topic, settings) is expected
