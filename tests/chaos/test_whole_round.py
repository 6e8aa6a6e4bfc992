"""One complete round of `make chaos`: real database, broker, and tracker, and the real hour of one app."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.share import outcomes_of

SEED, NUMBER = 1, 3
"""A round of the app `machines`, the quickest one."""


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_hour_that_lost_its_database_is_complete_afterwards(tmp_path: Path) -> None:
    [(_, outcome)] = outcomes_of(tmp_path, [NUMBER], SEED, only=["PostgreSQL crashed"])
    assert outcome.apps == ("machines",)
    assert not outcome.wrong
