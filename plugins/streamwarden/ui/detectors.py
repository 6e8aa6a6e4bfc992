"""Data of the pages Detectors and Detector: status, precision, last firings, parameters in force, and backtests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby

import sqlalchemy as sa

from streamwarden.base.config import Config, load_config
from streamwarden.base.warehouse import open_warehouse
from streamwarden.detectors import Detector, backtest_jobs, load_detectors
from streamwarden.detectors.exceptions import exceptions_of
from streamwarden.detectors.explain import psql_script
from streamwarden.store.queries import Row
from streamwarden.ui.links import UnknownError
from streamwarden.ui.pages import CLOSE_LABELS, MAX_LINES, NO_FILTER, STRIP_HOURS, _fetch, _strip, _warehouse

MAX_FALSE_POSITIVES, MAX_FIRINGS, PRECISION_DAYS = 20, 20, 90
IDLE_EXCEPTION = timedelta(days=7)


def detectors() -> Row:
    """All detectors by subject, with their status in the last 24 h."""
    with _warehouse() as (connection, config):
        newest = _fetch(connection, "newest_hour")[0]["hour"] or datetime.now(UTC)
        rows = _detector_rows(connection, config, newest)
        return {"place": "detectors", "newest": newest, "subjects": groupby(rows, key=lambda row: row["subject"])}


def detector(detector_id: str, asked_backtest: int | None = None) -> Row:
    """One detector: status, precision, last firings, parameters, backtests, verdicts, runbook, SQL, open findings.

    Args:
        asked_backtest: id of the backtest to show; default: the newest one.
    """
    this = _known(detector_id)
    with _warehouse() as (connection, config):
        newest = _fetch(connection, "newest_hour")[0]["hour"] or datetime.now(UTC)
        found = _fetch(connection, "findings", **NO_FILTER | {"detector": detector_id}, most=MAX_LINES)
        false_positives = _fetch(connection, "false_positives", detector=detector_id, most=MAX_FALSE_POSITIVES)
        known_exceptions = {row["rule"]: row for row in _fetch(connection, "exceptions", detector=detector_id)}
        asked = {"detector": detector_id, "newest": newest, "days": PRECISION_DAYS}
        precision = _fetch(connection, "detector_precision", **asked)[0]
        firings = _fetch(connection, "detector_firings", detector=detector_id, most=MAX_FIRINGS)
        status = _detector_rows(connection, config, newest, detector_id)[0]
        tried = _backtests(connection, detector_id, asked_backtest)
    in_force = this.params_in_force(config)
    return {
        "place": "detectors",
        "detector": this,
        "status": status,
        "newest": newest,
        "findings": found,
        "in_force": in_force,
        "false_positives": false_positives,
        "precision": precision | {"days": PRECISION_DAYS, "percent": _percent(precision)},
        "firings": firings,
        "close_labels": CLOSE_LABELS,
        "exceptions": _exceptions(this, config, known_exceptions, newest),
        "psql": psql_script(this, in_force, newest.replace(minute=0, second=0, microsecond=0)),
        **tried,
    }


def submit_backtest(detector_id: str, texts: Mapping[str, str], who: str) -> int:
    """Queues a backtest with the parameters of a form, and starts the queue. Returns its id.

    Raises:
        StreamwardenError: as `backtest_jobs.submit`.
    """
    config = load_config()
    engine = open_warehouse(config)
    backtest_id = backtest_jobs.submit(engine, config, _known(detector_id), texts, who)
    backtest_jobs.start(engine, config)
    return backtest_id


def _known(detector_id: str) -> Detector:
    known = load_detectors()
    if detector_id not in known:
        raise UnknownError("There is no such detector; the page Detectors lists all.")
    return known[detector_id]


def _percent(precision: Row) -> int | None:
    """Share of tickets that were not reported as false positives, in percent; None: no tickets."""
    if not precision["tickets"]:
        return None
    return int(100 * (precision["tickets"] - precision["false_positives"]) / precision["tickets"])


def _backtests(connection: sa.Connection, detector_id: str, asked: int | None) -> Row:
    """Kept backtests of a detector, and the one to show: the asked one, or the newest."""
    arguments = {"detector": detector_id, "most": backtest_jobs.KEPT}
    kept = _fetch(connection, "detector_backtests", **arguments, asked=asked)
    if asked is None and kept:
        kept = _fetch(connection, "detector_backtests", **arguments, asked=kept[0]["backtest_id"])
        asked = kept[0]["backtest_id"]
    shown = next((row for row in kept if row["backtest_id"] == asked), None)
    return {"backtests": kept, "backtest": shown, "backtest_days": backtest_jobs.LOOK_BACK.days}


def _exceptions(detector: Detector, config: Config, known: Mapping[str, Row], newest: datetime) -> list[Row]:
    """The exceptions of a detector in the config, the number of resources each matches, and its problem if any."""
    entries = []
    for exception in exceptions_of(detector, config):
        row = known.get(exception.rule)
        idle = row is not None and newest - (row["matched_hour"] or row["first_hour"]) >= IDLE_EXCEPTION
        if not exception.holds_in(newest):
            problem = f"Expired on {exception.until}: its resources are evaluated like all others."
        else:
            problem = f"No match for {IDLE_EXCEPTION.days} days: remove it if it is no longer needed." if idle else ""
        entries.append({"exception": exception, "resources": row["resources"] if row else None, "problem": problem})
    return entries


def _detector_rows(connection: sa.Connection, config: Config, newest: datetime, only: str | None = None) -> list[Row]:
    """All detectors, or one, with their status in the last 24 h, including disabled ones."""
    by_detector: dict[str, list[Row]] = {}
    for row in _fetch(connection, "detector_strips", newest=newest, hours=STRIP_HOURS, detector=only):
        by_detector.setdefault(row["detector"], []).append(_detector_hour(row))
    enabled = load_detectors(config=config)
    rows = []
    known = load_detectors()
    for detector in known.values() if only is None else [known[only]]:
        hours = by_detector.get(detector.id, [])
        last = hours[-1] if hours else None
        rows.append(
            {"id": detector.id, "subject": detector.subject, "title": detector.title, "severity": detector.severity}
            | {"maturity": detector.maturity, "enabled": detector.id in enabled, "last": last}
            | {"strip": _strip(newest, STRIP_HOURS, hours)}
        )
    return sorted(rows, key=lambda row: row["subject"])


def _detector_hour(row: Row) -> Row:
    if row["status"] != "evaluated":
        return row | {"text": f"{row['status']}: {row['message']}"}
    status = "firing" if row["firing"] else "unknown" if row["unknown"] and not row["ok"] else "ok"
    if not row["firing"] and not row["ok"] and not row["unknown"]:
        status = "none"
    counts = {"firing": row["firing"], "healthy": row["ok"], "not evaluated": row["unknown"]}
    text = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "no resources"
    return row | {"status": status, "text": text}
