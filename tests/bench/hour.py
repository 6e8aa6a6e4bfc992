"""The demo from the user's view: time until the tickets, the DAG run, the same hour by `run`, idle memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from demo.airflow import Airflow
from demo.faults import FAULTS, parse_faults
from demo.fleet import Fleet, seconds_until_room
from demo.ports import Ports
from rich.console import Console
from streamwarden.base.config import WAREHOUSE_ENV
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import embedded_url

from tests.bench.metric import Metric

SERVER = PROJECT_ROOT / "var" / "bench-postgres"


class _NewFleet(Fleet):
    """A fleet with its own warehouse: tickets of an earlier fleet are in a tracker that no longer exists."""

    def environment(self) -> dict[str, str]:
        return super().environment() | {WAREHOUSE_ENV: embedded_url(SERVER, f"warehouse_{self.folder.name}")}


def measure() -> list[Metric]:
    """Starts everything on free ports, as `make demo` does, and runs the hour by the DAG and by `run`."""
    console = Console()
    time.sleep(
        seconds_until_room(datetime.now(UTC), Fleet.start_seconds + Fleet.load_seconds)
    )  # a start short before a full hour waits for it
    with TemporaryDirectory(dir=PROJECT_ROOT / "var") as folder:
        started = time.monotonic()
        with _NewFleet(Path(folder), parse_faults(",".join(FAULTS)), Ports(0, 0, 0, 0, 0), say=console.print) as fleet:
            with Airflow(fleet, port=0, metadata_url=embedded_url(SERVER, f"airflow_{Path(folder).name}")) as airflow:
                fleet.load()
                airflow.wait_until_ready()
                idle_gib = _memory_gib()
                began = time.monotonic()
                airflow.run_hour(fleet.hour)
                ended = time.monotonic()
            run_began = time.monotonic()
            _run(fleet)
            run_ended = time.monotonic()
    return [
        Metric("tickets after the start (dependencies installed)", ended - started, "s", 300),
        Metric("the hourly DAG run", ended - began, "s", 40),
        Metric("the same hour by `streamwarden run`", run_ended - run_began, "s", 20),
        Metric("memory of everything when idle", idle_gib, "GiB", 4),
    ]


def _run(fleet: Fleet) -> None:
    command = [Path(sys.executable).with_name("streamwarden"), "run", "--hour", f"{fleet.hour:%Y-%m-%dT%H:%M}"]
    subprocess.run(command, env={**os.environ, **fleet.environment()}, check=True)


def _memory_gib() -> float:
    """Proportional set size of this process, its children, and the embedded PostgreSQL, in GiB."""
    mine = psutil.Process()
    family = {mine, *mine.children(recursive=True)}
    family |= {process for process in psutil.process_iter(["name"]) if process.info["name"] == "postgres"}
    total = 0
    for process in family:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 2**30
