"""The deployment's files: loopback only, no secret in them, everything the code asks of its environment is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamwarden.base.paths import PROJECT_ROOT

from tests.docker.documented import DEPLOY

DOCKER = PROJECT_ROOT / "docker"
NEEDED_BY_HAND_ONLY = {
    "STREAMWARDEN_DEBUG",  # a stack trace for whoever debugs
    "STREAMWARDEN_HOME",  # of an installed wheel; the image has the checkout
    "STREAMWARDEN_IVY_SETTINGS",  # jars of the demo
    "STREAMWARDEN_SENT_CONFIG",  # a driver sends it to its executors
    "STREAMWARDEN_SMTP_URL",  # mail without Airflow; a deployment has Airflow's connection
    "STREAMWARDEN_SPARK_MASTER",  # `streamwarden run` without Airflow
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text()))


@pytest.fixture(scope="module")
def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The services that run our image."""
    return {n: s for n, s in compose["services"].items() if s["image"].startswith("streamwarden")}


def test_only_the_web_page_is_published_and_only_on_this_machine(compose: dict[str, Any]) -> None:
    published = {name: s["ports"] for name, s in compose["services"].items() if "ports" in s}
    assert published == {"api-server": ["127.0.0.1:${UI_PORT:-8080}:8080"]}
    assert not any("network_mode" in service for service in compose["services"].values())


def test_every_secret_comes_from_outside(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET|FERNET|SQL_ALCHEMY|WAREHOUSE_URL", key):
                assert re.search(r"\$\{\w+(:\?[^}]+)?\}", value), f"{name}: {key} is written down"
                assert ":-" not in value, f"{name}: {key} has a default that somebody will keep"
    dockerfile = (DOCKER / "Dockerfile").read_text()
    assert not re.search(r"(?i)(password|secret|token|_key)\s*=", dockerfile)
    assert {".env", "fleet.env"} <= set((DOCKER / ".gitignore").read_text().split())


def test_the_image_holds_only_what_runs() -> None:
    kept = [line for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    assert "*" in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    assert not [line for line in kept if re.search(r"env|yaml|var|tests|demo", line)]
    for line in kept:
        assert (PROJECT_ROOT / line[1:]).exists(), line


def test_processes_have_no_rights_and_a_healthcheck(ours: dict[str, dict[str, Any]]) -> None:
    assert {"init", "api-server", "scheduler", "dag-processor", "triggerer"} <= set(ours)
    for name, service in ours.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        long_running = service["restart"] != "no" and "profiles" not in service
        assert ("healthcheck" in service) == long_running, name
    users = re.findall(r"^USER (\S+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert users and users[-1] not in ("0", "root")


def test_what_the_code_asks_of_its_environment_is_set(ours: dict[str, dict[str, Any]]) -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    for name, service in ours.items():
        if name != "spark-master":  # it hands out work, and runs none of our code
            given = set(service["environment"]) | set(re.findall(r"(\w+)=", dockerfile))
            asked = _asked("spark_apps") if name == "spark-worker" else _asked("plugins", "spark_apps", "dags")
            assert asked - NEEDED_BY_HAND_ONLY <= given, name
    known = _asked("plugins", "spark_apps", "dags") | {
        "STREAMWARDEN_VERSION",
        "STREAMWARDEN_YAML",
    }  # these two are compose's own
    written = set(re.findall(r"STREAMWARDEN_\w+", (DOCKER / "compose.yaml").read_text() + dockerfile))
    assert written <= known, "nobody reads it"


def test_a_process_gets_the_secrets_that_it_needs_and_no_other(ours: dict[str, dict[str, Any]]) -> None:
    secret = re.compile(r"PASSWORD|SECRET|FERNET|JWT")
    given = {
        name: {
            output for value in service.get("environment", {}).values() for output in re.findall(r"\$\{(\w+)", value)
        }
        for name, service in ours.items()
    }
    secrets = {name: {one for one in names if secret.search(one)} for name, names in given.items()}
    assert secrets["spark-master"] == set() and "env_file" not in ours["spark-master"]
    assert secrets["spark-worker"] == {"WAREHOUSE_PASSWORD"}
    assert not any("airflow" in volume for volume in ours["spark-worker"]["volumes"])
    assert all("POSTGRES_PASSWORD" not in names for names in secrets.values())


def test_no_process_can_take_the_machine_s_memory(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"\d+g|\$\{\w+_MEMORY:-\d+g\}", service["mem_limit"]), name


def test_every_image_of_others_is_named_by_tag_and_digest_and_can_be_replaced(compose: dict[str, Any]) -> None:
    [base] = re.findall(r"^ARG BASE=(.*)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    froms = re.findall(r"^FROM (.*)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert froms == ["${BASE}"]
    theirs = [compose["x-image"]["build"]["args"]["BASE"]]
    theirs += [s["image"] for s in compose["services"].values() if not s["image"].startswith("streamwarden:")]
    for image in theirs:
        assert re.fullmatch(r"\$\{\w+_IMAGE:-[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}\}", image), image
    assert theirs[0] == f"${{PYTHON_IMAGE:-{base}}}"


def _asked(*folders: str) -> set[str]:
    files: list[Path] = [file for folder in folders for file in (PROJECT_ROOT / folder).rglob("*.py")]
    return {name for file in files for name in re.findall(r"[\"'](STREAMWARDEN_[A-Z_]+)[\"']", file.read_text())}


def test_every_setting_is_documented() -> None:
    names = set(re.findall(r"\$\{(\w+)", (DOCKER / "compose.yaml").read_text()))
    assert names - set(re.findall(r"\w+", DEPLOY.read_text())) == set()


def test_the_compose_file_suits_the_older_docker_compose_too(compose: dict[str, Any]) -> None:
    assert set(compose) <= {"services", "volumes"} | {key for key in compose if key.startswith("x-")}  # no `name`
