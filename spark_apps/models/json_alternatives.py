"""Alternatives of a JSON Schema: constraints on values of one type each, from `type`, `oneOf`, `anyOf`, and `allOf`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from referencing.exceptions import Unresolvable

from spark_apps.models import ecma_patterns
from spark_apps.models.ecma_patterns import NoPattern
from spark_apps.models.json_shapes import type_of
from spark_apps.models.schema_changes import NotComparable

ANY = "any"
_KEYWORDS_OF = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
               "dependencies", "dependentRequired"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}  # fmt: skip
_TYPE_WITH = {keyword: kind for kind, keywords in _KEYWORDS_OF.items() for keyword in keywords}
LOWER = ("minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties")
UPPER = ("maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties")
_EDGES = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
"""Keywords compared together: one of them may allow what another excludes."""
_OF_SCHEMAS = ("properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
               "additionalItems", "contains")  # fmt: skip
_LONGEST_CHAIN = 50


class Node(NamedTuple):
    """A schema, and how its references are resolved; all nodes of a tuple apply."""

    schema: Any
    resolver: Any


class Contains(NamedTuple):
    """Number of elements of an array that match a schema."""

    node: Node
    least: int
    most: float


ANYTHING = Node(True, None)


@dataclass
class Alternative:
    """Constraints on values of one type."""

    type: str = ANY
    words: dict[str, Any] = field(default_factory=dict)
    """Keywords such as bounds."""
    constants: frozenset[str] | None = None
    required: frozenset[str] = frozenset()
    properties: dict[str, Node] = field(default_factory=dict)
    patterns: dict[str, Node] = field(default_factory=dict)
    others: Node | None = None
    """Schema of undeclared properties; None: anything."""
    elements: list[Node] = field(default_factory=list)
    more_elements: Node | None = None
    contained: list[Contains] = field(default_factory=list)
    excluded: list[Node] = field(default_factory=list)

    def property(self, name: str) -> Node | None:
        """Schema of a property; None: nothing is declared, so anything."""
        declared = [self.properties[name]] if name in self.properties else []
        declared += [node for pattern, node in self.patterns.items() if may_match(pattern, name, unread=False)]
        return both(*declared) if declared else self.others

    def element(self, place: int) -> Node | None:
        """Schema of the array element at a position; None: anything."""
        return self.elements[place] if place < len(self.elements) else self.more_elements

    def merged(self, other: Alternative) -> Alternative | None:
        """Values that both allow; None if no value satisfies both."""
        types = {self.type, other.type} - {ANY}
        if len(types) > 1 and types != {"integer", "number"}:
            return None
        constants = [each for each in (self.constants, other.constants) if each is not None]
        words = self.words | other.words
        words |= {w: max(self.words[w], other.words[w]) for w in LOWER if w in self.words and w in other.words}
        words |= {w: min(self.words[w], other.words[w]) for w in UPPER if w in self.words and w in other.words}
        return Alternative(
            min(types, default=ANY),  # an integer, of integer and number
            words,
            frozenset.intersection(*constants) if constants else None,
            self.required | other.required,
            _united(self.properties, other.properties),
            _united(self.patterns, other.patterns),
            both(self.others, other.others),
            [n for n in map(both, *_even(self, other)) if n is not None],
            both(self.more_elements, other.more_elements),
            self.contained + other.contained,
            self.excluded + other.excluded,
        )


def may_match(pattern: Any, text: str, *, unread: bool) -> bool:
    """Whether a pattern matches a text; `unread` if the pattern cannot be evaluated."""
    try:
        return ecma_patterns.is_found(pattern, text)
    except NoPattern:
        return unread


def both(*nodes: Node | None) -> Node | None:
    """The node to which all of these apply; None: anything."""
    present = [node for node in nodes if node is not None]
    return Node(tuple(present), None) if len(present) > 1 else present[0] if present else None


def _united(some: Mapping[str, Node], others: Mapping[str, Node]) -> dict[str, Node]:
    united = {name: both(some.get(name), others.get(name)) for name in (*some, *others)}
    return {name: node for name, node in united.items() if node is not None}


def _even(*alternatives: Alternative) -> list[list[Node | None]]:
    """Element schemas that any of the alternatives declares by position, for all of them."""
    count = max(len(each.elements) for each in alternatives)
    return [[each.element(i) or ANYTHING for i in range(count)] for each in alternatives]


def _opened(node: Node) -> Node:
    """The schema that references lead to."""
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(node.schema, Mapping) or "$ref" not in node.schema:
            return node
        try:
            found = node.resolver.lookup(node.schema["$ref"])
        except Unresolvable:
            break
        node = Node(found.contents, found.resolver)
    raise NotComparable(f"refers to the unknown schema {node.schema['$ref']}")


def alternatives_of(node: Node) -> list[Alternative]:
    """Alternatives of a schema; none: no value satisfies it.

    Raises:
        NotComparable: it refers to an unknown schema.
    """
    if isinstance(node.schema, tuple):
        return all_of(map(alternatives_of, node.schema))
    schema, resolver = _opened(node)
    if schema is False:
        return []
    if not isinstance(schema, Mapping):
        return [Alternative()]
    either = [[each for branch in schema[word] for each in alternatives_of(Node(branch, resolver))]
              for word in ("anyOf", "oneOf") if word in schema]  # fmt: skip
    every = [alternatives_of(Node(branch, resolver)) for branch in schema.get("allOf", ())]
    return all_of([_plain(schema, resolver), *either, *every])


def all_of(factors: Iterable[list[Alternative]]) -> list[Alternative]:
    """Alternatives that satisfy one of each list."""
    found = [Alternative()]
    for factor in factors:
        found = [both for some in found for other in factor if (both := some.merged(other)) is not None]
    return found


def _plain(schema: Mapping[str, Any], resolver: Any) -> list[Alternative]:
    """Alternatives of a schema's own keywords, without combined schemas."""
    constants = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    types = schema.get("type")
    if types is None and constants is not None:
        types = sorted({type_of(each) for each in constants})
    elif types is None:  # keywords that apply to one type imply that type
        types = sorted({_TYPE_WITH[word] for word in schema if word in _TYPE_WITH}) or [ANY]
    found = []
    for kind in [types] if isinstance(types, str) else types:
        made = _of_type(kind, schema, resolver)
        if constants is not None:
            mine = [each for each in constants if reads(kind, type_of(each))]
            if not mine:
                continue
            made.constants = frozenset(json.dumps(each, sort_keys=True) for each in mine)
        found.append(made)
    return found


def _of_type(kind: str, schema: Mapping[str, Any], resolver: Any) -> Alternative:
    def node(of: Any) -> Node:
        return Node(of, resolver)

    made = Alternative(kind, excluded=[node(schema["not"])] if "not" in schema else [])
    applying = _KEYWORDS_OF.get("number" if kind == "integer" else kind, ())
    made.words = {word: schema[word] for word in applying if word in schema and word not in _OF_SCHEMAS}
    for exclusive, plain in _EDGES.items():
        if isinstance(made.words.get(exclusive), bool) and made.words.pop(exclusive) and plain in made.words:
            made.words[exclusive] = made.words.pop(plain)  # in draft 4, whether the other bound is exclusive
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
        if "contains" in schema:
            least, most = schema.get("minContains", 1), schema.get("maxContains", math.inf)
            made.contained = [Contains(node(schema["contains"]), least, most)]
    return made


def _declared(node: Node) -> Node | None:
    return None if node.schema is True or node.schema == {} else node


def reads(reader: str, writer: str) -> bool:
    """Whether a reader of one type accepts values of the other."""
    return reader in (ANY, writer) or (reader, writer) == ("number", "integer")
