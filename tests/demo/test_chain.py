"""The fleet of FAULTS=chain: a throttled volume under one of three brokers, and its effects in Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import httpx
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from demo.chain import Chain
from demo.demo_world import STARVED_NODE
from demo.faults import parse_faults
from demo.ports import Ports

pytestmark = [pytest.mark.slow, pytest.mark.rare]
TIMEOUT_SECONDS = 150
FLUSH_P95 = "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs/95thPercentile"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    with Chain(folder, parse_faults("chain"), Ports(0, 0, 0, 0, 0), room_seconds=0) as fleet:
        yield fleet


def wait_until(what: Callable[[], Any], wanted: Callable[[Any], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not wanted(found := what()):
        assert time.monotonic() < deadline, found
        time.sleep(3)


@pytest.mark.parametrize("group", ["billing", "search"])
def test_groups_lag_only_on_partitions_that_the_throttled_broker_leads(chain: Chain, group: str) -> None:
    """Must be the first test: the others take time, in which the groups catch up."""
    admin = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers})
    leaders = {number: part.leader for number, part in admin.list_topics("orders").topics["orders"].partitions.items()}

    def lag() -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=30)
        committed = {place.partition: place.offset for place in asked[group].result(30).topic_partitions}
        wanted = {TopicPartition("orders", partition): OffsetSpec.latest() for partition in committed}
        for place, end in admin.list_offsets(wanted, request_timeout=30).items():  # one request to each leader
            late = end.result(30).offset - committed[place.partition]
            found.setdefault(leaders[place.partition], []).append(late)
        return found

    def is_late(found: dict[int, list[int]]) -> bool:
        """Whether the lag remains on partitions of the throttled broker, while the groups keep up on the others."""
        others = [late for node, of_node in found.items() if node != STARVED_NODE for late in of_node]
        return median(found[STARVED_NODE]) > 300 and median(others) * 3 < median(found[STARVED_NODE])

    wait_until(lag, is_late)


def test_only_the_throttled_broker_has_slow_log_flushes(chain: Chain) -> None:
    def flush_ms() -> dict[int, float]:
        answers = {
            broker.node_id: httpx.get(f"{broker.jolokia_url}/read/{FLUSH_P95}") for broker in chain.cluster.brokers
        }
        return {node: answer.json()["value"] for node, answer in answers.items()}

    wait_until(flush_ms, lambda found: found.pop(STARVED_NODE) > 1000 and max(found.values()) < 1000)


def test_the_throttled_broker_is_out_of_sync(chain: Chain) -> None:
    def missing() -> list[set[int]]:
        topics = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers}).list_topics(timeout=20).topics
        return [set(part.replicas) - set(part.isrs) for part in topics["orders"].partitions.values()]

    wait_until(missing, lambda found: found.count({STARVED_NODE}) > 20)


def test_the_truth_names_one_cause_and_its_effects(chain: Chain) -> None:
    (output,) = json.loads(chain.truth_file.read_text())
    assert (output["fault"], output["detector"]) == ("chain", "ebs_volume_starving")
    assert len(output["follows"]) == 4
