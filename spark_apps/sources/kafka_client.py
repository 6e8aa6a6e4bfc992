"""Shared parts of the Kafka sources: clients by cluster name, bounded calls, and one message per kind of failure.

Properties (and so credentials) come from the config on the host of the task, never from an option. A client that was
used while topics were being created caches outdated metadata for minutes, so every read creates a new one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa
from confluent_kafka import OFFSET_INVALID, Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, OffsetSpec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.base.config import Config, KafkaCluster, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import gap_of_present

from spark_apps.sources.read_source import read_source

ANSWER_SECONDS = 7
PATIENT_SECONDS = 30
"""The timeout of a second attempt, as in Kafka's own clients: a broker with a throttled disk responds, but late."""
FIRST_LOOK_SECONDS = 2
QUICK_SECONDS = 3
REQUESTS_AT_ONCE = 8
PARTITIONS_PER_REQUEST = 200  # the client's CPU for 10,000: 0.34 s in one request, 0.05 s in ten, 0.03 s in fifty

SILENT = logging.getLogger("streamwarden.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False

_UNREACHABLE = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT_QUEUE,
)
_HOPELESS = (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE)
_LEADERLESS = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Describe (and Read on __consumer_offsets) on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Describe on the group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Describe on the cluster",
}


def names_of(config: Config) -> list[str]:
    """Names of all clusters that Kafka's protocol is spoken with: under `kafka`, and discovered ones."""
    return [cluster.name for cluster in clusters_of(config)]


def clusters_of(config: Config) -> list[KafkaCluster]:
    """Those clusters."""
    clusters = list(config.kafka)
    if config.msk:
        from spark_apps.sources.msk_discovery import msk_kafka_clusters  # slow to import: only where it is asked for

        clusters += msk_kafka_clusters(config)
    if config.kubernetes:
        from spark_apps.sources.kube.discover import kafka_clusters

        taken = {cluster.name for cluster in clusters}
        clusters += [cluster for cluster in kafka_clusters(config) if cluster.name not in taken]
    return clusters


def cluster_named(name: str) -> KafkaCluster:
    """The cluster with this name in the config.

    Raises:
        StreamwardenError: there is none.
    """
    config = load_config()
    for cluster in config.kafka:  # clusters of the config need no request to AWS
        if cluster.name == name:
            return cluster
    for cluster in clusters_of(config):
        if cluster.name == name:
            return cluster
    raise StreamwardenError(f"kafka: no cluster is named '{name}' in the config.")


def _login(cluster: KafkaCluster) -> dict[str, Any]:
    """Properties by which AWS logs in, where the cluster is one of Amazon MSK."""
    if cluster.aws_login is None:
        return {}
    from spark_apps.sources.kafka_login import login_properties  # slow to import: only where it is asked for

    try:
        return login_properties(cluster.aws_login)
    except StreamwardenError as error:
        raise StreamwardenError(f"kafka cluster '{cluster.name}': {error}") from None


class Connection:
    """An admin client that keeps errors of its background threads for the message of a gap.

    It also keeps the partitions for which even a patient attempt returned no offsets: they are not waited for again.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster = cluster
        self.complaints: list[KafkaError] = []
        self.silent: dict[tuple[str, int], BaseException] = {}
        self.properties: dict[str, Any] = {
            "socket.connection.setup.timeout.ms": str(PATIENT_SECONDS * 1000),
            "socket.timeout.ms": str(PATIENT_SECONDS * 1000),
            **_login(cluster),
            **cluster.client,
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.id": cluster.client.get("client.id", "streamwarden"),
            "error_cb": self.complaints.append,
        }
        try:
            self._admin = AdminClient(dict(self.properties), logger=SILENT)
        except (KafkaException, ValueError) as error:
            raise StreamwardenError(f"kafka cluster '{cluster.name}': {_text(error)}") from None

    @property
    def admin(self) -> AdminClient:
        """The client. Each use serves its callbacks, so that a token that is about to expire is replaced."""
        self._admin.poll(0)
        return self._admin

    def metadata(self, topic: str = "") -> ClusterMetadata:
        """Brokers, topics, partitions, and leaders. Call it first: it fails early if the cluster is down."""
        which = {"topic": topic} if topic else {}
        try:
            return self.admin.list_topics(**which, timeout=FIRST_LOOK_SECONDS)
        except KafkaException:
            self.admin.poll(0)  # serves error_cb
            if any(complaint.code() in _HOPELESS for complaint in self.complaints):
                raise
        return self.admin.list_topics(**which, timeout=PATIENT_SECONDS)  # the first attempt may have used a slow broker

    def refusing(self, metadata: ClusterMetadata) -> set[int]:
        """Brokers that refused connections."""
        self.admin.poll(0)  # serves error_cb
        failed = [complaint.str() for complaint in self.complaints if complaint.code() == KafkaError._TRANSPORT]
        brokers = metadata.brokers.values()
        return {broker.id for broker in brokers if any(f"{broker.host}:{broker.port}" in text for text in failed)}

    def gap(self, error: BaseException | KafkaError) -> str:
        """`failed: <message>` for an error of this cluster."""
        self.admin.poll(0)  # serves error_cb
        cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
        code = cause.code() if isinstance(cause, KafkaError) else None
        if code in _FORBIDDEN:
            return f"failed: cluster '{self.cluster.name}' denied access; grant {_FORBIDDEN[code]}."
        rejected = [c for c in self.complaints if c.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)]
        if rejected:
            return f"failed: cluster '{self.cluster.name}' rejects the credentials: {_plain(rejected[0].str())}."
        if code in _UNREACHABLE:
            seen = next((c.str() for c in self.complaints if c.code() == KafkaError._TRANSPORT), "")
            seen = f" ({_plain(seen)})" if seen else ""
            return (
                f"failed: no broker of cluster '{self.cluster.name}' at {self.cluster.bootstrap_servers}"
                f" responded{seen}."
            )
        return f"failed: cluster '{self.cluster.name}': {_plain(_text(error))}."


def unreadable(error: Exception) -> str:
    """The gap for a response with unexpected content."""
    of_python = [line.strip() for line in str(error).splitlines() if "Error: " in line]  # Spark adds a stack trace
    reason = of_python[-1] if of_python else f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"failed: unreadable data: {reason[:200]}"


def _text(error: BaseException | KafkaError) -> str:
    cause = error.args[0] if isinstance(error, BaseException) and error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)


def _plain(text: str) -> str:
    """librdkafka's message without its thread names and its 'after 0ms in state …'."""
    text = " ".join(text.split())
    text = text.split(" (after ")[0]
    return text.rsplit("]: ", 1)[-1].rstrip(".")


Specs = Mapping[str, tuple[int, bool, list[tuple[str, int]]]]
"""Offsets to request, by name: a time in milliseconds, or OFFSET_BEGINNING or OFFSET_END; whether only committed
records count; and the partitions."""


@dataclass(frozen=True)
class Answer:
    """Offset and timestamp of a partition; -1: none."""

    offset: int
    timestamp_ms: int


def list_offsets(
    connection: Connection, asked: Mapping[tuple[str, int], OffsetSpec], *, committed_only: bool = False
) -> dict[tuple[str, int], Answer | BaseException]:
    """Offsets by spec, in concurrent requests of bounded size. A failure is the value of its partition.

    Partitions without a leader and deleted partitions fail the whole request that contains them. Failed partitions are
    requested once more, with a longer timeout if their leader is reachable, without those that have no leader in the
    cluster's metadata; by then an election may be over.
    """
    isolation = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
    silent = connection.silent.keys() & asked.keys()
    answers: dict[tuple[str, int], Answer | BaseException] = {key: connection.silent[key] for key in silent}
    quick = _list_offsets(connection, {key: asked[key] for key in asked.keys() - silent}, isolation, ANSWER_SECONDS)
    answers |= quick
    failed = [key for key, answer in quick.items() if isinstance(answer, BaseException)]
    if not failed or (connection.complaints and all(isinstance(a, BaseException) for a in answers.values())):
        return answers
    metadata = connection.metadata()
    down = connection.refusing(metadata)
    leaders = {(topic, partition): leader for topic, partition, leader in led_partitions(metadata) if leader >= 0}
    late: dict[tuple[str, int], Answer | BaseException] = {}
    for seconds, is_down in ((ANSWER_SECONDS, True), (PATIENT_SECONDS, False)):
        again = {key: asked[key] for key in failed if key in leaders and (leaders[key] in down) == is_down}
        late |= _list_offsets(connection, again, isolation, seconds)
    connection.silent |= {key: answer for key, answer in late.items() if isinstance(answer, BaseException)}
    return answers | late


class OffsetReaders:
    """Clients that request offsets of all partitions at once.

    They use half the CPU of `list_offsets`, which creates a future per response; but one failure fails all of it. A
    context: they connect at the first request, and are reused. A client looks up its group coordinator, which makes
    a cluster without groups create `__consumer_offsets`; a cluster without partitions is therefore not queried.
    """

    def __init__(self, connection: Connection) -> None:
        self._properties = connection.properties | {"group.id": "streamwarden"}  # nothing is joined or committed
        self._of: dict[bool, Consumer] = {}

    def __enter__(self) -> OffsetReaders:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._of.values():
            reader.close()

    def ask(self, specs: Specs) -> dict[str, dict[tuple[str, int], int]] | None:
        """Offsets of all these partitions by name of spec. None: not all were returned.

        Those of committed records are requested last: a last stable offset that was read before the log end would be
        below it wherever records arrive.
        """
        found: dict[str, dict[tuple[str, int], int]] = {name: {} for name in specs}
        if not any(keys for _, _, keys in specs.values()):
            return found
        for isolation in () if self._of else ("read_uncommitted", "read_committed"):
            settings = self._properties | {"isolation.level": isolation}
            self._of[isolation == "read_committed"] = Consumer(settings, logger=SILENT)
        try:
            with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                for level, reader in self._of.items():
                    requests = [
                        (name, [TopicPartition(*key, at) for key in keys[i : i + PARTITIONS_PER_REQUEST]])
                        for name, (at, committed_only, keys) in specs.items()
                        if committed_only == level
                        for i in range(0, len(keys), PARTITIONS_PER_REQUEST)
                    ]
                    answers = pool.map(
                        partial(reader.offsets_for_times, timeout=QUICK_SECONDS), [places for _, places in requests]
                    )
                    for (name, _), places in zip(requests, answers, strict=True):
                        if any(place.error or place.offset == OFFSET_INVALID for place in places):
                            return None
                        found[name].update(((place.topic, place.partition), place.offset) for place in places)
        except KafkaException:
            return None
        return found


def led_partitions(metadata: ClusterMetadata) -> Iterator[tuple[str, int, int]]:
    """Topic, partition, leader (-1: none)."""
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            yield str(topic.topic), partition.id, partition.leader


def _list_offsets(
    connection: Connection, asked: Mapping[tuple[str, int], OffsetSpec], isolation: IsolationLevel, seconds: int
) -> dict[tuple[str, int], Answer | BaseException]:
    keys = sorted(asked)
    futures: dict[TopicPartition, Future[Any]] = {}
    for i in range(0, len(keys), PARTITIONS_PER_REQUEST):
        request = {TopicPartition(*key): asked[key] for key in keys[i : i + PARTITIONS_PER_REQUEST]}
        futures |= connection.admin.list_offsets(request, isolation_level=isolation, request_timeout=seconds)
    answers: dict[tuple[str, int], Answer | BaseException] = {}
    for where, future in futures.items():
        try:
            found = future.result()
            # For partitions of an unreachable leader the client returns an invalid offset, without an error.
            invalid = found.offset == OFFSET_INVALID
            answers[where.topic, where.partition] = _LEADERLESS if invalid else Answer(found.offset, found.timestamp)
        except KafkaException as error:
            answers[where.topic, where.partition] = error
    return answers


@dataclass
class ClusterPartition(InputPartition):
    """A share of the work: one cluster, or one slice of it."""

    cluster: str
    slice: int = 0
    slices: int = 1


class ClusterSource(DataSource):
    """Base of the Kafka sources. Option `clusters`: JSON list of names under `kafka` in the config; without it, all."""

    reader_type: ClassVar[type[ClusterReader]]

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader of the data source."""
        return self.reader_type(dict(self.options), schema)


class ClusterReader(DataSourceReader):
    """One task per cluster; a cluster that fails gives one gap row.

    A subclass that knows only the current state names its data in `only_present`; its option `hour` (ISO) is the
    hour of the run, and an hour that has ended gets a gap row. Without the option it reports the current state.
    """

    only_present: ClassVar[str | None] = None

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        named = options.get("clusters")
        self.clusters: list[str] = json.loads(named) if named else names_of(load_config())
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """One partition per cluster."""
        return [ClusterPartition(name) for name in self.clusters]

    @property
    def gap_of_hour(self) -> str | None:
        """Why it cannot report about the hour; null if it can."""
        if self.only_present is None or "hour" not in self.options:
            return None
        return gap_of_present(datetime.fromisoformat(self.options["hour"]), self.only_present)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of the partition's cluster."""
        if not isinstance(partition, ClusterPartition):  # Spark passes None if there are no partitions
            return
        if gap := self.gap_of_hour:
            yield from self.batches([self.gap_row(partition.cluster, partition.cluster, gap)])
            return
        try:
            connection = Connection(cluster_named(partition.cluster))
        except StreamwardenError as error:
            yield from self.batches([self.gap_row(partition.cluster, partition.cluster, f"failed: {error}")])
            return
        try:
            yield from self.read_cluster(connection, partition)
        except KafkaException as error:
            yield from self.batches([self.gap_row(partition.cluster, partition.cluster, connection.gap(error))])
        except Exception as error:  # clients may write any bytes: the other clusters are read
            yield from self.batches([self.gap_row(partition.cluster, partition.cluster, unreadable(error))])

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one cluster; raises KafkaException if the cluster as a whole does not respond.

        Not abstract: a reader of a service next to the cluster (its Schema Registry) has its own `read`.
        """
        raise NotImplementedError

    def gap_row(self, cluster: str, resource: str, gap: str) -> dict[str, Any]:
        """A row for data that could not be read."""
        return {"cluster": cluster, "resource": resource, "gap": gap}

    def batches(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Rows as Arrow; absent keys are null."""
        table = pa.Table.from_pylist(list(rows), schema=to_arrow_schema(self.schema))
        yield from table.to_batches()


def read_clusters(
    spark: SparkSession, source: type[ClusterSource], clusters: Iterable[str], **options: str | int
) -> DataFrame:
    """The frame of a Kafka source over these clusters."""
    named = {"clusters": json.dumps(sorted(clusters))}
    return read_source(spark, source(named | {key: str(value) for key, value in options.items()}))
