"""Changes between two registered schemas, per path and in both directions, for all formats.

Each format has the fields by path, and the values of a writer's schema that a reader's cannot read. This module
converts the two directions to changes with the names and verdicts of inferred schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from spark_apps.models.json_shapes import Path
from spark_apps.models.schema_transitions import Breaks

Clashes = Mapping[Path, bool]
"""Paths that a reader cannot read; true if only strict readers, or an undeclared field, clash."""
_LONGEST_TYPE = 120


class NotComparable(Exception):
    """The problem of a schema, as the end of a sentence that begins with the schema's name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A field or type at a path."""

    path: Path
    """With names, where the path that identifies it has numbers."""
    type: str
    optional: bool = False
    """Whether values may omit it, or a reader has a default for it."""
    nullable: bool = False
    unread: tuple[str, ...] = field(default=(), compare=False)
    """Parts of it that cannot be compared."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A difference between an old schema and a new one; a type of None: the field does not exist."""

    path: Path
    change: str
    old_type: str | None
    new_type: str | None
    breaks: Breaks


class Schema(Protocol):
    """A registered schema of one format."""

    def places(self) -> Mapping[Path, Place]:
        """Fields and types by path."""

    def clashes(self, writer: Any) -> Clashes:
        """Paths at which a reader with this schema cannot read all values of the writer's, a schema of the same
        format."""

    def decoded(self, payload: bytes) -> Any:
        """A value of this schema as JSON types; raises if it does not match."""


def changes(old: Schema, new: Schema) -> list[SchemaChange]:
    """Differences and what they break. Paths below a field that was added, removed, or changed are not listed again."""
    if type(old) is not type(new):
        return [SchemaChange((), "type_changed", _format(old), _format(new), Breaks(backward=True, forward=True))]
    before, after = old.places(), new.places()
    known = before.keys() | after.keys()
    backward, forward = _at_known(new.clashes(old), known), _at_known(old.clashes(new), known)
    found: list[SchemaChange] = []
    reported: set[Path] = set()
    for path in sorted(known, key=lambda path: (len(path), path)):
        if any(path[:n] in reported for n in range(len(path))):
            continue
        was, now = before.get(path), after.get(path)
        breaks = _breaks(backward.get(path), forward.get(path))
        if was == now and not (breaks.backward or breaks.forward):
            continue
        place = now or before[path]
        found.append(SchemaChange(place.path, _name(was, now, breaks), _type(was), _type(now), breaks))
        if was is None or now is None or (was.type != now.type and (path in backward or path in forward)):
            reported.add(path)
    return found


def _at_known(clashes: Clashes, known: Set[Path]) -> Clashes:
    """Clashes below the known paths of a schema (keys of a map, a recursive type) count at the deepest known path."""
    found: dict[Path, bool] = {}
    for path, is_strict in clashes.items():
        there = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in known)
        found[there] = is_strict and found.get(there, True)
    return found


def _format(schema: Schema) -> str:
    return type(schema).__name__.removesuffix("Schema")


def _breaks(backward: bool | None, forward: bool | None) -> Breaks:
    """What breaks, from whether each direction clashes (not None), and only for strict readers (true); certain ones
    first."""
    sure = Breaks(backward is False, forward is False)
    if sure.backward or sure.forward:
        return sure
    return Breaks(backward is not None, forward is not None, strict_only=backward is not None or forward is not None)


def _type(place: Place | None) -> str | None:
    if place is None:
        return None
    return place.type if len(place.type) <= _LONGEST_TYPE else f"{place.type[:_LONGEST_TYPE]}…"


def _name(was: Place | None, now: Place | None, breaks: Breaks) -> str:
    if was is None or now is None:
        place, what = (now, "added") if was is None else (was, "removed")
        return f"optional_field_{what}" if place is not None and place.optional else f"field_{what}"
    if was.type == now.type and was.nullable != now.nullable:
        return "nullability_gained" if now.nullable else "nullability_lost"
    if was.type == now.type and was.optional != now.optional:
        return "field_made_optional" if now.optional else "field_made_required"
    if breaks.backward != breaks.forward:
        return "type_narrowed" if breaks.backward else "type_widened"
    return "type_changed"
