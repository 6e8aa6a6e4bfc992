"""Topics, partitions, consumer groups, their commits and their lag; and the schemas registered for their values.

An hour is judged as of its end, or as of now while it isn't over: `as_of`, by cluster. What was committed then comes
from the commit history; where that says nothing of a partition, the offset that the group has now stands for it, as
long as the history was read up to now. A figure that can't be known is null, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR

from spark_apps.models.consumer_lag import STATUS_WORST_FIRST, lag_seconds, partition_status
from spark_apps.models.streams_topics import StreamsTopics
from spark_apps.runtime.warehouse_io import read_query
from spark_apps.sources.kafka_client import read_clusters
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_record_times import record_times
from spark_apps.sources.kafka_topics import KafkaTopics
from spark_apps.sources.schema_registry import SchemaRegistry

LOOK_BACK = timedelta(minutes=15)
"""Commits before the hour that are read too: the offsets that the hour began with."""
READ_TO_NOW = timedelta(hours=2)
"""Up to this age of its end an hour's history is read on to the present, so that present offsets can stand in."""
REMEMBERED = timedelta(hours=24)
"""A group that nobody lists is looked for as long as this."""
CLOCKS_DIFFER = timedelta(minutes=1)

PARTITION = ["cluster", "topic", "partition"]
GROUP = ["cluster", "group_id"]
PLACE = ["cluster", "group_id", "topic", "partition"]


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Asks all clusters of the config. Two are derived: `unlisted_groups`, gaps that no single answer shows, and
    `positions`, by which the ages of what lags are asked."""
    clusters = [cluster.name for cluster in config.kafka]
    end = hour + HOUR
    history_end = end + READ_TO_NOW if _is_recent(hour) else end
    slices = spark.sparkContext.defaultParallelism
    sources = {
        "kafka_topics": read_clusters(spark, KafkaTopics, clusters),
        "kafka_groups": read_clusters(spark, KafkaGroups, clusters),
        # Their sizes are of now: of long past hours they would say something wrong.
        "kafka_log_dirs": read_clusters(spark, KafkaLogDirs, clusters if _is_recent(hour) else []),
        "kafka_offsets": read_clusters(spark, KafkaOffsets, clusters, **{"from": _ms(hour), "to": _ms(end)}),
        "kafka_commits": read_clusters(
            spark, KafkaCommits, clusters, slices=slices, **{"from": _ms(hour - LOOK_BACK), "to": _ms(history_end)}
        ),
    }
    if registries := [cluster.name for cluster in config.kafka if cluster.schema_registry]:
        sources["schema_registry"] = read_clusters(spark, SchemaRegistry, registries)
    sources["known_groups"] = _known_groups(spark, hour)
    sources["unlisted_groups"] = _unlisted_groups(sources, hour)
    sources["positions"] = _positions(sources, hour)
    behind = sources["positions"].filter("committed_offset < recent_offset")
    sources["kafka_record_times"] = record_times(behind.withColumn("offset", f.col("committed_offset")))
    return sources


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """See the module."""
    partitions = _consumer_partitions(sources, hour).persist()
    return {
        "inventory.topic_hourly": _topics(sources),
        "inventory.consumer_group_hourly": _groups(sources),
        "inventory.consumer_member_hourly": _members(sources),
        **_schemas(sources),
        "metrics.partition_hourly": _log_partitions(sources),
        "metrics.log_dir_hourly": _log_dirs(sources),
        "metrics.replica_sample": _replicas(sources),
        "metrics.consumer_partition_hourly": partitions,
        "metrics.consumer_group_hourly": _consumer_groups(sources, partitions, hour),
    }


def _is_recent(hour: datetime) -> bool:
    return datetime.now(UTC) < hour + HOUR + READ_TO_NOW


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


# Inventory


def _topics(sources: dict[str, DataFrame]) -> DataFrame:
    topics = sources["kafka_topics"].filter("topic is not null")
    kind = (
        f.when(f.col("topic").startswith("__"), "internal")
        .when(f.col("topic").endswith("-changelog"), "changelog")
        .when(f.col("topic").endswith("-repartition"), "repartition")
        .otherwise("plain")
    )

    def config_of(name: str) -> Column:
        return f.col("configs").getItem(name).getField("value")

    return (
        topics.join(_application_ids(sources), ["cluster", "topic"], "left")
        .withColumn("kind", kind)
        .select(
            "cluster",
            "topic",
            f.size("partitions").alias("partitions"),
            f.array_min(f.transform("partitions", lambda p: f.size(p.replicas))).alias("replication_factor"),
            "kind",
            "application_id",
            config_of("cleanup.policy").alias("cleanup_policy"),
            config_of("retention.ms").cast("bigint").alias("retention_ms"),
            config_of("segment.bytes").cast("bigint").alias("segment_bytes"),
            f.to_json("configs").alias("configs"),
            "observed_at",
        )
    )


def _application_ids(sources: dict[str, DataFrame]) -> DataFrame:
    """Application id by changelog and repartition topic."""
    internal = sources["kafka_topics"].filter("topic rlike '-(changelog|repartition)$'")
    topics = internal.groupBy("cluster").agg(f.collect_list("topic").alias("topics"))
    groups = sources["kafka_groups"].groupBy("cluster").agg(f.collect_set("group_id").alias("groups"))
    return topics.join(groups, "cluster").mapInArrow(_split, "cluster string, topic string, application_id string")


def _split(clusters: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for cluster in (row for batch in clusters for row in batch.to_pylist()):
        names = StreamsTopics(cluster["groups"], cluster["topics"])
        owned = [(topic, split[0]) for topic in cluster["topics"] if (split := names.split(topic))]
        columns = {
            "cluster": [cluster["cluster"]] * len(owned),
            "topic": [topic for topic, _ in owned],
            "application_id": [application_id for _, application_id in owned],
        }
        yield pa.RecordBatch.from_pydict(columns, pa.schema(dict.fromkeys(columns, pa.string())))


def _known_groups(spark: SparkSession, hour: datetime) -> DataFrame:
    """Groups of the hour before, and when they last were there."""
    query = f"""
        select cluster, group_id, observed_at from inventory.consumer_group_hourly
        where hour = '{(hour - HOUR).isoformat()}' and observed_at >= '{(hour - REMEMBERED).isoformat()}'"""  # noqa: S608
    return read_query(spark, query, "cluster string, group_id string, observed_at timestamp")


def _unlisted_groups(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Groups that must be there and that no coordinator lists: known an hour ago or written since, and not removed.

    A coordinator that couldn't load its part of `__consumer_offsets` leaves its groups out without a word. Of long past
    hours nothing is missed: groups are listed as of now.
    """
    listed = sources["kafka_groups"]
    asked = listed.filter("gap is null").groupBy("cluster").agg(f.max("observed_at").alias("asked_at"))
    last = (
        _readable(sources["kafka_commits"])
        .join(f.broadcast(asked), "cluster")
        .filter(f.col("written_at") < f.col("asked_at") - f.lit(CLOCKS_DIFFER))
        .groupBy(*PLACE)
        .agg(f.max_by("kind", "log_offset").alias("kind"), f.max("written_at").alias("observed_at"))
    )
    has = {kind: f.bool_or(f.col("kind") == kind) for kind in ("commit", "tombstone", "group_tombstone")}
    written = last.groupBy(*GROUP).agg(
        # A group's metadata alone says little: Connect's workers and Schema Registries have groups that read nothing.
        has["commit"].alias("has_commits"),
        (has["group_tombstone"] | (has["tombstone"] & ~has["commit"])).alias("is_removed"),
        f.max("observed_at").alias("written_at"),
    )
    is_there = f.col("observed_at").isNotNull() | f.col("has_commits")
    is_removed = f.coalesce("is_removed", f.lit(False))
    return (
        sources["known_groups"]
        .join(written, GROUP, "full")
        .filter(is_there & ~is_removed & f.lit(_is_recent(hour)))
        .join(f.broadcast(asked), "cluster")
        .join(listed.select(*GROUP), GROUP, "left_anti")
        .select(
            *GROUP,
            f.coalesce("written_at", "observed_at").alias("observed_at"),
            f.format_string("%s group %s", *GROUP).alias("resource"),
            f.format_string(
                "missing: no coordinator lists group '%s', which nobody removed: its coordinator couldn't load its part"
                " of __consumer_offsets, or Describe on the group isn't granted, or it is no consumer group.",
                "group_id",
            ).alias("gap"),
        )
    )


def _groups(sources: dict[str, DataFrame]) -> DataFrame:
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


def _members(sources: dict[str, DataFrame]) -> DataFrame:
    member = sources["kafka_groups"].filter("group_id is not null").select(*GROUP, f.explode("members").alias("m"))
    return member.select(*GROUP, "m.member_id", "m.client_id", "m.host", f.to_json("m.assignment").alias("assignment"))


def _schemas(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
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


def _log_partitions(sources: dict[str, DataFrame]) -> DataFrame:
    listed = (
        sources["kafka_topics"]
        .select("cluster", "topic", f.explode("partitions").alias("p"))
        .select("cluster", "topic", "p.partition", "p.leader", "p.replicas", "p.isr")
    )
    return listed.join(_logs(sources), PARTITION, "left").select(
        *PARTITION,
        "leader",
        f.size("replicas").alias("replicas"),
        f.size("isr").alias("isr"),
        "log_start_offset",
        "log_end_offset",
        f.col("offset_at_from").alias("log_end_offset_first"),
        f.col("offset_at_to").alias("log_end_offset_last"),
        "last_stable_offset",
        f.col("read_at").alias("offsets_at"),
    )


def _log_dirs(sources: dict[str, DataFrame]) -> DataFrame:
    place = ["cluster", "broker_id", "log_dir"]
    held = _replicas(sources).groupBy(*place).agg(f.count("*").alias("held"), f.sum("size_bytes").alias("log_bytes"))
    dirs = sources["kafka_log_dirs"].filter("kind = 'log_dir'").withColumnRenamed("broker", "broker_id")
    replicas = f.when(f.col("gap").isNull(), f.coalesce("held", f.lit(0))).alias("replicas")
    log_bytes = f.when(f.col("gap").isNull(), f.coalesce("log_bytes", f.lit(0))).alias("log_bytes")
    return dirs.join(held, place, "left").select(
        *place, "total_bytes", "usable_bytes", replicas, log_bytes, "observed_at"
    )


def _replicas(sources: dict[str, DataFrame]) -> DataFrame:
    replicas = sources["kafka_log_dirs"].filter("kind = 'replica'")
    return replicas.select(
        *PARTITION, f.col("broker").alias("broker_id"), "log_dir", "is_future", "size_bytes", "offset_lag"
    )


# Positions: what was committed as of the hour's end


def _clock(sources: dict[str, DataFrame]) -> DataFrame:
    """`as_of` and `read_at` by cluster; the source says them even where the cluster didn't answer."""
    return f.broadcast(
        sources["kafka_offsets"]
        .groupBy("cluster")
        .agg(f.max("as_of").alias("as_of"), f.max("read_at").alias("read_at"))
    )


def _history(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Commits and their removals up to `as_of`, each with its step from the one before."""
    commits = sources["kafka_commits"]
    in_order = Window.partitionBy(*PLACE).orderBy("log_partition", "log_offset")
    before = f.lag("committed_offset").over(in_order)
    return (
        _readable(commits)
        .filter("kind in ('commit', 'tombstone')")
        .withColumn("at", f.coalesce("committed_at", "written_at"))
        .join(_clock(sources), "cluster")
        .filter("at < as_of")
        .withColumn("step", f.col("committed_offset") - before)
        .withColumn("step_seconds", f.col("at").cast("double") - f.lag("at").over(in_order).cast("double"))
        .withColumn(
            "highest_before", f.max("committed_offset").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
        )
        .withColumn("in_hour", f.col("at") >= f.lit(hour))
        .join(_logs(sources).select(*PARTITION, "offset_at_from", "offset_at_to"), PARTITION, "left")
    )


def _readable(commits: DataFrame) -> DataFrame:
    """Of log partitions that were read to their end: a part of an hour's commits is worse than none."""
    whole = commits.filter("kind = 'read'").select("cluster", "log_partition")
    return commits.filter("kind <> 'read'").join(whole, ["cluster", "log_partition"], "left_semi")


def _unread_clusters(sources: dict[str, DataFrame]) -> DataFrame:
    """Clusters whose commit history has a gap: a place without commits there may have had some."""
    return f.broadcast(
        sources["kafka_commits"].filter("gap is not null").select("cluster", f.lit(True).alias("unread")).distinct()
    )


def _positions(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """One row per place with commits: the offset as of the hour's end, its history in the hour, the log's end."""
    counted = f.col("in_hour") & (f.col("kind") == "commit")
    elapsed = f.col("at").cast("double") - f.lit(hour.timestamp())
    whole = f.col("as_of").cast("double") - f.lit(hour.timestamp())
    # The log's end between those of the hour's start and end, as if it had grown evenly.
    grown = (f.col("offset_at_to") - f.col("offset_at_from")) * elapsed / f.nullif(whole, f.lit(0))
    lag_then = f.col("offset_at_from") + grown - f.col("committed_offset")
    history = (
        _history(sources, hour)
        .groupBy(*PLACE)
        .agg(
            f.max_by("kind", "log_offset").alias("last_kind"),
            f.max_by("committed_offset", "log_offset").alias("last_offset"),
            f.max_by("at", "log_offset").alias("last_at"),
            f.max_by("highest_before", "log_offset").alias("highest_before"),
            f.min("at").alias("first_at"),
            f.count_if(counted).alias("seen_commits"),
            f.sum(f.when(counted, f.greatest("step", f.lit(0)))).alias("seen_consumed"),
            f.sum(f.when(counted & f.col("step").isNotNull(), f.col("step_seconds"))).alias("consumed_seconds"),
            f.count_if(counted & (f.col("step") < 0)).alias("seen_rewinds"),
            f.max(f.when(f.col("step") != 0, f.col("at"))).alias("moved_at"),
            f.regr_slope(f.when(counted, lag_then), elapsed).alias("lag_slope_per_second"),
        )
    )
    later = (
        sources["kafka_commits"]
        .filter("kind = 'commit'")
        .join(_clock(sources), "cluster")
        .filter("committed_at >= as_of")
        .select(*PLACE, f.lit(True).alias("committed_later"))
        .distinct()
    )
    present = sources["kafka_offsets"].filter("kind = 'committed' and topic is not null")
    current = present.select(*PLACE, f.col("committed_offset").alias("current_offset"))
    joined = (
        history.join(current, PLACE, "full")
        .join(later, PLACE, "left")
        .join(_clock(sources), "cluster")
        .join(_unread_clusters(sources), "cluster", "left")
    )
    is_present = f.col("as_of") == f.col("read_at")
    reads_on = f.col("read_at") < f.col("as_of") + f.expr(f"interval {int(READ_TO_NOW.total_seconds())} seconds")
    from_history = f.when(f.col("last_kind") == "commit", f.col("last_offset"))
    unchanged = f.col("last_kind").isNull() & f.col("committed_later").isNull() & reads_on & f.col("unread").isNull()
    committed = (
        f.when(is_present, f.coalesce("current_offset", from_history))
        .when(from_history.isNotNull(), from_history)
        .when(unchanged, f.col("current_offset"))
    )
    is_known = f.col("unread").isNull() | f.col("last_kind").isNotNull()
    is_there = "last_kind is null or last_kind = 'commit' or current_offset is not null"
    ends = _logs(sources).select(*PARTITION, "recent_offset", f.col("offset_at_to").alias("log_end_offset"))
    return (
        joined.filter(is_there)
        .join(ends, PARTITION, "left")
        .select(
            *PLACE,
            "as_of",
            committed.alias("committed_offset"),
            f.when(f.col("last_kind") == "commit", f.col("last_at")).alias("committed_at"),
            f.when(is_known, f.coalesce("seen_commits", f.lit(0))).alias("commits"),
            f.when(is_known, f.coalesce("seen_consumed", f.lit(0))).alias("records_consumed"),
            f.when(is_known, f.coalesce("seen_rewinds", f.lit(0))).alias("rewinds"),
            "consumed_seconds",
            "moved_at",
            "first_at",
            "highest_before",
            "lag_slope_per_second",
            "recent_offset",
            "log_end_offset",
        )
    )


# Lag


def _logs(sources: dict[str, DataFrame]) -> DataFrame:
    return (
        sources["kafka_offsets"]
        .filter("kind = 'log' and gap is null and topic is not null")
        .select(
            *PARTITION,
            "log_start_offset",
            "log_end_offset",
            "last_stable_offset",
            "offset_at_from",
            "offset_at_to",
            "recent_offset",
            "read_at",
        )
    )


def _consumer_partitions(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    times = sources["kafka_record_times"].select(*PARTITION, f.col("offset").alias("committed_offset"), "record_at")
    places = (
        sources["positions"]
        .join(times, [*PARTITION, "committed_offset"], "left")
        .join(_owners(sources), PLACE, "left")
        .withColumn("lag_records", f.greatest(f.col("log_end_offset") - f.col("committed_offset"), f.lit(0)))
        .withColumn("lag_seconds", lag_seconds())
    )
    return places.select(
        *PLACE,
        "committed_offset",
        "committed_at",
        "log_end_offset",
        f.when(f.col("committed_offset").isNotNull() & f.col("log_end_offset").isNotNull(), f.col("lag_records")).alias(
            "lag_records"
        ),
        "lag_seconds",
        "commits",
        "records_consumed",
        "consumed_seconds",
        "moved_at",
        "rewinds",
        partition_status(hour - LOOK_BACK).alias("status"),
        "lag_slope_per_second",
        "client_id",
        "host",
    )


def _owners(sources: dict[str, DataFrame]) -> DataFrame:
    """Client id and host of the member that a partition is assigned to."""
    member = sources["kafka_groups"].filter("group_id is not null").select(*GROUP, f.explode("members").alias("m"))
    topic = member.select(*GROUP, "m.client_id", "m.host", f.explode("m.assignment").alias("topic", "assigned"))
    owner = topic.select(*GROUP, "topic", f.explode("assigned").alias("partition"), "client_id", "host")
    return owner.groupBy(*PLACE).agg(f.min("client_id").alias("client_id"), f.min("host").alias("host"))


def _consumer_groups(sources: dict[str, DataFrame], partitions: DataFrame, hour: datetime) -> DataFrame:
    rank = f.array_position(f.array(*map(f.lit, STATUS_WORST_FIRST)), f.col("status"))
    # The worst place: by status, then by age, then by number; a place without a status comes last.
    badness = f.struct(-f.when(rank > 0, rank).otherwise(99), f.coalesce("lag_seconds", f.lit(-1)), "lag_records")
    places = partitions.groupBy(*GROUP).agg(
        f.count_distinct("topic").alias("topics"),
        f.count(f.lit(1)).alias("partitions"),
        f.sum("lag_records").alias("lag_records"),
        f.max("lag_records").alias("lag_records_max"),
        f.max("lag_seconds").alias("lag_seconds_max"),
        f.count_if(f.col("lag_records").isNull()).alias("lag_unknown_partitions"),
        _unless_any_is_null("commits"),
        _unless_any_is_null("records_consumed"),
        f.max_by("status", badness).alias("status"),
        f.max_by("topic", badness).alias("worst_topic"),
        f.max_by("partition", badness).alias("worst_partition"),
    )
    described = _groups(sources).select(*GROUP, "state", "members")
    # Without a commit that is known: 0 where its commits were answered, else unknown.
    none = f.when(f.col("answered"), 0)
    return (
        described.join(places, GROUP, "full")
        .join(_answered_groups(sources), GROUP, "left")
        .join(_rebalances(sources, hour), GROUP, "left")
        .join(_unread_clusters(sources), "cluster", "left")
        .select(
            *GROUP,
            "state",
            "members",
            f.coalesce("topics", none).alias("topics"),
            f.coalesce("partitions", none).alias("partitions"),
            "lag_records",
            "lag_records_max",
            "lag_seconds_max",
            f.coalesce("lag_unknown_partitions", none).alias("lag_unknown_partitions"),
            "commits",
            "records_consumed",
            f.when(f.col("unread").isNull(), f.coalesce("rebalances", f.lit(0))).alias("rebalances"),
            "status",
            "worst_topic",
            "worst_partition",
        )
    )


def _answered_groups(sources: dict[str, DataFrame]) -> DataFrame:
    """Groups whose present commits are known, be it that there are none."""
    asked = sources["kafka_offsets"].filter("kind = 'committed'")
    clusters = asked.filter("gap is null").select("cluster").distinct()
    refused = asked.filter("gap is not null").select(*GROUP)
    listed = sources["kafka_groups"].filter("group_id is not null").select(*GROUP)
    answered = listed.join(f.broadcast(clusters), "cluster", "left_semi").join(refused, GROUP, "left_anti")
    return answered.withColumn("answered", f.lit(True))


def _unless_any_is_null(column: str) -> Column:
    return f.when(f.count_if(f.col(column).isNull()) == 0, f.sum(column)).alias(column)


def _rebalances(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Generation steps in the hour. A generation that begins with the records at hand counts as one step."""
    in_order = Window.partitionBy(*GROUP).orderBy("log_partition", "log_offset")
    step = f.col("generation") != f.coalesce(f.lag("generation").over(in_order), f.lit(-1))
    return (
        _readable(sources["kafka_commits"])
        .filter("kind = 'group'")
        .join(_clock(sources), "cluster")
        .withColumn("is_step", step & (f.col("generation") > 0))
        .filter(f.col("written_at").between(f.lit(hour), f.col("as_of")))
        .groupBy(*GROUP)
        .agg(f.count_if("is_step").alias("rebalances"))
    )
