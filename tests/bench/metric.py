"""One measured metric and its limit; how a part is measured in its own process."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A measured value. It must not exceed `limit`; without a limit it is only printed."""

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


def measured(part: Callable[[], list[Metric]]) -> list[Metric]:
    """The metrics of a part.

    Raises:
        RuntimeError: the part raised; with its traceback as text, because not every exception can be pickled.
    """
    try:
        return part()
    except Exception as error:
        raise RuntimeError(f"{error!r}\n{traceback.format_exc()}") from None
