"""The ACLs that the docs tell people to grant are enough for every Kafka source, and none of them is too much."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import HOUR

from spark_apps.sources.changelog_values import ChangelogValues
from spark_apps.sources.kafka_client import read_clusters
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.clock import present_hour
from tests.docker.documented import bindings_of, block
from tests.secured_broker import SecuredBroker, secured_broker
from tests.spark_apps.offsets_log import commit

pytestmark = pytest.mark.slow
CHANGELOG = "orders-totals-changelog"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Knows `streamwarden`, who may do nothing yet."""
    with secured_broker(tmp_path_factory.mktemp("acls"), {"streamwarden": "secret"}) as running:
        _fill(running.bootstrap_servers)
        yield running


def _fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    of_streams = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    for future in admin.create_topics([NewTopic(CHANGELOG, 1, 1, config=of_streams)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": servers})
    for i in range(20):
        producer.produce(CHANGELOG, key=str(i), value='{"total": 1}')
    assert producer.flush(20) == 0
    commit(servers, "orders", TopicPartition(CHANGELOG, 0, 7))


def _documented() -> dict[str, list[AclBinding]]:
    """Bindings by documented command."""
    return {line: bindings_of(line) for line in block("kafka-acls").splitlines()}


@pytest.fixture
def gathered(broker: SecuredBroker, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What all Kafka sources have to say with these ACLs: (facts that were seen, gaps)."""
    file = tmp_path / "streamwarden.yaml"
    file.write_text(yaml.safe_dump({"kafka": [broker.cluster("c", "streamwarden", "secret")]}))
    monkeypatch.setenv(CONFIG_ENV, str(file))
    monkeypatch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    hour = present_hour()
    span = {"from": int(hour.timestamp() * 1000), "to": int((hour + HOUR).timestamp() * 1000)}

    def gather(bindings: list[AclBinding]) -> tuple[set[str], list[str]]:
        anything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        for future in admin.delete_acls([anything]).values():
            future.result()
        for future in admin.create_acls(bindings).values():
            future.result()
        time.sleep(1)  # the broker follows its metadata log
        rows = {
            "topics": read_clusters(spark, KafkaTopics, ["c"]).collect(),
            "groups": read_clusters(spark, KafkaGroups, ["c"]).collect(),
            "log dirs": read_clusters(spark, KafkaLogDirs, ["c"]).collect(),
            "offsets": read_clusters(spark, KafkaOffsets, ["c"], **span).collect(),
            "commits": read_clusters(spark, KafkaCommits, ["c"], **span, slices=1).collect(),
            "values": read_clusters(
                spark, ChangelogValues, ["c"], hour=hour.isoformat(), sample_values=200_000
            ).collect(),
        }
        seen = {
            "topic": any(r.topic == CHANGELOG for r in rows["topics"]),
            "configs": any(r.topic == CHANGELOG and r.configs for r in rows["topics"]),
            "group": any(r.group_id == "orders" and r.state == "EMPTY" for r in rows["groups"]),
            "committed": any(r.kind == "committed" and r.committed_offset == 7 for r in rows["offsets"]),
            "log end": any(
                r.kind == "log" and r.topic == CHANGELOG and r.log_end_offset == 20 for r in rows["offsets"]
            ),
            "reassignments": any(r.adding_replicas == 0 for r in rows["log dirs"]),
            "throttles": any(r.throttles == "{}" for r in rows["log dirs"]),
            "sizes": any(r.topic == CHANGELOG and r.size_bytes > 0 for r in rows["log dirs"]),
            "commit history": any(r.kind == "commit" and r.committed_offset == 7 for r in rows["commits"]),
            "values": sum(r.value is not None for r in rows["values"]) == 20,
        }
        return {fact for fact, is_there in seen.items() if is_there}, [
            r.gap for of in rows.values() for r in of if r.gap
        ]

    return gather


EVERYTHING = {
    *("topic", "configs", "group", "committed", "log end", "sizes", "commit history", "values"),
    *("reassignments", "throttles"),
}


@pytest.mark.rare
def test_the_documented_acls_are_enough(gathered: Any) -> None:
    seen, gaps = gathered([binding for bindings in _documented().values() for binding in bindings])
    assert gaps == []
    assert seen == EVERYTHING


@pytest.mark.rare
@pytest.mark.parametrize(
    ("left_out", "lost"),
    [
        ("--group '*'", {"group", "committed"}),
        ("--cluster", {"sizes", "reassignments", "throttles"}),
        ("--topic __consumer_offsets", {"commit history"}),
        ("--topic orders- --resource-pattern-type prefixed", {"values"}),
    ],
)
def test_each_is_needed_and_its_lack_costs_only_what_the_docs_say(gathered: Any, left_out: str, lost: set[str]) -> None:
    documented = _documented()
    assert sum(left_out in line for line in documented) == 1
    seen, _ = gathered([b for line, bindings in documented.items() if left_out not in line for b in bindings])
    assert EVERYTHING - seen == lost
