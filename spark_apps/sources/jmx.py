"""JVMs and their hosts as the Spark data source `jmx`, over the protocol of each endpoint.

Metrics have Streamwarden's names.

Options: `endpoints` (JSON, see `read_jmx`; no secrets), `gaps` (JSON: endpoints that could not be discovered),
`hour` (ISO), `samples`, `sample_seconds`, `partitions`. Endpoints are distributed over the partitions and queried
concurrently within each, at the same times everywhere. An endpoint that does not respond costs its own timeout and
gives one gap row.

JVMs know only their current state (`streamwarden.base.hours.gap_of_present`). A Prometheus server also has the past:
it is queried once, for the whole hour.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

import httpx
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType
from streamwarden.base.config import WAREHOUSE_ENV, Config, JmxEndpoint, load_config
from streamwarden.base.hours import HOUR, ONLY_PRESENT, gap_of_present

from spark_apps.runtime.warehouse_io import query_in_task
from spark_apps.sources import dropwizard, jolokia, prometheus, prometheus_api
from spark_apps.sources.arrow_batches import batch_of
from spark_apps.sources.jmx_endpoint import Answer, Ask, AskHour, Endpoint, Refused, carried_over, name_of
from spark_apps.sources.jmx_mbeans import Role
from spark_apps.sources.jmx_metrics import METRICS, PRESENCES
from spark_apps.sources.jmx_rmi import jmx_rmi
from spark_apps.sources.read_source import read_source
from spark_apps.sources.recognition import recognized
from spark_apps.sources.targets import Jvms, jvms_of

SCHEMA = StructType(
    [
        *(
            StructField(name, StringType())
            for name in ("cluster", "role", "app", "endpoint", "metric", "labels", "kind")
        ),
        StructField("at", TimestampType()),
        StructField("value", DoubleType()),
        StructField("process_started_at", TimestampType()),
        StructField("resource", StringType()),
        StructField("gap", StringType()),
    ]
)
TASKS_BEGIN_SECONDS = 0.5
"""Time until all tasks of a job have started and take their first sample."""
PROTOCOLS: dict[str, Ask] = {
    "jolokia": jolokia.ask,
    "jmx_rmi": jolokia.ask,
    "prometheus": prometheus.ask,
    "dropwizard": dropwizard.ask,
}
NAMED_BY_RULES = ("prometheus", "prometheus_api")
"""Protocols by which an endpoint exposes only what its exporter's rules select, under names that they define."""
METRICS_OF = "metrics of "
"""Prefix of a resource with the metrics that an endpoint does not expose, although the endpoint responded."""
OF_PODS = "kubernetes"
"""Section of the endpoints that Kubernetes' discovery found."""
MOVED = "missing: the pod was moved or replaced while it was read; the next hour reads the new one"
ARCHIVES: dict[str, AskHour] = {"prometheus_api": prometheus_api.ask_hour}


def endpoints_of(config: Config, *roles: Role) -> list[JmxEndpoint]:
    """The endpoints of some roles, each once per cluster."""
    return [endpoint for endpoint, _ in _once(jvms_of(config), roles)]


def _once(jvms: Jvms, roles: Collection[Role]) -> Collection[tuple[JmxEndpoint, str]]:
    """Endpoints and their config sections."""
    found = ((e, section) for section, endpoints in jvms.by_section.items() for e in endpoints if e.role in roles)
    return {(e.cluster, name_of(e)): (e, section) for e, section in found}.values()


def read_jmx(spark: SparkSession, config: Config, hour: datetime, *roles: Role) -> DataFrame:
    """Readings of all endpoints of some roles: one row per metric, labels, and sample, and one per gap."""
    options = _options(config, *roles)
    options |= {"hour": hour.isoformat(), "partitions": str(spark.sparkContext.defaultParallelism)}
    if os.environ.get(WAREHOUSE_ENV):
        options["known_starts"] = json.dumps(_known_starts(hour))
    return read_source(spark, Jmx(options))


_STARTS_REMEMBERED = timedelta(days=7)
_KNOWN_STARTS = """
    select distinct cluster, endpoint, extract(epoch from started_at)::double precision as started
    from (
      select hour, cluster, endpoint, process_started_at as started_at from metrics.broker_hourly
      union all
      select hour, cluster, endpoint, process_started_at from metrics.jvm_app_hourly
      union all
      select hour, cluster, endpoint, booted_at from metrics.node_hourly
    ) as process
    where hour between cast($1 as timestamptz) and cast($2 as timestamptz) and started_at is not null
"""


def _known_starts(hour: datetime) -> dict[str, dict[str, list[float]]]:
    """Known start times of processes in the hours around this one: seconds since 1970 by cluster and endpoint."""
    span = ((hour - _STARTS_REMEMBERED).isoformat(), (hour + _STARTS_REMEMBERED).isoformat())
    known: dict[str, dict[str, list[float]]] = {}
    for row in query_in_task(_KNOWN_STARTS, span, None).to_pylist():
        known.setdefault(row["cluster"], {}).setdefault(row["endpoint"], []).append(row["started"])
    return known


def asked_in_time(configured: DataFrame, jmx: DataFrame) -> DataFrame:
    """Configured endpoints (cluster, endpoint, …) that can have a row in this hour, even an empty one.

    Endpoints that were first queried after the hour had ended, and know only their current state, are left out.
    """
    if "gap" not in jmx.columns:
        return configured
    too_late = jmx.where(f.contains("gap", f.lit(ONLY_PRESENT))).select("cluster", "endpoint").distinct()
    return configured.join(f.broadcast(too_late), ["cluster", "endpoint"], "left_anti")


def _options(config: Config, *roles: Role) -> dict[str, str]:
    """Options of the source from the config, without credentials, which only the tasks read."""
    jvms = jvms_of(config)
    endpoints = [
        asdict(
            Endpoint(
                cluster=e.cluster,
                role=e.role,
                app=e.app if e.role == "app" else None,
                protocol=e.protocol,
                address=name_of(e),
                has_credentials=e.user is not None or "@" in e.url or "?" in e.url,
                timeout_seconds=e.timeout_seconds,
                match=e.match,
                section=section,
            )
        )
        for e, section in _once(jvms, roles)
    ]
    gaps = [(gap.resource, gap.reason) for gap in jvms.gaps if gap.role in (*roles, None)]
    return {
        "endpoints": json.dumps(endpoints),
        "gaps": json.dumps(gaps),
        "samples": str(config.gathering.jmx_samples),
        "sample_seconds": str(config.gathering.jmx_sample_seconds),
    }


def replicas_of(config: Config, hour: datetime) -> dict[str, dict[str, set[str]]]:
    """Replicas that `match` of a Prometheus server's endpoint selects, by the endpoint's `resource`.

    The labels in which series differ at the start of the hour, with their values. Endpoints that do not respond are
    left out: the source has gaps for them.
    """
    endpoints = [Endpoint(**endpoint) for endpoint in json.loads(_options(config, *get_args(Role))["endpoints"])]

    async def asked(endpoint: Endpoint, slots: asyncio.Semaphore) -> dict[str, set[str]]:
        async with slots, httpx.AsyncClient(timeout=None, trust_env=False) as client:  # noqa: S113 see request()
            try:
                return await prometheus_api.ask_replicas(client, endpoint, hour)
            except (Refused, TimeoutError):
                return {}

    async def all_asked(archived: list[Endpoint]) -> list[dict[str, set[str]]]:
        slots = asyncio.Semaphore(4)
        return await asyncio.gather(*(asked(endpoint, slots) for endpoint in archived))

    archived = [endpoint for endpoint in endpoints if endpoint.protocol in ARCHIVES]
    found = zip(archived, asyncio.run(all_asked(archived)), strict=True)
    return {endpoint.resource: labels for endpoint, labels in found if labels}


class Jmx(DataSource):
    """Data source of JVM metrics; see the module.

    Options: `hour`; `roles` of the config's endpoints (`broker`, `app`, `node`, comma-separated), or the `endpoints`
    as JSON with `gaps`, `samples`, `sample_seconds`; the number of `partitions`.
    """

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "jmx"

    def schema(self) -> StructType:
        """Columns of the data source."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader of the data source."""
        options = dict(self.options)
        if "endpoints" not in options:
            roles = cast(list[Role], options.get("roles", ",".join(get_args(Role))).split(","))
            options = _options(load_config(), *roles) | options
        return _Reader(options, schema)


@dataclass
class _Slice(InputPartition):
    """The endpoints of one task, the time of the first sample, and gaps that are known already."""

    endpoints: list[Endpoint]
    start_at: float
    gaps: list[tuple[str, str]]


def _says_something(answer: Answer) -> bool:
    """Whether it has a number, besides names and presence metrics."""
    return any(
        value is not None and math.isfinite(value) for metric, _, value in answer.readings if metric not in PRESENCES
    )


def checked(answer: Answer) -> Answer:
    """The response if it has values: an agent may respond without values while its JVM starts or ends.

    Raises:
        Refused: it has none.
    """
    if not _says_something(answer):
        raise Refused(answer.denied or "no reading is a number")
    return answer


def _moved(endpoints: Collection[Endpoint]) -> set[str]:
    """URLs of pods that have another address by now: what was read there may be another application's."""
    of_pods = [(one.url, one.cluster, one.app) for one in endpoints if one.section == OF_PODS]
    if not of_pods:
        return set()
    from spark_apps.sources.kube.discover import moved  # slow to import: only where it is asked for

    return moved(load_config(), of_pods)


def _unreadable(error: Exception) -> str:
    return f"failed: the response does not follow its protocol ({type(error).__name__})"


@dataclass
class _Server:
    """A Prometheus server that is queried for many JVMs: a few at a time."""

    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    hangs: bool = False


def _seconds_until(start_at: float) -> float:
    """Seconds until the first sample, at most the start time of tasks: a clock that was set back does not delay the
    run."""
    return min(max(start_at - time.time(), 0.0), TASKS_BEGIN_SECONDS)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.endpoints = [Endpoint(**endpoint) for endpoint in json.loads(options["endpoints"])]
        self.gaps = json.loads(options.get("gaps", "[]"))
        self.hour = datetime.fromisoformat(options["hour"]).astimezone(UTC)
        self.samples = int(options["samples"])
        self.sample_seconds = float(options["sample_seconds"])
        self.slices = int(options.get("partitions", 1))
        self.known_starts: dict[str, dict[str, list[float]]] = json.loads(options.get("known_starts", "{}"))
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Slices of endpoints."""
        slices = [self.endpoints[i :: self.slices] for i in range(self.slices)]
        start_at = time.time() + TASKS_BEGIN_SECONDS
        return [_Slice([], start_at, self.gaps), *(_Slice(some, start_at, []) for some in slices if some)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Samples of one slice."""
        assert isinstance(partition, _Slice)  # noqa: S101 Spark hands back what partitions() gave
        yield from (self._batch(None, 1, resource=resource, gap=gap) for resource, gap in partition.gaps)
        endpoints = partition.endpoints
        if gap := gap_of_present(self.hour, "a JVM"):
            yield from (self._gap(endpoint, gap) for endpoint in endpoints if endpoint.protocol in PROTOCOLS)
            endpoints = [endpoint for endpoint in endpoints if endpoint.protocol in ARCHIVES]
        if endpoints:
            yield from asyncio.run(self._ask_all(endpoints, partition.start_at))

    async def _ask_all(self, endpoints: list[Endpoint], start_at: float) -> list[pa.RecordBatch]:
        servers: dict[str, _Server] = defaultdict(_Server)
        tls = httpx.create_ssl_context()
        async with jmx_rmi(needed=any(endpoint.protocol == "jmx_rmi" for endpoint in endpoints)) as rmi:

            async def asked(endpoint: Endpoint) -> list[pa.RecordBatch]:
                # One client each, because a client searches all its connections for every request. Without a proxy from
                # the environment: agents are reached directly, as brokers are.
                async with httpx.AsyncClient(
                    timeout=None,  # noqa: S113 see request()
                    trust_env=False,
                    verify=tls,
                    mounts=rmi,
                ) as client:
                    if endpoint.protocol in ARCHIVES:
                        return await self._hour_of(client, endpoint, servers[endpoint.url])
                    return await self._sample(client, endpoint, start_at)

            answers = await asyncio.gather(*map(asked, endpoints))
        gone = await asyncio.to_thread(_moved, endpoints)
        return [
            batch
            for endpoint, batches in zip(endpoints, answers, strict=True)
            for batch in ([self._gap(endpoint, MOVED)] if endpoint.url in gone else batches)
        ]

    async def _hour_of(self, client: httpx.AsyncClient, endpoint: Endpoint, server: _Server) -> list[pa.RecordBatch]:
        """One endpoint's hour from a Prometheus server. A server that times out is not queried for other JVMs."""
        if self.hour > datetime.now(UTC):
            return [self._gap(endpoint, "missing: the hour has not begun")]
        async with server.slots:
            try:
                if server.hangs:
                    raise TimeoutError
                found = await ARCHIVES[endpoint.protocol](client, endpoint, self.hour)
                answers = [answer for answer in found if _says_something(answer)] or [checked(found[0])]
            except TimeoutError:
                server.hangs = True
                return [self._gap(endpoint, f"failed: no answer within {endpoint.timeout_seconds:g} s")]
            except Refused as reason:
                return [self._gap(endpoint, f"failed: {reason}")]
            except Exception as error:  # as below
                return [self._gap(endpoint, _unreadable(error))]
        return self._all_readings(endpoint, answers)

    async def _sample(self, client: httpx.AsyncClient, endpoint: Endpoint, start_at: float) -> list[pa.RecordBatch]:
        """All samples of one endpoint. After a timeout it is not queried again; after an error it is, because it may
        be starting."""
        answers: list[Answer] = []
        gap: str | None = None
        begins = time.monotonic() + _seconds_until(start_at)
        for sample in range(self.samples):
            await asyncio.sleep(begins + sample * self.sample_seconds - time.monotonic())
            try:
                answers.append(checked(await PROTOCOLS[endpoint.protocol](client, endpoint, sample, self.samples)))
            except TimeoutError:
                gap = f"failed: no answer within {endpoint.timeout_seconds:g} s"
                break
            except Refused as reason:
                gap = f"failed: {reason}"
            except Exception as error:  # a response may hold anything: the other endpoints are read
                gap = _unreadable(error)
        # A failed sample among good ones is not a gap: the number of samples shows it. A denied MBean is a gap.
        gap = next((f"failed: {a.denied}" for a in answers if a.denied), None if answers else gap)
        return self._all_readings(endpoint, answers) + ([self._gap(endpoint, gap)] if gap else [])

    def _all_readings(self, endpoint: Endpoint, answers: list[Answer]) -> list[pa.RecordBatch]:
        known = self.known_starts.get(endpoint.cluster, {}).get(endpoint.address, [])
        carried_over(answers, [datetime.fromtimestamp(seconds, UTC) for seconds in known])
        batches = [self._readings(endpoint, answer) for answer in answers]
        if endpoint.protocol in NAMED_BY_RULES and self._is_complete(answers):
            batches.append(self._coverage(endpoint, answers))
        return batches

    def _is_complete(self, answers: list[Answer]) -> bool:
        """Whether the last sample is there, or an archive's last moment: wide metrics are read only then."""
        end = min(self.hour + HOUR, datetime.now(UTC)) - timedelta(minutes=1)
        return len(answers) == self.samples or bool(answers and answers[0].at <= self.hour and answers[-1].at >= end)

    def _coverage(self, endpoint: Endpoint, answers: list[Answer]) -> pa.RecordBatch:
        """A row with the metrics that the endpoint does not expose, because its exporter's rules may omit any."""
        metrics = {metric for answer in answers for metric, _, _ in answer.readings}
        clashes = dict.fromkeys(clash for answer in answers for clash in answer.clashes)
        gap = recognized(endpoint.role, metrics, tuple(clashes)).gap
        return self._batch(None, 1, resource=f"{METRICS_OF}{endpoint.resource}", gap=gap)

    def _readings(self, endpoint: Endpoint, answer: Answer) -> pa.RecordBatch:
        metrics, labels, values = zip(*answer.readings, strict=True) if answer.readings else ((), (), ())
        return self._batch(
            endpoint,
            len(values),
            metric=metrics,
            labels=labels,
            kind=[METRICS[metric] for metric in metrics],
            at=answer.at,
            value=values,
            process_started_at=answer.process_started_at,
        )

    def _gap(self, endpoint: Endpoint, gap: str) -> pa.RecordBatch:
        return self._batch(endpoint, 1, gap=gap)

    def _batch(self, endpoint: Endpoint | None, length: int, **columns: Any) -> pa.RecordBatch:
        """Columns by name, as in `batch_of`, with those of the endpoint."""
        if endpoint:
            columns |= {
                "cluster": endpoint.cluster,
                "role": endpoint.role,
                "app": endpoint.app,
                "endpoint": endpoint.address,
                "resource": endpoint.resource,
            }
        return batch_of(self.schema, length, columns)
