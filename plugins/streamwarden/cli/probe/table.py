"""The table that `config check --probe` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from spark_apps.sources.kafka_client import clusters_of
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.probe import aws, jvms, kafka, kubernetes, msk, services
from streamwarden.cli.probe.result import Answer, ask_all
from streamwarden.cli.shared import out
from streamwarden.rendering.readable import counted


def answers_of(config: Config) -> list[Answer]:
    """Sends the probe's requests to every source of the config, which must be the one in force."""
    asked = [*aws.questions(config.aws), *msk.questions(config), *kubernetes.questions(config)]
    asked += [*kafka.questions(clusters_of(config))]
    asked += jvms.questions(config)
    return ask_all([*asked, *services.questions(config)])


def show(answers: Sequence[Answer]) -> None:
    """Prints a table of the answers.

    Raises:
        StreamwardenError: at least one request failed.
    """
    _print(answers)
    if failed := sum(answer.problem is not None for answer in answers):
        raise StreamwardenError(f"{failed} of {counted(len(answers), 'request')} failed: see the lines in red.")


def _print(answers: Sequence[Answer]) -> None:
    columns = (Column(name, overflow="fold") for name in ("source", "asked", "answer"))
    table = Table(*columns, box=None, pad_edge=False)
    actions: dict[str, dict[str, None]] = {}
    for answer in answers:
        cell = f"[red]{escape(answer.problem)}[/]" if answer.problem else f"[green]{escape(answer.answer)}[/]"
        table.add_row(escape(answer.source), escape(answer.asked), cell)
        if answer.action:
            actions.setdefault(answer.action, {})[answer.source] = None
    out.print(table)
    if actions:
        out.print("\nTo fix this:")
    for action, sources in actions.items():
        out.print(f"  {escape(', '.join(sources))}: {escape(action)}", highlight=False, soft_wrap=True)
