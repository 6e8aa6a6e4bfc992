"""The command line: `streamwarden`. Exit codes: 0 well, 1 a problem that is told in one line, 2 wrong usage.

One module holds one group of commands; here they are put together.
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
from streamwarden.cli import backtest, config, detectors, docs, plan, report, run, tickets, warehouse, whatif

app = typer.Typer(
    help="Watches Kafka fleets on AWS: gathers an hour, judges it, files tickets that name the cause.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (run.run, warehouse.migrate, docs.docs, report.report, backtest.backtest):
    app.command()(command)
app.add_typer(detectors.app, name="detectors")
app.add_typer(tickets.app, name="tickets")
app.add_typer(config.app, name="config")
app.add_typer(warehouse.app, name="warehouse")
app.add_typer(plan.app, name="plan")
app.add_typer(whatif.app, name="whatif")


@app.callback()
def _options(
    config: Annotated[
        Path | None, typer.Option(help="Config file; else $STREAMWARDEN_CONFIG or streamwarden.yaml.")
    ] = None,
) -> None:
    if config:
        if not config.exists():  # before any command begins, or prints
            raise StreamwardenError(f"--config {config}: no such config file.")
        os.environ[CONFIG_ENV] = str(config.resolve())


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
        message = masked(f"warehouse: {str(getattr(error, 'orig', error)).strip().splitlines()[0]}")
    else:
        return
    print(f"streamwarden: {message}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Entry point of the `streamwarden` command."""
    with _one_line_errors():
        app()
