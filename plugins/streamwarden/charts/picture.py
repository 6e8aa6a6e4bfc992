"""Pictures of charts: SVG for pages without a script and for documents, PNG for mail and tickets."""

from __future__ import annotations

import io
import json
import re
from html import escape
from typing import Any, Literal

from PIL import Image

from streamwarden.charts.style import DARK

Format = Literal["svg", "png"]
VEGA_LITE = "6.4"
"""The version of Vega-Lite that pictures are made with; `ui/static/vega` has the same for pages."""
PNG_SCALE = 2.0


def picture(spec: dict[str, Any], format: Format, alt: str) -> bytes:
    """The picture of a specification; the same specification gives the same bytes.

    Args:
        alt: alternative text, part of an SVG.
    """
    import vl_convert  # starts a JavaScript engine at its first conversion

    text = json.dumps(spec)
    if format == "png":
        return _small(vl_convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=PNG_SCALE, allowed_base_urls=[]))
    svg = vl_convert.vegalite_to_svg(text, vl_version=VEGA_LITE, allowed_base_urls=[])
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), svg)  # one decimal is enough
    svg = _renumbered(svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1).encode()


def _renumbered(svg: str) -> str:
    """The engine counts clip paths over all its pictures; here they count from 0 again."""
    ids = {found: f"clip{number}" for number, found in enumerate(dict.fromkeys(re.findall(r"\bclip\d+\b", svg)))}
    return re.sub(r"(?<=[\"#])clip\d+\b", lambda found: ids.get(found[0], found[0]), svg)


def _small(png: bytes) -> bytes:
    """The PNG with a palette: charts have few colors, and the file is a fifth as large."""
    with Image.open(io.BytesIO(png)) as large:
        small = large.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, "png", optimize=True)
    return out.getvalue()


def in_the_dark(content: bytes) -> bytes:
    """An SVG, or the JSON of a specification, for a dark page: replaces the colors of background, text, and marks."""
    return re.sub(rb"#[0-9a-f]{6}\b", lambda color: DARK.get(color[0].decode(), color[0].decode()).encode(), content)
