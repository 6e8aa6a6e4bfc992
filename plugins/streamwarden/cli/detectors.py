"""`streamwarden detectors`: lists and explains detectors, starts new ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from streamwarden.base.paths import SQL
from streamwarden.cli import shared
from streamwarden.cli.shared import DetectorArgument, HourOption, JsonOption, out

app = typer.Typer(help="List and explain detectors; start a new one.", no_args_is_help=True)


@app.command("list")
def list_detectors(as_json: JsonOption = False) -> None:
    """List all detectors."""
    from streamwarden.detectors import load_detectors

    if as_json:
        columns = ("id", "subject", "severity", "maturity", "title")
        shared.print_json({name: getattr(one, name) for name in columns} for one in load_detectors().values())
        return
    table = Table("detector", "severity", "maturity", "title", box=None, pad_edge=False)
    for detector in load_detectors().values():
        table.add_row(detector.id, detector.severity, detector.maturity, escape(detector.title))
    out.print(table)


@app.command()
def explain(
    detector_id: DetectorArgument,
    hour: HourOption = None,
) -> None:
    """Explain a detector: what it reads, its parameters, runbook, and limitations, and how to run it in psql."""
    from streamwarden.detectors.explain import psql_script

    detector = shared.detector(detector_id)
    config = shared.config_if_any()
    out.print(f"[bold]{detector.id}[/]  {escape(detector.title)}  ({detector.severity}, {detector.maturity})")
    out.print(f"reads    {', '.join(detector.reads)}")
    out.print(
        f"opens    after {detector.open_after_hours} firing h, closes after {detector.clear_after_hours} healthy h"
    )
    in_force = detector.params_in_force(config)
    for name, parameter in detector.params.items():
        out.print(f"param    {name} = {in_force[name]} {parameter.unit}: {escape(parameter.why)}", soft_wrap=True)
    out.print(f"\n[bold]Runbook[/]\n{escape(detector.runbook)}\n[bold]Limitations[/]\n{escape(detector.limitations)}")
    out.print("[bold]In psql[/] (`streamwarden warehouse psql`)")
    print(psql_script(detector, in_force, shared.hour(hour)))


@app.command()
def causes(hour: HourOption = None, as_json: JsonOption = False) -> None:
    """Show possible root causes of the findings of an hour, by the present detectors; stores nothing."""
    from streamwarden.base.config import load_config
    from streamwarden.causes import rule, weigh
    from streamwarden.detectors import load_detectors
    from streamwarden.rendering.readable import clean
    from streamwarden.store.queries import ask

    with shared.warehouse().connect() as connection:
        found = weigh(connection, load_detectors(), shared.hour(hour), rule.params_in_force(load_config()))
        prints = list({one for cause in found for one in (cause.effect, cause.cause)})
        names = {row["fingerprint"]: row["name"] for row in ask(connection, "causes/names", fingerprints=prints)}
        stored = ask(connection, "causes/stored", hour=shared.hour(hour))
    before = {(row["effect"], row["cause"]): row["strength"] for row in stored}
    if as_json:
        shared.print_json(asdict(one) | {"stored_strength": before.get((one.effect, one.cause))} for one in found)
        return
    table = Table("effect", "cause", "strength", "evidence", "stored", box=None, pad_edge=False)
    for cause in found:
        strength = f"{cause.strength:.2f}"
        known = before.get((cause.effect, cause.cause))
        table.add_row(
            *(escape(clean(names.get(one, one[:12]))) for one in (cause.effect, cause.cause)),
            f"[bold]{strength}[/]" if cause.is_accepted else strength, escape(clean(cause.message)),
            "–" if known is None else f"{known:.2f}",
        )  # fmt: skip
    out.print(table if found else "No firing finding depends on another one.")


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="SUBJECT/ID", help="E.g. brokers/broker_slow.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="Kind of resource that it evaluates, e.g. broker.")],
    reads: Annotated[list[str], typer.Option(metavar="TABLE", help="Table that it reads, the main one first.")],
    metric: Annotated[str, typer.Option(metavar="COLUMN", help="Number to compare with a limit.")] = "",
) -> None:
    """Start a detector: write its SQL and its cases as a skeleton that loads and passes."""
    from streamwarden.detectors.new import new_detector

    for file in new_detector(name, kind, reads, metric):
        out.print(f"wrote {escape(str(file.relative_to(SQL.parent)))}", soft_wrap=True)
    id_ = name.rpartition("/")[2]
    out.print("Replace the placeholders in capitals. Then:")
    out.print(
        f"  pytest tests/sql/test_detector_cases.py -k {id_}\n  make mutants ONLY={id_}\n  make docs", soft_wrap=True
    )
