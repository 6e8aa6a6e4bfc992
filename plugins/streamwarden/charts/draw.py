"""Draws the chart of a finding from `sql/charts/<detector id>.sql`: SVG for pages, PNG for mail and tickets.

The header of the file has `title`, `unit`, `kind`, and `why`; the binds of the SQL are `:hour` and the detector's
identity columns. Kind `lines` selects at, series, value; `stacked` selects label, series, value; `table` selects the
columns to show. A series with a name that begins with `limit ` is drawn dashed, and its label is the rest of the name.
A chart of kind `lines` can have a second panel `below` with its own `title` and `unit`; its rows have `is_below`.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import sqlalchemy as sa
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from matplotlib.transforms import Bbox
from PIL import Image
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.rendering.readable import NOT_KNOWN, clean, counted, labels, moment, readable
from streamwarden.store.sql_header import read_header, shown

FOLDER = SQL / "charts"
Format = Literal["svg", "png"]

# The Okabe-Ito palette, distinguishable with color blindness. Lines also differ in stroke, bars in hatching.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
STROKES = ("-", (0, (6, 2)), "-.", (0, (1, 1)), (0, (3, 1, 1, 1)))
HATCHES = ("", "///", "xx", "\\\\\\", "--", "||")  # no dots: one takes 100 KiB of SVG
LIMIT, LIMIT_COLOR, INK, GRID = "limit ", "#B00020", "#1f2328", "#d8dee4"
_COLUMNS = {"lines": ("at", "series", "value"), "stacked": ("label", "series", "value"), "table": ()}
_DARK = {
    "#ffffff": "#161b22", "#f6f8fa": "#21262d", INK: "#e6edf3", "#000000": "#e6edf3", GRID: "#30363d",
    "#b00020": "#ff7b86", "#0072b2": "#58a6ff", "#009e73": "#56d38a",
}  # fmt: skip
INCHES_WIDE, DOTS_PER_INCH = 6.4, 150
TABLE_ROWS, CELL_CHARACTERS, TABLE_CHARACTERS, LABEL_CHARACTERS, TITLE_CHARACTERS = 20, 44, 110, 34, 60
THIRD_CHARACTERS = 19
"""Maximum length of labels in a legend with three columns."""
_BYTES = {"bytes": "", "bytes/s": "/s"}
_SIGN = {"percent": "%"}

mpl.rcParams |= {
    "text.parse_math": False,  # names of topics can contain $
    "svg.fonttype": "none",  # keeps text searchable and accessible to screen readers
    "svg.hashsalt": "streamwarden",  # makes the output deterministic
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # otherwise the SVG lists a dozen fonts for each text
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
}


@dataclass(frozen=True)
class Drawing:
    """An image (SVG or PNG), and its alternative text."""

    content: bytes
    alt: str


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Panel:
    """Title of a panel, and the unit of its values."""

    title: str
    unit: str


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Header(Panel):
    """The header of a chart's file."""

    kind: Literal["lines", "stacked", "table"]
    why: str
    shades_hour: bool = True
    """Whether the evaluated hour is shaded; only for lines."""
    below: Panel | None = None


def plot_finding(
    engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any], format: Format
) -> bytes | None:
    """The chart of a finding in an hour; None if its detector has no chart, or there is no data. See `draw_finding`."""
    drawing = draw_finding(engine, detector, hour, identity, format)
    return drawing.content if drawing else None


def draw_finding(
    engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any], format: Format, folder: Path = FOLDER
) -> Drawing | None:
    """The chart of a finding in an hour, with its alternative text; None if there is no chart or no data.

    Args:
        identity: the key columns of the finding's resource.
        folder: folder of the charts.

    Raises:
        StreamwardenError: header or SQL of the chart is invalid; one line with the file.
    """
    file = folder / f"{detector}.sql"
    if not file.exists():
        return None
    header, sql = load_plot(file)
    rows = _rows(engine, file, header, sql, {**identity, "hour": hour})
    if not rows:
        return None
    figure = {"lines": _lines, "stacked": _stacked, "table": _table}[header.kind](header, rows, hour)
    if figure is None:
        return None
    alt = _alt(header, rows, hour)
    return Drawing(_rendered(figure, format, alt), alt)


def in_the_dark(svg: bytes) -> bytes:
    """The SVG for a dark page: replaces the colors of background, text, grid, and of lines that are too dark."""
    return re.sub(rb"#[0-9a-f]{6}", lambda color: _DARK.get(color[0].decode(), color[0].decode()).encode(), svg)


def load_plot(file: Path) -> tuple[Header, str]:
    """Validated header, and SQL of a chart's file.

    Raises:
        StreamwardenError: the header is invalid; one line with file and key.
    """
    raw, sql = read_header(file)
    try:
        return TypeAdapter(Header).validate_python(raw), sql
    except ValidationError as error:
        first = error.errors()[0]
        raise StreamwardenError(f"{shown(file)}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _rows(engine: sa.Engine, file: Path, header: Header, sql: str, binds: dict[str, Any]) -> Sequence[dict[str, Any]]:
    try:
        with engine.connect() as connection:
            result = connection.execute(sa.text(sql), binds)
            columns, rows = result.keys(), [dict(row) for row in result.mappings()]
    except sa.exc.SQLAlchemyError as error:
        raise StreamwardenError(f"{shown(file)}: {str(getattr(error, 'orig', error)).splitlines()[0]}") from None
    # Checked even without rows, so that a mistake in a chart is reported before a finding needs it.
    needed = [*_COLUMNS[header.kind], *(["is_below"] if header.below else [])]
    if missing := [column for column in needed if column not in columns]:
        raise StreamwardenError(f"{shown(file)}: the select has no column {missing[0]}.")
    return rows


def _lines(header: Header, rows: Sequence[dict[str, Any]], hour: datetime) -> Figure | None:
    if not _known(rows):
        return None
    parts: list[tuple[Panel, list[dict[str, Any]]]] = [(header, [row for row in rows if not row.get("is_below")])]
    if header.below:
        parts.append((header.below, [row for row in rows if row["is_below"]]))
    figure = Figure(figsize=(INCHES_WIDE, 3.4 + 2.2 * (len(parts) - 1)), layout="constrained", facecolor="white")
    panels = figure.subplots(len(parts), sharex=True, squeeze=False, height_ratios=[3, 2][: len(parts)])[:, 0]
    number = 0
    for axes, (panel, of_panel) in zip(panels, parts, strict=True):
        _dress(axes, panel.title)
        number = _draw_lines(axes, panel.unit, of_panel, number)
        if header.shades_hour:
            axes.axvspan(hour, hour + timedelta(hours=1), color="#0072B2", alpha=0.07, linewidth=0)  # type: ignore[arg-type]
    locator = AutoDateLocator(tz=UTC)
    panels[-1].xaxis.set_major_locator(locator)
    panels[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
    panels[-1].set_xlabel("UTC; shaded: evaluated hour" if header.shades_hour else "UTC")
    _legend(figure)
    return figure


def _draw_lines(axes: Axes, unit: str, rows: Sequence[dict[str, Any]], number: int) -> int:
    """Draws the series of a panel; returns the next color number, so that no two series of a chart share a color."""
    series: dict[str, list[tuple[datetime, float]]] = {}
    for row in rows:
        value = math.nan if row["value"] is None else float(row["value"])  # missing data is a gap in the line, not 0
        series.setdefault(row["series"], []).append((row["at"], value))
    known = _known(rows)
    scale, unit = _scaled(unit, max(map(abs, known), default=0))
    for name, points in series.items():
        points = _with_gaps(sorted(points, key=lambda point: point[0]))
        times, values = [at for at, _ in points], [value / scale for _, value in points]
        unknown = [math.isnan(value) for value in (math.nan, *values, math.nan)]
        # A line of one point is invisible, so isolated points get a marker.
        alone = [n for n in range(len(values)) if unknown[n] and not unknown[n + 1] and unknown[n + 2]]
        limit = name.startswith(LIMIT)
        axes.plot(
            times,  # type: ignore[arg-type]
            values,
            color=LIMIT_COLOR if limit else COLORS[number % len(COLORS)],
            linestyle=(0, (4, 3)) if limit else STROKES[number % len(STROKES)],
            linewidth=1.4 if limit else 1.8,
            marker="o" if alone and not limit else None,
            markersize=4,
            markevery=alone,
            label=_short(_label(name)) + ("" if any(map(math.isfinite, values)) else f" ({NOT_KNOWN})"),
        )
        number += not limit
    axes.set_ylabel(unit if known else NOT_KNOWN)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))  # no scientific notation
    if min(known, default=0) >= 0:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    return number


def _with_gaps(points: list[tuple[datetime, float]]) -> list[tuple[datetime, float]]:
    """Inserts a gap where the distance of two points is more than three times the median distance."""
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    if len(steps) < 2:
        return points
    median = sorted(steps)[len(steps) // 2]
    gaps = [(at + median, math.nan) for (at, _), step in zip(points, steps, strict=False) if step > 3 * median]
    return sorted([*points, *gaps], key=lambda point: point[0])


def _known(rows: Sequence[dict[str, Any]]) -> list[float]:
    return [float(row["value"]) for row in rows if row["value"] is not None and math.isfinite(float(row["value"]))]


def _stacked(header: Header, rows: Sequence[dict[str, Any]], hour: datetime) -> Figure | None:
    parts: dict[str, dict[str, float]] = {}
    limits: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["value"] is not None:
            kind = limits if row["series"].startswith(LIMIT) else parts
            kind.setdefault(row["series"], {})[row["label"]] = float(row["value"])
    if not parts:
        return None
    labels = list(dict.fromkeys(row["label"] for row in rows))
    totals = [sum(values.get(label, 0) for values in parts.values()) for label in labels]
    highest = max([*totals, *(value for values in limits.values() for value in values.values())])
    scale, unit = _scaled(header.unit, highest)
    figure, axes = _blank(1.9 + 0.5 * len(labels), header)
    left = [0.0] * len(labels)
    for number, (name, values) in enumerate(parts.items()):
        widths = [values.get(label, 0) / scale for label in labels]
        axes.barh(
            range(len(labels)), widths, left=left, height=0.62, label=_short(name), edgecolor="white",
            color=COLORS[number % len(COLORS)], hatch=HATCHES[number % len(HATCHES)],
        )  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for name, values in limits.items():
        for number, (label, value) in enumerate(values.items()):
            at = labels.index(label)
            axes.plot(
                [value / scale] * 2, [at - 0.42, at + 0.42], color=LIMIT_COLOR, linestyle=(0, (4, 3)), linewidth=1.8,
                label=_short(_label(name)) if number == 0 else "_",
            )  # fmt: skip
    axes.set_yticks(range(len(labels)), [_short(label) for label in labels])
    axes.invert_yaxis()
    axes.set_xlim(0, highest / scale * 1.06 or 1)
    axes.set_xlabel(unit)
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    _legend(figure)
    return figure


def _table(header: Header, rows: Sequence[dict[str, Any]], hour: datetime) -> Figure | None:
    columns = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    width = min(CELL_CHARACTERS, max(12, TABLE_CHARACTERS // len(columns)))
    titles = [_wrapped(title, width) for title in labels(columns).values()]
    cells = [[_wrapped(readable(column, row[column])[1], width) for column in columns] for row in rows[:TABLE_ROWS]]
    widths = [
        max(len(line) for cell in column for line in cell.split("\n")) + 2
        for column in zip(titles, *cells, strict=True)
    ]
    heights = [max(cell.count("\n") + 1 for cell in row) for row in (titles, *cells)]
    more = len(rows) - len(cells)
    figure, axes = _blank(
        0.6 + 0.2 * (sum(heights) + 2 * bool(more)), header, inches=max(INCHES_WIDE, sum(widths) * 0.085)
    )
    axes.axis("off")
    table = axes.table(
        cellText=cells, colLabels=titles, cellLoc="left", colLoc="left", bbox=Bbox.unit(),
        colWidths=[width / sum(widths) for width in widths],
    )  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for (line, _), cell in table.get_celld().items():
        cell.set(edgecolor=GRID, linewidth=0.7, facecolor="#f6f8fa" if line == 0 else "white")
        cell.set_height(heights[line])
        cell.get_text().set(color=INK, fontweight="bold" if line == 0 else "normal")
    if more:
        axes.text(0, -0.02, f"and {more} more", transform=axes.transAxes, va="top", color=INK)
    return figure


def _blank(inches_high: float, header: Header, inches: float = INCHES_WIDE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(inches, inches_high), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    _dress(axes, header.title)
    return figure, axes


def _dress(axes: Axes, title: str) -> None:
    axes.set_title(_wrapped(title, TITLE_CHARACTERS), loc="left", color=INK, fontweight="bold", fontsize=10.5)
    axes.tick_params(colors=INK, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def _legend(figure: Figure) -> None:
    """Places the legend below the chart, because a phone is too narrow for one next to it."""
    longest = max(len(label) for axes in figure.axes for label in axes.get_legend_handles_labels()[1])
    ncols = 3 if longest <= THIRD_CHARACTERS else 2
    figure.legend(loc="outside lower left", ncols=ncols, frameon=False, labelcolor=INK, fontsize=9, handlelength=2.8)


def _scaled(unit: str, largest: float) -> tuple[float, str]:
    """Divisor and name of the unit that fits the largest value."""
    if unit == "seconds" and largest >= 300:
        return (3600.0, "hours") if largest >= 7200 else (60.0, "minutes")
    if unit not in _BYTES or largest < 1024:
        return 1.0, _SIGN.get(unit, unit)
    power = min(int(math.log(largest, 1024)), 4)
    return 1024.0**power, ("B", "KiB", "MiB", "GiB", "TiB")[power] + _BYTES[unit]


def _label(series: str) -> str:
    return series.removeprefix(LIMIT)


def _short(name: str) -> str:
    return textwrap.shorten(clean(name), LABEL_CHARACTERS, placeholder="…") or clean(name)[: LABEL_CHARACTERS - 1] + "…"


def _wrapped(text: str, width: int = CELL_CHARACTERS) -> str:
    return textwrap.fill(clean(text), width)


def _alt(header: Header, rows: Sequence[dict[str, Any]], hour: datetime) -> str:
    """Alternative text of a chart: title, hour, and the last value of each series."""
    begin = f"{header.title}, hour {moment(hour)}."
    if header.kind == "table":
        return f"{begin} Table of {counted(len(rows), 'row')}: {', '.join(labels(rows[0]).values())}."
    name = "series" if header.kind == "lines" else "label"
    last = {(row[name], row["series"]): row for row in rows}
    values = []
    for (label, series), row in list(last.items())[:10]:
        value, panel = row["value"], header.below if header.below and row["is_below"] else header
        scale, unit = _scaled(panel.unit, abs(float(value or 0)))
        figure = NOT_KNOWN if value is None else f"{_rounded(float(value) / scale)} {unit}"
        values.append(f"{clean(_label(series) if label == series else f'{label}, {_label(series)}')} {figure}")
    return f"{begin} {'Last values' if header.kind == 'lines' else 'Values'}: {'; '.join(values)}."


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _rendered(figure: Figure, format: Format, alt: str) -> bytes:
    out = io.BytesIO()
    if format == "png":
        figure.savefig(out, format="png", dpi=DOTS_PER_INCH)
        # Charts have few colors: with a palette, the file is a fifth as large.
        with Image.open(out) as picture:
            small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        out = io.BytesIO()
        small.save(out, "png", optimize=True)
        return out.getvalue()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue().decode()
    svg = svg[svg.index("<svg") :]  # without the XML header, the SVG can be embedded in a page
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), svg)  # one decimal is enough
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1).encode()
