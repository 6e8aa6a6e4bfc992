"""What the clusters under `kubernetes` run: pods with their role, endpoint, instance, volumes, and owner.

Answers count for SAME_PODS_SECONDS, so that all steps of a run see the same pods. A pod that moved meanwhile is noticed
after its JVM was read (`moved`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

from pydantic import ValidationError
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster, KubernetesCluster

from spark_apps.sources.kube import strimzi
from spark_apps.sources.kube.client import Lists, NotInstalled, Unlisted
from spark_apps.sources.kube.endpoints import Exposed, Monitors, container_of, exposed_by
from spark_apps.sources.kube.objects import Claim, Container, Item, Pod, claim_of, ebs_volume_of, instance_of, pod_of
from spark_apps.sources.kube.strimzi import CLUSTER_LABEL, POOL_LABEL, Listener, Resource, owner_of, resource_of

SAME_PODS_SECONDS = 600
_UNREADABLE = "failed: a pod, node, volume, service, or monitor is not one of the Kubernetes API."
_MONITORING, _MONITORING_VERSIONS = "monitoring.coreos.com", ("v1",)
_PATHS = {"jolokia": "/jolokia", "dropwizard": "/metrics", "prometheus": "/metrics"}
_OF_PODS = re.compile(r"Kubernetes \S+( pods.*)?")
"""Resource of a gap that concerns pods: the whole Kubernetes cluster, or the list of its pods."""
_ORDINAL = re.compile(r"-(\d{1,9})$")
Gap = tuple[str, str]
"""Resource, and reason `<status>: <message>`."""
T = TypeVar("T")


@dataclass(frozen=True)
class FoundPod:
    """A selected pod, with what the config and the other resources say of it."""

    kubernetes: str
    role: str
    """broker, app, or node."""
    pod: Pod
    cluster: str | None = None
    app: str | None = None
    broker_id: int | None = None
    container: Container | None = None
    """The container of its JVM."""
    exposed: Exposed | None = None
    instance_id: str | None = None
    owner: str | None = None
    node_pool: str | None = None
    claims: tuple[Claim, ...] = ()
    """The claims of its pod."""

    @property
    def resource(self) -> str:
        """As gaps name it."""
        return f"Kubernetes {self.kubernetes} pod {self.pod}"


@dataclass(frozen=True)
class StrimziKafka:
    """A Kafka cluster of Strimzi."""

    entry: KubernetesCluster = field(repr=False)
    cluster: str
    """Name in rows."""
    resource: Resource
    is_in_config: bool = False
    """Whether it is also under `kafka`: then the address there counts."""

    @property
    def listener(self) -> Listener | None:
        """The listener that clients use."""
        wanted = self.entry.kafka.listener
        if wanted:
            return next((one for one in self.resource.listeners if one.name == wanted), None)
        return next((one for one in self.resource.listeners if one.is_internal), None)


@dataclass(frozen=True)
class Found:
    """What a discovery returned."""

    pods: tuple[FoundPod, ...] = ()
    resources: tuple[tuple[str, str | None, Resource], ...] = ()
    """Name of the Kubernetes cluster, of the Kafka cluster, and the custom resource."""
    clusters: tuple[StrimziKafka, ...] = ()
    endpoints: tuple[tuple[FoundPod, JmxEndpoint], ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def gaps_of_pods(self) -> list[Gap]:
        """Those by which pods, and so their JVMs, are missing."""
        return [gap for gap in self.gaps if _OF_PODS.fullmatch(gap[0])]


def discover(config: Config, *, fresh: bool = False) -> Found:
    """All clusters under `kubernetes`; `fresh`: without an earlier answer."""
    if not config.kubernetes:
        return Found()
    asked = config.model_dump_json(include={"kafka", "kubernetes"}, exclude_unset=True)
    return _discover(asked, time.time_ns() if fresh else int(time.time() / SAME_PODS_SECONDS))


@lru_cache(maxsize=4)
def _discover(config_json: str, _period: int) -> Found:
    config = Config.model_validate_json(config_json)
    with ThreadPoolExecutor(min(len(config.kubernetes), 8)) as pool:
        found = list(pool.map(lambda entry: _in_cluster(entry, config), config.kubernetes))
    gaps = [gap for one in found for gap in one.gaps]
    clusters: dict[str, StrimziKafka] = {}
    for cluster in (cluster for one in found for cluster in one.clusters):
        if (first := clusters.setdefault(cluster.cluster, cluster)) is not cluster:
            where = f"{first.resource.namespace}/{first.resource.name} of Kubernetes {first.entry.name}"
            what = f"Kubernetes {cluster.entry.name} Kafka {cluster.resource.namespace}/{cluster.resource.name}"
            gaps.append((what, f"failed: its name {cluster.cluster} is that of {where}; set `kafka.cluster`."))
    return Found(
        tuple(pod for one in found for pod in one.pods),
        tuple(resource for one in found for resource in one.resources),
        tuple(clusters.values()),
        tuple(pair for one in found for pair in one.endpoints),
        tuple(gaps),
    )


def kafka_clusters(config: Config) -> list[KafkaCluster]:
    """Strimzi's clusters that are not under `kafka` and have a listener that clients may use."""
    return [
        KafkaCluster(
            name=one.cluster,
            bootstrap_servers=listener.bootstrap_servers,
            client=listener.client | one.entry.kafka.client,
        )
        for one in discover(config).clusters
        if one.entry.kafka.connect and not one.is_in_config and (listener := one.listener)
    ]


def moved(config: Config, endpoints: Iterable[tuple[str, str, str | None]]) -> set[str]:
    """Addresses of those endpoints (URL, cluster, app) that are not of the same pod any more.

    None, if the pods cannot be listed now: then nothing is known of a move.
    """
    asked, found = list(endpoints), discover(config, fresh=True)
    if found.gaps_of_pods:
        return set()
    now = {(one.url, one.cluster, one.app) for _, one in found.endpoints}
    return {url for url, cluster, app in asked if (url, cluster, app) not in now}


def _in_cluster(entry: KubernetesCluster, config: Config) -> Found:
    try:
        lists = Lists(entry)
    except Unlisted as error:
        return Found(gaps=((f"Kubernetes {entry.name}", str(error)),))
    try:
        return _Discovery(entry, config, lists).found()
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return Found(gaps=((f"Kubernetes {entry.name}", _UNREADABLE),))
    finally:
        lists.close()


class _Discovery:
    """One pass over a Kubernetes cluster."""

    def __init__(self, entry: KubernetesCluster, config: Config, lists: Lists) -> None:
        self.entry, self.config, self.lists = entry, config, lists
        self.gaps: list[Gap] = []
        self.namespaces: list[str | None] = [*entry.namespaces] or [None]

    def found(self) -> Found:
        resources = [(resource, self._cluster_name(resource)) for resource in self._resources()]
        clusters = [self._strimzi(one, name) for one, name in resources if one.kind == "Kafka" and name]
        selected = self._selected()
        monitors = self._monitors() if self.entry.monitors and any(selected.values()) else Monitors()
        instances, claims = self._instances(selected), self._claims(selected)
        names = {name for _, name in resources if name} | {
            pod.labels[CLUSTER_LABEL] for pod in selected["broker"] if CLUSTER_LABEL in pod.labels
        }
        only = next(iter(names)) if len(names) == 1 else None
        nodes = {pod.node for role in ("broker", "app") for pod in selected[role]}
        pods = [
            self._pod(role, pod, monitors, instances, claims, only)
            for role, of_role in selected.items()
            for pod in of_role
            if role != "node" or pod.node in nodes
        ]
        endpoints = [(pod, one) for pod in pods if (one := self._endpoint(pod)) is not None]
        rows = tuple((self.entry.name, name, resource) for resource, name in resources)
        return Found(tuple(pods), rows, tuple(clusters), tuple(endpoints), tuple(self.gaps))

    def _list(self, what: str, parse: Callable[[Item], T], call: Callable[[str | None], list[Item]]) -> list[T] | None:
        """Objects of all namespaces that can be read; null: of none."""
        parsed: list[T] | None = None
        for namespace in self.namespaces:
            where = f" in {namespace}" if namespace else ""
            try:
                items = call(namespace)
                parsed = (parsed or []) + [parse(item) for item in items]
            except Unlisted as error:
                self.gaps.append((f"Kubernetes {self.entry.name} {what}{where}", str(error)))
            except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
                reason = f"failed: the list of {what} is not one of the Kubernetes API."
                self.gaps.append((f"Kubernetes {self.entry.name} {what}{where}", reason))
        return parsed

    def _selected(self) -> dict[str, list[Pod]]:
        """Pods by role, each once."""
        selectors = self.entry.selectors
        by_role = {"broker": selectors.brokers, "app": selectors.apps, "node": selectors.nodes}
        seen: set[str] = set()
        selected: dict[str, list[Pod]] = {}
        for role, of_role in by_role.items():
            pods: dict[str, Pod] = {}
            for selector in of_role:
                listed = self._list("pods", pod_of, partial(self.lists.core, "pods", selector=selector))
                if listed is None:  # the other selectors would fail in the same way
                    break
                pods |= {pod.uid: pod for pod in listed if pod.uid not in seen}
            seen |= pods.keys()
            selected[role] = sorted(pods.values(), key=str)
        self.gaps = list(dict.fromkeys(self.gaps))
        if not any(selected.values()) and not self.gaps:
            reason = "missing: no pod has the labels of `selectors`; list them with kubectl get pods --show-labels."
            self.gaps.append((f"Kubernetes {self.entry.name} pods", reason))
        return selected

    def _resources(self) -> list[Resource]:
        resources: list[Resource] = []
        for kind, plural in strimzi.KINDS.items():
            try:
                listed = self._list(
                    plural,
                    partial(resource_of, kind, owner_labels=self.entry.owner_labels),
                    partial(self.lists.custom, strimzi.GROUP, strimzi.VERSIONS, plural),
                )
            except NotInstalled:  # no Strimzi, or one without this kind
                continue
            resources += listed or []
        return resources

    def _monitors(self) -> Monitors:
        found: dict[str, tuple[Item, ...]] = {}
        for plural in ("podmonitors", "servicemonitors"):
            try:
                listed = self._monitors_of(plural)
            except NotInstalled:  # no Prometheus operator
                listed = None
            found[plural] = tuple(listed or ())
        services: list[Item] | None = []
        if found["servicemonitors"]:
            services = self._list("services", _unchanged, partial(self.lists.core, "services"))
        return Monitors(found["podmonitors"], found["servicemonitors"], tuple(services or ()))

    def _monitors_of(self, plural: str) -> list[Item] | None:
        """Of all namespaces, because many teams keep them in one; if that is denied, of those of the config."""
        call = partial(self.lists.custom, _MONITORING, _MONITORING_VERSIONS, plural)
        if self.entry.namespaces:
            with suppress(Unlisted):
                return call(None)
        return self._list(plural, _unchanged, call)

    def _of_cluster(self, resource: str) -> list[Item]:
        """Objects without a namespace; none, with a gap, where they cannot be read."""
        try:
            return self.lists.core(resource)
        except Unlisted as error:
            self.gaps.append((f"Kubernetes {self.entry.name} {resource}", str(error)))
            return []

    def _instances(self, selected: dict[str, list[Pod]]) -> dict[str, str]:
        """EC2 instance ids by name of the node."""
        if not any(pod.node for pods in selected.values() for pod in pods):
            return {}
        found = ((node["metadata"]["name"], instance_of(node)) for node in self._of_cluster("nodes"))
        return {name: instance for name, instance in found if instance}

    def _claims(self, selected: dict[str, list[Pod]]) -> dict[tuple[str, str], Claim]:
        """The pods' claims by namespace and name."""
        if not any(pod.claims for pods in selected.values() for pod in pods):
            return {}
        found = ((one["metadata"]["name"], ebs_volume_of(one)) for one in self._of_cluster("persistentvolumes"))
        volume_ids = {name: volume_id for name, volume_id in found if volume_id}
        claims = self._list(
            "persistentvolumeclaims",
            partial(claim_of, volume_ids=volume_ids),
            partial(self.lists.core, "persistentvolumeclaims"),
        )
        return {(one.namespace, one.name): one for one in claims or ()}

    def _strimzi(self, resource: Resource, name: str) -> StrimziKafka:
        known = {one.name for one in self.config.kafka}
        found = StrimziKafka(self.entry, name, resource, is_in_config=name in known)
        if not found.is_in_config and self.entry.kafka.connect and found.listener is None:
            names = ", ".join(one.name for one in resource.listeners) or "none yet"
            reason = f"missing: no listener to connect to; its status has {names}: set `kafka.listener`."
            self.gaps.append((f"Kubernetes {self.entry.name} Kafka {resource.namespace}/{resource.name}", reason))
        return found

    def _cluster_name(self, resource: Resource) -> str | None:
        return self.entry.kafka.cluster or resource.strimzi_cluster

    def _pod(
        self,
        role: str,
        pod: Pod,
        monitors: Monitors,
        instances: dict[str, str],
        claims: dict[tuple[str, str], Claim],
        only: str | None,
    ) -> FoundPod:
        exposed = self._exposed(role, pod, monitors)
        is_strimzi = CLUSTER_LABEL in pod.labels
        ordinal = _ORDINAL.search(pod.name)
        return FoundPod(
            kubernetes=self.entry.name,
            role=role,
            pod=pod,
            cluster=self.entry.kafka.cluster or pod.labels.get(CLUSTER_LABEL) or only,
            app=self._app(pod) if role == "app" else None,
            # Strimzi's pods are named <cluster>-<pool>-<node id>; the ordinal of other charts need not be the id.
            broker_id=int(ordinal[1]) if role == "broker" and is_strimzi and ordinal else None,
            container=container_of(pod, exposed),
            exposed=exposed,
            instance_id=instances.get(pod.node or ""),
            owner=owner_of(pod.labels, self.entry.owner_labels),
            node_pool=pod.labels.get(POOL_LABEL),
            claims=tuple(claims.get((pod.namespace, name), Claim(pod.namespace, name)) for name in pod.claims),
        )

    def _app(self, pod: Pod) -> str:
        return owner_of(pod.labels, self.entry.app_labels) or pod.workload or pod.name

    def _exposed(self, role: str, pod: Pod, monitors: Monitors) -> Exposed | None:
        metrics = self.entry.metrics if role != "node" else None
        if metrics is None:
            return exposed_by(pod, monitors, None)
        port = metrics.port if isinstance(metrics.port, int) else 0
        default = Exposed(port, metrics.path or _PATHS[metrics.protocol], metrics.scheme, metrics.protocol)
        return exposed_by(pod, monitors, default, metrics.port if isinstance(metrics.port, str) else None)

    def _endpoint(self, found: FoundPod) -> JmxEndpoint | None:
        """The endpoint of a pod that runs; a gap says why there is none."""
        pod, exposed = found.pod, found.exposed
        if pod.is_ending or pod.phase in ("Succeeded", "Failed"):
            return None
        reason = None
        if found.cluster is None:
            reason = "failed: its Kafka cluster is unknown; set `kafka.cluster` of its entry under `kubernetes`."
        elif exposed is None:
            reason = (
                "missing: neither annotations prometheus.io/port, a PodMonitor or ServiceMonitor, nor a container port"
                " named metrics expose its metrics; set `metrics` of its entry under `kubernetes`."
            )
        elif not pod.ip:
            reason = f"missing: the pod is {pod.phase}: {pod.message or 'it has no address yet'}"
        if reason or exposed is None:
            self.gaps.append((found.resource, reason or ""))
            return None
        host = f"[{pod.ip}]" if ":" in str(pod.ip) else pod.ip
        try:
            return JmxEndpoint.model_validate(
                {
                    "role": found.role,
                    "cluster": found.cluster,
                    "app": found.app,
                    "protocol": exposed.protocol,
                    "url": f"{exposed.scheme}://{host}:{exposed.port}{exposed.path}",
                    "broker_id": found.broker_id,
                    "instance_id": found.instance_id,
                    "memory_limit_bytes": found.container.memory_limit_bytes if found.container else None,
                }
            )
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            self.gaps.append((found.resource, f"failed: its labels do not define a JVM: {key} {first['msg']}"))
            return None


def _unchanged(item: Item) -> Item:
    return item


def with_endpoint(found: FoundPod, endpoint: JmxEndpoint) -> JmxEndpoint:
    """An endpoint of the config that reads this pod, with what Kubernetes adds."""
    limit = found.container.memory_limit_bytes if found.container else None
    return endpoint.model_copy(
        update={
            "instance_id": endpoint.instance_id or found.instance_id,
            "memory_limit_bytes": endpoint.memory_limit_bytes or limit,
            "broker_id": endpoint.broker_id if endpoint.broker_id is not None else found.broker_id,
        }
    )
