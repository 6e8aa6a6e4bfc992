"""CloudWatch of the strict AWS endpoint: GetMetricData with limits, paging, alignment and retention; ListMetrics."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from demo.aws_wire import Caller, next_token, resume, validation_error
from demo.world import Metric

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

MAX_QUERIES, MAX_POINTS = 500, 100_800
METRIC_ID = re.compile(r"[a-z][a-zA-Z0-9_]*")
PERCENTILE = re.compile(r"p(100|\d{1,2}(\.\d{1,10})?)")
HIGH_RESOLUTION = (1, 5, 10, 20, 30)
# age of StartTime in days → the finest period that still has points
RETENTION = ((15, 60), (63, 300), (455, 3600))


def get_metric_data(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetMetricData: one page of at most MaxDatapoints points; a metric may go on in the next."""
    _check_metric_data(params)
    queries = [query for query in params["MetricDataQueries"] if query.get("ReturnData", True)]
    # `now` comes from the first page, so that no page holds points which an earlier one could not see
    position, skip, now = resume(caller, params, "InvalidNextToken") or (0, 0, endpoint.world.now().timestamp())
    left = params.get("MaxDatapoints", MAX_POINTS)
    newest_first = params.get("ScanBy", "TimestampDescending") == "TimestampDescending"
    grids = {period: _grid(params, period, now) for period in {query["MetricStat"]["Period"] for query in queries}}
    results = []
    while position < len(queries) and left:
        query = queries[position]
        times, values, status = _points(endpoint, caller, query, grids[query["MetricStat"]["Period"]], now)
        if newest_first:
            times, values = times[::-1], values[::-1]
        end = min(len(values), skip + left)
        cut = end < len(values)
        left -= end - skip
        results.append(_result(query, times[skip:end], values[skip:end], "PartialData" if cut else status))
        position, skip = (position, end) if cut else (position + 1, 0)
    page: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
    if position < len(queries):
        page["NextToken"] = next_token(caller, params, [position, skip, now])
    return page


def _check_metric_data(params: dict[str, Any]) -> None:
    queries = params["MetricDataQueries"]
    if len(queries) > MAX_QUERIES:
        raise validation_error(f"The collection MetricDataQueries must not have a size greater than {MAX_QUERIES}.")
    if not queries:
        raise validation_error("The parameter MetricDataQueries is required.")
    if params["StartTime"] == params["EndTime"]:
        raise validation_error("The parameter StartTime must not equal parameter EndTime.")
    if params["StartTime"] > params["EndTime"]:
        raise validation_error("The parameter StartTime must be less than the parameter EndTime.")
    if not 1 <= params.get("MaxDatapoints", MAX_POINTS) <= MAX_POINTS:
        raise validation_error(f"The value for parameter MaxDatapoints must be between 1 and {MAX_POINTS}.")
    seen: set[str] = set()
    for query in queries:
        _check_query(query)
        if query["Id"] in seen:
            raise validation_error(f"The values for parameter id in MetricDataQueries are not unique: {query['Id']}")
        seen.add(query["Id"])


def _check_query(query: dict[str, Any]) -> None:
    if not METRIC_ID.fullmatch(query["Id"]):
        raise validation_error(
            f"The value {query['Id']} for parameter MetricDataQueries.member.Id is not matching the expected pattern "
            "^[a-z][a-zA-Z0-9_]*$"
        )
    if ("Expression" in query) == ("MetricStat" in query):
        raise validation_error("Either Expression or MetricStat must be set in a MetricDataQuery, but not both.")
    if "Expression" in query:
        raise validation_error("This stand-in for CloudWatch knows no metric math and no Metrics Insights.")
    stat, period = query["MetricStat"]["Stat"], query["MetricStat"]["Period"]
    if period % 60 and period not in HIGH_RESOLUTION:
        raise validation_error(f"Period {period} of {query['Id']} must be 1, 5, 10, 20, 30 or a multiple of 60.")
    if stat not in (*STATISTICS, "SampleCount") and not PERCENTILE.fullmatch(stat):
        raise validation_error(
            f"The value {stat} for parameter MetricDataQueries.member.MetricStat.Stat is not supported."
        )


class Grid(NamedTuple):
    """The periods of a request: their start times, and the minutes that fill them; none where nothing is retained."""

    times: list[int]
    first_minute: int
    minutes_each: int


def _grid(params: dict[str, Any], period: int, now: float) -> Grid:
    """Periods that start in [StartTime, EndTime), aligned to the clock; none if finer than what is still retained."""
    age_days = (now - params["StartTime"]) / 86_400
    finest = next((finest for days, finest in RETENTION if age_days <= days), None)
    if finest is None or period % finest:
        return Grid([], 0, 1)
    start = math.floor(params["StartTime"] / finest) * finest
    first = math.ceil(start / period) * period
    return Grid(list(range(first, math.ceil(params["EndTime"]), period)), first // 60, period // 60)


# statistic → over periods that are complete, and over periods with minutes missing
STATISTICS: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "Average": (np.mean, np.nanmean),
    "Sum": (np.sum, np.nansum),
    "Minimum": (np.min, np.nanmin),
    "Maximum": (np.max, np.nanmax),
}


def _points(
    endpoint: AwsEndpoint, caller: Caller, query: dict[str, Any], grid: Grid, now: float
) -> tuple[list[int], list[float], str]:
    """Times, values and status of one metric, oldest first."""
    stat = query["MetricStat"]
    dimensions = frozenset((each["Name"], each["Value"]) for each in stat["Metric"].get("Dimensions", ()))
    metric = Metric(stat["Metric"].get("Namespace", ""), stat["Metric"].get("MetricName", ""), dimensions)
    fault = endpoint.faults.take_for(metric, "internal_error", "partial", "forbidden")
    if query.get("AccountId", caller.account) != caller.account or (fault and fault.kind == "forbidden"):
        return [], [], "Forbidden"
    if fault and fault.kind == "internal_error":
        return [], [], "InternalError"
    count = len(grid.times) * grid.minutes_each
    # Nothing is made for minutes to come; the rest of their periods stays empty.
    known = min(count, int(now // 60) - grid.first_minute)
    found = endpoint.world.read(caller.account, caller.region, metric, grid.first_minute, known) if known > 0 else None
    if found is None or stat.get("Unit", found[0]) != found[0]:
        return [], [], "Complete"
    samples = np.full(count, np.nan)
    samples[:known] = _settled(found, grid.first_minute, now, endpoint.settle_delay_seconds)
    samples = samples.reshape(-1, grid.minutes_each)
    filled = ~np.isnan(samples).all(axis=1)
    values = _statistic(stat["Stat"], samples[filled]).tolist()
    times = [at for at, has in zip(grid.times, filled.tolist(), strict=True) if has]
    if fault:  # partial: the newest half is not there yet
        return times[: len(times) // 2], values[: len(values) // 2], "PartialData"
    return times, values, "Complete"


def _settled(found: tuple[str, np.ndarray], first_minute: int, now: float, delay_seconds: float) -> np.ndarray:
    """Hides what is younger than half the delay, and counts only half of what is younger than the delay."""
    unit, figures = found
    if not delay_seconds:
        return figures
    age = now - (first_minute + 1 + np.arange(len(figures))) * 60
    late = np.where((age < delay_seconds) & (unit in ("Count", "Bytes", "Seconds")), figures / 2, figures)
    return np.where(age < delay_seconds / 2, np.nan, late)


def _statistic(stat: str, samples: np.ndarray) -> np.ndarray:
    """The statistic of each row; every row has a sample, and every minute is one sample."""
    there = ~np.isnan(samples)
    if stat == "SampleCount":
        return np.count_nonzero(there, axis=1).astype(float)
    if stat in STATISTICS:
        complete, gappy = STATISTICS[stat]
        return (complete if there.all() else gappy)(samples, axis=1)
    return np.nanpercentile(samples, float(stat[1:]), axis=1) if len(samples) else np.empty(0)


MESSAGES = {
    "InternalError": {"Code": "InternalError", "Value": "An internal error occurred. Retry the request."},
    "Forbidden": {"Code": "Forbidden", "Value": "The caller may not read this account's metrics."},
}


def _result(query: dict[str, Any], times: list[int], values: list[float], status: str) -> dict[str, Any]:
    label = query.get("Label") or query["MetricStat"]["Metric"].get("MetricName", "")
    result = {"Id": query["Id"], "Label": label, "Timestamps": times, "Values": values, "StatusCode": status}
    return result | {"Messages": [MESSAGES[status]]} if status in MESSAGES else result


def list_metrics(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """ListMetrics: 500 a page; a dimension without a value matches any."""
    (skip,) = resume(caller, params, "InvalidNextToken") or (0,)
    wanted = [(each["Name"], each.get("Value")) for each in params.get("Dimensions", ())]
    found = [
        {
            "Namespace": metric.namespace,
            "MetricName": metric.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in sorted(metric.dimensions)],
        }
        for metric in endpoint.world.metrics(caller.account, caller.region)
        if metric.namespace == params.get("Namespace", metric.namespace)
        and metric.name == params.get("MetricName", metric.name)
        and all(any(n == name and value in (None, v) for n, v in metric.dimensions) for name, value in wanted)
    ]
    page: dict[str, Any] = {"Metrics": found[skip : skip + 500]}
    if len(found) > skip + 500:
        page["NextToken"] = next_token(caller, params, [skip + 500])
    return page
