"""The containers' healthcheck against answers as Airflow gives them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from streamwarden.base.paths import PROJECT_ROOT

from tests.answering import answering

ANSWER = {
    "metadatabase": {"status": "healthy"},
    "scheduler": {"status": "unhealthy", "latest_scheduler_heartbeat": "2026-11-21T05:00:00+00:00"},
    "triggerer": {"status": None, "latest_triggerer_heartbeat": None},
}


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert self.path == "/api/v2/monitor/health"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWER).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), _Api)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize(
    ("component", "code", "said"),
    [
        ("metadatabase", 0, "metadatabase: healthy"),
        ("scheduler", 1, "scheduler: unhealthy"),
        ("triggerer", 1, "triggerer: it never reported to the database"),
        ("dag_processor", 1, "dag_processor: it never reported to the database"),
    ],
)
def test_a_component_is_as_healthy_as_the_api_server_says(api: str, component: str, code: int, said: str) -> None:
    assert _check(component, api) == (code, said)


def test_no_api_server_is_unhealthy() -> None:
    code, said = _check("scheduler", "http://127.0.0.1:1")
    assert code == 1
    assert said.startswith("scheduler: the API server at http://127.0.0.1:1 does not respond")


def _check(component: str, url: str) -> tuple[int, str]:
    command = [sys.executable, "-I", str(PROJECT_ROOT / "docker" / "healthcheck.py"), component]
    run = subprocess.run(command, env={"HEALTH_URL": url}, capture_output=True, text=True)
    return run.returncode, run.stdout.strip()
