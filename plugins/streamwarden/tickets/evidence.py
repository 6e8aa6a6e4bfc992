"""Evidence for the dependencies of open findings: ranked causes of the last hours, and manual links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from streamwarden.detectors import Detector
from streamwarden.detectors.mechanisms import may_cause
from streamwarden.store.queries import ask
from streamwarden.tickets.plan import Run

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ManualLink:
    """A person's link or split of two findings."""

    is_linked: bool
    """False: they were split."""
    who: str


@dataclass
class Evidence:
    """Causes, effects, and manual links of findings; findings are fingerprints."""

    hours: list[datetime]
    """The last two ranked hours, newest first."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Effect → accepted cause, in the newest of them."""
    near: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Finding → its possible causes and effects in any of these hours."""
    weighed: dict[tuple[str, str], Row] = field(default_factory=dict)
    """(Effect, cause) → the newest row of `detect.cause`."""
    firing: dict[str, int] = field(default_factory=dict)
    """Finding → number of these hours in which it was firing."""
    manual_links: dict[tuple[str, str], ManualLink] = field(default_factory=dict)
    """By the fingerprints of both findings, in ascending order."""

    def are_split(self, one: str, other: str) -> bool:
        """Whether a person split these two findings."""
        link = self.manual_links.get((min(one, other), max(one, other)))
        return link is not None and not link.is_linked

    def linked_by(self, one: str, other: str) -> str | None:
        """Name of the person who linked these two findings; None: nobody did."""
        link = self.manual_links.get((min(one, other), max(one, other)))
        return link.who if link is not None and link.is_linked else None

    def is_complete(self, fingerprint: str) -> bool:
        """Whether the data suffices to rule out all causes: the finding was firing in both ranked hours."""
        return len(self.hours) == 2 and self.firing.get(fingerprint) == 2


def gather(run: Run, fingerprints: list[str]) -> Evidence:
    """The evidence for findings, as of the run's newest hour."""
    hours = run.connection.execute(_HOURS, {"newest": run.newest}).scalars().all()
    evidence = Evidence(list(hours))
    asked = {"hours": evidence.hours, "fingerprints": fingerprints}
    for row in run.connection.execute(_CAUSES, asked).mappings():
        pair = row["effect"], row["cause"]
        evidence.weighed.setdefault(pair, dict(row))
        if row["is_accepted"] and row["hour"] == evidence.hours[0]:
            evidence.accepted[row["effect"]] = row["cause"]
        if row["is_possible"]:
            evidence.near[row["effect"]].add(row["cause"])
            evidence.near[row["cause"]].add(row["effect"])
    evidence.firing = dict(run.connection.execute(_ALARMS, asked).tuples().all())
    manual_links = run.connection.execute(_MANUAL_LINKS).all()
    evidence.manual_links = {(one, other): ManualLink(is_linked, who) for one, other, is_linked, who in manual_links}
    return evidence


def missing_sources(
    connection: sa.Connection, detectors: Mapping[str, Detector], detector: str, reason: str | None, resource: str,
    hour: datetime,
) -> list[dict[str, Any]]:  # fmt: skip
    """Sources that could show the cause of a finding and did not respond in an hour.

    Args:
        detector, reason: of the finding.
        resource: key of its resource; sources of other clusters and accounts are left out.

    Returns:
        Rows of `sql/tickets/missing_sources.sql`.
    """
    apps = {app for other in may_cause(detectors, detector, reason or "") for app in other.apps}
    if not apps:
        return []
    return ask(connection, "tickets/missing_sources", hour=hour, resource=resource, apps=sorted(apps))


_HOURS = sa.text("""
    select hour from detect.weighing
    where hour <= :newest and hour > cast(:newest as timestamptz) - interval '3 hours'
    order by hour desc limit 2""")
_CAUSES = sa.text("""
    select * from detect.cause
    where hour = any(:hours) and effect = any(:fingerprints)
    order by hour desc""")
_MANUAL_LINKS = sa.text("""
    select l.one, l.other, l.is_linked, r.who
    from tickets.manual_link as l
    inner join tickets.response as r on l.response_id = r.response_id""")
_ALARMS = sa.text("""
    select fingerprint, count(*) from detect.evaluation
    where hour = any(:hours) and fingerprint = any(:fingerprints) and status = 'firing'
    group by fingerprint""")
