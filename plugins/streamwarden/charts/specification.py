"""Vega-Lite specifications of charts, built with altair from the rows of a chart's SQL.

One specification serves all renderings: `picture.py` makes SVG and PNG from it, and pages draw it with vega-embed.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import altair as alt

from streamwarden.base.hours import HOUR
from streamwarden.charts.header import LIMIT, Header, Panel, known, scaled, series_label, shortened, wrapped
from streamwarden.charts.style import COLORS, DASHES, INK, LIMIT_COLOR, ON_BAR, ON_BLUE, PAPER, SHADE, Row, Spec, config
from streamwarden.charts.table import table
from streamwarden.rendering.readable import NOT_KNOWN, clean

# All panels of a chart have the same zoom on purpose.
warnings.filterwarnings("ignore", message="Automatically deduplicated selection parameter")

WIDTH, HEIGHT, HEIGHT_BELOW, AXIS_PIXELS = 560, 240, 150, 46
BAR_STEP, BAR_PIXELS = 52, 26
LEAST_SHARE = 0.09
"""Narrower parts of a bar have no room for their value."""
TIMES = "utcFormat(datum.value, utchours(datum.value) + utcminutes(datum.value) ? '%H:%M' : '%d %b')"


@dataclass(frozen=True)
class Change:
    """A change of the resource, drawn as a marker."""

    at: datetime
    text: str


def specification(
    header: Header, rows: Sequence[Row], hour: datetime, changes: Sequence[Change] = (), *, is_interactive: bool = False
) -> Spec | None:
    """The Vega-Lite specification of a chart; None if it has no value to draw.

    Args:
        rows: as `charts.draw` describes them.
        hour: the evaluated hour, which is shaded.
        changes: only drawn in charts of kind `lines`.
        is_interactive: for pages: the values at the pointer, and zoom on the time axis.
    """
    if not has_values(header, rows):
        return None
    alt.data_transformers.disable_max_rows()
    if header.kind == "lines":
        chart = _lines(header, rows, hour, changes, is_interactive)
    else:
        chart = _stacked(header, rows) if header.kind == "stacked" else table(header, rows)
    if header.kind == "lines" and is_interactive:
        chart = chart.properties(usermeta={"zoom": True})
    spec: Spec = chart.configure(**config()).to_dict()
    return spec


def has_values(header: Header, rows: Sequence[Row]) -> bool:
    """Whether a chart of the rows has a value to draw."""
    if header.kind == "stacked":
        return any(row["value"] is not None and not row["series"].startswith(LIMIT) for row in rows)
    return bool(rows if header.kind == "table" else known(rows))


# --- lines ---


def _lines(header: Header, rows: Sequence[Row], hour: datetime, changes: Sequence[Change], is_interactive: bool) -> Any:
    parts: list[tuple[Panel, list[Row]]] = [(header, [row for row in rows if not row.get("is_below")])]
    if header.below:
        parts.append((header.below, [row for row in rows if row["is_below"]]))
    times = [row["at"] for row in rows]
    inside = [one for one in changes if min(times) <= one.at <= max(times)]
    x = _time_axis(header, hour, bool(inside))
    panels: list[Any] = []
    number = 0
    for panel, of_panel in parts:
        series = _series(of_panel)
        scale, unit = scaled(panel.unit, max(map(abs, known(of_panel)), default=0))
        y = _value_axis(of_panel, scale, unit)
        layers = [shade(hour, x)] if header.shades_hour else []
        layers += [*_curves(series, scale, x, y, number), *limit_layers(series, scale, x, y), *change_layers(inside, x)]
        layers += _values(series, scale, x, number) if is_interactive else []
        height = HEIGHT_BELOW if panels else HEIGHT
        title = wrapped(panel.title).split("\n")
        panels.append(alt.layer(*layers).properties(title=title, width=WIDTH, height=height))
        number += sum(not name.startswith(LIMIT) for name in series)
    if is_interactive:
        # Without Shift, the wheel scrolls the page.
        zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
        panels = [panel.add_params(zoom) for panel in panels]
    if len(panels) == 1:
        return panels[0]
    return alt.vconcat(*panels, spacing=18).resolve_scale(x="shared", color="independent", strokeDash="independent")


def _time_axis(header: Header, hour: datetime, has_changes: bool) -> alt.X:
    parts = [
        f"UTC, to {hour.astimezone(UTC):%Y-%m-%d}",
        *(["shaded: evaluated hour"] if header.shades_hour else []),
        *(["▼ change"] * has_changes),
    ]
    axis = alt.Axis(
        title="; ".join(parts), grid=False, labelExpr=TIMES, tickCount=alt.ExprRef("width / 80"), labelOverlap=True
    )
    return alt.X("t:T", scale=alt.Scale(type="utc", nice=False), axis=axis)


def _value_axis(rows: Sequence[Row], scale: float, unit: str) -> alt.Y:
    """The axis has room for the label of a limit above the highest value, and always includes zero."""
    values = [value / scale for value in known(rows)]
    highest, lowest = max(values, default=1), min(values, default=0)
    domain = [min(lowest, 0), (highest + 0.12 * (highest - min(lowest, 0))) or 1]
    axis = alt.Axis(
        title=unit if values else NOT_KNOWN, format=",.6~r", tickCount=5, minExtent=AXIS_PIXELS, labelFlush=False
    )
    return alt.Y("v:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)


def _series(rows: Iterable[Row]) -> dict[str, list[tuple[datetime, float]]]:
    """Points of each series in order of time; missing data is NaN, a gap in the line and not 0."""
    series: dict[str, list[tuple[datetime, float]]] = {}
    for row in rows:
        value = math.nan if row["value"] is None else float(row["value"])
        series.setdefault(row["series"], []).append((row["at"], value))
    return {name: with_gaps(sorted(points, key=lambda point: point[0])) for name, points in series.items()}


def with_gaps(points: list[tuple[datetime, float]]) -> list[tuple[datetime, float]]:
    """Inserts a gap where the distance of two points is more than three times the median distance."""
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    if len(steps) < 2:
        return points
    median = sorted(steps)[len(steps) // 2]
    gaps = [(at + median, math.nan) for (at, _), step in zip(points, steps, strict=False) if step > 3 * median]
    return sorted([*points, *gaps], key=lambda point: point[0])


def _curves(series: dict[str, list[tuple[datetime, float]]], scale: float, x: alt.X, y: alt.Y, first: int) -> list[Any]:
    """Lines with a legend, points where a line of one point would be invisible, and the values at the pointer."""
    names = [name for name in series if not name.startswith(LIMIT)]
    if not names:
        return []
    rows: list[Spec] = []
    alone: list[Spec] = []
    shown: dict[str, str] = {}
    for number, name in enumerate(names, first):
        key, points = f"s{number}", series[name]
        is_known = any(math.isfinite(value) for _, value in points)
        shown[key] = shortened(name) + ("" if is_known else f" ({NOT_KNOWN})")
        own = [{"t": milliseconds(at), "k": key, "v": rounded(value / scale)} for at, value in points]
        rows += own
        missing = [True, *(point["v"] is None for point in own), True]
        alone += [own[n] for n in range(len(own)) if missing[n] and not missing[n + 1] and missing[n + 2]]
    legend = alt.Legend(
        title=None, orient="bottom", symbolType="stroke", symbolSize=600,
        labelExpr=f"{json.dumps(shown)}[datum.label]",
    )  # fmt: skip
    numbers, keys = range(first, first + len(names)), list(shown)
    color = alt.Color(
        "k:N", legend=legend, scale=alt.Scale(domain=keys, range=[COLORS[number % len(COLORS)] for number in numbers])
    )
    dash = alt.StrokeDash(
        "k:N", legend=legend, scale=alt.Scale(domain=keys, range=[DASHES[number % len(DASHES)] for number in numbers])
    )
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    layers: list[Any] = [base.mark_line(strokeWidth=1.9, clip=True).encode(color=color, strokeDash=dash)]
    if alone:
        points = alt.Chart(alt.Data(values=alone)).mark_point(filled=True, size=36, opacity=1, clip=True)
        layers.append(points.encode(x=x, y=y, color=color))
    return layers


def _values(series: dict[str, list[tuple[datetime, float]]], scale: float, x: alt.X, first: int) -> list[Any]:
    """Invisible rules at each point of time, with the values of all series, including limits, as their tooltip."""
    names = sorted(series, key=lambda name: name.startswith(LIMIT))
    by_time: dict[datetime, Spec] = {}
    for number, name in enumerate(names):
        for at, value in series[name]:
            row = by_time.setdefault(at, dict.fromkeys((f"s{n}" for n in range(len(names))), "–"))
            if math.isfinite(value):
                row[f"s{number}"] = f"{value / scale:,.4g}"
    rows = [{"t": milliseconds(at), "at": f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"} | by_time[at] for at in by_time]
    if not rows:
        return []
    tooltip = [alt.Tooltip("at:N", title="UTC")]
    tooltip += [alt.Tooltip(f"s{number}:N", title=shortened(series_label(name))) for number, name in enumerate(names)]
    rule = (
        alt.Chart(alt.Data(values=rows), name=f"values{first}")
        .mark_rule(color=INK, strokeWidth=10, opacity=0)
        .encode(x=x, tooltip=tooltip)
    )
    return [rule]


def limit_layers(series: dict[str, list[tuple[datetime, float]]], scale: float, x: alt.X, y: alt.Y) -> list[Any]:
    """Dashed lines, labeled at their last value."""
    layers: list[Any] = []
    for name, points in series.items():
        values = [value for _, value in points if math.isfinite(value)]
        if not name.startswith(LIMIT) or not values:
            continue
        rows = [{"t": milliseconds(at), "v": rounded(value / scale)} for at, value in points]
        line = alt.Chart(alt.Data(values=rows)).mark_line(
            color=LIMIT_COLOR, strokeDash=[6, 4], strokeWidth=1.5, clip=True
        )
        label = alt.Chart(alt.Data(values=[{"v": rounded(values[-1] / scale)}])).encode(x=alt.XValue("width"), y=y)
        style: Spec = {
            "text": shortened(series_label(name)),
            "align": "right",
            "baseline": "bottom",
            "dy": -3,
            "fontSize": 12,
        }
        halo = label.mark_text(**style, color=PAPER, stroke=PAPER, strokeWidth=4, opacity=0.8)
        layers += [line.encode(x=x, y=y), halo, label.mark_text(**style, color=LIMIT_COLOR)]
    return layers


def shade(hour: datetime, x: alt.X) -> Any:
    """The shade of the evaluated hour."""
    rows = [{"t": milliseconds(hour), "end": milliseconds(hour + HOUR)}]
    return alt.Chart(alt.Data(values=rows)).mark_rect(color=SHADE, opacity=0.09, clip=True).encode(x=x, x2="end:T")


def change_layers(
    changes: Sequence[Change], x: alt.X, *, y: float = 5, has_lines: bool = True, has_triangles: bool = True
) -> list[Any]:
    """A dotted line for each change, and a triangle `y` pixels below the upper edge."""
    if not changes:
        return []
    rows = [{"t": milliseconds(one.at), "change": clean(one.text)} for one in changes]
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, tooltip=alt.Tooltip("change:N", title="Change"))
    lines = base.mark_rule(color=INK, strokeWidth=1, strokeDash=[2, 2], opacity=0.6, clip=True)
    triangle = base.mark_point(shape="triangle-down", filled=True, color=INK, size=70, opacity=1)
    return [*([lines] if has_lines else []), *([triangle.encode(y=alt.YValue(y))] if has_triangles else [])]


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970, as Vega reads times."""
    return round(at.timestamp() * 1000)


def rounded(value: float) -> float | None:
    """Five significant digits: more are not visible, and cost bytes."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


# --- stacked bars ---


def _stacked(header: Header, rows: Sequence[Row]) -> Any:
    parts: dict[str, dict[str, float]] = {}
    limits: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["value"] is not None:
            kind = limits if row["series"].startswith(LIMIT) else parts
            kind.setdefault(row["series"], {})[row["label"]] = float(row["value"])
    names = {label: shortened(label) for label in dict.fromkeys(row["label"] for row in rows)}
    totals = [sum(values.get(label, 0) for values in parts.values()) for label in names]
    highest = max([*totals, *(value for values in limits.values() for value in values.values())]) or 1.0
    scale, unit = scaled(header.unit, highest)
    y = alt.Y("l:N", sort=list(names), title=None,
              axis=alt.Axis(labelExpr=f"{json.dumps(names)}[datum.label]", labelLimit=230, grid=False))  # fmt: skip
    x = alt.X("start:Q", title=unit, scale=alt.Scale(domain=[0, highest / scale * 1.06], nice=False),
              axis=alt.Axis(format=",.6~r", tickCount=6))  # fmt: skip
    layers = [*_bars(parts, names, scale, highest, unit, x, y), *_bar_limits(limits, names, scale, highest, x, y)]
    return alt.layer(*layers).properties(
        title=wrapped(header.title).split("\n"), width=WIDTH - 60, height={"step": BAR_STEP}
    )


def _bars(
    parts: dict[str, dict[str, float]], names: Mapping[str, str], scale: float, highest: float, unit: str,
    x: alt.X, y: alt.Y,
) -> list[Any]:  # fmt: skip
    left = dict.fromkeys(names, 0.0)
    rows, shown = [], {}
    for number, (name, values) in enumerate(parts.items()):
        key = f"s{number}"
        shown[key] = shortened(name)
        for label in (label for label in names if values.get(label)):
            start, end = left[label] / scale, (left[label] + values[label]) / scale
            left[label] += values[label]
            wide = values[label] / highest >= LEAST_SHARE
            rows.append(
                {"l": label, "k": key, "start": rounded(start), "end": rounded(end), "mid": (start + end) / 2,
                 "text": _short(values[label] / scale) if wide else "",
                 "label": clean(label), "part": clean(name), "value": f"{values[label] / scale:,.4g} {unit}"}
            )  # fmt: skip
    color = alt.Color(
        "k:N",
        legend=alt.Legend(
            title=None, orient="bottom", symbolType="square", symbolSize=140,
            labelExpr=f"{json.dumps(shown)}[datum.label]",
        ),
        scale=alt.Scale(domain=list(shown), range=[COLORS[number % len(COLORS)] for number in range(len(shown))]),
    )  # fmt: skip
    tooltip = [alt.Tooltip(f"{name}:N", title=title)
               for name, title in (("label", "Bar"), ("part", "Part"), ("value", "Value"))]  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).encode(y=y, tooltip=tooltip)
    bars = base.mark_bar(height=BAR_PIXELS, stroke=PAPER, strokeWidth=1).encode(x=x, x2="end:Q", color=color)
    text = base.mark_text(fontSize=12, tooltip=None).encode(
        x=alt.X("mid:Q"), text="text:N",
        color=alt.condition("datum.k == 's0' || datum.k == 's6'", alt.value(ON_BLUE), alt.value(ON_BAR)),
    )  # fmt: skip
    return [bars, text]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _bar_limits(
    limits: dict[str, dict[str, float]], names: Mapping[str, str], scale: float, highest: float, x: alt.X, y: alt.Y
) -> list[Any]:
    """A stroke across each bar with a limit; the first is labeled, towards the side with more room."""
    layers: list[Any] = []
    for name, values in limits.items():
        labels = [label for label in names if label in values]
        rows = [{"l": label, "start": rounded(values[label] / scale)} for label in labels]
        ticks = alt.Chart(alt.Data(values=rows)).mark_tick(color=LIMIT_COLOR, thickness=2.4, size=BAR_PIXELS + 16)
        at_right = values[labels[0]] > highest / 2
        label = alt.Chart(alt.Data(values=rows[:1])).mark_text(
            text=shortened(series_label(name)), color=LIMIT_COLOR, fontSize=12, baseline="bottom",
            align="right" if at_right else "left", dx=-5 if at_right else 5, dy=-BAR_PIXELS / 2 - 1,
        )  # fmt: skip
        layers += [ticks.encode(x=x, y=y), label.encode(x=x, y=y)]
    return layers
