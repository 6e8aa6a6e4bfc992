"""Schema Registries, Connect clusters, trackers, and the warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from spark_apps.sources.confluent_metrics import LATENCY, MetricsApi
from spark_apps.sources.kafka_connect import ConnectApi
from spark_apps.sources.rest_api import Refused
from spark_apps.sources.schema_registry import open_registry
from streamwarden.base.config import Config, ConnectCluster, KafkaCluster
from streamwarden.base.config.confluent import ConfluentCluster
from streamwarden.base.config.trackers import Tracker
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import open_warehouse
from streamwarden.cli.probe.result import Answer, Question
from streamwarden.rendering.readable import counted
from streamwarden.store.migrate import require_migrated
from streamwarden.tickets.sinks import open_sink


def questions(config: Config) -> Iterator[Question]:
    """One question for each Schema Registry, Connect cluster, and tracker, and for the warehouse."""
    for cluster in config.kafka:
        if cluster.schema_registry:
            yield Question(f"schema registry of {cluster.name}", partial(_registry, cluster))
        for connect in cluster.connect:
            yield Question(
                f"Connect cluster {connect.name} of {cluster.name}", partial(_connect, cluster.name, connect)
            )
    for entry in config.confluent:
        yield Question(f"confluent {entry.cluster}", partial(_confluent, entry))
    for name, settings in config.tickets.all_trackers.items():
        yield Question(f"tracker {name}", partial(_tracker, name, settings))
    yield Question("warehouse", partial(_warehouse, config))


def _registry(cluster: KafkaCluster) -> Iterator[Answer]:
    source, registry = f"schema registry of {cluster.name}", None
    try:
        registry = open_registry(cluster)
        level, page = registry.compatibility(), next(registry.schemas(), [])
        yield Answer(source, "GET /config", answer=f"level {level}")
        yield Answer(source, "GET /schemas", answer=f"{len(page)} schemas in a page")
    except (Refused, StreamwardenError) as error:
        rejected = "rejected user and password" in str(error)
        action = "correct `user` and `password` of `schema_registry`; the user must be allowed to read subjects"
        yield Answer(source, "GET /config, /schemas", problem=f"{error}", action=action if rejected else None)
    finally:
        if registry:
            registry.close()


def _connect(cluster: str, connect: ConnectCluster) -> Iterator[Answer]:
    source, asked, api = f"Connect cluster {connect.name} of {cluster}", "GET /connectors", None
    try:
        api = ConnectApi(cluster, connect)
        named = {row["connector"] for row in api.connectors()}
        yield Answer(source, asked, answer=f"{len(named)} connectors")
    except Refused as error:
        action = f"correct `url`, `user`, and `password` of `connect` {connect.name}: the REST API of a worker"
        yield Answer(source, asked, problem=str(error), action=action)
    finally:
        if api:
            api.close()


def _confluent(entry: ConfluentCluster) -> Iterator[Answer]:
    source, asked = f"confluent {entry.cluster}", "bytes by topic"
    api = None
    try:
        api = MetricsApi(entry)
        end = datetime.now(UTC).replace(second=0, microsecond=0) - LATENCY
        found = api.by_topic("received_bytes", end - timedelta(hours=1), end)
        yield Answer(source, asked, answer=f"{counted(len(found), 'topic')} with bytes in")
    except Refused as error:
        action = "docs/connect/confluent-cloud.md: it needs a Cloud API key with the role MetricsViewer"
        yield Answer(source, asked, problem=str(error), action=action)
    finally:
        if api:
            api.close()


def _tracker(name: str, settings: Tracker) -> Iterator[Answer]:
    source, asked = f"tracker {name}", "login and project"
    try:
        yield Answer(source, asked, answer=open_sink(name, settings).check())
    except StreamwardenError as error:
        action = f"see docs/tickets.md, section {settings.kind}, for the settings and rights that it needs"
        yield Answer(source, asked, problem=str(error), action=action)


def _warehouse(config: Config) -> Iterator[Answer]:
    warehouse = open_warehouse(config)
    with warehouse.connect() as connection:
        version = connection.exec_driver_sql("show server_version").scalar_one()
        database, user, may_create = connection.exec_driver_sql(
            "select current_database(), current_user, has_database_privilege(current_database(), 'create')"
        ).one()
    yield Answer("warehouse", "connect", answer=f"PostgreSQL {version}")
    if may_create:
        yield Answer("warehouse", "create schemas")
    else:
        problem = f"user {user} may not create schemas in database {database}"
        action = f'in psql, as the owner of the database: grant create on database "{database}" to "{user}";'
        yield Answer("warehouse", "create schemas", problem=problem, action=action)
    try:
        require_migrated(warehouse)
        yield Answer("warehouse", "its tables")
    except StreamwardenError as error:
        yield Answer("warehouse", "its tables", problem=str(error), action="streamwarden migrate")
