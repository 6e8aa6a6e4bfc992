"""Where a pod exposes metrics, as its own manifest or the Prometheus operator's monitors declare it.

The first that applies: annotations `prometheus.io/…`, a PodMonitor, a ServiceMonitor (API reference of the Prometheus
operator, monitoring.coreos.com/v1), a container port with a common name, the config's `metrics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_apps.sources.kube.objects import Container, Item, Pod

PORT_NAMES = ("tcp-prometheus", "jmx-metrics", "http-metrics", "prometheus", "metrics", "jmx-exporter", "jolokia")
"""In order: Strimzi names its port tcp-prometheus, the charts of Bitnami and Confluent metrics or prometheus."""
_PAGE = "/metrics"
_OPERATORS = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
}


@dataclass(frozen=True)
class Exposed:
    """An address of a pod's metrics."""

    port: int
    path: str = _PAGE
    scheme: str = "http"
    protocol: str = "prometheus"
    container: str | None = None
    """The container with that port."""


@dataclass(frozen=True)
class Monitors:
    """Monitors of the Prometheus operator, and the services that ServiceMonitors select."""

    pod_monitors: tuple[Item, ...] = ()
    service_monitors: tuple[Item, ...] = ()
    services: tuple[Item, ...] = ()


def exposed_by(
    pod: Pod, monitors: Monitors, default: Exposed | None, default_port: str | None = None
) -> Exposed | None:
    """Where the pod exposes metrics; null: nothing says so.

    `default`: of the config; its port, where the pod has a port named `default_port`, is that one.
    """
    found = _by_annotations(pod) or _by_pod_monitor(pod, monitors) or _by_service_monitor(pod, monitors)
    if found is None and default is not None:
        number = _ports(pod).get(default_port) if default_port else default.port
        found = None if number is None else Exposed(number, default.path, default.scheme, default.protocol)
    found = found or _by_port_name(pod)
    if found is None:
        return None
    return Exposed(found.port, found.path, found.scheme, found.protocol, _container_with(pod, found.port))


def container_of(pod: Pod, exposed: Exposed | None) -> Container | None:
    """The container of the JVM: with the port of the metrics, otherwise the only or the first one."""
    named = next((one for one in pod.containers if exposed and one.name == exposed.container), None)
    return named or (pod.containers[0] if pod.containers else None)


def _by_annotations(pod: Pod) -> Exposed | None:
    values = pod.annotations
    if values.get("prometheus.io/scrape", "true").lower() == "false":
        return None
    port = values.get("prometheus.io/port", "")
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        return None
    path = values.get("prometheus.io/path") or _PAGE
    scheme = values.get("prometheus.io/scheme", "http").lower()
    return Exposed(int(port), path if path.startswith("/") else f"/{path}", scheme if scheme == "https" else "http")


def _by_pod_monitor(pod: Pod, monitors: Monitors) -> Exposed | None:
    for monitor in monitors.pod_monitors:
        spec = monitor.get("spec") or {}
        if _in_namespace(pod.namespace, monitor, spec) and selects(spec.get("selector") or {}, pod.labels):
            for endpoint in spec.get("podMetricsEndpoints") or ():
                target = endpoint.get("port") or endpoint.get("portNumber") or endpoint.get("targetPort")
                if found := _of_monitor(pod, endpoint, target):
                    return found
    return None


def _by_service_monitor(pod: Pod, monitors: Monitors) -> Exposed | None:
    for monitor in monitors.service_monitors:
        spec = monitor.get("spec") or {}
        for service in monitors.services:
            metadata, of_service = service["metadata"], service.get("spec") or {}
            selector = of_service.get("selector")
            if (
                metadata["namespace"] == pod.namespace
                and selector
                and _in_namespace(pod.namespace, monitor, spec)
                and selects(spec.get("selector") or {}, metadata.get("labels") or {})
                and all(pod.labels.get(key) == value for key, value in selector.items())
            ):
                for endpoint in spec.get("endpoints") or ():
                    target = endpoint.get("targetPort") or _target(endpoint.get("port"), of_service)
                    if found := _of_monitor(pod, endpoint, target):
                        return found
    return None


def _target(port: str | None, service: Item) -> int | str | None:
    """The pods' port behind a named port of the service."""
    for one in service.get("ports") or ():
        if one.get("name") == port:
            return one.get("targetPort") or one.get("port")
    return None


def _of_monitor(pod: Pod, endpoint: Item, target: int | str | None) -> Exposed | None:
    number = target if isinstance(target, int) else _ports(pod).get(target or "")
    if number is None:
        return None
    return Exposed(number, endpoint.get("path") or _PAGE, str(endpoint.get("scheme") or "http").lower())


def _in_namespace(namespace: str, monitor: Item, spec: Item) -> bool:
    chosen = spec.get("namespaceSelector") or {}
    names = chosen.get("matchNames") or [monitor["metadata"]["namespace"]]
    return bool(chosen.get("any")) or namespace in names


def selects(selector: Item, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector (`matchLabels`, `matchExpressions`) selects these labels; an empty one selects all."""
    expressions: Iterable[Item] = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        (check := _OPERATORS.get(one["operator"])) is not None
        and check(labels.get(one["key"]), one.get("values") or [])
        for one in expressions
    )


def _by_port_name(pod: Pod) -> Exposed | None:
    ports = _ports(pod)
    for name in PORT_NAMES:
        if name in ports:
            is_jolokia = name == "jolokia"
            path, protocol = ("/jolokia", "jolokia") if is_jolokia else (_PAGE, "prometheus")
            return Exposed(ports[name], path, protocol=protocol)
    return None


def _ports(pod: Pod) -> dict[str, int]:
    ports: dict[str, Any] = {}
    for container in pod.containers:
        for name, number in container.ports.items():
            ports.setdefault(name, number)
    return ports


def _container_with(pod: Pod, port: int) -> str | None:
    return next((one.name for one in pod.containers if port in one.ports.values()), None)
