"""Validates regular expressions that PostgreSQL evaluates (`~`), before the config is used.

PostgreSQL has "advanced regular expressions" (manual, 9.7.3), which differ from Python's: there are no named groups,
`\\b` is a backspace, and a quantifier is at most 255. After PostgreSQL's own escapes are removed, Python's parser
parses the pattern, and each element must have the same meaning in PostgreSQL.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from re import _constants as sre  # type: ignore[attr-defined]  # the parser itself has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MOST_REPEATS = 255
_OWN = re.compile(r"\\[mMyYAZ]|\[\[:[<>]:\]\]|(\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])", re.DOTALL)
"""Constraints that Python does not have or writes differently: beginning and end of a word and of the text. The group
matches what can be mistaken for one: another escape, or a bracket."""
_OTHERWISE = {
    r"\b": r"a backspace; the edge of a word is \y",
    r"\B": r"a backslash; what is no edge of a word is \Y",
    r"\x": "as many hexadecimal digits as follow; write the character itself",
    r"\0": "an octal number; write the character itself",
    r"\N": "no escape",
}
_FLAGS = {sre.SRE_FLAG_UNICODE, sre.SRE_FLAG_IGNORECASE}
_PLAIN = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.GROUPREF}
_CLASSES = {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit",
            "word"}  # fmt: skip


def compiles_in_postgres(pattern: str) -> str:
    """Returns the pattern. Raises ValueError with the problem and a fix if PostgreSQL would reject or misread it."""
    problem = next(_escapes(pattern), None) or next(_brackets(pattern), None)
    if problem is None:
        try:
            with warnings.catch_warnings(action="ignore"):
                parsed = parser.parse(_OWN.sub(lambda match: match[1] or "(?:)", pattern))
        except (re.error, OverflowError, RecursionError) as error:
            problem = str(error)
        else:
            problem = "named groups (?P<…>) are Python's; write (…)" if parsed.state.groupdict else None
            problem = problem or next(_flags(parsed.state.flags), None) or next(_parts(parsed), None)
    if problem is not None:
        raise ValueError(f"not a regular expression as PostgreSQL reads it: {problem}")
    return pattern


def _escapes(pattern: str) -> Iterator[str]:
    for found in re.findall(r"\\.", pattern, flags=re.DOTALL):
        if found in _OTHERWISE:
            yield f"{found} is {_OTHERWISE[found]}"


def _brackets(pattern: str) -> Iterator[str]:
    """Classes such as [[:alpha:]], and what looks like one."""
    for kind, name in re.findall(r"\[([:.=])(.*?)(?:\1\]|$)", pattern):
        if kind != ":" or (name not in _CLASSES and f"[[:{name}:]]" not in ("[[:<:]]", "[[:>:]]")):
            yield f"[{kind}{name} is no class of characters; there are: {', '.join(sorted(_CLASSES))}"
    if re.search(r"\[:[<>]:", _OWN.sub(lambda match: match[1] or "", pattern)):
        yield "[[:<:]] and [[:>:]] stand alone, not within [ ]"
    bodies = re.findall(r"\[\^?\]?-?((?:\\.|\[:\w+:\]|[^\]\\])*?)-?\]", pattern)
    if any(re.search(r"(?:\\.|.)-(?:\\.|.)-.", body) for body in bodies):
        yield "the end of a range does not begin another; write a dash as \\-"
    if re.search(r"\{(?=\d)(?!\d+(,\d*)?\})", re.sub(r"\\.", "", pattern)):
        yield "a { before a digit begins a quantifier; write \\{"
    if re.search(r"\[[^\]]*\\[0-9]", pattern):
        yield "no number after a backslash within [ ]"
    if pattern.rfind("(?i)") > 0:
        yield "flags stand at the beginning alone: (?i)…"
    if re.search(r"\{,\d", pattern):
        yield "{,n} is text there; write {0,n}"
    if pattern.startswith("***"):
        yield "*** at the beginning changes the syntax"


def _flags(flags: int) -> Iterator[str]:
    rest = flags
    for one in _FLAGS:
        rest &= ~one
    if rest:
        yield "of Python's flags only (?i) means the same"


def _parts(parsed: Any, *, looks_around: bool = False) -> Iterator[str]:
    for kind, value in parsed:
        if kind is sre.GROUPREF and looks_around:
            yield "no reference to a group within (?=…)"
        elif kind is sre.AT and value not in (sre.AT_BEGINNING, sre.AT_END):
            yield "of anchors it has ^ and $"
        elif kind in _PLAIN or kind is sre.AT or kind is sre.IN:
            continue
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield from _parts(branch, looks_around=looks_around)
        elif kind is sre.SUBPATTERN:
            if value[1] or value[2]:
                yield "flags stand at the beginning alone: (?i)…"
            yield from _parts(value[3], looks_around=looks_around)
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield from _repeat(*value, looks_around=looks_around)
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _parts(value[1], looks_around=True)
        else:
            yield f"it has no {str(kind).lower().replace('_', ' ')}"


def _repeat(least: int, most: int, parsed: Any, *, looks_around: bool) -> Iterator[str]:
    if max(least, 0 if most is sre.MAXREPEAT else int(most)) > MOST_REPEATS:
        yield f"a quantifier is {MOST_REPEATS} at most"
    if not parsed or parsed[0][0] in (sre.ASSERT, sre.ASSERT_NOT, sre.AT):
        yield "nothing is there that a quantifier could repeat"
    yield from _parts(parsed, looks_around=looks_around)
