"""Avro schemas: which values of one schema a reader with another can't resolve, by the rules of the specification.

A reader's field that the writer lacks needs a default; numbers and strings are promoted; enums need the writer's
symbols or a default of their own; named types match by their unqualified name or a reader's alias; a union is read by
any branch that can. Beyond the letter of Avro's own checker, decimals of another precision or scale don't match: their
bytes would be read as another number.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from spark_apps.models.json_shapes import ELEMENT, MAP_KEY, Path
from spark_apps.models.schema_changes import Clashes, NotComparable, Place

_READ_AS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What a writer's primitive type is promoted to."""
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(eq=False)
class _Field:
    name: str
    aliases: frozenset[str]
    has_default: bool
    type: _Type


@dataclass(eq=False)
class _Type:
    """A node of a schema; a named type stands in it as one object, also where it contains itself."""

    kind: str
    name: str = ""
    aliases: frozenset[str] = frozenset()
    logical: str = ""
    size: int = 0
    symbols: tuple[str, ...] = ()
    has_default: bool = False
    fields: list[_Field] = field(default_factory=list)
    parts: list[_Type] = field(default_factory=list)
    """Branches of a union; the one type of an array's elements or a map's values."""

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def text(self) -> str:
        match self.kind:
            case "enum":
                return f"enum({', '.join(self.symbols)})"
            case "fixed":
                return f"fixed {self.name}({self.size})" if not self.logical else self.logical
            case "record":
                return f"record {self.name}"
            case "union":
                return "|".join(part.text for part in self.parts if part.kind != "null") or "null"
        return self.logical or self.kind


class AvroSchema:
    """A schema with the named types that it refers to."""

    def __init__(self, definition: str, imports: Mapping[str, str]) -> None:
        try:
            self.root = _Parser(imports).type(_loaded(definition), "")
            self._places: dict[Path, Place] = {}
            _describe(self.root, (), optional=False, within=(), found=self._places)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            raise NotComparable("isn't an Avro schema") from None

    def places(self) -> dict[Path, Place]:
        """What stands at each path; a type within itself is told once."""
        return self._places

    def decoded(self, payload: bytes) -> Any:
        """The value behind the frame."""
        return _decoded(self.root, BytesIO(payload))

    def clashes(self, writer: AvroSchema) -> Clashes:
        """Paths at which a reader with this schema can't read all values of the writer's."""
        return dict.fromkeys(_clashes(self.root, writer.root, (), set()), False)


class _Parser:
    """Makes types of JSON; keeps the named ones."""

    def __init__(self, imports: Mapping[str, str]) -> None:
        self.imports = imports
        self.named: dict[str, _Type] = {}

    def type(self, told: Any, namespace: str) -> _Type:
        if isinstance(told, list):
            return _Type("union", parts=[self.type(branch, namespace) for branch in told])
        if isinstance(told, str):
            return _Type(told) if told in _PRIMITIVES else self._of_name(told, namespace)
        kind = told["type"]
        if not isinstance(kind, str) or kind not in (*_PRIMITIVES, "record", "error", "enum", "fixed", "array", "map"):
            return self.type(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(told, "record" if kind == "error" else kind, namespace)
        made = _Type(kind, logical=_logical(told))
        if kind in ("array", "map"):
            made.parts = [self.type(told["items" if kind == "array" else "values"], namespace)]
        return made

    def _of_name(self, name: str, namespace: str) -> _Type:
        full = _full(name, namespace)
        for known in (full, name):
            if known in self.named:
                return self.named[known]
            if known in self.imports:
                self.type(_loaded(self.imports[known]), "")
                if known in self.named:
                    return self.named[known]
        raise NotComparable(f"refers to the type {full}, which isn't known")

    def _named(self, told: Mapping[str, Any], kind: str, namespace: str) -> _Type:
        name = _full(told["name"], told.get("namespace", namespace))
        space = name.rpartition(".")[0]
        made = self.named[name] = _Type(
            kind,
            name,
            frozenset(_full(alias, space) for alias in told.get("aliases", ())),
            _logical(told),
            int(told.get("size", 0)),
            tuple(told.get("symbols", ())),
            has_default="default" in told,
        )
        for each in told.get("fields", ()):
            aliases = frozenset(each.get("aliases", ()))
            made.fields.append(_Field(each["name"], aliases, "default" in each, self.type(each["type"], space)))
        return made


def _loaded(definition: str) -> Any:
    try:
        return json.loads(definition)
    except ValueError:
        if definition.strip() in _PRIMITIVES:
            return definition.strip()
        raise NotComparable("isn't an Avro schema") from None


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _logical(told: Mapping[str, Any]) -> str:
    name = str(told.get("logicalType", ""))
    return f"decimal({told.get('precision')},{told.get('scale', 0)})" if name == "decimal" else name


def _describe(of: _Type, path: Path, *, optional: bool, within: tuple[_Type, ...], found: dict[Path, Place]) -> None:
    branches = of.parts if of.kind == "union" else [of]
    nullable = len(branches) > 1 and any(branch.kind == "null" for branch in branches)
    found.setdefault(path, Place(path, of.text, optional=optional, nullable=nullable))
    for branch in branches:
        if branch in within:
            continue
        for each in branch.fields:
            inner = (*path, f".{each.name}")
            _describe(each.type, inner, optional=each.has_default, within=(*within, branch), found=found)
        if branch.kind in ("array", "map"):
            step = ELEMENT if branch.kind == "array" else MAP_KEY
            _describe(branch.parts[0], (*path, step), optional=False, within=within, found=found)


def _clashes(reader: _Type, writer: _Type, path: Path, seen: set[tuple[_Type, _Type]]) -> Iterator[Path]:
    """`seen`: pairs that are being compared; a type within itself clashes only where it does so anyway."""
    if (reader, writer) in seen:
        return
    seen = seen | {(reader, writer)}
    if writer.kind == "union":
        for branch in writer.parts:
            yield from _clashes(reader, branch, path, seen)
    elif reader.kind == "union":
        tries = [list(_clashes(branch, writer, path, seen)) for branch in reader.parts]
        if all(tries):
            alike = [i for i, branch in enumerate(reader.parts) if _same_kind(branch, writer)]
            yield from tries[alike[0]] if alike else [path]
    elif not _same_kind(reader, writer):
        if reader.kind not in _READ_AS.get(writer.kind, ()):
            yield path
    elif reader.kind == "record":
        yield from _record_clashes(reader, writer, path, seen)
    elif reader.kind in ("array", "map"):
        step = ELEMENT if reader.kind == "array" else MAP_KEY
        yield from _clashes(reader.parts[0], writer.parts[0], (*path, step), seen)
    elif (
        (reader.kind == "enum" and not reader.has_default and not set(writer.symbols) <= set(reader.symbols))
        or reader.size != writer.size
        or (reader.logical != writer.logical and reader.logical[:8] == writer.logical[:8] == "decimal(")
    ):
        yield path


def _same_kind(reader: _Type, writer: _Type) -> bool:
    if reader.kind != writer.kind:
        return False
    return not writer.name or reader.short_name == writer.short_name or writer.name in reader.aliases


def _record_clashes(reader: _Type, writer: _Type, path: Path, seen: set[tuple[_Type, _Type]]) -> Iterator[Path]:
    written = {each.name: each for each in writer.fields}
    for each in reader.fields:
        inner = (*path, f".{each.name}")
        told = next((written[name] for name in (each.name, *sorted(each.aliases)) if name in written), None)
        if told is not None:
            yield from _clashes(each.type, told.type, inner, seen)
        elif not each.has_default:
            yield inner


def _decoded(of: _Type, data: BytesIO) -> Any:
    match of.kind:
        case "null":
            return None
        case "boolean":
            return data.read(1) == b"\1"
        case "int" | "long":
            return _long(data)
        case "float":
            return struct.unpack("<f", data.read(4))[0]
        case "double":
            return struct.unpack("<d", data.read(8))[0]
        case "string":
            return data.read(_long(data)).decode()
        case "bytes":
            return data.read(_long(data)).decode("latin-1")
        case "fixed":
            return data.read(of.size).decode("latin-1")
        case "enum":
            return of.symbols[_long(data)]
        case "union":
            return _decoded(of.parts[_long(data)], data)
        case "array":
            return [_decoded(of.parts[0], data) for _ in _items(data)]
        case "map":
            return {data.read(_long(data)).decode(): _decoded(of.parts[0], data) for _ in _items(data)}
    return {each.name: _decoded(each.type, data) for each in of.fields}


def _long(data: BytesIO) -> int:
    value = shift = 0
    while True:
        (byte,) = data.read(1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)


def _items(data: BytesIO) -> Iterator[int]:
    """Once for each item of the blocks of an array or map."""
    while count := _long(data):
        if count < 0:  # then the block's size in bytes follows
            _long(data)
        yield from range(abs(count))
