"""Custom resources of Strimzi: Kafka, KafkaNodePool, KafkaUser, and KafkaTopic.

Fields as in Strimzi's "Custom Resource API Reference" (group kafka.strimzi.io, versions v1 and v1beta2). Spec and
status are read leniently: a field that an operator's version does not have is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from spark_apps.sources.kube.objects import Item

GROUP, VERSIONS = "kafka.strimzi.io", ("v1", "v1beta2")
KINDS = {"Kafka": "kafkas", "KafkaNodePool": "kafkanodepools", "KafkaUser": "kafkausers", "KafkaTopic": "kafkatopics"}
CLUSTER_LABEL, POOL_LABEL = "strimzi.io/cluster", "strimzi.io/pool-name"
_SASL = {"scram-sha-512": "SCRAM-SHA-512", "oauth": "OAUTHBEARER", "plain": "PLAIN"}


@dataclass(frozen=True)
class Listener:
    """A listener of a Kafka cluster."""

    name: str
    bootstrap_servers: str
    has_tls: bool
    authentication: str | None
    is_internal: bool
    certificates: tuple[str, ...] = field(default=(), repr=False)
    """Of the cluster's certificate authority (PEM, public)."""

    @property
    def client(self) -> dict[str, str]:
        """librdkafka's properties for this listener; user and password are the config's."""
        is_sasl = self.authentication in _SASL
        properties = {"security.protocol": ("SASL_" if is_sasl else "") + ("SSL" if self.has_tls else "PLAINTEXT")}
        if is_sasl:
            properties["sasl.mechanism"] = _SASL[self.authentication or ""]
        if self.has_tls and self.certificates:
            properties["ssl.ca.pem"] = "\n".join(self.certificates)
        return properties


@dataclass(frozen=True)
class Resource:
    """A custom resource."""

    kind: str
    namespace: str
    name: str
    strimzi_cluster: str | None
    """Name of its Kafka resource."""
    owner: str | None = None
    is_ready: bool | None = None
    message: str | None = None
    """Why it is not ready."""
    kafka_name: str | None = None
    """Of a topic or user, as Kafka has it."""
    roles: tuple[str, ...] = ()
    replicas: int | None = None
    storage_class: str | None = None
    storage_bytes: int | None = None
    """Of each node: all its volumes."""
    kafka_version: str | None = None
    groups: tuple[tuple[str, bool], ...] = ()
    """Groups that a user may read: name, and whether it is a prefix."""
    listeners: tuple[Listener, ...] = ()


def resource_of(kind: str, item: Item, owner_labels: Iterable[str]) -> Resource:
    """A resource of a list. Raises KeyError, TypeError, or ValueError for an object that is none."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    labels = metadata.get("labels") or {}
    ready, message = _condition(status.get("conditions") or ())
    of_kafka = spec.get("kafka") or {}
    storage = spec.get("storage") or of_kafka.get("storage") or {}
    return Resource(
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        strimzi_cluster=metadata["name"] if kind == "Kafka" else labels.get(CLUSTER_LABEL),
        owner=owner_of(labels, owner_labels),
        is_ready=ready,
        message=message,
        kafka_name=_kafka_name(kind, metadata["name"], spec, status),
        roles=tuple(status.get("roles") or spec.get("roles") or ()),
        replicas=spec.get("replicas") or of_kafka.get("replicas"),
        storage_class=_storage_class(storage),
        storage_bytes=_storage_bytes(storage),
        kafka_version=status.get("kafkaVersion"),
        groups=tuple(_groups((spec.get("authorization") or {}).get("acls") or ())),
        listeners=tuple(_listeners(of_kafka.get("listeners"), status.get("listeners"))),
    )


def owner_of(labels: Mapping[str, str], owner_labels: Iterable[str]) -> str | None:
    """The first of the labels that is set."""
    return next((labels[key] for key in owner_labels if labels.get(key)), None)


def _condition(conditions: Iterable[Item]) -> tuple[bool | None, str | None]:
    by_type = {one.get("type"): one for one in conditions}
    if (ready := by_type.get("Ready")) and ready.get("status") == "True":
        return True, None
    bad = by_type.get("NotReady") or ready
    if bad is None:
        return None, None
    return False, " ".join(str(bad.get("message") or bad.get("reason") or "").split())[:300] or None


def _kafka_name(kind: str, name: str, spec: Item, status: Item) -> str | None:
    if kind == "KafkaTopic":
        return str(status.get("topicName") or spec.get("topicName") or name)
    if kind == "KafkaUser":
        return str(status.get("username") or name)
    return None


def _volumes(storage: Item) -> list[Item]:
    return list(storage.get("volumes") or ()) if storage.get("type") == "jbod" else [storage]


def _storage_class(storage: Item) -> str | None:
    return next((one["class"] for one in _volumes(storage) if one.get("class")), None)


def _storage_bytes(storage: Item) -> int | None:
    sizes = [one.get("size") for one in _volumes(storage) if one.get("type") == "persistent-claim"]
    return sum(int(parse_quantity(size)) for size in sizes) if sizes and all(sizes) else None


def _groups(acls: Iterable[Item]) -> Iterable[tuple[str, bool]]:
    for acl in acls:
        resource = acl.get("resource") or {}
        if resource.get("type") == "group" and resource.get("name"):
            yield resource["name"], resource.get("patternType") == "prefix"


def _listeners(spec: Any, status: Any) -> Iterable[Listener]:
    """Those that the status has an address of; the spec adds TLS and authentication."""
    configured = {one.get("name"): one for one in spec or () if isinstance(one, Mapping)}
    for one in status or ():
        name = one.get("name") or one.get("type")
        servers = one.get("bootstrapServers")
        own = configured.get(name) or {}
        if name and servers:
            yield Listener(
                name,
                servers,
                bool(own.get("tls")),
                (own.get("authentication") or {}).get("type"),
                own.get("type", "internal") in ("internal", "cluster-ip"),
                tuple(one.get("certificates") or ()),
            )
