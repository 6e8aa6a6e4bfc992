"""`streamwarden backtest`: evaluates a detector on past hours."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import DetectorArgument, out

if TYPE_CHECKING:
    from datetime import datetime

    from streamwarden.detectors.backtest import Backtest, Outcome
    from streamwarden.detectors.episodes import Episode


CAUSES = "causes"
"""Stands for the ranking of causes (sql/causes/weigh.sql) in place of a detector's id."""


def backtest(
    detector_id: DetectorArgument,
    start: Annotated[str, typer.Option("--from", help="First hour, UTC, e.g. 2026-11-01T00:00.")],
    end: Annotated[str | None, typer.Option("--to", help="Hour after the last one; default: the current hour.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter to try, name=value (repeatable).")
    ] = None,
    sql: Annotated[
        Path | None, typer.Option("--sql", help="File with a changed detector to try.", exists=True, dir_okay=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate a detector on past hours, and with changes; show which tickets differ. Writes no tickets.

    With `causes` instead of a detector: show which findings get another root cause with other parameters.
    """
    from streamwarden.base.hours import HOUR, last_full_hour, parse_hour
    from streamwarden.detectors import backtest as backtests
    from streamwarden.detectors import load

    hours = parse_hour(start), parse_hour(end) if end else last_full_hour() + HOUR
    if detector_id == CAUSES:
        _backtest_causes(*hours, settings or [], sql, as_json=as_json)
        return
    detector, config = shared.detector(detector_id), load_config()
    changed = load.changed(detector, sql) if sql else detector
    params = changed.with_params(
        changed.params_in_force(config), backtests.parse_settings(changed, settings or []), "--set "
    )
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"{detector.id}, hour by hour")
        result = backtests.backtest(
            shared.warehouse(), config, detector, *hours, tried=(changed, params) if sql or settings else None,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    reopen_within = timedelta(hours=config.tickets.reopen_within_hours)
    if as_json:
        print(json.dumps(backtests.for_scripts(result, reopen_within), indent=2))
    else:
        _print_backtest(result, [*([f"--sql {sql}"] if sql else []), *(settings or [])], reopen_within)


def _print_backtest(result: Backtest, settings: list[str], reopen_within: timedelta) -> None:
    from streamwarden.detectors.backtest import spans_in_words
    from streamwarden.rendering.readable import clean, counted

    tried = ", ".join(settings)
    shown = 4 if settings else 2  # columns
    table = Table(
        *("resource_name", "in force", escape(f"with {tried}"), "difference")[:shown], box=None, pad_edge=False
    )
    differences = result.differences()
    changed = [difference for difference in differences if difference.is_one] if settings else differences
    for difference in changed:
        tickets = _period(difference.in_force), _period(difference.tried)
        table.add_row(*(escape(clean(difference.resource_name)), *tickets, difference.words)[:shown])
    if table.row_count:
        out.print(table, "")
    if same := len(differences) - len(changed):
        out.print(f"{same:,} ticket{'' if same == 1 else 's'} unchanged")
    out.print(f"in force: {_in_figures(result.in_force, reopen_within)}", soft_wrap=True)
    if settings:
        out.print(f"with {escape(tried)}: {_in_figures(result.tried, reopen_within)}", soft_wrap=True)
    known = f"{len(result.hours)} of {counted(result.hours_asked, 'hour is', 'hours are')}"
    out.print(f"{known} in the warehouse: {spans_in_words(result.hours)}", soft_wrap=True)


def _period(episode: Episode | None) -> str:
    if episode is None:
        return "–"
    closed = f"closed {episode.closed:%m-%d %H:%M}, {episode.close_reason}" if episode.closed else "open at the end"
    return f"{episode.opened:%Y-%m-%d %H:%M}, {closed}"


def _in_figures(outcome: Outcome, reopen_within: timedelta) -> str:
    tickets, reopened = outcome.tickets(reopen_within)
    return (
        f"{tickets:,} ticket{'' if tickets == 1 else 's'}{f' (reopened {reopened} times)' if reopened else ''},"
        f" {outcome.hours_of('firing'):,} h firing, {outcome.hours_of('unknown'):,} h not evaluated"
        f" (resources: {len(outcome.resources):,})"
    )


def _backtest_causes(start: datetime, end: datetime, settings: list[str], sql: Path | None, *, as_json: bool) -> None:
    from streamwarden.causes import backtest as backtests
    from streamwarden.causes import rule
    from streamwarden.detectors import load_detectors
    from streamwarden.rendering.readable import clean, counted
    from streamwarden.store.queries import ask

    if sql or not settings:
        raise StreamwardenError("backtest causes: --set name=value is required, and --sql is for detectors only.")
    in_force = rule.params_in_force(load_config())
    tried = rule.with_params(in_force, backtests.parse_settings(settings), "--set ")
    warehouse = shared.warehouse()
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("causes, hour by hour")
        result = backtests.backtest(
            warehouse, load_detectors(), start, end, in_force=in_force, tried=tried,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    if as_json:
        print(json.dumps(asdict(result), indent=2, default=lambda at: at.isoformat()))
        return
    prints = list({p for one in result.changes for p in (one.effect, one.in_force, one.tried) if p})
    with warehouse.connect() as connection:
        names = {row["fingerprint"]: row["name"] for row in ask(connection, "causes/names", fingerprints=prints)}
    table = Table("hour", "finding", "cause in force", "cause tried", box=None, pad_edge=False)
    for one in result.changes:
        shown = (escape(clean(names.get(p, p[:12]))) if p else "–" for p in (one.effect, one.in_force, one.tried))
        table.add_row(f"{one.hour:%Y-%m-%d %H:%M}", *shown)
    if table.row_count:
        out.print(table, "")
    out.print(f"in force: {counted(result.accepted_in_force, 'accepted cause')}", soft_wrap=True)
    tried_text = escape(", ".join(settings))
    out.print(f"with {tried_text}: {counted(result.accepted_tried, 'accepted cause')}", soft_wrap=True)
    out.print(f"{counted(result.hours, 'hour')}, {counted(len(result.changes), 'difference')}", soft_wrap=True)
