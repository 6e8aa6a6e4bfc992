"""The fleet of FAULTS=chain: three real brokers, the third with a throttled volume.

The volume is emulated: its burst balance is 0, and the latency of its requests follows from its queue. An agent in the
third broker's JVM (SlowDisk.java) delays flushes and cold reads by this latency. Slow flushes, replicas that leave the
ISR, and consumer lag are then Kafka's own behavior. Data of the minutes before the start is generated: records with
earlier timestamps, and the history of the emulator.
"""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.load import load_detectors

from demo.broker import Broker, Cluster, create_topics
from demo.chain_load import READERS
from demo.demo_world import CHAIN_BROKERS, STARVED_FOR, STARVED_NODE, chain_world, seconds_per_request
from demo.feed import Feed
from demo.fleet import START_SECONDS, Fleet, python
from demo.jar_set import ensure
from demo.jars import DISK
from demo.process import Process
from demo.world import World
from spark_apps.runtime.class_archive import java

CLUSTER = "shop"
PARTITIONS = 48
CONTROLLERS = (1,)  # node ids
TITLES = {detector.id: detector.title for detector in load_detectors(check=False).values()}
# Kafka's default numbers of threads, because these threads wait for the disk.
SETTINGS = {"min.insync.replicas": "2", "num.network.threads": "3", "num.io.threads": "8"}


class Chain(Fleet):
    """A fleet with one fault that has four effects; all are one incident."""

    # For 15 minutes after its start, a broker may be out of the ISR because it is catching up.
    load_seconds = 15.5 * 60

    def _kafka(self) -> list[Broker | Process]:
        return [*self.cluster.brokers]

    def _world(self) -> World:
        return chain_world(partial(datetime.now, UTC))

    def _kafka_config(self) -> dict[str, Any]:
        brokers = [
            {
                "cluster": CLUSTER,
                "protocol": "jolokia",
                "role": "broker",
                "url": broker.jolokia_url,
                "instance_id": CHAIN_BROKERS[broker.node_id][0],
            }
            for broker in self.cluster.brokers
        ]
        return {"kafka": [{"name": CLUSTER, "bootstrap_servers": self.cluster.bootstrap_servers}], "jmx": brokers}

    def _start_kafka(self, ports: Mapping[str, int]) -> None:
        folder = self.folder / "brokers"
        folder.mkdir()
        held_back = folder / "request-seconds"
        agent = f"-javaagent:{_agent(folder)}={held_back}"
        # The broker with the throttled volume is no controller. Otherwise appends to the metadata log would wait for
        # its disk, the quorum would lose its leader, and partitions of this broker would move to others for a while.
        self.cluster = Cluster(
            folder, heap="192m", settings=SETTINGS, options={STARVED_NODE: [agent]}, controllers=CONTROLLERS
        )
        self._parts.enter_context(self.cluster)
        self.say(f"{len(self.cluster.brokers)} brokers respond")
        self.clients: dict[str, Process] = {}
        self._create_topics()
        with self._client("past") as past:
            past.wait(START_SECONDS)
        self.say("records of the last minutes are written")
        disks = {
            CHAIN_BROKERS[broker.node_id][1]: broker.pid
            for broker in self.cluster.brokers
            if broker.node_id != STARVED_NODE
        }
        self._parts.enter_context(Feed(self.world, disks, {}))
        seconds = seconds_per_request(self.world, CHAIN_BROKERS[STARVED_NODE][1], datetime.now(UTC))
        held_back.write_text(f"{seconds}\n")
        self.say(f"the disk of broker {STARVED_NODE} takes {seconds:.2f} s per request")
        for role in ("shop", *READERS):
            self.clients[role] = self._enter(self._client(role))

    def _create_topics(self) -> None:
        # Each broker leads a third of the partitions of orders. The two healthy brokers lead those of returns.
        nodes = list(CHAIN_BROKERS)
        orders = [nodes[n % 3 :] + nodes[: n % 3] for n in range(PARTITIONS)]
        returns = [orders[n % 2] for n in range(6)]
        # Records are flushed to disk before the broker acknowledges them.
        config = {"flush.messages": "1", "retention.ms": str(6 * 3_600_000)}
        create_topics(
            self.cluster.bootstrap_servers,
            NewTopic("orders", len(orders), replica_assignment=orders, config=config),
            NewTopic("returns", len(returns), replica_assignment=returns, config=config),
        )

    def _client(self, role: str, *arguments: str) -> Process:
        servers = self.cluster.bootstrap_servers
        return python(role, self.folder / "clients", "demo.chain_load", role, servers, *arguments)

    def _record_initial_faults(self) -> None:
        self.injected(
            "chain",
            "ebs_volume_starving",
            CHAIN_BROKERS[STARVED_NODE][1],
            f"30 GiB gp2 (100 IOPS baseline) of broker {STARVED_NODE} with a demand of 290 IOPS: no I/O credits left",
            ("bucket_empty",),
            self.started_at - STARVED_FOR,
            follows=(
                f"{TITLES['log_flush_slow']}: {CLUSTER} broker {STARVED_NODE}",
                f"{TITLES['partitions_under_replicated']}: {CLUSTER} broker {STARVED_NODE}",
                f"{TITLES['consumer_group_lagging']}: {CLUSTER}/billing",
                f"{TITLES['consumer_group_lagging']}: {CLUSTER}/search",
            ),
        )


def _agent(folder: Path) -> Path:
    """Compiles SlowDisk.java to the jar of a Java agent, with its library."""
    classes, jar = folder / "agent", folder / "slow-disk.jar"
    library = ensure(DISK)[0]
    source = Path(__file__).with_name("SlowDisk.java")
    compiler = Path(java()).with_name("javac")
    command = [str(compiler), "-d", str(classes), "-cp", str(library), str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise StreamwardenError(f"{source.name} does not compile: {run.stderr.strip().splitlines()[0]}")
    link = folder / library.name
    link.symlink_to(library)
    with zipfile.ZipFile(jar, "w") as archive:
        manifest = f"Manifest-Version: 1.0\nPremain-Class: SlowDisk\nClass-Path: {link.name}\n"
        archive.writestr("META-INF/MANIFEST.MF", manifest)
        for compiled in classes.glob("*.class"):
            archive.write(compiled, compiled.name)
    return jar
