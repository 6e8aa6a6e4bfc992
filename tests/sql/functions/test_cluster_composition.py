"""Views cluster_composition and topic_copies: stateful and stateless jobs, topics with and without a copy."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row


def test_jobs_with_stores_are_stateful(warehouse: sa.Engine) -> None:
    process = {"endpoint": "o:1", "app": "orders", "application_id": "orders"}
    seen = [
        ("detect.load", {"app": "jvm_apps", "status": "loaded"}),
        ("metrics.jvm_app_hourly", {"cluster": "a", **process}),
        ("metrics.jvm_app_hourly", {"cluster": "a", **process, "endpoint": "o:2"}),
        ("metrics.jvm_app_hourly", {"cluster": "a", "endpoint": "m:1", "app": "mails", "application_id": "mails"}),
        # The same application id in another cluster, where it has no store.
        ("metrics.jvm_app_hourly", {"cluster": "b", **process}),
        ("metrics.state_store_hourly", {"cluster": "a", "topic": "s", "application_id": "orders"}),
        ("inventory.topic_hourly", {"cluster": "a", "topic": "t", "kind": "plain"}),
        ("metrics.consumer_group_hourly", {"cluster": "a", "group_id": "g"}),
    ]
    with warehouse.begin() as connection:
        for table, row in seen:
            insert_row(connection, table, {"hour": HOUR, **row})
        rows = connection.execute(sa.text("select * from cluster_composition")).mappings().all()
    assert [tuple(row.values()) for row in rows] == [
        ("a", None, 2, 1, 1, None, 3, 1, 1, 1, None),
        ("b", None, 1, 0, 1, None, 1, 0, 0, 0, 0),
    ]


def test_applications_are_counted_by_latency_target(warehouse: sa.Engine) -> None:
    jobs = [("a", job) for job in ("pay", "ship", "bill", "mail")] + [("b", "pay"), ("b", "mail")]
    targets = [("^application:[ab]/pay$", 0.5), ("^application:a/(ship|bill)$", 5)]
    owned = {"position": 1, "key_pattern": "^application:a/bill$", "owner": "money"}
    with warehouse.begin() as connection:
        insert_row(connection, "detect.load", {"hour": HOUR, "app": "jvm_apps", "status": "loaded"})
        insert_row(connection, "detect.owner", {"hour": HOUR, **owned})
        for position, (pattern, seconds) in enumerate(targets):
            target = {"position": position, "key_pattern": pattern, "seconds": seconds}
            insert_row(connection, "detect.latency_target", {"hour": HOUR, **target})
        for cluster, job in jobs:
            process = {"cluster": cluster, "endpoint": f"{job}:1", "app": job, "application_id": job}
            insert_row(connection, "metrics.jvm_app_hourly", {"hour": HOUR, **process})
        rows = connection.execute(sa.text("select * from cluster_composition")).mappings().all()
    assert {(row["cluster"], row["owner"]): (row["applications"], row["applications_by_target"]) for row in rows} == {
        ("a", "money"): (1, {"5": 1}), ("a", None): (3, {"0.5": 1, "5": 1}), ("b", None): (2, {"0.5": 1}),
    }  # fmt: skip


def copies(warehouse: sa.Engine, topics: dict[str, list[str]], *readers: dict[str, object]) -> dict[str, object]:
    """Mirrors, backups, and has_copy of each topic, by cluster/topic; and topics without a copy by cluster."""
    with warehouse.begin() as connection:
        insert_row(connection, "detect.load", {"hour": HOUR, "app": "consumer_groups", "status": "loaded"})
        for cluster, names in topics.items():
            for name in names:
                kind = "changelog" if name.endswith("-changelog") else "plain"
                row = {"hour": HOUR, "cluster": cluster, "topic": name, "kind": kind}
                insert_row(connection, "inventory.topic_hourly", row)
        for reader in readers:
            insert_row(connection, "metrics.consumer_partition_hourly", {"hour": HOUR, "partition": 0, **reader})
        found = connection.execute(sa.text("select * from topic_copies")).mappings().all()
        summed = connection.execute(sa.text("select cluster, topics_without_copy from cluster_composition")).all()
        connection.rollback()
    output: dict[str, object] = {
        f"{r['cluster']}/{r['topic']}": (r["mirrors"], r["backups"], r["has_copy"]) for r in found
    }
    return output | {row.cluster: row.topics_without_copy for row in summed}


def test_a_mirror_is_a_topic_with_the_name_that_mirrormaker_gives(warehouse: sa.Engine) -> None:
    found = copies(
        warehouse,
        {
            "east": ["orders", "east.like", "heartbeats", "mm2-offset-syncs.dr.internal", "a-s-changelog"],
            "dr": ["east.checkpoints.internal", "east.heartbeats", "east.orders", "east.lost", "own", "x.orders"],
        },
    )
    assert found == {
        "east/orders": ("dr/east.orders", None, True),
        "east/east.like": (None, None, False),  # no cluster has an internal topic of MirrorMaker for it
        "dr/own": (None, None, False),
        "dr/x.orders": (None, None, False),
        "east": 1,
        "dr": 2,
    }


def test_an_unknown_alias_stands_for_the_only_other_cluster_with_the_topic(
    warehouse: sa.Engine,
) -> None:
    topics = {"one": ["orders", "both"], "two": ["both"], "dr": ["us.checkpoints.internal", "us.orders", "us.both"]}
    found = copies(warehouse, topics)
    assert [found[f"{place}"] for place in ("one/orders", "one/both", "two/both")] == [
        ("dr/us.orders", None, True),
        (None, None, False),
        (None, None, False),
    ]
    named = copies(warehouse, {**topics, "us": ["both"]})
    assert [named[place] for place in ("one/orders", "one/both", "us/both")] == [
        (None, None, False),
        (None, None, False),
        ("dr/us.both", None, True),
    ]


def test_a_backup_is_a_reading_group_with_such_a_name_and_a_single_cluster_has_no_known_mirrors(
    warehouse: sa.Engine,
) -> None:
    late = {"cluster": "c", "lag_records": 5, "committed_at": HOUR - timedelta(days=1, seconds=1)}
    readers: list[dict[str, object]] = [
        {**late, "topic": "sunk", "group_id": "connect-orders-S3-sink", "lag_records": 0},
        {**late, "topic": "sunk", "group_id": "nightly-backup", "committed_at": HOUR - timedelta(days=1)},
        {**late, "topic": "stopped", "group_id": "nightly-backup"},
        {**late, "topic": "searched", "group_id": "connect-elastic", "lag_records": 0},
        {**late, "topic": "elsewhere", "group_id": "backup", "lag_records": 0, "cluster": "d"},
        {**late, "topic": "before", "group_id": "backup", "lag_records": 0, "hour": HOUR - timedelta(hours=1)},
    ]
    topics = ["sunk", "stopped", "searched", "elsewhere", "before"]
    assert copies(warehouse, {"c": topics}, *readers) == {
        "c/sunk": (None, "connect-orders-S3-sink, nightly-backup", True),
        **{f"c/{name}": (None, None, None) for name in topics[1:]},
        "c": None,
    }
    both = copies(warehouse, {"c": topics, "other": ["sunk"]}, *readers)
    assert (both["c/sunk"], both["other/sunk"], both["c/stopped"]) == (
        (None, "connect-orders-S3-sink, nightly-backup", True),
        (None, None, False),
        (None, None, False),
    )
    assert both["c"] == 4 and both["other"] == 1
