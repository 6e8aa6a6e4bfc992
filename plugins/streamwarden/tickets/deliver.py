"""Delivers planned changes to the trackers. A crash at any point neither loses a change nor delivers it twice.

Before a request that must not be repeated, its time is stored (`unsure_at`); a clear response removes it. While it is
set, the tracker is queried first; a change that it does not have is sent again only after its time to settle.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR
from streamwarden.base.url_markers import is_pooled
from streamwarden.base.warehouse import address_of_engine
from streamwarden.detectors import Detector, Finding
from streamwarden.rendering.readable import clean, moment
from streamwarden.tickets import render
from streamwarden.tickets.listen import listen
from streamwarden.tickets.plan import STORM
from streamwarden.tickets.reconcile import reconcile
from streamwarden.tickets.routes import file_again
from streamwarden.tickets.sinks import open_sink
from streamwarden.tickets.sinks.contract import (
    Forgetful,
    Issue,
    IssueDraft,
    IssueGone,
    Notification,
    Related,
    Sink,
    TrackerDown,
    Unsure,
    Update,
)

RELATED = 10  # related tickets that a notification names

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The current time (UTC)."""
    return datetime.now(UTC)


@dataclass
class Delivery:
    """Result of a delivery: changes delivered, and errors."""

    done: int = 0
    failed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        failed = f", {len(self.failed)} failed: {self.failed[0]}" if self.failed else ""
        return f"{self.done} delivered to trackers{failed}"


def reconcile_and_deliver(engine: sa.Engine, config: Config, detectors: Mapping[str, Detector]) -> str:
    """The tickets step of an hour: reads responses from the trackers, plans changes, and delivers them.

    Returns:
        One line for the log.

    Raises:
        StreamwardenError: a change could not be delivered; the next run delivers it.
    """
    total, sinks = Delivery(), []
    for name, settings in config.tickets.all_trackers.items():
        try:
            sink = open_sink(name, settings)
            if sink.remembers:
                listen(engine, sink)
            sinks.append(sink)
        except StreamwardenError as error:
            total.failed.append(str(error))  # the plan is still made: it waits in the warehouse
    plan = reconcile(engine, config, detectors)
    for sink in sinks:
        delivery = deliver(engine, sink, config)
        total.done += delivery.done
        total.failed += delivery.failed
        if (failure := refresh(engine, sink, config)) is not None:
            total.failed.append(failure)
    if total.failed:
        raise StreamwardenError(f"tickets: {plan}; {total}. The next run delivers what is left.")
    return f"{plan}; {total}"


def deliver(engine: sa.Engine, sink: Sink, config: Config, clock: Callable[[], datetime] = utc_now) -> Delivery:
    """Delivers all pending changes of a tracker in order, one process at a time."""
    run = _Run(engine, sink, config, clock)
    with _alone(engine):
        while run.deliver_all():
            pass
    return run.delivery


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[None]:
    """Holds the lock of deliveries. Its session is in no transaction, which would be idle while trackers respond.

    Only behind a pooler it is, because each transaction may run in another session.
    """
    if is_pooled(address_of_engine(engine)):
        with engine.begin() as lock:
            lock.execute(sa.text("select set_config('idle_in_transaction_session_timeout', '0', true)"))
            lock.execute(sa.text("select pg_advisory_xact_lock(7064)"))
            yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as lock:
        lock.execute(sa.text("select pg_advisory_lock(7064)"))
        try:
            yield
        finally:
            lock.execute(sa.text("select pg_advisory_unlock(7064)"))


def refresh(engine: sa.Engine, sink: Sink, config: Config, clock: Callable[[], datetime] = utc_now) -> str | None:
    """Sends open tickets again to a tracker that would end them otherwise.

    Left out are tickets with pending changes, muted ones, and those that another ticket represents.

    Returns:
        Why it failed, one line; None: it did not.
    """
    if not isinstance(sink, Forgetful):
        return None
    with engine.connect() as connection:
        rows = connection.execute(_OPEN, {"tracker": sink.name}).mappings().all()
    try:
        sink.refresh([_as_it_is(row, config, clock()) for row in rows])
    except StreamwardenError as error:
        return f"{sink.name}: {error}"
    return None


def _as_it_is(row: sa.RowMapping, config: Config, now: datetime) -> Update:
    """A ticket with its newest firing evaluation, if it has one."""
    finding = Finding.from_row(row["evaluation"]) if row["evaluation"] else None
    hour = row["hour"] or row["last_firing_hour"]
    notification = Notification(
        note="", hour=hour, finding=finding, since=row["opened_hour"], until=max(hour, min(hour + HOUR, now)),
        **_links(config, row),
    )  # fmt: skip
    marker = f"{row['fingerprint'][:32]}.{hour:%Y%m%dT%H}.refresh"
    return Update(
        row["external_key"], row["fingerprint"], marker, "comment", row["shown_title"], row["shown_severity"],
        notification, **_subject(row),
    )  # fmt: skip


def _subject(ticket: sa.RowMapping) -> dict[str, Any]:
    return {name: ticket[name] for name in ("detector", "resource_name", "resource", "owner")}


def _links(config: Config, ticket: sa.RowMapping) -> dict[str, Any]:
    if ticket["detector"] == STORM:
        return {}
    return {
        "url": render.finding_url(config, ticket["fingerprint"]),
        "runbook_url": render.runbook_url(config, ticket["detector"]),
    }


@dataclass
class _Run:
    engine: sa.Engine
    sink: Sink
    config: Config
    clock: Callable[[], datetime]
    delivery: Delivery = field(default_factory=Delivery)
    stuck: set[int] = field(default_factory=set)
    is_sent: bool = False
    """Whether the current change was sent in this run."""

    def deliver_all(self) -> bool:
        """Delivers all pending changes. Returns whether to call it again: a deleted ticket adds changes."""
        with self.engine.connect() as connection:
            changes = connection.execute(_TO_DO, {"tracker": self.sink.name}).mappings().all()
        changes = [change for change in changes if change["ticket_id"] not in self.stuck]
        for change in changes:
            if change["ticket_id"] in self.stuck:
                continue  # changes of a ticket are delivered in order
            try:
                self._deliver(change)
                self.delivery.done += 1
            except StreamwardenError as error:
                self.stuck.add(change["ticket_id"])
                self._failed(change, error)
                if isinstance(error, TrackerDown):
                    return False
        return bool(changes)

    def _failed(self, change: sa.RowMapping, error: StreamwardenError) -> None:
        self.delivery.failed.append(f"{self.sink.name}: {error}")
        # An earlier request without a response stays unsure, whatever error a query raises now.
        sure = {"unsure_at": None} if self.is_sent and not isinstance(error, Unsure) else {}
        with self.engine.begin() as connection:
            self._note(connection, change["ticket_id"], error=str(error), **sure)

    def _deliver(self, change: sa.RowMapping) -> None:
        self.is_sent = False
        with self.engine.begin() as connection:
            values = {"id": change["ticket_id"], "tracker": self.sink.name, "now": self.clock()}
            ticket = connection.execute(_ATTEMPT, values).mappings().one()
        issue, notification = None, self._notification(change, ticket)
        if ticket["external_key"] is not None:
            if change["action"] != "create":
                self._update(change, ticket, notification)
        elif change["action"] == "create" or ticket["state"] == "open":
            issue = self._file(change, ticket, notification)
        with self.engine.begin() as connection:
            key = {"external_key": issue.key, "external_url": issue.url} if issue else {}
            self._note(
                connection, ticket["ticket_id"],
                delivered_change_id=change["change_id"], attempts=0, attempted_at=self.clock(), error=None,
                unsure_at=None, **key,
            )  # fmt: skip

    def _file(self, change: sa.RowMapping, ticket: sa.RowMapping, notification: Notification) -> Issue:
        if filed := self._filed_before(ticket):
            return filed
        plot = _plot(self.engine, change, ticket) if self.sink.takes_files and ticket["detector"] != STORM else None
        issue_draft = IssueDraft(
            fingerprint=ticket["fingerprint"], detector=ticket["detector"], resource_name=ticket["resource_name"],
            title=ticket["shown_title"], severity=ticket["shown_severity"], notification=notification, plot_png=plot,
            resource=ticket["resource"], owner=ticket["owner"],
        )  # fmt: skip
        self._before_sending(ticket)
        return self.sink.create(issue_draft)

    def _filed_before(self, ticket: sa.RowMapping) -> Issue | None:
        """The tracker's open ticket of this finding that no row knows: it was filed just before a crash."""
        issue = self.sink.find(ticket["fingerprint"])
        if issue is None or issue.state in ("closed", "wont_fix"):
            return None
        values = {"tracker": self.sink.name, "key": issue.key, "id": ticket["ticket_id"]}
        with self.engine.connect() as connection:
            return None if connection.execute(_KNOWN, values).scalar() else issue

    def _update(self, change: sa.RowMapping, ticket: sa.RowMapping, notification: Notification) -> None:
        """Comments, closes, or reopens. An open ticket that was deleted in the tracker is filed again."""
        update = Update(
            key=ticket["external_key"],
            fingerprint=ticket["fingerprint"],
            marker=f"{ticket['fingerprint'][:32]}.{change['hour']:%Y%m%dT%H}.{change['action']}.{change['change_id']}",
            action=change["action"],
            title=ticket["shown_title"],
            severity=ticket["shown_severity"],
            notification=notification,
            is_wont_fix=ticket["close_reason"] == "wont_fix",
            is_open=ticket["state"] == "open",
            is_start_new=ticket["delivered_action"] in ("create", "reopen") and self._is_new(ticket["sent_at"]),
            answer=change["response"],
            is_muted=ticket["muted"] is not None,
            **_subject(ticket),
        )
        try:
            if ticket["unsure_at"] is not None and self.sink.has(update):
                return
            self._before_sending(ticket)
            self.sink.update(update)
        except IssueGone:
            with self.engine.begin() as connection:
                file_again(connection, ticket["ticket_id"], self.sink.name)

    def _is_new(self, sent: datetime | None) -> bool:
        return sent is not None and self.clock() < sent + self.sink.settles

    def _before_sending(self, ticket: sa.RowMapping) -> None:
        """Stores that a request is about to be sent; refuses while the last one may still take effect."""
        now, before = self.clock(), ticket["unsure_at"]
        if before is not None and before > now:  # stored by a clock that was ahead: it was sent by now at the latest
            before = now
            with self.engine.begin() as connection:
                self._note(connection, ticket["ticket_id"], unsure_at=before)
        if before is not None and now < before + self.sink.settles:
            raise StreamwardenError(
                f"{clean(ticket['title'])}: the request of {moment(before)} got no clear response; a run after"
                f" {moment(before + self.sink.settles)} repeats it."
            )
        with self.engine.begin() as connection:
            self._note(connection, ticket["ticket_id"], unsure_at=now)
        self.is_sent = True

    def _note(self, connection: sa.Connection, ticket_id: int, **values: object) -> None:
        table = sa.table("issue", *(sa.column(name) for name in ("ticket_id", "tracker", *values)), schema="tickets")
        this = (table.c.ticket_id == ticket_id) & (table.c.tracker == self.sink.name)
        connection.execute(sa.update(table).where(this).values(**values))

    def _notification(self, change: sa.RowMapping, ticket: sa.RowMapping) -> Notification:
        related: tuple[Related, ...] = ()
        if change["action"] == "create":
            with self.engine.connect() as connection:
                related = _related(connection, self.config, ticket)
        finding = Finding.from_row(change["finding"]) if change["finding"] else None
        incident = change["incident"] or {}
        return Notification(
            note=change["body"] or "",
            hour=change["hour"],
            finding=finding,
            since=finding.since if finding else None,
            first_hour=(change["since"] or ticket["opened_hour"]) if finding else None,
            until=max(change["hour"], min(change["hour"] + HOUR, self.clock())),
            **_links(self.config, ticket),
            related=related,
            follows=tuple(incident.get("follows", ())),
            refused=tuple(incident.get("refused", ())),
            before=tuple(incident.get("before", ())),
            unexplained=tuple(incident.get("unexplained", ())),
        )


def _plot(engine: sa.Engine, change: sa.RowMapping, ticket: sa.RowMapping) -> bytes | None:
    from streamwarden.charts.draw import plot_finding  # imports altair

    try:
        return plot_finding(engine, ticket["detector"], change["hour"], ticket["identity"], "png")
    except Exception as error:  # a ticket without its picture is better than none
        log.warning("no plot for ticket %s: %s", ticket["ticket_id"], error)
        return None


def _related(connection: sa.Connection, config: Config, ticket: sa.RowMapping) -> tuple[Related, ...]:
    """The ticket's cause, possible downstream effects, other tickets of the resource, and the earlier ticket.

    Findings of its own incident are part of the notification already.
    """
    rows = connection.execute(_RELATED, {"id": ticket["ticket_id"], "limit": RELATED}).mappings()
    return tuple(
        Related(
            row["relation"], row["title"], row["state"],
            row["external_url"] or render.finding_url(config, row["fingerprint"]),
        )
        for row in rows
    )  # fmt: skip


_TO_DO = sa.text("""
    select c.* from tickets.change as c
    inner join tickets.issue as i on c.ticket_id = i.ticket_id
    where i.tracker = :tracker and c.change_id > i.delivered_change_id and coalesce(c.tracker, i.tracker) = i.tracker
    order by c.change_id""")
_ATTEMPT = sa.text("""
    update tickets.issue as i set attempts = i.attempts + 1, attempted_at = :now
    from tickets.ticket as t, tickets.issue as before
    left join tickets.change as delivered on before.delivered_change_id = delivered.change_id
    where
      i.ticket_id = :id and i.tracker = :tracker and t.ticket_id = i.ticket_id
      and before.ticket_id = i.ticket_id and before.tracker = i.tracker
    returning
      t.*, coalesce(t.issue_title, t.title) as shown_title, coalesce(t.issue_severity, t.severity) as shown_severity,
      i.external_key, i.unsure_at, before.attempted_at as sent_at, delivered.action as delivered_action""")
_KNOWN = sa.text(
    "select 1 from tickets.issue where tracker = :tracker and external_key = :key and ticket_id <> :id limit 1"
)
_OPEN = sa.text("""
    select
      t.*, coalesce(t.issue_title, t.title) as shown_title, coalesce(t.issue_severity, t.severity) as shown_severity,
      i.external_key, e.hour, to_jsonb(e) as evaluation
    from tickets.issue as i
    inner join tickets.ticket as t on i.ticket_id = t.ticket_id
    left join lateral (
      select v.* from detect.evaluation as v
      where v.fingerprint = t.fingerprint and v.status = 'firing' and v.hour >= t.opened_hour
      order by v.hour desc limit 1
    ) as e on true
    where
      i.tracker = :tracker and i.external_key is not null and t.state = 'open' and t.muted is null
      and t.summary_ticket_id is null
      and not exists (
        select from tickets.change as c
        where
          c.ticket_id = i.ticket_id and c.change_id > i.delivered_change_id
          and coalesce(c.tracker, i.tracker) = i.tracker
      )
    order by t.ticket_id""")
_RELATED = sa.text("""
    select fingerprint, title, state, external_url, relation
    from tickets.related(:id) as r
    where not exists (select from tickets.ticket as m where m.ticket_id = r.ticket_id and m.summary_ticket_id = :id)
    order by nearness, ticket_id
    limit :limit""")
