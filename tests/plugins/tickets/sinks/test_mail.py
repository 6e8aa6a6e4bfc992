"""Mail against a real SMTP server: one thread, its plot, refusals in one line; TLS where credentials go."""

from __future__ import annotations

import smtplib
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from demo.process import free_port
from pydantic import ValidationError
from streamwarden.base.config.trackers import Mail
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import TrackerDown, Unsure
from streamwarden.tickets.sinks.mail import Tracker

from tests.plugins.tickets.sinks.test_trackers import change, issue_draft

SETTINGS: dict[str, Any] = {"host": "127.0.0.1", "mail_from": "bot@acme.example", "mail_to": ["team@acme.example"]}


class Box(Message):
    def __init__(self) -> None:
        super().__init__()
        self.mails: list[Any] = []
        self.refuses = False

    def handle_message(self, message: Any) -> None:
        self.mails.append(message)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        if self.refuses:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"


@pytest.fixture
def box() -> Iterator[tuple[Box, int]]:
    box = Box()
    port = free_port()
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield box, port
    finally:
        controller.stop()


def test_a_ticket_is_one_thread_with_its_plot(box: tuple[Box, int]) -> None:
    sink = Tracker("team", Mail(port=box[1], security="none", **SETTINGS))
    assert "lets us in" in sink.check()
    issue = sink.create(issue_draft())
    sink.update(change(issue.key, "close", "Healthy again."))
    first, second = box[0].mails
    assert (first["Message-ID"], first["Subject"]) == (issue.key, "[Streamwarden] Disk is slow: vol-1")
    assert (second["References"], second["In-Reply-To"]) == (issue.key, issue.key)
    assert second["Subject"] == "Re: [Streamwarden] T"
    assert [part.get_content_type() for part in first.walk()] == ["multipart/mixed", "text/plain", "image/png"]
    assert first["Importance"] == "high" and first["Auto-Submitted"] == "auto-generated"
    assert "Healthy again." in second.get_payload()


def test_refusals_are_one_line(box: tuple[Box, int]) -> None:
    box[0].refuses = True
    with pytest.raises(StreamwardenError, match=r"the mail server refuses team@acme\.example: check `mail_to`"):
        Tracker("team", Mail(port=box[1], security="none", **SETTINGS)).create(issue_draft())
    with pytest.raises(TrackerDown, match=r"the mail server says 421: .*Connection refused"):
        Tracker("team", Mail(port=9, security="none", **SETTINGS)).check()


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (
            smtplib.SMTPAuthenticationError(535, b"bad hunter2"),
            TrackerDown,
            "refuses user 'bot': check `user` and `pass",
        ),
        (smtplib.SMTPDataError(451, b"try\nlater"), TrackerDown, "says 451: try later"),
        (smtplib.SMTPDataError(552, b"too big"), StreamwardenError, "says 552: too big"),
        (smtplib.SMTPServerDisconnected("gone"), Unsure, "no clear answer: gone"),
        (TimeoutError("timed out"), Unsure, "no clear answer: timed out"),
    ],
)
def test_what_was_surely_not_sent_is_told_from_what_may_have_been(
    error: Exception, kind: type[StreamwardenError], told: str
) -> None:
    def post(message: EmailMessage | None) -> None:
        raise error

    settings = Mail(user="bot", password="hunter2", **SETTINGS)
    with pytest.raises(kind, match=told) as seen:
        Tracker("team", settings, post=post).create(issue_draft())
    assert type(seen.value) is kind and "hunter2" not in str(seen.value) and "\n" not in str(seen.value)


@pytest.mark.parametrize("values", [{"password": "p"}, {"host": "mail.acme.example"}])
def test_without_encryption_only_to_this_machine_and_without_password(values: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="`security: none` is for a server on this machine, without password"):
        Mail(**{**SETTINGS, "security": "none", **values})
