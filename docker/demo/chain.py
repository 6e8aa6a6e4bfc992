"""The fleet of FAULTS=chain: three real brokers, of which the third has a volume that is held back.

The volume is the emulator's: its bucket is spent, and how long a request takes follows from its queue. An agent in the
third broker's JVM (SlowDisk.java) lets flushes and cold reads take as long. Flush times, replicas that fall out of sync
and groups that lag are what Kafka makes of that. The minutes before the fleet came up are fed: records stamped as of
then, and the emulator's past.
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
CONTROLLERS = (1,)  # of the nodes
# As many threads as Kafka has by itself: they are what waits for the disk.
SETTINGS = {"min.insync.replicas": "2", "num.network.threads": "3", "num.io.threads": "8"}


class Chain(Fleet):
    """Its one fault makes four more things go wrong; they are one incident."""

    # A broker that was started less than 15 minutes ago may lack replicas because it is still catching up.
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
        # The starved broker is no controller: each append would wait for its disk, the quorum would lose its leader and
        # brokers their leases; then what it leads moves to the others for a while, where it is quickly read.
        self.cluster = Cluster(
            folder, heap="192m", settings=SETTINGS, options={STARVED_NODE: [agent]}, controllers=CONTROLLERS
        )
        self._parts.enter_context(self.cluster)
        self.say(f"{len(self.cluster.brokers)} brokers answer")
        self.clients: dict[str, Process] = {}
        self._create_topics()
        with self._client("past") as past:
            past.wait(START_SECONDS)
        self.say("the last minutes' records are written")
        disks = {
            CHAIN_BROKERS[broker.node_id][1]: broker.pid
            for broker in self.cluster.brokers
            if broker.node_id != STARVED_NODE
        }
        self._parts.enter_context(Feed(self.world, disks, {}))
        seconds = seconds_per_request(self.world, CHAIN_BROKERS[STARVED_NODE][1], datetime.now(UTC))
        held_back.write_text(f"{seconds}\n")
        self.say(f"broker {STARVED_NODE}'s disk takes {seconds:.2f} s for a request")
        for role in ("shop", *READERS):
            self.clients[role] = self._enter(self._client(role))

    def _create_topics(self) -> None:
        # Each third of the orders is led by one broker; the returns are led by the two that are well.
        nodes = list(CHAIN_BROKERS)
        orders = [nodes[n % 3 :] + nodes[: n % 3] for n in range(PARTITIONS)]
        returns = [orders[n % 2] for n in range(6)]
        # What is sold is on the disk before the shop is told so.
        config = {"flush.messages": "1", "retention.ms": str(6 * 3_600_000)}
        create_topics(
            self.cluster.bootstrap_servers,
            NewTopic("orders", len(orders), replica_assignment=orders, config=config),
            NewTopic("returns", len(returns), replica_assignment=returns, config=config),
        )

    def _client(self, role: str, *arguments: str) -> Process:
        servers = self.cluster.bootstrap_servers
        return python(role, self.folder / "clients", "demo.chain_load", role, servers, *arguments)

    def _update_open_findings_faults(self) -> None:
        self.injected(
            "chain",
            "ebs_volume_starving",
            CHAIN_BROKERS[STARVED_NODE][1],
            f"30 GiB gp2 (100 IOPS baseline) of broker {STARVED_NODE} is asked for 290 IOPS: its credits are spent",
            self.started_at - STARVED_FOR,
            follows=(
                f"Log flushes are slow: {CLUSTER} broker {STARVED_NODE}",
                f"Partitions lack a broker's replicas: {CLUSTER} broker {STARVED_NODE}",
                f"Consumer group lags and doesn't catch up: {CLUSTER}/billing",
                f"Consumer group lags and doesn't catch up: {CLUSTER}/search",
            ),
        )


def _agent(folder: Path) -> Path:
    """SlowDisk.java as an agent's jar, with the library that it needs."""
    classes, jar = folder / "agent", folder / "slow-disk.jar"
    library = ensure(DISK)[0]
    source = Path(__file__).with_name("SlowDisk.java")
    compiler = Path(java()).with_name("javac")
    command = [str(compiler), "-d", str(classes), "-cp", str(library), str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise StreamwardenError(f"{source.name} couldn't be compiled: {run.stderr.strip().splitlines()[0]}")
    beside = folder / library.name
    beside.symlink_to(library)
    with zipfile.ZipFile(jar, "w") as archive:
        manifest = f"Manifest-Version: 1.0\nPremain-Class: SlowDisk\nClass-Path: {beside.name}\n"
        archive.writestr("META-INF/MANIFEST.MF", manifest)
        for compiled in classes.glob("*.class"):
            archive.write(compiled, compiled.name)
    return jar
