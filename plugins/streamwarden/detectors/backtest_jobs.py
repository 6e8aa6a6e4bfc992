"""Backtests that a page asks for: a bounded queue in the warehouse, one worker per process, and results that are kept.

The backtest itself reads one snapshot in a read-only transaction; only the queue is written. A backtest whose process
ended, or that takes longer than `MAX_RUN`, is marked as failed.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.detectors.backtest import backtest, for_scripts
from streamwarden.detectors.load import Detector, ParameterValue, load_detectors

log = logging.getLogger(__name__)
LOOK_BACK = timedelta(days=14)
MAX_WAITING, KEPT, MAX_TICKETS = 5, 20, 50
"""Queued and running backtests in total; kept ones of a detector; differing tickets in a result."""
MAX_RUN, STATEMENT_TIMEOUT = timedelta(minutes=5), "60s"
_LOCK = 7063
"""Key of the advisory lock under which a backtest is queued or taken."""
_worker = threading.Lock()


class QueueError(StreamwardenError):
    """The backtest cannot be queued."""


def submit(engine: sa.Engine, config: Config, detector: Detector, texts: Mapping[str, str], who: str) -> int:
    """Queues a backtest of the last 14 days with changed parameters, and returns its id.

    Args:
        texts: parameter → value as text; values that are in force already are left out.
        who: the login that asks.

    Raises:
        StreamwardenError: a parameter is unknown or has a value of the wrong type, or none is changed.
        QueueError: too many backtests are waiting.
    """
    in_force = detector.params_in_force(config)
    tried = detector.with_params(in_force, {name: _value(in_force.get(name), text) for name, text in texts.items()}, "")
    changed = {name: value for name, value in tried.items() if value != in_force[name]}
    if not changed:
        raise StreamwardenError("Change at least one parameter.")
    values = {"detector": detector.id, "params": json.dumps(changed), "who": who, "now": datetime.now(UTC)}
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        _end_overdue(connection)
        waiting = connection.execute(sa.text("select count(*) from detect.backtest where finished_at is null")).scalar()
        if int(waiting or 0) >= MAX_WAITING:
            raise QueueError(f"{MAX_WAITING} backtests are waiting already. Try again in some minutes.")
        connection.execute(_FORGET, {"detector": detector.id, "kept": KEPT - 1})
        return int(connection.execute(_SUBMIT, values).scalar_one())


def start(engine: sa.Engine, config: Config) -> None:
    """Runs the queue in a thread of this process, unless it already does."""
    if not _worker.locked():
        threading.Thread(target=run_all, args=(engine, config), name="backtests", daemon=True).start()


def run_all(engine: sa.Engine, config: Config) -> None:
    """Runs queued backtests, oldest first, until none is left. Only one thread of a process does."""
    if not _worker.acquire(blocking=False):
        return
    try:
        while (taken := _take(engine)) is not None:
            _run(engine, config, taken)
    except sa.exc.SQLAlchemyError:
        log.exception("backtests: the warehouse does not respond")
    finally:
        _worker.release()


def _take(engine: sa.Engine) -> dict[str, Any] | None:
    """The oldest queued backtest, marked as running; None if one is running in another process, or none is queued."""
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        _end_overdue(connection)
        row = connection.execute(_TAKE, {"now": datetime.now(UTC)}).mappings().one_or_none()
        return dict(row) if row else None


def _run(engine: sa.Engine, config: Config, taken: Mapping[str, Any]) -> None:
    deadline = datetime.now(UTC) + MAX_RUN

    def within_time(done: int, total: int) -> None:
        if datetime.now(UTC) > deadline:
            minutes = MAX_RUN // timedelta(minutes=1)
            raise StreamwardenError(
                f"Stopped after {minutes} min, {done} of {total} hours evaluated."
                f" Run `streamwarden backtest {taken['detector']}` on the command line."
            )

    result, message = None, None
    try:
        detector = load_detectors()[taken["detector"]]
        tried = detector.with_params(detector.params_in_force(config), taken["params"], "")
        end = last_full_hour() + HOUR
        found = backtest(
            engine, config, detector, end - LOOK_BACK, end, tried=(detector, tried), progress=within_time,
            statement_timeout=STATEMENT_TIMEOUT,
        )  # fmt: skip
        result = _kept(for_scripts(found, timedelta(hours=config.tickets.reopen_within_hours)))
    except StreamwardenError as error:
        message = str(error)
    except sa.exc.OperationalError:
        log.exception("backtest %s", taken["backtest_id"])
        message = f"The evaluation of an hour took longer than {STATEMENT_TIMEOUT}, or the warehouse did not respond."
    except Exception:
        log.exception("backtest %s", taken["backtest_id"])
        message = "Internal error. See the log of Airflow's API server."
    stored = {"id": taken["backtest_id"], "result": None if result is None else json.dumps(result), "message": message}
    with engine.begin() as connection:
        connection.execute(_FINISH, stored | {"now": datetime.now(UTC)})


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """A result with the tickets that differ, at most `MAX_TICKETS`, and the numbers of tickets."""
    differing = [one for one in result["tickets"] if one["in_force"] != one["tried"]]
    numbers = {"differing": len(differing), "unchanged": len(result["tickets"]) - len(differing)}
    return {**result, **numbers, "tickets": differing[:MAX_TICKETS]}


def _value(in_force: ParameterValue | None, text: str) -> ParameterValue:
    """A parameter from a form: of the type of the value in force; other texts are refused by `with_params`."""
    try:
        if isinstance(in_force, bool):
            return {"true": True, "false": False}.get(text.strip().lower(), text)
        if isinstance(in_force, int):
            return int(text)
        return float(text) if isinstance(in_force, float) else text
    except ValueError:
        return text


def _end_overdue(connection: sa.Connection) -> None:
    """Marks backtests as failed that have run, or waited, too long: their process has ended."""
    now = datetime.now(UTC)
    connection.execute(_OVERDUE, {"now": now, "started": now - 2 * MAX_RUN, "asked": now - 12 * MAX_RUN})


_SUBMIT = sa.text("""
    insert into detect.backtest (detector, params, who, requested_at)
    values (:detector, cast(:params as jsonb), :who, :now)
    returning backtest_id""")
_FORGET = sa.text("""
    delete from detect.backtest where finished_at is not null and backtest_id in (
      select b.backtest_id from detect.backtest as b
      where b.detector = :detector order by b.backtest_id desc offset :kept)""")
_TAKE = sa.text("""
    update detect.backtest set started_at = :now
    where backtest_id = (select min(b.backtest_id) from detect.backtest as b where b.finished_at is null)
      and started_at is null
    returning backtest_id, detector, params""")
_FINISH = sa.text("""
    update detect.backtest set finished_at = :now, result = cast(:result as jsonb), message = :message
    where backtest_id = :id and finished_at is null""")
_OVERDUE = sa.text("""
    update detect.backtest set finished_at = :now, message = 'The API server ended during the backtest. Try again.'
    where finished_at is null and (started_at < :started or requested_at < :asked)""")
