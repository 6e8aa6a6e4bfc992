"""EC2 instances and EBS volumes: inventory, load, throttling, and how long burst credits last.

The hour is read from CloudWatch with some minutes before it, because data points arrive late. Two look-backs explain
the hour: the read rate of the brokers' volumes over four weeks (the baseline), and the last day of volumes that ran
low on credits or were throttled (since when, and their demand before).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR

from spark_apps.apps.ebs_volumes.instances import instance_hours
from spark_apps.apps.ebs_volumes.inventory import (
    INSTANCE,
    VOLUME,
    as_seen_then,
    instances_of,
    of_hour,
    volumes_of,
    with_nitro,
)
from spark_apps.apps.ebs_volumes.series import (
    AGENT_METRICS,
    INSTANCE_METRICS,
    LOOK_BACK,
    LOOK_BACK_METRICS,
    LOOK_BACK_PERIOD_SECONDS,
    OVERLAP,
    READ_BASELINE,
    VOLUME_METRICS,
    agent_series,
    broker_volumes,
    cost,
    sampled_since,
    samples,
    series_of,
    with_last_day,
)
from spark_apps.apps.ebs_volumes.volumes import throttled_volumes, volume_hours
from spark_apps.runtime.kept import kept
from spark_apps.sources.aws_client import places_of, read_places
from spark_apps.sources.cloudwatch import CloudWatchMetrics, Span, read_metrics
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Inventory first, then the metrics of its volumes and instances."""
    places, now = places_of(config), datetime.now(UTC)
    end = known_until(hour, config, now)
    sources = {
        "ec2_volumes": of_hour(read_places(spark, Ec2Volumes, places), hour),
        "ec2_instances": of_hour(read_places(spark, Ec2Instances, places), hour),
        "cloudwatch_metrics": read_places(
            spark, CloudWatchMetrics, places, namespace="CWAgent", names=",".join(AGENT_METRICS)
        ),
    }
    instances, volumes = instances_of(sources["ec2_instances"], end), volumes_of(sources["ec2_volumes"], end)
    instances = as_seen_then(instances, "inventory.instance_hourly", INSTANCE, hour)
    volumes = as_seen_then(volumes, "inventory.volume_hourly", VOLUME, hour)
    until = {"known_until": f.lit(end)}
    sources |= {"instances": instances.withColumns(until), "volumes": volumes.withColumns(until)}
    asked = with_nitro(volumes, instances)
    series = series_of(asked, "volume_id", "AWS/EBS", "VolumeId", VOLUME_METRICS)
    series = series.unionByName(series_of(instances, "instance_id", "AWS/EC2", "InstanceId", INSTANCE_METRICS))
    series = series.unionByName(agent_series(sources["cloudwatch_metrics"], instances))
    metrics = read_metrics(series, Span.of(hour - OVERLAP, end, now))
    history = series_of(broker_volumes(volumes, config), "volume_id", "AWS/EBS", "VolumeId", VOLUME_METRICS[2:3])
    volume_samples = kept(samples(metrics, "volume_id", [metric.column for metric in VOLUME_METRICS]))
    held = series_of(throttled_volumes(asked, volume_samples), "volume_id", "AWS/EBS", "VolumeId", LOOK_BACK_METRICS)
    look_back = read_metrics(held, Span.of(end - LOOK_BACK, end, now, LOOK_BACK_PERIOD_SECONDS))
    return sources | {
        "cloudwatch": metrics,
        "cloudwatch_read_baseline": read_metrics(history, Span.of(hour - READ_BASELINE, hour, now, 3600)),
        "cloudwatch_look_back": look_back,
        "sampled_since": sampled_since(spark, end - LOOK_BACK, hour - OVERLAP),
        # Derived here because it is used more than once, and source frames are persisted.
        "volume_samples": volume_samples,
        "last_day_samples": samples(look_back, "volume_id", [metric.column for metric in LOOK_BACK_METRICS]),
        "instance_samples": samples(
            metrics, "instance_id", [*(metric.column for metric in INSTANCE_METRICS), *AGENT_METRICS.values()]
        ),
    }


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Frames of all tables of the app, by table name."""
    return {
        "inventory.instance_hourly": sources["instances"].filter("observed_at is not null").drop("known_until"),
        "inventory.volume_hourly": sources["volumes"].filter("observed_at is not null").drop("known_until"),
        "metrics.instance_sample": sources["instance_samples"],
        "metrics.instance_hourly": instance_hours(sources, hour),
        "metrics.volume_sample": with_last_day(sources, hour),
        "metrics.volume_hourly": volume_hours(sources, hour),
        "metrics.cloudwatch_cost_hourly": cost(sources),
    }


def known_until(hour: datetime, config: Config, now: datetime) -> datetime:
    """End of the part of the hour for which CloudWatch data is complete.

    Raises:
        StreamwardenError: CloudWatch data is not complete for any minute of it.
    """
    settle = timedelta(minutes=config.gathering.settle_minutes)
    end = min(hour + HOUR, (now - settle).replace(second=0, microsecond=0))
    if end <= hour:
        raise StreamwardenError(
            f"hour {hour:%Y-%m-%dT%H:%MZ}: CloudWatch data is not complete yet (gathering.settle_minutes:"
            f" {config.gathering.settle_minutes}); run it after {hour + settle:%Y-%m-%d %H:%M} UTC."
        )
    return end
