"""`streamwarden whatif`: whether brokers have the capacity for a change, by the 95th percentile of 7 days."""

from __future__ import annotations

from typing import Annotated

import typer

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.cli.shared import JsonOption, out
from streamwarden.rendering.readable import counted, readable
from streamwarden.store.queries import Row, ask

app = typer.Typer(help="Estimate the effect of a change on brokers.", no_args_is_help=True)
_MOST, _MOST_PARTITIONS = 0.8, 4000
_COLUMNS = (
    ("CPU", "cpu_ratio", "cpu_after_ratio"), ("bytes in", "bytes_in_per_second", "bytes_in_after_per_second"),
    ("bytes out", "bytes_out_per_second", "bytes_out_after_per_second"),
    ("partitions", "partitions", "partitions_after"), ("disk free", "usable_bytes", "usable_after_bytes"),
    ("network", "network_ratio", "network_after_ratio"), ("open files", "open_files_ratio", "open_files_after_ratio"),
)  # fmt: skip


@app.callback()
def _group() -> None:
    """Makes Typer keep the command's name although it is the only one."""


@app.command()
def topic(
    cluster: Annotated[str, typer.Option(help="Kafka cluster.")],
    partitions: Annotated[int, typer.Option(min=1, help="Number of partitions.")],
    mb_per_second: Annotated[float, typer.Option(min=0, help="Peak produce rate in MB/s (10⁶ bytes).")],
    replicas: Annotated[int, typer.Option(min=1, help="Replicas of each partition.")] = 3,
    readers: Annotated[int, typer.Option(min=0, help="Number of consumer groups that read the whole topic.")] = 1,
    retention_hours: Annotated[float, typer.Option(min=0, help="Retention in hours.")] = 168,
    as_json: JsonOption = False,
) -> None:
    """Check whether the brokers of a cluster have the capacity for one more topic."""
    from rich.table import Table

    with shared.warehouse().connect() as connection:
        brokers = ask(
            connection, "plans/whatif_topic", cluster=cluster, partitions=partitions, replicas=replicas,
            readers=readers, bytes_per_second=mb_per_second * 1e6, retention_hours=retention_hours,
        )  # fmt: skip
        if not brokers:
            shared.require_cluster(connection, cluster, "--cluster")
    if not brokers:
        raise StreamwardenError(f"--cluster {cluster}: has no brokers in the newest gathered hour.")
    if as_json:
        shared.print_json(brokers)
        return
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
    """A sentence for each limit that is exceeded and for each broker with unknown metrics.

    Args:
        brokers: rows of `plans/whatif_topic`.
        replicas: replication factor of the new topic.
    """
    lines = []
    if replicas > len(brokers):
        lines.append(
            f"The topic needs {counted(replicas, 'replica')}; the cluster has {counted(len(brokers), 'broker')}."
        )
    for row in brokers:
        name = f"Broker {row['broker_id']}"
        for heading, column in (("CPU", "cpu"), ("network", "network"), ("open files", "open_files")):
            after, one_lost = row[f"{column}_after_ratio"], row[f"{column}_one_lost_ratio"]
            if _above(after, _MOST):
                lines.append(f"{name}: {heading} {readable('cpu_ratio', after)[1]}, above the limit of 80 %.")
            elif _above(one_lost, _MOST):
                lines.append(f"{name}: {heading} {readable('cpu_ratio', one_lost)[1]} if another broker fails.")
        if row["usable_after_bytes"] is not None and row["usable_after_bytes"] <= 0:
            lines.append(f"{name}: its disk fills up before the retention is reached.")
        if _above(row["partitions_after"], _MOST_PARTITIONS):
            lines.append(
                f"{name}: {readable('partitions', row['partitions_after'])[1]} partitions, above the limit of 4,000."
            )
        if unknown := [heading for heading, now, _ in _COLUMNS if row[now] is None]:
            lines.append(f"{name}: unknown: {', '.join(unknown)}.")
    return lines or ["The brokers have the capacity."]


def _above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit
