"""`make demo`: starts the fleet, traffic, and faults, evaluates the hour with Airflow, and prints tickets and score.

`ONCE=1` ends after the score (exit code 0 only if exactly the injected faults were found); otherwise everything runs
until Ctrl-C. `FAULTS=ebs,memory,schema,rogue` selects faults (these are the default; or `none`); `all` adds those of
demo.more_faults; `chain` has three brokers, one of them with a throttled volume: one root cause, one ticket. With
`FLEET=msk` the brokers are those of an emulated Amazon MSK. With `FLEET=kubernetes` brokers and application are pods of
a real Kubernetes API server, which `make kubernetes-api` builds. The embedded PostgreSQL is stopped last, unless it was
running before or $STREAMWARDEN_WAREHOUSE_URL is another server.
"""

from __future__ import annotations

import os
import signal
import sys
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
from streamwarden.base.config import WAREHOUSE_ENV, Config, Warehouse
from streamwarden.base.embedded import is_running, stop_server
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import read_only

from demo.chain import Chain
from demo.faults import CHAIN, FAULTS, parse_faults
from demo.fleet import Fleet, Say
from demo.kubernetes_fleet import KubernetesFleet
from demo.more_faults import MORE
from demo.msk_fleet import MskFleet
from demo.score import Score, open_tickets, score
from demo.verdicts import compared, with_verdicts

FOLDER = PROJECT_ROOT / "var" / "demo"
POSTGRES = PROJECT_ROOT / Warehouse().data_folder
FLEETS = {"ec2": Fleet, "msk": MskFleet, "kubernetes": KubernetesFleet}
console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


class Runner(AbstractContextManager["Runner"], Protocol):
    """Runs the hour on the fleet. Entering starts it without waiting, so that it comes up during the traffic."""

    def wait_until_ready(self) -> None:
        """Returns when it can be used; raises StreamwardenError if it cannot be in time."""

    def run_hour(self, hour: datetime) -> None:
        """Collects data, evaluates detectors, and creates tickets; raises StreamwardenError if the run failed."""

    def check(self) -> None:
        """Raises StreamwardenError if one of its processes has ended."""

    def where_to_click(self) -> list[str]:
        """Lines with URLs and logins for the user."""


def main(
    once: Annotated[bool, typer.Option(envvar="ONCE", help="End after the score.")] = False,
    faults: Annotated[
        str, typer.Option(envvar="FAULTS", help=f"{', '.join((*FAULTS, *MORE))}; all, none or chain.")
    ] = ",".join(FAULTS),
    fleet_kind: Annotated[str, typer.Option("--fleet", envvar="FLEET", help=f"{', '.join(FLEETS)}.")] = "ec2",
    fleet_only: Annotated[bool, typer.Option(help="Start fleet and traffic only; evaluate nothing.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder of the fleet's data.")] = FOLDER,
) -> None:
    """Start the demo fleet, and evaluate its hour with Airflow."""
    _turn_signals_into_one_interrupt()
    try:
        chosen = parse_faults(faults)
        fleet = _class_of(fleet_kind, chosen)(folder, chosen, say=_timed_lines())
        perfect = _show_fleet(fleet) if fleet_only else _evaluate_fleet(fleet, once)
    except StreamwardenError as error:
        Console(stderr=True, highlight=False).print(f"[red]{escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130 if once else 0) from None
    raise typer.Exit(0 if perfect else 1)


def _class_of(kind: str, faults: frozenset[str]) -> type[Fleet]:
    if kind not in FLEETS:
        raise StreamwardenError(f"FLEET: '{kind}' is unknown; choose among {', '.join(FLEETS)}")
    if kind == "ec2":
        return Chain if CHAIN in faults else Fleet
    if unknown := sorted(faults - {*FAULTS}):
        raise StreamwardenError(f"FLEET={kind} has no fault '{unknown[0]}'; choose among {', '.join(FAULTS)} and none")
    return FLEETS[kind]


def _show_fleet(fleet: Fleet) -> bool:
    with fleet:
        _load(fleet)
        console.print(f"to inspect it: . {fleet.environment_file}", soft_wrap=True)
        _stay(fleet)
    return True


def _evaluate_fleet(fleet: Fleet, once: bool) -> bool:
    from demo.airflow import Airflow

    with _postgres() as what_ends, fleet:
        runner: Runner = Airflow(fleet)
        with runner:
            _load(fleet)
            runner.wait_until_ready()
            if not once:
                _print_addresses(runner, fleet, what_ends)
            runner.run_hour(fleet.hour)
            result = _score(fleet)
            if not once:
                _print_addresses(runner, fleet, what_ends)
                _stay(fleet, runner)
    return result.is_perfect


@contextmanager
def _postgres() -> Iterator[str]:
    """Stops the embedded server at the end if the demo started it; yields what Ctrl-C stops, in words."""
    if WAREHOUSE_ENV in os.environ or is_running(POSTGRES):
        yield "everything but PostgreSQL"
        return
    try:
        yield "everything"
    finally:
        stop_server(POSTGRES)


def _score(fleet: Fleet) -> Score:
    tickets = open_tickets(fleet.tracker_url, "streamwarden", fleet.tracker_password("streamwarden"))
    with read_only(Config(), "20s") as connection:
        tickets = with_verdicts(connection, tickets)
    for ticket in sorted(tickets, key=lambda ticket: ticket.opened_at):
        console.print(f"[bold]{escape(ticket.title)}[/]\n  {ticket.url}", soft_wrap=True)
    console.print(compared(fleet.truth, tickets))
    result = score(fleet.truth, tickets, fleet.started_at)
    for missed in result.missed:
        console.print(f"[red]missed: {missed.fault} on {missed.resource} ({missed.why})", soft_wrap=True)
        for ticket in (ticket for ticket in tickets if ticket.explains(missed)):
            for effect in ticket.missing_effects(missed):
                console.print(f"[red]  {ticket.url} does not list the effect: {effect}", soft_wrap=True)
    for false in result.false:
        console.print(f"[red]false: {escape(false.title)} ({false.url})", soft_wrap=True)
    console.print(str(result))
    return result


def _load(fleet: Fleet) -> None:
    faults = ", ".join(sorted(fleet.faults)) or "none"
    console.print(f"faults: {faults}; traffic first, then Airflow evaluates the hour", soft_wrap=True)
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("traffic", total=1.0)
        fleet.load(tick=lambda done: progress.update(task, completed=done))


def _print_addresses(runner: Runner, fleet: Fleet, what_ends: str) -> None:
    for line in (*runner.where_to_click(), _tracker_line(fleet), f"Ctrl-C stops {what_ends}."):
        console.print(line, soft_wrap=True)


def _tracker_line(fleet: Fleet) -> str:
    return f"tickets: {fleet.tracker_url} (to log in as admin: password in {fleet.folder}/tracker/credentials.json)"


def _stay(*parts: Fleet | Runner) -> None:
    """Returns never; raises when a process of a part has ended, because what is left would only look alive."""
    while True:
        for part in parts:
            part.check()
        time.sleep(1)


def _timed_lines() -> Say:
    started = time.monotonic()
    return lambda line: console.print(f"[dim]{time.monotonic() - started:5.1f} s[/] {escape(line)}", soft_wrap=True)


def _turn_signals_into_one_interrupt() -> None:
    """SIGTERM stops like Ctrl-C. Further signals are ignored, so that the shutdown leaves no processes behind."""

    def interrupt(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        console.print("stopping all processes, which takes up to a minute")
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


if __name__ == "__main__":
    typer.run(main)
