"""What Kubernetes runs as Spark data sources: `kubernetes_pods`, `kubernetes_claims`, and `strimzi_resources`."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.base.config import Config, load_config

from spark_apps.sources.jmx_endpoint import name_of
from spark_apps.sources.kube.discover import Found, FoundPod, discover
from spark_apps.sources.targets import jvms_of

Row = dict[str, Any]
_POD = (
    "kubernetes string, namespace string, pod string, uid string, role string, cluster string, app string,"
    " endpoint string, broker_id int, container string, node string, instance_id string, workload_kind string,"
    " workload string, node_pool string, owner string, phase string, memory_limit_bytes bigint,"
    " memory_request_bytes bigint, cpu_limit_cores double, restarts int, state string, state_reason string,"
    " started_at timestamp, last_reason string, last_exit_code int, last_started_at timestamp,"
    " last_finished_at timestamp, created_at timestamp"
)
_CLAIM = (
    "kubernetes string, namespace string, pod string, claim string, storage_class string, size_bytes bigint,"
    " volume string, volume_id string"
)
_RESOURCE = (
    "kubernetes string, namespace string, kind string, name string, cluster string, kafka_name string, owner string,"
    " is_ready boolean, message string, roles string, replicas int, storage_class string, storage_bytes bigint,"
    " kafka_version string, bootstrap_servers string, read_groups string"
)


class _Source(DataSource):
    """One partition: all clusters are discovered at once, and the answer is shared by the sources of a task."""

    columns: str

    def schema(self) -> str:
        """Columns of the data source."""
        return f"{self.columns}, observed_at timestamp, resource string, gap string"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader of the data source."""
        return _KubernetesReader(self, schema)

    @abstractmethod
    def rows(self, found: Found, config: Config) -> Iterator[Row]:
        """Rows with `resource`; columns that are left out are null."""

    def gaps(self, found: Found) -> Iterator[Row]:
        """Gaps of this source."""
        yield from ()


class KubernetesPods(_Source):
    """One row per selected pod, with the container of its JVM, and one per gap of the discovery."""

    columns = _POD

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kubernetes_pods"

    def rows(self, found: Found, config: Config) -> Iterator[Row]:
        """See the class."""
        endpoints = jvms_of(config).of_pods
        for one in found.pods:
            endpoint = endpoints.get(one.pod.uid)
            yield _pod_row(one) | {"endpoint": name_of(endpoint) if endpoint else None}

    def gaps(self, found: Found) -> Iterator[Row]:
        """All of them: the other sources share this discovery."""
        yield from ({"resource": resource, "gap": reason} for resource, reason in found.gaps)


class KubernetesClaims(_Source):
    """One row per PersistentVolumeClaim of a selected pod."""

    columns = _CLAIM

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kubernetes_claims"

    def rows(self, found: Found, config: Config) -> Iterator[Row]:
        """See the class."""
        for one in found.pods:
            for claim in one.claims:
                yield {
                    "kubernetes": one.kubernetes,
                    "pod": one.pod.name,
                    "claim": claim.name,
                    "resource": f"Kubernetes {one.kubernetes} claim {claim.namespace}/{claim.name}",
                    **{key: getattr(claim, key) for key in ("namespace", "storage_class", "size_bytes", "volume")},
                    "volume_id": claim.volume_id,
                }


class StrimziResources(_Source):
    """One row per Kafka, KafkaNodePool, KafkaUser, and KafkaTopic."""

    columns = _RESOURCE

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "strimzi_resources"

    def rows(self, found: Found, config: Config) -> Iterator[Row]:
        """See the class."""
        listeners = {
            (one.entry.name, one.resource.namespace, one.resource.name): one.listener for one in found.clusters
        }
        for kubernetes, cluster, one in found.resources:
            listener = listeners.get((kubernetes, one.namespace, one.name)) if one.kind == "Kafka" else None
            yield {
                "kubernetes": kubernetes,
                "cluster": cluster,
                "roles": ",".join(one.roles) or None,
                "bootstrap_servers": listener.bootstrap_servers if listener else None,
                "read_groups": json.dumps(one.groups) if one.groups else None,
                "resource": f"Kubernetes {kubernetes} {one.kind} {one.namespace}/{one.name}",
                **{name: getattr(one, name) for name in _AS_THEY_ARE},
            }


_AS_THEY_ARE = (
    "kind", "namespace", "name", "kafka_name", "owner", "is_ready", "message", "replicas", "storage_class",
    "storage_bytes", "kafka_version",
)  # fmt: skip


class _KubernetesReader(DataSourceReader):
    def __init__(self, source: _Source, schema: StructType) -> None:
        self.source, self.schema = source, schema

    def partitions(self) -> list[InputPartition]:
        """One."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """All rows and gaps."""
        config = load_config()
        found, now = discover(config), datetime.now(UTC)
        rows = [row | {"observed_at": now} for row in self.source.rows(found, config)]
        rows += self.source.gaps(found)
        yield from pa.Table.from_pylist(rows, schema=to_arrow_schema(self.schema)).to_batches()


def _pod_row(one: FoundPod) -> Row:
    pod, container = one.pod, one.container
    of_container = {name: getattr(container, name) for name in _OF_CONTAINER} if container else {}
    return {
        "kubernetes": one.kubernetes,
        "namespace": pod.namespace,
        "pod": pod.name,
        "container": container.name if container else None,
        "resource": one.resource,
        **{name: getattr(pod, name) for name in ("uid", "node", "workload_kind", "workload", "phase", "created_at")},
        **{name: getattr(one, name) for name in ("role", "cluster", "app", "broker_id", "instance_id", "node_pool")},
        "owner": one.owner,
        **of_container,
    }


_OF_CONTAINER = (
    "memory_limit_bytes", "memory_request_bytes", "cpu_limit_cores", "restarts", "state", "state_reason", "started_at",
    "last_reason", "last_exit_code", "last_started_at", "last_finished_at",
)  # fmt: skip
