"""Schema versions within one log: which paths and types began or stopped, by how improbable that is by chance.

The log is divided into BUCKETS of equally many values in write order. Every path has *kinds*: its types, null, and
absent (the parent object exists without the path). The probability that none of k values of a kind is among the last
n of s + n values by chance is (s / (s + n))^k: below e^-SURPRISE the kind has stopped. Beginnings are detected in
the same way. A kind that pauses and returns (an optional field) has done neither; a pause needs less certainty. The
remaining changes are those of the schema; changes that are close in time, as in a rolling deployment, form one
version boundary.

Ticket thresholds are not part of this module: whether a change breaks restore or rollback follows from types and
presence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from spark_apps.models.json_shapes import ELEMENT, FRAMED, MAP_KEY, Maps, Path

BUCKETS = 64
SURPRISE = 18.0
"""Happens by chance once in 65 million: a fleet has 30 kinds in each of 500 logs, every hour."""
PAUSE = 14.0
"""A kind in a share q of the values pauses where q·n values would have been in n: by chance once in a million."""
MIN_VALUES = 20
"""Fewer values of a kind are not significant, neither before nor after."""
CLUMPED = 4.0
"""Standard deviations of chi-squared above which shares of buckets differ by more than chance."""
ALWAYS_THERE = 100
"""Values without a gap after which a new field counts as required: a field in nine of ten values has no gap in so many
with a probability of 1 in 40,000. Absence before its introduction does not matter: it was always absent until then."""
ABSENT = "absent"
NUMBERS = ("integer", "number")
_MAX_EXEMPLARS = 6000
_LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ShapeCount:
    """Number of values of one shape within one bucket."""

    bucket: int
    shape: str
    count: int
    first: int
    last: int


@dataclass
class Kind:
    """Number of values of one kind of a path per bucket, with the first and the last position in each bucket."""

    counts: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray

    @cached_property
    def total(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    @cached_property
    def first(self) -> int:
        """Position of the first value."""
        return int(self.firsts.min())

    @cached_property
    def last(self) -> int:
        """Position of the last value."""
        return int(self.lasts.max())

    @cached_property
    def span(self) -> tuple[int, int]:
        """First and last bucket."""
        there = np.flatnonzero(self.counts)
        return int(there[0]), int(there[-1])

    def __add__(self, other: Kind) -> Kind:
        return Kind(
            self.counts + other.counts,
            np.minimum(self.firsts, other.firsts),
            np.maximum(self.lasts, other.lasts),
        )


@dataclass
class Course:
    """Course of a kind through the log, measured by its exposure: the values that could have had it."""

    begins: bool
    ends: bool
    comes_and_goes: bool


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


class Profile:
    """All kinds of all paths of one changelog, and the changes between them."""

    def __init__(self, shapes: Sequence[ShapeCount]) -> None:
        self.shapes = shapes
        totals: Counter[str] = Counter()
        for row in shapes:
            totals[row.shape] += row.count
        maps = Maps(totals.items())
        self.kinds = _tabulate(shapes, {shape: maps.paths(shape) for shape in totals})
        self.values = sum(totals.values())

    @cached_property
    def paths(self) -> dict[Path, dict[str, Kind]]:
        """Kinds by path, including absent."""
        found: dict[Path, dict[str, Kind]] = {}
        for (path, kind), figures in self.kinds.items():
            found.setdefault(path, {})[kind] = figures
        return found

    def exposure(self, path: Path) -> np.ndarray:
        """Values with the parent object, per bucket."""
        if not path:
            return sum((kind.counts for kind in self.paths[()].values()), np.zeros(BUCKETS, dtype=np.int64))
        parent = self.paths[path[:-1]].get("array" if path[-1] == ELEMENT else "object")
        return parent.counts if parent is not None else np.zeros(BUCKETS, dtype=np.int64)

    @cached_property
    def formats(self) -> dict[str, Kind]:
        """Values by format: json, framed, string, long, binary."""
        found: dict[str, Kind] = {}
        for kind, figures in self.paths[()].items():
            name = "json" if kind in ("object", "array") else kind
            found[name] = found[name] + figures if name in found else figures
        return found

    @cached_property
    def framed(self) -> dict[int, Kind]:
        """Values framed by a Schema Registry, by schema id."""
        found: dict[int, Kind] = {}
        for row in self.shapes:
            if row.shape.startswith(FRAMED):
                schema_id, kind = int(row.shape.removeprefix(FRAMED)), _kind_of(row)
                found[schema_id] = found[schema_id] + kind if schema_id in found else kind
        return found

    @cached_property
    def format(self) -> str:
        """Format of the newest values."""
        exposure = self.exposure(())
        rivals = {name: [kind for other, kind in self.formats.items() if other != name] for name in self.formats}
        lasting = [name for name, kind in self.formats.items() if not course_of(kind, exposure, rivals[name]).ends]
        return max(lasting or self.formats, key=lambda name: self.formats[name].total)

    @property
    def readable_values(self) -> int:
        """Number of values in `format`."""
        return self.formats[self.format].total

    @cached_property
    def changes(self) -> list[Change]:
        """All changes with old kinds that are still in the log."""
        return [
            change
            for path, kinds in sorted(self.paths.items())
            for change in (
                *self._presence_changes(path, kinds),
                *_null_changes(path, kinds),
                *_type_changes(path, kinds),
            )
        ]

    def _presence_changes(self, path: Path, kinds: Mapping[str, Kind]) -> list[Change]:
        absent = kinds.get(ABSENT)
        present = _sum(kind for name, kind in kinds.items() if name != ABSENT)
        if absent is None or present is None:
            return []
        exposure = self.exposure(path)
        gone, there = course_of(absent, exposure, [present]), course_of(present, exposure, [absent])
        without, field = Side(None, absent), Side(_main(kinds), present)
        if gone.begins and gone.ends and not gone.comes_and_goes:
            # Fields that a release omitted, or a producer did not send, until that was reverted.
            return [_change(path, "field_rolled_back", without, field, STRICT_RESTORE)]
        if gone.comes_and_goes or there.comes_and_goes:
            return []
        match gone.begins, there.ends, there.begins, gone.ends:
            case True, True, _, _:
                return [_change(path, "field_removed", field, without, ROLLBACK)]
            case True, False, _, _ if is_sharp(absent, exposure):
                return [_change(path, "field_made_optional", field, without, ROLLBACK)]
            case False, True, _, _:
                return [_change(path, "optional_field_removed", field, without, STRICT_RESTORE)]
            case _, _, True, True if _values_after(absent, present, exposure) >= ALWAYS_THERE:
                return [_change(path, "field_added", without, field, RESTORE)]
            case _, _, True, _:
                return [_change(path, "optional_field_added", without, field, STRICT_ROLLBACK)]
            case _, _, False, True if _was_even_until_its_end(absent, exposure):
                return [_change(path, "field_made_required", without, field, STRICT_RESTORE)]
        return []

    @cached_property
    def boundaries(self) -> list[tuple[int, int]]:
        """First and last bucket of each transition between versions."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted((change.low, change.high) for change in self.changes):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return merged

    @property
    def newest_version(self) -> int:
        """Number of the newest version."""
        return len(self.boundaries) + 1

    def old_version(self, change: Change) -> int:
        """The last version before the change."""
        return 1 + next(i for i, (low, high) in enumerate(self.boundaries) if low <= change.low and change.high <= high)

    def version_slices(self, path: Path, kind: str) -> list[tuple[int, slice]]:
        """Buckets of a kind by version; within a transition, a kind that stops is old, and one that begins is new."""
        first, last = self.kinds[path, kind].span
        edges = [0]
        for low, high in self.boundaries:
            edges.append(high + 1 if low <= last <= high else low if low <= first <= high else (low + high) // 2 + 1)
        edges.append(BUCKETS)
        return [(i + 1, slice(edges[i], edges[i + 1])) for i in range(len(edges) - 1) if edges[i] < edges[i + 1]]

    def wanted_positions(self) -> list[int]:
        """Positions of records to examine: first and last of each kind, and a bounded number in between."""
        kinds = (*self.kinds.values(), *self.framed.values())
        ends = {position for kind in kinds for position in (kind.first, kind.last)}
        if self.format == "framed":  # their schemas define the content
            return sorted(ends)
        between = sorted({p for row in self.shapes for p in (row.first, row.last)} - ends)
        step = max(1, len(between) // _MAX_EXEMPLARS + 1)
        return sorted(ends)[: 4 * _MAX_EXEMPLARS] + between[::step]


def _kind_of(row: ShapeCount) -> Kind:
    counts, firsts, lasts = np.zeros(BUCKETS, np.int64), np.full(BUCKETS, _LATEST), np.full(BUCKETS, -1, np.int64)
    counts[row.bucket], firsts[row.bucket], lasts[row.bucket] = row.count, row.first, row.last
    return Kind(counts, firsts, lasts)


def _tabulate(shapes: Sequence[ShapeCount], paths: Mapping[str, set[tuple[Path, str]]]) -> dict[tuple[Path, str], Kind]:
    """Sums shapes to kinds. Vectorized: each shape is a list of kind ids, repeated for its buckets."""
    children: dict[Path, set[Path]] = {}
    for found in paths.values():
        for path, _ in found:
            if path and path[-1] not in (ELEMENT, MAP_KEY):
                children.setdefault(path[:-1], set()).add(path)
    ids: dict[tuple[Path, str], int] = {}
    ids_of: dict[str, list[int]] = {}
    for shape, found in paths.items():
        there = {path for path, _ in found}
        absent = {
            (child, ABSENT)
            for path, kind in found
            if kind == "object"
            for child in children.get(path, ())
            if child not in there
        }
        ids_of[shape] = [ids.setdefault(key, len(ids)) for key in sorted((*found, *absent))]
    lengths = [len(ids_of[row.shape]) for row in shapes]
    kind = np.array([i for row in shapes for i in ids_of[row.shape]], dtype=np.int64)
    bucket, count, first, last = (
        np.repeat(np.array([getattr(row, name) for row in shapes], dtype=np.int64), lengths)
        for name in ("bucket", "count", "first", "last")
    )
    size = (len(ids), BUCKETS)
    counts = np.zeros(size, dtype=np.int64)
    firsts = np.full(size, _LATEST)
    lasts = np.full(size, -1, dtype=np.int64)
    np.add.at(counts, (kind, bucket), count)
    np.minimum.at(firsts, (kind, bucket), first)
    np.maximum.at(lasts, (kind, bucket), last)
    return {key: Kind(counts[i], firsts[i], lasts[i]) for key, i in ids.items()}


def _sum(kinds: Any) -> Kind | None:
    total: Kind | None = None
    for kind in kinds:
        total = kind if total is None else total + kind
    return total


def _main(kinds: Mapping[str, Kind]) -> str | None:
    """The most frequent type; integers together with fractions are numbers."""
    types = {name: kind.total for name, kind in kinds.items() if name != ABSENT}
    if "number" in types:
        types["number"] += types.pop("integer", 0)
    typed = {name: count for name, count in types.items() if name != "null"} or types
    return max(typed, key=lambda name: typed[name]) if typed else None


def course_of(kind: Kind, exposure: np.ndarray, others: Sequence[Kind] = ()) -> Course:
    """Whether a kind began or stopped within the log, or pauses and returns."""
    if kind.total < MIN_VALUES:
        return Course(begins=False, ends=False, comes_and_goes=False)
    first, last = kind.span
    inner = exposure[first : last + 1]
    spanned = max(int(inner.sum()), 1)
    before, after = int(exposure[:first].sum()), int(exposure[last + 1 :].sum())

    def surprising(values: int) -> bool:
        return values >= MIN_VALUES and kind.total * log1p(values / spanned) >= SURPRISE

    pauses = _runs(inner, kind.counts[first : last + 1] == 0)
    # A clean transition within one bucket shows in the positions.
    enough = [other for other in others if other.total >= MIN_VALUES]
    return Course(
        begins=surprising(before) or any(other.last < kind.first for other in enough),
        ends=surprising(after) or any(other.first > kind.last for other in enough),
        comes_and_goes=any(n >= MIN_VALUES and n * kind.total / spanned >= PAUSE for n in pauses),
    )


def _values_after(ended: Kind, other: Kind, exposure: np.ndarray) -> int:
    """Values since the last one of a kind; values of its last bucket count only if the other kind begins after it."""
    return other.total if other.first > ended.last else int(exposure[ended.span[1] + 1 :].sum())


def _runs(exposure: np.ndarray, silent: np.ndarray) -> list[int]:
    """Values exposed in each uninterrupted run of buckets without the kind."""
    runs: list[int] = []
    running = False
    for values, is_silent in zip(exposure.tolist(), silent.tolist(), strict=True):
        if is_silent and running:
            runs[-1] += values
        elif is_silent:
            runs.append(values)
        running = is_silent
    return runs


def is_sharp(kind: Kind, exposure: np.ndarray, chance: float = 0) -> bool:
    """Whether a kind that began soon reached its lasting frequency: a release, not the age of records.

    The first quarter of its range may be a rolling deployment, in which its frequency rises step by step.

    Args:
        chance: standard deviations by which the halves may differ, whatever their rates.
    """
    first = kind.span[0]
    counts, exposure = kind.counts[first + 1 :], exposure[first + 1 :]
    deployed = int(np.searchsorted(np.cumsum(exposure), exposure.sum() / 4))
    return _halves_agree(counts[deployed:], exposure[deployed:], chance)


def _was_even_until_its_end(kind: Kind, exposure: np.ndarray) -> bool:
    """Whether a kind that ended had an even frequency before: a release, not a field that comes and goes.

    Short occurrences leave no visible pauses in a compacted log, but buckets then have it often or hardly ever. The
    last quarter may be a rolling deployment.
    """
    last = kind.span[1]
    return _halves_agree(kind.counts[:last], exposure[:last]) and not _is_clumped(kind, exposure, last * 3 // 4)


def _is_clumped(kind: Kind, exposure: np.ndarray, until: int) -> bool:
    """Whether a kind's share differs between the buckets before `until` by more than chance."""
    there = exposure[:until] > 0
    counts, exposed = kind.counts[:until][there], exposure[:until][there]
    share = counts.sum() / max(exposed.sum(), 1)
    if len(counts) < 2 or not 0 < share < 1:
        return False
    chi_squared = ((counts - share * exposed) ** 2 / (share * (1 - share) * exposed)).sum()
    freedom = len(counts) - 1
    return bool(chi_squared > freedom + CLUMPED * sqrt(2 * freedom))


def _halves_agree(counts: np.ndarray, exposure: np.ndarray, chance: float = 0) -> bool:
    middle = int(np.searchsorted(np.cumsum(exposure), exposure.sum() / 2))
    early, late = exposure[:middle].sum(), exposure[middle:].sum()
    if min(early, late) < MIN_VALUES:
        return True
    rates = sorted((counts[:middle].sum() / early, counts[middle:].sum() / late))
    share, total = early / (early + late), counts.sum()
    differ = abs(counts[:middle].sum() - share * total) / sqrt(max(total * share * (1 - share), 1))
    return bool(rates[0] * 2 >= rates[1] or differ < chance)


def _change(path: Path, change: str, old: Side, new: Side, breaks: Breaks) -> Change:
    low, high = _passage(old.kind, new.kind)
    return Change(path, change, old, new, breaks, low, high)


def _passage(old: Kind, new: Kind) -> tuple[int, int]:
    """Buckets between the first value of the new kind and the last of the old one."""
    begun, ended = new.span[0], old.span[1]
    # Where the old kind continues for long, the transition is where the new one began.
    return (begun, begun) if begun + BUCKETS // 4 < ended else (min(begun, ended), max(begun, ended))


def _null_changes(path: Path, kinds: Mapping[str, Kind]) -> list[Change]:
    """Nullability gained or lost, where there are values besides nulls."""
    null = kinds.get("null")
    typed = _sum(kind for name, kind in kinds.items() if name not in (ABSENT, "null"))
    if null is None or typed is None:
        return []
    exposure = null.counts + typed.counts
    course, other = course_of(null, exposure, [typed]), course_of(typed, exposure, [null])
    nulls, values = Side("null", null), Side(_main(kinds), typed)
    if course.begins and course.ends and not course.comes_and_goes:
        return [_change(path, "nullability_rolled_back", nulls, values, STRICT_RESTORE)]
    if course.comes_and_goes or other.comes_and_goes:
        return []
    if course.begins and not course.ends and (other.ends or is_sharp(null, exposure)):
        return [_change(path, "nullability_gained", values, nulls, ROLLBACK)]
    if course.ends and not course.begins and not other.begins and _was_even_until_its_end(null, exposure):
        return [_change(path, "nullability_lost", nulls, values, RESTORE)]
    return []


def _type_changes(path: Path, kinds: Mapping[str, Kind]) -> list[Change]:
    """Types that stopped, began, or replaced another. Integers are numbers; they differ only from each other."""
    types = {name: kind for name, kind in kinds.items() if name not in (ABSENT, "null")}
    exposure = sum((kind.counts for kind in types.values()), np.zeros(BUCKETS, dtype=np.int64))
    numeric = _sum(types[name] for name in NUMBERS if name in types)
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
            change = _change(path, "type_changed", sides[old], sides[new], BOTH)
            # Other kinds may have been in between: the transition ends where the next kind began.
            next_one = min(families.keys() - {old}, key=lambda name: abs(families[name].first - ended_at))
            change.low, change.high = _passage(families[old], families[next_one])
        else:
            new = max(active, key=lambda name: families[name].total)
            was_before = courses[old].begins and families[new].first < families[old].first
            # A release that was rolled back wrote values that this one cannot read, and cannot read this one's.
            name, breaks = ("type_rolled_back", BOTH) if was_before else ("type_narrowed", RESTORE)
            change = _change(path, name, sides[old], sides[new], breaks)
            change.low = change.high = families[old].span[1]
        changes.append(change)
    for new in (name for name in begun if name not in replaced):
        old = max(families.keys() - {new}, key=lambda name: families[name].total)
        changes.append(_change(path, "type_widened", sides[old], sides[new], ROLLBACK))
    return changes


def _number_changes(path: Path, integer: Kind, number: Kind, exposure: np.ndarray) -> list[Change]:
    """Fractions that begin break readers that require integers; fractions that stop may have been a type."""
    course, whole = course_of(number, exposure, [integer]), course_of(integer, exposure, [number])
    integers, fractions = Side("integer", integer), Side("number", number)
    if course.begins and not course.ends and not course.comes_and_goes:
        return [_change(path, "type_widened", integers, fractions, STRICT_ROLLBACK)]
    if course.begins and course.ends and not whole.ends and not course.comes_and_goes:
        return [_change(path, "fractions_rolled_back", fractions, integers, STRICT_RESTORE)]
    if course.ends and not course.begins and not whole.ends and not course.comes_and_goes:
        return [_change(path, "type_narrowed", fractions, integers, RESTORE)]
    return []
