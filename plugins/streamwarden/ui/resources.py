"""Data of the page of a resource: identity, findings, timeline, metrics, dependencies, tickets, and external links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.charts.changes import changes_of
from streamwarden.detectors import Detector, load_detectors
from streamwarden.detectors.finding import fingerprint_of
from streamwarden.detectors.resources import Resource, resource_key
from streamwarden.store.queries import Row
from streamwarden.ui.charts import Form, Theme, chart_content
from streamwarden.ui.links import KIND_LABELS, UnknownError, display_name, external_links, key_columns
from streamwarden.ui.pages import CLOSE_LABELS, MAX_LINES, STALE_AFTER, STATUS_LABELS, _fetch, _warehouse

if TYPE_CHECKING:
    from streamwarden.charts.timeline import Timeline

RANGES = {"24h": 24, "7d": 168, "35d": 840}
"""Ranges of the timeline, in hours."""
UPSTREAM, DOWNSTREAM = "upstream", "downstream"
MAX_NEIGHBORS = 8
THRESHOLDS = {
    "log_flush_slow": ("log_flush_p95_ms", "Limit of its strictest topic", "limit_ms"),
    "consumer_group_lagging": ("lag_seconds_max", "Late", "late_seconds"),
}
"""Detector → metric of the timeline, name of its limit, and the metric or parameter of an evaluation with its value."""


def resource(kind: str, rest: str, asked_range: str = "24h") -> Row:
    """The page of one resource.

    Args:
        rest: its key without the kind, e.g. `orders-prod/3`.
        asked_range: one of `RANGES`.

    Raises:
        UnknownError: there is no such kind, or no such resource.
    """
    from streamwarden.charts.timeline import timeline_text  # imports altair

    columns = key_columns(kind, rest)
    key = resource_key(kind, *columns.values())
    with _warehouse() as (connection, config):
        detectors, fingerprints = _detectors_of(kind, columns)
        listed = _fetch(connection, "resource", kind=kind, key=key)
        found = _fetch(connection, "resource_findings", fingerprints=fingerprints)
        tickets = _fetch(connection, "resource_tickets", fingerprints=fingerprints, most=MAX_LINES)
        if not listed and not found and not tickets:
            raise UnknownError(f"There is no {KIND_LABELS[kind][0]} with the key {key[:200]}. Search for its name.")
        data = _timeline(connection, kind, columns, detectors, fingerprints, found, asked_range)
        newest = data.newest
        neighbors = _neighbors(connection, key)
        not_evaluated = _not_evaluated(connection, config, detectors, found)
        measured = next((row for row in reversed(data.known) if _metrics(row)), None)
        return {
            "place": "search",
            "kind": kind,
            "kind_label": KIND_LABELS[kind][0],
            "key": key,
            "columns": columns,
            "name": listed[0]["name"] if listed else display_name(key),
            "identity": listed[0] if listed else _identity_of(found),
            "is_listed": bool(listed),
            "is_stale": bool(listed) and newest - listed[0]["seen_hour"] >= STALE_AFTER,
            "newest": newest,
            "firing": [row for row in found if row["status"] == "firing" and row["is_newest"]],
            "healthy": sum(row["status"] == "ok" and row["is_newest"] for row in found),
            "not_evaluated": not_evaluated,
            "missing": sum(not row["is_not_applicable"] for row in not_evaluated),
            "tickets": tickets,
            "neighbors": neighbors,
            "clusters": sorted({parts[1] for parts in _brokers(neighbors)}) if "cluster" not in columns else [],
            "links": external_links(config, kind, columns),
            "range": asked_range,
            "ranges": RANGES,
            "close_labels": CLOSE_LABELS,
            "status_labels": STATUS_LABELS,
            "timeline_alt": timeline_text(data),
            "changes": data.changes[::-1][:MAX_LINES],
            "metrics_hour": measured["hour"] if measured else None,
            "metric_values": _metrics(measured) if measured else {},
            "is_measured_now": measured is not None and measured["hour"] == newest,
        }


def timeline(kind: str, rest: str, asked_range: str, form: Form, theme: Theme) -> bytes:
    """The timeline of a resource, as SVG or as the JSON of its specification. Arguments are those of `resource`.

    Raises:
        UnknownError: there is no such kind, or there is nothing to draw.
    """
    from streamwarden.charts.timeline import timeline_chart  # imports altair

    columns = key_columns(kind, rest)
    with _warehouse() as (connection, _):
        detectors, fingerprints = _detectors_of(kind, columns)
        found = _fetch(connection, "resource_findings", fingerprints=fingerprints)
        data = _timeline(connection, kind, columns, detectors, fingerprints, found, asked_range)
    chart = timeline_chart(data, is_interactive=form == "json")
    if chart is None:
        raise UnknownError("This resource has no findings, changes, or metrics in this range.")
    return chart_content(chart, form, theme)


def _detectors_of(kind: str, columns: dict[str, str]) -> tuple[dict[str, Detector], list[str]]:
    """The detectors of a kind by their ids, and the fingerprints of their findings on one resource."""
    detectors = {id: one for id, one in load_detectors().items() if kind in one.kinds}
    key = resource_key(kind, *columns.values())
    return detectors, [fingerprint_of(id, Resource(kind, columns, key)) for id in detectors]


def _timeline(
    connection: sa.Connection, kind: str, columns: dict[str, str], detectors: Mapping[str, Detector],
    fingerprints: Sequence[str], found: Sequence[Row], asked_range: str,
) -> Timeline:  # fmt: skip
    """Findings, changes, and metrics of a range up to the newest gathered hour."""
    from streamwarden.charts.timeline import Timeline  # imports altair

    newest = _fetch(connection, "newest_gathered")[0]["hour"] or start_of_hour(datetime.now(UTC))
    hours = RANGES[asked_range]
    start = newest - (hours - 1) * HOUR
    periods = _fetch(connection, "resource_periods", fingerprints=fingerprints, start=start, finish=newest)
    # The hour before shows what changed in the first one.
    known = [_plain(row) for row in _fetch(connection, f"hours/{kind}", start=start - HOUR, finish=newest, **columns)]
    changes = [row for row in changes_of(known) if row["hour"] >= start]
    titles = {id: one.title for id, one in detectors.items()}
    return Timeline(newest, hours, periods, titles, known[1:], changes, _thresholds(found))


def _thresholds(found: Sequence[Row]) -> dict[str, tuple[str, float]]:
    """Metric → name and value of the limit that a detector applied in its newest evaluation."""
    thresholds = {}
    for row in found:
        metric, name, limit = THRESHOLDS.get(row["detector"], ("", "", ""))
        value = (row["metrics"] or {}).get(limit, (row["params"] or {}).get(limit))
        if isinstance(value, int | float):
            thresholds[metric] = (name, float(value))
    return thresholds


def _identity_of(found: Sequence[Row]) -> Row:
    """Owner and application of a resource that is no longer listed, from its newest evaluation."""
    newest = max(found, key=lambda row: row["hour"], default=None)
    empty: Row = {"cluster": None, "application": None, "owner": None, "seen_hour": None}
    return empty | ({"owner": newest["owner"], "application": newest["application"]} if newest else {})


def _not_evaluated(
    connection: sa.Connection, config: Config, detectors: Mapping[str, Detector], found: Sequence[Row]
) -> list[Row]:
    """Detectors of the kind that did not evaluate the resource in their newest hour: title and message."""
    enabled = load_detectors(config=config)
    blocked = _fetch(connection, "resource_blocked", detectors=[id for id in detectors if id in enabled])
    nothing: Row = {"fingerprint": None, "is_not_applicable": False}
    rows = [row | nothing for row in blocked]
    unknown = [row for row in found if row["status"] == "unknown" and row["is_newest"]]
    rows += [row for row in unknown if row["detector"] not in {one["detector"] for one in blocked}]
    rows += [
        {"detector": id, "title": one.title, "message": "Disabled in the config."} | nothing
        for id, one in detectors.items() if id not in enabled
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["is_not_applicable"], row["title"]))


def _neighbors(connection: sa.Connection, key: str) -> Row:
    """Upstream and downstream resources, by kind: label, total, those firing, and the worst ones."""
    sides: dict[str, dict[str, Row]] = {UPSTREAM: {}, DOWNSTREAM: {}}
    for row in _fetch(connection, "resource_neighbors", key=key, most=MAX_NEIGHBORS):
        one, many = KIND_LABELS.get(row["kind"], (row["kind"], row["kind"]))
        label = one if row["total"] == 1 else many
        empty: Row = {"label": label, "total": row["total"], "firing": row["total_firing"], "rows": []}
        group = sides[row["direction"]].setdefault(row["kind"], empty)
        group["rows"].append({"key": row["key"], "name": display_name(row["key"]), "severity": row["severity"]})
    return {side: list(groups.values()) for side, groups in sides.items()}


def _brokers(neighbors: Row) -> list[list[str]]:
    """Kind, cluster, and id of the brokers that a volume or instance can affect."""
    keys = [row["key"] for group in neighbors[DOWNSTREAM] for row in group["rows"]]
    return [key.replace("/", ":").split(":") for key in keys if key.startswith("broker:")]


def _metrics(row: Row) -> Row:
    return {column: value for column, value in row.items() if column not in ("hour", "state") and value is not None}


def _plain(row: Row) -> Row:
    """Sums of integers are exact numbers in PostgreSQL; pages need plain ones."""
    return {column: float(value) if isinstance(value, Decimal) else value for column, value in row.items()}
