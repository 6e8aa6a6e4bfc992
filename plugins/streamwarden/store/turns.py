"""Turns of hourly runs: a run gathers only when no run that asked before it is still active.

Airflow's `max_active_runs` counts scheduled runs and each backfill separately, so a backfill and the schedule would run
at once, and an hour would be compared with counters that another run is replacing.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

_LOCK = 7065
_ASK = sa.text("""
    insert into detect.run_turn (run_id, requested_at) values (:run_id, clock_timestamp())
    on conflict (run_id) do nothing""")
_BEFORE = sa.text("""
    select t.run_id from detect.run_turn as t
    inner join detect.run_turn as own on own.run_id = :run_id
    where (t.requested_at, t.run_id) < (own.requested_at, own.run_id)
    order by t.requested_at, t.run_id""")
_END = sa.text("delete from detect.run_turn where run_id = any(:run_ids)")


def leave_turn(warehouse: sa.Engine, run_id: str) -> None:
    """Forgets the turn of a run: it begins, or begins again after a clear, behind the runs that are waiting."""
    with warehouse.begin() as connection:
        connection.execute(_END, {"run_ids": [run_id]})


def waits_for(warehouse: sa.Engine, run_id: str, is_active: Callable[[str], bool]) -> str | None:
    """Asks for the turn of a run, once. Returns the run to wait for; None: it is this run's turn.

    Runs wait in the order in which they ask, so two never wait for each other.

    Args:
        is_active: whether a run has not ended yet.
    """
    with warehouse.begin() as connection:
        # One at a time: a run that asks later must see those that asked before it.
        connection.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        connection.execute(_ASK, {"run_id": run_id})
        before = connection.execute(_BEFORE, {"run_id": run_id}).scalars().all()
    ended = [one for one in before if not is_active(one)]
    if ended:
        with warehouse.begin() as connection:
            connection.execute(_END, {"run_ids": ended})
    return next((one for one in before if one not in ended), None)
