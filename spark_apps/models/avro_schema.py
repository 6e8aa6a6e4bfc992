"""Avro schemas: which values of one schema a reader with another cannot resolve, by the rules of the specification.

fastavro parses schemas and reads values but does not compare schemas, so this module has the resolution rules. A
reader's field that the writer does not have needs a default; numbers and strings are promoted; enums need the
writer's symbols or a default; named types match by their unqualified name or an alias of the reader; a union is read
by any branch that can. Stricter than Avro's own checker, decimals of another precision or scale do not match: their
bytes would be read as a different number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from fastavro import schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from spark_apps.models.json_shapes import ELEMENT, MAP_KEY, Path
from spark_apps.models.schema_changes import Clashes, NotComparable, Place

_READ_AS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""Types that a writer's primitive type is promoted to."""
_NAMED = ("record", "error", "enum", "fixed")
_WORDS = {*_NAMED, "null", "boolean", "int", "long", "float", "double", "string", "bytes", "array", "map"}
Pairs = frozenset[tuple[str, str]]
"""Pairs of reader and writer records in comparison: a recursive one clashes only where it does so otherwise."""


class _Type(NamedTuple):
    """A parsed schema (a name, a union's list, or a mapping), with the named types that it may refer to."""

    schema: Any
    named: Mapping[str, Any]

    def of(self, schema: Any) -> _Type:
        """A type nested in this one; names are resolved."""
        return _Type(self.named.get(schema, {"type": schema}) if isinstance(schema, str) else schema, self.named)

    @property
    def kind(self) -> str:
        """Kind of the type: a primitive type, record, enum, array, map, fixed, or union."""
        if isinstance(self.schema, list):
            return "union"
        kind: str = self.schema["type"]
        return "record" if kind == "error" else kind

    @property
    def name(self) -> str:
        """Full name of a named type; empty for others."""
        return "" if isinstance(self.schema, list) else str(self.schema.get("name", ""))

    @property
    def aliases(self) -> set[str]:
        """Full names of the type's aliases."""
        namespace = self.name.rpartition(".")[0]
        aliases = self.schema.get("aliases", ())
        return {alias if "." in alias or not namespace else f"{namespace}.{alias}" for alias in aliases}

    @property
    def logical(self) -> str:
        """The logical type with its attributes; empty if there is none."""
        name = str(self.schema.get("logicalType", ""))
        return f"decimal({self.schema.get('precision')},{self.schema.get('scale', 0)})" if name == "decimal" else name

    @property
    def branches(self) -> list[_Type]:
        """Branches of a union; for another type, the type itself."""
        return [self.of(branch) for branch in self.schema] if isinstance(self.schema, list) else [self]

    @property
    def inner(self) -> _Type:
        """The type of an array's elements or a map's values."""
        return self.of(self.schema["items" if self.kind == "array" else "values"])

    @property
    def text(self) -> str:
        """The type as shown in rows: its name or kind, with the logical type."""
        match self.kind:
            case "enum":
                return f"enum({', '.join(self.schema['symbols'])})"
            case "fixed":
                return self.logical or f"fixed {self.name}({self.schema['size']})"
            case "record":
                return f"record {self.name}"
            case "union":
                return "|".join(branch.text for branch in self.branches if branch.kind != "null") or "null"
        return self.logical or self.kind


class AvroSchema:
    """A schema with the named types that it refers to.

    Raises:
        NotComparable: it is not an Avro schema, or refers to an unknown type.
    """

    def __init__(self, definition: str, imports: Mapping[str, str]) -> None:
        try:
            named: dict[str, Any] = {}
            self.schema = _parsed(definition, imports, named)
            self.root = _Type(None, named).of(self.schema)
            self._places: dict[Path, Place] = {}
            _describe(self.root, (), optional=False, within=(), found=self._places)
        except (SchemaParseException, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            raise NotComparable("is not an Avro schema") from None

    def places(self) -> dict[Path, Place]:
        """Fields by path; a recursive type appears once."""
        return self._places

    def decoded(self, payload: bytes) -> Any:
        """The value after the frame."""
        return schemaless_reader(BytesIO(payload), self.schema, None)

    def clashes(self, writer: AvroSchema) -> Clashes:
        """Paths at which a reader with this schema cannot read all values of the writer's."""
        return dict.fromkeys(_clashes(self.root, writer.root, (), frozenset()), False)


def _parsed(definition: str, imports: Mapping[str, str], named: dict[str, Any]) -> Any:
    """The schema, parsed after the schemas that it references; named types are added to `named`.

    A registry's reference name is only a label: the referenced schema defines which types it contains.
    """
    schema = _readable(_loaded(definition))
    while True:
        known = dict(named)
        try:
            # Java accepts 0 as the default of a double; fastavro with strict defaults does not.
            parsed = parse_schema(schema, known, _ignore_default_error=True)
        except UnknownType as unknown:
            name = unknown.name
            if not isinstance(name, str):
                raise
            by_name = {defined: label for label, text in imports.items() for defined in _defined(_loaded(text))}
            # As in Java, a name that the namespace does not have is one without a namespace.
            defined = next((each for each in (name, name.rpartition(".")[2]) if each in by_name), None)
            if defined is None:
                raise NotComparable(f"refers to the unknown type {name}") from None
            label = by_name[defined]
            _parsed(imports[label], {other: text for other, text in imports.items() if other != label}, named)
            if defined not in named:
                raise NotComparable(f"refers to the unknown type {name}") from None
            named[name] = named[defined]
        else:
            named.update(known)
            return parsed


def _loaded(definition: str) -> Any:
    try:
        return json.loads(definition)
    except ValueError:
        return definition.strip()  # a primitive type may be written without quotes


def _readable(schema: Any) -> Any:
    """The schema without what Java ignores and fastavro refuses: names within `{"type": …}`, and invalid decimals."""
    if isinstance(schema, list):
        return [_readable(branch) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "name" not in schema and (not isinstance(schema.get("type"), str) or schema["type"] not in _WORDS):
        return _readable(schema.get("type"))
    read = {key: _readable(value) if key in ("type", "items", "values") else value for key, value in schema.items()}
    if isinstance(schema.get("fields"), list):
        read["fields"] = [_readable(field) for field in schema["fields"]]
    if schema.get("logicalType") == "decimal" and not _is_decimal(schema):
        del read["logicalType"]
    return read


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    precision, scale, size = schema.get("precision"), schema.get("scale", 0), schema.get("size")
    if not (isinstance(precision, int) and isinstance(scale, int) and schema["type"] in ("bytes", "fixed")):
        return False
    most = int(math.log10(2) * (8 * size - 1)) if isinstance(size, int) else precision
    return 0 <= scale <= precision and 0 < precision <= most


def _defined(schema: Any, namespace: str = "") -> Iterator[str]:
    """Full names of all types that a schema defines, at any depth."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _defined(branch, namespace)
    elif isinstance(schema, Mapping):
        if schema.get("type") in _NAMED and isinstance(name := schema.get("name"), str):
            own = name.rpartition(".")[0] if "." in name else str(schema.get("namespace", namespace) or "")
            yield f"{own}.{name.rpartition('.')[2]}" if own else name
            namespace = own
        for inner in (schema.get("type"), schema.get("items"), schema.get("values")):
            yield from _defined(inner, namespace)
        for field in schema.get("fields") or ():
            yield from _defined(field.get("type") if isinstance(field, Mapping) else None, namespace)


def _describe(of: _Type, path: Path, *, optional: bool, within: tuple[str, ...], found: dict[Path, Place]) -> None:
    nullable = len(of.branches) > 1 and any(branch.kind == "null" for branch in of.branches)
    found.setdefault(path, Place(path, of.text, optional=optional, nullable=nullable))
    for branch in of.branches:
        if branch.kind == "record" and branch.name not in within:
            for field in branch.schema["fields"]:
                at, inside = (*path, f".{field['name']}"), (*within, branch.name)
                _describe(of.of(field["type"]), at, optional="default" in field, within=inside, found=found)
        elif branch.kind in ("array", "map"):
            step = ELEMENT if branch.kind == "array" else MAP_KEY
            _describe(branch.inner, (*path, step), optional=False, within=within, found=found)


def _clashes(reader: _Type, writer: _Type, path: Path, seen: Pairs) -> Iterator[Path]:
    if writer.kind == "union":
        for branch in writer.branches:
            yield from _clashes(reader, branch, path, seen)
    elif reader.kind == "union":
        tries = [list(_clashes(branch, writer, path, seen)) for branch in reader.branches]
        if all(tries):
            alike = [i for i, branch in enumerate(reader.branches) if _same_kind(branch, writer)]
            yield from tries[alike[0]] if alike else [path]
    elif not _same_kind(reader, writer):
        if reader.kind not in _READ_AS.get(writer.kind, ()):
            yield path
    elif reader.kind == "record":
        if (pair := (reader.name, writer.name)) not in seen:
            yield from _record_clashes(reader, writer, path, seen | {pair})
    elif reader.kind in ("array", "map"):
        yield from _clashes(reader.inner, writer.inner, (*path, ELEMENT if reader.kind == "array" else MAP_KEY), seen)
    elif (
        (reader.kind == "enum" and not _reads_symbols(reader.schema, writer.schema))
        or reader.schema.get("size") != writer.schema.get("size")
        or (reader.logical != writer.logical and reader.logical[:8] == writer.logical[:8] == "decimal(")
    ):
        yield path


def _reads_symbols(reader: Mapping[str, Any], writer: Mapping[str, Any]) -> bool:
    return "default" in reader or set(writer["symbols"]) <= set(reader["symbols"])


def _same_kind(reader: _Type, writer: _Type) -> bool:
    if reader.kind != writer.kind:
        return False
    is_its_name = reader.name.rpartition(".")[2] == writer.name.rpartition(".")[2]
    return not writer.name or is_its_name or writer.name in reader.aliases


def _record_clashes(reader: _Type, writer: _Type, path: Path, seen: Pairs) -> Iterator[Path]:
    written = {field["name"]: field for field in writer.schema["fields"]}
    for field in reader.schema["fields"]:
        at, names = (*path, f".{field['name']}"), (field["name"], *sorted(field.get("aliases", ())))
        from_writer = next((written[name] for name in names if name in written), None)
        if from_writer is not None:
            yield from _clashes(reader.of(field["type"]), writer.of(from_writer["type"]), at, seen)
        elif "default" not in field:
            yield at
