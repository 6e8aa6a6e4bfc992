"""Formats metrics for people: a column `heap_max_bytes` with 4294967296 becomes `Heap max: 4.0 GiB`.

Units come from the names of columns. `clean` removes line breaks and terminal codes from names: clusters can contain
them, and they must not forge lines.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from streamwarden.base.config.fields import Severity
from streamwarden.rendering.labels import LABELS

NOT_KNOWN = "not known"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*(Z|[+-]\d\d:?\d\d)$")  # JSON of a timestamptz
SEVERITIES: tuple[str, ...] = get_args(Severity)
"""The highest first."""


def clean(text: object) -> str:
    """The text on one line, without control, format, and bidirectional characters."""
    line = str(text)
    if not line.isprintable():  # printable texts, which most are, have nothing to remove
        line = "".join(" " if c.isspace() else c for c in line if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join(line.split())


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text: no NUL character, no unpaired surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def readable(column: str, value: Any) -> tuple[str, str]:
    """Label and formatted value of a metric; the unit comes from the column's name.

    >>> readable("heap_max_bytes", 4294967296)
    ('Heap max', '4.0 GiB')
    """
    label, text = _by_name(column, value)
    return LABELS.get(column, label), text


def _by_name(column: str, value: Any) -> tuple[str, str]:
    if leading := re.match(r"(minutes|hours)_(?:to_)?(.+)$", column):  # minutes_throttled, hours_to_exhaustion
        return f"Time {'to ' if '_to_' in column else ''}{_words(leading[2])}", _text(value, _UNITS[leading[1]])
    if amount := re.match(r"((?:\w+_)?bytes_\w+)_per_second$", column):  # bytes_in_per_second
        return _label(amount[1]), _text(value, _UNITS["bytes_per_second"])
    named = _UNIT_NAMES.fullmatch(column)
    if named is None:
        return _label(column), _text(value, _number)
    return _label(f"{named['what'] or ''} {named['statistic'] or ''}" if named["what"] else column), _text(
        value, _UNITS[named["unit"]]
    )


def unit_of(column: str) -> str:
    """The unit in the name of a metric's column: `bytes_per_second`, `ms`; empty: it has none.

    >>> unit_of("log_flush_p95_ms"), unit_of("minutes_throttled"), unit_of("members")
    ('ms', 'minutes', '')
    """
    if leading := re.match(r"(minutes|hours)_", column):
        return leading[1]
    if re.fullmatch(r"(?:\w+_)?bytes_\w+_per_second", column):
        return "bytes_per_second"
    named = _UNIT_NAMES.fullmatch(column)
    return named["unit"] if named else ""


def readable_metrics(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Labels and formatted values of a finding's metrics, in their order; a list has one line for each entry."""
    named = labels(metrics)
    lines: list[tuple[str, str]] = []
    for column, value in metrics.items():
        if isinstance(value, list) and value:
            lines += [(named[column] if i == 0 else "", _entry(entry)) for i, entry in enumerate(value)]
        else:
            lines.append((named[column], readable(column, value)[1]))
    return lines


def labels(columns: Iterable[str]) -> dict[str, str]:
    """A label for each column, with the unit where columns differ only in it; where that is equal too, the name in
    words."""
    plain = {column: readable(column, None)[0] for column in columns}
    counts = Counter(plain.values())
    named = {
        column: f"{label} ({unit})" if counts[label] > 1 and (unit := _unit(column)) else label
        for column, label in plain.items()
    }
    counts = Counter(named.values())
    return {column: label if counts[label] == 1 else _label(column) for column, label in named.items()}


def counted(number: int | None, one: str, many: str | None = None) -> str:
    """`1 rule`, `2 rules`; `an unknown number of rules` where it is missing."""
    several = many or f"{one}s"
    if number is None:
        return f"an unknown number of {several}"
    return f"{_number(number)} {one if number == 1 else several}"


def moment(value: datetime) -> str:
    """A time in UTC: `2026-01-05 10:20 UTC`."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def since_text(first_hour: datetime, exact: datetime | None = None, until: datetime | None = None) -> str:
    """Since when a finding is firing, the same in every rendering.

    Args:
        first_hour: the first hour in which it fired.
        exact: the start of the problem, where a sample gives it. Otherwise it began after the last evaluation without
            it, at the earliest an hour before `first_hour`, and was there at the end of that hour.
        until: until when that is known, for the duration of an exact start.

    >>> since_text(datetime(2026, 1, 5, 7, tzinfo=UTC))
    'since 2026-01-05 07:00 UTC (± 1 h)'
    """
    if exact is not None:
        seconds = (until - exact).total_seconds() if until else 0
        return f"since {moment(exact)}" + (f" ({span(seconds)})" if seconds > 0 else "")
    return f"since {moment(first_hour)} (± 1 h)"


def hour_span(hour: datetime) -> str:
    """An hour: `2026-01-05 10:00–11:00 UTC`."""
    start = hour.astimezone(UTC)
    return f"{start:%Y-%m-%d %H:%M}–{start + timedelta(hours=1):%H:%M} UTC"


def open_span(seconds: float) -> str:
    """How long a ticket was open: `3 h`. Tickets know hours only, so less than one hour is not `0 s`."""
    return span(seconds) if seconds >= 3600 else "under 1 h"


def span(seconds: float) -> str:
    """A duration in its two largest units: `3 h 20 min`."""
    seconds = float(seconds)  # PostgreSQL returns exact numbers, which would be written `0.000000`
    if seconds < 0:
        return f"−{span(-seconds)}"
    if 0 < seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    days, hours, minutes = minutes // 1440, minutes % 1440 // 60, minutes % 60
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if n]
    return " ".join(parts[:2])


def size(number: float) -> str:
    """Bytes in the largest binary unit with a value of at least 1: `4.0 GiB`."""
    magnitude, units = abs(number), ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = 0 if magnitude < 1 else min(int(math.log2(magnitude) / 10), len(units) - 1)
    return f"{number:.0f} B" if power == 0 else f"{number / 1024**power:.1f} {units[power]}"


def _number(number: float) -> str:
    if number == 0 or abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def _suffixed(unit: str) -> Callable[[float], str]:
    return lambda number: f"{_number(number)} {unit}"


# Longest names first: `_bytes_per_second` also ends in `_second`.
_UNITS: dict[str, Callable[[float], str]] = {
    "bytes_per_second": lambda n: f"{size(n)}/s",
    "records_per_second": _suffixed("records/s"),
    "messages_per_second": _suffixed("messages/s"),
    "per_second": _suffixed("/s"),
    "credits_per_hour": _suffixed("credits/h"),
    "usd_per_month": lambda n: f"${n:,.2f} a month",
    "mib_s": _suffixed("MiB/s"),
    "bytes": size,
    "gib": _suffixed("GiB"),
    "seconds": span,
    "minutes": lambda n: span(n * 60),
    "hours": lambda n: span(n * 3600),
    "days": lambda n: span(n * 86400),
    "ms": lambda n: f"{_number(n)} ms" if n < 1000 else span(n / 1000),
    "percent": lambda n: f"{_number(n)} %",
    "ratio": lambda n: f"{_number(n * 100)} %",
    "iops": _suffixed("IOPS"),
    "records": _suffixed("records"),
    "credits": _suffixed("credits"),
}


# `lag_seconds_max` is a duration, as `lag_seconds` is.
_STATISTIC = r"mean|median|max|min|now|last|first|low|high|total|p\d+"
_UNIT_NAMES = re.compile(rf"(?:(?P<what>.+?)_)??(?P<unit>{'|'.join(_UNITS)})(?:_(?P<statistic>{_STATISTIC}))?")
_WRITTEN = {
    word.lower(): word for word in ("IOPS", "EBS", "GC", "JVM", "CPU", "ISR", "RocksDB", "JSON", "SQL", "ID", "AWS")
}


def _words(column: str) -> str:
    return " ".join(_WRITTEN.get(word, word) for word in clean(column.replace("_", " ")).split())


def _unit(column: str) -> str:
    found = re.match(r"minutes|hours", column) or re.search(rf"(?:{'|'.join(_UNITS)})(?=_(?:{_STATISTIC})$|$)", column)
    text = found[0].replace("_per_", "/").replace("_s", "/s").replace("_", " ") if found else ""
    return {"iops": "IOPS", "mib/s": "MiB/s", "gib": "GiB"}.get(text, text)


def _label(column: str) -> str:
    words = _words(column)
    return words[:1].upper() + words[1:]


def _text(value: Any, written: Callable[[float], str]) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NOT_KNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return written(value)
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, str) and _TIME.match(value):
        try:
            return moment(datetime.fromisoformat(value))
        except ValueError:
            return clean(value)
    return _entry(value) if isinstance(value, dict | list) else clean(value)


def _entry(value: Any) -> str:
    """An entry of a nested metric on one line: its name first, then the values that are not null, with labels."""
    if isinstance(value, list):
        return ", ".join(_entry(v) for v in value) or "none"
    if not isinstance(value, dict):
        return _text(value, _number)
    value = {column: part for column, part in value.items() if part is not None}
    name = next((column for column, part in value.items() if isinstance(part, str) and not _TIME.match(part)), None)
    parts = [clean(value[name])] if name else []
    for column, part in value.items():
        if column != name:
            label, text = readable(column, part)
            parts.append(f"{label[:1].lower()}{label[1:]} {text}" if label[1:2].islower() else f"{label} {text}")
    return ", ".join(parts) or NOT_KNOWN
