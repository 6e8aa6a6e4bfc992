"""Discovery of Amazon MSK: clusters and their brokers, and what they are for other sources: Kafka clusters, endpoints.

It calls ListClustersV2 (which returns all that DescribeClusterV2 does), GetBootstrapBrokers, and ListNodes for each
cluster (Amazon MSK API Reference), and DescribeSubnets once per region for the brokers' availability zones. All are
free of charge. A cluster that cannot be read, or exposes less than another, is a gap of its own; the rest goes on.

A broker's instance and its storage are in no account of the customer. They get ids of their own, which EC2 never
gives: `msk-<cluster>-b-<broker>` and `msk-<cluster>-b-<broker>-data`; MSK's names are unique within a region.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from streamwarden.base.config import AwsLogin, Config, JmxEndpoint, KafkaCluster, MskClusters

from spark_apps.sources.aws_client import Connection, Failure, Place, listed

LEVELS = ("DEFAULT", "PER_BROKER", "PER_TOPIC_PER_BROKER", "PER_TOPIC_PER_PARTITION")
JMX_EXPORTER_PORT, NODE_EXPORTER_PORT = 11001, 11002
"""Of open monitoring: Amazon MSK Developer Guide, "Monitor with Prometheus"."""
SAME_CLUSTERS_SECONDS = 600
"""So long an answer of AWS counts: all steps of a run see the same clusters."""
READABLE = frozenset({"ACTIVE", "UPDATING", "HEALING", "MAINTENANCE", "REBOOTING_BROKER"})
"""States in which a cluster has brokers that serve clients; the others are CREATING, DELETING, and FAILED."""
PAGE_SIZE = 100
_STRINGS = {"none": "", "tls": "Tls", "mtls": "Tls", "scram": "SaslScram", "iam": "SaslIam"}
_REACH = {"private": "", "public": "Public", "vpc": "VpcConnectivity"}


@dataclass(frozen=True)
class MskBroker:
    """A broker as ListNodes returns it."""

    broker_id: int
    host: str
    private_ip: str | None
    subnet: str | None
    availability_zone: str | None = None


@dataclass(frozen=True)
class MskCluster:
    """A cluster as AWS and the config describe it."""

    entry: MskClusters = field(repr=False)
    cluster: str
    """Name in every row: that of a cluster under `kafka` with the same brokers, else by the entry's `name`."""
    account: str
    region: str
    msk_name: str
    arn: str
    kind: str
    """standard, express, or serverless."""
    state: str
    kafka_version: str | None = None
    current_version: str | None = None
    instance_type: str | None = None
    broker_count: int | None = None
    volume_gib: int | None = None
    provisioned_mib_s: int | None = None
    storage_mode: str | None = None
    monitoring_level: str | None = None
    has_jmx_exporter: bool | None = None
    has_node_exporter: bool | None = None
    authentications: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    bootstrap_servers: str | None = None
    security_protocol: str = "SASL_SSL"
    brokers: tuple[MskBroker, ...] = ()
    is_in_config: bool = False
    """Whether it is also under `kafka`: then the client properties there count."""
    gaps: tuple[tuple[str, str], ...] = ()
    """Resource and reason of what it does not expose, or could not be read."""

    @property
    def place(self) -> Place:
        return Place(self.account, self.region)

    @property
    def resource(self) -> str:
        """As gaps name it."""
        return f"{self.place} MSK cluster {self.msk_name}"

    def with_gap(self, what: str, reason: str) -> MskCluster:
        """The same with one more gap. `what`: a part of it, or empty."""
        return replace(self, gaps=(*self.gaps, (f"{self.resource} {what}".strip(), reason)))


@dataclass(frozen=True)
class Found:
    """What a discovery returned: clusters, and why others are missing."""

    clusters: tuple[MskCluster, ...] = ()
    gaps: tuple[tuple[str, str], ...] = ()

    @property
    def all_gaps(self) -> list[tuple[str, str]]:
        """Resource and reason, also of what clusters do not expose."""
        return [*self.gaps, *(gap for cluster in self.clusters for gap in cluster.gaps)]


def discover(config: Config) -> Found:
    """All clusters of the entries under `msk`; answers of AWS count for SAME_CLUSTERS_SECONDS."""
    if not config.msk:
        return Found()
    asked = config.model_dump_json(include={"aws", "kafka", "msk"}, exclude_unset=True)
    return _discover(asked, int(time.time() / SAME_CLUSTERS_SECONDS))


@lru_cache(maxsize=4)
def _discover(config_json: str, _period: int) -> Found:
    config = Config.model_validate_json(config_json)
    asked = [(entry, Place(entry.account, region)) for entry in config.msk for region in config.msk_regions(entry)]
    with ThreadPoolExecutor(min(len(asked), 8)) as pool:
        answers = list(pool.map(lambda one: _in_place(*one), asked))
    gaps = [gap for answer in answers for gap in answer.gaps]
    seen: dict[str, MskCluster] = {}
    for cluster in (cluster for answer in answers for cluster in answer.clusters):
        if cluster.arn not in {one.arn for one in seen.values()}:  # two entries may match it: the first counts
            named = _named(cluster, config)
            if taken := _taken_by(named, config, seen):
                reason = f"failed: its name {named.cluster} is that of {taken}; set `name` of its entry under `msk`"
                gaps.append((cluster.resource, reason))
            else:
                seen[named.cluster] = named
    return Found(tuple(seen.values()), tuple(gaps))


def _named(cluster: MskCluster, config: Config) -> MskCluster:
    """With its name; a cluster under `kafka` that has one of its brokers is the same cluster."""
    hosts = {broker.host for broker in cluster.brokers} | _hosts(cluster.bootstrap_servers or "")
    for known in config.kafka:
        if hosts & _hosts(known.bootstrap_servers):
            return replace(cluster, cluster=known.name, is_in_config=True)
    name = cluster.entry.name.format(name=cluster.msk_name, region=cluster.region, account=cluster.account)
    return replace(cluster, cluster=name)


def _taken_by(cluster: MskCluster, config: Config, seen: dict[str, MskCluster]) -> str | None:
    if other := seen.get(cluster.cluster):
        return f"cluster {other.arn}"
    if not cluster.is_in_config and cluster.cluster in {known.name for known in config.kafka}:
        return "another cluster under `kafka`"
    return None


def _hosts(servers: str) -> set[str]:
    return {server.strip().rpartition(":")[0].lower() for server in servers.split(",") if server.strip()}


def _in_place(entry: MskClusters, place: Place) -> Found:
    """Clusters of a region that an entry names, each with its brokers."""
    connection = Connection(place)
    resource = f"{place} MSK clusters {entry.clusters}"
    try:
        client = connection.client("kafka")
        pages = client.get_paginator("list_clusters_v2").paginate(PaginationConfig={"PageSize": PAGE_SIZE})
        infos = [info for page in pages for info in listed(page, "ClusterInfoList")]
    except Failure as error:
        return Found(gaps=((resource, connection.gap(error)),))
    meant = [info for info in infos if fnmatch.fnmatchcase(info.get("ClusterName", ""), entry.clusters)]
    if not meant:
        return Found(gaps=((resource, f"missing: none of {len(infos)} MSK clusters in {place} has such a name."),))
    with ThreadPoolExecutor(8) as pool:
        clusters = list(pool.map(lambda info: _read(connection, client, _cluster(entry, place, info)), meant))
    return _with_zones(connection, clusters)


def _cluster(entry: MskClusters, place: Place, info: dict[str, Any]) -> MskCluster:
    """What ClusterInfo says; by AWS's model every member may be absent: then it is unknown."""
    of_brokers = info.get("Provisioned", {})
    group = of_brokers.get("BrokerNodeGroupInfo", {})
    storage = group.get("StorageInfo", {}).get("EbsStorageInfo", {})
    throughput = storage.get("ProvisionedThroughput", {})
    exporters = of_brokers.get("OpenMonitoring", {}).get("Prometheus", {})
    instance_type = group.get("InstanceType")
    is_serverless = info.get("ClusterType") == "SERVERLESS"
    is_express = (instance_type or "").startswith("express.")
    return MskCluster(
        entry=entry,
        cluster=info.get("ClusterName", ""),
        account=place.account,
        region=place.region,
        msk_name=info.get("ClusterName", ""),
        arn=info.get("ClusterArn", ""),
        kind="serverless" if is_serverless else "express" if is_express else "standard",
        state=info.get("State", "UNKNOWN"),
        kafka_version=of_brokers.get("CurrentBrokerSoftwareInfo", {}).get("KafkaVersion"),
        current_version=info.get("CurrentVersion"),
        instance_type=instance_type,
        broker_count=of_brokers.get("NumberOfBrokerNodes"),
        volume_gib=storage.get("VolumeSize"),
        provisioned_mib_s=throughput.get("VolumeThroughput") if throughput.get("Enabled") else None,
        storage_mode=of_brokers.get("StorageMode"),
        monitoring_level=of_brokers.get("EnhancedMonitoring"),
        has_jmx_exporter=exporters.get("JmxExporter", {}).get("EnabledInBroker", False),
        has_node_exporter=exporters.get("NodeExporter", {}).get("EnabledInBroker", False),
        authentications=_authentications(info),
        tags=tuple(sorted(info.get("Tags", {}).items())),
    )


def _authentications(info: dict[str, Any]) -> tuple[str, ...]:
    login = (info.get("Provisioned") or info.get("Serverless") or {}).get("ClientAuthentication", {})
    sasl = login.get("Sasl", {})
    enabled = {
        "iam": sasl.get("Iam", {}).get("Enabled"),
        "scram": sasl.get("Scram", {}).get("Enabled"),
        "mtls": login.get("Tls", {}).get("Enabled"),
        "none": login.get("Unauthenticated", {}).get("Enabled"),
    }
    return tuple(way for way, is_on in enabled.items() if is_on)


def _read(connection: Connection, client: Any, cluster: MskCluster) -> MskCluster:
    """The cluster with its bootstrap addresses, its brokers, and the gaps of both."""
    if cluster.state not in READABLE:
        return cluster.with_gap("", f"missing: the cluster is {cluster.state}; it is read once it is ACTIVE.")
    cluster = _with_bootstrap(connection, client, cluster)
    if cluster.kind == "serverless":
        return cluster.with_gap(
            "brokers",
            "missing: MSK Serverless has no brokers, storage, or instances to evaluate; topics and consumer groups"
            " are evaluated by Kafka's protocol.",
        )
    cluster = _with_brokers(connection, client, cluster)
    if cluster.kind == "express":
        cluster = cluster.with_gap(
            "storage",
            "missing: Express brokers expose no volume, heap, swap, disk, or replication metrics; MSK manages their"
            " storage.",
        )
    if cluster.entry.open_monitoring and not cluster.has_jmx_exporter:
        cluster = cluster.with_gap("open monitoring", _no_exporter(cluster))
    return cluster


def _no_exporter(cluster: MskCluster) -> str:
    return (
        "missing: open monitoring (JMX exporter) is off, so topics' bytes, log flushes, and request queues are not"
        f" evaluated; enable it (`aws kafka update-monitoring --region {cluster.region} --cluster-arn {cluster.arn}"
        f" --current-version {cluster.current_version} --open-monitoring"
        " 'Prometheus={JmxExporter={EnabledInBroker=true},NodeExporter={EnabledInBroker=true}}'`), or set"
        " `open_monitoring: false`."
    )


def _with_bootstrap(connection: Connection, client: Any, cluster: MskCluster) -> MskCluster:
    entry, what = cluster.entry, "bootstrap brokers"
    if not entry.connect:
        return cluster
    try:
        answer = client.get_bootstrap_brokers(ClusterArn=cluster.arn)
    except Failure as error:
        return cluster.with_gap(what, connection.gap(error))
    reach = _REACH[entry.reach]
    # Without authentication a cluster may have a TLS listener, a plaintext one, or both: the encrypted one counts.
    ways = ("tls", "none") if entry.authentication == "none" else (entry.authentication,)
    for way in ways:
        if servers := answer.get(f"BootstrapBrokerString{reach}{_STRINGS[way]}"):
            encrypted = "SASL_SSL" if way in ("iam", "scram") else "PLAINTEXT" if way == "none" else "SSL"
            return replace(cluster, bootstrap_servers=servers, security_protocol=encrypted)
    enabled = ", ".join(cluster.authentications) or "none"
    reason = (
        f"missing: no {entry.reach} address for `authentication: {entry.authentication}`; the cluster has {enabled}"
    )
    return cluster.with_gap(what, f"{reason}: set `authentication` or `reach` of its entry under `msk`.")


def _with_brokers(connection: Connection, client: Any, cluster: MskCluster) -> MskCluster:
    try:
        pages = client.get_paginator("list_nodes").paginate(
            ClusterArn=cluster.arn, PaginationConfig={"PageSize": PAGE_SIZE}
        )
        nodes = [node["BrokerNodeInfo"] for page in pages for node in listed(page, "NodeInfoList") if _is_broker(node)]
    except Failure as error:
        return cluster.with_gap("brokers", connection.gap(error))
    brokers = sorted((_broker(node) for node in nodes), key=lambda broker: broker.broker_id)
    return replace(cluster, brokers=tuple(brokers))


def _is_broker(node: dict[str, Any]) -> bool:
    info = node.get("BrokerNodeInfo", {})
    return "BrokerId" in info and bool(info.get("Endpoints"))


def _broker(node: dict[str, Any]) -> MskBroker:
    # The API's type of a broker id is double.
    return MskBroker(
        int(node["BrokerId"]), node["Endpoints"][0].lower(), node.get("ClientVpcIpAddress"), node.get("ClientSubnet")
    )


def _with_zones(connection: Connection, clusters: list[MskCluster]) -> Found:
    """The clusters with their brokers' availability zones; without the permission these stay unknown."""
    subnets = sorted({broker.subnet for cluster in clusters for broker in cluster.brokers if broker.subnet})
    if not subnets:
        return Found(tuple(clusters))
    gaps: tuple[tuple[str, str], ...] = ()
    zones: dict[str, str] = {}
    try:
        # A filter: one subnet that is gone would refuse all of SubnetIds.
        for some in (subnets[i : i + 200] for i in range(0, len(subnets), 200)):
            paginator = connection.client("ec2").get_paginator("describe_subnets")
            for page in paginator.paginate(Filters=[{"Name": "subnet-id", "Values": some}]):
                zones |= {one["SubnetId"]: one.get("AvailabilityZone", "") for one in listed(page, "Subnets")}
    except Failure as error:
        gaps = ((f"{connection.place} MSK availability zones", connection.gap(error)),)
    located = [
        replace(
            cluster,
            brokers=tuple(
                replace(broker, availability_zone=zones.get(broker.subnet or "") or None) for broker in cluster.brokers
            ),
        )
        for cluster in clusters
    ]
    return Found(tuple(located), gaps)


def msk_kafka_clusters(config: Config) -> list[KafkaCluster]:
    """MSK clusters that are not under `kafka` and have bootstrap addresses. They hold no secret: a task fetches it."""
    return [
        _kafka_cluster(cluster)
        for cluster in discover(config).clusters
        if cluster.bootstrap_servers and not cluster.is_in_config
    ]


def _kafka_cluster(cluster: MskCluster) -> KafkaCluster:
    entry = cluster.entry
    client = {"security.protocol": cluster.security_protocol, **entry.client}
    if entry.authentication == "mtls":
        client |= {"ssl.certificate.location": str(entry.certificate), "ssl.key.location": str(entry.key)}
        client |= {"ssl.key.password": entry.key_password} if entry.key_password else {}
    login = None
    if entry.authentication in ("iam", "scram"):
        login = AwsLogin(
            account=cluster.account, region=cluster.region, authentication=entry.authentication, secret=entry.secret
        )
    return KafkaCluster(
        name=cluster.cluster,
        bootstrap_servers=cluster.bootstrap_servers or "",
        client=client,
        aws_login=login,
        schema_registry=entry.schema_registry,
    )


def broker_instance(msk_name: str, broker_id: int) -> str:
    """Id of the instance that a broker runs on."""
    return f"msk-{msk_name}-b-{broker_id}"


def open_monitoring_endpoints(config: Config) -> Iterator[JmxEndpoint]:
    """Brokers and their hosts at the ports of open monitoring, where it is on and the config wants it read."""
    for cluster in discover(config).clusters:
        if not cluster.entry.open_monitoring:
            continue
        for broker in cluster.brokers:
            instance_id = broker_instance(cluster.msk_name, broker.broker_id)
            common = {"cluster": cluster.cluster, "protocol": "prometheus", "instance_id": instance_id}
            if cluster.has_jmx_exporter:
                url = f"http://{broker.host}:{JMX_EXPORTER_PORT}/metrics"
                yield JmxEndpoint.model_validate(
                    {**common, "role": "broker", "url": url, "broker_id": broker.broker_id}
                )
            if cluster.has_node_exporter:
                url = f"http://{broker.host}:{NODE_EXPORTER_PORT}/metrics"
                yield JmxEndpoint.model_validate({**common, "role": "node", "url": url})
