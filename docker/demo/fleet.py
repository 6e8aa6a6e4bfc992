"""The demo fleet: starts the real parts, injects the selected faults, records them, and stops everything at the end.

with Fleet(Path("var/demo"), parse_faults("ebs,rogue")) as fleet:
    fleet.load()                 # two minutes of traffic with injected faults
    fleet.hour                   # the clock hour of the traffic
    fleet.environment()          # environment variables for Streamwarden
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from confluent_kafka.admin import NewTopic
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR, start_of_hour

from demo import more_faults
from demo.aws_endpoint import AwsEndpoint
from demo.broker import Broker, Cluster, create_topics
from demo.demo_world import (
    BROKER_INSTANCE_ID,
    BROKER_VOLUME_ID,
    DEMO_ACCOUNT,
    DEMO_REGION,
    EBS_FAULT_LEAD,
    ORDERS_INSTANCE_ID,
    ORDERS_VOLUME_ID,
    demo_world,
)
from demo.faults import Injected
from demo.feed import Feed
from demo.jar_set import ensure
from demo.jars import JOLOKIA, STREAMS, classpath, ensure_all
from demo.load import CLICKSTREAM_PARTITIONS
from demo.ports import Ports, owner_of, port_of
from demo.process import Jvm, Process, claim_port, end_leftover
from demo.tracker import credentials
from demo.world import World

CLUSTER, APP = "demo", "orders"
DRIFTING_TOPIC = "orders-customer-latest-changelog"
START_SECONDS = 45.0
READY_SECONDS = 40.0
METRICS_TOKEN_ENV = "STREAMWARDEN_METRICS_TOKEN"  # noqa: S105 — a variable's name
PASSWORD_ENV = "STREAMWARDEN_TRACKER_PASSWORD"  # noqa: S105 — a variable's name
Say = Callable[[str], None]


def seconds_until_room(now: datetime, room_seconds: float) -> float:
    """Seconds to wait until the clock hour has this much time left: 0, or the rest of the current hour."""
    left = (start_of_hour(now) + HOUR - now).total_seconds()
    return 0.0 if left >= room_seconds else left


class Fleet:
    """All parts of the demo, as a context manager. Broker and application start without data; the tracker keeps its."""

    load_seconds = 120.0
    """Duration of the traffic before the evaluation."""
    start_seconds = 20.0
    """Start (usually 8 s) and traffic must be in one clock hour; the evaluation may follow after its end."""
    app_host = "127.0.0.1"
    """Address of the application's Jolokia agent."""

    def __init__(
        self,
        folder: Path,
        faults: frozenset[str],
        ports: Ports | None = None,
        say: Say = lambda line: None,
        room_seconds: float | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.faults = faults
        self.truth: list[Injected] = []
        self.more_clusters: dict[str, Cluster] = {}
        self.say = say
        self._ports = ports or Ports.from_environment()
        if faults & more_faults.MORE.keys():
            self.load_seconds = more_faults.MORE_LOAD_SECONDS
        self._room_seconds = self.start_seconds + self.load_seconds if room_seconds is None else room_seconds
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as parts:
            self._parts = parts
            self._start()
            self._parts = parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def load(self, seconds: float | None = None, tick: Callable[[float], None] = lambda done: None) -> None:
        """Runs traffic and injects late faults after half of the time; `tick` is called with the progress (0 to 1)."""
        seconds = self.load_seconds if seconds is None else seconds
        started, is_second_half = time.monotonic(), False
        while (passed := time.monotonic() - started) < seconds:
            self.check()
            if not is_second_half and passed > seconds / 2:
                is_second_half = True
                if "schema" in self.faults:
                    self.break_schema()
                more_faults.start(self, late=True)
            tick(passed / seconds)
            time.sleep(0.5)
        tick(1.0)

    def check(self) -> None:
        """Raises with the relevant line of the log if a part has ended."""
        for part in (self.tracker, *self._kafka(), *self.clients.values()):
            part.check()

    def _kafka(self) -> list[Broker | Process]:
        """The processes of Kafka and its applications."""
        return [self.broker, self.app]

    def break_schema(self) -> None:
        """Makes the shop write records of an incompatible schema; the changelog then has values of both schemas."""
        os.kill(self.clients["shop"].pid, signal.SIGUSR1)
        self.injected(
            "schema",
            "state_store_schema_drift",
            DRIFTING_TOPIC,
            "orders' `quantity` turned from integer to string, and `address.postcode` went away",
            ("breaks_restore",),
        )

    def config(self) -> dict[str, Any]:
        """`streamwarden.yaml` for this fleet."""
        return {
            "aws": [{"account": DEMO_ACCOUNT, "regions": [DEMO_REGION]}],
            **self._kafka_config(),
            # The emulated AWS has no late data points, and the hour is not over when it is evaluated.
            "gathering": {"settle_minutes": 0, "show_example_values": True},
            # The traffic takes only two minutes, which contain one complete minute of the clock.
            "detectors": {
                "consumer_rogue": {"params": {"sustained_minutes": 1}},
                **more_faults.params(self.faults),
            },
            "tickets": {
                "trackers": {
                    "roundup": {
                        "kind": "roundup",
                        "url": self.tracker_url,
                        "user": "streamwarden",
                        "password": f"${{{PASSWORD_ENV}}}",
                    }
                }
            },
            "prometheus": {"token": f"${{{METRICS_TOKEN_ENV}}}"},
            "ui_url": f"http://127.0.0.1:{port_of('DEMO_AIRFLOW_PORT', 8080)}",
        }

    def _kafka_config(self) -> dict[str, Any]:
        jvm = {"cluster": CLUSTER, "protocol": "jolokia"}
        return {
            "kafka": [
                {"name": CLUSTER, "bootstrap_servers": self.broker.bootstrap_servers},
                *(
                    {"name": name, "bootstrap_servers": one.bootstrap_servers}
                    for name, one in self.more_clusters.items()
                ),
            ],
            "jmx": [
                {**jvm, "role": "broker", "url": self.broker.jolokia_url, "instance_id": BROKER_INSTANCE_ID},
                {**jvm, "role": "app", "app": APP, "url": self.app.jolokia_url, "instance_id": ORDERS_INSTANCE_ID},
            ],
        }

    def environment(self) -> dict[str, str]:
        """Environment variables for a Streamwarden process that watches this fleet."""
        return {
            **self.aws.environment(DEMO_ACCOUNT, DEMO_REGION),
            CONFIG_ENV: str(self.config_file),
            PASSWORD_ENV: self.tracker_password("streamwarden"),
            METRICS_TOKEN_ENV: self.metrics_token,
        }

    @cached_property
    def metrics_token(self) -> str:
        """Generated token of the page for Prometheus."""
        return secrets.token_urlsafe(24)

    def tracker_password(self, user: str) -> str:
        """The generated password of a user of the tracker."""
        return credentials(self.folder / "tracker")[user]

    @property
    def config_file(self) -> Path:
        """Path of the fleet's `streamwarden.yaml`."""
        return self.folder / "streamwarden.yaml"

    @property
    def environment_file(self) -> Path:
        """Path of a shell script that exports `environment`; private to its owner."""
        return self.folder / "environment.sh"

    @property
    def truth_file(self) -> Path:
        """Path of the injected faults as JSON."""
        return self.folder / "truth.json"

    def _start(self) -> None:
        self._take_folder()
        ports = {name: claim_port(port, *owner_of(name)) for name, port in asdict(self._ports).items()}
        ensure_all(lambda line: None)
        self._wait_for_room_in_the_hour()
        self.hour = start_of_hour(datetime.now(UTC))
        self.started_at = datetime.now(UTC)
        self._write_truth()
        self.world = self._world()
        self.aws = self._parts.enter_context(AwsEndpoint(self.world, port=ports["aws"]))
        self._start_tracker(ports["tracker"])
        self._start_kafka(ports)
        self._record_initial_faults()
        self._write_settings()
        self.say("fleet is up")

    def _write_settings(self) -> None:
        self.config_file.write_text(yaml.safe_dump(self.config(), sort_keys=False))
        self.environment_file.touch(mode=0o600)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in self.environment().items()]
        self.environment_file.write_text("".join(lines))

    def _take_folder(self) -> None:
        """Locks the folder. Ends processes of a killed fleet and deletes its data, except tickets."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = self._parts.enter_context((self.folder / "fleet.lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StreamwardenError(f"a demo fleet is already running in {self.folder}: stop it first") from None
        for pid_file in self.folder.rglob("*.pid"):
            end_leftover(pid_file)
        for part in ("broker", "brokers", "app", "west", "clients", "kubernetes"):
            shutil.rmtree(self.folder / part, ignore_errors=True)

    def _wait_for_room_in_the_hour(self) -> None:
        wait_seconds = seconds_until_room(datetime.now(UTC), self._room_seconds)
        if wait_seconds:
            self.say(f"waiting {wait_seconds:.0f} s for the next clock hour: the traffic must be in one hour")
            time.sleep(wait_seconds)

    def _world(self) -> World:
        return demo_world(set(self.faults), lambda: datetime.now(UTC))

    def _start_kafka(self, ports: Mapping[str, int]) -> None:
        self._start_broker(ports)
        self._start_app(ports["app_jolokia"])
        self._start_clients()
        more_faults.start(self, late=False)
        self._parts.enter_context(self._feed())

    def _feed(self) -> Feed:
        return Feed(self.world, {BROKER_VOLUME_ID: self.broker.pid}, {ORDERS_INSTANCE_ID: self.app.pid})

    def _start_tracker(self, port: int) -> None:
        self.tracker_url = f"http://127.0.0.1:{port}"
        self.tracker = self._enter(
            python("tracker", self.folder, "demo.tracker", str(self.folder / "tracker"), str(port))
        )

    def _start_broker(self, ports: Mapping[str, int]) -> None:
        folder = self.folder / "broker"
        self.broker = Broker(folder, ports["broker"], ports["broker_jolokia"], heap="192m")
        self._parts.enter_context(self.broker)
        self.say("broker responds")
        small = {"segment.bytes": str(16 * 2**20)}
        create_topics(
            self.broker.bootstrap_servers,
            NewTopic("orders", self._partitions, config={**small, "retention.ms": str(6 * 3_600_000)}),
            NewTopic("clickstream", CLICKSTREAM_PARTITIONS, config={**small, "retention.ms": "-1"}),
        )

    @property
    def _partitions(self) -> int:
        """Number of partitions. For the memory fault, partitions × stores × segments exceed the memory of RocksDB."""
        return 12 if "memory" in self.faults else 4

    def _start_app(self, jolokia_port: int) -> None:
        heavy = "memory" in self.faults
        folder = self.folder / "app"
        source = Path(__file__).with_name("OrdersApp.java")
        memory = "unbounded" if heavy else "bounded"
        self.app = Jvm(
            APP,
            [str(source), self.broker.bootstrap_servers, str(folder / "state"), memory],
            folder,
            classpath=classpath(STREAMS),
            agent=ensure(JOLOKIA)[0],
            jolokia_port=jolokia_port,
            host=self.app_host,
            # The heap of the memory fault takes most of the instance's 4 GiB, so little is left for RocksDB.
            options=["-Xms64m", "-Xmx3500m" if heavy else "-Xmx192m", *self._app_options()],
        )
        self._enter(self.app)

    def _app_options(self) -> list[str]:
        """Further options of the application's JVM."""
        return []

    def _start_clients(self) -> None:
        """Writes the cold topic while the application starts, then starts the clients."""
        servers = self.broker.bootstrap_servers
        self.clients: dict[str, Process] = {}
        with self._client("cold", servers) as cold:
            cold.wait(START_SECONDS)
        self._wait_until_running()
        self.say("application runs, cold data is written")
        for role in ("shop", "billing"):
            self.clients[role] = self._enter(self._client(role, servers))
        if "rogue" in self.faults:
            self.clients["rogue"] = self._enter(self._client("rogue", servers, str(self.broker.log_folder)))

    def _client(self, role: str, *arguments: str) -> Process:
        return python(role, self.folder / "clients", "demo.load", role, *arguments)

    def start_client(self, role: str) -> None:
        """Starts a client of demo.more_load, which runs until the fleet is stopped."""
        client = python(role, self.folder / "clients", "demo.more_load", role, self.broker.bootstrap_servers)
        self.clients[role] = self._enter(client)

    def start_cluster(self, name: str) -> Cluster:
        """Starts another cluster of three brokers, which has no JMX endpoints in the config."""
        cluster = Cluster(self.folder / name, heap="128m")
        self.more_clusters[name] = self._parts.enter_context(cluster)
        return cluster

    def _wait_until_running(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        url = f"{self.app.jolokia_url}/read/kafka.streams:type=stream-metrics,client-id=*/state"
        while time.monotonic() < deadline:
            self.check()
            try:
                if '"RUNNING"' in httpx.get(url, timeout=5).text:
                    return
            except httpx.HTTPError:
                pass  # the agent is not listening yet
            time.sleep(0.2)
        raise StreamwardenError(
            f"the Streams application did not reach RUNNING in {READY_SECONDS:.0f} s: {self.app.log}"
        )

    def _enter(self, process: Process) -> Process:
        return self._parts.enter_context(process)

    def _record_initial_faults(self) -> None:
        """Records the faults that exist from the start."""
        if "ebs" in self.faults:
            why = "10 GiB gp2 (100 IOPS baseline) with a demand of about 950 IOPS for hours: no I/O credits left"
            since = self.hour - EBS_FAULT_LEAD
            self.injected("ebs", "ebs_volume_starving", ORDERS_VOLUME_ID, why, ("bucket_empty",), since)
        if "memory" in self.faults:
            why = f"3,500 MiB of heap and {self._partitions} partitions of unbounded RocksDB stores on a 4 GiB instance"
            self.injected("memory", "app_memory_heavy", APP, why, ("heap_oversized", "over_budget"))
        if "rogue" in self.faults:
            why = "a consumer that commits no offsets reads the cold topic `clickstream` from disk repeatedly"
            self.injected("rogue", "consumer_rogue", CLUSTER, why, ("rogue",))

    def injected(
        self,
        fault: str,
        detector: str,
        resource: str,
        why: str,
        reasons: tuple[str, ...],
        at: datetime | None = None,
        follows: tuple[str, ...] = (),
    ) -> None:
        """Records an injected fault."""
        moment = (at or datetime.now(UTC)).isoformat(timespec="seconds")
        self.truth.append(Injected(fault, detector, resource, moment, why, reasons, follows))
        self._write_truth()

    def _write_truth(self) -> None:
        self.truth_file.write_text(json.dumps([asdict(line) for line in self.truth], indent=2) + "\n")


def python(name: str, folder: Path, module: str, *arguments: str) -> Process:
    """A child process that runs a Python module."""
    return Process(name, [sys.executable, "-m", module, *arguments], folder)
