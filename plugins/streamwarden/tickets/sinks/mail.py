"""Mail: a ticket is a thread, linked by Message-ID and References.

A mail server cannot be queried. A mail without a clear response is sent again with the same Message-ID, by which most
mailboxes detect the duplicate.
"""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import policy
from email.headerregistry import HeaderRegistry, MessageIDHeader
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Protocol

from streamwarden.base.config.trackers import Mail
from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import clean
from streamwarden.tickets.sinks.contract import SETTLES, Issue, IssueDraft, Notification, TrackerDown, Unsure, Update
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Network
from streamwarden.tickets.sinks.plain import issue_text, notification_text

TIMEOUT_SECONDS = 30
TEXT_LIMIT = 200_000
Refusals = dict[str, tuple[int, bytes]]
"""Recipients that the mail server rejected while it accepted the mail for others; in smtplib's format."""

log = logging.getLogger(__name__)


class Post(Protocol):
    """The transport of mails."""

    def __call__(self, message: EmailMessage | None) -> Refusals | None:
        """Connects, and sends the message if there is one. Returns the rejected recipients, if the server accepted
        others. Raises the errors of smtplib."""


class Tracker:
    """Sends to fixed recipients."""

    remembers = False
    takes_files = True
    settles = SETTLES

    def __init__(self, name: str, settings: Mail, network: Network = Network(), post: Post | None = None) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        self._now = network.now
        self._user, self._password = login(name, settings)
        self._post = post or self._by_smtp
        self._domain = settings.mail_from.rpartition("@")[2]
        self._refused: set[str] = set()

    def check(self) -> str:
        """Logs in without sending a mail. Returns what works, in words."""
        self.send(None)
        return f"{self._settings.host} accepts the login; the first ticket shows whether it accepts mail"

    def find(self, fingerprint: str) -> Issue | None:
        """None: mail cannot be queried."""
        return None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The thread as given: mail cannot be queried."""
        return Issue(key, None, None)

    def has(self, update: Update) -> bool:
        """False: mail cannot be queried."""
        return False

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Sends the first mail of a thread."""
        # With the hour, because a later ticket of the finding is another thread.
        key = self._id(f"{issue_draft.fingerprint[:32]}.{issue_draft.notification.hour:%Y%m%dT%H}")
        message = self._message(
            key, "create", f"[Streamwarden] {issue_draft.title}", issue_draft.severity, issue_draft.notification
        )
        message.set_content(issue_text(issue_draft, TEXT_LIMIT))
        if issue_draft.plot_png:
            message.add_attachment(issue_draft.plot_png, "image", "png", filename="plot.png")
        self.send(message)
        return Issue(key, None, "open")

    def update(self, update: Update) -> None:
        """Sends a mail to the thread."""
        subject = f"Re: [Streamwarden] {update.title}"
        message = self._message(self._id(update.marker), update.action, subject, update.severity, update.notification)
        message["In-Reply-To"] = message["References"] = update.key
        message.set_content(notification_text(update.notification, TEXT_LIMIT))
        self.send(message)

    def _message(self, id_: str, action: str, subject: str, severity: str, notification: Notification) -> EmailMessage:
        message = new_mail()
        message["Message-ID"] = id_
        message["Subject"] = clean(subject)
        message["From"] = self._settings.mail_from
        message["To"] = ", ".join(self._settings.mail_to)
        message["Date"] = format_datetime(self._now())
        message["Auto-Submitted"] = "auto-generated"
        message["X-Streamwarden-Action"] = action
        if severity == "critical" and action in ("create", "reopen"):
            message["Importance"] = "high"
        return message

    def send(self, message: EmailMessage | None) -> int:
        """Sends a mail; None: only logs in. Returns the number of recipients that the server accepted.

        What one of them got is delivered: a warning names the others once.
        """
        where = f"{self._settings.host}:{self._settings.port}"
        try:
            refused = self._post(message) or {}
        except smtplib.SMTPAuthenticationError:
            raise TrackerDown(
                f"{where}: the mail server refuses user '{self._user}': check `user` and `password` (or `connection`)"
                f" of tickets.trackers.{self.name}."
            ) from None
        except smtplib.SMTPRecipientsRefused as error:
            all_of_them = clean(", ".join(sorted(error.recipients)))
            raise StreamwardenError(f"{where}: the mail server refuses {all_of_them}: check `mail_to`.") from None
        except smtplib.SMTPResponseException as error:
            response = (
                error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
            )
            refusal = TrackerDown if error.smtp_code < 500 else StreamwardenError
            raise refusal(f"{where}: the mail server responded {error.smtp_code}: {clean(response)[:300]}") from None
        except (smtplib.SMTPException, OSError) as error:
            raise Unsure(f"{where}: no clear response: {clean(error) or type(error).__name__}") from None
        if new := refused.keys() - self._refused:
            self._refused |= new
            log.warning("%s", refusals(f"tickets.trackers.{self.name}.mail_to", {who: refused[who] for who in new}))
        return len(self._settings.mail_to) - len(refused)

    def _by_smtp(self, message: EmailMessage | None) -> Refusals:
        with hung_up(self._connected()) as smtp:
            return smtp.send_message(message) if message is not None else {}

    def _connected(self) -> smtplib.SMTP:
        settings, tls = self._settings, ssl.create_default_context()
        smtp: smtplib.SMTP | None = None
        try:
            if settings.security == "tls":
                smtp = smtplib.SMTP_SSL(settings.host, settings.port, timeout=TIMEOUT_SECONDS, context=tls)
            else:
                smtp = smtplib.SMTP(settings.host, settings.port, timeout=TIMEOUT_SECONDS)
            if settings.security == "starttls":
                smtp.starttls(context=tls)
            if self._password:
                smtp.login(self._user, self._password)
        except (OSError, smtplib.SMTPException, UnicodeError) as error:  # nothing was sent yet
            if smtp is not None:
                smtp.close()
            if isinstance(error, smtplib.SMTPAuthenticationError):
                raise
            raise smtplib.SMTPConnectError(421, clean(error) or type(error).__name__) from None
        return smtp

    def _id(self, local: str) -> str:
        return f"<{local}@{self._domain}>"


def new_mail() -> EmailMessage:
    """An empty mail that does not encode message ids: Python encodes long ones, and mailboxes do not decode them.

    `In-Reply-To` and `References` take one id (cpython #79986). Parts of the mail have the same headers: an image's
    `Content-ID` is what the HTML refers to.
    """
    headers = HeaderRegistry()
    for name in ("in-reply-to", "references", "content-id"):
        headers.map_to_type(name, MessageIDHeader)  # type: ignore[arg-type]  # the registry mixes it into BaseHeader
    return EmailMessage(policy.EmailPolicy(header_factory=headers))


@contextmanager
def hung_up(smtp: smtplib.SMTP) -> Iterator[smtplib.SMTP]:
    """Closes a connection at the end. Errors on QUIT are ignored, because the mail was already accepted."""
    try:
        yield smtp
    finally:
        with suppress(smtplib.SMTPException, OSError):
            smtp.quit()
        smtp.close()


def refusals(key: str, refused: Refusals) -> str:
    """One line about rejected recipients; `key` is the config key that lists them."""
    recipients = (
        f"{who} ({code} {clean(why.decode(errors='replace'))})" for who, (code, why) in sorted(refused.items())
    )
    return f"{key}: the mail server refuses {clean(', '.join(recipients))[:1000]}: remove it; the others got the mail."
