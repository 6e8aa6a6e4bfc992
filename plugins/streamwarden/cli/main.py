"""The command line: `streamwarden`. Exit codes: 0 well, 1 a problem that is told in one line, 2 wrong usage."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from streamwarden.base.config import CONFIG_ENV, Config, config_path, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.detectors import Detector
    from streamwarden.detectors.backtest import Backtest, Outcome
    from streamwarden.detectors.episodes import Episode

app = typer.Typer(
    help="Watches Kafka fleets on AWS: gathers an hour, judges it, files tickets that name the cause.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
detectors_app = typer.Typer(help="The rules: list and explain them.", no_args_is_help=True)
config_app = typer.Typer(help="The config file.", no_args_is_help=True)
warehouse_app = typer.Typer(help="The SQL warehouse.", no_args_is_help=True)
app.add_typer(detectors_app, name="detectors")
tickets_app = typer.Typer(help="Tickets: list them, have one quiet, hear of it again.", no_args_is_help=True)
app.add_typer(tickets_app, name="tickets")
app.add_typer(config_app, name="config")
app.add_typer(warehouse_app, name="warehouse")
out = Console()
HourOption = Annotated[
    str | None, typer.Option(help="Start of the hour, UTC, e.g. 2026-11-21T05:00; the last full one.")
]
DetectorArgument = Annotated[str, typer.Argument(metavar="DETECTOR", help="Its id; `detectors list` shows them.")]

FingerprintArgument = Annotated[
    str, typer.Argument(metavar="FINGERPRINT", help="The finding, or how it begins; `tickets list` shows them.")
]


@app.callback()
def _options(
    config: Annotated[
        Path | None, typer.Option(help="Config file; else $STREAMWARDEN_CONFIG or streamwarden.yaml.")
    ] = None,
) -> None:
    if config:
        os.environ[CONFIG_ENV] = str(config.resolve())


@app.command()
def run(
    hour: HourOption = None,
    apps: Annotated[list[str] | None, typer.Option("--app", help="Gather only this app (repeatable).")] = None,
) -> None:
    """Run an hour without Airflow: gather, judge, file tickets."""
    from streamwarden.base.catalogue import APPS
    from streamwarden.pipeline import run_hour

    start = _hour(hour)
    if unknown := set(apps or []) - set(APPS):
        raise StreamwardenError(f"--app {min(unknown)}: no such app; there are: {', '.join(APPS)}.")
    begun = datetime.now(UTC)
    if start > begun:
        raise StreamwardenError(f"--hour {hour}: hasn't begun.")
    out.print(f"Hour {start:%Y-%m-%d %H:%M} UTC")

    def progress(step: str, what: str, went_well: bool) -> None:
        seconds = (datetime.now(UTC) - begun).total_seconds()
        mark = "[green]done[/]" if went_well else "[red]fail[/]"
        out.print(f"  {seconds:5.0f} s  {mark}  {step:<40} {escape(what)}", highlight=False, soft_wrap=True)

    result = run_hour(_config(), start, list(apps or []), progress)
    _print_gaps(result.gaps)
    if not result.ok:
        raise StreamwardenError(
            "the hour is incomplete: see the lines marked `fail`; run it again when they are mended."
        )


@app.command()
def migrate() -> None:
    """Bring the warehouse's schema and its EBS prices up to date."""
    from streamwarden.store.migrate import migrate as migrate_warehouse
    from streamwarden.store.prices import load_prices

    warehouse, config = _warehouse(), _config()
    applied = migrate_warehouse(warehouse)
    out.print("\n".join(f"applied {name}" for name in applied) or "The warehouse is up to date.")
    prices = load_prices(warehouse, config)
    out.print(f"EBS prices of {len(prices)} regions, the oldest as of {min(price.as_of for price in prices)}.")


@app.command()
def docs(
    check: Annotated[bool, typer.Option("--check", help="Only say whether they are stale (exit code 1).")] = False,
) -> None:
    """Generate docs/: detectors, data dictionary, config reference."""
    from streamwarden.docs import stale_pages, write_pages

    pages = stale_pages() if check else write_pages()
    if check and pages:
        raise StreamwardenError(f"stale: {', '.join(pages)}. Run `streamwarden docs`.")
    out.print("\n".join(f"wrote {page}" for page in pages) or "The docs are up to date.")


@app.command()
def report(
    day: Annotated[str | None, typer.Option(help="Day (UTC), e.g. 2026-11-20; today.")] = None,
) -> None:
    """Write the daily report as an HTML file."""
    from datetime import date

    from streamwarden.reports import render_daily, write_report

    try:
        chosen = date.fromisoformat(day) if day else datetime.now(UTC).date()
    except ValueError:
        raise StreamwardenError(f"--day {day}: not a day; write it like 2026-11-20.") from None
    config = _config()
    out.print(f"wrote {write_report(render_daily(_warehouse(), config, chosen), config)}")


@app.command()
def backtest(
    detector_id: DetectorArgument,
    start: Annotated[str, typer.Option("--from", help="First hour, UTC, e.g. 2026-11-01T00:00.")],
    end: Annotated[str | None, typer.Option("--to", help="Hour after the last one; without it, all up to now.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter to try, name=value (repeatable).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Run a detector over past hours, with other parameters as well; show which tickets that changes. Files nothing."""
    from streamwarden.base.hours import HOUR, last_full_hour, parse_hour
    from streamwarden.detectors import backtest as backtests

    detector, config = _detector(detector_id), _config()
    in_force = detector.params_in_force(config)
    tried = detector.with_params(in_force, backtests.parse_settings(detector, settings or []), "--set ")
    hours = parse_hour(start), parse_hour(end) if end else last_full_hour() + HOUR
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"{detector.id}, hour by hour")
        result = backtests.backtest(
            _warehouse(), detector, *hours, in_force=in_force, tried=tried,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    reopen_within = timedelta(hours=config.tickets.reopen_within_hours)
    if as_json:
        print(json.dumps(backtests.for_scripts(result, reopen_within), indent=2))
    else:
        _print_backtest(result, settings or [], reopen_within)


@detectors_app.command("list")
def list_detectors() -> None:
    """List all detectors."""
    from streamwarden.detectors import load_detectors

    table = Table("detector", "severity", "maturity", "title", box=None, pad_edge=False)
    for detector in load_detectors().values():
        table.add_row(detector.id, detector.severity, detector.maturity, escape(detector.title))
    out.print(table)


@detectors_app.command()
def explain(
    detector_id: DetectorArgument,
    hour: HourOption = None,
) -> None:
    """Explain a detector: what it reads, its parameters, runbook and blind spots, and how to run it in psql."""
    from streamwarden.detectors.explain import psql_script

    detector = _detector(detector_id)
    config = _config_if_any()
    out.print(f"[bold]{detector.id}[/]  {escape(detector.title)}  ({detector.severity}, {detector.maturity})")
    out.print(f"reads    {', '.join(detector.reads)}")
    out.print(
        f"opens    after {detector.open_after_hours} h in alarm, closes after {detector.clear_after_hours} clean h"
    )
    in_force = detector.params_in_force(config)
    for name, parameter in detector.params.items():
        out.print(f"param    {name} = {in_force[name]} {parameter.unit}: {escape(parameter.why)}", soft_wrap=True)
    out.print(
        f"\n[bold]What to do[/]\n{escape(detector.runbook)}\n[bold]What it can't see[/]\n{escape(detector.blind_spots)}"
    )
    out.print("[bold]In psql[/] (`streamwarden warehouse psql`)")
    print(psql_script(detector, in_force, _hour(hour)))


@tickets_app.command("list")
def list_tickets() -> None:
    """List tickets that are open or muted."""
    from streamwarden.tickets.muting import listed
    from streamwarden.words.readable import clean

    table = Table("finding", "severity", "since", "state", "title", "in the tracker", box=None, pad_edge=False)
    with _warehouse().connect() as connection:
        for ticket in listed(connection):
            where = ticket["external_url"] or ""
            cells = ticket["fingerprint"][:12], ticket["severity"], f"{ticket['opened_hour']:%Y-%m-%d %H:%M}"
            table.add_row(*cells, _state(ticket), escape(clean(ticket["title"])), escape(where))
    out.print(table if table.row_count else "No ticket is open or muted.")


@tickets_app.command("mute")
def mute_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Why; it is told to the tracker.")],
    until: Annotated[str | None, typer.Option(help="Time (UTC), e.g. 2026-12-01 or 2026-12-01T08:00.")] = None,
    forever: Annotated[bool, typer.Option("--forever", help="It won't be fixed: close it and keep it closed.")] = False,
) -> None:
    """Have a ticket quiet until a time, or for good. A rise in severity ends a snooze earlier."""
    from streamwarden.tickets import muting

    if forever == (until is not None):
        raise typer.BadParameter("say either --until TIME or --forever.")
    warehouse, end = _warehouse(), _time(until) if until else None
    with warehouse.connect() as connection:
        ticket = muting.find(connection, fingerprint)
    muting.mute(warehouse, ticket["ticket_id"], until=end, who=getpass.getuser(), why=reason)
    how = f"quiet until {end:%Y-%m-%d %H:%M} UTC" if end else "closed for good"
    out.print(f"{escape(ticket['title'])}: {how}. The tracker hears of it with the next hour.", soft_wrap=True)


@tickets_app.command("unmute")
def unmute_ticket(fingerprint: FingerprintArgument) -> None:
    """Hear of a ticket again: at once when it is open, else when its finding is in alarm."""
    from streamwarden.tickets import muting

    warehouse = _warehouse()
    with warehouse.connect() as connection:
        ticket = muting.find(connection, fingerprint)
    muting.unmute(warehouse, ticket["ticket_id"], who=getpass.getuser())
    out.print(f"{escape(ticket['title'])}: no longer muted.", soft_wrap=True)


@config_app.command()
def check(
    file: Annotated[Path | None, typer.Argument(help="The file; else the one in force.")] = None,
) -> None:
    """Check a config file, with all that it names: detectors, clients' properties, prices, files of targets."""
    from spark_apps.sources.kafka_client import Connection
    from spark_apps.sources.targets import jvms_of
    from streamwarden.detectors import load_detectors
    from streamwarden.store.prices import read_prices

    if file:
        os.environ[CONFIG_ENV] = str(file.resolve())  # for whoever looks for it on the way
    config = load_config()
    enabled = load_detectors(config=config)
    read_prices(PROJECT_ROOT / config.ebs_prices)
    for cluster in config.kafka:
        Connection(cluster)  # librdkafka checks its properties; nobody waits for an answer
    jvms = jvms_of(config)
    number = Counter(endpoint.role for endpoint in jvms.endpoints)
    machines = f" and {number['node']} machines" if number["node"] else ""
    out.print(
        f"{file or config_path()}: good. {len(config.kafka)} Kafka clusters, {number['broker']} brokers and"
        f" {number['app']} applications by JMX{machines}, {len(config.aws)} AWS accounts,"
        f" {len(enabled)} detectors, tickets to {config.tickets.sink}.",
        soft_wrap=True,
    )
    for gap in jvms.gaps:
        out.print(f"{escape(gap.resource)}: {escape(gap.reason)}", soft_wrap=True)


@warehouse_app.command()
def url() -> None:
    """Print the warehouse's URL (with its password, if it has one)."""
    from streamwarden.base.warehouse import warehouse_url

    print(warehouse_url(_config()))


@warehouse_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context) -> None:
    """Open psql on the warehouse; further arguments go to psql."""
    from streamwarden.base.warehouse import psql_program, warehouse_url

    sys.exit(subprocess.call([psql_program(), warehouse_url(_config()), *context.args]))


@warehouse_app.command()
def stop() -> None:
    """Stop the embedded server."""
    from streamwarden.base.warehouse import stop_embedded

    out.print("stopped" if stop_embedded(_config_if_any()) else "The embedded server isn't running.")


def _print_gaps(gaps: Sequence[sa.RowMapping]) -> None:
    """What an hour lacks, in the words of what was asked for it; sources that lack the same share a line."""
    if not gaps:
        return
    sources: dict[tuple[str, str], list[str]] = {}
    for gap in gaps:
        more = gap["resources"] - len(gap["examples"])
        which = ", ".join(gap["examples"]) + (f" and {more:,} more" if more else "")
        sources.setdefault((which, gap["reason"]), []).append(gap["source"])
    out.print("What couldn't be had of this hour:")
    for (which, reason), names in sources.items():
        out.print(f"  {', '.join(names)}: {escape(which)}: {escape(reason)}", highlight=False, soft_wrap=True)
    if left := gaps[0]["total"] - len(gaps):
        out.print(f"  and {left:,} more, in the view coverage_gaps (`streamwarden warehouse psql`).")


def _config() -> Config:
    return load_config()


def _config_if_any() -> Config:
    """For what works without a config file too."""
    return load_config() if config_path().exists() else Config()


def _warehouse() -> sa.Engine:
    from streamwarden.base.warehouse import open_warehouse

    return open_warehouse(_config())


def _state(ticket: sa.RowMapping) -> str:
    if ticket["muted"] == "snoozed":
        return f"{ticket['state']}, snoozed until {ticket['muted_until']:%Y-%m-%d %H:%M}"
    return "won't fix" if ticket["muted"] else str(ticket["state"])


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise StreamwardenError(f"--until {text}: not a time; write it like 2026-12-01 or 2026-12-01T08:00.") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _detector(detector_id: str) -> Detector:
    from streamwarden.detectors import load_detectors

    detectors = load_detectors()
    if detector_id not in detectors:
        raise StreamwardenError(f"{detector_id}: no such detector; there are: {', '.join(detectors)}.")
    return detectors[detector_id]


def _print_backtest(result: Backtest, settings: list[str], reopen_within: timedelta) -> None:
    from streamwarden.detectors.backtest import spans_in_words
    from streamwarden.words.readable import clean

    tried = ", ".join(settings)
    shown = 4 if settings else 2  # columns
    table = Table(*("resource", "in force", escape(f"with {tried}"), "difference")[:shown], box=None, pad_edge=False)
    differences = result.differences()
    told = [difference for difference in differences if difference.is_one] if settings else differences
    for difference in told:
        tickets = _stretch(difference.in_force), _stretch(difference.tried)
        table.add_row(*(escape(clean(difference.resource)), *tickets, difference.words)[:shown])
    if table.row_count:
        out.print(table, "")
    if same := len(differences) - len(told):
        out.print(f"{same:,} ticket{'' if same == 1 else 's'} would have been the same")
    out.print(f"in force: {_in_figures(result.in_force, reopen_within)}", soft_wrap=True)
    if settings:
        out.print(f"with {escape(tried)}: {_in_figures(result.tried, reopen_within)}", soft_wrap=True)
    out.print(
        f"{len(result.hours)} of {result.hours_asked} hours are in the warehouse: {spans_in_words(result.hours)}",
        soft_wrap=True,
    )


def _stretch(episode: Episode | None) -> str:
    if episode is None:
        return "–"
    closed = f"closed {episode.closed:%m-%d %H:%M}, {episode.close_reason}" if episode.closed else "open at the end"
    return f"{episode.opened:%Y-%m-%d %H:%M}, {closed}"


def _in_figures(outcome: Outcome, reopen_within: timedelta) -> str:
    tickets, reopened = outcome.tickets(reopen_within)
    return (
        f"{tickets:,} ticket{'' if tickets == 1 else 's'}{f' (reopened {reopened} times)' if reopened else ''},"
        f" {outcome.hours_of('alarm'):,} h in alarm, {outcome.hours_of('skip'):,} h couldn't be judged"
        f" (resources: {len(outcome.resources):,})"
    )


def _hour(text: str | None) -> datetime:
    from streamwarden.base.hours import last_full_hour, parse_hour

    return parse_hour(text) if text else last_full_hour()


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Problems the user can mend are one line on stderr; a database that is away is one of them."""
    try:
        yield
    except StreamwardenError as error:
        message = str(error)
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("sqlalchemy", "psycopg"):
            raise
        message = f"warehouse: {str(getattr(error, 'orig', error)).strip().splitlines()[0]}"
    else:
        return
    print(f"streamwarden: {message}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Entry point of the `streamwarden` command."""
    with _one_line_errors():
        app()
