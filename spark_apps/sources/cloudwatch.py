"""CloudWatch: `read_metrics` asks GetMetricData for a frame of series, `CloudWatchMetrics` lists what exists.

Series are numbered by account and region and asked in calls of 500, the most that the API takes, whole batches to each
task; so a fleet costs ⌈series / 500⌉ calls for each page of 100,800 points, however many tasks there are. All tasks
together keep below the API's rates of calls and points (CloudWatch User Guide, "CloudWatch service quotas"). An answer
is long: one row per series and point, one without a time for a series without points (it was answered: that is not a
gap), and one per task and place that says what it cost.

A metric's InternalError and PartialData are asked again; what stays incomplete keeps the points that came, and a gap.
Permissions: cloudwatch:GetMetricData, cloudwatch:ListMetrics. Cost: $0.01 per 1,000 metrics asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

import pyarrow as pa
from botocore.utils import parse_timestamp
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from streamwarden.base.errors import StreamwardenError

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
CALLS_PER_SECOND = 40  # of the 50 that an account has in a region: others ask too
# What AWS estimates of a call, (end - start) / period of each series, be there points or not: of the 180,000 a second
# that an account may ask of the last three hours in a region, and of the 90,000 of what is older.
POINTS_PER_SECOND, OLD_POINTS_PER_SECOND = 144_000, 72_000
RECENT = timedelta(hours=3)
CALLS_AT_ONCE = 4  # of one task: an answer takes some 100 ms, most of it waiting
FAILED_BATCHES = 4  # so many in a row, each after all its attempts, aren't the fault of one batch
ROUNDS = 4
MINUTE = 60
# How long CloudWatch keeps points of a period.
RETENTION = ((timedelta(days=15), MINUTE), (timedelta(days=63), 300), (timedelta(days=455), 3600))
_MARGIN = timedelta(minutes=30)  # a run that lasts must not lose its points half-way

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
        "metrics_asked": pa.int32(),
        "resource": pa.string(),
        "gap": pa.string(),
    }
)


@dataclass(frozen=True)
class Span:
    """What is asked: periods that start in [start, end)."""

    start: datetime
    end: datetime
    period_seconds: int

    @classmethod
    def of(cls, start: datetime, end: datetime, now: datetime, period_seconds: int | None = None) -> Span:
        """The finest period that CloudWatch still keeps, or the one asked for, with both ends on its grid.

        What is older than all it keeps is cut off; a span that has nothing left is an error.
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
        """Of a series, at most."""
        return int((self.end - self.start).total_seconds()) // self.period_seconds


def _floor(moment: datetime, period_seconds: int) -> datetime:
    return datetime.fromtimestamp(moment.timestamp() // period_seconds * period_seconds, UTC)


def read_metrics(series: DataFrame, span: Span) -> DataFrame:
    """All points of the series in the span, by the module's rules. `series` has SERIES_COLUMNS, unique or not."""
    by_place = Window.partitionBy("account", "region").orderBy("resource_id", "metric")
    slices = series.sparkSession.sparkContext.defaultParallelism
    batch = f.floor((f.row_number().over(by_place) - 1) / SERIES_PER_CALL)
    return (
        series.select(*SERIES_COLUMNS, batch.cast("int").alias("batch"))
        .repartitionById(slices, f.pmod(f.hash("account", "region") + f.col("batch"), f.lit(slices)))
        .sortWithinPartitions("account", "region", "batch")
        .mapInArrow(_Reader(span, 1 / slices).read, from_arrow_schema(SCHEMA))
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
    """What is known of one series: its points by time, and whether that is all."""

    points: dict[float, float] = field(default_factory=dict)
    status: str | None = None
    message: str = ""

    @property
    def is_final(self) -> bool:
        return self.status in ("Complete", "Forbidden")

    def learn(self, result: dict[str, Any]) -> None:
        """Takes what a page says of it; members that are left out are empty, and a status only matters if it's bad."""
        times, values = result.get("Timestamps", ()), result.get("Values", ())
        if len(times) != len(values):
            raise MalformedAnswer(f"it has {len(times)} times for {len(values)} values")
        self.points.update(zip(times, values, strict=True))
        self.status = result.get("StatusCode") or "Complete"
        self.message = "; ".join(m.get("Value", "") for m in result.get("Messages", ()))


class _Pace:
    """Lets calls through no faster than a share of what the API takes, of calls and of points."""

    def __init__(self, share: float, is_recent: bool) -> None:
        self._seconds_per_call = 1 / CALLS_PER_SECOND / share
        self._seconds_per_point = 1 / (POINTS_PER_SECOND if is_recent else OLD_POINTS_PER_SECOND) / share
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self, points: int) -> None:
        with self._lock:
            at = max(time.monotonic(), self._next)
            self._next = at + max(self._seconds_per_call, points * self._seconds_per_point)
        time.sleep(max(0.0, at - time.monotonic()))


class _Desk:
    """One task's dealings with one place: its client, its pace, what it cost, and whether asking has any use."""

    def __init__(self, place: Place, pace: _Pace) -> None:
        self.connection = Connection(place)
        self.pace = pace
        self.calls = 0
        self.metrics_asked = 0
        self.closed: str | None = None
        self.failed = 0  # batches in a row
        self.notices: dict[str, None] = {}
        self._client: Any = None
        self._lock = threading.Lock()

    def call(self, request: dict[str, Any], points: int) -> dict[str, Any]:
        """Asks for a page of at most so many points."""
        with self._lock:
            if self._client is None:
                # Half of the CPU of an answer would go into making datetimes of its timestamps.
                self._client = self.connection.client("cloudwatch", timestamp_parser=_epoch_seconds)
        self.pace.wait(points)
        answer = self._client.get_metric_data(**request)
        with self._lock:
            self.failed = 0
            self.calls += 1 + answer["ResponseMetadata"].get("RetryAttempts", 0)
            self.metrics_asked += 0 if "NextToken" in request else len(request["MetricDataQueries"])
            self.notices |= dict.fromkeys(m.get("Value") or m.get("Code", "") for m in answer.get("Messages", ()))
        return answer

    def give_up(self, error: BaseException) -> str:
        """The gap of a call that failed. After a refusal for good, or FAILED_BATCHES, nothing more is asked in vain."""
        gap = self.connection.gap(error)
        with self._lock:
            self.failed += 1
            if is_for_good(error) or self.failed >= FAILED_BATCHES:
                self.closed = gap
        return gap


class _Reader:
    """The body of every task. It is pickled, so it holds figures only."""

    def __init__(self, span: Span, share: float) -> None:
        self.span = span
        self.share = share

    def read(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Asks for the batches of one task, some at a time, so that memory stays bounded."""
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
        """One request and its further pages. A series may go on in the next page: its last status counts."""
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
        for i in pending:  # nothing was said of it, so there is nothing
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
            return f"late: {place}: CloudWatch gave only a part of {series.name}."
        case "Forbidden":
            return f"refused: {place} doesn't allow {series.namespace} {series.name}. {answer.message}".rstrip()
        case "InternalError":
            return (
                f"refused: {place}: CloudWatch failed for {series.name} in {ROUNDS} attempts. {answer.message}".rstrip()
            )
    return f"missing: {place}: CloudWatch's answer doesn't name {series.name}."


def _rows(
    place: Place, batch: list[_Series], answers: list[_Answer], period_seconds: int, failure: str | None
) -> pa.RecordBatch:
    """The points of a batch; a series without points, or with a gap, has a row without a time."""
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
    which += silent
    times += [None] * len(silent)
    values += [None] * len(silent)
    index = pa.array(which, pa.int32())

    def of(column: str) -> pa.Array:
        return pa.array([getattr(series, column) for series in batch], pa.string()).take(index)

    seconds = pa.array(times, pa.float64()).cast(pa.int64(), safe=False)
    resource = pa.array([f"{place} {series.resource_id}" for series in batch]).take(index)
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
        "metrics_asked": nothing,
        "resource": resource,
        "gap": gap,
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def _cost_row(place: Place, desk: _Desk) -> pa.RecordBatch:
    notice = "; ".join(filter(None, desk.notices))
    row = {
        "account": place.account,
        "region": place.region,
        "calls": desk.calls,
        "metrics_asked": desk.metrics_asked,
        "resource": f"{place} GetMetricData",
        # As much as possible was still answered, and nobody can tell what wasn't.
        "gap": desk.closed or (f"refused: {place}: CloudWatch says: {notice}" if notice else None),
    }
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


class CloudWatchMetrics(PlacesSource):
    """ListMetrics as the data source `cloudwatch_metrics`: the metrics of `namespace` named in `names` (by commas).

    For metrics whose dimensions can't be known, like a file system's. One row without a name where there are none.
    """

    @classmethod
    def name(cls) -> str:
        return "cloudwatch_metrics"

    def schema(self) -> str:
        return (
            "account string, region string, namespace string, name string, dimensions map<string, string>,"
            " resource string, gap string"
        )

    def read_place(self, connection: Connection) -> Iterator[list[dict[str, Any]]]:
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
