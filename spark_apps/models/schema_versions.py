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

import numpy as np

from spark_apps.models.json_shapes import ELEMENT, FRAMED, MAP_KEY, Maps, Path
from spark_apps.models.schema_courses import BUCKETS, Kind, course_of, is_sharp, values_after, was_even_until_its_end
from spark_apps.models.schema_transitions import (
    ABSENT,
    RESTORE,
    ROLLBACK,
    STRICT_RESTORE,
    STRICT_ROLLBACK,
    Change,
    Side,
    change_of,
    main_type,
    null_changes,
    sum_of,
    type_changes,
)

ALWAYS_THERE = 100
"""Values without a gap after which a new field counts as required: a field in nine of ten values has no gap in so many
with a probability of 1 in 40,000. Absence before its introduction does not matter: it was always absent until then."""
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
                *null_changes(path, kinds),
                *type_changes(path, kinds),
            )
        ]

    def _presence_changes(self, path: Path, kinds: Mapping[str, Kind]) -> list[Change]:
        absent = kinds.get(ABSENT)
        present = sum_of(kind for name, kind in kinds.items() if name != ABSENT)
        if absent is None or present is None:
            return []
        exposure = self.exposure(path)
        gone, there = course_of(absent, exposure, [present]), course_of(present, exposure, [absent])
        without, field = Side(None, absent), Side(main_type(kinds), present)
        if gone.begins and gone.ends and not gone.comes_and_goes:
            # Fields that a release omitted, or a producer did not send, until that was reverted.
            return [change_of(path, "field_rolled_back", without, field, STRICT_RESTORE)]
        if gone.comes_and_goes or there.comes_and_goes:
            return []
        match gone.begins, there.ends, there.begins, gone.ends:
            case True, True, _, _:
                return [change_of(path, "field_removed", field, without, ROLLBACK)]
            case True, False, _, _ if is_sharp(absent, exposure):
                return [change_of(path, "field_made_optional", field, without, ROLLBACK)]
            case False, True, _, _:
                return [change_of(path, "optional_field_removed", field, without, STRICT_RESTORE)]
            case _, _, True, True if values_after(absent, present, exposure) >= ALWAYS_THERE:
                return [change_of(path, "field_added", without, field, RESTORE)]
            case _, _, True, _:
                return [change_of(path, "optional_field_added", without, field, STRICT_ROLLBACK)]
            case _, _, False, True if was_even_until_its_end(absent, exposure):
                return [change_of(path, "field_made_required", without, field, STRICT_RESTORE)]
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
