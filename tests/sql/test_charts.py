"""SQL of charts: values that would mislead a reader of the plot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.charts.draw import FOLDER

from tests.sql.rows import HOUR, insert_row

MIB = 2**20
VOLUME = {"account": "1", "region": "r", "volume_id": "vol-1"}


@pytest.fixture
def connection(module_warehouse: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that is rolled back."""
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def values_of(connection: sa.Connection, chart: str, **resource: str) -> dict[str, list[float]]:
    """Values of each series, in order of time."""
    rows = connection.execute(sa.text((FOLDER / f"{chart}.sql").read_text()), {"hour": HOUR, **resource})
    series: dict[str, list[float]] = {}
    for row in rows.mappings():
        series.setdefault(row["series"], []).append(row["value"])
    return series


@pytest.mark.parametrize(("committed", "log_start"), [(1000, 3000), (0, 50_000), (4000, 3000)])
def test_a_group_that_lost_records_is_not_drawn_below_zero(
    connection: sa.Connection, committed: int, log_start: int
) -> None:
    place = {"cluster": "c", "topic": "t", "partition": 0}
    insert_row(connection, "metrics.consumer_partition_hourly",
               {"hour": HOUR, **place, "group_id": "g", "committed_offset": committed, "lag_records": 500})  # fmt: skip
    insert_row(connection, "metrics.partition_hourly",
               {"hour": HOUR, **place, "log_start_offset": log_start, "log_end_offset": log_start + 2000})  # fmt: skip
    drawn = values_of(connection, "consumer_data_at_risk", cluster="c", group_id="g")
    least = min(committed, log_start)
    assert drawn == {
        "committed on t-0": [committed - least], "limit log start offset": [log_start - least],
        "log-end offset": [log_start + 2000 - least],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("demand", "series", "value"),
    [
        (976, "Demand (95th percentile): 976 %, drawn at 200 %", 200),
        (4100, "Demand (95th percentile): 4100 %, drawn at 200 %", 200),
        (200, "Demand (95th percentile)", 200),
        (85, "Demand (95th percentile)", 85),
    ],
)
def test_demand_of_several_times_the_limit_does_not_squeeze_the_axis(
    connection: sa.Connection, demand: int, series: str, value: int
) -> None:
    limits: dict[str, Any] = {"baseline_iops": 100, "burst_iops": 100, "baseline_bytes_per_second": MIB,
                              "burst_bytes_per_second": MIB}  # fmt: skip
    insert_row(connection, "inventory.volume_hourly", {"hour": HOUR, **VOLUME})
    insert_row(connection, "metrics.volume_hourly",
               {"hour": HOUR, **VOLUME, **limits, "known_until": HOUR + timedelta(hours=1), "demand_iops_p95": demand,
                "demand_bytes_per_second_p95": 1})  # fmt: skip
    insert_row(connection, "metrics.volume_sample",
               {"hour": HOUR, **VOLUME, "at": HOUR, "period_seconds": 60, "read_ops": 3000, "write_ops": 0,
                "read_bytes": 1, "write_bytes": 1})  # fmt: skip
    drawn = values_of(connection, "ebs_volume_starving", **VOLUME)
    assert drawn[series] == [value, value]
    assert max(max(values) for values in drawn.values()) <= 200
    assert drawn["limit Throttle limit (100 %)"] == [100]
