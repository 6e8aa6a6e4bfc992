"""The header of a chart's SQL file, and the texts and units of its values."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import clean
from streamwarden.store.sql_header import read_header, shown

LIMIT = "limit "
"""Prefix of series that are drawn as labeled limits."""
LABEL_CHARACTERS, TITLE_CHARACTERS = 34, 72
_BYTES = {"bytes": "", "bytes/s": "/s"}
_SIGN = {"percent": "%"}


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Panel:
    """Title of a panel, and the unit of its values."""

    title: str
    unit: str


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Header(Panel):
    """The header of a chart's file."""

    kind: Literal["lines", "stacked", "table"]
    why: str
    shades_hour: bool = True
    """Whether the evaluated hour is shaded; only for lines."""
    below: Panel | None = None


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


def known(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The finite values of the rows."""
    return [float(row["value"]) for row in rows if row["value"] is not None and math.isfinite(float(row["value"]))]


def scaled(unit: str, largest: float) -> tuple[float, str]:
    """Divisor and name of the unit that fits the largest value.

    >>> scaled("bytes/s", 5 * 1024**2)
    (1048576.0, 'MiB/s')
    """
    if unit == "seconds" and largest >= 300:
        return (3600.0, "hours") if largest >= 7200 else (60.0, "minutes")
    if unit not in _BYTES or largest < 1024:
        return 1.0, _SIGN.get(unit, unit)
    power = min(int(math.log(largest, 1024)), 4)
    return 1024.0**power, ("B", "KiB", "MiB", "GiB", "TiB")[power] + _BYTES[unit]


def series_label(series: str) -> str:
    """The name of a series for people: capitalized, without the prefix of limits."""
    name = series.removeprefix(LIMIT)
    return name[:1].upper() + name[1:] if series.startswith(LIMIT) else name


def shortened(name: str) -> str:
    """The name for a legend."""
    text = clean(name)
    if len(text) <= LABEL_CHARACTERS:
        return text
    return textwrap.shorten(text, LABEL_CHARACTERS, placeholder="…").lstrip("…") or text[: LABEL_CHARACTERS - 1] + "…"


def wrapped(text: str, width: int = TITLE_CHARACTERS) -> str:
    """The text in lines of at most `width` characters."""
    return textwrap.fill(clean(text), width)
