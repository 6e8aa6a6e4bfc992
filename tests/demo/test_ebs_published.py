"""AWS's published tables of EBS, row by row, against the demo's physics and against the product's own formulas.

The two are written apart from each other; an error in one shows here, and in everything that runs on both.
EBS User Guide: "Amazon EBS General Purpose SSD volumes", "Provisioned IOPS SSD volumes", "HDD volumes".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import sqlalchemy as sa
from demo.ebs_physics import GP2_CREDITS, MIB, TIB, Sizes, charged_bytes, pieces, serve, volume_limits
from pyspark.sql import SparkSession

from spark_apps.models import ebs
from spark_apps.runtime.driver_rows import driver_rows


class Row(NamedTuple):
    """One volume of the AWS tables; throughput in MiB/s, the bucket in I/Os or bytes."""

    volume_type: str
    size_gib: int
    iops: int | None
    mib_s: int | None
    base_iops: float
    burst_iops: float
    base_mib_s: float
    burst_mib_s: float
    bucket: float | None


# size → baseline IOPS, least seconds of burst at 3,000 IOPS, seconds to fill an empty bucket without I/O
GP2_CREDIT_TABLE = [
    (1, 100, 1862, 54_000),
    (33, 100, 1862, 54_000),
    (100, 300, 2000, 18_000),
    (334, 1002, 2703, 5389),
    (750, 2250, 7200, 2400),
    (1000, 3000, None, None),
    (5334, 16_000, None, None),
    (16_384, 16_000, None, None),
]
# TiB → baseline and burst, MiB/s
ST1_TABLE = {0.5: (20, 125), 1: (40, 250), 2: (80, 500), 3: (120, 500), 4: (160, 500), 5: (200, 500), 6: (240, 500)}
ST1_TABLE |= {7: (280, 500), 8: (320, 500), 9: (360, 500), 10: (400, 500), 11: (440, 500), 12: (480, 500)}
ST1_TABLE |= {12.5: (500, 500), 13: (500, 500), 14: (500, 500), 15: (500, 500), 16: (500, 500)}
SC1_TABLE = {0.5: (6, 40), 1: (12, 80), 2: (24, 160), 3: (36, 240), 4: (48, 250), 5: (60, 250), 6: (72, 250)}
SC1_TABLE |= {7: (84, 250), 8: (96, 250), 9: (108, 250), 10: (120, 250), 11: (132, 250), 12: (144, 250)}
SC1_TABLE |= {13: (156, 250), 14: (168, 250), 15: (180, 250), 16: (192, 250)}
# Throughput of gp2: 128 MiB/s up to 170 GiB, 250 from 334 on and between while there are credits; 256 KiB an operation.
GP2_MIB_S = {1: (25, 128), 33: (25, 128), 100: (75, 128), 334: (250, 250), 750: (250, 250)}

TABLE = [
    *(
        Row("gp2", size, None, None, base, max(base, 3000), *GP2_MIB_S.get(size, (250, 250)), 5.4e6 if burst else None)
        for size, base, burst, _ in GP2_CREDIT_TABLE
    ),
    Row("gp2", 170, None, None, 510, 3000, 127.5, 128, 5.4e6),
    Row("gp2", 171, None, None, 513, 3000, 128.25, 250, 5.4e6),
    Row("gp2", 333, None, None, 999, 3000, 249.75, 250, 5.4e6),
    Row("gp3", 1, None, None, 3000, 3000, 125, 125, None),
    Row("gp3", 32, 16_000, 1000, 16_000, 16_000, 1000, 1000, None),
    Row("gp3", 160, 80_000, 2000, 80_000, 80_000, 2000, 2000, None),
    Row("io1", 100, 2000, None, 2000, 2000, 500, 500, None),
    Row("io1", 1000, 32_000, None, 32_000, 32_000, 500, 500, None),
    Row("io1", 1280, 64_000, None, 64_000, 64_000, 1000, 1000, None),
    Row("io2", 100, 1000, None, 1000, 1000, 256, 256, None),
    Row("io2", 128, 16_000, None, 16_000, 16_000, 4000, 4000, None),
    Row("io2", 256, 256_000, None, 256_000, 256_000, 4000, 4000, None),
    *(
        Row("st1", int(tib * 1024), None, None, 500, 500, *rates, tib * TIB if rates[0] < rates[1] else None)
        for tib, rates in ST1_TABLE.items()
    ),
    *(Row("sc1", int(tib * 1024), None, None, 250, 250, *rates, tib * TIB) for tib, rates in SC1_TABLE.items()),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.volume_type} {row.size_gib} {row.iops or ''}".strip())
def test_the_demo_s_physics_is_aws_s(row: Row) -> None:
    limits = volume_limits(row.volume_type, row.size_gib, row.iops, row.mib_s)
    assert (limits.base_iops, limits.burst_iops) == (row.base_iops, row.burst_iops)
    assert (limits.base_bytes / MIB, limits.burst_bytes / MIB) == pytest.approx((row.base_mib_s, row.burst_mib_s))
    assert (limits.credits or None) == row.bucket


@pytest.mark.rare
@pytest.mark.slow
def test_the_product_s_formulas_are_aws_s(spark: SparkSession) -> None:
    columns = ("volume_type", "size_gib", "provisioned_iops", "provisioned_throughput_mib_s")
    asked = driver_rows(
        spark,
        [(n, *row[:4]) for n, row in enumerate(TABLE)],
        "n int, " + ", ".join(f"{c} {'string' if c == 'volume_type' else 'int'}" for c in columns),
    )
    found = asked.select("n", *(value.alias(name) for name, value in ebs.limits().items())).collect()
    for said in found:
        row = TABLE[said.n]
        rates = (said.baseline_bytes_per_second / MIB, said.burst_bytes_per_second / MIB)
        assert (said.baseline_iops, said.burst_iops) == (row.base_iops, row.burst_iops), row
        assert rates == pytest.approx((row.base_mib_s, row.burst_mib_s)), row
        if row.base_iops < row.burst_iops or row.base_mib_s < row.burst_mib_s:
            assert said.bucket_credits == row.bucket, row


@pytest.mark.parametrize(("size_gib", "base", "burst_seconds", "fill_seconds"), GP2_CREDIT_TABLE[:5])
def test_gp2_bursts_and_refills_for_as_long_as_aws_says(size_gib, base, burst_seconds, fill_seconds) -> None:
    limits = volume_limits("gp2", size_gib, None, None)
    minutes = np.ones(2000)
    bursting = serve(limits, minutes * 3000, minutes, limits.credits, minutes)
    held = np.flatnonzero(bursting.share < 1)[0]
    assert held == burst_seconds // 60
    refilling = serve(limits, minutes * 0, minutes * 0, 0.0, minutes)
    assert np.flatnonzero(refilling.credits >= GP2_CREDITS - 1)[0] + 1 == int(np.ceil(round(fill_seconds / 60, 2)))
    assert base == limits.base_iops


def test_st1_reads_its_whole_tib_of_credits_at_burst_rate_as_aws_says() -> None:
    """A bucket of 1 TiB at 250 MiB/s against 40 earned: 1 TiB / 210 MiB/s = 4,993 s."""
    limits = volume_limits("st1", 1024, None, None)
    minutes = np.ones(200)
    served = serve(limits, minutes * 250, minutes * 250 * MIB, limits.credits, minutes)
    assert np.flatnonzero(served.share < 1)[0] == 4993 // 60
    assert served.share[-1] * 250 == pytest.approx(40)


def test_what_counts_as_one_operation() -> None:
    """Four requests of 1,024 KiB: 16 operations on SSD, 4 on HDD; 1,024 random ones of 1 KiB: 1,024 MiB of credits."""
    ssd, hdd = volume_limits("gp3", 100, None, None), volume_limits("st1", 1024, None, None)
    assert (pieces(ssd, Sizes(1024, 4), 4, 0), pieces(hdd, Sizes(1024, 4), 4, 0)) == (16, 4)
    assert charged_bytes(hdd, Sizes(1, 1, random_share=1.0), 1024, 0) == 1024 * MIB
    assert charged_bytes(hdd, Sizes(64, 64), 16, 0) == MIB
    assert charged_bytes(ssd, Sizes(1, 1, random_share=1.0), 1024, 0) == MIB


@pytest.mark.slow
@pytest.mark.parametrize("volume_type", ["gp2", "gp3", "io1", "io2", "st1", "sc1"])
def test_a_volume_that_the_product_recommends_sustains_the_load(module_warehouse: sa.Engine, volume_type: str) -> None:
    """The volume that inventory.ebs_volume_with returns sustains the load without credits, for many loads."""
    draws = np.random.default_rng(5)
    wanted = [(float(draws.integers(100, 90_000)), float(draws.integers(1, 2_500))) for _ in range(600)]
    ask = sa.text("select size_gib, iops, mib_s, suffices from inventory.ebs_volume_with(:type, :iops, :mib_s, :least)")
    suffice = 0
    with module_warehouse.connect() as connection:
        for iops, mib_s in wanted:
            load: dict[str, Any] = {"type": volume_type, "iops": iops, "mib_s": mib_s, "least": 20}
            given = connection.execute(ask, load).one()
            if not given.suffices:
                continue
            whole = [None if metric is None else int(np.ceil(metric)) for metric in given[:3]]
            limits = volume_limits(volume_type, *whole)
            minute = np.ones(1)
            asked_iops = minute * (0 if limits.is_hdd else iops)
            served = serve(limits, asked_iops, minute * mib_s * MIB, 0.0, minute)
            assert served.share[0] == pytest.approx(1, abs=1e-6), (volume_type, iops, mib_s, whole)
            suffice += 1
    assert suffice > 5
