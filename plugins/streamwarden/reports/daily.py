"""The daily report: open and closed findings, advice, what was not evaluated, and fleet metrics; as HTML and mail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.hours import start_of_hour
from streamwarden.charts.draw import FOLDER as CHARTS
from streamwarden.charts.draw import Drawing, Format, draw_finding, load_plot
from streamwarden.detectors import Finding
from streamwarden.detectors.resources import owner_entry
from streamwarden.rendering.readable import readable, readable_metrics, since_text
from streamwarden.reports.rendering import Pictures, Report, for_owner, headline, render, require_begun
from streamwarden.store.queries import ask
from streamwarden.tickets.render import finding_url

MOST_FINDINGS, MOST_LINES, MOST_METRICS, MOST_CHANGES = 30, 8, 4, 5
PICTURE = "worst@streamwarden"
"""The chart of the worst finding; the pages have all charts."""
CHANGES = "state_store_schema_drift"
_CHANGE = ("path", "change", "old_type", "new_type")


@dataclass(frozen=True)
class _Finding:
    """An open ticket as the report shows it."""

    ticket: dict[str, Any]
    since: str
    message: str
    actions: tuple[str, ...]
    metrics: list[tuple[str, str]]
    changes: list[list[str]]
    """Of a schema drift: path, change, and both types of the first changed paths."""
    page: str
    cause_page: str | None
    owner_entry: str
    """The config line that sets an owner, if the finding has none."""


def render_daily(
    engine: sa.Engine, config: Config, day: date, now: datetime | None = None, *, owner: str | None = None
) -> Report:
    """Renders the report of a day, [00:00, 24:00) UTC; for the current day, up to now.

    Args:
        owner: only findings of this owner; None: all.

    Raises:
        StreamwardenError: the day has not begun.
    """
    now = now or datetime.now(UTC)
    require_begun(day, now)
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    days = {"start": start, "finish": start + timedelta(days=1)}
    period = days | {"owner": owner}
    with engine.connect() as connection:
        totals = ask(connection, "reports/totals", **period)[0]
        tickets = ask(connection, "reports/open_tickets", **period, most=MOST_FINDINGS)
        parts = {
            "advice": ask(connection, "reports/advice", **period, least=config.tickets.least_severity, most=MOST_LINES),
            "closed": ask(connection, "reports/closed_tickets", **period, most=MOST_LINES),
            "not_evaluated": ask(connection, "reports/not_evaluated", **period, most=MOST_LINES),
            "gaps": ask(connection, "reports/gaps", **period, most=MOST_LINES),
            "fleet": ask(connection, "reports/fleet", **days) if owner is None else [],
            "owners": ask(connection, "reports/owners", **days) if owner is None else [],
        }
        findings = [_finding(connection, config, ticket, days["finish"]) for ticket in tickets]
    pictures = Pictures()
    alt = _add_picture(pictures, engine, tickets[0]) if tickets else None
    ended = min(days["finish"], start_of_hour(now))
    context = {
        "subject": f"Streamwarden {day:%Y-%m-%d}{for_owner(owner)}: {headline(totals)}",
        "day": day,
        "owner": owner,
        "totals": totals,
        "findings": findings,
        "picture": PICTURE if alt else None,
        "alt": alt or "",
        "unassigned": [finding for finding in findings if finding.owner_entry],
        "hours_past": max(0, round((ended - start) / timedelta(hours=1))),
        **parts,
    }
    images = {"images": pictures.light, "dark_images": pictures.dark}
    return render("daily", f"daily-{day}", config, context, **images)


def daily_owners(engine: sa.Engine, day: date, days: int = 1) -> list[str]:
    """Names of the owners of findings that were open or closed in the days (UTC) from `day` on."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    with engine.connect() as connection:
        rows = ask(connection, "reports/owners", start=start, finish=start + timedelta(days=days))
    return [row["owner"] for row in rows if row["owner"]]


def _finding(connection: sa.Connection, config: Config, ticket: dict[str, Any], finish: datetime) -> _Finding:
    finding = Finding.from_row(ticket["finding"]) if ticket["finding"] else None
    last = ticket["hour"] or ticket["opened_hour"]
    metrics = readable_metrics(finding.key_metric_values) if finding else []
    return _Finding(
        ticket=ticket,
        since=since_text(
            ticket["opened_hour"], finding.since if finding else None, min(finish, last + timedelta(hours=1))
        ),
        message=finding.message if finding else "",
        actions=finding.actions if finding else (),
        metrics=[(label, text) for label, text in metrics if label][:MOST_METRICS],
        changes=_changes(connection, ticket) if ticket["detector"] == CHANGES and ticket["hour"] else [],
        page=finding_url(config, ticket["fingerprint"]),
        cause_page=finding_url(config, ticket["cause_fingerprint"]) if ticket["cause_fingerprint"] else None,
        owner_entry=owner_entry(ticket["resource"]) if ticket["resource"] and not ticket["owner"] else "",
    )


def _changes(connection: sa.Connection, ticket: dict[str, Any]) -> list[list[str]]:
    rows = ask(connection, "reports/schema_changes", hour=ticket["hour"], **ticket["identity"], most=MOST_CHANGES)
    return [[readable(column, row[column] or "absent")[1] for column in _CHANGE] for row in rows]


def _add_picture(pictures: Pictures, engine: sa.Engine, ticket: dict[str, Any]) -> str | None:
    """Adds the chart of a finding; returns its alternative text. None: there is no chart, or only a table."""

    def draw(form: Format) -> Drawing | None:
        return draw_finding(engine, ticket["detector"], ticket["hour"], ticket["identity"], form)

    file = CHARTS / f"{ticket['detector']}.sql"
    is_table = file.exists() and load_plot(file)[0].kind == "table"
    return None if is_table or not ticket["hour"] else pictures.add(PICTURE, draw)
