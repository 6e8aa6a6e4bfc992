"""Enumerations: paths with few, repeated strings, and which of these constants were added or removed.

Shapes do not include the content of strings, so a sample of the log's values is examined. A path is an enumeration
if it has few strings that repeat, most of them throughout the log; labels of releases, campaigns, or tenants come
and go and are not constants. The result is facts only. A constant that only recent records have (the state of new
orders) is not new: its first position advances from hour to hour. SQL evaluates that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spark_apps.models.json_shapes import Path, leaves_at
from spark_apps.models.schema_courses import BUCKETS, MIN_VALUES, Kind, course_of, is_sharp

MOST, LONGEST, REPEATED = 12, 40, 5
"""Maximum number of constants per path, maximum length in characters, and minimum mean number of occurrences."""
CHANCE = 3.0
"""Standard deviations: with a few dozen values, one half often has twice as many as the other. Constants that only
recent records have are detected from hour to hour."""
_LATEST = np.iinfo(np.int64).max


class ConstantChange(NamedTuple):
    """A constant that was added or removed; positions are those of the sample's records."""

    path: Path
    constant: str
    is_added: bool
    old_count: int
    new_count: int
    old_last: int
    new_first: int


def are_constants(seen: Counter[str]) -> bool:
    """Whether the strings at a path are few, short, and repeated."""
    return 0 < len(seen) <= MOST and seen.total() >= REPEATED * len(seen) and max(map(len, seen)) <= LONGEST


def constant_changes(values: Mapping[int, Any], paths: list[Path]) -> list[ConstantChange]:
    """The changes at these paths in a sample: parsed values by position."""
    positions = sorted(values)
    return [change for path in paths for change in _of_path(path, positions, values)]


def _of_path(path: Path, positions: list[int], values: Mapping[int, Any]) -> list[ConstantChange]:
    there: list[int] = []
    seen: list[set[str]] = []
    distinct: Counter[str] = Counter()
    for position in positions:
        if found := {leaf for leaf in leaves_at(values[position], path) if isinstance(leaf, str)}:
            there.append(position)
            seen.append(found)
            distinct.update(found)
            if len(distinct) > MOST:
                return []
    if not are_constants(distinct):
        return []
    at = np.array(there)
    bucket = np.arange(len(at)) * BUCKETS // max(len(at), 1)
    exposure = np.bincount(bucket, minlength=BUCKETS)
    kinds = {constant: _kind(constant, seen, at, bucket) for constant in distinct}
    courses = {constant: course_of(kind, exposure) for constant, kind in kinds.items()}
    steady = [c for c, course in courses.items() if not course.comes_and_goes and kinds[c].total >= MIN_VALUES]
    changed = [c for c in steady if courses[c].begins or courses[c].ends]
    lasting = [c for c in steady if c not in changed]
    if len(lasting) < 2 or len(changed) > len(lasting):
        return []
    changes = []
    for constant in sorted(changed):
        kind = kinds[constant]
        if courses[constant].ends:  # also one that was added before: a release that was rolled back
            after = at[at > kind.last]
            changes.append(ConstantChange(path, constant, False, kind.total, len(after), kind.last, int(after[0])))
        elif is_sharp(kind, exposure, CHANCE):
            before = at[at < kind.first]
            changes.append(ConstantChange(path, constant, True, len(before), kind.total, int(before[-1]), kind.first))
    return changes


def _kind(constant: str, seen: list[set[str]], at: np.ndarray, bucket: np.ndarray) -> Kind:
    has = np.array([constant in found for found in seen])
    firsts, lasts = np.full(BUCKETS, _LATEST), np.full(BUCKETS, -1, np.int64)
    np.minimum.at(firsts, bucket[has], at[has])
    np.maximum.at(lasts, bucket[has], at[has])
    return Kind(np.bincount(bucket[has], minlength=BUCKETS), firsts, lasts)
