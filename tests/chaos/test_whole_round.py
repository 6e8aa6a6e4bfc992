"""One complete round of `make chaos`: real database, broker, and tracker, and the real hour of one app."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.chaos.share import outcomes_of, subject_of

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
    return next(number for number in count() if subject_of(number, SEED, [FAULT]).apps == (app,))
