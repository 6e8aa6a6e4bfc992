"""Pictures of the detector pages are up to date."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.sql.pictures import FOLDER, PICTURES, draw
from tests.variations import rare_after


@pytest.mark.parametrize("detector", rare_after(3, PICTURES))
def test_a_picture_is_not_stale(warehouse: sa.Engine, detector: str) -> None:
    assert (FOLDER / f"{detector}.svg").read_bytes() == draw(warehouse, detector), "run python -m tests.sql.pictures"
