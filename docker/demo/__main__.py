"""`make demo`: fleet up, traffic and faults, the hour judged by Airflow, tickets on the screen, score.

`ONCE=1` ends after the score (exit code 0 only if every fault was found and nothing else), otherwise everything stays
up until Ctrl-C. `FAULTS=ebs,memory,schema,rogue` chooses the faults (these are the default; `none`); `all` has those
of demo.more_faults as well; `chain` is three brokers, of which one has a disk that is held back: one cause, one ticket.
The embedded PostgreSQL is stopped last, unless it ran before or the warehouse is another ($STREAMWARDEN_WAREHOUSE_URL).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Protocol

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn
from streamwarden.base.config import WAREHOUSE_ENV, Warehouse
from streamwarden.base.embedded import is_running, stop_server
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

from demo.chain import Chain
from demo.fleet import CHAIN, FAULTS, Fleet, Say, parse_faults
from demo.more_faults import MORE
from demo.score import Score, open_tickets, score

FOLDER = PROJECT_ROOT / "var" / "demo"
POSTGRES = PROJECT_ROOT / Warehouse().data_folder
console = Console(highlight=False)


class Judge(AbstractContextManager["Judge"], Protocol):
    """Who runs the hour on the fleet: entering starts it without waiting, so that it comes up while traffic flows."""

    def run_hour(self, hour: datetime) -> None:
        """Gathers, judges and files tickets for the hour; raises StreamwardenError when the run failed."""

    def where_to_click(self) -> list[str]:
        """Lines with addresses and log-ins for the user."""


def main(
    once: Annotated[bool, typer.Option(envvar="ONCE", help="End after the score.")] = False,
    faults: Annotated[
        str, typer.Option(envvar="FAULTS", help=f"{', '.join((*FAULTS, *MORE))}; all, none or chain.")
    ] = ",".join(FAULTS),
    fleet_only: Annotated[bool, typer.Option(help="Bring up fleet and traffic and judge nothing.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the fleet's data lies.")] = FOLDER,
) -> None:
    """Brings up the demo fleet and, unless told otherwise, lets Airflow judge its hour."""
    _turn_signals_into_one_interrupt()
    try:
        chosen = parse_faults(faults)
        fleet = (Chain if CHAIN in chosen else Fleet)(folder, chosen, say=_timed_lines())
        perfect = _show_fleet(fleet) if fleet_only else _judge_fleet(fleet, once)
    except StreamwardenError as error:
        Console(stderr=True, highlight=False).print(f"[red]{escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130 if once else 0) from None
    raise typer.Exit(0 if perfect else 1)


def _show_fleet(fleet: Fleet) -> bool:
    with fleet:
        _load(fleet)
        console.print(f"to look at it by hand: . {fleet.environment_file}", soft_wrap=True)
        _stay(fleet)
    return True


def _judge_fleet(fleet: Fleet, once: bool) -> bool:
    from demo.airflow import Airflow

    with _postgres() as what_ends, fleet:
        judge: Judge = Airflow(fleet)
        with judge:
            _load(fleet)
            judge.run_hour(fleet.hour)
            result = _score(fleet)
            if not once:
                for line in (*judge.where_to_click(), _tracker_line(fleet), f"Ctrl-C stops {what_ends}."):
                    console.print(line, soft_wrap=True)
                _stay(fleet)
    return result.is_perfect


@contextmanager
def _postgres() -> Iterator[str]:
    """Stops the embedded server at the end if it is the demo's; yields what Ctrl-C ends, in words."""
    if WAREHOUSE_ENV in os.environ or is_running(POSTGRES):
        yield "everything but PostgreSQL"
        return
    try:
        yield "everything"
    finally:
        stop_server(POSTGRES)


def _score(fleet: Fleet) -> Score:
    tickets = open_tickets(fleet.tracker_url, "streamwarden", fleet.tracker_password("streamwarden"))
    for ticket in sorted(tickets, key=lambda ticket: ticket.opened_at):
        console.print(f"[bold]{escape(ticket.title)}[/]\n  {ticket.url}", soft_wrap=True)
    result = score(fleet.truth, tickets, fleet.started_at)
    for missed in result.missed:
        console.print(f"[red]missed: {missed.fault} on {missed.resource_name} ({missed.why})", soft_wrap=True)
        for ticket in (ticket for ticket in tickets if ticket.explains(missed)):
            for effect in ticket.lacks(missed):
                console.print(f"[red]  {ticket.url} doesn't say what follows: {effect}", soft_wrap=True)
    for false in result.false:
        console.print(f"[red]false: {escape(false.title)} ({false.url})", soft_wrap=True)
    console.print(str(result))
    return result


def _load(fleet: Fleet) -> None:
    faults = ", ".join(sorted(fleet.faults)) or "none"
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(f"traffic, faults: {faults}", total=1.0)
        fleet.load(tick=lambda done: progress.update(task, completed=done))


def _tracker_line(fleet: Fleet) -> str:
    return f"tickets: {fleet.tracker_url} (to log in as admin: password in {fleet.folder}/tracker/credentials.json)"


def _stay(fleet: Fleet) -> None:
    while True:
        fleet.check()
        time.sleep(1)


def _timed_lines() -> Say:
    started = time.monotonic()
    return lambda line: console.print(f"[dim]{time.monotonic() - started:5.1f} s[/] {escape(line)}", soft_wrap=True)


def _turn_signals_into_one_interrupt() -> None:
    """SIGTERM stops like Ctrl-C; a second signal must not cut the stopping short and leave processes behind."""

    def interrupt(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


if __name__ == "__main__":
    typer.run(main)
