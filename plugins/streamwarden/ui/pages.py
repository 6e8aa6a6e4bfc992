"""Data of each page, read from the warehouse in one read-only transaction; the queries are in sql/pages/."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import sqlalchemy as sa

from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR, parse_hour
from streamwarden.base.warehouse import open_warehouse, read_only
from streamwarden.detectors import Detector, Finding, load_detectors
from streamwarden.detectors.explain import psql_script
from streamwarden.detectors.resources import owner_entry
from streamwarden.rendering.readable import SEVERITIES, clean, counted, labels, readable, span
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import render, responses
from streamwarden.tickets.evidence import missing_sources
from streamwarden.tickets.responses import Response
from streamwarden.ui.charts import chart_values
from streamwarden.ui.links import KIND_LABELS, UnknownError
from streamwarden.ui.mine import mine

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

STRIP_HOURS, HISTORY_HOURS, CLOSED_DAYS = 24, 24 * 14, 14
MAX_FINDINGS, MAX_LINES, MAX_EXAMPLES = 40, 60, 50
STALE_AFTER = timedelta(hours=3)  # the hour, the time until its data is complete, and its run
STATUS_LABELS = {
    "firing": "firing",
    "ok": "healthy",
    "unknown": "not evaluated",
    "blocked": "not evaluated: its source data is missing",
    "failed": "not evaluated: the detector failed",
    "none": "no data",
    "partly": "partial response",
    "no_response": "no response",
    "complete": "complete",
}
CLOSE_LABELS = {
    "healthy": "resolved",
    "deleted": "resource deleted",
    "person": "closed by a person",
    "wont_fix": "won't fix",
}


RESPONSE_LABELS = {
    "acknowledge": "acknowledged",
    "snooze": "snoozed",
    "wont_fix": "won't fix",
    "unmute": "unmuted",
    "close": "closed",
    "false_positive": "false positive",
    "comment": "comment",
    "split": "split",
    "link": "linked",
}

FILTERS = ("severity", "detector", "kind", "cluster", "owner", "application", "state")
"""Filters of the page Findings besides its words."""
NO_FILTER: Row = dict.fromkeys(FILTERS) | {"words": [], "after": None}
STATES = {
    "firing": "firing",
    "healthy": "healthy now",
    "not_evaluated": "not evaluated now",
    "acknowledged": "acknowledged",
    "muted": "muted",
}


@dataclass(frozen=True)
class Cell:
    """One hour of a strip."""

    hour: datetime
    status: str
    severity: str
    text: str


@dataclass(frozen=True)
class Strip:
    """Hours side by side, oldest first, and the same as text."""

    cells: list[Cell]
    label: str

    @property
    def runs(self) -> list[tuple[int, list[Cell]]]:
        """Consecutive hours with equal status and severity: index of the first hour, and the hours."""
        runs, first = [], 0
        for _, group in groupby(self.cells, key=lambda cell: (cell.status, cell.severity)):
            cells = list(group)
            runs.append((first, cells))
            first += len(cells)
        return runs


def words_of(text: str | None) -> list[str]:
    """The words of a search in lower case, at most ten."""
    return clean(text or "").lower().split()[:10]


def findings(
    words: str | None, after: str | None = None, owners: Sequence[str] = (), user: BaseUser | None = None,
    **filters: str | None,
) -> Row:  # fmt: skip
    """Open findings, filtered, and on the first page the tickets closed in the last 14 days.

    Args:
        after: fingerprint of the last finding of the previous page.
        owners: only findings of these owners; empty: all.
        user: the login, for the link Mine.
        filters: values by the other names in `FILTERS`; empty or None: all.
    """
    text = clean(words or "")
    with _warehouse() as (connection, config):
        newest = _fetch(connection, "newest_hour")[0]["hour"] or datetime.now(UTC)
        asked: Row = {name: filters.get(name) or None for name in FILTERS}
        asked["owner"] = [owner for owner in owners if owner] or None
        found = _fetch(connection, "findings", **asked, words=words_of(text), after=after or None, most=MAX_FINDINGS)
        choices: dict[str, list[str]] = {"owner": [], "application": [], "cluster": []}
        for row in _fetch(connection, "finding_values"):
            choices[row["filter"]].append(row["value"])
        is_first = not found or found[0]["place"] == 1
        return {
            "place": "findings",
            "asked": asked,
            "text": text,
            "is_filtered": bool(text) or any(asked.values()),
            "choices": choices,
            "kind_labels": KIND_LABELS,
            "states": STATES,
            "newest": newest,
            "severities": SEVERITIES,
            "detectors": load_detectors(),
            "findings": _with_strips(connection, found, newest),
            "is_first": is_first,
            "filters": urlencode({name: value for name, value in (asked | {"q": text}).items() if value}, doseq=True),
            "mine": mine(config, user),
            "closed": _fetch(connection, "closed", newest=newest, days=CLOSED_DAYS, most=MAX_LINES) if is_first else [],
            "closed_days": CLOSED_DAYS,
            "close_labels": CLOSE_LABELS,
        }


def finding(fingerprint: str, hour_text: str | None) -> Row:
    """One finding in an hour: message, actions, chart, metrics, history, tickets, and the SQL that evaluated it."""
    if not re.fullmatch(r"[0-9a-f]{64}", fingerprint):
        raise UnknownError("The address does not name a finding: a fingerprint has 64 hexadecimal digits.")
    wanted_hour = hour_of(hour_text)
    with _warehouse() as (connection, config):
        rows = _fetch(connection, "finding", fingerprint=fingerprint, hour=wanted_hour)
        if not rows:
            raise UnknownError(
                "This finding was not evaluated in that hour." if wanted_hour else "There is no such finding."
            )
        found = rows[0]
        newest = found["newest_hour"] or found["hour"]
        history = _history(connection, fingerprint, newest)
        detector = load_detectors().get(found["detector"])
        parsed = Finding.from_row(found)
        metrics, tables = _tables(parsed.metrics)
        values = {
            "place": "findings",
            "finding": found,
            "newest": newest,
            "is_newest": found["hour"] == newest,
            "parsed": parsed,
            "owner_entry": owner_entry(found["resource"]) if found["resource"] else "",
            "more_metrics": {
                column: value for column, value in metrics.items() if column not in parsed.key_metric_values
            },
            "tables": tables,
            "day": _strip(newest, STRIP_HOURS, history),
            "history": _periods(history, newest),
            "history_days": HISTORY_HOURS // 24,
            "tickets": _fetch(connection, "finding_tickets", fingerprint=fingerprint),
            "related": _fetch(connection, "finding_related", fingerprint=fingerprint),
            **response_data(connection, [fingerprint], fingerprint),
            "unexplained": unexplained(connection, found, found["hour"]) if found["status"] == "firing" else None,
            "close_labels": CLOSE_LABELS,
            "status_labels": STATUS_LABELS,
            "detector": detector,
        }
    return values | chart_values(config, found, has_tables=bool(tables)) | _evaluation(detector, found)


def respond(fingerprint: str, response: Response) -> None:
    """Applies a response that a person gave on a page.

    Raises:
        ResponseError: it cannot be applied.
    """
    with open_warehouse(load_config()).begin() as connection:
        responses.respond(connection, fingerprint, response)


def unexplained(connection: sa.Connection, found: Row, hour: datetime | None) -> Row | None:
    """Of a firing finding without a root cause: a text that says so, and the causes that were ruled out; else None."""
    if found["detector"] not in load_detectors():
        return None
    weighed = _fetch(connection, "finding_causes", fingerprint=found["fingerprint"], hour=hour)
    if not weighed or any(row["is_accepted"] for row in weighed):
        return None
    tested = [row | {"why": render.ruled_out(row, of_cause=True)} for row in weighed if row["cause"]]
    known = load_detectors(), found["detector"], found["reason"]
    missing = missing_sources(connection, *known, found["resource"], hour) if hour and found["resource"] else []
    firing = {row["detector"] for row in _fetch(connection, "firing_detectors", hour=hour)}
    text = render.no_root_cause(*known, firing=firing, is_tested=bool(tested), missing=missing)
    return {"text": text, "tested": tested} if text else None


def coverage(hour_text: str | None) -> Row:
    """Data coverage of an hour: requests to each source, responses, and missing data with reasons."""
    with _warehouse() as (connection, _):
        newest = _fetch(connection, "gathered_hours")[0]["hour"]
        hour = hour_of(hour_text) or newest
        missing = _fetch(connection, "not_evaluated", most=MAX_LINES)
        base: Row = {"place": "coverage", "newest": newest, "hour": hour, "apps": APPS, "not_evaluated": missing}
        if hour is None:
            return base | {"sources": [], "gaps": [], "loads": {}}
        gaps = _fetch(connection, "hour_gaps", hour=hour, most=MAX_LINES, examples=MAX_EXAMPLES)
        loads = {row["app"]: row for row in _fetch(connection, "loads", hour=hour)}
        sources = _sources(connection, hour)
        return base | {"sources": sources, "gaps": gaps, "loads": loads, "before": hour - HOUR, "after": hour + HOUR}


def response_data(connection: sa.Connection, fingerprints: list[str], fingerprint: str) -> Row:
    """Responses to findings, and the data of the response forms of one of them."""
    return {
        "responses": ask(connection, "tickets/responses", fingerprints=fingerprints, most=MAX_LINES),
        "response_labels": RESPONSE_LABELS,
        "target": _fetch(connection, "respondable", fingerprint=fingerprint)[0],
        "linkable": _fetch(connection, "linkable", fingerprint=fingerprint, most=MAX_LINES),
        "max_characters": responses.MAX_CHARACTERS,
    }


def hour_of(text: str | None) -> datetime | None:
    """The hour in an address; raises UnknownError if it is invalid."""
    try:
        return parse_hour(text) if text else None
    except StreamwardenError as error:
        raise UnknownError(str(error)) from None


@contextmanager
def _warehouse() -> Iterator[tuple[sa.Connection, Config]]:
    """A read-only connection with a statement timeout of 20 s."""
    config = load_config()
    with read_only(config, "20s") as connection:
        yield connection, config


def _fetch(connection: sa.Connection, query: str, **values: Any) -> list[Row]:
    return ask(connection, f"pages/{query}", **values)


def _with_strips(connection: sa.Connection, found: list[Row], newest: datetime) -> list[Row]:
    rows = _fetch(
        connection, "finding_strips",
        fingerprints=[row["fingerprint"] for row in found], newest=newest, hours=STRIP_HOURS,
    )  # fmt: skip
    by_finding: dict[str, list[Row]] = {}
    for row in rows:
        by_finding.setdefault(row["fingerprint"], []).append(row)
    return [
        row
        | {"key_metric_values": {c: row["metrics"][c] for c in row["key_metrics"] if row["metrics"].get(c) is not None}}
        | {"strip": _strip(newest, STRIP_HOURS, by_finding.get(row["fingerprint"], []))}
        for row in found
    ]


def _strip(newest: datetime, hours: int, rows: Iterable[Row]) -> Strip:
    """The last hours up to the newest; an hour without a row has no data."""
    known = {row["hour"]: row for row in rows}
    cells = []
    for back in range(hours - 1, -1, -1):
        hour = newest - back * HOUR
        row = known.get(hour)
        status = row["status"] if row else "none"
        text = (row or {}).get("text") or STATUS_LABELS.get(status, status)
        cells.append(
            Cell(hour, status, (row or {}).get("severity") or "info", f"{hour:%d %b %H:%M} UTC: {clean(text)}")
        )
    return Strip(cells, _strip_label(cells))


def _strip_label(cells: list[Cell]) -> str:
    periods = [(status, len(list(group))) for status, group in groupby(cells, key=lambda cell: cell.status)]
    text = ", then ".join(f"{STATUS_LABELS.get(status, status)} {count} h" for status, count in periods)
    return f"Last {len(cells)} hours, oldest first: {text}."


def _sources(connection: sa.Connection, newest: datetime) -> list[Row]:
    """Every source with the counts of the hour and its last 24 h."""
    rows = _fetch(connection, "sources", newest=newest, hours=STRIP_HOURS)
    sources = []
    for (app, source), group in groupby(rows, key=lambda row: (row["app"], row["source"])):
        hours = [_source_hour(row) for row in group]
        last = hours[-1] if hours[-1]["hour"] == newest else None
        complete = [row["hour"] for row in hours if row["complete"]]
        sources.append(
            {"app": app, "source": source, "last": last, "complete_hour": max(complete, default=None)}
            | {"strip": _strip(newest, STRIP_HOURS, hours)}
        )
    return sources


def _source_hour(row: Row) -> Row:
    status = "complete" if row["complete"] == row["requests"] else "partly" if row["complete"] else "no_response"
    return row | {"status": status, "text": f"{row['complete']} of {counted(row['requests'], 'request')} succeeded"}


def _tables(metrics: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """Scalar metrics, and the lists of a finding as tables: caption, columns, readable cells."""
    lists = {
        column: value
        for column, value in metrics.items()
        if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)
    }
    tables = []
    for name, entries in lists.items():
        columns = list(dict.fromkeys(column for entry in entries for column in entry))
        rows = [[readable(column, entry.get(column))[1] for column in columns] for entry in entries]
        tables.append({"caption": readable(name, None)[0], "columns": list(labels(columns).values()), "rows": rows})
    return {column: value for column, value in metrics.items() if column not in lists}, tables


def _history(connection: sa.Connection, fingerprint: str, newest: datetime) -> list[Row]:
    return _fetch(connection, "finding_strips", fingerprints=[fingerprint], newest=newest, hours=HISTORY_HOURS)


def _periods(history: list[Row], newest: datetime) -> list[Row]:
    """The history as periods of the same status, newest first; hours without data are periods too."""
    known = {row["hour"]: row for row in history}
    if not known:
        return []
    first = min(known)
    hours = [first + n * HOUR for n in range(int((newest - first) / HOUR) + 1)]
    nothing: Row = {"status": "none", "severity": "info", "message": ""}
    rows = [(hour, known.get(hour, nothing)) for hour in hours]
    periods = []
    for _, group in groupby(rows, key=lambda entry: (entry[1]["status"], entry[1]["severity"])):
        entries = list(group)
        last_hour, last = entries[-1]
        periods.append(
            {"since": entries[0][0], "last_hour": last_hour, "lasting": span(len(entries) * 3600)}
            | {"status": last["status"], "severity": last["severity"], "message": last["message"]}
        )
    return periods[::-1]


def _evaluation(detector: Detector | None, found: Row) -> Row:
    """The SQL that evaluated a finding, its parameters, and whether the file is unchanged."""
    params = found["params"] or {}
    if detector:
        params = {name: params[name] for name in detector.params if name in params}
    return {
        "params": params,
        "sql": detector.sql if detector else None,
        "is_same_sql": detector is not None and detector.checksum == found["sql_checksum"],
        "psql": psql_script(detector, params, found["hour"]) if detector else None,
    }
