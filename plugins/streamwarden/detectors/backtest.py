"""Backtests: evaluate a detector on past hours of the warehouse, as configured and with changes. Store nothing.

A change is other parameters, or another SQL file. Both variants run on one read-only snapshot, and the differences
between their tickets are returned. The config's exceptions apply, as in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
import yaml

from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR
from streamwarden.detectors.episodes import Episode, Status, complete_hours, replay
from streamwarden.detectors.evaluate import evaluated_rows
from streamwarden.detectors.finding import fingerprint_of, verdict_of
from streamwarden.detectors.load import Detector, ParameterValue
from streamwarden.detectors.resources import Resource
from streamwarden.rendering.readable import moment, span

Progress = Callable[[int, int], None]
"""Called after each hour with the number of evaluated hours and of all hours."""
Params = Mapping[str, ParameterValue]


@dataclass
class Outcome:
    """Result of all hours with one detector and one set of parameters."""

    detector: Detector
    params: Params
    resources: dict[str, Resource] = field(default_factory=dict)
    """By key, as first seen."""
    resource_names: dict[str, str] = field(default_factory=dict)
    """By fingerprint."""
    histories: dict[str, dict[datetime, Status]] = field(default_factory=dict)
    """Status of each hour, by fingerprint."""
    episodes: dict[str, tuple[Episode, ...]] = field(default_factory=dict)
    """Tickets by fingerprint, in order of time."""

    def hours_of(self, status: Status) -> int:
        """Number of hours with a status, summed over resources."""
        return sum(found == status for history in self.histories.values() for found in history.values())

    def tickets(self, reopen_within: timedelta) -> tuple[int, int]:
        """Number of opened tickets, and of reopenings: the finding fired again within `reopen_within`."""
        total = sum(map(len, self.episodes.values()))
        reopened = sum(
            earlier.closed is not None and later.since - earlier.closed <= reopen_within
            for episodes in self.episodes.values()
            for earlier, later in pairwise(episodes)
        )
        return total - reopened, reopened


@dataclass(frozen=True)
class Difference:
    """A ticket of a finding with both variants; None: the variant has no ticket."""

    fingerprint: str
    resource_name: str
    in_force: Episode | None
    tried: Episode | None

    @property
    def is_one(self) -> bool:
        """Whether the change affects the ticket."""
        return self.in_force != self.tried

    @property
    def words(self) -> str:
        """The effect of the change on the ticket, in words."""
        if self.in_force is None:
            return "opens"
        if self.tried is None:
            return "is not opened"
        parts = [_shift("opens", self.in_force.opened, self.tried.opened)]
        parts.append(_shift("closes", self.in_force.closed, self.tried.closed))
        return ", ".join(filter(None, parts)) or "unchanged"


@dataclass(frozen=True)
class Backtest:
    """The evaluated hours and the outcome of both variants."""

    detector: str
    start: datetime
    end: datetime
    hours: tuple[datetime, ...]
    """Hours of [start, end) that the warehouse has."""
    in_force: Outcome
    tried: Outcome

    @property
    def hours_asked(self) -> int:
        """Number of hours between start and end."""
        return (self.end - self.start) // HOUR

    def differences(self) -> list[Difference]:
        """All tickets of both outcomes, ordered by resource and time; tickets that overlap in time are paired."""
        resources = self.in_force.resource_names | self.tried.resource_names
        return [
            Difference(fingerprint, resource_name, in_force, tried)
            for fingerprint, resource_name in sorted(resources.items(), key=lambda item: (item[1], item[0]))
            for in_force, tried in _pairs(
                self.in_force.episodes.get(fingerprint, ()), self.tried.episodes.get(fingerprint, ())
            )
        ]


def parse_settings(detector: Detector, texts: Iterable[str]) -> dict[str, ParameterValue]:
    """Parameters from `name=value` on the command line.

    Raises:
        StreamwardenError: a text without `=`; names and types are checked by `Detector.with_params`.
    """
    values: dict[str, ParameterValue] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise StreamwardenError(f"--set {text}: write it as name=value.")
        parameter = detector.params.get(name)
        values[name] = value if parameter is None or isinstance(parameter.default, str) else _scalar(value)
    return values


def backtest(
    engine: sa.Engine, config: Config, detector: Detector, start: datetime, end: datetime, *,
    tried: tuple[Detector, Params] | None, progress: Progress, statement_timeout: str = "0",
) -> Backtest:  # fmt: skip
    """Evaluates a detector for the hours of [start, end) that the warehouse has, as configured and as tried.

    `statement_timeout`: of the evaluation of one hour, as PostgreSQL writes it, `60s`; `0`: none.

    A finding that was already firing before `start` opens a ticket in the first hour.

    Raises:
        StreamwardenError: the warehouse has none of the hours, or the detector fails for one; one line.
    """
    if start >= end:
        raise StreamwardenError(f"--from {moment(start)}: must be before --to {moment(end)}.")
    in_force = detector.params_in_force(config)
    outcomes = [Outcome(detector, in_force)]
    if tried is not None and (tried[0].checksum, dict(tried[1])) != (detector.checksum, in_force):
        outcomes.append(Outcome(*tried))
    options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection:
        connection.execute(_PLAN_ONCE)
        connection.execute(sa.text("select set_config('statement_timeout', :it, true)"), {"it": statement_timeout})
        hours = _loaded_hours(connection, detector, start, end)
        complete = complete_hours(connection, start)
        for number, hour in enumerate(hours, start=1):
            for outcome in outcomes:
                _evaluate(connection, config, hour, outcome)
            progress(number, len(hours))
    gone_hours = [hour for hour in hours if detector.apps and all((app, hour) in complete for app in detector.apps)]
    for outcome in outcomes:
        _find_episodes(outcome, gone_hours)
    return Backtest(detector.id, start, end, tuple(hours), outcomes[0], outcomes[-1])


def for_scripts(result: Backtest, reopen_within: timedelta) -> dict[str, Any]:
    """A backtest as JSON-serializable values; times in ISO 8601, UTC."""
    return {
        "detector": result.detector,
        "from": result.start.isoformat(),
        "to": result.end.isoformat(),
        "hours_asked": result.hours_asked,
        "hours_in_warehouse": len(result.hours),
        "in_force": _metrics(result.in_force, reopen_within),
        "tried": _metrics(result.tried, reopen_within),
        "tickets": [
            {
                "fingerprint": difference.fingerprint,
                "resource_name": difference.resource_name,
                "difference": difference.words,
                "in_force": _episode(difference.in_force),
                "tried": _episode(difference.tried),
            }
            for difference in result.differences()
        ],
    }


def _metrics(outcome: Outcome, reopen_within: timedelta) -> dict[str, Any]:
    tickets, reopened = outcome.tickets(reopen_within)
    return {
        "params": dict(outcome.params),
        "tickets": tickets,
        "reopened": reopened,
        "hours_firing": outcome.hours_of("firing"),
        "hours_not_evaluated": outcome.hours_of("unknown"),
    }


def _episode(episode: Episode | None) -> dict[str, str | None] | None:
    if episode is None:
        return None
    return {
        "since": episode.since.isoformat(),
        "opened": episode.opened.isoformat(),
        "closed": episode.closed.isoformat() if episode.closed else None,
        "close_reason": episode.close_reason,
    }


def spans(hours: Iterable[datetime]) -> list[tuple[datetime, datetime]]:
    """Contiguous half-open spans of sorted hours."""
    found: list[tuple[datetime, datetime]] = []
    for hour in hours:
        if found and found[-1][1] == hour:
            found[-1] = (found[-1][0], hour + HOUR)
        else:
            found.append((hour, hour + HOUR))
    return found


def spans_in_words(hours: Iterable[datetime], most: int = 3) -> str:
    """The newest `most` spans of sorted hours, in words."""
    found = spans(hours)
    words = [f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}" for start, end in found[-most:]]
    before = f"{len(found) - most} spans, the newest: " if len(found) > most else ""
    return f"{before}{', '.join(words)} UTC"


def _evaluate(connection: sa.Connection, config: Config, hour: datetime, outcome: Outcome) -> None:
    detector = outcome.detector
    for one in evaluated_rows(connection, detector, hour, config, outcome.params, outcome.resources):
        fingerprint = fingerprint_of(detector.id, one.resource)
        status = "ok" if one.excepted else verdict_of(detector, one.row["reason"], one.resource).status
        outcome.resource_names[fingerprint] = one.resource.name
        outcome.histories.setdefault(fingerprint, {})[hour] = status


def _find_episodes(outcome: Outcome, gone_hours: list[datetime]) -> None:
    for fingerprint, history in outcome.histories.items():
        gone: dict[datetime, Status] = dict.fromkeys(gone_hours, "gone")
        outcome.episodes[fingerprint] = replay(
            fingerprint, outcome.detector, sorted((gone | history).items()), None
        ).episodes


def _loaded_hours(connection: sa.Connection, detector: Detector, start: datetime, end: datetime) -> list[datetime]:
    apps = [app for app in detector.apps if not APPS[app].only_adds] or list(detector.apps)
    loaded = list(connection.execute(_LOADED, {"apps": apps}).scalars())
    hours = [hour for hour in loaded if start <= hour < end]
    if not hours:
        has = f"the warehouse has {spans_in_words(loaded)}" if loaded else "the warehouse has none yet"
        raise StreamwardenError(
            f"{detector.id}: the warehouse has no hour from {moment(start)} to {moment(end)} in which the apps"
            f" {', '.join(apps)} loaded their tables; {has}."
        )
    return hours


def _pairs(in_force: Iterable[Episode], tried: Iterable[Episode]) -> list[tuple[Episode | None, Episode | None]]:
    """Pairs of overlapping episodes of both variants, and single episodes, in order of time."""
    left = list(tried)
    pairs: list[tuple[Episode | None, Episode | None]] = []
    for episode in in_force:
        partner = next((other for other in left if _overlap(episode, other)), None)
        if partner is not None:
            left.remove(partner)
        pairs.append((episode, partner))
    pairs += [(None, other) for other in left]
    return sorted(pairs, key=lambda pair: min(episode.since for episode in pair if episode))


def _overlap(one: Episode, other: Episode) -> bool:
    return (one.closed is None or other.since < one.closed) and (other.closed is None or one.since < other.closed)


def _shift(verb: str, before: datetime | None, after: datetime | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        return "is closed before the end" if before is None else "stays open"
    return f"{verb} {span(abs((after - before).total_seconds()))} {'earlier' if after < before else 'later'}"


def _scalar(text: str) -> ParameterValue:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float) else text


# The statement runs hundreds of times, and planning a large one takes longer than running it.
_PLAN_ONCE = sa.text("set local plan_cache_mode = force_generic_plan")
_LOADED = sa.text("""
    select hour from detect.load
    where app = any(:apps) and status = 'loaded'
    group by hour having count(*) = cardinality(cast(:apps as text[]))
    order by hour""")
