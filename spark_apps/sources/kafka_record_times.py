"""Timestamps of records at given offsets, found by requesting offsets by time.

`record_times(wanted)` adds `record_at` to rows of (cluster, topic, partition, offset, stands). It bisects the time
span until the response is that record, or the span is a second long; the rest is interpolated between its two ends,
`earliest_at` and `latest_at`, and a position without bounds stays null. That needs Describe on the topic and some 20
requests per 1,000 positions, within BUDGET_SECONDS.

Where a consumer `stands` (is stuck), its next records are read as well (`kafka_next_records`, with the Read
permission): `next_offset` is the first one readable with read_committed, -1: none, null: unknown; `read_end` is the
offset up to which records were read.

Limitations: ages are wrong where all producer timestamps are wrong.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import OffsetSpec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.arrow_batches import FIRST_MS_BEYOND_CALENDARS
from spark_apps.sources.kafka_client import Answer, Connection, cluster_named, list_offsets
from spark_apps.sources.kafka_next_records import Next, Place, next_records

BUDGET_SECONDS = 30
"""As long as Kafka's own clients wait for one response; without further requests it takes a second."""
_CLOSE_ENOUGH_MS = 1000
_SCHEMA = (
    "cluster string, topic string, partition int, offset bigint, record_at timestamp, earliest_at timestamp,"
    " latest_at timestamp, next_offset bigint, read_end bigint, resource string, gap string"
)
_ARROW = pa.schema(
    [
        ("cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("record_at", pa.timestamp("us", "UTC")),
        ("earliest_at", pa.timestamp("us", "UTC")),
        ("latest_at", pa.timestamp("us", "UTC")),
        ("next_offset", pa.int64()),
        ("read_end", pa.int64()),
        ("resource", pa.string()),
        ("gap", pa.string()),
    ]
)
NOTHING = -1
"""`next_offset` if no record is readable."""


def record_times(wanted: DataFrame) -> DataFrame:
    """Rows (cluster, topic, partition, offset) with `record_at`, `resource`, and `gap`; one task per cluster."""
    place = ["cluster", "topic", "partition", "offset"]
    places = wanted.groupBy(*place).agg(f.bool_or("stands").alias("stands")).repartition("cluster")
    return places.mapInArrow(_answer_batches, _SCHEMA)


def _answer_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        by_cluster: dict[str, dict[Place, bool]] = {}
        for cluster, *place, stands in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            by_cluster.setdefault(cluster, {})[place[0], place[1], place[2]] = stands
        for cluster, places in by_cluster.items():
            found, gap = _times(cluster, list(places), [place for place, stands in places.items() if stands])
            rows = [
                {
                    "cluster": cluster,
                    "topic": place[0],
                    "partition": place[1],
                    "offset": place[2],
                    **(found[place].columns() if place in found else {}),
                    "resource": cluster,
                    "gap": gap,
                }
                for place in places
            ]
            yield from pa.Table.from_pylist(rows, schema=_ARROW).to_batches()


@dataclass(frozen=True)
class _Time:
    """Time of a record in milliseconds: an estimate, and its bounds."""

    at: float
    earliest: float
    latest: float
    next_offset: int | None = None
    read_end: int | None = None

    def columns(self) -> dict[str, int | None]:
        """Columns of the result."""
        named = {"record_at": self.at, "earliest_at": self.earliest, "latest_at": self.latest}
        offsets = {"next_offset": self.next_offset, "read_end": self.read_end}
        # As in `moments`: null where a producer wrote a number that is not a time.
        is_time = {column: 0 <= ms < FIRST_MS_BEYOND_CALENDARS for column, ms in named.items()}
        return offsets | {column: int(ms * 1000) if is_time[column] else None for column, ms in named.items()}

    def read(self, offset: int, found: Next | None) -> _Time:
        """Corrected by the records read from `offset` on: not later than its record's timestamp, as an earlier one
        may be dated in the future.

        If the first readable record comes after unreadable ones, its own timestamp counts.
        """
        if found is None:
            return replace(self, next_offset=NOTHING)
        own = float(found.timestamp_ms)
        if found.offset > offset:
            return _Time(own, own, own, found.offset, found.read_end)
        return _Time(min(self.at, own), min(self.earliest, own), min(self.latest, own), found.offset, found.read_end)


@dataclass
class _Bracket:
    """The record is between two known ones: `low` at or before it, `high` after it (or the log end, now)."""

    low: Answer
    high: Answer

    @property
    def is_close(self) -> bool:
        """Whether the span is short enough."""
        return self.high.timestamp_ms - self.low.timestamp_ms <= _CLOSE_ENOUGH_MS

    @property
    def middle_ms(self) -> int:
        """Time to request next."""
        return (self.low.timestamp_ms + self.high.timestamp_ms) // 2

    def narrow(self, offset: int, answer: Answer) -> None:
        """Narrows the span by the first record at or after `middle_ms`."""
        if 0 <= answer.offset <= offset:
            self.low = answer
        else:
            self.high = Answer(answer.offset if answer.offset >= 0 else self.high.offset, self.middle_ms)

    def time_of(self, offset: int) -> _Time:
        """Exact if the record was found, otherwise interpolated between the two ends."""
        if offset == self.low.offset:
            return _Time(self.low.timestamp_ms, self.low.timestamp_ms, self.low.timestamp_ms)
        share = (offset - self.low.offset) / max(self.high.offset - self.low.offset, 1)
        latest = max(self.high.timestamp_ms, self.low.timestamp_ms)
        return _Time(self.low.timestamp_ms + share * (latest - self.low.timestamp_ms), self.low.timestamp_ms, latest)


def _times(cluster: str, places: list[Place], standing: list[Place]) -> tuple[dict[Place, _Time], str | None]:
    """Times by position, and the gap if the cluster did not respond."""
    try:
        connection = Connection(cluster_named(cluster))
    except StreamwardenError as error:
        return {}, f"failed: {error}"
    try:
        found = _search(connection, places)
    except KafkaException as error:
        return {}, connection.gap(error)
    deadline = time.monotonic() + BUDGET_SECONDS
    for turn in _turns(place for place in standing if place in found):
        for place, seen in next_records(connection, turn, deadline).items():
            found[place] = found[place].read(place[2], seen)
    return found, None


def _search(connection: Connection, places: list[Place]) -> dict[Place, _Time]:
    now_ms = int(time.time() * 1000)
    keys = {place[:2] for place in places}
    oldest = list_offsets(connection, dict.fromkeys(keys, OffsetSpec.for_timestamp(0)))
    ends = list_offsets(connection, dict.fromkeys(keys, OffsetSpec.latest()))
    deadline = time.monotonic() + BUDGET_SECONDS  # leaders without a response were waited for already
    found: dict[Place, _Time] = {}
    searched: dict[Place, _Bracket] = {}
    for place in places:
        first, end = oldest.get(place[:2]), ends.get(place[:2])
        if not isinstance(first, Answer) or not isinstance(end, Answer) or not 0 <= first.offset <= end.offset:
            continue
        if place[2] <= first.offset:  # retention has deleted uncommitted records before it
            found[place] = _Time(first.timestamp_ms, first.timestamp_ms, first.timestamp_ms)
        elif place[2] < end.offset:
            searched[place] = _Bracket(first, Answer(end.offset, now_ms))
    while searched and time.monotonic() < deadline:
        for turn in _turns(searched):
            asked = {place[:2]: OffsetSpec.for_timestamp(searched[place].middle_ms) for place in turn}
            answers = list_offsets(connection, asked)
            for place in turn:
                answer = answers.get(place[:2])
                if not isinstance(answer, Answer):  # its leader is no longer available: what is known so far is used
                    found[place] = searched.pop(place).time_of(place[2])
                    continue
                searched[place].narrow(place[2], answer)
                if answer.offset == place[2] or searched[place].is_close:
                    found[place] = searched.pop(place).time_of(place[2])
    return found | {place: bracket.time_of(place[2]) for place, bracket in searched.items()}


def _turns(places: Iterable[Place]) -> list[list[Place]]:
    """Lists with each partition once, as needed for one request."""
    turns: dict[int, list[Place]] = {}
    taken: Counter[tuple[str, int]] = Counter()
    for place in places:
        turns.setdefault(taken[place[:2]], []).append(place)
        taken[place[:2]] += 1
    return list(turns.values())
