"""The fleet of FLEET=kubernetes: real brokers and a real application, which a real Kubernetes API server has as pods.

Streamwarden finds them with the role of docker/kubernetes: no host is in the config. Brokers are those of Strimzi;
the application is a StatefulSet with a memory limit, a PodMonitor, and a claim. Volumes and nodes are in the emulated
AWS with the tags of the EBS CSI driver and EKS: owners come from labels. Broker 2 shares its node with the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

from demo import kubernetes_world as objects
from demo.demo_world import (
    BATCH_INSTANCE_ID,
    CHAIN_BROKERS,
    DEMO_ACCOUNT,
    DEMO_REGION,
    EBS_FAULT_LEAD,
    ORDERS_VOLUME_ID,
    add_decoys,
)
from demo.ebs_load import LoadModel, Surge
from demo.ebs_resources import FOREVER
from demo.exporter_fleet import HOSTS, ExporterFleet, exporter
from demo.feed import Feed
from demo.fleet import APP, CLUSTER
from demo.kubernetes_api import PROGRAM, KubernetesApi, Object
from demo.world import World

APP_HOST = "127.0.0.4"
BROKERS, APPS, STREAMWARDEN = "kafka", "shop", "streamwarden"
"""Namespaces."""
EKS = "eks-demo"
NODES = {node: CHAIN_BROKERS[node][0] for node in HOSTS}
"""Broker → EC2 instance of its Kubernetes node."""
VOLUMES = {node: CHAIN_BROKERS[node][1] for node in HOSTS}
APP_NODE = 2
PORT_NAME = "tcp-prometheus"  # Strimzi's
READER = "token-of-streamwarden"
ACCOUNT = f"system:serviceaccount:{STREAMWARDEN}:{STREAMWARDEN}"
TOPIC_OWNERS = {"orders": "team-orders", "clickstream": "team-web"}
CLUSTER_LABEL = "strimzi.io/cluster"
LIMIT = "4Gi"
"""Of the application's container; its node has four times as much memory."""


class KubernetesFleet(ExporterFleet):
    """The demo's application and clients on Kubernetes."""

    exporter_port = 9404

    def __enter__(self) -> KubernetesFleet:
        if not PROGRAM.exists():
            raise StreamwardenError("FLEET=kubernetes needs a Kubernetes API server: `make kubernetes-api` builds it")
        super().__enter__()
        return self

    def check(self) -> None:
        """Raises with the relevant line of the log if a part has ended."""
        super().check()
        self.api.check()

    def _world(self) -> World:
        return eks_world("ebs" in self.faults)

    def _kafka_config(self) -> dict[str, Any]:
        entry = {
            "name": EKS,
            "kubeconfig": str(self.api.kubeconfig(READER)),
            "namespaces": [BROKERS, APPS],
            "selectors": {"apps": [f"app.kubernetes.io/part-of={APPS}"]},
            "owner_labels": ["team"],
        }
        return {"kubernetes": [entry]}

    def _app_options(self) -> list[str]:
        return [exporter(self.folder / "brokers", APP_HOST, self.exporter_port)]

    def _start_kafka(self, ports: Mapping[str, int]) -> None:
        folder = self.folder / "kubernetes"
        self.api = self._parts.enter_context(KubernetesApi(folder, {READER: ACCOUNT}))
        self.say("the Kubernetes API server responds")
        super()._start_kafka(ports)
        self.api.apply(*(objects.namespace(name) for name in (BROKERS, APPS, STREAMWARDEN)))
        self.api.apply(*objects.definitions(), *roles())
        self.api.apply(*of_nodes(), *of_brokers(self.cluster.bootstrap_servers), *of_app())

    def _feed(self) -> Feed:
        return Feed(self.world, {VOLUMES[one.node_id]: one.pid for one in self.cluster.brokers}, {})


def eks_world(is_starving: bool) -> World:
    """Nodes and volumes of the pods, with the tags of EKS and the EBS CSI driver, and volumes that must not alert."""
    world = World(seed=13, now=lambda: datetime.now(UTC))
    place = (DEMO_ACCOUNT, DEMO_REGION)
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    born = hour.replace(hour=0) - timedelta(days=30)
    for node, instance_id in NODES.items():
        tags = {"Name": f"{EKS}-workers-{node}", "eks:cluster-name": EKS, "eks:nodegroup-name": "workers"}
        world.add_instance(*place, instance_id, "m5.xlarge", tags, born)
    batch = {"Name": "batch-1", "application": "batch", "owner": "team-data"}
    world.add_instance(*place, BATCH_INSTANCE_ID, "m5.large", batch, born)

    def provisioned(namespace: str, claim: str, volume: str) -> dict[str, str]:
        return {
            "Name": f"{EKS}-dynamic-{volume}",
            "ebs.csi.aws.com/cluster": "true",
            "kubernetes.io/created-for/pvc/namespace": namespace,
            "kubernetes.io/created-for/pvc/name": claim,
            "kubernetes.io/created-for/pv/name": volume,
        }

    quiet = LoadModel(read_iops=0.4, write_iops=12, read_kib=128, write_kib=64, daily_swing=0.4, noise=0.3)
    for node, volume_id in VOLUMES.items():
        world.add_volume(*place, volume_id, "gp3", 500, 3000, 125, NODES[node], "/dev/xvdaa",
                         provisioned(BROKERS, broker_claim(node), f"pvc-broker-{node}"), quiet, born)  # fmt: skip
    surge = Surge(hour - EBS_FAULT_LEAD, FOREVER, read_iops=500, write_iops=450)
    load = LoadModel(read_iops=15, write_iops=20, daily_swing=0.3, surges=(surge,) if is_starving else ())
    world.add_volume(*place, ORDERS_VOLUME_ID, "gp2", 10, None, None, NODES[APP_NODE], "/dev/xvdab",
                     provisioned(APPS, APP_CLAIM, "pvc-orders-0"), load, born)  # fmt: skip
    add_decoys(world, place, batch, hour, born)
    return world


APP_CLAIM = f"state-{APP}-0"


def broker_claim(node: int) -> str:
    """Strimzi's name of a broker's claim."""
    return f"data-0-{CLUSTER}-broker-{node}"


def node_name(node: int) -> str:
    """Name of a Kubernetes node."""
    return f"ip-10-0-0-{node}.{DEMO_REGION}.compute.internal"


def roles() -> list[Object]:
    """What docker/kubernetes permits Streamwarden."""
    file = PROJECT_ROOT / "docker" / "kubernetes" / "base" / "rbac.yaml"
    return [one for one in yaml.safe_load_all(file.read_text()) if one["kind"] != "ServiceAccount"]


def of_nodes() -> list[Object]:
    """Kubernetes nodes."""
    return [objects.node(node_name(node), instance_id) for node, instance_id in NODES.items()]


def of_brokers(bootstrap_servers: str) -> list[Object]:
    """A Kafka cluster of Strimzi: its resources, pods, claims, and volumes."""
    team, of_cluster = {"team": "team-platform"}, {CLUSTER_LABEL: CLUSTER}
    found = [
        objects.kafka(BROKERS, CLUSTER, bootstrap_servers, labels=team),
        objects.node_pool(BROKERS, CLUSTER, "broker", len(HOSTS), gib=500),
        *(
            objects.strimzi(BROKERS, "KafkaTopic", topic, {}, {"topicName": topic}, of_cluster | {"team": owner})
            for topic, owner in TOPIC_OWNERS.items()
        ),
    ]
    for node, host in HOSTS.items():
        found += [
            objects.volume(f"pvc-broker-{node}", VOLUMES[node], gib=500),
            objects.claim(BROKERS, broker_claim(node), f"pvc-broker-{node}", gib=500),
            objects.broker(BROKERS, CLUSTER, node, claims=(broker_claim(node),), ip=host, node_name=node_name(node),
                           labels=team, memory="1Gi"),
        ]  # fmt: skip
    return found


def of_app() -> list[Object]:
    """The StatefulSet's pod with its claim, and the PodMonitor that declares its metrics."""
    labels = {"app.kubernetes.io/name": APP, "app.kubernetes.io/part-of": APPS, "team": "team-orders"}
    monitor = {
        "apiVersion": f"{objects.MONITORING}/v1",
        "kind": "PodMonitor",
        "metadata": {"namespace": APPS, "name": APP},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": APP}},
            "podMetricsEndpoints": [{"port": "management", "path": "/metrics"}],
        },
    }
    return [
        objects.volume("pvc-orders-0", ORDERS_VOLUME_ID, gib=10, storage_class="gp2"),
        objects.claim(APPS, APP_CLAIM, "pvc-orders-0", gib=10, storage_class="gp2"),
        objects.pod(APPS, f"{APP}-0", labels=labels, ip=APP_HOST, ports={"management": KubernetesFleet.exporter_port},
                    node_name=node_name(APP_NODE), memory=LIMIT, claims=(APP_CLAIM,)),
        monitor,
    ]  # fmt: skip
