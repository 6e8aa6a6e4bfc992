"""Tells the tracker what reconcile planned. A crash at any point neither loses a change nor tells it twice."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.detectors import Detector, Finding
from streamwarden.tickets import render
from streamwarden.tickets.muting import close_as_wont_fix
from streamwarden.tickets.reconcile import STORM, reconcile
from streamwarden.tickets.sinks.console import ConsoleSink
from streamwarden.tickets.sinks.contract import Draft, Issue, IssueGone, Letter, Related, Sink, TrackerDown, Update
from streamwarden.tickets.sinks.roundup import RoundupSink

SNOOZE = timedelta(days=7)  # how long `deferred` in the tracker keeps a ticket quiet
RELATED = 10  # related tickets named in a text

log = logging.getLogger(__name__)


@dataclass
class Delivery:
    """What the tracker was told."""

    done: int = 0
    failed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.done} told to the tracker" + (
            f", {len(self.failed)} not: {self.failed[0]}" if self.failed else ""
        )


def open_sink(config: Config) -> Sink:
    """The tracker that the config names."""
    return RoundupSink(config.tickets) if config.tickets.sink == "roundup" else ConsoleSink()


def reconcile_and_deliver(engine: sa.Engine, config: Config, detectors: Mapping[str, Detector]) -> str:
    """The whole step of an hour: hear what people decided in the tracker, plan, tell. Returns a line for people.

    Raises:
        StreamwardenError: something couldn't be told; it is kept and told by the next run.
    """
    sink = open_sink(config)
    deaf = None
    try:
        if sink.remembers:
            listen(engine, sink)
    except TrackerDown as error:
        deaf = error  # the plan is made all the same: intent waits in the warehouse
    plan = reconcile(engine, config, detectors)
    delivery = Delivery(failed=[str(deaf)]) if deaf else deliver(engine, sink, config)
    if delivery.failed:
        raise StreamwardenError(f"tickets: {plan}; {delivery}. Nothing is lost: the next run tells it.")
    return f"{plan}; {delivery}"


def listen(engine: sa.Engine, sink: Sink, now: datetime | None = None) -> int:
    """Takes over what people did in the tracker: closed, snoozed, won't fix, deleted. Returns how many changed."""
    now = now or datetime.now(UTC)
    with engine.connect() as connection:
        tickets = connection.execute(_HEARD, {"sink": sink.name}).mappings().all()
    changed = 0
    for ticket in tickets:
        issue = sink.find(ticket["fingerprint"])
        with engine.begin() as connection:
            if issue is None:
                changed += _file_again(connection, ticket)
            elif issue.key == ticket["external_key"]:
                changed += _take_over(connection, ticket, issue, now)
    return changed


def _file_again(connection: sa.Connection, ticket: sa.RowMapping) -> bool:
    """An open ticket that isn't in the tracker any more: what filed it is to be told once more."""
    if ticket["state"] != "open":
        return False
    connection.execute(
        sa.text("update tickets.change set done_at = null where ticket_id = :id and action = 'create'"),
        {"id": ticket["ticket_id"]},
    )
    return True


def _take_over(connection: sa.Connection, ticket: sa.RowMapping, issue: Issue, now: datetime) -> bool:
    ticket_id = ticket["ticket_id"]
    if issue.state == "wont_fix" and ticket["muted"] != "wont_fix":
        close_as_wont_fix(connection, ticket_id, now)
    elif issue.state == "closed" and ticket["state"] == "open":
        connection.execute(
            sa.text(
                "update tickets.ticket set state = 'closed', close_reason = 'person', closed_hour = :hour,"
                " updated_at = now() where ticket_id = :id"
            ),
            {"id": ticket_id, "hour": start_of_hour(now)},
        )
    elif issue.state == "snoozed" and ticket["state"] == "open" and ticket["muted"] is None:
        connection.execute(
            sa.text(
                "update tickets.ticket set muted = 'snoozed', muted_until = :until, updated_at = now()"
                " where ticket_id = :id"
            ),
            {"id": ticket_id, "until": now + SNOOZE},
        )
    elif issue.state == "open" and ticket["muted"] == "wont_fix":
        connection.execute(
            sa.text("update tickets.ticket set muted = null, updated_at = now() where ticket_id = :id"),
            {"id": ticket_id},
        )
    else:
        return False
    return True


def deliver(engine: sa.Engine, sink: Sink, config: Config) -> Delivery:
    """Tells the tracker everything that is still to be told, in order, one deliverer at a time."""
    delivery = Delivery()
    with engine.connect() as lock:
        lock.execute(sa.text("select pg_advisory_lock(7064)"))
        try:
            _deliver_all(engine, sink, config, delivery)
        finally:
            lock.execute(sa.text("select pg_advisory_unlock(7064)"))
    return delivery


def _deliver_all(engine: sa.Engine, sink: Sink, config: Config, delivery: Delivery) -> None:
    with engine.connect() as connection:
        changes = connection.execute(_TO_DO, {"sink": sink.name}).mappings().all()
    stuck: set[int] = set()
    for change in changes:
        if change["ticket_id"] in stuck:
            continue  # its changes are told in order
        with engine.begin() as connection:
            connection.execute(_ATTEMPT, {"id": change["change_id"]})
        try:
            _deliver(engine, sink, config, change)
            delivery.done += 1
        except StreamwardenError as error:
            stuck.add(change["ticket_id"])
            delivery.failed.append(str(error))
            with engine.begin() as connection:
                connection.execute(
                    sa.text("update tickets.change set error = :error where change_id = :id"),
                    {"id": change["change_id"], "error": str(error)},
                )
            if isinstance(error, TrackerDown):
                return


def _deliver(engine: sa.Engine, sink: Sink, config: Config, change: sa.RowMapping) -> None:
    with engine.connect() as connection:
        ticket = connection.execute(
            sa.text("select * from tickets.ticket where ticket_id = :id"), {"id": change["ticket_id"]}
        ).mappings().one()  # fmt: skip
        related = _related(connection, config, ticket) if change["action"] == "create" else ()
    letter = _letter(config, change, ticket, related)
    issue: Issue | None
    if change["action"] == "create":
        issue = _filed_before(engine, sink, ticket) or sink.create(_draft(engine, sink, change, ticket, letter))
    else:
        issue = _told(engine, sink, change, ticket, letter)
    with engine.begin() as connection:
        connection.execute(
            sa.text("update tickets.change set done_at = now(), error = null where change_id = :id"),
            {"id": change["change_id"]},
        )
        if issue is not None:
            connection.execute(
                sa.text(
                    "update tickets.ticket set external_key = :key, external_url = :url, updated_at = now()"
                    " where ticket_id = :id"
                ),
                {"id": ticket["ticket_id"], "key": issue.key, "url": issue.url},
            )


def _letter(config: Config, change: sa.RowMapping, ticket: sa.RowMapping, related: tuple[Related, ...]) -> Letter:
    finding = Finding.from_row(change["finding"]) if change["finding"] else None
    since = change["since"] or ticket["opened_hour"]
    return Letter(
        note=change["body"] or "",
        hour=change["hour"],
        finding=finding,
        since=finding.since or since if finding else None,
        url=render.finding_url(config, ticket["fingerprint"]) if ticket["detector"] != STORM else "",
        related=related,
    )


def _told(engine: sa.Engine, sink: Sink, change: sa.RowMapping, ticket: sa.RowMapping, letter: Letter) -> Issue | None:
    """Comments, closes or reopens. A ticket that is gone from the tracker is filed anew while it stands open."""
    update = Update(
        key=ticket["external_key"],
        fingerprint=ticket["fingerprint"],
        marker=f"{ticket['fingerprint'][:32]}.{change['hour']:%Y%m%dT%H}.{change['action']}.{change['change_id']}",
        action=change["action"],
        severity=ticket["severity"],
        letter=letter,
    )
    try:
        sink.update(update)
    except IssueGone:
        if ticket["state"] == "open":
            return sink.create(_draft(engine, sink, change, ticket, letter))
    return None


def _filed_before(engine: sa.Engine, sink: Sink, ticket: sa.RowMapping) -> Issue | None:
    """The tracker's open ticket for this finding that no row of ours knows: filed just before a crash."""
    issue = sink.find(ticket["fingerprint"])
    if issue is None or issue.state == "closed":
        return None
    with engine.connect() as connection:
        known = connection.execute(
            sa.text("select 1 from tickets.ticket where sink = :sink and external_key = :key and ticket_id <> :id"),
            {"sink": sink.name, "key": issue.key, "id": ticket["ticket_id"]},
        ).scalar()
    return None if known else issue


def _draft(engine: sa.Engine, sink: Sink, change: sa.RowMapping, ticket: sa.RowMapping, letter: Letter) -> Draft:
    return Draft(
        fingerprint=ticket["fingerprint"],
        detector=ticket["detector"],
        resource=ticket["resource"],
        title=ticket["title"],
        severity=ticket["severity"],
        letter=letter,
        plot_png=_plot(engine, change, ticket) if sink.takes_files and ticket["detector"] != STORM else None,
    )


def _plot(engine: sa.Engine, change: sa.RowMapping, ticket: sa.RowMapping) -> bytes | None:
    from streamwarden.plots.draw import plot_finding  # matplotlib: only where there is something to draw

    try:
        return plot_finding(engine, ticket["detector"], change["hour"], ticket["identity"], "png")
    except Exception as error:  # a ticket without its picture is better than none
        log.warning("no plot for ticket %s: %s", ticket["ticket_id"], error)
        return None


def _related(connection: sa.Connection, config: Config, ticket: sa.RowMapping) -> tuple[Related, ...]:
    """The ticket's cause, what may follow from it, others about the same thing, and the ticket it had before."""
    rows = connection.execute(_RELATED, {"id": ticket["ticket_id"], "limit": RELATED}).mappings()
    return tuple(
        Related(
            row["relation"], row["title"], row["state"],
            row["external_url"] or render.finding_url(config, row["fingerprint"]),
        )
        for row in rows
    )  # fmt: skip


_HEARD = sa.text("""
    select * from tickets.ticket as t
    where
      t.sink = :sink and t.external_key is not null and (t.state = 'open' or t.muted = 'wont_fix')
      and not exists (select 1 from tickets.change as c where c.ticket_id = t.ticket_id and c.done_at is null)
    order by t.ticket_id""")
_TO_DO = sa.text("""
    select c.* from tickets.change as c
    inner join tickets.ticket as t on c.ticket_id = t.ticket_id
    where c.done_at is null and t.sink = :sink
    order by c.change_id""")
_ATTEMPT = sa.text("update tickets.change set attempts = attempts + 1, attempted_at = now() where change_id = :id")
_RELATED = sa.text("""
    select fingerprint, title, state, external_url, relation
    from tickets.related(:id)
    order by nearness, ticket_id
    limit :limit""")
