"""Data of the REST API: each request is one read-only transaction with a statement timeout; queries are in sql/api/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from streamwarden.api.cursor import cursor_of, position_of
from streamwarden.api.models import MOST, Text
from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import open_warehouse, read_only
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import responses
from streamwarden.tickets.responses import Response

TIMEOUT = "15s"
Listed = dict[str, Any]
"""`items` and `next_cursor`."""
_FINDING = TypeAdapter(tuple[int, float, Text])
_KEY = TypeAdapter(tuple[Text])
_ID = TypeAdapter(tuple[int])
_PARTITION = TypeAdapter(tuple[Text, int])
_MAX_BIGINT = 2**63


class NotFound(StreamwardenError):
    """The address names something that does not exist."""


@contextmanager
def warehouse() -> Iterator[tuple[sa.Connection, Config]]:
    """A read-only connection with a statement timeout."""
    config = load_config()
    with read_only(config, TIMEOUT) as connection:
        yield connection, config


def resources(filters: Row, limit: int, cursor: str | None) -> Listed:
    """Resources, filtered by kind, cluster, owner, and application."""
    (key,) = position_of(cursor, _KEY) or (None,)
    with warehouse() as (connection, _):
        rows = ask(connection, "api/resources", **filters, key=key, most=limit + 1)
    return _page(rows, limit, lambda row: (row["key"],))


def resource(key: str) -> Row:
    """A resource with its dependencies and open findings."""
    with warehouse() as (connection, _):
        rows = ask(connection, "api/resource", key=key, most=MOST)
        if not rows:
            raise NotFound(f"{key[:80]}: no such resource was seen in the newest 24 hours.")
        nothing = dict.fromkeys(("detector", "status", "severity", "owner", "cluster", "kind"))
        found = _findings(connection, nothing | {"resource": key}, MOST, None)["items"]
        return rows[0] | {"findings": found}


def findings(filters: Row, limit: int, cursor: str | None) -> Listed:
    """Open findings, filtered by detector, status, severity, owner, cluster, and kind."""
    with warehouse() as (connection, _):
        return _findings(connection, filters | {"resource": None}, limit, cursor)


def finding(fingerprint: str) -> Row:
    """The newest evaluation of a finding."""
    with warehouse() as (connection, _):
        rows = ask(connection, "api/finding", fingerprint=fingerprint)
    if not rows:
        raise NotFound(f"{fingerprint[:12]}: no such finding. Findings are deleted after their retention.")
    return _finding(rows[0])


def incidents(filters: Row, limit: int, cursor: str | None) -> Listed:
    """Incidents, filtered by state, severity, and owner."""
    (ticket_id,) = position_of(cursor, _ID) or (None,)
    ticket_id = None if ticket_id is None else min(max(ticket_id, 0), _MAX_BIGINT - 1)
    with warehouse() as (connection, _):
        rows = ask(connection, "api/incidents", **filters, ticket_id=ticket_id, single_id=None, most=limit + 1)
    return _page(rows, limit, lambda row: (row["ticket_id"],))


def incident(fingerprint: str) -> Row:
    """The incident that a finding's newest ticket belongs to, with its findings."""
    with warehouse() as (connection, _):
        members = ask(connection, "api/incident_of", fingerprint=fingerprint)
        if not members:
            raise NotFound(f"{fingerprint[:12]}: this finding has no ticket, and therefore no incident.")
        nothing = dict.fromkeys(("state", "severity", "owner", "ticket_id"))
        (found,) = ask(connection, "api/incidents", **nothing, single_id=members[0]["carrier"], most=1)
    return found | {"members": members}


def groups(cluster: str, limit: int, cursor: str | None) -> Listed:
    """Consumer groups of a cluster."""
    (group_id,) = position_of(cursor, _KEY) or (None,)
    with warehouse() as (connection, config):
        rows = ask(connection, "api/groups", cluster=cluster, group_id=group_id, single_id=None, most=limit + 1)
        if not rows and not cursor and cluster not in {one.name for one in config.kafka}:
            raise NotFound(f"{cluster[:80]}: no such cluster; it is not under `kafka` and has no consumer groups.")
    return _page(rows, limit, lambda row: (row["group_id"],))


def group_lag(cluster: str, group_id: str, limit: int, cursor: str | None) -> Row:
    """A consumer group with its lag by partition."""
    topic, partition = position_of(cursor, _PARTITION) or (None, None)
    partition = None if partition is None else min(max(partition, -1), 2**31 - 1)
    with warehouse() as (connection, _):
        found = ask(connection, "api/groups", cluster=cluster, group_id=None, single_id=group_id, most=1)
        if not found:
            raise NotFound(f"{group_id[:80]}: no such group in cluster {cluster[:80]} in the newest gathered hour.")
        spot = {"hour": found[0]["hour"], "cluster": cluster, "group_id": group_id}
        rows = ask(connection, "api/group_lag", **spot, topic=topic, partition=partition, most=limit + 1)
    for row in rows:
        member = {"client_id": row["client_id"], "host": row["host"]}
        row["owner_member"] = member if row["client_id"] is not None else None
    return found[0] | _page(rows, limit, lambda row: (row["topic"], row["partition"]))


def respond(fingerprint: str, response: Response) -> None:
    """Applies a response.

    Raises:
        NotFound: there is no such finding.
        ResponseError: it cannot be applied to the finding in its state.
    """
    with open_warehouse(load_config()).begin() as connection:
        connection.execute(sa.text("select set_config('statement_timeout', :timeout, true)"), {"timeout": "30s"})
        if not ask(connection, "api/finding", fingerprint=fingerprint):
            raise NotFound(f"{fingerprint[:12]}: no such finding.")
        responses.respond(connection, fingerprint, response)


def _findings(connection: sa.Connection, filters: Row, limit: int, cursor: str | None) -> Listed:
    rank, age, fingerprint = position_of(cursor, _FINDING) or (None, None, None)
    rank = None if rank is None else min(max(rank, -1), 100)
    position = {"rank": rank, "age": age, "fingerprint": fingerprint}
    rows = ask(connection, "api/findings", **filters, **position, most=limit + 1)
    page = _page(rows, limit, lambda row: (row["rank"], row["age"], row["fingerprint"]))
    return page | {"items": [_finding(row) for row in page["items"]]}


def _finding(row: Row) -> Row:
    names = {"state": "ticket_state", "key": "ticket_key", "url": "ticket_url"}
    ticket = {name: row.get(column) for name, column in names.items()}
    ticket |= {"state": ticket["state"] or "open", "muted": row["muted"], "acknowledged_by": row["acknowledged_by"]}
    return row | {"status": row["condition"], "ticket": ticket if row["ticket_id"] is not None else None}


def _page(rows: list[Row], limit: int, position: Callable[[Row], tuple[Any, ...]]) -> Listed:
    """A page of rows, of which one more than `limit` was queried."""
    items = rows[:limit]
    return {"items": items, "next_cursor": cursor_of(*position(items[-1])) if len(rows) > limit else None}
