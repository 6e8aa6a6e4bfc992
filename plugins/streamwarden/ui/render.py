"""Renders pages. All values are escaped, and control characters are removed from names."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamwarden.rendering.readable import clean, readable_metrics, span
from streamwarden.rendering.templates import folder_templates, outline
from streamwarden.ui.links import display_name, resource_path

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|IOPS|(?:[KMGTP]i)?B(?:/s)?|ms|s|min|h|d)(?!\w))")
VALUE_LENGTH = 20  # longer values break anywhere, so that a card keeps its width


def render(template: str, values: dict[str, Any]) -> str:
    """The HTML of a template with values."""
    return _TEMPLATES.get_template(template).render(values)


def hour_span(hour: datetime) -> str:
    """An hour: `05:00–06:00 UTC`, with the date unless it is today."""
    start, end = hour.astimezone(UTC), hour.astimezone(UTC) + timedelta(hours=1)
    day = "" if start.date() == datetime.now(UTC).date() else f"{start:%Y-%m-%d} "
    return f"{day}{start:%H:%M}–{end:%H:%M} UTC"


def ago(value: datetime) -> str:
    """The time since then, to the minute: `3 h 20 min ago`."""
    seconds = (datetime.now(UTC) - value).total_seconds()
    if seconds < 120:
        return "just now"
    return f"{span(seconds - seconds % 60)} ago"


def short_moment(value: datetime) -> str:
    """A time without year and zone, for narrow tables: `05 Jan 10:00`."""
    return f"{value.astimezone(UTC):%d %b %H:%M}"


def metrics(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Labels and values, which do not break before their unit; longer texts may break."""
    return [
        (label, text.replace(" ", "\N{NO-BREAK SPACE}") if len(text) <= VALUE_LENGTH else text)
        for label, text in readable_metrics(values)
    ]


def sentence(text: object) -> str:
    """A message that does not break between a number and its unit."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", clean(text))


def web_link(url: str | None) -> str | None:
    """The URL if it is HTTP or HTTPS, so that a tracker cannot inject `javascript:`; else None."""
    return url if url and urlsplit(url).scheme in ("http", "https") else None


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a header's text without line breaks; a number or an empty line begins a new one.

    A heading, `## Diagnosis`, is one by itself.
    """
    apart = re.sub(r"^(## .*)$", r"\n\1\n", text, flags=re.MULTILINE)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\s*\d+\. )", apart.strip())]


_TEMPLATES = folder_templates(
    Path(__file__).parent / "templates",
    hour_span=hour_span, ago=ago, web_link=web_link, short_moment=short_moment, paragraphs=paragraphs,
    metrics=metrics, sentence=sentence, outline=outline, resource_path=resource_path, display_name=display_name,
    iso=lambda hour: f"{hour.astimezone(UTC):%Y-%m-%dT%H:%MZ}",
)  # fmt: skip
