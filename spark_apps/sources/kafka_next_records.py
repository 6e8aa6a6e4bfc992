"""The next records of a consumer that is stuck: the first ones that `read_committed` returns from an offset on.

Offsets by time cannot distinguish a transaction marker or an aborted record from a readable one, and one record
dated in the future hides when all records after it arrived. So a few records are read where it matters, without
joining a group or committing.

Limitations: topics without the Read permission are left out of the result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_low

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, TopicPartition

from spark_apps.sources.kafka_client import SILENT, Connection

RECORDS = 100
"""Records per position, enough to see whether timestamps are append times or event times."""
JUMP_MS, JUMPING_SHARE = 60_000, 0.1
"""Clocks of producers differ by less, and a wrong clock causes fewer jumps."""
AT_ONCE = 100
"""Positions that are read concurrently."""
STALLED_SECONDS = 3.0
Place = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass(frozen=True)
class Next:
    """The first readable record from a position on, and when it was appended, by its timestamp and those after it."""

    offset: int
    timestamp_ms: int
    read_end: int
    """Offset after the last record that was read."""


@dataclass
class _Read:
    records: list[tuple[int, int]] = field(default_factory=list)
    is_appended: bool = False
    """Whether the timestamp is the broker's rather than a producer's."""
    is_done: bool = False

    def add(self, message: Message) -> None:
        """Adds a record."""
        kind, timestamp_ms = message.timestamp()
        self.is_appended = kind == TIMESTAMP_LOG_APPEND_TIME
        self.records.append((message.offset() or 0, timestamp_ms))
        self.is_done = len(self.records) >= RECORDS

    @property
    def next(self) -> Next | None:
        """The next record; None if there is none."""
        if not self.records:
            return None
        times = [timestamp_ms for _, timestamp_ms in self.records]
        at = times[0] if self.is_appended else appended_ms(times)
        return Next(self.records[0][0], at, self.records[-1][0] + 1)


def appended_ms(times: Sequence[int]) -> int:
    """When the first of these records was appended, by producer timestamps.

    Ascending timestamps are append times; of the first three the middle one counts, because one clock may be wrong.
    Timestamps that jump back and forth are event times: then the latest is the closest to the append time.
    """
    back = sum(later < earlier - JUMP_MS for earlier, later in pairwise(times))
    return max(times) if back > max(2, len(times) * JUMPING_SHARE) else median_low(times[:3])


def next_records(connection: Connection, places: Sequence[Place], deadline: float) -> dict[Place, Next | None]:
    """By position: the next record, or None if there is none up to the last stable offset. Each partition once.

    Positions without a response by the deadline (of time.monotonic) are left out.
    """
    found: dict[Place, Next | None] = {}
    consumer = Consumer(
        {
            **connection.properties,
            "group.id": connection.cluster.client.get("group.id", "streamwarden"),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 64 * 1024,
            "queued.min.messages": RECORDS,
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 5,
        },
        logger=SILENT,
    )
    try:
        for n in range(0, len(places), AT_ONCE):
            found |= _read(consumer, places[n : n + AT_ONCE], deadline)
    except KafkaException:
        pass  # partial results are kept
    finally:
        consumer.close()
    return found


def _read(consumer: Consumer, places: Sequence[Place], deadline: float) -> dict[Place, Next | None]:
    reads = {(topic, partition): _Read() for topic, partition, _ in places}
    refused = set()
    consumer.assign([TopicPartition(*place) for place in places])
    last_response = time.monotonic()
    while not all(read.is_done for read in reads.values()):
        now = time.monotonic()
        if now > deadline or now - last_response > STALLED_SECONDS:
            break
        messages = consumer.consume(num_messages=1000, timeout=0.05)
        for message in messages:
            key, error = (message.topic() or "", message.partition() or 0), message.error()
            last_response = now
            if key not in reads or reads[key].is_done:
                continue
            if error is None:
                reads[key].add(message)
            else:
                reads[key].is_done = True
                if error.code() != KafkaError._PARTITION_EOF:
                    refused.add(key)
            if reads[key].is_done:
                consumer.pause([TopicPartition(*key)])
    return {
        place: reads[place[:2]].next
        for place in places
        if place[:2] not in refused and (reads[place[:2]].records or reads[place[:2]].is_done)
    }
