"""Confluent Cloud's Metrics API: bytes and records of each topic in an hour.

Reads: `POST /v2/metrics/cloud/query`, one request per metric and 1,000 topics, with the filter `resource.kafka.id` and
grouped by `metric.topic`. Names, paging (`meta.pagination.next_page_token`), limits, and types of metrics: Confluent
Cloud Metrics API, version 2 (OpenAPI document and metrics reference). Counters are increments of a minute and are
summed over the interval, gauges are averaged. Needs: a Cloud API key with the role MetricsViewer.

A response of 429 or 5xx is followed by two more attempts, after the pause that the API requests, at most 5 s. Points
arrive up to five minutes late, so the newest minutes of the current hour are left out. The API keeps seven days: hours
of that time can be read again.

Limitations: brokers, their disks, and their JVMs are not exposed. Lag is exposed in offsets only, so it is read over
Kafka's protocol, which has commits and times. Bytes of Cluster Linking are not part of `received_bytes`.
`retained_bytes` only lists the topics: the reference does not state whether it counts replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from streamwarden.base.config import load_config
from streamwarden.base.config.confluent import ConfluentCluster
from streamwarden.base.hours import HOUR
from streamwarden.base.metric_uses import NEEDED_BY

from spark_apps.sources.jmx_readings import number
from spark_apps.sources.kafka_client import ClusterPartition, ClusterReader, ClusterSource
from spark_apps.sources.rest_api import Json, Refused, RestApi

COUNTERS = {"bytes_in": "received_bytes", "bytes_out": "sent_bytes", "messages_in": "received_records"}
"""Columns, and their metrics under `io.confluent.kafka.server`."""
LATENCY = timedelta(minutes=5)
GROUPS = 1000
"""The most groups that a page may have."""
PAGES = 100
_OF_JMX = {f"{column}_total" for column in COUNTERS}


class MetricsApi(RestApi):
    """The Metrics API for one cluster.

    Raises:
        Refused: the address is not valid.
    """

    def __init__(self, cluster: ConfluentCluster) -> None:
        name = f"Confluent Cloud's Metrics API for cluster '{cluster.cluster}' ({cluster.id})"
        super().__init__(name, cluster.url, cluster.key, cluster.secret, cluster.timeout_seconds)
        self._id = cluster.id

    def refusal(self, path: str, status: int) -> Refused:
        """The message for a status other than 200."""
        if status == 401:
            return Refused(f"{self.name} rejected the key: it must be a Cloud API key, not one of the cluster (401)")
        if status == 403:
            return Refused(f"{self.name} denied access; grant the role MetricsViewer (403)")
        if status == 429:
            return Refused(f"{self.name} throttled the requests (429)")
        return Refused(f"{self.name} responds to POST {path} with status {status}")

    def by_topic(self, metric: str, start: datetime, end: datetime) -> dict[str, float]:
        """Sum of a counter, or mean of a gauge, over an interval, by topic.

        Raises:
            Refused: the API did not respond, or not with points of topics.
        """
        path = "/v2/metrics/cloud/query"
        body = {
            "aggregations": [{"metric": f"io.confluent.kafka.server/{metric}"}],
            "filter": {"field": "resource.kafka.id", "op": "EQ", "value": self._id},
            "granularity": "ALL",
            "group_by": ["metric.topic"],
            "intervals": [f"{start:%Y-%m-%dT%H:%M:%SZ}/{end:%Y-%m-%dT%H:%M:%SZ}"],
            "limit": GROUPS,
        }
        found: dict[str, float] = {}
        params: dict[str, str] = {}
        for _ in range(PAGES):
            page = self.post(path, body, params)
            try:
                found |= dict(map(_point, page["data"]))
                token = ((page.get("meta") or {}).get("pagination") or {}).get("next_page_token")
            except (AttributeError, KeyError, TypeError, ValueError):
                raise Refused(f"{self.name} responds with something other than points of topics") from None
            if not token:
                return found
            params = {"page_token": str(token)}
        raise Refused(f"{self.name} has more than {PAGES} pages of topics")


def _point(point: dict[str, Json]) -> tuple[str, float]:
    """Topic and value. Raises KeyError or TypeError for what is no point of a topic."""
    topic, value = point["metric.topic"], number(point["value"])
    if isinstance(topic, str) and value is not None:
        return topic, value
    raise TypeError


class ConfluentMetricsReader(ClusterReader):
    """One task per cluster; see the module."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Topics of one cluster."""
        if isinstance(partition, ClusterPartition):
            yield from self.batches(self._of_cluster(partition.cluster))

    def _of_cluster(self, name: str) -> list[dict[str, Any]]:
        entry = next(one for one in load_config().confluent if one.cluster == name)
        hour, now = datetime.fromisoformat(self.options["hour"]), datetime.now(UTC)
        end = min(hour + HOUR, (now - LATENCY).replace(second=0, microsecond=0))
        resource = f"{name} topics"
        if end <= hour:
            return [self.gap_row(name, resource, "missing: no minute of this hour is available yet.")]
        api = None
        try:
            api = MetricsApi(entry)
            existing = api.by_topic("retained_bytes", hour, end)
            counts = {column: api.by_topic(metric, hour, end) for column, metric in COUNTERS.items()}
        except Refused as error:
            return [self.gap_row(name, resource, f"failed: {str(error).rstrip('.')}.")]
        finally:
            if api is not None:
                api.close()
        span = {"cluster": name, "resource": resource, "counted_from": hour, "counted_to": end}
        span["covered_seconds"] = (end - hour).total_seconds()
        # A topic without points of a counter was not used.
        rows = [
            span | {"topic": topic} | {column: values.get(topic, 0.0) for column, values in counts.items()}
            for topic in existing.keys() | set().union(*counts.values())
        ]
        return [span, *rows, self.gap_row(name, f"{name} brokers", _not_exposed())]


def _not_exposed() -> str:
    blind = sorted({one for metric, needed in NEEDED_BY["broker"].items() if metric not in _OF_JMX for one in needed})
    return (
        "missing: Confluent Cloud exposes no metrics of brokers, disks, and JVMs."
        f" Not evaluated here: {', '.join(blind)}."
    )


class ConfluentMetrics(ClusterSource):
    """Spark data source `confluent_metrics`. The first row of a cluster that responded has no topic.

    Option `hour`: its start in ISO 8601.
    """

    reader_type = ConfluentMetricsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "confluent_metrics"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, topic string, covered_seconds double, counted_from timestamp, counted_to timestamp,"
            " bytes_in double, bytes_out double, messages_in double, resource string, gap string"
        )
