"""Members of a classic consumer group, out of the value that its coordinator writes to `__consumer_offsets`.

Layout: Kafka's GroupMetadataValue.json, versions 0 to 3 (brokers write 3; 4 only once all of them know it): version,
protocol type, generation, protocol, leader, from 2 on the time of the state, then the members: id, from 3 on the static
name, client id, host, from 1 on the rebalance timeout (the client's max.poll.interval.ms), session timeout,
subscription, assignment.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_NEWEST = 3


def group_members(value: bytes) -> list[dict[str, Any]] | None:
    """Who is in the group, by member id; None where the value is of another layout or cut short."""
    try:
        read = _Reader(value)
        version = read.number("h")
        if not 0 <= version <= _NEWEST:
            return None
        read.text()
        read.number("i")
        read.text()
        read.text()
        if version >= 2:
            read.number("q")
        return [_member(read, version) for _ in range(max(read.number("i"), 0))]
    except (struct.error, UnicodeDecodeError):
        return None


def _member(read: _Reader, version: int) -> dict[str, Any]:
    member_id = read.text()
    if version >= 3:
        read.text()
    member: dict[str, Any] = {"member_id": member_id, "client_id": read.text(), "host": read.text()}
    member["poll_interval_ms"] = read.number("i") if version >= 1 else None
    member["session_timeout_ms"] = read.number("i")
    read.skip()
    read.skip()
    return member


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    def number(self, kind: str) -> int:
        (number,) = struct.unpack_from(f">{kind}", self.data, self.at)
        self.at += struct.calcsize(kind)
        return int(number)

    def text(self) -> str | None:
        length = self.number("h")
        return None if length < 0 else self._take(length).decode()

    def skip(self) -> None:
        self._take(max(self.number("i"), 0))

    def _take(self, length: int) -> bytes:
        if self.at + length > len(self.data):
            raise struct.error("cut short")
        self.at += length
        return self.data[self.at - length : self.at]
