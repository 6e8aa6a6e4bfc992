"""Offsets of Kafka clusters: what groups have committed, and where the logs start and end. Two kinds of rows:

`committed`: group, topic, partition, committed_offset. `log`: topic, partition and its offsets: start, end, last stable
(below it no transaction is open), and the log end at `from`, at `to` and RECENT_SECONDS before it, found by timestamp.
Committed offsets are read first, so that a lag is overstated, never negative. `as_of` is `to`, or the time of the read
when that is earlier: the time that the row's figures at `to` stand for.

Reads: ListGroups, OffsetFetch (one per group), ListOffsets (five per 1,000 partitions). Needs: Describe on topics and
groups. Can't see: partitions without a leader (a gap row each), offsets by time where producers' clocks are wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import OffsetSpec

from spark_apps.sources.arrow_batches import batch_of
from spark_apps.sources.kafka_client import (
    Answer,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
    led_partitions,
    list_offsets,
    offsets_of_all,
)
from spark_apps.sources.kafka_coordinators import PATIENCE_SECONDS, ask_groups, list_groups

RECENT_SECONDS = 60
Committed = tuple[str, str, int, int | None, str | None]
"""Group, topic, partition, offset, and why there is none."""


class OffsetsReader(ClusterReader):
    """See the module. Options `from`, `to`: epoch milliseconds."""

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        now_ms = int(time.time() * 1000)
        self.to_ms = min(int(self.options["to"]), now_ms)
        self.read_at, self.as_of = _utc(now_ms), _utc(self.to_ms)
        try:
            yield from self._committed(connection)
            leaders = {(t, p): leader for t, p, leader in led_partitions(connection.metadata())}
            yield from self._logs(connection, leaders, is_over=self.to_ms < now_ms)
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
                "gap": [f"refused: {r[4]} ({r[1]}-{r[2]})" if r[4] else None for r in rows],
            },
        )

    def _logs(
        self, connection: Connection, leaders: dict[tuple[str, int], int], *, is_over: bool
    ) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        led = [key for key, leader in leaders.items() if leader >= 0]
        specs = {
            "log_start_offset": (OFFSET_BEGINNING, False),
            "log_end_offset": (OFFSET_END, False),
            "offset_at_from": (int(self.options["from"]), False),
            "recent_offset": (self.to_ms - RECENT_SECONDS * 1000, False),
        }
        if is_over:
            specs["offset_at_to"] = (self.to_ms, False)
        specs["last_stable_offset"] = (OFFSET_END, True)
        if len(led) == len(leaders) and (found := offsets_of_all(connection, led, specs)):
            yield from self._log_rows(name, led, found)
            return
        answers = []
        for at, committed_only in specs.values():
            spec = OffsetSpec.for_timestamp(at)  # Kafka's protocol has the log's ends as times before 0
            answer = list_offsets(connection, dict.fromkeys(led, spec), committed_only=committed_only)
            answers.append(answer)
            led = [key for key in led if isinstance(answer.get(key), Answer)]  # a silent leader is waited for once
        gaps = []
        for key, leader in leaders.items():
            of_key = [answer.get(key) for answer in answers]
            failed = next((answer for answer in of_key if isinstance(answer, BaseException)), None)
            if leader < 0 or failed is not None:
                reason = connection.gap(failed) if failed else "refused: the partition has no leader."
                gap = self.gap_row(name, f"{name} topic {key[0]}-{key[1]}", reason)
                gaps.append(self._with_clock(gap | {"kind": "log", "topic": key[0], "partition": key[1]}))
        yield from self.batches(gaps)
        offsets = [[a.offset for key in led if isinstance(a := answer[key], Answer)] for answer in answers]
        yield from self._log_rows(name, led, dict(zip(specs, offsets, strict=True)))

    def _log_rows(
        self, name: str, keys: list[tuple[str, int]], offsets: dict[str, list[int]]
    ) -> Iterator[pa.RecordBatch]:
        end = offsets["log_end_offset"]
        # No record at or after that time: the log ended there already.
        found = {column: [o if o >= 0 else e for o, e in zip(of, end, strict=True)] for column, of in offsets.items()}
        found.setdefault("offset_at_to", end)
        # It was asked for after the end: above it no transaction was open below that end.
        found["last_stable_offset"] = [min(o, e) for o, e in zip(found["last_stable_offset"], end, strict=True)]
        where = {"topic": [key[0] for key in keys], "partition": [key[1] for key in keys]}
        yield from self._columns(len(keys), {"cluster": name, "resource": name, "kind": "log"} | where | found)

    def _columns(self, rows: int, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Columns as in `batch_of`. No rows: one that only says that it was answered."""
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
        return "kafka_offsets"

    def schema(self) -> str:
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
    """Topic, partition, offset, error; an invalid offset without an error is a place without a commit."""
    return [
        (tp.topic, tp.partition, None, tp.error.str()) if tp.error else (tp.topic, tp.partition, tp.offset, None)
        for tp in group.topic_partitions or ()
        if tp.error or tp.offset >= 0
    ]


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
