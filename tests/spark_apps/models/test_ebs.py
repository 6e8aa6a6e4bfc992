"""EBS limits against the published table, and the credit bucket against a plain loop."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spark_apps.models import ebs
from spark_apps.runtime.driver_rows import driver_rows
from tests.variations import rare_after

pytestmark = pytest.mark.slow
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
MIB, TIB = 2**20, 2**40
POINTS = "points array<struct<at: timestamp, period_seconds: int, spent: double, balance: double>>"

# type, GiB, provisioned IOPS, provisioned MiB/s → baseline and burst IOPS, baseline and burst MiB/s, bucket
TABLE: list[tuple[Any, ...]] = [
    ("gp2", 1, None, None, 100, 3000, 25, 128, 5.4e6),
    ("gp2", 33, None, None, 100, 3000, 25, 128, 5.4e6),
    ("gp2", 34, None, None, 102, 3000, 25.5, 128, 5.4e6),
    ("gp2", 170, None, None, 510, 3000, 127.5, 128, 5.4e6),
    ("gp2", 171, None, None, 513, 3000, 128.25, 250, 5.4e6),
    ("gp2", 333, None, None, 999, 3000, 249.75, 250, 5.4e6),
    ("gp2", 334, None, None, 1002, 3000, 250, 250, 5.4e6),
    ("gp2", 999, None, None, 2997, 3000, 250, 250, 5.4e6),
    ("gp2", 1000, None, None, 3000, 3000, 250, 250, None),
    ("gp2", 5333, None, None, 15999, 15999, 250, 250, None),
    ("gp2", 5334, None, None, 16000, 16000, 250, 250, None),
    ("gp2", 16384, None, None, 16000, 16000, 250, 250, None),
    ("gp3", 100, None, None, 3000, 3000, 125, 125, None),
    ("gp3", 8, 4000, 1000, 4000, 4000, 1000, 1000, None),
    ("gp3", 32, 16000, 1000, 16000, 16000, 1000, 1000, None),
    ("gp3", 160, 80000, 2000, 80000, 80000, 2000, 2000, None),
    ("gp3", 1000, 80000, 2000, 80000, 80000, 2000, 2000, None),
    ("io1", 100, 100, None, 100, 100, 25, 25, None),
    ("io1", 100, 2000, None, 2000, 2000, 500, 500, None),
    ("io1", 1000, 32000, None, 32000, 32000, 500, 500, None),
    ("io1", 2000, 48000, None, 48000, 48000, 750, 750, None),
    ("io1", 2000, 64000, None, 64000, 64000, 1000, 1000, None),
    ("io1", 1280, 64000, None, 64000, 64000, 1000, 1000, None),
    ("io2", 4, 100, None, 100, 100, 25.6, 25.6, None),
    ("io2", 100, 1000, None, 1000, 1000, 256, 256, None),
    ("io2", 128, 15625, None, 15625, 15625, 4000, 4000, None),
    ("io2", 256, 256000, None, 256000, 256000, 4000, 4000, None),
    ("io2", 1000, 256000, None, 256000, 256000, 4000, 4000, None),
    ("st1", 125, None, None, 500, 500, 4.8828125, 30.517578125, 125 / 1024 * TIB),
    ("st1", 2048, None, None, 500, 500, 80, 500, 2 * TIB),
    ("st1", 16384, None, None, 500, 500, 500, 500, 16 * TIB),
    ("sc1", 1024, None, None, 250, 250, 12, 80, TIB),
    ("sc1", 16384, None, None, 250, 250, 192, 250, 16 * TIB),
    ("standard", 100, None, None, None, None, None, None, None),
    # Unknown volume types, sizes, and provisioned values give no limits.
    (None, 100, None, None, None, None, None, None, None),
    ("gp2", None, None, None, None, None, None, None, None),
    ("gp3", None, None, None, 3000, 3000, 125, 125, None),
    ("io1", 100, None, None, None, None, None, None, None),
    ("io2", 100, None, None, None, None, None, None, None),
    ("st1", None, None, None, None, None, None, None, None),
]


def test_limits_are_those_of_the_published_table(spark: SparkSession) -> None:
    names = "volume_type string, size_gib int, provisioned_iops int, provisioned_throughput_mib_s int"
    frame = driver_rows(spark, [row[:4] for row in TABLE], names).withColumns(ebs.limits())
    got = {(r.volume_type, r.size_gib, r.provisioned_iops): [r[name] for name in ebs.LIMITS] for r in frame.collect()}
    for kind, size, iops, _, base, burst, base_mib_s, burst_mib_s, bucket in TABLE:
        rates = [None if mib_s is None else mib_s * MIB for mib_s in (base_mib_s, burst_mib_s)]
        assert got[kind, size, iops] == [base, burst, *rates, bucket], (kind, size)


# Amazon EBS user guide, every row of "General Purpose SSD volumes" and "Throughput Optimized HDD and Cold HDD volumes".
# gp2: GiB → seconds that a full bucket lasts at 3,000 IOPS, seconds that an empty one takes to fill.
GP2_SECONDS = {
    1: (1862, 54_000), 33: (1862, 54_000), 100: (2000, 18_000), 250: (2400, 7200), 334: (2703, 5389), 500: (3600, 3600),
    750: (7200, 2400), 1000: (None, None), 5334: (None, None),
}  # fmt: skip
# TiB → baseline and burst MiB/s as AWS rounds them, and hours that a scan of the whole disk takes from a full bucket.
ST1 = {
    0.125: (5, 31, None), 0.5: (20, 125, None), 1: (40, 250, 1.17), 2: (80, 500, 1.17), 3: (120, 500, 1.75),
    4: (160, 500, 2.33), 5: (200, 500, 2.91), 6: (240, 500, 3.50), 7: (280, 500, 4.08), 8: (320, 500, 4.66),
    9: (360, 500, 5.24), 10: (400, 500, 5.83), 11: (440, 500, 6.41), 12: (480, 500, 6.99), 12.5: (500, 500, None),
    13: (500, 500, 7.57), 14: (500, 500, 8.16), 15: (500, 500, 8.74), 16: (500, 500, 9.32),
}  # fmt: skip
SC1 = {
    0.125: (1.5, 10, None), 0.5: (6, 40, None), 1: (12, 80, 3.64), 2: (24, 160, 3.64), 3: (36, 240, 3.64),
    3.125: (37.5, 250, None), 4: (48, 250, 4.66), 5: (60, 250, 5.83), 6: (72, 250, 6.99), 7: (84, 250, 8.16),
    8: (96, 250, 9.32), 9: (108, 250, 10.49), 10: (120, 250, 11.65), 11: (132, 250, 12.82), 12: (144, 250, 13.98),
    13: (156, 250, 15.15), 14: (168, 250, 16.31), 15: (180, 250, 17.48), 16: (192, 250, 18.64),
}  # fmt: skip


def test_buckets_last_and_refill_as_long_as_aws_publishes(spark: SparkSession) -> None:
    disks = [("st1", int(tib * 1024)) for tib in ST1] + [("sc1", int(tib * 1024)) for tib in SC1]
    frame = driver_rows(spark, [*(("gp2", size) for size in GP2_SECONDS), *disks], "volume_type string, size_gib int")
    unset = {name: f.lit(None).cast("int") for name in ("provisioned_iops", "provisioned_throughput_mib_s")}
    got = {(r.volume_type, r.size_gib): r for r in frame.withColumns(unset).withColumns(ebs.limits()).collect()}
    for size, (lasts, fills) in GP2_SECONDS.items():
        row = got["gp2", size]
        if lasts is None:
            assert row.bucket_credits is None and row.baseline_iops == row.burst_iops
        else:
            assert round(row.bucket_credits / (row.burst_iops - row.baseline_iops)) == lasts, size
            assert round(row.bucket_credits / row.baseline_iops) == fills, size
    for kind, published in (("st1", ST1), ("sc1", SC1)):
        for tib, (base, burst, scan_hours) in published.items():
            row = got[kind, int(tib * 1024)]
            mib_s = (row.baseline_bytes_per_second / MIB, row.burst_bytes_per_second / MIB)
            assert mib_s == pytest.approx((base, burst), abs=0.5), (kind, tib)
            if scan_hours:
                # A full bucket suffices for a scan of the whole disk at the burst rate.
                drain = row.burst_bytes_per_second - row.baseline_bytes_per_second
                scan_seconds = tib * TIB / row.burst_bytes_per_second
                assert row.bucket_credits >= drain * scan_seconds, (kind, tib)
                assert scan_seconds / 3600 == pytest.approx(scan_hours, abs=0.01), (kind, tib)


def _plain(balance: float, spent: list[float], earned: float, credits: float) -> float:
    for rate in spent:
        balance = min(100.0, max(0.0, balance + (earned - rate) * 60 / credits * 100))
    return balance


def test_the_bucket_empties_and_fills_like_a_plain_loop(spark: SparkSession) -> None:
    dice = random.Random(5)  # noqa: S311 the cases are drawn, not secret
    start = datetime(2026, 1, 5, 10, tzinfo=UTC)
    cases = []
    for case in range(40):
        loads = [dice.choice((0.0, 90.0, 3000.0)) * dice.random() * 3 for _ in range(120)]
        first = dice.choice((0.0, 3.0, 60.0, 100.0))
        balances = [first, *(_plain(first, loads[1 : i + 1], 100, 5.4e6) for i in range(1, len(loads)))]
        points = [
            (start + timedelta(minutes=i), 60, load, balances[i] if i in (0, len(loads) - 1) else None)
            for i, load in enumerate(loads)
        ]
        cases.append((case, points, balances[-1]))
    whole = (100, [(start + timedelta(minutes=i), 60, 100.0, 50.0) for i in range(10)], 50.0)
    torn = (101, [p for i, p in enumerate(whole[1]) if i != 5], None)  # a minute without data
    blind = (102, [(at, s, None if i == 5 else x, b) for i, (at, s, x, b) in enumerate(whole[1])], None)
    unsent = (103, [(at, s, x, None) for at, s, x, _ in whole[1]], None)
    frame = driver_rows(spark, [*cases, whole, torn, blind, unsent], f"case int, {POINTS}, expected double")
    modelled = ebs.modelled_balance_percent(f.col("points"), f.lit(100.0), f.lit(5.4e6)).alias("modelled")
    for row in frame.select("case", "expected", modelled).collect():
        assert row.modelled == (None if row.expected is None else pytest.approx(row.expected, abs=1e-9)), row.case


def test_an_exhausted_ten_gib_volume_takes_fifteen_hours_to_refill_and_half_an_hour_to_empty(
    spark: SparkSession,
) -> None:
    start = datetime(2026, 1, 5, tzinfo=UTC)
    full = [
        (start + timedelta(minutes=i), 60, 3000.0, 100.0 if i == 0 else 0.0 if i == 40 else None) for i in range(41)
    ]
    idle = [(start + timedelta(minutes=i), 60, 0.0, 0.0 if i == 0 else 1.0 if i == 900 else None) for i in range(901)]
    modelled = ebs.modelled_balance_percent(f.col("points"), f.lit(100.0), f.lit(5.4e6))
    got = [row[0] for row in driver_rows(spark, [(full[:32],), (full,), (idle,)], POINTS).select(modelled).collect()]
    assert got[0] == 100.0  # only its first balance is known
    assert got[1:] == [0.0, pytest.approx(100.0)]


def test_credits_spent_beyond_the_counted_operations_are_a_ratio(spark: SparkSession) -> None:
    start, earned, credits = datetime(2026, 1, 5, tzinfo=UTC), 100.0, 5.4e6

    def hour(spent: float, cost: float, *, calm: int = 0, unit: int = 0) -> list[tuple[datetime, int, float, float]]:
        """A full bucket: `calm` minutes of low load, then a load whose operations cost so many credits each."""
        balance, points = 100.0, []
        for minute in range(61):
            rate = spent if minute > calm else 5.0
            balance = _plain(balance, [rate * cost], earned, credits)
            points.append((start + timedelta(minutes=minute), 60, rate, round(balance, unit)))
        return points

    torn = [point for minute, point in enumerate(hour(50.0, 16.0)) if minute != 30]
    late = [(at, s, x, None if minute > 55 else b) for minute, (at, s, x, b) in enumerate(hour(50.0, 16.0, calm=35))]
    cases = {
        "as counted": (hour(800.0, 1.0, unit=3), 1.0),
        "rounded to whole percents": (hour(800.0, 1.0), 1.0),
        "sixteen times as much": (hour(50.0, 16.0, unit=3), 16.0),
        "the same since 25 minutes, BurstBalance late": (late, 16.0),
        "cheaper than counted": (hour(800.0, 0.5), 1.0),
        "a minute missing": (torn, 1.0),
        "no BurstBalance": ([(at, s, x, None) for at, s, x, _ in hour(50.0, 16.0)], 1.0),
        "nothing counted": ([(at, s, 0.0, b) for at, s, _, b in hour(50.0, 16.0)], 1.0),
    }
    frame = driver_rows(spark, [(name, points) for name, (points, _) in cases.items()], f"name string, {POINTS}")
    ratio = ebs.cost_ratio(f.col("points"), f.lit(earned), f.lit(credits)).alias("ratio")
    got = {row["name"]: row.ratio for row in frame.select("name", ratio).collect()}
    assert got == pytest.approx({name: expected for name, (_, expected) in cases.items()}, rel=0.1)


def test_ssd_counts_operations_or_pieces_of_256_kib_and_hdd_counts_bytes(spark: SparkSession) -> None:
    rows = [("gp2", 100.0, 1e6), ("gp2", 100.0, 200 * 262144.0), ("st1", 100.0, 1e6), ("gp2", None, 1e6)]
    frame = driver_rows(spark, rows, "volume_type string, ops_per_second double, bytes_per_second double")
    assert [row[0] for row in frame.select(ebs.spent_per_second()).collect()] == [100.0, 200.0, 1e6, None]


def test_median(spark: SparkSession) -> None:
    frame = driver_rows(spark, [([3.0, 1.0, 2.0],), ([4.0, 1.0],), ([7.0],), ([],)], "values array<double>")
    assert [row[0] for row in frame.select(ebs.median(f.col("values"))).collect()] == [2.0, 2.5, 7.0, None]


def on_off(on: int, off: int, busy: float, calm: float = 20, baseline: float = 300) -> list[tuple[float, float]]:
    """Load and balance (percent) of each minute of a day, by a plain loop: a gp2 bucket that is full at first."""
    balance, minutes = 5_400_000.0, []
    for minute in range(24 * 60):
        wanted = busy if minute % (on + off) < on else calm
        spent = min(wanted, baseline + balance / 60)
        balance = min(5_400_000.0, max(0.0, balance + (baseline - spent) * 60))
        minutes.append((float(spent), balance / 54_000))
    return minutes


def forecasts(spark: SparkSession, windows: list[list[tuple[float, float]]]) -> list[Any]:
    """Forecast of each window of minutes: seconds of a cycle, and hours until the bucket is empty."""

    def points(window: list[tuple[float, float]]) -> list[Any]:
        return [
            (START + timedelta(minutes=n), 60, spent, balance, balance <= 1 and spent == 300)
            for n, (spent, balance) in enumerate(window)
        ]

    rows = [(points(window), window[-1][1]) for window in windows]
    frame = driver_rows(spark, rows, POINTS.replace(">>", ", is_throttled: boolean>>") + ", balance double")
    frame = frame.withColumn("cycle", ebs.cycle(f.col("points"), f.lit(300.0), f.lit(1.0)))
    left = (f.col("balance") - 1) / 100 * 5_400_000
    hours = ebs.cycle_seconds_to_exhaustion(f.col("cycle"), left) / 3600
    return frame.select("cycle.seconds", hours.alias("hours"), "cycle.rate").collect()


@pytest.mark.parametrize(
    ("on", "off", "busy"), rare_after(1, [(10, 20, 2300), (5, 10, 1500), (15, 20, 1000), (12, 8, 700)]),
    ids=["the report", "short", "long", "hardly above the baseline"],
)  # fmt: skip
def test_a_load_that_goes_on_and_off_is_forecast_over_whole_cycles(
    spark: SparkSession, on: int, off: int, busy: float
) -> None:
    minutes = on_off(on, off, busy)
    ends = [end for end in range(80, 20 * 60, 13) if minutes[end - 1][1] > 1]
    found = forecasts(spark, [minutes[end - 75 : end] for end in ends])
    wrong = []
    for end, row in zip(ends, found, strict=True):
        truth = next(n for n, (_, balance) in enumerate(minutes[end:], 1) if balance <= 1) / 60
        if row.hours is None or abs(row.hours - truth) > max(0.1 * truth, 2 / 60):
            wrong.append((end, row.hours, truth))
    assert not wrong
    assert {row.seconds for row in found} == {(on + off) * 60}


def test_a_load_that_pauses_longer_than_before_has_ended(spark: SparkSession) -> None:
    minutes = on_off(10, 20, 2300)[:120]
    paused = [(20.0, 50.0)]
    still, ended, steady, calm = forecasts(
        spark,
        [
            minutes[-75:] + paused,
            minutes[-70:] + 3 * paused,  # its present pause is longer than any before
            minutes[-75:-20] + 30 * [(2300.0, 40.0)],  # its present run is
            75 * [(200.0, 90.0)],
        ],
    )
    assert still.seconds == 1800
    assert (ended.seconds, steady.seconds, calm.seconds) == (None, None, None)


def test_a_load_that_refills_over_whole_cycles_is_never_exhausted(spark: SparkSession) -> None:
    minutes = on_off(5, 25, 1200)
    [found] = forecasts(spark, [minutes[300:375]])
    assert found.seconds == 1800 and found.rate < 0 and found.hours is None
