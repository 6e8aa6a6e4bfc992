"""A notification as sections without markup: symptom, impact, actions, commands, key metrics, incident.

Every external value passes `clean`, so that no name can add a line or a terminal code. Each markup escapes its own
special characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from streamwarden.detectors.finding import Finding
from streamwarden.detectors.resources import owner_entry
from streamwarden.rendering.commands import changing, reading
from streamwarden.rendering.readable import clean, hour_span, readable_metrics, since_text
from streamwarden.tickets.sinks.contract import Notification


@dataclass(frozen=True)
class Link:
    """`before: title (after)`, with a link on the title."""

    before: str
    title: str
    url: str
    after: str = ""


@dataclass(frozen=True)
class Section:
    """A section of a notification; the fields are in display order."""

    heading: str = ""
    lines: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    are_ordered: bool = False
    """Whether the items are numbered steps."""
    commands: tuple[str, ...] = ()
    """Shell commands, one per line."""
    metrics: tuple[tuple[str, str], ...] = ()
    """Labels and values; of the entries of a list, only the first has a label."""
    links: tuple[Link, ...] = ()


def sections(notification: Notification) -> list[Section]:
    """The sections of a notification, in reading order."""
    finding = _finding(notification, notification.finding) if notification.finding else ()
    return [*_note(notification.note), *finding, *_incident(notification), *_ways_on(notification)]


def _note(note: str) -> Iterator[Section]:
    for paragraph in note.strip().split("\n\n"):
        lines = [text for line in paragraph.split("\n") if (text := clean(line))]
        items = tuple(line.removeprefix("- ") for line in lines if line.startswith("- "))
        if lines:
            yield Section(lines=tuple(line for line in lines if not line.startswith("- ")), items=items)


def _finding(notification: Notification, finding: Finding) -> Iterator[Section]:
    firing, first = "", notification.first_hour or notification.since
    if first is not None:
        until = notification.until or notification.hour + timedelta(hours=1)
        firing = f"Firing {since_text(first, notification.since, until)}."
    summary = " ".join(part for part in (finding.message, *finding.details, firing) if part)
    impact = (f"Impact: {clean(finding.impact)}",) if finding.impact else ()
    yield Section(lines=(clean(summary), *impact, _ownership(finding)))
    if finding.actions or finding.commands:
        yield Section(
            "Recommended actions",
            items=tuple(clean(action) for action in finding.actions),
            are_ordered=True,
            commands=tuple(clean(line) for line in reading(finding.commands)),
        )
    if changes := changing(finding.commands):
        yield Section("Commands that change or pause the system", commands=tuple(clean(line) for line in changes))
    if metrics := readable_metrics(finding.key_metric_values):
        pairs = tuple((clean(label), clean(text)) for label, text in metrics)
        yield Section(f"Key metrics, {hour_span(notification.hour)}", metrics=pairs)
    if not finding.resource.owner:
        how = "To assign an owner, add this line under `owners:` in streamwarden.yaml:"
        yield Section("Owner", lines=(how,), commands=(clean(owner_entry(finding.resource.key)),))


def _ownership(finding: Finding) -> str:
    owner, application = finding.resource.owner, finding.resource.application
    parts = [f"Severity: {finding.severity or finding.status}.", f"Owner: {clean(owner) if owner else 'unassigned'}."]
    return " ".join([*parts, *([f"Application: {clean(application)}."] if application else [])])


def _incident(notification: Notification) -> Iterator[Section]:
    effects = f"Downstream effects ({len(notification.follows)})"
    message, candidates = notification.unexplained[:1], notification.unexplained[1:]
    for heading, lines, items in (
        (effects, (), notification.follows),
        ("Ruled out", (), notification.refused),
        ("Upstream causes: none found", message, candidates),
        ("Recent changes", (), notification.before),
    ):
        if lines or items:
            yield Section(heading, lines=tuple(map(clean, lines)), items=tuple(map(clean, items)))


def _ways_on(notification: Notification) -> Iterator[Section]:
    if notification.related:
        links = (Link(other.relation, clean(other.title), other.url, other.state) for other in notification.related)
        yield Section("Related", links=tuple(links))
    if notification.url:
        yield Section(links=(Link("", "Chart, history, detector, SQL", notification.url),))


def fitting(notification: Notification, length: Callable[[Sequence[Section]], int], limit: int) -> list[Section]:
    """The sections of a notification, cut to the limit of a tracker.

    Args:
        length: length of sections as the tracker counts it.
        limit: its limit; the longest lists and lines are halved until they fit.
    """
    found = sections(notification)
    while length(found) > limit:
        longest = max(range(len(found)), key=lambda index: length([found[index]]))
        found[longest] = _halved(found[longest])
    return found


def _halved(section: Section) -> Section:
    lines = tuple(line for line in section.lines if line != _LEFT_OUT)
    for part in ("items", "metrics", "links", "commands"):
        if len(values := getattr(section, part)) > 1:
            return replace(section, lines=(*lines, _LEFT_OUT), **{part: values[: len(values) // 2]})
    half = tuple(line[: len(line) // 2] for line in lines if len(line) > 1)
    return Section(section.heading, lines=(*half, _LEFT_OUT)) if half else Section()


_LEFT_OUT = "(Truncated: the limit of this tracker is reached. The page has the rest.)"
