"""Which volumes brokers and applications use: on Kubernetes, of a node's volumes those that other pods do not claim."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from streamwarden.causes import store_topology
from streamwarden.store.queries import ask

from tests.sql.cases import insert_given
from tests.sql.cause_cases import store
from tests.sql.given import rows_for
from tests.sql.rows import HOUR, insert_row

PLACE = {"account": "1", "region": "r"}
PODS = {
    "c-1": {"role": "broker", "cluster": "c", "broker_id": 1},
    "d-1": {"role": "broker", "cluster": "d", "broker_id": 1, "endpoint": "d1"},
    "orders-0": {"role": "app", "cluster": "c", "app": "orders", "endpoint": "o0"},
}
"""Pod → its columns; each claims the volume of its name. That of cluster c has no endpoint now."""


def _node() -> dict[str, list[dict[str, Any]]]:
    """A node with a broker of each of two clusters and an application; its root volume is not claimed."""
    volumes = [{**PLACE, "volume_id": volume, "instance_id": "i", "size_gib": 1} for volume in (*PODS, "root")]
    before = {"hour": HOUR - timedelta(hours=1)}
    volumes.append({**PLACE, "volume_id": "detached", "instance_id": None})  # was attached to the node an hour ago
    brokers = [
        {"cluster": of, "endpoint": f"{of}1", "broker_id": 1, "instance_id": "i", "partitions": 1} for of in "cd"
    ]
    reads = [{**PLACE, "volume_id": volume, "read_bytes": 10 ** len(volume)} for volume in (*PODS, "root")]
    reads += [{**row, **other, "read_bytes": 7} for row in reads for other in ({"account": "2"}, {"region": "s"})]
    pods = {pod: {"kubernetes": "k", "namespace": "n", "pod": pod} for pod in PODS}
    return {
        "inventory.volume_hourly": [*volumes, *({**row, **before, "instance_id": "i"} for row in volumes)],
        "metrics.volume_hourly": [*reads, *({**row, **before} for row in reads)],
        "inventory.pod_hourly": [pods[pod] | {"uid": pod} | columns for pod, columns in PODS.items()],
        "inventory.pod_claim_hourly": [of_pod | {"claim": pod, "volume_id": pod} for pod, of_pod in pods.items()],
        "metrics.broker_hourly": [*brokers, {**brokers[0], **before, "endpoint": "former"}],
        "metrics.jvm_app_hourly": [
            {"cluster": "c", "app": app, "endpoint": endpoint, "instance_id": "i", **at}
            for app, endpoint, at in (("orders", "o0", {}), ("other name", "o0", {}), ("orders", "former", before))
        ],
    }


def test_a_claimed_volume_is_of_one_pod(module_warehouse: sa.Engine) -> None:
    query = "select cluster, endpoint, is_broker, volume_id from inventory.used_volumes(:hour) order by 1, 2, 4"
    assert rows_for(module_warehouse, _node(), query) == [
        ("c", "c1", True, "c-1"), ("c", "c1", True, "root"), ("c", "o0", False, "orders-0"), ("c", "o0", False, "root"),
        ("d", "d1", True, "d-1"), ("d", "d1", True, "root"),
    ]  # fmt: skip


def test_reads_of_a_cluster_are_those_of_its_brokers_volumes(module_warehouse: sa.Engine) -> None:
    query = "select cluster, read_bytes from broker_reads_hourly(:hour, 1) where hour = :hour order by 1"
    assert rows_for(module_warehouse, _node(), query) == [("c", 11_000.0), ("d", 11_000.0)]


def test_minutes_of_a_broker_are_those_of_its_own_claims_and_of_volumes_that_no_pod_claims(
    module_warehouse: sa.Engine,
) -> None:
    query = "select cluster, broker_id, volume_id from public.broker_disk_minutes(:hour) order by 1, 3"
    expected = [("c", 1, "c-1"), ("c", 1, "root"), ("d", 1, "d-1"), ("d", 1, "root")]
    assert rows_for(module_warehouse, _node(), query) == expected


def test_pages_show_a_claimed_volume_under_the_cluster_of_its_pod(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        insert_given(connection, {"given": _node()})
        for volume in ("orders-0", "d-1", "root"):
            store(connection, {"of": "ebs_volume_starving", "resource": f"volume:1/r/{volume}"}, "firing")
        insert_row(connection, "inventory.instance_hourly", PLACE | {"hour": HOUR, "instance_id": "i"})
        run = {"hour": HOUR, "detector": "ebs_volume_starving", "status": "evaluated"}
        insert_row(connection, "detect.detector_run", run)
        insert_row(connection, "detect.detector", {"hour": HOUR, "detector": "ebs_volume_starving"})
    store_topology(warehouse, HOUR)
    wanted = dict.fromkeys(("severity", "detector", "kind", "owner", "application", "state", "after"))
    with warehouse.connect() as connection:
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
