"""Hourly runs wait for each other, whether the schedule or a backfill started them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.sdk.exceptions import TaskDeferred
from streamwarden.base.config import CONFIG_ENV
from streamwarden.operators import SettledHour
from streamwarden.store.turns import leave_turn, waits_for


@pytest.mark.parametrize("order", [("scheduled", "backfill", "manual"), ("backfill", "manual", "scheduled")])
def test_runs_take_turns_in_the_order_in_which_they_ask(warehouse: sa.Engine, order: tuple[str, ...]) -> None:
    active = set(order)
    for run in order:
        waits_for(warehouse, run, active.__contains__)
    for before, run in pairwise((None, *order)):
        assert waits_for(warehouse, str(run), active.__contains__) == before
        for later in order[order.index(str(run)) + 1 :]:
            assert waits_for(warehouse, later, active.__contains__) is not None
        active.discard(str(before))
        assert waits_for(warehouse, str(run), active.__contains__) is None


def test_a_run_that_was_killed_or_deleted_holds_nobody_up(warehouse: sa.Engine) -> None:
    waits_for(warehouse, "killed", lambda _: True)
    assert waits_for(warehouse, "next", lambda _: False) is None
    with warehouse.connect() as connection:
        assert connection.execute(sa.text("select run_id from detect.run_turn")).scalars().all() == ["next"]


def test_a_cleared_run_asks_again_behind_the_waiting_ones(warehouse: sa.Engine) -> None:
    for run in ("cleared", "waiting"):
        waits_for(warehouse, run, lambda _: True)
    leave_turn(warehouse, "cleared")
    assert waits_for(warehouse, "cleared", lambda _: True) == "waiting"
    assert waits_for(warehouse, "waiting", lambda _: True) is None


def test_the_first_task_of_a_run_defers_until_its_turn(
    tmp_path: Path, warehouse: sa.Engine, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text("")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    monkeypatch.setenv("STREAMWARDEN_WAREHOUSE_URL", warehouse_url)
    active = {"backfill__1", "scheduled__2"}

    def count(dag_id: str, run_ids: list[str], states: list[str]) -> int:
        assert (dag_id, states) == ("hourly", ["running"])
        return len(active & {*run_ids})

    def context(run_id: str) -> dict[str, Any]:
        run = SimpleNamespace(run_id=run_id, dag_id="hourly")
        return {"dag_run": run, "ti": SimpleNamespace(get_dr_count=count), "params": {"settle": False}}

    task = SettledHour(task_id="settled")
    task.execute(context("backfill__1"))
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context("scheduled__2"))
    assert deferred.value.method_name == "has_settled"
    with pytest.raises(TaskDeferred):
        task.has_settled(context("scheduled__2"))
    active.discard("backfill__1")
    task.has_settled(context("scheduled__2"))
