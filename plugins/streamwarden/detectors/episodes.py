"""The state of each finding by the stored evaluations; the order in which hours were evaluated has no effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa

from streamwarden.base.catalog import APPS
from streamwarden.base.hours import ONLY_PRESENT
from streamwarden.detectors import Detector

LOOK_BACK = timedelta(days=14)  # older evaluations decide nothing

Status = Literal["firing", "ok", "unknown", "gone"]  # gone: evaluated with complete sources, and the resource is absent
CloseReason = Literal["healthy", "deleted"]


@dataclass(frozen=True)
class Episode:
    """A period in which a finding has an open ticket."""

    since: datetime
    """First firing hour."""
    opened: datetime
    """Hour that opened it: the last of the firing hours that are required."""
    closed: datetime | None = None
    """Hour that closed it; None: it is open."""
    close_reason: CloseReason | None = None


@dataclass(frozen=True)
class OpenFinding:
    """The state of a finding after all known hours."""

    fingerprint: str
    detector: str
    open_since: datetime | None
    """First firing hour of the open episode; None: no episode is open."""
    last_firing_hour: datetime | None
    clean: tuple[tuple[datetime, CloseReason], ...] = ()
    """Not open: the hour that closed it last, and the newest clean hour."""
    episodes: tuple[Episode, ...] = ()
    is_current: bool = True
    """Whether it fired in the newest evaluated hour of its detector: only then a ticket is opened, reopened, or
    commented."""

    def closes(self, opened_hour: datetime) -> tuple[datetime, CloseReason] | None:
        """Hour and reason that close a ticket opened at `opened_hour`. Without a clean hour since then, it stays."""
        if self.open_since is not None:
            return None
        return next(((hour, message) for hour, message in self.clean if hour >= opened_hour), None)


def replay(
    fingerprint: str, detector: Detector, hours: Iterable[tuple[datetime, Status]], open_before: datetime | None
) -> OpenFinding:
    """Runs through a finding's hours, oldest first.

    Args:
        open_before: start of an episode that was open already when the hours begin.
    """
    last_firing, run_start = None, None
    firing = ok = 0
    episodes = [Episode(open_before, open_before)] if open_before else []
    is_open = open_before is not None
    closing: list[tuple[datetime, CloseReason]] = []
    newest_clean: list[tuple[datetime, CloseReason]] = []
    for hour, status in hours:
        if status == "unknown":
            continue
        if status == "firing":
            run_start, last_firing = (run_start if firing else hour), hour
            firing, ok = firing + 1, 0
            if not is_open and firing >= detector.open_after_hours:
                episodes.append(Episode(run_start or hour, hour))
                is_open = True
            continue
        firing, ok = 0, ok + 1
        message: CloseReason = "deleted" if status == "gone" else "healthy"
        newest_clean = [(hour, message)]
        if is_open and (status == "gone" or ok >= detector.clear_after_hours):
            episodes[-1] = replace(episodes[-1], closed=hour, close_reason=message)
            is_open, closing = False, newest_clean
    open_since = episodes[-1].since if is_open else None
    return OpenFinding(fingerprint, detector.id, open_since, last_firing, (*closing, *newest_clean), tuple(episodes))


def open_findings(connection: sa.Connection, detectors: Mapping[str, Detector], newest: datetime) -> list[OpenFinding]:
    """All findings that fired in the 14 days before the newest evaluated hour, or that have an open ticket."""
    start = newest - LOOK_BACK
    complete = _complete_hours(connection, detectors, start)
    found = []
    newest_hours = connection.execute(_NEWEST, {"start": start, "detectors": list(detectors)})
    newest_of: dict[str, datetime] = dict(newest_hours.tuples().all())
    rows = connection.execute(_HISTORIES, {"start": start, "newest": newest, "detectors": list(detectors)})
    for fingerprint, detector_id, hours, statuses, opened_hour in rows:
        present: dict[datetime, Status] = dict(zip(hours, statuses, strict=True))
        gone: dict[datetime, Status] = {h: "gone" for h in complete.get(detector_id, ()) if h not in present}
        history = sorted((present | gone).items())
        open_before = opened_hour if opened_hour and opened_hour < start else None
        finding = replay(fingerprint, detectors[detector_id], history, open_before)
        is_current = finding.last_firing_hour == newest_of.get(detector_id)
        found.append(replace(finding, is_current=is_current))
    return found


def _complete_hours(
    connection: sa.Connection, detectors: Mapping[str, Detector], start: datetime
) -> dict[str, list[datetime]]:
    """By detector id: evaluated hours with complete sources. A resource that is absent then was deleted."""
    evaluated = connection.execute(_EVALUATED, {"start": start, "detectors": list(detectors)})
    complete = complete_hours(connection, start)
    hours: dict[str, list[datetime]] = {}
    for detector, hour in evaluated:
        apps = detectors[detector].apps
        if apps and all((app, hour) in complete for app in apps):
            hours.setdefault(detector, []).append(hour)
    return hours


def complete_hours(connection: sa.Connection, start: datetime) -> set[tuple[str, datetime]]:
    """Apps and hours (UTC) in which every source responded completely.

    An app that only adds to what others gather, such as `msk`, may have nothing to read: then it is complete.
    """
    adding = [app.name for app in APPS.values() if app.only_adds]
    return {(app, hour) for app, hour in connection.execute(_COMPLETE, {"start": start, "adding": adding})}


_HISTORIES = sa.text("""
    with opened as (
      select fingerprint, detector, opened_hour from tickets.ticket
      where state = 'open' and detector = any(:detectors)
    ),
    candidate as (
      select fingerprint, detector from detect.evaluation
      where hour between :start and :newest and status = 'firing' and detector = any(:detectors)
      union
      select fingerprint, detector from opened
    )
    select
      c.fingerprint, c.detector,
      coalesce(array_agg(e.hour order by e.hour) filter (where e.hour is not null), '{}') as hours,
      coalesce(array_agg(e.status order by e.hour) filter (where e.hour is not null), '{}') as statuses,
      (select o.opened_hour from opened as o where o.fingerprint = c.fingerprint) as opened_hour
    from candidate as c
    left join detect.evaluation as e
      on c.fingerprint = e.fingerprint and c.detector = e.detector and e.hour between :start and :newest
    group by c.fingerprint, c.detector""")

_NEWEST = sa.text("""
    select detector, max(hour) from detect.detector_run
    where hour >= :start and status = 'evaluated' and detector = any(:detectors)
    group by detector""")
_EVALUATED = sa.text("""
    select detector, hour from detect.detector_run
    where hour >= :start and status = 'evaluated' and detector = any(:detectors)""")
# `missing` means that the source responded and does not have the data; after `failed` and `late` it is unknown.
# A source that only reports current values and was read too late does not count: what it does not list now may have
# existed in the hour.
_COMPLETE = sa.text(f"""
    select l.app, l.hour from detect.load as l
    left join detect.coverage as c on l.hour = c.hour and l.app = c.app
    where l.hour >= :start and l.status = 'loaded'
    group by l.app, l.hour
    having
      bool_or(c.status = 'complete')
      and not bool_or(c.status in ('failed', 'late') or c.message like '%{ONLY_PRESENT}%')
      or count(c.status) = 0 and l.app = any(cast(:adding as text[]))
    union all
    select adding.app, h.hour from unnest(cast(:adding as text[])) as adding (app)
    cross join (select distinct hour from detect.load where hour >= :start) as h
    where not exists (select from detect.load as l where l.hour = h.hour and l.app = adding.app)""")  # noqa: S608 our own text
