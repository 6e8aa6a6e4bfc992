"""Metric values in templates: printed with the unit from the column's name; `.value` is the raw value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamwarden.rendering.readable import readable


class Metric:
    """A metric of a finding. If null, it prints `not known`, is false, and every comparison with it is false.

    Entries of lists and keys of objects are metrics too: `{{ topics[0].bytes_per_second }}`.
    """

    def __init__(self, column: str, value: Any) -> None:
        self.column, self.value = column, value

    def __str__(self) -> str:
        return readable(self.column, self.value)[1]

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == _raw(other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Any) -> bool:
        return self.value is not None and _raw(other) is not None and self.value < _raw(other)

    def __gt__(self, other: Any) -> bool:
        return self.value is not None and _raw(other) is not None and self.value > _raw(other)

    def __le__(self, other: Any) -> bool:
        return self < other or (self.value is not None and self == other)

    def __ge__(self, other: Any) -> bool:
        return self > other or (self.value is not None and self == other)

    def __len__(self) -> int:
        return len(self.value or ())

    def __iter__(self) -> Iterator[Metric]:
        return (Metric(self.column, entry) for entry in self.value or ())

    def __getitem__(self, key: int | str) -> Metric:
        return Metric(key if isinstance(key, str) else self.column, self.value[key])

    def __getattr__(self, key: str) -> Metric:
        if isinstance(self.value, Mapping) and key in self.value:
            return Metric(key, self.value[key])
        raise AttributeError(key)


def _raw(value: Any) -> Any:
    return value.value if isinstance(value, Metric) else value
