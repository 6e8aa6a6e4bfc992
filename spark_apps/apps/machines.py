"""App machines: EC2 instances, their status checks, Auto Scaling activities, network, and CPU credits."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR

from spark_apps.apps.ebs_volumes import known_until
from spark_apps.apps.ebs_volumes.hours import completeness, expected_minutes, minutes, or_none
from spark_apps.apps.ebs_volumes.inventory import INSTANCE, as_seen_then, of_hour
from spark_apps.apps.ebs_volumes.series import Metric, samples, series_of
from spark_apps.models.network import network_hours, with_periods
from spark_apps.sources.autoscaling import ScalingActivities
from spark_apps.sources.aws_client import places_of, read_places
from spark_apps.sources.cloudwatch import Span, read_metrics
from spark_apps.sources.ec2 import Ec2Instances

# CloudWatch sends these every minute, free of charge, with basic monitoring as well.
CHECKS = (
    Metric("instance_failed", "StatusCheckFailed_Instance", "Maximum"),
    Metric("system_failed", "StatusCheckFailed_System", "Maximum"),
    Metric("volumes_failed", "StatusCheckFailed_AttachedEBS", "Maximum"),
)
NETWORK = (Metric("in_bytes", "NetworkIn", "Sum"), Metric("out_bytes", "NetworkOut", "Sum"))
# Data points of five minutes, with basic and detailed monitoring.
CREDITS = (
    Metric("cpu_credits", "CPUCreditBalance", "Minimum", "is_burstable"),
    Metric("cpu_credits_borrowed", "CPUSurplusCreditBalance", "Maximum", "is_burstable"),
    Metric("cpu_credits_charged", "CPUSurplusCreditsCharged", "Sum", "is_burstable"),
)
_LIMITS = ["instance_type", "baseline_bytes_per_second", "peak_bytes_per_second"]
_ACTIVITY = ["activity_id", "scaling_group", "instance_id", "is_termination", "description", "cause", "status",
             "started_at", "ended_at"]  # fmt: skip


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Inventory first, then the status checks of its instances."""
    places, now = places_of(config), datetime.now(UTC)
    end = known_until(hour, config, now)
    ec2 = of_hour(read_places(spark, Ec2Instances, places), hour)
    instances, limits = machines_of(ec2, end), network_limits(ec2)
    instances = as_seen_then(instances, "metrics.instance_health_hourly", INSTANCE, hour)
    # Without an inventory of that hour, the instance group is not known.
    instances = instances.filter("observed_at is not null")
    limits = as_seen_then(limits, "metrics.instance_network_hourly", INSTANCE, hour).distinct()
    series = series_of(instances, "instance_id", "AWS/EC2", "InstanceId", [*CHECKS, *NETWORK, *CREDITS])
    return {
        "ec2_instances": ec2,
        "scaling_activities": read_places(
            spark, ScalingActivities, places, since=hour.isoformat(), until=(hour + HOUR).isoformat()
        ),
        "machines": instances.withColumn("known_until", f.lit(end)),
        "network_limits": limits,
        "cloudwatch": read_metrics(series, Span.of(hour, end, now)),
    }


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Hourly rows of instances: status checks, network, CPU credits, and scaling activities."""
    activities = sources["scaling_activities"]
    network = with_periods(samples(sources["cloudwatch"], "instance_id", [metric.column for metric in NETWORK]))
    return {
        "metrics.instance_network_sample": network,
        "metrics.instance_network_hourly": network_of(sources, network, hour),
        "metrics.scaling_activity_hourly": activities.filter("activity_id is not null").select(
            "account", "region", *_ACTIVITY
        ),
        "metrics.instance_health_hourly": health_hours(sources, activities).join(
            credit_hours(sources["cloudwatch"], hour), INSTANCE, "left"
        ),
    }


def machines_of(ec2: DataFrame, end: datetime) -> DataFrame:
    """Instances that existed, each with its group of interchangeable instances."""
    group, application = (f.col("tags").getItem(tag) for tag in ("aws:autoscaling:groupName", "application"))
    existed = f.coalesce(f.col("launched_at") < f.lit(end), f.lit(True))
    return ec2.filter(f.col("instance_id").isNotNull() & existed).select(
        *INSTANCE,
        f.coalesce(group, application, "instance_id").alias("instance_group"),
        group.alias("scaling_group"),
        application.alias("application"),
        "state",
        "is_spot",
        "launched_at",
        f.col("instance_type").rlike("^t[0-9]").alias("is_burstable"),
        "observed_at",
    )


def health_hours(sources: dict[str, DataFrame], activities: DataFrame) -> DataFrame:
    """One row per instance: its status checks in the hour."""
    checks = samples(sources["cloudwatch"], "instance_id", [check.column for check in CHECKS])
    failed = f.greatest(*(check.column for check in CHECKS)) > 0
    last_passed = f.max(f.when(~failed, f.col("at")))
    known = activities.groupBy("account", "region").agg((f.count("gap") == 0).alias("activities_known"))
    hours = checks.groupBy(*INSTANCE).agg(
        minutes(f.lit(1)).alias("minutes_checked"),
        *(minutes(f.col(check.column)).alias(f"minutes_{check.column}") for check in CHECKS),
        _first_after(last_passed, f.collect_list(f.when(failed, f.col("at")))).alias("failing_since"),
    )
    return (
        sources["machines"]
        .join(known, ["account", "region"], "left")
        .withColumn("activities_known", f.coalesce("activities_known", f.lit(False)))
        .join(completeness(sources["cloudwatch"], "instance_id", "instance_failed"), INSTANCE, "left")
        .join(hours, INSTANCE, "left")
        .withColumn("minutes_checked", or_none("minutes_checked"))
        .drop("is_complete", "known_until")
    )


def credit_hours(cloudwatch: DataFrame, hour: datetime) -> DataFrame:
    """One row per burstable instance: its CPU credits in the hour."""
    columns = [metric.column for metric in CREDITS]
    in_hour = samples(cloudwatch, "instance_id", columns).filter(f.col("at") >= f.lit(hour))
    return in_hour.groupBy(*INSTANCE).agg(
        *(_latest(column) for column in ("cpu_credits", "cpu_credits_borrowed")),
        f.max("cpu_credits").alias("cpu_credits_most"),
        f.sum("cpu_credits_charged").alias("cpu_credits_charged"),
    )


def _latest(column: str) -> Column:
    return f.max_by(column, f.when(f.col(column).isNotNull(), f.col("at"))).alias(column)


def network_limits(ec2: DataFrame) -> DataFrame:
    """Network limits of each instance's type."""
    return ec2.filter("instance_id is not null").select(
        *INSTANCE,
        "instance_type",
        f.col("network_baseline_bytes_per_second").alias("baseline_bytes_per_second"),
        f.col("network_peak_bytes_per_second").alias("peak_bytes_per_second"),
    )


def network_of(sources: dict[str, DataFrame], network: DataFrame, hour: datetime) -> DataFrame:
    """One row per instance and direction: its network traffic in the hour."""
    machines = sources["machines"].join(sources["network_limits"], INSTANCE, "left")
    known = network.join(machines.select(*INSTANCE, "known_until", *_LIMITS[1:]), INSTANCE)
    return (
        machines.select(
            *INSTANCE,
            *_LIMITS,
            f.explode(f.array(f.lit("in"), f.lit("out"))).alias("direction"),
            expected_minutes(hour, "launched_at").alias("minutes_expected"),
        )
        .join(completeness(sources["cloudwatch"], "instance_id", "in_bytes"), INSTANCE, "left")
        .join(network_hours(known, hour), [*INSTANCE, "direction"], "left")
        .withColumn("minutes_present", or_none("minutes_present"))
        .withColumn("minutes_allowance_exceeded", f.lit(None).cast("int"))  # only MSK exposes it
        .drop("is_complete")
    )


def _first_after(moment: Column, moments: Column) -> Column:
    """The first of `moments` after `moment`; where that is null, the first."""
    return f.array_min(f.filter(moments, lambda each: moment.isNull() | (each > moment)))
