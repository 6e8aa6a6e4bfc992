"""Which volumes brokers and applications use: on Kubernetes, of a node's volumes those that other pods do not claim."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from streamwarden.causes import store_topology
from streamwarden.store.queries import ask

from tests.sql.cause_cases import store
from tests.sql.rows import HOUR, insert_row

NODE = {"account": "1", "region": "r", "instance_id": "i"}
PODS = {
    "c-1": {"role": "broker", "cluster": "c", "broker_id": 1},
    "d-1": {"role": "broker", "cluster": "d", "broker_id": 1, "endpoint": "d1"},
    "orders-0": {"role": "app", "cluster": "c", "app": "orders", "endpoint": "o0"},
}
"""Pod → its columns; each claims the volume of its name. That of cluster c has no endpoint now."""


@pytest.fixture
def node(warehouse: sa.Engine) -> sa.Engine:
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        for volume in (*PODS, "root"):
            for hour in (HOUR, HOUR - timedelta(hours=1)):
                insert_row(
                    connection, "inventory.volume_hourly", NODE | {"hour": hour, "volume_id": volume, "size_gib": 1}
                )
                load = {
                    "account": "1",
                    "region": "r",
                    "volume_id": volume,
                    "hour": hour,
                    "read_bytes": 10 ** len(volume),
                }
                insert_row(connection, "metrics.volume_hourly", load)
        for pod, columns in PODS.items():
            of_pod = {"hour": HOUR, "kubernetes": "k", "namespace": "n", "pod": pod}
            insert_row(connection, "inventory.pod_hourly", of_pod | {"uid": pod} | columns)
            insert_row(connection, "inventory.pod_claim_hourly", of_pod | {"claim": pod, "volume_id": pod})
        for cluster in "cd":
            broker = {"hour": HOUR, "cluster": cluster, "endpoint": f"{cluster}1", "broker_id": 1, "instance_id": "i"}
            insert_row(connection, "metrics.broker_hourly", broker | {"partitions": 1})
        for app in ("orders", "other name"):
            jvm = {"hour": HOUR, "cluster": "c", "app": app, "endpoint": "o0", "instance_id": "i"}
            insert_row(connection, "metrics.jvm_app_hourly", jvm)
    return warehouse


def rows(warehouse: sa.Engine, query: str) -> list[tuple[object, ...]]:
    with warehouse.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query), {"hour": HOUR})]


def test_a_claimed_volume_is_of_one_pod(node: sa.Engine) -> None:
    query = "select cluster, endpoint, is_broker, volume_id from inventory.used_volumes(:hour) order by 1, 2, 4"
    assert rows(node, query) == [
        ("c", "c1", True, "c-1"), ("c", "c1", True, "root"), ("c", "o0", False, "orders-0"), ("c", "o0", False, "root"),
        ("d", "d1", True, "d-1"), ("d", "d1", True, "root"),
    ]  # fmt: skip


def test_reads_of_a_cluster_are_those_of_its_brokers_volumes(node: sa.Engine) -> None:
    query = "select cluster, read_bytes from broker_reads_hourly(:hour, 1) where hour = :hour order by 1"
    assert rows(node, query) == [("c", 11_000.0), ("d", 11_000.0)]


def test_pages_show_a_claimed_volume_under_the_cluster_of_its_pod(node: sa.Engine) -> None:
    with node.begin() as connection:
        for volume in ("orders-0", "d-1", "root"):
            store(connection, {"of": "ebs_volume_starving", "resource": f"volume:1/r/{volume}"}, "firing")
        insert_row(connection, "inventory.instance_hourly", NODE | {"hour": HOUR})
        run = {"hour": HOUR, "detector": "ebs_volume_starving", "status": "evaluated"}
        insert_row(connection, "detect.detector_run", run)
        insert_row(connection, "detect.detector", {"hour": HOUR, "detector": "ebs_volume_starving"})
    store_topology(node, HOUR)
    wanted = dict.fromkeys(("severity", "detector", "kind", "owner", "application", "state", "after"))
    with node.connect() as connection:
        tiles = {row["key"]: row["findings"] for row in ask(connection, "pages/tiles", owner=None)}
        listed = {
            cluster: sorted(
                row["resource"].rpartition("/")[2]
                for row in ask(connection, "pages/findings", **wanted, cluster=cluster, words=[], most=10)
            )
            for cluster in "cd"
        }
    # A volume that no pod claims is of both clusters on the node.
    assert (tiles["cluster:c"], tiles["cluster:d"]) == (2, 2)
    assert listed == {"c": ["orders-0", "root"], "d": ["d-1", "root"]}
