"""The warehouse that `make bench` measures: each detector has resources to evaluate, and each page content."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.store.migrate import migrate

from tests.bench import scale
from tests.bench.large import Large, fill

SMALL = Large(brokers=4, partitions=400, groups=12, volumes=20, applications=6, days=40)


@pytest.mark.rare
@pytest.mark.slow
def test_all_detectors_evaluate_it_and_all_pages_show_it(
    empty_warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "streamwarden.yaml"
    config.write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(config))
    monkeypatch.setenv(WAREHOUSE_ENV, empty_warehouse.url.set(drivername="postgresql").render_as_string(False))
    migrate(empty_warehouse)
    fill(empty_warehouse, SMALL)
    scale.evaluation_costs(empty_warehouse)  # raises if a detector was not evaluated
    with empty_warehouse.connect() as connection:
        without_findings = connection.execute(sa.text(_WITHOUT_FINDINGS)).scalars().all()
    # The first return rows for faults only; the others read sources that this fleet does not have (MSK, Kafka Connect).
    assert set(without_findings) <= {
        "consumer_replaying", "topic_polled_empty", "transaction_hanging",
        "broker_memory_high", "connector_failed", "consumer_group_lag_estimated",
    }  # fmt: skip
    assert {size > 1000 for _, size in scale.page_seconds().values()} == {True}
    assert len(scale.view_seconds(empty_warehouse)) > 20


_WITHOUT_FINDINGS = """
    select j.detector from detect.detector_run as j
    where j.hour = (select max(hour) from detect.detector_run) and j.firing + j.ok + j.unknown = 0 order by 1"""
