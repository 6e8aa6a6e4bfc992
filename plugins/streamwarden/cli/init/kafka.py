"""Kafka clusters: brokers, and the hosts of consumer groups' members. No record is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from confluent_kafka import KafkaException

from spark_apps.sources.kafka_client import ANSWER_SECONDS, Connection
from streamwarden.base.config import KafkaCluster
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.probe.result import sentence

MAX_GROUPS = 2_000
"""Groups of which members are listed: some hosts of applications are enough to find the others' ports."""


@dataclass
class Cluster:
    """A cluster as its brokers describe it."""

    name: str
    cluster_id: str | None = None
    brokers: dict[str, list[int]] = field(default_factory=dict)
    """Advertised host → ids of the brokers there."""
    topics: int = 0
    groups: dict[str, set[str]] = field(default_factory=dict)
    """Host of members → the consumer groups there."""
    problems: list[str] = field(default_factory=list)


def gather(settings: KafkaCluster) -> Cluster:
    """Never raises: what did not respond is a problem."""
    found = Cluster(settings.name)
    try:
        connection = Connection(settings)
    except StreamwardenError as error:
        found.problems.append(str(error))
        return found
    try:
        metadata = connection.metadata()
    except KafkaException as error:
        found.problems.append(sentence(connection.gap(error)))
        return found
    found.cluster_id = getattr(metadata, "cluster_id", None)
    found.topics = len(metadata.topics)
    for broker in metadata.brokers.values():
        found.brokers.setdefault(str(broker.host), []).append(broker.id)
    try:
        found.groups = _members(connection)
    except KafkaException as error:
        found.problems.append(f"hosts of applications are not known: {sentence(connection.gap(error))}")
    return found


def _members(connection: Connection) -> dict[str, set[str]]:
    admin = connection.admin
    listed = admin.list_consumer_groups(request_timeout=ANSWER_SECONDS).result()
    groups = [group.group_id for group in islice(listed.valid, MAX_GROUPS)]
    hosts: dict[str, set[str]] = {}
    described: dict[str, Any] = {}
    for start in range(0, len(groups), 100):
        described |= admin.describe_consumer_groups(groups[start : start + 100], request_timeout=ANSWER_SECONDS)
    for group, future in described.items():
        try:
            members = future.result().members
        except KafkaException:
            continue  # the probe names the missing right
        for member in members:
            hosts.setdefault(member.host.lstrip("/"), set()).add(group)
    return hosts


def sections(servers: Sequence[str], properties: Sequence[str]) -> list[dict[str, Any]]:
    """Entries under `kafka` of the options `--kafka [NAME=]HOST:PORT,…` and `--client KEY=VALUE`.

    Raises:
        StreamwardenError: one line with option, value, and how to write it.
    """
    client = dict(_property(one) for one in properties)
    entries: list[dict[str, Any]] = []
    for number, text in enumerate(servers, 1):
        name, is_named, addresses = text.rpartition("=")
        if not all(re.fullmatch(r"\[?[\w.:-]+\]?:\d{1,5}", server.strip()) for server in addresses.split(",")):
            raise StreamwardenError(f"--kafka {text}: write [NAME=]HOST:PORT[,HOST:PORT…].")
        entry = {"name": name if is_named else "kafka" if number == 1 else f"kafka-{number}"}
        entries.append(entry | {"bootstrap_servers": addresses} | ({"client": client} if client else {}))
    return entries


def _property(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise StreamwardenError(f"--client {key}: write KEY=VALUE, for example security.protocol=SASL_SSL.")
    is_secret = re.search(r"password|secret|token|sasl\.jaas|key\.pem|oauthbearer\.config", key)
    if is_secret and not re.fullmatch(r"\$\{\w+\}", value):
        example = re.sub(r"\W", "_", key).upper()
        raise StreamwardenError(
            f"--client {key}: a secret is not written to the file; set it in the environment and write"
            f" --client '{key}=${{{example}}}'."
        )
    return key, value
