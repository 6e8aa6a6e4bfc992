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
from streamwarden.detectors.load import NO_FIGURES, Case, Detector, ParameterValue, Status
from streamwarden.detectors.things import KINDS, Thing
from streamwarden.words.figures import Figure
from streamwarden.words.readable import SEVERITIES
from streamwarden.words.templates import command, sentence


@dataclass(frozen=True)
class Finding:
    """What a detector says of a thing, with its figures and its words."""

    detector: str
    about: Thing
    because: str
    status: Status
    """alarm, ok, or skip: can't be judged."""
    severity: str | None
    """Of an alarm."""
    figures: Mapping[str, Any]
    """In the select's order, raw."""
    reason: str
    cure: str = ""
    commands: tuple[str, ...] = ()
    affected: tuple[Any, ...] = ()
    """The parts of the thing that are hit: keys of things, or {topic, partition}."""
    nothing_to_judge: bool = False
    convinces: tuple[str, ...] = field(default=(), compare=False)

    @property
    def fingerprint(self) -> str:
        """See `fingerprint_of`."""
        return fingerprint_of(self.detector, self.about)

    @property
    def resource(self) -> str:
        """The thing, for people."""
        return self.about.name

    @property
    def since(self) -> datetime | None:
        """Since when it is so, where the detector knows it to the minute."""
        value = next((v for column, v in self.figures.items() if column == "since" or column.endswith("_since")), None)
        return datetime.fromisoformat(value) if value else None

    @property
    def convincing(self) -> dict[str, Any]:
        """The few figures that convince, in their order."""
        chosen = [column for column in self.convinces if self.figures.get(column) is not None]
        return {column: self.figures[column] for column in chosen}

    def to_row(self) -> dict[str, Any]:
        """As `detect.evaluation` and `tickets.change` hold it."""
        return {
            "detector": self.detector,
            "fingerprint": self.fingerprint,
            "thing": self.about.key,
            "resource": self.resource,
            "identity": dict(self.about.columns),
            "owner": self.about.owner,
            "application": self.about.application,
            "because": self.because,
            "status": self.status,
            "severity": self.severity,
            "reason": self.reason,
            "cure": self.cure or None,
            "commands": list(self.commands),
            "figures": dict(self.figures),
            "convinces": list(self.convinces),
            "affected": list(self.affected),
            "nothing_to_judge": self.nothing_to_judge,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Finding:
        """From what `to_row` gave, or a row of `detect.evaluation` written before there was a because."""
        kind = (row.get("thing") or "").partition(":")[0]
        columns = {column: row["identity"][column] for column in KINDS.get(kind, row["identity"])}
        return cls(
            detector=row["detector"],
            about=Thing(kind, columns, row["resource"], row["owner"], row["application"]),
            because=row.get("because") or "",
            status=row["status"],
            severity=row["severity"],
            figures=row["figures"],
            reason=row["reason"],
            cure=row["cure"] or "",
            commands=tuple(row.get("commands") or ()),
            affected=tuple(row.get("affected") or ()),
            nothing_to_judge=bool(row.get("nothing_to_judge")),
            convinces=tuple(row.get("convinces") or ()),
        )


def fingerprint_of(detector: str, about: Thing) -> str:
    """SHA-256 of detector and thing: never of a value or the severity, so that a ticket outlives both."""
    identity = json.dumps([detector, dict(about.columns)], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def case_of(detector: Detector, because: str, about: Thing) -> Case:
    """What the detector's header says of a row's `because`.

    Raises:
        StreamwardenError: nothing; one line.
    """
    if because not in detector.says:
        raise StreamwardenError(
            f"{detector.file}: {about.name}: because is {because!r}, for which `says` has no words."
        )
    return detector.says[because]


def make_finding(
    detector: Detector,
    row: Mapping[str, Any],
    about: Thing,
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
    because = row["because"]
    case = case_of(detector, because, about)
    severity = (row.get("severity") or case.severity) if case.status == "alarm" else None
    if severity is not None and severity not in SEVERITIES:
        raise StreamwardenError(f"{detector.file}: {about.name}: severity {severity!r}: not {', '.join(SEVERITIES)}.")
    figures = {
        column: plain(value)
        for column, value in row.items()
        if column not in NO_FIGURES and column not in detector.identity
    }
    values: dict[str, Any] = {name: Figure(name, value) for name, value in {**params, **context}.items()}
    values |= {column: Figure(column, value) for column, value in about.columns.items()}
    values |= {column: Figure(column, value) for column, value in figures.items()}
    try:
        return Finding(
            detector=detector.id,
            about=about,
            because=because,
            status=case.status,
            severity=severity,
            figures=figures,
            reason=sentence(case.reason, values),
            cure=sentence(case.cure, values),
            commands=tuple(line for template in case.commands if (line := command(template, values))),
            affected=tuple(plain(row.get("affected") or ())),
            nothing_to_judge=case.nothing_to_judge,
            convinces=detector.convinces,
        )
    except StreamwardenError as error:
        raise StreamwardenError(f"{detector.file}: says.{because}: {about.name}: {error}") from None


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
