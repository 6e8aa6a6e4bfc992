"""App kubernetes against a real API server, through Spark into the warehouse: pods, claims, owners, and past hours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from demo import kubernetes_world as world
from demo.kubernetes_api import PROGRAM, KubernetesApi
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, load_config
from streamwarden.base.hours import HOUR, gap_of_present

from spark_apps.apps.ebs_volumes import inventory
from spark_apps.sources.kube import discover
from spark_apps.submit import run_app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="make kubernetes-api builds the API server"),
]
NOW = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
LAST = NOW.replace(minute=0) - HOUR
Run = Callable[..., dict[str, int]]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    killed = world.ended("OOMKilled", 137, LAST + timedelta(minutes=40))
    owned = {"strimzi.io/cluster": "orders", "team": "shop"}
    with KubernetesApi(tmp_path_factory.mktemp("kubernetes")) as running:
        running.apply(world.namespace("kafka"), *world.definitions())
        running.apply(
            world.node("node-a", "i-0a00000000000000a"),
            world.volume("pv-0", "vol-0000000000000000a"),
            world.claim("kafka", "data-0-orders-broker-0", "pv-0"),
            world.kafka("kafka", "orders", "orders-kafka-bootstrap.kafka.svc:9092", labels={"team": "shop"}),
            world.strimzi("kafka", "KafkaTopic", "invoices", {"topicName": "Invoices_v1"}, {}, owned),
            world.broker("kafka", "orders", 0, claims=("data-0-orders-broker-0",), labels={"team": "shop"}),
            world.pod("kafka", "fees-0", labels={"app": "fees", "team": "money"}, ports={"metrics": 8080}, restarts=2,
                      last=killed),
        )  # fmt: skip
        yield running


@pytest.fixture
def run(
    api: KubernetesApi, spark: Any, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    monkeypatch.setattr(inventory, "gap_of_present", partial(gap_of_present, now=NOW))
    file = tmp_path / "streamwarden.yaml"
    for name, value in {CONFIG_ENV: str(file), WAREHOUSE_ENV: warehouse_url}.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)

    def ran(hour: datetime = LAST, **entry: Any) -> dict[str, int]:
        kubeconfig = api.kubeconfig(name=f"kubeconfig-{tmp_path.name}")  # another path: no task remembers another test
        settings = {"name": "eks", "kubeconfig": str(kubeconfig), "owner_labels": ["team"]} | entry
        settings.setdefault("selectors", {"apps": ["app=fees"]})
        file.write_text(yaml.safe_dump({"kubernetes": [settings]}))
        discover._discover.cache_clear()
        return run_app(spark, "kubernetes", hour, load_config())

    yield ran


def rows(warehouse: sa.Engine, query: str) -> list[sa.RowMapping]:
    with warehouse.connect() as connection:
        return list(connection.execute(sa.text(query), {"hour": LAST}).mappings())


def test_an_hour_of_pods_claims_and_resources(run: Run, warehouse: sa.Engine) -> None:
    first = run()
    assert first == {
        "inventory.pod_hourly": 2, "inventory.pod_claim_hourly": 1, "inventory.strimzi_resource_hourly": 2
    }  # fmt: skip
    assert run() == first  # and again the same
    broker, app = rows(warehouse, "select * from inventory.pod_hourly order by role desc")
    assert (broker["cluster"], broker["broker_id"], broker["owner"]) == ("orders", 0, "shop")
    assert (broker["memory_limit_bytes"], broker["instance_id"]) == (4 * 2**30, "i-0a00000000000000a")
    assert (app["endpoint"], app["restarts"], app["last_reason"]) == ("http://127.0.0.1:8080/metrics", 2, "OOMKilled")
    (claimed,) = rows(warehouse, "select * from inventory.pod_volumes(:hour)")
    assert (claimed["volume_id"], claimed["claim_broker_id"]) == ("vol-0000000000000000a", 0)
    by_pod = {row["pod"]: row for row in rows(warehouse, "select * from inventory.pods(:hour)")}
    assert by_pod["fees-0"]["pod_oom_killed_at"] == LAST + timedelta(minutes=40)
    assert by_pod["fees-0"]["pod_workload"] == "statefulset/fees" and by_pod["fees-0"]["pod_oom_kills"] == 1
    assert not rows(warehouse, "select * from detect.coverage where status <> 'complete'")


def test_what_the_api_says_now_is_not_stored_as_the_past(run: Run, warehouse: sa.Engine) -> None:
    run()
    before = LAST - 5 * HOUR
    assert run(before)["inventory.pod_hourly"] == 0
    (gap, *_) = rows(warehouse, "select * from detect.coverage where status <> 'complete'")
    assert "inventory of Kubernetes" in gap["message"]


def test_owners_come_from_labels(run: Run, warehouse: sa.Engine) -> None:
    run()
    with warehouse.begin() as connection:
        for statement in (
            "insert into metrics.jvm_app_hourly (hour, cluster, app, endpoint)"
            " values (:hour, 'orders', 'fees', 'http://127.0.0.1:8080/metrics')",
            "insert into inventory.topic_hourly (hour, cluster, topic, partitions, kind, observed_at)"
            " select :hour, 'orders', topic, 1, 'plain', now() from unnest(array['Invoices_v1', 'other']) as topic",
        ):
            connection.execute(sa.text(statement), {"hour": LAST})
    owners = {row["key"]: row["owner"] for row in rows(warehouse, "select key, owner from public.resources(:hour)")}
    assert owners["application:orders/fees"] == owners["process:orders/http://127.0.0.1:8080/metrics"] == "money"
    assert owners["topic:orders/Invoices_v1"] == owners["cluster:orders"] == "shop"
    assert owners["topic:orders/other"] is None
