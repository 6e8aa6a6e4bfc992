"""Log directories of brokers, and the size of every replica in them. Two kinds of rows:

`log_dir`: the directory, the size of its volume and what is free on it (Kafka 3.3 or newer). `replica`: topic,
partition, bytes, how far it is behind the log's end, and whether it is a future replica, which moves here from another
directory.

Reads: DescribeLogDirs, one per broker, asked through kafka-python, as confluent-kafka has no such call. Needs: Describe
on the cluster. Can't see: brokers that are down, clusters whose way to log in only confluent-kafka knows; a gap each.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError as PythonKafkaError

from spark_apps.sources.columns import batch_of
from spark_apps.sources.kafka_client import (
    ANSWER_SECONDS,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
)

_LOGGER = logging.getLogger("kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False

_PLAIN_PROPERTIES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_SSL_PROPERTIES = {
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
}
_FORBIDDEN = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class UnknownWay(Exception):
    """A property of the client that decides how to log in, and that kafka-python has no like of."""


class LogDirsReader(ClusterReader):
    """See the module."""

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        brokers = sorted(connection.metadata().brokers)  # fails early where the cluster is down
        try:
            client = KafkaAdminClient(**client_config(connection.cluster.bootstrap_servers, connection.cluster.client))
        except (UnknownWay, PythonKafkaError, OSError, ValueError, RuntimeError) as error:
            gap = f"refused: kafka-python, which is asked for log dirs, can't reach cluster '{name}': {_line(error)}."
            yield from self.batches([self.gap_row(name, f"{name} log dirs", gap)])
            return
        with client:
            for broker in brokers:
                yield from self._broker(connection, client, broker)

    def _broker(self, connection: Connection, client: KafkaAdminClient, broker: int) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        resource = f"{name} broker {broker} log dirs"
        try:
            [answer] = client.describe_log_dirs(brokers=[broker])
        except (PythonKafkaError, OSError) as error:
            gap = f"refused: broker {broker} of cluster '{name}' doesn't tell its log dirs: {_line(error)}."
            yield from self.batches([self.gap_row(name, resource, gap)])
            return
        known = {"cluster": name, "broker": broker, "observed_at": datetime.now(UTC), "resource": resource}
        if not answer["log_dirs"]:  # a broker has one at least; the error itself is lost on the way
            yield from self.batches([known | {"gap": connection.gap(_FORBIDDEN)}])
        for log_dir in answer["log_dirs"]:
            yield from self._log_dir(known | {"log_dir": log_dir["log_dir"]}, log_dir)

    def _log_dir(self, known: dict[str, Any], told: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        if told["error_code"]:
            gap = f"refused: log dir {told['log_dir']} is offline (Kafka's error {told['error_code']})."
            yield from self.batches([known | {"kind": "log_dir", "gap": gap}])
            return
        sizes = {f"{kind}_bytes": _known(told.get(f"{kind}_bytes")) for kind in ("total", "usable")}
        yield from self.batches([known | {"kind": "log_dir"} | sizes])
        replicas = [(topic["name"], p) for topic in told["topics"] for p in topic["partitions"]]
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
        return "kafka_log_dirs"

    def schema(self) -> str:
        return (
            "cluster string, kind string, broker int, log_dir string, total_bytes bigint, usable_bytes bigint,"
            " topic string, partition int, size_bytes bigint, offset_lag bigint, is_future boolean,"
            " observed_at timestamp, resource string, gap string"
        )


def client_config(bootstrap_servers: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """librdkafka's properties as kafka-python's settings; those that only tune the client are left out.

    Raises:
        UnknownWay: one of them says how to log in, and kafka-python has no like of it.
    """
    decisive = {k: v for k, v in properties.items() if k.startswith(("sasl.", "ssl.", "security.", "enable.ssl."))}
    if strange := sorted(decisive.keys() - _PLAIN_PROPERTIES.keys() - _SSL_PROPERTIES):
        raise UnknownWay(f"it has no like of {', '.join(strange)}")
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers.split(","),
        "client_id": "streamwarden",
        "request_timeout_ms": ANSWER_SECONDS * 1000,
        "bootstrap_timeout_ms": ANSWER_SECONDS * 1000,
        **{ours: properties[theirs] for theirs, ours in _PLAIN_PROPERTIES.items() if theirs in properties},
    }
    protocol = settings["security_protocol"] = str(settings.get("security_protocol", "PLAINTEXT")).upper()
    mechanism = settings.get("sasl_mechanism", "GSSAPI")  # librdkafka's default
    if protocol.startswith("SASL") and mechanism not in _MECHANISMS:
        raise UnknownWay(f"of sasl.mechanism it knows {', '.join(_MECHANISMS)}, not {mechanism}")
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(properties)
    return settings


def _ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    place = properties.get("ssl.ca.location")
    place = None if place == "probe" else place  # the system's
    folder = place if place and Path(place).is_dir() else None
    context = ssl.create_default_context(
        cafile=None if folder else place, capath=folder, cadata=properties.get("ssl.ca.pem")
    )
    if certificate := properties.get("ssl.certificate.location"):
        context.load_cert_chain(certificate, properties.get("ssl.key.location"), properties.get("ssl.key.password"))
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _known(value: int | None) -> int | None:
    """-1: the broker is older than that field."""
    return value if value is not None and value >= 0 else None


def _line(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")
