"""Sends a report by mail: HTML with embedded images, and plain text."""

from __future__ import annotations

import logging
import os
import re
import smtplib
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from streamwarden.base.config import Config
from streamwarden.base.config.trackers import Mail
from streamwarden.base.errors import StreamwardenError
from streamwarden.reports.rendering import Report
from streamwarden.tickets.sinks.mail import Tracker as MailTracker
from streamwarden.tickets.sinks.mail import hung_up, new_mail, refusals

if TYPE_CHECKING:
    from airflow.providers.smtp.hooks.smtp import SmtpHook

SMTP_ENV = "STREAMWARDEN_SMTP_URL"  # smtp://host:25, smtp+starttls://user:password@host:587, smtps://…:465
TIMEOUT_SECONDS = 30

log = logging.getLogger(__name__)


def mail_report(report: Report, config: Config, airflow_hook: SmtpHook | None = None) -> int:
    """Sends the report to `reports.mail_to`. Returns the number of accepted recipients; rejected ones are logged.

    Args:
        airflow_hook: Airflow's open SMTP connection; None: connect to `$STREAMWARDEN_SMTP_URL`.

    Raises:
        StreamwardenError: the server is not reachable or rejects the mail; one line without the password.
    """
    recipients = config.reports.mail_to
    if not recipients:
        return 0
    message = compose(report, config.reports.mail_from, recipients)
    try:
        # The hook's own method cannot embed images, so only its connection is used.
        with nullcontext(cast(smtplib.SMTP, airflow_hook._smtp_client)) if airflow_hook else _plain() as smtp:
            refused = smtp.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise StreamwardenError(f"reports.mail_to: the mail was not sent: {_plainly(error)}") from None
    if refused:
        log.warning("%s", refusals("reports.mail_to", refused))
    return len(recipients) - len(refused)


def mail_owner(report: Report, config: Config, open_tracker: Callable[[str, Mail], MailTracker] = MailTracker) -> int:
    """Sends an owner's report to the mail trackers of the owner's routes. Returns the number of accepted recipients.

    Raises:
        StreamwardenError: no server accepted the mail. If one did, errors of the others are only logged, because a
            retry would send a duplicate.
    """
    sent, failed = 0, []
    for name, settings in config.tickets.mailboxes_of(report.owner or "").items():
        try:
            sent += open_tracker(name, settings).send(compose(report, settings.mail_from, settings.mail_to))
        except StreamwardenError as error:
            failed.append(error)
    if failed and not sent:
        raise failed[0]
    for one in failed:
        log.warning("%s", one)
    return sent


def compose(report: Report, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """The mail with the report as text, and as HTML with its images."""
    message = new_mail()
    message["Subject"] = report.subject
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid("report", "streamwarden")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(report.text)
    message.add_alternative(re.sub(r"<source [^>]*>", "", report.html), subtype="html")  # see `Report.dark_images`
    html = message.get_payload()[1]  # type: ignore[index]
    for cid, png in report.images.items():
        html.add_related(png, "image", "png", cid=f"<{cid}>", filename="plot.png")  # type: ignore[union-attr]
    return message


@contextmanager
def _plain() -> Iterator[smtplib.SMTP]:
    url = urlsplit(os.environ.get(SMTP_ENV, "smtp://localhost:25"))
    if url.scheme not in ("smtp", "smtp+starttls", "smtps") or not url.hostname:
        raise StreamwardenError(f"{SMTP_ENV}: must be like smtp://host:25, smtp+starttls://… or smtps://…")
    tls = ssl.create_default_context()
    if url.scheme == "smtps":
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(url.hostname, url.port or 465, timeout=TIMEOUT_SECONDS, context=tls)
    else:
        smtp = smtplib.SMTP(url.hostname, url.port or 25, timeout=TIMEOUT_SECONDS)
    with hung_up(smtp):
        if url.scheme == "smtp+starttls":
            smtp.starttls(context=tls)
        if url.username:
            smtp.login(unquote(url.username), unquote(url.password or ""))
        yield smtp


def _plainly(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"the server refused {', '.join(sorted(error.recipients))}"
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return f"{error.smtp_code} {' '.join(said.split())}"
    return " ".join(str(error).split())
