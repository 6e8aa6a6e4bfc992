"""`streamwarden report`: the daily report, or the weekly one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated

import typer

from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import FIRST_YEAR, LAST_YEAR
from streamwarden.cli import shared
from streamwarden.cli.shared import out


def report(
    day: Annotated[str | None, typer.Option(help="Day (UTC), e.g. 2026-11-20. Default: today.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only resources of this owner.")] = None,
    week: Annotated[bool, typer.Option("--week", help="The weekly report of the week with this day.")] = False,
) -> None:
    """Write the daily report, or the weekly one, as an HTML file."""
    from streamwarden.reports import monday_of, render_daily, render_weekly, write_report

    try:
        chosen = date.fromisoformat(day) if day else datetime.now(UTC).date()
    except ValueError:
        raise StreamwardenError(f"--day {day}: not a day; write it like 2026-11-20.") from None
    if not FIRST_YEAR <= chosen.year <= LAST_YEAR:
        raise StreamwardenError(f"--day {day}: must be between {FIRST_YEAR} and {LAST_YEAR}.")
    if week and owner is not None:
        raise StreamwardenError(
            "--owner: the weekly report is of the whole fleet; leave out one of --owner and --week."
        )
    config, warehouse = load_config(), shared.warehouse()
    if week:
        made = render_weekly(warehouse, config, monday_of(chosen))
    else:
        made = render_daily(warehouse, config, chosen, owner=owner)
    out.print(f"wrote {write_report(made, config)}")
