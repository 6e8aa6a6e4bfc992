"""Hosts by node exporter, through the app: exact rates of two hours, disks that count once, a host without response."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR

from spark_apps.submit import run_app
from tests.clock import present_hour
from tests.spark_apps.sources.agents import running_agents
from tests.spark_apps.sources.node_page import BOOTED_AT, GIB, node_page

pytestmark = pytest.mark.slow
DEAD = "http://127.0.0.1:1/metrics"


@pytest.mark.rare
def test_an_hour_of_a_host(warehouse: sa.Engine, spark: Any) -> None:
    hour = present_hour()
    node = {"role": "node", "cluster": "c", "protocol": "prometheus"}
    with running_agents() as agents:
        address = agents.serve(node_page())
        config = Config.model_validate(
            {
                "kafka": [{"name": "c", "bootstrap_servers": "unused:9092"}],
                "jmx": [{**node, "url": address, "instance_id": "i-1"}, {**node, "url": DEAD}],
                "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.2},
            }
        )
        run_app(spark, "jvm_apps", hour - HOUR, config)
        agents.serve(node_page(busy_seconds=1000, available_gib=0.4, data_available_gib=3))
        run_app(spark, "jvm_apps", hour, config)
    with warehouse.connect() as connection:
        rows = connection.execute(sa.text("select * from metrics.node_hourly where hour = :hour"), {"hour": hour})
        found = {row["endpoint"]: row for row in rows.mappings()}
        gap = connection.execute(
            sa.text("select message from detect.coverage where hour = :hour and resource_name = :resource_name"),
            {"hour": hour, "resource_name": f"node of c at {DEAD}"},
        ).scalar_one()
        of_file_systems = connection.execute(
            sa.text("select * from metrics.file_system_hourly where hour = :hour order by mountpoint"), {"hour": hour}
        )
        root, data = of_file_systems.mappings().all()
    machine, silent = found[address], found[DEAD]
    assert machine["instance_id"] == "i-1" and machine["samples"] == 2
    assert machine["booted_at"] == datetime.fromtimestamp(BOOTED_AT, UTC)
    assert machine["memory_bytes"] == 8 * GIB and machine["page_cache_bytes"] == GIB
    assert machine["memory_used_mean_percent"] == machine["memory_used_max_percent"] == pytest.approx(95)
    assert machine["cpu_ratio"] == pytest.approx(0.5) and machine["iowait_ratio"] == pytest.approx(0.25)
    assert machine["steal_ratio"] == pytest.approx(0.125)
    covered = machine["covered_seconds"]
    assert machine["disk_read_bytes_per_second"] * covered == pytest.approx(
        1000 * 2**20
    )  # the RAID counts through its disks
    assert machine["disk_reads_per_second"] * covered == pytest.approx(8000)
    assert machine["disk_written_bytes_per_second"] == machine["disk_writes_per_second"] == 0
    assert machine["busiest_disk"] == "nvme0n1" and machine["busiest_disk_ratio"] * covered == pytest.approx(250)
    assert machine["fullest_file_system"] == "/var/lib/kafka" and machine["load_1m_max"] == 1.25
    assert machine["fullest_file_system_percent"] == pytest.approx(97)
    assert machine["fullest_file_system_available_bytes"] == 3 * GIB
    assert (root["mountpoint"], root["device"], root["read_only"]) == ("/", "/dev/root", True)
    assert (data["mountpoint"], data["fstype"], data["read_only"]) == ("/var/lib/kafka", "xfs", False)
    assert data["endpoint"] == address and data["instance_id"] == "i-1" and data["size_bytes"] == 100 * GIB
    assert data["available_bytes"] == data["available_min_bytes"] == 3 * GIB
    assert silent["samples"] is None and silent["memory_used_mean_percent"] is None
    assert gap == "cannot connect (connection refused or unknown host)"
