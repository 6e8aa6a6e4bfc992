"""Changes between two registered schemas, per path and in both directions, whatever their format.

Each format says what stands at a path and which values of a writer's schema a reader's can't read; here the two
directions become changes with the names and verdicts that inferred schemas have.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from spark_apps.models.json_shapes import Path
from spark_apps.models.schema_versions import Breaks

Clashes = Mapping[Path, bool]
"""Paths that a reader can't read; true where only a strict reader, or an undeclared field, is in the way."""
_LONGEST_TYPE = 120


class NotComparable(Exception):
    """What is wrong with a schema, as the end of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class Place:
    """What stands at a path."""

    path: Path
    """By names, where the path that identifies it has numbers."""
    type: str
    optional: bool = False
    """Values may lack it, or a reader has a default for it."""
    nullable: bool = False
    unread: tuple[str, ...] = field(default=(), compare=False)
    """What of it can't be compared."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A difference between an old schema and a new one; without a type the field isn't there."""

    path: Path
    change: str
    old_type: str | None
    new_type: str | None
    breaks: Breaks


class Schema(Protocol):
    """A registered schema of one format."""

    def places(self) -> Mapping[Path, Place]:
        """What stands at each path."""

    def clashes(self, writer: Any) -> Clashes:
        """Paths at which a reader with this schema can't read all values of the writer's, a schema of this format."""

    def decoded(self, payload: bytes) -> Any:
        """What stands in a value of this schema, as JSON would say it; raises where it isn't one."""


def changes(old: Schema, new: Schema) -> list[SchemaChange]:
    """What differs, and what it breaks. What lies below a field that came, went or changed isn't told again."""
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
    """Clashes deeper than what is told of a schema (keys of a map, a type within itself) count where that ends."""
    found: dict[Path, bool] = {}
    for path, is_strict in clashes.items():
        there = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in known)
        found[there] = is_strict and found.get(there, True)
    return found


def _format(schema: Schema) -> str:
    return type(schema).__name__.removesuffix("Schema")


def _breaks(backward: bool | None, forward: bool | None) -> Breaks:
    """From whether each direction clashes (not none), and that only strictly (true); what is sure goes first."""
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
