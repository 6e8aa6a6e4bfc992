"""msk_brokers, broker_storage_price, pod_volumes, pods: what the inventory says about brokers and pods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

PLACE = {"account": "1", "region": "r"}
PRICES = {"gp3_gib": 0.1, "gp3_iops": 0.005, "gp3_mib_s": 0.04, "io1_gib": 0.2, "io1_iops": 0.07}
POD = {"kubernetes": "k", "namespace": "n", "pod": "p", "uid": "u"}


def _at(ago: int, minutes: float = 0) -> dict[str, Any]:
    return {"hour": HOUR - timedelta(hours=ago) + timedelta(minutes=minutes)}


def _msk(warehouse: sa.Engine, broker_size: str, columns: str) -> list[tuple[Any, ...]]:
    clusters = [
        {"cluster": "c", "instance_type": broker_size, "current_version": "K3"},
        {"cluster": "d", "instance_type": "kafka.m5.large", "current_version": "K9"},
        {"cluster": "c", "instance_type": "kafka.m5.large", "current_version": "K2", **_at(1)},
    ]
    brokers = [
        {"cluster": "c", "broker_id": 1, "instance_id": "c-1"},
        {"cluster": "d", "broker_id": 1, "instance_id": "d-1"},
        {"cluster": "c", "broker_id": 1, "instance_id": "c-1", **_at(1)},
    ]
    return rows_for(
        warehouse, {"inventory.msk_cluster_hourly": clusters, "inventory.msk_broker_hourly": brokers},
        f"select {columns} from inventory.msk_brokers(:hour) where msk_cluster = 'c'",  # columns of this file
    )  # fmt: skip


def test_a_broker_of_msk_has_the_settings_of_its_cluster_in_the_hour(module_warehouse: sa.Engine) -> None:
    found = _msk(module_warehouse, "kafka.m5.large", "instance_id, current_version, larger_broker_size")
    assert found == [("c-1", "K3", "kafka.m5.xlarge")]


@pytest.mark.parametrize(
    ("broker_size", "larger"),
    [
        ("kafka.t3.small", "kafka.m5.large"),
        ("kafka.m5.large", "kafka.m5.xlarge"),
        ("kafka.m5.16xlarge", "kafka.m5.24xlarge"),
        ("kafka.m5.24xlarge", None),
        ("kafka.m7g.12xlarge", "kafka.m7g.16xlarge"),
        ("kafka.m7g.16xlarge", None),
        ("express.m7g.4xlarge", "express.m7g.8xlarge"),
    ],
)
def test_the_next_larger_broker_size(module_warehouse: sa.Engine, broker_size: str, larger: str | None) -> None:
    assert _msk(module_warehouse, broker_size, "larger_broker_size") == [(larger,)]


@pytest.mark.parametrize(
    ("broker_size", "mib_s"),
    [
        ("kafka.m5.2xlarge", None),  # too small for provisioned storage throughput
        ("kafka.m5.4xlarge", 593), ("kafka.m5.8xlarge", 850), ("kafka.m5.12xlarge", 1000),
        ("kafka.m5.16xlarge", 1000), ("kafka.m5.24xlarge", 1000), ("kafka.m7g.2xlarge", 312.5),
        ("kafka.m7g.4xlarge", 625), ("kafka.m7g.8xlarge", 1000), ("kafka.m7g.12xlarge", 1000),
        ("kafka.m7g.16xlarge", 1000),
    ],
)  # fmt: skip
def test_storage_throughput_that_a_broker_size_takes(
    module_warehouse: sa.Engine, broker_size: str, mib_s: float | None
) -> None:
    assert _msk(module_warehouse, broker_size, "most_mib_s") == [(mib_s,)]


def test_the_storage_price_is_the_mean_of_the_brokers_volumes_by_size(module_warehouse: sa.Engine) -> None:
    brokers = [
        {"cluster": "c", "broker_id": broker, "endpoint": f"b{broker}", "instance_id": f"i-{broker}"}
        for broker in (1, 2, 3)
    ]
    attached = [("v-1", "i-1", "gp3", 300), ("v-2", "i-2", "io1", 100), ("no list price", "i-3", "standard", 900),
                ("of an application", "i-9", "io1", 500)]  # fmt: skip
    volumes = [
        {**PLACE, "volume_id": volume, "instance_id": instance, "volume_type": of_type, "size_gib": size}
        for volume, instance, of_type, size in attached
    ]
    # The same id elsewhere, and the size of an hour ago.
    volumes += [
        {**volumes[0], **other, "size_gib": 7000}
        for other in ({"account": "2", "instance_id": None}, {"region": "s", "instance_id": None}, _at(1))
    ]
    found = rows_for(
        module_warehouse,
        {"metrics.broker_hourly": brokers, "inventory.volume_hourly": volumes,
         "metrics.jvm_app_hourly": [{"cluster": "c", "app": "a", "endpoint": "a1", "instance_id": "i-9"}],
         "inventory.ebs_price": [PRICES | {"region": region} for region in ("r", "s")]},
        "select * from inventory.broker_storage_price(:hour)",
    )  # fmt: skip
    assert found == [("c", pytest.approx((300 * 0.1 + 100 * 0.2) / 400))]


def _claim(volume: str | None, ago: int = 0, **of: Any) -> dict[str, Any]:
    return {"kubernetes": "k", "namespace": "n", "pod": "p", "claim": f"of {volume}", "volume_id": volume,
            **_at(ago), **of}  # fmt: skip


def test_a_claim_keeps_its_volume_for_24_hours(module_warehouse: sa.Engine) -> None:
    pods = [
        {**POD, "pod": pod, "role": "broker", **_at(ago)} for pod, ago in
        (("p", 0), ("p", 23), ("p", 24), ("p", -1), ("before", 1))
    ]  # fmt: skip
    claims = [
        _claim("moved", 1, pod="before"), _claim("moved"), _claim("last seen 23 hours ago", 23),
        _claim("last seen 24 hours ago", 24), _claim("not claimed yet", -1), _claim(None),
    ]  # fmt: skip
    found = rows_for(
        module_warehouse, {"inventory.pod_hourly": pods, "inventory.pod_claim_hourly": claims},
        "select volume_id, claim_pod from inventory.pod_volumes(:hour) order by 1",
    )  # fmt: skip
    assert found == [("last seen 23 hours ago", "p"), ("moved", "p")]


@pytest.mark.parametrize("other", [{"kubernetes": "l"}, {"namespace": "m"}, {"pod": "q"}, _at(1)])
def test_a_claim_is_not_of_another_pod(module_warehouse: sa.Engine, other: dict[str, Any]) -> None:
    pods = [POD | {"role": "broker", "broker_id": 1}, POD | {"role": "broker", "broker_id": 2} | other]
    given = {"inventory.pod_hourly": pods, "inventory.pod_claim_hourly": [_claim("v"), _claim("w", **other)]}
    query = "select volume_id, claim_broker_id from inventory.pod_volumes(:hour) order by 1"
    assert rows_for(module_warehouse, given, query) == [("v", 1), ("w", 2)]
    given["inventory.pod_hourly"].pop(0)
    assert rows_for(module_warehouse, given, query) == [("w", 2)]


def _pods(warehouse: sa.Engine, rows: list[dict[str, Any]], columns: str) -> list[tuple[Any, ...]]:
    given = [POD | {"role": "app"} | row for row in rows]
    query = f"select {columns} from inventory.pods(:hour)"  # columns of this file
    return rows_for(warehouse, {"inventory.pod_hourly": given}, query)


@pytest.mark.parametrize(
    ("hours", "in_hour", "in_day"),
    [
        ({1: ("u", 3), 0: ("u", 5)}, 2, 2),
        ({2: ("u", 1), 1: ("u", 3), 0: ("u", 3)}, 0, 2),
        ({24: ("u", 0), 23: ("u", 4), 0: ("u", 5)}, 1, 1),  # not those of an hour that ended a day ago
        ({1: ("u", 3), 0: ("u", 4), -1: ("u", 9)}, 1, 1),  # nor those of a later hour
        ({0: ("u", 5)}, None, None),  # since when is not known
        ({1: ("u", 3), 0: ("w", 1)}, None, None),  # of a pod that was created before: since when is not known
    ],
)
def test_restarts_of_a_pod_are_counted_by_the_change_of_their_number(
    module_warehouse: sa.Engine, hours: dict[int, tuple[str, int]], in_hour: int | None, in_day: int | None
) -> None:
    rows = [_at(ago) | {"uid": uid, "restarts": restarts} for ago, (uid, restarts) in hours.items()]
    others = [
        row | other for other in ({"pod": "q"}, {"namespace": "m"}, {"kubernetes": "l"})
        for row in (_at(1) | {"restarts": 0}, _at(0) | {"restarts": 40})
    ]  # fmt: skip
    columns = "pod_restarts_in_hour, pod_restarts_in_day"
    found = _pods(module_warehouse, [*rows, *others], f"pod, pod_namespace, {columns}")
    assert found.count(("p", "n", in_hour, in_day)) == 1
    assert len(found) == 4


@pytest.mark.parametrize(("created", "restarts"), [(1, 2), (-1, None)])
def test_a_pod_that_was_created_in_the_hour_starts_from_no_restart(
    module_warehouse: sa.Engine, created: int, restarts: int | None
) -> None:
    rows = [_at(1) | {"uid": "before", "restarts": 9}, {"restarts": 2, "created_at": _at(0, created)["hour"]}]
    assert _pods(module_warehouse, rows, "pod_restarts_in_hour") == [(restarts,)]


def test_each_oom_kill_of_the_last_24_hours_counts_once(module_warehouse: sa.Engine) -> None:
    kill = _at(22, 10)["hour"]
    rows = [
        _at(23) | {"last_reason": "OOMKilled", "last_finished_at": _at(24, 30)["hour"]},  # earlier
        _at(22) | {"last_reason": "OOMKilled", "last_finished_at": kill},
        _at(21) | {"last_reason": "OOMKilled", "last_finished_at": kill},  # still the previous run
        _at(3) | {"last_reason": "Error", "last_finished_at": _at(3, 5)["hour"]},
        _at(0) | {"last_reason": "OOMKilled", "last_finished_at": HOUR},
    ]
    assert _pods(module_warehouse, rows, "pod_oom_kills, pod_oom_killed_at") == [(2, HOUR)]


@pytest.mark.parametrize(("why", "minutes"), [("OOMKilled", -1), ("Error", 5)])
def test_a_run_that_ended_before_or_otherwise_is_no_oom_kill_of_the_hour(
    module_warehouse: sa.Engine, why: str, minutes: int
) -> None:
    rows = [{"last_reason": why, "last_finished_at": _at(0, minutes)["hour"]}]
    assert _pods(module_warehouse, rows, "pod_oom_killed_at") == [(None,)]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ({"workload_kind": "Deployment", "workload": "fees"}, ("deployment/fees", None, None)),
        ({"workload_kind": "StrimziPodSet", "workload": "b", "node_pool": "b", "cluster": "c"}, (None, "c", None)),
        ({"cluster": "c", "state_reason": "CrashLoopBackOff"}, (None, None, True)),
        ({"state_reason": "ContainerCreating"}, (None, None, False)),
    ],
)
def test_names_and_state_of_a_pod(module_warehouse: sa.Engine, columns: dict[str, Any], shown: tuple[Any, ...]) -> None:
    assert _pods(module_warehouse, [columns], "pod_workload, pod_strimzi_cluster, pod_is_in_back_off") == [shown]
