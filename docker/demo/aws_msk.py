"""Amazon MSK of the strict AWS endpoint: clusters, their brokers and bootstrap addresses; subnets, and a secret.

Shapes, required members, and bounds are those of botocore's model of the service; which errors an operation has and
which states refuse it: Amazon MSK API Reference 2.0 (clusters) and 1.0 (clusters-clusterarn-bootstrap-brokers,
clusters-clusterarn-nodes).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from demo.aws_wire import AwsError, Caller, next_token, resume
from demo.msk_world import MskCluster

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

MAX_RESULTS = 100
PORTS = {"none": 9092, "tls": 9094, "mtls": 9094, "scram": 9096, "iam": 9098}
STRINGS = {
    "none": "BootstrapBrokerString", "tls": "BootstrapBrokerStringTls", "mtls": "BootstrapBrokerStringTls",
    "scram": "BootstrapBrokerStringSaslScram", "iam": "BootstrapBrokerStringSaslIam",
}  # fmt: skip
ARN = re.compile(r"arn:aws[a-z-]*:kafka:([a-z0-9-]+):(\d{12}):cluster/([^/]+)/([0-9a-f-]+)")


def _page(caller: Caller, params: dict[str, Any], key: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    size = params.get("MaxResults", MAX_RESULTS)
    if not 1 <= size <= MAX_RESULTS:
        raise AwsError("BadRequestException", f"The parameter maxResults must be from 1 to {MAX_RESULTS}.")
    (start,) = resume(caller, params, "BadRequestException") or (0,)
    page: dict[str, Any] = {key: found[start : start + size]}
    if start + size < len(found):
        page["NextToken"] = next_token(caller, params, [start + size])
    return page


def _own(endpoint: AwsEndpoint, caller: Caller) -> list[MskCluster]:
    clusters = endpoint.world.msk.clusters
    return [each for each in clusters if (each.account, each.region) == (caller.account, caller.region)]


def _named(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> MskCluster:
    if not ARN.fullmatch(params["ClusterArn"]):
        raise AwsError("BadRequestException", "One or more of the parameters are not valid: clusterArn.")
    for cluster in _own(endpoint, caller):
        if cluster.arn == params["ClusterArn"]:
            return cluster
    raise AwsError("NotFoundException", "The requested resource doesn't exist.", 404)


def list_clusters_v2(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """ListClustersV2: 100 a page at most; clusterNameFilter is the beginning of a name."""
    prefix, kind = params.get("ClusterNameFilter", ""), params.get("ClusterTypeFilter")
    found = [
        _info(each) for each in _own(endpoint, caller) if each.name.startswith(prefix) and kind in (None, _kind(each))
    ]
    return _page(caller, params, "ClusterInfoList", found)


def describe_cluster_v2(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeClusterV2."""
    return {"ClusterInfo": _info(_named(endpoint, caller, params))}


def get_bootstrap_brokers(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetBootstrapBrokers: refused while a cluster is being created or deleted."""
    cluster = _named(endpoint, caller, params)
    if cluster.state in ("CREATING", "DELETING", "FAILED"):
        raise AwsError("BadRequestException", f"The operation is not valid in the cluster's state {cluster.state}.")
    hosts = [cluster.host(broker_id) for broker_id in list(cluster.broker_ids)[:3]]
    if cluster.is_serverless:
        hosts = [f"boot-{cluster.id[:8]}.c2.kafka-serverless.{cluster.region}.amazonaws.com"]
    return {
        STRINGS[way]: ",".join(host if ":" in host else f"{host}:{PORTS[way]}" for host in hosts)
        for way in cluster.authentications
    }


def list_nodes(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """ListNodes: 100 a page at most."""
    cluster = _named(endpoint, caller, params)
    if cluster.state in ("CREATING", "DELETING") or cluster.is_serverless:
        raise AwsError("BadRequestException", f"The operation is not valid for this cluster ({cluster.state}).")
    return _page(caller, params, "NodeInfoList", [_node(cluster, broker_id) for broker_id in cluster.broker_ids])


def _kind(cluster: MskCluster) -> str:
    return "SERVERLESS" if cluster.is_serverless else "PROVISIONED"


def subnet_of(region: str, number: int) -> str:
    return f"subnet-0{region.replace('-', '')}{number}"


def _node(cluster: MskCluster, broker_id: int) -> dict[str, Any]:
    return {
        "AddedToClusterTime": "2026-01-01T00:00:00.000Z",
        "InstanceType": cluster.instance_type.removeprefix("kafka."),
        "NodeARN": f"{cluster.arn.replace(':cluster/', ':broker/')}/{broker_id}",
        "NodeType": "BROKER",
        "BrokerNodeInfo": {
            "AttachedENIId": f"eni-0{broker_id:016x}",
            "BrokerId": float(broker_id),
            "ClientSubnet": subnet_of(cluster.region, broker_id % 3),
            "ClientVpcIpAddress": f"172.31.{broker_id // 250}.{broker_id % 250 + 4}",
            "CurrentBrokerSoftwareInfo": {"KafkaVersion": cluster.kafka_version},
            "Endpoints": [cluster.host(broker_id).partition(":")[0]],
        },
    }


def _info(cluster: MskCluster) -> dict[str, Any]:
    info: dict[str, Any] = {
        "ClusterType": _kind(cluster),
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "CurrentVersion": "K13V1IB3VIYZZH",
        "State": cluster.state,
        "Tags": cluster.tags,
    }
    sasl = {
        "Scram": {"Enabled": "scram" in cluster.authentications},
        "Iam": {"Enabled": "iam" in cluster.authentications},
    }
    if cluster.is_serverless:
        vpc = {"SubnetIds": [subnet_of(cluster.region, 0)], "SecurityGroupIds": ["sg-0"]}
        return info | {
            "Serverless": {"VpcConfigs": [vpc], "ClientAuthentication": {"Sasl": {"Iam": {"Enabled": True}}}}
        }
    storage = {"VolumeSize": cluster.volume_gib}
    if cluster.provisioned_mib_s:
        storage["ProvisionedThroughput"] = {"Enabled": True, "VolumeThroughput": cluster.provisioned_mib_s}
    group: dict[str, Any] = {
        "BrokerAZDistribution": "DEFAULT",
        "ClientSubnets": [subnet_of(cluster.region, number) for number in range(3)],
        "InstanceType": cluster.instance_type,
        "SecurityGroups": ["sg-0"],
    }
    if not cluster.is_express:
        group["StorageInfo"] = {"EbsStorageInfo": storage}
    return info | {
        "Provisioned": {
            "BrokerNodeGroupInfo": group,
            "CurrentBrokerSoftwareInfo": {"KafkaVersion": cluster.kafka_version},
            "ClientAuthentication": {
                "Sasl": sasl,
                "Tls": {"Enabled": "mtls" in cluster.authentications},
                "Unauthenticated": {"Enabled": bool({"none", "tls"} & {*cluster.authentications})},
            },
            "EnhancedMonitoring": cluster.level,
            "OpenMonitoring": {
                "Prometheus": {
                    "JmxExporter": {"EnabledInBroker": cluster.jmx_exporter},
                    "NodeExporter": {"EnabledInBroker": cluster.node_exporter},
                }
            },
            "NumberOfBrokerNodes": cluster.brokers,
            "StorageMode": cluster.storage_mode,
        }
    }


def get_secret_value(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetSecretValue, by name or ARN."""
    name = params["SecretId"].rpartition(":secret:")[2]
    text = endpoint.world.msk.secrets.get((caller.account, caller.region, name))
    if text is None:
        raise AwsError("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
    return {
        "Name": name,
        "SecretString": text,
        "ARN": f"arn:aws:secretsmanager:{caller.region}:{caller.account}:secret:{name}",
    }
