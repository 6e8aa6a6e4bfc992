"""SQL functions about EBS: the instance's limits, recurring burst balance cycles, and advised volume changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

Row = dict[str, Any]
MIB = 2**20
PLACE = {"account": "1", "region": "r"}
VOLUME = PLACE | {"volume_id": "vol-1"}
INSTANCE = PLACE | {"instance_id": "i-1"}
GP3 = {"baseline_iops": 3000, "baseline_bytes_per_second": 125 * MIB, "demand_iops_p95": 100, "demand_iops_p99": 100,
       "demand_bytes_per_second_p95": MIB, "demand_bytes_per_second_p99": MIB}  # fmt: skip
NOTHING = {"demand_iops_p95": 0, "demand_bytes_per_second_p95": 0}
AT_BYTES = {"minutes_at_iops_limit": 0, "minutes_at_throughput_limit": 20}
GP2 = GP3 | {"baseline_iops": 300, "baseline_bytes_per_second": 75 * MIB}
PRICES = {"region": "r", "gp2_gib": 0.1, "gp3_gib": 0.08, "gp3_iops": 0.005, "gp3_mib_s": 0.04, "io1_gib": 0.125,
          "io1_iops": 0.065, "st1_gib": 0.045}  # fmt: skip


@pytest.fixture
def connection(module_warehouse: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that is rolled back."""
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def put(connection: sa.Connection, table: str, *rows: Row) -> None:
    for row in rows:
        insert_row(connection, table, {"hour": HOUR, **row})


def ask(connection: sa.Connection, call: str, **values: Any) -> list[Row]:
    found = connection.execute(sa.text(f"select * from {call}"), {"hour": HOUR, **values})
    return [dict(row) for row in found.mappings()]


@pytest.mark.parametrize(
    ("volume_type", "iops", "bytes_per_second", "credits"),
    [
        ("gp2", 300, 256 * 1024 * 299, 300),
        ("gp2", 300, 256 * 1024 * 301, 301),
        ("st1", 300, 40 * MIB, 40 * MIB),
        ("sc1", 300, 12 * MIB, 12 * MIB),
        ("gp2", None, None, None),
    ],
)
def test_credits_are_io_of_256_kib_or_bytes(
    connection: sa.Connection, volume_type: str, iops: float | None, bytes_per_second: float | None,
    credits: float | None,
) -> None:  # fmt: skip
    call = "inventory.ebs_credits_per_second(:of_type, :iops, :bytes_per_second) as credits"
    asked = {"of_type": volume_type, "iops": iops, "bytes_per_second": bytes_per_second}
    assert ask(connection, call, **asked) == [{"credits": credits}]


@pytest.mark.parametrize(
    ("volume", "usd"),
    [
        (("gp2", 100, 0, 0), 10),
        (("gp3", 100, 3000, 125), 8),
        (("gp3", 100, 3100, 135), 8 + 0.5 + 0.4),
        (("io1", 100, 200, 0), 12.5 + 13),
        (("io2", 100, 32000, 0), 13 + 2240),
        (("io2", 100, 33000, 0), 13 + 2240 + 50),
        (("io2", 100, 65000, 0), 13 + 2240 + 1600 + 30),
        (("st1", 100, 0, 0), 4.5),
        (("sc1", 100, 0, 0), 1.5),
        (("standard", 100, 0, 0), None),
    ],
)
def test_the_monthly_price_of_a_volume(connection: sa.Connection, volume: tuple[Any, ...], usd: float | None) -> None:
    prices = PRICES | {"sc1_gib": 0.015, "io2_gib": 0.13, "io2_iops": 0.07, "io2_iops_above_32000": 0.05,
                       "io2_iops_above_64000": 0.03}  # fmt: skip
    put(connection, "inventory.ebs_price", prices, {"region": "s"})
    of_type, gib, iops, mib_s = volume
    call = "inventory.ebs_usd_per_month('r', :of_type, :gib, :iops, :mib_s) as usd"
    [found] = ask(connection, call, of_type=of_type, gib=gib, iops=iops, mib_s=mib_s)
    assert found["usd"] == (None if usd is None else pytest.approx(usd, rel=1e-9))


@pytest.mark.parametrize(
    ("of_type", "wanted", "expected"),
    [
        ("gp3", (3000, 125, 50), (50, 3000, 125, True)),
        ("gp3", (3001, 126, 1), (7, 3001, 126, True)),
        ("gp3", (1, 1, 1), (1, 3000, 125, True)),
        ("gp3", (100, 2000, 1), (16, 8000, 2000, True)),
        ("gp3", (100, 2001, 1), (16, 8000, 2000, False)),
        ("gp3", (80000, 1, 1), (160, 80000, 125, True)),
        ("gp3", (80001, 1, 1), (160, 80000, 125, False)),
        ("io1", (101, 1, 1), (3, 101, None, True)),
        ("io1", (100, 500, 1), (40, 2000, None, True)),
        ("io1", (100, 501, 1), (642, 32064, None, True)),
        ("io1", (64000, 1, 1), (1280, 64000, None, True)),
        ("io1", (64001, 1, 1), (1280, 64000, None, False)),
        ("io1", (1, 1000, 1), (1280, 64000, None, True)),
        ("io1", (1, 1001, 1), (1280, 64000, None, False)),
        ("io2", (100, 256, 1), (1, 1000, None, True)),
        ("io2", (1001, 1, 1), (2, 1001, None, True)),
        ("io2", (256000, 1, 1), (256, 256000, None, True)),
        ("io2", (256001, 1, 1), (256, 256000, None, False)),
        ("io2", (1, 4000, 1), (16, 15625, None, True)),
        ("io2", (1, 4001, 1), (16, 15625, None, False)),
        ("gp2", (500, 100, 1), (167, None, None, True)),
        ("gp2", (300, 128, 1), (171, None, None, True)),
        ("gp2", (300, 129, 1), (334, None, None, True)),
        ("gp2", (16000, 1, 1), (5334, None, None, True)),
        ("gp2", (16001, 1, 1), (5334, None, None, False)),
        ("gp2", (1, 250, 1), (334, None, None, True)),
        ("gp2", (1, 251, 1), (334, None, None, False)),
        ("st1", (99999, 40, 1), (1024, None, None, True)),
        ("st1", (1, 500, 1), (12800, None, None, True)),
        ("st1", (1, 501, 1), (12826, None, None, False)),
        ("sc1", (1, 12, 1), (1024, None, None, True)),
        ("sc1", (1, 192, 1), (16384, None, None, True)),
        ("sc1", (1, 193, 1), (16470, None, None, False)),
    ],
)
def test_the_smallest_volume_that_sustains_the_demand(
    connection: sa.Connection, of_type: str, wanted: tuple[int, int, int], expected: tuple[Any, ...]
) -> None:
    iops, mib_s, gib = wanted
    call = "inventory.ebs_volume_with(:of_type, :iops, :mib_s, :gib)"
    [found] = ask(connection, call, of_type=of_type, iops=iops, mib_s=mib_s, gib=gib)
    assert tuple(found.values()) == expected


SMALL_PIECES = {"burst_iops": 100, "demand_iops_p99": 1}
BY_BYTES = {"minutes_at_iops_limit": 0, "minutes_at_throughput_limit": 1}
DRY = {"hours_to_exhaustion": 0, "baseline_iops": 100, "baseline_bytes_per_second": MIB, "demand_iops_p99": 100,
       "demand_bytes_per_second_p99": MIB}  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "is_open"),
    [
        ({"minutes_at_iops_limit": 0}, False),
        ({"demand_iops_p99": 3000}, True),
        ({"demand_iops_p99": 3000, "minutes_at_iops_limit": 0}, False),
        ({"demand_iops_p99": 3000, "minutes_at_iops_limit": 0, "minutes_at_throughput_limit": 1}, True),
        ({"demand_iops_p99": 3150}, True),
        ({"demand_iops_p99": 3151}, False),
        ({"demand_iops_p99": None}, True),
        ({"burst_iops": None, "burst_bytes_per_second": None}, False),
        # Micro-bursts: the limit cuts off within the minute, the mean of the minute is far below it.
        ({"demand_iops_p99": 560}, True),
        ({"demand_iops_p99": 40, "demand_bytes_per_second_p99": 1}, True),
        (BY_BYTES | {"demand_bytes_per_second_p99": 30 * MIB}, True),
        (BY_BYTES | {"demand_bytes_per_second_p99": 1.05 * 125 * MIB}, True),
        (BY_BYTES | {"demand_bytes_per_second_p99": 1.05 * 125 * MIB + 1}, False),
        # The same at the burst of a volume with credits left; a volume without credits is capped at its baseline.
        ({"demand_iops_p99": 560, "baseline_iops": 300, "bucket_credits": 5_400_000, "minutes_empty": 0}, True),
        ({"demand_iops_p99": 560, "baseline_iops": 300, "bucket_credits": 5_400_000, "minutes_empty": 1}, False),
        # Requests of more than 256 KiB count as several, but not on HDD volumes.
        (SMALL_PIECES | {"demand_bytes_per_second_p99": 105 * 2**18}, True),
        (SMALL_PIECES | {"demand_bytes_per_second_p99": 105 * 2**18 + 1}, False),
        (SMALL_PIECES | {"demand_bytes_per_second_p99": 105 * 2**18 + 1, "bucket_credits": 5_400_000}, False),
        (SMALL_PIECES | {"demand_bytes_per_second_p99": 105 * 2**18 + 1, "bucket_credits": 5_400_001}, True),
        (DRY, True),
        (DRY | {"demand_iops_p99": 105}, True),
        (DRY | {"demand_iops_p99": 106}, False),
        (DRY | {"demand_iops_p99": 106, "hours_to_exhaustion": 1}, True),
        (DRY | {"demand_bytes_per_second_p99": 1.05 * MIB}, True),
        (DRY | {"demand_bytes_per_second_p99": 1.05 * MIB + 1}, False),
        # The load before the bucket was empty was capped at the burst.
        (DRY | {"demand_iops_p99": 2850}, True),
        (DRY | {"demand_iops_p99": 2849}, False),
        (DRY | {"demand_bytes_per_second_p99": 0.95 * 125 * MIB}, True),
        (DRY | {"demand_bytes_per_second_p99": 0.95 * 125 * MIB - 1}, False),
    ],
)
def test_demand_that_a_limit_cuts_off_is_a_lower_bound(connection: sa.Connection, measured: Row, is_open: bool) -> None:
    limits = {"burst_iops": 3000, "burst_bytes_per_second": 125 * MIB, "minutes_at_iops_limit": 1,
              "minutes_at_throughput_limit": 0, "demand_iops_p99": 1000, "demand_bytes_per_second_p99": MIB,
              "hours_to_exhaustion": None}  # fmt: skip
    put(connection, "metrics.volume_hourly", VOLUME | limits | measured)
    assert ask(connection, "(select metrics.demand_is_open(h) as is_open from metrics.volume_hourly as h) as f") == [
        {"is_open": is_open}
    ]


class TestInstance:
    """metrics.instance_ebs"""

    def burst(self, connection: sa.Connection, balances: dict[str, float | None], column: str = "io") -> Row:
        put(connection, "inventory.instance_hourly", INSTANCE | {"ebs_baseline_iops": 3600})
        put(connection, "inventory.volume_hourly", VOLUME | {"instance_id": "i-1"})
        put(connection, "metrics.volume_hourly", VOLUME | {"known_until": HOUR + timedelta(hours=1)},
            VOLUME | {"volume_id": "vol-2", "known_until": HOUR + timedelta(minutes=30)})  # fmt: skip
        self.samples(connection, balances, column)
        return ask(connection, "metrics.instance_ebs(:hour, 2)")[0]

    def samples(self, connection: sa.Connection, balances: dict[str, float | None], column: str) -> None:
        for at, percent in balances.items():
            stamp = datetime.fromisoformat(f"2026-01-05T{at}+00:00")
            put(connection, "metrics.instance_sample",
                INSTANCE | {"at": stamp, "period_seconds": 60, f"ebs_{column}_balance_percent": percent})  # fmt: skip

    @pytest.mark.parametrize(
        ("balances", "percent", "hours"),
        [
            ({"10:45": 70, "10:50": 68, "10:55": 66}, 66, 2.75),
            # Data points older than 25 minutes, or not final yet, do not count.
            ({"10:34": 10, "10:45": 70, "10:50": 68, "10:55": 66, "11:00": 1}, 66, 2.75),
            ({"10:35": 76, "10:40": 72, "10:45": 70}, 70, 70 / 36),
            ({"10:50": 68, "10:55": 66}, None, None),
            ({"10:45": 70, "10:50": None, "10:55": 66}, None, None),
            ({"10:45": 70, "10:50": 66, "10:55": 67}, None, None),
            ({"10:45": 70, "10:50": 66, "10:55": 66}, None, None),
            ({"10:40": 60, "10:45": 68, "10:50": 72, "10:55": 71}, None, None),
            ({"10:40": 60, "10:45": 60, "10:50": 60.2, "10:55": 60.1}, None, None),
        ],
    )
    def test_the_burst_ends_at_the_rate_at_which_its_balance_falls(
        self, connection: sa.Connection, balances: dict[str, float | None], percent: float | None, hours: float | None
    ) -> None:
        found = self.burst(connection, balances)
        assert found["instance_burst_percent"] == percent
        assert found["hours_to_instance_burst_end"] == (None if hours is None else pytest.approx(hours, rel=1e-6))

    def test_the_balance_that_ends_first_counts(self, connection: sa.Connection) -> None:
        self.burst(connection, {"10:41": 70, "10:46": 68, "10:51": 66})
        self.samples(connection, {"10:42": 30, "10:47": 29, "10:52": 28}, "byte")
        found = ask(connection, "metrics.instance_ebs(:hour, 2)")[0]
        assert found["instance_burst_falling_minutes"] == 10
        self.samples(connection, {"10:38": 31}, "byte")
        found = ask(connection, "metrics.instance_ebs(:hour, 2)")[0]
        assert found["instance_burst_falling_minutes"] == 14
        assert found["instance_burst_percent"] == 28
        assert found["hours_to_instance_burst_end"] == pytest.approx(28 / 12, rel=0.1)

    def test_the_balance_falls_since_its_last_peak(self, connection: sa.Connection) -> None:
        found = self.burst(connection, {"10:40": 70, "10:45": 70, "10:50": 68, "10:55": 66})
        assert found["instance_burst_falling_minutes"] == 10

    def test_the_fall_may_be_longer_than_the_window_of_its_slope(self, connection: sa.Connection) -> None:
        balances: dict[str, float | None] = {"10:24": 99, "10:25": 80, "10:45": 70, "10:50": 68, "10:55": 66}
        found = self.burst(connection, balances)
        assert found["instance_burst_falling_minutes"] == 30
        assert found["hours_to_instance_burst_end"] == pytest.approx(2.75, rel=1e-6)

    def test_other_instances_volumes_and_hours_do_not_count(self, connection: sa.Connection) -> None:
        later, much = {"hour": HOUR + timedelta(hours=1)}, {"demand_iops_p95": 50000, "minutes_at_instance_limit": 9}
        elsewhere: tuple[Row, ...] = ({"account": "2"}, {"region": "s"})
        base = INSTANCE | {"ebs_baseline_iops": 3600, "ebs_baseline_bytes_per_second": 80 * MIB}
        others = (*elsewhere, later, {"hour": HOUR - timedelta(hours=1)}, {"instance_id": "i-2"})
        put(connection, "inventory.instance_hourly", base, *(base | {"ebs_baseline_iops": 9e9} | o for o in others))
        put(connection, "inventory.volume_hourly", VOLUME | {"instance_id": "i-1"})
        put(connection, "inventory.volume_hourly", VOLUME | {"volume_id": "vol-2", "instance_id": "i-1"})
        put(connection, "metrics.volume_hourly", VOLUME | NOTHING | {"minutes_at_instance_limit": 1},
            VOLUME | {"volume_id": "vol-2", "minutes_at_instance_limit": 0},
            *(VOLUME | much | o for o in (*elsewhere, later)))  # fmt: skip
        for hours, wanted in ((2, 9000), (3, 8000)):
            before = VOLUME | {"hour": HOUR - timedelta(hours=hours), "demand_iops_p95": wanted,
                               "demand_bytes_per_second_p95": wanted * MIB}  # fmt: skip
            others = (*elsewhere, {"volume_id": "vol-9"})
            put(connection, "metrics.volume_hourly", before, *(before | much | o for o in others))
        [found] = ask(connection, "metrics.instance_ebs(:hour, 2)")
        assert (found["instance_wanted_iops"], found["instance_wanted_bytes_per_second"]) == (9000, 9000 * MIB)

    def test_burst_balances_of_other_instances_do_not_count(self, connection: sa.Connection) -> None:
        self.burst(connection, {})
        for other in ({"account": "2"}, {"region": "s"}, {"instance_id": "i-2"}):
            for minute, percent in ((45, 30), (50, 28), (55, 26)):
                put(connection, "metrics.instance_sample",
                    INSTANCE | {"at": HOUR + timedelta(minutes=minute), "period_seconds": 60,
                                "ebs_io_balance_percent": percent} | other)  # fmt: skip
        assert [row["instance_burst_percent"] for row in ask(connection, "metrics.instance_ebs(:hour, 2)")] == [None]

    def test_demand_is_summed_over_volumes_and_is_never_below_the_baseline(self, connection: sa.Connection) -> None:
        base = {"ebs_baseline_iops": 3600, "ebs_baseline_bytes_per_second": 80 * MIB, "instance_type": "m5.large"}
        put(connection, "inventory.instance_hourly", INSTANCE | base)
        for volume, account in (("vol-1", "1"), ("vol-2", "1"), ("vol-1", "2")):
            of = {"account": account, "region": "r", "volume_id": volume}
            put(connection, "inventory.volume_hourly", of | {"instance_id": "i-1"})
            demand = {"demand_iops_p95": 2500, "demand_bytes_per_second_p95": MIB}
            put(connection, "metrics.volume_hourly", of | demand)
        put(connection, "inventory.volume_hourly", PLACE | {"volume_id": "vol-free", "instance_id": None},
            VOLUME | {"account": "3", "instance_id": "i-1", "hour": HOUR - timedelta(hours=1)})  # fmt: skip
        found = {row["account"]: row for row in ask(connection, "metrics.instance_ebs(:hour, 2)")}
        assert len(found) == 2
        assert found["1"]["instance_wanted_iops"] == 5000
        assert found["1"]["instance_wanted_bytes_per_second"] == 80 * MIB
        assert (found["1"]["instance_type"], found["2"]["instance_type"]) == ("m5.large", None)
        assert found["2"]["instance_wanted_iops"] == 2500

    def test_throttled_demand_is_raised_by_a_step_and_is_never_below_earlier_demand(
        self, connection: sa.Connection
    ) -> None:
        base = {"ebs_baseline_iops": 3600, "ebs_baseline_bytes_per_second": 80 * MIB}
        demand = {"demand_iops_p95": 3700, "demand_bytes_per_second_p95": 60 * MIB}
        before = {"demand_iops_p95": 9000, "demand_bytes_per_second_p95": MIB}
        for account in ("1", "2"):
            of = {"account": account, "region": "r"}
            put(connection, "inventory.instance_hourly", of | {"instance_id": "i-1"} | base)
            put(connection, "inventory.volume_hourly", of | {"volume_id": "vol-1", "instance_id": "i-1"})
        put(connection, "metrics.volume_hourly",
            VOLUME | demand | {"minutes_at_instance_limit": 30},
            VOLUME | {"account": "2", "minutes_at_instance_limit": 0} | demand,
            VOLUME | {"account": "2"} | before | {"hour": HOUR - timedelta(hours=1)})  # fmt: skip
        wanted = [row["instance_wanted_iops"] for row in self.ordered(connection)]
        assert wanted == [7200, 3700]  # demand that is not throttled is the measured one
        assert self.ordered(connection)[0]["instance_wanted_bytes_per_second"] == 120 * MIB
        put(connection, "metrics.volume_hourly", VOLUME | before | {"hour": HOUR - timedelta(hours=24)},
            VOLUME | {"demand_iops_p95": 20000, "hour": HOUR - timedelta(hours=25)})  # fmt: skip
        assert self.ordered(connection)[0]["instance_wanted_iops"] == 9000

    @pytest.mark.parametrize(
        ("exceeded", "iops", "mib_s"),
        [
            ({"ebs_iops_exceeded": 0.2, "ebs_throughput_exceeded": 0}, 7200, 80),
            ({"ebs_iops_exceeded": 0, "ebs_throughput_exceeded": 1}, 3600, 160),
            ({"ebs_iops_exceeded": 0, "ebs_throughput_exceeded": 0}, 3600, 80),
            ({"ebs_iops_exceeded": None, "ebs_throughput_exceeded": None}, 3600, 80),
        ],
    )
    def test_micro_bursts_beyond_the_instances_limit_are_open_demand(
        self, connection: sa.Connection, exceeded: Row, iops: int, mib_s: int
    ) -> None:
        put(connection, "inventory.instance_hourly",
            INSTANCE | {"ebs_baseline_iops": 3600, "ebs_baseline_bytes_per_second": 80 * MIB})  # fmt: skip
        put(connection, "inventory.volume_hourly", VOLUME | {"instance_id": "i-1"})
        low = {"demand_iops_p95": 700, "demand_bytes_per_second_p95": 5 * MIB, "minutes_at_instance_limit": 40}
        put(connection, "metrics.volume_hourly", VOLUME | low)
        sample = INSTANCE | {"at": HOUR, "period_seconds": 60}
        others: tuple[Row, ...] = ({"at": HOUR - timedelta(minutes=1)}, {"at": HOUR + timedelta(hours=1)},
                                   {"account": "2"}, {"region": "s"}, {"instance_id": "i-2"})  # fmt: skip
        both = {"ebs_iops_exceeded": 1, "ebs_throughput_exceeded": 1}
        put(connection, "metrics.instance_sample", sample | exceeded, *(sample | both | other for other in others))
        [found] = ask(connection, "metrics.instance_ebs(:hour, 2)")
        assert (found["instance_wanted_iops"], found["instance_wanted_bytes_per_second"]) == (iops, mib_s * MIB)

    def ordered(self, connection: sa.Connection) -> list[Row]:
        return sorted(ask(connection, "metrics.instance_ebs(:hour, 2)"), key=lambda row: str(row["account"]))


class TestBurstBalanceCycle:
    """metrics.burst_balance_cycle"""

    NOW = VOLUME | {"burst_balance_last_percent": 44, "credits_per_hour": -800, "hours_to_exhaustion": 2.5}
    CALL = "metrics.burst_balance_cycle(:hour, '1', 'r', 'vol-1', 3, 0.75)"

    def day(self, days: int, low: float = 47, burnt: float = -600, hours: int = 0, later: int = 1) -> list[Row]:
        """A batch `days` ago, `hours` later in the day, with its lowest balance `later` hours after its start."""
        at = HOUR - timedelta(days=days) + timedelta(hours=hours)
        return [
            VOLUME | {"hour": at, "burst_balance_min_percent": low, "credits_per_hour": burnt},
            VOLUME | {"hour": at + timedelta(hours=later), "burst_balance_min_percent": 31, "credits_per_hour": 1},
        ]

    @pytest.mark.parametrize(
        ("days", "alike"),
        [
            ([{"days": 1}, {"days": 7}], 2),
            ([{"days": 8}], 0),
            ([{"days": 1, "hours": 1}, {"days": 2, "hours": -1}], 2),
            ([{"days": 1, "hours": 3}], 0),
            # The balance is as low as now, within three points. Two hours later is outside of the hours compared.
            ([{"days": 1, "low": 47, "later": 2}, {"days": 2, "low": 47.1, "later": 2}], 1),
            # The drain is at least three quarters of the current one.
            ([{"days": 1, "burnt": -600}, {"days": 2, "burnt": -599}], 1),
            # The hours up to the current forecast must be known: 2.5 h, so three.
            ([{"days": 1, "later": 3}, {"days": 2, "later": 4}], 1),
        ],
    )
    def test_days_with_a_similar_drain_and_a_refill(
        self, connection: sa.Connection, days: list[Row], alike: int
    ) -> None:
        put(connection, "metrics.volume_hourly", self.NOW, *(row for day in days for row in self.day(**day)))
        lowest = 31.0 if alike else None
        assert ask(connection, self.CALL) == [{"days_alike": alike, "lowest_percent": lowest}]

    def test_days_of_another_volume_do_not_count(self, connection: sa.Connection) -> None:
        put(connection, "metrics.volume_hourly", self.NOW)
        for other in ({"account": "2"}, {"region": "s"}, {"volume_id": "vol-2"}):
            put(connection, "metrics.volume_hourly", *(row | other for row in (self.NOW, *self.day(1))))
        assert ask(connection, self.CALL)[0]["days_alike"] == 0

    def test_the_lowest_balance_of_a_day_counts_and_the_current_day_does_not(self, connection: sa.Connection) -> None:
        drained = VOLUME | {"credits_per_hour": -800}
        balances = {
            0: {0: 44, 1: 20},
            1: {-1: 60, 0: 34, 1: 45, 2: 50, 3: 50, 4: 50},
            2: {0: 47, 1: 44, 2: 33, 3: 90, 4: 90},
        }  # fmt: skip
        for days, by_hour in balances.items():
            for hours, low in by_hour.items():
                now = self.NOW if (days, hours) == (0, 0) else {}
                put(
                    connection,
                    "metrics.volume_hourly",
                    drained
                    | now
                    | {"hour": HOUR - timedelta(days=days, hours=-hours), "burst_balance_min_percent": low},
                )
        assert ask(connection, self.CALL) == [{"days_alike": 2, "lowest_percent": 33}]


class TestHeldBack:
    """metrics.throttled_since"""

    @pytest.mark.parametrize(
        ("minutes", "since"),
        [
            ({0: 30}, (0, 30)),
            ({0: 10, 1: 45}, (1, 45)),
            ({0: 11, 1: 45}, (0, 11)),
            ({0: 0, 1: 5, 2: 45}, (2, 45)),
            ({0: 0, 1: None}, (0, 0)),
            ({0: 0, 2: 45}, (0, 0)),
            ({**dict.fromkeys(range(168), 0), 168: 30}, (167, 0)),
        ],
        ids=["now", "continues", "began again", "three hours", "a pause", "an unknown hour", "a week"],
    )
    def test_throttled_since_the_last_pause(
        self, connection: sa.Connection, minutes: dict[int, int | None], since: tuple[int, int]
    ) -> None:
        def row(hours: int, minute: int | None, **other: Any) -> Row:
            hour = HOUR - timedelta(hours=hours)
            return VOLUME | {
                "hour": hour, "throttled_since": None if minute is None else hour + timedelta(minutes=minute)
            } | other  # fmt: skip

        put(connection, "metrics.volume_hourly", *(row(*at) for at in minutes.items()), row(-1, 30))
        for other in ({"account": "2"}, {"region": "s"}, {"volume_id": "vol-2"}):
            put(connection, "metrics.volume_hourly", row(0, 59, **other))
        call = "metrics.throttled_since(:hour, '1', 'r', 'vol-1') as since"
        assert ask(connection, call) == [{"since": HOUR - timedelta(hours=since[0], minutes=-since[1])}]


class TestSlowness:
    """metrics.volume_slowness"""

    def slowness(
        self, connection: sa.Connection, by_hours_ago: dict[int, float], known_hours: int = 4, ratio: float = 5,
        volume_type: str = "gp3",
    ) -> tuple[Any, ...]:  # fmt: skip
        elsewhere: tuple[Row, ...] = ({"account": "2"}, {"region": "s"}, {"volume_id": "vol-2"})
        volume = VOLUME | {"volume_type": volume_type}
        other = VOLUME | {"volume_type": "st1" if volume_type.startswith("g") else "gp3"}
        before = {"hour": HOUR - timedelta(hours=1)}
        put(connection, "inventory.volume_hourly", volume, other | before, *(other | o for o in elsewhere))
        rows = [self.row(hours, latency_p75_ms=ms) for hours, ms in by_hours_ago.items()]
        put(connection, "metrics.volume_hourly", *rows, *(self.row(1, latency_p75_ms=999) | o for o in elsewhere))
        return self.asked(connection, known_hours, ratio)

    def row(self, hours: int, **latency: float) -> Row:
        return VOLUME | {"hour": HOUR - timedelta(hours=hours), "minutes_present": 60} | latency

    def asked(self, connection: sa.Connection, known_hours: int = 4, ratio: float = 5) -> tuple[Any, ...]:
        call = "metrics.volume_slowness(:hour, '1', 'r', 'vol-1', 20, :ratio, :known_hours)"
        [found] = ask(connection, call, ratio=ratio, known_hours=known_hours)
        return tuple(found.values())

    @pytest.mark.parametrize(
        ("by_hours_ago", "ratio", "expected"),
        [
            ({0: 99, 2: 10, 3: 10, 4: 12, 5: 10}, 5, (10, 50, 4, 15)),
            ({0: 9, 2: 1, 3: 1, 4: 1, 5: 1}, 5, (1, 20, 4, 0)),
            ({0: 9, 2: 10, 3: 30, 4: 10, 5: 30}, 1, (20, 70, 4, 0)),
            ({0: 99, 2: 20, 3: 20, 4: 30, 5: 10}, 1, (20, 45, 4, 15)),
            # With fewer hours than known_hours there is no baseline.
            ({0: 9, 2: 10, 3: 10, 4: 10}, 5, (None, 20, 3, 0)),
            # Three values at this time of day, one of them an hour earlier and one an hour later; or two values.
            ({0: 9, 2: 10, 3: 10, 4: 10, 5: 10, 47: 30, 48: 30, 49: 30}, 5, (30, 150, 7, 0)),
            ({0: 9, 2: 10, 3: 10, 4: 10, 5: 10, 48: 30, 49: 30}, 5, (10, 50, 6, 0)),
            ({0: 9, 2: 10, 3: 10, 4: 10, 5: 10, 46: 30, 48: 30, 49: 30}, 5, (10, 50, 7, 0)),
            # A week, and no hour more.
            ({0: 9, 2: 1, 3: 1, 4: 1, 168: 1, 169: 1}, 5, (1, 20, 4, 0)),
        ],
    )
    def test_the_limit_is_relative_to_the_baseline(
        self, connection: sa.Connection, by_hours_ago: dict[int, float], ratio: float, expected: tuple[Any, ...]
    ) -> None:
        assert self.slowness(connection, by_hours_ago, ratio=ratio) == expected

    @pytest.mark.parametrize(("volume_type", "limit"), [("gp2", 20), ("st1", None), ("sc1", None)])
    def test_a_new_hdd_volume_has_no_limit(
        self, connection: sa.Connection, volume_type: str, limit: float | None
    ) -> None:
        assert self.slowness(connection, {0: 9}, volume_type=volume_type) == (None, limit, 0, 0)

    def test_slow_minutes_are_the_share_of_slow_requests_back_to_the_last_hour_without_any(
        self, connection: sa.Connection
    ) -> None:
        self.slowness(connection, {4: 19, 5: 99}, known_hours=99)
        put(connection, "metrics.volume_hourly",
            self.row(0, latency_p05_ms=20, latency_p25_ms=21, latency_p50_ms=22, latency_p75_ms=23),
            self.row(1, latency_p05_ms=19, latency_p25_ms=20, latency_p50_ms=22, latency_p75_ms=23),
            self.row(2, latency_p05_ms=19, latency_p25_ms=19, latency_p50_ms=20, latency_p75_ms=23),
            self.row(3, latency_p05_ms=19, latency_p25_ms=19, latency_p50_ms=19, latency_p75_ms=20))  # fmt: skip
        assert self.asked(connection, 99)[-1] == pytest.approx(60 * (0.95 + 0.75 + 0.5 + 0.25))

    def test_slow_for_a_whole_week(self, connection: sa.Connection) -> None:
        found = self.slowness(connection, dict.fromkeys(range(169), 20), known_hours=999)
        assert found == (None, 20, 168, 169 * 15)


class TestAdvice:
    """metrics.volume_advice"""

    def advice(
        self,
        connection: sa.Connection,
        volume: Row,
        measured: Row,
        by_throughput: bool = False,
        prices: Row | None = None,
    ) -> Row:
        put(connection, "inventory.volume_hourly", VOLUME | volume)
        put(
            connection,
            "metrics.volume_hourly",
            VOLUME | {"minutes_present": 60, "minutes_at_iops_limit": 20} | measured,
        )
        put(connection, "inventory.ebs_price", prices or PRICES)
        call = "metrics.volume_advice(:hour, '1', 'r', 'vol-1', :by_throughput, 1.2, 2)"
        return ask(connection, call, by_throughput=by_throughput)[0]

    @pytest.mark.parametrize(
        ("volume", "measured", "by_throughput", "expected"),
        [
            # gp2, st1, and io1 without enough throughput become gp3, sized by demand with headroom.
            ({"volume_type": "gp2", "size_gib": 100}, GP2 | {"demand_iops_p99": 2600}, False, ("gp3", 100, 3200, 125)),
            ({"volume_type": "gp2", "size_gib": 100}, GP2 | {"demand_iops_p99": None}, False, ("gp3", 100, 3000, 125)),
            ({"volume_type": "gp2", "size_gib": 9}, GP2 | {"demand_bytes_per_second_p99": 200 * MIB}, False,
             ("gp3", 9, 3000, 240)),
            ({"volume_type": "st1", "size_gib": 500}, GP2, True, ("gp3", 500, 3000, 125)),
            ({"volume_type": "io1", "size_gib": 100}, GP3, True, ("gp3", 100, 3000, 125)),
            # Other volumes keep their type and get more IOPS or throughput.
            ({"volume_type": "io1", "size_gib": 50}, GP3, False, ("io1", 72, 3600, None)),
            ({"volume_type": "io2", "size_gib": 50}, GP3 | {"demand_iops_p99": 3100}, False, ("io2", 50, 3800, None)),
            ({"volume_type": "gp3", "size_gib": 50}, GP3, False, ("gp3", 50, 3600, 125)),
            ({"volume_type": "gp3", "size_gib": 50}, GP3, True, ("gp3", 50, 3000, 150)),
            ({"volume_type": "gp3", "size_gib": 50}, GP3 | {"demand_bytes_per_second_p99": 700 * MIB}, True,
             ("gp3", 50, 3360, 840)),
        ],
    )  # fmt: skip
    def test_the_advised_change(
        self, connection: sa.Connection, volume: Row, measured: Row, by_throughput: bool, expected: tuple[Any, ...]
    ) -> None:
        found = self.advice(connection, volume, measured, by_throughput)
        assert tuple(found[c] for c in ("volume_type", "size_gib", "iops", "throughput_mib_s")) == expected
        assert (found["suffices"], found["is_at_its_end"]) == (True, False)

    @pytest.mark.parametrize(
        ("volume_type", "iops", "mib_s", "demand", "at_its_end", "suffices"),
        [
            ("io1", 64000, 1000, 64000, True, False),
            ("gp3", 79000, 2000, 79000, False, False),
            ("gp3", 80000, 2000, 80000, True, False),
        ],
    )
    def test_demand_beyond_the_maximum_of_a_volume(
        self, connection: sa.Connection, volume_type: str, iops: int, mib_s: int, demand: int, at_its_end: bool,
        suffices: bool,
    ) -> None:  # fmt: skip
        measured = GP3 | {"baseline_iops": iops, "baseline_bytes_per_second": mib_s * MIB, "demand_iops_p99": demand}
        found = self.advice(connection, {"volume_type": volume_type, "size_gib": 9000}, measured)
        assert (found["is_at_its_end"], found["suffices"]) == (at_its_end, suffices)
        assert (found["known_hours"] is None) == at_its_end

    @pytest.mark.parametrize(
        ("volume_type", "size_gib", "limits"),
        [
            ("gp2", 10, (102, 25.5)), ("gp2", 100, (300, 75)), ("gp2", 6000, (16000, 250)), ("st1", 512, (None, 20)),
            ("st1", 16384, (None, 500)), ("sc1", 1024, (None, 12)), ("sc1", 16384, (None, 192)),
        ],
    )  # fmt: skip
    def test_limits_of_an_option_with_a_burst_bucket_are_what_it_sustains(
        self, connection: sa.Connection, volume_type: str, size_gib: int, limits: tuple[float | None, float]
    ) -> None:
        measured = GP2 | {"demand_iops_p95": 10, "demand_iops_p99": 10, "demand_bytes_per_second_p95": MIB}
        found = self.advice(connection, {"volume_type": volume_type, "size_gib": size_gib}, measured)
        (same,) = (option for option in found["options"] if option["volume_type"] == volume_type)
        assert (same["limit_iops"], same["limit_mib_s"]) == limits

    def test_prices_options_and_replay(self, connection: sa.Connection) -> None:
        measured = GP2 | {"demand_iops_p95": 960, "demand_iops_p99": 3100}
        found = self.advice(connection, {"volume_type": "gp2", "size_gib": 10}, measured)
        assert found["now_usd_per_month"] == pytest.approx(1)
        assert found["usd_per_month"] == pytest.approx(10 * 0.08 + 800 * 0.005)
        assert [(o["covers"], o["volume_type"], o["size_gib"], o["price_usd_per_month"]) for o in found["options"]] == [
            ("p95 of demand", "gp3", 10, pytest.approx(0.8)),
            ("p95 of demand", "gp2", 400, pytest.approx(40)),
            ("p99 of demand", "gp3", 10, pytest.approx(4.8)),
            ("p99 of demand", "gp2", 1267, pytest.approx(126.7)),
        ]
        assert (found["known_hours"], found["throttled_minutes"], found["then_throttled_minutes"]) == (1, 20, 0)
        assert (found["unknown_minutes"], found["wants_at_least"]) == (0, False)

    @pytest.mark.parametrize(
        ("measured", "expected", "replayed"),
        [
            # At the limit of 3,000 IOPS: twice as many with headroom, and the replay is unknown.
            ({"demand_iops_p99": 2999}, (7200, 125), (0, 20)),
            # The throughput limit also limits the IOPS, and the other way round.
            (AT_BYTES | {"demand_iops_p99": 2000, "demand_bytes_per_second_p99": 120 * MIB}, (4800, 300), (0, 20)),
            ({"demand_iops_p99": 2000, "demand_bytes_per_second_p99": 100 * MIB}, (7200, 240), (0, 20)),
            # Demand above the current limit is known.
            ({"demand_iops_p99": 4000}, (4800, 125), (0, 0)),
            # Micro-bursts: the mean of each minute is far below the limit that cuts it off.
            ({"demand_iops_p99": 560, "busy_iops_p95": 3000}, (7200, 125), (0, 20)),
            ({"demand_iops_p99": 560}, (7200, 125), (0, 20)),
            (AT_BYTES | {"demand_bytes_per_second_p99": 20 * MIB}, (3600, 300), (0, 20)),
            # The busy seconds show more than the limit that is known.
            ({"demand_iops_p99": 1000, "busy_iops_p95": 9000}, (10800, 125), (0, 20)),
            # Three of 60 minutes cut off no more than the top 5 %.
            (
                {"demand_iops_p99": 560, "minutes_at_iops_limit": 3, "minutes_at_throughput_limit": 0},
                (3600, 125),
                (0, 3),
            ),
        ],
    )
    def test_demand_at_a_limit_is_reported_as_a_lower_bound(
        self, connection: sa.Connection, measured: Row, expected: tuple[int, int], replayed: tuple[int, int]
    ) -> None:
        limits = {"burst_iops": 3000, "burst_bytes_per_second": 125 * MIB}
        found = self.advice(connection, {"volume_type": "gp3", "size_gib": 50}, GP3 | limits | measured)
        assert (found["iops"], found["throughput_mib_s"]) == expected
        assert (found["then_throttled_minutes"], found["unknown_minutes"]) == replayed
        assert found["wants_at_least"] == (replayed[1] > 0)

    @pytest.mark.parametrize(
        ("volume", "limits", "expected"),
        [
            # io1 keeps its type; a gp2 volume with credits left is capped at its burst, which is all that gp3 includes.
            ({"volume_type": "io1", "size_gib": 300}, {"baseline_iops": 2000, "burst_iops": 2000}, ("io1", 4800)),
            ({"volume_type": "io2", "size_gib": 300}, {"baseline_iops": 700, "burst_iops": 700}, ("io2", 1700)),
            ({"volume_type": "gp2", "size_gib": 300}, {"baseline_iops": 900, "burst_iops": 3000,
              "bucket_credits": 5_400_000, "minutes_empty": 0}, ("gp3", 7200)),
        ],
    )  # fmt: skip
    def test_micro_bursts_are_open_demand_for_each_type(
        self, connection: sa.Connection, volume: Row, limits: Row, expected: tuple[str, int]
    ) -> None:
        measured = GP3 | {"demand_iops_p99": 390, "minutes_at_iops_limit": 60, "busy_iops_p95": limits["burst_iops"]}
        found = self.advice(connection, volume, measured | limits)
        assert (found["volume_type"], found["iops"], found["wants_at_least"]) == (*expected, True)
        assert (found["demand_iops"], found["unknown_minutes"]) == (limits["burst_iops"], 60)

    def test_an_exhausted_bucket_never_above_its_baseline_has_the_baseline_as_lower_bound(
        self, connection: sa.Connection
    ) -> None:
        dry = {"bucket_credits": 5_400_000, "burst_iops": 3000, "burst_bytes_per_second": 128 * MIB,
               "hours_to_exhaustion": 0, "baseline_iops": 1500, "demand_iops_p99": 1500}  # fmt: skip
        found = self.advice(connection, {"volume_type": "gp2", "size_gib": 500}, GP2 | dry)
        assert (found["wants_at_least"], found["iops"], found["unknown_minutes"]) == (True, 3600, 20)

    def test_demand_before_the_throttling_counts(self, connection: sa.Connection) -> None:
        limits = {"burst_iops": 3000, "burst_bytes_per_second": 125 * MIB, "demand_iops_p99": 3000}
        before = VOLUME | {"demand_iops_p99": 7000, "minutes_at_iops_limit": 0}
        put(connection, "metrics.volume_hourly", before | {"hour": HOUR - timedelta(days=2)})
        found = self.advice(connection, {"volume_type": "gp3", "size_gib": 50}, GP3 | limits)
        assert (found["wants_at_least"], found["iops"]) == (True, 8400)

    def test_a_region_without_prices(self, connection: sa.Connection) -> None:
        found = self.advice(connection, {"volume_type": "gp2", "size_gib": 10}, GP2, prices=PRICES | {"region": "s"})
        assert (found["usd_per_month"], found["now_usd_per_month"], found["prices_as_of"]) == (None, None, None)
        assert found["volume_type"] == "gp3"


class TestReplay:
    """metrics.volume_replay"""

    def test_minutes_above_other_limits(self, connection: sa.Connection) -> None:
        # Limits of 100 IOPS and 1 MiB/s. By hours ago: the maximum, throttled minutes, and the demand.
        calm = {"minutes_present": 60, "minutes_at_iops_limit": 0, "minutes_at_throughput_limit": 0, "iops_max": 100,
                "bytes_per_second_max": MIB, "demand_iops_p99": 100, "demand_bytes_per_second_p99": MIB}  # fmt: skip
        hours: list[Row] = [
            {"iops_max": 101},
            {"bytes_per_second_max": MIB + 1},
            {},
            {"minutes_at_iops_limit": 3, "minutes_at_throughput_limit": 7},
            {"minutes_at_iops_limit": 5, "demand_iops_p99": 101, "iops_max": 101},
            {"minutes_at_iops_limit": 4, "demand_bytes_per_second_p99": MIB + 1},
        ]
        for ago, hour in enumerate(hours):
            put(connection, "metrics.volume_hourly", VOLUME | calm | hour | {"hour": HOUR - timedelta(hours=ago)})
        samples = {0: (101, 0), 5: (100, MIB), 60: (900, 0), -10: (0, MIB + 1), -20: (100, MIB), -70: (900, 0),
                   -200: (101, 0)}  # fmt: skip
        sample = VOLUME | {"period_seconds": 60}
        for minute, (operations, rate) in samples.items():
            put(connection, "metrics.volume_sample",
                sample | {"at": HOUR + timedelta(minutes=minute), "read_ops": operations * 60 - 60, "write_ops": 60,
                          "read_bytes": rate * 60 - 60, "write_bytes": 60})  # fmt: skip
        for other in ({"account": "2"}, {"region": "s"}, {"volume_id": "vol-2"}):
            put(connection, "metrics.volume_hourly", VOLUME | calm | {"minutes_at_iops_limit": 50} | other)
            put(connection, "metrics.volume_sample",
                sample | {"at": HOUR + timedelta(minutes=1), "read_ops": 54000, "write_ops": 0} | other)  # fmt: skip
        [found] = ask(connection, "metrics.volume_replay('1', 'r', 'vol-1', :hour, 100, 1)")
        assert tuple(found.values()) == (6, 16, 1 + 1 + 5 + 4, 0)
