r"""Regular expressions as JSON Schema writes them: ECMA-262 with the flag `u`, found anywhere in a text.

The dialect differs from Python's: `\p{L}`, `(?<name>)`, and lookbehinds of any length are common, `\d` and `\w` are
ASCII, `$` does not match before a line break, and a dot does not match U+2028. So a pattern is translated for the
module `regex`, which has the same constructs; constructs that ECMA-262 does not have make it invalid. Patterns are
untrusted: one that takes too long is not evaluated either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import regex

_LONGEST_SECONDS = 1
_ENDLESS: set[str] = set()
"""Patterns that took too long once: they are not tried again."""
_SPACES = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_WORD = "[A-Za-z0-9_]"
_SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACES}
_BEYOND = {
    "D": r"\x00-/:-\U0010FFFF",
    "W": r"\x00-/:-@\[-\^`{-\U0010FFFF",
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010FFFF",
}
"""The complements of _SETS, for use within brackets."""
_BOUNDARY = rf"(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD})"
_INSIDE = rf"(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD})"
_TOKEN = regex.compile(
    r"""(?P<property>\\[pP]\{[A-Za-z0-9_]+(?:=[A-Za-z0-9_]+)?\})
    |(?P<name>\\k<[A-Za-z_$][\w$]*>)
    |(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})
    |(?P<code>\\u\{[0-9a-fA-F]{1,6}\}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\0(?![0-9]))
    |(?P<control>\\c[A-Za-z])
    |(?P<escape>\\(?:[dDwWsSbBfnrtv]|[1-9][0-9]?|[\ !-/:-@\[-`{-~]))
    |(?P<group>\((?!\?)|\(\?(?::|=|!|<=|<!|<[A-Za-z_$][\w$]*>))
    |(?P<quantifier>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??(?![*+?]))
    |(?P<plain>[^\\*+?(])""",
    regex.VERBOSE,
)


class NoPattern(ValueError):
    """Not an ECMA-262 pattern, or one that takes too long to evaluate."""


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text. Raises NoPattern."""
    check(pattern)
    try:
        return _compiled(pattern).search(text, timeout=_LONGEST_SECONDS) is not None
    except TimeoutError:
        _ENDLESS.add(pattern)
        raise NoPattern(pattern) from None


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> Any:
    try:
        return regex.compile(_translated(pattern), regex.VERSION0)
    except (regex.error, TypeError, ValueError, OverflowError, RecursionError, KeyError):
        raise NoPattern(pattern) from None


def check(pattern: Any) -> None:
    """Raises NoPattern if `is_found` could raise it for any text."""
    if not isinstance(pattern, str) or pattern in _ENDLESS:
        raise NoPattern(pattern)
    _compiled(pattern)


def _translated(pattern: str) -> str:
    made, at, in_class = [], 0, False
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if not in_class and pattern[at] == "[":
            head = next(head for head in ("[^]", "[]", "[^", "[") if pattern.startswith(head, at))
            made.append({"[^]": r"(?s:.)", "[]": "(?!)"}.get(head, head))
            in_class = head in ("[^", "[")
            at += len(head)
        elif in_class and pattern[at] == "]":
            made.append("]")
            in_class, at = False, at + 1
        elif in_class and pattern[at] in "[*+?(":
            made.append(f"\\{pattern[at]}")
            at += 1
        elif found is None:
            raise NoPattern(pattern)
        else:
            made.append(_token(found, in_class=in_class))
            at = found.end()
    return "".join(made)


def _token(found: Any, *, in_class: bool) -> str:
    kind, text = found.lastgroup, found[0]
    if kind == "escape":
        return _escape(text[1:], in_class=in_class)
    if kind == "name":
        return f"(?P={text[3:-1]})"
    if kind == "group":
        return text.replace("(?<", "(?P<") if text.endswith(">") else text
    if kind == "pair":
        return regex.escape(text.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16"))
    if kind in ("code", "control"):
        code = ord(text[2]) % 32 if kind == "control" else int(text[2:].strip("{}") or "0", 16)
        return regex.escape(chr(code), special_only=False)
    if not in_class:
        return {".": r"[^\n\r\u2028\u2029]", "$": r"\Z", "{": r"\{", "}": r"\}", "]": r"\]"}.get(text, text)
    return text


def _escape(text: str, *, in_class: bool) -> str:
    if text in "dws":
        return _SETS[text] if in_class else f"[{_SETS[text]}]"
    if text in "DWS":
        return _BEYOND[text] if in_class else f"[^{_SETS[text.lower()]}]"
    if text in "bB":
        return r"\x08" if in_class and text == "b" else f"(?:{_BOUNDARY if text == 'b' else _INSIDE})"
    return "/" if text == "/" else f"\\{text}"
