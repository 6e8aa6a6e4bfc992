"""The weekly report, as HTML and mail: costs and possible savings, capacity after the loss of a broker, trend of
findings, findings by detector, the longest open findings, and what was not evaluated; of the fleet, or of one owner."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.hours import start_of_hour
from streamwarden.base.paths import SQL
from streamwarden.charts.draw import draw_finding
from streamwarden.reports.daily import daily_owners
from streamwarden.reports.rendering import Pictures, Report, for_owner, headline, render, require_begun
from streamwarden.store.queries import Row, ask

WEEK = timedelta(days=7)
MOST_LINES, MOST_COSTS = 20, 5
PICTURE = "open@streamwarden"


def render_weekly(
    engine: sa.Engine, config: Config, monday: date, now: datetime | None = None, *, owner: str | None = None
) -> Report:
    """Renders the report of a week, [Monday 00:00, next Monday 00:00) UTC; for the current week, up to now.

    Costs and capacity are always of the newest gathered hour. The report of an owner has no capacity, and no chart.

    Args:
        owner: only resources of this owner; '': of no owner; None: all.

    Raises:
        StreamwardenError: the week has not begun.
    """
    now = now or datetime.now(UTC)
    require_begun(monday, now)
    start = datetime(monday.year, monday.month, monday.day, tzinfo=UTC)
    week = {"start": start, "finish": start + WEEK}
    period = week | {"owner": owner}
    with engine.connect() as connection:
        totals = ask(connection, "reports/totals", **period)[0]
        before = ask(connection, "reports/totals", start=start - WEEK, finish=start, owner=owner)[0]
        least = config.tickets.least_severity
        parts = {
            "costs": _costs(ask(connection, "reports/costs", owner=owner)),
            "network": next(iter(ask(connection, "reports/network")), None) if owner is None else None,
            "oldest": ask(connection, "reports/oldest", finish=week["finish"], owner=owner, most=MOST_LINES),
            "rules": ask(connection, "reports/rules", **period, most=MOST_LINES),
            "advice": ask(connection, "reports/advice", **period, least=least, most=MOST_LINES),
            "owners": ask(connection, "reports/owners", **week) if owner is None else [],
            "not_evaluated": ask(connection, "reports/not_evaluated", **period, most=MOST_LINES),
            "gaps": ask(connection, "reports/gaps", **period, most=MOST_LINES),
        }
    ended = min(week["finish"], start_of_hour(now))
    pictures, folder = Pictures(), SQL / "reports" / "charts"
    alt = None
    if owner is None:
        alt = pictures.add(PICTURE, lambda form: draw_finding(engine, "open_tickets", ended, {}, form, folder))
    number = f"{monday.isocalendar().year}-W{monday.isocalendar().week:02}"
    context: dict[str, Any] = {
        "subject": f"Streamwarden {number}{for_owner(owner)}: {headline(totals)}",
        "owner": owner,
        "monday": monday,
        "sunday": monday + timedelta(days=6),
        "totals": totals,
        "before": before,
        "hours_past": max(0, round((ended - start) / timedelta(hours=1))),
        "ended": ended,
        "picture": PICTURE if alt else None,
        "alt": alt or "",
        **parts,
    }
    images = {"images": pictures.light, "dark_images": pictures.dark}
    return render("weekly", f"weekly-{number}", config, context, **images)


def weekly_owners(engine: sa.Engine, monday: date) -> list[str]:
    """Names of the owners of findings that were open or closed in a week (UTC)."""
    return daily_owners(engine, monday, days=WEEK.days)


def monday_of(day: date) -> date:
    """The Monday of a day's week."""
    return day - timedelta(days=day.weekday())


def _costs(rows: list[Row]) -> dict[str, list[Row]]:
    """The largest costs of volumes and logs, and the largest savings; an empty list: unknown."""
    by_kind = groupby(rows, key=lambda row: str(row["kind"]))
    return {"advice": [], "volumes": [], "logs": []} | {kind: list(lines)[:MOST_COSTS] for kind, lines in by_kind}
