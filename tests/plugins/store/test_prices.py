"""EBS prices: the table in the repository, the table of a deployment, and the cost of volumes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.store.prices import EbsPrice, load_prices, read_prices

HEADER = ",".join(EbsPrice.model_fields)
LINE = "us-east-1,2025-01-01,a list,0.1,0.08,0.005,0.04,0.125,0.065,0.125,0.065,0.0455,0.03185,0.045,0.015"


def cost(warehouse: sa.Engine, *volume: object) -> float | None:
    with warehouse.connect() as connection:
        values = dict(zip(("region", "type", "gib", "iops", "mib_s"), volume, strict=True))
        return connection.execute(
            sa.text("select inventory.ebs_usd_per_month(:region, :type, :gib, :iops, :mib_s)"), values
        ).scalar()


def test_the_cost_of_volumes_with_the_table_in_the_repository(warehouse: sa.Engine) -> None:
    assert cost(warehouse, "eu-central-1", "gp2", 1024, 3072, None) is None  # not loaded yet
    for _ in range(2):
        load_prices(warehouse, Config())
    for volume, usd in {
        ("eu-central-1", "gp2", 1024, 3072, None): 121.86,
        ("eu-central-1", "gp3", 1024, 3072, 250): 97.48 + 0.43 + 6,
        ("us-east-1", "gp3", 10, 3000, 125): 0.80,
        ("us-east-1", "io1", 100, 5000, None): 12.5 + 325,
        ("us-east-1", "io2", 100, 70000, None): 12.5 + 32000 * 0.065 + 32000 * 0.0455 + 6000 * 0.03185,
        ("us-east-1", "st1", 1000, 500, None): 45.0,
    }.items():
        assert cost(warehouse, *volume) == pytest.approx(usd, abs=0.01), volume
    # Unknown prices are null.
    for volume in (("mars-1", "gp3", 1, 1, 1), ("us-east-1", "standard", 1, 1, 1), ("us-east-1", "io2", 1, None, 1)):
        assert cost(warehouse, *volume) is None


@pytest.mark.usefixtures("slow_commits")
def test_two_concurrent_runs_load_the_prices(warehouse: sa.Engine) -> None:
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: load_prices(warehouse, Config()), range(2))
    assert first == second
    with warehouse.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from inventory.ebs_price").scalar_one() == len(first)


def test_the_cheapest_volume_that_sustains_a_load(warehouse: sa.Engine) -> None:
    wanted: dict[tuple[str, int, int, int], tuple[float | None, ...]] = {
        ("gp3", 100, 20, 10): (10, 3000, 125, True),
        ("gp3", 16000, 125, 10): (32, 16000, 125, True),
        ("gp3", 100, 1000, 10): (10, 4000, 1000, True),
        ("gp3", 90000, 2500, 10): (160, 80000, 2000, False),
        ("gp2", 1000, 100, 10): (334, None, None, True),
        ("gp2", 300, 200, 10): (334, None, None, True),
        ("gp2", 17000, 100, 10): (5667, None, None, False),
        ("io1", 64000, 125, 10): (1280, 64000, None, True),
        ("io2", 300000, 125, 10): (256, 256000, None, False),
        ("st1", 5000, 100, 125): (2560, None, None, True),
        ("sc1", 10, 200, 125): (17067, None, None, False),
    }
    with warehouse.connect() as connection:
        for given, expected in wanted.items():
            values = dict(zip(("type", "iops", "mib_s", "gib"), given, strict=True))
            query = sa.text("select * from inventory.ebs_volume_with(:type, :iops, :mib_s, :gib)")
            assert connection.execute(query, values).one() == expected, given
        nothing = sa.text("select count(*) from inventory.ebs_volume_with('standard', 1, 1, 1)")
        assert connection.execute(nothing).scalar() == 0


def test_the_table_of_a_deployment_replaces_the_prices(warehouse: sa.Engine, tmp_path: Path) -> None:
    load_prices(warehouse, Config())
    own = tmp_path / "own.csv"
    own.write_text(f"# ours\n{HEADER}\nmoon-1,2025-01-01,a contract,0.5,,,,,,,,,,,\n")
    load_prices(warehouse, Config(ebs_prices=own))
    assert cost(warehouse, "moon-1", "gp2", 10, 100, None) == pytest.approx(5)
    assert cost(warehouse, "moon-1", "gp3", 10, 3000, 125) is None
    assert cost(warehouse, "us-east-1", "gp2", 10, 100, None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\n", "contains no prices."),
        (f"{HEADER}\n{LINE}\n{LINE}\n", "us-east-1: duplicate region."),
        (f"{HEADER}\n{LINE.replace('0.08', 'much')}\n", "us-east-1: gp3_gib: Input should be a valid number"),
        (f"{HEADER}\n{LINE.replace('2025-01-01', 'now')}\n", "us-east-1: as_of: Input should be a valid date"),
        (f"{HEADER.replace('gp3_gib', 'gp9_gib')}\n{LINE}\n", "us-east-1: gp3_gib: Field required"),
    ],
)
def test_an_error_names_file_region_and_column(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(text)
    with pytest.raises(StreamwardenError) as problem:
        read_prices(file)
    assert str(problem.value).startswith(str(file)) and message in str(problem.value)


def test_a_missing_table_is_an_error() -> None:
    with pytest.raises(StreamwardenError, match=r"ebs_prices: /nowhere\.csv: No such file"):
        read_prices(Path("/nowhere.csv"))
