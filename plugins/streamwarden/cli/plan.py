"""`streamwarden plan`: what to do about a finding, as commands to paste. It prints them and never runs them."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.store.queries import Row, ask
from streamwarden.words.readable import counted, readable

app = typer.Typer(help="Print plans, as commands to paste. None is ever run.", no_args_is_help=True)
_ABANDONED = ("abandoned", "large")


@app.command()
def removal(
    application: Annotated[str, typer.Argument(metavar="APPLICATION", help="Its Kafka Streams application id.")],
    cluster: Annotated[str | None, typer.Option(help="Where several clusters have one of that id.")] = None,
) -> None:
    """Print how to remove the internal topics of an application that is gone."""
    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        topics = ask(connection, "plans/removal", application_id=application, cluster=cluster)
    clusters = sorted({row["cluster"] for row in topics})
    if not topics:
        raise StreamwardenError(f"{application}: no internal topic of it was there in the newest hour judged.")
    if len(clusters) > 1:
        raise StreamwardenError(f"{application}: is in {', '.join(clusters)}; say which: --cluster {clusters[0]}.")
    if topics[0]["because"] not in _ABANDONED:
        raise StreamwardenError(f"{application}: isn't abandoned: {topics[0]['reason'] or 'nothing was judged of it.'}")
    print("\n".join(removal_plan(application, clusters[0], topics, config)))


def removal_plan(application: str, cluster: str, topics: list[Row], config: Config) -> list[str]:
    """The lines: comments, and commands for a shell."""
    known = sum(row["log_bytes"] for row in topics if row["log_bytes"] is not None)
    servers = config.bootstrap_servers(cluster)
    partitions = sum(row["partitions"] for row in topics)
    names = [row["topic"] for row in topics]
    lines = [
        f"# {application} on {cluster}: {counted(len(topics), 'topic')}, {counted(partitions, 'partition')},"
        f" {readable('log_bytes', known)[1]} in all replicas.",
        f"# {topics[0]['reason']}",
        "# 1. Ask its owner. Then let the records expire: until here all can be undone.",
    ]
    lines += [
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {shlex.quote(name)}"
        " --add-config cleanup.policy=delete,retention.ms=60000"
        for name in names
    ]
    lines += [
        "# 2. Wait until the files are gone: brokers look every 5 minutes (log.retention.check.interval.ms).",
        f"kafka-log-dirs.sh --bootstrap-server {servers} --describe --topic-list {shlex.quote(','.join(names))}",
        "# 3. Delete the topics, then the group.",
    ]
    lines += [f"kafka-topics.sh --bootstrap-server {servers} --delete --topic {shlex.quote(name)}" for name in names]
    group = shlex.quote(application)
    return [*lines, f"kafka-consumer-groups.sh --bootstrap-server {servers} --delete --group {group}"]
