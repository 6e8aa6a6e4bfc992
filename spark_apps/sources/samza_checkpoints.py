"""Positions of Samza jobs: their checkpoint topics (`__samza_checkpoint_ver_1_for_<job>_<id>`), read completely.

Options `from` and `to`: epoch milliseconds, half-open. Rows by `kind`, as if a group with the job's name had
committed: `commit` (of each checkpoint that was written in the span), `committed` (of the newest one), and one
`read` per log partition, with a negative `log_partition`: those of `__consumer_offsets` begin with 0.

A checkpoint is JSON: {SSP: {system, stream, partition, offset}}, in version 2 as `inputOffsets` of an object. Its
offset is the last processed record, so the position is the next one. If several tasks wrote about one partition (it
is broadcast, or tasks were regrouped) the last write counts.

Reads: metadata, Fetch of the checkpoint topics, which are compacted. Needs: Describe and Read on them. Limitations:
no checkpoints outside of this cluster; an input of another system with the same name is not distinguished.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from spark_apps.models.streams_topics import StreamsTopics
from spark_apps.sources.kafka_client import SILENT, ClusterPartition, ClusterReader, ClusterSource, Connection

_TOPIC, _INT32, _INT64 = (re.compile(form) for form in (r"[a-zA-Z0-9._-]{1,249}", r"[0-9]{1,9}", r"[0-9]{1,18}"))
_SILENCE_SECONDS = 30
_READ = {
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 5,
    "group.id": "streamwarden",  # required by the client; nothing is joined or committed
}


class Position(NamedTuple):
    """Position of one input partition in one checkpoint."""

    log_offset: int
    written_ms: int
    committed_offset: int


class CheckpointsReader(ClusterReader):
    """Reads the checkpoint topics of a cluster; see the module."""

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Positions of the jobs of one cluster."""
        cluster = connection.cluster.name
        topics = connection.metadata().topics
        names = StreamsTopics((), topics)
        logs = [
            (part.application_id, name, log_partition)
            for name in sorted(topics)
            if (part := names.split(name)) and part.kind == "checkpoint"
            for log_partition in sorted(topics[name].partitions)
        ]
        rows: list[dict[str, Any]] = [{"cluster": cluster, "resource": cluster}]
        for number, (job, topic, log_partition) in enumerate(logs):
            known = {
                "cluster": cluster,
                "resource": f"{cluster}/{topic}",
                "group_id": job,
                "log_partition": -1 - number,
            }
            try:
                histories = positions_in(_records(connection, topic, log_partition))
            except KafkaException as error:
                rows.append(known | {"gap": connection.gap(error)})
                continue
            rows += [known | row for row in self._rows(histories)] + [known | {"kind": "read"}]
        yield from self.batches(rows)

    def _rows(self, histories: dict[tuple[str, int], list[Position]]) -> Iterator[dict[str, Any]]:
        start_ms, end_ms = int(self.options["from"]), int(self.options["to"])
        for (topic, partition), history in histories.items():
            place = {"topic": topic, "partition": partition}
            yield place | {"kind": "committed", "committed_offset": history[-1].committed_offset}
            for one in history:
                if start_ms <= one.written_ms < end_ms:
                    at = datetime.fromtimestamp(one.written_ms / 1000, UTC)
                    offsets = {"committed_offset": one.committed_offset, "log_offset": one.log_offset}
                    yield place | offsets | {"kind": "commit", "committed_at": at, "written_at": at}


class SamzaCheckpoints(ClusterSource):
    """Spark data source `samza_checkpoints`. A cluster without jobs gives one row without a kind."""

    reader_type = CheckpointsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "samza_checkpoints"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, kind string, group_id string, topic string, partition int, committed_offset bigint,"
            " committed_at timestamp, log_partition int, log_offset bigint, written_at timestamp,"
            " resource string, gap string"
        )


def positions_in(records: Iterator[Message]) -> dict[tuple[str, int], list[Position]]:
    """Positions by input partition, from the key that wrote about it last: in log order."""
    histories: dict[tuple[str, int], dict[bytes, list[Position]]] = {}
    for record in records:
        for topic, partition, offset in decoded(record.value()):
            position = Position(record.offset() or 0, record.timestamp()[1], offset)
            histories.setdefault((topic, partition), {}).setdefault(record.key() or b"", []).append(position)
    return {place: max(by_key.values(), key=lambda history: history[-1]) for place, by_key in histories.items()}


def decoded(value: bytes | None) -> Iterator[tuple[str, int, int]]:
    """Topic, partition, and next offset of a checkpoint's inputs; nothing for other values.

    A changelog's offset may be null or have another format: it is not an input. Neither is an entry with an invalid
    topic name, partition number, or offset.
    """
    try:
        checkpoint = json.loads(value or b"{}")
        inputs = checkpoint.get("inputOffsets", checkpoint).values()
    except (ValueError, AttributeError, RecursionError):
        return
    for one in inputs:
        if isinstance(one, dict) and {"stream", "partition", "offset"} <= one.keys():
            topic, partition, offset = (str(one[part]) for part in ("stream", "partition", "offset"))
            if _TOPIC.fullmatch(topic) and _INT32.fullmatch(partition) and _INT64.fullmatch(offset):
                yield topic, int(partition), int(offset) + 1


def _records(connection: Connection, topic: str, log_partition: int) -> Iterator[Message]:
    """All of a log partition up to its end; raises KafkaException if it does not respond."""
    consumer = Consumer({**connection.properties, **_READ}, logger=SILENT)
    try:
        consumer.assign([TopicPartition(topic, log_partition, 0)])
        last_response = time.monotonic()
        while time.monotonic() - last_response < _SILENCE_SECONDS:
            for message in consumer.consume(10_000, 0.1):
                last_response, error = time.monotonic(), message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
                else:
                    raise KafkaException(error)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    finally:
        consumer.close()
