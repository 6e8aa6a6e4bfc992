"""Changelogs whose leader does not respond: the read ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from pyspark.sql.types import StringType, StructField, StructType
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources import changelog_values
from spark_apps.sources.changelog_values import Chunk, Log, TopicSlice


class _Lost:
    """A consumer that reports a lost connection at each poll."""

    def assign(self, _: object) -> None: ...

    def consume(self, **_: object) -> list[Message]:
        return [Message(error=KafkaError(KafkaError._TRANSPORT))]


@pytest.mark.timeout(10)
def test_the_wait_for_a_leader_that_is_lost_repeatedly_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_values, "STALLED_SECONDS", 0.2)
    read = changelog_values._fetch(cast(Consumer, _Lost()), "changelog", [Chunk(0, 0, 10, 0)])
    with pytest.raises(KafkaException) as raised:
        list(read)
    error: Any = raised.value.args[0]
    assert error.code() == KafkaError._TIMED_OUT


class _Ending:
    """A cluster with a changelog and brokers that stop responding after it was listed."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster

    def metadata(self) -> Any:
        return SimpleNamespace(topics={"a-store-changelog": SimpleNamespace(partitions={0: None}, error=None)})

    def gap(self, _: KafkaException) -> str:
        return "failed: no broker responded."


def test_a_cluster_that_stops_responding_while_its_reads_are_planned_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))

    for name, value in {
        "Connection": _Ending,
        "cluster_named": lambda name: name,
        "load_config": lambda: Config.model_validate({"kafka": []}),
        "_group_ids": lambda _: {"a"},
        "configs_of": lambda *_: ({"a-store-changelog": {"cleanup.policy": {"value": "compact"}}}, None),
        "list_offsets": down,
    }.items():
        monkeypatch.setattr(changelog_values, name, value)
    options = {"clusters": '["c"]', "hour": "2026-11-21T05:00+00:00", "sample_values": "10"}
    [part] = changelog_values.ChangelogReader(options, StructType([])).partitions()
    assert isinstance(part, TopicSlice) and (part.cluster, part.gap) == ("c", "failed: no broker responded.")


def test_a_login_that_fails_in_the_task_is_a_gap_of_the_changelog(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> None:
        raise StreamwardenError("kafka cluster 'c': no AWS credentials were found")

    monkeypatch.setattr(changelog_values, "cluster_named", refused)
    columns = ("resource", "gap", "cluster", "topic", "application_id", "store")
    schema = StructType([StructField(name, StringType()) for name in columns])
    options = {"clusters": '["c"]', "hour": "2026-11-21T05:00+00:00", "sample_values": "10"}
    part = TopicSlice("c", topic="t", chunks=[Chunk(0, 0, 1, 0)])
    part.logs = [Log(0, 0, 0, 1)]
    rows = [row for batch in changelog_values.ChangelogReader(options, schema).read(part) for row in batch.to_pylist()]
    assert [row["gap"] for row in rows][1:] == ["failed: kafka cluster 'c': no AWS credentials were found"]
