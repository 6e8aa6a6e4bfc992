"""What is simulated: how large a fleet, for how long, from which seed; and what was done to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from streamwarden.base.hours import HOUR
from streamwarden.detectors import Finding

START = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday. All days are simulated from here."""
JUDGED = datetime(2026, 3, 2, 10, tzinfo=UTC)
"""The hour that the warehouse holds: each judged hour of each resource is moved to it (see `Case`)."""


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
    """Else there is only what looks like a fault and is none."""

    def some(self, faults: Sequence[Kind]) -> Sequence[Kind]:
        """The faults that may be drawn."""
        return faults if self.has_faults else ()

    @property
    def end(self) -> datetime:
        return START + timedelta(days=self.days)


STANDARD = Scenario()
SMALL = Scenario(volumes=150, applications=30, stores=20, brokers=9, groups=34, clusters=170, days=6)


@dataclass(frozen=True)
class Case:
    """One resource in one hour. Its time is moved to JUDGED and the hour becomes part of its name, so that one run of
    app and detector judges hundreds of hours at once; to both it is a fleet of that many resources."""

    resource_name: str
    hour: datetime

    @property
    def name(self) -> str:
        """The resource's name for app and detector."""
        return f"{self.resource_name}@{int((self.hour - START) / HOUR)}"

    @property
    def shift(self) -> timedelta:
        """What is added to each of its times."""
        return JUDGED - self.hour

    @classmethod
    def of(cls, name: str) -> Case:
        """The case that has this name."""
        resource_name, number = name.rsplit("@", 1)
        return cls(resource_name, START + int(number) * HOUR)


@dataclass(frozen=True)
class Fault:
    """Something that must be found."""

    resource_name: str
    kind: str
    begins: datetime
    """From here on an alarm is right."""
    due: datetime
    """The hour that must say so at the latest."""
    ends: datetime
    outage: datetime | None = None
    """When it hurts, where that is later than it begins."""
    hurts_from: datetime | None = None
    """From here on it hurts without a pause, until it ends: no hour after its due one is `ok`."""
    verdicts: tuple[str, ...] = ()
    """Valid verdicts in the hour in which the fault is due; empty: any firing verdict is right."""

    @classmethod
    def judged(cls, resource_name: str, kind: str, *verdicts: str) -> Fault:
        """One of the hour that the warehouse holds."""
        return cls(resource_name, kind, JUDGED - HOUR, JUDGED, JUDGED + HOUR, verdicts=verdicts)


@dataclass
class Truth:
    """What was done to a fleet."""

    faults: list[Fault] = field(default_factory=list)
    unclear: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    """Spans of a resource that count neither way: it hurts a little, or just stopped."""
    decoys: dict[str, str] = field(default_factory=dict)
    """What looks scary, by resource."""


@dataclass(frozen=True)
class Verdict:
    """What the detector said of a resource's hour."""

    resource_name: str
    hour: datetime
    status: str
    message: str
    verdict: str = ""
    """What it took the fault for, where that is scored."""
    metrics: Mapping[str, Any] = field(default_factory=dict, compare=False)
    severity: str | None = None
    """Of an alarm."""

    @classmethod
    def of(cls, name: str, finding: Finding, verdict: str = "") -> Verdict:
        """From what a detector says of the case of this name."""
        case = Case.of(name)
        return cls(
            case.resource_name, case.hour, finding.status, finding.message, verdict, finding.metrics, finding.severity
        )
