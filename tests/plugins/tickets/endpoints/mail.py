"""A mailbox: takes each Message-ID once, as Exchange, Gmail and Cyrus do (RFC 5322, section 3.6.4).

On the way to it, the faults of a network are SMTP's.
"""

from __future__ import annotations

import email
import email.policy
import smtplib
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, StoredTicket

PASSWORD = "mail-s3cr3t"


@dataclass
class Mailbox(Endpoint):
    mails: dict[str, EmailMessage] = field(default_factory=dict)
    supported_responses: ClassVar[tuple[str, ...]] = ()
    can_delete: ClassVar[bool] = False
    routes: ClassVar[list[tuple[str, str, str]]] = [("POST", "/", "take")]

    def take(self, request: httpx.Request) -> Any:
        message = email.message_from_bytes(request.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        assert message["Date"] and message["From"] and message["To"], "RFC 5322 wants them"
        self.mails.setdefault(str(message["Message-ID"]), message)
        return 250, None

    def tickets(self) -> list[StoredTicket]:
        threads: dict[str, list[EmailMessage]] = {}
        for id_, message in self.mails.items():
            threads.setdefault(str(message["References"] or id_), []).append(message)
        return [
            StoredTicket(
                _text(mails[0]).rpartition("fingerprint: ")[2].split()[0],
                [one["X-Streamwarden-Action"] for one in mails if one["X-Streamwarden-Action"] != "comment"][-1]
                != "close",
                str(mails[0]["Subject"]),
                tuple(_text(one) for one in mails),
            )
            for mails in threads.values()
        ]


def _text(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def post_through(transport: httpx.BaseTransport) -> Any:
    """Sends by a transport, with the errors of SMTP."""

    def post(message: EmailMessage | None) -> None:
        try:
            answer = transport.handle_request(
                httpx.Request("POST", "https://mail.acme.example/", content=bytes(message or EmailMessage()))
            )
        except httpx.ConnectError as error:
            raise smtplib.SMTPConnectError(421, str(error)) from None
        except httpx.TransportError as error:
            raise smtplib.SMTPServerDisconnected(str(error)) from None
        if answer.status_code == 429:
            raise smtplib.SMTPDataError(451, b"try again later")
        if answer.status_code != 250:
            raise smtplib.SMTPServerDisconnected("connection closed")

    return post
