"""Draws the chart of a finding from `sql/charts/<detector id>.sql`: SVG for pages, PNG for mail and tickets.

The header of the file has `title`, `unit`, `kind`, and `why`; the binds of the SQL are `:hour` and the detector's
identity columns. Kind `lines` selects at, series, value; `stacked` selects label, series, value; `table` selects the
columns to show. A series with a name that begins with `limit ` is a limit: a dashed line, labeled with the rest of
the name. A chart of kind `lines` can have a second panel `below` with its own `title` and `unit`; its rows have
`is_below`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.charts.changes import changes_between
from streamwarden.charts.header import LIMIT, Header, load_plot, scaled, series_label
from streamwarden.charts.picture import Format, in_the_dark, picture
from streamwarden.charts.specification import Change, has_values, specification
from streamwarden.rendering.readable import NOT_KNOWN, clean, counted, labels, moment
from streamwarden.store.sql_header import shown

__all__ = ["FOLDER", "Chart", "Drawing", "Format", "Header", "chart_of", "draw_finding", "in_the_dark", "load_plot",
           "plot_finding"]  # fmt: skip

FOLDER = SQL / "charts"
MAX_CHANGES = 40
_COLUMNS = {"lines": ("at", "series", "value"), "stacked": ("label", "series", "value"), "table": ()}


@dataclass(frozen=True)
class Drawing:
    """An image (SVG or PNG), and its alternative text."""

    content: bytes
    alt: str


@dataclass(frozen=True)
class Chart:
    """The Vega-Lite specification of a chart, and its alternative text."""

    spec: dict[str, Any]
    alt: str


def plot_finding(
    engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any], format: Format
) -> bytes | None:
    """The chart of a finding in an hour; None if its detector has no chart, or there is no data. See `draw_finding`."""
    drawing = draw_finding(engine, detector, hour, identity, format)
    return drawing.content if drawing else None


def draw_finding(
    engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any], format: Format, folder: Path = FOLDER
) -> Drawing | None:
    """The picture of a finding's chart. Arguments and errors are those of `chart_of`."""
    chart = chart_of(engine, detector, hour, identity, folder)
    return Drawing(picture(chart.spec, format, chart.alt), chart.alt) if chart else None


def chart_of(
    engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any], folder: Path = FOLDER,
    *, is_interactive: bool = False,
) -> Chart | None:  # fmt: skip
    """The chart of a finding in an hour, with its alternative text; None if there is no chart or no data.

    Args:
        identity: the key columns of the finding's resource.
        folder: folder of the charts.
        is_interactive: whether the specification is for pages, with the values at the pointer, and zoom.

    Raises:
        StreamwardenError: header or SQL of the chart is invalid; one line with the file.
    """
    data = _data(engine, detector, hour, identity, folder)
    if data is None:
        return None
    spec = specification(data.header, data.rows, hour, data.changes, is_interactive=is_interactive)
    if spec is None:
        return None
    alt = alt_text(data.header, data.rows, hour, data.changes)
    return Chart(spec | {"description": alt}, alt)


def text_of(engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any]) -> str:
    """The alternative text of a finding's chart; empty: there is no chart. Much faster than the chart.

    Arguments and errors are those of `chart_of`.
    """
    data = _data(engine, detector, hour, identity, FOLDER)
    if data is None or not has_values(data.header, data.rows):
        return ""
    return alt_text(data.header, data.rows, hour, data.changes)


@dataclass(frozen=True)
class _Data:
    """What a chart is drawn from."""

    header: Header
    rows: Sequence[dict[str, Any]]
    changes: list[Change]


def _data(engine: sa.Engine, detector: str, hour: datetime, identity: dict[str, Any], folder: Path) -> _Data | None:
    """The data of a chart; None: the detector has no chart, or there is no row."""
    file = folder / f"{detector}.sql"
    if not file.exists():
        return None
    header, sql = load_plot(file)
    try:
        with engine.connect() as connection:
            rows = _rows(connection, file, header, sql, {**identity, "hour": hour})
            changes = _changes(connection, header, detector, identity, rows)
    except sa.exc.SQLAlchemyError as error:
        raise StreamwardenError(f"{shown(file)}: {str(getattr(error, 'orig', error)).splitlines()[0]}") from None
    return _Data(header, rows, changes) if rows else None


def _rows(
    connection: sa.Connection, file: Path, header: Header, sql: str, binds: dict[str, Any]
) -> Sequence[dict[str, Any]]:
    result = connection.execute(sa.text(sql), binds)
    columns, rows = result.keys(), [dict(row) for row in result.mappings()]
    # Checked even without rows, so that a mistake in a chart is reported before a finding needs it.
    needed = [*_COLUMNS[header.kind], *(["is_below"] if header.below else [])]
    if missing := [column for column in needed if column not in columns]:
        raise StreamwardenError(f"{shown(file)}: the select has no column {missing[0]}.")
    return rows


def _changes(
    connection: sa.Connection, header: Header, detector: str, identity: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> list[Change]:
    """The newest changes of the resource in the time of the chart."""
    if header.kind != "lines" or not header.shades_hour or not rows:
        return []
    times = [row["at"] for row in rows]
    found = changes_between(connection, detector, identity, min(times), max(times))
    return [Change(row["at"], row["text"]) for row in found[-MAX_CHANGES:]]


def alt_text(header: Header, rows: Sequence[dict[str, Any]], hour: datetime, changes: Sequence[Change] = ()) -> str:
    """Alternative text of a chart: title, hour, the last value of each series, and the newest changes."""
    begin = f"{header.title}, hour {moment(hour)}."
    if header.kind == "table":
        return f"{begin} Table of {counted(len(rows), 'row')}: {', '.join(labels(rows[0]).values())}."
    name = "series" if header.kind == "lines" else "label"
    last = {(row[name], row["series"]): row for row in rows}
    values = []
    for (label, series), row in list(last.items())[:10]:
        value, panel = row["value"], header.below if header.below and row["is_below"] else header
        scale, unit = scaled(panel.unit, abs(float(value or 0)))
        figure = NOT_KNOWN if value is None else f"{_rounded(float(value) / scale)} {unit}"
        of_limit = series_label(series) if series.startswith(LIMIT) else series
        values.append(f"{clean(of_limit if label == series else f'{label}, {of_limit}')} {figure}")
    text = f"{begin} {'Last values' if header.kind == 'lines' else 'Values'}: {'; '.join(values)}."
    if changes:
        text += f" Changes: {'; '.join(f'{moment(one.at)} {clean(one.text)}' for one in changes[-5:])}."
    return text


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
