"""The demo fleet itself: real broker, application, clients and tracker on free ports, with all faults and with none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from demo.demo_world import BROKER_VOLUME_ID, ORDERS_INSTANCE_ID
from demo.faults import FAULTS, parse_faults
from demo.fleet import DRIFTING_TOPIC, Fleet, seconds_until_room
from demo.more_faults import MORE
from demo.ports import Ports
from streamwarden.base.config import load_config
from streamwarden.base.config.trackers import Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

FREE = Ports(0, 0, 0, 0, 0)
LOAD_SECONDS = 24.0
MIB = 2**20


def test_faults_are_named_one_by_one() -> None:
    assert parse_faults("all") == {*FAULTS, *MORE}
    assert parse_faults("none") == parse_faults("") == frozenset()
    assert parse_faults("ebs, rogue") == {"ebs", "rogue"}
    assert parse_faults("chain") == {"chain"}
    with pytest.raises(StreamwardenError, match=r"^FAULTS: 'chain' has three brokers of its own"):
        parse_faults("ebs,chain")
    with pytest.raises(
        StreamwardenError, match=r"^FAULTS: 'disk' is unknown; choose among ebs, memory, schema, rogue, lag"
    ):
        parse_faults("ebs,disk")


def test_an_invalid_port_is_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_AWS_PORT", "0")
    assert Ports.from_environment().aws == 0
    monkeypatch.setenv("DEMO_AWS_PORT", "many")
    with pytest.raises(StreamwardenError, match=r"^DEMO_AWS_PORT: 'many' is not a port number$"):
        Ports.from_environment()


def test_a_start_near_the_end_of_an_hour_waits_for_the_next() -> None:
    assert seconds_until_room(datetime(2026, 11, 21, 5, 55, 45, tzinfo=UTC), 255) == 0
    assert seconds_until_room(datetime(2026, 11, 21, 5, 55, 46, tzinfo=UTC), 255) == 254


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("faulty"), frozenset(FAULTS), FREE, room_seconds=0) as fleet:
        fleet.load(LOAD_SECONDS)
        yield fleet


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("healthy"), frozenset(), FREE, room_seconds=0) as fleet:
        fleet.load(LOAD_SECONDS)
        yield fleet


def values(fleet: Fleet, topic: str) -> list[dict[str, Any]]:
    """All records of the topic."""
    settings = {"bootstrap.servers": fleet.broker.bootstrap_servers, "group.id": "test", "enable.auto.commit": False}
    consumer = Consumer(settings)
    partitions = consumer.list_topics(topic).topics[topic].partitions
    ends = {part: consumer.get_watermark_offsets(TopicPartition(topic, part))[1] for part in partitions}
    consumer.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part, end in ends.items() if end])
    found: list[dict[str, Any]] = []
    while len(found) < sum(ends.values()) and (batch := consumer.consume(1000, timeout=2)):
        found += [json.loads(message.value()) for message in batch]
    consumer.close()
    return found


def jmx(url: str, pattern: str) -> Any:
    return httpx.get(f"{url}/read/{pattern}").json()["value"]


def read_bytes_within(fleet: Fleet, seconds: float) -> int:
    broker = psutil.Process(fleet.broker.pid)
    before = broker.io_counters().read_bytes
    time.sleep(seconds)
    return broker.io_counters().read_bytes - before


@pytest.mark.slow
@pytest.mark.rare
def test_the_truth_names_each_fault_where_it_was_injected(faulty: Fleet) -> None:
    truth = json.loads(faulty.truth_file.read_text())
    assert {line["fault"]: line["detector"] for line in truth} == {
        "ebs": "ebs_volume_starving",
        "memory": "app_memory_heavy",
        "schema": "state_store_schema_drift",
        "rogue": "consumer_rogue",
    }
    assert all(line["resource"] and line["why"] and line["injected_at"] for line in truth)


@pytest.mark.rare
@pytest.mark.slow
def test_the_schema_fault_leaves_old_and_new_values_in_the_changelog(faulty: Fleet) -> None:
    found = values(faulty, DRIFTING_TOPIC)
    whole = [value for value in found if isinstance(value["quantity"], int)]
    broken = [value for value in found if isinstance(value["quantity"], str)]
    assert min(len(whole), len(broken)) > 300
    assert all("postcode" in value["address"] for value in whole)
    assert not any("postcode" in value["address"] for value in broken)


@pytest.mark.rare
@pytest.mark.slow
def test_the_rogue_consumer_reads_from_disk_without_a_group(faulty: Fleet) -> None:
    assert read_bytes_within(faulty, 5) > 5 * 20 * MIB
    measured = faulty.aws.world.volumes[BROKER_VOLUME_ID].measured
    assert sum(read for read, _ in measured.values()) > LOAD_SECONDS * 20 * MIB
    admin = AdminClient({"bootstrap.servers": faulty.broker.bootstrap_servers})
    groups = admin.list_consumer_groups().result(10)
    assert not groups.errors
    assert {group.group_id for group in groups.valid} == {"billing", "orders"}


@pytest.mark.rare
@pytest.mark.slow
def test_the_memory_fault_is_visible_in_the_jvm_metrics(faulty: Fleet) -> None:
    heap = jmx(faulty.app.jolokia_url, "java.lang:type=Memory/HeapMemoryUsage")
    assert heap["max"] > 3300 * MIB
    stores = jmx(faulty.app.jolokia_url, "kafka.streams:type=stream-state-metrics,*/block-cache-capacity")
    assert sum(store["block-cache-capacity"] for store in stores.values()) > 1000 * MIB
    used = faulty.aws.world.instances[ORDERS_INSTANCE_ID].measured_memory
    assert used and all(100 * MIB < used_bytes < 1000 * MIB for used_bytes in used.values())


@pytest.mark.rare
@pytest.mark.slow
def test_everything_listens_on_the_loopback_only(faulty: Fleet) -> None:
    mine = psutil.Process()
    listening = [
        connection.laddr
        for process in (mine, *mine.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 6
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


@pytest.mark.rare
@pytest.mark.slow
def test_billing_keeps_up_and_commits(faulty: Fleet) -> None:
    admin = AdminClient({"bootstrap.servers": faulty.broker.bootstrap_servers})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("billing")])["billing"].result(10)
    committed = sum(partition.offset for partition in asked.topic_partitions)
    assert len(asked.topic_partitions) == 12
    assert len(values(faulty, "orders")) - committed < 1000


@pytest.mark.rare
@pytest.mark.slow
def test_streamwardens_config_for_the_fleet_is_valid_and_its_secrets_private(
    faulty: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in faulty.environment().items():
        monkeypatch.setenv(name, value)
    config = load_config()
    tracker = config.tickets.trackers["roundup"]
    assert isinstance(tracker, Roundup) and tracker.password == faulty.tracker_password("streamwarden")
    assert tracker.password not in faulty.config_file.read_text()
    assert faulty.environment_file.stat().st_mode & 0o077 == 0
    assert httpx.get(tracker.url).status_code == 200


@pytest.mark.rare
@pytest.mark.slow
def test_without_faults_there_are_only_decoys(healthy: Fleet) -> None:
    assert json.loads(healthy.truth_file.read_text()) == []
    found = values(healthy, DRIFTING_TOPIC)
    assert all(isinstance(value["quantity"], int) and value["address"]["postcode"] for value in found)
    assert {type(value["amount"]) for value in found} == {int, float}
    assert 0.2 < sum("coupon" in value for value in found) / len(found) < 0.4
    assert len(values(healthy, "orders-customer-revenue-changelog")) > 300


@pytest.mark.rare
@pytest.mark.slow
def test_without_faults_the_broker_reads_nothing_and_memory_is_bounded(healthy: Fleet) -> None:
    assert read_bytes_within(healthy, 5) < MIB
    assert jmx(healthy.app.jolokia_url, "java.lang:type=Memory/HeapMemoryUsage")["max"] < 200 * MIB
    stores = jmx(healthy.app.jolokia_url, "kafka.streams:type=stream-state-metrics,*/block-cache-capacity")
    assert {store["block-cache-capacity"] for store in stores.values()} == {32 * MIB}


@pytest.mark.rare
@pytest.mark.slow
def test_one_folder_holds_one_fleet(healthy: Fleet) -> None:
    with (
        pytest.raises(StreamwardenError, match=f"^a demo fleet is already running in {healthy.folder}: stop it first$"),
        Fleet(healthy.folder, frozenset(), FREE, room_seconds=0),
    ):
        pass
    healthy.check()


@pytest.mark.rare
@pytest.mark.slow
def test_a_process_that_dies_is_named_in_the_error(healthy: Fleet) -> None:
    psutil.Process(healthy.clients["billing"].pid).kill()
    time.sleep(0.5)
    with pytest.raises(StreamwardenError, match=r"^billing ended with code -9"):
        healthy.check()


def start_demo(folder: Path) -> subprocess.Popen[str]:
    """A running `python -m demo --fleet-only`."""
    ports = {f"DEMO_{name}_PORT": "0" for name in ("BROKER", "BROKER_JOLOKIA", "APP_JOLOKIA", "AWS", "TRACKER")}
    command = [sys.executable, "-m", "demo", "--fleet-only", "--faults", "none", "--folder", str(folder)]
    demo = subprocess.Popen(
        command, cwd=PROJECT_ROOT / "docker", env={**os.environ, **ports}, text=True, stdout=subprocess.PIPE
    )
    assert demo.stdout
    for line in demo.stdout:
        if "fleet is up" in line:
            return demo
    raise AssertionError(f"the demo ended with {demo.wait()}")


@pytest.mark.rare
@pytest.mark.slow
def test_sigterm_stops_all_processes_and_the_next_start_ends_those_of_a_killed_demo(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    if seconds_until_room(now, 300):
        pytest.skip("the demo would wait for the next clock hour")
    killed = start_demo(tmp_path)
    orphans = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.wait()
    assert len(orphans) == 5
    stopped = start_demo(tmp_path)
    assert not [process for process in orphans if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    children = psutil.Process(stopped.pid).children(recursive=True)
    stopped.send_signal(signal.SIGTERM)
    stopped.wait(30)
    assert not [process for process in children if process.is_running()]
    assert not list(tmp_path.rglob("*.pid"))
