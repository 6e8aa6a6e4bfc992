"""Notifications in the Markdown of GitHub and GitLab. External text is escaped: no markup, mentions, or actions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from urllib.parse import quote

from streamwarden.tickets.sinks.contract import Notification
from streamwarden.tickets.sinks.sections import Link, Section, fitting

HIDDEN = "<!-- streamwarden: "
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$&%^])")
_BEGINS = re.compile(r"^(\d+(?=[.)](?:\s|$))|(?=[#+\-=/:]))")  # a heading, a list, a quick action of GitLab's
_CALLS = re.compile(r"([@#!])(?=\w)")  # a person, an issue, a merge request
_EMOJI = re.compile(r":(?=[A-Za-z0-9_+-]+:)")  # replaced in the finished page, where a backslash is gone
_WORD_JOINER = "\u2060"


def markdown(notification: Notification, marker: str, limit: int) -> str:
    """A notification as Markdown, with a hidden marker that identifies it."""
    parts = fitting(notification, lambda some: len(_text(some)), limit - len(marker) - 10)
    return f"{_text(parts)}\n\n{hidden(marker)}\n"


def hidden(marker: str) -> str:
    """A marker as an HTML comment, which pages do not show."""
    return f"{HIDDEN}{marker} -->"


def escaped(text: str) -> str:
    """Text with all markup escaped."""
    called = _EMOJI.sub(f":{_WORD_JOINER}", _CALLS.sub(rf"\1{_WORD_JOINER}", text))
    return _BEGINS.sub(r"\1\\", _SPECIAL.sub(r"\\\1", called))


def _text(sections: Sequence[Section]) -> str:
    return "\n\n".join(part for section in sections for part in _parts(section))


def _parts(section: Section) -> Iterator[str]:
    if section.heading:
        yield f"#### {escaped(section.heading)}"
    if section.lines:
        yield "  \n".join(escaped(line) for line in section.lines)
    if section.items:
        marks = (f"{number}." if section.are_ordered else "-" for number in count(1))
        yield "\n".join(f"{mark} {escaped(item)}" for mark, item in zip(marks, section.items, strict=False))
    if section.commands:
        fence = "`" * max(3, *(len(run) + 1 for line in section.commands for run in re.findall("`+", line) or [""]))
        yield "\n".join((f"{fence}sh", *section.commands, fence))
    if section.metrics:
        rows = (f"| {escaped(label)} | {escaped(text)} |" for label, text in section.metrics)
        yield "\n".join(("| | |", "|---|---|", *rows))
    if section.links:
        yield "\n".join(f"- {_link(link)}" for link in section.links)


def _link(link: Link) -> str:
    title = f"[{escaped(link.title)}]({quote(link.url, safe=':/?#@!$&*+,;=%~-._')})"
    return f"{escaped(link.before)}: {title} ({escaped(link.after)})" if link.before else title
