"""Mail against a real SMTP server: one thread per ticket, its plot, one-line errors, TLS for credentials."""

from __future__ import annotations

import logging
import re
import smtplib
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from demo.process import free_port
from pydantic import ValidationError
from streamwarden.base.config.trackers import Mail
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import TrackerDown, Unsure
from streamwarden.tickets.sinks.mail import Tracker, new_mail

from tests.plugins.tickets.sinks.test_trackers import change, issue_draft

SETTINGS: dict[str, Any] = {"host": "127.0.0.1", "mail_from": "bot@acme.example", "mail_to": ["team@acme.example"]}


class Box(Message):
    def __init__(self) -> None:
        super().__init__()
        self.mails: list[Any] = []
        self.wire: list[bytes] = []
        self.refuses: set[str] = set()
        self.goodbye = "221 Bye"

    def handle_message(self, message: Any) -> None:
        self.mails.append(message)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.wire.append(envelope.original_content)
        return str(await super().handle_DATA(server, session, envelope))

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        if address in self.refuses:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_QUIT(self, server: Any, session: Any, envelope: Any) -> str:
        return self.goodbye


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
    assert "accepts the login" in sink.check()
    issue = sink.create(issue_draft())
    sink.update(change(issue.key, "close", "Healthy again."))
    first, second = box[0].mails
    assert (first["Message-ID"], first["Subject"]) == (issue.key, "[Streamwarden] Disk is slow: vol-1")
    assert (second["References"], second["In-Reply-To"]) == (issue.key, issue.key)
    assert second["Subject"] == "Re: [Streamwarden] T"
    assert [part.get_content_type() for part in first.walk()] == ["multipart/mixed", "text/plain", "image/png"]
    assert first["Importance"] == "high" and first["Auto-Submitted"] == "auto-generated"
    assert "Healthy again." in second.get_payload()


def headers(wire: bytes) -> dict[bytes, bytes]:
    """The headers as received, unfolded at white space only."""
    lines = re.sub(rb"\r\n(?=[ \t])", b"", wire.partition(b"\r\n\r\n")[0]).split(b"\r\n")
    return {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}


@pytest.mark.parametrize(
    "sender",
    [
        "streamwarden@data-platform.eu-central-1.corp.example.com",
        "bot@acme.example",
        f"bot@{'.'.join(['very-long-label'] * 15)}.example",
    ],
)
def test_message_ids_are_not_folded_on_the_wire(box: tuple[Box, int], sender: str) -> None:
    sink = Tracker("team", Mail(port=box[1], security="none", **SETTINGS | {"mail_from": sender}))
    issue = sink.create(issue_draft())
    for number, action in enumerate(("comment", "close", "reopen")):
        sink.update(change(issue.key, action, "More.", f"20260105T12.{action}.{number}"))
    first, *others = map(headers, box[0].wire)
    assert first[b"message-id"] == issue.key.encode()
    assert len(others) == 3
    for one in others:
        assert one[b"in-reply-to"] == one[b"references"] == issue.key.encode()
        assert re.fullmatch(rb"<[\w.-]+@[\w.-]+>", one[b"message-id"])
    for one in (first, *others):
        assert one[b"from"] == sender.encode()
    assert max(len(line) for wire in box[0].wire for line in wire.split(b"\r\n")) <= 998


def test_the_id_of_an_image_is_not_folded() -> None:
    message, content_id = new_mail(), f"<{'a' * 64}-history-of-the-hour@streamwarden>"
    message.set_content("text")
    message.add_alternative(f'<img src="cid:{content_id[1:-1]}">', subtype="html")
    message.get_payload()[1].add_related(b"png", "image", "png", cid=content_id)  # type: ignore[union-attr,index]
    assert f"Content-ID: {content_id}\r\n".encode() in message.as_bytes(policy=SMTP)


def test_a_mail_that_one_recipient_accepts_is_delivered(box: tuple[Box, int], caplog: pytest.LogCaptureFixture) -> None:
    box[0].refuses = {"gone@acme.example"}
    both = {"mail_to": ["gone@acme.example", "team@acme.example"]}
    sink = Tracker("team", Mail(port=box[1], security="none", **SETTINGS | both))
    with caplog.at_level(logging.WARNING):
        issue = sink.create(issue_draft())
        sink.update(change(issue.key, "close", "Over."))
    assert len(box[0].mails) == 2
    # The mail server's own thread logs, too.
    assert [record.getMessage() for record in caplog.records if record.name.startswith("streamwarden")] == [
        "tickets.trackers.team.mail_to: the mail server refuses gone@acme.example (550 no such user): remove it; the"
        " others got the mail."
    ]


def test_an_accepted_mail_is_delivered_even_if_quit_fails(box: tuple[Box, int]) -> None:
    box[0].goodbye = "421 too many connections"
    assert Tracker("team", Mail(port=box[1], security="none", **SETTINGS)).create(issue_draft()).state == "open"
    assert len(box[0].mails) == 1


def test_refusals_are_one_line(box: tuple[Box, int]) -> None:
    box[0].refuses = {"team@acme.example"}
    with pytest.raises(StreamwardenError, match=r"the mail server refuses team@acme\.example: check `mail_to`"):
        Tracker("team", Mail(port=box[1], security="none", **SETTINGS)).create(issue_draft())
    with pytest.raises(TrackerDown, match=r"the mail server responded 421: .*Connection refused"):
        Tracker("team", Mail(port=9, security="none", **SETTINGS)).check()


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            smtplib.SMTPAuthenticationError(535, b"bad hunter2"),
            TrackerDown,
            "refuses user 'bot': check `user` and `pass",
        ),
        (smtplib.SMTPDataError(451, b"try\nlater"), TrackerDown, "responded 451: try later"),
        (smtplib.SMTPDataError(552, b"too big"), StreamwardenError, "responded 552: too big"),
        (smtplib.SMTPServerDisconnected("gone"), Unsure, "no clear response: gone"),
        (TimeoutError("timed out"), Unsure, "no clear response: timed out"),
    ],
)
def test_an_unsent_mail_is_distinguished_from_one_that_may_have_been_sent(
    error: Exception, kind: type[StreamwardenError], message: str
) -> None:
    def post(_: EmailMessage | None) -> None:
        raise error

    settings = Mail(user="bot", password="hunter2", **SETTINGS)
    with pytest.raises(kind, match=message) as seen:
        Tracker("team", settings, post=post).create(issue_draft())
    assert type(seen.value) is kind and "hunter2" not in str(seen.value) and "\n" not in str(seen.value)


@pytest.mark.parametrize("values", [{"password": "p"}, {"host": "mail.acme.example"}])
def test_no_encryption_is_only_allowed_for_localhost_without_a_password(values: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="`security: none` is allowed only for localhost, and without password"):
        Mail(**{**SETTINGS, "security": "none", **values})
