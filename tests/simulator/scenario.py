"""The scenario: size of the fleet, days, and seed; and the truth: faults and decoys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from streamwarden.base.hours import HOUR
from streamwarden.detectors import Finding

START = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday: the first simulated day."""
EVALUATED = datetime(2026, 3, 2, 10, tzinfo=UTC)
"""The hour in the warehouse: each evaluated hour of each resource is moved to it (see `Case`)."""


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Scenario:
    """A fleet's size and seed."""

    seed: int = 1
    volumes: int = 500
    applications: int = 100
    stores: int = 60
    brokers: int = 27
    groups: int = 68
    clusters: int = 300
    days: int = 14
    has_faults: bool = True
    """If false, the fleet has decoys only."""

    def some(self, faults: Sequence[Kind]) -> Sequence[Kind]:
        """The faults of a fleet: all of them, or none."""
        return faults if self.has_faults else ()

    @property
    def end(self) -> datetime:
        return START + timedelta(days=self.days)


STANDARD = Scenario()
SMALL = Scenario(volumes=150, applications=30, stores=26, brokers=9, groups=34, clusters=170, days=6)


@dataclass(frozen=True)
class Case:
    """One resource in one hour.

    Its times are moved to EVALUATED and the hour becomes part of its name. So one run of app and detector evaluates
    hundreds of hours at once, as a fleet of that many resources.
    """

    resource_name: str
    hour: datetime

    @property
    def name(self) -> str:
        """The resource's name for app and detector."""
        return f"{self.resource_name}@{int((self.hour - START) / HOUR)}"

    @property
    def shift(self) -> timedelta:
        """Offset that is added to each of its times."""
        return EVALUATED - self.hour

    @classmethod
    def of(cls, name: str) -> Case:
        """The case that has this name."""
        resource_name, number = name.rsplit("@", 1)
        return cls(resource_name, START + int(number) * HOUR)


@dataclass(frozen=True)
class Fault:
    """A fault that a detector must find."""

    resource_name: str
    kind: str
    begins: datetime
    """From this time on a firing verdict is right."""
    due: datetime
    """The latest hour in which the detector must fire."""
    ends: datetime
    outage: datetime | None = None
    """Start of the impact, if later than the begin of the fault."""
    hurts_from: datetime | None = None
    """From this time on the impact is continuous until the end: no hour after the due one may be `ok`."""
    verdicts: tuple[str, ...] = ()
    """Valid verdicts in the hour in which the fault is due; empty: any firing verdict is right."""

    @classmethod
    def in_evaluated_hour(cls, resource_name: str, kind: str, *verdicts: str) -> Fault:
        """A fault of the hour in the warehouse."""
        return cls(resource_name, kind, EVALUATED - HOUR, EVALUATED, EVALUATED + HOUR, verdicts=verdicts)


@dataclass
class Truth:
    """The truth about a fleet."""

    faults: list[Fault] = field(default_factory=list)
    unclear: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    """Spans of a resource that count neither way: little impact, or just ended."""
    decoys: dict[str, str] = field(default_factory=dict)
    """Decoy by resource."""

    def is_underway(self, resource_name: str, hour: datetime) -> bool:
        """Whether a fault of the resource has hurt since before the hour, and does so in it."""
        return any(
            fault.resource_name == resource_name and (fault.hurts_from or fault.begins) < hour <= fault.ends
            for fault in self.faults
        )


@dataclass(frozen=True)
class Verdict:
    """The detector's verdict on a resource in an hour."""

    resource_name: str
    hour: datetime
    status: str
    message: str
    verdict: str = ""
    """The reason or severity of the finding, if that is scored."""
    metrics: Mapping[str, Any] = field(default_factory=dict, compare=False)
    severity: str | None = None
    """Severity of a firing verdict."""

    @classmethod
    def of(cls, name: str, finding: Finding, verdict: str = "") -> Verdict:
        """From a finding of a detector on the case of this name."""
        case = Case.of(name)
        return cls(
            case.resource_name, case.hour, finding.status, finding.message, verdict, finding.metrics, finding.severity
        )
