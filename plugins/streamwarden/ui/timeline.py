"""The timeline of a resource: findings, changes, and metrics on one time axis, as lanes that a template draws as SVG.

Positions are percentages of the width, so that the picture fits a phone and a wide screen without a script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streamwarden.base.hours import HOUR
from streamwarden.rendering.readable import clean, counted, labels, moment, readable, span
from streamwarden.store.queries import Row

RANGES = {"24h": 24, "7d": 168, "35d": 840}
"""Ranges of the page, in hours."""
MAX_POINTS, CURVES, CURVE_HEIGHT = 168, 3, 40
MAX_LANES, MAX_CHANGES, MAX_MESSAGE = 14, 200, 160


@dataclass(frozen=True)
class Bar:
    """Consecutive hours with one status."""

    left: float
    """Percent of the width, as are all positions."""
    width: float
    css: str
    text: str


@dataclass(frozen=True)
class Lane:
    """The periods of one finding."""

    label: str
    bars: list[Bar]


@dataclass(frozen=True)
class Curve:
    """A metric: lines of points in a box of 1000 × CURVE_HEIGHT; hours without a value interrupt them."""

    label: str
    highest: str
    lines: list[str]


@dataclass(frozen=True)
class Mark:
    """A change."""

    left: float
    text: str
    hour: datetime


@dataclass(frozen=True)
class Timeline:
    """The lanes and the time axis."""

    start: datetime
    finish: datetime
    lanes: list[Lane]
    curves: list[Curve]
    marks: list[Mark]
    ticks: list[tuple[float, str]]
    more_lanes: int = 0

    @property
    def label(self) -> str:
        """The timeline as text."""
        parts = [f"{lane.label}: {'; '.join(bar.text for bar in lane.bars) or 'no data'}." for lane in self.lanes[:5]]
        changes = f"{counted(len(self.marks), 'change')}." if self.marks else "No changes."
        return " ".join([f"{moment(self.start)} to {moment(self.finish)}.", *parts, changes])


def timeline(newest: datetime, hours: int, periods: Sequence[Row], titles: Mapping[str, str],
             known: Sequence[Row], changes: Sequence[Row]) -> Timeline:  # fmt: skip
    """The timeline of the hours up to the newest.

    Args:
        periods: rows of `pages/resource_periods`.
        titles: detector → title.
        known: rows of `pages/hours/<kind>`.
        changes: as `changes_of` returns them, with `text`.
    """
    start, finish = newest - (hours - 1) * HOUR, newest + HOUR
    whole = finish - start

    def place(at: datetime) -> float:
        return round(100 * (min(max(at, start), finish) - start) / whole, 2)

    by_detector: dict[str, list[Row]] = {}
    for row in periods:
        if row["status"] != "not_applicable":
            by_detector.setdefault(row["detector"], []).append(row)
    order = sorted(by_detector, key=lambda detector: (_rank(by_detector[detector]), titles.get(detector, detector)))
    lanes = [
        Lane(clean(titles.get(detector, detector)), [_bar(row, place) for row in by_detector[detector]])
        for detector in order
    ]
    marks = [Mark(place(row["hour"]), row["text"], row["hour"]) for row in changes[-MAX_CHANGES:]]
    return Timeline(
        start, finish, lanes[:MAX_LANES], _curves(known), marks, _ticks(start, finish, place),
        max(len(lanes) - MAX_LANES, 0),
    )  # fmt: skip


def _rank(periods: Sequence[Row]) -> int:
    """Firing findings first, then those that were not evaluated, then healthy ones."""
    statuses = {row["status"] for row in periods}
    return 0 if "firing" in statuses else 1 if "unknown" in statuses else 2


def _bar(row: Row, place: Any) -> Bar:
    left, end = place(row["since"]), place(row["last_hour"] + HOUR)
    hours = (row["last_hour"] - row["since"]) / HOUR + 1
    status = {"firing": row["severity"] or "info", "ok": "healthy", "unknown": "not evaluated"}[row["status"]]
    when = f"{row['since'].astimezone(UTC):%d %b %H:%M} to {row['last_hour'].astimezone(UTC) + HOUR:%d %b %H:%M} UTC"
    text = f"{status}, {when} ({span(hours * 3600)})"
    if row["status"] != "ok":
        message = clean(row["message"])
        text += f": {message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + '…'}"
    css = f"s-{row['status']} {row['severity'] or ''}".strip()
    return Bar(left, round(end - left, 2), css, text)


def _curves(known: Sequence[Row]) -> list[Curve]:
    columns = [
        column for column, value in (known[0] if known else {}).items() if column not in ("hour", "state")
        and any(isinstance(row[column], int | float) for row in known)
    ]  # fmt: skip
    named = labels(columns)
    drawn = [column for column in columns if all(_is_number(row[column]) for row in known)][:CURVES]
    return [_curve(named[column], column, [row[column] for row in known]) for column in drawn]


def _is_number(value: Any) -> bool:
    return value is None or not isinstance(value, str | bool)


def _curve(label: str, column: str, values: Sequence[Any]) -> Curve:
    """The largest value of each step is drawn: a short peak stays visible in 35 days."""
    highest = max(float(value) for value in values if value is not None)
    lowest = min(0.0, min(float(value) for value in values if value is not None))
    height = (highest - lowest) or 1.0
    step = -(-len(values) // MAX_POINTS)
    lines: list[list[str]] = [[]]
    for first in range(0, len(values), step):
        inside = [float(value) for value in values[first : first + step] if value is not None]
        if not inside:
            lines.append([])
            continue
        x = (first + min(step, len(values) - first) / 2) / len(values) * 1000
        y = (CURVE_HEIGHT - 2) * (1 - (max(inside) - lowest) / height) + 1
        lines[-1].append(f"{x:.0f},{y:.1f}")
    drawn = [" ".join(line if len(line) > 1 else line * 2) for line in lines if line]  # a single point: a short line
    return Curve(label, readable(column, highest)[1], drawn)


def _ticks(start: datetime, finish: datetime, place: Any) -> list[tuple[float, str]]:
    """Positions and labels of the time axis: every six hours, every day, or every week."""
    hours = (finish - start) / HOUR
    step, form = (6, "%H:%M") if hours <= 24 else (24, "%d %b") if hours <= 168 else (168, "%d %b")
    first = start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    while first.hour % min(step, 24):
        first += HOUR
    ticks = []
    while first < finish:
        ticks.append((place(first), f"{first:{form}}"))
        first += step * HOUR
    return [tick for tick in ticks if tick[0] < 95]
