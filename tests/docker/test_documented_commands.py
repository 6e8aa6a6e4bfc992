"""Every `docker compose` command of docs/deploy.md, and its SQL, run where the image's paths are (`container.py`)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import engine

from tests.conftest import a_database
from tests.docker.container import NAMESPACE
from tests.docker.documented import DEPLOY, block

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(900)]
CONTAINER = Path(__file__).with_name("container.py")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment of somebody who follows the docs, in a copy of the project; `HOME` is that copy."""
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no mount namespaces")
    folder = tmp_path_factory.mktemp("deployment")
    project, layout, programs = folder / "checkout", folder / "layout", folder / "bin"
    shutil.copytree(PROJECT_ROOT / "docker", project / "docker", ignore=shutil.ignore_patterns("demo", "__pycache__"))
    (project / "streamwarden.example.yaml").write_text("tickets: {trackers: {}}\n")  # sources of its own it has none
    _image(layout)
    programs.mkdir()
    (programs / "docker").write_text(f'#!/bin/sh\nexec {sys.executable} {CONTAINER} "$@"\n')
    (programs / "docker").chmod(0o755)
    with a_database() as warehouse, a_database() as metadata:
        output = {
            "STREAMWARDEN_WAREHOUSE_URL": warehouse,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.replace("postgresql://", "postgresql+psycopg2://"),
        }
        yield {
            **os.environ,
            "HOME": str(project),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LAYOUT": str(layout),
            "VENV": str(Path(sys.executable).parents[1]),
            "OVERRIDES": json.dumps(output),
        }


def _image(layout: Path) -> None:
    """What docker/Dockerfile puts into the image, by the files that Docker is given."""
    for folder in ("project", "airflow"):
        (layout / folder).mkdir(parents=True)
    for line in (PROJECT_ROOT / "docker" / "Dockerfile.dockerignore").read_text().splitlines():
        if line.startswith("!"):
            source, target = PROJECT_ROOT / line[1:], layout / "project" / line[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
    subprocess.run(["cp", "-a", "/etc/.", str(layout / "etc")], capture_output=True)  # but for what one may not read
    (layout / "etc" / "streamwarden").mkdir()


def test_the_documented_commands_work_where_the_image_s_paths_are(shell: dict[str, str]) -> None:
    done = _run(block("setup"), shell)
    assert re.search(r'"admin": ?"\w+"', done), "no password is shown"
    commands = [" ".join(found.split()) for found in re.findall(r"`(docker compose [^`]+)`", DEPLOY.read_text())]
    assert len(commands) > 5
    assert any(" find " in command for command in commands)
    for command in commands:
        if "pg_restore" in command:
            loaded = _tables(shell)
            _empty(shell)
        said = _run(command.replace("select …", "select 6 * 7"), shell)
        if "pg_restore" in command:
            assert len(loaded) > 50 and _tables(shell) == loaded
        assert "psql" not in command or "42" in said
    _ask_the_documented_sql(shell)


def _ask_the_documented_sql(shell: dict[str, str]) -> None:
    text = " ".join(DEPLOY.read_text().split())
    lines = [line for line in re.findall(r"`(select [^`]+)`", text) if "…`" not in line]
    assert len(lines) >= 2
    for line in lines:
        _run(_psql(line), shell)


def test_the_documented_wheel_is_built(tmp_path: Path) -> None:
    [command] = re.findall(r"`python (-m hatchling [^`]+)`", DEPLOY.read_text())
    build = [sys.executable, *command.split(), "-d", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT_ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("streamwarden-*.whl")
    assert any(name.endswith(".sql") for name in zipfile.ZipFile(wheel).namelist())


def test_sql_that_is_wrong_fails(shell: dict[str, str]) -> None:
    wrong = _psql("select max(hour) from detect.no_such_table")
    done = subprocess.run(["bash", "-c", wrong], cwd=shell["HOME"], env=shell, capture_output=True, text=True)
    assert done.returncode and "no_such_table" in done.stderr


def _psql(sql: str) -> str:
    asked = shlex.join(["-v", "ON_ERROR_STOP=1", "-c", sql])
    return f"docker compose -f docker/compose.yaml exec -T postgres psql -U postgres -d streamwarden {asked}"


def _tables(shell: dict[str, str]) -> list[str]:
    """Those of the warehouse, and how many columns each has."""
    counted = "select table_schema, table_name, count(*) from information_schema.columns group by 1, 2 order by 1, 2"
    return _run(_psql(counted), shell).splitlines()


def _empty(shell: dict[str, str]) -> None:
    """As after the loss of the machine: a new, empty warehouse."""
    url = sa.make_url(json.loads(shell["OVERRIDES"])["STREAMWARDEN_WAREHOUSE_URL"])
    admin = engine(url.set(database="postgres").render_as_string(hide_password=False))
    with admin.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql(f'drop database "{url.database}" with (force)')
        connection.exec_driver_sql(f'create database "{url.database}"')


def test_a_path_that_is_not_there_fails(shell: dict[str, str]) -> None:
    wrong = "docker compose -f docker/compose.yaml exec api-server cat simple_auth_manager_passwords.json.generated"
    done = subprocess.run(["bash", "-c", wrong], cwd=shell["HOME"], env=shell, capture_output=True, text=True)
    assert done.returncode and "No such file" in done.stderr


def _run(commands: str, shell: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=shell["HOME"], env=shell, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
