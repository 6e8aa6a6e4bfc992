"""The reports' tasks: a file from a real warehouse, mail through Airflow's SMTP connection to a real server."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MessageHandler
from demo.process import free_port
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import engine
from streamwarden.tickets import reconcile

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario


class Inbox(MessageHandler):
    """An SMTP handler that keeps the mails it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []

    def handle_message(self, message: Message) -> None:
        self.messages.append(message_from_bytes(message.as_bytes()))


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """An SMTP server on the loopback that the connection `smtp_default` names."""
    handler = Inbox()
    port = free_port()
    server = Controller(handler, hostname="127.0.0.1", port=port)
    server.start()
    extra = {"disable_ssl": True, "disable_tls": True}
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
    yield handler
    server.stop()


def _report(day: str, dag: str = "daily_report") -> str:
    task: Any = runpy.run_path(str(PROJECT_ROOT / "dags" / f"{dag}.py"))["report"]
    return str(task.function(day))


def test_each_owner_has_a_report(tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _configure(tmp_path, monkeypatch, [])
    scenario = DeliveryScenario(engine(warehouse_url))
    scenario.evaluate(0, {"v1": "firing"}, owner="storage")
    scenario.evaluate(0, {"g1": "firing"}, "consumer_group_lagging")
    reconcile(scenario.engine, Config(), DETECTORS)
    for dag, name in (("daily_report", "daily-2026-01-05-storage"), ("weekly_report", "weekly-2026-W02-storage")):
        tasks: Any = runpy.run_path(str(PROJECT_ROOT / "dags" / f"{dag}.py"))
        assert tasks["owners"].function("2026-01-05") == ["storage"]
        path = Path(tasks["report_of"].function("storage", "2026-01-05"))
        assert path.name == f"{name}.html"
        assert "v1" in path.read_text() and "g1" not in path.read_text()


def _configure(folder: Path, monkeypatch: pytest.MonkeyPatch, mail_to: list[str]) -> None:
    reports = {"folder": str(folder / "reports"), "mail_to": mail_to}
    (folder / "streamwarden.yaml").write_text(json.dumps({"reports": reports}))
    monkeypatch.setenv(CONFIG_ENV, str(folder / "streamwarden.yaml"))


def test_without_recipients_the_report_is_a_file(
    tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _configure(tmp_path, monkeypatch, [])
    path = Path(_report("2026-11-20"))
    assert path.is_relative_to(tmp_path / "reports")
    assert "<html" in path.read_text()


@pytest.mark.parametrize(
    ("dag", "file"),
    [
        ("daily_report", "daily-2026-11-20.html"),
        ("weekly_report", "weekly-2026-W47.html"),
        ("monthly_report", "monthly-2026-11.html"),
    ],
)
def test_the_report_is_mailed_through_an_airflow_connection(
    dag: str, file: str, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    _configure(tmp_path, monkeypatch, ["team@example.com"])
    path = Path(_report("2026-11-20", dag))
    assert path.exists() and path.name == file
    assert [message["To"] for message in inbox.messages] == ["team@example.com"]
