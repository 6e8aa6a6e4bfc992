"""An hour on a real standalone cluster: a master, two workers in folders of their own, without our code on their path.

Their Python has the packages we need but not ours; the config, its passwords and the warehouse's address reach them
encrypted. Without encryption none of them is sent, and one line says what to do.
"""

from __future__ import annotations

import base64
import http.server
import os
import secrets
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
import pyspark
import pytest
import sqlalchemy as sa
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.demo_world import DEMO_ACCOUNT, DEMO_REGION, demo_world
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import start_of_hour

from tests.answering import answering

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(1500)]
SPARK_HOME = Path(pyspark.__path__[0])
# JVMs know it until its next hour is over, and half an hour of it lies behind us.
HOUR = start_of_hour(datetime.now(UTC) - timedelta(minutes=30))
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PASSWORD = "s3same-0pen"
ENCRYPTED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": secrets.token_hex(16),
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}


class BrokerPage(http.server.BaseHTTPRequestHandler):
    """Metrics of a broker, for requests with the password."""

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(f"scraper:{PASSWORD}".encode()).decode()
        allowed = self.headers["Authorization"] == wanted
        body = b'kafka_server_ReplicaManager_Value{name="PartitionCount",} 5.0\n' if allowed else b""
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


class Cluster:
    """A master and two workers of one core each."""

    def __init__(self, folder: Path, settings: dict[str, str], environment: dict[str, str]) -> None:
        self.folder = folder
        self._parts = ExitStack()
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        settings = {"spark.executor.extraJavaOptions": _LIGHT, **settings}
        (self.conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        (self.conf / "log4j2.properties").write_text("rootLogger.level = warn\n")
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ},
            **environment,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(self.conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _LIGHT,
        }

    def __enter__(self) -> Cluster:
        port, ui = _free_port(), _free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start("master", "Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
        for name in ("one", "two"):
            size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--host", "127.0.0.1")
            self._start(name, "Worker", self.master, *size, "--work-dir", str(self.folder / name / "work"))
        deadline = time.monotonic() + 300
        while self._workers(ui) < 2:
            assert time.monotonic() < deadline, self.log("master") + self.log("one")
            time.sleep(0.3)
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def log(self, name: str) -> str:
        return (self.folder / name / "log").read_text()

    def executors(self) -> dict[str, list[Path]]:
        """Folders of the executors that each worker ran."""
        return {name: sorted((self.folder / name / "work").glob("app-*/*/stderr")) for name in ("one", "two")}

    @staticmethod
    def _workers(ui: int) -> int:
        try:
            return int(httpx.get(f"http://127.0.0.1:{ui}/json/", timeout=10).json()["aliveworkers"])
        except httpx.HTTPError:
            return 0  # the master is not running yet

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        folder = self.folder / name
        folder.mkdir()
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
        log = self._parts.enter_context((folder / "log").open("w"))
        process = subprocess.Popen(command, cwd=folder, env=self._environment, stdout=log, stderr=log)
        self._parts.callback(_end, process)


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python with all packages of this one except ours: it does not read the .pth file of the editable install."""
    folder = tmp_path / "bare"
    venv.create(folder, symlinks=True)
    site = next((folder / "lib").glob("python3*/site-packages"))
    (site / "packages.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = folder / "bin" / "python"
    command = [python, "-c", "import pyspark, adbc_driver_postgresql, streamwarden"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"HOME": str(tmp_path)})
    assert "No module named 'streamwarden'" in refused.stderr, "this installation holds files of ours: run `make setup`"
    return python


@pytest.fixture
def config_file(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "streamwarden.yaml"
    with answering(http.server.ThreadingHTTPServer(("127.0.0.1", 0), BrokerPage)) as server:
        page = f"http://127.0.0.1:{server.server_address[1]}/metrics"
        broker = {"role": "broker", "cluster": "demo", "protocol": "prometheus", "url": page, "broker_id": 1}
        settings = {
            "aws": [{"account": DEMO_ACCOUNT, "regions": [DEMO_REGION]}],
            "kafka": [{"name": "demo", "bootstrap_servers": "127.0.0.1:1"}],
            "jmx": [{**broker, "user": "scraper", "password": "${BROKER_PASSWORD}"}],
            "gathering": {"settle_minutes": 0, "jmx_samples": 2, "jmx_sample_seconds": 0.5},
            "tickets": {},
        }
        file.write_text(yaml.safe_dump(settings))
        yield file


def run(cluster: Cluster, python: Path, config_file: Path, aws: dict[str, str], *apps: str) -> tuple[int, str]:
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("streamwarden"), "run", "--hour", f"{HOUR:%Y-%m-%dT%H:%M}"),
            *(word for app in apps for word in ("--app", app)),
        ],
        env={
            **os.environ,
            **aws,
            CONFIG_ENV: str(config_file),
            "BROKER_PASSWORD": PASSWORD,
            "STREAMWARDEN_SPARK_MASTER": cluster.master,
            "SPARK_CONF_DIR": str(cluster.conf),
            "PYSPARK_PYTHON": str(python),
        },
        capture_output=True,
        text=True,
        timeout=900,
    )
    return done.returncode, done.stdout + done.stderr


def test_an_hour_on_two_workers_without_our_code_and_config(
    tmp_path: Path, warehouse: sa.Engine, bare_python: Path, config_file: Path
) -> None:
    with AwsEndpoint(demo_world({"ebs"}, lambda: datetime.now(UTC))) as endpoint:
        aws = endpoint.environment(DEMO_ACCOUNT, DEMO_REGION)
        with Cluster(tmp_path / "cluster", ENCRYPTED, aws) as cluster:
            _, output = run(cluster, bare_python, config_file, aws, "ebs_volumes", "brokers")
            executors = cluster.executors()
    assert "done  gather ebs_volumes" in output and "done  gather brokers" in output, output
    with warehouse.connect() as connection:
        volumes = connection.exec_driver_sql("select count(iops_mean) from metrics.volume_hourly").scalar_one()
        brokers = connection.exec_driver_sql("select partitions from metrics.broker_hourly").scalars().all()
        # The endpoint of this test exposes one metric.
        gaps = connection.exec_driver_sql(
            "select * from detect.coverage where status <> 'complete' and message !~ '^1 of [0-9]+ metrics recognized'"
        ).all()
    assert volumes > 0
    assert brokers == [5]
    assert not gaps
    assert all(executors.values())  # both workers took part
    # No secret is on a command line or in a log of Spark.
    for file in [*tmp_path.glob("cluster/*/log"), *(log for logs in executors.values() for log in logs)]:
        assert PASSWORD not in file.read_text()
    assert PASSWORD not in output


def test_without_encryption_no_secret_is_sent(
    tmp_path: Path, warehouse: sa.Engine, bare_python: Path, config_file: Path
) -> None:
    with Cluster(tmp_path / "cluster", {}, {}) as cluster:
        code, output = run(cluster, bare_python, config_file, {}, "brokers")
    assert code == 1
    (line,) = (line for line in output.splitlines() if "fail  gather brokers" in line)
    assert "no such config file" in line and "spark.network.crypto.enabled" in line
    assert "Traceback" not in output


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _end(process: subprocess.Popen[bytes]) -> None:
    family = [process, *psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
    for one in family:
        one.kill()
    process.wait()
