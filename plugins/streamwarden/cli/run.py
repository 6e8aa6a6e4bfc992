"""`streamwarden run`: an hour without Airflow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.markup import escape

from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import HourOption, out
from streamwarden.store.queries import Row


def run(
    hour: HourOption = None,
    apps: Annotated[
        list[str] | None, typer.Option("--app", help="Collect data only with this app (repeatable).")
    ] = None,
) -> None:
    """Run an hour without Airflow: collect data, evaluate detectors, file tickets."""
    from streamwarden.base.catalog import APPS
    from streamwarden.pipeline import run_hour

    start = shared.hour(hour)
    if unknown := set(apps or []) - set(APPS):
        raise StreamwardenError(f"--app {min(unknown)}: no such app. Available: {', '.join(APPS)}.")
    begun = datetime.now(UTC)
    if start > begun:
        raise StreamwardenError(f"--hour {hour}: cannot run an hour that has not begun.")
    out.print(f"Hour {start:%Y-%m-%d %H:%M} UTC")

    def progress(step: str, what: str, went_well: bool) -> None:
        seconds = (datetime.now(UTC) - begun).total_seconds()
        mark = "[green]done[/]" if went_well else "[red]fail[/]"
        out.print(f"  {seconds:5.0f} s  {mark}  {step:<40} {escape(what)}", highlight=False, soft_wrap=True)

    result = run_hour(load_config(), start, list(apps or []), progress)
    _print_gaps(result.gaps)
    if not result.ok:
        raise StreamwardenError("the hour is incomplete: fix the steps marked `fail`, then run it again.")


def _print_gaps(gaps: Sequence[Row]) -> None:
    """Prints missing data of an hour; sources with the same reason share a line."""
    if not gaps:
        return
    sources: dict[tuple[str, str], list[str]] = {}
    for gap in gaps:
        more = gap["resources"] - len(gap["examples"])
        which = ", ".join(gap["examples"]) + (f" and {more:,} more" if more else "")
        sources.setdefault((which, gap["message"]), []).append(gap["source"])
    out.print("Missing data of this hour:")
    for (which, message), names in sources.items():
        out.print(f"  {', '.join(names)}: {escape(which)}: {escape(message)}", highlight=False, soft_wrap=True)
    if left := gaps[0]["total"] - len(gaps):
        out.print(f"  and {left:,} more, in the view coverage_gaps (`streamwarden warehouse psql`).")
