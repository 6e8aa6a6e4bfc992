"""Real Kafka brokers (KRaft) for the demo and for tests, with a Jolokia agent each.

`with Broker(folder) as broker` provides broker.bootstrap_servers, broker.pid, and broker.jolokia_url;
`with Cluster(folder, size=3) as cluster` provides cluster.bootstrap_servers and cluster.brokers[0].kill().
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from streamwarden.base.errors import StreamwardenError

from demo.jar_set import ensure
from demo.jars import BROKER, JOLOKIA, classpath
from demo.process import JVM_OPTIONS, Jvm, Process, free_port
from spark_apps.runtime.class_archive import java

CLUSTER_ID = "c3RyZWFtd2FyZGVuLWRlbQ"
READY_SECONDS = 60


class Broker:
    """A node: broker and controller, or only a broker if `voters` are other nodes. Port 0: any free port. Data in the
    folder is reused."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        jolokia_port: int = 0,
        *,
        heap: str = "256m",
        settings: Mapping[str, str] | None = None,
        node_id: int = 1,
        controller_port: int = 0,
        voters: str = "",
        brokers: int = 1,
        options: Sequence[str] = (),
        host: str = "127.0.0.1",
    ) -> None:
        """`host`: address of the listener for clients."""
        self.folder = folder.absolute()
        self.host = host
        self.node_id = node_id
        self.port = port or free_port()
        self.jolokia_url = f"http://127.0.0.1:{jolokia_port or free_port()}/jolokia"
        self.controller_port = controller_port or free_port()
        self.bootstrap_servers = f"{host}:{self.port}"
        self._options = [f"-Xmx{heap}", f"-Xms{heap}", *options]
        self._voters = voters or f"{node_id}@127.0.0.1:{self.controller_port}"
        self._brokers = brokers
        self._settings = self._defaults() | dict(settings or {})
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def log_folder(self) -> Path:
        """Folder of the log segments."""
        return self.folder / "data"

    def start(self) -> Self:
        """Starts the broker and waits until it responds."""
        self.launch()
        wait_until_answering(self.bootstrap_servers, [self])
        return self

    def launch(self) -> None:
        """Starts without waiting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        if not (self.log_folder / "meta.properties").exists():
            self._format(config)
        jolokia_port = int(self.jolokia_url.split(":")[2].split("/")[0])
        self._process = Jvm(
            f"broker-{self.node_id}",
            ["kafka.Kafka", str(config)],
            self.folder,
            classpath=classpath(BROKER),
            agent=ensure(JOLOKIA)[0],
            jolokia_port=jolokia_port,
            options=self._options,
        ).start()

    def check(self) -> None:
        """Raises if the process has ended."""
        self._running().check()

    def terminate(self) -> None:
        """Requests a stop, without waiting."""
        if self._process is not None:
            self._process.terminate()

    def stop(self, grace_seconds: float = 8) -> None:
        if self._process is not None:
            self._process.stop(grace_seconds)

    def kill(self) -> None:
        """A crash, for tests: no controlled shutdown."""
        psutil.Process(self.pid).send_signal(signal.SIGKILL)
        self.stop()

    def _running(self) -> Process:
        if self._process is None:
            raise StreamwardenError(f"broker {self.node_id} in {self.folder} was not started")
        return self._process

    def _format(self, config: Path) -> None:
        shutil.rmtree(self.log_folder, ignore_errors=True)
        command = [java(), *JVM_OPTIONS, "-cp", classpath(BROKER), "kafka.tools.StorageTool"]
        command += ["format", "-t", CLUSTER_ID, "-c", str(config)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise StreamwardenError(f"Kafka's storage tool refused {config}: {run.stderr.strip().splitlines()[-1]}")

    def _defaults(self) -> dict[str, str]:
        listeners = {"broker": f"PLAINTEXT://{self.host}:{self.port}"}
        if any(voter.startswith(f"{self.node_id}@") for voter in self._voters.split(",")):
            listeners["controller"] = f"CONTROLLER://127.0.0.1:{self.controller_port}"
        return {
            "process.roles": ",".join(listeners),
            "node.id": str(self.node_id),
            "controller.quorum.voters": self._voters,
            "listeners": ",".join(listeners.values()),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.log_folder),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "offsets.topic.num.partitions": "8",
            "transaction.state.log.num.partitions": "2",
            # The default reserves 128 MiB of the heap for compaction.
            "log.cleaner.dedupe.buffer.size": str(4 * 2**20),
            **{
                key: str(min(self._brokers, 3))
                for key in (
                    "default.replication.factor",
                    "offsets.topic.replication.factor",
                    "transaction.state.log.replication.factor",
                    "share.coordinator.state.topic.replication.factor",
                )
            },
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Cluster:
    """Several brokers on free ports, with a controller quorum of all nodes or of `controllers`."""

    def __init__(
        self,
        folder: Path,
        size: int = 3,
        *,
        heap: str = "256m",
        settings: Mapping[str, str] | None = None,
        options: Mapping[int, Sequence[str]] | None = None,
        controllers: Sequence[int] = (),
        hosts: Mapping[int, str] | None = None,
        replicas: int | None = None,
    ) -> None:
        """`options` and `hosts`: JVM options, and addresses for clients, by node. `replicas`: default of topics."""
        ports = {node: free_port() for node in range(1, size + 1)}
        voters = ",".join(f"{node}@127.0.0.1:{ports[node]}" for node in controllers or ports)
        self.brokers = [
            Broker(
                folder / f"broker-{node}",
                heap=heap,
                settings=settings,
                node_id=node,
                controller_port=port,
                voters=voters,
                brokers=replicas or size,
                options=(options or {}).get(node, ()),
                host=(hosts or {}).get(node, "127.0.0.1"),
            )
            for node, port in ports.items()
        ]
        self.bootstrap_servers = ",".join(broker.bootstrap_servers for broker in self.brokers)

    def __enter__(self) -> Self:
        try:
            for broker in self.brokers:
                broker.launch()
            wait_until_answering(self.bootstrap_servers, self.brokers)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        # The last members of a quorum cannot leave it cleanly, so all are stopped at once with a short timeout.
        for broker in self.brokers:
            broker.terminate()
        for broker in self.brokers:
            broker.stop(grace_seconds=3)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def create_topics(bootstrap_servers: str, *topics: NewTopic) -> None:
    """Creates topics, and returns when the cluster lists them."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    for created in admin.create_topics(list(topics)).values():
        created.result(30)


def wait_until_answering(bootstrap_servers: str, brokers: Sequence[Broker]) -> None:
    """Returns when the cluster lists all these brokers."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        for broker in brokers:
            broker.check()
        # A new client each time, because a client caches the metadata of an incomplete cluster for long.
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        try:
            if len(admin.list_topics(timeout=1).brokers) == len(brokers):
                return
        except KafkaException:
            pass
        time.sleep(0.2)
    raise StreamwardenError(f"Kafka at {bootstrap_servers} did not respond within {READY_SECONDS} s")
