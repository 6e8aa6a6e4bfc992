"""Ranks the possible causes of the findings that fire in an hour, and stores the result.

Mechanisms are in `sql/mechanisms.yaml` and in the detectors' headers, the query and its parameters in
`sql/causes/weigh.sql`. Only stored evaluations and facts are read, so a repeated ranking has the same result.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from streamwarden.base.warehouse import ensure_day
from streamwarden.causes import rule
from streamwarden.causes.topology import store_topology
from streamwarden.detectors.load import Detector, ParameterValue
from streamwarden.detectors.mechanisms import mechanisms
from streamwarden.detectors.resources import KINDS
from streamwarden.rendering.metric import Metric
from streamwarden.rendering.readable import counted
from streamwarden.rendering.templates import render_text
from streamwarden.store.queries import Row

METRICS = (
    "explained_parts", "affected_parts", "parts_there", "parts", "affected_there", "healthy_there",
    "affected_elsewhere", "healthy_elsewhere", "amount",
)  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """A possible cause of a finding, and the strength of the evidence (0 to 1)."""

    effect: str
    cause: str
    mechanism: str
    strength: float
    is_accepted: bool
    is_possible: bool
    place_factor: float
    time_factor: float
    share_factor: float
    peers_factor: float
    amount_factor: float | None
    path: tuple[str, ...]
    seen_hour: datetime
    message: str
    metrics: Mapping[str, Any] = field(compare=False)


def weigh(
    connection: sa.Connection, detectors: Mapping[str, Detector], hour: datetime,
    params: Mapping[str, ParameterValue] | None = None, sql: str | None = None,
) -> list[Cause]:  # fmt: skip
    """The most likely causes of each finding that fires in the hour, including those ruled out. Stores nothing.

    Args:
        params: all parameters (`rule.params_in_force`); None: the defaults.
        sql: another query, to try a change (`rule.query`).
    """
    # The rows of this hour have no statistics yet: PostgreSQL would choose nested loops that take minutes.
    connection.execute(sa.text("set local enable_nestloop = off"))
    values = {name: float(value) for name, value in (params or rule.params_in_force()).items()}
    ends = {"causes": _ends(detectors, "causes"), "effects": _ends(detectors, "caused_by")}
    statement = sa.text(sql or rule.query())
    rows = connection.execute(statement, values | ends | {"hour": hour, "mechanisms": _mechanisms()}).mappings().all()
    connection.execute(sa.text("set local enable_nestloop = on"))
    return [_cause(dict(row)) for row in rows]


def find_causes(
    engine: sa.Engine, detectors: Mapping[str, Detector], hour: datetime,
    params: Mapping[str, ParameterValue] | None = None,
) -> str:  # fmt: skip
    """Ranks the causes of an hour and replaces the stored ones, in one transaction. Returns a summary in words.

    Stores the topology of the hour first, which pages read.
    """
    ensure_day(engine, hour.date())
    store_topology(engine, hour)
    with engine.begin() as connection:
        started = time.monotonic()
        found = weigh(connection, detectors, hour, params)
        connection.execute(sa.text("delete from detect.cause where hour = :hour"), {"hour": hour})
        if found:
            at = {"hour": hour, "weighed_at": datetime.now(UTC)}
            connection.execute(_CAUSE, [asdict(cause) | {"path": list(cause.path)} | at for cause in found])
        accepted = sum(cause.is_accepted for cause in found)
        seconds = time.monotonic() - started
        values = {"hour": hour, "pairs": len(found), "accepted": accepted, "seconds": seconds}
        connection.execute(_WEIGHING, values)
    possible = sum(cause.is_possible and not cause.is_accepted for cause in found)
    return f"{counted(accepted, 'cause')} accepted, {possible} possible, {len(found) - accepted - possible} ruled out"


def _mechanisms() -> str:
    return json.dumps([{"mechanism": name, **asdict(one)} for name, one in mechanisms().items()])


def _ends(detectors: Mapping[str, Detector], key: str) -> str:
    ends: Collection[Row] = [
        {"mechanism": mechanism, "detector": detector.id, "reasons": reasons}
        for detector in detectors.values()
        for mechanism, reasons in getattr(detector, key).items()
    ]
    return json.dumps(ends)


def _cause(row: Row) -> Cause:
    metrics = {name: row[name] for name in METRICS if row[name] is not None}
    names = {key.partition(":")[0]: short_name(key) for key in row["path"]}
    values: dict[str, Any] = {name: Metric(name, row[name]) for name in METRICS if name != "amount"}
    amount = Metric("amount_ratio", row["amount"])
    message = render_text(
        mechanisms()[row["mechanism"]].message, names | values | {"place": short_name(row["place"]), "amount": amount}
    )
    own = {name: row[name] for name in Cause.__dataclass_fields__ if name in row}
    return Cause(**own | {"path": tuple(row["path"]), "message": message, "metrics": metrics})


def short_name(key: str) -> str:
    """Display name of a resource within its cluster: `broker 3`, `vol-1`."""
    kind, _, rest = key.partition(":")
    # The last column of the key: a name may contain slashes, as addresses and group ids do.
    name = rest.split("/", len(KINDS.get(kind, ("",))) - 1)[-1]
    if hosts := re.findall("://([^/]+)", name):  # of an address, host and port: its path is the same everywhere
        name = hosts[-1]
    return f"{kind} {name}" if kind in ("broker", "topic", "group", "store") else name


_WEIGHING = sa.text("""
    insert into detect.weighing (hour, pairs, accepted, seconds, weighed_at)
    values (:hour, :pairs, :accepted, :seconds, now())
    on conflict (hour) do update set
      pairs = excluded.pairs, accepted = excluded.accepted, seconds = excluded.seconds,
      weighed_at = excluded.weighed_at""")
_CAUSE = sa.text("""
    insert into detect.cause
      (hour, effect, cause, mechanism, strength, is_accepted, is_possible, place_factor, time_factor, share_factor,
       peers_factor, amount_factor, path, seen_hour, message, metrics, weighed_at)
    values
      (:hour, :effect, :cause, :mechanism, :strength, :is_accepted, :is_possible, :place_factor, :time_factor,
       :share_factor, :peers_factor, :amount_factor, :path, :seen_hour, :message, :metrics, :weighed_at)""").bindparams(
    sa.bindparam("metrics", type_=JSONB())
)
