"""Which trackers a ticket belongs in, by the config's routes."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.detectors import Detector


def assign(connection: sa.Connection, config: Config, detectors: Mapping[str, Detector]) -> None:
    """Stores for each open ticket the trackers that its routes select.

    A ticket with a higher severity or new routes is added to further trackers; no tracker loses it.
    """
    for ticket in connection.execute(_TICKETS).mappings().all():
        detector = detectors.get(ticket["detector"])
        subject = detector.subject if detector else None
        for tracker in config.tickets.trackers_for(ticket["owner"], ticket["severity"], subject):
            if tracker not in ticket["trackers"]:
                _join(connection, ticket["ticket_id"], tracker, is_first=not ticket["trackers"])


def _join(connection: sa.Connection, ticket_id: int, tracker: str, *, is_first: bool) -> None:
    values = {"id": ticket_id, "tracker": tracker}
    connection.execute(_ISSUE, values | {"unknown": not is_first})
    if not is_first:  # this tracker starts with the finding as it is now
        file_again(connection, ticket_id, tracker)


def file_again(connection: sa.Connection, ticket_id: int, tracker: str) -> None:
    """Plans that a tracker files an open ticket again, with the finding as it was delivered last."""
    values = {"id": ticket_id, "tracker": tracker}
    connection.execute(_FORGET, values)
    connection.execute(_CREATE_AGAIN, values)


_TICKETS = sa.text("""
    select
      t.ticket_id, t.detector, t.owner, coalesce(t.issue_severity, t.severity) as severity,
      array_remove(array_agg(i.tracker), null) as trackers
    from tickets.ticket as t
    left join tickets.issue as i on t.ticket_id = i.ticket_id
    where t.summary_ticket_id is null and t.state = 'open'
    group by t.ticket_id
    order by t.ticket_id""")
_ISSUE = sa.text("""
    insert into tickets.issue (ticket_id, tracker, delivered_change_id)
    select :id, :tracker, coalesce(max(change_id) filter (where :unknown), 0)
    from tickets.change where ticket_id = :id""")
_FORGET = sa.text("""
    update tickets.issue set external_key = null, external_url = null, state = null
    where ticket_id = :id and tracker = :tracker""")
_CREATE_AGAIN = sa.text("""
    insert into tickets.change (ticket_id, tracker, action, hour, body, finding, reason, since, incident)
    select
      t.ticket_id, :tracker, 'create', c.hour, case when c.finding is null then c.body end, c.finding, c.reason,
      c.since, c.incident
    from (
      select ticket_id from tickets.ticket
      where ticket_id = :id and state = 'open' and summary_ticket_id is null for update
    ) as t
    inner join tickets.change as c on t.ticket_id = c.ticket_id
    order by c.finding is not null desc, (c.finding is null and c.action = 'create') desc, c.change_id desc
    limit 1""")
