"""Values of changelogs of Kafka Streams and Samza: what the log of every state store holds, up to the end of an
hour.

Options `hour`: its start in ISO 8601; `sample_values`: maximum number of values to read per changelog. Two kinds of
rows per topic: one per partition with its offsets (no `offset`), and one per record. A larger log is read evenly in
chunks of CHUNK_VALUES, half of them within the hour and half before it, so a version with 0.1 % of the values of
either, contiguous or scattered, is found if `sample_values` is at least 2,000 × CHUNK_VALUES.

`position` orders the records of a topic as they were written, across partitions: the largest timestamp so far within
the partition (milliseconds, so that late events do not look old), with a distinguishing number in the low bits.

A changelog is a topic that Kafka Streams created, or a compacted topic with an application, or with a job by the
config's `jobs.changelog_patterns` (`StreamsTopics.has_store`).

Reads: metadata, ListGroups, DescribeConfigs, three ListOffsets per partition, Fetch. Needs: Describe,
DescribeConfigs, and Read on the changelogs. Limitations: values that compaction removed are not visible; with wrong
producer timestamps the hour of records is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR

from spark_apps.models.streams_topics import CHANGELOG, StreamsTopics
from spark_apps.sources.arrow_batches import moments
from spark_apps.sources.kafka_client import (
    ANSWER_SECONDS,
    SILENT,
    Answer,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
    cluster_named,
    list_offsets,
    unreadable,
)
from spark_apps.sources.kafka_topics import configs_of

CHUNK_VALUES = 25
BATCH_VALUES = 2000
SLICES_PER_TOPIC = 4
STALLED_SECONDS = 10
_POSITION_BITS = 20
_HARMLESS = (
    KafkaError._TRANSPORT,  # the client reconnects
    KafkaError.GROUP_AUTHORIZATION_FAILED,  # the client looks up a group coordinator that it does not need
)


@dataclass
class Log:
    """One partition of a changelog: offsets of its start, of the start of the hour, and of its end (exclusive)."""

    partition: int
    start: int
    hour_start: int
    end: int


@dataclass
class Chunk:
    """Records to read: from `low`, before `high`, at most `limit` (0: all)."""

    partition: int
    low: int
    high: int
    limit: int


@dataclass
class TopicSlice(ClusterPartition):
    """Some partitions of one changelog, read by one task; or a gap."""

    topic: str = ""
    application_id: str = ""
    store: str = ""
    logs: list[Log] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    gap: str | None = None


class ChangelogReader(ClusterReader):
    """Reads the changelogs of all clusters; see the module."""

    def partitions(self) -> list[InputPartition]:
        """Slices of changelogs, balanced over the tasks."""
        return [part for name in self.clusters for part in self._parts(name)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Offsets and records of one slice, or its gap."""
        if not isinstance(partition, TopicSlice):
            return
        resource = f"{partition.cluster}/{partition.topic}" if partition.topic else partition.cluster
        known = {
            "resource": resource,
            "cluster": partition.cluster,
            "topic": partition.topic or None,
            "application_id": partition.application_id or None,
            "store": partition.store or None,
        }
        if partition.gap is not None or not partition.logs:
            yield from self.batches([known | {"gap": partition.gap}])
        yield from self.batches(
            known
            | {
                "partition": log.partition,
                "log_start_offset": log.start,
                "hour_start_offset": log.hour_start,
                "log_end_offset": log.end,
            }
            for log in partition.logs
        )
        if partition.chunks:
            try:
                connection = Connection(cluster_named(partition.cluster))
            except StreamwardenError as error:
                yield from self.batches([known | {"gap": f"failed: {error}"}])
                return
            try:
                yield from self._records(connection, partition, resource)
            except KafkaException as error:
                yield from self.batches([known | {"gap": _gap(connection, partition.topic, error)}])
            except Exception as error:  # a topic may hold any bytes: the others are read
                yield from self.batches([known | {"gap": unreadable(error)}])

    def _parts(self, cluster: str) -> list[TopicSlice]:
        """Slices of a cluster; a topic or cluster that cannot be queried becomes a slice with its gap."""
        try:
            connection = Connection(cluster_named(cluster))
        except StreamwardenError as error:
            return [TopicSlice(cluster, gap=f"failed: {error}")]
        try:
            return self._plan(connection, cluster)
        except KafkaException as error:
            return [TopicSlice(cluster, gap=connection.gap(error))]

    def _plan(self, connection: Connection, cluster: str) -> list[TopicSlice]:
        """Slices of a cluster. Raises KafkaException if it stops responding while it is queried."""
        metadata = connection.metadata()
        names = StreamsTopics(_group_ids(connection), metadata.topics, load_config().jobs.changelog_patterns)
        topics = {
            name: sorted(topic.partitions)
            for name, topic in metadata.topics.items()
            if names.is_called_changelog(name) and topic.error is None
        }
        settings, _ = configs_of(connection, list(topics))
        topics = {name: found for name, found in topics.items() if names.has_store(name, settings.get(name))}
        logs = _logs(connection, topics, datetime.fromisoformat(self.options["hour"]))
        plan: list[TopicSlice] = [] if topics else [TopicSlice(cluster)]
        for topic, partitions in topics.items():
            stem = topic.removesuffix(CHANGELOG)
            _, application_id, store = names.split(topic) or ("", stem, stem)
            found = [logs[topic, partition] for partition in partitions]
            refused = next((log for log in found if isinstance(log, BaseException)), None)
            whole = TopicSlice(cluster, topic=topic, application_id=application_id, store=store)
            if refused is not None:
                whole.gap = _gap(connection, topic, refused)
                plan.append(whole)
            else:
                plan += _slices(whole, [log for log in found if isinstance(log, Log)], self._sample_values)
        return plan

    @property
    def _sample_values(self) -> int:
        return int(self.options["sample_values"])

    def _records(self, connection: Connection, part: TopicSlice, resource: str) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema)
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        consumer = _consumer(connection, sampled=any(chunk.limit for chunk in part.chunks))
        newest_ms: dict[int, int] = {}
        try:
            for records in _fetch(consumer, part.topic, part.chunks):
                columns: dict[str, Any] = {"partition": [], "offset": [], "at": [], "position": []}
                for record in records:
                    partition, offset, at_ms = record.partition(), record.offset(), record.timestamp()[1]
                    written_ms = newest_ms[partition] = max(newest_ms.get(partition, 0), min(at_ms, now_ms))
                    mark = (partition * 7919 + offset) % (1 << _POSITION_BITS)
                    columns["partition"].append(partition)
                    columns["offset"].append(offset)
                    columns["at"].append(at_ms)
                    columns["position"].append((written_ms << _POSITION_BITS) | mark)
                columns["at"] = moments(np.array(columns["at"], np.int64)).cast(schema.field("at").type)
                columns["key"] = [record.key() for record in records]
                columns["value"] = [record.value() for record in records]
                columns["resource"] = [resource] * len(records)
                arrays = [
                    pa.array(columns[name], kind) if name in columns else pa.nulls(len(records), kind)
                    for name, kind in zip(schema.names, schema.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        finally:
            consumer.close()


class ChangelogValues(ClusterSource):
    """Spark data source `changelog_values`. A cluster without changelogs gives one row without a topic."""

    reader_type = ChangelogReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "changelog_values"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "resource string, gap string, cluster string, topic string, application_id string, store string,"
            " partition int, log_start_offset bigint, hour_start_offset bigint, log_end_offset bigint,"
            " offset bigint, at timestamp, position bigint, key binary, value binary"
        )


def plan_chunks(logs: list[Log], sample_values: int) -> list[Chunk]:
    """All of a small log; for a larger one even chunks, half within the hour and half before it, in write order."""
    before = sum(log.hour_start - log.start for log in logs)
    within = sum(log.end - log.hour_start for log in logs)
    of_hour = min(within, max(sample_values // 2, sample_values - before))
    of_past = min(before, sample_values - of_hour)
    chunks: list[Chunk] = []
    for log in logs:
        chunks += _even(log.partition, log.start, log.hour_start, of_past, before)
        chunks += _even(log.partition, log.hour_start, log.end, of_hour, within)
    return chunks


def _even(partition: int, low: int, high: int, wanted: int, there: int) -> list[Chunk]:
    if low >= high:
        return []
    if wanted >= there:
        return [Chunk(partition, low, high, 0)]
    step = CHUNK_VALUES * there / wanted
    count = max(1, round((high - low) / step))
    edges = [low + (high - low) * i // count for i in range(count + 1)]
    return [Chunk(partition, a, b, CHUNK_VALUES) for a, b in pairwise(edges)]


def _slices(whole: TopicSlice, logs: list[Log], sample_values: int) -> list[TopicSlice]:
    chunks = plan_chunks(logs, sample_values)
    count = min(SLICES_PER_TOPIC, len(logs), 1 + sum(log.end - log.start for log in logs) // 10_000)
    return [
        TopicSlice(
            whole.cluster,
            topic=whole.topic,
            application_id=whole.application_id,
            store=whole.store,
            logs=logs[i::count],
            chunks=[chunk for chunk in chunks if chunk.partition in {log.partition for log in logs[i::count]}],
        )
        for i in range(count)
    ]


def _logs(
    connection: Connection, topics: dict[str, list[int]], hour: datetime
) -> dict[tuple[str, int], Log | BaseException]:
    keys = [(topic, partition) for topic, partitions in topics.items() for partition in partitions]
    edge_ms = [int(moment.timestamp() * 1000) for moment in (hour, hour + HOUR)]
    specs = [OffsetSpec.earliest(), OffsetSpec.latest(), *(OffsetSpec.for_timestamp(ms) for ms in edge_ms)]
    answers = [list_offsets(connection, dict.fromkeys(keys, spec), committed_only=True) for spec in specs]
    logs: dict[tuple[str, int], Log | BaseException] = {}
    for key in keys:
        offsets: list[int] = []
        for answer in answers:
            found = answer[key]
            if isinstance(found, Answer):
                offsets.append(found.offset)
            else:
                logs[key] = found
                break
        else:
            start, end, hour_start, hour_end = offsets
            last = min(hour_end, end) if hour_end >= 0 else end
            logs[key] = Log(key[1], start, min(hour_start, last) if hour_start >= 0 else last, max(start, last))
    return logs


def _group_ids(connection: Connection) -> set[str]:
    """Known groups; without the permission to list them, only names of topics are used."""
    try:
        listing = connection.admin.list_consumer_groups(request_timeout=ANSWER_SECONDS).result()
    except KafkaException:
        return set()
    return {group.group_id for group in listing.valid}


def _consumer(connection: Connection, *, sampled: bool) -> Consumer:
    """A consumer that never joins its group and commits nothing. Samples fetch little at a time, whole logs fetch
    ahead."""
    sizes = {"fetch.message.max.bytes": 64 * 1024, "queued.min.messages": CHUNK_VALUES} if sampled else {}
    return Consumer(
        {
            **connection.properties,
            "group.id": connection.cluster.client.get("group.id", "streamwarden"),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 5,
            **sizes,
        },
        logger=SILENT,
    )


def _fetch(consumer: Consumer, topic: str, chunks: list[Chunk]) -> Iterator[list[Any]]:
    """Records of the chunks in bounded lists; raises KafkaException if the leader no longer responds."""
    pending: list[Any] = []
    for chunk in chunks:
        consumer.assign([TopicPartition(topic, chunk.partition, chunk.low)])
        left, reached, last_response = chunk.limit or chunk.high - chunk.low, False, time.monotonic()
        while left > 0 and not reached:
            # It waits for the requested number of records, and compaction leaves fewer: so the timeout is short, and it
            # repeats.
            answers = consumer.consume(num_messages=min(left, BATCH_VALUES), timeout=0.05)
            if any(answer.error() is None for answer in answers):  # a leader that is lost repeatedly gives errors only
                last_response = time.monotonic()
            elif time.monotonic() - last_response > STALLED_SECONDS:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            for answer in answers:
                error, offset = answer.error(), answer.offset() or 0
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    reached = True
                elif error is not None and error.code() not in _HARMLESS:
                    raise KafkaException(error)
                elif error is None and chunk.low <= offset < chunk.high:
                    pending.append(answer)
                    left -= 1
                reached = reached or offset >= chunk.high - 1
        if len(pending) >= BATCH_VALUES:
            yield pending
            pending = []
    if pending:
        yield pending


def _gap(connection: Connection, topic: str, error: BaseException) -> str:
    """The gap of a topic. For a deleted topic there may be no error, only timeouts."""
    try:
        deleted = topic not in connection.metadata().topics
    except KafkaException:
        deleted = False
    return f"missing: topic '{topic}' was deleted while it was read." if deleted else connection.gap(error)
