"""Settings of tickets: trackers and routes."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field, model_validator

from streamwarden.base.config.fields import Name, Section, Severity, Wanted, is_meant
from streamwarden.base.config.trackers import Console, Mail, Tracker, TrackerName


class Route(Section):
    """Routes tickets to trackers by their findings. A ticket goes to the trackers of all matching routes."""

    owner: Annotated[Wanted, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Owner of the resource. A value that begins with ^ is a regular expression."
    )
    least_severity: Severity | None = Field(None, description="Lowest severity of the findings.")
    subject: Name | None = Field(None, description="Subject of the detector: its folder in sql/detectors.")
    to: list[Name] = Field(min_length=1, description="Names under `trackers`.")

    def matches(self, owner: str | None, severity: str, subject: str | None) -> bool:
        """Whether the route applies to a ticket with this owner, severity, and subject of its detector."""
        ranks: tuple[str, ...] = get_args(Severity)
        return (
            (self.owner is None or (owner is not None and is_meant(self.owner, owner)))
            and (self.least_severity is None or ranks.index(severity) <= ranks.index(self.least_severity))
            and (self.subject is None or self.subject == subject)
        )


class Tickets(Section):
    """The trackers, the routes to them, and when tickets are created."""

    trackers: dict[TrackerName, Tracker] = Field(
        default_factory=dict, description="The trackers by name; none: tickets are written to the task's log."
    )
    routes: list[Route] = Field(default_factory=list, description="Routes to trackers; none: all to `default`.")
    default: list[Name] | None = Field(
        None, description="Trackers of tickets that no route matches; default: the first under `trackers`."
    )
    max_new_per_run: int = Field(
        20, ge=1, le=10_000, description="Maximum number of new tickets in a run; the others share a summary ticket."
    )
    reopen_within_hours: int = Field(
        72, ge=0, le=8784, description="A finding that fires again within this time reopens its ticket."
    )
    least_severity: Severity = Field(
        "warning", description="Findings of lower severity open no ticket; pages and reports list them."
    )

    @model_validator(mode="before")
    @classmethod
    def _has_trackers(cls, given: Any) -> Any:
        if isinstance(given, dict) and "sink" in given:
            raise ValueError("`sink` and its address are now an entry under `trackers`: see docs/tickets.md")
        return given

    @model_validator(mode="after")
    def _trackers_are_known(self) -> Tickets:
        named = [*(self.default or []), *(name for route in self.routes for name in route.to)]
        if unknown := sorted(set(named) - self.all_trackers.keys()):
            raise ValueError(f"tracker '{unknown[0]}' is not under `trackers`")
        return self

    @property
    def all_trackers(self) -> dict[str, Tracker]:
        """The configured trackers by name; without any, the console."""
        return dict(self.trackers) or {"console": Console(kind="console")}

    def trackers_for(self, owner: str | None, severity: str, subject: str | None) -> list[str]:
        """Names of the trackers for a ticket with this owner, severity, and subject of its detector."""
        found = [name for route in self.routes if route.matches(owner, severity, subject) for name in route.to]
        default = next(iter(self.all_trackers)) if self.default is None else None
        return list(dict.fromkeys(found or ([default] if default else self.default or [])))

    def mailboxes_of(self, owner: str) -> dict[str, Mail]:
        """Trackers of kind mail in the routes of an owner, by name. They also get the owner's report."""
        names = [name for route in self.routes if route.owner and is_meant(route.owner, owner) for name in route.to]
        return {name: tracker for name in names if isinstance(tracker := self.all_trackers[name], Mail)}
