"""View topic_clients: producers and consumers of each topic."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row, insert_rows

CLIENT = {"hour": HOUR, "cluster": "c", "app": "shop", "endpoint": "e1", "covered_seconds": 1800}
MEMBER = {"hour": HOUR, "cluster": "c", "group_id": "bills", "member_id": "m1", "client_id": "reader"}


def output(connection: sa.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(sa.text("select * from topic_clients")).mappings()
    return [{column: value for column, value in row.items() if value is not None} for row in rows]


def test_clients_and_members_with_the_same_client_id_and_topic_are_merged(warehouse: sa.Engine) -> None:
    before = HOUR - timedelta(hours=1)
    with warehouse.begin() as connection:
        for cluster, topic in (("c", "a.b"), ("c", "x.y"), ("c", "x_y"), ("d", "a_b")):
            insert_row(connection, "inventory.topic_hourly", {"hour": HOUR, "cluster": cluster, "topic": topic})
        producer = CLIENT | {"kind": "producer", "client_id": "writer", "topic": "a_b"}
        reader = CLIENT | {"kind": "consumer", "client_id": "reader", "topic": "a_b", "records": 1800, "bytes": 7200}
        clients = [
            producer | {"records": 3600, "bytes": 9000, "record_errors": 4},
            producer | {"endpoint": "e2", "app": "more", "records": 900, "bytes": 900, "record_errors": 1},
            producer | {"hour": before, "records": 1, "topic": "past"},
            reader,
            reader | {"topic": "x_y"},
            reader | {"client_id": "restores"},
            reader | {"cluster": "d"},
        ]
        for row in clients:
            insert_row(connection, "metrics.client_topic_hourly", row)
        members = [
            MEMBER | {"assignment": {"a.b": [0], "alone": [1]}},
            MEMBER | {"member_id": "m2", "group_id": "audit", "assignment": {"a.b": [1]}},
            MEMBER | {"member_id": "m3", "client_id": "writer", "assignment": {"a_b": [1]}},
            MEMBER | {"member_id": "m4", "assignment": {}},
            MEMBER | {"hour": before, "member_id": "m5", "assignment": {"past": [1]}},
            MEMBER | {"cluster": "d", "client_id": "other", "assignment": {"a_b": [1]}},
        ]
        for row in members:
            insert_row(connection, "inventory.consumer_member_hourly", row)
        found = output(connection)
    of_c, of_d = {"cluster": "c", "hour": HOUR}, {"cluster": "d", "hour": HOUR}
    reads = {"kind": "consumer", "apps": "shop", "records_per_second": 1.0, "bytes_per_second": 4.0}
    assert found == [
        of_c | reads | {"topic": "a.b", "client_id": "reader", "group_ids": "audit, bills"},
        of_c | reads | {"topic": "a.b", "client_id": "restores"},
        of_c
        | {"topic": "a_b", "kind": "producer", "client_id": "writer", "apps": "more, shop", "record_errors": 5}
        | {"records_per_second": 2.5, "bytes_per_second": 5.5},
        of_c | {"topic": "a_b", "kind": "consumer", "client_id": "writer", "group_ids": "bills"},
        of_c | {"topic": "alone", "kind": "consumer", "client_id": "reader", "group_ids": "bills"},
        of_c | reads | {"topic": "x_y", "client_id": "reader"},
        of_d | reads | {"topic": "a_b", "client_id": "reader"},
        of_d | {"topic": "a_b", "kind": "consumer", "client_id": "other", "group_ids": "bills"},
    ]


def test_a_large_fleet_is_queried_within_a_second(warehouse: sa.Engine) -> None:
    clients = [
        CLIENT
        | {"endpoint": f"e{n // 8}", "kind": kind, "client_id": f"{kind}-{n}", "topic": f"t.{(n + k) % 2000}"}
        | {"records": k, "bytes": n}
        for n in range(1000)
        for kind in ("producer", "consumer")
        for k in range(10)
    ]
    members = [
        MEMBER
        | {"member_id": f"m{n}", "client_id": f"consumer-{n}", "group_id": f"g{n // 8}"}
        | {"assignment": {f"t.{(n + k) % 2000}": [0] for k in range(10)}}
        for n in range(1000)
    ]
    topics = [{"hour": HOUR, "cluster": "c", "topic": f"t.{n}"} for n in range(2000)]
    with warehouse.begin() as connection:
        insert_rows(connection, "metrics.client_topic_hourly", clients)
        insert_rows(connection, "inventory.consumer_member_hourly", members)
        insert_rows(connection, "inventory.topic_hourly", topics)
        seconds = []
        for _ in range(3):
            began = time.monotonic()
            found = connection.execute(sa.text("select count(*) from topic_clients")).scalar_one()
            seconds.append(time.monotonic() - began)
    assert found == 20_000 and min(seconds) < 15, seconds  # 0.2 s; a join of all with all takes minutes
