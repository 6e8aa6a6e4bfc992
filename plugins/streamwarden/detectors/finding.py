"""A finding: what a detector says of a thing in an hour. Made and checked here and nowhere else; all others take it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.load import NOT_METRICS, Case, Detector, ParameterValue, Status
from streamwarden.detectors.resources import KINDS, Resource
from streamwarden.rendering.metric import Metric
from streamwarden.rendering.readable import SEVERITIES
from streamwarden.rendering.templates import command, render_text


@dataclass(frozen=True)
class Finding:
    """What a detector says of a thing, with its figures and its words."""

    detector: str
    resource: Resource
    reason: str
    status: Status
    """alarm, ok, or skip: can't be judged."""
    severity: str | None
    """Of an alarm."""
    metrics: Mapping[str, Any]
    """In the select's order, raw."""
    message: str
    actions: str = ""
    commands: tuple[str, ...] = ()
    affected: tuple[Any, ...] = ()
    """The parts of the thing that are hit: keys of things, or {topic, partition}."""
    is_not_applicable: bool = False
    key_metrics: tuple[str, ...] = field(default=(), compare=False)

    @property
    def fingerprint(self) -> str:
        """See `fingerprint_of`."""
        return fingerprint_of(self.detector, self.resource)

    @property
    def resource_name(self) -> str:
        """The thing, for people."""
        return self.resource.name

    @property
    def since(self) -> datetime | None:
        """Since when it is so, where the detector knows it to the minute."""
        value = next((v for column, v in self.metrics.items() if column == "since" or column.endswith("_since")), None)
        return datetime.fromisoformat(value) if value else None

    @property
    def key_metric_values(self) -> dict[str, Any]:
        """The few figures that convince, in their order."""
        chosen = [column for column in self.key_metrics if self.metrics.get(column) is not None]
        return {column: self.metrics[column] for column in chosen}

    def to_row(self) -> dict[str, Any]:
        """As `detect.evaluation` and `tickets.change` hold it."""
        return {
            "detector": self.detector,
            "fingerprint": self.fingerprint,
            "resource": self.resource.key,
            "resource_name": self.resource_name,
            "identity": dict(self.resource.columns),
            "owner": self.resource.owner,
            "application": self.resource.application,
            "reason": self.reason,
            "status": self.status,
            "severity": self.severity,
            "message": self.message,
            "actions": self.actions or None,
            "commands": list(self.commands),
            "metrics": dict(self.metrics),
            "key_metrics": list(self.key_metrics),
            "affected": list(self.affected),
            "is_not_applicable": self.is_not_applicable,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Finding:
        """From what `to_row` gave, or a row of `detect.evaluation` written before there was a because."""
        kind = (row.get("resource") or "").partition(":")[0]
        columns = {column: row["identity"][column] for column in KINDS.get(kind, row["identity"])}
        return cls(
            detector=row["detector"],
            resource=Resource(kind, columns, row["resource_name"], row["owner"], row["application"]),
            reason=row.get("reason") or "",
            status=row["status"],
            severity=row["severity"],
            metrics=row["metrics"],
            message=row["message"],
            actions=row["actions"] or "",
            commands=tuple(row.get("commands") or ()),
            affected=tuple(row.get("affected") or ()),
            is_not_applicable=bool(row.get("is_not_applicable")),
            key_metrics=tuple(row.get("key_metrics") or ()),
        )


def fingerprint_of(detector: str, resource: Resource) -> str:
    """SHA-256 of detector and thing: never of a value or the severity, so that a ticket outlives both."""
    identity = json.dumps([detector, dict(resource.columns)], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def case_of(detector: Detector, reason: str, resource: Resource) -> Case:
    """What the detector's header says of a row's `because`.

    Raises:
        StreamwardenError: nothing; one line.
    """
    if reason not in detector.verdicts:
        raise StreamwardenError(
            f"{detector.file}: {resource.name}: because is {reason!r}, for which `says` has no words."
        )
    return detector.verdicts[reason]


def make_finding(
    detector: Detector,
    row: Mapping[str, Any],
    resource: Resource,
    params: Mapping[str, ParameterValue],
    context: Mapping[str, Any],
) -> Finding:
    """A finding from a row of a detector's SQL.

    Args:
        about: the thing that the row's key columns name.
        params: those in force for it; templates may ask for them.
        context: what else every template may ask for (`OF_THE_THING`).

    Raises:
        StreamwardenError: the row isn't what a detector may say, or a template fails on it; one line.
    """
    reason = row["reason"]
    case = case_of(detector, reason, resource)
    severity = (row.get("severity") or case.severity) if case.status == "firing" else None
    if severity is not None and severity not in SEVERITIES:
        raise StreamwardenError(f"{detector.file}: {resource.name}: severity {severity!r}: not {', '.join(SEVERITIES)}.")
    metrics = {
        column: plain(value)
        for column, value in row.items()
        if column not in NOT_METRICS and column not in detector.identity
    }
    values: dict[str, Any] = {name: Metric(name, value) for name, value in {**params, **context}.items()}
    values |= {column: Metric(column, value) for column, value in resource.columns.items()}
    values |= {column: Metric(column, value) for column, value in metrics.items()}
    try:
        return Finding(
            detector=detector.id,
            resource=resource,
            reason=reason,
            status=case.status,
            severity=severity,
            metrics=metrics,
            message=render_text(case.message, values),
            actions=render_text(case.actions, values),
            commands=tuple(line for template in case.commands if (line := command(template, values))),
            affected=tuple(plain(row.get("affected") or ())),
            is_not_applicable=case.is_not_applicable,
            key_metrics=detector.key_metrics,
        )
    except StreamwardenError as error:
        raise StreamwardenError(f"{detector.file}: says.{reason}: {resource.name}: {error}") from None


def plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, numbers without PostgreSQL's exact ones."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
