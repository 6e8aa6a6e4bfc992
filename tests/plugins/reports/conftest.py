"""A mailbox for the tests of reports."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from demo.process import free_port
from streamwarden.reports import mail


class Inbox:
    """An SMTP handler that keeps the mails it receives; `refuse` and `unknown` make it reject."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuse: str | None = None
        self.unknown = ""

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        if address == self.unknown:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuse:
            return self.refuse
        self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))  # type: ignore[arg-type]
        return "250 OK"


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """A mail server on the loopback that `$STREAMWARDEN_SMTP_URL` names."""
    handler = Inbox()

    def wanted(server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
        return AuthResult(success=login.password == b"pass word", handled=False)

    controller = Controller(
        handler,
        hostname="127.0.0.1",
        port=free_port(),
        authenticator=wanted,
        auth_require_tls=False,
        auth_required=True,
    )
    controller.start()
    monkeypatch.setenv(mail.SMTP_ENV, f"smtp://me:pass%20word@127.0.0.1:{controller.port}")
    yield handler
    controller.stop()
