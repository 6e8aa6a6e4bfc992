"""The queue of backtests: its bounds, what is refused, what is kept, and how a backtest that cannot run ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors
from streamwarden.detectors.backtest_jobs import KEPT, MAX_RUN, MAX_WAITING, QueueError, run_all, submit

DETECTOR = load_detectors()["broker_file_descriptors_high"]
NAME, IN_FORCE = next((name, value) for name, value in DETECTOR.params_in_force(Config()).items() if value != 1)


def submitted(warehouse: sa.Engine, value: object = 1, detector: str = DETECTOR.id) -> int:
    return submit(warehouse, Config(), load_detectors()[detector], {NAME: str(value)}, "ann")


def rows(warehouse: sa.Engine) -> list[dict[str, Any]]:
    with warehouse.connect() as connection:
        found = connection.execute(sa.text("select * from detect.backtest order by backtest_id")).mappings()
        return [dict(row) for row in found]


def test_only_changed_parameters_are_stored_with_who_asked(warehouse: sa.Engine) -> None:
    texts = {name: str(value) for name, value in DETECTOR.params_in_force(Config()).items()}
    with pytest.raises(StreamwardenError, match="Change at least one"):
        submit(warehouse, Config(), DETECTOR, texts, "ann")
    submit(warehouse, Config(), DETECTOR, texts | {NAME: "1"}, "ann")
    assert [(row["params"], row["who"], row["finished_at"]) for row in rows(warehouse)] == [({NAME: 1}, "ann", None)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({NAME: "much"}, f"{NAME}: must be a"),
        ({NAME: "-1"}, f"{NAME}: must"),
        ({NAME: "nan"}, f"{NAME}: must"),
        ({"nothing": "1"}, "nothing: unknown parameter"),
    ],
)
def test_unknown_parameters_and_wrong_values_are_refused(
    warehouse: sa.Engine, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(StreamwardenError, match=message):
        submit(warehouse, Config(), DETECTOR, texts, "ann")
    assert rows(warehouse) == []


def test_the_queue_is_bounded(warehouse: sa.Engine) -> None:
    for _ in range(MAX_WAITING):
        submitted(warehouse)
    with pytest.raises(QueueError, match="waiting already"):
        submitted(warehouse)
    assert len(rows(warehouse)) == MAX_WAITING


def test_a_backtest_that_cannot_run_keeps_its_message_and_the_next_one_runs(warehouse: sa.Engine) -> None:
    first, second = submitted(warehouse), submitted(warehouse, 2)
    run_all(warehouse, Config())
    found = rows(warehouse)
    assert [row["backtest_id"] for row in found if row["finished_at"]] == [first, second]
    assert all("the warehouse has no hour from" in row["message"] and row["result"] is None for row in found)


def test_one_backtest_runs_at_a_time_and_one_of_an_ended_process_is_marked(warehouse: sa.Engine) -> None:
    first, _ = submitted(warehouse), submitted(warehouse, 2)
    started = "update detect.backtest set started_at = :at where backtest_id = :id"
    now = datetime.now(UTC)
    with warehouse.begin() as connection:
        connection.execute(sa.text(started), {"at": now, "id": first})
    run_all(warehouse, Config())
    assert [row["finished_at"] is None for row in rows(warehouse)] == [True, True]
    with warehouse.begin() as connection:
        connection.execute(sa.text(started), {"at": now - 2 * MAX_RUN - timedelta(seconds=1), "id": first})
    run_all(warehouse, Config())
    assert [row["message"][:14] for row in rows(warehouse)] == ["The API server", f"{DETECTOR.id}: the"[:14]]


def test_the_newest_backtests_of_each_detector_are_kept(warehouse: sa.Engine) -> None:
    insert = sa.text("""
        insert into detect.backtest (detector, params, who, requested_at, finished_at)
        select :detector, '{}', 'ann', now(), now() from generate_series(1, :number)""")
    with warehouse.begin() as connection:
        for detector in (DETECTOR.id, "broker_down"):
            connection.execute(insert, {"detector": detector, "number": KEPT + 3})
    newest = submitted(warehouse)
    kept = [row["backtest_id"] for row in rows(warehouse) if row["detector"] == DETECTOR.id]
    assert len(kept) == KEPT and max(kept) == newest
    assert sum(row["detector"] == "broker_down" for row in rows(warehouse)) == KEPT + 3
