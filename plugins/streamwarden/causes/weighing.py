"""Weighs what may have caused the findings in alarm of an hour, and stores it.

What may lead to what stands in `sql/mechanisms.yaml` and the detectors' headers, how it is weighed in
`sql/causes/weigh.sql`. It reads nothing but stored evaluations and facts: an hour weighed again gives the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from streamwarden.base.warehouse import ensure_day
from streamwarden.detectors.load import Detector
from streamwarden.detectors.mechanisms import mechanisms
from streamwarden.rendering.metric import Metric
from streamwarden.rendering.templates import render_text
from streamwarden.store.queries import Row, ask

ACCEPTED, POSSIBLE = 0.6, 0.3
"""Strengths from which on an effect follows from a cause, and may follow from it."""
FIGURES = (
    "explained_parts", "affected_parts", "parts_there", "parts", "sick_there", "well_there", "sick_elsewhere",
    "well_elsewhere", "amount",
)  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """What may have caused a finding, and how strongly we think so."""

    effect: str
    cause: str
    mechanism: str
    strength: float
    is_accepted: bool
    place_factor: float
    time_factor: float
    share_factor: float
    siblings_factor: float
    amount_factor: float | None
    way: tuple[str, ...]
    seen_hour: datetime
    message: str
    metrics: Mapping[str, Any] = field(compare=False)


def weigh(connection: sa.Connection, detectors: Mapping[str, Detector], hour: datetime) -> list[Cause]:
    """The likeliest causes of every finding in alarm in the hour, those that were refused as well; stores nothing."""
    # What is new in the hour has no statistics yet: nested loops over it would take minutes.
    connection.execute(sa.text("set local enable_nestloop = off"))
    rows = ask(
        connection, "causes/weigh", hour=hour,
        mechanisms=_mechanisms(), causes=_ends(detectors, "causes"), effects=_ends(detectors, "caused_by"),
    )  # fmt: skip
    connection.execute(sa.text("set local enable_nestloop = on"))
    return [_cause(row) for row in rows]


def find_causes(engine: sa.Engine, detectors: Mapping[str, Detector], hour: datetime) -> str:
    """Weighs an hour and replaces what was stored of it, in one transaction. Returns a line for people."""
    ensure_day(engine, hour.date())
    with engine.begin() as connection:
        started = time.monotonic()
        found = weigh(connection, detectors, hour)
        connection.execute(sa.text("delete from detect.cause where hour = :hour"), {"hour": hour})
        if found:
            at = {"hour": hour, "weighed_at": datetime.now(UTC)}
            connection.execute(_CAUSE, [asdict(cause) | {"way": list(cause.way)} | at for cause in found])
        accepted = sum(cause.is_accepted for cause in found)
        seconds = time.monotonic() - started
        values = {"hour": hour, "pairs": len(found), "accepted": accepted, "seconds": seconds}
        connection.execute(_WEIGHING, values)
    possible = sum(not cause.is_accepted and cause.strength >= POSSIBLE for cause in found)
    return f"{accepted} findings follow from others, {possible} may, {len(found) - accepted - possible} ties refused"


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
    metrics = {name: row[name] for name in FIGURES if row[name] is not None}
    names = {key.partition(":")[0]: short_name(key) for key in row["way"]}
    values: dict[str, Any] = {name: Metric(name, row[name]) for name in FIGURES if name != "amount"}
    amount = Metric("amount_ratio", row["amount"])
    said = render_text(
        mechanisms()[row["mechanism"]].message, names | values | {"place": short_name(row["place"]), "amount": amount}
    )
    own = {name: row[name] for name in Cause.__dataclass_fields__ if name in row}
    return Cause(**own | {"way": tuple(row["way"]), "message": said, "metrics": metrics})


def short_name(key: str) -> str:
    """A thing's name beside others of its cluster: broker 3, volume vol-1."""
    kind, _, rest = key.partition(":")
    name = rest.rsplit("/", 1)[-1]
    return f"{kind} {name}" if kind in ("broker", "topic", "group", "store") else name


_WEIGHING = sa.text("""
    insert into detect.weighing (hour, pairs, accepted, seconds, weighed_at)
    values (:hour, :pairs, :accepted, :seconds, now())
    on conflict (hour) do update set
      pairs = excluded.pairs, accepted = excluded.accepted, seconds = excluded.seconds,
      weighed_at = excluded.weighed_at""")
_CAUSE = sa.text("""
    insert into detect.cause
      (hour, effect, cause, mechanism, strength, is_accepted, place_factor, time_factor, share_factor, siblings_factor,
       amount_factor, way, seen_hour, message, metrics, weighed_at)
    values
      (:hour, :effect, :cause, :mechanism, :strength, :is_accepted, :place_factor, :time_factor, :share_factor,
       :siblings_factor, :amount_factor, :way, :seen_hour, :message, :metrics, :weighed_at)""").bindparams(
    sa.bindparam("metrics", type_=JSONB())
)
