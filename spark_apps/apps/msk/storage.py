"""Brokers' storage as volumes, also where only its burst balance is exposed."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_apps.apps.ebs_volumes.inventory import VOLUME
from spark_apps.models import ebs

_INSTANCE_COLUMNS = (
    "ebs_io_balance_percent", "ebs_byte_balance_percent", "ebs_iops_exceeded", "ebs_throughput_exceeded",
)  # fmt: skip


def with_spending(samples: DataFrame, volumes: DataFrame) -> DataFrame:
    """Samples with `spent_by_balance`: credits a second that were spent by what the burst balance says; else null.

    What a bucket earns less what it gained: an empty one that stays empty spends its baseline. A full one that stays
    full earned nothing, so what was spent is at most the baseline: unknown.
    """
    limits = volumes.withColumns(ebs.limits()).withColumn("earned", ebs.earned_per_second())
    of_volume = Window.partitionBy(*VOLUME).orderBy("at")
    balance = f.col("burst_balance_percent")
    before, seconds = (
        f.lag(balance).over(of_volume),
        f.unix_timestamp("at") - f.unix_timestamp(f.lag("at").over(of_volume)),
    )
    gained = (balance - before) / 100 * f.col("bucket_credits") / seconds
    known = (seconds == f.col("period_seconds")) & ~((balance >= 100) & (before >= 100))
    spent = f.when(known, f.greatest(f.col("earned") - gained, f.lit(0.0)))
    return (
        samples.join(limits.select(*VOLUME, "earned", "bucket_credits"), VOLUME, "left")
        .withColumn("spent_by_balance", spent)
        .drop("earned", "bucket_credits")
    )


def as_volumes(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The frames as `volume_hours` takes them: of brokers' instances no EBS limit is exposed."""
    nothing = {name: f.lit(None).cast("double") for name in _INSTANCE_COLUMNS}
    none = (
        sources["volume_samples"]
        .limit(0)
        .select("account", "region", f.col("volume_id").alias("instance_id"), "at", "period_seconds")
    )
    return sources | {"instance_samples": none.withColumns(nothing)}


def with_balance_minutes(hours: DataFrame) -> DataFrame:
    """Where no operations are exposed, the minutes for which the burst balance is known are those that are known."""
    return hours.withColumn("minutes_present", f.coalesce("minutes_present", "minutes_balance"))
