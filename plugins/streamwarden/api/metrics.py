"""The page `/streamwarden/metrics` for a Prometheus server: findings, consumer lag, and freshness of the data.

Values are of the newest gathered hour. What is unknown has no series, because 0 would be healthy. The number of series
is bounded by the detectors, severities, owners, and sources, and for lag by `prometheus.lag_series`.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.version import VERSION
from streamwarden.base.warehouse import read_only
from streamwarden.store.queries import ask
from streamwarden.tickets.sinks.credentials import airflow_connection

log = logging.getLogger(__name__)
TIMEOUT = "9s"  # Prometheus waits 10 s
OFF = "The page is off: set `prometheus.token` in the config."
REFUSED = "Send the header `Authorization: Bearer TOKEN` with the token of `prometheus.token`."
AWAY = "The warehouse does not respond; see the log of Airflow's API server."

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/metrics")
def metrics(request: Request) -> Response:
    """The metrics in the format that the client accepts: Prometheus text or OpenMetrics."""
    try:
        config = load_config()
        token = _token(config)
        if not token:
            return PlainTextResponse(OFF, 403)
        if not _is_sent(token, request.headers.get("authorization", "")):
            return PlainTextResponse(REFUSED, 401, {"WWW-Authenticate": "Bearer"})
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        with read_only(config, TIMEOUT) as connection:
            registry = CollectorRegistry(auto_describe=False)
            registry.register(_Warehouse(connection, config))
            return Response(encode(registry), headers={"Content-Type": content_type, "Cache-Control": "no-store"})
    except (StreamwardenError, SQLAlchemyError) as error:
        log.warning("streamwarden metrics: %s", str(getattr(error, "orig", None) or error).strip().splitlines()[0])
        return PlainTextResponse(AWAY, 503)


def _token(config: Config) -> str | None:
    if config.prometheus.connection:
        return str(airflow_connection("prometheus", config.prometheus.connection).password or "")
    return config.prometheus.token


def _is_sent(token: str, header: str) -> bool:
    scheme, _, sent = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), token.encode())


class _Warehouse(Collector):
    """Collects all metrics by one connection."""

    def __init__(self, connection: sa.Connection, config: Config) -> None:
        self._connection = connection
        self._config = config

    def describe(self) -> Iterable[Any]:
        """Nothing: the queries run only once, when the metrics are collected."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All metrics."""
        info = GaugeMetricFamily("streamwarden_build_info", "Version of Streamwarden; always 1.", labels=["version"])
        info.add_metric([VERSION], 1)
        yield info
        yield from self._findings()
        yield from self._lag()
        yield from self._freshness()

    def _findings(self) -> Iterator[GaugeMetricFamily]:
        labels = ["detector", "severity", "owner"]
        found = GaugeMetricFamily("streamwarden_open_findings", "Open findings that are not muted.", labels=labels)
        advice = GaugeMetricFamily(
            "streamwarden_open_advice", "Firing findings below the severity that opens tickets.", labels=labels
        )
        for row in ask(self._connection, "metrics/open_findings", least=self._config.tickets.least_severity):
            values = [row[name] for name in labels]
            found.add_metric(values, row["findings"])
            if row["advice"]:
                advice.add_metric(values, row["advice"])
        yield found
        yield advice

    def _lag(self) -> Iterator[GaugeMetricFamily]:
        labels = ["cluster", "group", "topic"]
        records = GaugeMetricFamily(
            "streamwarden_consumer_lag_records", "Consumer lag in records at the end of the hour.", labels=labels
        )
        seconds = GaugeMetricFamily(
            "streamwarden_consumer_lag_seconds",
            "Age of the oldest unread record at the end of the hour.",
            labels=labels,
        )
        most = self._config.prometheus.lag_series
        rows = ask(self._connection, "metrics/consumer_lag", most=max(most, 1))
        for row in rows[:most]:
            values = [row["cluster"], row["group_id"], row["topic"]]
            for family, name in ((records, "lag_records"), (seconds, "lag_seconds")):
                if row[name] is not None:
                    family.add_metric(values, row[name])
        yield records
        yield seconds
        yield GaugeMetricFamily(
            "streamwarden_consumer_lag_pairs_omitted",
            "Pairs of group and topic without lag series, because prometheus.lag_series is reached.",
            value=max(rows[0]["pairs"] - most, 0) if rows else 0,
        )

    def _freshness(self) -> Iterator[GaugeMetricFamily]:
        ended_at = ask(self._connection, "metrics/newest_complete_hour")[0]["ended_at"]
        complete = GaugeMetricFamily(
            "streamwarden_newest_complete_hour_timestamp_seconds",
            "End of the newest hour in which every app loaded its rows and the detectors were evaluated.",
            labels=[],
        )
        if ended_at is not None:
            complete.add_metric([], ended_at)
        yield complete
        labels = ["app", "source"]
        helps = {
            "resources": ("streamwarden_source_resources", "Resources queried for the source's newest hour."),
            "missing": ("streamwarden_source_resources_missing", "Of these, resources without a response."),
            "responded_at": (
                "streamwarden_source_newest_response_timestamp_seconds", "End of the newest hour with a response."
            ),
        }  # fmt: skip
        families = {column: GaugeMetricFamily(*named, labels=labels) for column, named in helps.items()}
        for row in ask(self._connection, "metrics/sources"):
            for column, family in families.items():
                if row[column] is not None:
                    family.add_metric([row["app"], row["source"]], row[column])
        yield from families.values()
