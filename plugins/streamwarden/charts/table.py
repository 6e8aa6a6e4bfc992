"""Vega-Lite specification of a table: text at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from streamwarden.charts.header import Header, wrapped
from streamwarden.charts.style import GRID, HEAD, INK, Row, Spec
from streamwarden.rendering.readable import labels, readable

TABLE_ROWS, CELL_CHARACTERS, TABLE_CHARACTERS = 20, 44, 110
CHARACTER_PIXELS, LINE_PIXELS, CELL_PADDING = 7.2, 15, 8


def table(header: Header, rows: Sequence[Row]) -> Any:
    """The chart of a table with at most `TABLE_ROWS` rows."""
    columns = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    width = min(CELL_CHARACTERS, max(12, TABLE_CHARACTERS // len(columns)))
    titles = [wrapped(title, width) for title in labels(columns).values()]
    cells = [[wrapped(readable(column, row[column])[1], width) for column in columns] for row in rows[:TABLE_ROWS]]
    widths = [
        max(len(line) for cell in column for line in cell.split("\n")) * CHARACTER_PIXELS + 2 * CELL_PADDING
        for column in zip(titles, *cells, strict=True)
    ]
    heights = [max(cell.count("\n") + 1 for cell in row) * LINE_PIXELS + 2 * CELL_PADDING for row in (titles, *cells)]
    texts, rules, y = [], [], 0.0
    for number, (row, height) in enumerate(zip((titles, *cells), heights, strict=True)):
        x = 0.0
        for cell, cell_width in zip(row, widths, strict=True):
            texts.append({"x": x + CELL_PADDING, "y": y + CELL_PADDING, "text": cell.split("\n"), "head": number == 0})
            x += cell_width
        y += height
        rules.append({"y": y})
    if more := len(rows) - len(cells):
        texts.append({"x": CELL_PADDING, "y": y + CELL_PADDING, "text": [f"and {more} more"], "head": False})
        y += LINE_PIXELS + 2 * CELL_PADDING
    whole = [{"x": 0, "y": 0, "x2": sum(widths), "y2": heights[0]}]
    x_axis, y_axis = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    head = alt.Chart(alt.Data(values=whole)).mark_rect(color=HEAD).encode(x=x_axis, y=y_axis, x2="x2:Q", y2="y2:Q")
    lines = (
        alt.Chart(alt.Data(values=rules))
        .mark_rule(color=GRID)
        .encode(y=y_axis, x=alt.XValue(0), x2=alt.X2Value(sum(widths)))
    )
    base = alt.Chart(alt.Data(values=texts)).encode(x=x_axis, y=y_axis, text="text:N")
    style: Spec = {"align": "left", "baseline": "top", "lineHeight": LINE_PIXELS, "fontSize": 12, "color": INK}
    plain = base.transform_filter("!datum.head").mark_text(**style)
    bold = base.transform_filter("datum.head").mark_text(**style, fontWeight="bold")
    return alt.layer(head, lines, bold, plain).properties(
        title=wrapped(header.title).split("\n"), width=sum(widths), height=y
    )
