"""What each page shows, read from the warehouse in one read-only transaction; the queries are in sql/pages/."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

import sqlalchemy as sa

from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR, parse_hour
from streamwarden.base.warehouse import open_warehouse
from streamwarden.detectors import Detector, Finding, load_detectors
from streamwarden.detectors.evaluate import exceptions_of
from streamwarden.detectors.explain import psql_script
from streamwarden.detectors.resources import owner_entry
from streamwarden.rendering.readable import SEVERITIES, clean, readable, span
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import render, responses
from streamwarden.tickets.evidence import missing_sources
from streamwarden.tickets.responses import Response

STRIP_HOURS, HISTORY_HOURS, CLOSED_DAYS = 24, 24 * 14, 14
MOST_CARDS, MOST_FINDINGS, MOST_LINES, MOST_EXAMPLES, MOST_WRONG = 12, 40, 60, 50, 20
IDLE_EXCEPTION = timedelta(days=7)
STALE_AFTER = timedelta(hours=3)  # the hour itself, its settling, its run; then something is wrong
STATUS_WORDS = {
    "firing": "in alarm",
    "ok": "healthy",
    "unknown": "couldn't be judged",
    "blocked": "not judged: its sources weren't gathered",
    "failed": "not judged: the rule failed",
    "none": "nothing known",
    "partly": "partly answered",
    "unanswered": "no answer",
    "answered": "answered",
}
CLOSE_WORDS = {
    "healthy": "healthy again",
    "deleted": "the resource is gone",
    "person": "closed by a person",
    "wont_fix": "won't be fixed",
}


ANSWER_WORDS = {
    "acknowledge": "acknowledged",
    "snooze": "snoozed",
    "wont_fix": "won't be fixed",
    "unmute": "to be heard of again",
    "close": "closed",
    "wrong": "this is wrong",
    "comment": "comment",
    "split": "split off",
    "join": "joined",
}

_QUERY_NAMES = {"severity": "severity", "detector": "detector", "words": "q"}
_ALL = {"severity": None, "detector": None, "words": None, "after": None}


class UnknownError(StreamwardenError):
    """The address names something that isn't there."""


@dataclass(frozen=True)
class Cell:
    """One hour of a strip."""

    hour: datetime
    status: str
    severity: str
    text: str


@dataclass(frozen=True)
class Strip:
    """Hours side by side, oldest first, and the same in words."""

    cells: list[Cell]
    words: str


def now() -> Row:
    """The fleet now: what is open, what couldn't be judged, how fresh every source is."""
    with _warehouse() as (connection, config):
        standing = _ask(connection, "newest_hour")[0]
        found = _ask(connection, "findings", **_ALL, most=MOST_CARDS)
        newest = standing["hour"] or datetime.now(UTC)
        day = {"start": newest - timedelta(hours=STRIP_HOURS - 1), "finish": newest + HOUR}
        return {
            "place": "now",
            "newest_hour": standing,
            "stale": standing["hour"] is not None and datetime.now(UTC) - (newest + HOUR) > STALE_AFTER,
            "findings": _with_strips(connection, found, newest),
            "not_evaluated": _ask(connection, "not_evaluated", most=MOST_LINES),
            "sources": _sources(connection, newest),
            "rules": _rules(connection, config, newest),
            "fleet": ask(connection, "reports/fleet", **day),
        }


def findings(severity: str | None, detector: str | None, words: str | None, after: str | None = None) -> Row:
    """Findings that are open or in alarm, those after one of them, and on the first page the tickets closed lately."""
    words = words.strip() if words else None
    with _warehouse() as (connection, _):
        newest = _ask(connection, "newest_hour")[0]["hour"] or datetime.now(UTC)
        asked = {"severity": severity or None, "detector": detector or None, "words": words or None}
        found = _ask(connection, "findings", **asked, after=after or None, most=MOST_FINDINGS)
        is_first = not found or found[0]["place"] == 1
        return {
            "place": "findings",
            "asked": asked,
            "newest": newest,
            "severities": SEVERITIES,
            "detectors": load_detectors(),
            "findings": _with_strips(connection, found, newest),
            "is_first": is_first,
            "filters": urlencode({_QUERY_NAMES[name]: value for name, value in asked.items() if value}),
            "closed": _ask(connection, "closed", newest=newest, days=CLOSED_DAYS, most=MOST_LINES) if is_first else [],
            "closed_days": CLOSED_DAYS,
            "close_words": CLOSE_WORDS,
        }


def finding(fingerprint: str, hour_text: str | None) -> Row:
    """One finding as it stood in an hour: sentence, cure, plot, figures, history, tickets, the SQL that judged it."""
    if not re.fullmatch(r"[0-9a-f]{64}", fingerprint):
        raise UnknownError("The address doesn't name a finding: it needs 64 hexadecimal digits.")
    asked_hour = _hour(hour_text)
    with _warehouse() as (connection, config):
        rows = _ask(connection, "finding", fingerprint=fingerprint, hour=asked_hour)
        if not rows:
            raise UnknownError(
                "Nothing was said of this finding in that hour."
                if asked_hour
                else "This finding was never judged here."
            )
        found = rows[0]
        newest = found["newest_hour"] or found["hour"]
        history = _history(connection, fingerprint, newest)
        detector = load_detectors().get(found["detector"])
        said = Finding.from_row(found)
        metrics, tables = _tables(said.metrics)
        values = {
            "place": "findings",
            "finding": found,
            "newest": newest,
            "is_newest": found["hour"] == newest,
            "said": said,
            "owner_entry": owner_entry(found["resource"]) if found["resource"] else "",
            "more_figures": {
                column: value for column, value in metrics.items() if column not in said.key_metric_values
            },
            "tables": tables,
            "day": _strip(newest, STRIP_HOURS, history),
            "history": _stretches(history, newest),
            "history_days": HISTORY_HOURS // 24,
            "tickets": _ask(connection, "finding_tickets", fingerprint=fingerprint),
            "related": _ask(connection, "finding_related", fingerprint=fingerprint),
            **answering(connection, [fingerprint], fingerprint),
            "unexplained": unexplained(connection, found, found["hour"]) if found["status"] == "firing" else None,
            "close_words": CLOSE_WORDS,
            "status_words": STATUS_WORDS,
            "detector": detector,
        }
    return values | _plot(config, found, has_tables=bool(tables)) | _judged_by(detector, found)


def answer(fingerprint: str, said: Response) -> None:
    """Does what somebody said of a finding on its page.

    Raises:
        AnswerError: it can't be done.
    """
    with open_warehouse(load_config()).begin() as connection:
        responses.respond(connection, fingerprint, said)


def unexplained(connection: sa.Connection, found: Row, hour: datetime | None) -> Row | None:
    """Of a finding in alarm that has causes which we know of, and of which none is known: what was held against it."""
    if found["detector"] not in load_detectors():
        return None
    weighed = _ask(connection, "finding_causes", fingerprint=found["fingerprint"], hour=hour)
    if not weighed or any(row["is_accepted"] for row in weighed):
        return None
    tested = [row | {"why": render.refusal(row, of_cause=True)} for row in weighed if row["cause"]]
    known = load_detectors(), found["detector"], found["reason"]
    silent = missing_sources(connection, *known, hour) if hour else []
    said = render.unexplained(*known, is_tested=bool(tested), silent=silent)
    return {"said": said, "tested": tested} if said else None


def coverage(hour_text: str | None) -> Row:
    """What each source was asked in an hour, what came, what is missing and why."""
    with _warehouse() as (connection, _):
        newest = _ask(connection, "gathered_hours")[0]["hour"]
        hour = _hour(hour_text) or newest
        base: Row = {"place": "coverage", "newest": newest, "hour": hour, "apps": APPS}
        if hour is None:
            return base | {"sources": [], "gaps": [], "loads": {}}
        gaps = _ask(connection, "hour_gaps", hour=hour, most=MOST_LINES, examples=MOST_EXAMPLES)
        loads = {row["app"]: row for row in _ask(connection, "loads", hour=hour)}
        sources = _sources(connection, hour)
        return base | {"sources": sources, "gaps": gaps, "loads": loads, "before": hour - HOUR, "after": hour + HOUR}


def detectors() -> Row:
    """The catalogue: all rules, by subject, with their last day."""
    with _warehouse() as (connection, config):
        newest = _ask(connection, "newest_hour")[0]["hour"] or datetime.now(UTC)
        rules = _rules(connection, config, newest)
        return {"place": "detectors", "newest": newest, "subjects": groupby(rules, key=lambda rule: rule["subject"])}


def detector(detector_id: str) -> Row:
    """One rule: what it reads, its parameters with their reasons, what to do, what it can't see, its SQL."""
    known = load_detectors()
    if detector_id not in known:
        raise UnknownError("There is no rule of that name; the list of rules shows all.")
    rule = known[detector_id]
    with _warehouse() as (connection, config):
        newest = _ask(connection, "newest_hour")[0]["hour"] or datetime.now(UTC)
        strips = [row for row in _rules(connection, config, newest) if row["id"] == detector_id]
        found = _ask(connection, "findings", **_ALL | {"detector": detector_id}, most=MOST_LINES)
        wrong = _ask(connection, "false_positives", detector=detector_id, most=MOST_WRONG)
        known_exceptions = {row["rule"]: row for row in _ask(connection, "exceptions", detector=detector_id)}
    in_force = rule.params_in_force(config)
    return {
        "place": "detectors",
        "detector": rule,
        "rule": strips[0],
        "newest": newest,
        "findings": found,
        "in_force": in_force,
        "wrong": wrong,
        "exceptions": _exceptions(rule, config, known_exceptions, newest),
        "psql": psql_script(rule, in_force, newest.replace(minute=0, second=0, microsecond=0)),
    }


def answering(connection: sa.Connection, fingerprints: list[str], fingerprint: str) -> Row:
    """What was said of findings, and what the forms of one of them need."""
    return {
        "responses": ask(connection, "tickets/responses", fingerprints=fingerprints, most=MOST_LINES),
        "answer_words": ANSWER_WORDS,
        "target": _ask(connection, "respondable", fingerprint=fingerprint)[0],
        "joinable": _ask(connection, "linkable", fingerprint=fingerprint, most=MOST_LINES),
        "most_words": responses.MOST_WORDS,
    }


def _exceptions(rule: Detector, config: Config, known: Mapping[str, Row], newest: datetime) -> list[Row]:
    """The config's exceptions of a rule: what each changes, and whether it still does anything."""
    told = []
    for exception in exceptions_of(rule, config):
        row = known.get(exception.rule)
        idle = row is not None and newest - (row["matched_hour"] or row["first_hour"]) >= IDLE_EXCEPTION
        if not exception.holds_in(newest):
            problem = f"It has run out: it held until {exception.until}. Its things are judged like all others."
        else:
            problem = f"It has matched nothing for {IDLE_EXCEPTION.days} days: is it still needed?" if idle else ""
        told.append({"exception": exception, "resources": row["resources"] if row else None, "problem": problem})
    return told


def _hour(text: str | None) -> datetime | None:
    try:
        return parse_hour(text) if text else None
    except StreamwardenError as error:
        raise UnknownError(str(error)) from None


@contextmanager
def _warehouse() -> Iterator[tuple[sa.Connection, Config]]:
    """A read-only connection that can't hold a page up for long."""
    config = load_config()
    with open_warehouse(config).connect().execution_options(postgresql_readonly=True) as connection:
        connection.execute(sa.text("select set_config('statement_timeout', '20s', true)"))
        yield connection, config


def _ask(connection: sa.Connection, query: str, **values: Any) -> list[Row]:
    return ask(connection, f"pages/{query}", **values)


def _with_strips(connection: sa.Connection, found: list[Row], newest: datetime) -> list[Row]:
    rows = _ask(
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
    """The last hours up to the newest; an hour without a row is one of which nothing is known."""
    known = {row["hour"]: row for row in rows}
    cells = []
    for back in range(hours - 1, -1, -1):
        hour = newest - back * HOUR
        row = known.get(hour)
        status = row["status"] if row else "none"
        text = (row or {}).get("text") or STATUS_WORDS.get(status, status)
        cells.append(
            Cell(hour, status, (row or {}).get("severity") or "info", f"{hour:%d %b %H:%M} UTC: {clean(text)}")
        )
    return Strip(cells, _in_words(cells))


def _in_words(cells: list[Cell]) -> str:
    stretches = [(status, len(list(group))) for status, group in groupby(cells, key=lambda cell: cell.status)]
    said = ", then ".join(f"{STATUS_WORDS.get(status, status)} {count} h" for status, count in stretches)
    return f"Last {len(cells)} hours, oldest first: {said}."


def _rules(connection: sa.Connection, config: Config, newest: datetime) -> list[Row]:
    """All rules with their last day, those that are switched off included."""
    by_rule: dict[str, list[Row]] = {}
    for row in _ask(connection, "detector_strips", newest=newest, hours=STRIP_HOURS):
        by_rule.setdefault(row["detector"], []).append(_hour_of_rule(row))
    enabled = load_detectors(config=config)
    rules = []
    for rule in load_detectors().values():
        hours = by_rule.get(rule.id, [])
        last = hours[-1] if hours else None
        rules.append(
            {"id": rule.id, "subject": rule.subject, "title": rule.title, "severity": rule.severity}
            | {"maturity": rule.maturity, "enabled": rule.id in enabled, "last": last}
            | {"strip": _strip(newest, STRIP_HOURS, hours)}
        )
    return sorted(rules, key=lambda rule: rule["subject"])


def _hour_of_rule(row: Row) -> Row:
    if row["status"] != "evaluated":
        return row | {"text": f"{row['status']}: {row['message']}"}
    status = "firing" if row["firing"] else "unknown" if row["unknown"] and not row["ok"] else "ok"
    if not row["firing"] and not row["ok"] and not row["unknown"]:
        status = "none"
    counts = {"in alarm": row["firing"], "healthy": row["ok"], "couldn't be judged": row["unknown"]}
    text = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "nothing to judge"
    return row | {"status": status, "text": text}


def _sources(connection: sa.Connection, newest: datetime) -> list[Row]:
    """Every source with the figures of the hour and its last day."""
    rows = _ask(connection, "sources", newest=newest, hours=STRIP_HOURS)
    sources = []
    for (app, source), group in groupby(rows, key=lambda row: (row["app"], row["source"])):
        hours = [_hour_of_source(row) for row in group]
        last = hours[-1] if hours[-1]["hour"] == newest else None
        answered = [row["hour"] for row in hours if row["answered"]]
        sources.append(
            {"app": app, "source": source, "last": last, "answered_hour": max(answered, default=None)}
            | {"strip": _strip(newest, STRIP_HOURS, hours)}
        )
    return sources


def _hour_of_source(row: Row) -> Row:
    status = "answered" if row["answered"] == row["asked"] else "partly" if row["answered"] else "unanswered"
    return row | {"status": status, "text": f"{row['answered']} of {row['asked']} answered"}


def _tables(metrics: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """Figures without their lists of things, and these as tables: caption, columns and readable cells."""
    lists = {
        column: value
        for column, value in metrics.items()
        if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)
    }
    tables = []
    for name, entries in lists.items():
        columns = list(dict.fromkeys(column for entry in entries for column in entry))
        rows = [[readable(column, entry.get(column))[1] for column in columns] for entry in entries]
        labels = [readable(column, None)[0] for column in columns]
        tables.append({"caption": readable(name, None)[0], "columns": labels, "rows": rows})
    return {column: value for column, value in metrics.items() if column not in lists}, tables


def _history(connection: sa.Connection, fingerprint: str, newest: datetime) -> list[Row]:
    return _ask(connection, "finding_strips", fingerprints=[fingerprint], newest=newest, hours=HISTORY_HOURS)


def _stretches(history: list[Row], newest: datetime) -> list[Row]:
    """The history as stretches of the same status, newest first; hours of which nothing is known are told as such."""
    known = {row["hour"]: row for row in history}
    if not known:
        return []
    first = min(known)
    hours = [first + n * HOUR for n in range(int((newest - first) / HOUR) + 1)]
    nothing: Row = {"status": "none", "severity": "info", "message": ""}
    rows = [(hour, known.get(hour, nothing)) for hour in hours]
    stretches = []
    for _, group in groupby(rows, key=lambda entry: (entry[1]["status"], entry[1]["severity"])):
        entries = list(group)
        last_hour, last = entries[-1]
        stretches.append(
            {"since": entries[0][0], "last_hour": last_hour, "lasting": span(len(entries) * 3600)}
            | {"status": last["status"], "severity": last["severity"], "message": last["message"]}
        )
    return stretches[::-1]


def _plot(config: Config, found: Row, *, has_tables: bool) -> Row:
    """The plot as an address that holds the picture itself; its words are for who can't see it."""
    from streamwarden.charts import draw as plots  # matplotlib: only for who looks at a finding

    nothing: Row = {"plot": None, "plot_alt": "", "plot_why": "", "plot_error": None}
    file = plots.FOLDER / f"{found['detector']}.sql"
    try:
        header = plots.load_plot(file)[0] if file.exists() else None
        if header is None or (has_tables and header.kind == "table"):
            return nothing  # a picture of a table is for mail; here stands the table itself
        engine = open_warehouse(config)
        drawing = plots.draw_finding(engine, found["detector"], found["hour"], found["identity"], "svg")
    except StreamwardenError as error:
        return nothing | {"plot_error": str(error)}
    if drawing is None:
        return nothing
    light, dark = (
        f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
        for picture in (drawing.content, plots.in_the_dark(drawing.content))
    )
    return nothing | {"plot": light, "plot_dark": dark, "plot_alt": drawing.alt, "plot_why": header.why}


def _judged_by(detector: Detector | None, found: Row) -> Row:
    """The SQL that judged, with the parameters it had, and whether the file is still the same."""
    params = found["params"] or {}
    if detector:
        params = {name: params[name] for name in detector.params if name in params}
    return {
        "params": params,
        "sql": detector.sql if detector else None,
        "is_same_sql": detector is not None and detector.checksum == found["sql_checksum"],
        "psql": psql_script(detector, params, found["hour"]) if detector else None,
    }
