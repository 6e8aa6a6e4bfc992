"""JSON Schemas: which values that one schema allows another rejects.

A schema is split into alternatives of one type each (`type`, `oneOf`, `anyOf`; `allOf` is merged into them). A
writer's alternative is readable if one of the reader's accepts all of it: its bounds are not tighter, its constants
include the writer's, its properties accept the writer's, and it requires nothing that the writer may omit.

The content model decides about undeclared properties: a closed one (`additionalProperties: false`) rejects them,
which is a breaking change. Properties that an open one might have had under a name that the other side declares
break only strict readers. `if`, `dependentSchemas`, and `propertyNames` are not evaluated; formats are annotations.
Patterns that are not ECMA-262 are reported with their path; they match no property and reject no constant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any
from urllib.parse import urljoin

from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7
from referencing.typing import URI

from spark_apps.models import ecma_patterns
from spark_apps.models.ecma_patterns import NoPattern
from spark_apps.models.json_alternatives import (
    ANYTHING,
    LOWER,
    UPPER,
    Alternative,
    Node,
    all_of,
    alternatives_of,
    both,
    may_match,
    reads,
)
from spark_apps.models.json_shapes import ELEMENT, MAP_KEY, Path, type_of
from spark_apps.models.schema_changes import Clashes, NotComparable, Place

_SIZES = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems"),
          "object": ("minProperties", "maxProperties")}  # fmt: skip
_SHOWN = (*LOWER, *UPPER, "multipleOf", "pattern", "uniqueItems")
_LONGEST_PATTERN = 80


Pairs = frozenset[tuple[Any, Any]]
"""Pairs of nodes in comparison: a recursive one clashes only where it does so otherwise."""


class JsonSchema:
    """A schema with its references, by the names that it uses for them.

    Raises:
        NotComparable: it is not a JSON Schema, or refers to an unknown schema.
    """

    def __init__(self, definition: str, imports: Mapping[str, str]) -> None:
        try:
            root = _resource(definition)
            registry: Registry[Any] = Registry().with_resources(
                [(uri, one) for name, text in imports.items() if (one := _imported(text)) for uri in _uris(root, name)]
            )
            self.root = Node(root.contents, registry.crawl().resolver_with_root(root))
            self._places: dict[Path, Place] = {}
            _describe(self.root, (), optional=False, within=frozenset(), found=self._places)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
            raise NotComparable("is not a JSON Schema") from None

    def places(self) -> dict[Path, Place]:
        """Properties by path; a recursive schema appears once."""
        return self._places

    def decoded(self, payload: bytes) -> Any:
        """The value after the frame."""
        return json.loads(payload)

    def clashes(self, writer: JsonSchema) -> Clashes:
        """Paths at which a reader with this schema rejects values that the writer's allows."""
        found: dict[Path, bool] = {}
        for path, is_strict in _clashes(self.root, writer.root, (), frozenset()):
            found[path] = is_strict and found.get(path, True)
        return found


def _uris(root: Resource[Any], name: str) -> set[URI]:
    return {name, urljoin(root.id() or "", name)}


def _resource(text: str) -> Resource[Any]:
    return Resource.from_contents(json.loads(text), default_specification=DRAFT7)


def _imported(text: str) -> Resource[Any] | None:
    """A referenced schema; None: it is no JSON, which matters only where it is needed."""
    try:
        return _resource(text)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _describe(node: Node, path: Path, *, optional: bool, within: frozenset[Any], found: dict[Path, Place]) -> None:
    if (key := _key(node)) in within:
        return
    alternatives = alternatives_of(node)
    texts = list(dict.fromkeys(_text(each) for each in alternatives if each.type != "null"))
    nullable = bool(texts) and any(each.type == "null" for each in alternatives)
    place = Place(path, "|".join(texts) or "null", optional=optional, nullable=nullable, unread=_unread(alternatives))
    found.setdefault(path, place)
    for each in alternatives:
        for name, inner in each.properties.items():
            optional = name not in each.required or _has_default(inner)
            _describe(inner, (*path, f".{name}"), optional=optional, within=within | {key}, found=found)
        for inner in (*each.patterns.values(), *_known(each.others)):
            _describe(inner, (*path, MAP_KEY), optional=True, within=within | {key}, found=found)
        for inner in (*each.elements, *_known(each.more_elements)):
            _describe(inner, (*path, ELEMENT), optional=False, within=within | {key}, found=found)


def _unread(alternatives: Iterable[Alternative]) -> tuple[str, ...]:
    """Patterns that are not evaluated, as written."""
    found = []
    for each in alternatives:
        for pattern in (*each.patterns, *(each.words[word] for word in ("pattern",) if word in each.words)):
            try:
                ecma_patterns.check(pattern)
            except NoPattern:
                found.append(f"the pattern {str(pattern)[:_LONGEST_PATTERN]!r}")
    return tuple(dict.fromkeys(found))


def _key(node: Node) -> Any:
    """Identity of a node. Parts of a schema live as long as the schema."""
    return tuple(map(_key, node.schema)) if isinstance(node.schema, tuple) else id(node.schema)


def _known(node: Node | None) -> list[Node]:
    return [] if node is None or node.schema is False else [node]


def _has_default(node: Node) -> bool:
    return isinstance(node.schema, Mapping) and "default" in node.schema


def _text(of: Alternative) -> str:
    if of.constants is not None:
        return f"enum({', '.join(sorted(each.strip(chr(34)) for each in of.constants))})"
    words = ", ".join(f"{word} {of.words[word]}" for word in _SHOWN if word in of.words)
    closed = "closed " if of.others is not None and of.others.schema is False else ""
    return f"{closed}{of.type}({words})" if words else f"{closed}{of.type}"


def _clashes(reader: Node, writer: Node, path: Path, seen: Pairs) -> Iterator[tuple[Path, bool]]:
    """Paths of clashes, each with whether only strict readers clash."""
    pair = (_key(reader), _key(writer))
    if pair in seen:
        return
    readers = alternatives_of(reader)
    for written in alternatives_of(writer):
        tries = [
            list(_alternative_clashes(each, written, path, seen | {pair}))
            for each in readers
            if reads(each.type, written.type)
        ]
        if not tries:
            yield path, False
        else:
            yield from min(tries, key=lambda found: (sum(not strict for _, strict in found), len(found)))


def _alternative_clashes(
    reader: Alternative, writer: Alternative, path: Path, seen: Pairs
) -> Iterator[tuple[Path, bool]]:
    if _is_tighter(reader, writer) or not all(
        any(not list(_clashes(mine, theirs, path, seen)) for mine in writer.excluded) for theirs in reader.excluded
    ):
        yield path, False
    if writer.type == "object":
        yield from _object_clashes(reader, writer, path, seen)
    elif writer.type == "array":
        for place in range(max(len(reader.elements), len(writer.elements))):
            yield from _undeclared_or(reader.element(place), writer.element(place), (*path, ELEMENT), seen)
        if reader.more_elements is not None:
            more = writer.more_elements or ANYTHING
            yield from _clashes(reader.more_elements, more, (*path, ELEMENT), seen)
        for wanted in reader.contained:
            bounded = [given for given in writer.contained if given.most <= wanted.most]
            are_few = any(_accepts(given.node, wanted.node, path, seen) for given in bounded)
            if not are_few and _may_contain(wanted.node, writer) > wanted.most:
                yield path, False
            elif _must_contain(wanted.node, writer, path, seen) < wanted.least:
                yield path, _must_contain(wanted.node, writer, path, seen, strictly=False) >= wanted.least


def _accepts(reader: Node, writer: Node, path: Path, seen: Pairs, *, strictly: bool = True) -> bool:
    return not any(strictly or not is_strict for _, is_strict in _clashes(reader, writer, path, seen))


def _must_contain(wanted: Node, writer: Alternative, path: Path, seen: Pairs, *, strictly: bool = True) -> int:
    """Minimum number of matching elements in each array of the writer's, from element positions and its own
    `contains`."""

    def are_wanted(*given: Node | None) -> bool:
        return _accepts(wanted, both(*given) or ANYTHING, path, seen, strictly=strictly)

    least, declared = writer.words.get("minItems", 0), len(writer.elements)
    by_place = sum(map(are_wanted, writer.elements[:least]))
    if least > declared and are_wanted(writer.more_elements):
        by_place += least - declared
    others = None if declared else writer.more_elements  # keywords for every element, whatever its position
    return max([by_place, *(given.least for given in writer.contained if are_wanted(given.node, others))])


def _may_contain(wanted: Node, writer: Alternative) -> float:
    """Maximum number of elements of a writer's array that can match, by their types."""

    def may_be(given: Node | None) -> bool:
        return bool(all_of(alternatives_of(each) for each in (wanted, given or ANYTHING)))

    most, declared = writer.words.get("maxItems", math.inf), len(writer.elements)
    by_place = sum(may_be(given) for place, given in enumerate(writer.elements) if place < most)
    return by_place + (max(most - declared, 0) if may_be(writer.more_elements) else 0)


def _lowest(of: Alternative, sign: int = 1) -> tuple[float, bool] | None:
    """The minimum, and whether it is exclusive; with sign -1 that of the negated numbers."""
    plain, exclusive = ("minimum", "exclusiveMinimum") if sign > 0 else ("maximum", "exclusiveMaximum")
    edges = [(sign * of.words[word], word == exclusive) for word in (plain, exclusive) if word in of.words]
    if of.type == "integer":
        edges = [(math.floor(each) + 1 if excludes else math.ceil(each), False) for each, excludes in edges]
    return max(edges, default=None)


def _has_tighter_edge(reader: Alternative, writer: Alternative, sign: int) -> bool:
    mine, theirs = _lowest(reader, sign), _lowest(writer, sign)
    return mine is not None and (theirs is None or mine > theirs)


def _is_tighter(reader: Alternative, writer: Alternative) -> bool:
    """Whether the reader rejects some of the writer's values of this type by its own constraints."""
    if writer.constants is not None:
        return any(not _holds(constant, reader) for constant in writer.constants if _holds(constant, writer))
    mine, theirs = reader.words, writer.words
    wanted, given = mine.get("multipleOf"), theirs.get("multipleOf")
    rules = mine.get("dependentRequired", mine.get("dependencies", {}))
    kept = theirs.get("dependentRequired", theirs.get("dependencies", {}))
    return (
        any(
            mine.get(least, 0) > theirs.get(least, 0) or mine.get(most, math.inf) < theirs.get(most, math.inf)
            for least, most in _SIZES.values()
        )
        or any(_has_tighter_edge(reader, writer, sign) for sign in (1, -1))
        or mine.get("pattern") not in (None, theirs.get("pattern"))
        or bool(mine.get("uniqueItems")) > bool(theirs.get("uniqueItems"))
        or (wanted is not None and (given is None or not _is_multiple(given, wanted)))
        or any(not _implied(rule, kept.get(name)) for name, rule in rules.items())
        or reader.constants is not None
    )


def _is_multiple(number: float, of: float) -> bool:
    return Fraction(str(number)) % Fraction(str(of)) == 0  # 0.3 is a multiple of 0.1, which floats cannot represent


def _holds(constant: str, of: Alternative) -> bool:
    """Whether a constant satisfies the keywords of its type, and the constants."""
    if of.constants is not None and constant not in of.constants:
        return False
    value, words = json.loads(constant), of.words
    if type_of(value) in ("integer", "number"):
        edges = ((sign, _lowest(of, sign)) for sign in (1, -1))
        is_within = all(edge is None or (sign * value, False) >= edge for sign, edge in edges)
        return is_within and ("multipleOf" not in words or _is_multiple(value, words["multipleOf"]))
    if type_of(value) not in _SIZES:
        return True
    least, most = _SIZES[type_of(value)]
    return (
        words.get(least, 0) <= len(value) <= words.get(most, math.inf)
        and ("pattern" not in words or may_match(words["pattern"], value, unread=True))
        and not (words.get("uniqueItems") and len({json.dumps(e, sort_keys=True) for e in value}) < len(value))
    )


def _implied(rule: Any, kept: Any) -> bool:
    """Whether satisfying `kept`, a rule about dependent properties, implies satisfying `rule`."""
    return set(rule) <= set(kept) if isinstance(rule, list) and isinstance(kept, list) else bool(rule == kept)


def _object_clashes(reader: Alternative, writer: Alternative, path: Path, seen: Pairs) -> Iterator[tuple[Path, bool]]:
    names = {*reader.properties, *writer.properties}
    for name in sorted(names | reader.required):
        at = (*path, f".{name}")
        mine, theirs = reader.property(name), writer.property(name)
        if name in reader.required - writer.required and not (mine is not None and _has_default(mine)):
            yield at, False
        elif name in names:
            yield from _undeclared_or(mine, theirs, at, seen)
    at = (*path, MAP_KEY)
    for pattern in sorted({*reader.patterns, *writer.patterns}):
        mine, theirs = (each.patterns.get(pattern, each.others) for each in (reader, writer))
        yield from _undeclared_or(mine, theirs, at, seen)
    yield from _undeclared_or(reader.others, writer.others, at, seen)


def _undeclared_or(reader: Node | None, writer: Node | None, path: Path, seen: Pairs) -> Iterator[tuple[Path, bool]]:
    """Clashes of a property's schemas. An undeclared property may be anything: that breaks only strict readers."""
    if reader is None:
        return
    for at, is_strict in _clashes(reader, writer or ANYTHING, path, seen):
        yield at, is_strict or writer is None
