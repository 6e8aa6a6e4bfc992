"""Topics, logs, groups, and registered schemas as the clusters list them, and groups that no coordinator lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.hours import HOUR

from spark_apps.apps.consumer_groups.rows import GROUP, PARTITION, PLACE, is_recent, logs, readable
from spark_apps.models.streams_topics import StreamsTopics
from spark_apps.runtime.warehouse_io import read_query
from spark_apps.sources.kafka_client import read_clusters
from spark_apps.sources.kafka_connect import KafkaConnect
from spark_apps.sources.schema_registry import SchemaRegistry

REMEMBERED = timedelta(hours=24)
"""For this long a group that no coordinator lists is reported as missing."""
CLOCKS_DIFFER = timedelta(minutes=1)
_OF_BROKER = ["cluster", "broker"]
_LAST = ("commit", "tombstone", "group_tombstone")


def topics(sources: dict[str, DataFrame], changelog_patterns: Sequence[str]) -> DataFrame:
    """Rows of inventory.topic_hourly; `changelog_patterns` from the config assign topics to Samza jobs."""
    topics = sources["kafka_topics"].filter("topic is not null")

    def config_of(name: str) -> Column:
        return f.col("configs").getItem(name).getField("value")

    is_changelog = f.col("kind") == "changelog"
    is_compacted = f.coalesce(config_of("cleanup.policy").contains("compact"), f.lit(True))
    return (
        topics.join(_owned(sources, list(changelog_patterns)), ["cluster", "topic"])
        .join(f.broadcast(_racks(sources)), "cluster", "left")
        # A topic with a changelog's name that is not compacted is not a changelog.
        .withColumn("kind", f.when(~is_changelog | is_compacted, f.col("kind")).otherwise("plain"))
        .select(
            "cluster",
            "topic",
            f.size("partitions").alias("partitions"),
            f.array_min(f.transform("partitions", lambda p: f.size(p.replicas))).alias("replication_factor"),
            _one_rack_partitions().alias("one_rack_partitions"),
            "kind",
            "application_id",
            config_of("cleanup.policy").alias("cleanup_policy"),
            config_of("retention.ms").cast("bigint").alias("retention_ms"),
            config_of("segment.bytes").cast("bigint").alias("segment_bytes"),
            *(
                f.nullif(config_of(f"{role}.replication.throttled.replicas"), f.lit("")).alias(
                    f"{role}_throttled_replicas"
                )
                for role in ("leader", "follower")
            ),
            f.to_json("configs").alias("configs"),
            "observed_at",
        )
    )


def _racks(sources: dict[str, DataFrame]) -> DataFrame:
    """Per cluster: map from broker id to rack, only brokers with a rack."""
    of_broker = sources["kafka_topics"].filter("rack is not null").select("cluster", "broker", "rack")
    return of_broker.groupBy("cluster").agg(
        f.map_from_entries(f.collect_list(f.struct("broker", "rack"))).alias("racks")
    )


def _one_rack_partitions() -> Column:
    """Number of `partitions` with all replicas in one rack, by `racks`."""
    several = f.filter("partitions", lambda p: f.size(p.replicas) > 1)
    racks = f.transform(several, lambda p: f.array_distinct(f.transform(p.replicas, lambda b: f.col("racks")[b])))
    one = f.size(f.filter(racks, lambda of: (f.size(of) == 1) & of[0].isNotNull()))
    # The rack of a broker is not known, and the others are in one rack at most.
    is_unknown = f.exists(
        racks, lambda of: f.exists(of, lambda rack: rack.isNull()) & (f.size(f.array_compact(of)) < 2)
    )
    return f.when((one > 0) | ~is_unknown, one)


def brokers(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of inventory.broker_hourly: brokers that are listed or have replicas."""
    held = (
        sources["kafka_topics"]
        .select("cluster", f.explode("partitions").alias("p"))
        .select("cluster", f.explode("p.replicas").alias("broker"))
        .groupBy("cluster", "broker")
        .agg(f.count("*").cast("int").alias("replicas"))
    )
    listed = (
        sources["kafka_topics"].filter("broker is not null").select("cluster", "broker", "host", "rack", "observed_at")
    )
    moves = sources["kafka_log_dirs"].filter("kind = 'broker'").select(*_OF_BROKER, "adding_replicas", "throttles")
    return (
        listed.join(held, _OF_BROKER, "left")
        .join(f.broadcast(moves), _OF_BROKER, "left")
        .select(
            "cluster",
            f.col("broker").alias("broker_id"),
            "host",
            "rack",
            f.col("host").isNotNull().alias("is_listed"),
            f.coalesce("replicas", f.lit(0)).alias("replicas"),
            "adding_replicas",
            "throttles",
            "observed_at",
        )
    )


def reassignments(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of inventory.reassignment_hourly: partitions with a reassignment in progress."""
    return (
        sources["kafka_log_dirs"]
        .filter("kind = 'reassignment'")
        .select(
            *PARTITION,
            *(f.to_json(name).alias(name) for name in ("replicas", "adding", "removing")),
            *("partition_bytes", "copied_bytes", "left_bytes", "observed_at"),
        )
    )


def _owned(sources: dict[str, DataFrame], changelog_patterns: list[str]) -> DataFrame:
    """Kind and application of each topic, by its name."""
    topics = sources["kafka_topics"].groupBy("cluster").agg(f.collect_set("topic").alias("topics"))
    groups = sources["kafka_groups"].groupBy("cluster").agg(f.collect_set("group_id").alias("groups"))

    def split(clusters: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster in (row for batch in clusters for row in batch.to_pylist()):
            names = StreamsTopics(cluster["groups"] or (), cluster["topics"], changelog_patterns)
            parts = {topic: names.split(topic) for topic in cluster["topics"]}
            columns = {
                "cluster": [cluster["cluster"]] * len(parts),
                "topic": list(parts),
                "kind": [names.kind(topic) for topic in parts],
                "application_id": [part and part.application_id for part in parts.values()],
            }
            yield pa.RecordBatch.from_pydict(columns, pa.schema(dict.fromkeys(columns, pa.string())))

    columns = "cluster string, topic string, kind string, application_id string"
    return topics.join(groups, "cluster", "left").mapInArrow(split, columns)


def known_groups(spark: SparkSession, hour: datetime) -> DataFrame:
    """Groups of the hour before, with the time at which they last existed."""
    query = f"""
        select cluster, group_id, observed_at from inventory.consumer_group_hourly
        where hour = '{(hour - HOUR).isoformat()}' and observed_at >= '{(hour - REMEMBERED).isoformat()}'
        and protocol is distinct from 'samza'"""  # noqa: S608
    return read_query(spark, query, "cluster string, group_id string, observed_at timestamp")


def known_ends(spark: SparkSession, hour: datetime) -> DataFrame:
    """Log-end offsets as of the previous hour's run, if that was before the end of this hour."""
    query = f"""
        select cluster, topic, partition, log_end_offset, offsets_at as known_at from metrics.partition_hourly
        where hour = '{(hour - HOUR).isoformat()}' and log_end_offset is not null
        and offsets_at < least('{(hour + HOUR).isoformat()}', now())"""  # noqa: S608
    return read_query(
        spark, query, "cluster string, topic string, partition int, log_end_offset bigint, known_at timestamp"
    )


def known_commits(spark: SparkSession, hour: datetime) -> DataFrame:
    """Commit time of each group's partitions, from the newest hour of its cluster within a day."""
    before = f"hour >= '{(hour - REMEMBERED).isoformat()}' and hour < '{hour.isoformat()}'"
    query = f"""
        select p.cluster, p.group_id, p.topic, p.partition, p.committed_offset, p.committed_at
        from (select distinct cluster from inventory.consumer_group_hourly where {before}) as c
        cross join lateral (
          select hour from metrics.consumer_partition_hourly
          where {before} and cluster = c.cluster order by hour desc limit 1
        ) as newest
        cross join lateral (
          select * from metrics.consumer_partition_hourly
          where {before} and hour = newest.hour and cluster = c.cluster and committed_at is not null
          offset 0  -- an hour of one cluster by the index, never a join with the whole day
        ) as p"""  # noqa: S608 times
    columns = "cluster string, group_id string, topic string, partition int"
    return read_query(spark, query, f"{columns}, known_offset bigint, known_committed_at timestamp")


def unlisted_groups(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Groups that must exist but are not listed by any coordinator: known an hour ago or written since, and not
    removed.

    A coordinator that could not load its partition of `__consumer_offsets` leaves out its groups without an error.
    Long past hours have no such groups, because groups are listed as of now.
    """
    listed = sources["kafka_groups"]
    asked = listed.filter("gap is null").groupBy("cluster").agg(f.max("observed_at").alias("asked_at"))
    last = (
        readable(sources["kafka_commits"])
        .join(f.broadcast(asked), "cluster")
        .filter(f.col("written_at") < f.col("asked_at") - f.lit(CLOCKS_DIFFER))
        .groupBy(*PLACE)
        # Numbers and booleans are aggregated in place; with text, millions of rows would be sorted first.
        .agg(
            *(f.max_by(f.col("kind") == kind, "log_offset").alias(kind) for kind in _LAST),
            f.max("written_at").alias("observed_at"),
        )
    )
    written = last.groupBy(*GROUP).agg(
        # Group metadata alone is not enough: Connect workers and Schema Registries have groups that read nothing.
        f.bool_or("commit").alias("has_commits"),
        (f.bool_or("group_tombstone") | (f.bool_or("tombstone") & ~f.bool_or("commit"))).alias("is_removed"),
        f.max("observed_at").alias("written_at"),
    )
    is_there = f.col("observed_at").isNotNull() | f.col("has_commits")
    is_removed = f.coalesce("is_removed", f.lit(False))
    return (
        sources["known_groups"]
        .join(written, GROUP, "full")
        .filter(is_there & ~is_removed & f.lit(is_recent(hour)))
        .join(f.broadcast(asked), "cluster")
        .join(listed.select(*GROUP), GROUP, "left_anti")
        .select(
            *GROUP,
            f.coalesce("written_at", "observed_at").alias("observed_at"),
            f.format_string("%s group %s", *GROUP).alias("resource"),
            f.format_string(
                "missing: group '%s' was not removed, but no coordinator lists it: its coordinator could not load its"
                " partition of __consumer_offsets, the Describe ACL on the group is missing, or it is not a consumer"
                " group.",
                "group_id",
            ).alias("gap"),
        )
    )


def groups_of(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of inventory.consumer_group_hourly, including groups that no coordinator lists."""
    listed = (
        sources["kafka_groups"]
        .filter("group_id is not null")
        .select(
            *GROUP,
            "protocol",
            "state",
            "assignor",
            f.when(f.col("members").isNotNull(), f.size("members")).alias("members"),
            "observed_at",
        )
    )
    return listed.unionByName(sources["unlisted_groups"].drop("resource", "gap"), allowMissingColumns=True)


def members(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of inventory.consumer_member_hourly."""
    member = sources["kafka_groups"].filter("group_id is not null").select(*GROUP, f.explode("members").alias("m"))
    return member.select(*GROUP, "m.member_id", "m.client_id", "m.host", f.to_json("m.assignment").alias("assignment"))


def schemas(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """Rows of the schema tables by table name; empty without a registry in the config."""
    registered = sources.get("schema_registry")
    if registered is None:  # no cluster of the config has a registry
        registered = read_clusters(sources["kafka_topics"].sparkSession, SchemaRegistry, [])
    versions = registered.filter("version is not null")
    return {
        "inventory.schema_hourly": versions.select(
            "cluster",
            "subject",
            "version",
            "schema_id",
            "compatibility",
            "compatibility_source",
            "observed_at",
        ),
        "inventory.registered_schema": versions.filter("schema_id is not null and definition is not null")
        .select("cluster", "schema_id", "schema_type", "definition", "schema_references")
        .distinct(),
    }


def connectors(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """Rows of the tables of Kafka Connect by table name; empty without a Connect cluster in the config."""
    found = sources.get("kafka_connect")
    if found is None:
        found = read_clusters(sources["kafka_topics"].sparkSession, KafkaConnect, [])
    named = found.filter("connector is not null")
    place, state = ["cluster", "connect_cluster", "connector"], ["state", "worker", "trace", "observed_at"]
    tasks = named.filter("task_id is not null")
    counted = tasks.groupBy(*place).agg(f.count("*").cast("int").alias("tasks"))
    return {
        "inventory.connector_hourly": named.filter("task_id is null")
        .join(counted, place, "left")
        .fillna(0, ["tasks"])
        .select(*place, "url", "connector_type", "connector_class", "group_id", "tasks", *state),
        "inventory.connector_task_hourly": tasks.select(*place, "task_id", *state),
    }


def log_partitions(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of metrics.partition_hourly."""
    listed = (
        sources["kafka_topics"]
        .select("cluster", "topic", f.explode("partitions").alias("p"))
        .select("cluster", "topic", "p.partition", "p.leader", "p.leader_error", "p.replicas", "p.isr")
    )
    missing = f.array_sort(f.array_except("replicas", "isr"))
    return listed.join(logs(sources), PARTITION, "left").select(
        *PARTITION,
        "leader",
        "leader_error",
        f.size("replicas").alias("replicas"),
        f.size("isr").alias("isr"),
        f.when(f.size(missing) > 0, f.to_json(missing)).alias("missing_brokers"),
        "log_start_offset",
        "log_end_offset",
        f.col("offset_at_from").alias("log_end_offset_first"),
        f.col("offset_at_to").alias("log_end_offset_last"),
        "last_stable_offset",
        f.col("read_at").alias("offsets_at"),
    )


def log_dirs(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of metrics.log_dir_hourly."""
    place = ["cluster", "broker_id", "log_dir"]
    held = (
        replicas_of(sources)
        .groupBy(*place)
        .agg(f.sum("replicas").alias("held"), f.sum("size_bytes").alias("log_bytes"))
    )
    dirs = sources["kafka_log_dirs"].filter("kind = 'log_dir'").withColumnRenamed("broker", "broker_id")
    replicas = f.when(f.col("gap").isNull(), f.coalesce("held", f.lit(0))).alias("replicas")
    log_bytes = f.when(f.col("gap").isNull(), f.coalesce("log_bytes", f.lit(0))).alias("log_bytes")
    return dirs.join(held, place, "left").select(
        *place, "total_bytes", "usable_bytes", replicas, log_bytes, "observed_at"
    )


def replicas_of(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of metrics.replica_sample: one per topic and log directory of a broker."""
    replicas = sources["kafka_log_dirs"].filter("kind = 'replica'")
    there = replicas.groupBy("cluster", "topic", f.col("broker").alias("broker_id"), "log_dir", "is_future")
    size = f.struct(f.col("partition").cast("string"), "size_bytes")
    lag = f.struct(f.col("partition").cast("string"), "offset_lag")
    return there.agg(
        f.count("*").cast("int").alias("replicas"),
        f.sum("size_bytes").alias("size_bytes"),
        f.to_json(f.map_from_entries(f.collect_list(size))).alias("partition_bytes"),
        f.to_json(f.map_from_entries(f.collect_list(f.when(f.col("offset_lag") > 0, lag)))).alias("partition_lags"),
    )
