"""`streamwarden whatif`: would the brokers bear it? By the 95th percentile of their last 7 days."""

from __future__ import annotations

from typing import Annotated

import typer

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import out
from streamwarden.rendering.readable import readable
from streamwarden.store.queries import Row, ask

app = typer.Typer(help="What a change would do to the brokers.", no_args_is_help=True)
_MOST, _MOST_PARTITIONS = 0.8, 4000
_COLUMNS = (
    ("CPU", "cpu_ratio", "cpu_after_ratio"), ("bytes in", "bytes_in_per_second", "bytes_in_after_per_second"),
    ("bytes out", "bytes_out_per_second", "bytes_out_after_per_second"),
    ("partitions", "partitions", "partitions_after"), ("disk free", "usable_bytes", "usable_after_bytes"),
    ("network", "network_ratio", "network_after_ratio"), ("open files", "open_files_ratio", "open_files_after_ratio"),
)  # fmt: skip


@app.callback()
def _group() -> None:
    """One command so far; without this it would have no name."""


@app.command()
def topic(
    cluster: Annotated[str, typer.Option(help="Kafka cluster.")],
    partitions: Annotated[int, typer.Option(min=1, help="Its partitions.")],
    mb_per_second: Annotated[float, typer.Option(min=0, help="Megabytes (10⁶ bytes) produced a second, at its peak.")],
    replicas: Annotated[int, typer.Option(min=1, help="Replicas of each partition.")] = 3,
    readers: Annotated[int, typer.Option(min=0, help="Groups that read all of it.")] = 1,
    retention_hours: Annotated[float, typer.Option(min=0, help="How long its records are kept.")] = 168,
) -> None:
    """Would the brokers of a cluster bear one topic more?"""
    from rich.table import Table

    with shared.warehouse().connect() as connection:
        brokers = ask(
            connection, "plans/whatif_topic", cluster=cluster, partitions=partitions, replicas=replicas,
            readers=readers, bytes_per_second=mb_per_second * 1e6, retention_hours=retention_hours,
        )  # fmt: skip
    if not brokers:
        raise StreamwardenError(f"--cluster {cluster}: no broker of it was gathered in the newest hour.")
    table = Table("broker", box=None, pad_edge=False)
    for heading, _, _ in _COLUMNS:
        table.add_column(heading, justify="right")
        table.add_column("after", justify="right")
    for row in brokers:
        cells = [readable(column, row[column])[1] for _, now, after in _COLUMNS for column in (now, after)]
        table.add_row(row["broker_id"], *cells)
    out.print(table)
    for line in verdict(brokers, replicas):
        out.print(line)


def verdict(brokers: list[Row], replicas: int) -> list[str]:
    """What speaks against it; what isn't known; else that nothing does."""
    lines = []
    if replicas > len(brokers):
        lines.append(f"It wants {replicas} replicas, the cluster has {len(brokers)} brokers.")
    for row in brokers:
        name = f"Broker {row['broker_id']}"
        for heading, column in (("CPU", "cpu"), ("network", "network"), ("open files", "open_files")):
            after, one_lost = row[f"{column}_after_ratio"], row[f"{column}_one_lost_ratio"]
            if _above(after, _MOST):
                lines.append(f"{name}: {heading} {readable('cpu_ratio', after)[1]}, more than 80 %.")
            elif _above(one_lost, _MOST):
                lines.append(f"{name}: {heading} {readable('cpu_ratio', one_lost)[1]} if a peer is lost.")
        if row["usable_after_bytes"] is not None and row["usable_after_bytes"] <= 0:
            lines.append(f"{name}: its disk is full before the retention is.")
        if _above(row["partitions_after"], _MOST_PARTITIONS):
            lines.append(f"{name}: {readable('partitions', row['partitions_after'])[1]} partitions; 4,000 are many.")
        if unknown := [heading for heading, now, _ in _COLUMNS if row[now] is None]:
            lines.append(f"{name}: not known: {', '.join(unknown)}.")
    return lines or ["Nothing that is known speaks against it."]


def _above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit
