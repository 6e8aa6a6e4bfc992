"""Kubernetes clusters: namespaces with brokers and with applications that are clients of Kafka."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.config import ConfigException, list_kube_config_contexts
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME, SERVICE_TOKEN_FILENAME
from kubernetes.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR

from spark_apps.sources.kube.discover import Found, FoundPod, discover
from spark_apps.sources.kube.strimzi import CLUSTER_LABEL
from streamwarden.base.config import Config, KubernetesCluster
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.init.ports import identify
from streamwarden.cli.probe.result import sentence
from streamwarden.rendering.readable import counted

_ANY_APP = f"!{CLUSTER_LABEL}"
"""Selects every pod that Strimzi does not run: their metrics show which of them are clients of Kafka."""
_NODE_EXPORTERS = ("app.kubernetes.io/name=prometheus-node-exporter", "app.kubernetes.io/name=node-exporter")
_UNKNOWN = "unknown"
"""Kafka cluster of pods while they are searched: pods without one would not be read."""
Problem = tuple[str, str, str | None]
"""Resource, reason, and what fixes it."""


@dataclass(frozen=True)
class Access:
    """How a Kubernetes cluster is reached."""

    name: str
    keys: dict[str, Any]
    """Of its entry under `kubernetes`."""
    namespace: str | None = None
    """Default namespace of the credentials: all that may be readable."""


@dataclass
class Kubernetes:
    """What one Kubernetes cluster has."""

    access: Access
    namespaces: list[str] = field(default_factory=list)
    apps: list[str] = field(default_factory=list)
    """Label selectors of applications."""
    nodes: list[str] = field(default_factory=list)
    """Label selectors of node exporters."""
    strimzi_clusters: list[str] = field(default_factory=list)
    addresses: frozenset[str] = frozenset()
    """Of all pods: no host of the config."""
    found: str = ""
    problems: list[Problem] = field(default_factory=list)

    def entry(self, clusters: Sequence[str]) -> tuple[dict[str, Any], str] | None:
        """The entry under `kubernetes`, and a comment; none where no pod of Kafka was found.

        Args:
            clusters: names under `kafka`.
        """
        if not self.namespaces:
            return None
        entry: dict[str, Any] = {"name": self.access.name, **self.access.keys, "namespaces": self.namespaces}
        selectors = {"apps": self.apps, "nodes": self.nodes}
        if any(selectors.values()):
            entry["selectors"] = {key: value for key, value in selectors.items() if value}
        comment = self.found
        if len(self.strimzi_clusters) != 1:
            if len(clusters) == 1 and not self.strimzi_clusters:
                entry["kafka"] = {"cluster": clusters[0]}
            else:
                comment += ". Which Kafka cluster pods without the label strimzi.io/cluster use is unknown: set `kafka`"
        return entry, f"{comment}."


def accesses(contexts: Iterable[str]) -> list[Access]:
    """The contexts; without any, the cluster that this runs in, or else the kubeconfig's current context.

    Raises:
        StreamwardenError: a context is not in the kubeconfig, or the kubeconfig is unreadable.
    """
    wanted = list(dict.fromkeys(contexts))
    if not wanted and os.environ.get(SERVICE_HOST_ENV_NAME) and Path(SERVICE_TOKEN_FILENAME).exists():
        namespace = Path(SERVICE_TOKEN_FILENAME).with_name("namespace")
        return [Access("kubernetes", {"in_cluster": True}, namespace.read_text() if namespace.exists() else None)]
    paths = os.environ.get("KUBECONFIG") or "~/.kube/config"
    files = [Path(one).expanduser() for one in paths.split(ENV_KUBECONFIG_PATH_SEPARATOR) if one]
    if not wanted and not any(file.exists() for file in files):
        return []
    try:
        known, current = list_kube_config_contexts(paths)
    except (ConfigException, OSError, ValueError, TypeError) as error:
        raise StreamwardenError(f"kubeconfig: not readable: {' '.join(str(error).split())}") from None
    by_name = {one["name"]: one for one in known}
    if missing := [name for name in wanted if name not in by_name]:
        raise StreamwardenError(
            f"--context {missing[0]}: not in the kubeconfig; it has {', '.join(by_name) or 'none'}."
        )
    own = {"kubeconfig": str(files[0])} if len(files) == 1 and os.environ.get("KUBECONFIG") else {}
    chosen = wanted or ([current["name"]] if current else [])
    return [
        Access(_name(name), {"context": name, **own}, (by_name[name].get("context") or {}).get("namespace"))
        for name in chosen
    ]


def _name(context: str) -> str:
    """Name of the cluster of a context: of EKS, the context is an ARN that ends with it."""
    return re.sub(r"[^\w.-]+", "-", context.rpartition("/")[2]).strip("-") or "kubernetes"


def gather(access: Access) -> Kubernetes:
    """Searches all namespaces, or the one of the credentials where only that can be read."""
    searched = _search(access, [])
    if not searched.pods and access.namespace and any(" pods" in resource for resource, _ in searched.gaps):
        denied = searched.gaps
        searched = _search(access, [access.namespace])
        searched = Found(searched.pods, searched.resources, searched.clusters, searched.endpoints, denied)
    return _evaluated(access, searched)


def _search(access: Access, namespaces: list[str]) -> Found:
    selectors = {"apps": [_ANY_APP], "nodes": [*_NODE_EXPORTERS]}
    entry = {"name": access.name, **access.keys, "namespaces": namespaces, "selectors": selectors}
    settings = KubernetesCluster.model_validate(entry | {"kafka": {"cluster": _UNKNOWN, "connect": False}})
    return discover(Config(kubernetes=[settings]))


def _evaluated(access: Access, found: Found) -> Kubernetes:
    brokers = [one for one in found.pods if one.role == "broker"]
    kafkas = [resource for _, _, resource in found.resources if resource.kind == "Kafka"]
    urls = {pod.pod.uid: endpoint.url for pod, endpoint in found.endpoints if pod.role == "app"}
    responders = identify([*urls.values()])
    apps = [
        one
        for one in found.pods
        if (url := urls.get(one.pod.uid)) and (there := responders.get(url)) and there.role == "app"
    ]
    exporters = [one for one in found.pods if one.role == "node"] if brokers or apps else []
    used = [*brokers, *apps, *exporters]
    silent = len(urls) - len({uid for uid, url in urls.items() if url in responders})
    result = Kubernetes(
        access,
        namespaces=sorted({one.pod.namespace for one in used} | {one.namespace for one in kafkas}),
        apps=list(_selectors(apps)),
        nodes=[one for one in _NODE_EXPORTERS if any(_has_label(pod, one) for pod in exporters)],
        strimzi_clusters=sorted({one.name for one in kafkas}),
        addresses=frozenset(one.pod.ip for one in found.pods if one.pod.ip),
        found=f"{counted(len(brokers), 'broker')}, {counted(len(apps), 'pod')} of applications",
    )
    result.problems = [
        (resource, sentence(reason), _rule_in(reason))
        for resource, reason in found.gaps
        if not reason.startswith("missing")
    ]
    if silent:
        reason = f"{counted(silent, 'metric endpoint')} of pods did not respond: whether they use Kafka is unknown"
        action = "run init where pods' addresses are reachable, or set `selectors.apps` of the entry under `kubernetes`"
        result.problems.append((f"Kubernetes {access.name}", reason, action))
    return result


def _selectors(apps: Sequence[FoundPod]) -> Iterator[str]:
    """Label selectors of applications: one for each label that names them."""
    values: dict[str, dict[str, None]] = {}
    for key, value in filter(None, map(_naming_label, apps)):
        values.setdefault(key, {})[value] = None
    for key, names in values.items():
        yield f"{key}={next(iter(names))}" if len(names) == 1 else f"{key} in ({','.join(sorted(names))})"


def _naming_label(pod: FoundPod) -> tuple[str, str] | None:
    keys = KubernetesCluster.model_fields["app_labels"].get_default(call_default_factory=True)
    found = ((key, pod.pod.labels[key]) for key in (*keys, "app.kubernetes.io/instance") if key in pod.pod.labels)
    return next(found, None) or next(iter(sorted(pod.pod.labels.items())), None)


def _has_label(pod: FoundPod, selector: str) -> bool:
    key, _, value = selector.partition("=")
    return pod.pod.labels.get(key) == value


def _rule_in(reason: str) -> str | None:
    """The rule of RBAC that a denied list names."""
    _, _, rule = reason.partition("role: ")
    return f"add to its ClusterRole: {rule.rstrip('.')}" if rule else None
