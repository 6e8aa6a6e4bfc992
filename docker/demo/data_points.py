"""Data points as CloudWatch has them: basic monitoring, metrics before Nitro, and minutes without an instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from demo.ebs_days import Day
from demo.ebs_load import DAY_MINUTES, within
from demo.ebs_physics import Minutes
from demo.ebs_resources import FOREVER, Instance

NETWORK_BYTES_PER_SECOND = 2e6


def or_earlier(figures: Minutes, earlier: Minutes) -> Minutes:
    """Data points of a moved volume: those of its earlier instance where the later one has none."""
    return np.where(np.isnan(figures), earlier, figures)


def before_nitro(name: str) -> Callable[[Minutes, Day], Minutes]:
    """Metrics of instances before Nitro: reads and writes only if there are any, balances every five minutes."""
    if name == "BurstBalance":
        return lambda figures, day: every(
            np.where(np.isnan(figures) & ~np.isnan(day.queue), 100.0, figures), 5, lambda five, axis: five[:, -1]
        )
    kind = "read" if "Read" in name else "write"
    if name.startswith(("VolumeRead", "VolumeWrite", "VolumeTotal")):
        return lambda figures, day: np.where(getattr(day, f"{kind}_ops") > 0, figures, np.nan)
    return lambda figures, day: figures


def every(figures: Minutes, step: int, merge: Callable[..., Minutes]) -> Minutes:
    """One data point for `step` minutes, at the first of them."""
    if step == 1:
        return figures
    points = np.full(DAY_MINUTES, np.nan)
    points[::step] = merge(figures.reshape(-1, step), axis=1)
    return points


def network_bytes(instance: Instance, which: int, day: int) -> Minutes:
    """Bytes/s, limited to the peak of the instance type."""
    rates = as_set(instance.network, which, NETWORK_BYTES_PER_SECOND, day)
    peak = instance.type.peak_gbps
    return np.minimum(rates, peak * 125e6) if peak else rates


def as_set(spans: Sequence[tuple[Any, ...]], which: int, unset: float, day: int) -> Minutes:
    """The value at an index of each span, for its minutes; a later span overrides an earlier one."""
    figures = np.full(DAY_MINUTES, unset)
    for span in spans:
        figures[within(day, *span[:2])] = span[which]
    return figures


def failed(instance: Instance, check: str, day: int) -> Minutes:
    """1 in each minute in which the check fails; checks come every minute, whatever the monitoring."""
    spans = [within(day, start, end) for name, start, end in instance.failed_checks if name == check]
    return np.any(spans, axis=0).astype(float) if spans else np.zeros(DAY_MINUTES)


def alive(instance: Instance, day: int, figures: Minutes) -> Minutes:
    """Data points of an instance, from its launch until its termination."""
    running = within(day, instance.launched_at, instance.terminated_at or FOREVER)
    return np.where(running, figures, np.nan)
