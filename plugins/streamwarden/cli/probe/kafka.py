"""Kafka: what the principal may describe and read. What it may not describe brokers leave out in silence, so topics and
groups are asked for by a name that none has: who may describe all hears that there is none, others are refused."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, ConfigResource

from spark_apps.models.streams_topics import StreamsTopics
from spark_apps.sources.kafka_client import ANSWER_SECONDS, Connection
from spark_apps.sources.kafka_coordinators import OFFSETS_TOPIC
from spark_apps.sources.kafka_second_client import CannotAsk, second_client
from streamwarden.base.config import KafkaCluster, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.probe.result import Answer, Question, sentence

NOBODYS = "streamwarden-asks-what-it-may-describe"
NOT_ALLOWED = "not allowed"
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_UNREACHABLE = "look at bootstrap_servers, name resolution, security groups, and security.protocol of the listener"


def questions(clusters: list[KafkaCluster]) -> Iterator[Question]:
    """One for each cluster."""
    for cluster in clusters:
        yield Question(f"kafka {cluster.name}", partial(_ask, cluster))


def _ask(cluster: KafkaCluster) -> Iterator[Answer]:
    source = f"kafka {cluster.name}"
    try:
        connection = Connection(cluster)
        metadata = connection.metadata()
    except StreamwardenError as error:
        yield Answer(source, "Metadata", problem=str(error))
        return
    except KafkaException as error:
        problem = sentence(connection.gap(error))
        cure = "sasl.username and sasl.password of `client`" if "rejects the credentials" in problem else _UNREACHABLE
        yield Answer(source, "Metadata", problem=problem, cure=cure)
        return
    topics = sorted(name for name, topic in metadata.topics.items() if topic.error is None)
    yield Answer(source, "Metadata", told=f"{len(metadata.brokers)} brokers, {len(topics)} topics")
    admin = connection.admin
    nobodys = TopicCollection([NOBODYS])
    yield _answer(connection, "Describe on topics", "--topic '*'", partial(admin.describe_topics, nobodys))
    yield _answer(connection, "Describe on groups", "--group '*'", partial(admin.describe_consumer_groups, [NOBODYS]))
    for topic in [topic for topic in topics if not topic.startswith("__")][:1]:
        one = [ConfigResource(ConfigResource.Type.TOPIC, topic)]
        yield _answer(connection, "DescribeConfigs on topics", "--topic '*'", partial(admin.describe_configs, one))
    yield _log_dirs(connection, min(metadata.brokers))
    broker = [ConfigResource(ConfigResource.Type.BROKER, str(min(metadata.brokers)))]
    yield _answer(connection, "DescribeConfigs on the cluster", "--cluster", partial(admin.describe_configs, broker))
    yield from _reads(connection, topics)


def _answer(connection: Connection, asked: str, of: str, ask: Callable[..., dict[Any, Any]]) -> Answer:
    cluster = connection.cluster
    source = f"kafka {cluster.name}"
    try:
        for future in ask(request_timeout=ANSWER_SECONDS).values():
            future.result()
    except KafkaException as error:
        code = error.args[0].code()
        if code in _REFUSED:
            cure = _acl(cluster, f"--operation {asked.split()[0]} {of}")
            return Answer(source, asked, problem=NOT_ALLOWED, cure=cure)
        if code not in _UNKNOWN:
            return Answer(source, asked, problem=sentence(connection.gap(error)))
    return Answer(source, asked)


def _log_dirs(connection: Connection, broker: int) -> Answer:
    cluster = connection.cluster
    source, asked = f"kafka {cluster.name}", "DescribeLogDirs"
    try:
        with second_client(cluster) as client:
            [told] = client.describe_log_dirs(brokers=[broker])
    except CannotAsk as error:
        return Answer(source, asked, problem=f"kafka-python, which is asked for it, can't: {error}")
    if told["log_dirs"]:
        return Answer(source, asked)
    return Answer(source, asked, problem=NOT_ALLOWED, cure=_acl(cluster, "--operation Describe --cluster"))


def _reads(connection: Connection, topics: list[str]) -> Iterator[Answer]:
    """Whether the topics may be read whose records are: the brokers say it, nothing is read."""
    cluster, source = connection.cluster, f"kafka {connection.cluster.name}"
    names = StreamsTopics((), topics, load_config().jobs.changelog_patterns)
    wanted = [
        topic for topic in topics
        if topic == OFFSETS_TOPIC or names.is_called_changelog(topic) or names.kind(topic) == "checkpoint"
    ]  # fmt: skip
    if not wanted:
        return
    described = connection.admin.describe_topics(
        TopicCollection(wanted), include_authorized_operations=True, request_timeout=ANSWER_SECONDS
    )
    may: list[str] = []
    for topic, future in described.items():
        try:
            operations = future.result().authorized_operations
        except KafkaException as error:
            yield Answer(source, f"Read on {topic}", problem=sentence(connection.gap(error)))
            continue
        if operations is None or AclOperation.READ in operations:  # None: a broker before 2.3 doesn't say
            may.append(topic)
            continue
        part = names.split(topic)
        is_prefix = part is not None and topic.startswith(f"{part.application_id}-")
        prefix = f"{shlex.quote(part.application_id)}- --resource-pattern-type prefixed" if part else ""
        cure = _acl(cluster, f"--operation Read --topic {prefix if is_prefix else shlex.quote(topic)}")
        yield Answer(source, f"Read on {topic}", problem=NOT_ALLOWED, cure=cure)
    if may:
        yield Answer(source, f"Read on {may[0]}" + (f" and {len(may) - 1} more" if may[1:] else ""))


def _acl(cluster: KafkaCluster, right: str) -> str:
    """The command that grants it."""
    principal = shlex.quote(f"User:{cluster.client.get('sasl.username', 'STREAMWARDEN')}")
    return (
        f"kafka-acls.sh --bootstrap-server {cluster.bootstrap_servers} --command-config admin.properties --add"
        f" --allow-principal {principal} {right}"
    )
