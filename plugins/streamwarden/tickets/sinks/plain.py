"""Letters as plain text, for trackers without markup: what is wrong, since when, what to do, the figures that convince.

Every value from outside goes through `clean`, so that no name can add a line, a terminal code or a machine line; a
tracker that shows more than plain text escapes it itself.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from streamwarden.detectors.finding import Finding
from streamwarden.tickets.sinks.contract import Draft, Letter
from streamwarden.words.readable import clean, readable_figures, span
from streamwarden.words.templates import folder_templates

LINE = 100  # characters
_ITEM = r"\d+\. |[-*] "


def draft_text(draft: Draft) -> str:
    """A new ticket, the lines for machines last."""
    machine = {"fingerprint": draft.fingerprint, "detector": draft.detector, "resource": draft.resource}
    return f"{letter_text(draft.letter)}\n" + "".join(f"{key}: {clean(value)}\n" for key, value in machine.items())


def letter_text(letter: Letter) -> str:
    """A letter; a name at the start of a line doesn't pass for one of the lines for machines."""
    finding = letter.finding
    lasting = ""
    if letter.since is not None:
        lasting = span((letter.hour - letter.since + timedelta(hours=1)).total_seconds())
    text = _TEMPLATES.get_template("letter.txt").render(
        letter=letter, finding=finding, lasting=lasting, figures=_aligned(finding) if finding else []
    )
    return re.sub(r"^(?=(?:fingerprint|detector|resource):)", " ", text.strip(), flags=re.MULTILINE) + "\n"


def wrapped(text: str, indent: int = 0) -> str:
    """Text in lines that fit a tracker's page: paragraphs, and items of lists with a hanging indent."""
    items: list[str] = []
    for line in text.strip("\n").splitlines():
        if items and items[-1].strip() and line.strip() and not re.match(_ITEM, line):
            items[-1] += f" {line.strip()}"  # goes on with the item above
        else:
            items.append(line)
    return "\n".join(_filled(item, " " * indent) for item in items)


def _filled(item: str, indent: str) -> str:
    hanging = re.match(_ITEM, item)
    inner = indent + " " * (len(hanging[0]) if hanging else 0)
    return textwrap.fill(
        item, LINE, initial_indent=indent, subsequent_indent=inner, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip


def _aligned(finding: Finding) -> Iterable[str]:
    pairs = readable_figures(finding.convincing)
    width = max((len(label) for label, _ in pairs), default=0)
    return [
        textwrap.fill(
            text, LINE, initial_indent=f"  {label:<{width}}  ", subsequent_indent=" " * (width + 4),
            break_long_words=False, break_on_hyphens=False,
        )
        for label, text in pairs
    ]  # fmt: skip


_TEMPLATES = folder_templates(Path(__file__).parent / "templates", wrapped=wrapped)
