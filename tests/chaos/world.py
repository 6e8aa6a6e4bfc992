"""The world of the chaos tests: small, real where possible, and static: an hour reads the same at any time.

PostgreSQL, Kafka, and Roundup are real, each in a process that faults may kill. AWS is the endpoint of the demo with a
stopped clock. JVM metrics are pages. Pages and tracker are behind a proxy that fails requests on demand.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
import struct
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self

import httpx
import psutil
import sqlalchemy as sa
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from demo.airflow import Airflow
from demo.aws_endpoint import AwsEndpoint
from demo.broker import Broker
from demo.demo_world import BROKER_INSTANCE_ID, DEMO_ACCOUNT, DEMO_REGION, ORDERS_INSTANCE_ID, demo_world
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.embedded import let_go, server_url, stop_server
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.store.migrate import migrate

from spark_apps.sources.jmx_mbeans import MBEANS, MBean, Role
from spark_apps.sources.jmx_readings import key_properties
from spark_apps.sources.recognition import recognized
from tests.answering import answering
from tests.roundup import pass_on, running_tracker
from tests.spark_apps.offsets_log import commit

HOUR_LASTS = timedelta(minutes=50)
"""Time after its end in which an hour is run here: readings of JVMs count for it for one hour."""
Kind = Literal["hour", "backfill", "airflow"]
"""What a round runs: the hour in one process, the hour and some before it in random order, or the hourly DAG."""
BACKFILLED = 2
"""Number of hours before the hour of the world that a backfill runs."""
_PASSWORD_ENV = "CHAOS_TRACKER_PASSWORD"
_VALUES: dict[Role, dict[str, float]] = {
    "broker": {
        "partitions": 7, "leaders": 7, "active_controllers": 1, "bytes_in_total": 7e9, "log_bytes": 5e6,
        "request_handler_idle_ratio": 1, "processors": 2, "heap_max_bytes": 1e9, "max_file_descriptors": 1e5,
    },
    "app": {
        "heap_used_bytes": 3.2e9, "heap_max_bytes": 3.6e9, "processors": 2, "physical_memory_bytes": 8e9,
        "max_file_descriptors": 1e5,
    },
}  # fmt: skip
"""By role: values of metrics; all others that are expected of an endpoint are 0."""


def page_of(role: Role) -> str:
    """A page that misses no metric, as the JMX exporter writes it without rules: a gap is only what a fault makes."""
    values = dict.fromkeys(recognized(role, _VALUES[role]).missing, 0.0) | _VALUES[role]
    series = {
        _series(bean, attribute): values[reading.metric]
        for bean in MBEANS
        for reading in bean.readings
        if role in bean.roles and reading.metric in values
        for attribute in filter(None, (reading.attribute, reading.times))
    }
    if role == "app":
        series["process_start_time_seconds"] = 1.79e9
    else:
        series |= {
            'kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="orders"}': 7e9,
            'kafka_log_Log_Value{name="Size",partition="1",topic="orders"}': 6e6,
        }
    return "".join(f"{name} {value}\n" for name, value in series.items())


def _series(bean: MBean, attribute: str) -> str:
    """Of the first partition, log directory, or thread; a counter by topic is of all topics."""
    domain, properties = bean.pattern.partition(":")[0], key_properties(bean.pattern)
    name = f"{domain}_{properties.pop('type')}_{attribute}"
    labels = {**dict.fromkeys(bean.labels, "orders"), **dict.fromkeys(bean.parts, "0"), **properties}
    if "partition" not in bean.parts:
        labels.pop("topic", None)
    text = ",".join(f'{_written(key)}="{value}"' for key, value in sorted(labels.items()))
    return f"{_written(name)}{{{text}}}"


def _written(name: str) -> str:
    return re.sub(r"\W", "_", name)


_PAGES = {f"/{role}": page_of(role) for role in _VALUES}
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
"""The library that shows processes another time (libfaketime of Debian); None: the clock cannot jump on this host."""
Stumble = Literal["refuse", "reset", "cut", "lose", "slow", "endless"]
_BLANKS = b" " * 2**16


class Front:
    """A server of the metrics pages, or a proxy of the tracker. While `stumble` is set, some requests fail so."""

    def __init__(self, target: str = "") -> None:
        self.target, self.chance = target, random.Random(5)  # noqa: S311 — not for secrets
        self.stumble: Stumble | None = None
        self.met = 0
        front = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                stumble = front.stumble if front.chance.random() < 0.6 else None
                front.met += stumble is not None
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if stumble == "slow":
                    time.sleep(1.5)
                if stumble in ("refuse", "reset"):
                    return self.send_error(503) if stumble == "refuse" else self.hang_up()
                if stumble == "endless":
                    return self.never_end()
                status, kind, answer = front.answer(self.command, self.path, dict(self.headers), body)
                if stumble == "lose":
                    return self.hang_up()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer[: len(answer) // 2] if stumble == "cut" else answer)
                self.close_connection = True
                return None

            def never_end(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.close_connection = True
                with suppress(OSError):  # until the client gives up
                    while True:
                        self.wfile.write(_BLANKS)

            def hang_up(self) -> None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()

            def finish(self) -> None:
                with suppress(OSError, ValueError):
                    super().finish()

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Status, content type, and body of the page, or of the response of the target."""
        if not self.target:
            return 200, "text/plain; version=0.0.4", _PAGES.get(path, "").encode()
        try:
            response = pass_on(self.target, method, path, headers, body)
        except httpx.HTTPError:
            return 502, "text/plain", b"no response"
        return response.status_code, response.headers.get("Content-Type", "text/plain"), response.content


class Clock:
    """The wall clock of the process that runs the hour, without its JVM.

    Monotonic clocks, which waits use, are unchanged, as when a wall clock is set.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.jump("+0")

    def jump(self, by: str) -> None:
        """Sets the offset to the clock of the host, as in `+40d` or `-90s`; takes effect within two seconds."""
        self._file.write_text(f"{by}\n", encoding="ascii")

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a process that sees this clock."""
        return {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


class World:
    """All parts, as a context manager; `environment` is what a process needs to use them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.postgres = self.folder / "postgres"
        self.clock = Clock(self.folder / "clock")
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        with self._parts:
            self.airflow: Airflow | None = None
            self.agents = self._front()
            self._roundup = self._parts.enter_context(running_tracker(self.folder / "tracker"))
            self.tracker = self._front(self._roundup.settings.url)
            self.broker = self._parts.enter_context(Broker(self.folder / "broker", heap="192m"))
            self._fill_topics()
            self.aws: AwsEndpoint | None = None
            self.begin_hour()
            self._template = self.create_postgres()
            migrate(engine(self._template))
            self._parts = self._parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self.aws:
            self.aws.stop()
        self._parts.close()
        postmaster = self.postmaster()
        if postmaster:
            postmaster.terminate()

    def begin_hour(self, *, for_airflow: bool = False) -> None:
        """Begins an hour that has just ended, with commits of the group in it. The clock of AWS stops after its end.

        For Airflow it is an hour of the clock; the next one if the last one is too old.
        """
        commit(self.broker.bootstrap_servers, "orders", *(TopicPartition("orders", part, 150) for part in (0, 1)))
        self.is_for_airflow = for_airflow
        if for_airflow:
            self.hour = last_full_hour()
            self.hour += HOUR * self.is_hour_too_old
        else:
            self.hour = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=59)
        time.sleep(max(0.0, (self.hour + timedelta(hours=1) - datetime.now(UTC)).total_seconds()))
        stopped_at = self.hour + timedelta(minutes=75)
        if self.aws:
            self.aws.stop()
        self.aws = AwsEndpoint(demo_world({"ebs"}, lambda: stopped_at)).start()
        self._write_config()

    @property
    def is_hour_too_old(self) -> bool:
        """Whether readings of JVMs soon no longer count for the hour."""
        return datetime.now(UTC) > self.hour + timedelta(hours=1) + HOUR_LASTS

    def hours(self, kind: Kind) -> list[datetime]:
        """The hours that a round of this kind runs, in order."""
        before = BACKFILLED if kind == "backfill" else 0
        return [self.hour - HOUR * back for back in range(before, -1, -1)]

    def fresh_warehouse(self) -> sa.Engine:
        """The warehouse, migrated and empty."""
        for url in (self._template, self.url):
            engine(url).dispose()
        with self._admin().connect() as connection:
            connection.exec_driver_sql('drop database if exists "warehouse" with (force)')
            connection.exec_driver_sql('create database "warehouse" template "template"')
        return engine(self.url)

    @property
    def url(self) -> str:
        return self._template.replace("/template", "/warehouse")

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a process that uses this world."""
        assert self.aws
        return {
            **self.aws.environment(DEMO_ACCOUNT, DEMO_REGION),
            CONFIG_ENV: str(self.folder / "streamwarden.yaml"),
            WAREHOUSE_ENV: self.url,
            _PASSWORD_ENV: self._roundup.settings.password or "",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "AWS_MAX_ATTEMPTS": "3",
        }

    def postmaster(self) -> psutil.Process | None:
        """The postmaster process; None if it is not running."""
        with suppress(OSError, ValueError, IndexError, psutil.NoSuchProcess):
            return psutil.Process(int((self.postgres / "postmaster.pid").read_text().split()[0]))
        return None

    def create_postgres(self) -> str:
        """Creates PostgreSQL; returns the URL of a new database. A limit of its files does not limit its shared memory.

        Shared memory of POSIX is files. If they reach the limit, which a full disk does not cause, statistics in them
        are damaged: PostgreSQL 18 then crashes, or does not end a commit.
        """
        admin = self._admin()
        with admin.connect() as connection:
            connection.exec_driver_sql("alter system set dynamic_shared_memory_type = 'sysv'")
        admin.dispose()
        stop_server(self.postgres)
        return embedded_url(self.postgres, "template")

    def _admin(self) -> sa.Engine:
        """Engine for commands to the server."""
        return engine(embedded_url(self.postgres, "postgres")).execution_options(isolation_level="AUTOCOMMIT")

    def start_postgres(self) -> None:
        """Starts PostgreSQL again after it was killed."""
        let_go(self.postgres)  # this process still believes that it runs
        server_url(self.postgres)

    def issues(self) -> list[dict[str, Any]]:
        """Tickets in the tracker."""
        return self._roundup.issues()

    def forget_issues(self) -> None:
        """Deletes all tickets, so that the tickets of the next round are new."""
        for issue in self.issues():
            self._roundup.delete(issue["id"])

    def _front(self, target: str = "") -> Front:
        front = Front(target)
        self._parts.enter_context(answering(front.server))
        return front

    def _fill_topics(self) -> None:
        """Fills topic `orders`, of which group `orders` has read half, and a changelog of the application."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 3})
        changelog = NewTopic("orders-totals-changelog", 2, config={"cleanup.policy": "compact"})
        for created in admin.create_topics([NewTopic("orders", 2), changelog]).values():
            created.result(30)
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, "linger.ms": 20})
        for number in range(600):
            amount: int | str = number if number < 500 else str(number)
            value = json.dumps({"customer": f"c{number % 40}", "amount": amount})
            for topic in ("orders", "orders-totals-changelog"):
                producer.produce(topic, key=f"{number}", value=value, partition=number % 2)
        producer.flush(30)

    def _write_config(self) -> None:
        jvm = {"cluster": "c", "protocol": "prometheus", "timeout_seconds": 3}
        config = {
            "aws": [{"account": DEMO_ACCOUNT, "regions": [DEMO_REGION]}],
            "kafka": [{"name": "c", "bootstrap_servers": self.broker.bootstrap_servers}],
            "jmx": [
                {
                    **jvm,
                    "role": "broker",
                    "url": f"{self.agents.url}/broker",
                    "broker_id": 1,
                    "instance_id": BROKER_INSTANCE_ID,
                },
                {
                    **jvm,
                    "role": "app",
                    "app": "orders",
                    "url": f"{self.agents.url}/app",
                    "instance_id": ORDERS_INSTANCE_ID,
                },
            ],
            "gathering": {"settle_minutes": 0, "jmx_samples": 2, "jmx_sample_seconds": 0.2},
            # The disk usage of this host changes between runs.
            "detectors": {"disk_filling": {"enabled": False}},
            "tickets": {
                "trackers": {
                    "tracker": {
                        "kind": "roundup",
                        "url": self.tracker.url,
                        "user": "streamwarden",
                        "password": f"${{{_PASSWORD_ENV}}}",
                    }
                }
            },
        }
        (self.folder / "streamwarden.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def tree(process: psutil.Process) -> list[psutil.Process]:
    """A process and its children."""
    with suppress(psutil.NoSuchProcess):
        return [*process.children(recursive=True), process]
    return []


def environment_of(world: World) -> dict[str, str]:
    """The environment of a process that runs the hour. With libfaketime it sees the clock of the world."""
    folders = f"{Path.cwd()}:{os.environ.get('PYTHONPATH', '')}"
    output = {**os.environ, **world.environment, "PYTHONPATH": folders}
    output["JDK_JAVA_OPTIONS"] = "-XX:ReservedCodeCacheSize=256m"
    if FAKETIME:
        output |= world.clock.environment | {"PYTHONPATH": f"{Path(__file__).parent / 'clocked'}:{folders}"}
    return output
