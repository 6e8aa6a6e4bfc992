"""The JVM of Spark dies in the middle of an hour: gathered tables are still evaluated; the failure is one line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
import yaml
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(400)]
# Credentials that no account has, and an endpoint that refuses connections: volumes are gathered with a gap.
NO_AWS = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def silent_broker() -> Iterator[str]:
    """URL of a JVM that accepts connections and never responds, so that its app runs for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/jolokia"


def test_the_hour_continues_with_the_gathered_tables(
    tmp_path: Path, warehouse: sa.Engine, warehouse_url: str, silent_broker: str
) -> None:
    config = {
        "tickets": {},
        "aws": [{"account": "111122223333", "regions": ["eu-central-1"]}],
        "kafka": [{"name": "c", "bootstrap_servers": "127.0.0.1:1"}],
        "jmx_files": [],
        "gathering": {"settle_minutes": 0},  # the hour may be a minute old
        "jmx": [
            {"cluster": "c", "role": "broker", "protocol": "jolokia", "url": silent_broker, "timeout_seconds": 120}
        ],
    }
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(config))
    run = subprocess.Popen(
        [
            Path(sys.executable).with_name("streamwarden"),
            *("run", "--hour", _this_hour(), "--app", "brokers", "--app", "ebs_volumes"),
        ],
        env={**os.environ, **NO_AWS, CONFIG_ENV: str(tmp_path / "s.yaml"), WAREHOUSE_ENV: warehouse_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout
    lines = []
    for line in run.stdout:
        lines.append(line)
        if "gather ebs_volumes" in line:
            (java,) = (child for child in psutil.Process(run.pid).children(recursive=True) if child.name() == "java")
            java.kill()
            break
    rest, errors = run.communicate(timeout=120)
    output = "".join(lines) + rest
    assert run.returncode == 1
    assert "Traceback" not in output + errors
    assert "Spark's JVM has ended" in next(line for line in output.splitlines() if "fail  gather brokers" in line)
    assert "done  evaluate ebs_volume_starving" in output, output
    assert "done  tickets" in output
    assert errors.strip().splitlines()[-1].startswith("streamwarden: the hour is incomplete")
    with warehouse.connect() as connection:
        loads = connection.execute(sa.text("select app, status from detect.load")).tuples().all()
        runs = connection.execute(sa.text("select detector, status from detect.detector_run")).tuples().all()
    assert dict(loads) == {"ebs_volumes": "loaded", "brokers": "failed"}
    assert dict(runs)["ebs_volume_starving"] == "evaluated"
    assert dict(runs)["controllers_missing"] == "blocked"


def _this_hour() -> str:
    """The current hour, after its first minute: JVMs are only read for the present, CloudWatch has no earlier data."""
    while (now := datetime.now(UTC)).minute == 0:
        time.sleep(1)
    return f"{now:%Y-%m-%dT%H:00}"
