"""Pods, nodes, claims, and volumes of the Kubernetes API (reference v1), reduced to what is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kubernetes.utils.quantity import parse_quantity

Item = Mapping[str, Any]
_INSTANCE = re.compile(r"^aws:///(?P<zone>[^/]*)/(?P<instance>i-[0-9a-f]+)$")
_VOLUME = re.compile(r"vol-[0-9a-f]+$")
_EBS_DRIVER = "ebs.csi.aws.com"
_OF_REPLICA_SET = re.compile(r"-[0-9a-z]{5,10}$")


@dataclass(frozen=True)
class Container:
    """A container of a pod, with what the kubelet reports of it."""

    name: str
    ports: Mapping[str, int] = field(default_factory=dict)
    """By name; ports without a name by their number."""
    memory_limit_bytes: int | None = None
    memory_request_bytes: int | None = None
    cpu_limit_cores: float | None = None
    restarts: int | None = None
    state: str | None = None
    """running, waiting, or terminated."""
    state_reason: str | None = None
    """Of waiting and terminated: CrashLoopBackOff, ContainerCreating, Completed, …"""
    started_at: datetime | None = None
    last_reason: str | None = None
    """Why the previous run ended: OOMKilled, Error, Completed, …"""
    last_exit_code: int | None = None
    last_started_at: datetime | None = None
    last_finished_at: datetime | None = None


@dataclass(frozen=True)
class Pod:
    """A pod."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    ip: str | None = None
    phase: str | None = None
    message: str | None = None
    """Why it is not running."""
    is_ending: bool = False
    created_at: datetime | None = None
    workload_kind: str | None = None
    """Deployment, StatefulSet, StrimziPodSet, …; null: the pod belongs to none."""
    workload: str | None = None
    containers: tuple[Container, ...] = ()
    claims: tuple[str, ...] = ()
    """Names of its PersistentVolumeClaims."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Claim:
    """A PersistentVolumeClaim with the EBS volume behind it."""

    namespace: str
    name: str
    storage_class: str | None = None
    size_bytes: int | None = None
    volume: str | None = None
    """Name of its PersistentVolume; null: not bound."""
    volume_id: str | None = None
    """EBS volume id; null: not bound, not EBS, or not readable."""


def pod_of(item: Item) -> Pod:
    """A pod of a list. Raises ValueError, KeyError, or TypeError for an object that is no pod."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    kind, workload = _workload(metadata.get("ownerReferences") or [], metadata.get("labels") or {})
    statuses = {one["name"]: one for one in status.get("containerStatuses") or ()}
    limits = spec.get("resources") or {}
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        node=spec.get("nodeName"),
        ip=status.get("podIP"),
        phase=status.get("phase"),
        message=_why_not_running(status),
        is_ending="deletionTimestamp" in metadata,
        created_at=_time(metadata.get("creationTimestamp")),
        workload_kind=kind,
        workload=workload,
        containers=tuple(
            _container(one, statuses.get(one["name"], {}), limits) for one in spec.get("containers") or ()
        ),
        claims=tuple(
            name
            for volume in spec.get("volumes") or ()
            if (name := (volume.get("persistentVolumeClaim") or {}).get("claimName"))
        ),
    )


def _container(spec: Item, status: Item, of_pod: Item) -> Container:
    resources = spec.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    state = status.get("state") or {}
    name = next(iter(state), None)
    now, last = state.get(name) or {} if name else {}, (status.get("lastState") or {}).get("terminated") or {}
    pod_limits = of_pod.get("limits") or {}
    cores = _quantity(limits.get("cpu") or pod_limits.get("cpu"))
    return Container(
        name=spec["name"],
        ports={one.get("name") or str(one["containerPort"]): one["containerPort"] for one in spec.get("ports") or ()},
        memory_limit_bytes=_bytes(limits.get("memory") or pod_limits.get("memory")),
        memory_request_bytes=_bytes(requests.get("memory")),
        cpu_limit_cores=cores,
        restarts=status.get("restartCount"),
        state=name,
        state_reason=now.get("reason"),
        started_at=_time(now.get("startedAt")),
        last_reason=last.get("reason"),
        last_exit_code=last.get("exitCode"),
        last_started_at=_time(last.get("startedAt")),
        last_finished_at=_time(last.get("finishedAt")),
    )


def _workload(owners: Iterable[Item], labels: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The controller of the pod; of a ReplicaSet the Deployment, which its name begins with."""
    owner = next((one for one in owners if one.get("controller")), None)
    if owner is None:
        return None, None
    if owner["kind"] != "ReplicaSet":
        return owner["kind"], owner["name"]
    hashed = labels.get("pod-template-hash")
    name = owner["name"].removesuffix(f"-{hashed}") if hashed else _OF_REPLICA_SET.sub("", owner["name"])
    return "Deployment", name


def _why_not_running(status: Item) -> str | None:
    if text := status.get("message") or status.get("reason"):
        return " ".join(str(text).split())[:200]
    failed = (one for one in status.get("conditions") or () if one.get("status") == "False" and one.get("message"))
    return next((" ".join(str(one["message"]).split())[:200] for one in failed), None)


def instance_of(node: Item) -> str | None:
    """EC2 instance id of a node by its providerID, `aws:///<zone>/<instance id>`; null: not on EC2, e.g. Fargate."""
    found = _INSTANCE.match((node.get("spec") or {}).get("providerID") or "")
    return found["instance"] if found else None


def claim_of(item: Item, volume_ids: Mapping[str, str]) -> Claim:
    """A claim of a list. `volume_ids`: EBS volume ids by name of the PersistentVolume."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    volume = spec.get("volumeName") or None
    size = (status.get("capacity") or {}).get("storage") or ((spec.get("resources") or {}).get("requests") or {}).get(
        "storage"
    )
    return Claim(
        item["metadata"]["namespace"],
        item["metadata"]["name"],
        spec.get("storageClassName"),
        _bytes(size),
        volume,
        volume_ids.get(volume or ""),
    )


def ebs_volume_of(volume: Item) -> str | None:
    """EBS volume id of a PersistentVolume: of the CSI driver, or of the in-tree plugin, which CSI migration keeps."""
    spec = volume.get("spec") or {}
    csi = spec.get("csi") or {}
    if csi.get("driver") == _EBS_DRIVER:
        handle = csi.get("volumeHandle") or ""
    else:
        handle = (spec.get("awsElasticBlockStore") or {}).get("volumeID") or ""
    found = _VOLUME.search(handle)  # in-tree: aws://<zone>/vol-…, or the id alone
    return found[0] if found else None


def _quantity(text: object) -> float | None:
    return float(parse_quantity(text)) if isinstance(text, str | int | float) else None


def _bytes(text: object) -> int | None:
    number = _quantity(text)
    return int(number) if number is not None and 0 < number <= 2**62 else None


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
