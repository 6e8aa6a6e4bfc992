"""The broker that other tests use."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker, Cluster


@pytest.mark.rare
@pytest.mark.slow
def test_a_broker_runs_on_free_ports_and_keeps_its_data_over_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        assert httpx.get(f"{broker.jolokia_url}/version").json()["status"] == 200
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("kept", 3)])["kept"].result(10)
    with Broker(tmp_path, settings={"num.io.threads": "3"}) as again:
        topics = AdminClient({"bootstrap.servers": again.bootstrap_servers}).list_topics(timeout=10).topics
        assert len(topics["kept"].partitions) == 3


@pytest.mark.slow
@pytest.mark.rare
def test_a_killed_broker_leaves_partitions_under_replicated(tmp_path: Path) -> None:
    with Cluster(tmp_path, size=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("wide", 6, replication_factor=3)])["wide"].result(20)
        cluster.brokers[0].kill()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            fresh = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
            topic = fresh.list_topics(timeout=10).topics.get("wide")  # None while the metadata is being caught up
            if topic and {len(partition.isrs) for partition in topic.partitions.values()} == {2}:
                break
            time.sleep(0.5)
        else:
            pytest.fail("the replicas of the killed broker stayed in sync")
