"""Tickets, listed or found by the start of a fingerprint."""

from __future__ import annotations

import re

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import clean
from streamwarden.tickets.plan import STORM


def listed(connection: sa.Connection) -> list[sa.RowMapping]:
    """Open and muted tickets, the newest of each finding; by severity, then the oldest first."""
    return list(connection.execute(_LISTED, {"storm": STORM}).mappings())


def find(connection: sa.Connection, start: str) -> sa.RowMapping:
    """The newest ticket of a finding, by the start of its fingerprint.

    Raises:
        StreamwardenError: no or several findings match; one line.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{1,64}", start):
        raise StreamwardenError(
            f"'{start}': not a fingerprint (hexadecimal digits); `streamwarden tickets list` shows fingerprints."
        )
    found = connection.execute(_FOUND, {"start": start.lower(), "storm": STORM}).mappings().all()
    if not found:
        raise StreamwardenError(
            f"{start}: no ticket has this fingerprint. `streamwarden tickets list` shows fingerprints."
        )
    if len(found) > 1:
        titles = "; ".join(f"{row['fingerprint'][:12]} {clean(row['title'])}" for row in found[:3])
        raise StreamwardenError(f"{start}: {len(found)} fingerprints begin with it: {titles}. Give more digits.")
    return found[0]


_NEWEST = """
    select distinct on (t.fingerprint) t.*, filed.external_url
    from tickets.ticket as t
    left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
    where t.detector <> :storm
    order by t.fingerprint, t.ticket_id desc"""
_LISTED = sa.text(f"""
    select * from ({_NEWEST}) as newest
    where state = 'open' or muted is not null
    order by
      muted is not null, public.severity_rank(severity),
      (select count(*) from tickets.ticket as m where m.summary_ticket_id = newest.ticket_id and m.state = 'open') desc,
      public.reach_rank(resource), opened_hour""")  # noqa: S608
_FOUND = sa.text(f"""
    select * from ({_NEWEST}) as newest
    where starts_with(fingerprint, :start)
    order by fingerprint""")  # noqa: S608
