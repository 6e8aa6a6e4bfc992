"""The reports' tasks: a file from a real warehouse, mail through Airflow's SMTP connection to a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MessageHandler
from demo.process import free_port
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.warehouse import engine
from streamwarden.report_tasks import owners, report
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


def _report(period: str, day: str, owner: str | None = None) -> Path:
    return Path(report.function(period, day, owner))


def test_each_owner_has_a_report(tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _configure(tmp_path, monkeypatch, [])
    scenario = DeliveryScenario(engine(warehouse_url))
    scenario.evaluate(0, {"v1": "firing"}, owner="storage")
    scenario.evaluate(0, {"g1": "firing"}, "consumer_group_lagging")
    reconcile(scenario.engine, Config(), DETECTORS)
    for period, name in (("daily", "daily-2026-01-05-storage"), ("weekly", "weekly-2026-W02-storage")):
        assert owners.function(period, "2026-01-05") == ["storage"]
        path = _report(period, "2026-01-05", "storage")
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
    path = _report("daily", "2026-11-20")
    assert path.is_relative_to(tmp_path / "reports")
    assert "<html" in path.read_text()


@pytest.mark.parametrize(
    ("period", "file"),
    [
        ("daily", "daily-2026-11-20.html"),
        ("weekly", "weekly-2026-W47.html"),
        ("monthly", "monthly-2026-11.html"),
    ],
)
def test_the_report_is_mailed_through_an_airflow_connection(
    period: str, file: str, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    _configure(tmp_path, monkeypatch, ["team@example.com"])
    path = _report(period, "2026-11-20")
    assert path.exists() and path.name == file
    assert [message["To"] for message in inbox.messages] == ["team@example.com"]
