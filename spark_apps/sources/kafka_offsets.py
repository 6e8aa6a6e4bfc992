"""Offsets of Kafka clusters: committed offsets of groups, and the start and end of logs. Two kinds of rows:

`committed`: group, topic, partition, committed_offset. `log`: topic, partition, and its offsets: start, end, last
stable (no transaction is open below it), and the log end at `from`, at `to`, and RECENT_SECONDS before it, found by
timestamp. Committed offsets are read first, so that lag is overstated, never negative. `as_of` is `to`, or the time
of the read if that is earlier: the time for which the row's values at `to` are valid.

Data that the warehouse has is not requested: the end at `from` is that at the end of the previous hour, and a log
with the same end as an hour ago had it all the time.

Reads: ListGroups, OffsetFetch (one per group), ListOffsets (two per 200 partitions, three or four more per 200 that
received records); metrics.partition_hourly of the hour before. Needs: Describe on topics and groups. Limitations: a
gap row for each partition without a leader; wrong offsets by time where producer timestamps are wrong; a topic that
was deleted, recreated, and filled beyond its old end within the hour is not recognized.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import OffsetSpec

from spark_apps.runtime.warehouse_io import query_in_task
from spark_apps.sources.arrow_batches import batch_of
from spark_apps.sources.kafka_client import (
    Answer,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
    OffsetReaders,
    Specs,
    led_partitions,
    list_offsets,
)
from spark_apps.sources.kafka_coordinators import PATIENCE_SECONDS, ask_groups, list_groups

RECENT_SECONDS = 60
Committed = tuple[str, str, int, int | None, str | None]
"""Group, topic, partition, offset, and why there is none."""


_KNOWN = """
    select topic, partition,
      case when offsets_at >= cast($2 as timestamptz) then log_end_offset_last end as first,
      case when offsets_at <= cast($3 as timestamptz) then log_end_offset end as ended,
      case when offsets_at <= cast($3 as timestamptz) then last_stable_offset end as stable
    from metrics.partition_hourly
    where cluster = $1 and hour = cast($2 as timestamptz) - interval '1 hour'
"""


@dataclass(frozen=True)
class _Known:
    """Data of the previous hour: log ends at the start of this hour, and log ends and last stable offsets when last
    queried."""

    first: dict[tuple[str, int], int]
    end: dict[tuple[str, int], int]
    stable: dict[tuple[str, int], int]


class _Asker:
    """Requests offsets from a cluster: in bulk for as long as all partitions respond, then with a timeout for each."""

    def __init__(self, connection: Connection, readers: OffsetReaders, *, is_whole: bool) -> None:
        self.failed: dict[tuple[str, int], BaseException] = {}
        self._connection, self._readers, self._is_whole = connection, readers, is_whole

    def ask(self, specs: Specs) -> dict[str, dict[tuple[str, int], int]]:
        """Offsets by name of spec, without partitions that failed now or before: a leader without response is waited
        for once."""
        if self._is_whole and (found := self._readers.ask(specs)):
            return found
        self._is_whole, found = False, {}
        for name, (at, committed_only, keys) in specs.items():
            spec = OffsetSpec.for_timestamp(at)  # Kafka's protocol represents log start and end as negative times
            asked = dict.fromkeys((key for key in keys if key not in self.failed), spec)
            answers = list_offsets(self._connection, asked, committed_only=committed_only)
            self.failed |= {key: answer for key, answer in answers.items() if isinstance(answer, BaseException)}
            found[name] = {key: answer.offset for key, answer in answers.items() if isinstance(answer, Answer)}
        return found


class OffsetsReader(ClusterReader):
    """Reads the offsets of a cluster; see the module.

    Options `from`, `to`: epoch milliseconds; `warehouse`: its address, empty: from the task's environment; absent: all
    offsets are requested.
    """

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Committed offsets and logs of one cluster."""
        now_ms = int(time.time() * 1000)
        self.to_ms = min(int(self.options["to"]), now_ms)
        self.read_at, self.as_of = _utc(now_ms), _utc(self.to_ms)
        try:
            yield from self._committed(connection)
            leaders = {(t, p): leader for t, p, leader in led_partitions(connection.metadata())}
            with OffsetReaders(connection) as readers:
                asker = _Asker(connection, readers, is_whole=min(leaders.values(), default=0) >= 0)
                yield from self._logs(connection, asker, leaders, is_over=self.to_ms < now_ms)
        except KafkaException as error:
            name = connection.cluster.name
            yield from self.batches([self._with_clock(self.gap_row(name, name, connection.gap(error)))])

    def _with_clock(self, row: dict[str, Any]) -> dict[str, Any]:
        return row | {"as_of": self.as_of, "read_at": self.read_at}

    def _committed(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        deadline = time.monotonic() + PATIENCE_SECONDS
        listed = list_groups(connection, deadline)
        rows, refused = committed_offsets(name, [*listed.protocols, *listed.streams], deadline)
        gaps = [self.gap_row(name, f"{name} groups", gap) for gap in listed.gaps]
        gaps += [self.gap_row(name, f"{name} group {g}", gap) | {"group_id": g} for g, gap in refused.items()]
        yield from self.batches(self._with_clock(gap | {"kind": "committed"}) for gap in gaps)
        yield from self._columns(
            len(rows),
            {
                "cluster": name,
                "kind": "committed",
                "group_id": [r[0] for r in rows],
                "topic": [r[1] for r in rows],
                "partition": [r[2] for r in rows],
                "committed_offset": [r[3] for r in rows],
                "resource": [f"{name} group {r[0]}" if r[4] else name for r in rows],
                "gap": [f"failed: {r[4]} ({r[1]}-{r[2]})" if r[4] else None for r in rows],
            },
        )

    def _logs(
        self, connection: Connection, asker: _Asker, leaders: dict[tuple[str, int], int], *, is_over: bool
    ) -> Iterator[pa.RecordBatch]:
        name, known = connection.cluster.name, self._known(connection.cluster.name)
        led = [key for key, leader in leaders.items() if leader >= 0]
        bounds = {"log_start_offset": (OFFSET_BEGINNING, False, led), "log_end_offset": (OFFSET_END, False, led)}
        found = asker.ask(bounds)
        end = found["log_end_offset"]
        moved = [key for key in end if known.end.get(key) != end[key]]
        open_or_moved = [key for key in end if known.end.get(key) != end[key] or known.stable.get(key) != end[key]]
        first = {key: offset for key, offset in known.first.items() if key in end and offset <= end[key]}
        specs = {
            "offset_at_from": (int(self.options["from"]), False, [key for key in moved if key not in first]),
            "recent_offset": (self._recent_ms, False, moved),
            "offset_at_to": (self.to_ms, False, moved if is_over else []),
            "last_stable_offset": (OFFSET_END, True, open_or_moved),
        }
        found |= asker.ask(specs)
        found["offset_at_from"] = first | found["offset_at_from"]
        gaps = []
        for key, leader in leaders.items():
            if leader < 0 or key in asker.failed:
                failed = asker.failed.get(key)
                reason = connection.gap(failed) if failed else "failed: the partition has no leader."
                gap = self.gap_row(name, f"{name} topic {key[0]}-{key[1]}", reason)
                gaps.append(self._with_clock(gap | {"kind": "log", "topic": key[0], "partition": key[1]}))
        yield from self.batches(gaps)
        yield from self._log_rows(name, [key for key in led if key not in asker.failed], found)

    def _log_rows(
        self, name: str, keys: list[tuple[str, int]], found: dict[str, dict[tuple[str, int], int]]
    ) -> Iterator[pa.RecordBatch]:
        end = found["log_end_offset"]
        # Not requested, or no record at or after that time: the log ended there already.
        columns = {
            column: [o if (o := of.get(key, -1)) >= 0 else end[key] for key in keys] for column, of in found.items()
        }
        # It was requested after the end: no transaction above it was open below that end.
        columns["last_stable_offset"] = list(map(min, columns["last_stable_offset"], columns["log_end_offset"]))
        where = {"topic": [key[0] for key in keys], "partition": [key[1] for key in keys]}
        yield from self._columns(len(keys), {"cluster": name, "resource": name, "kind": "log"} | where | columns)

    def _known(self, cluster: str) -> _Known:
        if "warehouse" not in self.options:
            return _Known({}, {}, {})
        begin, recent = (_utc(int(ms)).isoformat() for ms in (self.options["from"], self._recent_ms))
        found = query_in_task(_KNOWN, (cluster, begin, recent), self.options["warehouse"] or None).to_pydict()
        places = list(zip(found["topic"], found["partition"], strict=True))
        first, end, stable = (
            {place: offset for place, offset in zip(places, found[column], strict=True) if offset is not None}
            for column in ("first", "ended", "stable")
        )
        return _Known(first, end, stable)

    @property
    def _recent_ms(self) -> int:
        return self.to_ms - RECENT_SECONDS * 1000

    def _columns(self, rows: int, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Columns as in `batch_of`. Without rows: one row, which shows that there was a response."""
        columns = self._with_clock(columns)
        if rows == 0:
            answered = {name: value for name, value in columns.items() if not isinstance(value, list)}
            yield from self.batches([answered | {"resource": columns["cluster"]}])
            return
        yield batch_of(self.schema, rows, columns)


class KafkaOffsets(ClusterSource):
    """Spark data source `kafka_offsets`."""

    reader_type = OffsetsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kafka_offsets"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, kind string, group_id string, topic string, partition int, committed_offset bigint,"
            " log_start_offset bigint, log_end_offset bigint, last_stable_offset bigint, offset_at_from bigint,"
            " recent_offset bigint, offset_at_to bigint, as_of timestamp, read_at timestamp,"
            " resource string, gap string"
        )


def committed_offsets(cluster: str, groups: list[str], deadline: float) -> tuple[list[Committed], dict[str, str]]:
    """Committed offsets of these groups, and gaps by group."""
    answers, gaps = ask_groups(cluster, groups, _fetch, _fetched, deadline)
    return [(group, *place) for group, places in answers.items() for place in places], gaps


def _fetch(connection: Connection, groups: list[str], seconds: int) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
    asked = (
        connection.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=seconds)
        for group in groups
    )
    return {group: future for answer in asked for group, future in answer.items()}


def _fetched(group: ConsumerGroupTopicPartitions) -> list[tuple[str, int, int | None, str | None]]:
    """Topic, partition, offset, error; an invalid offset without an error means that nothing is committed."""
    return [
        (tp.topic, tp.partition, None, tp.error.str()) if tp.error else (tp.topic, tp.partition, tp.offset, None)
        for tp in group.topic_partitions or ()
        if tp.error or tp.offset >= 0
    ]


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
