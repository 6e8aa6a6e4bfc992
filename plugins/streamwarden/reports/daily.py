"""The daily report: open and closed findings, advice, what was not evaluated, and fleet metrics; as HTML and mail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.charts.draw import Drawing, draw_finding
from streamwarden.detectors import Finding
from streamwarden.detectors.resources import owner_entry
from streamwarden.rendering.readable import clean, readable_metrics, since_text
from streamwarden.reports.rendering import Report, headline, render
from streamwarden.store.queries import ask
from streamwarden.tickets.render import finding_url

MOST_FINDINGS, MOST_LINES, MOST_PLOTS = 50, 20, 20


@dataclass(frozen=True)
class _Finding:
    """An open ticket as the report shows it."""

    ticket: dict[str, Any]
    since: str
    message: str
    actions: tuple[str, ...]
    metrics: list[tuple[str, str]]
    page: str
    cause_page: str | None
    image: str | None
    alt: str
    owner_entry: str
    """The config line that sets an owner, if the finding has none."""


def render_daily(
    engine: sa.Engine, config: Config, day: date, now: datetime | None = None, *, owner: str | None = None
) -> Report:
    """Renders the report of a day, [00:00, 24:00) UTC; for the current day, up to now.

    Args:
        owner: only findings of this owner; None: all.
    """
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
            "gaps": ask(connection, "reports/gaps", **days, most=MOST_LINES),
            "fleet": ask(connection, "reports/fleet", **days) if owner is None else [],
            "owners": ask(connection, "reports/owners", **days) if owner is None else [],
        }
    images: dict[str, bytes] = {}
    findings = [_finding(engine, config, ticket, images, days["finish"]) for ticket in tickets]
    ended = min(days["finish"], start_of_hour(now or datetime.now(UTC)))
    whose = f" for {clean(owner)}" if owner else ""
    context = {
        "subject": f"Streamwarden {day:%Y-%m-%d}{whose}: {headline(totals)}",
        "day": day,
        "owner": owner,
        "totals": totals,
        "findings": findings,
        "hours_past": max(0, round((ended - start) / timedelta(hours=1))),
        **parts,
    }
    name = f"daily-{day}" + (f"-{re.sub(r'[^A-Za-z0-9_.-]+', '_', owner)}" if owner else "")
    return render("daily", name, config, context, owner=owner, images=images)


def owners_of(engine: sa.Engine, day: date) -> list[str]:
    """Names of the owners of findings that were open or closed on a day (UTC)."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    with engine.connect() as connection:
        rows = ask(connection, "reports/owners", start=start, finish=start + timedelta(days=1))
    return [row["owner"] for row in rows if row["owner"]]


def _finding(
    engine: sa.Engine, config: Config, ticket: dict[str, Any], images: dict[str, bytes], finish: datetime
) -> _Finding:
    finding = Finding.from_row(ticket["finding"]) if ticket["finding"] else None
    last = ticket["hour"] or ticket["opened_hour"]
    drawing = _draw(engine, ticket) if ticket["hour"] and len(images) < MOST_PLOTS else None
    cid = None
    if drawing:
        cid = f"plot-{ticket['ticket_id']}@streamwarden"
        images[cid] = drawing.content
    return _Finding(
        ticket=ticket,
        since=since_text(
            ticket["opened_hour"], finding.since if finding else None, min(finish, last + timedelta(hours=1))
        ),
        message=finding.message if finding else "",
        actions=finding.actions if finding else (),
        metrics=readable_metrics(finding.key_metric_values) if finding else [],
        page=finding_url(config, ticket["fingerprint"]),
        cause_page=finding_url(config, ticket["cause_fingerprint"]) if ticket["cause_fingerprint"] else None,
        image=cid,
        alt=drawing.alt if drawing else "",
        owner_entry=owner_entry(ticket["resource"]) if ticket["resource"] and not ticket["owner"] else "",
    )


def _draw(engine: sa.Engine, ticket: dict[str, Any]) -> Drawing | None:
    try:
        return draw_finding(engine, ticket["detector"], ticket["hour"], ticket["identity"], "png")
    except StreamwardenError:
        return None  # `make check` finds invalid charts; the report is sent without it
