"""Two real brokers with addresses of their own and a JMX exporter each: as platforms that run Kafka have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import NewTopic

from demo.broker import Broker, Cluster, create_topics
from demo.fleet import Fleet
from demo.jar_set import ensure
from demo.jars import EXPORTER
from demo.load import CLICKSTREAM_PARTITIONS
from demo.process import Process

HOSTS = {1: "127.0.0.2", 2: "127.0.0.3"}
"""Addresses of the brokers: their exporters have the same port."""


class ExporterFleet(Fleet):
    """The demo's application and clients on two brokers."""

    start_seconds = 45.0  # usually 20 s
    exporter_port: int
    """Of each broker's address."""

    def _kafka(self) -> list[Broker | Process]:
        return [*self.cluster.brokers, self.app]

    def _start_broker(self, ports: Mapping[str, int]) -> None:
        folder = self.folder / "brokers"
        folder.mkdir()
        exporters = {node: [exporter(folder, host, self.exporter_port)] for node, host in HOSTS.items()}
        self.cluster = Cluster(
            folder, len(HOSTS), heap="192m", options=exporters, hosts=HOSTS, controllers=(1,), replicas=1
        )
        self._parts.enter_context(self.cluster)
        self.broker = self.cluster.brokers[0]
        self.say(f"{len(HOSTS)} brokers respond")
        small = {"segment.bytes": str(16 * 2**20)}
        nodes = [[node] for node in HOSTS]
        create_topics(
            self.broker.bootstrap_servers,
            NewTopic(
                "orders",
                self._partitions,
                replica_assignment=[nodes[n % len(nodes)] for n in range(self._partitions)],
                config={**small, "retention.ms": str(6 * 3_600_000)},
            ),
            NewTopic(
                "clickstream",
                CLICKSTREAM_PARTITIONS,
                replica_assignment=[nodes[0]] * CLICKSTREAM_PARTITIONS,
                config={**small, "retention.ms": "-1"},
            ),
        )


def exporter(folder: Path, host: str, port: int) -> str:
    """Option of a JVM: Prometheus' JMX exporter at this address, without rules; its configuration is in the folder."""
    rules = folder / "exporter.yaml"
    rules.write_text("{}\n")
    return f"-javaagent:{ensure(EXPORTER)[0]}={host}:{port}:{rules}"
