"""The command line `streamwarden`. Exit codes: 0 success, 1 error (one line on stderr), 2 wrong usage.

Each module has one group of commands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streamwarden.base.addresses import masked
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.version import VERSION
from streamwarden.cli import ask, backtest, config, detectors, docs, plan, report, run, tickets, warehouse, whatif
from streamwarden.cli.init import command as init
from streamwarden.rendering.readable import is_storable

app = typer.Typer(
    help="Monitors Kafka fleets on AWS: collects data hourly, evaluates detectors, files tickets with root causes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (init.init, run.run, warehouse.migrate, docs.docs, report.report, backtest.backtest, ask.ask):
    app.command()(command)
app.add_typer(detectors.app, name="detectors")
app.add_typer(tickets.app, name="tickets")
app.add_typer(config.app, name="config")
app.add_typer(warehouse.app, name="warehouse")
app.add_typer(plan.app, name="plan")
app.add_typer(whatif.app, name="whatif")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"streamwarden {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    config: Annotated[
        Path | None, typer.Option(help="Config file. Default: $STREAMWARDEN_CONFIG, then streamwarden.yaml.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if config:
        if not config.exists():  # before any output of a command
            raise StreamwardenError(f"--config {config}: no such config file.")
        os.environ[CONFIG_ENV] = str(config.resolve())


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Prints expected errors, including an unreachable database, as one line on stderr."""
    try:
        yield
    except StreamwardenError as error:
        message = str(error)
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("sqlalchemy", "psycopg"):
            raise
        message = masked(f"warehouse: {str(getattr(error, 'orig', error)).strip().splitlines()[0]}")
        if "unsupported startup parameter" in message:
            message += " (PgBouncer: add pooler=transaction to warehouse.url)"
    else:
        return
    print(f"streamwarden: {message}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Entry point of the `streamwarden` command."""
    with _one_line_errors():
        for argument in sys.argv[1:]:
            if not is_storable(argument):
                raise StreamwardenError(f"{argument!a}: is not text in UTF-8.")
        app()
