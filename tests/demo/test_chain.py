"""The fleet of FAULTS=chain: a disk that is held back under one of three brokers, and what Kafka makes of it."""

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
from demo.fleet import Ports, parse_faults

pytestmark = [pytest.mark.slow, pytest.mark.rare]
PATIENCE_SECONDS = 150
FLUSH_P95 = "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs/95thPercentile"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    with Chain(folder, parse_faults("chain"), Ports(0, 0, 0, 0, 0), room_seconds=0) as fleet:
        yield fleet


def becomes(what: Callable[[], Any], wanted: Callable[[Any], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not wanted(found := what()):
        assert time.monotonic() < deadline, found
        time.sleep(3)


@pytest.mark.parametrize("group", ["billing", "search"])
def test_groups_lag_on_what_it_leads_and_nowhere_else(chain: Chain, group: str) -> None:
    """Before the other tests: they take their time, and what is late is read in the end."""
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
        """What was fed of the past stays late where it leads; the others are read as it comes."""
        others = [late for node, of_node in found.items() if node != STARVED_NODE for late in of_node]
        return median(found[STARVED_NODE]) > 300 and median(others) * 3 < median(found[STARVED_NODE])

    becomes(lag, is_late)


def test_its_flushes_are_slow_and_the_others_are_not(chain: Chain) -> None:
    def flush_ms() -> dict[int, float]:
        answers = {
            broker.node_id: httpx.get(f"{broker.jolokia_url}/read/{FLUSH_P95}") for broker in chain.cluster.brokers
        }
        return {node: answer.json()["value"] for node, answer in answers.items()}

    becomes(flush_ms, lambda found: found.pop(STARVED_NODE) > 1000 and max(found.values()) < 1000)


def test_partitions_lack_its_replicas(chain: Chain) -> None:
    def missing() -> list[set[int]]:
        topics = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers}).list_topics(timeout=20).topics
        return [set(part.replicas) - set(part.isrs) for part in topics["orders"].partitions.values()]

    becomes(missing, lambda found: found.count({STARVED_NODE}) > 20)


def test_the_truth_names_one_cause_and_what_follows(chain: Chain) -> None:
    (output,) = json.loads(chain.truth_file.read_text())
    assert (output["fault"], output["detector"]) == ("chain", "ebs_volume_starving")
    assert len(output["follows"]) == 4
