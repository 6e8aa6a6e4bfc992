"""Kafka: which operations the principal is authorized for.

Brokers omit topics and groups that the principal may not describe. The probe therefore describes a topic and a group
that do not exist: with Describe on all, the broker answers that there is none; otherwise it denies the request.
"""

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
from streamwarden.rendering.readable import counted

NONEXISTENT = "streamwarden-asks-what-it-may-describe"
NOT_AUTHORIZED = "not authorized"
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_UNREACHABLE = "check bootstrap_servers, name resolution, security groups, and security.protocol of the listener"


def questions(clusters: list[KafkaCluster]) -> Iterator[Question]:
    """One question for each cluster."""
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
        action = (
            "correct sasl.username and sasl.password of `client`"
            if "rejects the credentials" in problem
            else _UNREACHABLE
        )
        yield Answer(source, "Metadata", problem=problem, action=action)
        return
    topics = sorted(name for name, topic in metadata.topics.items() if topic.error is None)
    yield Answer(
        source, "Metadata", answer=f"{counted(len(metadata.brokers), 'broker')}, {counted(len(topics), 'topic')}"
    )
    admin = connection.admin
    nonexistent = TopicCollection([NONEXISTENT])
    yield _answer(connection, "Describe on topics", "--topic '*'", partial(admin.describe_topics, nonexistent))
    yield _answer(
        connection, "Describe on groups", "--group '*'", partial(admin.describe_consumer_groups, [NONEXISTENT])
    )
    for name in [name for name in topics if not name.startswith("__")][:1]:
        one = [ConfigResource(ConfigResource.Type.TOPIC, name)]
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
            action = _acl(cluster, f"--operation {asked.split()[0]} {of}")
            return Answer(source, asked, problem=NOT_AUTHORIZED, action=action)
        if code not in _UNKNOWN:
            return Answer(source, asked, problem=sentence(connection.gap(error)))
    return Answer(source, asked)


def _log_dirs(connection: Connection, broker: int) -> Answer:
    cluster = connection.cluster
    source, asked = f"kafka {cluster.name}", "DescribeLogDirs"
    try:
        with second_client(cluster) as client:
            [response] = client.describe_log_dirs(brokers=[broker])
    except CannotAsk as error:
        return Answer(source, asked, problem=f"kafka-python cannot request log directories: {error}")
    if response["log_dirs"]:
        return Answer(source, asked)
    return Answer(source, asked, problem=NOT_AUTHORIZED, action=_acl(cluster, "--operation Describe --cluster"))


def _reads(connection: Connection, topics: list[str]) -> Iterator[Answer]:
    """Whether the principal may read the topics that the sources read. Brokers report it; no record is read."""
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
        if operations is None or AclOperation.READ in operations:  # None: brokers before 2.3 do not report it
            may.append(topic)
            continue
        part = names.split(topic)
        is_prefix = part is not None and topic.startswith(f"{part.application_id}-")
        prefix = f"{shlex.quote(part.application_id)}- --resource-pattern-type prefixed" if part else ""
        action = _acl(cluster, f"--operation Read --topic {prefix if is_prefix else shlex.quote(topic)}")
        yield Answer(source, f"Read on {topic}", problem=NOT_AUTHORIZED, action=action)
    if may:
        yield Answer(source, f"Read on {may[0]}" + (f" and {len(may) - 1} more" if may[1:] else ""))


def _acl(cluster: KafkaCluster, right: str) -> str:
    """The command that grants a right, for example `--operation Read --topic orders`."""
    principal = shlex.quote(f"User:{cluster.client.get('sasl.username', 'STREAMWARDEN')}")
    return (
        f"kafka-acls.sh --bootstrap-server {cluster.bootstrap_servers} --command-config admin.properties --add"
        f" --allow-principal {principal} {right}"
    )
