"""Results of evaluating an hour, stored in the warehouse: the run of a detector, its header, and its findings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.detectors.exceptions import note_exceptions
from streamwarden.detectors.finding import Finding
from streamwarden.detectors.load import Detector, ParameterValue

Params = Mapping[str, ParameterValue]


@dataclass(frozen=True)
class DetectorRun:
    """Result of evaluating an hour: `status` is evaluated, blocked (tables were not loaded), or failed."""

    detector: str
    status: str
    message: str | None
    firing: int = 0
    ok: int = 0
    unknown: int = 0
    blocked_by: tuple[str, ...] = ()
    """Apps that have not loaded the tables that the detector reads."""

    @property
    def findings(self) -> int:
        """Number of findings of all statuses."""
        return self.firing + self.ok + self.unknown


def store_run(
    engine: sa.Engine, detector: Detector, hour: datetime, config: Config, params: Params, detector_run: DetectorRun,
    found: Sequence[Finding], seconds: float,
) -> None:  # fmt: skip
    evaluated_at = datetime.now(UTC)
    with engine.begin() as connection:
        connection.execute(_DETECTOR, _detector_row(detector, evaluated_at))
        connection.execute(
            _DETECTOR_RUN,
            {
                "hour": hour,
                "detector": detector.id,
                "status": detector_run.status,
                "message": detector_run.message,
                "sql_checksum": detector.checksum,
                "params": json.dumps(params),
                "firing": detector_run.firing,
                "ok": detector_run.ok,
                "unknown": detector_run.unknown,
                "seconds": seconds,
                "evaluated_at": evaluated_at,
            },
        )
        if detector_run.status != "evaluated":
            return
        connection.execute(
            sa.text("delete from detect.evaluation where hour = :hour and detector = :detector"),
            {"hour": hour, "detector": detector.id},
        )
        store_findings(connection, found, hour, evaluated_at)
        note_exceptions(connection, detector, hour, config, found)


def store_findings(connection: sa.Connection, found: Sequence[Finding], hour: datetime, evaluated_at: datetime) -> None:
    """Copies findings into `detect.evaluation`, in one statement, because a trigger processes all of them at once."""
    rows = [finding.to_row() | {"hour": hour, "evaluated_at": evaluated_at} for finding in found]
    if rows:
        raw: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
        columns = ", ".join(rows[0])
        with raw.cursor() as cursor, cursor.copy(f"copy detect.evaluation ({columns}) from stdin") as copy:
            for row in rows:
                copy.write_row([json.dumps(v) if isinstance(v, dict | list) else v for v in row.values()])


def _detector_row(detector: Detector, now: datetime) -> dict[str, Any]:
    header = {
        "resource_kind": detector.resource_kind,
        "reads": detector.reads,
        "identity": detector.identity,
        "narrower_kinds": detector.narrower_kinds,
        "params": {n: {"default": p.default, "unit": p.unit, "why": p.why} for n, p in detector.params.items()},
        "open_after_hours": detector.open_after_hours,
        "clear_after_hours": detector.clear_after_hours,
        "key_metrics": detector.key_metrics,
        "runbook": detector.runbook,
        "limitations": detector.limitations,
    }
    return {
        "detector": detector.id,
        "title": detector.title,
        "severity": detector.severity,
        "maturity": detector.maturity,
        "owner": detector.owner_role,
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

_DETECTOR_RUN = sa.text("""
    insert into detect.detector_run
      (hour, detector, status, message, sql_checksum, params, firing, ok, unknown, seconds, evaluated_at)
    values
      (:hour, :detector, :status, :message, :sql_checksum, :params, :firing, :ok, :unknown, :seconds, :evaluated_at)
    on conflict (hour, detector) do update set
      status = excluded.status, message = excluded.message, sql_checksum = excluded.sql_checksum,
      params = excluded.params, firing = excluded.firing, ok = excluded.ok, unknown = excluded.unknown,
      seconds = excluded.seconds, evaluated_at = excluded.evaluated_at""")
