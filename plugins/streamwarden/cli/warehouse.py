"""`streamwarden migrate` and `streamwarden warehouse`: the SQL warehouse."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import JsonOption, out
from streamwarden.rendering.readable import counted

app = typer.Typer(help="The SQL warehouse.", no_args_is_help=True)


def migrate(
    back: Annotated[bool, typer.Option("--back", help="Go back to older versions of views and functions.")] = False,
) -> None:
    """Bring the warehouse's schema and its EBS prices up to date."""
    from streamwarden.base.warehouse import open_warehouse
    from streamwarden.store.migrate import migrate as migrate_warehouse
    from streamwarden.store.prices import load_prices

    config = load_config()
    warehouse = open_warehouse(config)
    applied = migrate_warehouse(warehouse, back=back)
    out.print("\n".join(f"applied {name}" for name in applied) or "The warehouse is up to date.")
    prices = load_prices(warehouse, config)
    out.print(
        f"EBS prices of {counted(len(prices), 'region')}, the oldest as of {min(price.as_of for price in prices)}."
    )


@app.command()
def url() -> None:
    """Print the warehouse's URL (with its password, or with an IAM token that is valid for 15 minutes)."""
    from streamwarden.base.rds_login import with_password
    from streamwarden.base.warehouse import warehouse_url

    print(with_password(warehouse_url(load_config())))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context) -> None:
    """Open psql on the warehouse; further arguments go to psql."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from streamwarden.base.rds_login import with_password
    from streamwarden.base.warehouse import psql_program, warehouse_url

    address: dict[str, Any] = conninfo_to_dict(with_password(warehouse_url(load_config())))
    # Not as an argument: those can be seen by whoever lists the machine's processes.
    password = {"PGPASSWORD": str(address.pop("password"))} if "password" in address else {}
    command = [psql_program(), make_conninfo(**address), *context.args]
    sys.exit(subprocess.call(command, env=os.environ | password))


@app.command()
def size(as_json: JsonOption = False) -> None:
    """Print the size of each table, now and after its full retention."""
    from rich.table import Table

    from streamwarden.store.size import table_sizes

    sizes = table_sizes(shared.warehouse(), load_config().warehouse)
    if as_json:
        shared.print_json(asdict(one) for one in sizes)
        return
    table = Table("table", box=None, pad_edge=False)
    for heading in ("holds", "a row", "rows a day", "a day", "kept", "will hold"):
        table.add_column(heading, justify="right")
    for each in sizes:
        a_day = each.full_bytes / each.days if each.full_bytes is not None and each.days else None
        table.add_row(
            each.table,
            _megabytes(each.held_bytes),
            f"{each.bytes_per_row:,.0f} B" if each.bytes_per_row else "",
            f"{each.rows_per_day:,.0f}" if each.rows_per_day else "",
            _megabytes(a_day),
            f"{each.days} d" if each.days else "unlimited",
            _megabytes(each.full_bytes),
        )
    held, full = sum(each.held_bytes for each in sizes), sum(each.full_bytes or each.held_bytes for each in sizes)
    table.add_row("all", _megabytes(held), "", "", "", "", _megabytes(full), style="bold")
    out.print(table)


def _megabytes(size: float | None) -> str:
    return "" if size is None else f"{size / 1e6:,.1f} MB"


@app.command()
def prices(
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Fetch the prices of the config's regions from the AWS Price List API.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the list prices of EBS by region, and their age."""
    import sqlalchemy as sa
    from rich.table import Table

    engine = shared.warehouse()
    if refresh:
        from streamwarden.pipeline import refresh_prices

        refreshed = refresh_prices(engine, load_config())
        if not as_json:
            out.print(f"fetched: {', '.join(refreshed)}", soft_wrap=True)
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(sa.text("select * from inventory.ebs_price")).mappings()]
    if as_json:
        shared.print_json(rows)
        return
    table = Table("region", "as of", "days", "source", "gp3 a GiB", box=None, pad_edge=False)
    for row in sorted(rows, key=lambda row: str(row["region"])):
        days = (datetime.now(UTC).date() - row["as_of"]).days
        gp3 = "" if row["gp3_gib"] is None else f"${row['gp3_gib']:g}"
        table.add_row(row["region"], f"{row['as_of']}", f"{days}", row["source"], gp3)
    out.print(table)


@app.command()
def housekeeping(
    do: Annotated[bool, typer.Option("--do", help="Apply; by default only show what would be done.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Apply even where more than a quarter of a table is dropped.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the partitions as a JSON array; not with --do or --yes.")
    ] = False,
) -> None:
    """Show partitions that are older than their retention, or drop them."""
    from streamwarden.store.housekeeping import expired, keep_house

    if as_json and (do or yes):
        raise typer.BadParameter("give either --json or --do.")
    config, warehouse = load_config(), shared.warehouse()
    if not (do or yes):
        with warehouse.connect() as connection:
            found = expired(connection, config.warehouse, datetime.now(UTC))
        if as_json:
            shared.print_json(asdict(expiry) for expiry in found)
            return
        for expiry in found:
            out.print(f"{expiry}: {'asks for --yes' if expiry.needs_a_yes else 'would go'}", soft_wrap=True)
        out.print("Nothing was changed; --do applies it." if found else "No partition is older than its retention.")
        return
    done, left = keep_house(warehouse, config.warehouse, yes=yes)
    out.print("\n".join(f"{what}: {count}" for what, count in done.items()) or "There was nothing to do.")
    if left:
        raise StreamwardenError(f"{'; '.join(map(str, left))}: too much to go without --yes.")


@app.command()
def stop() -> None:
    """Stop the embedded server."""
    from streamwarden.base.warehouse import stop_embedded

    out.print("stopped" if stop_embedded(shared.config_if_any()) else "The embedded server is not running.")
