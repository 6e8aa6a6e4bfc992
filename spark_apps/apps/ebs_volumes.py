"""EC2 instances and EBS volumes: what there is, what it did, what held it back, and until when it can go on.

CloudWatch's hour is read with some minutes before it, as points come late. Two look-backs explain the hour: the read
rate of the brokers' volumes over four weeks (is this much normal?), and the last day of volumes that ran low or were
held back (since when, and how much did they want before?). Thresholds here only say what "held back" means physically.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR

from spark_apps.models import ebs
from spark_apps.runtime.warehouse_io import read_query
from spark_apps.sources.aws_client import places_of, read_places
from spark_apps.sources.cloudwatch import CloudWatchMetrics, Span, read_metrics
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes
from spark_apps.sources.targets import jvms_of

OVERLAP = timedelta(minutes=15)
"""Read again before the hour: late points come in, and a fresh hour has a past."""
READ_BASELINE = timedelta(days=28)
LOOK_BACK = timedelta(hours=24)
LOOK_BACK_PERIOD_SECONDS = 300
PRESENT = timedelta(minutes=15)
LATEST = timedelta(minutes=5)
"""A load that these minutes no longer show has ended: it empties nothing any more."""
PAUSE = timedelta(minutes=10)
"""A pause as long as this ends a throttling."""
INVENTORY_IS_PRESENT_FOR = 2 * HOUR
EMPTY_PERCENT, LOW_PERCENT = 1.0, 20.0
NEAR_LIMIT, NEAR_BASELINE = 0.95, 0.9
POINT = "struct<at: timestamp, period_seconds: int, spent: double, balance: double, is_throttled: boolean>"

VOLUME = ["account", "region", "volume_id"]
INSTANCE = ["account", "region", "instance_id"]


class Metric(NamedTuple):
    """A CloudWatch metric and the column it becomes. It is asked only where it can exist: each costs money."""

    column: str
    name: str
    stat: str
    exists: str = "true"


# Where the baseline reaches the burst, no credits are spent and none are told.
_HAS_BUCKET = (
    "volume_type = 'sc1' or volume_type = 'gp2' and size_gib < 1000 or volume_type = 'st1' and size_gib < 12800"
)
_CHECKED = "volume_type <> 'standard' and not coalesce(multi_attach, false) and coalesce(nitro, true)"
# Checks are averaged: over a minute that is 0 or 1, over a longer period the share of its minutes.
VOLUME_METRICS = (
    Metric("read_ops", "VolumeReadOps", "Sum"),
    Metric("write_ops", "VolumeWriteOps", "Sum"),
    Metric("read_bytes", "VolumeReadBytes", "Sum"),
    Metric("write_bytes", "VolumeWriteBytes", "Sum"),
    Metric("read_seconds", "VolumeTotalReadTime", "Sum"),
    Metric("write_seconds", "VolumeTotalWriteTime", "Sum"),
    Metric("idle_seconds", "VolumeIdleTime", "Sum"),
    Metric("queue_length", "VolumeQueueLength", "Average"),
    Metric("burst_balance_percent", "BurstBalance", "Average", _HAS_BUCKET),
    Metric("iops_exceeded", "VolumeIOPSExceededCheck", "Average", _CHECKED),
    Metric("throughput_exceeded", "VolumeThroughputExceededCheck", "Average", _CHECKED),
    Metric("stalled", "VolumeStalledIOCheck", "Average", _CHECKED),
)
_LOOKED_BACK = {
    *("read_ops", "write_ops", "read_bytes", "write_bytes"),
    *("burst_balance_percent", "iops_exceeded", "throughput_exceeded"),
}
LOOK_BACK_METRICS = tuple(metric for metric in VOLUME_METRICS if metric.column in _LOOKED_BACK)
INSTANCE_METRICS = (
    Metric("cpu_percent", "CPUUtilization", "Average"),
    Metric("ebs_io_balance_percent", "EBSIOBalance%", "Minimum", "coalesce(nitro, true)"),
    Metric("ebs_byte_balance_percent", "EBSByteBalance%", "Minimum", "coalesce(nitro, true)"),
    Metric("ebs_iops_exceeded", "InstanceEBSIOPSExceededCheck", "Average", "coalesce(nitro, true)"),
    Metric("ebs_throughput_exceeded", "InstanceEBSThroughputExceededCheck", "Average", "coalesce(nitro, true)"),
)
AGENT_METRICS = {"mem_used_percent": "memory_used_percent", "disk_used_percent": "disk_used_percent"}
_NO_DISKS = ("tmpfs", "devtmpfs", "overlay", "squashfs")


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Inventory first, then the metrics of what it holds."""
    places, now = places_of(config), datetime.now(UTC)
    end = known_until(hour, config, now)
    sources = {
        "ec2_volumes": read_places(spark, Ec2Volumes, places),
        "ec2_instances": read_places(spark, Ec2Instances, places),
        "cloudwatch_metrics": read_places(
            spark, CloudWatchMetrics, places, namespace="CWAgent", names=",".join(AGENT_METRICS)
        ),
    }
    instances, volumes = _instances(sources["ec2_instances"], end), _volumes(sources["ec2_volumes"], end)
    if now >= hour + HOUR + INVENTORY_IS_PRESENT_FOR:
        instances = _as_seen_then(instances, "inventory.instance_hourly", INSTANCE, hour)
        volumes = _as_seen_then(volumes, "inventory.volume_hourly", VOLUME, hour)
        sources["inventory_of_then"] = _unseen_then("instances", instances, hour).unionByName(
            _unseen_then("volumes", volumes, hour)
        )
    until = {"known_until": f.lit(end)}
    sources |= {"instances": instances.withColumns(until), "volumes": volumes.withColumns(until)}
    asked = _with_nitro(volumes, instances)
    series = _series(asked, "volume_id", "AWS/EBS", "VolumeId", VOLUME_METRICS)
    series = series.unionByName(_series(instances, "instance_id", "AWS/EC2", "InstanceId", INSTANCE_METRICS))
    series = series.unionByName(_agent_series(sources["cloudwatch_metrics"], instances))
    metrics = read_metrics(series, Span.of(hour - OVERLAP, end, now))
    history = _series(_broker_volumes(volumes, config), "volume_id", "AWS/EBS", "VolumeId", VOLUME_METRICS[2:3])
    held = _series(_held_back(asked, metrics), "volume_id", "AWS/EBS", "VolumeId", LOOK_BACK_METRICS)
    look_back = read_metrics(held, Span.of(end - LOOK_BACK, end, now, LOOK_BACK_PERIOD_SECONDS))
    return sources | {
        "cloudwatch": metrics,
        "cloudwatch_read_baseline": read_metrics(history, Span.of(hour - READ_BASELINE, hour, now, 3600)),
        "cloudwatch_look_back": look_back,
        "sampled_since": _sampled_since(spark, end - LOOK_BACK, hour - OVERLAP),
        # Derived, and here because what is used more than once is kept.
        "volume_samples": _samples(metrics, "volume_id", [metric.column for metric in VOLUME_METRICS]),
        "last_day_samples": _samples(look_back, "volume_id", [metric.column for metric in LOOK_BACK_METRICS]),
        "instance_samples": _samples(
            metrics, "instance_id", [*(metric.column for metric in INSTANCE_METRICS), *AGENT_METRICS.values()]
        ),
    }


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """See the module."""
    return {
        "inventory.instance_hourly": sources["instances"].drop("known_until"),
        "inventory.volume_hourly": sources["volumes"].drop("known_until"),
        "metrics.instance_sample": sources["instance_samples"],
        "metrics.instance_hourly": _instance_hours(sources, hour),
        "metrics.volume_sample": _with_last_day(sources, hour),
        "metrics.volume_hourly": _volume_hours(sources, hour),
        "metrics.cloudwatch_cost_hourly": _cost(sources),
    }


def known_until(hour: datetime, config: Config, now: datetime) -> datetime:
    """End of what CloudWatch has settled of the hour."""
    settle = timedelta(minutes=config.gathering.settle_minutes)
    end = min(hour + HOUR, (now - settle).replace(second=0, microsecond=0))
    if end <= hour:
        raise StreamwardenError(
            f"hour {hour:%Y-%m-%dT%H:%MZ}: CloudWatch has settled nothing of it yet (gathering.settle_minutes:"
            f" {config.gathering.settle_minutes}); run it after {hour + settle:%Y-%m-%d %H:%M} UTC."
        )
    return end


# What there is


def _tag(name: str) -> Column:
    return f.col("tags").getItem(name)


def _existed(since: str, end: datetime) -> Column:
    return f.coalesce(f.col(since) < f.lit(end), f.lit(True))


def _volumes(ec2: DataFrame, end: datetime) -> DataFrame:
    # A Multi-Attach volume counts for the instance that has had it longest.
    attached = f.filter("attachments", lambda a: ~f.coalesce(a.state, f.lit("")).isin("detaching", "detached"))
    first = f.get(
        f.array_sort(f.transform(attached, lambda a: f.struct(a.attached_at, a.instance_id, a.device))), f.lit(0)
    )
    return (
        ec2.filter(f.col("volume_id").isNotNull() & _existed("created_at", end))
        .withColumn("attachment", first)
        .select(
            *VOLUME,
            "volume_type",
            "size_gib",
            f.col("iops").alias("provisioned_iops"),
            f.col("throughput_mib_s").alias("provisioned_throughput_mib_s"),
            "state",
            "multi_attach",
            f.col("attachment.instance_id").alias("instance_id"),
            f.col("attachment.device").alias("device"),
            f.col("attachment.attached_at").alias("attached_at"),
            "created_at",
            _tag("Name").alias("name"),
            _tag("application").alias("application"),
            _tag("owner").alias("owner"),
            f.to_json("tags").alias("tags"),
            "observed_at",
        )
    )


def _instances(ec2: DataFrame, end: datetime) -> DataFrame:
    return ec2.filter(f.col("instance_id").isNotNull() & _existed("launched_at", end)).select(
        *INSTANCE,
        "instance_type",
        "state",
        _tag("Name").alias("name"),
        _tag("application").alias("application"),
        _tag("owner").alias("owner"),
        "private_ip",
        "private_dns",
        "launched_at",
        "vcpus",
        "memory_bytes",
        "nitro",
        "ebs_baseline_iops",
        "ebs_maximum_iops",
        "ebs_baseline_bytes_per_second",
        "ebs_maximum_bytes_per_second",
        f.to_json("tags").alias("tags"),
        "observed_at",
    )


def _as_seen_then(seen_now: DataFrame, table: str, key: Sequence[str], hour: datetime) -> DataFrame:
    """What was seen in its own hour, and of the present only what wasn't: a backfill mustn't rewrite history."""
    columns = ", ".join("tags::text" if name == "tags" else name for name in seen_now.columns)
    query = f"select {columns} from {table} where hour = '{hour.isoformat()}'"  # noqa: S608 our own names
    known = read_query(seen_now.sparkSession, query, seen_now.schema)
    return known.unionByName(seen_now.join(known.select(*key), list(key), "left_anti"))


def _unseen_then(what: str, resources: DataFrame, hour: datetime) -> DataFrame:
    """A gap for each place where the present stands for the hour: it doesn't tell what there was, and how it was."""
    gap = (
        f"missing: %d {what} were not seen in that hour and are taken as of %s UTC; what was deleted since isn't known."
    )
    return (
        resources.filter(f.col("observed_at") >= f.lit(hour + HOUR + INVENTORY_IS_PRESENT_FOR))
        .groupBy("account", "region")
        .agg(f.count("*").alias("count"), f.date_format(f.max("observed_at"), "yyyy-MM-dd HH:mm").alias("seen"))
        .select(
            f.format_string(f"%s/%s {what}", "account", "region").alias("resource"),
            f.format_string(gap, "count", "seen").alias("gap"),
        )
    )


def _with_nitro(volumes: DataFrame, instances: DataFrame) -> DataFrame:
    return volumes.join(instances.select(*INSTANCE, "nitro"), INSTANCE, "left")


def _broker_volumes(volumes: DataFrame, config: Config) -> DataFrame:
    brokers = [e.instance_id for e in jvms_of(config).endpoints if e.role == "broker" and e.instance_id]
    return volumes.filter(f.col("instance_id").isin(brokers))


def _held_back(volumes: DataFrame, metrics: DataFrame) -> DataFrame:
    """Volumes whose last day explains the hour; few, so that asking for it costs little."""
    held = metrics.filter(
        (f.col("metric").isin("iops_exceeded", "throughput_exceeded") & (f.col("value") > 0))
        | ((f.col("metric") == "burst_balance_percent") & (f.col("value") <= LOW_PERCENT))
    ).select("account", "region", f.col("resource_id").alias("volume_id"))
    return volumes.join(held, VOLUME, "left_semi")


# What to ask


def _series(
    resources: DataFrame, id_column: str, namespace: str, dimension: str, metrics: Sequence[Metric]
) -> DataFrame:
    wanted = f.array_compact(
        f.array(
            *(
                f.when(
                    f.expr(m.exists),
                    f.struct(f.lit(m.column).alias("metric"), f.lit(m.name).alias("name"), f.lit(m.stat).alias("stat")),
                )
                for m in metrics
            )
        )
    )
    return resources.select(
        "account", "region", f.col(id_column).alias("resource_id"), f.explode(wanted).alias("m")
    ).select(
        "account",
        "region",
        "resource_id",
        "m.metric",
        f.lit(namespace).alias("namespace"),
        "m.name",
        f.create_map(f.lit(dimension), "resource_id").alias("dimensions"),
        "m.stat",
    )


def _agent_series(listed: DataFrame, instances: DataFrame) -> DataFrame:
    """The CloudWatch agent's series of our instances: their dimensions are known from the list only."""
    columns = f.create_map(*(f.lit(part) for pair in AGENT_METRICS.items() for part in pair))
    return (
        listed.withColumn("resource_id", f.col("dimensions").getItem("InstanceId"))
        .filter(~f.coalesce(f.col("dimensions").getItem("fstype"), f.lit("")).isin(*_NO_DISKS))
        .join(
            instances.select("account", "region", f.col("instance_id").alias("resource_id")),
            ["account", "region", "resource_id"],
            "left_semi",
        )
        .select(
            "account",
            "region",
            "resource_id",
            columns[f.col("name")].alias("metric"),
            "namespace",
            "name",
            "dimensions",
            f.lit("Average").alias("stat"),
        )
    )


# What was measured


def _samples(metrics: DataFrame, id_column: str, columns: Sequence[str]) -> DataFrame:
    """One row per resource and time. Several series of a metric (file systems) become their largest."""
    return (
        metrics.filter(f.col("at").isNotNull() & f.col("metric").isin(*columns))
        .groupBy("account", "region", f.col("resource_id").alias(id_column), "at")
        .agg(
            f.max("period_seconds").alias("period_seconds"),
            *(f.max(f.when(f.col("metric") == column, f.col("value"))).alias(column) for column in columns),
        )
    )


def _sampled_since(spark: SparkSession, start: datetime, end: datetime) -> DataFrame:
    """First sample in [start, end) that the warehouse has of each volume."""
    between = f"at >= '{start.isoformat()}' and at < '{end.isoformat()}'"
    query = f"select {', '.join(VOLUME)}, min(at) from metrics.volume_sample where {between} group by 1, 2, 3"  # noqa: S608
    return read_query(spark, query, "account string, region string, volume_id string, sampled_since timestamp")


def _with_last_day(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """The samples, and for volumes held back those of the day before that nobody took: pictures show how it came."""
    since = f.coalesce("sampled_since", f.lit(hour - OVERLAP))
    before = sources["last_day_samples"].join(sources["sampled_since"], VOLUME, "left")
    before = before.filter(f.unix_timestamp("at") + f.col("period_seconds") <= f.unix_timestamp(since))
    return sources["volume_samples"].unionByName(before.drop("sampled_since"), allowMissingColumns=True)


def _answered(metrics: DataFrame, id_column: str, metric: str) -> DataFrame:
    """Resources of which CloudWatch said all it has of a metric, be it nothing."""
    return (
        metrics.filter(f.col("metric") == metric)
        .groupBy("account", "region", f.col("resource_id").alias(id_column))
        .agg((f.count("gap") == 0).alias("answered"))
    )


def _expected_minutes(hour: datetime, since: str) -> Column:
    start = f.greatest(f.lit(hour), f.coalesce(since, f.lit(hour)))
    minutes = f.floor((f.unix_timestamp("known_until") - f.unix_timestamp(start)) / 60)
    return f.greatest(f.lit(0), minutes).cast("int")


def _minutes(share: Column) -> Column:
    """Minutes of a condition that is 0, 1 or a share in every period."""
    return f.round(f.sum(share.cast("double") * f.col("period_seconds") / 60)).cast("int")


def _or_none(column: str) -> Column:
    """A count of minutes: 0 where CloudWatch answered and had none, null where it didn't answer."""
    return f.coalesce(column, f.when(f.col("answered"), 0)).alias(column)


# Instances


def _instance_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    samples = sources["instance_samples"]
    hours = (
        samples.filter(f.col("at") >= f.lit(hour))
        .groupBy(*INSTANCE)
        .agg(
            _cpu_minutes().alias("minutes_cpu"),
            f.avg("cpu_percent").alias("cpu_mean_percent"),
            f.max("cpu_percent").alias("cpu_max_percent"),
            f.avg("memory_used_percent").alias("memory_used_mean_percent"),
            f.max("memory_used_percent").alias("memory_used_max_percent"),
            f.max("disk_used_percent").alias("disk_used_max_percent"),
            f.min("ebs_io_balance_percent").alias("ebs_io_balance_min_percent"),
            f.min("ebs_byte_balance_percent").alias("ebs_byte_balance_min_percent"),
        )
    )
    limited = (
        _instance_limits(samples)
        .filter(f.col("at") >= f.lit(hour))
        .groupBy(*INSTANCE)
        .agg(_minutes(f.col("instance_limited")).alias("minutes_ebs_limited"))
    )
    return (
        sources["instances"]
        .select(*INSTANCE, _expected_minutes(hour, "launched_at").alias("minutes_expected"))
        .join(_answered(sources["cloudwatch"], "instance_id", "cpu_percent"), INSTANCE, "left")
        .join(hours, INSTANCE, "left")
        .join(limited, INSTANCE, "left")
        .withColumn(
            "minutes_present", f.when(f.col("minutes_cpu").isNotNull(), f.least("minutes_cpu", "minutes_expected"))
        )
        .withColumn("minutes_present", _or_none("minutes_present"))
        .drop("answered", "minutes_cpu")
    )


def _cpu_minutes() -> Column:
    """Minutes that the CPU's points stand for: basic monitoring sends one for five minutes, on their first."""
    seconds = f.when(f.col("cpu_percent").isNotNull(), f.col("period_seconds"))
    is_basic = f.bool_and(f.when(seconds == 60, f.unix_timestamp("at") % 300 == 0))
    return (f.sum(seconds) / 60 * f.when(is_basic, 5).otherwise(1)).cast("int")


def _instance_limits(samples: DataFrame) -> DataFrame:
    """Instance and minute: whether its EBS limits bound. A point of basic monitoring holds until the next.

    Where it sends no checks an empty balance has to tell; beside checks it may be a load that just fits.
    """
    empty = f.least("ebs_io_balance_percent", "ebs_byte_balance_percent") <= EMPTY_PERCENT
    later = f.lead("at").over(Window.partitionBy(*INSTANCE).orderBy("at"))
    minute = f.expr("interval 1 minute")
    upto = f.least(f.coalesce(later, f.col("at") + minute) - minute, f.col("at") + f.expr("interval 4 minutes"))
    covered = f.when(f.col("period_seconds") == 60, f.sequence("at", f.greatest(upto, "at"), minute))
    limited = f.coalesce(f.greatest("ebs_iops_exceeded", "ebs_throughput_exceeded"), empty.cast("double"))
    return (
        samples.withColumn("instance_limited", limited)
        .filter("instance_limited is not null")
        .withColumn("covered", f.coalesce(covered, f.array("at")))
        .select(*INSTANCE, f.explode("covered").alias("at"), "period_seconds", "instance_limited")
    )


# Volumes


def _volume_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    type_limits = ["ebs_maximum_iops", "ebs_maximum_bytes_per_second"]
    volumes = (
        sources["volumes"]
        .join(sources["instances"].select(*INSTANCE, *type_limits), INSTANCE, "left")
        .withColumns(ebs.limits())
        .withColumn("earned_per_second", ebs.earned_per_second())
    )
    known = [*VOLUME, "instance_id", "volume_type", "known_until", "earned_per_second", *ebs.LIMITS, *type_limits]
    limits = _instance_limits(sources["instance_samples"])
    loads = _with_instance_limits(_loads(sources["volume_samples"], volumes.select(*known)), limits)
    facts = (
        volumes.withColumn("minutes_expected", _expected_minutes(hour, "attached_at"))
        .join(_answered(sources["cloudwatch"], "volume_id", "read_ops"), VOLUME, "left")
        .join(_facts(loads, hour), VOLUME, "left")
        .join(_last_day(_loads(sources["last_day_samples"], volumes.select(*known))), VOLUME, "left")
        .join(_read_baseline(sources["cloudwatch_read_baseline"], hour), VOLUME, "left")
    )
    return _volume_columns(facts)


def _loads(samples: DataFrame, volumes: DataFrame) -> DataFrame:
    """Rates of every period beside the volume's limits, and which of those limits bound."""
    rates = samples.join(volumes, VOLUME).withColumns(
        {
            "ops_per_second": (f.col("read_ops") + f.col("write_ops")) / f.col("period_seconds"),
            "bytes_per_second": (f.col("read_bytes") + f.col("write_bytes")) / f.col("period_seconds"),
        }
    )
    iops, rate = f.col("ops_per_second"), f.col("bytes_per_second")
    is_empty = f.coalesce(f.col("burst_balance_percent") <= EMPTY_PERCENT, f.lit(False))
    spent = ebs.spent_per_second()
    # An empty bucket binds at the baseline: of operations (large ones count as several), or of bytes on HDD.
    starves = is_empty & (spent >= NEAR_BASELINE * f.col("earned_per_second"))
    iops_starve, bytes_starve = starves & ~ebs.is_hdd(), starves & ebs.is_hdd()
    # AWS's own check where there is one, else a rate at the limit.
    pieces = f.when(ebs.is_hdd(), iops).otherwise(spent)
    iops_bound = f.coalesce("iops_exceeded", (pieces >= NEAR_LIMIT * f.col("burst_iops")).cast("double"))
    bytes_bound = f.coalesce(
        "throughput_exceeded", (rate >= NEAR_LIMIT * f.col("burst_bytes_per_second")).cast("double")
    )
    return rates.withColumns(
        {
            "spent_per_second": spent,
            "at_iops_limit": f.greatest(iops_bound, iops_starve.cast("double")),
            "at_throughput_limit": f.greatest(bytes_bound, bytes_starve.cast("double")),
        }
    )


def _with_instance_limits(loads: DataFrame, limits: DataFrame) -> DataFrame:
    """at_instance_limit: the instance's limits bound while this volume had requests waiting.

    Where the instance sends no checks (not Nitro), the sum of its volumes against what its type reaches.
    """
    of_instance = Window.partitionBy(*INSTANCE, "at")
    used = f.greatest(
        f.sum("ops_per_second").over(of_instance) / f.col("ebs_maximum_iops"),
        f.sum("bytes_per_second").over(of_instance) / f.col("ebs_maximum_bytes_per_second"),
    )
    limited = f.coalesce("instance_limited", (used >= NEAR_LIMIT).cast("double"))
    waits = f.coalesce(f.col("queue_length") >= 1, f.lit(True))
    return loads.join(limits.drop("period_seconds"), [*INSTANCE, "at"], "left").withColumn(
        "at_instance_limit", f.when(waits, limited).otherwise(f.lit(0.0))
    )


def _facts(loads: DataFrame, hour: datetime) -> DataFrame:
    """An hour of each volume; `points` and what ends in `_now` reach back before the hour."""
    ops, seconds = f.col("read_ops") + f.col("write_ops"), f.col("period_seconds")
    iops, rate, balance = f.col("ops_per_second"), f.col("bytes_per_second"), f.col("burst_balance_percent")
    spent, busy_seconds = f.col("spent_per_second"), seconds - f.col("idle_seconds")
    throttled = f.greatest("at_iops_limit", "at_throughput_limit", "at_instance_limit", "stalled")
    in_hour = f.col("at") >= f.lit(hour)
    age_seconds = f.unix_timestamp("known_until") - f.unix_timestamp("at")
    is_present, is_latest = (age_seconds <= span.total_seconds() for span in (PRESENT, LATEST))

    def of_hour(value: Column) -> Column:
        return f.when(in_hour, value)

    known_seconds = f.sum(of_hour(f.when(ops.isNotNull(), seconds)))
    balance_at = of_hour(f.when(balance.isNotNull(), f.col("at")))
    return loads.groupBy(*VOLUME).agg(
        (known_seconds / 60).cast("int").alias("minutes_present"),
        (f.sum(of_hour(f.when(balance.isNotNull(), seconds))) / 60).cast("int").alias("minutes_balance"),
        (f.sum(of_hour(ops)) / known_seconds).alias("iops_mean"),
        f.percentile(of_hour(iops), [0.95, 0.99]).alias("iops"),
        f.max(of_hour(iops)).alias("iops_max"),
        f.avg(f.when(is_present, iops)).alias("iops_now"),
        # A busy time below a tenth of a second is CloudWatch's rounding.
        f.percentile(of_hour(f.when(busy_seconds >= 0.1, ops / busy_seconds)), 0.95).alias("busy_iops_p95"),
        f.avg(of_hour(rate)).alias("bytes_per_second_mean"),
        f.percentile(of_hour(rate), [0.95, 0.99]).alias("rates"),
        f.max(of_hour(rate)).alias("bytes_per_second_max"),
        f.avg(f.when(is_present, rate)).alias("bytes_per_second_now"),
        f.sum(of_hour(f.col("read_bytes"))).alias("read_bytes"),
        f.sum(of_hour(f.col("write_bytes"))).alias("write_bytes"),
        f.avg(of_hour(f.col("queue_length"))).alias("queue_length_mean"),
        f.max(of_hour(f.col("queue_length"))).alias("queue_length_max"),
        *(
            # nullif: an hour without operations has no latency.
            (
                f.sum(of_hour(f.col(f"{kind}_seconds")))
                * 1000
                / f.nullif(f.sum(of_hour(f.col(f"{kind}_ops"))), f.lit(0.0))
            ).alias(f"{kind}_latency_ms")
            for kind in ("read", "write")
        ),
        f.min(of_hour(balance)).alias("burst_balance_min_percent"),
        f.max_by(balance, balance_at).alias("burst_balance_last_percent"),
        f.avg(f.when(is_present, spent)).alias("spent_now"),
        f.avg(f.when(is_latest, spent)).alias("spent_latest"),
        f.percentile(of_hour(spent), [0.1, 0.9]).alias("spent"),
        _minutes(of_hour(balance <= EMPTY_PERCENT)).alias("minutes_empty"),
        _minutes(of_hour(f.col("at_iops_limit"))).alias("minutes_at_iops_limit"),
        _minutes(of_hour(f.col("at_throughput_limit"))).alias("minutes_at_throughput_limit"),
        _minutes(of_hour(f.col("at_instance_limit"))).alias("minutes_at_instance_limit"),
        _minutes(of_hour(f.col("stalled"))).alias("minutes_stalled"),
        _minutes(of_hour(throttled)).alias("minutes_throttled"),
        _points(throttled).alias("points"),
    )


def _points(throttled: Column) -> Column:
    """What the models need of each period, in order of time."""
    spent, balance = f.col("spent_per_second").alias("spent"), f.col("burst_balance_percent").alias("balance")
    is_throttled = f.coalesce(throttled > 0, f.lit(False)).alias("is_throttled")
    return f.array_sort(f.collect_list(f.struct("at", "period_seconds", spent, balance, is_throttled)))


def _last_day(loads: DataFrame) -> DataFrame:
    """What held-back volumes did over the last day: before a limit bound, that was what they wanted."""
    known_seconds = f.sum(f.when(f.col("ops_per_second").isNotNull(), f.col("period_seconds")))
    return loads.groupBy(*VOLUME).agg(
        f.percentile("ops_per_second", [0.95, 0.99]).alias("day_iops"),
        f.percentile("bytes_per_second", [0.95, 0.99]).alias("day_rates"),
        (known_seconds / 3600.0).alias("day_hours"),
        _points(f.greatest("at_iops_limit", "at_throughput_limit")).alias("day_points"),
    )


def _throttled_since() -> Column:
    """Start of the throttling that is still on: no pause since, neither in the hour nor in the day before it."""
    first = f.get("points", f.lit(0)).at
    before = f.filter(f.coalesce("day_points", f.array().cast("array<" + POINT + ">")), lambda p: p.at < first)
    nothing = f.struct(f.lit(None).cast("timestamp").alias("since"), f.lit(None).cast("timestamp").alias("until"))

    def seconds(start: Column, end: Column) -> Column:
        return f.unix_timestamp(end) - f.unix_timestamp(start)

    def go_on(run: Column, p: Column) -> Column:
        until = f.timestamp_seconds(f.unix_timestamp(p.at) + p.period_seconds)
        goes_on = seconds(run.until, p.at) < PAUSE.total_seconds()
        since = f.when(goes_on, run.since).otherwise(p.at)
        return f.when(p.is_throttled, f.struct(since.alias("since"), until.alias("until"))).otherwise(run)

    run = f.aggregate(f.concat(before, "points"), nothing, go_on)
    return f.when(seconds(run.until, f.col("known_until")) < PAUSE.total_seconds(), run.since)


def _read_baseline(history: DataFrame, hour: datetime) -> DataFrame:
    """Usual read rate: of the same hour of the week where there are three, else of all hours that are known."""
    same_hour = (f.dayofweek("at") == f.dayofweek(f.lit(hour))) & (f.hour("at") == f.hour(f.lit(hour)))
    rate = f.col("value") / f.col("period_seconds")
    enough = f.size("of_week") >= 3
    return (
        history.filter(f.col("at") < f.lit(hour))
        .groupBy("account", "region", f.col("resource_id").alias("volume_id"))
        .agg(f.collect_list(f.when(same_hour, rate)).alias("of_week"), f.collect_list(rate).alias("of_all"))
        .withColumn("usual_rates", f.when(enough, f.col("of_week")).otherwise(f.col("of_all")))
        .withColumn("usual", ebs.median(f.col("usual_rates")))
        .withColumn("mad", ebs.median(f.transform("usual_rates", lambda r: f.abs(r - f.col("usual")))))
        .select(
            *VOLUME,
            f.col("usual").alias("read_baseline_bytes_per_second"),
            f.col("mad").alias("read_baseline_mad_bytes_per_second"),
            f.size("usual_rates").alias("read_baseline_hours"),
            f.when(enough, "hour_of_week").otherwise("all_hours").alias("read_baseline_kind"),
        )
    )


def _volume_columns(facts: DataFrame) -> DataFrame:
    """The table's columns."""
    balance, earned, credits = (f.col(c) for c in ("burst_balance_last_percent", "earned_per_second", "bucket_credits"))
    # The model reconciled with BurstBalance: a column of its own, as others are made from it for each point.
    facts = facts.withColumn("cost_ratio", ebs.cost_ratio(f.col("points"), earned, credits))
    cost = f.col("cost_ratio")
    spent = (f.col("spent_now"), f.get("spent", f.lit(0)), f.get("spent", f.lit(1)))
    now, light, heavy = (rate * cost for rate in spent)
    light = f.when(light > earned, light)

    has_ended = f.coalesce(f.col("spent_latest") * cost <= earned, f.lit(False))
    present = f.unix_timestamp("known_until") - f.lit(int(PRESENT.total_seconds()))
    draining = f.filter("points", lambda p: (f.unix_timestamp(p.at) >= present) & (p.spent * cost > earned))
    draining_seconds = f.aggregate(draining, f.lit(0), lambda total, p: total + p.period_seconds)

    def until_empty(spent: Column) -> Column:
        drains = (spent > earned) & ~has_ended
        return f.when(balance <= EMPTY_PERCENT, 0.0).when(drains, balance / 100 * credits / (spent - earned) / 3600)

    empties = until_empty(now).isNotNull()

    def demand(of_hour: str, of_day: str, position: int) -> Column:
        return f.greatest(f.get(of_hour, f.lit(position)), f.get(of_day, f.lit(position)))

    return facts.select(
        *VOLUME,
        *("known_until", "minutes_expected"),
        _or_none("minutes_present"),
        _or_none("minutes_balance"),
        *("iops_mean", "iops_max", "iops_now", "busy_iops_p95"),
        f.get("iops", f.lit(0)).alias("iops_p95"),
        f.get("iops", f.lit(1)).alias("iops_p99"),
        *("bytes_per_second_mean", "bytes_per_second_max", "bytes_per_second_now", "read_bytes", "write_bytes"),
        f.get("rates", f.lit(0)).alias("bytes_per_second_p95"),
        f.get("rates", f.lit(1)).alias("bytes_per_second_p99"),
        *("queue_length_mean", "queue_length_max", "read_latency_ms", "write_latency_ms"),
        *ebs.LIMITS,
        *("burst_balance_min_percent", "burst_balance_last_percent"),
        ebs.modelled_balance_percent(f.col("points"), earned, credits).alias("modelled_balance_last_percent"),
        f.when(credits.isNotNull(), (earned - now) * 3600).alias("credits_per_hour"),
        f.when(credits.isNotNull(), f.round(draining_seconds / 60).cast("int")).alias("minutes_draining"),
        until_empty(now).alias("hours_to_exhaustion"),
        f.when(empties, until_empty(f.greatest(now, heavy))).alias("hours_to_exhaustion_low"),
        f.when(empties, until_empty(f.least(now, light))).alias("hours_to_exhaustion_high"),
        *("minutes_empty", "minutes_at_iops_limit", "minutes_at_throughput_limit", "minutes_at_instance_limit"),
        *("minutes_stalled", "minutes_throttled"),
        _throttled_since().alias("throttled_since"),
        demand("iops", "day_iops", 0).alias("demand_iops_p95"),
        demand("iops", "day_iops", 1).alias("demand_iops_p99"),
        demand("rates", "day_rates", 0).alias("demand_bytes_per_second_p95"),
        demand("rates", "day_rates", 1).alias("demand_bytes_per_second_p99"),
        f.coalesce("day_hours", f.col("minutes_present") / 60).alias("demand_hours"),
        *("read_baseline_bytes_per_second", "read_baseline_mad_bytes_per_second"),
        *("read_baseline_hours", "read_baseline_kind"),
    )


# What it cost


def _cost(sources: dict[str, DataFrame]) -> DataFrame:
    """GetMetricData's calls, and the metrics that AWS bills, by account and region."""
    asked = sources["cloudwatch"]
    for name in ("cloudwatch_read_baseline", "cloudwatch_look_back"):
        asked = asked.unionByName(sources[name])
    return (
        asked.filter("calls is not null")
        .groupBy("account", "region")
        .agg(f.sum("calls").alias("calls"), f.sum("metrics_asked").alias("metrics_asked"))
    )
