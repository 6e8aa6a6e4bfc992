"""Remaining bytes of partition reassignments, from the brokers' DescribeLogDirs responses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import ClusterAuthorizationFailedError, IncompatibleBrokerVersion, KafkaError, KafkaTimeoutError

from spark_apps.sources.kafka_reassignments import Reassignments

CONNECTION: Any = SimpleNamespace(cluster=SimpleNamespace(name="c"))


class Client:
    """Responds as kafka-python does."""

    def __init__(self, moving: dict[int, tuple[list[int], list[int]]] | KafkaError) -> None:
        self.moving = moving

    def list_partition_reassignments(self) -> dict[TopicPartition, dict[str, list[int]]]:
        if isinstance(self.moving, KafkaError):
            raise self.moving
        return {
            TopicPartition("orders", partition): {
                "replicas": replicas, "adding_replicas": adding, "removing_replicas": [],
            }
            for partition, (replicas, adding) in self.moving.items()
        }  # fmt: skip

    def describe_configs(self, *_: object, **__: object) -> Any:
        raise KafkaTimeoutError("no answer")


def log_dir(sizes: dict[int, int], is_future: bool = False, error_code: int = 0) -> dict[str, Any]:
    partitions = [
        {"partition_index": partition, "partition_size": size, "is_future_key": is_future}
        for partition, size in sizes.items()
    ]
    return {"error_code": error_code, "topics": [{"name": "orders", "partitions": partitions}]}


def rows_of(client: Any, log_dirs_by_broker: dict[int, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    moves = Reassignments(CONNECTION, client)
    for broker, log_dirs in log_dirs_by_broker.items():
        moves.note(broker, log_dirs)
    return list(moves.rows())


def test_remaining_bytes() -> None:
    moving = {0: ([2, 3, 1], [2, 3]), 1: ([4, 1], [4]), 2: ([2, 4], [2]), 3: ([2, 1], [2]), 4: ([5, 1], [5])}
    log_dirs_by_broker = {
        1: [log_dir({0: 100, 1: 100}), log_dir({3: 100, 4: 100, 9: 1000})],
        2: [log_dir({0: 60, 2: 7, 3: 101}), log_dir({0: 100}, is_future=True)],
        3: [log_dir({})],
        4: [log_dir({}), log_dir({}, error_code=56)],
    }
    rows = rows_of(Client(moving), log_dirs_by_broker)
    found = {row["partition"]: row for row in rows if row["kind"] == "reassignment"}
    assert {
        partition: (row["partition_bytes"], row["copied_bytes"], row["left_bytes"]) for partition, row in found.items()
    } == {
        0: (100, 60, 140),  # one target has a part, the other nothing yet
        1: (100, None, None),  # the replica may be in the offline directory
        2: (None, 7, None),  # the size of the source is unknown
        3: (100, 101, 0),  # a copy of a compacted partition may be larger
        4: (100, None, None),  # broker 5 did not respond
    }
    assert {row["broker"]: row["adding_replicas"] for row in rows if row["kind"] == "broker"} == {
        1: 0, 2: 3, 3: 1, 4: 1, 5: 1,
    }  # fmt: skip


def test_a_broker_without_throttle_configs_is_a_gap_and_one_without_response_is_not_called() -> None:
    rows = rows_of(Client({0: ([1, 2], [2])}), {1: [log_dir({0: 5})]})
    assert {row["broker"]: row.get("gap") for row in rows if row["kind"] == "broker"} == {
        1: "failed: broker 1 of cluster 'c' did not report its throttles: KafkaTimeoutError: no answer.", 2: None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ClusterAuthorizationFailedError(), "denied access; grant Describe on the cluster"),
        (
            IncompatibleBrokerVersion("too old"),
            "did not list its reassignments: [Error 35] IncompatibleBrokerVersion: too old",
        ),
    ],
)
def test_a_refused_request_is_missing_data_and_not_zero(error: KafkaError, said: str) -> None:
    refused, broker = rows_of(Client(error), {1: [log_dir({0: 5})]})
    assert refused == {"cluster": "c", "resource": "c reassignments", "gap": f"failed: cluster 'c' {said}."}
    assert (broker["broker"], broker["adding_replicas"]) == (1, None)
