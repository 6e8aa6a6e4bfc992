"""exhausted_periods, instances_gone, hosted_processes, host_failover, host_store_growth: EC2 instances and hosts."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

PLACE = {"account": "1", "region": "r"}


def _minutes(values: dict[int, float | None], column: str, instance: str = "i-1") -> list[dict[str, Any]]:
    return [
        PLACE | {"instance_id": instance, "at": HOUR + timedelta(minutes=at), "period_seconds": 60, column: value}
        for at, value in values.items()
    ]


@pytest.mark.parametrize(
    ("cpu", "periods"),
    [
        ({0: 90, 1: 95, 2: 80, 3: 99}, [(0, 2), (3, 8)]),
        ({0: 89.9}, []),
        ({0: 95, 10: 95}, [(0, 15)]),  # basic monitoring: no value below the limit between
        ({57: 95}, [(57, 60)]),  # not beyond the end
        ({-1: 95, 60: 95}, []),  # outside
        ({0: 95, 1: None, 2: 95}, [(0, 7)]),
    ],
)
def test_stretches_at_a_limit(
    module_warehouse: sa.Engine, cpu: dict[int, float | None], periods: list[tuple[int, int]]
) -> None:
    others = _minutes({0: 99, 5: 99}, "cpu_percent", "i-2") + [
        {**row, "account": "2"} for row in _minutes({20: 99}, "cpu_percent")
    ]
    found = rows_for(
        module_warehouse, {"metrics.instance_sample": _minutes(cpu, "cpu_percent") + others},
        "select * from public.exhausted_periods('1', 'r', 'i-1', :hour, :end, 90, 85) order by since",
        end=HOUR + timedelta(hours=1),
    )  # fmt: skip
    minute = timedelta(minutes=1)
    assert found == [("cpu", HOUR + since * minute, HOUR + upto * minute) for since, upto in periods]


def test_memory_has_a_limit_of_its_own(module_warehouse: sa.Engine) -> None:
    found = rows_for(
        module_warehouse, {"metrics.instance_sample": _minutes({0: 85, 1: 84}, "memory_used_percent")},
        "select resource_name, since from public.exhausted_periods('1', 'r', 'i-1', :hour, :end, 90, 85)",
        end=HOUR + timedelta(hours=1),
    )  # fmt: skip
    assert found == [("memory", HOUR)]


def test_instances_that_are_gone(module_warehouse: sa.Engine) -> None:
    def listed(instance: str, ago: int, state: str = "running", region: str = "r") -> dict[str, Any]:
        return {"account": "1", "region": region, "instance_id": instance, "state": state,
                "hour": HOUR - timedelta(hours=ago)}  # fmt: skip

    rows = [
        listed("runs", 1), listed("runs", 0), listed("stopped", 0, "stopped"), listed("gone", 2),
        listed("too long ago", 3), listed("region did not respond", 1, region="s"),
    ]  # fmt: skip
    found = rows_for(
        module_warehouse, {"inventory.instance_hourly": rows},
        "select * from public.instances_gone(:hour, 3) order by instance_id",
    )  # fmt: skip
    assert found == [("gone", None, True), ("runs", "running", False), ("stopped", "stopped", True)]


@pytest.mark.parametrize(
    ("endpoint", "instance", "host"),
    [
        ("http://10.0.0.7:8778/jolokia", "i-7", "i-7"),
        ("http://10.0.0.7:8778/jolokia", None, "10.0.0.7"),
        ("worker-1:9404", None, "worker-1:9404"),
    ],
)
def test_the_host_of_a_process(module_warehouse: sa.Engine, endpoint: str, instance: str | None, host: str) -> None:
    row: dict[str, Any] = {"cluster": "c", "app": "a", "endpoint": endpoint, "instance_id": instance}
    query = "select host from public.hosted_processes(:hour)"
    given = {"metrics.jvm_app_hourly": [row, {**row, "over": {"hours": 1, "until": -1}, "instance_id": "before"}]}
    assert rows_for(module_warehouse, given, query) == [(host,)]


def _stores(hosts: dict[str, float | None], **columns: Any) -> dict[str, list[dict[str, Any]]]:
    """One process of application `orders` per host, with one store of two tasks and these bytes."""
    common: dict[str, Any] = {"cluster": "c", "app": "orders"}
    return {
        "metrics.jvm_app_hourly": [
            common | {"endpoint": f"http://{host}:1/", "application_id": "orders"} for host in hosts
        ],
        "metrics.state_store_memory_hourly": [
            common | {"endpoint": f"http://{host}:1/", "store": "s", "tasks": 2, "sst_bytes": size} | columns
            for host, size in hosts.items()
        ],
    }


@pytest.mark.parametrize(
    ("hosts", "partitions", "expected"),
    [
        ({"h1": 100, "h2": 300, "h3": 60}, 6, (50, "h2", 150)),
        ({"h1": 100, "h2": 300}, 4, (50, "h2", 300)),
        ({"h1": 100, "h2": 300, "h3": 60}, 5, (50, None, None)),  # standbys: six tasks of five partitions
        ({"h1": 100}, 2, (50, None, None)),
        ({"h1": None, "h2": 10}, 4, (None, "h2", 10)),
    ],
)
def test_what_a_failure_of_another_host_adds(
    module_warehouse: sa.Engine, hosts: dict[str, float | None], partitions: int, expected: tuple[Any, ...]
) -> None:
    topic = {"cluster": "c", "topic": "orders-s-changelog", "partitions": partitions}
    earlier, elsewhere = {"hour": HOUR - timedelta(hours=1)}, {"cluster": "d"}
    others: list[dict[str, Any]] = [
        earlier,
        elsewhere | {"partitions": 99},
        {"topic": "bills-s-changelog"},
        {"topic": "orders"},
    ]
    given = _stores(hosts) | {"inventory.topic_hourly": [topic, *(topic | other for other in others)]}
    processes, stores = given["metrics.jvm_app_hourly"], given["metrics.state_store_memory_hourly"]
    processes += [row | elsewhere for row in processes] + [
        {"cluster": "c", "app": "bills", "endpoint": f"http://{host}:2/", "application_id": "bills"} for host in hosts
    ]
    stores += [
        row | {"sst_bytes": 7} | other
        for row in stores
        for other in (earlier, elsewhere, {"app": "bills"}, {"app": "bills", "endpoint": f"{row['endpoint'][:-2]}2/"})
    ]
    assert _failover(module_warehouse, given, ["c"]) == [expected]


def test_the_mean_of_a_single_task_is_its_size(module_warehouse: sa.Engine) -> None:
    assert _failover(module_warehouse, _stores({"h1": 100}, tasks=1), ["c"]) == [(100, None, None)]


def test_processes_of_another_cluster_take_over_nothing(module_warehouse: sa.Engine) -> None:
    given = _stores({"h1": 100, "h2": 300})
    for table, rows in _stores({"h1": 20, "h3": 500, "h4": 60}).items():
        given[table] += [row | {"cluster": "d"} for row in rows]
    topics = [{"cluster": cluster, "topic": "orders-s-changelog", "partitions": 6} for cluster in ("c", "d")]
    assert _failover(module_warehouse, given | {"inventory.topic_hourly": topics}, ["c", "d"]) == [(30, "h2", 300)]


def _failover(
    module_warehouse: sa.Engine, given: dict[str, list[dict[str, Any]]], clusters: list[str]
) -> list[tuple[Any, ...]]:
    applications = [{"cluster": cluster, "application_id": "orders"} for cluster in clusters]
    return rows_for(
        module_warehouse, given, "select * from public.host_failover(:hour, 'h1', cast(:applications as jsonb))",
        applications=json.dumps(applications),
    )  # fmt: skip


def test_stores_that_have_grown_on_a_host(module_warehouse: sa.Engine) -> None:
    given = _stores({"h1": 100, "h2": 500})
    stores = given["metrics.state_store_memory_hourly"]
    before = [{**row, "sst_bytes": 40, "hour": HOUR - timedelta(hours=24)} for row in stores]
    moved = {**stores[0], "store": "moved"}
    before.append({**moved, "tasks": 1, "sst_bytes": 1, "hour": HOUR - timedelta(hours=24)})
    before += [{**row, "app": "bills", "sst_bytes": 9} for row in before]
    now = [moved, *({**row, "app": "bills"} for row in stores)]
    found = rows_for(
        module_warehouse, given | {"metrics.state_store_memory_hourly": [*stores, *now, *before]},
        "select * from public.host_store_growth(:hour, 'h1')",
    )  # fmt: skip
    store = {"store": "s", "application_id": "orders", "grown_bytes": 60, "store_bytes": 100}
    assert found == [(60, [store])]
