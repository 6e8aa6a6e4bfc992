"""Notifications as plain text, for trackers without markup: symptom, since when, actions, key metrics.

A tracker that shows more than plain text escapes it itself.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from streamwarden.rendering.readable import clean
from streamwarden.tickets.sinks.contract import IssueDraft, Notification
from streamwarden.tickets.sinks.sections import Link, Section, fitting

LINE = 100  # characters
NO_LIMIT = 10_000_000
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[KMGTP]?i?B(?:/s)?|IOPS|ms|s|min|h|d|UTC)(?!\w))")
"""The space between a number and its unit."""


def issue_text(issue_draft: IssueDraft, limit: int = NO_LIMIT) -> str:
    """Text of a new ticket; the machine-readable lines come last."""
    values = {
        "fingerprint": issue_draft.fingerprint,
        "detector": issue_draft.detector,
        "resource_name": issue_draft.resource_name,
    }
    machine = "".join(f"{key}: {clean(value)}\n" for key, value in values.items())
    return f"{notification_text(issue_draft.notification, limit - len(machine) - 1)}\n{machine}"


def notification_text(notification: Notification, limit: int = NO_LIMIT) -> str:
    """Text of a notification; no line of it can be mistaken for a machine-readable one."""
    text = _text(fitting(notification, lambda parts: len(_text(parts)), limit - 10))
    return re.sub(r"^(?=(?:fingerprint|detector|resource_name):)", " ", text.strip(), flags=re.MULTILINE) + "\n"


def _text(sections: Sequence[Section]) -> str:
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(_lines(section))))


def _lines(section: Section) -> Iterator[str]:
    indent = ""
    if section.heading:
        yield section.heading
        indent = "  "
    for line in section.lines:
        yield _filled(line, indent, indent)
    for number, item in enumerate(section.items, 1):
        mark = f"{number}." if section.are_ordered else "-"
        yield _filled(f"{mark} {item}", indent, f"{indent}{' ' * (len(mark) + 1)}")
    yield from (f"    {command}" for command in section.commands)
    width = max((len(label) for label, _ in section.metrics), default=0)
    for label, text in section.metrics:
        yield _filled(text, f"  {label:<{width}}  ", " " * (width + 4))
    yield from (indent + _link(link) for link in section.links)


def _link(link: Link) -> str:
    if not link.before:
        return f"{link.title}: {link.url}"
    return f"{link.before}: {link.title} ({link.after}) {link.url}"


def _filled(text: str, first: str, others: str) -> str:
    """The text in lines; a number stays on one line with its unit."""
    kept = _UNIT.sub("\N{NO-BREAK SPACE}", text)
    filled = textwrap.fill(
        kept, LINE, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip
    return filled.replace("\N{NO-BREAK SPACE}", " ")
