"""CloudWatch: `read_metrics` calls GetMetricData for a frame of series, `CloudWatchMetrics` lists existing metrics.

Series are numbered by account and region and requested in calls of 500, the maximum of the API; each task gets whole
batches. So a fleet costs ⌈series / 500⌉ calls per page of 100,800 data points, whatever the number of tasks. All
tasks together stay below the API's quotas of calls and data points (CloudWatch User Guide, "CloudWatch service
quotas"). The result is in long format: one row per series and data point, one without a time for a series without
data points (that is a response, not a gap), and one per task and region with the cost. Only a series' first row, and
one with a gap, names its `resource`: these are what coverage needs.

Metrics with InternalError or PartialData are requested again; what stays incomplete keeps its data points, and gets
a gap. Permissions: cloudwatch:GetMetricData, cloudwatch:ListMetrics. Cost: $0.01 per 1,000 metrics requested.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby, islice, pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from botocore.utils import parse_timestamp
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from streamwarden.base.errors import StreamwardenError

from spark_apps.runtime.kept import leaf
from spark_apps.sources.aws_client import (
    Connection,
    Failure,
    MalformedAnswer,
    Place,
    PlacesSource,
    Unreadable,
    is_for_good,
    listed,
)

SERIES_PER_CALL = 500
POINTS_PER_PAGE = 100_800
CALLS_PER_SECOND = 40  # of the quota of 50 per account and region, which is shared with other callers
# What AWS estimates of a call, (end - start) / period of each series, be there points or not: of the 180,000 a second
# that an account may ask of the last three hours in a region, and of the 90,000 of what is older.
POINTS_PER_SECOND, OLD_POINTS_PER_SECOND = 144_000, 72_000
RECENT = timedelta(hours=3)
CALLS_AT_ONCE = 4  # per task: a response takes some 100 ms, most of it waiting
FAILED_BATCHES = 4  # so many consecutive failures, each after all attempts, are not caused by one batch
ROUNDS = 4
MINUTE = 60
# Retention of CloudWatch by period.
RETENTION = ((timedelta(days=15), MINUTE), (timedelta(days=63), 300), (timedelta(days=455), 3600))
_MARGIN = timedelta(minutes=30)  # data points must not expire during a long run

SERIES_COLUMNS = ("account", "region", "resource_id", "metric", "namespace", "name", "dimensions", "stat")
SCHEMA = pa.schema(
    {
        "account": pa.string(),
        "region": pa.string(),
        "resource_id": pa.string(),
        "metric": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "period_seconds": pa.int32(),
        "value": pa.float64(),
        "calls": pa.int32(),
        "metrics_requested": pa.int32(),
        "resource": pa.string(),
        "gap": pa.string(),
    }
)


@dataclass(frozen=True)
class Span:
    """The requested time span: periods that start in [start, end)."""

    start: datetime
    end: datetime
    period_seconds: int

    @classmethod
    def of(cls, start: datetime, end: datetime, now: datetime, period_seconds: int | None = None) -> Span:
        """The shortest period that CloudWatch still has, or the given one, with both ends aligned to it.

        The part before CloudWatch's retention is cut off.

        Raises:
            StreamwardenError: nothing is left of the span.
        """
        oldest, coarsest = RETENTION[-1]
        start = max(start, now - oldest + timedelta(seconds=coarsest))
        if start >= end:
            raise StreamwardenError(
                f"{end:%Y-%m-%d %H:%M} UTC: CloudWatch keeps no points older than {oldest.days} days."
            )
        finest = next((period for age, period in RETENTION if now - start <= age - _MARGIN), coarsest)
        period = max(finest, period_seconds or finest)
        return cls(_floor(start, period), _floor(end, period), period)

    @property
    def points(self) -> int:
        """Maximum number of data points per series."""
        return int((self.end - self.start).total_seconds()) // self.period_seconds


def _floor(moment: datetime, period_seconds: int) -> datetime:
    return datetime.fromtimestamp(moment.timestamp() // period_seconds * period_seconds, UTC)


def read_metrics(series: DataFrame, span: Span) -> DataFrame:
    """All data points of the series in the span; see the module. `series` has SERIES_COLUMNS, with or without
    duplicates."""
    by_place = Window.partitionBy("account", "region").orderBy("resource_id", "metric")
    slices = series.sparkSession.sparkContext.defaultParallelism
    batch = f.floor((f.row_number().over(by_place) - 1) / SERIES_PER_CALL)
    return leaf(
        series.select(*SERIES_COLUMNS, batch.cast("int").alias("batch"))
        .repartitionById(slices, f.pmod(f.hash("account", "region") + f.col("batch"), f.lit(slices)))
        .sortWithinPartitions("account", "region", "batch")
        .mapInArrow(_Reader(span, 1 / slices).read, from_arrow_schema(SCHEMA)),
        slices,
    )


class _Series(NamedTuple):
    """One row of the series frame."""

    account: str
    region: str
    resource_id: str
    metric: str
    namespace: str
    name: str
    dimensions: list[tuple[str, str]]
    stat: str
    batch: int


@dataclass
class _Answer:
    """The response for one series: its data points by time, and whether they are complete."""

    points: dict[float, float] = field(default_factory=dict)
    status: str | None = None
    message: str = ""

    @property
    def is_final(self) -> bool:
        """Whether it needs no further request."""
        return self.status in ("Complete", "Forbidden")

    def learn(self, result: dict[str, Any]) -> None:
        """Adds the data of one page; members may be omitted if empty, and only an error status is final."""
        times, values = result.get("Timestamps", ()), result.get("Values", ())
        if len(times) != len(values):
            raise MalformedAnswer(f"it has {len(times)} times for {len(values)} values")
        self.points.update(zip(times, values, strict=True))
        self.status = result.get("StatusCode") or "Complete"
        self.message = "; ".join(m.get("Value", "") for m in result.get("Messages", ()))


class _Pace:
    """Delays calls to a share of the API's quotas of calls and data points."""

    def __init__(self, share: float, is_recent: bool) -> None:
        self._seconds_per_call = 1 / CALLS_PER_SECOND / share
        self._seconds_per_point = 1 / (POINTS_PER_SECOND if is_recent else OLD_POINTS_PER_SECOND) / share
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self, points: int) -> None:
        """Waits until a call with this number of data points is within the quotas."""
        with self._lock:
            at = max(time.monotonic(), self._next)
            self._next = at + max(self._seconds_per_call, points * self._seconds_per_point)
        time.sleep(max(0.0, at - time.monotonic()))


class _Desk:
    """One task's connection to one region: client, pace, cost, and whether further requests are useful."""

    def __init__(self, place: Place, pace: _Pace) -> None:
        self.connection = Connection(place)
        self.pace = pace
        self.calls = 0
        self.metrics_requested = 0
        self.closed: str | None = None
        self.failed = 0  # consecutive batches
        self.notices: dict[str, None] = {}
        self._client: Any = None
        self._lock = threading.Lock()

    def call(self, request: dict[str, Any], points: int) -> dict[str, Any]:
        """Requests one page of at most `points` data points."""
        with self._lock:
            if self._client is None:
                # Parsing timestamps to datetime would take half of a response's CPU time.
                self._client = self.connection.client("cloudwatch", timestamp_parser=_epoch_seconds)
        self.pace.wait(points)
        answer = self._client.get_metric_data(**request)
        with self._lock:
            self.failed = 0
            self.calls += 1 + answer["ResponseMetadata"].get("RetryAttempts", 0)
            self.metrics_requested += 0 if "NextToken" in request else len(request["MetricDataQueries"])
            self.notices |= dict.fromkeys(m.get("Value") or m.get("Code", "") for m in answer.get("Messages", ()))
        return answer

    def give_up(self, error: BaseException) -> str:
        """The gap of a failed call. After a permanent refusal, or FAILED_BATCHES failures, nothing more is
        requested."""
        gap = self.connection.gap(error)
        with self._lock:
            self.failed += 1
            if is_for_good(error) or self.failed >= FAILED_BATCHES:
                self.closed = gap
        return gap


class _Reader:
    """The body of every task. It is pickled, so it holds only plain values."""

    def __init__(self, span: Span, share: float) -> None:
        self.span = span
        self.share = share

    def read(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Requests the batches of one task, some at a time, so that memory stays bounded."""
        desks: dict[Place, _Desk] = {}
        is_recent = datetime.now(UTC) - self.span.start <= RECENT - _MARGIN
        with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
            for (account, region), batches in groupby(_batches(rows), lambda b: (b[0].account, b[0].region)):
                place = Place(account, region)
                desk = desks.setdefault(place, _Desk(place, _Pace(self.share, is_recent)))
                while some := list(islice(batches, CALLS_AT_ONCE)):
                    yield from pool.map(lambda batch, desk=desk: self._get_metric_data(desk, batch), some)
        for place, desk in desks.items():
            yield _cost_row(place, desk)

    def _get_metric_data(self, desk: _Desk, batch: list[_Series]) -> pa.RecordBatch:
        answers = [_Answer() for _ in batch]
        gap = desk.closed
        for attempt in range(ROUNDS):
            pending = [i for i, answer in enumerate(answers) if not answer.is_final]
            if not pending or desk.closed:
                break
            if attempt:
                time.sleep(2 ** (attempt - 2))
            try:
                self._ask_once(desk, batch, pending, answers)
                gap = None
            except Unreadable as error:
                gap = desk.connection.gap(error)
            except Failure as error:
                gap = desk.give_up(error)
                break
        return _rows(desk.connection.place, batch, answers, self.span.period_seconds, gap)

    def _ask_once(self, desk: _Desk, batch: list[_Series], pending: list[int], answers: list[_Answer]) -> None:
        """One request and its further pages. A series may continue on the next page: its last status counts."""
        request: dict[str, Any] = {
            "MetricDataQueries": [_query(i, batch[i], self.span.period_seconds) for i in pending],
            "StartTime": self.span.start,
            "EndTime": self.span.end,
            "ScanBy": "TimestampAscending",
            "MaxDatapoints": POINTS_PER_PAGE,
        }
        by_id = {f"q{i}": answers[i] for i in pending}
        points = min(len(pending) * self.span.points, POINTS_PER_PAGE)
        while True:
            page = desk.call(request, points)
            for result in listed(page, "MetricDataResults"):
                if answer := by_id.get(result.get("Id", "")):
                    answer.learn(result)
            if not page.get("NextToken"):
                break
            if page["NextToken"] == request.get("NextToken"):
                raise MalformedAnswer("its NextToken leads to itself")
            request["NextToken"] = page["NextToken"]
        for i in pending:  # no result for the series means no data
            answers[i].status = answers[i].status or "Missing"


def _batches(rows: Iterable[pa.RecordBatch]) -> Iterator[list[_Series]]:
    series = chain.from_iterable((_Series(**row) for row in batch.to_pylist()) for batch in rows)
    return (list(batch) for _, batch in groupby(series, lambda s: (s.account, s.region, s.batch)))


def _query(position: int, series: _Series, period_seconds: int) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in series.dimensions]
    metric = {"Namespace": series.namespace, "MetricName": series.name, "Dimensions": dimensions}
    return {"Id": f"q{position}", "MetricStat": {"Metric": metric, "Period": period_seconds, "Stat": series.stat}}


def _epoch_seconds(value: Any) -> float:
    return value if isinstance(value, int | float) else parse_timestamp(value).timestamp()


def _gap_of(place: Place, series: _Series, answer: _Answer) -> str | None:
    match answer.status:
        case "Complete":
            return None
        case "PartialData":
            return f"late: {place}: CloudWatch returned incomplete data for {series.name}."
        case "Forbidden":
            return f"failed: {place}: access denied for {series.namespace} {series.name}. {answer.message}".rstrip()
        case "InternalError":
            return (
                f"failed: {place}: CloudWatch failed for {series.name} in {ROUNDS} attempts. {answer.message}".rstrip()
            )
    return f"missing: {place}: CloudWatch's response does not have {series.name}."


def _rows(
    place: Place, batch: list[_Series], answers: list[_Answer], period_seconds: int, failure: str | None
) -> pa.RecordBatch:
    """Data points of a batch; a series without data points, or with a gap, has one row without a time."""
    gaps = [
        None if a.status == "Complete" else failure or _gap_of(place, s, a) for s, a in zip(batch, answers, strict=True)
    ]
    which: list[int] = []
    times: list[float | None] = []
    values: list[float | None] = []
    for i, answer in enumerate(answers):
        which += [i] * len(answer.points)
        times += answer.points.keys()
        values += answer.points.values()
    silent = [i for i, answer in enumerate(answers) if gaps[i] or not answer.points]
    points, count = len(which), len(which) + len(silent)
    firsts = [None if i == before else i for before, i in pairwise([-1, *which])] + silent
    which += silent
    times += [None] * len(silent)
    values += [None] * len(silent)
    index = pa.array(which, pa.int32())

    def of(column: str) -> pa.Array:
        return pa.array([getattr(series, column) for series in batch], pa.string()).take(index)

    seconds = pa.array(times, pa.float64()).cast(pa.int64(), safe=False)
    resources = pa.array([f"{place} {series.resource_id}" for series in batch])
    gap = pa.array([None] * points + [gaps[i] for i in silent], pa.string())
    nothing = pa.nulls(count, pa.int32())
    columns = {
        "account": of("account"),
        "region": of("region"),
        "resource_id": of("resource_id"),
        "metric": of("metric"),
        "at": seconds.cast(pa.timestamp("s", "UTC")).cast(SCHEMA.field("at").type),
        "period_seconds": pa.array([period_seconds] * count, pa.int32()),
        "value": pa.array(values, pa.float64()),
        "calls": nothing,
        "metrics_requested": nothing,
        "resource": resources.take(pa.array(firsts, pa.int32())),
        "gap": gap,
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def _cost_row(place: Place, desk: _Desk) -> pa.RecordBatch:
    notice = "; ".join(filter(None, desk.notices))
    row = {
        "account": place.account,
        "region": place.region,
        "calls": desk.calls,
        "metrics_requested": desk.metrics_requested,
        "resource": f"{place} GetMetricData",
        # CloudWatch responded with what it could; which part is missing is unknown.
        "gap": desk.closed or (f"failed: {place}: CloudWatch reports: {notice}" if notice else None),
    }
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


class CloudWatchMetrics(PlacesSource):
    """ListMetrics as the data source `cloudwatch_metrics`: the metrics of `namespace` named in `names`
    (comma-separated).

    For metrics with unknown dimensions, such as those of file systems. One row without a name if there are none.
    """

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "cloudwatch_metrics"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "account string, region string, namespace string, name string, dimensions map<string, string>,"
            " resource string, gap string"
        )

    def read_place(self, connection: Connection) -> Iterator[list[dict[str, Any]]]:
        """Metrics of one region."""
        namespace = self.options["namespace"]
        resource = f"{connection.place} {namespace}"
        for name in self.options["names"].split(","):
            try:
                pages = (
                    connection.client("cloudwatch")
                    .get_paginator("list_metrics")
                    .paginate(Namespace=namespace, MetricName=name)
                )
                for page in pages:
                    yield [
                        {
                            "namespace": namespace,
                            "name": name,
                            "dimensions": [
                                (d.get("Name", ""), d.get("Value", "")) for d in metric.get("Dimensions", ())
                            ],
                            "resource": resource,
                        }
                        for metric in listed(page, "Metrics")
                    ] or [{"resource": resource}]
            except Failure as error:
                yield [{"resource": resource, "gap": connection.gap(error)}]
