"""Judges one hour with one detector and stores every evaluation, with evidence and the checksum of the SQL."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.load import Detector

_SPECIAL = ("resource", "status", "reason", "severity")


@dataclass(frozen=True)
class Judgement:
    """What came of judging one hour: `status` is judged, blocked (its tables weren't loaded) or failed."""

    detector: str
    status: str
    reason: str | None
    alarms: int = 0
    oks: int = 0
    skips: int = 0


def evaluate(engine: sa.Engine, detector: Detector, hour: datetime, config: Config) -> Judgement:
    """Runs a detector for an hour and replaces its evaluations of that hour, in one transaction.

    A detector whose tables weren't loaded for the hour is blocked: it says nothing, and what it said before stays.
    """
    params = detector.params_in_force(config)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    with engine.connect() as connection:
        problem = _not_loaded(connection, detector, hour)
        status = "blocked" if problem else "judged"
        if not problem:
            try:
                rows = evaluations(connection, detector, hour, params)
            except StreamwardenError as error:
                status, problem, rows = "failed", str(error), []
    counts = {s: sum(row["status"] == s for row in rows) for s in ("alarm", "ok", "skip")}
    judgement = Judgement(detector.id, status, problem, counts["alarm"], counts["ok"], counts["skip"])
    _store(engine, detector, hour, params, judgement, rows, time.monotonic() - started)
    return judgement


def evaluations(
    connection: sa.Connection, detector: Detector, hour: datetime, params: dict[str, Any]
) -> list[dict[str, Any]]:
    """What a detector says of an hour, as `detect.evaluation` has it; nothing is stored.

    Raises:
        StreamwardenError: PostgreSQL refuses the SQL, or a row isn't what a detector may say; one line.
    """
    rows = [_evaluation(detector, row, hour) for row in run(connection, detector, hour, params)]
    _refuse_twins(detector, rows)
    return rows


def run(
    connection: sa.Connection, detector: Detector, hour: datetime, params: dict[str, Any]
) -> Sequence[sa.RowMapping]:
    """The detector's rows for an hour, nothing stored.

    Raises:
        StreamwardenError: PostgreSQL refuses the SQL, or a column is missing; one line.
    """
    try:
        with connection.begin_nested():
            result = connection.execute(sa.text(detector.sql), {"hour": hour, **params})
            columns = list(result.keys())
            rows = result.mappings().all()
    except sa.exc.SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        raise StreamwardenError(f"{detector.file}: {reason}") from None
    for column in (*_SPECIAL[:3], *detector.identity):
        if column not in columns:
            raise StreamwardenError(f"{detector.file}: the select has no column {column}.")
    return rows


def fingerprint(detector: str, identity: dict[str, Any]) -> str:
    """SHA-256 of detector and identity: never of a value or the severity (field.md §7)."""
    return hashlib.sha256(json.dumps([detector, identity], sort_keys=True).encode()).hexdigest()


def _evaluation(detector: Detector, row: sa.RowMapping, hour: datetime) -> dict[str, Any]:
    identity = {column: row[column] for column in detector.identity}
    if missing := [column for column, value in identity.items() if value is None]:
        raise StreamwardenError(f"{detector.file}: identity column {missing[0]} is null for {row['resource']}.")
    if row["status"] not in ("alarm", "ok", "skip"):
        raise StreamwardenError(
            f"{detector.file}: status {row['status']!r} of {row['resource']}: not alarm, ok or skip."
        )
    if not row["reason"]:
        raise StreamwardenError(f"{detector.file}: {row['resource']} has no reason.")
    evidence = {k: v for k, v in row.items() if k not in _SPECIAL and k not in detector.identity}
    return {
        "hour": hour,
        "detector": detector.id,
        "fingerprint": fingerprint(detector.id, identity),
        "resource": row["resource"],
        "identity": json.dumps(identity, default=str),
        "status": row["status"],
        "severity": row.get("severity") or detector.severity,
        "reason": row["reason"],
        "evidence": json.dumps(evidence, default=_plain),
    }


def _refuse_twins(detector: Detector, rows: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row["fingerprint"] in seen:
            raise StreamwardenError(f"{detector.file}: two rows with the identity {row['identity']}.")
        seen.add(row["fingerprint"])


def _plain(value: Any) -> Any:
    return (
        value.isoformat()
        if isinstance(value, datetime)
        else float(value)
        if hasattr(value, "__float__")
        else str(value)
    )


def _not_loaded(connection: sa.Connection, detector: Detector, hour: datetime) -> str | None:
    loads = connection.execute(
        sa.text("select app, status, error from detect.load where hour = :hour and app = any(:apps)"),
        {"hour": hour, "apps": list(detector.apps)},
    )
    known = {app: (status, error) for app, status, error in loads}
    connection.rollback()
    for app in detector.apps:
        if app not in known:
            return f"app {app} hasn't loaded this hour"
        if known[app][0] != "loaded":
            return f"app {app} failed: {known[app][1]}"
    return None


def _store(
    engine: sa.Engine,
    detector: Detector,
    hour: datetime,
    params: dict[str, Any],
    judgement: Judgement,
    rows: list[dict[str, Any]],
    seconds: float,
) -> None:
    judged_at = datetime.now(UTC)
    with engine.begin() as connection:  # by itself: to make a partition locks its table for all others
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour.date()})
    with engine.begin() as connection:
        connection.execute(_DETECTOR, _detector_row(detector, judged_at))
        connection.execute(
            _JUDGEMENT,
            {
                "hour": hour,
                "detector": detector.id,
                "status": judgement.status,
                "reason": judgement.reason,
                "sql_checksum": detector.checksum,
                "params": json.dumps(params),
                "alarms": judgement.alarms,
                "oks": judgement.oks,
                "skips": judgement.skips,
                "seconds": seconds,
                "judged_at": judged_at,
            },
        )
        if judgement.status != "judged":
            return
        connection.execute(
            sa.text("delete from detect.evaluation where hour = :hour and detector = :detector"),
            {"hour": hour, "detector": detector.id},
        )
        if rows:
            connection.execute(_EVALUATION, [row | {"judged_at": judged_at} for row in rows])


def _detector_row(detector: Detector, now: datetime) -> dict[str, Any]:
    header = {
        "reads": detector.reads,
        "identity": detector.identity,
        "params": {n: {"default": p.default, "unit": p.unit, "why": p.why} for n, p in detector.params.items()},
        "open_after_hours": detector.open_after_hours,
        "clear_after_hours": detector.clear_after_hours,
        "follows_from": detector.follows_from,
        "runbook": detector.runbook,
        "blind_spots": detector.blind_spots,
    }
    return {
        "detector": detector.id,
        "title": detector.title,
        "severity": detector.severity,
        "maturity": detector.maturity,
        "owner": detector.owner,
        "header": json.dumps(header),
        "sql_checksum": detector.checksum,
        "loaded_at": now,
    }


_DETECTOR = sa.text("""
    insert into detect.detector (detector, title, severity, maturity, owner, header, sql_checksum, loaded_at)
    values (:detector, :title, :severity, :maturity, :owner, :header, :sql_checksum, :loaded_at)
    on conflict (detector) do update set
      title = excluded.title, severity = excluded.severity, maturity = excluded.maturity, owner = excluded.owner,
      header = excluded.header, sql_checksum = excluded.sql_checksum, loaded_at = excluded.loaded_at""")
_JUDGEMENT = sa.text("""
    insert into detect.judgement
      (hour, detector, status, reason, sql_checksum, params, alarms, oks, skips, seconds, judged_at)
    values
      (:hour, :detector, :status, :reason, :sql_checksum, :params, :alarms, :oks, :skips, :seconds, :judged_at)
    on conflict (hour, detector) do update set
      status = excluded.status, reason = excluded.reason, sql_checksum = excluded.sql_checksum,
      params = excluded.params, alarms = excluded.alarms, oks = excluded.oks, skips = excluded.skips,
      seconds = excluded.seconds, judged_at = excluded.judged_at""")
_EVALUATION = sa.text("""
    insert into detect.evaluation
      (hour, detector, fingerprint, resource, identity, status, severity, reason, evidence, judged_at)
    values
      (:hour, :detector, :fingerprint, :resource, :identity, :status, :severity, :reason, :evidence, :judged_at)""")
