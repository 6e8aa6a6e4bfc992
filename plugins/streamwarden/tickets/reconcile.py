"""Turns evaluations into ticket changes, all in one transaction: what is to be told is committed before it is told.

What should be open follows from the stored evaluations alone (episodes.py). A ticket opens, and is told something new,
by the newest hour that its detector judged: a backfilled older one only lengthens the history of what is open. This is
the rules for one finding: it is a detector and a thing, never a value; it opens and closes after so many hours with
data, and missing data does neither; it comes back as the same ticket for a while, then as a new one that names the old;
what is below the least severity opens none; what people muted stays quiet, but for a rise in severity; and people hear
of it again only when something that matters changed. Which findings share a ticket in the tracker, and what it is told,
is decided by `incidents`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.detectors import Detector, Finding
from streamwarden.detectors.episodes import Standing, standings
from streamwarden.store.queries import ask
from streamwarden.tickets import incidents, render, storms
from streamwarden.tickets.plan import (
    LAYERS,
    RECONCILING,
    STORM,
    Alarm,
    Closing,
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
    """Brings tickets in line with the evaluations; trackers are told by `deliver`."""
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
        _apply(run, standings(connection, detectors, newest))
        assign(connection, config, detectors)
        run.plan.still_open = connection.execute(
            sa.text("select count(*) from tickets.ticket where state = 'open' and detector <> :storm"), {"storm": STORM}
        ).scalar_one()
        return run.plan


def _apply(run: Run, found: Sequence[Standing]) -> None:
    tickets = _newest_tickets(run.connection, [standing.fingerprint for standing in found])
    run.firing = _newest_alarms(run, found)
    told = _told(run.connection, [t["ticket_id"] for t in tickets.values() if t["state"] == "open"])
    fresh: list[Standing] = []
    for standing in found:
        ticket = tickets.get(standing.fingerprint)
        if standing.open_since is not None:
            if ticket is not None and ticket["state"] == "open":
                _keep(run, standing, ticket, told)
            elif (
                standing.is_current
                and _deserves(run, run.firing[standing.fingerprint])
                and (ticket is None or not _is_held_back(run, standing, ticket))
            ):
                if ticket is not None and _may_reopen(run, standing, ticket):
                    _reopen(run, standing, ticket)
                else:
                    fresh.append(standing)
        elif ticket is not None and ticket["state"] == "open" and (closing := standing.closes(ticket["opened_hour"])):
            _close(run, standing, ticket, *closing)
    fresh.sort(key=lambda s: _order(run, s))
    brokers = _brokers_on(run, fresh)
    rows = [_row(run, s, tickets.get(s.fingerprint), brokers) for s in fresh]
    run.fresh.update(insert_tickets(run.connection, rows))
    run.plan.opened += len(fresh)
    incidents.settle(run)
    storms.settle(run)


def _deserves(run: Run, alarm: Alarm) -> bool:
    """Whether it is severe enough for a ticket."""
    return rank(alarm.severity) <= rank(run.config.tickets.least_severity)


def _is_held_back(run: Run, standing: Standing, ticket: sa.RowMapping) -> bool:
    """Whether people asked not to hear of it again, now."""
    if ticket["muted"] == "wont_fix":
        return True
    alarm = run.firing.get(standing.fingerprint)
    if ticket["muted"] == "snoozed" and ticket["muted_until"] > run.now:
        return alarm is None or not rises(ticket["severity"], alarm.severity)
    # Closed by a person: the hours until then speak of the time before.
    return ticket["close_reason"] == "person" and (standing.last_firing_hour or run.newest) <= ticket["closed_hour"]


def _may_reopen(run: Run, standing: Standing, ticket: sa.RowMapping) -> bool:
    assert standing.open_since is not None  # noqa: S101  the caller's condition
    window = timedelta(hours=run.config.tickets.reopen_within_hours)
    # What stood in another's place has none of its own in the tracker to reopen.
    return ticket["summary_ticket_id"] is None and standing.open_since - ticket["closed_hour"] <= window


def _keep(run: Run, standing: Standing, ticket: sa.RowMapping, told: Mapping[int, set[str]]) -> None:
    """An open ticket stays open; people hear of it only when something that matters changed."""
    alarm = run.firing.get(standing.fingerprint)
    if alarm is None:
        return  # its newest alarm is older than the window: nothing new is known
    if not standing.is_current:
        since = {"opened_hour": standing.open_since, "resolved_hour": None}
        update_ticket(run.connection, ticket["ticket_id"], last_firing_hour=alarm.hour, **since)
        return
    if not _deserves(run, alarm):
        update_ticket(run.connection, ticket["ticket_id"], last_firing_hour=alarm.hour)
        return  # it would open none today, but closes only when it is over
    values: dict[str, Any] = {"last_firing_hour": alarm.hour, "severity": alarm.severity, **_of_the_thing(alarm)}
    values |= {"opened_hour": standing.open_since, "resolved_hour": None}
    risen = rises(ticket["severity"], alarm.severity)
    if ticket["muted"] == "snoozed" and risen:
        values |= {"muted": None, "muted_until": None}
    update_ticket(run.connection, ticket["ticket_id"], **values)
    if risen:
        run.risen.add(ticket["ticket_id"])
    if ticket["severity"] != alarm.severity:
        run.was_severity[ticket["ticket_id"]] = ticket["severity"]
    if alarm.finding.reason not in told.get(ticket["ticket_id"], ()):
        run.news[ticket["ticket_id"]] = "It is something else now:"


def _reopen(run: Run, standing: Standing, ticket: sa.RowMapping) -> None:
    alarm = run.firing[standing.fingerprint]
    update_ticket(
        run.connection, ticket["ticket_id"],
        state="open", muted=None, muted_until=None, closed_hour=None, close_reason=None, severity=alarm.severity,
        opened_hour=standing.open_since, last_firing_hour=alarm.hour, resolved_hour=None, root_ticket_id=None,
        issue_title=None, issue_severity=None, cause_ticket_id=None, role="alone", **_of_the_thing(alarm),
    )  # fmt: skip
    run.reopened.add(ticket["ticket_id"])
    run.plan.reopened += 1


def _close(run: Run, standing: Standing, ticket: sa.RowMapping, hour: datetime, message: str) -> None:
    """Its finding is over. A ticket in which others stand may have to stay: `incidents` closes it with the last."""
    said = run.connection.execute(
        sa.text("select message from detect.evaluation where fingerprint = :f and hour = :hour and status = 'ok'"),
        {"f": standing.fingerprint, "hour": hour},
    ).scalar()
    run.over[ticket["ticket_id"]] = Closing(hour, message, said)
    if ticket["summary_ticket_id"] is None:
        update_ticket(run.connection, ticket["ticket_id"], resolved_hour=hour)
    else:
        update_ticket(run.connection, ticket["ticket_id"], state="closed", closed_hour=hour, close_reason=message)
        run.plan.closed += 1


def _brokers_on(run: Run, fresh: Sequence[Standing]) -> dict[str, list[str]]:
    """The brokers that run on new tickets' volumes and instances: people know a disk by its broker."""
    resources = {run.firing[standing.fingerprint].finding.resource.key for standing in fresh}
    found: dict[str, list[str]] = defaultdict(list)
    if asked := sorted(resource for resource in resources if resource.startswith(("volume:", "instance:"))):
        for row in ask(run.connection, "tickets/brokers_on", hour=run.newest, resources=asked):
            found[row["resource"]].append(row["broker"])
    return found


def _row(
    run: Run, standing: Standing, previous: sa.RowMapping | None, brokers: Mapping[str, list[str]]
) -> dict[str, Any]:  # fmt: skip
    alarm = run.firing[standing.fingerprint]
    return {
        "fingerprint": standing.fingerprint,
        "detector": standing.detector,
        "resource_name": alarm.finding.resource_name,
        "identity": dict(alarm.finding.resource.columns),
        "severity": alarm.severity,
        "title": render.title(
            run.detectors[standing.detector].title,
            alarm.finding.resource_name,
            brokers.get(alarm.finding.resource.key, ()),
        ),
        "opened_hour": standing.open_since,
        "last_firing_hour": alarm.hour,
        "previous_ticket_id": previous["ticket_id"] if previous is not None else None,
        **_of_the_thing(alarm),
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
                run.connection, ticket_id, "reopen", run.newest, "The snooze has ended and it is still in alarm."
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


def _newest_alarms(run: Run, found: Iterable[Standing]) -> dict[str, Alarm]:
    wanted = [s for s in found if s.open_since is not None and s.last_firing_hour is not None]
    rows = run.connection.execute(
        sa.text("""
            select e.* from detect.evaluation as e
            inner join unnest(cast(:fingerprints as text[]), cast(:hours as timestamptz[])) as w (fingerprint, hour)
              on e.fingerprint = w.fingerprint and e.hour = w.hour"""),
        {"fingerprints": [s.fingerprint for s in wanted], "hours": [s.last_firing_hour for s in wanted]},
    ).mappings()
    return {row["fingerprint"]: Alarm(row["hour"], Finding.from_row(dict(row))) for row in rows}


def _of_the_thing(alarm: Alarm) -> dict[str, Any]:
    return {"resource": alarm.finding.resource.key, "owner": alarm.finding.resource.owner}


def _told(connection: sa.Connection, ticket_ids: list[int]) -> dict[int, set[str]]:
    """By ticket: every because that was told of its finding, in its own place in the tracker or in that of another."""
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


def _order(run: Run, standing: Standing) -> tuple[Any, ...]:
    """The deeper layer first, so that what may follow from it can name its ticket."""
    return LAYERS.index(run.detectors[standing.detector].resource_kind), standing.open_since, standing.fingerprint
