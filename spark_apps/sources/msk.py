"""Amazon MSK: clusters and their brokers as the Spark data source `msk_brokers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.base.config import load_config

from spark_apps.sources.msk_discovery import MskCluster, broker_instance, discover


class MskBrokers(DataSource):
    """One row per broker, one for a cluster without known brokers, and one per gap."""

    @classmethod
    def name(cls) -> str:
        return "msk_brokers"

    def schema(self) -> str:
        return (
            "account string, region string, cluster string, msk_name string, cluster_arn string, kind string,"
            " state string, kafka_version string, current_version string, instance_type string, broker_count int,"
            " volume_gib int, provisioned_mib_s int, storage_mode string, monitoring_level string,"
            " has_jmx_exporter boolean, has_node_exporter boolean, authentications string, bootstrap_servers string,"
            " is_connected boolean, is_read_by_jmx boolean, tags map<string, string>, broker_id int, host string,"
            " private_ip string, subnet string, availability_zone string, instance_id string, volume_id string,"
            " observed_at timestamp, resource string, gap string"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return _MskReader(schema)


class _MskReader(DataSourceReader):
    def __init__(self, schema: StructType) -> None:
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """One: names are unique over all regions."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        found = discover(load_config())
        rows = [row for cluster in found.clusters for row in rows_of(cluster)]
        rows += [{"resource": resource, "gap": reason} for resource, reason in found.all_gaps]
        yield from pa.Table.from_pylist(rows, schema=to_arrow_schema(self.schema)).to_batches()


def rows_of(cluster: MskCluster) -> Iterable[dict[str, Any]]:
    """The rows of a cluster."""
    of_cluster = {
        "account": cluster.account,
        "region": cluster.region,
        "cluster": cluster.cluster,
        "msk_name": cluster.msk_name,
        "cluster_arn": cluster.arn,
        "authentications": ",".join(cluster.authentications),
        "is_connected": bool(cluster.bootstrap_servers) or cluster.is_in_config,
        "is_read_by_jmx": bool(cluster.has_jmx_exporter) and cluster.entry.open_monitoring,
        "tags": list(cluster.tags),
        "observed_at": datetime.now(UTC),
        "resource": cluster.resource,
        **{name: getattr(cluster, name) for name in _AS_THEY_ARE},
    }
    for broker in cluster.brokers:
        instance_id = broker_instance(cluster.msk_name, broker.broker_id)
        yield {
            **of_cluster,
            **vars(broker),
            "instance_id": instance_id,
            "volume_id": f"{instance_id}-data" if cluster.kind == "standard" else None,
            "resource": f"{cluster.resource} broker {broker.broker_id}",
        }
    if not cluster.brokers:
        yield of_cluster


_AS_THEY_ARE = (
    "kind", "state", "kafka_version", "current_version", "instance_type", "broker_count", "volume_gib",
    "provisioned_mib_s", "storage_mode", "monitoring_level", "has_jmx_exporter", "has_node_exporter",
    "bootstrap_servers",
)  # fmt: skip
