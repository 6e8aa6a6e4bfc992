"""EBS: limits by type and size, and the burst bucket (Amazon EBS User Guide, "EBS volume types"), as columns.

SSD I/O is counted in units of 256 KiB. A gp2 bucket holds 5,400,000 credits of one I/O each; credits of st1 and sc1 are
bytes: 1 TiB per TiB of size. Limits that AWS does not publish (type `standard`), or with unknown inputs, are null.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as f

MIB, TIB = 2.0**20, 2.0**40
PIECE_BYTES = 256 * 2.0**10
GP2_BUCKET_CREDITS = 5_400_000.0
GP2_BURST_IOPS = 3_000.0
ST1_IOPS, SC1_IOPS = 500.0, 250.0  # of 1 MiB
PAUSE_SECONDS = 300
"""A load at or below the baseline for this long pauses; shorter ones are noise."""
SAME_SECONDS = 60
"""Pauses and runs that differ by this much are alike: the resolution of CloudWatch."""
TELLING_PERCENT = 3.0
"""The model and BurstBalance may differ by this much through rounding, and because they are minutes apart."""
LIMITS = ("baseline_iops", "burst_iops", "baseline_bytes_per_second", "burst_bytes_per_second", "bucket_credits")
"""Columns of `limits`."""


def limits() -> dict[str, Column]:
    """Columns LIMITS, from volume_type, size_gib, provisioned_iops, and provisioned_throughput_mib_s."""
    size, asked = f.col("size_gib"), f.col("provisioned_iops").cast("double")
    tib = size / f.lit(1024.0)
    gp2 = f.least(f.lit(16_000.0), f.greatest(f.lit(100.0), size * 3.0))
    gp2_bytes = f.when(size <= 170, 128 * MIB).otherwise(250 * MIB)
    gp3 = f.coalesce(asked, f.lit(3000.0))
    # 256 KiB per operation up to 500 MiB/s; above 32,000 IOPS 16 KiB per operation.
    io1_mib_s = f.when(asked <= 32_000, f.least(f.lit(500.0), asked / 4)).otherwise(f.least(f.lit(1000.0), asked / 64))
    fixed_bytes = {
        "gp3": f.coalesce(f.col("provisioned_throughput_mib_s"), f.lit(125)) * MIB,
        "io1": io1_mib_s * MIB,
        "io2": f.least(f.lit(4000.0), asked * 0.256) * MIB,
    }
    fixed_iops = {"gp3": gp3, "io1": asked, "io2": asked, "st1": f.lit(ST1_IOPS), "sc1": f.lit(SC1_IOPS)}

    def per_tib(mib_s: float, cap: float) -> Column:
        return f.least(f.lit(cap), tib * mib_s) * MIB

    return {
        "baseline_iops": _by_type(gp2=gp2, **fixed_iops),
        "burst_iops": _by_type(gp2=f.greatest(gp2, f.lit(GP2_BURST_IOPS)), **fixed_iops),
        "baseline_bytes_per_second": _by_type(
            gp2=f.least(gp2_bytes, gp2 * PIECE_BYTES), st1=per_tib(40.0, 500.0), sc1=per_tib(12.0, 192.0), **fixed_bytes
        ),
        "burst_bytes_per_second": _by_type(
            gp2=gp2_bytes, st1=per_tib(250.0, 500.0), sc1=per_tib(80.0, 250.0), **fixed_bytes
        ),
        "bucket_credits": _by_type(
            gp2=f.when(gp2 < GP2_BURST_IOPS, f.lit(GP2_BUCKET_CREDITS)), st1=tib * TIB, sc1=tib * TIB
        ),
    }


def _by_type(**of: Column) -> Column:
    chosen = f.lit(None).cast("double")
    for volume_type, value in of.items():
        # Explicit, because least and greatest skip nulls. A gp3 without a value from AWS has the included performance.
        needed = {"gp3": "volume_type", "io1": "provisioned_iops", "io2": "provisioned_iops"}.get(
            volume_type, "size_gib"
        )
        is_known = (f.col("volume_type") == volume_type) & f.col(needed).isNotNull()
        chosen = f.when(is_known, value.cast("double")).otherwise(chosen)
    return chosen


def is_hdd() -> Column:
    """Whether the volume's credits are bytes."""
    return f.col("volume_type").isin("st1", "sc1")


def spent_per_second() -> Column:
    """Credits used per second, from ops_per_second and bytes_per_second: on SSD the larger of both in I/O units."""
    pieces = f.greatest("ops_per_second", f.col("bytes_per_second") / PIECE_BYTES)
    known = f.col("ops_per_second").isNotNull() & f.col("bytes_per_second").isNotNull()
    return f.when(is_hdd(), f.col("bytes_per_second")).when(known, pieces)


def earned_per_second() -> Column:
    """Credits earned per second: the volume's baseline."""
    return f.when(is_hdd(), f.col("baseline_bytes_per_second")).otherwise(f.col("baseline_iops"))


def modelled_balance_percent(points: Column, earned: Column, bucket_credits: Column) -> Column:
    """Burst balance in percent at the last BurstBalance, from operations alone, starting at the first one.

    Null if a data point between them is missing. Always between 0 and 100.

    Args:
        points: array of struct<at, period_seconds, spent, balance> in order of time.
    """

    def step(balance: Column, p: Column) -> Column:
        change = (earned - p.spent) * p.period_seconds / bucket_credits * 100
        # greatest and least skip nulls: an unknown load has an unknown effect on the bucket
        is_known = balance.isNotNull() & change.isNotNull()
        return f.when(is_known, f.least(f.lit(100.0), f.greatest(f.lit(0.0), balance + change)))

    def modelled(first: Column, last: Column, since: Column) -> Column:
        return f.when(_is_whole(first, last, since), f.aggregate(since, first.balance, step))

    return _between_balances(points, lambda known: f.get(known, f.lit(0)), modelled)


def cost_ratio(points: Column, earned: Column, bucket_credits: Column) -> Column:
    """Credits actually used per credit of `spent`, since the maximum BurstBalance; 1 where they differ little.

    On HDD each non-sequential I/O counts as 1 MiB, whatever its size, and CloudWatch does not report which were. A full
    bucket earns nothing, so its use is known only since it began to drain.
    """

    def highest(known: Column) -> Column:
        # Structs compare by their fields in order: the highest balance, and the last of these.
        return f.array_max(f.transform(known, lambda p: f.struct(p.balance, p.at)))

    def ratio(peak: Column, last: Column, since: Column) -> Column:
        counted = f.aggregate(since, f.lit(0.0), lambda total, p: total + p.spent * p.period_seconds)
        seconds = f.unix_timestamp(last.at) - f.unix_timestamp(peak.at)
        paid = earned * seconds + (peak.balance - last.balance) / 100 * bucket_credits
        tells = _is_whole(peak, last, since) & (paid - counted >= TELLING_PERCENT / 100 * bucket_credits)
        return f.when(tells, paid / f.nullif(counted, f.lit(0.0)))

    return f.coalesce(_between_balances(points, highest, ratio), f.lit(1.0))


_RUN = "array<struct<since: bigint, until: bigint>>"


def cycle(points: Column, earned: Column, cost: Column) -> Column:
    """A load that pauses and resumes: its whole cycles, from one pause to the next; null if it does not, or no more.

    The load continues while its present pause, or its present run, is no longer than one before. A pause is
    PAUSE_SECONDS at or below what the bucket earns, without throttling: a throttled load has not paused.

    Args:
        points: array of struct<at, period_seconds, spent, is_throttled, …> in order of time, without nulls in these.
        earned: credits per second.
        cost: credits used per credit of `spent`.

    Returns:
        Struct of `seconds` (mean length of a cycle), `rate`, `heaviest`, and `lightest` (net credits that leave the
        bucket per second in all cycles, in the heaviest, and in the lightest), and `used`: array of
        struct<after, net>, the net credits used in the last cycle up to `after` seconds since its start.
    """

    def follow(runs: Column, p: Column) -> Column:
        at = f.unix_timestamp(p.at)
        until, last = at + p.period_seconds, f.get(runs, f.size(runs) - 1)
        joined = f.concat(
            f.slice(runs, 1, f.greatest(f.size(runs) - 1, f.lit(0))),
            f.array(f.struct(last.since.alias("since"), until.alias("until"))),
        )
        begun = f.concat(runs, f.array(f.struct(at.alias("since"), until.alias("until"))))
        is_pause = (p.spent * cost <= earned) & ~p.is_throttled
        return f.when(~is_pause, runs).when(f.coalesce(last.until == at, f.lit(False)), joined).otherwise(begun)

    def longest(runs: Column) -> Column:
        return f.coalesce(f.array_max(f.transform(runs, lambda run: run.until - run.since)), f.lit(0))

    def net(between: Column) -> Column:
        return f.aggregate(between, f.lit(0.0), lambda total, p: total + (p.spent * cost - earned) * p.period_seconds)

    def whole(events: Column) -> Column:
        """Rates of the whole cycles between these moments."""

        def rate(since: Column, until: Column) -> Column:
            inside = f.filter(points, lambda p: (f.unix_timestamp(p.at) >= since) & (f.unix_timestamp(p.at) < until))
            return net(inside) / (until - since)

        rates = f.transform(
            f.slice(events, 2, f.greatest(f.size(events) - 1, f.lit(0))),
            lambda until, n: rate(f.get(events, n), until),
        )
        first, last = f.get(events, f.lit(0)), f.get(events, f.size(events) - 1)
        return f.struct(
            (last - first).alias("length"),
            ((last - first) / (f.size(events) - 1)).alias("seconds"),
            rate(first, last).alias("rate"),
            f.array_max(rates).alias("heaviest"),
            f.array_min(rates).alias("lightest"),
        )

    def used(seconds: Column, end: Column) -> Column:
        start = end - seconds
        recent = f.filter(points, lambda p: f.unix_timestamp(p.at) >= start)

        def add(sums: Column, p: Column) -> Column:
            before = f.coalesce(f.get(sums, f.size(sums) - 1).net, f.lit(0.0))
            after = f.unix_timestamp(p.at) + p.period_seconds - start
            step = f.struct(
                after.cast("double").alias("after"),
                (before + (p.spent * cost - earned) * p.period_seconds).alias("net"),
            )
            return f.concat(sums, f.array(step))

        return f.aggregate(recent, f.array().cast("array<struct<after: double, net: double>>"), add)

    def evaluated(e: Column) -> Column:
        pauses = f.filter(e.quiet, lambda run: run.until - run.since >= PAUSE_SECONDS)
        return _let(pauses, lambda pauses: of_pauses(e, pauses))

    def of_pauses(e: Column, pauses: Column) -> Column:
        starts = f.transform(f.filter(pauses, lambda run: run.since > e.start), lambda run: run.since)
        ends = f.transform(f.filter(pauses, lambda run: run.until < e.end), lambda run: run.until)
        bounds = f.struct(
            starts.alias("starts"), ends.alias("ends"), length(starts).alias("length"), length(ends).alias("other")
        )
        return _let(_let(_let(bounds, _longer), whole), lambda w: f.when(
            continues(e, pauses) & (w.length > 0),
            f.struct(
                w.seconds.alias("seconds"), w.rate.alias("rate"), w.heaviest.alias("heaviest"),
                w.lightest.alias("lightest"), used(w.seconds, e.end).alias("used"),
            ),
        ))  # fmt: skip

    def continues(e: Column, pauses: Column) -> Column:
        """Whether the present pause, or the present run, is no longer than one before."""
        tail, last = (f.get(runs, f.size(runs) - 1) for runs in (e.quiet, pauses))
        before = f.slice(pauses, 1, f.greatest(f.size(pauses) - 1, f.lit(0)))
        # Runs between the pauses; the first one may have begun before the first point.
        runs = f.transform(
            pauses,
            lambda run, n: f.struct(
                f.coalesce(f.when(n > 0, f.get(pauses, n - 1).until), e.start).alias("since"), run.since.alias("until")
            ),
        )
        return f.when(last.until == e.end, last.until - last.since <= longest(before) + SAME_SECONDS).otherwise(
            f.when(tail.until == e.end, tail.since).otherwise(e.end) - last.until <= longest(runs) + SAME_SECONDS
        )

    def length(moments: Column) -> Column:
        return f.when(f.size(moments) >= 2, f.get(moments, f.size(moments) - 1) - f.get(moments, f.lit(0)))

    last = f.get(points, f.size(points) - 1)
    known = f.struct(
        f.aggregate(points, f.array().cast(_RUN), follow).alias("quiet"),
        f.unix_timestamp(f.get(points, f.lit(0)).at).alias("start"),
        (f.unix_timestamp(last.at) + last.period_seconds).alias("end"),
    )
    return _let(known, evaluated)


def _longer(bounds: Column) -> Column:
    """Starts or ends of the pauses, whichever span more time; null where neither span any."""
    is_length = f.coalesce(bounds.length >= bounds.other, bounds.length.isNotNull())
    return f.when(is_length, bounds.starts).when(bounds.other.isNotNull(), bounds.ends)


def cycle_seconds_to_exhaustion(cycle: Column, credits_left: Column) -> Column:
    """Seconds until a bucket is empty if the last cycle repeats from now on; null if it refills."""

    def after(used: Column, left: Column) -> Column:
        found = f.get(f.filter(used, lambda step: step.net >= left), f.lit(0)).after
        return f.when(left <= 0, f.lit(0.0)).otherwise(found)

    most = f.array_max(f.transform(cycle.used, lambda step: step.net))
    fall = cycle.rate * cycle.seconds
    whole = f.ceil((credits_left - most) / f.nullif(fall, f.lit(0.0)))
    return f.when(most >= credits_left, after(cycle.used, credits_left)).when(
        fall > 0, whole * cycle.seconds + after(cycle.used, credits_left - whole * fall)
    )


def _between_balances(
    points: Column, start: Callable[[Column], Column], evaluate: Callable[[Column, Column, Column], Column]
) -> Column:
    """`evaluate` with the point at `start`, the last point with a BurstBalance, and all points after the first up to
    it."""

    def evaluated(known: Column) -> Column:
        ends = f.struct(start(known).alias("first"), f.get(known, f.size(known) - 1).alias("last"))
        return _let(ends, lambda e: _let(_between(points, e.first, e.last), lambda s: evaluate(e.first, e.last, s)))

    return _let(f.filter(points, lambda p: p.balance.isNotNull()), evaluated)


def _between(points: Column, first: Column, last: Column) -> Column:
    return f.filter(points, lambda p: (p.at > first.at) & (p.at <= last.at))


def _is_whole(first: Column, last: Column, since: Column) -> Column:
    """Whether no data point between them is missing."""
    seconds = f.aggregate(since, f.lit(0).cast("bigint"), lambda total, p: total + p.period_seconds)
    return seconds == f.unix_timestamp(last.at) - f.unix_timestamp(first.at)


def _let(value: Column, use: Callable[[Column], Column]) -> Column:
    """Applies `use` to a value that is computed once: inside another lambda it would be computed for each element."""
    return f.get(f.transform(f.array(value), use), f.lit(0))


def median(values: Column) -> Column:
    """Median of an array of doubles without nulls; null if it is empty."""
    ordered, size = f.array_sort(values), f.size(values)
    lower = f.get(ordered, ((size - 1) / 2).cast("int"))
    return (lower + f.get(ordered, (size / 2).cast("int"))) / 2
