"""broker_outages: starts of brokers, and the silence before them by the traffic of their network and volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

PLACE = {"account": "1", "region": "r"}
BROKER = {"cluster": "c", "broker_id": 1}
ELSEWHERE: list[dict[str, Any]] = [{"account": "2"}, {"region": "s"}]
Rows = dict[str, list[dict[str, Any]]]


def _minute(minutes: float) -> dict[str, Any]:
    return {"at": HOUR + timedelta(minutes=minutes), "period_seconds": 60}


def _network(is_busy: Callable[[int], bool], minutes: Iterable[int] = range(-60, 60)) -> list[dict[str, Any]]:
    """A minute has 600 bytes of traffic, or 20."""
    half = {minute: 300 if is_busy(minute) else 10 for minute in minutes}
    return [
        {**PLACE, "instance_id": "i", **_minute(minute), "in_bytes": bytes_, "out_bytes": bytes_}
        for minute, bytes_ in half.items()
    ]


def _started(network: list[dict[str, Any]], started: int = 20, listed: int = -30, **columns: Any) -> Rows:
    """Rows of a broker that started at a minute of the hour, and that the cluster listed at one of the hour before."""
    start = HOUR + timedelta(minutes=started)
    return {
        "metrics.broker_hourly": [
            {**BROKER, "endpoint": "b1", "instance_id": "i", "samples": 2, "process_started_at": start, **columns}
        ],
        "inventory.broker_hourly": [
            {
                **BROKER,
                "hour": HOUR - timedelta(hours=1),
                "observed_at": HOUR + timedelta(minutes=listed),
                "is_listed": True,
            }
        ],
        "inventory.instance_hourly": [{**PLACE, "instance_id": "i"}],
        "metrics.instance_network_sample": network,
    }


def _outages(warehouse: sa.Engine, given: Rows, quiet_ratio: float = 0.1) -> list[tuple[Any, ...]]:
    """Broker, and the minutes of its start, of its last listing, and of the silence's begin and end."""
    found = rows_for(warehouse, given, "select * from public.broker_outages(:hour, :quiet_ratio) order by 1, 2",
                     quiet_ratio=quiet_ratio)  # fmt: skip
    return [
        (f"{cluster}/{broker}", *(None if at is None else (at - HOUR) / timedelta(minutes=1) for at in times))
        for cluster, broker, *times in found
    ]


def test_the_silence_before_a_start(module_warehouse: sa.Engine) -> None:
    given = _started(_network(lambda minute: minute < 5 or minute >= 20))
    # Another instance of that id is busy, and this one had much more traffic earlier.
    other = [{**row, **place} for row in _network(lambda minute: True) for place in ELSEWHERE]
    earlier = [row | {"in_bytes": 90_000} for row in _network(lambda minute: True, range(-300, -60))]
    given["metrics.instance_network_sample"] += other + earlier
    assert _outages(module_warehouse, given) == [("c/1", 20, -30, 5, 20)]


@pytest.mark.parametrize(
    ("silent_from", "down_since"),
    [
        (-9, -9),
        (-10, None),  # the cluster listed the broker five minutes later, so something else was silent
        (20, None),  # no silence at all
    ],
)
def test_a_silence_begins_within_five_minutes_before_the_cluster_listed_the_broker_or_later(
    module_warehouse: sa.Engine, silent_from: int, down_since: int | None
) -> None:
    given = _started(_network(lambda minute: minute < silent_from or minute >= 20), listed=-5)
    assert _outages(module_warehouse, given) == [("c/1", 20, -5, down_since, 20)]


@pytest.mark.parametrize(("quiet_ratio", "down_since"), [(20 / 600, None), (0.04, 5)])
def test_traffic_at_the_quiet_ratio_is_no_silence(
    module_warehouse: sa.Engine, quiet_ratio: float, down_since: int | None
) -> None:
    given = _started(_network(lambda minute: minute < 5 or minute >= 20))
    assert [row[3] for row in _outages(module_warehouse, given, quiet_ratio)] == [down_since]


def test_an_instance_without_traffic_before_says_nothing(module_warehouse: sa.Engine) -> None:
    given = _started([row | {"in_bytes": 0, "out_bytes": 0} for row in _network(lambda minute: True)])
    assert _outages(module_warehouse, given) == [("c/1", 20, -30, None, None)]


@pytest.mark.parametrize(
    "columns",
    [
        {"started": -30},  # already when the cluster listed it
        {"samples": None},  # its JVM gives no response
        {"listed": -90},
    ],
)
def test_no_start_since_the_previous_hour_listed_the_broker(
    module_warehouse: sa.Engine, columns: dict[str, Any]
) -> None:
    given = _started(_network(lambda minute: minute < 5), **columns)
    if columns.get("listed") == -90:  # by the hour before the previous one
        given["inventory.broker_hourly"][0]["hour"] -= timedelta(hours=1)
    assert _outages(module_warehouse, given) == []


def test_each_broker_has_its_own_traffic(module_warehouse: sa.Engine) -> None:
    given = _started(_network(lambda minute: minute < 5 or minute >= 20))
    others = _started(
        [row | {"instance_id": "j"} for row in _network(lambda minute: minute < 11 or minute >= 20)], instance_id="j"
    )
    other_cluster = _started([], cluster="d", instance_id="unknown")
    for broker in (others["metrics.broker_hourly"][0], others["inventory.broker_hourly"][0]):
        broker |= {"broker_id": 2, "observed_at": HOUR} if "is_listed" in broker else {"broker_id": 2, "endpoint": "b2"}
    other_cluster["inventory.broker_hourly"][0] |= {"cluster": "d", "observed_at": HOUR + timedelta(minutes=1)}
    others["inventory.instance_hourly"][0]["instance_id"] = "j"
    for table, rows in (*others.items(), *other_cluster.items()):
        given[table] += [row for row in rows if row not in given[table]]
    assert _outages(module_warehouse, given) == [
        ("c/1", 20, -30, 5, 20), ("c/2", 20, 0, 11, 20), ("d/1", 20, 1, None, None),
    ]  # fmt: skip


def test_the_shorter_silence_of_network_and_volumes_counts(module_warehouse: sa.Engine) -> None:
    """Traffic of the network may be of other processes; what the volumes wrote, the broker may have written."""
    given = _started(_network(lambda minute: minute < 5 or minute >= 20))
    writes = [
        {**PLACE, "volume_id": volume, **_minute(minute), "write_bytes": bytes_ if minute < 8 or minute >= 20 else 0}
        for volume, bytes_ in (("log", 900), ("root", 100)) for minute in range(-60, 60)
    ]  # fmt: skip
    # A third volume is written to for longer.
    writes += [{**PLACE, "volume_id": "logs-2", **_minute(minute), "write_bytes": 150} for minute in range(8, 12)]
    other = [{**row, **place, "write_bytes": 5000} for row in writes for place in ELSEWHERE]
    given["metrics.volume_sample"] = writes + other
    volumes = [{**PLACE, "volume_id": volume, "instance_id": "i"} for volume in ("log", "root", "logs-2")]
    given["inventory.volume_hourly"] = volumes + [
        {**row, **place, "instance_id": None} for row in volumes for place in ELSEWHERE
    ]
    assert _outages(module_warehouse, given) == [("c/1", 20, -30, 12, 20)]
