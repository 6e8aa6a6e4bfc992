"""Log directories of brokers, the size of every replica in them, and reassignments. Kinds of rows:

`log_dir`: the directory, the size of its volume and the usable bytes (Kafka 3.3 or newer). `replica`: topic,
partition, bytes, lag behind the log end, and whether it is a future replica, which is being moved here from another
log directory. `reassignment` and `broker`: see `kafka_reassignments`, which uses the same connection.

Reads: DescribeLogDirs, one per broker, through kafka-python, because confluent-kafka does not have that call. Needs:
Describe on the cluster. Limitations: brokers that are down, and clusters with an authentication that only
confluent-kafka supports, give a gap each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError as PythonKafkaError

from spark_apps.sources.arrow_batches import batch_of
from spark_apps.sources.kafka_client import ClusterPartition, ClusterReader, ClusterSource, Connection
from spark_apps.sources.kafka_reassignments import Reassignments, line
from spark_apps.sources.kafka_second_client import CannotAsk, second_client

_FORBIDDEN = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)


class LogDirsReader(ClusterReader):
    """Reads the log directories of a cluster; see the module."""

    only_present = "a broker's list of log dirs"

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Log directories, replicas, and reassignments of one cluster."""
        name = connection.cluster.name
        metadata = connection.metadata()  # fails early if the cluster is down
        partitions = (p for topic in metadata.topics.values() for p in topic.partitions.values())
        # A broker that is down is not listed by the cluster, but still has replicas.
        for down in sorted({broker for p in partitions for broker in p.replicas} - metadata.brokers.keys()):
            gap = f"failed: broker {down} of cluster '{name}' is down."
            yield from self.batches([self.gap_row(name, _resource(name, down), gap)])
        try:
            client = second_client(connection.cluster)
        except CannotAsk as error:
            gap = f"failed: kafka-python (for DescribeLogDirs) cannot connect to cluster '{name}': {line(error)}."
            yield from self.batches([self.gap_row(name, f"{name} log dirs", gap)])
            return
        with client:
            moves = Reassignments(connection, client)
            for broker in sorted(metadata.brokers):
                yield from self._broker(connection, client, broker, moves)
            yield from self.batches(moves.rows())

    def _broker(
        self, connection: Connection, client: KafkaAdminClient, broker: int, moves: Reassignments
    ) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        resource = _resource(name, broker)
        try:
            [answer] = client.describe_log_dirs(brokers=[broker])
        except (PythonKafkaError, OSError) as error:
            gap = f"failed: broker {broker} of cluster '{name}' did not report its log dirs: {line(error)}."
            yield from self.batches([self.gap_row(name, resource, gap)])
            return
        moves.note(broker, answer["log_dirs"])
        known = {"cluster": name, "broker": broker, "observed_at": datetime.now(UTC), "resource": resource}
        if not answer["log_dirs"]:  # every broker has at least one; kafka-python does not return the error itself
            yield from self.batches([known | {"gap": connection.gap(_FORBIDDEN)}])
        for log_dir in answer["log_dirs"]:
            yield from self._log_dir(known | {"log_dir": log_dir["log_dir"]}, log_dir)

    def _log_dir(self, known: dict[str, Any], answer: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        if answer["error_code"]:
            gap = f"failed: log dir {answer['log_dir']} is offline (Kafka's error {answer['error_code']})."
            yield from self.batches([known | {"kind": "log_dir", "gap": gap}])
            return
        sizes = {f"{kind}_bytes": _known(answer.get(f"{kind}_bytes")) for kind in ("total", "usable")}
        yield from self.batches([known | {"kind": "log_dir"} | sizes])
        replicas = [(topic["name"], p) for topic in answer["topics"] for p in topic["partitions"]]
        columns = {
            "topic": [topic for topic, _ in replicas],
            "partition": [p["partition_index"] for _, p in replicas],
            "size_bytes": [p["partition_size"] for _, p in replicas],
            "offset_lag": [p["offset_lag"] for _, p in replicas],
            "is_future": [p["is_future_key"] for _, p in replicas],
        }
        yield batch_of(self.schema, len(replicas), known | {"kind": "replica"} | columns)


class KafkaLogDirs(ClusterSource):
    """Spark data source `kafka_log_dirs`."""

    reader_type = LogDirsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kafka_log_dirs"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, kind string, broker int, log_dir string, total_bytes bigint, usable_bytes bigint,"
            " topic string, partition int, size_bytes bigint, offset_lag bigint, is_future boolean,"
            " replicas array<int>, adding array<int>, removing array<int>, adding_replicas int, throttles string,"
            " partition_bytes bigint, copied_bytes bigint, left_bytes bigint,"
            " observed_at timestamp, resource string, gap string"
        )


def _resource(cluster: str, broker: int) -> str:
    return f"{cluster} broker {broker} log dirs"


def _known(value: int | None) -> int | None:
    """The value; null for -1: the broker is too old to report it."""
    return value if value is not None and value >= 0 else None
