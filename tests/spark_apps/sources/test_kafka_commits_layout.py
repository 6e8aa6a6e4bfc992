"""Records of `__consumer_offsets` in every layout, decoded from bytes; an invalid record does not affect others."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_apps.sources import kafka_commits
from spark_apps.sources.kafka_commits import KnownKeys, decode
from tests.spark_apps.offsets_log import commit_key, commit_value, group_key, group_value

AT = datetime(2026, 1, 5, 10, 30, 0, 123000, UTC)
AT_MS = int(AT.timestamp() * 1000)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("metadata", ["", "hello", "x" * 300, "ü" * 70])
def test_commits_of_every_version(version: int, metadata: str) -> None:
    [row] = decode([commit_key('g"ü', "t", 3)], [commit_value(version, 2**40 + 5, AT_MS, metadata)]).to_pylist()
    assert row == {
        "kind": "commit",
        "group_id": 'g"ü',
        "topic": "t",
        "partition": 3,
        "committed_offset": 2**40 + 5,
        "committed_at": AT,
        "generation": None,
        "members": None,
    }


def test_null_metadata_is_read() -> None:
    [row] = decode([commit_key("g", "t", 0)], [commit_value(4, 9, AT_MS, None)]).to_pylist()
    assert (row["kind"], row["committed_offset"], row["committed_at"]) == ("commit", 9, AT)


def test_a_record_seen_on_kafka_4_3() -> None:
    value = "000400000000000000c8ffffffff0768656c6c6f00000001a1fc8bfdd301001083e994f93fcb446c8202d6c953ae820b"
    [row] = decode([commit_key("g", "t1", 0)], [bytes.fromhex(value)]).to_pylist()
    assert row["committed_offset"] == 200
    assert row["committed_at"] == datetime(2026, 11, 21, 5, 19, 55, 347000, UTC)


def test_group_metadata_of_all_protocols_and_tombstones() -> None:
    keys = [group_key("g"), group_key("new", 3), group_key("app", 17), commit_key("g", "t", 1), group_key("g")]
    newer, streams = "0000000000020100083e9a8651c9cf7b7a", "00000000000253a07a3f94b8383c0200040000000001190200"
    values = [group_value(17), bytes.fromhex(newer), bytes.fromhex(streams), None, None]
    rows = decode(keys, values).to_pylist()
    assert [(r["kind"], r["group_id"], r["generation"]) for r in rows] == [
        ("group", "g", 17),
        ("group", "new", 2),
        ("group", "app", 2),
        ("tombstone", "g", None),
        ("group_tombstone", "g", None),
    ]


@pytest.mark.parametrize("version", range(4))
def test_members_of_a_group_of_every_version(version: int) -> None:
    member = {
        "member_id": "m-1",
        "client_id": "c",
        "host": "/10.0.0.1",
        "poll_interval_ms": 300,
        "session_timeout_ms": 9,
        "assignment": {"orders": [0, 3], "bills": []},
    }
    idle = member | {"member_id": "m-2", "assignment": {}}
    whole = group_value(5, version, [member, idle])
    [row, cut] = decode([group_key("g"), group_key("g")], [whole, whole[:-1]]).to_pylist(maps_as_pydicts="strict")
    unknown = {} if version else {"poll_interval_ms": None}
    assert row["members"] == [member | unknown, idle | unknown]
    assert (cut["generation"], cut["members"]) == (5, None)


def test_an_unreadable_assignment_is_none() -> None:
    """Assignments of Connect workers, say, or of a custom assignor."""
    member = {"member_id": "m", "client_id": "c", "host": "/h", "poll_interval_ms": 3, "session_timeout_ms": 9}
    value = group_value(5, 3, [member | {"assignment": {"orders": [0]}}])
    others = group_value(5, 3, [member | {"assignment": {"orders": [0]}}], "connect")
    odd = value.replace(b"orders", b"or\xff\xffrs")
    rows = decode([group_key("g")] * 3, [value, others, odd]).to_pylist(maps_as_pydicts="strict")
    assert [row["members"] and row["members"][0]["assignment"] for row in rows] == [{"orders": [0]}, None, None]


def test_names_have_no_nul_which_postgresql_does_not_store() -> None:
    member = {"member_id": "m\0", "client_id": "c\0d", "host": "/h", "poll_interval_ms": 3, "session_timeout_ms": 9}
    keys: list[bytes | None] = [commit_key("a\0b", "t", 0), group_key("a\0b")]
    rows = decode(keys, [commit_value(3, 1, AT_MS), group_value(5, 3, [member | {"assignment": {}}])]).to_pylist()
    assert [row["group_id"] for row in rows] == ["a\ufffdb"] * 2
    [read] = rows[1]["members"]
    assert (read["member_id"], read["client_id"]) == ("m\ufffd", "c\ufffdd")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b"\0"),
        (b"\x00\x63abc", b"whatever"),
        (group_key("g", 5), b"\0\0\0\0"),
        (commit_key("g", "t", 0)[:-2], commit_value(3, 1, AT_MS)),
        (commit_key("g", "t", 0), commit_value(4, 1, AT_MS)[:20]),
        (commit_key("g", "t", 0), b"\x00\x09" + commit_value(3, 1, AT_MS)[2:]),
        (commit_key("g", "t", 0), b""),
        (group_key("g"), b"\x00\x2a" + group_value(3)[2:]),
        (b"\x00\x01\x00\x02\xff\xfe\x00\x01t\x00\x00\x00\x00", commit_value(3, 1, AT_MS)),
    ],
)
def test_unknown_and_broken_records_have_no_kind_and_do_not_affect_others(
    key: bytes | None, value: bytes | None
) -> None:
    good = (commit_key("good", "t", 0), commit_value(3, 41, AT_MS))
    rows = decode([good[0], key, good[0]], [good[1], value, good[1]]).to_pylist()
    assert [row["kind"] for row in rows] == ["commit", None, "commit"]
    assert [row["committed_offset"] for row in rows] == [41, None, 41]


@pytest.mark.parametrize("at_ms", [-1, -(2**63), 253_402_300_800_000, 2**63 - 1])
def test_an_invalid_commit_time_is_null_and_does_not_affect_others(at_ms: int) -> None:
    values = [commit_value(3, 7, at_ms), commit_value(3, 8, AT_MS)]
    table = decode([commit_key("g", "t", 0)] * 2, values)
    times = table["committed_at"].cast(pa.timestamp("us", "UTC")).to_pylist()  # the range of Spark
    assert (table["committed_offset"].to_pylist(), times) == ([7, 8], [None, AT])


def test_nothing_to_decode() -> None:
    assert decode([], []).num_rows == 0


def test_decoded_keys_are_cached_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_commits, "_KEYS_KEPT", 3)
    known = KnownKeys()
    seen = []
    for turn in range(4):
        keys: list[bytes | None] = [commit_key("g", "t", p) for p in (turn, turn + 1, turn)]
        rows = decode(keys, [commit_value(4, 10 * turn + i, AT_MS) for i in range(3)], known).to_pylist()
        seen += [(row["partition"], row["committed_offset"]) for row in rows]
        assert len(known) <= 5
    assert seen == [(t + (i == 1), 10 * t + i) for t in range(4) for i in range(3)]
