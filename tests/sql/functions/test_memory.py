"""Memory limits of processes and hosts, and the memory that moves to other processes on a failure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

EARLIER = HOUR - timedelta(hours=1)
PLACE = {"account": "1", "region": "r"}


@pytest.fixture
def connection(module_warehouse: sa.Engine) -> Iterator[sa.Connection]:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def _given(connection: sa.Connection, table: str, *rows: dict[str, Any]) -> None:
    for row in rows:
        insert_row(connection, table, {"hour": HOUR, **row})


def _asked(connection: sa.Connection, function: str) -> list[dict[str, Any]]:
    rows = connection.execute(sa.text(f"select * from metrics.{function}(:hour) order by 1, 2"), {"hour": HOUR})
    return [dict(row) for row in rows.mappings()]


def _process(endpoint: str, **more: Any) -> dict[str, Any]:
    return {"cluster": "c", "app": "orders", "endpoint": endpoint, "samples": 3, **more}


def _host(instance_id: str, memory_bytes: float, **more: Any) -> dict[str, Any]:
    return {**PLACE, "instance_id": instance_id, "memory_bytes": memory_bytes, **more}


# host_memory


def test_host_memory_comes_from_aws_or_from_node_exporter_and_aws_takes_precedence(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _host("both", 8), _host("aws", 8))
    _given(connection, "metrics.instance_hourly", {**PLACE, "instance_id": "both", "memory_used_mean_percent": 60})
    again = {"account": "2", "region": "r", "instance_id": "both"}
    _given(connection, "inventory.instance_hourly", {**again, "memory_bytes": 6})
    _given(connection, "metrics.instance_hourly", {**again, "memory_used_mean_percent": 50})
    node = {"cluster": "c", "memory_bytes": 7, "memory_used_mean_percent": 91}
    _given(
        connection,
        "metrics.node_hourly",
        {**node, "endpoint": "n1", "instance_id": "both"},
        {**node, "endpoint": "n2", "instance_id": "node"},
        {**node, "endpoint": "n3", "instance_id": "node", "memory_bytes": 6, "memory_used_mean_percent": 92},
        {**node, "endpoint": "n4"},
    )
    assert [tuple(row.values()) for row in _asked(connection, "host_memory")] == [
        ("aws", 8, None),
        ("both", 8, 60),
        ("node", 7, 92),
    ]


@pytest.mark.parametrize("other", [{"account": "2"}, {"region": "s"}, {"instance_id": "j"}, {"hour": EARLIER}], ids=str)
def test_used_memory_of_another_host_does_not_count(connection: sa.Connection, other: dict[str, Any]) -> None:
    _given(connection, "inventory.instance_hourly", _host("i", 8))
    _given(
        connection,
        "metrics.instance_hourly",
        {**PLACE, "instance_id": "i", "memory_used_mean_percent": 91, **other},
    )
    assert _asked(connection, "host_memory") == [
        {"instance_id": "i", "memory_bytes": 8, "system_memory_used_percent": None}
    ]


def test_hosts_of_another_hour_are_not_returned(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", {**_host("i", 8), "hour": EARLIER})
    _given(connection, "metrics.node_hourly", {"cluster": "c", "endpoint": "n", "instance_id": "n", "hour": EARLIER})
    assert _asked(connection, "host_memory") == []


# process_memory


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (
            {"heap_max_bytes": 1000, "non_heap_used_bytes": 1, "thread_stack_bytes": 10, "direct_bytes": 100},
            {"off_heap_bytes": 0, "rest_bytes": 111, "total_bytes": 1111, "most_bytes": 1111},
        ),
        ({"heap_max_bytes": 1000}, {"rest_bytes": 0, "total_bytes": 1000, "most_bytes": None}),
        ({"non_heap_used_bytes": 1}, {"rest_bytes": 1, "total_bytes": None, "most_bytes": None}),
        (
            {"heap_max_bytes": 1000, "non_heap_used_bytes": 1},
            {"rest_bytes": 1, "total_bytes": 1001, "most_bytes": 1001},
        ),
    ],
    ids=["all known", "classes and code unknown", "heap unknown", "stacks and buffers unknown"],
)
def test_a_process_may_grow_to_its_maximum_heap_plus_its_other_memory(
    connection: sa.Connection, metrics: dict[str, Any], expected: dict[str, Any]
) -> None:
    _given(connection, "metrics.jvm_app_hourly", _process("e", **metrics), _process("e", hour=EARLIER, samples=9))
    [row] = _asked(connection, "process_memory")
    assert row | expected == row


@pytest.mark.parametrize(
    ("stores", "measured", "expected", "expected_max", "at_least", "at_most"),
    [
        (2, 5, 7, None, 7, 7),
        (2, 9, 7, None, 9, 9),
        (2, None, 7, None, 7, 7),
        (2, 5, 7, 8, 7, 8),
        (2, 9, 7, 8, 9, 9),
        (2, 5, 7, 6, 7, 7),
        (2, 5, None, 8, 5, 8),
        (2, None, None, 8, None, 8),
        (2, 5, None, None, 5, None),
        (2, None, None, None, None, None),
        (0, 5, 7, 8, 0, 0),
        (None, 5, 7, 8, 7, 8),  # stores exist, but their number is unknown
        (None, None, None, 8, None, 8),
        (None, None, None, None, 0, 0),
    ],
)
def test_rocksdb_memory_is_the_configured_or_the_measured_one(
    connection: sa.Connection,
    stores: int | None,
    measured: float | None,
    expected: float | None,
    expected_max: float | None,
    at_least: float | None,
    at_most: float | None,
) -> None:
    _given(
        connection,
        "metrics.jvm_app_hourly",
        _process(
            "e", heap_max_bytes=100, non_heap_used_bytes=0, store_instances=stores, rocksdb_measured_bytes=measured,
            rocksdb_expected_bytes=expected, rocksdb_expected_max_bytes=expected_max,
        ),
    )  # fmt: skip
    [row] = _asked(connection, "process_memory")
    assert row["off_heap_bytes"] == at_least
    assert row["total_bytes"] == 100 + (at_least or 0)
    assert row["most_bytes"] == (None if at_most is None else 100 + at_most)


@pytest.mark.parametrize(
    ("container", "host", "limit"), [(4, 8, 4), (8, 4, 4), (4, None, 4), (None, 8, 8), (None, None, None)]
)
def test_the_limit_is_the_lower_one_of_container_and_host(
    connection: sa.Connection, container: float | None, host: float | None, limit: float | None
) -> None:
    if host:
        _given(connection, "inventory.instance_hourly", _host("i", host))
    _given(connection, "metrics.jvm_app_hourly", _process("e", instance_id="i", memory_limit_bytes=container))
    [row] = _asked(connection, "process_memory")
    assert (row["limit_bytes"], row["host_memory_bytes"]) == (limit, host)


def test_jvms_of_a_host_are_summed_containers_up_to_their_limits(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _host("i", 10000), _host("j", 10000))
    on = {"instance_id": "i", "memory_limit_bytes": 300, "non_heap_used_bytes": 0}
    _given(
        connection,
        "metrics.jvm_app_hourly",
        _process(
            "a", **on, heap_max_bytes=100, store_instances=1, rocksdb_expected_bytes=10, rocksdb_expected_max_bytes=20
        ),
        _process("b", **on, heap_max_bytes=400),
        _process("d", **on, heap_max_bytes=100) | {"cluster": "d"},
        _process("e", **on, heap_max_bytes=7) | {"instance_id": "j"},
        _process("f", heap_max_bytes=8),
        _process("g", heap_max_bytes=9),
    )
    rows = {row["endpoint"]: row for row in _asked(connection, "process_memory")}
    host = ("host_total_bytes", "host_most_bytes", "other_jvms_bytes")
    assert {endpoint: tuple(row[column] for column in host) for endpoint, row in rows.items()} == {
        "a": (510, 520, 400),
        "b": (510, 520, 210),
        "d": (510, 520, 410),
        "e": (7, 7, 0),
        "f": (None, None, None),
        "g": (None, None, None),
    }


def test_one_jvm_without_metrics_leaves_the_maximum_of_the_host_unknown(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _host("i", 10000))
    known = _process("a", instance_id="i", heap_max_bytes=100, non_heap_used_bytes=0)
    silent = _process("b", instance_id="i", memory_limit_bytes=50)
    _given(connection, "metrics.jvm_app_hourly", known, silent)
    rows = {row["endpoint"]: row for row in _asked(connection, "process_memory")}
    assert (rows["a"]["host_total_bytes"], rows["a"]["host_most_bytes"]) == (100, None)
    assert (rows["a"]["other_jvms_bytes"], rows["b"]["other_jvms_bytes"]) == (0, 100)


def test_taken_memory_is_heap_other_memory_and_measured_rocksdb(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _host("i", 10000))
    on = {"instance_id": "i", "heap_max_bytes": 100, "direct_bytes": 5, "rocksdb_measured_bytes": 30}
    _given(
        connection,
        "metrics.jvm_app_hourly",
        _process("a", **on, store_instances=1),
        _process("b", **on, store_instances=0, memory_limit_bytes=60),
        _process("d", **on | {"rocksdb_measured_bytes": None}, store_instances=1),
        _process("e", **on | {"instance_id": None}),
        _process("silent", instance_id="i", memory_limit_bytes=1000),
    )
    rows = {row["endpoint"]: row for row in _asked(connection, "process_memory")}
    taken = {endpoint: (row["taken_bytes"], row["host_taken_bytes"]) for endpoint, row in rows.items()}
    assert taken == {"a": (135, 300), "b": (105, 300), "d": (105, 300), "e": (135, None), "silent": (None, 300)}


MEMBER = {"application_id": "orders-app", "heap_max_bytes": 1, "non_heap_used_bytes": 0}
CHANGELOG = {"cluster": "c", "topic": "t", "kind": "changelog", "application_id": "orders-app", "partitions": 5}


def _unreported(connection: sa.Connection, *rows: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    _given(connection, "metrics.jvm_app_hourly", *rows)
    return {
        f"{row['cluster']}/{row['endpoint']}": (row["unreported_stores"], row["most_bytes"])
        for row in _asked(connection, "process_memory")
    }


def test_stores_missing_in_jmx_are_counted_by_changelog_partitions(connection: sa.Connection) -> None:
    others: tuple[dict[str, Any], ...] = (
        {"topic": "u", "kind": "plain"}, {"cluster": "d"}, {"topic": "v", "application_id": "bills-app"},
        {"hour": EARLIER}, {"cluster": "early", "hour": EARLIER},
    )  # fmt: skip
    _given(connection, "inventory.topic_hourly", CHANGELOG, CHANGELOG | {"topic": "s", "partitions": 2})
    _given(connection, "inventory.topic_hourly", *(CHANGELOG | {"partitions": 100} | other for other in others))
    default = 3 * (3 * 16 + 50) * 2**20
    assert _unreported(
        connection,
        _process("a", **MEMBER),
        _process("b", **MEMBER, store_instances=0),
        _process("left", **MEMBER, hour=EARLIER),
        _process("no-changelog", **MEMBER | {"application_id": "new-app"}),
        _process("no-app", **MEMBER | {"application_id": None}),
        _process("early", **MEMBER, cluster="early"),
        _process("early-no-app", **MEMBER | {"application_id": None}, cluster="early"),
    ) == {
        "c/a": (4, 1 + 4 * default),
        "c/b": (4, 1 + 4 * default),
        "c/no-changelog": (0, 1),
        "c/no-app": (0, 1),
        "early/early": (None, None),
        "early/early-no-app": (0, 1),
    }


@pytest.mark.parametrize("reported", [{"store_instances": 1}, {"application_stores": 1}], ids=str)
def test_an_application_that_reports_stores_has_no_unreported_ones(
    connection: sa.Connection, reported: dict[str, Any]
) -> None:
    _given(connection, "inventory.topic_hourly", CHANGELOG)
    rows = _process("a", **MEMBER, store_instances=0, application_stores=0), _process("b", **MEMBER, **reported)
    assert {stores for stores, _ in _unreported(connection, *rows).values()} == {0}


# settled_stores

DAYS = 2.5
SINCE = HOUR - timedelta(days=DAYS)
"""Of these 60 hours, a third (20) must be known, and the first reading must be within the first tenth (6)."""
KNOWN: dict[float, float | None] = {6: 95, **dict.fromkeys(range(14, 30), 90.0), 30: 100, 45: 100, 60: 105}
SECOND = 1 / 3600


def _known(
    endpoint: str, by_hour: dict[float, float | None], started_at: Any = SINCE, **more: Any
) -> list[dict[str, Any]]:
    """Rows of a process by hours since SINCE; `started_at` is the start time in the last hour."""
    return [
        _process(
            endpoint, **{"hour": SINCE + timedelta(hours=after), "rocksdb_measured_bytes": measured,
                         "store_instances": 1, "process_started_at": started_at if after == 60 else SINCE, **more}
        )
        for after, measured in by_hour.items()
    ]  # fmt: skip


def _settled(connection: sa.Connection, *rows: dict[str, Any]) -> dict[str, float]:
    _given(connection, "metrics.jvm_app_hourly", *rows)
    call = "select * from metrics.settled_stores(:hour, :days, 1.05)"
    found = connection.execute(sa.text(call), {"hour": HOUR, "days": DAYS})
    return {f"{row.cluster}/{row.endpoint}": row.measured_bytes for row in found}


@pytest.mark.parametrize(
    ("changed", "measured"),
    [
        ({}, 105),
        ({0: 999, 61: 999}, 105),
        ({14: None}, None),
        ({6: None, 6 + SECOND: 95}, None),
        ({6: None, 1: None, 7: 95}, None),
        ({60: 106}, None),
        ({30 + SECOND: 106}, None),
        ({60: None, 50: 105}, None),
    ],
    ids=[
        "minimum history", "other hours do not count", "nineteen hours", "known from the seventh hour on",
        "null before the seventh hour", "grows by more", "grew by more since half of the time",
        "unknown now",
    ],
)  # fmt: skip
def test_stores_are_settled_if_they_are_known_and_no_longer_grow(
    connection: sa.Connection, changed: dict[float, float | None], measured: float | None
) -> None:
    found = _settled(connection, *_known("e", KNOWN | changed))
    assert found == ({} if measured is None else {"c/e": measured})


def test_a_young_process_is_not_settled_nor_one_with_more_stores_than_before_or_none(connection: sa.Connection) -> None:
    before = {after: measured for after, measured in KNOWN.items() if after < 60}
    now = {60.0: KNOWN[60]}
    assert _settled(
        connection,
        *_known("young", KNOWN, SINCE + timedelta(seconds=1)),
        *_known("young", now, cluster="d"),  # old, but without history
        *_known("old", now),
        *_known("none", KNOWN, store_instances=0),
        *_known("had-less", before),
        *_known("had-less", now, store_instances=2),
        *_known("had-more", before, store_instances=2),
        *_known("had-more", now),
    ) == {"c/had-more": 105}


def test_a_settled_process_needs_its_measured_memory(connection: sa.Connection) -> None:
    more = {"heap_max_bytes": 1000, "non_heap_used_bytes": 0, "rocksdb_expected_bytes": 500}
    rows = [*_known("e", KNOWN | {60: 70}, **more), *_known("f", {60: 70}, **more)]
    _settled(connection, *rows, *_known("e", {60: 70}, **more, cluster="d"))
    call = f"select * from metrics.process_memory(:hour, {DAYS}) order by cluster, endpoint"
    settled, *others = connection.execute(sa.text(call), {"hour": HOUR}).all()
    assert (settled.is_settled, settled.off_heap_bytes, settled.taken_bytes, settled.most_bytes) == (
        True, 100, 1100, 1100,
    )  # fmt: skip
    assert [(row.is_settled, row.off_heap_bytes, row.taken_bytes, row.most_bytes) for row in others] == [
        (False, 500, 1070, 1500)
    ] * 2


# growth_on_failure


def _member(endpoint: str, stores: int | None, expected: float, **more: Any) -> dict[str, Any]:
    return _process(
        endpoint, **{"application_id": "orders-app", "heap_max_bytes": 1, "store_instances": stores,
                     "rocksdb_expected_bytes": expected, **more}
    )  # fmt: skip


def _growth(connection: sa.Connection, *rows: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    _given(connection, "metrics.jvm_app_hourly", *rows)
    return {
        row["endpoint"]: (row["growth_bytes"], row["host_growth_bytes"])
        for row in _asked(connection, "growth_on_failure")
    }


def test_stores_of_a_failed_host_move_to_the_remaining_processes(connection: sa.Connection) -> None:
    # 7 stores of 10 bytes each: two processes remain, each with up to 4 stores.
    assert _growth(connection, _member("a", 3, 30), _member("b", 2, 20), _member("d", 2, 20)) == {
        "a": (10, 10),
        "b": (20, 20),
        "d": (20, 20),
    }


def test_the_worst_failure_counts(connection: sa.Connection) -> None:
    # If x fails, with two processes, y and z have 6 stores each; if y or z fails, three remain with 4 each.
    members = [_member(f"http://{host}/jolokia", 3, 30) for host in ("x:1", "x:2", "y:1", "z:1")]
    assert _growth(connection, *members) == {
        "http://x:1/jolokia": (10, 20),
        "http://x:2/jolokia": (10, 20),
        "http://y:1/jolokia": (30, 30),
        "http://z:1/jolokia": (30, 30),
    }


def test_a_host_grows_by_the_stores_that_all_its_processes_take_over(connection: sa.Connection) -> None:
    bills = {"application_id": "bills-app"}
    assert _growth(
        connection,
        _member("a1", 1, 10, instance_id="i"),
        _member("a2", 1, 10, instance_id="j"),
        _member("b1", 1, 20, instance_id="i", **bills),
        _member("b2", 1, 20, instance_id="k", **bills),
        _member("b3", 1, 20, instance_id="j", **bills),
    ) == {"a1": (10, 30), "a2": (10, 30), "b1": (20, 30), "b2": (20, 20), "b3": (20, 30)}


def test_clusters_and_applications_are_kept_apart(connection: sa.Connection) -> None:
    assert _growth(
        connection,
        _member("a", 1, 10),
        _member("b", 1, 10),
        _member("http://x:1/", 4, 400, cluster="d"),
        _member("http://x:2/", 4, 400, cluster="d"),
        _member("y", 4, 400, cluster="d"),
        _member("v", 2, 2, application_id="bills-app"),
        _member("w", 2, 2, application_id="bills-app"),
        _member("none", 2, 2, application_id=None),
        _member("a", 2, 2, application_id=None, cluster="d"),
        _member("a", 9, 9, hour=EARLIER),
    ) == {
        "a": (10, 10),
        "b": (10, 10),
        "http://x:1/": (200, 400),
        "http://x:2/": (200, 400),
        "y": (800, 800),
        "v": (2, 2),
        "w": (2, 2),
    }


def test_no_process_remains_if_all_run_on_one_host(connection: sa.Connection) -> None:
    rows = [_member("http://a:1/", 2, 20, application_stores=9), _member("http://a:2/", 4, 40, application_stores=9)]
    assert _growth(connection, *rows) == {"http://a:1/": (None, None), "http://a:2/": (None, None)}
    first, _ = _asked(connection, "growth_on_failure")
    assert (first["instances"], first["stores"], first["bytes_per_store"]) == (2, 6, 10)


@pytest.mark.parametrize(
    ("more", "growth"),
    [
        ({"rocksdb_shared_cache": False}, 20),
        ({"rocksdb_shared_cache": None}, 20),
        ({"rocksdb_shared_cache": True}, 0),
        ({"rocksdb_shared_cache": True, "rocksdb_shared_bytes": 5}, 15),
        ({"rocksdb_shared_cache": True, "rocksdb_shared_bytes": 50}, 0),
        ({"application_stores": 2}, 0),
        ({"application_stores": 3}, 10),
        ({"application_stores": 9}, 20),
        ({"store_instances": 0}, None),
        ({"store_instances": 0, "application_stores": 3}, None),
        ({"store_instances": None}, None),
        ({"rocksdb_expected_bytes": None}, None),
    ],
    ids=str,
)
def test_growth_with_more_stores(connection: sa.Connection, more: dict[str, Any], growth: float | None) -> None:
    found = _growth(connection, _member("a", 2, 20) | more, _member("b", 2, 20) | more)
    assert found == {"a": (growth, growth), "b": (growth, growth)}


def test_the_highest_reported_number_of_stores_counts(connection: sa.Connection) -> None:
    rows = _member("a", 2, 20, application_stores=2), _member("b", 2, 20, application_stores=3)
    assert _growth(connection, *rows) == {"a": (10, 10), "b": (10, 10)}


def test_a_process_without_stores_takes_over_all_of_them(connection: sa.Connection) -> None:
    assert _growth(connection, _member("a", None, 0), _member("b", 2, 20)) == {"a": (20, 20), "b": (0, 0)}


def test_a_single_store_moves_with_all_its_memory(connection: sa.Connection) -> None:
    assert _growth(connection, _member("a", 1, 10), _member("b", 0, 0)) == {"a": (0, 0), "b": (10, 10)}
