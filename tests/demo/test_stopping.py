"""End of the demo: PostgreSQL is stopped last, and only if the demo started it. Fleet and Airflow are stubs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamwarden.base.config import WAREHOUSE_ENV
from streamwarden.base.embedded import is_running, server_url, stop_server
from streamwarden.base.paths import PROJECT_ROOT

from tests.variations import rare_after

DEMO = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path

import demo.airflow
import demo.__main__ as program
import typer
from demo.score import Score
from streamwarden.base.embedded import is_running
from streamwarden.base.warehouse import embedded_url

program.POSTGRES = Path(sys.argv.pop())


class Part:
    tracker_url, folder, faults, hour = "http://t", Path("."), set(), datetime.now(UTC)

    def __init__(self, *_, **__): ...
    def __enter__(self): return self
    def __exit__(self, *_): print(f"{type(self).__name__} goes, PostgreSQL runs: {is_running(program.POSTGRES)}")
    def load(self, tick): tick(1.0)
    def check(self): os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does


class Airflow(Part):
    def __enter__(self): embedded_url(program.POSTGRES, "airflow"); return self
    def wait_until_ready(self): ...
    def run_hour(self, hour): ...
    def where_to_click(self): return []


program.Fleet, demo.airflow.Airflow = type("Fleet", (Part,), {}), Airflow
program._score = lambda fleet: Score(1, (), ())
typer.run(program.main)
"""


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder without a running server; one is stopped at the end."""
    folder = tmp_path_factory.mktemp("demo") / "postgres"
    yield folder
    stop_server(folder)


def _demo(data_folder: Path, code: str = DEMO, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{PROJECT_ROOT / 'plugins'}:{PROJECT_ROOT / 'docker'}"
    clean = {name: value for name, value in os.environ.items() if name not in (WAREHOUSE_ENV, "ONCE", "FAULTS")}
    return subprocess.run(
        [sys.executable, "-c", code, str(data_folder)],
        env=clean | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
@pytest.mark.parametrize("once", rare_after(1, ["1", "0"]))
def test_a_server_that_the_demo_started_is_stopped_last(data_folder: Path, once: str) -> None:
    done = _demo(data_folder, ONCE=once)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Airflow goes, PostgreSQL runs: True\nFleet goes, PostgreSQL runs: True\n" in done.stdout
    assert ("Ctrl-C stops everything.\n" in done.stdout) == (once == "0")
    assert not is_running(data_folder)


@pytest.mark.rare
@pytest.mark.slow
def test_the_demo_ends_when_a_process_of_airflow_has_ended(data_folder: Path) -> None:
    ended = """    def check(self): raise StreamwardenError("airflow-scheduler ended with code -9: killed")
"""
    code = DEMO.replace("    def where_to_click", ended + "    def where_to_click").replace(
        "from streamwarden.base.embedded", "from streamwarden.base.errors import StreamwardenError\n"
        "from streamwarden.base.embedded",
    ).replace("def check(self): os.kill(os.getpid(), signal.SIGINT)", "def check(self): pass")  # fmt: skip
    done = _demo(data_folder, code, ONCE="0")
    assert (done.returncode, done.stderr.strip()) == (1, "airflow-scheduler ended with code -9: killed")
    assert not is_running(data_folder)


@pytest.mark.rare
@pytest.mark.slow
def test_a_server_that_was_already_running_is_not_stopped(data_folder: Path) -> None:
    server_url(data_folder)
    done = _demo(data_folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Ctrl-C stops everything but PostgreSQL.\n" in done.stdout
    assert is_running(data_folder)
    assert stop_server(data_folder)


@pytest.mark.rare
@pytest.mark.slow
def test_with_another_warehouse_the_server_is_not_stopped(data_folder: Path) -> None:
    done = _demo(data_folder, **{WAREHOUSE_ENV: "postgresql://h/d"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Ctrl-C stops everything but PostgreSQL.\n" in done.stdout
    assert is_running(data_folder)
