"""App kubernetes: pods of brokers and applications, their claims on EBS volumes, and the resources of Strimzi.

Limits, restarts, and how containers ended are what the API says now: an hour that has ended keeps what was seen in it.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config

from spark_apps.apps.ebs_volumes.inventory import as_seen_then, of_hour
from spark_apps.sources.kube.tables import KubernetesClaims, KubernetesPods, StrimziResources
from spark_apps.sources.read_source import read_source

APP = "kubernetes"
TABLES = {
    "inventory.pod_hourly": (KubernetesPods, ["kubernetes", "namespace", "pod"]),
    "inventory.pod_claim_hourly": (KubernetesClaims, ["kubernetes", "namespace", "pod", "claim"]),
    "inventory.strimzi_resource_hourly": (StrimziResources, ["kubernetes", "namespace", "kind", "name"]),
}
"""The source and the key of each table."""


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """The rows of each table's source. Nothing, where the config names no Kubernetes cluster."""
    if not config.kubernetes:
        return {}
    return {
        source.name(): of_hour(read_source(spark, source({})), hour, "the inventory of Kubernetes")
        for source, _ in TABLES.values()
    }


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """One row per pod, claim, and resource."""
    if not sources:
        return {}
    return {
        table: as_seen_then(_rows(sources[source.name()], key), table, key, hour, app=APP).filter(
            "observed_at is not null"
        )
        for table, (source, key) in TABLES.items()
    }


def _rows(source: DataFrame, key: list[str]) -> DataFrame:
    return source.filter(f.col(key[-1]).isNotNull()).drop("resource", "gap").dropDuplicates(key)
