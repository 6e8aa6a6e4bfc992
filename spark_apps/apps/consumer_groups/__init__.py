"""Topics, partitions, consumer groups, commits, and lag; and the schemas registered for values.

An hour is computed as of its end, or as of now while it has not ended: `as_of`, by cluster. Committed offsets at
that time come from __consumer_offsets; for a partition without a commit there, the group's current offset is used,
as long as __consumer_offsets was read up to now. A metric that is not known is null, never 0.
"""

from __future__ import annotations

import os
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import WAREHOUSE_ENV, Config
from streamwarden.base.hours import HOUR

from spark_apps.apps.consumer_groups.inventory import (
    brokers,
    connectors,
    groups_of,
    known_commits,
    known_ends,
    known_groups,
    log_dirs,
    log_partitions,
    members,
    reassignments,
    replicas_of,
    schemas,
    topics,
    unlisted_groups,
)
from spark_apps.apps.consumer_groups.jobs import with_jobs
from spark_apps.apps.consumer_groups.lag import LOOK_BACK, consumer_groups, consumer_partitions
from spark_apps.apps.consumer_groups.positions import positions
from spark_apps.apps.consumer_groups.rows import READ_TO_NOW, is_recent
from spark_apps.apps.consumer_groups.steps import group_steps
from spark_apps.models.consumer_lag import QUIET_RECORDS, STANDSTILL_SECONDS, still_seconds
from spark_apps.runtime.executors import address_for_tasks
from spark_apps.runtime.kept import kept
from spark_apps.sources.kafka_client import clusters_of, read_clusters
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_connect import KafkaConnect
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_record_times import record_times
from spark_apps.sources.kafka_topics import KafkaTopics
from spark_apps.sources.samza_checkpoints import SamzaCheckpoints
from spark_apps.sources.schema_registry import SchemaRegistry


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Queries all clusters of the config. Two frames are derived: `unlisted_groups`, gaps that no single source can
    detect, and `positions`, the offsets for which record timestamps are queried."""
    watched = clusters_of(config)
    clusters = [cluster.name for cluster in watched]
    end = hour + HOUR
    history_end = end + READ_TO_NOW if is_recent(hour) else end
    slices = spark.sparkContext.defaultParallelism
    warehouse = address_for_tasks(spark, os.environ.get(WAREHOUSE_ENV, "")) or ""
    span = {"from": _ms(hour - LOOK_BACK), "to": _ms(history_end)}
    sources = {
        "kafka_topics": read_clusters(spark, KafkaTopics, clusters, hour=hour.isoformat()),
        "kafka_groups": read_clusters(spark, KafkaGroups, clusters, hour=hour.isoformat()),
        "kafka_log_dirs": read_clusters(spark, KafkaLogDirs, clusters, hour=hour.isoformat()),
        "kafka_offsets": read_clusters(
            spark, KafkaOffsets, clusters, warehouse=warehouse, **{"from": _ms(hour), "to": _ms(end)}
        ),
        "kafka_commits": read_clusters(spark, KafkaCommits, clusters, slices=slices, **span),
    }
    sources["samza_checkpoints"] = read_clusters(spark, SamzaCheckpoints, clusters, **span)
    if registries := [cluster.name for cluster in watched if cluster.schema_registry]:
        sources["schema_registry"] = read_clusters(spark, SchemaRegistry, registries, hour=hour.isoformat())
    if connects := [cluster.name for cluster in watched if cluster.connect]:
        sources["kafka_connect"] = read_clusters(spark, KafkaConnect, connects, hour=hour.isoformat())
    sources["known_groups"] = known_groups(spark, hour)
    sources["known_ends"] = known_ends(spark, hour)
    sources["known_commits"] = known_commits(spark, hour)
    with_their_jobs = with_jobs(sources)
    sources["unlisted_groups"] = unlisted_groups(with_their_jobs, hour)
    sources["positions"] = kept(positions(with_their_jobs, hour))
    behind = sources["positions"].filter(
        "committed_offset < recent_offset or is_refuted and committed_offset < end_now"
        f" or committed_offset < log_end_offset and log_end_offset - recent_offset <= {QUIET_RECORDS}"
    )
    stands = f.coalesce(still_seconds(hour - LOOK_BACK) >= STANDSTILL_SECONDS, f.lit(True))
    asked = behind.withColumns({"offset": f.col("committed_offset"), "stands": stands})
    sources["kafka_record_times"] = kept(record_times(asked))
    return sources


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Frames of all tables of the app, by table name."""
    sources = with_jobs(sources)
    partitions, steps = kept(consumer_partitions(sources, hour)), kept(group_steps(sources, hour))
    return {
        "inventory.topic_hourly": topics(sources, config.jobs.changelog_patterns),
        "inventory.broker_hourly": brokers(sources),
        "inventory.reassignment_hourly": reassignments(sources),
        "inventory.consumer_group_hourly": groups_of(sources),
        "inventory.consumer_member_hourly": members(sources),
        **schemas(sources),
        **connectors(sources),
        "metrics.partition_hourly": log_partitions(sources),
        "metrics.log_dir_hourly": log_dirs(sources),
        "metrics.replica_sample": replicas_of(sources),
        "metrics.consumer_partition_hourly": partitions,
        "metrics.consumer_group_hourly": consumer_groups(sources, partitions, steps),
        "metrics.group_step_hourly": steps,
    }


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
