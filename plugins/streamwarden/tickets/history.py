"""Where each finding stands, by the stored evaluations alone: the order in which hours were judged doesn't matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa

from spark_apps.catalogue import WRITER_OF
from streamwarden.detectors import Detector

LOOK_BACK = timedelta(days=14)  # evaluations older than this before the newest one decide nothing any more

Status = Literal["alarm", "ok", "skip", "gone"]  # gone: judged with complete sources, and the resource isn't there
CloseReason = Literal["healthy", "deleted"]


@dataclass(frozen=True)
class Standing:
    """A finding after all hours known."""

    fingerprint: str
    detector: str
    open_since: datetime | None
    """First hour in alarm of the present episode; null: no episode is open."""
    last_alarm_hour: datetime | None
    clean: tuple[tuple[datetime, CloseReason], ...] = ()
    """Not open: the hour that closed it last, and the newest clean hour."""

    def closes(self, opened_hour: datetime) -> tuple[datetime, CloseReason] | None:
        """Hour and reason that close a ticket opened at `opened_hour`. Without a clean hour since then, it stays."""
        if self.open_since is not None:
            return None
        return next(((hour, reason) for hour, reason in self.clean if hour >= opened_hour), None)


def replay(
    fingerprint: str, detector: Detector, hours: Iterable[tuple[datetime, Status]], open_before: datetime | None
) -> Standing:
    """Runs through a finding's hours, oldest first.

    Args:
        open_before: start of an episode that was open already when the hours begin.
    """
    open_since, last_alarm, run_start = open_before, None, None
    alarms = oks = 0
    closing: list[tuple[datetime, CloseReason]] = []
    newest_clean: list[tuple[datetime, CloseReason]] = []
    for hour, status in hours:
        if status == "skip":
            continue
        if status == "alarm":
            run_start, last_alarm = (run_start if alarms else hour), hour
            alarms, oks = alarms + 1, 0
            if open_since is None and alarms >= detector.open_after_hours:
                open_since = run_start
            continue
        alarms, oks = 0, oks + 1
        newest_clean = [(hour, "deleted" if status == "gone" else "healthy")]
        if open_since is not None and (status == "gone" or oks >= detector.clear_after_hours):
            open_since, closing = None, newest_clean
    return Standing(fingerprint, detector.id, open_since, last_alarm, (*closing, *newest_clean))


def standings(connection: sa.Connection, detectors: Mapping[str, Detector], newest: datetime) -> list[Standing]:
    """All findings with an alarm in the window that ends with the newest evaluated hour, or with an open ticket."""
    start = newest - LOOK_BACK
    complete = _complete_hours(connection, detectors, start)
    found = []
    rows = connection.execute(_HISTORIES, {"start": start, "newest": newest, "detectors": list(detectors)})
    for fingerprint, detector_id, hours, statuses, opened_hour in rows:
        present: dict[datetime, Status] = dict(zip(hours, statuses, strict=True))
        gone: dict[datetime, Status] = {h: "gone" for h in complete.get(detector_id, ()) if h not in present}
        history = sorted((present | gone).items())
        open_before = opened_hour if opened_hour and opened_hour < start else None
        found.append(replay(fingerprint, detectors[detector_id], history, open_before))
    return found


def _complete_hours(
    connection: sa.Connection, detectors: Mapping[str, Detector], start: datetime
) -> dict[str, list[datetime]]:
    """By detector: the hours it judged while every source of its tables answered in full. Absence means gone then."""
    needs = sorted({(d.id, WRITER_OF[table]) for d in detectors.values() for table in d.reads if table in WRITER_OF})
    rows = connection.execute(
        _COMPLETE,
        {
            "start": start,
            "detectors": list(detectors),
            "needing": [detector for detector, _ in needs],
            "apps": [app for _, app in needs],
        },
    )
    hours: dict[str, list[datetime]] = {}
    for detector, hour in rows:
        hours.setdefault(detector, []).append(hour)
    return hours


_HISTORIES = sa.text("""
    with opened as (
      select fingerprint, detector, opened_hour from tickets.ticket
      where state = 'open' and detector = any(:detectors)
    ),
    candidate as (
      select fingerprint, detector from detect.evaluation
      where hour between :start and :newest and status = 'alarm' and detector = any(:detectors)
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

# `missing` means that the other side doesn't have it, which is an answer; `refused` and `late` aren't.
_COMPLETE = sa.text("""
    with need as (
      select * from unnest(cast(:needing as text[]), cast(:apps as text[])) as n (detector, app)
    ),
    answered as (
      select c.hour, c.app from detect.coverage as c
      inner join detect.load as l on c.hour = l.hour and c.app = l.app and l.status = 'loaded'
      where c.hour >= :start
      group by c.hour, c.app
      having bool_or(c.status = 'answered') and not bool_or(c.status in ('refused', 'late'))
    )
    select j.detector, j.hour from detect.judgement as j
    where
      j.hour >= :start and j.status = 'judged' and j.detector = any(:detectors)
      and exists (select 1 from need as n where n.detector = j.detector)
      and not exists (
        select 1 from need as n
        where n.detector = j.detector and (j.hour, n.app) not in (select a.hour, a.app from answered as a)
      )""")
