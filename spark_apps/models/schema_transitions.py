"""Changes of nullability and type at one path, from the kinds of its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spark_apps.models.json_shapes import Path
from spark_apps.models.schema_courses import BUCKETS, MIN_VALUES, Kind, course_of, is_sharp, was_even_until_its_end

ABSENT = "absent"


NUMBERS = ("integer", "number")


class Breaks(NamedTuple):
    """What a change breaks; `strict_only`: only strict readers."""

    backward: bool = False
    forward: bool = False
    strict_only: bool = False


RESTORE = Breaks(backward=True)


ROLLBACK = Breaks(forward=True)


BOTH = Breaks(backward=True, forward=True)


STRICT_RESTORE = Breaks(backward=True, strict_only=True)


STRICT_ROLLBACK = Breaks(forward=True, strict_only=True)


class Side(NamedTuple):
    """Type at a path before or after a change; None: absent."""

    type: str | None
    kind: Kind


@dataclass
class Change:
    """A change between the last version with the old kind and the newest version."""

    path: Path
    change: str
    old: Side
    new: Side
    breaks: Breaks
    low: int
    high: int
    """Buckets of the transition."""


def sum_of(kinds: Iterable[Kind]) -> Kind | None:
    """All values of these kinds as one kind; None without kinds."""
    total: Kind | None = None
    for kind in kinds:
        total = kind if total is None else total + kind
    return total


def main_type(kinds: Mapping[str, Kind]) -> str | None:
    """The most frequent type; integers together with fractions are numbers."""
    types = {name: kind.total for name, kind in kinds.items() if name != ABSENT}
    if "number" in types:
        types["number"] += types.pop("integer", 0)
    typed = {name: count for name, count in types.items() if name != "null"} or types
    return max(typed, key=lambda name: typed[name]) if typed else None


def change_of(path: Path, change: str, old: Side, new: Side, breaks: Breaks) -> Change:
    """A change at a path, with the buckets of its transition."""
    low, high = passage_of(old.kind, new.kind)
    return Change(path, change, old, new, breaks, low, high)


def passage_of(old: Kind, new: Kind) -> tuple[int, int]:
    """Buckets between the first value of the new kind and the last of the old one."""
    begun, ended = new.span[0], old.span[1]
    # Where the old kind continues for long, the transition is where the new one began.
    return (begun, begun) if begun + BUCKETS // 4 < ended else (min(begun, ended), max(begun, ended))


def null_changes(path: Path, kinds: Mapping[str, Kind]) -> list[Change]:
    """Nullability gained or lost, where there are values besides nulls."""
    null = kinds.get("null")
    typed = sum_of(kind for name, kind in kinds.items() if name not in (ABSENT, "null"))
    if null is None or typed is None:
        return []
    exposure = null.counts + typed.counts
    course, other = course_of(null, exposure, [typed]), course_of(typed, exposure, [null])
    nulls, values = Side("null", null), Side(main_type(kinds), typed)
    if course.begins and course.ends and not course.comes_and_goes:
        return [change_of(path, "nullability_rolled_back", nulls, values, STRICT_RESTORE)]
    if course.comes_and_goes or other.comes_and_goes:
        return []
    if course.begins and not course.ends and (other.ends or is_sharp(null, exposure)):
        return [change_of(path, "nullability_gained", values, nulls, ROLLBACK)]
    if course.ends and not course.begins and not other.begins and was_even_until_its_end(null, exposure):
        return [change_of(path, "nullability_lost", nulls, values, RESTORE)]
    return []


def type_changes(path: Path, kinds: Mapping[str, Kind]) -> list[Change]:
    """Types that stopped, began, or replaced another. Integers are numbers; they differ only from each other."""
    types = {name: kind for name, kind in kinds.items() if name not in (ABSENT, "null")}
    exposure = sum((kind.counts for kind in types.values()), np.zeros(BUCKETS, dtype=np.int64))
    numeric = sum_of(types[name] for name in NUMBERS if name in types)
    families = {name: kind for name, kind in types.items() if name not in NUMBERS}
    if numeric is not None:
        families["number" if "number" in types else "integer"] = numeric
    changes = _family_changes(path, families, exposure)
    if numeric is not None and all(name in types for name in NUMBERS):
        changes += _number_changes(path, types["integer"], types["number"], numeric.counts)
    return changes


def _family_changes(path: Path, families: Mapping[str, Kind], exposure: np.ndarray) -> list[Change]:
    courses = {
        name: course_of(kind, exposure, [other for rival, other in families.items() if rival != name])
        for name, kind in families.items()
    }
    steady = {name: course for name, course in courses.items() if not course.comes_and_goes}
    active = [name for name in families if families[name].total >= MIN_VALUES and not courses[name].ends]
    begun = [name for name in active if name in steady and steady[name].begins]
    sides = {name: Side(name, kind) for name, kind in families.items()}
    changes: list[Change] = []
    replaced: set[str] = set()
    for old in (name for name, course in steady.items() if course.ends and active):
        ended_at = families[old].last
        if begun:
            new = min(begun, key=lambda name: abs(families[name].first - ended_at))
            replaced.add(new)
            change = change_of(path, "type_changed", sides[old], sides[new], BOTH)
            # Other kinds may have been in between: the transition ends where the next kind began.
            next_one = min(families.keys() - {old}, key=lambda name: abs(families[name].first - ended_at))
            change.low, change.high = passage_of(families[old], families[next_one])
        else:
            new = max(active, key=lambda name: families[name].total)
            was_before = courses[old].begins and families[new].first < families[old].first
            # A release that was rolled back wrote values that this one cannot read, and cannot read this one's.
            name, breaks = ("type_rolled_back", BOTH) if was_before else ("type_narrowed", RESTORE)
            change = change_of(path, name, sides[old], sides[new], breaks)
            change.low = change.high = families[old].span[1]
        changes.append(change)
    for new in (name for name in begun if name not in replaced):
        old = max(families.keys() - {new}, key=lambda name: families[name].total)
        changes.append(change_of(path, "type_widened", sides[old], sides[new], ROLLBACK))
    return changes


def _number_changes(path: Path, integer: Kind, number: Kind, exposure: np.ndarray) -> list[Change]:
    """Fractions that begin break readers that require integers; fractions that stop may have been a type."""
    course, whole = course_of(number, exposure, [integer]), course_of(integer, exposure, [number])
    integers, fractions = Side("integer", integer), Side("number", number)
    if course.begins and not course.ends and not course.comes_and_goes:
        return [change_of(path, "type_widened", integers, fractions, STRICT_ROLLBACK)]
    if course.begins and course.ends and not whole.ends and not course.comes_and_goes:
        return [change_of(path, "fractions_rolled_back", fractions, integers, STRICT_RESTORE)]
    if course.ends and not course.begins and not whole.ends and not course.comes_and_goes:
        return [change_of(path, "type_narrowed", fractions, integers, RESTORE)]
    return []
