"""Owners of internal topics: names as Kafka Streams generates them, with dashes on both sides."""

from __future__ import annotations

import pytest

from spark_apps.models.streams_topics import StreamsTopics

AGGREGATE = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"
KSQL = "_confluent-ksql-pksqlc-1query"
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
        # A sibling with a generated name reveals the application.
        (
            "orders-by-day-changelog",
            [],
            [f"orders-{AGGREGATE}-repartition", "orders-by-week-changelog"],
            ("orders", "by-day"),
        ),
        # The application is the common prefix of siblings; stores with a common prefix do not lengthen it.
        (
            "orders-eu-totals-changelog",
            [],
            ["orders-eu-counts-changelog", "orders-us-x-changelog"],
            ("orders-eu", "totals"),
        ),
        ("orders-totals-late-changelog", [], ["orders-totals-changelog"], ("orders", "totals-late")),
        # ksqlDB: the query's id ends in a number.
        (
            f"{KSQL}_CTAS_ORDERS_0-Aggregate-Aggregate-Materialize-changelog",
            [],
            [f"{KSQL}_CTAS_ORDERS_0-Aggregate-x-repartition"],
            (f"{KSQL}_CTAS_ORDERS_0", "Aggregate-Aggregate-Materialize"),
        ),
        (f"{KSQL}_CTAS_A_3-Join-repartition", [], [], (f"{KSQL}_CTAS_A_3", "Join")),
        ("orders-changelog", ["orders"], [], None),
        ("orders", ["orders"], [], None),
    ],
)
def test_split(topic: str, groups: list[str], others: list[str], expected: tuple[str, str] | None) -> None:
    part = StreamsTopics(groups, [topic, *others]).split(topic)
    assert (part and part[1:]) == expected


REGISTRATION = "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000005"
RESPONSE = "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000013"


@pytest.mark.parametrize(
    ("topic", "groups", "expected"),
    [
        (f"orders-eu-{REGISTRATION}-topic", [], ("repartition", "orders-eu", REGISTRATION)),
        (f"orders-eu-{RESPONSE}-topic", ["orders-eu"], ("repartition", "orders-eu", RESPONSE)),
        (
            "orders-eu-by-buyer-subscription-registration-topic",
            ["orders-eu"],
            ("repartition", "orders-eu", "by-buyer-subscription-registration"),
        ),
        (
            "orders-buyer-subscription-response-topic",
            [],
            ("repartition", "orders", "buyer-subscription-response"),
        ),
        ("orders-buyer-subscription-store-changelog", [], ("changelog", "orders", "buyer-subscription-store")),
        # Decoys: a company's own topics.
        ("orders-topic", ["orders"], None),
        ("subscription-registration-topic", [], None),
        ("newsletter-subscription-registration-topic", [], None),
        (f"orders-{REGISTRATION}", ["orders"], None),
        ("orders-KTABLE-FK-JOIN-SUBSCRIPTION-OTHER-0000000005-topic", ["orders"], None),
    ],
)
def test_a_foreign_key_join_s_topics(topic: str, groups: list[str], expected: tuple[str, str, str] | None) -> None:
    names = StreamsTopics(groups, [topic])
    part = names.split(topic)
    assert part == expected and names.kind(topic) == (expected[0] if expected else "plain")


def test_a_generated_join_reveals_the_application_of_named_stores() -> None:
    topics = [f"orders-eu-{REGISTRATION}-topic", "orders-eu-totals-changelog"]
    part = StreamsTopics([], topics).split("orders-eu-totals-changelog")
    assert part and part.application_id == "orders-eu"


def test_ten_thousand_topics_are_split_at_once() -> None:
    topics = [f"app-{i % 500}-store-{i}-changelog" for i in range(10_000)]
    names = StreamsTopics([f"app-{i}" for i in range(500)], topics)
    found = {part[1:] for topic in topics if (part := names.split(topic))}
    assert found == {(f"app-{i % 500}", f"store-{i}") for i in range(10_000)}


PATTERNS = [r"(?P<job>[a-z-]+)-seen-log", r"(?P<job>.+)-(?P<store>totals|counts)-changelog"]


@pytest.mark.parametrize(
    ("topic", "kind", "owner"),
    [
        ("__samza_coordinator_wikipedia-stats_1", "coordinator", "wikipedia-stats"),
        ("__samza_checkpoint_ver_1_for_wikipedia-stats_1", "checkpoint", "wikipedia-stats"),
        ("__samza_checkpoint_ver_2_for_wikipedia-stats_blue", "checkpoint", "wikipedia-stats-blue"),
        ("billing-eu-seen-log", "changelog", "billing-eu"),
        ("billing-eu-totals-changelog", "changelog", "billing-eu"),
        # A job is identified by its coordinator stream, as an application is by its group.
        ("wikipedia-stats-edits-changelog", "changelog", "wikipedia-stats"),
        # Decoys: names with only the prefix or only the suffix, and Kafka's own topics.
        ("old-__samza_coordinator_wikipedia-stats_1", "plain", None),
        ("__samza_coordinator_backup", "internal", None),
        ("__samza_checkpoint_ver_1_for_a_b_c", "internal", None),
        ("billing-seen-log-2", "plain", None),
        ("the-billing-seen-logs", "plain", None),
        ("__consumer_offsets", "internal", None),
        ("-changelog", "changelog", None),
        ("orders", "plain", None),
    ],
)
def test_topics_of_a_samza_job(topic: str, kind: str, owner: str | None) -> None:
    names = StreamsTopics([], [topic, "__samza_coordinator_wikipedia-stats_1"], PATTERNS)
    part = names.split(topic)
    assert (names.kind(topic), part and part.application_id) == (kind, owner)


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
def test_a_changelog_is_attributed_to_a_store_with_evidence_only(
    topic: str, groups: list[str], settings: dict[str, dict[str, str]] | None, expected: bool
) -> None:
    assert StreamsTopics(groups, [topic]).has_store(topic, settings) is expected


def test_a_changelog_that_the_config_names_is_one_unless_it_is_not_compacted() -> None:
    names = StreamsTopics([], ["billing-seen-log", "billing-totals-changelog"], PATTERNS)
    assert names.has_store("billing-seen-log", COMPACT) and names.has_store("billing-totals-changelog", None)
    assert not names.has_store("billing-seen-log", DELETE)
    assert not names.has_store("billing-seen-logs", COMPACT)
    parts = [names.split(topic) for topic in ("billing-seen-log", "billing-totals-changelog")]
    assert [part and part.store for part in parts] == ["billing-seen-log", "totals"]
