"""Backtests of causes: ranks the stored findings of past hours with other parameters. Stores nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.causes.weighing import Cause, weigh
from streamwarden.detectors.load import Detector, ParameterValue
from streamwarden.rendering.readable import moment
from streamwarden.store.queries import ask

Params = Mapping[str, ParameterValue]
Progress = Callable[[int, int], None]
"""Called after each hour with the number of ranked hours and of all hours."""


@dataclass(frozen=True)
class CauseChange:
    """A finding (fingerprint) and its accepted cause (fingerprint) with both sets of parameters; None: no cause."""

    hour: datetime
    effect: str
    in_force: str | None
    tried: str | None


@dataclass(frozen=True)
class CauseBacktest:
    """Result of a backtest: numbers of hours and of accepted causes, summed over the hours, and the differences."""

    hours: int
    accepted_in_force: int
    accepted_tried: int
    changes: tuple[CauseChange, ...]


def parse_settings(texts: Iterable[str]) -> dict[str, ParameterValue]:
    """Parameters from `name=value` on the command line.

    Raises:
        StreamwardenError: a text without `=`, or a value that is no number; `rule.with_params` checks the names.
    """
    values: dict[str, ParameterValue] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            values[name] = float(value)
        except ValueError:
            raise StreamwardenError(f"--set {text}: write it as name=value, with a number as value.") from None
    return values


def backtest(
    warehouse: sa.Engine, detectors: Mapping[str, Detector], start: datetime, end: datetime, *,
    in_force: Params, tried: Params, progress: Progress,
) -> CauseBacktest:  # fmt: skip
    """Ranks the causes of the hours of [start, end) that were ranked before, with two sets of all parameters.

    Raises:
        StreamwardenError: no causes were ranked in these hours; one line.
    """
    accepted_in_force = accepted_tried = 0
    changes: list[CauseChange] = []
    with warehouse.connect() as connection:
        hours = [row["hour"] for row in ask(connection, "causes/ranked_hours", first_hour=start, until_hour=end)]
        if not hours:
            raise StreamwardenError(
                f"backtest causes: no causes were ranked from {moment(start)} to {moment(end)}."
                " Choose hours that `streamwarden run` has evaluated."
            )
        for done, hour in enumerate(hours, 1):
            before = _accepted(weigh(connection, detectors, hour, in_force))
            after = _accepted(weigh(connection, detectors, hour, tried))
            accepted_in_force += len(before)
            accepted_tried += len(after)
            changes += [
                CauseChange(hour, effect, before.get(effect), after.get(effect))
                for effect in sorted(before.keys() | after.keys())
                if before.get(effect) != after.get(effect)
            ]
            progress(done, len(hours))
    return CauseBacktest(len(hours), accepted_in_force, accepted_tried, tuple(changes))


def _accepted(found: Iterable[Cause]) -> dict[str, str]:
    return {cause.effect: cause.cause for cause in found if cause.is_accepted}
