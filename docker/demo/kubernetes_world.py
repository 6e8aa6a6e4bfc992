"""Objects of a Kubernetes cluster as EKS, Strimzi, and the Prometheus operator write them: for tests and the demo."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from demo.kubernetes_api import Object

STRIMZI, MONITORING = "kafka.strimzi.io", "monitoring.coreos.com"
_CREATED = "2026-11-01T00:00:00Z"


def definition(group: str, version: str, kind: str) -> Object:
    """A CustomResourceDefinition that takes any spec and status."""
    plural = f"{kind.lower()}s"
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [served | {"subresources": {"status": {}}}],
        },
    }


def definitions() -> list[Object]:
    """Of Strimzi and of the Prometheus operator."""
    kinds = ("Kafka", "KafkaNodePool", "KafkaUser", "KafkaTopic")
    return [definition(STRIMZI, "v1", kind) for kind in kinds] + [
        definition(MONITORING, "v1", kind) for kind in ("PodMonitor", "ServiceMonitor")
    ]


def namespace(name: str) -> Object:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name: str, instance_id: str, zone: str = "eu-central-1a") -> Object:
    """A node of EKS on an EC2 instance."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"providerID": f"aws:///{zone}/{instance_id}"},
    }


def volume(name: str, volume_id: str, *, in_tree: bool = False, gib: int = 100, storage_class: str = "gp3") -> Object:
    """A PersistentVolume on EBS, of the CSI driver or of the in-tree plugin."""
    source: dict[str, Any] = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": volume_id, "fsType": "ext4"}}
    if in_tree:
        source = {"awsElasticBlockStore": {"volumeID": f"aws://eu-central-1a/{volume_id}", "fsType": "ext4"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": f"{gib}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            **source,
        },
    }


def claim(at: str, name: str, volume_name: str, *, gib: int = 100, storage_class: str = "gp3") -> Object:
    """A bound PersistentVolumeClaim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": at, "name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{gib}Gi"}},
            "storageClassName": storage_class,
            "volumeName": volume_name,
        },
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": f"{gib}Gi"}},
    }


def pod(
    at: str,
    name: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    node_name: str = "node-a",
    ip: str = "127.0.0.1",
    ports: dict[str, int] | None = None,
    container: str = "app",
    memory: str | None = "1Gi",
    claims: tuple[str, ...] = (),
    restarts: int = 0,
    last: dict[str, Any] | None = None,
    waiting: str | None = None,
    phase: str = "Running",
    owner: tuple[str, str] | None = None,
) -> Object:
    """A pod with the status that the kubelet reports. `last`: how the previous run of its container ended."""
    limits = {"limits": {"memory": memory, "cpu": "1500m"}} if memory else {}
    state: dict[str, Any] = {"running": {"startedAt": _CREATED}}
    if waiting:
        state = {"waiting": {"reason": waiting, "message": "back-off 5m0s restarting failed container"}}
    status = {
        "name": container,
        "image": "example/app:1",
        "imageID": "",
        "ready": waiting is None,
        "restartCount": restarts,
        "state": state,
        "lastState": {"terminated": last} if last else {},
    }
    kind, owner_name = owner or ("StatefulSet", name.rpartition("-")[0] or name)
    version = {"StrimziPodSet": "core.strimzi.io/v1beta2"}.get(kind, "apps/v1")
    reference = {"apiVersion": version, "kind": kind, "name": owner_name, "uid": "1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": at,
            "name": name,
            "labels": labels or {},
            "annotations": annotations or {},
            "ownerReferences": [reference],
        },
        "spec": {
            "nodeName": node_name,
            "containers": [
                {
                    "name": container,
                    "image": "example/app:1",
                    "ports": [{"name": key, "containerPort": number} for key, number in (ports or {}).items()],
                    "resources": limits,
                }
            ],
            "volumes": [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": one}} for n, one in enumerate(claims)],
        },
        "status": {
            "phase": phase,
            **({"podIP": ip, "podIPs": [{"ip": ip}]} if ip else {}),
            **({"containerStatuses": [status]} if ip else {}),
        },
    }


def broker(at: str, cluster: str, number: int, *, pool: str = "broker", **options: Any) -> Object:
    """A broker's pod as Strimzi's operator makes it."""
    labels = {
        "strimzi.io/cluster": cluster,
        "strimzi.io/kind": "Kafka",
        "strimzi.io/name": f"{cluster}-kafka",
        "strimzi.io/component-type": "kafka",
        "strimzi.io/broker-role": "true",
        "strimzi.io/controller-role": "true",
        "strimzi.io/pool-name": pool,
    }
    settings: dict[str, Any] = {"container": "kafka", "ports": {"tcp-prometheus": 9404}, "memory": "4Gi"}
    settings |= {"owner": ("StrimziPodSet", f"{cluster}-{pool}")} | options
    settings["labels"] = labels | options.get("labels", {})
    return pod(at, f"{cluster}-{pool}-{number}", **settings)


def strimzi(at: str, kind: str, name: str, spec: Object, status: Object, labels: dict[str, str]) -> Object:
    """A custom resource of Strimzi."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": _CREATED}
    return {
        "apiVersion": f"{STRIMZI}/v1",
        "kind": kind,
        "metadata": {"namespace": at, "name": name, "labels": labels},
        "spec": spec,
        "status": {"conditions": [ready]} | status,
    }


def kafka(at: str, name: str, servers: str, *, labels: dict[str, str] | None = None) -> Object:
    """A Kafka resource with an internal listener."""
    return strimzi(
        at,
        "Kafka",
        name,
        {"kafka": {"listeners": [{"name": "plain", "port": 9092, "type": "internal", "tls": False}]}},
        {"listeners": [{"name": "plain", "bootstrapServers": servers}], "kafkaVersion": "4.1.0"},
        labels or {},
    )


def node_pool(at: str, cluster: str, name: str, replicas: int, *, gib: int = 100) -> Object:
    """A KafkaNodePool with one persistent volume per node."""
    return strimzi(
        at,
        "KafkaNodePool",
        name,
        {
            "replicas": replicas,
            "roles": ["controller", "broker"],
            "storage": {
                "type": "jbod",
                "volumes": [{"id": 0, "type": "persistent-claim", "size": f"{gib}Gi", "class": "gp3"}],
            },
        },
        {"nodeIds": list(range(replicas)), "roles": ["controller", "broker"]},
        {"strimzi.io/cluster": cluster},
    )


def ended(reason: str, code: int, at: datetime) -> dict[str, Any]:
    """How a run of a container ended."""
    text = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"reason": reason, "exitCode": code, "startedAt": _CREATED, "finishedAt": text}
