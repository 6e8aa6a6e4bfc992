"""Turns evaluations into ticket changes, all in one transaction: what is to be told is committed before it is told.

What should be open follows from the stored evaluations alone (history.py), so running an hour twice or backfilling an
old one changes nothing that newer hours decided. The rules: a finding is a detector and a resource, never a value; it
opens and closes after so many hours with data, and missing data does neither; it comes back as the same ticket for a
while, then as a new one that names the old; what is below the least severity opens none; what people muted stays
quiet, but for a rise in severity; beyond a cap all new findings of a run share one ticket, except each detector's first
critical one; and people hear of it again only when something that matters changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from streamwarden.base.config import Config
from streamwarden.detectors import Detector, Finding
from streamwarden.detectors.episodes import Standing, standings
from streamwarden.detectors.things import KINDS
from streamwarden.store.queries import ask
from streamwarden.tickets import render
from streamwarden.tickets.routes import assign
from streamwarden.words.readable import SEVERITIES, clean, moment

STORM = "storm"  # `detector` of a summary ticket
Action = Literal["create", "comment", "close", "reopen"]


@dataclass
class Plan:
    """What a reconcile decided; numbers of tickets."""

    opened: int = 0
    reopened: int = 0
    commented: int = 0
    closed: int = 0
    in_storm: int = 0
    still_open: int = 0

    def __str__(self) -> str:
        storm = f" ({self.in_storm} of them in a summary)" if self.in_storm else ""
        return (
            f"{self.opened} opened{storm}, {self.reopened} reopened, {self.commented} commented,"
            f" {self.closed} closed, {self.still_open} open"
        )


@dataclass(frozen=True)
class Alarm:
    """A finding in the hour that it was in alarm last."""

    hour: datetime
    finding: Finding

    @property
    def severity(self) -> str:
        return self.finding.severity or "info"


@dataclass
class _Run:
    """What all steps of one reconcile share."""

    connection: sa.Connection
    config: Config
    detectors: Mapping[str, Detector]
    now: datetime
    newest: datetime
    plan: Plan = field(default_factory=Plan)
    alarms: dict[str, Alarm] = field(default_factory=dict)
    """Newest alarm of every finding that should be open, by fingerprint."""
    risen: dict[int, list[str]] = field(default_factory=dict)
    """Findings of a storm that got worse, by the storm's ticket: they are told in one comment."""


def reconcile(
    engine: sa.Engine, config: Config, detectors: Mapping[str, Detector], now: datetime | None = None
) -> Plan:
    """Brings tickets in line with the evaluations; trackers are told by `deliver`."""
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(7063)"))
        newest = connection.execute(
            sa.text("select max(hour) from detect.judgement where status = 'judged' and detector = any(:detectors)"),
            {"detectors": list(detectors)},
        ).scalar()
        if newest is None:
            return Plan()
        run = _Run(connection, config, detectors, now or datetime.now(UTC), newest)
        _end_snoozes(run)
        _apply(run, standings(connection, detectors, newest))
        assign(connection, config, detectors)
        run.plan.still_open = connection.execute(
            sa.text("select count(*) from tickets.ticket where state = 'open' and detector <> :storm"), {"storm": STORM}
        ).scalar_one()
        return run.plan


def _apply(run: _Run, found: Sequence[Standing]) -> None:
    tickets = _newest_tickets(run.connection, [standing.fingerprint for standing in found])
    run.alarms = _newest_alarms(run, found)
    fresh: list[Standing] = []
    for standing in found:
        ticket = tickets.get(standing.fingerprint)
        if standing.open_since is not None:
            if ticket is not None and ticket["state"] == "open":
                _keep(run, standing, ticket)
            elif _deserves(run, run.alarms[standing.fingerprint]) and (
                ticket is None or not _is_held_back(run, standing, ticket)
            ):
                if ticket is not None and _may_reopen(run, standing, ticket):
                    _reopen(run, standing, ticket)
                else:
                    fresh.append(standing)
        elif ticket is not None and ticket["state"] == "open" and (closing := standing.closes(ticket["opened_hour"])):
            _close(run, standing, ticket, *closing)
    opened = _open(run, fresh, tickets)
    _tell(run, opened)
    _link(run, {ticket_id for _, ticket_id in opened})
    _settle_storms(run)


def _deserves(run: _Run, alarm: Alarm) -> bool:
    """Whether it is severe enough for a ticket."""
    return _rank(alarm.severity) <= _rank(run.config.tickets.least_severity)


def _is_held_back(run: _Run, standing: Standing, ticket: sa.RowMapping) -> bool:
    """Whether people asked not to hear of it again, now."""
    if ticket["muted"] == "wont_fix":
        return True
    alarm = run.alarms.get(standing.fingerprint)
    if ticket["muted"] == "snoozed" and ticket["muted_until"] > run.now:
        return alarm is None or not _rises(ticket["severity"], alarm.severity)
    # Closed by a person: the hours until then speak of the time before.
    return ticket["close_reason"] == "person" and (standing.last_alarm_hour or run.newest) <= ticket["closed_hour"]


def _may_reopen(run: _Run, standing: Standing, ticket: sa.RowMapping) -> bool:
    assert standing.open_since is not None  # noqa: S101  the caller's condition
    window = timedelta(hours=run.config.tickets.reopen_within_hours)
    # A storm's finding has no ticket of its own in the tracker to reopen.
    return ticket["summary_ticket_id"] is None and standing.open_since - ticket["closed_hour"] <= window


def _keep(run: _Run, standing: Standing, ticket: sa.RowMapping) -> None:
    """An open ticket stays open; people hear of it only when something that matters changed."""
    alarm = run.alarms.get(standing.fingerprint)
    if alarm is None:
        return  # its newest alarm is older than the window: nothing new is known
    if not _deserves(run, alarm):
        update_ticket(run.connection, ticket["ticket_id"], last_alarm_hour=alarm.hour)
        return  # it would open none today, but closes only when it is over
    values: dict[str, Any] = {"last_alarm_hour": alarm.hour, "severity": alarm.severity, **_of_the_thing(alarm)}
    values["opened_hour"] = standing.open_since
    risen = _rises(ticket["severity"], alarm.severity)
    if ticket["muted"] == "snoozed" and risen:
        values |= {"muted": None, "muted_until": None}
    update_ticket(run.connection, ticket["ticket_id"], **values)
    if ticket["muted"] == "snoozed" and not risen:
        return
    if ticket["summary_ticket_id"] is not None:
        if risen:
            line = f"{clean(alarm.finding.resource)} is {alarm.severity} now: {alarm.finding.reason}"
            run.risen.setdefault(ticket["summary_ticket_id"], []).append(line)
        return
    if ticket["severity"] != alarm.severity:
        note = f"Severity changed from {ticket['severity']} to {alarm.severity}."
    elif alarm.finding.because not in _told(run.connection, ticket["ticket_id"]):
        note = "It is something else now:"
    else:
        return
    plan_change(run.connection, ticket["ticket_id"], "comment", alarm.hour, note, alarm, standing.open_since)
    run.plan.commented += 1


def _reopen(run: _Run, standing: Standing, ticket: sa.RowMapping) -> None:
    alarm = run.alarms[standing.fingerprint]
    update_ticket(
        run.connection, ticket["ticket_id"],
        state="open", muted=None, muted_until=None, closed_hour=None, close_reason=None, severity=alarm.severity,
        opened_hour=standing.open_since, last_alarm_hour=alarm.hour, **_of_the_thing(alarm),
    )  # fmt: skip
    plan_change(run.connection, ticket["ticket_id"], "reopen", alarm.hour, "It is back.", alarm, standing.open_since)
    run.plan.reopened += 1


def _close(run: _Run, standing: Standing, ticket: sa.RowMapping, hour: datetime, reason: str) -> None:
    update_ticket(run.connection, ticket["ticket_id"], state="closed", closed_hour=hour, close_reason=reason)
    run.plan.closed += 1
    if ticket["summary_ticket_id"] is not None:
        return
    said = run.connection.execute(
        sa.text("select reason from detect.evaluation where fingerprint = :f and hour = :hour and status = 'ok'"),
        {"f": standing.fingerprint, "hour": hour},
    ).scalar()
    body = render.closing(run.detectors[standing.detector], ticket["resource"], hour, reason, said)
    plan_change(run.connection, ticket["ticket_id"], "close", hour, body)


def _open(run: _Run, fresh: Sequence[Standing], tickets: Mapping[str, sa.RowMapping]) -> list[tuple[str, int]]:
    """Adds rows for new findings, causes first, and one summary for what is beyond the cap."""
    alone, storm = _part(run, fresh)
    summary_id = _summary(run, storm) if storm else None
    opened = []
    for standing in sorted(alone, key=lambda s: _order(run, s)):
        opened.append((standing.fingerprint, _insert(run, standing, tickets.get(standing.fingerprint), None)))
    for standing in storm:
        _insert(run, standing, tickets.get(standing.fingerprint), summary_id)
    run.plan.opened += len(fresh)
    run.plan.in_storm += len(storm)
    return opened


def _part(run: _Run, fresh: Sequence[Standing]) -> tuple[list[Standing], list[Standing]]:
    """Which new findings get a ticket of their own; the first critical one of each detector always does."""
    by_weight = sorted(fresh, key=lambda s: (_rank(run.alarms[s.fingerprint].severity), *_order(run, s)))
    firsts: dict[str, Standing] = {}
    for standing in by_weight:
        if run.alarms[standing.fingerprint].severity == "critical":
            firsts.setdefault(standing.detector, standing)
    others = [standing for standing in by_weight if firsts.get(standing.detector) is not standing]
    room = max(run.config.tickets.max_new_per_run - len(firsts), 0)
    return [*firsts.values(), *others[:room]], others[room:]


def _insert(run: _Run, standing: Standing, previous: sa.RowMapping | None, summary_id: int | None) -> int:
    alarm = run.alarms[standing.fingerprint]
    return run.connection.execute(
        _TICKET,
        {
            "fingerprint": standing.fingerprint,
            "detector": standing.detector,
            "resource": alarm.finding.resource,
            "identity": dict(alarm.finding.about.columns),
            "severity": alarm.severity,
            "title": render.title(run.detectors[standing.detector].title, alarm.finding.resource),
            "opened_hour": standing.open_since,
            "last_alarm_hour": alarm.hour,
            "previous": previous["ticket_id"] if previous is not None else None,
            "summary": summary_id,
            **_of_the_thing(alarm),
        },
    ).scalar_one()


def _tell(run: _Run, opened: Sequence[tuple[str, int]]) -> None:
    """Plans the new tickets, causes first."""
    for fingerprint, ticket_id in opened:
        alarm = run.alarms[fingerprint]
        since = run.connection.execute(
            sa.text("select opened_hour from tickets.ticket where ticket_id = :id"), {"id": ticket_id}
        ).scalar_one()
        plan_change(run.connection, ticket_id, "create", alarm.hour, None, alarm, since)


def _link(run: _Run, opened: set[int]) -> None:
    """Notes each open ticket's possible cause; new tickets name it anyway, for the others it is worth a comment."""
    links = ask(run.connection, "tickets/possible_causes", hour=run.newest)
    for link in links:
        if link["known_cause_id"] == link["cause_id"]:
            continue
        update_ticket(run.connection, link["ticket_id"], cause_ticket_id=link["cause_id"])
        if link["ticket_id"] in opened or link["summary_ticket_id"] is not None or link["muted"] is not None:
            continue
        url = link["cause_url"] or render.finding_url(run.config, link["cause_fingerprint"])
        note = f"A possible cause is known now: {clean(link['cause_title'])}\n\n{url}"
        plan_change(run.connection, link["ticket_id"], "comment", run.newest, note)
        run.plan.commented += 1


def _summary(run: _Run, storm: Sequence[Standing]) -> int:
    """The ticket that stands for all findings beyond the cap; an hour has one."""
    fingerprint = hashlib.sha256(json.dumps([STORM, run.newest.isoformat()]).encode()).hexdigest()
    alarms = [run.alarms[standing.fingerprint] for standing in storm]
    severity = min((alarm.severity for alarm in alarms), key=_rank)
    body = render.storm(run.config, run.detectors, [alarm.finding for alarm in alarms], run.newest)
    open_one = run.connection.execute(
        sa.text("select ticket_id from tickets.ticket where fingerprint = :f and state = 'open'"), {"f": fingerprint}
    ).scalar()
    if open_one is not None:
        plan_change(run.connection, open_one, "comment", run.newest, body)
        return int(open_one)
    ticket_id = run.connection.execute(
        _TICKET,
        {
            "fingerprint": fingerprint,
            "detector": STORM,
            "resource": f"hour {moment(run.newest)}",
            "identity": {"hour": run.newest.isoformat()},
            "severity": severity,
            "title": f"Storm: {len(storm)} more findings in the hour {moment(run.newest)}",
            "opened_hour": run.newest,
            "last_alarm_hour": run.newest,
            "previous": None,
            "summary": None,
            "thing": None,
            "owner": None,
        },
    ).scalar_one()
    plan_change(run.connection, ticket_id, "create", run.newest, body)
    return int(ticket_id)


def _settle_storms(run: _Run) -> None:
    """Tells of what got worse in a storm, and closes storms whose findings are all over."""
    for summary_id, lines in run.risen.items():
        more = f"\n- and {len(lines) - 50} more" if len(lines) > 50 else ""
        note = "\n".join(f"- {line}" for line in lines[:50]) + more
        plan_change(run.connection, summary_id, "comment", run.newest, note)
        run.plan.commented += 1
    calm = run.connection.execute(
        sa.text("""
            select s.ticket_id, max(m.closed_hour) as closed_hour, count(*) as members
            from tickets.ticket as s
            inner join tickets.ticket as m on m.summary_ticket_id = s.ticket_id
            where s.state = 'open' and s.detector = :storm
            group by s.ticket_id having bool_and(m.state = 'closed')"""),
        {"storm": STORM},
    ).all()
    for ticket_id, hour, members in calm:
        update_ticket(run.connection, ticket_id, state="closed", closed_hour=hour, close_reason="healthy")
        plan_change(run.connection, ticket_id, "close", hour, f"All {members} findings of this storm are over.")


def _end_snoozes(run: _Run) -> None:
    ended = run.connection.execute(
        sa.text(
            "update tickets.ticket set muted = null, muted_until = null"
            " where muted = 'snoozed' and muted_until <= :now returning ticket_id, state"
        ),
        {"now": run.now},
    ).all()
    for ticket_id, state in ended:
        if state == "open":
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


def _newest_alarms(run: _Run, found: Iterable[Standing]) -> dict[str, Alarm]:
    wanted = [s for s in found if s.open_since is not None and s.last_alarm_hour is not None]
    rows = run.connection.execute(
        sa.text("""
            select e.* from detect.evaluation as e
            inner join unnest(cast(:fingerprints as text[]), cast(:hours as timestamptz[])) as w (fingerprint, hour)
              on e.fingerprint = w.fingerprint and e.hour = w.hour"""),
        {"fingerprints": [s.fingerprint for s in wanted], "hours": [s.last_alarm_hour for s in wanted]},
    ).mappings()
    return {row["fingerprint"]: Alarm(row["hour"], Finding.from_row(dict(row))) for row in rows}


def _of_the_thing(alarm: Alarm) -> dict[str, Any]:
    return {"thing": alarm.finding.about.key, "owner": alarm.finding.about.owner}


def _told(connection: sa.Connection, ticket_id: int) -> set[str]:
    """Every because that the ticket has told."""
    rows = connection.execute(
        sa.text("select because from tickets.change where ticket_id = :id and because is not null"), {"id": ticket_id}
    )
    return set(rows.scalars())


def plan_change(
    connection: sa.Connection, ticket_id: int, action: Action, hour: datetime, note: str | None,
    alarm: Alarm | None = None, since: datetime | None = None, tracker: str | None = None,
) -> None:  # fmt: skip
    """Notes what one tracker or all that have the ticket are to be told: a text, a finding as it is now, or both."""
    finding = alarm.finding if alarm else None
    connection.execute(
        _CHANGE,
        {
            "ticket_id": ticket_id,
            "action": action,
            "hour": hour,
            "body": note,
            "finding": finding.to_row() if finding else None,
            "because": finding.because if finding else None,
            "since": since,
            "tracker": tracker,
        },
    )


def update_ticket(connection: sa.Connection, ticket_id: int, **values: Any) -> None:
    """Sets columns of a ticket."""
    table = sa.table("ticket", *(sa.column(name) for name in ("ticket_id", "updated_at", *values)),
                     schema="tickets")  # fmt: skip
    connection.execute(
        sa.update(table).where(table.c.ticket_id == ticket_id).values(**values, updated_at=sa.func.now())
    )


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def _rises(before: str, after: str) -> bool:
    return _rank(after) < _rank(before)


def _order(run: _Run, standing: Standing) -> tuple[Any, ...]:
    """The deeper layer first, so that what may follow from it can name its ticket."""
    return LAYERS.index(run.detectors[standing.detector].about), standing.open_since, standing.fingerprint


LAYERS = list(KINDS)
_CHANGE = sa.text("""
    insert into tickets.change (ticket_id, action, hour, body, finding, because, since, tracker)
    select ticket_id, :action, :hour, :body, :finding, :because, :since, :tracker
    from (select ticket_id from tickets.ticket where ticket_id = :ticket_id for update) as locked""").bindparams(
    sa.bindparam("finding", type_=JSONB(none_as_null=True))
)
_TICKET = sa.text("""
    insert into tickets.ticket
      (fingerprint, detector, resource, identity, severity, title, state, opened_hour, last_alarm_hour,
       previous_ticket_id, summary_ticket_id, thing, owner)
    values
      (:fingerprint, :detector, :resource, :identity, :severity, :title, 'open', :opened_hour, :last_alarm_hour,
       :previous, :summary, :thing, :owner)
    returning ticket_id""").bindparams(
    sa.bindparam("identity", type_=JSONB()),
)
