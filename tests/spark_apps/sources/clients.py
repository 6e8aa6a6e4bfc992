"""Every client that reads external responses, called once at an address: its error without a valid response.

As a program: calls one of them at several addresses, and prints each error and the largest growth of memory (MiB).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import yaml
from streamwarden.base.config import CONFIG_ENV, KafkaCluster
from streamwarden.base.config.trackers import Github, Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.tickets.sinks import github, http, roundup
from streamwarden.tickets.sinks.contract import TrackerDown

from spark_apps.sources import aws_bounds, schema_registry
from spark_apps.sources.aws_client import Connection, Place
from spark_apps.sources.ec2 import Ec2Volumes
from spark_apps.sources.jmx import Jmx

PATIENT_SECONDS = 60.0  # other limits end a request sooner, even on a busy machine
_seconds = PATIENT_SECONDS
ACCOUNT, REGION = "123456789012", "eu-central-1"


def _jmx(protocol: str) -> Callable[[str], str]:
    def gap(url: str) -> str:
        jvm = {"cluster": "demo", "role": "app", "app": "a", "protocol": protocol, "timeout_seconds": _seconds}
        hour = start_of_hour(datetime.now(UTC)).isoformat()
        options = {"endpoints": json.dumps([{**jvm, "address": url, "has_credentials": False, "match": 'a="b"'}])}
        source = Jmx({**options, "hour": hour, "samples": "1", "sample_seconds": "0", "partitions": "1"})
        reader = source.reader(source.schema())
        rows = pa.Table.from_batches([b for part in reader.partitions() for b in reader.read(part)]).to_pylist()
        return "; ".join(row["gap"] for row in rows)

    return gap


def _registry(url: str) -> str:
    settings = {"url": url, "timeout_seconds": _seconds}
    cluster = KafkaCluster.model_validate({"name": "a", "bootstrap_servers": "b:1", "schema_registry": settings})
    registry = schema_registry.Registry(cluster)
    try:
        return str(list(registry.schemas()))
    except schema_registry.Refused as refusal:
        return str(refusal)
    finally:
        registry.close()


def _tracker(url: str) -> str:
    quick = http.Network(pause=lambda _: None)
    sink = github.Tracker("team", Github(url=url, repository="a/b", password="x" * 20), quick)
    return _down(lambda: sink.find("a"))


def _roundup(url: str) -> str:
    return _down(roundup.Tracker("team", Roundup(url=url, user="u", password="p")).check)


def _down(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except TrackerDown as down:
        return str(down)


def _aws(url: str) -> str:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "streamwarden.yaml"
        file.write_text(yaml.safe_dump({"aws": [{"account": ACCOUNT, "regions": [REGION]}]}))
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"}
        before = dict(os.environ)
        os.environ.update({**keys, CONFIG_ENV: str(file), "AWS_ENDPOINT_URL": url})
        try:
            rows = [r for lot in Ec2Volumes({}).read_place(Connection(Place(ACCOUNT, REGION), quick=True)) for r in lot]
        finally:
            os.environ.clear()
            os.environ.update(before)
    return "; ".join(row["gap"] for row in rows)


CLIENTS: dict[str, Callable[[str], str]] = {
    **{protocol: _jmx(protocol) for protocol in ("jolokia", "prometheus", "prometheus_api", "dropwizard")},
    "registry": _registry,
    "tracker": _tracker,
    "roundup": _roundup,
    "aws": _aws,
}


def time_out_after(seconds: float) -> None:
    """Sets the total time-out of every client, and no pause between attempts."""
    global _seconds
    _seconds = seconds
    for module in (http, roundup):
        module.TOTAL_SECONDS = seconds  # type: ignore[attr-defined]
    aws_bounds.TOTAL_SECONDS = seconds  # type: ignore[assignment]
    roundup.Tracker._ask.retry.sleep = lambda _: None  # type: ignore[attr-defined]


def memory_grown(client: str, urls: list[str]) -> tuple[list[str], float]:
    """The errors of one client in a process of its own, one per address, and the growth of its memory in MiB."""
    command = [sys.executable, "-m", "tests.spark_apps.sources.clients", client, *urls]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=250)
    said, grown = json.loads(done.stdout.splitlines()[-1])
    return said, grown


def _main(client: str, *urls: str) -> None:
    time_out_after(PATIENT_SECONDS)
    CLIENTS[client]("http://127.0.0.1:1")  # loads imports, pools, and models first
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = [_error(client, url) for url in urls]
    print(json.dumps([said, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10]))


def _error(client: str, url: str) -> str:
    try:
        return CLIENTS[client](url)
    except StreamwardenError as error:
        return str(error)


if __name__ == "__main__":
    _main(*sys.argv[1:])
