"""Relates what was found: JVMs to clusters and instances, registries to clusters. Makes the config's sections of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamwarden.cli.init.aws import Aws, msk_entries
from streamwarden.cli.init.kafka import Cluster
from streamwarden.cli.init.kubernetes import Kubernetes
from streamwarden.cli.init.ports import Responder, Scan
from streamwarden.rendering.readable import counted

Entry = dict[str, Any]
MAX_HOSTS = 2_000
"""Hosts of which ports are tried."""


@dataclass
class Fleet:
    """Everything that was discovered."""

    aws: Aws = field(default_factory=Aws)
    clusters: list[Cluster] = field(default_factory=list)
    kafka: list[Entry] = field(default_factory=list)
    """Entries under `kafka`, as they are written to the file."""
    msk_clusters: list[Cluster] = field(default_factory=list)
    """Clusters of Amazon MSK that Kafka's protocol was spoken with; they have no entry under `kafka`."""
    kubernetes: list[Kubernetes] = field(default_factory=list)
    scan: Scan = field(default_factory=lambda: Scan((), ()))
    problems: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Resource, reason, and what fixes it."""

    @property
    def all_clusters(self) -> list[Cluster]:
        """Clusters under `kafka` and of MSK."""
        return [*self.clusters, *self.msk_clusters]

    def hosts(self, named: list[str]) -> list[str]:
        """Hosts to search: those that are named, brokers, members of groups, and running instances. No pods: they move,
        and the API of Kubernetes says where they are."""
        pods = frozenset().union(*(one.addresses for one in self.kubernetes))
        brokers = [host for cluster in self.clusters for host in cluster.brokers]
        members = [host for cluster in self.all_clusters for host in cluster.groups]
        instances = [instance.addresses[0] for instance in self.aws.instances if instance.addresses]
        found = [host for host in (*brokers, *members, *instances) if host not in pods]
        return list(dict.fromkeys([*named, *found]))[:MAX_HOSTS]

    def sections(self) -> Iterator[tuple[str, list[tuple[Entry, str]]]]:
        """Sections of the config: key, and entries with a comment each."""
        yield "aws", list(self._accounts())
        yield "msk", list(msk_entries(self.aws.msk))
        yield "kubernetes", [entry for one in self.kubernetes if (entry := one.entry(self._names))]
        yield "kafka", list(self._kafka())
        yield "jmx", [(entry, comment) for entry, comment in map(self._jvm, self._jvms()) if entry]

    @property
    def _names(self) -> list[str]:
        return [entry["name"] for entry in self.kafka]

    def _accounts(self) -> Iterator[tuple[Entry, str]]:
        found = f"{counted(len(self.aws.instances), 'running instance')}, {counted(self.aws.volumes, 'volume')}"
        for number, account in enumerate(self.aws.accounts):
            yield account.model_dump(exclude_none=True), f"{found}." if number == 0 else ""

    def _kafka(self) -> Iterator[tuple[Entry, str]]:
        registries = [one.url for one in self.scan.responders if one.kind == "schema registry"]
        for entry, cluster in zip(self.kafka, self.clusters, strict=True):
            registry = {"schema_registry": {"url": registries[0]}} if self._is_only(registries) else {}
            brokers = sum(map(len, cluster.brokers.values()))
            found = f"{counted(brokers, 'broker')}, {counted(cluster.topics, 'topic')}, id {cluster.cluster_id}."
            yield entry | registry | self._connect(cluster), found if brokers else "did not respond"

    def _connect(self, cluster: Cluster) -> Entry:
        """The key `connect` of a cluster: several workers may be of one Connect cluster, so only one is certain."""
        workers = self._workers(cluster)
        return {"connect": [{"name": "connect", "url": workers[0].url}]} if len(workers) == 1 else {}

    def _workers(self, cluster: Cluster) -> list[Responder]:
        return [one for one in self.scan.responders if one.kind == "connect" and self._cluster_of(one) == cluster]

    def _is_only(self, registries: list[str]) -> bool:
        return len(self.clusters) == 1 and len(registries) == 1

    def _jvms(self) -> list[Responder]:
        return sorted(
            (one for one in self.scan.responders if one.kind == "jvm" and one.role),
            key=lambda one: ("broker", "app", "node").index(one.role or "node"),
        )

    def _jvm(self, found: Responder) -> tuple[Entry, str]:
        """An entry under `jmx`; empty where no cluster of the config is known for it."""
        if (cluster := self._cluster_of(found)) is None:
            return {}, ""
        entry: Entry = {"role": found.role, "cluster": cluster.name, "protocol": found.protocol, "url": found.url}
        comment = ""
        ids = cluster.brokers.get(found.host, [])
        if found.role == "broker" and found.protocol == "prometheus" and len(ids) == 1:
            entry["broker_id"] = ids[0]
        if found.role == "app":
            groups = sorted(cluster.groups.get(found.host, ()))
            entry["app"] = found.app or (groups[0] if len(groups) == 1 else found.host)
            comment = "" if found.app or len(groups) == 1 else "The application's name is not exposed: set `app`."
        if instance_id := self._instance_of(found.host):
            entry["instance_id"] = instance_id
        return entry, comment

    def _cluster_of(self, found: Responder) -> Cluster | None:
        ways = (
            lambda one: found.cluster_id is not None and one.cluster_id == found.cluster_id,
            lambda one: found.host in one.brokers,
            lambda one: found.host in one.groups,
            lambda one: len(self.all_clusters) == 1 and found.cluster_id is None,
        )
        for is_its in ways:
            its = [cluster for cluster in self.all_clusters if is_its(cluster)]
            if len(its) == 1:
                return its[0]
        return None

    def _instance_of(self, host: str) -> str | None:
        names = {host, self.scan.addresses.get(host, host)}
        its = {one.instance_id for one in self.aws.instances if names & {*one.addresses}}
        return its.pop() if len(its) == 1 else None

    def notes(self) -> Iterator[tuple[str, str, str | None]]:
        """What was found and is in no section, or could not be reached: resource, reason, and what fixes it."""
        yield from self.aws.problems
        yield from self.problems
        for kubernetes in self.kubernetes:
            yield from kubernetes.problems
        for cluster in self.all_clusters:
            yield from ((f"kafka {cluster.name}", problem, None) for problem in cluster.problems)
        for found in self.scan.responders:
            yield from self._note(found)
        if self.scan.dropped:
            shown = ", ".join(self.scan.dropped[:10]) + (" …" if self.scan.dropped[10:] else "")
            yield "ports", f"no response from {counted(len(self.scan.dropped), 'host')}: {shown}", _OPEN
        if not self.scan.is_complete:
            yield "ports", "not all ports were tried in time", "name fewer hosts by --host, or ports by --port"

    def _note(self, found: Responder) -> Iterator[tuple[str, str, str | None]]:
        registries = [one.url for one in self.scan.responders if one.kind == "schema registry"]
        if found.kind == "connect":
            cluster = self._cluster_of(found)
            if cluster is None or self._connect(cluster) == {}:
                yield (
                    found.url,
                    "a worker of Kafka Connect",
                    "add one worker of each Connect cluster as `connect` of its cluster",
                )
        elif found.kind == "locked":
            yield found.url, "requires credentials", "add it under `jmx` with `user` and `password: ${NAME}`"
        elif found.kind == "schema registry" and not self._is_only(registries):
            yield found.url, "a Schema Registry", "add it as `schema_registry: {url: …}` of its cluster under `kafka`"
        elif found.kind == "jvm" and found.role is None:
            yield found.url, "responds, but exposes no metric of Kafka or of a host", None
        elif found.kind == "jvm" and self._cluster_of(found) is None:
            yield (
                found.url,
                f"{found.role} of an unknown cluster",
                "add its cluster by --kafka, or the entry under `jmx`",
            )


_OPEN = "open the ports of agents and exporters to this host (security group)"
