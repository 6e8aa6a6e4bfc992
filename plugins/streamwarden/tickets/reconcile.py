"""Turns evaluations into ticket changes in one transaction; `deliver` posts them afterwards.

The stored evaluations alone decide which tickets are open (episodes.py). A repeated or backfilled hour changes nothing
that newer hours decided: only the newest hour of a detector opens, reopens, or comments. Rules for one finding (a
detector and a resource):

- A ticket opens and closes after a number of hours with data. Missing data does neither.
- Evidence that ended before the evaluated hour opens, reopens, and moves nothing.
- A ticket that fires again soon is reopened; later, a new ticket names the old one.
- Findings below the least severity open no ticket. Muted tickets stay muted unless the severity rises.
- An open ticket gets a comment only when its reason, its severity, or its incident changes.

`incidents` decides which findings share a ticket in the tracker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.detectors import Detector, Finding
from streamwarden.detectors.episodes import OpenFinding, open_findings
from streamwarden.store.queries import ask
from streamwarden.tickets import incidents, render, storms
from streamwarden.tickets.plan import (
    LAYERS,
    RECONCILING,
    STORM,
    Closing,
    FiringFinding,
    Plan,
    Run,
    insert_tickets,
    plan_change,
    rank,
    rises,
    update_ticket,
)
from streamwarden.tickets.routes import assign


def reconcile(
    engine: sa.Engine, config: Config, detectors: Mapping[str, Detector], now: datetime | None = None
) -> Plan:
    """Updates tickets by the stored evaluations and plans the changes that `deliver` posts.

    Args:
        now: the present (UTC), for ends of snoozes.

    Returns:
        The plan: numbers of tickets.
    """
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": RECONCILING})
        newest = connection.execute(
            sa.text(
                "select max(hour) from detect.detector_run where status = 'evaluated' and detector = any(:detectors)"
            ),
            {"detectors": list(detectors)},
        ).scalar()
        if newest is None:
            return Plan()
        run = Run(connection, config, detectors, now or datetime.now(UTC), newest)
        _end_snoozes(run)
        _apply(run, open_findings(connection, detectors, newest))
        assign(connection, config, detectors)
        run.plan.still_open = connection.execute(
            sa.text("select count(*) from tickets.ticket where state = 'open' and detector <> :storm"), {"storm": STORM}
        ).scalar_one()
        return run.plan


def _apply(run: Run, found: Sequence[OpenFinding]) -> None:
    tickets = _newest_tickets(run.connection, [finding.fingerprint for finding in found])
    run.firing = _newest_firing(run, found)
    run.present = {
        finding.fingerprint
        for finding in found
        if finding.is_current and (firing := run.firing.get(finding.fingerprint)) is not None and not firing.has_ended
    }
    delivered = _delivered_reasons(run.connection, [t["ticket_id"] for t in tickets.values() if t["state"] == "open"])
    fresh: list[OpenFinding] = []
    for finding in found:
        ticket = tickets.get(finding.fingerprint)
        if finding.open_since is not None:
            if ticket is not None and ticket["state"] == "open":
                _keep(run, finding, ticket, delivered)
            elif (
                finding.fingerprint in run.present
                and _is_severe_enough(run, run.firing[finding.fingerprint])
                and (ticket is None or not _is_muted(run, finding, ticket))
            ):
                if ticket is not None and _may_reopen(run, finding, ticket):
                    _reopen(run, finding, ticket)
                else:
                    fresh.append(finding)
        elif ticket is not None and ticket["state"] == "open" and (closing := finding.closes(ticket["opened_hour"])):
            _close(run, finding, ticket, *closing)
    fresh.sort(key=lambda s: _order(run, s))
    brokers = _brokers_on(run, fresh)
    rows = [_row(run, s, tickets.get(s.fingerprint), brokers) for s in fresh]
    run.fresh.update(insert_tickets(run.connection, rows))
    run.plan.opened += len(fresh)
    incidents.settle(run)
    storms.settle(run)


def _is_severe_enough(run: Run, firing: FiringFinding) -> bool:
    """Whether the finding is severe enough for a ticket."""
    return rank(firing.severity) <= rank(run.config.tickets.least_severity)


def _is_muted(run: Run, finding: OpenFinding, ticket: sa.RowMapping) -> bool:
    """Whether a person muted or closed the ticket."""
    if ticket["muted"] == "wont_fix":
        return True
    firing = run.firing.get(finding.fingerprint)
    if ticket["muted"] == "snoozed" and ticket["muted_until"] > run.now:
        return firing is None or not rises(ticket["severity"], firing.severity)
    # A person closed it: only later hours can open it again.
    return ticket["close_reason"] == "person" and (finding.last_firing_hour or run.newest) <= ticket["closed_hour"]


def _may_reopen(run: Run, finding: OpenFinding, ticket: sa.RowMapping) -> bool:
    assert finding.open_since is not None  # noqa: S101  the caller's condition
    window = timedelta(hours=run.config.tickets.reopen_within_hours)
    # A ticket within an incident has no issue of its own to reopen.
    return (
        ticket["summary_ticket_id"] is None
        and finding.open_since - ticket["closed_hour"] <= window
        and not _is_about_others(run, finding, ticket)
    )


def _is_about_others(run: Run, finding: OpenFinding, ticket: sa.RowMapping) -> bool:
    """Whether a finding about a whole cluster affects nothing that it affected when its ticket was open.

    A rogue consumer of another topic, say, has another cause and another owner.
    """
    firing = run.firing[finding.fingerprint].finding
    if firing.resource.kind != "cluster" or not firing.affected:
        return False
    before: list[Any] | None = run.connection.execute(
        sa.text("select affected from detect.evaluation where fingerprint = :fingerprint and hour = :hour"),
        {"fingerprint": finding.fingerprint, "hour": ticket["last_firing_hour"]},
    ).scalar()
    return bool(before) and not any(part in (before or ()) for part in firing.affected)


def _keep(run: Run, finding: OpenFinding, ticket: sa.RowMapping, delivered: Mapping[int, set[str]]) -> None:
    """Updates an open ticket that stays open; a new reason or severity is news."""
    firing = run.firing.get(finding.fingerprint)
    if firing is None:
        return  # its newest firing hour is older than the window
    if not finding.is_current:  # a backfilled hour only lengthens the history
        since = {"opened_hour": finding.open_since, "resolved_hour": None}
        update_ticket(run.connection, ticket["ticket_id"], last_firing_hour=firing.hour, **since)
        return
    if not _is_severe_enough(run, firing):
        update_ticket(run.connection, ticket["ticket_id"], last_firing_hour=firing.hour)
        return  # below the least severity: it closes only when it is resolved
    values: dict[str, Any] = {"last_firing_hour": firing.hour, "severity": firing.severity, **_resource_columns(firing)}
    values |= {"opened_hour": finding.open_since, "resolved_hour": None}
    risen = rises(ticket["severity"], firing.severity)
    if ticket["muted"] == "snoozed" and risen:
        values |= {"muted": None, "muted_until": None}
    update_ticket(run.connection, ticket["ticket_id"], **values)
    if risen:
        run.risen.add(ticket["ticket_id"])
    if ticket["severity"] != firing.severity:
        run.was_severity[ticket["ticket_id"]] = ticket["severity"]
    if firing.finding.reason not in delivered.get(ticket["ticket_id"], ()):
        run.news[ticket["ticket_id"]] = "The reason changed:"
    elif _is_about_others(run, finding, ticket):
        run.news[ticket["ticket_id"]] = "The affected resources changed:"


def _reopen(run: Run, finding: OpenFinding, ticket: sa.RowMapping) -> None:
    firing = run.firing[finding.fingerprint]
    update_ticket(
        run.connection, ticket["ticket_id"],
        state="open", muted=None, muted_until=None, closed_hour=None, close_reason=None, severity=firing.severity,
        opened_hour=finding.open_since, last_firing_hour=firing.hour, resolved_hour=None, root_ticket_id=None,
        issue_title=None, issue_severity=None, cause_ticket_id=None, role="alone", **_resource_columns(firing),
    )  # fmt: skip
    run.reopened.add(ticket["ticket_id"])
    run.plan.reopened += 1


def _close(run: Run, finding: OpenFinding, ticket: sa.RowMapping, hour: datetime, message: str) -> None:
    """The finding is resolved. A ticket that holds other findings stays open: `incidents` closes it with the last."""
    ok_message = run.connection.execute(
        sa.text("select message from detect.evaluation where fingerprint = :f and hour = :hour and status = 'ok'"),
        {"f": finding.fingerprint, "hour": hour},
    ).scalar()
    run.over[ticket["ticket_id"]] = Closing(hour, message, ok_message)
    if ticket["summary_ticket_id"] is None:
        update_ticket(run.connection, ticket["ticket_id"], resolved_hour=hour)
    else:
        update_ticket(run.connection, ticket["ticket_id"], state="closed", closed_hour=hour, close_reason=message)
        run.plan.closed += 1


def _brokers_on(run: Run, fresh: Sequence[OpenFinding]) -> dict[str, list[str]]:
    """Keys of the brokers on the volumes and instances of new tickets, by resource key; titles name them."""
    resources = {run.firing[finding.fingerprint].finding.resource.key for finding in fresh}
    found: dict[str, list[str]] = defaultdict(list)
    if asked := sorted(resource for resource in resources if resource.startswith(("volume:", "instance:"))):
        for row in ask(run.connection, "tickets/brokers_on", hour=run.newest, resources=asked):
            found[row["resource"]].append(row["broker"])
    return found


def _row(
    run: Run, finding: OpenFinding, previous: sa.RowMapping | None, brokers: Mapping[str, list[str]]
) -> dict[str, Any]:  # fmt: skip
    firing = run.firing[finding.fingerprint]
    return {
        "fingerprint": finding.fingerprint,
        "detector": finding.detector,
        "resource_name": firing.finding.resource_name,
        "identity": dict(firing.finding.resource.columns),
        "severity": firing.severity,
        "title": render.title(
            run.detectors[finding.detector].title,
            firing.finding.resource_name,
            brokers.get(firing.finding.resource.key, ()),
        ),
        "opened_hour": finding.open_since,
        "last_firing_hour": firing.hour,
        "previous_ticket_id": previous["ticket_id"] if previous is not None else None,
        **_resource_columns(firing),
    }


def _end_snoozes(run: Run) -> None:
    ended = run.connection.execute(
        sa.text(
            "update tickets.ticket set muted = null, muted_until = null"
            " where muted = 'snoozed' and muted_until <= :now returning ticket_id, state, summary_ticket_id"
        ),
        {"now": run.now},
    ).all()
    for ticket_id, state, summary_id in ended:
        if state == "open" and summary_id is None:
            plan_change(
                run.connection, ticket_id, "reopen", run.newest, "The snooze has ended. The finding is still firing."
            )


def _newest_tickets(connection: sa.Connection, fingerprints: list[str]) -> dict[str, sa.RowMapping]:
    rows = connection.execute(
        sa.text(
            "select distinct on (fingerprint) * from tickets.ticket where fingerprint = any(:fingerprints)"
            " order by fingerprint, ticket_id desc"
        ),
        {"fingerprints": fingerprints},
    ).mappings()
    return {row["fingerprint"]: row for row in rows}


def _newest_firing(run: Run, found: Iterable[OpenFinding]) -> dict[str, FiringFinding]:
    wanted = [s for s in found if s.open_since is not None and s.last_firing_hour is not None]
    rows = run.connection.execute(
        sa.text("""
            select e.* from detect.evaluation as e
            inner join unnest(cast(:fingerprints as text[]), cast(:hours as timestamptz[])) as w (fingerprint, hour)
              on e.fingerprint = w.fingerprint and e.hour = w.hour"""),
        {"fingerprints": [s.fingerprint for s in wanted], "hours": [s.last_firing_hour for s in wanted]},
    ).mappings()
    return {row["fingerprint"]: FiringFinding(row["hour"], Finding.from_row(dict(row))) for row in rows}


def _resource_columns(firing: FiringFinding) -> dict[str, Any]:
    return {"resource": firing.finding.resource.key, "owner": firing.finding.resource.owner}


def _delivered_reasons(connection: sa.Connection, ticket_ids: list[int]) -> dict[int, set[str]]:
    """By ticket id: the reasons of its finding that were already notified, in its own issue or in its incident's."""
    rows = connection.execute(
        sa.text("""
            select t.ticket_id, array_agg(distinct c.reason) from tickets.ticket as t
            inner join tickets.change as c
              on c.ticket_id in (t.ticket_id, t.summary_ticket_id) and c.finding ->> 'fingerprint' = t.fingerprint
            where t.ticket_id = any(:ids) and c.reason is not null
            group by t.ticket_id"""),
        {"ids": ticket_ids},
    )
    return {ticket_id: set(reasons) for ticket_id, reasons in rows}


def _order(run: Run, finding: OpenFinding) -> tuple[Any, ...]:
    """Sort key: deeper layers first, so that downstream effects can name their ticket."""
    return LAYERS.index(run.detectors[finding.detector].resource_kind), finding.open_since, finding.fingerprint
