"""All Spark apps with the tables that they read and write. Does not import pyspark, so that DAGs parse fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamwarden.base.config import Config


@dataclass(frozen=True)
class SparkApp:
    """A Spark app: the module or package `spark_apps.apps.<name>`."""

    name: str
    title: str
    reads: tuple[str, ...]
    """Sources, and warehouse tables of earlier hours."""
    writes: tuple[str, ...]
    """Warehouse tables, `schema.table`."""
    mostly_waits: bool = False
    """Whether the app mostly waits between samples; such apps start first."""
    shares: Mapping[str, str] = field(default_factory=dict)
    """Of the tables that other apps write too: the SQL condition that the rows of this app meet, and no others."""
    only_adds: bool = False
    """Whether detectors are evaluated without it where the config has nothing for it: it adds to what others gather."""
    read_rows: tuple[str, str] | None = None
    """Table and column with the number of rows that the app read, where that says more about its size than the rows
    that it wrote."""
    sections: tuple[str, ...] = ()
    """Config sections of the app's sources; at least one of them must not be empty."""

    def not_configured(self, config: Config) -> str | None:
        """What the config has to name for this app, such as `no AWS account`; None if the app is configured."""
        if not self.sections or any(getattr(config, section) for section in self.sections):
            return None
        return _NOTHING[self.sections[0]]


_JVMS = ("jmx", "jmx_files", "jmx_ec2", "kubernetes", "msk")
_NOTHING = {
    "aws": "no AWS account",
    "kafka": "no Kafka cluster",
    "jmx": "no JVM",
    "kubernetes": "no Kubernetes cluster",
    "msk": "no Amazon MSK cluster",
    "confluent": "no cluster of Confluent Cloud",
}
_INSTANCE_OF_MSK, _VOLUME_OF_MSK = "instance_id like 'msk-%'", "volume_id like 'msk-%'"
_ENDPOINT_OF_MSK = "endpoint like 'msk://%'"

TOGETHER = "together"
"""Instead of an app's name on the command line of spark-submit: all small apps, in one driver."""

APPS: dict[str, SparkApp] = {
    app.name: app
    for app in (
        SparkApp(
            "ebs_volumes",
            "EC2 instances and EBS volumes: inventory, load, credit buckets, limits",
            sections=("aws",),
            reads=("ec2", "cloudwatch"),
            writes=(
                "inventory.instance_hourly",
                "inventory.volume_hourly",
                "metrics.instance_sample",
                "metrics.instance_hourly",
                "metrics.volume_sample",
                "metrics.volume_hourly",
                "metrics.cloudwatch_cost_hourly",
            ),
        ),
        SparkApp(
            "machines",
            "EC2 instances: status checks, what Auto Scaling took out of service, network, CPU credits",
            sections=("aws",),
            reads=(
                "ec2",
                "autoscaling",
                "cloudwatch",
                "metrics.instance_health_hourly",
                "metrics.instance_network_hourly",
            ),
            writes=(
                "metrics.scaling_activity_hourly",
                "metrics.instance_health_hourly",
                "metrics.instance_network_sample",
                "metrics.instance_network_hourly",
            ),
        ),
        SparkApp(
            "msk",
            "Amazon MSK: clusters, brokers, storage, network, memory, and lag by its API and CloudWatch",
            sections=("msk",),
            only_adds=True,
            reads=("msk", "ec2", "cloudwatch"),
            writes=(
                "inventory.msk_cluster_hourly",
                "inventory.msk_broker_hourly",
                "inventory.instance_hourly",
                "inventory.volume_hourly",
                "metrics.volume_sample",
                "metrics.volume_hourly",
                "metrics.instance_sample",
                "metrics.instance_hourly",
                "metrics.instance_health_hourly",
                "metrics.instance_network_sample",
                "metrics.instance_network_hourly",
                "metrics.broker_sample",
                "metrics.broker_hourly",
                "metrics.msk_broker_hourly",
                "metrics.log_dir_hourly",
                "metrics.msk_consumer_lag_hourly",
                "metrics.cloudwatch_cost_hourly",
            ),
            shares={
                "inventory.instance_hourly": _INSTANCE_OF_MSK,
                "inventory.volume_hourly": _VOLUME_OF_MSK,
                "metrics.volume_hourly": _VOLUME_OF_MSK,
                "metrics.instance_hourly": _INSTANCE_OF_MSK,
                "metrics.instance_health_hourly": _INSTANCE_OF_MSK,
                "metrics.instance_network_hourly": _INSTANCE_OF_MSK,
                "metrics.broker_sample": _ENDPOINT_OF_MSK,
                "metrics.broker_hourly": _ENDPOINT_OF_MSK,
                "metrics.log_dir_hourly": "log_dir = 'KafkaDataLogs'",
                "metrics.cloudwatch_cost_hourly": "app = 'msk'",
            },
        ),
        SparkApp(
            "kubernetes",
            "Kubernetes: pods, container limits, restarts, volume claims, and Strimzi's resources",
            sections=("kubernetes",),
            only_adds=True,
            reads=("kubernetes",),
            writes=("inventory.pod_hourly", "inventory.pod_claim_hourly", "inventory.strimzi_resource_hourly"),
        ),
        SparkApp(
            "confluent",
            "Confluent Cloud: bytes and records of topics by its Metrics API",
            sections=("confluent",),
            only_adds=True,
            reads=("confluent_metrics",),
            writes=("metrics.topic_hourly",),
            shares={"metrics.topic_hourly": "brokers = 0"},
        ),
        SparkApp(
            "brokers",
            "Brokers over JMX: rates, latencies, replication, per-topic bytes",
            sections=_JVMS,
            reads=("jmx", "metrics.broker_sample", "metrics.broker_topic_sample", "metrics.broker_hourly"),
            writes=(
                "metrics.broker_sample",
                "metrics.broker_topic_sample",
                "metrics.broker_hourly",
                "metrics.topic_hourly",
            ),
            mostly_waits=True,
        ),
        SparkApp(
            "jvm_apps",
            "JVM applications over JMX: heap, off-heap, RocksDB, stream threads; hosts by node exporter",
            sections=_JVMS,
            reads=("jmx", "metrics.jvm_app_sample", "metrics.node_sample"),
            writes=(
                "metrics.jvm_app_sample",
                "metrics.jvm_app_hourly",
                "metrics.state_store_memory_hourly",
                "metrics.stream_node_hourly",
                "metrics.client_hourly",
                "metrics.client_topic_hourly",
                "metrics.node_sample",
                "metrics.node_hourly",
                "metrics.file_system_hourly",
            ),
            mostly_waits=True,
        ),
        SparkApp(
            "consumer_groups",
            "Topics, partitions, groups, commits and lag; registered schemas",
            sections=("kafka", "msk", "kubernetes"),
            reads=(
                "kafka_topics",
                "kafka_groups",
                "kafka_log_dirs",
                "kafka_offsets",
                "kafka_commits",
                "samza_checkpoints",
                "kafka_record_times",
                "schema_registry",
                "kafka_connect",
                "inventory.consumer_group_hourly",
            ),
            writes=(
                "inventory.topic_hourly",
                "inventory.broker_hourly",
                "inventory.reassignment_hourly",
                "inventory.consumer_group_hourly",
                "inventory.consumer_member_hourly",
                "inventory.schema_hourly",
                "inventory.registered_schema",
                "inventory.connector_hourly",
                "inventory.connector_task_hourly",
                "metrics.partition_hourly",
                "metrics.log_dir_hourly",
                "metrics.replica_sample",
                "metrics.consumer_partition_hourly",
                "metrics.consumer_group_hourly",
                "metrics.group_step_hourly",
            ),
        ),
        SparkApp(
            "state_stores",
            "Changelogs of Kafka Streams state stores: schemas of their values and how they change",
            sections=("kafka", "msk", "kubernetes"),
            reads=("changelog_values", "schema_registry", "inventory.registered_schema"),
            writes=(
                "metrics.state_store_hourly",
                "metrics.state_store_path_hourly",
                "metrics.state_store_change_hourly",
            ),
            read_rows=("metrics.state_store_hourly", "values_profiled"),
        ),
    )
}

WRITERS_OF: dict[str, tuple[str, ...]] = {
    table: tuple(name for name, app in APPS.items() if table in app.writes)
    for table in dict.fromkeys(table for app in APPS.values() for table in app.writes)
}


def rows_of(app: SparkApp, table: str) -> str:
    """The SQL condition that an app's rows of a table meet: its own share, or the rows of no other app."""
    if share := app.shares.get(table):
        return f"({share})"
    others = [f"({other.shares[table]}) is not true" for other in APPS.values() if table in other.shares]
    return " and ".join(others) or "true"


KINDS: dict[str, tuple[str, ...]] = {
    "volume": ("account", "region", "volume_id"),
    "instance": ("account", "region", "instance_id"),
    "instances": ("account", "region", "instance_group"),
    "host": ("cluster", "endpoint"),
    "cluster": ("cluster",),
    "broker": ("cluster", "broker_id"),
    "process": ("cluster", "endpoint"),
    "store": ("cluster", "topic"),
    "application": ("cluster", "application_id"),
    "topic": ("cluster", "topic"),
    "connector": ("cluster", "connect_cluster", "connector"),
    "reading": ("cluster", "topic", "group_id"),
    "group": ("cluster", "group_id"),
    "client": ("cluster", "client_id"),
}
"""Kind → its key columns, in order. Lower layers (infrastructure) come first."""
