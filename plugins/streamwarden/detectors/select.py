"""Reads parameters, columns, and reasons from a detector's SQL without a database.

This is a tokenizer, not an SQL parser: it recognizes strings, comments, brackets, and the last top-level select.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|--[^\n]*)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<cast>::)
      | :(?P<parameter>[a-z]\w*)
      | (?P<word>\w+(?:\.\w+)*)
      | (?P<other>\S)""",
    re.DOTALL | re.VERBOSE,
)
_REASON = re.compile(r"[a-z][a-z0-9_]*")
_ENDS = ("from", "union", "order", "limit", "where")


class Token(NamedTuple):
    """A token of SQL; `start` is its offset in the text."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True)
class Positional:
    """SQL with `$1`, `$2`, … instead of `:names`, as PostgreSQL's protocol requires."""

    text: str
    names: tuple[str, ...]
    """Parameter names in the order of their numbers."""
    shifts: tuple[tuple[int, int], ...]
    """(offset in `text`, offset in the original), ascending."""

    def original(self, place: int) -> int:
        """Converts an offset in `text` to the offset in the original."""
        start, was = max((shift for shift in self.shifts if shift[0] <= place), default=(0, 0))
        return was + place - start


@cache  # each check of a detector reads the tokens of its SQL
def tokens(sql: str) -> tuple[Token, ...]:
    """All tokens except white space and comments."""
    found = [(str(one.lastgroup), one) for one in _TOKEN.finditer(sql)]
    return tuple(Token(kind, one[kind], one.start()) for kind, one in found if kind != "comment")


def parameters(sql: str) -> set[str]:
    """Names of the parameters `:name`, ignoring strings, comments, and casts."""
    return {token.text for token in tokens(sql) if token.kind == "parameter"}


def positional(sql: str) -> Positional:
    """Replaces `:name` by `$number`."""
    names: list[str] = []
    parts: list[str] = []
    shifts: list[tuple[int, int]] = []
    done = length = 0
    for token in tokens(sql):
        if token.kind != "parameter":
            continue
        if token.text not in names:
            names.append(token.text)
        piece = f"{sql[done : token.start]}${names.index(token.text) + 1}"
        parts.append(piece)
        length += len(piece)
        done = token.start + len(token.text) + 1
        shifts.append((length, done))
    return Positional("".join(parts) + sql[done:], tuple(names), tuple(shifts))


def columns(sql: str) -> list[str]:
    """Column names of the last select, in order; `*` if it does not list them."""
    return [_name(item) for item in _items(list(tokens(sql)))]


def reasons(sql: str) -> set[str]:
    """All values of the column `reason`: the strings after `then` and `else`, or a single string."""
    all_tokens = list(tokens(sql))
    found: set[str] = set()
    for place, token in enumerate(all_tokens):
        if token.text == "reason" and place and all_tokens[place - 1].text.lower() == "as":
            found |= _texts(_expression_before(all_tokens, place - 1))
    return found


def strings(sql: str) -> Iterator[Token]:
    """The string literals, without quotes."""
    for token in tokens(sql):
        if token.kind == "string":
            yield Token("string", token.text[1:-1].replace("''", "'"), token.start)


def _items(all_tokens: list[Token]) -> Iterator[list[Token]]:
    depth, begins = 0, None
    for place, token in enumerate(all_tokens):
        depth += _depth(token)
        if depth == 0 and token.text.lower() == "select":
            begins = place + 1
    if begins is None:
        return
    item: list[Token] = []
    before, word = "", ""
    depth = cases = 0
    for token in all_tokens[begins:]:
        before, word = word, token.text.lower() if token.kind == "word" else ""
        depth += _depth(token)
        cases += (word == "case") - (word == "end" and cases > 0)
        if depth == 0 and cases == 0 and word in _ENDS and before != "distinct":  # `is distinct from` is no from clause
            break
        if depth == 0 and cases == 0 and token.text == ",":
            yield item
            item = []
        else:
            item.append(token)
    yield item


def _name(item: list[Token]) -> str:
    last = item[-1] if item else Token("other", "", 0)
    return last.text.strip('"').rpartition(".")[2] or last.text


def _expression_before(all_tokens: list[Token], end: int) -> list[Token]:
    """The tokens of the expression that ends before `end`: back to a comma or select of the same depth."""
    depth = 0
    for place in range(end - 1, -1, -1):
        token = all_tokens[place]
        depth -= _depth(token)
        if depth < 0 or (depth == 0 and (token.text == "," or token.text.lower() == "select")):
            return all_tokens[place + 1 : end]
    return all_tokens[:end]


def _texts(expression: list[Token]) -> set[str]:
    if len(expression) == 1 and expression[0].kind == "string":
        return {expression[0].text[1:-1]}
    return {
        token.text[1:-1]
        for before, token in pairwise(expression)
        if token.kind == "string" and before.text.lower() in ("then", "else") and _REASON.fullmatch(token.text[1:-1])
    }


def _depth(token: Token) -> int:
    return (token.text in "([") - (token.text in ")]") if token.kind == "other" else 0
