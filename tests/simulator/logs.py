"""Logs of partitions by hour, by Kafka's rules: segments, retention, and ListOffsets responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tests.simulator.clusters import PAST

KNOWN_HOURS = 21 * 24
"""Hours of offsets in the warehouse."""


class Batch(NamedTuple):
    """Records appended together; hours are indices into the arrays of hours."""

    hour: int
    records: int
    date: float
    """Timestamp of the records, as an hour index."""


class Known(NamedTuple):
    """Offsets of a log in the row of an hour."""

    start: int
    end: int
    first: int
    """Offset of the first record with a timestamp in the hour or later, else the end offset."""


@dataclass
class _Segment:
    base: int
    opened: float
    """Timestamp of the first batch; a batch `segment` later rolls the segment."""
    newest: float
    records: int = 0
    dates: list[tuple[int, float]] = field(default_factory=list)
    """Offset and timestamp of each batch."""


@dataclass
class Log:
    """The log of a partition."""

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
        """Offsets by hour."""
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
        """Deletes complete segments from the oldest on; the active one too, if another can replace it."""
        if self.stands_from is not None and hour >= self.stands_from:
            return
        retention = self.longer if hour < self.longer_until else self.retention
        while segments[0].dates and hour - segments[0].newest > retention:
            if len(segments) == 1:
                segments.append(_Segment(end, hour, -1.0))
            del segments[0]
