"""What processes may grow to, what their machines hold, and what a failure moves to the others."""

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
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
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


def _machine(instance_id: str, memory_bytes: float, **more: Any) -> dict[str, Any]:
    return {**PLACE, "instance_id": instance_id, "memory_bytes": memory_bytes, **more}


# host_memory


def test_a_machine_is_known_by_aws_or_by_node_exporter_and_of_both_aws_counts(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _machine("both", 8), _machine("aws", 8))
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
def test_what_another_machine_has_in_use_says_nothing(connection: sa.Connection, other: dict[str, Any]) -> None:
    _given(connection, "inventory.instance_hourly", _machine("i", 8))
    _given(
        connection,
        "metrics.instance_hourly",
        {**PLACE, "instance_id": "i", "memory_used_mean_percent": 91, **other},
    )
    assert _asked(connection, "host_memory") == [
        {"instance_id": "i", "memory_bytes": 8, "system_memory_used_percent": None}
    ]


def test_another_hours_machines_are_not_told(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", {**_machine("i", 8), "hour": EARLIER})
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
def test_a_process_may_grow_to_its_heap_and_the_rest(
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
        (None, 5, 7, 8, 7, 8),  # how many isn't known, that there are is
        (None, None, None, None, 0, 0),
    ],
)
def test_rocksdb_takes_what_it_is_configured_for_or_what_it_has_taken(
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
    ("container", "machine", "limit"), [(4, 8, 4), (8, 4, 4), (4, None, 4), (None, 8, 8), (None, None, None)]
)
def test_its_limit_is_its_containers_or_its_machines_whichever_is_less(
    connection: sa.Connection, container: float | None, machine: float | None, limit: float | None
) -> None:
    if machine:
        _given(connection, "inventory.instance_hourly", _machine("i", machine))
    _given(connection, "metrics.jvm_app_hourly", _process("e", instance_id="i", memory_limit_bytes=container))
    [row] = _asked(connection, "process_memory")
    assert (row["limit_bytes"], row["host_memory_bytes"]) == (limit, machine)


def test_the_jvms_of_a_machine_are_added_up_containers_to_their_limits(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _machine("i", 10000), _machine("j", 10000))
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
    machine = ("host_total_bytes", "host_most_bytes", "other_jvms_bytes")
    assert {endpoint: tuple(row[column] for column in machine) for endpoint, row in rows.items()} == {
        "a": (510, 520, 400),
        "b": (510, 520, 210),
        "d": (510, 520, 410),
        "e": (7, 7, 0),
        "f": (None, None, None),
        "g": (None, None, None),
    }


def test_one_jvm_of_which_little_is_known_leaves_open_what_the_machine_holds(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _machine("i", 10000))
    known = _process("a", instance_id="i", heap_max_bytes=100, non_heap_used_bytes=0)
    silent = _process("b", instance_id="i", memory_limit_bytes=50)
    _given(connection, "metrics.jvm_app_hourly", known, silent)
    rows = {row["endpoint"]: row for row in _asked(connection, "process_memory")}
    assert (rows["a"]["host_total_bytes"], rows["a"]["host_most_bytes"]) == (100, None)
    assert (rows["a"]["other_jvms_bytes"], rows["b"]["other_jvms_bytes"]) == (0, 100)


def test_what_jvms_have_taken_is_heap_rest_and_rocksdb_as_measured(connection: sa.Connection) -> None:
    _given(connection, "inventory.instance_hourly", _machine("i", 10000))
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


def _unseen(connection: sa.Connection, *rows: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    _given(connection, "metrics.jvm_app_hourly", *rows)
    return {
        f"{row['cluster']}/{row['endpoint']}": (row["unreported_stores"], row["most_bytes"])
        for row in _asked(connection, "process_memory")
    }


def test_changelogs_tell_how_many_stores_there_are_where_jmx_shows_none(connection: sa.Connection) -> None:
    others: tuple[dict[str, Any], ...] = (
        {"topic": "u", "kind": "plain"}, {"cluster": "d"}, {"topic": "v", "application_id": "bills-app"},
        {"hour": EARLIER}, {"cluster": "early", "hour": EARLIER},
    )  # fmt: skip
    _given(connection, "inventory.topic_hourly", CHANGELOG, CHANGELOG | {"topic": "s", "partitions": 2})
    _given(connection, "inventory.topic_hourly", *(CHANGELOG | {"partitions": 100} | other for other in others))
    default = 3 * (3 * 16 + 50) * 2**20
    assert _unseen(
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


@pytest.mark.parametrize("seen", [{"store_instances": 1}, {"application_stores": 1}], ids=str)
def test_of_an_application_that_shows_stores_none_are_unseen(connection: sa.Connection, seen: dict[str, Any]) -> None:
    _given(connection, "inventory.topic_hourly", CHANGELOG)
    rows = _process("a", **MEMBER, store_instances=0, application_stores=0), _process("b", **MEMBER, **seen)
    assert {stores for stores, _ in _unseen(connection, *rows).values()} == {0}


# settled_stores

DAYS = 2.5
SINCE = HOUR - timedelta(days=DAYS)
"""Twenty hours of 60 are a third, the first six a tenth."""
KNOWN: dict[float, float | None] = {6: 95, **dict.fromkeys(range(14, 30), 90.0), 30: 100, 45: 100, 60: 105}
SECOND = 1 / 3600


def _known(
    endpoint: str, by_hour: dict[float, float | None], started_at: Any = SINCE, **more: Any
) -> list[dict[str, Any]]:
    """The process of the last hour may be younger than what was there before."""
    return [
        _process(
            endpoint, **{"hour": SINCE + timedelta(hours=after), "rocksdb_measured_bytes": measured,
                         "store_instances": 1, "process_started_at": started_at if after == 60 else SINCE, **more}
        )
        for after, measured in by_hour.items()
    ]  # fmt: skip


def _settled(connection: sa.Connection, *rows: dict[str, Any]) -> dict[str, float]:
    for day in (1, 2, 3):
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (HOUR - timedelta(days=day)).date()})
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
        "as little as will do", "of other hours nothing counts", "nineteen hours", "known from the seventh on",
        "known from the seventh on, and without a figure before", "grows by more", "has grown by more since the half",
        "isn't known now",
    ],
)  # fmt: skip
def test_stores_are_settled_where_they_are_known_and_grow_no_more(
    connection: sa.Connection, changed: dict[float, float | None], measured: float | None
) -> None:
    found = _settled(connection, *_known("e", KNOWN | changed))
    assert found == ({} if measured is None else {"c/e": measured})


def test_a_young_process_isnt_settled_nor_one_that_had_fewer_stores_or_has_none(connection: sa.Connection) -> None:
    before = {after: measured for after, measured in KNOWN.items() if after < 60}
    now = {60.0: KNOWN[60]}
    assert _settled(
        connection,
        *_known("young", KNOWN, SINCE + timedelta(seconds=1)),
        *_known("young", now, cluster="d"),  # old, but nothing is known of it
        *_known("old", now),
        *_known("none", KNOWN, store_instances=0),
        *_known("had-less", before),
        *_known("had-less", now, store_instances=2),
        *_known("had-more", before, store_instances=2),
        *_known("had-more", now),
    ) == {"c/had-more": 105}


def test_a_settled_process_takes_what_it_has_taken(connection: sa.Connection) -> None:
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


def test_the_stores_of_the_dead_are_shared_by_those_that_are_left(connection: sa.Connection) -> None:
    # 7 stores of 10 bytes each: of two that are left each takes up to 4.
    assert _growth(connection, _member("a", 3, 30), _member("b", 2, 20), _member("d", 2, 20)) == {
        "a": (10, 10),
        "b": (20, 20),
        "d": (20, 20),
    }


def test_the_worst_failure_counts(connection: sa.Connection) -> None:
    # Where x dies, with two processes, y and z take 6 each; where y or z dies, three are left, with 4 each.
    members = [_member(f"http://{host}/jolokia", 3, 30) for host in ("x:1", "x:2", "y:1", "z:1")]
    assert _growth(connection, *members) == {
        "http://x:1/jolokia": (10, 20),
        "http://x:2/jolokia": (10, 20),
        "http://y:1/jolokia": (30, 30),
        "http://z:1/jolokia": (30, 30),
    }


def test_a_machine_grows_by_what_all_its_processes_take_over(connection: sa.Connection) -> None:
    bills = {"application_id": "bills-app"}
    assert _growth(
        connection,
        _member("a1", 1, 10, instance_id="i"),
        _member("a2", 1, 10, instance_id="j"),
        _member("b1", 1, 20, instance_id="i", **bills),
        _member("b2", 1, 20, instance_id="k", **bills),
        _member("b3", 1, 20, instance_id="j", **bills),
    ) == {"a1": (10, 30), "a2": (10, 30), "b1": (20, 30), "b2": (20, 20), "b3": (20, 30)}


def test_clusters_and_applications_are_told_apart(connection: sa.Connection) -> None:
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


def test_on_one_machine_nobody_is_left(connection: sa.Connection) -> None:
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
def test_what_grows_with_more_stores(connection: sa.Connection, more: dict[str, Any], growth: float | None) -> None:
    found = _growth(connection, _member("a", 2, 20) | more, _member("b", 2, 20) | more)
    assert found == {"a": (growth, growth), "b": (growth, growth)}


def test_who_knows_of_the_most_stores_of_an_application_is_right(connection: sa.Connection) -> None:
    rows = _member("a", 2, 20, application_stores=2), _member("b", 2, 20, application_stores=3)
    assert _growth(connection, *rows) == {"a": (10, 10), "b": (10, 10)}


def test_a_process_without_stores_takes_over_all(connection: sa.Connection) -> None:
    assert _growth(connection, _member("a", None, 0), _member("b", 2, 20)) == {"a": (20, 20), "b": (0, 0)}


def test_a_single_store_moves_with_all_that_it_takes(connection: sa.Connection) -> None:
    assert _growth(connection, _member("a", 1, 10), _member("b", 0, 0)) == {"a": (0, 0), "b": (10, 10)}
