"""A letter as sections without markup: what is wrong, since when, what to do, the figures that convince, what is near.

Every value from outside has gone through `clean`, so that no name can add a line or a terminal code; what a markup
takes for its own, that markup escapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from streamwarden.detectors.finding import Finding
from streamwarden.detectors.things import owner_entry
from streamwarden.tickets.sinks.contract import Letter
from streamwarden.words.readable import clean, moment, readable_figures, span


@dataclass(frozen=True)
class Link:
    """`before: title (after)`, where the title leads to the address."""

    before: str
    title: str
    url: str
    after: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a letter; what it has comes in this order."""

    heading: str = ""
    lines: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Lines to paste into a shell, as they are."""
    figures: tuple[tuple[str, str], ...] = ()
    """Labels and texts; an entry of a list has no label but for the first."""
    links: tuple[Link, ...] = ()


def sections(letter: Letter) -> list[Section]:
    """All that a letter tells, in the order in which it is read."""
    finding = _finding(letter, letter.finding) if letter.finding else ()
    return [*_note(letter.note), *finding, *_incident(letter), *_ways_on(letter)]


def _note(note: str) -> Iterator[Section]:
    for paragraph in note.strip().split("\n\n"):
        lines = [told for line in paragraph.split("\n") if (told := clean(line))]
        items = tuple(line.removeprefix("- ") for line in lines if line.startswith("- "))
        if lines:
            yield Section(lines=tuple(line for line in lines if not line.startswith("- ")), items=items)


def _finding(letter: Letter, finding: Finding) -> Iterator[Section]:
    lasting, since = "", letter.since
    if since is not None:
        duration = span(((letter.until or letter.hour + timedelta(hours=1)) - since).total_seconds())
        lasting = f" In alarm since {moment(since)} ({duration})."
    owner, application = finding.about.owner, finding.about.application
    owned = f"owned by {clean(owner)}" if owner else "nobody is named as owner"
    severity = f"{(finding.severity or '').capitalize()}, {owned}"
    severity += f", application {clean(application)}." if application else "."
    yield Section(lines=(clean(finding.reason) + lasting, severity))
    if not owner:
        how = "To name an owner, write under owners: in streamwarden.yaml"
        yield Section(lines=(how,), commands=(clean(owner_entry(finding.about.key)),))
    if finding.cure or finding.commands:
        cure = (clean(finding.cure),) if finding.cure else ()
        yield Section("What to do", lines=cure, commands=tuple(clean(line) for line in finding.commands))
    if figures := readable_figures(finding.convincing):
        pairs = tuple((clean(label), clean(text)) for label, text in figures)
        yield Section(f"Figures of the hour {moment(letter.hour)}", figures=pairs)


def _incident(letter: Letter) -> Iterator[Section]:
    follows = f"What follows from it ({len(letter.follows)})"
    said, tested = letter.unexplained[:1], letter.unexplained[1:]
    for heading, lines, items in (
        (follows, (), letter.follows),
        ("What doesn't", (), letter.refused),
        ("No cause known", said, tested),
        ("Just before", (), letter.before),
    ):
        if lines or items:
            yield Section(heading, lines=tuple(map(clean, lines)), items=tuple(map(clean, items)))


def _ways_on(letter: Letter) -> Iterator[Section]:
    if letter.related:
        links = (Link(other.relation, clean(other.title), other.url, other.state) for other in letter.related)
        yield Section("Related", links=tuple(links))
    if letter.url:
        yield Section(links=(Link("", "Plot, history, rule, SQL", letter.url),))


def fitting(letter: Letter, length: Callable[[Sequence[Section]], int], limit: int) -> list[Section]:
    """The sections, the longest lists and lines cut until their length as the tracker counts it is within its limit."""
    told = sections(letter)
    while length(told) > limit:
        longest = max(range(len(told)), key=lambda index: length([told[index]]))
        told[longest] = _halved(told[longest])
    return told


def _halved(section: Section) -> Section:
    lines = tuple(line for line in section.lines if line != _LEFT_OUT)
    for part in ("items", "figures", "links", "commands"):
        if len(values := getattr(section, part)) > 1:
            return replace(section, lines=(*lines, _LEFT_OUT), **{part: values[: len(values) // 2]})
    half = tuple(line[: len(line) // 2] for line in lines if len(line) > 1)
    return Section(section.heading, lines=(*half, _LEFT_OUT)) if half else Section()


_LEFT_OUT = "(Too long for this tracker: the rest stands on the page.)"
