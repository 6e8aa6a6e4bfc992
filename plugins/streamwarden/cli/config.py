"""`streamwarden config`: the config file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from streamwarden.base.config import CONFIG_ENV, Config, JmxEndpoint, KafkaCluster, config_path, load_config
from streamwarden.base.config.load import described
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import named_in_config
from streamwarden.cli.mistakes import mistakes
from streamwarden.cli.shared import out
from streamwarden.rendering.readable import counted

app = typer.Typer(help="The config file.", no_args_is_help=True)


@app.command()
def check(
    file: Annotated[Path | None, typer.Argument(help="The file. Default: the one in use.")] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Query every source once and show what works and what is missing.")
    ] = False,
) -> None:
    """Check a config file and everything it refers to: detectors, client properties, prices, target files."""
    from spark_apps.sources.kafka_client import Connection
    from spark_apps.sources.targets import jvms_of, msk_of, pods_of
    from streamwarden.causes.rule import params_in_force
    from streamwarden.detectors import load_detectors
    from streamwarden.store.prices import read_prices

    if file:
        os.environ[CONFIG_ENV] = str(file.resolve())  # for whoever looks for it on the way
    config = load_config()
    enabled = load_detectors(config=config)
    read_prices(named_in_config(config.ebs_prices))
    params_in_force(config)
    for cluster in _with_client_properties(config):
        # librdkafka checks its properties; nobody waits for an answer, and AWS is not asked for a token.
        Connection(cluster.model_copy(update={"aws_login": None}))
    jvms = jvms_of(config)
    subjects = frozenset(one.subject for one in load_detectors().values())
    if wrong := [described(config_path(), *mistake) for mistake in mistakes(config, subjects)]:
        raise StreamwardenError(f"{config_path()}: {'; '.join(wrong[:10])}.")
    out.print(f"{file or config_path()}: good. {_in_figures(config, jvms.endpoints, len(enabled))}", soft_wrap=True)
    gaps = [*((gap.resource, gap.reason) for gap in jvms.gaps), *msk_of(config).all_gaps]
    if pods := pods_of(config):
        gaps += pods.gaps
    # Gaps of the discovery of pods and MSK are JVMs' gaps, too.
    lines = dict.fromkeys(f"{resource}: {reason}" for resource, reason in gaps)
    for warning in [*_warnings(config, jvms.endpoints), *lines]:
        out.print(f"warning: {escape(warning)}", soft_wrap=True)
    if probe:
        from streamwarden.cli.probe.table import answers_of, show

        show(answers_of(config))


def _with_client_properties(config: Config) -> Iterator[KafkaCluster]:
    """Clusters of the config, and one for each section with properties of clusters that are discovered."""
    yield from config.kafka
    for number, entry in enumerate(config.msk):
        yield KafkaCluster(name=f"msk.{number}", bootstrap_servers="localhost:9092", client=entry.client)
    for one in config.kubernetes:
        yield KafkaCluster(name=one.name, bootstrap_servers="localhost:9092", client=one.kafka.client)


def _in_figures(config: Config, endpoints: Sequence[JmxEndpoint], detectors: int) -> str:
    from spark_apps.sources.kafka_client import clusters_of

    number = Counter(endpoint.role for endpoint in endpoints)
    hosts = f", {counted(number['node'], 'host')}" if number["node"] else ""
    return (
        f"{counted(len(clusters_of(config)), 'Kafka cluster')}, {counted(number['broker'], 'broker')} and"
        f" {counted(number['app'], 'application')} over JMX{hosts}, {counted(len(config.aws), 'AWS account')},"
        f" {counted(detectors, 'detector')}, tickets to {', '.join(config.tickets.all_trackers)}."
    )


def _warnings(config: Config, endpoints: Sequence[JmxEndpoint]) -> Iterator[str]:
    """What is allowed, and yet rarely meant."""
    if not (config.aws or config.kafka or config.msk or config.confluent or config.kubernetes or endpoints):
        yield "nothing is watched: no AWS account (`aws`), no Kafka cluster (`kafka`) and no JVM (`jmx`) is named."
    names: dict[frozenset[str], str] = {}
    for cluster in config.kafka:
        servers = frozenset(server.strip().lower() for server in cluster.bootstrap_servers.split(","))
        if (first := names.setdefault(servers, cluster.name)) != cluster.name:
            yield f"kafka clusters '{first}' and '{cluster.name}' have the same bootstrap_servers."
