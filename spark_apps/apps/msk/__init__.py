"""Amazon MSK: clusters and brokers by its API, and what CloudWatch (AWS/Kafka) has of brokers, storage, and lag.

Rows go into the tables that the detectors read. A broker is an instance, its storage a volume, with ids of their own
(see `spark_apps.sources.msk_discovery`); of brokers that are read over JMX only what JMX does not say is asked. At
the level DEFAULT a volume's load is not exposed: what its burst balance lost and earned tells how much it spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config

from spark_apps.apps.ebs_volumes import known_until
from spark_apps.apps.ebs_volumes.inventory import INSTANCE, VOLUME, as_seen_then, of_hour
from spark_apps.apps.ebs_volumes.series import (
    LOOK_BACK,
    LOOK_BACK_PERIOD_SECONDS,
    OVERLAP,
    READ_BASELINE,
    VOLUME_METRICS,
    cost,
    sampled_since,
    samples,
    with_last_day,
)
from spark_apps.apps.ebs_volumes.volumes import throttled_volumes, volume_hours
from spark_apps.apps.msk import brokers as of_brokers
from spark_apps.apps.msk import storage
from spark_apps.apps.msk.inventory import APP, CLUSTER, brokers_of, clusters_of, instances_of, volumes_of
from spark_apps.apps.msk.lag import lag_hours
from spark_apps.apps.msk.series import (
    BROKER,
    HOST,
    LAG,
    LOOKED_BACK,
    NAMESPACE,
    READ_BYTES,
    broker_series,
    cluster_series,
    lag_series,
)
from spark_apps.apps.msk.series import (
    VOLUME as OF_VOLUME,
)
from spark_apps.runtime.kept import kept
from spark_apps.sources.aws_client import Place, read_places
from spark_apps.sources.cloudwatch import CloudWatchMetrics, Span, read_metrics
from spark_apps.sources.ec2 import Ec2InstanceTypes
from spark_apps.sources.msk import MskBrokers
from spark_apps.sources.msk_discovery import MskCluster, discover
from spark_apps.sources.read_source import read_source


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Clusters and brokers first, then the metrics of what they expose. Nothing, where the config names none."""
    if not config.msk:
        return {}
    now = datetime.now(UTC)
    end = known_until(hour, config, now)
    msk = kept(of_hour(read_source(spark, MskBrokers({})), hour, "MSK's inventory"))
    found = discover(config).clusters
    places = list(dict.fromkeys(cluster.place for cluster in found))
    types = read_places(spark, Ec2InstanceTypes, places, types=",".join(_types(found)))
    clusters = as_seen_then(clusters_of(msk), "inventory.msk_cluster_hourly", CLUSTER, hour)
    brokers = as_seen_then(brokers_of(msk), "inventory.msk_broker_hourly", [*CLUSTER, "broker_id"], hour)
    volumes = as_seen_then(volumes_of(msk), "inventory.volume_hourly", VOLUME, hour, app=APP)
    instances = as_seen_then(instances_of(msk, types), "inventory.instance_hourly", INSTANCE, hour, app=APP)
    asked = brokers.join(clusters.drop("observed_at", "account", "region"), "cluster")
    series = broker_series(asked, [*HOST, *BROKER], "instance_id").unionByName(cluster_series(asked))
    series = series.unionByName(broker_series(asked, OF_VOLUME, "volume_id"))
    metrics = read_metrics(series, Span.of(hour - OVERLAP, end, now))
    until = {"known_until": f.lit(end)}
    volumes, instances = volumes.withColumns(until), instances.withColumns(until)
    columns = [metric.column for metric in VOLUME_METRICS]
    volume_samples = storage.with_spending(samples(metrics, "volume_id", columns), volumes)
    held = throttled_volumes(volumes, volume_samples).select(*VOLUME)
    look_back = read_metrics(
        broker_series(asked.join(held, VOLUME, "left_semi"), LOOKED_BACK, "volume_id"),
        Span.of(end - LOOK_BACK, end, now, LOOK_BACK_PERIOD_SECONDS),
    )
    unread = {Place(one.account, one.region) for one in found if not one.entry.connect}
    listed = read_places(spark, CloudWatchMetrics, unread, namespace=NAMESPACE, names=",".join(LAG.values()))
    return {
        "msk_brokers": msk,
        "ec2_instance_types": types,
        "clusters": clusters,
        "brokers": brokers,
        "asked": asked,
        "volumes": volumes,
        "instances": instances,
        "cloudwatch": metrics,
        "cloudwatch_read_baseline": read_metrics(
            broker_series(asked, READ_BYTES, "volume_id"), Span.of(hour - READ_BASELINE, hour, now, 3600)
        ),
        "cloudwatch_look_back": look_back,
        "cloudwatch_metrics": listed,
        "cloudwatch_lag": read_metrics(lag_series(listed, clusters), Span.of(hour, end, now)),
        "sampled_since": sampled_since(spark, end - LOOK_BACK, hour - OVERLAP),
        "volume_samples": volume_samples,
        "last_day_samples": storage.with_spending(samples(look_back, "volume_id", columns), volumes),
        "broker_samples": of_brokers.broker_samples(metrics),
    }


def _types(found: Sequence[MskCluster]) -> list[str]:
    """EC2's names of the brokers' instance types: what Express brokers run on is not public."""
    names = {one.instance_type for one in found if one.kind == "standard" and one.instance_type}
    return sorted(name.removeprefix("kafka.") for name in names)


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """See the module."""
    if not sources:
        return {}
    known = "observed_at is not null"
    hours = kept(of_brokers.hours_of(sources, hour))
    return {
        "inventory.msk_cluster_hourly": sources["clusters"].filter(known),
        "inventory.msk_broker_hourly": sources["brokers"].filter(known),
        "inventory.instance_hourly": sources["instances"].filter(known).drop("known_until"),
        "inventory.volume_hourly": sources["volumes"].filter(known).drop("known_until"),
        "metrics.volume_sample": with_last_day(sources, hour).drop("spent_by_balance"),
        "metrics.volume_hourly": storage.with_balance_minutes(volume_hours(storage.as_volumes(sources), hour)),
        "metrics.instance_sample": of_brokers.instance_samples(sources),
        "metrics.instance_hourly": of_brokers.instance_hours(sources, hour),
        "metrics.instance_health_hourly": of_brokers.credit_hours(sources, hour),
        "metrics.instance_network_sample": of_brokers.network_samples(sources),
        "metrics.instance_network_hourly": of_brokers.network_of(sources, hour),
        "metrics.broker_sample": of_brokers.controller_samples(sources, hour),
        "metrics.broker_hourly": of_brokers.broker_hours(sources, hours),
        "metrics.msk_broker_hourly": of_brokers.msk_broker_hours(sources, hours),
        "metrics.log_dir_hourly": of_brokers.log_dirs(sources, hours),
        "metrics.msk_consumer_lag_hourly": lag_hours(sources, hour),
        "metrics.cloudwatch_cost_hourly": cost(
            sources, ("cloudwatch", "cloudwatch_read_baseline", "cloudwatch_look_back", "cloudwatch_lag"), APP
        ),
    }
