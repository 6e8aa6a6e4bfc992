"""Colors and fonts of charts, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]
Spec = dict[str, Any]

# The Okabe-Ito palette, distinguishable with color blindness. Lines also differ in dashes, bars have their values.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
DASHES = ([1, 0], [8, 3], [8, 3, 2, 3], [2, 2], [5, 2, 2, 2, 2, 2])
LIMIT_COLOR, INK, GRID, PAPER, HEAD, SHADE = "#b00020", "#1f2328", "#d8dee4", "#ffffff", "#f6f8fa", "#0072b2"
UNKNOWN = "#8c959f"
"""Of what was not evaluated."""
ON_BLUE, ON_BAR = "#fefefe", "#101418"
"""Text on bars of the first color, and on all others."""
DARK = {
    PAPER: "#161b22", HEAD: "#21262d", INK: "#e6edf3", "#000000": "#e6edf4", GRID: "#30363d", LIMIT_COLOR: "#ff7b86",
    "#0072b2": "#58a6ff", "#009e73": "#56d38a", ON_BLUE: ON_BAR,
}  # fmt: skip
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # vl-convert contains the first, browsers have one of the others


def config() -> Spec:
    """Vega-Lite's config of all charts."""
    text = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    return {
        "aria": False,  # the picture and the page have one alternative text for the chart
        "background": PAPER,
        "font": FONT,
        "view": {"stroke": None},
        "axis": text | {"domain": False, "ticks": False, "gridColor": GRID, "labelPadding": 6, "titlePadding": 8},
        "legend": {"labelColor": INK, "labelFontSize": 12, "labelLimit": 250, "symbolStrokeWidth": 2.2,
                   "columns": 2, "columnPadding": 24, "offset": 10},
        "title": {"color": INK, "fontSize": 14, "anchor": "start", "frame": "group", "offset": 10, "lineHeight": 18},
    }  # fmt: skip
