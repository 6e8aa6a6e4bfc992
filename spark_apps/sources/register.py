"""The sources for a notebook: after `register_sources(spark)`, `spark.read.format("kafka_offsets")` reads one of them.

docs/sources.md explains the options. Clusters, accounts, and credentials come from the config, as for the apps:
`STREAMWARDEN_CONFIG` must be set for the session and its tasks.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from spark_apps.sources.autoscaling import ScalingActivities
from spark_apps.sources.changelog_values import ChangelogValues
from spark_apps.sources.cloudwatch import CloudWatchMetrics
from spark_apps.sources.confluent_metrics import ConfluentMetrics
from spark_apps.sources.ec2 import Ec2Instances, Ec2InstanceTypes, Ec2Volumes
from spark_apps.sources.jmx import Jmx
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_connect import KafkaConnect
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from spark_apps.sources.kube.tables import KubernetesClaims, KubernetesPods, StrimziResources
from spark_apps.sources.msk import MskBrokers
from spark_apps.sources.samza_checkpoints import SamzaCheckpoints
from spark_apps.sources.schema_registry import SchemaRegistry

SOURCES: tuple[type[DataSource], ...] = (
    ChangelogValues,
    CloudWatchMetrics,
    ConfluentMetrics,
    Ec2Instances,
    Ec2InstanceTypes,
    Ec2Volumes,
    Jmx,
    KafkaCommits,
    KafkaConnect,
    KafkaGroups,
    KafkaLogDirs,
    KafkaOffsets,
    KafkaTopics,
    KubernetesClaims,
    KubernetesPods,
    MskBrokers,
    SamzaCheckpoints,
    ScalingActivities,
    SchemaRegistry,
    StrimziResources,
)


def register_sources(spark: SparkSession) -> None:
    """Registers every source with this session by its name."""
    for source in SOURCES:
        spark.dataSource.register(source)
