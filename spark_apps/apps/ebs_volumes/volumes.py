"""Hourly rows of volumes: load, throttling, burst bucket, and how long it lasts.

Thresholds in this module only define what "throttled" means physically.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_apps.apps.ebs_volumes.hours import (
    EMPTY_PERCENT,
    NEAR_LIMIT,
    completeness,
    expected_minutes,
    minutes,
    or_none,
)
from spark_apps.apps.ebs_volumes.instances import instance_limits
from spark_apps.apps.ebs_volumes.inventory import INSTANCE, VOLUME
from spark_apps.models import ebs

LOW_PERCENT = 20.0
"""With a balance this low, or an exceeded limit, a volume's last day is queried."""
PRESENT = timedelta(minutes=15)
LATEST = timedelta(minutes=5)
"""A load that is not in these last minutes has ended and drains no bucket, unless it had paused like this before."""
CYCLES = timedelta(hours=3)
"""Pauses before this time do not show how the present load pauses: they may be the night."""
PAUSE = timedelta(minutes=10)
"""A pause this long ends a throttling episode."""
NEAR_BASELINE, ABOVE_BASELINE = 0.97, 1.05
"""Factor of the baseline. A smaller load earns more credits than it uses, so it is not throttled. A larger one is not
limited to the baseline yet: a BurstBalance of 1 % may still be 80,000 credits."""
BALANCE_SECONDS = 300
"""A BurstBalance is valid until the next one: on instances before Nitro it comes every five minutes."""
BUSY_SECONDS, TELLING_OPS = 1.0, 60
"""Share of a minute: below it, idle time and latency show CloudWatch's rounding rather than the volume."""
POINT = "struct<at: timestamp, period_seconds: int, spent: double, balance: double, is_throttled: boolean>"


def throttled_volumes(volumes: DataFrame, samples: DataFrame) -> DataFrame:
    """Volumes whose last day explains the hour, by checks or by rates; few, so that querying it is cheap."""
    known = [*VOLUME, "volume_type", "earned_per_second", *ebs.LIMITS]
    held = _loads(samples, _with_limits(volumes).select(*known)).filter(
        (f.greatest("at_iops_limit", "at_throughput_limit", "stalled") > 0)
        | (f.col("burst_balance_percent") <= LOW_PERCENT)
    )
    return volumes.join(held, VOLUME, "left_semi")


def volume_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.volume_hourly."""
    type_limits = ["ebs_maximum_iops", "ebs_maximum_bytes_per_second"]
    volumes = _with_limits(sources["volumes"]).join(
        sources["instances"].select(*INSTANCE, *type_limits), INSTANCE, "left"
    )
    known = [*VOLUME, "instance_id", "volume_type", "known_until", "earned_per_second", *ebs.LIMITS, *type_limits]
    limits = instance_limits(sources["instance_samples"])
    loads = _with_instance_limits(_loads(sources["volume_samples"], volumes.select(*known)), limits)
    facts = (
        volumes.withColumn("minutes_expected", expected_minutes(hour, "attached_at"))
        .join(completeness(sources["cloudwatch"], "volume_id", "read_ops"), VOLUME, "left")
        .join(_facts(loads, hour), VOLUME, "left")
        .join(_last_day(_loads(sources["last_day_samples"], volumes.select(*known))), VOLUME, "left")
        .join(_read_baseline(sources["cloudwatch_read_baseline"], hour), VOLUME, "left")
    )
    return _volume_columns(facts)


def _with_limits(volumes: DataFrame) -> DataFrame:
    return volumes.withColumns(ebs.limits()).withColumn("earned_per_second", ebs.earned_per_second())


def _loads(samples: DataFrame, volumes: DataFrame) -> DataFrame:
    """Rates of every period with the volume's limits, and which limits were exceeded."""
    rates = samples.join(volumes, VOLUME).withColumns(
        {
            "ops_per_second": (f.col("read_ops") + f.col("write_ops")) / f.col("period_seconds"),
            "bytes_per_second": (f.col("read_bytes") + f.col("write_bytes")) / f.col("period_seconds"),
        }
    )
    iops, rate = f.col("ops_per_second"), f.col("bytes_per_second")
    recent = Window.partitionBy(*VOLUME).orderBy(f.unix_timestamp("at")).rangeBetween(1 - BALANCE_SECONDS, 0)
    balance = f.last("burst_balance_percent", ignorenulls=True).over(recent)
    is_empty = f.coalesce(balance <= EMPTY_PERCENT, f.lit(False))
    spent = ebs.spent_per_second()
    if "spent_by_balance" in samples.columns:  # storage of MSK whose operations are not exposed
        spent = f.coalesce(spent, "spent_by_balance")
    # An empty bucket limits to the baseline: of operations (large ones count as several), or of bytes on HDD.
    of_baseline = spent / f.col("earned_per_second")
    starves = is_empty & of_baseline.between(NEAR_BASELINE, ABOVE_BASELINE)
    iops_starve, bytes_starve = starves & ~ebs.is_hdd(), starves & ebs.is_hdd()
    # AWS's own check where there is one, otherwise a rate at the limit: of the minute, or of the seconds in which the
    # volume was busy (micro-bursts).
    busy_seconds = f.col("period_seconds") - f.coalesce("idle_seconds", f.lit(0.0))
    times = f.when(busy_seconds >= BUSY_SECONDS, f.col("period_seconds") / busy_seconds).otherwise(1.0)
    pieces = f.when(ebs.is_hdd(), iops).otherwise(spent)
    iops_bound = f.coalesce("iops_exceeded", (pieces * times >= NEAR_LIMIT * f.col("burst_iops")).cast("double"))
    bytes_bound = f.coalesce(
        "throughput_exceeded", (rate * times >= NEAR_LIMIT * f.col("burst_bytes_per_second")).cast("double")
    )
    # Requests wait and none completes: what VolumeStalledIOCheck reports where it exists.
    stands = (f.col("read_ops") + f.col("write_ops") == 0) & (f.col("queue_length") >= 1)
    return rates.withColumns(
        {
            "spent_per_second": spent,
            "at_iops_limit": f.greatest(iops_bound, iops_starve.cast("double")),
            "at_throughput_limit": f.greatest(bytes_bound, bytes_starve.cast("double")),
            "stalled": f.coalesce("stalled", stands.cast("double")),
        }
    )


def _with_instance_limits(loads: DataFrame, limits: DataFrame) -> DataFrame:
    """Adds at_instance_limit: the instance's limits were exceeded while this volume had requests waiting.

    Where the instance has no checks (not Nitro), the sum of its volumes is compared with the maximum of its type.
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
    """One row per volume; `points` and columns ending in `_now` reach back before the hour."""
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
    took_ms = (f.col("read_seconds") + f.col("write_seconds")) * 1000 / ops
    free = (ops >= TELLING_OPS) & (f.coalesce(throttled, f.lit(0.0)) == 0)
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
            # nullif: an hour without operations has no latency
            (
                f.sum(of_hour(f.col(f"{kind}_seconds")))
                * 1000
                / f.nullif(f.sum(of_hour(f.col(f"{kind}_ops"))), f.lit(0.0))
            ).alias(f"{kind}_latency_ms")
            for kind in ("read", "write")
        ),
        f.percentile(of_hour(f.when(free, took_ms)), [0.05, 0.25, 0.5, 0.75]).alias("took_ms"),
        f.min(of_hour(balance)).alias("burst_balance_min_percent"),
        f.max_by(balance, balance_at).alias("burst_balance_last_percent"),
        f.avg(f.when(is_present, spent)).alias("spent_now"),
        f.avg(f.when(is_latest, spent)).alias("spent_latest"),
        f.percentile(of_hour(spent), [0.1, 0.9]).alias("spent"),
        minutes(of_hour(balance <= EMPTY_PERCENT)).alias("minutes_empty"),
        minutes(of_hour(f.col("at_iops_limit"))).alias("minutes_at_iops_limit"),
        minutes(of_hour(f.col("at_throughput_limit"))).alias("minutes_at_throughput_limit"),
        minutes(of_hour(f.col("at_instance_limit"))).alias("minutes_at_instance_limit"),
        minutes(of_hour(f.col("stalled"))).alias("minutes_stalled"),
        minutes(of_hour(throttled)).alias("minutes_throttled"),
        _points(throttled).alias("points"),
    )


def _points(throttled: Column) -> Column:
    """Inputs of the models by period, in order of time."""
    spent, balance = f.col("spent_per_second").alias("spent"), f.col("burst_balance_percent").alias("balance")
    is_throttled = f.coalesce(throttled > 0, f.lit(False)).alias("is_throttled")
    return f.array_sort(f.collect_list(f.struct("at", "period_seconds", spent, balance, is_throttled)))


def _last_day(loads: DataFrame) -> DataFrame:
    """Load of throttled volumes over the last day: before a limit was exceeded, load was demand."""
    known_seconds = f.sum(f.when(f.col("ops_per_second").isNotNull(), f.col("period_seconds")))
    return loads.groupBy(*VOLUME).agg(
        f.percentile("ops_per_second", [0.95, 0.99]).alias("day_iops"),
        f.percentile("bytes_per_second", [0.95, 0.99]).alias("day_rates"),
        (known_seconds / 3600.0).alias("day_hours"),
        _points(f.greatest("at_iops_limit", "at_throughput_limit", "stalled")).alias("day_points"),
    )


def _throttled_since() -> Column:
    """Start of the current throttling episode: no pause since, neither in the hour nor in the day before it."""
    first = f.get("points", f.lit(0)).at
    before = f.filter(f.coalesce("day_points", f.array().cast("array<" + POINT + ">")), lambda p: p.at < first)
    nothing = f.struct(f.lit(None).cast("timestamp").alias("since"), f.lit(None).cast("timestamp").alias("until"))

    def seconds(start: Column, end: Column) -> Column:
        return f.unix_timestamp(end) - f.unix_timestamp(start)

    def go_on(run: Column, p: Column) -> Column:
        until = f.timestamp_seconds(f.unix_timestamp(p.at) + p.period_seconds)
        continues = seconds(run.until, p.at) < PAUSE.total_seconds()
        since = f.when(continues, run.since).otherwise(p.at)
        return f.when(p.is_throttled, f.struct(since.alias("since"), until.alias("until"))).otherwise(run)

    run = f.aggregate(f.concat(before, "points"), nothing, go_on)
    return f.when(seconds(run.until, f.col("known_until")) < PAUSE.total_seconds(), run.since)


def _read_baseline(history: DataFrame, hour: datetime) -> DataFrame:
    """Baseline of the read rate: the same hour of the week where there are three of them, otherwise all known hours."""
    same_hour = (f.dayofweek("at") == f.dayofweek(f.lit(hour))) & (f.hour("at") == f.hour(f.lit(hour)))
    rate = f.col("value") / f.col("period_seconds")
    enough = f.size("of_week") >= 3
    return (
        history.filter(f.col("at") < f.lit(hour))
        .groupBy("account", "region", f.col("resource_id").alias("volume_id"))
        .agg(f.collect_list(f.when(same_hour, rate)).alias("of_week"), f.collect_list(rate).alias("of_all"))
        .withColumn("baseline_rates", f.when(enough, f.col("of_week")).otherwise(f.col("of_all")))
        .withColumn("baseline", ebs.median(f.col("baseline_rates")))
        .withColumn("mad", ebs.median(f.transform("baseline_rates", lambda r: f.abs(r - f.col("baseline")))))
        .select(
            *VOLUME,
            f.col("baseline").alias("read_baseline_bytes_per_second"),
            f.col("mad").alias("read_baseline_mad_bytes_per_second"),
            f.size("baseline_rates").alias("read_baseline_hours"),
            f.when(enough, "hour_of_week").otherwise("all_hours").alias("read_baseline_kind"),
        )
    )


def _cycle_points() -> Column:
    """Known loads of the last hours, in order of time, where the load is known."""
    first, start = f.get("points", f.lit(0)).at, f.unix_timestamp("known_until") - f.lit(int(CYCLES.total_seconds()))
    before = f.filter(f.coalesce("day_points", f.array().cast("array<" + POINT + ">")), lambda p: p.at < first)
    return f.filter(f.concat(before, "points"), lambda p: p.spent.isNotNull() & (f.unix_timestamp(p.at) >= start))


def _volume_columns(facts: DataFrame) -> DataFrame:
    """Columns of metrics.volume_hourly."""
    balance, earned, credits = (f.col(c) for c in ("burst_balance_last_percent", "earned_per_second", "bucket_credits"))
    # The model corrected by BurstBalance, in its own column because other columns use it for each point.
    facts = facts.withColumn("cost_ratio", ebs.cost_ratio(f.col("points"), earned, credits))
    cost = f.col("cost_ratio")
    spent = (f.col("spent_now"), f.get("spent", f.lit(0)), f.get("spent", f.lit(1)))
    now, light, heavy = (rate * cost for rate in spent)
    light = f.when(light > earned, light)

    # Its points are a column too: as an expression, each of their uses would be analyzed and planned.
    facts = facts.withColumn("cycle_points", _cycle_points())
    facts = facts.withColumn("cycle", ebs.cycle(f.col("cycle_points"), earned, cost))
    has_ended = f.coalesce(f.col("spent_latest") * cost <= earned, f.lit(False))
    present = f.unix_timestamp("known_until") - f.lit(int(PRESENT.total_seconds()))
    draining = f.filter("points", lambda p: (f.unix_timestamp(p.at) >= present) & (p.spent * cost > earned))
    draining_seconds = f.aggregate(draining, f.lit(0), lambda total, p: total + p.period_seconds)

    def until_empty(spent: Column) -> Column:
        drains = (spent > earned) & ~has_ended
        return f.when(balance <= EMPTY_PERCENT, 0.0).when(drains, balance / 100 * credits / (spent - earned) / 3600)

    cycle, left = f.col("cycle"), (balance - EMPTY_PERCENT) / 100 * credits

    def of_cycle(in_cycles: Column, steady: Column) -> Column:
        """The forecast of a load that pauses and resumes, or of a steady load."""
        return f.when(cycle.isNull() | (balance <= EMPTY_PERCENT), steady).otherwise(in_cycles)

    def until_empty_at(rate: Column) -> Column:
        return f.when(rate > 0, left / rate / 3600)

    in_cycles = ebs.cycle_seconds_to_exhaustion(cycle, left) / 3600
    hours = of_cycle(in_cycles, until_empty(now))
    lightest = f.when(cycle.lightest > 0, f.greatest(in_cycles, until_empty_at(cycle.lightest)))
    low = of_cycle(f.least(in_cycles, until_empty_at(cycle.heaviest)), until_empty(f.greatest(now, heavy)))
    high = of_cycle(lightest, until_empty(f.least(now, light)))
    per_hour = of_cycle(-cycle.rate * 3600, (earned - now) * 3600)

    def demand(of_hour: str, of_day: str, position: int) -> Column:
        return f.greatest(f.get(of_hour, f.lit(position)), f.get(of_day, f.lit(position)))

    return facts.select(
        *VOLUME,
        *("known_until", "minutes_expected"),
        or_none("minutes_present"),
        or_none("minutes_balance"),
        *("iops_mean", "iops_max", "iops_now", "busy_iops_p95"),
        f.get("iops", f.lit(0)).alias("iops_p95"),
        f.get("iops", f.lit(1)).alias("iops_p99"),
        *("bytes_per_second_mean", "bytes_per_second_max", "bytes_per_second_now", "read_bytes", "write_bytes"),
        f.get("rates", f.lit(0)).alias("bytes_per_second_p95"),
        f.get("rates", f.lit(1)).alias("bytes_per_second_p99"),
        *("queue_length_mean", "queue_length_max", "read_latency_ms", "write_latency_ms"),
        *(f.get("took_ms", f.lit(n)).alias(f"latency_p{p}_ms") for n, p in enumerate(("05", "25", "50", "75"))),
        *ebs.LIMITS,
        *("burst_balance_min_percent", "burst_balance_last_percent"),
        ebs.modelled_balance_percent(f.col("points"), earned, credits).alias("modelled_balance_last_percent"),
        f.when(credits.isNotNull(), per_hour).alias("credits_per_hour"),
        f.when(credits.isNotNull(), cycle.seconds / 60).alias("cycle_minutes"),
        f.when(credits.isNotNull(), f.round(draining_seconds / 60).cast("int")).alias("minutes_draining"),
        hours.alias("hours_to_exhaustion"),
        f.when(hours.isNotNull(), low).alias("hours_to_exhaustion_low"),
        f.when(hours.isNotNull(), high).alias("hours_to_exhaustion_high"),
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
