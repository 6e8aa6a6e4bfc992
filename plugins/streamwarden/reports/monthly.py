"""The monthly report, as HTML and mail: capacity with dates, costs by owner and application with their trend, and the
advice that was acted on with what it saved; of the fleet, or of one owner."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.hours import start_of_hour
from streamwarden.base.paths import SQL
from streamwarden.charts.draw import draw_finding
from streamwarden.rendering.readable import readable
from streamwarden.reports.rendering import Pictures, Report, for_owner, headline, render, require_begun
from streamwarden.store.queries import Row, ask

MOST_RESOURCES, MOST_COSTS, MOST_ADVICE = 5, 20, 20
PICTURE = "capacity@streamwarden"
KINDS = ("disk", "memory", "partitions", "file descriptors", "network")
_UNITS = {"disk": "bytes", "memory": "bytes", "network": "bytes_per_second"}


def render_monthly(
    engine: sa.Engine, config: Config, first: date, now: datetime | None = None, *, owner: str | None = None
) -> Report:
    """Renders the report of a month (UTC); for the current month, up to now.

    Args:
        first: the first day of the month.
        owner: only resources of this owner; '': of no owner; None: all.

    Raises:
        StreamwardenError: the month has not begun.
    """
    now = now or datetime.now(UTC)
    require_begun(first, now)
    start = datetime(first.year, first.month, 1, tzinfo=UTC)
    finish = min((start + timedelta(days=32)).replace(day=1), start_of_hour(now) + timedelta(hours=1))
    period = {"start": start, "finish": finish, "owner": owner}
    with engine.connect() as connection:
        totals = ask(connection, "reports/totals", **period)[0]
        capacity = ask(connection, "reports/capacity", finish=finish, owner=owner, most=MOST_RESOURCES)
        costs = ask(connection, "reports/costs_trend", **period, most=MOST_COSTS)
        acted_on = ask(connection, "reports/advice_acted_on", **period, most=MOST_ADVICE)
        now_costs = ask(connection, "reports/costs", owner=owner)
    pictures, folder = Pictures(), SQL / "reports" / "charts"
    alt = None
    if owner is None:
        alt = pictures.add(PICTURE, lambda form: draw_finding(engine, "capacity", finish, {}, form, folder))
    month = f"{start:%Y-%m}"
    by_kind = groupby((_with_texts(row) for row in capacity), key=lambda row: str(row["kind"]))
    context: dict[str, Any] = {
        "subject": f"Streamwarden {month}{for_owner(owner)}: {headline(totals)}",
        "owner": owner,
        "first": start.date(),
        "last": (finish - timedelta(hours=1)).date(),
        "totals": totals,
        "capacity": {kind: [] for kind in KINDS} | {kind: list(rows) for kind, rows in by_kind},
        "soon": sum(row["full_at"] is not None and row["full_at"] < finish + timedelta(days=90) for row in capacity),
        "costs": costs,
        "acted_on": acted_on,
        "open_advice": next((row for row in now_costs if row["kind"] == "advice"), None),
        "picture": PICTURE if alt else None,
        "alt": alt or "",
    }
    return render("monthly", f"monthly-{month}", config, context, images=pictures.light, dark_images=pictures.dark)


def month_of(day: date) -> date:
    """The first day of a day's month."""
    return day.replace(day=1)


def monthly_owners(engine: sa.Engine, first: date) -> list[str]:
    """Names of the owners of volumes or findings in a month (UTC)."""
    start = datetime(first.year, first.month, 1, tzinfo=UTC)
    finish = (start + timedelta(days=32)).replace(day=1)
    with engine.connect() as connection:
        findings = ask(connection, "reports/owners", start=start, finish=finish)
        costs = ask(connection, "reports/costs_trend", start=start, finish=finish, owner=None, most=10_000)
    return sorted({row["owner"] for row in [*findings, *costs] if row["owner"]})


def _with_texts(row: Row) -> Row:
    """Used amount and limit for people, in the unit of the kind."""
    unit = _UNITS.get(row["kind"])
    texts = [readable(unit, row[name])[1] if unit else f"{row[name]:,.0f}" for name in ("used", "capacity")]
    return row | {"used_text": texts[0], "capacity_text": texts[1]}
