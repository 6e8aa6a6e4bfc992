"""Notifications in Jira's formats: ADF (Atlassian Document Format, Cloud) and wiki markup (Data Center)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from streamwarden.tickets.sinks.contract import Notification
from streamwarden.tickets.sinks.sections import Link, Section, fitting

LIMIT = 32_767  # characters of a description or a comment
_SPECIAL = re.compile(r"([{}\[\]*_+^~|!?#@&-])")
_ICON = re.compile(r"\((?=(?:[xin+!?/yY*-]|on|off|\*[rgby]|flag|flagoff)\))|(?<=[:;])[()]|:(?=[PpDd]\b)|;(?=-?\))")
_BLOCK = re.compile(r"^(h[1-6]|bq)\.(?=\s)")
_BEFORE_WORDS = "Reference: "
Node = dict[str, Any]


def adf(notification: Notification, marker: str) -> Node:
    """A notification as ADF; its last line is the reference that identifies it."""
    return _document(fitting(notification, lambda some: len(json.dumps(_document(some, marker))), LIMIT), marker)


def adf_text(node: Any) -> str:
    """The plain text of an ADF document, to search for a marker."""
    if isinstance(node, list):
        return "\n".join(map(adf_text, node))
    return f"{node.get('text', '')}{adf_text(node.get('content') or [])}" if isinstance(node, dict) else str(node or "")


def wiki(notification: Notification, marker: str) -> str:
    """A notification in wiki markup."""
    return _wiki(fitting(notification, lambda some: len(_wiki(some, marker)), LIMIT), marker)


def reference(marker: str) -> str:
    """The last line of a text, which identifies it."""
    return f"{_BEFORE_WORDS}{marker}"


def fingerprints(text: str) -> set[str]:
    """The fingerprints in the reference lines of a text; the references of comments are longer."""
    return set(re.findall(rf"^{_BEFORE_WORDS}([0-9a-f]{{64}})\s*$", text, flags=re.MULTILINE))


def _document(sections: Sequence[Section], marker: str) -> Node:
    content = [node for section in sections for node in _nodes(section)]
    return {"version": 1, "type": "doc", "content": [*content, _paragraph(_text(reference(marker)))]}


def _nodes(section: Section) -> Iterator[Node]:
    if section.heading:
        yield {"type": "heading", "attrs": {"level": 4}, "content": [_text(section.heading)]}
    if section.lines:
        broken = [node for line in section.lines for node in (_text(line), {"type": "hardBreak"})]
        yield _paragraph(*broken[:-1])
    if section.items:
        yield _list([[_text(item)] for item in section.items], is_ordered=section.are_ordered)
    if section.commands:
        yield {"type": "codeBlock", "attrs": {"language": "bash"}, "content": [_text("\n".join(section.commands))]}
    if section.metrics:
        rows = [
            {"type": "tableRow", "content": [_cell("tableHeader", label), _cell("tableCell", text)]}
            for label, text in section.metrics
        ]
        yield {"type": "table", "content": rows}
    if section.links:
        yield _list([_link(link) for link in section.links])


def _text(words: str, *marks: Node) -> Node:
    node: Node = {"type": "text", "text": words or " "}  # ADF has no empty text
    return node | {"marks": list(marks)} if marks else node


def _paragraph(*content: Node) -> Node:
    return {"type": "paragraph", "content": list(content)}


def _list(items: Sequence[Sequence[Node]], *, is_ordered: bool = False) -> Node:
    return {
        "type": "orderedList" if is_ordered else "bulletList",
        "content": [{"type": "listItem", "content": [_paragraph(*content)]} for content in items],
    }


def _cell(kind: str, words: str) -> Node:
    return {"type": kind, "attrs": {}, "content": [_paragraph(_text(words))]}


def _link(link: Link) -> list[Node]:
    title = _text(link.title, {"type": "link", "attrs": {"href": link.url}})
    return [_text(f"{link.before}: "), title, _text(f" ({link.after})")] if link.before else [title]


def _wiki(sections: Sequence[Section], marker: str) -> str:
    parts = [part for section in sections for part in _wiki_parts(section)]
    return "\n\n".join([*parts, reference(marker)])


def _wiki_parts(section: Section) -> Iterator[str]:
    if section.heading:
        yield f"h4. {_escaped(section.heading)}"
    if section.lines:
        yield "\n".join(_escaped(line) for line in section.lines)
    if section.items:
        mark = "#" if section.are_ordered else "*"
        yield "\n".join(f"{mark} {_escaped(item)}" for item in section.items)
    if section.commands:
        commands = "\n".join(section.commands).replace("{noformat}", "{ noformat}")
        yield f"{{noformat}}\n{commands}\n{{noformat}}"
    if section.metrics:
        yield "\n".join(f"||{_escaped(label) or ' '}|{_escaped(text)}|" for label, text in section.metrics)
    if section.links:
        yield "\n".join(f"* {_wiki_link(link)}" for link in section.links)


def _wiki_link(link: Link) -> str:
    title = f"[{_escaped(link.title)}|{quote(link.url, safe=':/?#@!$&*+,;=%~-._')}]"
    return f"{_escaped(link.before)}: {title} ({_escaped(link.after)})" if link.before else title


def _escaped(text: str) -> str:
    """Text with all markup escaped. A double backslash would be a line break, and icons have no special character:
    both become entities."""
    entities = {match.start() for match in _ICON.finditer(text)} | {at for at, c in enumerate(text) if c == "\\"}
    parts, done = list[str](), 0
    for at in sorted(entities):
        parts += [_SPECIAL.sub(r"\\\1", text[done:at]), f"&#{ord(text[at])};"]
        done = at + 1
    parts.append(_SPECIAL.sub(r"\\\1", text[done:]))
    return _BLOCK.sub(r"\1&#46;", "".join(parts))
