"""One complete round of `make chaos`: real database, broker, and tracker, and the real hour of one app."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.rounds import draw_apps
from tests.chaos.share import outcomes_of

SEED, FAULT = 1, "PostgreSQL crashed"


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_hour_that_lost_its_database_is_complete_afterwards(tmp_path: Path) -> None:
    [(_, outcome)] = outcomes_of(tmp_path, [_first_round_of("jvm_apps")], SEED, only=[FAULT])
    assert outcome.apps == ("jvm_apps",)
    assert not outcome.wrong


def _first_round_of(app: str) -> int:
    """Number of the first round that draws this app alone."""
    wanted = [fault for fault in FAULTS if fault.name == FAULT]
    return next(n for n in count() if draw_apps(random.Random(f"{SEED} {n}"), wanted) == (app,))  # noqa: S311
