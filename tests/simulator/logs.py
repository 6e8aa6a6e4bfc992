"""Logs of partitions by Kafka's own rules, hour by hour: segments, what retention takes, what ListOffsets answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tests.simulator.clusters import PAST

KNOWN_HOURS = 21 * 24
"""For so long the warehouse knows offsets."""


class Batch(NamedTuple):
    """Records that come in together; hours are places in the arrays of hours."""

    hour: int
    records: int
    date: float
    """Their timestamp, as an hour."""


class Known(NamedTuple):
    """What a row of an hour says."""

    start: int
    end: int
    first: int
    """The first record that is dated in the hour or later, else the end."""


@dataclass
class _Segment:
    base: int
    opened: float
    """The date of its first batch: one dated `segment` later begins another."""
    newest: float
    records: int = 0
    dates: list[tuple[int, float]] = field(default_factory=list)
    """Offset and date of each batch."""


@dataclass
class Log:
    """A partition's log."""

    retention: int
    segment: int
    segment_records: int
    batches: list[Batch]
    stands_from: int | None = None
    """From this hour on retention deletes nothing."""
    made_at: frozenset[int] = frozenset()
    """Hours in which the topic was deleted and recreated."""
    longer: int = 0
    longer_until: int = 0
    """Before this hour `retention.ms` was longer."""

    @cached_property
    def known(self) -> list[Known]:
        """By hour."""
        by_hour: list[list[Batch]] = [[] for _ in range(PAST + 1)]
        for batch in self.batches:
            by_hour[batch.hour].append(batch)
        segments, end, known = [_Segment(0, 0.0, -1.0)], 0, []
        for hour in range(PAST + 1):
            if hour in self.made_at:
                segments, end = [_Segment(0, hour, -1.0)], 0
            for batch in by_hour[hour]:
                end = self._append(segments, end, batch)
            self._delete(segments, end, hour)
            dated = (offset for each in segments if each.newest >= hour for offset, date in each.dates if date >= hour)
            known.append(Known(segments[0].base, end, next(dated, end)))
        return known

    def _append(self, segments: list[_Segment], end: int, batch: Batch) -> int:
        if not batch.records:
            return end
        active = segments[-1]
        is_full = active.records >= self.segment_records
        if active.dates and (is_full or batch.date - active.opened > self.segment):
            active = _Segment(end, batch.date, batch.date)
            segments.append(active)
        if not active.dates:
            active.opened = batch.date
        active.dates.append((end, batch.date))
        active.records += batch.records
        active.newest = max(active.newest, batch.date)
        return end + batch.records

    def _delete(self, segments: list[_Segment], end: int, hour: int) -> None:
        """Whole segments, from the oldest on; the active one as well, where another can take its place."""
        if self.stands_from is not None and hour >= self.stands_from:
            return
        retention = self.longer if hour < self.longer_until else self.retention
        while segments[0].dates and hour - segments[0].newest > retention:
            if len(segments) == 1:
                segments.append(_Segment(end, hour, -1.0))
            del segments[0]
