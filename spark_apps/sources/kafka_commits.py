"""Commits from `__consumer_offsets`, decoded for a time span, with tasks for slices of its partitions.

Reads: every record of the topic that was written in [from, to). Needs: Describe and Read on `__consumer_offsets`.
Rows by `kind`: `commit`, `tombstone` (a commit was removed), `group` (group metadata: the generation, and `members`
for the classic protocol), `group_tombstone` (it was removed), and one `read` per log partition that was read to its
end, with the number of records read, and of records skipped because of an unknown layout. Limitations: no commits
that compaction has removed (closed segments only), and no groups that commit elsewhere.

Key versions: 0 and 1 a commit, 2 a classic group, 3 a group of the newer protocol, 17 a Kafka Streams group (its
epoch is its generation). Versions of commit values: 0 to 3 with a plain metadata string, 4 with a compact one
followed by tagged fields. Keys repeat and are decoded once each; values are decoded in bulk.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from spark_apps.sources.arrow_batches import moments
from spark_apps.sources.kafka_client import (
    SILENT,
    Answer,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
    list_offsets,
)
from spark_apps.sources.kafka_coordinators import OFFSETS_TOPIC
from spark_apps.sources.kafka_group_values import group_members, text_of

_RECORDS_PER_BATCH = 20_000
_SILENCE_SECONDS = 30  # as in Kafka's own clients; a dead leader is replaced within 9 s by default
_KEYS_KEPT = 1_000_000
_COMMIT_KEYS, _GROUP_KEY, _NEW_GROUP_KEYS = (0, 1), 2, (3, 17)
_READ_FAST = {
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 5,  # the default waits 1 s whenever the local queue is full
    "fetch.wait.max.ms": 20,
    "fetch.message.max.bytes": 2**20,  # reads from a slow disk delay the broker's other clients
    "group.id": "streamwarden",  # required by the client; nothing is joined or committed
}
Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


class CommitsReader(ClusterReader):
    """Reads a time span of `__consumer_offsets`; see the module.

    Options `from`, `to`: epoch milliseconds, half-open; `slices`: tasks per cluster.
    """

    def partitions(self) -> list[InputPartition]:
        """Slices of each cluster."""
        slices = int(self.options.get("slices", 1))
        return [ClusterPartition(name, i, slices) for name in self.clusters for i in range(slices)]

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Records of one slice of a cluster."""
        name = connection.cluster.name
        topic = connection.metadata(OFFSETS_TOPIC).topics[OFFSETS_TOPIC]
        if topic.error is not None:
            if topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(topic.error)
            if partition.slice == 0:  # no group has ever committed in this cluster
                yield from self.batches([self._read_row(name, None, 0, 0)])
            return
        mine = [p for p in topic.partitions.values() if p.id % partition.slices == partition.slice]
        for leaderless in (p for p in mine if p.leader < 0):
            yield from self.batches([self._gap(name, leaderless.id, "failed: the partition has no leader.")])
        spans = self._spans(connection, [p.id for p in mine if p.leader >= 0])
        for log_partition, span in spans.items():
            if isinstance(span, BaseException):
                yield from self.batches([self._gap(name, log_partition, connection.gap(span))])
        yield from self._read(connection, {p: s for p, s in spans.items() if not isinstance(s, BaseException)})

    def _spans(self, connection: Connection, log_partitions: list[int]) -> dict[int, tuple[int, int] | BaseException]:
        """First offset to read and the end (exclusive), by log partition."""
        keys = [(OFFSETS_TOPIC, p) for p in log_partitions]
        first = list_offsets(connection, dict.fromkeys(keys, OffsetSpec.for_timestamp(int(self.options["from"]))))
        behind = list_offsets(connection, dict.fromkeys(keys, OffsetSpec.for_timestamp(int(self.options["to"]))))
        last = list_offsets(connection, dict.fromkeys(keys, OffsetSpec.latest()))
        spans: dict[int, tuple[int, int] | BaseException] = {}
        for key in keys:
            a, b, c = first.get(key), behind.get(key), last.get(key)
            if isinstance(a, Answer) and isinstance(b, Answer) and isinstance(c, Answer):
                end = b.offset if b.offset >= 0 else c.offset
                spans[key[1]] = (a.offset if a.offset >= 0 else end, end)
            elif failed := [x for x in (a, b, c) if isinstance(x, BaseException)]:
                spans[key[1]] = failed[0]
        return spans

    def _read(self, connection: Connection, spans: dict[int, tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        ends = {p: end for p, (start, end) in spans.items() if start < end}
        read, skipped = Counter[int](), Counter[int]()
        stopped: dict[int, str] = {}
        known = KnownKeys()
        consumer = Consumer({**connection.properties, **_READ_FAST}, logger=SILENT)
        try:
            consumer.assign([TopicPartition(OFFSETS_TOPIC, p, spans[p][0]) for p in ends])
            deadline = time.monotonic() + _SILENCE_SECONDS
            while ends and time.monotonic() < deadline:
                messages = consumer.consume(_RECORDS_PER_BATCH, 0.1)
                records, done = self._sort(connection, messages, ends, stopped)
                if records.messages:
                    deadline = time.monotonic() + _SILENCE_SECONDS
                    table = records.decoded(name, known)
                    read.update(records.partition.tolist())
                    skipped.update(records.partition[pc.is_null(table["kind"]).to_numpy()].tolist())
                    yield from self._fit(table.filter(pc.is_valid(table["kind"])))
                if done:
                    consumer.incremental_unassign([TopicPartition(OFFSETS_TOPIC, p) for p in done])
        finally:
            consumer.close()
        for log_partition in ends:
            stopped[log_partition] = f"failed: the leader did not respond for {_SILENCE_SECONDS} s during the read."
        yield from self.batches(
            [self._gap(name, p, gap) for p, gap in stopped.items()]
            + [self._read_row(name, p, read[p], skipped[p]) for p in spans if p not in stopped]
        )

    def _sort(
        self, connection: Connection, messages: list[Message], ends: dict[int, int], stopped: dict[int, str]
    ) -> tuple[Records, list[int]]:
        """The records within the span, and the log partitions that are read completely; these are removed from
        `ends`."""
        done = set()
        whole = [message for message in messages if message.error() is None]
        for message in messages if len(whole) < len(messages) else []:
            error, log_partition = message.error(), message.partition()
            if error is not None and log_partition in ends:
                done.add(log_partition)
                if error.code() != KafkaError._PARTITION_EOF:
                    stopped[log_partition] = connection.gap(KafkaException(error))
        records = Records.of(whole)
        end_of = np.zeros(max(*ends, records.partition.max(initial=0)) + 1, np.int64)  # 0: no longer needed
        end_of[list(ends)] = list(ends.values())
        end = end_of[records.partition]
        done.update(np.unique(records.partition[(records.offset >= end - 1) & (end > 0)]).tolist())
        for log_partition in done:
            ends.pop(log_partition, None)
        return records.where(records.offset < end), sorted(done)

    def _fit(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        wanted = to_arrow_schema(self.schema)
        columns = [
            table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
            for field in wanted
        ]
        yield from pa.table(columns, schema=wanted).to_batches()

    @staticmethod
    def _read_row(cluster: str, log_partition: int | None, read: int, skipped: int) -> dict[str, Any]:
        return {
            "cluster": cluster,
            "kind": "read",
            "log_partition": log_partition,
            "records_read": read,
            "records_skipped": skipped,
            "resource": cluster,
        }

    def _gap(self, cluster: str, log_partition: int, gap: str) -> dict[str, Any]:
        return self.gap_row(cluster, cluster, f"{gap} ({OFFSETS_TOPIC}-{log_partition})") | {
            "log_partition": log_partition
        }


class KafkaCommits(ClusterSource):
    """Spark data source `kafka_commits`."""

    reader_type = CommitsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kafka_commits"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, kind string, group_id string, topic string, partition int, committed_offset bigint,"
            " committed_at timestamp, generation int, log_partition int, log_offset bigint, written_at timestamp,"
            " members array<struct<member_id: string, client_id: string, host: string, poll_interval_ms: int,"
            " session_timeout_ms: int, assignment: map<string, array<int>>>>, records_read bigint,"
            " records_skipped bigint, resource string, gap string"
        )


@dataclass(frozen=True)
class Records:
    """Records of one fetch with their log partitions and offsets."""

    messages: list[Message]
    partition: Longs
    offset: Longs

    @classmethod
    def of(cls, messages: list[Message]) -> Self:
        """Records of messages without errors."""
        n = len(messages)
        return cls(
            messages,
            np.fromiter(map(Message.partition, messages), np.int64, n),
            np.fromiter(map(Message.offset, messages), np.int64, n),
        )

    def where(self, wanted: npt.NDArray[np.bool_]) -> Records:
        """The selected records."""
        if wanted.all():
            return self
        return Records(list(compress(self.messages, wanted)), self.partition[wanted], self.offset[wanted])

    def decoded(self, cluster: str, known: KnownKeys) -> pa.Table:
        """One row per record, including those without a kind."""
        n = len(self.messages)
        written_ms = np.fromiter((at for _, at in map(Message.timestamp, self.messages)), np.int64, n)
        table = decode(list(map(Message.key, self.messages)), list(map(Message.value, self.messages)), known)
        for column, values in {
            "cluster": pa.repeat(cluster, n),
            "resource": pa.repeat(cluster, n),
            "log_partition": pa.array(self.partition),
            "log_offset": pa.array(self.offset),
            "written_at": moments(written_ms),
        }.items():
            table = table.append_column(column, values)
        return table


class KnownKeys(dict[bytes | None, int]):
    """Keys decoded so far, each once: bytes of a key → its row in the table of decoded keys."""

    def __init__(self) -> None:
        super().__init__()
        self._decoded = _KEY.empty_table()
        self._new: list[dict[str, Any]] = []

    def __missing__(self, key: bytes | None) -> int:
        self._new.append(_decode_key(key))
        self[key] = len(self)
        return self[key]

    def rows(self, keys: list[bytes | None]) -> pa.Table:
        """Version, group, topic, and partition by key."""
        if len(self) > _KEYS_KEPT:
            self.clear()
            self._decoded = _KEY.empty_table()
        places = np.fromiter(map(self.__getitem__, keys), np.int64, len(keys))
        if self._new:
            added = pa.Table.from_pylist(self._new, schema=_KEY)
            self._decoded = pa.concat_tables([self._decoded, added]).combine_chunks()
            self._new = []
        return self._decoded.take(places)


def decode(keys: list[bytes | None], values: list[bytes | None], known: KnownKeys | None = None) -> pa.Table:
    """Records of `__consumer_offsets`: kind, group_id, topic, partition, committed_offset, committed_at, generation,
    members.

    A record with an unknown layout, or a truncated one, has a null kind.
    """
    table = (KnownKeys() if known is None else known).rows(keys)
    version = table["version"].to_numpy()
    data, start, length = _flatten(values)
    is_commit = np.isin(version, _COMMIT_KEYS)
    offset, committed_ms, commit_fits = _commit_values(data, start, length, is_commit & (length > 0))
    generation, group_fits = _group_values(data, start, length, version)
    is_group, is_removed = np.isin(version, (_GROUP_KEY, *_NEW_GROUP_KEYS)), length < 0
    kind = np.select(
        [is_commit & is_removed, is_commit & commit_fits, group_fits, is_group & is_removed],
        [_TOMBSTONE, _COMMIT, _GROUP, _GROUP_TOMBSTONE],
        -1,
    )
    return pa.table(
        {
            "kind": _KINDS.take(pa.array(kind, mask=kind < 0)),
            "group_id": table["group_id"],
            "topic": table["topic"],
            "partition": table["partition"],
            "committed_offset": pa.array(offset, mask=kind != _COMMIT),
            "committed_at": moments(np.where(kind == _COMMIT, committed_ms, -1)),
            "generation": pa.array(generation.astype(np.int32), mask=kind != _GROUP),
            "members": _members(values, (kind == _GROUP) & (version == _GROUP_KEY)),
        }
    )


def _members(values: list[bytes | None], wanted: npt.NDArray[np.bool_]) -> pa.Array:
    """Members in the few records that are groups of the classic protocol."""
    found: list[Any] = [None] * len(values)
    for place in np.flatnonzero(wanted):
        found[place] = group_members(values[place] or b"")
    return pa.array(found, _MEMBERS)


_TOMBSTONE, _COMMIT, _GROUP, _GROUP_TOMBSTONE = range(4)
_KINDS = pa.array(["tombstone", "commit", "group", "group_tombstone"])
_MEMBERS = pa.list_(
    pa.struct(
        [
            ("member_id", pa.string()),
            ("client_id", pa.string()),
            ("host", pa.string()),
            ("poll_interval_ms", pa.int32()),
            ("session_timeout_ms", pa.int32()),
            ("assignment", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ]
    )
)
_KEY = pa.schema(
    [("version", pa.int32()), ("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
)
_NO_KEY = {"version": -1, "group_id": None, "topic": None, "partition": None}


def _decode_key(key: bytes | None) -> dict[str, Any]:
    try:
        (version,) = struct.unpack_from(">h", key or b"")
        if version not in (*_COMMIT_KEYS, _GROUP_KEY, *_NEW_GROUP_KEYS):
            return _NO_KEY
        group_id, at = _string(key or b"", 2)
        if version not in _COMMIT_KEYS:
            return {"version": version, "group_id": group_id, "topic": None, "partition": None}
        topic, at = _string(key or b"", at)
        (partition,) = struct.unpack_from(">i", key or b"", at)
    except (struct.error, UnicodeDecodeError):
        return _NO_KEY
    return {"version": version, "group_id": group_id, "topic": topic, "partition": partition}


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    end = at + 2 + length
    if length < 0 or end > len(data):
        raise struct.error("string is cut short")
    return text_of(data[at + 2 : end]), end


def _flatten(values: list[bytes | None]) -> tuple[Bytes, Longs, Longs]:
    """All values in one array, with start and length of each (-1: null), and padding for reads past the end."""
    length = np.fromiter((-1 if v is None else len(v) for v in values), np.int64, len(values))
    size = np.maximum(length, 0)
    start = np.cumsum(size) - size
    data = np.frombuffer(b"".join(v or b"" for v in values) + bytes(32), np.uint8)
    return data, start, length


def _integers(data: Bytes, at: Longs, size: int) -> Longs:
    """Big-endian integers of `size` bytes at these positions; bytes past the end read as 0."""
    places = np.minimum(at, len(data) - size)[:, None] + np.arange(size)
    return data[places].view(f">i{size}").reshape(-1).astype(np.int64)


def _commit_values(
    data: Bytes, start: Longs, length: Longs, wanted: npt.NDArray[np.bool_]
) -> tuple[Longs, Longs, npt.NDArray[np.bool_]]:
    """Offset, commit time (ms), and whether the layout is known and complete.

    v0: offset, metadata, time; v1: …, expiry; v2: as v0; v3: offset, leader epoch, metadata, time; v4: the same with a
    compact string (its length + 1 as an unsigned varint; 0: null) and tagged fields.
    """
    version = np.where(wanted, _integers(data, start, 2), -1)
    offset = _integers(data, start + 2, 8)
    text_at = start + np.where(version >= 3, 14, 10)
    plain = np.maximum(_integers(data, text_at, 2), 0) + 2
    compact_length, varint_size = _varint(data, text_at)
    compact = np.maximum(compact_length - 1, 0) + varint_size
    text_size = np.where(version == 4, compact, plain)
    time_at = text_at + text_size
    fits = wanted & (version >= 0) & (version <= 4) & (time_at + 8 <= start + length)
    return offset, _integers(data, time_at, 8), fits


def _varint(data: Bytes, at: Longs) -> tuple[Longs, Longs]:
    """Value and size of unsigned varints of at most three bytes (group metadata is at most 4 KiB by default)."""
    value, size = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    more = np.ones(len(at), bool)
    for i in range(3):
        byte = data[np.minimum(at + i, len(data) - 1)].astype(np.int64)
        value += np.where(more, (byte & 0x7F) << (7 * i), 0)
        size += more
        more &= byte >= 0x80
    return value, size


def _group_values(
    data: Bytes, start: Longs, length: Longs, version: npt.NDArray[Any]
) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """Generation of group metadata: classic v0-v3 after the protocol type, newer v0 directly after the version."""
    value_version = _integers(data, start, 2)
    classic = (version == _GROUP_KEY) & (length > 0) & (value_version >= 0) & (value_version <= 3)
    newer = np.isin(version, _NEW_GROUP_KEYS) & (length > 0) & (value_version == 0)
    at = start + np.where(classic, 4 + np.maximum(_integers(data, start + 2, 2), 0), 2)
    return _integers(data, at, 4), (classic | newer) & (at + 4 <= start + length)
