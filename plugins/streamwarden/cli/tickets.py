"""`streamwarden tickets`: lists tickets and responds to findings."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import JsonOption, out

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.tickets.responses import Verb

_DELIVERED = "The trackers are notified in the next hour."
app = typer.Typer(
    help="List tickets and respond: acknowledge, mute, report a false positive, split, link.", no_args_is_help=True
)
FingerprintArgument = Annotated[
    str,
    typer.Argument(metavar="FINGERPRINT", help="Fingerprint of the finding, or its first digits; see `tickets list`."),
]


@app.command("list")
def list_tickets(as_json: JsonOption = False) -> None:
    """List open and muted tickets."""
    from streamwarden.rendering.readable import clean
    from streamwarden.tickets.listing import listed

    if as_json:
        with shared.warehouse().connect() as connection:
            shared.print_json(listed(connection))
        return
    table = Table("finding", "severity", "since", "state", "title", "tracker", box=None, pad_edge=False)
    with shared.warehouse().connect() as connection:
        for ticket in listed(connection):
            where = ticket["external_url"] or ""
            cells = ticket["fingerprint"][:12], ticket["severity"], f"{ticket['opened_hour']:%Y-%m-%d %H:%M}"
            table.add_row(*cells, _state(ticket), escape(clean(ticket["title"])), escape(where))
    nothing = "There are no open or muted tickets."
    out.print(table if table.row_count else shared.none_found(shared.warehouse(), nothing))


@app.command("acknowledge")
def acknowledge_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Comment for others.")] = "",
) -> None:
    """Acknowledge a finding: you are working on it."""
    title = _respond(fingerprint, "acknowledge", reason)[0]
    out.print(f"{title}: acknowledged. {_DELIVERED}", soft_wrap=True)


@app.command("mute")
def mute_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Reason; it is posted to the trackers.")],
    until: Annotated[str | None, typer.Option(help="Time (UTC), e.g. 2026-12-01 or 2026-12-01T08:00.")] = None,
    forever: Annotated[bool, typer.Option("--forever", help="Won't fix: close the ticket and keep it closed.")] = False,
) -> None:
    """Snooze a ticket until a time, or mark it as won't fix. A higher severity ends a snooze earlier."""
    if forever == (until is not None):
        raise typer.BadParameter("give either --until TIME or --forever.")
    end = _time(until) if until else None
    title = _respond(fingerprint, "snooze" if end else "wont_fix", reason, until=end)[0]
    how = f"snoozed until {end:%Y-%m-%d %H:%M} UTC" if end else "marked as won't fix and closed"
    out.print(f"{title}: {how}. {_DELIVERED}", soft_wrap=True)


@app.command("unmute")
def unmute_ticket(fingerprint: FingerprintArgument) -> None:
    """Unmute a ticket. A closed one reopens when its finding is firing."""
    out.print(f"{_respond(fingerprint, 'unmute')[0]}: no longer muted.", soft_wrap=True)


@app.command("false-positive")
def report_false_positive(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Why it is a false positive; shown on the detector's page.")],
) -> None:
    """Report a false positive. The ticket stays open: mute it, or change the detector's parameters."""
    out.print(
        f"{_respond(fingerprint, 'false_positive', reason)[0]}: reported as a false positive. {_DELIVERED}",
        soft_wrap=True,
    )


@app.command("comment")
def comment_ticket(fingerprint: FingerprintArgument, text: Annotated[str, typer.Argument(help="The comment.")]) -> None:
    """Comment on a finding, here and in every tracker that has it."""
    out.print(f"{_respond(fingerprint, 'comment', text)[0]}: comment stored. {_DELIVERED}", soft_wrap=True)


@app.command("responses")
def list_responses(fingerprint: FingerprintArgument, as_json: JsonOption = False) -> None:
    """List responses to a finding, from the CLI, its page, and trackers, newest first."""
    from streamwarden.rendering.readable import clean, moment
    from streamwarden.store.queries import ask
    from streamwarden.tickets import listing

    table = Table("time", "who", "where", "response", "text", box=None, pad_edge=False)
    with shared.warehouse().connect() as connection:
        ticket = listing.find(connection, fingerprint)
        responses = ask(connection, "tickets/responses", fingerprints=[ticket["fingerprint"]], most=1000)
        if as_json:
            shared.print_json(responses)
            return
        for row in responses:
            until = f" until {moment(row['until'])}" if row["until"] else ""
            cells = (row["who"], row["place"], f"{row['verb']}{until}", row["words"] or "")
            table.add_row(moment(row["said_at"]), *(escape(clean(cell)) for cell in cells))
    out.print(table if table.row_count else "There are no responses.")


@app.command("explain")
def explain_ticket(
    fingerprint: FingerprintArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print the possible causes as a JSON array.")] = False,
) -> None:
    """Explain a ticket's root cause: its incident, the evidence with its strength, and what was ruled out."""
    import sqlalchemy as sa

    from streamwarden.rendering.readable import clean
    from streamwarden.store.queries import ask
    from streamwarden.tickets import listing

    with shared.warehouse().connect() as connection:
        ticket = listing.find(connection, fingerprint)
        weighed = ask(connection, "tickets/weighed", fingerprint=ticket["fingerprint"])
        if as_json:
            shared.print_json(weighed)
            return
        tree = connection.execute(sa.text("select * from tickets.incident_of(:id)"), {"id": ticket["ticket_id"]})
        for one in tree.mappings():
            why = f": {clean(one['message'])} ({one['strength'] * 100:.0f} %)" if one["message"] else ""
            over = f", resolved since {one['resolved_hour']:%Y-%m-%d %H:%M}" if one["resolved_hour"] else ""
            line = f"{'  ' * one['depth']}{clean(one['title'])}, since {one['opened_hour']:%Y-%m-%d %H:%M}{over}{why}"
            out.print(f"[bold]{escape(line)}[/]" if one["depth"] == 0 else escape(line), soft_wrap=True)
    table = Table("possible cause", "strength", "place", "time", "share", "peers", "amount", "evidence", box=None)
    for row in weighed:
        factors = (row[f"{name}_factor"] for name in ("place", "time", "share", "peers", "amount"))
        shown = ["" if factor is None else f"{factor:.2f}" for factor in factors]
        accepted = "[bold]accepted[/]" if row["is_accepted"] else "possible" if row["is_possible"] else "ruled out"
        name = escape(clean(f"{row['title'] or ''}: {row['resource_name'] or row['cause'][:12]}"))
        table.add_row(name, f"{row['strength']:.2f} {accepted}", *shown, escape(clean(row["message"])))
    if weighed:
        out.print(f"\nCandidates for {escape(clean(ticket['title']))}, hour {weighed[0]['hour']:%Y-%m-%d %H:%M} UTC:")
        out.print(table)
        if not any(row["is_accepted"] for row in weighed):
            out.print("Upstream causes: none found. None of these explains the finding.")
    else:
        out.print("Upstream causes: none found. No related finding.")


@app.command("split")
def split_ticket(
    fingerprint: FingerprintArgument,
    reason: Annotated[str, typer.Option(help="Reason; it is stored.")],
) -> None:
    """Split a finding and its downstream effects off its incident, permanently."""
    title, stay = _respond(fingerprint, "split", reason)
    out.print(f"{title}: split from {escape('; '.join(stay[:3]))}.", soft_wrap=True)
    out.print("The finding gets its own ticket in the next hour.")


@app.command("link")
def link_tickets(
    fingerprint: FingerprintArgument,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="Fingerprint of the other finding, or its first digits.")
    ],
    reason: Annotated[str, typer.Option(help="Reason; it is stored.")],
) -> None:
    """Link two findings as one incident, permanently."""
    from streamwarden.tickets import listing

    with shared.warehouse().connect() as connection:
        second = listing.find(connection, other)
    title = _respond(fingerprint, "link", reason, other=second["fingerprint"])[0]
    both = f"{title} and {escape(second['title'])}"
    out.print(f"{both}: one incident from the next hour on. The older ticket is kept.", soft_wrap=True)


def _respond(fingerprint: str, verb: Verb, words: str = "", **more: Any) -> tuple[str, list[str]]:
    """Responds as the user who is logged in. Returns the escaped title, and the titles that it was split from."""
    from streamwarden.tickets import Response, listing, respond
    from streamwarden.tickets.responses import COMMAND_LINE

    with shared.warehouse().begin() as connection:
        ticket = listing.find(connection, fingerprint)
        response = Response(verb, getpass.getuser(), COMMAND_LINE, words, **more)
        return escape(ticket["title"]), respond(connection, ticket["fingerprint"], response)


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
