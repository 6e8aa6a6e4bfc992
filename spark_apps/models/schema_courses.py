"""When kinds of values in a changelog begin, end, or come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log1p, sqrt

import numpy as np

BUCKETS = 64


SURPRISE = 18.0
"""Happens by chance once in 65 million: a fleet has 30 kinds in each of 500 logs, every hour."""


PAUSE = 14.0
"""A kind in a share q of the values pauses where q·n values would have been in n: by chance once in a million."""


MIN_VALUES = 20
"""Fewer values of a kind are not significant, neither before nor after."""


CLUMPED = 4.0
"""Standard deviations of chi-squared above which shares of buckets differ by more than chance."""


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


def values_after(ended: Kind, other: Kind, exposure: np.ndarray) -> int:
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


def was_even_until_its_end(kind: Kind, exposure: np.ndarray) -> bool:
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
