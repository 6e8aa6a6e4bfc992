"""One measured figure and its limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`value` must not exceed `limit`; without a limit it is told for information."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def met(self) -> bool:
        return self.limit is None or self.value <= self.limit

    @property
    def shown(self) -> str:
        return f"{self.value:,.2f} {self.unit}"

    @property
    def limit_shown(self) -> str:
        return "" if self.limit is None else f"≤ {self.limit:,.2f} {self.unit}"
