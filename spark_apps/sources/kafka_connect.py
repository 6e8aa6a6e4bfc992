"""Kafka Connect over REST: one row per connector, and one per task with its state.

Reads: `GET /connectors?expand=info&expand=status` (Apache Kafka 2.3 and newer), one request per Connect cluster.
Needs: read access to the REST API. After 429 and 5xx, and after 409 (a rebalance of the workers), a request is
retried twice, with a pause; a worker that does not respond is one gap. Configs of connectors hold secrets: only
`connector.class` and the overridden group id are taken from them. URLs in stack traces lose their credentials.

Limitations: the REST API knows only the current state, so an hour that is over is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from streamwarden.base.addresses import address_of, masked
from streamwarden.base.config import ConnectCluster
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.kafka_client import ClusterPartition, ClusterReader, ClusterSource, cluster_named, unreadable
from spark_apps.sources.rest_api import Json, Refused, RestApi

TRACE_CHARACTERS = 2000
"""Of the stack trace of a failed task: the exception and its first frames."""


class ConnectApi(RestApi):
    """The REST API of one Connect cluster.

    Args:
        cluster: name of the Kafka cluster, for messages.

    Raises:
        Refused: the address is not valid.
    """

    later = (409, *RestApi.later)  # 409: the workers rebalance

    def __init__(self, cluster: str, connect: ConnectCluster) -> None:
        name = f"Connect cluster '{connect.name}' of '{cluster}' at {address_of(connect.url)}"
        super().__init__(name, connect.url, connect.user, connect.password, connect.timeout_seconds)

    def refusal(self, path: str, status: int) -> Refused:
        """The message for a status other than 200."""
        if status in (401, 403):
            return Refused(f"{self.name} rejected user and password ({status})")
        return super().refusal(path, status)

    def connectors(self) -> list[dict[str, Any]]:
        """Rows of all connectors and their tasks, without cluster and time.

        Raises:
            Refused: the API did not respond, or not with connectors.
        """
        found = self.get("/connectors", {"expand": ["info", "status"]})
        try:
            return [row for name, one in found.items() for row in _rows(name, one["info"], one["status"])]
        except (AttributeError, KeyError, TypeError):
            raise Refused(f"{self.name} responds to GET /connectors with something other than connectors") from None


def _rows(name: str, info: Mapping[str, Json], status: Mapping[str, Json]) -> Iterator[dict[str, Any]]:
    config = info.get("config") or {}
    kind = status.get("type") or info.get("type")
    of_sink = config.get("consumer.override.group.id") or f"connect-{name}"
    connector = {
        "connector": name,
        "connector_type": kind,
        "connector_class": config.get("connector.class"),
        "group_id": of_sink if kind == "sink" else None,
    }
    yield connector | _state(status["connector"])
    for task in status.get("tasks") or ():
        yield connector | _state(task) | {"task_id": int(task["id"])}


def _state(status: Mapping[str, Json]) -> dict[str, Any]:
    """State, worker, and the beginning of the stack trace of a connector or task."""
    trace = status.get("trace")
    return {
        "state": status["state"].upper(),  # null is no state, and raises
        "worker": status.get("worker_id"),
        "trace": _shown(str(trace)) if trace else None,
    }


def _shown(trace: str) -> str:
    """The beginning of a trace without credentials, which drivers write with their URLs, and without NUL, which
    converters quote from records and PostgreSQL does not store."""
    return masked(trace).replace("\0", "\ufffd")[:TRACE_CHARACTERS]


class KafkaConnectReader(ClusterReader):
    """Reads the Connect clusters of each Kafka cluster, one task per Kafka cluster; see the module."""

    only_present = "Kafka Connect"

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Connectors of all Connect clusters of one Kafka cluster."""
        if not isinstance(partition, ClusterPartition):
            return
        for connect in cluster_named(partition.cluster).connect:
            resource = f"{partition.cluster} connect {connect.name}"
            try:
                yield from self.batches(self._of_connect(partition.cluster, connect, resource))
            except Exception as error:  # a response may hold anything: the other Connect clusters are read
                yield from self.batches([self.gap_row(partition.cluster, resource, unreadable(error))])

    def _of_connect(self, cluster: str, connect: ConnectCluster, resource: str) -> list[dict[str, Any]]:
        if gap := self.gap_of_hour:
            return [self.gap_row(cluster, resource, gap)]
        api = None
        try:
            api = ConnectApi(cluster, connect)
            rows = api.connectors()
        except (Refused, StreamwardenError) as error:
            return [self.gap_row(cluster, resource, f"failed: {str(error).rstrip('.')}.")]
        finally:
            if api is not None:
                api.close()
        known = {
            "cluster": cluster,
            "connect_cluster": connect.name,
            "resource": resource,
            "observed_at": datetime.now(UTC),
        }
        url = address_of(connect.url).rstrip("/") + "/connectors/"
        named = (known | row | {"url": url + quote(row["connector"], safe="")} for row in rows)
        return [known, *named]  # the first row: it responded, also without connectors


class KafkaConnect(ClusterSource):
    """Spark data source `kafka_connect`. The first row of a Connect cluster that responded has no connector."""

    reader_type = KafkaConnectReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kafka_connect"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, connect_cluster string, url string, connector string, task_id int, connector_type string,"
            " connector_class string, group_id string, state string, worker string, trace string,"
            " observed_at timestamp, resource string, gap string"
        )
