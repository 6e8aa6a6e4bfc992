"""Discovery in Kubernetes against a real API server: roles, limits, volumes, endpoints, and what becomes a gap."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from demo import kubernetes_world as world
from demo.kubernetes_api import PROGRAM, KubernetesApi
from streamwarden.base.config import Config
from streamwarden.base.paths import PROJECT_ROOT

from spark_apps.sources.kafka_client import clusters_of
from spark_apps.sources.kube import client, discover
from spark_apps.sources.kube.discover import Found
from spark_apps.sources.targets import jvms_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="make kubernetes-api builds the API server"),
]
READER, STRANGER = "token-of-streamwarden", "token-of-a-stranger"
ACCOUNT = "system:serviceaccount:streamwarden:streamwarden"
KILLED_AT = datetime(2026, 11, 26, 10, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    users = {READER: ACCOUNT, STRANGER: "stranger"}
    with KubernetesApi(tmp_path_factory.mktemp("kubernetes"), users) as running:
        running.apply(*(world.namespace(name) for name in ("kafka", "billing", "many", "streamwarden")))
        running.apply(*world.definitions(), *rbac())
        running.apply(*strimzi_cluster(), *applications())
        yield running


def rbac() -> list[Any]:
    """The roles that docker/kubernetes installs."""
    documents = yaml.safe_load_all((PROJECT_ROOT / "docker/kubernetes/base/rbac.yaml").read_text())
    return [one for one in documents if one["kind"] != "ServiceAccount"]


def strimzi_cluster() -> list[Any]:
    owned = {"strimzi.io/cluster": "orders", "team": "shop"}
    acl = {"resource": {"type": "group", "name": "billing-", "patternType": "prefix"}, "operations": ["Read"]}
    return [
        world.node("node-a", "i-0a00000000000000a"),
        world.node("node-b", "i-0b00000000000000b"),
        world.volume("pv-0", "vol-0000000000000000a"),
        world.volume("pv-1", "vol-0000000000000000b", in_tree=True),
        world.claim("kafka", "data-0-orders-broker-0", "pv-0"),
        world.claim("kafka", "data-0-orders-broker-1", "pv-1"),
        world.kafka("kafka", "orders", "orders-kafka-bootstrap.kafka.svc:9092", labels={"team": "shop"}),
        world.node_pool("kafka", "orders", "broker", 2),
        world.strimzi("kafka", "KafkaTopic", "invoices", {"topicName": "Invoices_v1"}, {}, owned),
        world.strimzi("kafka", "KafkaUser", "billing", {"authorization": {"type": "simple", "acls": [acl]}},
                      {"username": "CN=billing"}, owned),
        world.broker("kafka", "orders", 0, claims=("data-0-orders-broker-0",), ip="10.0.0.10"),
        world.broker("kafka", "orders", 1, claims=("data-0-orders-broker-1",), ip="10.0.0.11", node_name="node-b"),
    ]  # fmt: skip


def applications() -> list[Any]:
    def labels(name: str) -> dict[str, str]:
        return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "billing", "team": "money"}

    annotated = {"prometheus.io/port": "8080", "prometheus.io/path": "actuator/prometheus"}
    selected = {
        "selector": {"matchExpressions": [{"key": "app.kubernetes.io/name", "operator": "In", "values": ["fees"]}]}
    }
    endpoint = {"podMetricsEndpoints": [{"port": "web", "path": "/m"}]}
    return [
        world.pod("billing", "invoices-0", labels=labels("invoices"), annotations=annotated, ip="10.0.1.1", restarts=7,
                  last=world.ended("OOMKilled", 137, KILLED_AT), waiting="CrashLoopBackOff"),
        world.pod("billing", "fees-abc12-xyz34", labels=labels("fees") | {"pod-template-hash": "abc12"}, ip="10.0.1.2",
                  ports={"web": 8081}, owner=("ReplicaSet", "fees-abc12")),
        world.pod("billing", "taxes-0", labels=labels("taxes"), ip="10.0.1.3", ports={"http": 9000}),
        world.pod("billing", "refunds-0", labels=labels("refunds"), ip="10.0.1.4", ports={"jmx-metrics": 5556}),
        world.pod("billing", "bare-0", labels=labels("bare"), ip="10.0.1.5"),
        world.pod("billing", "late-0", labels=labels("late"), annotations=annotated, ip="", phase="Pending"),
        world.pod("billing", "done-0", labels=labels("done"), annotations=annotated, ip="10.0.1.6", phase="Succeeded"),
        {"apiVersion": f"{world.MONITORING}/v1", "kind": "PodMonitor",
         "metadata": {"namespace": "billing", "name": "fees"}, "spec": selected | endpoint},
        {"apiVersion": f"{world.MONITORING}/v1", "kind": "ServiceMonitor",
         "metadata": {"namespace": "streamwarden", "name": "taxes"},
         "spec": {"selector": {"matchLabels": {"scrape": "yes"}}, "namespaceSelector": {"matchNames": ["billing"]},
                  "endpoints": [{"port": "metrics", "path": "/prometheus", "scheme": "https"}]}},
        {"apiVersion": "v1", "kind": "Service",
         "metadata": {"namespace": "billing", "name": "taxes", "labels": {"scrape": "yes"}},
         "spec": {"selector": {"app.kubernetes.io/name": "taxes"},
                  "ports": [{"name": "metrics", "port": 80, "targetPort": "http"}]}},
    ]  # fmt: skip


def config_of(api: KubernetesApi, token: str = READER, **entry: Any) -> Config:
    discover._discover.cache_clear()
    file = api.kubeconfig(token, name=f"kubeconfig-{token}")
    settings = {"name": "eks", "kubeconfig": str(file), "namespaces": ["kafka", "billing"]}
    settings |= {"selectors": {"apps": ["app.kubernetes.io/part-of=billing"]}, "owner_labels": ["team"]}
    sections = entry.pop("sections", {})
    return Config.model_validate({"kubernetes": [settings | entry]} | sections)


def pods(found: Found) -> dict[str, discover.FoundPod]:
    return {one.pod.name: one for one in found.pods}


def test_brokers_of_strimzi_with_limit_instance_and_volume(api: KubernetesApi) -> None:
    found = discover.discover(config_of(api, selectors={}))
    assert found.gaps == ()
    first, second = pods(found).values()
    assert (first.role, first.cluster, first.broker_id, first.node_pool) == ("broker", "orders", 0, "broker")
    assert (first.instance_id, second.instance_id) == ("i-0a00000000000000a", "i-0b00000000000000b")
    assert [one.claims[0].volume_id for one in (first, second)] == ["vol-0000000000000000a", "vol-0000000000000000b"]
    assert (first.claims[0].storage_class, first.claims[0].size_bytes) == ("gp3", 100 * 2**30)
    assert first.container and (first.container.memory_limit_bytes, first.container.cpu_limit_cores) == (4 * 2**30, 1.5)
    (_, endpoint), _ = found.endpoints
    assert (endpoint.url, endpoint.protocol, endpoint.broker_id) == ("http://10.0.0.10:9404/metrics", "prometheus", 0)
    assert (endpoint.memory_limit_bytes, endpoint.instance_id) == (4 * 2**30, "i-0a00000000000000a")


def test_strimzi_resources_give_the_address_owners_and_pools(api: KubernetesApi) -> None:
    config = config_of(api)
    (kafka,) = clusters_of(config)
    assert (kafka.name, kafka.bootstrap_servers) == ("orders", "orders-kafka-bootstrap.kafka.svc:9092")
    assert kafka.client == {"security.protocol": "PLAINTEXT"}
    by_kind = {one.kind: one for _, _, one in discover.discover(config).resources}
    assert {kind: one.owner for kind, one in by_kind.items()} == {
        "Kafka": "shop", "KafkaNodePool": None, "KafkaUser": "shop", "KafkaTopic": "shop"
    }  # fmt: skip
    assert by_kind["KafkaTopic"].kafka_name == "Invoices_v1" and by_kind["KafkaUser"].groups == (("billing-", True),)
    pool = by_kind["KafkaNodePool"]
    assert (pool.roles, pool.storage_class, pool.storage_bytes) == (("controller", "broker"), "gp3", 100 * 2**30)


def test_endpoints_of_applications_by_what_declares_them(api: KubernetesApi) -> None:
    found = discover.discover(config_of(api))
    urls = {endpoint.app: endpoint.url for _, endpoint in found.endpoints if endpoint.role == "app"}
    assert urls == {
        "invoices": "http://10.0.1.1:8080/actuator/prometheus",
        "fees": "http://10.0.1.2:8081/m",
        "taxes": "https://10.0.1.3:9000/prometheus",
        "refunds": "http://10.0.1.4:5556/metrics",
    }
    assert {endpoint.cluster for _, endpoint in found.endpoints} == {"orders"}  # the only one that was found
    gaps = dict(found.gaps)
    assert gaps["Kubernetes eks pod billing/late-0"].startswith("missing: the pod is Pending")
    assert "set `metrics`" in gaps["Kubernetes eks pod billing/bare-0"] and len(gaps) == 2
    assert pods(found)["fees-abc12-xyz34"].pod.workload == "fees"
    bare = config_of(api, metrics={"port": 8778, "protocol": "jolokia"})
    urls = {endpoint.app: endpoint.url for _, endpoint in discover.discover(bare).endpoints}
    assert urls["bare"] == "http://10.0.1.5:8778/jolokia"


def test_a_killed_container_says_why(api: KubernetesApi) -> None:
    container = pods(discover.discover(config_of(api)))["invoices-0"].container
    assert container is not None
    assert (container.restarts, container.state, container.state_reason) == (7, "waiting", "CrashLoopBackOff")
    assert (container.last_reason, container.last_exit_code) == ("OOMKilled", 137)
    assert container.last_finished_at == KILLED_AT


def test_all_pages_are_read_and_an_expired_list_begins_again(
    api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.apply(*(world.broker("many", "wide", number, ip=f"10.1.0.{number + 1}") for number in range(9)))
    monkeypatch.setattr(client, "PAGE_SIZE", 4)
    config = config_of(api, namespaces=["many"], selectors={})
    assert len(discover.discover(config).endpoints) == 9
    tokens: list[str | None] = []
    page = client._page

    def one_page(call: Any, options: dict[str, Any], until: float) -> Any:
        tokens.append(options.get("_continue"))
        if len(tokens) == 2 and tokens[1]:  # between the first page and the second
            api.apply(world.namespace("later"))
            api.forget_history()
        return page(call, options, until)

    monkeypatch.setattr(client, "_page", one_page)
    lists = client.Lists(config.kubernetes[0])
    assert len(lists.core("pods", "many")) == 9
    assert [token is None for token in tokens] == [True, False, True, False, False]
    lists.close()


def test_a_missing_permission_is_a_gap_with_the_rule(api: KubernetesApi) -> None:
    found = discover.discover(config_of(api, STRANGER))
    assert found.pods == ()
    gaps = dict(found.gaps)
    assert gaps["Kubernetes eks pods in kafka"] == (
        "failed: access denied: list pods in namespace kafka; add to Streamwarden's role:"
        " {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}."
    )
    assert "apiGroups: ['kafka.strimzi.io'], resources: [kafkatopics]" in gaps["Kubernetes eks kafkatopics in billing"]


def test_pods_are_read_without_the_permission_for_nodes_and_volumes(api: KubernetesApi) -> None:
    rule = {"apiGroups": ["", world.STRIMZI], "resources": ["pods", "kafkas"], "verbs": ["list"]}
    version = "rbac.authorization.k8s.io/v1"
    meta = {"namespace": "kafka", "name": "some"}
    api.apply(
        {"apiVersion": version, "kind": "Role", "metadata": meta, "rules": [rule]},
        {"apiVersion": version, "kind": "RoleBinding", "metadata": meta,
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"},
         "subjects": [{"kind": "User", "name": "stranger", "apiGroup": "rbac.authorization.k8s.io"}]},
    )  # fmt: skip
    found = discover.discover(config_of(api, STRANGER, namespaces=["kafka"], selectors={}))
    assert len(found.endpoints) == 2 and {one.instance_id for one in found.pods} == {None}
    assert "list nodes (a ClusterRole)" in dict(found.gaps)["Kubernetes eks nodes"]
    assert {one.claims[0].name for one in found.pods} == {"data-0-orders-broker-0", "data-0-orders-broker-1"}


def test_rejected_credentials_and_a_wrong_context_are_gaps(api: KubernetesApi) -> None:
    ((_, reason), *_) = discover.discover(config_of(api, "no-such-token")).gaps
    assert reason.startswith("failed: the API server rejects the credentials (401)")
    ((resource, reason),) = discover.discover(config_of(api, context="nowhere")).gaps
    assert resource == "Kubernetes eks" and "kubeconfig is not usable" in reason and "nowhere" in reason


def test_one_that_others_read_too_is_read_once(api: KubernetesApi) -> None:
    typed = [
        {"role": "broker", "cluster": "orders", "url": "http://b0.internal:8778/jolokia", "broker_id": 0},
        {"role": "app", "cluster": "orders", "app": "invoices", "protocol": "prometheus",
         "url": "http://invoices-0.invoices.billing.svc:8080/metrics"},
    ]  # fmt: skip
    jvms = jvms_of(config_of(api, sections={"jmx": typed}))
    first, second = jvms.by_section["jmx"]
    assert (first.instance_id, first.memory_limit_bytes) == ("i-0a00000000000000a", 4 * 2**30)
    assert second.memory_limit_bytes == 2**30
    assert [one.broker_id for one in jvms.by_section["kubernetes"] if one.role == "broker"] == [1]
    assert "invoices" not in {one.app for one in jvms.by_section["kubernetes"]}


def test_a_pod_that_moved_is_noticed(api: KubernetesApi) -> None:
    mover = world.pod("billing", "mover-0", labels={"moves": "yes"}, ip="10.0.2.1", ports={"metrics": 80})
    api.apply(mover)
    config = config_of(api, selectors={"brokers": [], "apps": ["moves=yes"]}, kafka={"cluster": "orders"})
    read = [(one.url, one.cluster, one.app) for _, one in discover.discover(config).endpoints]
    assert discover.moved(config, read) == set()
    api.delete(mover)
    api.apply(world.pod("billing", "mover-0", labels={"moves": "yes"}, ip="10.0.2.2", ports={"metrics": 80}))
    assert discover.moved(config, read) == {"http://10.0.2.1:80/metrics"}
