"""Shapes of JSON values: converts the text of Spark's `schema_of_variant`, the exact type of a value, to paths.

A shape is lossless except for arrays (elements are merged, so a path below `[]` counts values, not elements). Spark
counts values of the same shape; only distinct shapes are processed here, so the work depends on their number.
Objects used as maps (many unrelated keys) collapse to one path `*`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Path = tuple[str, ...]
"""Keys from the root; `[]` for elements of an array, `*` for keys of a map. Plain keys have a dot as prefix."""

ELEMENT = "[]"
MAP_KEY = "*"
FRAMED = "FRAMED "
"""Prefix of the shape of a value framed by a Schema Registry; its schema id follows."""
FORMATS = {"LONG": "long", "BINARY": "binary", "TEXT": "string"}
"""Other shapes that are not JSON, by their names in `state_stores`, with their types here."""

_TOKEN = re.compile(
    r"(?P<object>OBJECT<)|(?P<array>ARRAY<)|(?P<end>>)|(?P<comma>, ?)|(?P<scalar>[A-Z]+(?:\(\d+,\d+\))?)"
)
_KEY = re.compile(r"(?:`((?:[^`]|``)*)`|([^:`]+)): ")
_SCALARS = {
    "BIGINT": "integer",
    "DOUBLE": "number",
    "FLOAT": "number",
    "STRING": "string",
    "BOOLEAN": "boolean",
    "VOID": "null",
    "VARIANT": "mixed",
}
_GENERATED_KEY = re.compile(
    r"\.(?:[\d.,:_-]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{12,}|.*\d{4,}.*|.*@.*|\d{4}-\d\d.*)$", re.DOTALL
)
DEEPEST = 100
"""Maximum depth: deeper levels are ignored."""
_LONGEST_PATH = 500
"""Maximum length of a path in characters: PostgreSQL's index keys have at most some 2,700 bytes."""
_MANY_KEYS = 32
_SOME_GENERATED_KEYS = 3
_MAP_PRESENCE = 0.2


@lru_cache(maxsize=20_000)
def paths_of(shape: str) -> tuple[tuple[Path, str], ...]:
    """Path and type of every node of a shape; a scalar at the root is text that happens to be JSON: `string`."""
    if shape in FORMATS or shape.startswith(FRAMED):
        return (((), FORMATS.get(shape, "framed")),)
    if not shape.startswith(("OBJECT<", "ARRAY<")):
        return (((), "string"),)
    found: list[tuple[Path, str]] = []
    try:
        _parse(shape, 0, (), found)
    except RecursionError:  # hundreds of levels: only the root is used
        return (((), found[0][1]),)
    return tuple(each for each in found if len(each[0]) <= DEEPEST)


def _parse(shape: str, at: int, path: Path, found: list[tuple[Path, str]]) -> int:
    """Parses one type at position `at`; returns the position after it."""
    token = _TOKEN.match(shape, at)
    if token is None:
        raise ValueError(f"not a type: {shape[at : at + 80]}")
    if token["object"]:
        found.append((path, "object"))
        at = token.end()
        while shape[at] != ">":
            key = _KEY.match(shape, at)
            if key is None:
                raise ValueError(f"not a field: {shape[at : at + 80]}")
            name = key[2] if key[1] is None else key[1].replace("``", "`")
            at = _parse(shape, key.end(), (*path, f".{name}"), found)
            at += 2 if shape.startswith(", ", at) else 0
        return at + 1
    if token["array"]:
        found.append((path, "array"))
        if shape.startswith("VOID>", token.end()):  # an empty array, or nulls only: the type of elements is unknown
            return token.end() + 5
        return _parse(shape, token.end(), (*path, ELEMENT), found) + 1
    scalar = token["scalar"]
    if scalar.startswith("DECIMAL"):
        found.append((path, "integer" if scalar.endswith(",0)") else "number"))
    else:
        found.append((path, _SCALARS.get(scalar, "string")))
    return token.end()


def render(path: Path) -> str:
    """`$.a.b[].c`; a key that is not a plain word is quoted: `$['a.b']`."""
    text = "$"
    for part in path:
        if part in (ELEMENT, MAP_KEY):
            text += ELEMENT if part == ELEMENT else ".*"
        elif re.fullmatch(r"\.[\w-]+", part):
            text += part
        else:
            text += f"[{part[1:]!r}]"
    if len(text) <= _LONGEST_PATH:
        return text
    return f"{text[: _LONGEST_PATH - 20]}…{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


@dataclass
class _Node:
    """Counts of a path before maps collapse."""

    values: int = 0
    objects: int = 0
    children: dict[str, _Node] = field(default_factory=dict)

    def merge(self, other: _Node) -> None:
        """Adds the counts of another node."""
        self.values += other.values
        self.objects += other.objects
        for key, child in other.children.items():
            self.children.setdefault(key, _Node()).merge(child)


class Maps:
    """Determines which objects are maps, from all shapes of a topic and the number of values of each."""

    def __init__(self, shapes: Iterable[tuple[str, int]]) -> None:
        root = _Node()
        for shape, count in shapes:
            for path, kind in paths_of(shape):
                node = root
                for part in path:
                    node = node.children.setdefault(part, _Node())
                node.values += count
                node.objects += count if kind == "object" else 0
        self._root = root
        self._maps: set[Path] = set()
        self._collapse(root, ())

    def _collapse(self, node: _Node, path: Path) -> None:
        if _is_map(node):
            self._maps.add(path)
            merged = _Node()
            for child in node.children.values():
                merged.merge(child)
            node.children = {MAP_KEY: merged}
        for key, child in node.children.items():
            self._collapse(child, (*path, key))

    def paths(self, shape: str) -> set[tuple[Path, str]]:
        """Paths and types of a shape with maps collapsed, each once."""
        if not self._maps:
            return set(paths_of(shape))
        return {(self._collapsed(path), kind) for path, kind in paths_of(shape)}

    def _collapsed(self, path: Path) -> Path:
        known: Path = ()
        for part in path:
            known = (*known, MAP_KEY if known in self._maps else part)
        return known


def _is_map(node: _Node) -> bool:
    """Whether there are many rare keys, or keys that programmers do not write (numbers, dates, identifiers)."""
    keys = [key for key in node.children if key != ELEMENT]
    if not node.objects or not keys:
        return False
    presence = sum(node.children[key].values for key in keys) / (node.objects * len(keys))
    generated = sum(1 for key in keys if _GENERATED_KEY.match(key))
    if generated == len(keys) >= _SOME_GENERATED_KEYS:
        return True
    rare = presence < _MAP_PRESENCE
    return rare and (len(keys) >= _MANY_KEYS or generated >= max(_SOME_GENERATED_KEYS, 0.9 * len(keys)))


def leaves_at(value: Any, path: Path) -> list[Any]:
    """The nodes at a path of a parsed value: several behind `[]` and `*`, none where the path is absent."""
    found = [value]
    for part in path:
        if part == ELEMENT:
            found = [item for node in found if isinstance(node, list) for item in node]
        elif part == MAP_KEY:
            found = [item for node in found if isinstance(node, dict) for item in node.values()]
        else:
            found = [node[part[1:]] for node in found if isinstance(node, dict) and part[1:] in node]
    return found


def type_of(value: Any) -> str:
    """The type name of a parsed JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((int, "integer"), (float, "number"), (str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    raise TypeError(f"not JSON: {type(value).__name__}")
