"""`streamwarden config`: the config file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from streamwarden.base.config import CONFIG_ENV, config_path, load_config
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.cli.shared import out

app = typer.Typer(help="The config file.", no_args_is_help=True)


@app.command()
def check(
    file: Annotated[Path | None, typer.Argument(help="The file; else the one in force.")] = None,
) -> None:
    """Check a config file, with all that it names: detectors, clients' properties, prices, files of targets."""
    from spark_apps.sources.kafka_client import Connection
    from spark_apps.sources.targets import jvms_of
    from streamwarden.detectors import load_detectors
    from streamwarden.store.prices import read_prices

    if file:
        os.environ[CONFIG_ENV] = str(file.resolve())  # for whoever looks for it on the way
    config = load_config()
    enabled = load_detectors(config=config)
    read_prices(PROJECT_ROOT / config.ebs_prices)
    for cluster in config.kafka:
        Connection(cluster)  # librdkafka checks its properties; nobody waits for an answer
    jvms = jvms_of(config)
    number = Counter(endpoint.role for endpoint in jvms.endpoints)
    machines = f" and {number['node']} machines" if number["node"] else ""
    out.print(
        f"{file or config_path()}: good. {len(config.kafka)} Kafka clusters, {number['broker']} brokers and"
        f" {number['app']} applications by JMX{machines}, {len(config.aws)} AWS accounts,"
        f" {len(enabled)} detectors, tickets to {config.tickets.sink}.",
        soft_wrap=True,
    )
    for gap in jvms.gaps:
        out.print(f"{escape(gap.resource)}: {escape(gap.reason)}", soft_wrap=True)
