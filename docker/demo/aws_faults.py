"""Faults of the strict AWS endpoint: which calls they meet, and how often."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Literal

from demo.world import Metric

Kind = Literal[
    "throttle",
    "deny",
    "server_error",
    "reset",
    "hang",
    "endless",
    "malformed",
    "internal_error",
    "partial",
    "forbidden",
]


@dataclass
class Fault:
    """A fault and the calls it meets: `times` of them (None: all), after letting `after` pass."""

    kind: Kind
    times: int | None = 1
    after: int = 0
    action: str | None = None
    account: str | None = None
    region: str | None = None
    metric: str | None = None  # for the faults of one metric: its name
    resource: str | None = None  # … and a value of one of its dimensions
    seconds: float = 30.0  # how long a hanging call hangs


class Faults:
    """The faults that are on. Tests and the demo set them; every answer asks for its own."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def inject(self, kind: Kind, **which: Any) -> None:
        with self._lock:
            self._faults.append(Fault(kind, **which))

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def take(self, *kinds: Kind, **facts: str | None) -> Fault | None:
        """The first fault of these kinds that meets the facts, counted down."""
        with self._lock:
            for fault in self._faults:
                if fault.kind in kinds and all(getattr(fault, n) in (None, fact) for n, fact in facts.items()):
                    if fault.after:
                        fault.after -= 1
                        continue
                    if fault.times is not None:
                        fault.times -= 1
                        if fault.times == 0:
                            self._faults.remove(fault)
                    return fault
        return None

    def take_for(self, metric: Metric, *kinds: Kind) -> Fault | None:
        """The first fault of these kinds that meets the metric."""
        if not self._faults:
            return None
        for _, value in metric.dimensions or {("", "")}:
            if fault := self.take(*kinds, metric=metric.name, resource=value):
                return fault
        return None
