"""`streamwarden tickets`: what stands, and answering it."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import out

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.tickets.responses import Verb

_HEARD = "The trackers hear of it with the next hour."
app = typer.Typer(
    help="Tickets: list them, answer them: acknowledge, mute, say that one is wrong, split, join.", no_args_is_help=True
)
FingerprintArgument = Annotated[
    str, typer.Argument(metavar="FINGERPRINT", help="The finding, or how it begins; `tickets list` shows them.")
]


@app.command("list")
def list_tickets() -> None:
    """List tickets that are open or muted."""
    from streamwarden.rendering.readable import clean
    from streamwarden.tickets.listing import listed

    table = Table("finding", "severity", "since", "state", "title", "in the tracker", box=None, pad_edge=False)
    with shared.warehouse().connect() as connection:
        for ticket in listed(connection):
            where = ticket["external_url"] or ""
            cells = ticket["fingerprint"][:12], ticket["severity"], f"{ticket['opened_hour']:%Y-%m-%d %H:%M}"
            table.add_row(*cells, _state(ticket), escape(clean(ticket["title"])), escape(where))
    out.print(table if table.row_count else "No ticket is open or muted.")


@app.command("acknowledge")
def acknowledge_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="A word for the others.")] = "",
) -> None:
    """Say that you work on it."""
    title = _respond(fingerprint, "acknowledge", reason)[0]
    out.print(f"{title}: acknowledged. {_HEARD}", soft_wrap=True)


@app.command("mute")
def mute_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Why; it is told to the tracker.")],
    until: Annotated[str | None, typer.Option(help="Time (UTC), e.g. 2026-12-01 or 2026-12-01T08:00.")] = None,
    forever: Annotated[bool, typer.Option("--forever", help="It won't be fixed: close it and keep it closed.")] = False,
) -> None:
    """Have a ticket quiet until a time, or for good. A rise in severity ends a snooze earlier."""
    if forever == (until is not None):
        raise typer.BadParameter("say either --until TIME or --forever.")
    end = _time(until) if until else None
    title = _respond(fingerprint, "snooze" if end else "wont_fix", reason, until=end)[0]
    how = f"quiet until {end:%Y-%m-%d %H:%M} UTC" if end else "closed for good"
    out.print(f"{title}: {how}. {_HEARD}", soft_wrap=True)


@app.command("unmute")
def unmute_ticket(fingerprint: FingerprintArgument) -> None:
    """Hear of a ticket again: at once when it is open, else when its finding is in alarm."""
    out.print(f"{_respond(fingerprint, 'unmute')[0]}: no longer muted.", soft_wrap=True)


@app.command("wrong")
def wrong_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="What is wrong about it; it stands on the rule's page.")],
) -> None:
    """Say that a finding is wrong. It stays as it is: mute it as well, or change the rule's parameters."""
    out.print(f"{_respond(fingerprint, 'wrong', reason)[0]}: kept for the rule's page. {_HEARD}", soft_wrap=True)


@app.command("comment")
def comment_ticket(
    fingerprint: FingerprintArgument, text: Annotated[str, typer.Argument(help="What you have to say.")]
) -> None:
    """Say something about a finding, here and in every tracker that has it."""
    out.print(f"{_respond(fingerprint, 'comment', text)[0]}: kept. {_HEARD}", soft_wrap=True)


@app.command("responses")
def list_answers(fingerprint: FingerprintArgument) -> None:
    """List what people said of a finding, here, on its page and in trackers, the newest first."""
    from streamwarden.rendering.readable import clean, moment
    from streamwarden.store.queries import ask
    from streamwarden.tickets import listing

    table = Table("when", "who", "where", "what", "words", box=None, pad_edge=False)
    with shared.warehouse().connect() as connection:
        ticket = listing.find(connection, fingerprint)
        for row in ask(connection, "tickets/responses", fingerprints=[ticket["fingerprint"]], most=1000):
            until = f" until {moment(row['until'])}" if row["until"] else ""
            cells = (row["who"], row["place"], f"{row['verb']}{until}", row["words"] or "")
            table.add_row(moment(row["said_at"]), *(escape(clean(cell)) for cell in cells))
    out.print(table if table.row_count else "Nobody said anything.")


@app.command("explain")
def explain_ticket(fingerprint: FingerprintArgument) -> None:
    """Explain a ticket's cause: its incident, how strongly each part is tied to it and why, and what was refused."""
    import sqlalchemy as sa

    from streamwarden.rendering.readable import clean
    from streamwarden.store.queries import ask
    from streamwarden.tickets import listing

    with shared.warehouse().connect() as connection:
        ticket = listing.find(connection, fingerprint)
        tree = connection.execute(sa.text("select * from tickets.incident_of(:id)"), {"id": ticket["ticket_id"]})
        for one in tree.mappings():
            why = f": {clean(one['message'])} ({one['strength']:.0%})" if one["message"] else ""
            over = f", over since {one['resolved_hour']:%Y-%m-%d %H:%M}" if one["resolved_hour"] else ""
            line = f"{'  ' * one['depth']}{clean(one['title'])}, since {one['opened_hour']:%Y-%m-%d %H:%M}{over}{why}"
            out.print(f"[bold]{escape(line)}[/]" if one["depth"] == 0 else escape(line), soft_wrap=True)
        weighed = ask(connection, "tickets/weighed", fingerprint=ticket["fingerprint"])
    table = Table("possible cause", "strength", "place", "time", "share", "peers", "amount", "evidence", box=None)
    for row in weighed:
        factors = (row[f"{name}_factor"] for name in ("place", "time", "share", "peers", "amount"))
        shown = ["" if factor is None else f"{factor:.2f}" for factor in factors]
        accepted = "[bold]accepted[/]" if row["is_accepted"] else "possible" if row["is_possible"] else "ruled out"
        name = escape(clean(f"{row['title'] or ''}: {row['resource_name'] or row['cause'][:12]}"))
        table.add_row(name, f"{row['strength']:.2f} {accepted}", *shown, escape(clean(row["message"])))
    if weighed:
        out.print(f"\nWeighed for {escape(clean(ticket['title']))}, hour {weighed[0]['hour']:%Y-%m-%d %H:%M} UTC:")
        out.print(table)
        if not any(row["is_accepted"] for row in weighed):
            out.print("No cause is known: none of these explains it.")
    else:
        out.print("No cause is known: nothing that is in alarm hangs together with it.")


@app.command("split")
def split_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Why; it is kept.")],
) -> None:
    """Take a finding out of its incident, with what follows from it; it is remembered and never undone by itself."""
    title, stay = _respond(fingerprint, "split", reason)
    out.print(f"{title}: no longer one incident with {escape('; '.join(stay[:3]))}.", soft_wrap=True)
    out.print("It gets a ticket of its own with the next hour.")


@app.command("join")
def join_tickets(
    fingerprint: FingerprintArgument,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The finding to join it with, or how it begins.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept.")],
) -> None:
    """Make one incident of two findings; it is remembered and never undone by itself."""
    from streamwarden.tickets import listing

    with shared.warehouse().connect() as connection:
        second = listing.find(connection, other)
    title = _respond(fingerprint, "join", reason, other=second["fingerprint"])[0]
    both = f"{title} and {escape(second['title'])}"
    out.print(f"{both}: one incident from the next hour on; the older ticket is kept.", soft_wrap=True)


def _respond(fingerprint: str, verb: Verb, words: str = "", **more: Any) -> tuple[str, list[str]]:
    """Says it as the user who is logged in. Returns the ticket's title, escaped, and what it was split from."""
    from streamwarden.tickets import Response, listing, respond
    from streamwarden.tickets.responses import COMMAND_LINE

    with shared.warehouse().begin() as connection:
        ticket = listing.find(connection, fingerprint)
        said = Response(verb, getpass.getuser(), COMMAND_LINE, words, **more)
        return escape(ticket["title"]), respond(connection, ticket["fingerprint"], said)


def _state(ticket: sa.RowMapping) -> str:
    if ticket["muted"] == "snoozed":
        return f"{ticket['state']}, snoozed until {ticket['muted_until']:%Y-%m-%d %H:%M}"
    if ticket["acknowledged_by"] and ticket["state"] == "open":
        return f"open, acknowledged by {escape(ticket['acknowledged_by'])}"
    return "won't fix" if ticket["muted"] else str(ticket["state"])


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # beyond the years 1 to 9999
        raise StreamwardenError(f"--until {text}: not a time; write it like 2026-12-01 or 2026-12-01T08:00.") from None
