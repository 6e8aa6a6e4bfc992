"""msk_storage_advice: what to change the storage of an MSK broker to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

MIB = 2**20
PLACE = {"account": "1", "region": "r"}
CLUSTER = PLACE | {"cluster": "c", "msk_name": "c", "cluster_arn": "arn", "kind": "standard", "state": "ACTIVE",
                   "current_version": "K1", "broker_count": 3, "monitoring_level": "DEFAULT", "is_read_by_jmx": False,
                   "is_connected": True}  # fmt: skip
BROKER = PLACE | {"cluster": "c", "broker_id": 1, "host": "b-1", "instance_id": "msk-c-b-1", "volume_id": "v"}
VOLUME = PLACE | {"volume_id": "v"}
ADVICE = "select * from metrics.msk_storage_advice(:hour, '1', 'r', 'v', :by_throughput, 1.2, 2)"


def _advice(
    warehouse: sa.Engine, by_throughput: bool, cluster: dict[str, Any], size_gib: int, measured: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """The advice for one broker, next to volumes of another account, region, hour, and name."""
    places: list[dict[str, Any]] = [{}, {"account": "2"}, {"region": "s"}, {"volume_id": "w"}]
    others = [*places[1:], {"hour": HOUR - timedelta(hours=1)}]
    busier = {"demand_iops_p99": 7, "baseline_bytes_per_second": 300 * MIB}
    given = {
        "inventory.msk_cluster_hourly": [CLUSTER | cluster | {"cluster": f"c{n}"} for n in range(len(places))],
        "inventory.msk_broker_hourly": [BROKER | place | {"cluster": f"c{n}"} for n, place in enumerate(places)],
        "inventory.volume_hourly": [
            VOLUME | {"size_gib": size_gib},
            *(VOLUME | {"size_gib": 5} | other for other in others),
        ],
        "metrics.volume_hourly": [VOLUME | measured, *(VOLUME | busier | other for other in others)],
    }
    return rows_for(warehouse, given, ADVICE, by_throughput=by_throughput)


@pytest.mark.parametrize(
    ("size_gib", "demand", "baseline", "advised"),
    [
        (100, 300, 300, 200),  # the limit hides the demand
        (100, 11, 10, 200),
        (100, None, 300, 200),
        (100, 900, 300, 360),
        (100, 240, 200, 110),  # MSK grows storage by at least a tenth
        (9000, 27000, 27000, 16384),
        (16383, 16000, 16000, 16384),
        (16384, 16000, 16000, None),
    ],
)
def test_the_size_whose_baseline_sustains_the_demand(
    module_warehouse: sa.Engine, size_gib: int, demand: float | None, baseline: float, advised: float | None
) -> None:
    measured = {"demand_iops_p99": demand, "baseline_iops": baseline}
    found = _advice(module_warehouse, False, {"instance_type": "kafka.m7g.4xlarge"}, size_gib, measured)
    assert found == [(advised, advised and 3 * advised, None)]


@pytest.mark.parametrize(
    ("by_throughput", "broker_size", "provisioned", "limit_mib_s", "advised"),
    [
        (True, "kafka.m7g.4xlarge", None, 200, 400),
        (True, "kafka.m7g.4xlarge", None, 200 + 1 / MIB, 401),
        (True, "kafka.m7g.4xlarge", None, 100, 250),  # the least
        (True, "kafka.m7g.4xlarge", None, None, 250),
        (True, "kafka.m7g.2xlarge", None, 200, 312),  # the most
        (True, "kafka.m7g.large", None, 200, None),  # takes none
        (True, "kafka.m7g.4xlarge", 400, 200, None),  # has it
        (False, "kafka.m7g.4xlarge", 250, 200, 400),  # size changes nothing once throughput is provisioned
    ],
)
def test_the_throughput_to_provision(
    module_warehouse: sa.Engine, by_throughput: bool, broker_size: str, provisioned: int | None,
    limit_mib_s: float | None, advised: float | None,
) -> None:  # fmt: skip
    cluster = {"instance_type": broker_size, "provisioned_mib_s": provisioned}
    measured = {"baseline_bytes_per_second": limit_mib_s and limit_mib_s * MIB, "demand_iops_p99": 300}
    assert _advice(module_warehouse, by_throughput, cluster, 100, measured) == [(None, None, advised)]
