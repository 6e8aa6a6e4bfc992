"""Commits by group clients, and records of `__consumer_offsets` as a broker writes them, for past hours."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

TOPIC = "__consumer_offsets"
_COMING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError._WAIT_COORD,
    KafkaError.UNKNOWN_TOPIC_OR_PART,  # the coordinator has no metadata of a new topic yet, its leaders do
)


@dataclass(frozen=True)
class Commit:
    """A commit of a group on a partition; offset None removes it."""

    group: str
    topic: str
    partition: int
    offset: int | None
    at: datetime
    metadata: str = ""


def commit_key(group: str, topic: str, partition: int, version: int = 1) -> bytes:
    return struct.pack(">h", version) + _string(group) + _string(topic) + struct.pack(">i", partition)


def group_key(group: str, version: int = 2) -> bytes:
    return struct.pack(">h", version) + _string(group)


def commit_value(version: int, offset: int, at_ms: int, metadata: str | None = "") -> bytes:
    """Layouts 0 to 4; metadata None is possible in 4 only."""
    text = (metadata or "").encode()
    head = struct.pack(">hq", version, offset) + (struct.pack(">i", 7) if version >= 3 else b"")
    if version == 4:
        compact = b"\0" if metadata is None else _varint(len(text) + 1) + text
        return head + compact + struct.pack(">q", at_ms) + b"\x01\x00\x10" + bytes(16)
    expiry = struct.pack(">q", -1) if version == 1 else b""
    return head + _string(metadata or "") + struct.pack(">q", at_ms) + expiry


def group_value(
    generation: int, version: int = 3, members: Sequence[Mapping[str, Any]] = (), protocol_type: str = "consumer"
) -> bytes:
    """Metadata of a classic group, layouts 0 to 3; without a protocol and a leader."""
    head = struct.pack(">h", version) + _string(protocol_type) + struct.pack(">i", generation) + b"\xff\xff\xff\xff"
    stamp = struct.pack(">q", -1) if version >= 2 else b""
    return head + stamp + struct.pack(">i", len(members)) + b"".join(_member(version, m) for m in members)


def _member(version: int, member: Mapping[str, Any]) -> bytes:
    static_name = b"\xff\xff" if version >= 3 else b""
    poll_interval = struct.pack(">i", member["poll_interval_ms"]) if version >= 1 else b""
    timeouts = poll_interval + struct.pack(">i", member["session_timeout_ms"])
    names = _string(member["member_id"]) + static_name + _string(member["client_id"]) + _string(member["host"])
    assignment = _assignment(member["assignment"]) if member["assignment"] else b""
    return names + timeouts + struct.pack(">i", 3) + b"sub" + struct.pack(">i", len(assignment)) + assignment


def _assignment(assigned: Mapping[str, Sequence[int]]) -> bytes:
    """Version, topics with their partitions, and no user data."""
    topics = [
        _string(topic) + struct.pack(f">{len(partitions) + 1}i", len(partitions), *partitions)
        for topic, partitions in assigned.items()
    ]
    return struct.pack(">hi", 1, len(topics)) + b"".join(topics) + struct.pack(">i", -1)


def commit(bootstrap_servers: str, group: str, *offsets: TopicPartition, seconds: float = 30) -> None:
    """Commits once the group has a coordinator: a new broker first creates and loads `__consumer_offsets`."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False})
    deadline = time.monotonic() + seconds
    while True:
        try:
            consumer.commit(offsets=list(offsets), asynchronous=False)
            break
        except KafkaException as error:
            if error.args[0].code() not in _COMING or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    consumer.close()


def times_written(bootstrap_servers: str, group: str, place: TopicPartition) -> int:
    """Number of records of a commit in the log: a client retries a commit without a successful response."""
    reader = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "reader", "enable.auto.commit": False})
    log = TopicPartition(TOPIC, log_partition(group, len(reader.list_topics(TOPIC, 10).topics[TOPIC].partitions)), 0)
    _, end = reader.get_watermark_offsets(log, timeout=10)
    reader.assign([log])
    key, times, next_offset = commit_key(group, place.topic, place.partition), 0, 0
    while next_offset < end:
        if (record := reader.poll(10)) is None:
            break
        times += record.key() == key and record.value() is not None
        next_offset = (record.offset() or 0) + 1
    reader.close()
    return times


def write_commits(bootstrap_servers: str, commits: list[Commit]) -> None:
    """Writes commits where their group's coordinator would. A coordinator reads them only when it reloads the log."""
    records = []
    for made in commits:
        at_ms = int(made.at.timestamp() * 1000)
        value = None if made.offset is None else commit_value(4, made.offset, at_ms, made.metadata)
        records.append((made.group, commit_key(made.group, made.topic, made.partition), value, at_ms))
    _write(bootstrap_servers, records)


def write_group(bootstrap_servers: str, group: str, generation: int, at: datetime) -> None:
    """Writes a group's metadata where its coordinator would."""
    _write(bootstrap_servers, [(group, group_key(group), group_value(generation), int(at.timestamp() * 1000))])


def _write(bootstrap_servers: str, records: list[tuple[str, bytes, bytes | None, int]]) -> None:
    """Group, key, value, time."""
    partitions = len(
        AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    )
    # Brokers take records of internal topics only from this client id.
    producer = Producer({"bootstrap.servers": bootstrap_servers, "client.id": "__admin_client"})
    for group, key, value, at_ms in records:
        producer.produce(TOPIC, value, key, partition=log_partition(group, partitions), timestamp=at_ms)
    assert producer.flush(20) == 0


def log_partition(group: str, partitions: int) -> int:
    """The absolute value of Java's string hash, as the group coordinator uses it."""
    value = 0
    for unit in struct.unpack(f">{len(group.encode('utf-16-be')) // 2}H", group.encode("utf-16-be")):
        value = (31 * value + unit) & 0xFFFFFFFF
    return min(value, 2**32 - value) % partitions


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
