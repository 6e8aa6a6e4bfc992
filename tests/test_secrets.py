"""No secret of the config leaks: an hour with all kinds of sources, and the commands around it.

Searched are the output, the arguments of every child process, all rows of the warehouse, the pages and their values,
the reports, and the tickets in the tracker. Some credentials are right and some are refused, because secrets leak
through errors.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
from confluent_kafka.admin import AdminClient
from demo.aws_endpoint import AwsEndpoint
from demo.process import free_port
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.hours import last_full_hour
from streamwarden.detectors import load_detectors
from streamwarden.ui import detectors as detector_pages
from streamwarden.ui import pages
from streamwarden.ui.incidents import incident
from streamwarden.ui.overview import overview
from streamwarden.ui.render import render

from tests.answering import answering
from tests.docker.documented import bindings_of, block
from tests.plugins.tickets.conftest import tracker
from tests.roundup import Tracker
from tests.secured_broker import SecuredBroker, secured_broker
from tests.spark_apps.aws_world import OTHER, REGION
from tests.spark_apps.sources.registry import registry

__all__ = ["tracker"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(1200)]

SECRETS = {
    "KAFKA_PASSWORD": "kafka-s3cr3t",
    "WRONG_PASSWORD": "wrong-s3cr3t",
    "JMX_URL_PASSWORD": "jmxurl-s3cr3t",
    "JMX_TOKEN": "jmxtoken-s3cr3t",
    "JMX_PASSWORD": "jmx-s3cr3t",
    "RMI_PASSWORD": "rmi-s3cr3t",
    "REGISTRY_PASSWORD": "s3cret",
    "WAREHOUSE_PASSWORD": "warehouse-s3cr3t",
    "EXTERNAL_ID": "external-s3cr3t",
}
BROKER_PAGE = b"""kafka_server_replicamanager_underreplicatedpartitions 2
kafka_server_brokertopicmetrics_bytesin_total 700
"""


class _Exporter(BaseHTTPRequestHandler):
    """A metrics page with under-replicated partitions, for the password of the URL."""

    def do_GET(self) -> None:
        login = b64encode(f"reader:{SECRETS['JMX_URL_PASSWORD']}".encode()).decode()
        page = BROKER_PAGE if self.headers["authorization"] == f"Basic {login}" else b""
        self.send_response(200 if page else 401)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secrets"), {"streamwarden": SECRETS["KAFKA_PASSWORD"]}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        granted = [binding for line in block("kafka-acls").splitlines() for binding in bindings_of(line)]
        for future in admin.create_acls(granted).values():
            future.result()
        yield running


@pytest.fixture
def environment(
    broker: SecuredBroker, tracker: Tracker, warehouse_url: str, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """The environment of a deployment with a secret of every kind."""
    role = f"arn:aws:iam::{OTHER}:role/streamwarden-read"
    world = World(seed=1, now=lambda: last_full_hour())
    world.add_volume(OTHER, REGION, "vol-0a", "gp3", 10)
    with (
        AwsEndpoint(world) as aws,
        registry() as (registry_url, _),
        answering(ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)) as exporter,
    ):
        aws.roles[role] = SECRETS["EXTERNAL_ID"]
        jmx = {"role": "broker", "cluster": "good", "protocol": "prometheus"}
        login = "reader:${JMX_URL_PASSWORD}"
        here, nobody = f"127.0.0.1:{exporter.server_port}", f"127.0.0.1:{free_port()}"
        good = broker.cluster("good", "streamwarden", "${KAFKA_PASSWORD}")
        registered = {"url": f"{registry_url}/secured", "user": "reader", "password": "${REGISTRY_PASSWORD}"}
        config = {
            "warehouse": {"url": re.sub(r"//([^:@/]+)[^@/]*@", r"//\1:${WAREHOUSE_PASSWORD}@", warehouse_url)},
            "aws": [{"account": OTHER, "regions": [REGION], "role_arn": role, "external_id": "${EXTERNAL_ID}"}],
            "kafka": [
                good | {"schema_registry": registered},
                broker.cluster("refused", "streamwarden", "${WRONG_PASSWORD}", mechanism="PLAIN"),
            ],
            "jmx": [
                jmx
                | {
                    "url": f"http://reader:${{JMX_URL_PASSWORD}}@{here}/metrics?token=${{JMX_TOKEN}}",
                    "timeout_seconds": 120,
                },
                jmx | {"url": f"http://{here}/locked", "user": "reader", "password": "${JMX_PASSWORD}"},
                jmx | {"url": f"http://{login}@{nobody}/metrics"},
                jmx | {"protocol": "jmx_rmi", "url": f"{nobody}", "user": "reader", "password": "${RMI_PASSWORD}"},
            ],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.5},
            "tickets": {
                "trackers": {
                    "roundup": tracker.settings.model_dump(include={"kind", "url", "user"})
                    | {"password": "${TRACKER_PASSWORD}"}
                }
            },
            "reports": {"folder": str(tmp_path / "reports")},
        }
        file = tmp_path / "streamwarden.yaml"
        file.write_text(json.dumps(config))
        known = {name: value for name, value in os.environ.items() if name != WAREHOUSE_ENV}
        password = {"TRACKER_PASSWORD": str(tracker.settings.password)}
        yield {
            **known,
            "COLUMNS": "300",
            **aws.environment(min(world.accounts), REGION),
            **SECRETS,
            **password,
            CONFIG_ENV: str(file),
        }


def test_no_secret_leaks(
    environment: dict[str, str],
    tracker: Tracker,
    warehouse: sa.Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, str] = {}
    arguments: set[str] = set()

    def run(*command: str) -> str:
        done = _watched(command, environment, arguments)
        seen[" ".join(command)] = done
        print(done)
        return done

    assert "firing" in run("run", "--hour", f"{last_full_hour():%Y-%m-%dT%H:%M}")
    assert "issues and messages can be read" in run("config", "check", "--probe")
    assert "Under-replicated partitions" in run("tickets", "list")
    assert "1 row" in run("warehouse", "psql", "-c", "select pg_sleep(2)")
    run("report")
    run("report", "--week")
    wrong = json.loads(Path(environment[CONFIG_ENV]).read_text())
    wrong["jmx"][0]["cluster"] = "nobody's"
    (tmp_path / "wrong.yaml").write_text(json.dumps(wrong))
    assert "names a cluster that is not under `kafka`" in run("config", "check", str(tmp_path / "wrong.yaml"))

    seen["arguments"] = "\n".join(arguments)
    assert "java" in seen["arguments"] and "psql" in seen["arguments"]
    seen["rows"] = _rows(warehouse)
    assert "http://127.0.0.1:" in seen["rows"] and "`user` or `password`" in seen["rows"]
    reports = sorted((tmp_path / "reports").iterdir())
    assert [report.name.split("-")[0] for report in reports] == ["daily", "weekly"]
    seen["reports"] = "".join(report.read_text() for report in reports)
    issues = tracker.issues()
    assert issues
    seen["tickets"] = str(issues) + "".join(text for issue in issues for text in tracker.texts(issue))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with warehouse.connect() as connection:
        fingerprint = connection.exec_driver_sql("select fingerprint from tickets.ticket").scalars().first()
    seen |= _pages(str(fingerprint))
    assert "Under-replicated partitions" in seen["incident.html"] and "<html" in seen["detector.html"]

    secrets = {*SECRETS.values(), environment["TRACKER_PASSWORD"], environment["AWS_SECRET_ACCESS_KEY"]}
    leaks = {place: [secret for secret in secrets if secret in text] for place, text in seen.items()}
    assert {place: found for place, found in leaks.items() if found} == {}


def _pages(fingerprint: str) -> dict[str, str]:
    """Every page as rendered, with its values, by template."""
    made = {
        "overview.html": [overview()],
        "findings.html": [pages.findings(None)],
        "finding.html": [pages.finding(fingerprint, None)],
        "incident.html": [incident(fingerprint)],
        "coverage.html": [pages.coverage(None)],
        "detectors.html": [detector_pages.detectors()],
        "detector.html": [detector_pages.detector(detector) for detector in load_detectors()],
    }
    frame = {"root": "", "airflow": "/", "assets": "", "version": "0.1.0", "form": None, "stored": None}
    return {
        template: "".join(f"{values}{render(template, frame | values)}" for values in each)
        for template, each in made.items()
    }


def _watched(command: tuple[str, ...], environment: dict[str, str], arguments: set[str]) -> str:
    """Output of a command; adds the command lines of it and its children to `arguments`."""
    program = str(Path(sys.executable).with_name("streamwarden"))
    with subprocess.Popen(
        [program, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.2):  # each scan reads all of /proc
                with suppress(psutil.Error):
                    top = psutil.Process(process.pid)
                    for one in [top, *top.children(recursive=True)]:
                        with suppress(psutil.Error):
                            arguments.add(" ".join(one.cmdline()))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        printed, _ = process.communicate(timeout=900)
        ended.set()
        watcher.join()
    return printed


def _rows(warehouse: sa.Engine) -> str:
    """Every row of every table, as text."""
    tables = """
        select format('%I.%I', schemaname, tablename) from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema')"""
    with warehouse.connect() as connection:
        names = connection.execute(sa.text(tables)).scalars().all()
        rows = [connection.execute(sa.text(f"select t::text from {name} as t")).scalars().all() for name in names]
    return "\n".join(str(row) for of in rows for row in of)
