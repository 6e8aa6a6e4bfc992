"""Costs of volumes by application: by their tag, by the pod that claims them, or by their instance."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

PLACE = {"account": "1", "region": "eu-central-1"}
VOLUME = PLACE | {"instance_id": "i-node", "volume_type": "gp3", "size_gib": 100}
POD = {"kubernetes": "eks", "namespace": "shop", "role": "app", "observed_at": HOUR}
CLAIM = {"kubernetes": "eks", "namespace": "shop", "observed_at": HOUR}


def _pod(pod: str, volume_id: str, **other: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return POD | {"pod": pod, "uid": pod} | other, CLAIM | {"pod": pod, "claim": pod, "volume_id": volume_id}


PODS, CLAIMS = zip(
    _pod("fees-0", "vol-fees", app="fees", owner="money", cluster="orders"),
    _pod("tagged-0", "vol-tagged", app="fees", owner="money"),
    _pod("anonymous-0", "vol-anonymous"),
    _pod("broker-0", "vol-broker", role="broker", cluster="orders", owner="platform"),
    strict=True,
)
GIVEN = {
    "inventory.instance_hourly": [
        PLACE | {"instance_id": "i-node", "application": "eks-nodes", "owner": "kube"},
        PLACE | {"instance_id": "i-own", "application": "reports", "owner": "bi"},
    ],
    "inventory.volume_hourly": [
        VOLUME | {"volume_id": "vol-root"},
        *(VOLUME | {"volume_id": f"vol-{name}"} for name in ("fees", "anonymous", "broker")),
        VOLUME | {"volume_id": "vol-tagged", "application": "ledger", "owner": "audit"},
        VOLUME | {"volume_id": "vol-own", "instance_id": "i-own"},
    ],
    "inventory.pod_hourly": list(PODS),
    "inventory.pod_claim_hourly": list(CLAIMS),
    "metrics.broker_hourly": [{"cluster": "other", "endpoint": "e", "instance_id": "i-node"}],
    "detect.load": [{"app": "ebs_volumes", "status": "loaded", "rows": "{}", "started_at": HOUR, "finished_at": HOUR}],
}


def test_a_volume_that_a_pod_claims_is_the_pod_s_and_not_its_node_s(module_warehouse: sa.Engine) -> None:
    query = "select application, owner, cluster, resources from public.costs where kind = 'volumes' order by 1, 2, 3"
    assert rows_for(module_warehouse, GIVEN, query) == [
        ("eks-nodes", "kube", "other", 1),
        ("fees", "money", "orders", 1),
        ("ledger", "audit", None, 1),
        ("reports", "bi", None, 1),
        (None, "platform", "orders", 1),
        (None, None, None, 1),
    ]
    query = "select application, volumes, instances from public.application_costs order by 1"
    assert rows_for(module_warehouse, GIVEN, query) == [
        ("eks-nodes", 1, 1), ("fees", 1, 0), ("ledger", 1, 0), ("reports", 1, 1), (None, 2, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "instance_type", "storage_mode", "brokers", "usd"),
    [
        ("standard", "kafka.m5.large", "LOCAL", 3, 0.3 * 46 * 3),
        ("standard", "kafka.m5.large", None, 1, 0.3 * 46),
        ("standard", "kafka.m5.large", "TIERED", 2, 0.3 * 55 * 2),
        ("standard", "kafka.t3.small", "LOCAL", 1, 0.3 * 47),
        ("standard", None, "LOCAL", None, None),
        ("express", "express.m7g.large", None, 3, None),
    ],
)
def test_price_of_the_monitoring_level_per_broker(
    module_warehouse: sa.Engine, kind: str, instance_type: str | None, storage_mode: str | None, brokers: int | None,
    usd: float | None,
) -> None:  # fmt: skip
    query = sa.text(
        "select inventory.msk_monitoring_price(:kind, cast(:type as text), cast(:mode as text), cast(:n as int))"
    )
    with module_warehouse.connect() as connection:
        found = connection.execute(query, {"kind": kind, "type": instance_type, "mode": storage_mode, "n": brokers})
        assert found.scalar() == (None if usd is None else pytest.approx(usd))
