"""`streamwarden init` on Kubernetes: which namespaces and selectors it writes, and the missing permissions it names."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from demo import kubernetes_world as world
from demo.kubernetes_api import PROGRAM, KubernetesApi
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.init import kubernetes
from streamwarden.cli.init.fleet import Fleet
from streamwarden.cli.init.kafka import Cluster
from streamwarden.cli.init.kubernetes import Access, accesses, gather
from streamwarden.cli.init.write import text_of

from tests.answering import answering
from tests.plugins.cli.test_init import APP_PAGE, _Pages

needs_api = pytest.mark.skipif(not PROGRAM.exists(), reason="make kubernetes-api builds the API server")
READER, TENANT = "token-of-streamwarden", "token-of-a-tenant"


def of_app(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "team": "money"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    pages = type("Pages", (_Pages,), {"pages": {"/metrics": (200, APP_PAGE), "/other": (200, b"http_requests 1\n")}})
    read = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rules = [
        {"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        for group in ("", world.STRIMZI, world.MONITORING)
    ]
    tenant = [
        read | {"kind": "Role", "metadata": {"namespace": "billing", "name": "r"}, "rules": rules[:1]},
        read | {
            "kind": "RoleBinding", "metadata": {"namespace": "billing", "name": "r"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "tenant", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    ]  # fmt: skip
    reader = [
        read | {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules},
        read | {
            "kind": "ClusterRoleBinding", "metadata": {"name": "r"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    ]  # fmt: skip
    users = {READER: "reader", TENANT: "tenant"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), pages)
    with answering(server), KubernetesApi(tmp_path_factory.mktemp("api"), users) as running:
        web = {"prometheus.io/port": str(server.server_port)}
        running.apply(*(world.namespace(name) for name in ("kafka", "billing", "web")), *world.definitions())
        running.apply(*tenant, *reader)
        running.apply(
            world.kafka("kafka", "orders", "127.0.0.1:9"),
            world.broker("kafka", "orders", 0, ip="127.0.0.9"),
            world.pod("billing", "fees-0", labels=of_app("fees"), annotations=web),
            world.pod("billing", "taxes-0", labels=of_app("taxes"), annotations=web),
            world.pod("web", "shop-0", labels=of_app("shop"), annotations=web | {"prometheus.io/path": "/other"}),
            world.pod("web", "away-0", labels=of_app("away"), annotations={"prometheus.io/port": "9"}),
        )
        yield running


def access_of(api: KubernetesApi, token: str, namespace: str | None = None) -> Access:
    kubeconfig = api.kubeconfig(token, name=f"kubeconfig-{token}")
    return Access("eks", {"context": "test", "kubeconfig": str(kubeconfig)}, namespace)


@pytest.mark.slow
@needs_api
def test_namespaces_and_selectors_of_pods_that_use_kafka(api: KubernetesApi) -> None:
    found = gather(access_of(api, READER))
    entry, comment = found.entry([]) or ({}, "")
    assert entry["namespaces"] == ["billing", "kafka"], "a pod without Kafka's metrics is of no interest"
    assert entry["selectors"] == {"apps": ["app.kubernetes.io/name in (fees,taxes)"]} and "kafka" not in entry
    assert comment == "1 broker, 2 pods of applications."
    Config.model_validate({"kubernetes": [entry]})
    assert [problem[1] for problem in found.problems] == [
        "1 metric endpoint of pods did not respond: whether they use Kafka is unknown"
    ]


@pytest.mark.slow
@needs_api
def test_one_namespace_is_searched_where_no_more_may_be_listed(api: KubernetesApi) -> None:
    found = gather(access_of(api, TENANT, "billing"))
    entry, comment = found.entry(["orders"]) or ({}, "")
    assert entry["namespaces"] == ["billing"] and entry["kafka"] == {"cluster": "orders"}
    rules = {action for _, _, action in found.problems}
    assert any("resources: [pods], verbs: [get, list, watch]" in str(rule) for rule in rules)
    text = text_of(Fleet(kubernetes=[found], kafka=[{"name": "orders"}], clusters=[Cluster("orders")]))
    assert yaml.safe_load(text)["kubernetes"] == [entry] and comment in text
    assert "# - add to its ClusterRole: {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}" in text


@pytest.mark.slow
@needs_api
def test_without_any_permission_nothing_is_written_and_the_rule_is_named(api: KubernetesApi) -> None:
    found = gather(access_of(api, TENANT, "web"))
    assert found.entry([]) is None
    assert any("resources: [pods]" in str(action) for _, _, action in found.problems)


def test_pods_are_no_hosts_of_the_config() -> None:
    pods = kubernetes.Kubernetes(Access("eks", {}), addresses=frozenset({"10.0.0.7"}))
    cluster = Cluster("c", brokers={"10.0.0.7": [1], "10.0.0.8": [2]})
    fleet = Fleet(kubernetes=[pods], clusters=[cluster])
    assert fleet.hosts(["10.0.0.9"]) == ["10.0.0.9", "10.0.0.8"]


def test_the_current_context_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert accesses([]) == []
    arn = "arn:aws:eks:eu-central-1:111122223333:cluster/prod"
    contexts = [
        {"name": arn, "context": {"cluster": "a", "user": "a", "namespace": "kafka"}},
        {"name": "dev", "context": {"cluster": "a", "user": "a"}},
    ]
    clusters = [{"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}]
    users = [{"name": "a", "user": {"token": "t"}}]
    content = {"current-context": arn, "contexts": contexts, "clusters": clusters, "users": users}
    file.write_text(yaml.safe_dump(content))
    own = {"kubeconfig": str(file)}
    assert accesses([]) == [Access("prod", {"context": arn, **own}, "kafka")]
    assert accesses(["dev"]) == [Access("dev", {"context": "dev", **own}, None)]
    with pytest.raises(StreamwardenError, match=r"^--context test: not in the kubeconfig; it has arn:aws:.*, dev\.$"):
        accesses(["test"])
    file.write_text("- no kubeconfig\n")
    with pytest.raises(StreamwardenError, match=r"^kubeconfig: not readable: "):
        accesses([])
