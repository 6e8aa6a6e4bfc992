"""Resources observed in the last 24 hours, as observed in the newest of these hours."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

FETCHES = "client_fetch_bytes_per_second"


def test_each_resource_is_as_last_observed(warehouse: sa.Engine) -> None:
    place = {"account": "1", "region": "r"}
    seen = [
        ("inventory.topic_hourly", 23, {"cluster": "a", "topic": "old"}),
        ("inventory.topic_hourly", 24, {"cluster": "gone", "topic": "older"}),
        *(
            ("inventory.topic_hourly", back, {"cluster": c, "topic": t})
            for back in (0, 1)
            for c, t in ("ax", "ay", "bx")
        ),
        ("inventory.topic_hourly", 2, {"cluster": "c", "topic": "x"}),
        ("inventory.volume_hourly", 1, place | {"volume_id": "v", "name": "before"}),
        ("inventory.volume_hourly", 0, place | {"volume_id": "v", "name": "now"}),
        ("inventory.volume_hourly", 1, {**place, "account": "2"} | {"volume_id": "v", "name": "other"}),
        ("inventory.instance_hourly", 1, place | {"instance_id": "i", "name": "before", "owner": "them"}),
        ("inventory.instance_hourly", 0, place | {"instance_id": "i", "name": "now", "owner": "us"}),
        *(
            (
                "metrics.instance_health_hourly",
                back,
                place | {"instance_id": i, "instance_group": "m", "application": "shop"},
            )
            for i, back in (("i", 1), ("j", 2), ("k", 24))
        ),
        ("metrics.node_hourly", 0, {"cluster": "a", "endpoint": "http://n:9100", "instance_id": "i"}),
        ("metrics.node_hourly", 3, {"cluster": "a", "endpoint": "http://m:9100/metrics"}),
        ("metrics.node_hourly", 0, {"cluster": "b", "endpoint": "http://n:9100", "instance_id": "other"}),
        ("metrics.node_hourly", 1, {"cluster": "a", "endpoint": "http://n:9100", "instance_id": "before"}),
        ("metrics.consumer_group_hourly", 5, {"cluster": "a", "group_id": "g"}),
        ("metrics.consumer_group_hourly", 3, {"cluster": "a", "group_id": "g"}),
        ("metrics.consumer_partition_hourly", 0, {"cluster": "a", "topic": "x", "group_id": "g", "partition": 0}),
        ("metrics.consumer_partition_hourly", 0, {"cluster": "a", "topic": "x", "group_id": "g", "partition": 1}),
        ("metrics.consumer_partition_hourly", 1, {"cluster": "a", "topic": "x", "group_id": "h", "partition": 1}),
        *(
            ("metrics.broker_sample", back, {"cluster": c, "endpoint": e, "metric": metric, "labels": labels})
            for back, c, e, metric, labels in (
                (0, "a", "b1", FETCHES, '{"client": "reader"}'),
                (0, "a", "b2", FETCHES, '{"client": "reader", "user": "u"}'),
                (0, "b", "b1", FETCHES, '{"client": "reader"}'),
                (0, "a", "b1", FETCHES, '{"client": ""}'),
                (1, "a", "b1", FETCHES, '{"client": "gone"}'),
                (0, "a", "b1", "leaders", '{"client": "other"}'),
            )
        ),
        *(
            (
                "metrics.client_hourly",
                back,
                {"cluster": "a", "app": app, "endpoint": "e", "kind": kind, "client_id": "reader"},
            )
            for back, app, kind in ((0, "shop", "consumer"), (0, "a-producer", "producer"), (1, "before", "consumer"))
        ),
        ("metrics.state_store_hourly", 4, {"cluster": "a", "topic": "s", "application_id": "app"}),
    ]
    with warehouse.begin() as connection:
        for table, back, row in seen:
            insert_row(connection, table, {"hour": HOUR - timedelta(hours=back), **row})
        query = "select key, name, owner, seen_hour from public.resources(:hour)"
        found = {key: rest for key, *rest in connection.execute(sa.text(query), {"hour": HOUR})}
        of = "select key, application from public.resources(:hour) where kind = 'client' order by key"
        clients = [tuple(row) for row in connection.execute(sa.text(of), {"hour": HOUR})]
        of = "select upstream, downstream from public.resource_links(:hour) where downstream like 'client:%'"
        links = [tuple(row) for row in connection.execute(sa.text(of), {"hour": HOUR})]
    assert clients == [("client:a/reader", "shop"), ("client:b/reader", None)]
    assert links == [("process:a/e", "client:a/reader")]
    backs = {key: (HOUR - seen_hour) / timedelta(hours=1) for key, (_, _, seen_hour) in found.items()}
    assert backs == {
        "cluster:a": 0, "cluster:b": 0, "cluster:c": 2, "topic:a/old": 23, "topic:a/x": 0, "topic:a/y": 0,
        "topic:b/x": 0, "topic:c/x": 2, "volume:1/r/v": 0, "volume:2/r/v": 1, "instance:1/r/i": 0, "group:a/g": 3,
        "reading:a/x/g": 0,
        "client:a/reader": 0, "client:b/reader": 0,
        "store:a/s": 4, "instances:1/r/m": 1,
        "host:a/http://n:9100": 0, "host:a/http://m:9100/metrics": 3, "host:b/http://n:9100": 0,
    }  # fmt: skip
    assert [found[key][0] for key in ("volume:1/r/v", "volume:2/r/v", "instance:1/r/i")] == [
        "v (now)", "v (other)", "i (now)",
    ]  # fmt: skip
    assert [found[f"host:a/http://{host}"][:2] for host in ("n:9100", "m:9100/metrics")] == [
        ["a host i", "us"], ["a host m:9100", None],
    ]  # fmt: skip
    assert found["instance:1/r/i"][1] == found["instances:1/r/m"][1] == "us"


def test_what_a_pod_claims_and_runs_has_its_owner_and_name(warehouse: sa.Engine) -> None:
    place, node = {"account": "1", "region": "r"}, {"instance_id": "i"}
    pods = {
        "orders-0": {"role": "app", "app": "orders", "endpoint": "http://o0/metrics", "owner": "shop"},
        "orders-1": {"role": "app", "app": "orders", "endpoint": "http://o1/metrics", "owner": "shop"},
        "c-broker-1": {"role": "broker", "broker_id": 1, "endpoint": "http://b1/metrics", "owner": "platform"},
    }
    with warehouse.begin() as connection:
        insert_row(connection, "inventory.instance_hourly", {"hour": HOUR, "owner": "nodes"} | place | node)
        for pod, more in pods.items():
            of_pod = {"hour": HOUR, "kubernetes": "k", "namespace": "n", "pod": pod}
            insert_row(connection, "inventory.pod_hourly", of_pod | {"uid": pod, "cluster": "c"} | more)
            insert_row(connection, "inventory.pod_claim_hourly", of_pod | {"claim": pod, "volume_id": f"v-{pod}"})
            volume = {"hour": HOUR, "volume_id": f"v-{pod}"}
            insert_row(connection, "inventory.volume_hourly", volume | place | node)
            if more["role"] == "app":
                jvm = {"hour": HOUR, "cluster": "c", "app": "orders", "endpoint": more["endpoint"]}
                insert_row(connection, "metrics.jvm_app_hourly", jvm | node | {"application_id": "shop-orders"})
        tagged = {"hour": HOUR, "volume_id": "v-tagged", "owner": "tag"}
        insert_row(connection, "inventory.volume_hourly", tagged | place | node)
        query = "select key, name, owner, application from public.resources(:hour) where kind in ('volume', 'process')"
        found = {key: rest for key, *rest in connection.execute(sa.text(query), {"hour": HOUR})}
    assert found == {
        "volume:1/r/v-orders-0": ["v-orders-0", "shop", "shop-orders"],
        "volume:1/r/v-orders-1": ["v-orders-1", "shop", "shop-orders"],
        "volume:1/r/v-c-broker-1": ["v-c-broker-1", "platform", None],
        "volume:1/r/v-tagged": ["v-tagged", "tag", None],
        "process:c/http://o0/metrics": ["c/orders on orders-0", "shop", "shop-orders"],
        "process:c/http://o1/metrics": ["c/orders on orders-1", "shop", "shop-orders"],
    }
