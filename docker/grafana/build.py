"""Builds docker/grafana/dashboards/*.json: `PYTHONPATH=docker python -m grafana.build`. Commit the result.

The SQL of each panel is in sql/grafana/. Its parameters become Grafana's: `:start` and `:finish` the time range, any
other the variable of that name as a quoted string.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from streamwarden.base.paths import SQL

FOLDER = Path(__file__).parent / "dashboards"
SOURCE = models.DataSourceRef("grafana-postgresql-datasource", "streamwarden")
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
WIDTH = 24
_TIME = {"start": "$__timeFrom()", "finish": "$__timeTo()"}


@dataclass(frozen=True)
class Chart:
    """A panel. `kind`: time (lines), bars, table, or stat. `unit`: Grafana's id of the unit."""

    title: str
    query: str
    kind: str = "time"
    unit: str = "short"
    width: int = 12
    height: int = 8


@dataclass(frozen=True)
class Board:
    """A dashboard. `variables`: name and query of each."""

    uid: str
    title: str
    description: str
    charts: Sequence[Chart]
    variables: tuple[tuple[str, str], ...] = ()
    since: str = "now-2d"


NAMES = {
    "iops_mean": "IOPS (mean)",
    "iops_p99": "IOPS (p99)",
    "baseline_iops": "Baseline IOPS",
    "burst_iops": "Burst IOPS",
    "bytes_per_second_mean": "Throughput (mean)",
    "bytes_per_second_p99": "Throughput (p99)",
    "baseline_bytes_per_second": "Baseline throughput",
    "burst_bytes_per_second": "Burst throughput",
    "burst_balance_min_percent": "Burst balance (minimum)",
    "minutes_throttled": "Minutes throttled",
    "queue_length_mean": "Queue length (mean)",
    "read_latency_ms": "Read latency (ms)",
    "write_latency_ms": "Write latency (ms)",
}
"""Legends of columns that are lines of their own."""
FINDINGS = {"kind": "table", "width": WIDTH}
BOARDS = (
    Board(
        "streamwarden-fleet", "Streamwarden: fleet", "Open findings, consumer lag, and freshness of the data.",
        (
            Chart("Open findings", "open_by_severity", "stat", width=8, height=4),
            Chart("Age of the newest complete hour", "data_age", "stat", "s", 4, 4),
            Chart("Firing findings", "firing_by_severity", "bars", width=12),
            Chart("Open findings, worst first", "open_findings", **FINDINGS),
            Chart("Largest consumer lag", "worst_lag", "table"),
            Chart("Sources", "sources", "table"),
        ),
    ),
    Board(
        "streamwarden-cluster", "Streamwarden: cluster", "Brokers and consumer groups of a Kafka cluster.",
        (
            Chart("Open findings of $cluster", "cluster_findings", **FINDINGS),
            Chart("Produce latency (p99)", "broker_produce_p99", unit="ms"),
            Chart("Log flush time (p95)", "broker_log_flush_p95", unit="ms"),
            Chart("Bytes produced", "broker_bytes_in", unit="Bps"),
            Chart("Bytes fetched by consumers", "broker_bytes_out", unit="Bps"),
            Chart("Under-replicated partitions (maximum)", "broker_under_replicated"),
            Chart("Request handler idle ratio (minimum)", "broker_handler_idle", unit="percentunit"),
            Chart("Consumer lag, ten largest", "group_lag_seconds", unit="s", width=WIDTH),
        ),
        (("cluster", "clusters"),),
    ),
    Board(
        "streamwarden-application", "Streamwarden: application", "Memory, CPU, and throughput of an application.",
        (
            Chart("Open findings of $application", "application_findings", **FINDINGS),
            Chart("Heap after garbage collection", "app_heap", unit="bytes"),
            Chart("Resident memory", "app_resident", unit="bytes"),
            Chart("Records processed", "app_records", unit="cps"),
            Chart("CPU, share of the host", "app_cpu", unit="percentunit"),
            Chart("Time in garbage collection", "app_gc", unit="percentunit"),
            Chart("Records to restore", "app_restore"),
        ),
        (("cluster", "clusters"), ("application", "applications")),
    ),
    Board(
        "streamwarden-volume", "Streamwarden: volume", "Load, limits, and burst credits of an EBS volume.",
        (
            Chart("Open findings of $volume", "volume_findings", **FINDINGS),
            Chart("IOPS and limits", "volume_iops", unit="iops"),
            Chart("Throughput and limits", "volume_throughput", unit="Bps"),
            Chart("Burst balance", "volume_burst_balance", unit="percent"),
            Chart("Minutes throttled", "volume_throttled", "bars"),
            Chart("Queue length and latency", "volume_queue"),
            Chart("Changes of type, size, and attachment", "volume_changes", "table"),
        ),
        (("volume", "volume_ids"),),
        since="now-7d",
    ),
    Board(
        "streamwarden-incidents", "Streamwarden: incidents", "Incidents, time to resolve, and false positives.",
        (
            Chart("Open incidents", "open_incidents", **FINDINGS),
            Chart("Incidents by day", "incidents_opened", "bars"),
            Chart("Time to resolve (median)", "time_to_resolve", unit="s"),
            Chart("False positives", "false_positives", "table"),
            Chart("Failed deliveries to trackers", "failed_deliveries", "table"),
        ),
        since="now-35d",
    ),
)  # fmt: skip


def grafana_sql(query: str) -> str:
    """The SQL of a named query with Grafana's macros and variables."""
    text = (SQL / "grafana" / f"{query}.sql").read_text().strip()
    return PARAMETER.sub(lambda found: _TIME.get(found[1], f"${{{found[1]}:sqlstring}}"), text)


class _Query(variants.Dataquery):
    """A query of the PostgreSQL data source, for which the SDK has no class."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart

    def to_json(self) -> dict[str, Any]:
        """The target of the panel."""
        is_series = self._chart.kind in ("time", "bars")
        return {
            "refId": "A",
            "datasource": SOURCE,
            "editorMode": "code",
            "format": "time_series" if is_series else "table",
            "rawQuery": True,
            "rawSql": grafana_sql(self._chart.query),
        }

    def build(self) -> _Query:
        """Itself: the SDK takes builders."""
        return self


def _panel(chart: Chart, x: int, y: int) -> Any:
    panel: Any = {"table": table.Panel, "stat": stat.Panel}.get(chart.kind, timeseries.Panel)()
    if chart.kind == "bars":
        panel = panel.draw_style("bars").fill_opacity(60)
    if chart.kind in ("time", "bars"):
        for column in re.findall(r"\b(\w+)(?=,?\n)", grafana_sql(chart.query)):
            if column in NAMES:
                panel = panel.override_by_name(column, [models.DynamicConfigValue("displayName", NAMES[column])])
    position = models.GridPos(chart.height, chart.width, x, y)
    return panel.title(chart.title).unit(chart.unit).datasource(SOURCE).grid_pos(position).with_target(_Query(chart))


def _placed(charts: Sequence[Chart]) -> Iterator[Any]:
    """Panels from left to right, in lines of 24 columns."""
    x = y = height = 0
    for chart in charts:
        if x + chart.width > WIDTH:
            x, y, height = 0, y + height, 0
        yield _panel(chart, x, y)
        x, height = x + chart.width, max(height, chart.height)


def as_json(board: Board) -> str:
    """A dashboard as JSON, in the format that Grafana imports."""
    built = dashboard.Dashboard(board.title).uid(board.uid).description(board.description).tags(["streamwarden"])
    built = built.readonly().time(board.since, "now").timezone("utc").refresh("15m")
    for name, query in board.variables:
        variable = dashboard.QueryVariable(name).label(name.capitalize()).datasource(SOURCE)
        variable = variable.query(grafana_sql(query)).refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        built = built.with_variable(variable)
    for panel in _placed(board.charts):
        built = built.with_panel(panel)
    document = _without_null(json.loads(json.dumps(built.build(), cls=JSONEncoder)))
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _without_null(value: Any) -> Any:
    """The value without keys that are null, for which Grafana then uses its defaults."""
    if isinstance(value, dict):
        return {key: _without_null(part) for key, part in value.items() if part is not None}
    return [_without_null(part) for part in value] if isinstance(value, list) else value


def main() -> None:
    """Writes the dashboards."""
    FOLDER.mkdir(exist_ok=True)
    for board in BOARDS:
        (FOLDER / f"{board.uid.removeprefix('streamwarden-')}.json").write_text(as_json(board))
    sys.stdout.write(f"{len(BOARDS)} dashboards in {FOLDER.name}\n")


if __name__ == "__main__":
    main()
