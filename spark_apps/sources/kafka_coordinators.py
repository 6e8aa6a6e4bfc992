"""Data that only group coordinators have: the list of groups and their details. Complete, or with a gap.

A group's coordinator is the leader of its partition of `__consumer_offsets`. If that broker dies, no broker knows
the group until a replica has taken over and loaded the partition, and the other brokers list theirs as if they were
all. So incomplete data is requested again, for PATIENCE_SECONDS.

confluent-kafka 2.16 aborts its process if a request to a coordinator cannot be sent (confluentinc/librdkafka#5397),
and on commits with null metadata. So groups are queried in a child process; if it dies, the groups are bisected
until the culprit is found.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from streamwarden.base.config import KafkaCluster

from spark_apps.sources.kafka_client import ANSWER_SECONDS, PATIENT_SECONDS, Connection, cluster_named
from spark_apps.sources.kafka_second_client import CannotAsk, second_client

OFFSETS_TOPIC = "__consumer_offsets"
PATIENCE_SECONDS = 20
"""A dead broker is replaced within 9 s by default; then its successors load its groups."""
_PAUSE_SECONDS = 2
_GROUPS_AT_ONCE = 100
_CHILD_SECONDS = 2 * ANSWER_SECONDS
"""Longer than its request timeouts: a child that runs longer is stuck."""
_DIED = "missing: the Kafka client crashes on this group (coordinator not available, or null metadata)."
_PASSING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._WAIT_COORD,
)

Ask = Callable[[Connection, list[str], int], dict[str, Future[Any]]]
"""Sends a request for each of these groups, with a timeout in seconds."""
Read = Callable[[Any], Any]
"""The part of a response that is kept: plain data."""


@dataclass(frozen=True)
class Groups:
    """Protocol (classic, consumer) by group, state by streams group and by share group, and why the list may be
    incomplete."""

    protocols: dict[str, str]
    streams: dict[str, str]
    shares: dict[str, str]
    gaps: list[str]


@dataclass(frozen=True)
class _Refusal:
    gap: str
    may_pass: bool


def list_groups(connection: Connection, deadline: float) -> Groups:
    """The groups of all coordinators; until `deadline` (monotonic) those that do not respond are queried again.

    Brokers learn of a new leader one after another, and a broker that does not know yet which groups it coordinates
    lists none of them, without an error: after any error, only a second listing without errors counts.
    """
    protocols: dict[str, str] = {}
    calm_looks, enough = 0, 1
    while True:
        offsets = connection.metadata(OFFSETS_TOPIC).topics[OFFSETS_TOPIC]  # fails early if the cluster is down
        listing = connection.admin.list_consumer_groups(request_timeout=ANSWER_SECONDS).result()
        protocols |= {group.group_id: group.type.name.lower() for group in listing.valid}
        leaderless = [p.id for p in offsets.partitions.values() if p.leader < 0]
        calm = not leaderless and not any(_may_pass(error) for error in listing.errors)
        if not calm or any(len(p.isrs) < len(p.replicas) for p in offsets.partitions.values()):
            enough = 2
        calm_looks = calm_looks + 1 if calm else 0
        if calm_looks == enough or time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_SECONDS)
        connection = Connection(connection.cluster)
    name = connection.cluster.name
    gaps = [f"{connection.gap(error)} A broker did not list its groups." for error in listing.errors]
    gaps += [
        f"failed: {OFFSETS_TOPIC}-{p} of cluster '{name}' has no leader; its groups are unknown." for p in leaderless
    ]
    others = {} if gaps else _other_groups(connection.cluster)
    return Groups(protocols, others.get("streams", {}), others.get("share", {}), sorted(set(gaps)))


def _other_groups(cluster: KafkaCluster) -> dict[str, dict[str, str]]:
    """By type, states of the groups that confluent-kafka leaves out of its listings: of the Kafka Streams protocol
    (type streams, KIP-1071), and share groups (type share, KIP-932).

    If they cannot be listed there is no gap: `__consumer_offsets` shows those that commit, and that they were not
    listed.
    """
    try:
        with second_client(cluster) as client:
            listed = client.list_groups()
    except CannotAsk:
        return {}
    states: dict[str, dict[str, str]] = {}
    for group in listed:
        states.setdefault(str(group.get("group_type")), {})[group["group_id"]] = group["group_state"].upper()
    return states


def ask_groups(
    cluster: str, groups: list[str], ask: Ask, read: Read, deadline: float
) -> tuple[dict[str, Any], dict[str, str]]:
    """Details and gaps by group. A second attempt has a longer timeout."""
    answers: dict[str, Any] = {}
    gaps: dict[str, str] = {}
    died: set[str] = set()
    queue = [(groups[i : i + _GROUPS_AT_ONCE], ANSWER_SECONDS) for i in range(0, len(groups), _GROUPS_AT_ONCE)]
    while queue:
        some, seconds = queue.pop(0)
        answered = _in_child(partial(_ask_groups, cluster, some, seconds, ask, read), seconds)
        if answered is None and len(some) > 1 and time.monotonic() < deadline:
            queue += [(some[: len(some) // 2], seconds), (some[len(some) // 2 :], seconds)]
            continue
        if answered is None:
            answered = {group: _Refusal(_DIED, may_pass=group not in died) for group in some}
            died.update(some)
        refused = {group: answer for group, answer in answered.items() if isinstance(answer, _Refusal)}
        answers |= {group: answer for group, answer in answered.items() if group not in refused}
        again = [group for group, refusal in refused.items() if refusal.may_pass]
        if again and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
            queue.append((again, PATIENT_SECONDS))
        gaps |= {group: refusal.gap for group, refusal in refused.items()}
    return answers, {group: gap for group, gap in gaps.items() if group not in answers}


def _ask_groups(cluster: str, groups: list[str], seconds: int, ask: Ask, read: Read) -> dict[str, Any]:
    connection = Connection(cluster_named(cluster))
    answered: dict[str, Any] = {}
    for group, future in ask(connection, groups, seconds).items():
        try:
            answered[group] = read(future.result())
        except KafkaException as error:
            answered[group] = _Refusal(connection.gap(error), _may_pass(error))
    return answered


def _may_pass(error: KafkaError | KafkaException) -> bool:
    cause = error.args[0] if isinstance(error, KafkaException) else error
    return cause.code() in _PASSING


def _in_child(work: Callable[[], Any], seconds: int) -> Any:
    """Result of the work in a forked process; None if that died, or is stuck after these seconds."""
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)

    def run() -> None:
        """Runs the work in the child."""
        gc.disable()  # a garbage collection touches, and so copies, all of the parent's memory
        sending.send(work())

    child = fork.Process(target=run, daemon=True)
    child.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(seconds + _CHILD_SECONDS) else None
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()
        receiving.close()
