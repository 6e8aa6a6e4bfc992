"""The warehouse that `make bench` measures: each rule has something to judge in it, each page something to show."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.store.migrate import migrate

from tests.bench import scale
from tests.bench.large import Large, fill

SMALL = Large(brokers=4, partitions=400, groups=12, volumes=20, applications=6, days=40)


@pytest.mark.rare
@pytest.mark.slow
def test_it_is_judged_and_shown(empty_warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "streamwarden.yaml"
    config.write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(config))
    monkeypatch.setenv(WAREHOUSE_ENV, empty_warehouse.url.set(drivername="postgresql").render_as_string(False))
    migrate(empty_warehouse)
    fill(empty_warehouse, SMALL)
    scale.judging(empty_warehouse)  # raises where a rule isn't judged
    with empty_warehouse.connect() as connection:
        silent = connection.execute(sa.text(_NOTHING_SAID)).scalars().all()
    # These have a row only for what is wrong.
    assert set(silent) <= {"consumer_replaying", "topic_polled_empty", "transaction_hanging"}
    assert {size > 1000 for _, size in scale.page_seconds().values()} == {True}
    assert len(scale.view_seconds(empty_warehouse)) > 20


_NOTHING_SAID = """
    select j.detector from detect.detector_run as j
    where j.hour = (select max(hour) from detect.detector_run) and j.firing + j.ok + j.unknown = 0 order by 1"""
