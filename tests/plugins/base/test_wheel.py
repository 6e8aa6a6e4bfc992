"""The wheel contains all files that the program reads: it works from an empty environment and an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
import sqlalchemy as sa

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """An environment with the wheel and the libraries of this one, without the checkout on its path."""
    folder = tmp_path_factory.mktemp("wheel")
    root = request.config.rootpath
    _call(["-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=root)
    [wheel] = folder.glob("*.whl")
    _call(["-m", "uv", "venv", "--offline", "--python", sys.executable, str(folder / "venv")], cwd=folder)
    python = folder / "venv" / "bin" / "python"
    install = ["-m", "uv", "pip", "install", "--offline", "--no-deps", "--python", str(python), str(wheel)]
    _call(install, cwd=folder)
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "venv" / "bin"


def _call(arguments: list[str], cwd: Path) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


def _run(installed: Path, folder: Path, *arguments: str, program: str = "streamwarden", **extra: str) -> str:
    environment: Mapping[str, str] = {"PATH": os.environ["PATH"], "HOME": str(folder), **extra}
    command = [str(installed / program), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.rare
def test_the_installed_program_lists_its_detectors(installed: Path, tmp_path: Path) -> None:
    output = _run(installed, tmp_path, "detectors", "list")
    assert "ebs_volume_starving" in output and "consumer_group_lagging" in output


def test_the_installed_program_migrates(installed: Path, tmp_path: Path, empty_warehouse: sa.Engine) -> None:
    (tmp_path / "streamwarden.yaml").write_text("tickets: {trackers: {}}\n")
    url = empty_warehouse.url.set(drivername="postgresql").render_as_string(hide_password=False)
    output = _run(installed, tmp_path, "migrate", STREAMWARDEN_WAREHOUSE_URL=url)
    assert "applied migrations/0001_inventory.sql" in output and "applied views/volumes.sql" in output
    assert "EBS prices of" in output
    assert "up to date" in _run(installed, tmp_path, "migrate", STREAMWARDEN_WAREHOUSE_URL=url)


def test_the_wheel_contains_the_files_of_spark_and_airflow(installed: Path, tmp_path: Path) -> None:
    lines = (
        "import spark_apps, streamwarden.base.paths as paths",
        "print(paths.SPARK_APPS / 'submit.py', paths.SPARK_APPS / 'sources/JmxRmi.java',"
        " paths.SPARK_APPS / 'runtime/log4j2.properties', paths.SQL.parent / 'ui/static/style.css',"
        " paths.SQL.parent / 'airflow/dags/hourly.py', paths.SQL.parent / 'airflow/plugins/streamwarden_plugin.py')",
    )
    for file in _run(installed, tmp_path, "-c", "; ".join(lines), program="python").split():
        assert Path(file).is_file() and Path(file).is_relative_to(installed.parent), file


WITHOUT_AIRFLOW = """
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys(("airflow", "fastapi", "starlette", "asyncpg", "psycopg2"))  # none can be imported
import spark_apps, streamwarden
of_airflow = tuple(f"streamwarden.{name}" for name in (
    "api.app", "api.bounded", "api.metrics", "ui.app", "ui.forms", "ui.questions", "operators", "report_tasks",
))
for package in (spark_apps, streamwarden):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name not in of_airflow and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            print(module.name)
from streamwarden.base.config.trackers import Roundup
from streamwarden.tickets.sinks.credentials import login
try:
    login("t", Roundup(kind="roundup", url="https://t", connection="c"))
except streamwarden.base.errors.StreamwardenError as error:
    print(error)
"""


@pytest.mark.rare
def test_spark_and_the_command_line_work_without_airflow(installed: Path, tmp_path: Path) -> None:
    output = _run(installed, tmp_path, "-c", WITHOUT_AIRFLOW, program="python")
    assert {"spark_apps.submit", "streamwarden.cli.main", "streamwarden.pipeline"} < {*output.splitlines()}
    assert "there is no Airflow here, so no connection 'c': install `streamwarden[airflow]`" in output
