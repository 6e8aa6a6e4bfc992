"""`streamwarden init`: from credentials and a bootstrap server to a config that works."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from streamwarden.base.config import CONFIG_ENV, SENT_CONFIG_ENV, Config, MskClusters, config_path, load_config
from streamwarden.base.config.load import validated
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.shared import out
from streamwarden.rendering.readable import counted

if TYPE_CHECKING:
    from streamwarden.cli.init.fleet import Fleet


@dataclass
class Wanted:
    """What is searched, by options or by answers to questions."""

    kafka: list[str] = field(default_factory=list)
    client: list[str] = field(default_factory=list)
    aws: bool = True
    region: list[str] = field(default_factory=list)
    role: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    port: list[int] = field(default_factory=list)
    scan: bool = True
    kubernetes: bool = True
    context: list[str] = field(default_factory=list)


def init(
    file: Annotated[Path | None, typer.Argument(help="The file to write. Default: the config in use.")] = None,
    kafka: Annotated[
        list[str] | None, typer.Option(help="A Kafka cluster: [NAME=]HOST:PORT[,HOST:PORT…]. Repeatable.")
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(help="librdkafka property, KEY=VALUE; a secret as '${NAME}'. Repeatable."),
    ] = None,
    region: Annotated[
        list[str] | None, typer.Option(help="AWS region to search. Repeatable. Default: the region of the credentials.")
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="ARN of a role to assume, one for each further account. Repeatable.")
    ] = None,
    aws: Annotated[bool, typer.Option(help="Search the AWS accounts of the credentials and roles.")] = True,
    host: Annotated[
        list[str] | None, typer.Option(help="A further host with an agent or exporter. Repeatable.")
    ] = None,
    port: Annotated[list[int] | None, typer.Option(min=1, max=65535, help="A further port to try. Repeatable.")] = None,
    scan: Annotated[
        bool, typer.Option(help="Try the ports of agents, exporters, registries, and Connect on the hosts found.")
    ] = True,
    kubernetes: Annotated[
        bool, typer.Option(help="Search the Kubernetes cluster of the kubeconfig's current context, or of this pod.")
    ] = True,
    context: Annotated[
        list[str] | None, typer.Option(help="Context of the kubeconfig to search instead. Repeatable.")
    ] = None,
    migrate: Annotated[bool, typer.Option(help="Create the warehouse's tables.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Discover a fleet, write its config file, and probe it. In a terminal without options, it asks."""
    target = (file or config_path()).absolute()
    if target.exists() and not force:
        raise StreamwardenError(f"{target}: exists; use --force to overwrite the file, or name another one.")
    wanted = Wanted(
        kafka or [], client or [], aws, region or [], role or [], host or [], port or [], scan, kubernetes,
        context or [],
    )  # fmt: skip
    if not any((kafka, client, region, role, host, context)) and aws and sys.stdin.isatty():
        from streamwarden.cli.init.questions import asked

        wanted = asked()
    fleet = discover(wanted, target)
    if not (fleet.aws.accounts or fleet.kafka or any(one.namespaces for one in fleet.kubernetes)):
        reasons = "; ".join(f"{resource}: {reason}" for resource, reason, _ in fleet.notes())
        raise StreamwardenError(
            f"nothing to watch was found; name a cluster by --kafka HOST:PORT or --context,"
            f" or set AWS credentials. {reasons}"
        )
    _write(fleet, target, migrate)


def discover(wanted: Wanted, target: Path) -> Fleet:
    """Everything that the wanted searches find; what they do not is a note of the fleet.

    Raises:
        StreamwardenError: an option is wrong.
    """
    from streamwarden.cli.init import kafka
    from streamwarden.cli.init.fleet import Fleet
    from streamwarden.cli.init.ports import PORTS, scan

    fleet = Fleet(kafka=kafka.sections(wanted.kafka, wanted.client))
    settings = validated({"kafka": fleet.kafka}, target)
    with ThreadPoolExecutor(8) as pool:
        clusters = [pool.submit(kafka.gather, cluster) for cluster in settings.kafka]
        of_kubernetes = pool.submit(_search_kubernetes, fleet, wanted)
        if wanted.aws:
            _search_aws(fleet, wanted)
        of_kubernetes.result()
        fleet.clusters = [cluster.result() for cluster in clusters]
    for cluster in fleet.all_clusters:
        brokers = sum(map(len, cluster.brokers.values()))
        found = f"{counted(brokers, 'broker')}, {counted(cluster.topics, 'topic')}"
        _say(f"kafka {cluster.name}: {found}, clients on {counted(len(cluster.groups), 'host')}")
    if wanted.scan and (hosts_found := fleet.hosts(wanted.host)):
        ports = [*wanted.port, *PORTS]
        _say(f"ports: {counted(len(hosts_found), 'host')}, {counted(len(ports), 'port')} each")
        fleet.scan = scan(hosts_found, ports)
        for responder in fleet.scan.responders:
            _say(f"{responder.url}: {responder.role or responder.kind}")
    return fleet


def _search_kubernetes(fleet: Fleet, wanted: Wanted) -> None:
    if not (wanted.kubernetes or wanted.context):
        return
    from streamwarden.cli.init import kubernetes

    try:
        accesses = kubernetes.accesses(wanted.context)
    except StreamwardenError as error:
        if wanted.context:
            raise
        fleet.problems.append(("kubernetes", str(error), "correct the kubeconfig, or use --no-kubernetes"))
        return
    with ThreadPoolExecutor(max(1, min(len(accesses), 4))) as pool:
        fleet.kubernetes = list(pool.map(kubernetes.gather, accesses))
    for one in fleet.kubernetes:
        where = f" in {', '.join(one.namespaces)}" if one.namespaces else ""
        _say(f"kubernetes {one.access.name}: {one.found}{where}")


def _search_aws(fleet: Fleet, wanted: Wanted) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    from spark_apps.sources.kafka_client import clusters_of
    from streamwarden.cli.init import aws, kafka

    try:
        accounts = aws.accounts_of(wanted.role, wanted.region)
    except (BotoCoreError, ClientError) as error:
        fleet.problems.append(("aws", " ".join(str(error).split()), "set AWS credentials, or use --no-aws"))
        return
    except StreamwardenError as error:
        if wanted.role or wanted.region:
            raise
        fleet.problems.append(("aws", str(error), None))
        return
    config = Config(aws=accounts)
    with in_force(config):
        fleet.aws = aws.gather(config)
    entries = [MskClusters.model_validate(entry) for entry, _ in aws.msk_entries(fleet.aws.msk)]
    if any(entry.connect for entry in entries):
        config = config.model_copy(update={"msk": entries})
        with in_force(config), ThreadPoolExecutor(8) as pool:
            fleet.msk_clusters = list(pool.map(kafka.gather, clusters_of(config)))
    _say(
        f"aws {', '.join(account.account for account in accounts)}: "
        f"{counted(len(fleet.aws.instances), 'running instance')}, {counted(fleet.aws.volumes, 'volume')},"
        f" {counted(len(fleet.aws.msk), 'MSK cluster')}"
    )


@contextmanager
def in_force(config: Config) -> Iterator[None]:
    """Makes a config that is in no file the one that `load_config` returns, as a Spark driver does for its tasks."""
    before = os.environ.get(SENT_CONFIG_ENV)
    os.environ[SENT_CONFIG_ENV] = config.model_dump_json(exclude_unset=True)
    try:
        yield
    finally:
        os.environ.pop(SENT_CONFIG_ENV)
        if before is not None:
            os.environ[SENT_CONFIG_ENV] = before


def _write(fleet: Fleet, target: Path, migrate: bool) -> None:
    """Writes the file, probes it, and writes it again with what the probe found missing."""
    from streamwarden.cli.config import check
    from streamwarden.cli.init.write import text_of
    from streamwarden.cli.probe.table import answers_of, show

    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text_of(fleet))
    os.environ[CONFIG_ENV] = str(target)
    check(target)
    config = load_config()
    if migrate:
        from streamwarden.store.migrate import migrated_warehouse

        migrated_warehouse(config)
    answers = answers_of(config)
    target.write_text(text_of(fleet, answers))
    for resource, reason, action in fleet.notes():
        out.print(escape(f"{resource}: {reason}" + (f" → {action}" if action else "")), soft_wrap=True)
    show(answers)
    out.print(f"\nwrote {escape(str(target))}. Next: streamwarden run", soft_wrap=True)


def _say(line: str) -> None:
    out.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
