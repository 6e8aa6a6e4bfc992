"""Every `docker compose` command of docs/deploy.md, run where the image's paths are: see `container.py`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamwarden.base.paths import PROJECT_ROOT

from tests.conftest import a_database
from tests.docker.container import NAMESPACE
from tests.docker.documented import DEPLOY, block

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
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
        told = {
            "STREAMWARDEN_WAREHOUSE_URL": warehouse,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.replace("postgresql://", "postgresql+psycopg2://"),
        }
        yield {
            **os.environ,
            "HOME": str(project),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LAYOUT": str(layout),
            "VENV": str(Path(sys.executable).parents[1]),
            "OVERRIDES": json.dumps(told),
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
        _run(command, shell)


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
