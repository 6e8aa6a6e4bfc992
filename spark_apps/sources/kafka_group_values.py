"""Members of a classic consumer group, from the value that its coordinator writes to `__consumer_offsets`.

Layout: Kafka's GroupMetadataValue.json, versions 0 to 3 (brokers write 3; 4 only when all of them support it):
version, protocol type, generation, protocol, leader, since 2 the time of the state, then the members: id, since 3
the static name, client id, host, since 1 the rebalance timeout (the client's max.poll.interval.ms), session timeout,
subscription, assignment. The assignment depends on the protocol type; for `consumer` it has its version, and the
topics with their partitions.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_NEWEST = 3
_CONSUMER = "consumer"


def group_members(value: bytes) -> list[dict[str, Any]] | None:
    """Members of the group, by member id; None if the value has another layout or is truncated."""
    try:
        read = _Reader(value)
        version = read.number("h")
        if not 0 <= version <= _NEWEST:
            return None
        protocol_type = read.text()
        read.number("i")
        read.text()
        read.text()
        if version >= 2:
            read.number("q")
        is_consumer = protocol_type == _CONSUMER
        return [_member(read, version, is_consumer=is_consumer) for _ in range(max(read.number("i"), 0))]
    except (struct.error, UnicodeDecodeError):
        return None


def text_of(data: bytes) -> str:
    """The text of UTF-8 without NUL: names of groups and clients are arbitrary, and PostgreSQL does not store it.

    Raises:
        UnicodeDecodeError: it is no UTF-8.
    """
    return data.decode().replace("\0", "\ufffd")


def _member(read: _Reader, version: int, *, is_consumer: bool) -> dict[str, Any]:
    member_id = read.text()
    if version >= 3:
        read.text()
    member: dict[str, Any] = {"member_id": member_id, "client_id": read.text(), "host": read.text()}
    member["poll_interval_ms"] = read.number("i") if version >= 1 else None
    member["session_timeout_ms"] = read.number("i")
    read.blob()
    assignment = read.blob()
    member["assignment"] = _assignment(assignment) if is_consumer else None
    return member


def _assignment(value: bytes) -> dict[str, list[int]] | None:
    """Partitions by topic; None if unreadable: the member may have some nevertheless."""
    if not value:
        return {}
    try:
        read = _Reader(value)
        read.number("h")
        return {read.text() or "": read.numbers() for _ in range(read.number("i"))}
    except (struct.error, UnicodeDecodeError):
        return None


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    def number(self, kind: str) -> int:
        """The next integer."""
        (number,) = struct.unpack_from(f">{kind}", self.data, self.at)
        self.at += struct.calcsize(kind)
        return int(number)

    def text(self) -> str | None:
        """The next string; None: null."""
        length = self.number("h")
        return None if length < 0 else text_of(self._take(length))

    def numbers(self) -> list[int]:
        """The next array of integers."""
        count = self.number("i")
        return list(struct.unpack(f">{max(count, 0)}i", self._take(4 * max(count, 0))))

    def blob(self) -> bytes:
        """The next byte array."""
        return self._take(max(self.number("i"), 0))

    def _take(self, length: int) -> bytes:
        if self.at + length > len(self.data):
            raise struct.error("cut short")
        self.at += length
        return self.data[self.at - length : self.at]
