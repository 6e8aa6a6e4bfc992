"""Report on a changelog's schema versions: rows for paths and changes, with example records.

Examples and sets of strings are content of the values, so they are masked unless the config allows them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spark_apps.models.enumerations import ConstantChange, are_constants, constant_changes
from spark_apps.models.json_shapes import ELEMENT, MAP_KEY, Path, leaves_at, render, type_of
from spark_apps.models.schema_courses import BUCKETS
from spark_apps.models.schema_transitions import ABSENT, NUMBERS
from spark_apps.models.schema_versions import Profile


class Exemplar(NamedTuple):
    """One record, by its position."""

    partition: int
    offset: int
    text: str | None
    raw: bytes | None = None
    """The raw value, if a Schema Registry framed it."""
    is_sample: bool = False
    """Whether it is part of the even sample."""

    @property
    def place(self) -> str:
        """Partition and offset, as `partition:offset`."""
        return f"{self.partition}:{self.offset}"


def one_row_each(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Changes of one path between the same versions as one row, for example several types that changed at once.

    Examples come from the row with the most values, and values from it where there were none; types and directions
    are those of all rows.
    """
    together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in changes:
        together.setdefault((row["path"], row["change"], row["old_version"], row["new_version"]), []).append(row)
    merged = []
    for rows in together.values():
        row = dict(max(rows, key=lambda row: (row["old_count"] or 0) + (row["new_count"] or 0)))
        for side in ("old", "new") if len(rows) > 1 else ():
            counts = {each[f"{side}_type"]: each[f"{side}_count"] for each in rows if each[f"{side}_type"]}
            row[f"{side}_type"] = ", ".join(sorted(counts)) or None
            if any(counts.values()):
                row[f"{side}_count"] = sum(count or 0 for count in counts.values())
        for direction in ("breaks_backward", "breaks_forward"):
            row[direction] = any(each[direction] for each in rows)
        row["strict_only"] = all(each["strict_only"] for each in rows)
        merged.append(row)
    return merged


class Report:
    """Rows for the warehouse: the profile with example records."""

    def __init__(self, profile: Profile, exemplars: Mapping[int, Exemplar], *, show_values: bool) -> None:
        self.profile = profile
        self.exemplars = exemplars
        self.show_values = show_values
        self._parsed: dict[int, Any] = {}

    def path_rows(self) -> list[dict[str, Any]]:
        """One row per version, path, and type."""
        rows = []
        parents = self._parents()
        for (path, kind), figures in sorted(self.profile.kinds.items(), key=lambda item: (item[0][0], item[0][1])):
            if kind == ABSENT:
                continue
            exposure = self.profile.exposure(path)
            for version, part in self.profile.version_slices(path, kind):
                count = int(figures.counts[part].sum())
                if not count:
                    continue
                first, last = int(figures.firsts[part].min()), int(figures.lasts[part].max())
                rows.append(
                    {
                        "version": version,
                        "path": render(path),
                        "type": kind,
                        "count": count,
                        "parents": parents.get((path, version)) or int(exposure[part].sum()),
                        "enum_values": self._enum(path, kind, first, last),
                        "first_position": first,
                        "last_position": last,
                        "first_offset": self._place(first),
                        "last_offset": self._place(last),
                        "example": self._example(path, kind, last),
                    }
                )
        return rows

    def _parents(self) -> Counter[tuple[Path, int]]:
        """Values with the parent object, by path and version; each counts once, whether the field is absent or not."""
        parents: Counter[tuple[Path, int]] = Counter()
        for (path, kind), figures in self.profile.kinds.items():
            if not path or path[-1] not in (ELEMENT, MAP_KEY):
                for version, part in self.profile.version_slices(path, kind):
                    parents[path, version] += int(figures.counts[part].sum())
        return parents

    def change_rows(self) -> list[dict[str, Any]]:
        """One row per change."""
        profile, rows = self.profile, []
        for change in profile.changes:
            exposure = profile.exposure(change.path)
            before, after = exposure[: change.low].sum(), exposure[change.high + 1 :].sum()
            old, new = change.old, change.new
            absent = profile.paths[change.path].get(ABSENT)
            away = absent.counts if absent is not None else np.zeros(BUCKETS, dtype=np.int64)
            rows.append(
                {
                    "path": render(change.path),
                    "change": change.change,
                    "old_version": profile.old_version(change),
                    "new_version": profile.newest_version,
                    "old_type": old.type,
                    "new_type": new.type,
                    "old_presence": _share(before - away[: change.low].sum(), before),
                    "new_presence": _share(after - away[change.high + 1 :].sum(), after),
                    "old_count": old.kind.total,
                    "new_count": new.kind.total,
                    "breaks_backward": change.breaks.backward,
                    "breaks_forward": change.breaks.forward,
                    "strict_only": change.breaks.strict_only,
                    "old_last_position": old.kind.last,
                    "new_first_position": new.kind.first,
                    "old_last_offset": self._place(old.kind.last),
                    "new_first_offset": self._place(new.kind.first),
                    "old_example": self._example(change.path, old.type, old.kind.last),
                    "new_example": self._example(change.path, new.type, new.kind.first),
                    "old_schema_id": None,
                    "new_schema_id": None,
                }
            )
        return rows

    def constant_rows(self) -> list[dict[str, Any]]:
        """One row per constant of an enumeration that was added or removed, by the sample."""
        sample = {position: self._value(position) for position, each in self.exemplars.items() if each.is_sample}
        if self.profile.format != "json" or not sample:
            return []
        paths = [path for path, kinds in self.profile.paths.items() if path and "string" in kinds]
        scale = max(self.profile.values / len(sample), 1.0)
        return [self._constant_row(change, scale) for change in constant_changes(sample, paths)]

    def _constant_row(self, change: ConstantChange, scale: float) -> dict[str, Any]:
        constant = shown(change.constant) if self.show_values else masked(change.constant)
        version = self.profile.newest_version
        return {
            "path": render(change.path),
            "change": "constant_added" if change.is_added else "constant_removed",
            "old_version": version,
            "new_version": version,
            "old_type": None if change.is_added else constant,
            "new_type": constant if change.is_added else None,
            "old_presence": None,
            "new_presence": None,
            "old_count": round(change.old_count * scale),
            "new_count": round(change.new_count * scale),
            "breaks_backward": not change.is_added,
            "breaks_forward": change.is_added,
            "strict_only": True,
            "old_last_position": change.old_last,
            "new_first_position": change.new_first,
            "old_last_offset": self._place(change.old_last),
            "new_first_offset": self._place(change.new_first),
            "old_example": self._example(change.path, "string", change.old_last),
            "new_example": self._example(change.path, "string", change.new_first),
            "old_schema_id": None,
            "new_schema_id": None,
        }

    def _place(self, position: int) -> str | None:
        exemplar = self.exemplars.get(position)
        return exemplar.place if exemplar else None

    def _value(self, position: int) -> Any:
        if position not in self._parsed:
            exemplar = self.exemplars.get(position)
            try:
                self._parsed[position] = json.loads(exemplar.text) if exemplar and exemplar.text else None
            except (ValueError, RecursionError):
                self._parsed[position] = exemplar.text if exemplar else None
        return self._parsed[position]

    def _example(self, path: Path, kind: str | None, position: int) -> str | None:
        if kind is None or position not in self.exemplars:
            return None
        found = leaves_at(self._value(position), path)
        fitting = [leaf for leaf in found if type_of(leaf) in (kind, *(NUMBERS if kind in NUMBERS else ()))] or found
        if not fitting:
            return None
        return shown(fitting[0]) if self.show_values else masked(fitting[0])

    def _enum(self, path: Path, kind: str, first: int, last: int) -> list[str] | None:
        """The strings at a path, if they are few and repeated, and if values may be shown."""
        if kind != "string" or not self.show_values:
            return None
        seen: Counter[str] = Counter()
        for position in self.exemplars:
            if first <= position <= last:
                seen.update(leaf for leaf in leaves_at(self._value(position), path) if isinstance(leaf, str))
        if not all(map(str.isprintable, seen)):
            return None
        return sorted(seen) if are_constants(seen) else None


def shown(value: Any) -> str:
    """A value as an unmasked example."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode(errors="replace").decode()[:80]


def masked(value: Any) -> str:
    """A value without its content: letters become x, digits 9, and unprintable characters a dot (PostgreSQL rejects
    NUL)."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, dict | list):
        return f"{type_of(value)} of {len(value)}"
    text = json.dumps(value, ensure_ascii=False, default=_plain) if not isinstance(value, str) else f'"{value}"'
    if value is None:
        return "null"
    return "".join("9" if c.isdigit() else "x" if c.isalpha() else c if c.isprintable() else "·" for c in text)[:40]


def _plain(value: Any) -> str:
    """JSON form of values that JSON has no type for: bytes, and the times and decimals of Avro."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _share(part: Any, whole: Any) -> float | None:
    return float(part) / float(whole) if whole else None
