"""The timeline of a resource as a Vega-Lite specification: findings as bars, changes as markers, and metrics with their
limits, on one time axis with the newest hour shaded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import altair as alt

from streamwarden.base.hours import HOUR
from streamwarden.charts.draw import Chart
from streamwarden.charts.header import LIMIT, scaled, shortened
from streamwarden.charts.specification import (
    AXIS_PIXELS,
    TIMES,
    WIDTH,
    Change,
    change_layers,
    limit_layers,
    milliseconds,
    rounded,
    shade,
)  # fmt: skip
from streamwarden.charts.style import COLORS, INK, LIMIT_COLOR, UNKNOWN, Spec, config
from streamwarden.rendering.readable import clean, counted, labels, moment, readable, span, unit_of
from streamwarden.store.queries import Row

MAX_POINTS, MAX_BARS, MAX_LANES, MAX_METRICS, MAX_CHANGES, MAX_LINES, MAX_MESSAGE = 168, 100, 12, 3, 100, 20, 120
LANE_PIXELS, BAR_BELOW, METRIC_PIXELS, MARGIN = 38, 8, 90, 66
"""Heights of a lane, from its middle to its bars, and of a metric; width outside of the panels, for axis labels."""
STATUSES = {
    "critical": (LIMIT_COLOR, 14), "warning": ("#e69f00", 14), "info": (COLORS[0], 14), "not evaluated": (UNKNOWN, 9),
    "healthy": (COLORS[2], 5),
}  # fmt: skip
"""Color and height of a bar; the worst first."""
LIMITS = {
    "iops_mean": "baseline_iops", "bytes_per_second_mean": "baseline_bytes_per_second",
    "open_file_descriptors": "max_file_descriptors", "heap_used_bytes": "heap_max_bytes",
    "resident_bytes": "memory_limit_bytes",
}  # fmt: skip
"""Metric → the metric of the same hour that limits it."""
_UNIT_TEXTS = {"bytes_per_second": "bytes/s", "ratio": "percent", "iops": "IOPS", "mib_s": "MiB/s", "gib": "GiB"}
_HALF_HOUR = timedelta(minutes=30)


@dataclass(frozen=True)
class Timeline:
    """What the timeline of a resource is drawn from."""

    newest: datetime
    """The evaluated hour: the last one of the range."""
    hours: int
    """Length of the range."""
    periods: Sequence[Row]
    """Rows of `pages/resource_periods`."""
    titles: Mapping[str, str]
    """Detector → title."""
    known: Sequence[Row]
    """Rows of `pages/hours/<kind>` in the range."""
    changes: Sequence[Row]
    """As `changes_of` returns them."""
    thresholds: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Metric → name and value of the limit that a detector applied."""

    @property
    def start(self) -> datetime:
        """Start of its first hour."""
        return self.newest - (self.hours - 1) * HOUR

    @property
    def finish(self) -> datetime:
        """End of its last hour."""
        return self.newest + HOUR


class _Rows(dict[str, list[Spec]]):
    """The rows of a specification by name: altair copies and validates inline rows at each step."""

    def add(self, rows: list[Spec]) -> Any:
        """A reference to the rows."""
        name = f"rows{len(self)}"
        self[name] = rows
        return alt.NamedData(name=name)


@dataclass(frozen=True)
class _Lane:
    title: str
    bars: list[Row]


def timeline_chart(data: Timeline, *, is_interactive: bool = False) -> Chart | None:
    """The chart of a timeline, with its alternative text; None: there is nothing to draw.

    Args:
        is_interactive: whether the specification is for pages, with the values at the pointer, and zoom.
    """
    alt.data_transformers.disable_max_rows()
    lanes, columns = _lanes(data), _columns(data.known)
    changes = [Change(max(row["at"], data.start), row["text"]) for row in data.changes[-MAX_CHANGES:]]
    if not (lanes or columns or changes):
        return None
    drawn, named = ([None] if lanes or changes else []) + columns, labels(columns)
    panels: list[Any] = []
    store = _Rows()
    for number, column in enumerate(drawn):
        x = _time_axis(data, bool(changes), is_first=number == 0, is_last=number == len(drawn) - 1)
        if column is None:
            panels.append(_findings(data, lanes, changes, x, store))
        else:
            panels.append(_metric(data, column, named[column], changes, x, store, is_interactive=is_interactive))
    if is_interactive:
        zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
        panels = [panel.add_params(zoom) for panel in panels]
    chart = alt.vconcat(*panels, spacing=14).resolve_scale(x="shared", color="independent", y="independent")
    text = timeline_text(data)
    spec: Spec = (
        chart.properties(usermeta={"zoom": is_interactive, "margin": MARGIN})
        .configure(**config())
        .to_dict(validate=False)
    )
    return Chart(spec | {"description": text, "datasets": dict(store)}, text)


def _time_axis(data: Timeline, has_changes: bool, *, is_first: bool, is_last: bool) -> alt.X:
    """Labels above the first panel and below the last one; all have the same grid."""
    parts = ["UTC", "shaded: evaluated hour", *(["▼ change"] * has_changes)]
    axis = alt.Axis(
        title="; ".join(parts) if is_last else None, orient="top" if is_first and not is_last else "bottom",
        labels=is_first or is_last, labelExpr=TIMES, tickCount=alt.ExprRef("width / 80"), labelOverlap=True, grid=True,
    )  # fmt: skip
    domain = [milliseconds(data.start), milliseconds(data.finish)]
    return alt.X("t:T", scale=alt.Scale(type="utc", nice=False, domain=domain), axis=axis)


# --- findings and changes ---


def _lanes(data: Timeline) -> list[_Lane]:
    """A lane for each detector: firing findings first, then those that were not evaluated, then healthy ones."""
    by_detector: dict[str, list[Row]] = {}
    for row in data.periods:
        if row["status"] != "not_applicable":
            by_detector.setdefault(row["detector"], []).append(_bar(data, row))
    lanes = [_Lane(clean(data.titles.get(id, id)), _merged(data, bars)) for id, bars in by_detector.items()]
    rank = list(STATUSES)
    return sorted(lanes, key=lambda lane: (min(rank.index(bar["k"]) for bar in lane.bars), lane.title))


def _bar(data: Timeline, row: Row) -> Row:
    status = {"firing": row["severity"] or "info", "ok": "healthy", "unknown": "not evaluated"}[row["status"]]
    begin, end = max(row["since"], data.start), min(row["last_hour"] + HOUR, data.finish)
    text = clean(row["message"] or "") if status != "healthy" else ""
    shown = text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"
    return {"begin": begin, "finish": end, "k": status, "message": shown}


def _merged(data: Timeline, bars: list[Row]) -> list[Row]:
    """At most about `MAX_BARS` bars: of more, each step of time has the worst status in it, without messages."""
    if len(bars) <= MAX_BARS:
        return bars
    step, rank = -(-data.hours // MAX_BARS) * HOUR, list(STATUSES)
    worst: dict[int, str] = {}
    for bar in bars:
        first, last = ((at - data.start) // step for at in (bar["begin"], bar["finish"] - _HALF_HOUR))
        for n in range(first, last + 1):
            worst[n] = min(worst.get(n, bar["k"]), bar["k"], key=rank.index)
    steps = sorted(worst.items())
    merged = []
    for _, group in groupby(enumerate(steps), key=lambda entry: (entry[1][1], entry[1][0] - entry[0])):
        inside = [found for _, found in group]
        begin, end = data.start + inside[0][0] * step, data.start + (inside[-1][0] + 1) * step
        merged.append({"begin": begin, "finish": min(end, data.finish), "k": inside[0][1], "message": ""})
    return merged


def _findings(data: Timeline, lanes: Sequence[_Lane], changes: Sequence[Change], x: alt.X, store: _Rows) -> Any:
    shown, more = lanes[:MAX_LANES], len(lanes) - MAX_LANES
    titles = {f"l{n}": lane.title for n, lane in enumerate(shown)}
    first = {"changes": counted(len(changes), "change")} if changes else {}
    last = {"more": f"{counted(more, 'more detector')} not drawn"} if more > 0 else {}
    names = first | titles | last
    y = alt.Y("l:N", sort=list(names), scale=alt.Scale(domain=list(names), padding=0), axis=None)
    rows = [
        {"t": milliseconds(bar["begin"]), "end": milliseconds(bar["finish"]), "l": f"l{n}", "k": bar["k"],
         "title": lane.title, "when": _when(bar), "message": bar["message"] or "–"}
        for n, lane in enumerate(shown) for bar in lane.bars
    ]  # fmt: skip
    present = [status for status in STATUSES if any(row["k"] == status for row in rows)]
    legend = alt.Legend(title=None, orient="bottom", symbolType="square", symbolSize=140,
                        labelExpr="upper(slice(datum.label, 0, 1)) + slice(datum.label, 1)")  # fmt: skip
    color = alt.Color(
        "k:N", legend=legend, scale=alt.Scale(domain=present, range=[STATUSES[status][0] for status in present])
    )
    tooltip = [alt.Tooltip(f"{name}:N", title=title) for name, title in
               (("title", "Finding"), ("k", "Status"), ("when", "UTC"), ("message", "Message"))]  # fmt: skip
    base = alt.Chart(store.add(rows)).encode(x=x, x2="end:T", y=y, color=color, tooltip=tooltip)
    layers = [shade(data.newest, x)]
    for height in sorted({STATUSES[status][1] for status in present}):
        of_height = [status for status in present if STATUSES[status][1] == height]
        bars = base.transform_filter(alt.FieldOneOfPredicate("k", of_height))
        layers.append(bars.mark_bar(height=height, yOffset=BAR_BELOW, cornerRadius=2, clip=True, minBandSize=1))
    text = alt.Chart(alt.Data(values=[{"l": name, "text": title} for name, title in names.items()]))
    layers.append(
        text.mark_text(align="left", baseline="middle", dx=4, dy=-BAR_BELOW, fontSize=12, color=INK,
                       limit=alt.ExprRef("width - 4"))
        .encode(x=alt.XValue(0), y=y, text="text:N", tooltip="text:N")
    )  # fmt: skip
    layers += change_layers(changes, x, y=LANE_PIXELS / 2 + BAR_BELOW, has_lines=len(changes) <= MAX_LINES)
    title = "Findings and changes" if changes else "Findings"
    return alt.layer(*layers).properties(title=[title], width=WIDTH, height={"step": LANE_PIXELS})


def _when(bar: Row) -> str:
    begin, end = bar["begin"].astimezone(UTC), bar["finish"].astimezone(UTC)
    return f"{begin:%d %b %H:%M} to {end:%d %b %H:%M} ({span((end - begin).total_seconds())})"


# --- metrics ---


def _columns(known: Sequence[Row]) -> list[str]:
    """The first metrics that have a number in the range."""
    left_out = ("hour", "state", *LIMITS.values())
    columns = [column for column in (known[0] if known else {}) if column not in left_out]
    return [column for column in columns if _numbers(known, column)][:MAX_METRICS]


def _numbers(known: Sequence[Row], column: str) -> list[float]:
    values = [row[column] for row in known if row[column] is not None]
    if any(isinstance(value, str | bool) for value in values):
        return []
    return [float(value) for value in values if math.isfinite(value)]


def _metric(
    data: Timeline, column: str, label: str, changes: Sequence[Change], x: alt.X, store: _Rows, *, is_interactive: bool
) -> Any:
    unit = unit_of(column)
    factor = 100.0 if unit == "ratio" else 1.0
    points = _points(data, column)
    limits = {}
    if (limit := LIMITS.get(column)) and any(row.get(limit) is not None for row in data.known):
        limits[f"{LIMIT}{readable(limit, None)[0]}"] = _points(data, limit)
    if column in data.thresholds:
        name, value = data.thresholds[column]
        limits[f"{LIMIT}{name}"] = [(data.start, value), (data.finish, value)]
    known = [factor * value for line in (points, *limits.values()) for _, value in line if math.isfinite(value)]
    scale, text = scaled(_UNIT_TEXTS.get(unit, unit.replace("_per_", "/")), max(map(abs, known)))
    scale /= factor
    lowest, highest = min(0.0, *known) / factor / scale, max(known) / factor / scale
    y = alt.Y(
        "v:Q", scale=alt.Scale(domain=[lowest, (highest + 0.2 * (highest - lowest)) or 1], nice=False),
        axis=alt.Axis(title=None, format=",.6~r", tickCount=3, minExtent=AXIS_PIXELS, labelFlush=False),
    )  # fmt: skip
    rows = [{"t": milliseconds(at), "v": rounded(value / scale)} for at, value in points]
    base = alt.Chart(store.add(rows)).encode(x=x, y=y)
    missing = [True, *(row["v"] is None for row in rows), True]
    alone = [rows[n] for n in range(len(rows)) if missing[n] and not missing[n + 1] and missing[n + 2]]
    lines = changes if len(changes) <= MAX_LINES else []
    layers = [shade(data.newest, x), base.mark_line(color=COLORS[0], strokeWidth=1.9, clip=True)]
    if alone:
        dots = alt.Chart(alt.Data(values=alone)).mark_point(filled=True, size=36, opacity=1, clip=True, color=COLORS[0])
        layers.append(dots.encode(x=x, y=y))
    layers += [*limit_layers(limits, scale, x, y), *change_layers(lines, x, has_triangles=False)]
    if is_interactive:
        layers.append(_values(points, limits, scale, text, label, x, store))
    title = f"{label} ({text})" if text and text not in label else label
    return alt.layer(*layers).properties(title=[title], width=WIDTH, height=METRIC_PIXELS)


def _points(data: Timeline, column: str) -> list[tuple[datetime, float]]:
    """The metric in the middle of its hour. Of several hours a step has the highest value, so that a short peak stays
    visible; of a lowest value, the lowest."""
    step = -(-len(data.known) // MAX_POINTS)
    extreme = min if "_min" in column else max
    points = []
    for first in range(0, len(data.known), step):
        rows = data.known[first : first + step]
        values = [float(row[column]) for row in rows if row[column] is not None]
        middle = rows[0]["hour"] + (rows[-1]["hour"] + HOUR - rows[0]["hour"]) / 2
        points.append((middle, extreme(values, default=math.nan)))
    return points


def _values(
    points: list[tuple[datetime, float]], limits: Mapping[str, list[tuple[datetime, float]]], scale: float, unit: str,
    label: str, x: alt.X, store: _Rows,
) -> Any:  # fmt: skip
    """Invisible rules with the value of the metric and of its limits as their tooltip."""
    rows: list[Spec] = []
    constant = {name: line[-1][1] for name, line in limits.items()}
    for number, (at, value) in enumerate(points):
        shown = f"{value / scale:,.4g} {unit}".strip() if math.isfinite(value) else "–"
        row = {"t": milliseconds(at), "at": f"{(at - _HALF_HOUR).astimezone(UTC):%Y-%m-%d %H:%M}", "v": shown}
        for n, (name, line) in enumerate(limits.items()):
            limit = line[number][1] if len(line) == len(points) else constant[name]
            row[f"l{n}"] = f"{limit / scale:,.4g} {unit}".strip() if math.isfinite(limit) else "–"
        rows.append(row)
    tooltip = [alt.Tooltip("at:N", title="UTC, from"), alt.Tooltip("v:N", title=label)]
    tooltip += [alt.Tooltip(f"l{n}:N", title=shortened(name.removeprefix(LIMIT))) for n, name in enumerate(limits)]
    return alt.Chart(store.add(rows)).mark_rule(color=INK, strokeWidth=8, opacity=0).encode(x=x, tooltip=tooltip)


def timeline_text(data: Timeline) -> str:
    """The alternative text of the chart; empty: there is nothing to draw. Much faster than the chart."""
    lanes = _lanes(data)
    if not (lanes or data.changes or _columns(data.known)):
        return ""
    parts = []
    for lane in lanes[:5]:
        bars = "; ".join(f"{bar['k']} {_when(bar)}" for bar in lane.bars[-3:])
        parts.append(f"{lane.title}: {bars}.")
    changes = f"{counted(len(data.changes), 'change')}." if data.changes else "No changes."
    return " ".join([f"{moment(data.start)} to {moment(data.finish)}.", *parts, changes])
