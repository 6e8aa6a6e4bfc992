"""`streamwarden report`: the daily report."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated

import typer

from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import out


def report(
    day: Annotated[str | None, typer.Option(help="Day (UTC), e.g. 2026-11-20; today.")] = None,
    owner: Annotated[str | None, typer.Option(help="Of what this owner has only.")] = None,
) -> None:
    """Write the daily report as an HTML file."""
    from streamwarden.reports import render_daily, write_report

    try:
        chosen = date.fromisoformat(day) if day else datetime.now(UTC).date()
    except ValueError:
        raise StreamwardenError(f"--day {day}: not a day; write it like 2026-11-20.") from None
    config = load_config()
    out.print(f"wrote {write_report(render_daily(shared.warehouse(), config, chosen, owner=owner), config)}")
