"""`streamwarden report`: the daily report, the weekly one, or the monthly one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import FIRST_YEAR, LAST_YEAR
from streamwarden.cli import shared
from streamwarden.cli.shared import out
from streamwarden.rendering.readable import counted

if TYPE_CHECKING:
    from streamwarden.reports import Report


def report(
    day: Annotated[str | None, typer.Option(help="Day (UTC), e.g. 2026-11-20. Default: today.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only resources of this owner.")] = None,
    week: Annotated[bool, typer.Option("--week", help="The weekly report of the week with this day.")] = False,
    month: Annotated[bool, typer.Option("--month", help="The monthly report of the month with this day.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write a PDF too (needs the extra `pdf`).")] = False,
    test_mail: Annotated[
        bool, typer.Option("--test-mail", help="Mail the report to its recipients now, by $STREAMWARDEN_SMTP_URL.")
    ] = False,
) -> None:
    """Write the daily report, the weekly one, or the monthly one, as an HTML file."""
    from streamwarden.reports import write_pdf, write_report

    chosen = _day(day)
    config = load_config()
    made = _render(config, chosen, owner, is_week=week, is_month=month)
    out.print(f"wrote {write_report(made, config)}")
    if pdf:
        out.print(f"wrote {write_pdf(made, config)}")
    if test_mail:
        _mail(made, config)


def _day(text: str | None) -> date:
    try:
        chosen = date.fromisoformat(text) if text else datetime.now(UTC).date()
    except ValueError:
        raise StreamwardenError(f"--day {text}: not a day; write it like 2026-11-20.") from None
    if not FIRST_YEAR <= chosen.year <= LAST_YEAR:
        raise StreamwardenError(f"--day {text}: must be between {FIRST_YEAR} and {LAST_YEAR}.")
    return chosen


def _render(config: Config, day: date, owner: str | None, *, is_week: bool, is_month: bool) -> Report:
    from streamwarden.reports import PERIODS

    if is_week and is_month:
        raise StreamwardenError("--week and --month: are two reports; leave out one.")
    period = PERIODS["weekly" if is_week else "monthly" if is_month else "daily"]
    return period.render(shared.warehouse(), config, day, owner)


def _mail(made: Report, config: Config) -> None:
    """Mails a report of all owners to `reports.mail_to`, and an owner's as its tickets are routed."""
    from streamwarden.reports import mail_owner, mail_report

    sent = mail_report(made, config) if made.owner is None else mail_owner(made, config)
    if not sent:
        way_out = (
            "add recipients to reports.mail_to" if made.owner is None else "route the owner's tickets to a mail tracker"
        )
        raise StreamwardenError(f"--test-mail: no recipients; {way_out} in streamwarden.yaml.")
    out.print(f"mailed to {counted(sent, 'recipient')}")
