"""All Spark apps with the tables that they read and write. Does not import pyspark, so that DAGs parse fast."""

from __future__ import annotations

from dataclasses import dataclass
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
    sections: tuple[str, ...] = ()
    """Config sections of the app's sources; at least one of them must not be empty."""

    def not_configured(self, config: Config) -> str | None:
        """What the config has to name for this app, such as `no AWS account`; None if the app is configured."""
        if not self.sections or any(getattr(config, section) for section in self.sections):
            return None
        return _NOTHING[self.sections[0]]


_JVMS = ("jmx", "jmx_files", "jmx_ec2")
_NOTHING = {"aws": "no AWS account", "kafka": "no Kafka cluster", "jmx": "no JVM"}

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
            "JVM applications over JMX: heap, off-heap, RocksDB, stream threads; machines by node exporter",
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
            sections=("kafka",),
            reads=(
                "kafka_topics",
                "kafka_groups",
                "kafka_log_dirs",
                "kafka_offsets",
                "kafka_commits",
                "samza_checkpoints",
                "kafka_record_times",
                "schema_registry",
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
            sections=("kafka",),
            reads=("changelog_values", "schema_registry", "inventory.registered_schema"),
            writes=(
                "metrics.state_store_hourly",
                "metrics.state_store_path_hourly",
                "metrics.state_store_change_hourly",
            ),
        ),
    )
}

WRITER_OF: dict[str, str] = {table: app.name for app in APPS.values() for table in app.writes}

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
    "reading": ("cluster", "topic", "group_id"),
    "group": ("cluster", "group_id"),
    "client": ("cluster", "client_id"),
}
"""Kind → its key columns, in order. Lower layers (infrastructure) come first."""
