"""JSON Schemas: which values that one schema allows another refuses.

A schema is taken apart into alternatives of one type each (`type`, `oneOf`, `anyOf`; `allOf` is merged into them). A
writer's alternative is read if one of the reader's accepts all of it: its bounds are no tighter, its constants include
the writer's, its properties accept the writer's, it requires nothing that the writer may leave out.

The content model decides about undeclared properties: a closed one (`additionalProperties: false`) refuses them, and
that breaks. What an open one might have held under a name that the other side declares breaks strict readers only.
`if`, `dependentSchemas` and `propertyNames` aren't looked into; formats are annotations.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7
from referencing.typing import URI

from spark_apps.models.json_shapes import ELEMENT, MAP_KEY, Path, type_of
from spark_apps.models.schema_changes import Clashes, NotComparable, Place

ANY = "any"
_KEYWORDS_OF = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
               "dependencies", "dependentRequired"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}  # fmt: skip
_TYPE_WITH = {keyword: kind for kind, keywords in _KEYWORDS_OF.items() for keyword in keywords}
_LOWER = ("minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties")
_UPPER = ("maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties")
_EDGES = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
"""Compared together: what the one excludes the other may."""
_SHOWN = (*_LOWER, *_UPPER, "multipleOf", "pattern", "uniqueItems")
_OF_SCHEMAS = ("properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
               "additionalItems", "contains")  # fmt: skip
_LONGEST_CHAIN = 50


class _Node(NamedTuple):
    """A schema, and how its references are resolved; of a tuple of nodes all hold."""

    schema: Any
    resolver: Any


Pairs = frozenset[tuple[Any, Any]]
"""Nodes that are being compared: one within itself clashes only where it does so anyway."""
_ANYTHING = _Node(True, None)


@dataclass
class _Alternative:
    """What values of one type must be."""

    type: str = ANY
    words: dict[str, Any] = field(default_factory=dict)
    """Bounds and the like."""
    constants: frozenset[str] | None = None
    required: frozenset[str] = frozenset()
    properties: dict[str, _Node] = field(default_factory=dict)
    patterns: dict[str, _Node] = field(default_factory=dict)
    others: _Node | None = None
    """Of properties that aren't declared; none: anything."""
    elements: list[_Node] = field(default_factory=list)
    more_elements: _Node | None = None
    contained: list[_Node] = field(default_factory=list)
    """Of each an array has an element."""
    excluded: list[_Node] = field(default_factory=list)

    def property(self, name: str) -> _Node | None:
        """What may stand under a name; none: nothing is declared, so anything."""
        declared = [self.properties[name]] if name in self.properties else []
        declared += [node for pattern, node in self.patterns.items() if re.search(pattern, name)]
        return _both(*declared) if declared else self.others

    def element(self, place: int) -> _Node | None:
        return self.elements[place] if place < len(self.elements) else self.more_elements

    def merged(self, other: _Alternative) -> _Alternative | None:
        """What both allow; none where no value can be both."""
        types = {self.type, other.type} - {ANY}
        if len(types) > 1 and types != {"integer", "number"}:
            return None
        constants = [each for each in (self.constants, other.constants) if each is not None]
        words = self.words | other.words
        words |= {w: max(self.words[w], other.words[w]) for w in _LOWER if w in self.words and w in other.words}
        words |= {w: min(self.words[w], other.words[w]) for w in _UPPER if w in self.words and w in other.words}
        return _Alternative(
            min(types, default=ANY),  # an integer, of integer and number
            words,
            frozenset.intersection(*constants) if constants else None,
            self.required | other.required,
            _united(self.properties, other.properties),
            _united(self.patterns, other.patterns),
            _both(self.others, other.others),
            [n for n in map(_both, *_even(self, other)) if n is not None],
            _both(self.more_elements, other.more_elements),
            self.contained + other.contained,
            self.excluded + other.excluded,
        )


def _both(*nodes: _Node | None) -> _Node | None:
    present = [node for node in nodes if node is not None]
    return _Node(tuple(present), None) if len(present) > 1 else present[0] if present else None


def _united(some: Mapping[str, _Node], others: Mapping[str, _Node]) -> dict[str, _Node]:
    united = {name: _both(some.get(name), others.get(name)) for name in (*some, *others)}
    return {name: node for name, node in united.items() if node is not None}


def _even(*alternatives: _Alternative) -> list[list[_Node | None]]:
    """The elements that either declares one by one, of both."""
    count = max(len(each.elements) for each in alternatives)
    return [[each.element(i) or _ANYTHING for i in range(count)] for each in alternatives]


class JsonSchema:
    """A schema with those that it refers to, by the names it refers to them with."""

    def __init__(self, definition: str, imports: Mapping[str, str]) -> None:
        try:
            resources = {
                name: Resource.from_contents(json.loads(text), default_specification=DRAFT7)
                for name, text in {**imports, "": definition}.items()
            }
            root = resources.pop("")
            registry: Registry[Any] = Registry().with_resources(
                [(uri, resource) for name, resource in resources.items() for uri in _uris(root, name)]
            )
            self.root = _Node(root.contents, registry.crawl().resolver_with_root(root))
            self._places: dict[Path, Place] = {}
            _describe(self.root, (), optional=False, within=frozenset(), found=self._places)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
            raise NotComparable("isn't a JSON Schema") from None

    def places(self) -> dict[Path, Place]:
        """What stands at each path; a schema within itself is told once."""
        return self._places

    def decoded(self, payload: bytes) -> Any:
        """The value behind the frame."""
        return json.loads(payload)

    def clashes(self, writer: JsonSchema) -> Clashes:
        """Paths at which a reader with this schema refuses values that the writer's allows."""
        found: dict[Path, bool] = {}
        for path, is_strict in _clashes(self.root, writer.root, (), frozenset()):
            found[path] = is_strict and found.get(path, True)
        return found


def _uris(root: Resource[Any], name: str) -> set[URI]:
    base = root.id() or ""
    return {name, f"{base.rpartition('/')[0]}/{name}"} if base else {name}


def _opened(node: _Node) -> _Node:
    """The schema that references lead to."""
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(node.schema, Mapping) or "$ref" not in node.schema:
            return node
        try:
            found = node.resolver.lookup(node.schema["$ref"])
        except Unresolvable:
            break
        node = _Node(found.contents, found.resolver)
    raise NotComparable(f"refers to {node.schema['$ref']}, which isn't known")


def _alternatives(node: _Node) -> list[_Alternative]:
    if isinstance(node.schema, tuple):
        return _all_of(map(_alternatives, node.schema))
    schema, resolver = _opened(node)
    if schema is False:
        return []
    if not isinstance(schema, Mapping):
        return [_Alternative()]
    either = [[each for branch in schema[word] for each in _alternatives(_Node(branch, resolver))]
              for word in ("anyOf", "oneOf") if word in schema]  # fmt: skip
    every = [_alternatives(_Node(branch, resolver)) for branch in schema.get("allOf", ())]
    return _all_of([_plain(schema, resolver), *either, *every])


def _all_of(factors: Iterable[list[_Alternative]]) -> list[_Alternative]:
    found = [_Alternative()]
    for factor in factors:
        found = [both for some in found for other in factor if (both := some.merged(other)) is not None]
    return found


def _plain(schema: Mapping[str, Any], resolver: Any) -> list[_Alternative]:
    """What a schema says itself, apart from what it is combined of."""
    constants = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    types = schema.get("type")
    if types is None and constants is not None:
        types = sorted({type_of(each) for each in constants})
    elif types is None:  # keywords of a type are taken to mean it
        types = sorted({_TYPE_WITH[word] for word in schema if word in _TYPE_WITH}) or [ANY]
    found = []
    for kind in [types] if isinstance(types, str) else types:
        made = _of_type(kind, schema, resolver)
        if constants is not None:
            mine = [each for each in constants if _reads(kind, type_of(each))]
            if not mine:
                continue
            made.constants = frozenset(json.dumps(each, sort_keys=True) for each in mine)
        found.append(made)
    return found


def _of_type(kind: str, schema: Mapping[str, Any], resolver: Any) -> _Alternative:
    def node(of: Any) -> _Node:
        return _Node(of, resolver)

    made = _Alternative(kind, excluded=[node(schema["not"])] if "not" in schema else [])
    applying = _KEYWORDS_OF.get("number" if kind == "integer" else kind, ())
    made.words = {word: schema[word] for word in applying if word in schema and word not in _OF_SCHEMAS}
    if kind == "object":
        made.required = frozenset(schema.get("required", ()))
        made.properties = {name: node(each) for name, each in schema.get("properties", {}).items()}
        made.patterns = {name: node(each) for name, each in schema.get("patternProperties", {}).items()}
        made.others = _declared(node(schema.get("additionalProperties", True)))
    elif kind == "array":
        items, prefix = schema.get("items", True), schema.get("prefixItems", [])
        if isinstance(items, list):
            items, prefix = schema.get("additionalItems", True), items
        made.elements = [node(each) for each in prefix]
        made.more_elements = _declared(node(items))
        made.contained = [node(schema["contains"])] if "contains" in schema else []
    return made


def _declared(node: _Node) -> _Node | None:
    return None if node.schema is True or node.schema == {} else node


def _describe(node: _Node, path: Path, *, optional: bool, within: frozenset[Any], found: dict[Path, Place]) -> None:
    if (key := _key(node)) in within:
        return
    alternatives = _alternatives(node)
    texts = list(dict.fromkeys(_text(each) for each in alternatives if each.type != "null"))
    nullable = bool(texts) and any(each.type == "null" for each in alternatives)
    found.setdefault(path, Place(path, "|".join(texts) or "null", optional=optional, nullable=nullable))
    for each in alternatives:
        for name, inner in each.properties.items():
            optional = name not in each.required or _has_default(inner)
            _describe(inner, (*path, f".{name}"), optional=optional, within=within | {key}, found=found)
        for inner in (*each.patterns.values(), *_known(each.others)):
            _describe(inner, (*path, MAP_KEY), optional=True, within=within | {key}, found=found)
        for inner in (*each.elements, *_known(each.more_elements)):
            _describe(inner, (*path, ELEMENT), optional=False, within=within | {key}, found=found)


def _key(node: _Node) -> Any:
    """Tells nodes apart. A schema's parts live as long as it does."""
    return tuple(map(_key, node.schema)) if isinstance(node.schema, tuple) else id(node.schema)


def _known(node: _Node | None) -> list[_Node]:
    return [] if node is None or node.schema is False else [node]


def _has_default(node: _Node) -> bool:
    return isinstance(node.schema, Mapping) and "default" in node.schema


def _text(of: _Alternative) -> str:
    if of.constants is not None:
        return f"enum({', '.join(sorted(each.strip(chr(34)) for each in of.constants))})"
    words = ", ".join(f"{word} {of.words[word]}" for word in _SHOWN if word in of.words)
    closed = "closed " if of.others is not None and of.others.schema is False else ""
    return f"{closed}{of.type}({words})" if words else f"{closed}{of.type}"


def _clashes(reader: _Node, writer: _Node, path: Path, seen: Pairs) -> Iterator[tuple[Path, bool]]:
    """Paths, each with whether only an undeclared property is in the way."""
    pair = (_key(reader), _key(writer))
    if pair in seen:
        return
    readers = _alternatives(reader)
    for written in _alternatives(writer):
        tries = [
            list(_alternative_clashes(each, written, path, seen | {pair}))
            for each in readers
            if _reads(each.type, written.type)
        ]
        if not tries:
            yield path, False
        else:
            yield from min(tries, key=lambda found: (sum(not strict for _, strict in found), len(found)))


def _reads(reader: str, writer: str) -> bool:
    return reader in (ANY, writer) or (reader, writer) == ("number", "integer")


def _alternative_clashes(
    reader: _Alternative, writer: _Alternative, path: Path, seen: Pairs
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
            more = writer.more_elements or _ANYTHING
            yield from _clashes(reader.more_elements, more, (*path, ELEMENT), seen)
        if not all(_is_contained(wanted, writer, path, seen) for wanted in reader.contained):
            yield path, False


def _is_contained(wanted: _Node, writer: _Alternative, path: Path, seen: Pairs) -> bool:
    """Whether each array of the writer's has an element that is wanted."""
    there = list(writer.contained)
    if writer.words.get("minItems", 0) > 0:
        there.append(writer.element(0) or _ANYTHING)
    return any(not list(_clashes(wanted, given, path, seen)) for given in there)


def _lowest(of: _Alternative, sign: int = 1) -> tuple[float, bool] | None:
    """The least number that is allowed, and whether it is itself excluded; with sign -1 that of the negated numbers."""
    plain, exclusive = ("minimum", "exclusiveMinimum") if sign > 0 else ("maximum", "exclusiveMaximum")
    edge, beyond = of.words.get(plain), of.words.get(exclusive)
    if isinstance(beyond, bool):  # as in draft 4
        edges = [] if edge is None else [(sign * edge, beyond)]
    else:
        edges = [(sign * each, excludes) for each, excludes in ((edge, False), (beyond, True)) if each is not None]
    if of.type == "integer":
        edges = [(math.floor(each) + 1 if excludes else math.ceil(each), False) for each, excludes in edges]
    return max(edges, default=None)


def _has_tighter_edge(reader: _Alternative, writer: _Alternative, sign: int) -> bool:
    mine, theirs = _lowest(reader, sign), _lowest(writer, sign)
    return mine is not None and (theirs is None or mine > theirs)


def _is_tighter(reader: _Alternative, writer: _Alternative) -> bool:
    """Whether the reader refuses some of the writer's values of this type for what they are themselves."""
    mine, theirs = reader.words, writer.words
    wanted, given = mine.get("multipleOf"), theirs.get("multipleOf")
    rules = mine.get("dependentRequired", mine.get("dependencies", {}))
    kept = theirs.get("dependentRequired", theirs.get("dependencies", {}))
    return (
        any(word in mine and mine[word] > theirs.get(word, 0) for word in _LOWER if word not in _EDGES)
        or any(word in mine and mine[word] < theirs.get(word, math.inf) for word in _UPPER if word not in _EDGES)
        or any(_has_tighter_edge(reader, writer, sign) for sign in (1, -1))
        or mine.get("pattern") not in (None, theirs.get("pattern"))
        or bool(mine.get("uniqueItems")) > bool(theirs.get("uniqueItems"))
        or (wanted is not None and (given is None or given % wanted != 0))
        or any(not _implied(rule, kept.get(name)) for name, rule in rules.items())
        or (reader.constants is not None and (writer.constants is None or not writer.constants <= reader.constants))
    )


def _implied(rule: Any, kept: Any) -> bool:
    """Whether who keeps to the one rule about what must go along with a property keeps to the other."""
    return set(rule) <= set(kept) if isinstance(rule, list) and isinstance(kept, list) else bool(rule == kept)


def _object_clashes(reader: _Alternative, writer: _Alternative, path: Path, seen: Pairs) -> Iterator[tuple[Path, bool]]:
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


def _undeclared_or(reader: _Node | None, writer: _Node | None, path: Path, seen: Pairs) -> Iterator[tuple[Path, bool]]:
    """Clashes of a property's schemas. What isn't declared may be anything: that stops strict readers only."""
    if reader is None:
        return
    for at, is_strict in _clashes(reader, writer or _ANYTHING, path, seen):
        yield at, is_strict or writer is None
