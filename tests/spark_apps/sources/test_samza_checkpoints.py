"""Samza's checkpoints: the output of its serdes in both versions, and other records of such a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spark_apps.sources.samza_checkpoints import Position, decoded, positions_in


def ssp(stream: str, partition: int, offset: str | None) -> dict[str, dict[str, str | None]]:
    """As CheckpointV1Serde writes it: all values are strings."""
    name = f"SystemStreamPartition [kafka, {stream}, {partition}]"
    return {name: {"system": "kafka", "stream": stream, "partition": str(partition), "offset": offset}}


def value(checkpoint: Any) -> bytes:
    return json.dumps(checkpoint).encode()


V1 = ssp("orders", 0, "59") | ssp("clicks", 3, "0")
V2 = {
    "checkpointId": "1614147487244-33577",
    "inputOffsets": V1,
    "stateCheckpointMarkers": {"factory": {"store": "a;b"}},
}
STORE = json.dumps({"checkpointId": "1-1", "changelogOffset": "50"})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (value(V1), [("orders", 0, 60), ("clicks", 3, 1)]),
        (value(V2), [("orders", 0, 60), ("clicks", 3, 1)]),
        (value(V1 | ssp("a-changelog", 0, None) | ssp("b-changelog", 0, STORE)), [("orders", 0, 60), ("clicks", 3, 1)]),
        (value({"Partition 0": 0}), []),  # task → changelog partition, as old versions wrote
        (value({"inputOffsets": {}}), []),
        (value(["orders"]), []),
        (value({"inputOffsets": None}), []),
        (value(ssp("orders", 0, "-1")), []),
        (value({"x": {"stream": "orders", "partition": None, "offset": "1"}}), []),
        (value(ssp("or\0ders", 0, "1") | ssp("\ud800", 0, "1") | ssp("orders", 0, "9" * 30)), []),
        (value(ssp("orders", 2**31, "1")), []),
        (b"[" * 100_000, []),
        (b"\xff\x00", []),
        (b"", []),
        (None, []),
    ],
)
def test_offsets_of_a_checkpoint(raw: bytes | None, expected: list[tuple[str, int, int]]) -> None:
    assert list(decoded(raw)) == expected


class Record:
    """The methods of a Kafka record that the code under test calls."""

    def __init__(self, offset: int, key: bytes, checkpoint: Mapping[str, Any]) -> None:
        self._offset, self._key, self._value = offset, key, value(checkpoint)

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 * self._offset


def test_of_several_tasks_on_one_partition_the_last_checkpoint_counts() -> None:
    records = [
        Record(0, b"old grouping", ssp("orders", 0, "5") | ssp("orders", 1, "7")),
        Record(1, b"task 0", ssp("orders", 0, "8")),
        Record(2, b"old grouping", ssp("orders", 1, "9")),
        Record(3, b"task 0", ssp("orders", 0, "10")),
    ]
    assert positions_in(iter(records)) == {  # type: ignore[arg-type]
        ("orders", 0): [Position(1, 1000, 9), Position(3, 3000, 11)],
        ("orders", 1): [Position(0, 0, 8), Position(2, 2000, 10)],
    }
