"""A handful of `make chaos PART=hour`: kills and faults within an hour leave nothing lost, doubled or untold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import outcomes_of
from tests.chaos.faults import FAULTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


KILLS = ("PostgreSQL crashed", "driver killed", "tracker: lose")


def test_an_hour_survives_what_kills_its_parts(tmp_path: Path) -> None:
    faults = [fault for fault in FAULTS if fault.name in KILLS]
    assert len(faults) == len(KILLS)
    ((_, outcome),) = outcomes_of(tmp_path, [1], 7, faults)
    assert outcome.disturbed in ("gone", "incomplete")
    assert not outcome.wrong
