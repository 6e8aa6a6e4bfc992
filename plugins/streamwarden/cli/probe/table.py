"""The table that `config check --probe` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from spark_apps.sources.kafka_client import clusters_of
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.probe import aws, jvms, kafka, msk, services
from streamwarden.cli.probe.result import Answer, ask_all
from streamwarden.cli.shared import out


def probe(config: Config) -> None:
    """Asks every source of the config once and prints what they answered.

    Raises:
        StreamwardenError: something doesn't work.
    """
    asked = [*aws.questions(config.aws), *msk.questions(config), *kafka.questions(clusters_of(config))]
    asked += jvms.questions(config)
    answers = ask_all([*asked, *services.questions(config)])
    _print(answers)
    if failed := sum(answer.problem is not None for answer in answers):
        raise StreamwardenError(f"{failed} of {len(answers)} questions failed: see the lines in red.")


def _print(answers: Sequence[Answer]) -> None:
    columns = (Column(name, overflow="fold") for name in ("source", "asked", "answer"))
    table = Table(*columns, box=None, pad_edge=False)
    cures: dict[str, dict[str, None]] = {}
    for answer in answers:
        told = f"[red]{escape(answer.problem)}[/]" if answer.problem else f"[green]{escape(answer.told)}[/]"
        table.add_row(escape(answer.source), escape(answer.asked), told)
        if answer.cure:
            cures.setdefault(answer.cure, {})[answer.source] = None
    out.print(table)
    if cures:
        out.print("\nTo mend it:")
    for cure, sources in cures.items():
        out.print(f"  {escape(', '.join(sources))}: {escape(cure)}", highlight=False, soft_wrap=True)
