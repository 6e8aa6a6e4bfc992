"""`streamwarden tickets`: what stands, and having it quiet."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import out

if TYPE_CHECKING:
    import sqlalchemy as sa

app = typer.Typer(help="Tickets: list them, have one quiet, hear of it again.", no_args_is_help=True)
FingerprintArgument = Annotated[
    str, typer.Argument(metavar="FINGERPRINT", help="The finding, or how it begins; `tickets list` shows them.")
]


@app.command("list")
def list_tickets() -> None:
    """List tickets that are open or muted."""
    from streamwarden.tickets.muting import listed
    from streamwarden.words.readable import clean

    table = Table("finding", "severity", "since", "state", "title", "in the tracker", box=None, pad_edge=False)
    with shared.warehouse().connect() as connection:
        for ticket in listed(connection):
            where = ticket["external_url"] or ""
            cells = ticket["fingerprint"][:12], ticket["severity"], f"{ticket['opened_hour']:%Y-%m-%d %H:%M}"
            table.add_row(*cells, _state(ticket), escape(clean(ticket["title"])), escape(where))
    out.print(table if table.row_count else "No ticket is open or muted.")


@app.command("mute")
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
    warehouse, end = shared.warehouse(), _time(until) if until else None
    with warehouse.connect() as connection:
        ticket = muting.find(connection, fingerprint)
    muting.mute(warehouse, ticket["ticket_id"], until=end, who=getpass.getuser(), why=reason)
    how = f"quiet until {end:%Y-%m-%d %H:%M} UTC" if end else "closed for good"
    out.print(f"{escape(ticket['title'])}: {how}. The tracker hears of it with the next hour.", soft_wrap=True)


@app.command("unmute")
def unmute_ticket(fingerprint: FingerprintArgument) -> None:
    """Hear of a ticket again: at once when it is open, else when its finding is in alarm."""
    from streamwarden.tickets import muting

    warehouse = shared.warehouse()
    with warehouse.connect() as connection:
        ticket = muting.find(connection, fingerprint)
    muting.unmute(warehouse, ticket["ticket_id"], who=getpass.getuser())
    out.print(f"{escape(ticket['title'])}: no longer muted.", soft_wrap=True)


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
