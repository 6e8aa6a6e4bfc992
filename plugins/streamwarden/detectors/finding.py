"""A finding: the verdict of a detector on a resource in an hour. Findings are created and validated only here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.load import NOT_METRICS, Detector, ParameterValue, Status, Verdict
from streamwarden.detectors.resources import KINDS, Resource
from streamwarden.rendering.metric import Metric
from streamwarden.rendering.readable import SEVERITIES
from streamwarden.rendering.templates import commands, render_text


@dataclass(frozen=True)
class Finding:
    """The verdict of a detector on a resource, with its metrics and texts; fields as in Kubernetes' conditions."""

    detector: str
    resource: Resource
    reason: str
    status: Status
    """firing, ok, or unknown: not evaluated."""
    severity: str | None
    """critical, warning, or info; None unless firing."""
    metrics: Mapping[str, Any]
    """Raw values by column, in the order of the select."""
    message: str
    details: tuple[str, ...] = ()
    impact: str = ""
    actions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    affected: tuple[Any, ...] = ()
    """The affected parts of the resource: keys of resources, or {topic, partition}."""
    is_not_applicable: bool = False
    key_metrics: tuple[str, ...] = field(default=(), compare=False)

    @property
    def fingerprint(self) -> str:
        """See `fingerprint_of`."""
        return fingerprint_of(self.detector, self.resource)

    @property
    def resource_name(self) -> str:
        """Name of the resource, for people."""
        return self.resource.name

    @property
    def since(self) -> datetime | None:
        """Start of the problem (UTC), if the detector selects a column `since`; else None."""
        value = next((v for column, v in self.metrics.items() if column == "since" or column.endswith("_since")), None)
        return datetime.fromisoformat(value) if value else None

    @property
    def key_metric_values(self) -> dict[str, Any]:
        """The key metrics that are not null, in their order."""
        chosen = [column for column in self.key_metrics if self.metrics.get(column) is not None]
        return {column: self.metrics[column] for column in chosen}

    def to_row(self) -> dict[str, Any]:
        """The finding as columns of `detect.evaluation`; `tickets.change` stores the same as JSON."""
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
            "details": list(self.details),
            "impact": self.impact or None,
            "actions": list(self.actions),
            "commands": list(self.commands),
            "metrics": dict(self.metrics),
            "key_metrics": list(self.key_metrics),
            "affected": list(self.affected),
            "is_not_applicable": self.is_not_applicable,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Finding:
        """The inverse of `to_row`; also accepts a row of `detect.evaluation`."""
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
            details=tuple(row.get("details") or ()),
            impact=row.get("impact") or "",
            actions=tuple(row.get("actions") or ()),
            commands=tuple(row.get("commands") or ()),
            affected=tuple(row.get("affected") or ()),
            is_not_applicable=bool(row.get("is_not_applicable")),
            key_metrics=tuple(row.get("key_metrics") or ()),
        )


def fingerprint_of(detector: str, resource: Resource) -> str:
    """SHA-256 of detector and resource key. Metrics and severity are not included: a ticket stays when they change."""
    identity = json.dumps([detector, dict(resource.columns)], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def verdict_of(detector: Detector, reason: str, resource: Resource) -> Verdict:
    """The verdict that the detector's header defines for a reason.

    Raises:
        StreamwardenError: the header does not define the reason; one line.
    """
    if reason not in detector.verdicts:
        raise StreamwardenError(f"{detector.file}: {resource.name}: reason {reason!r} is not defined under `verdicts`.")
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
        resource: the resource that the row is about.
        params: parameters that apply to the resource; templates may use them.
        context: further values for templates (`RESOURCE_VALUES`).

    Raises:
        StreamwardenError: the row is invalid, or a template fails; one line.
    """
    reason = row["reason"]
    verdict = verdict_of(detector, reason, resource)
    severity = (row.get("severity") or verdict.severity) if verdict.status == "firing" else None
    if severity is not None and severity not in SEVERITIES:
        raise StreamwardenError(
            f"{detector.file}: {resource.name}: severity {severity!r}: not {', '.join(SEVERITIES)}."
        )
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
            status=verdict.status,
            severity=severity,
            metrics=metrics,
            message=render_text(verdict.message, values),
            details=_rendered(verdict.details, values),
            impact=render_text(verdict.impact, values),
            actions=_rendered(verdict.actions, values),
            commands=tuple(line for template in verdict.commands for line in commands(template, values)),
            affected=tuple(plain(row.get("affected") or ())),
            is_not_applicable=verdict.is_not_applicable,
            key_metrics=detector.key_metrics,
        )
    except StreamwardenError as error:
        raise StreamwardenError(f"{detector.file}: verdicts.{reason}: {resource.name}: {error}") from None


def _rendered(templates: tuple[str, ...], values: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(text for template in templates if (text := render_text(template, values)))


def plain(value: Any) -> Any:
    """A JSON-serializable value: times in ISO 8601, Decimals as int or float, other types as text."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
