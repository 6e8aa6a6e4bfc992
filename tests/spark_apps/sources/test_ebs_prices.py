"""List prices by the AWS Price List API: what is read of its products, and that a doubtful price is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from demo.aws_endpoint import AwsEndpoint
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.pipeline import refresh_prices
from streamwarden.store.prices import FROM_API, load_prices

from spark_apps.sources.aws_client import MalformedAnswer
from spark_apps.sources.ebs_prices import COLUMNS, connection_for, prices_of
from tests.spark_apps.aws_world import ACCOUNT, REGION


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    file = tmp_path / "streamwarden.yaml"
    file.write_text(json.dumps({"aws": [{"account": ACCOUNT, "regions": [REGION, "us-east-1"]}]}))
    monkeypatch.setenv(CONFIG_ENV, str(file))
    world = World(seed=1, now=lambda: datetime.now(UTC))
    world.add_volume(ACCOUNT, REGION, "vol-0a", "gp3", 10)
    with AwsEndpoint(world) as running:
        for name, value in running.environment(ACCOUNT, REGION).items():
            monkeypatch.setenv(name, value)
        yield running


def test_every_price_of_a_region_is_read_in_its_unit(endpoint: AwsEndpoint) -> None:
    found = prices_of(connection_for(ACCOUNT), REGION)
    assert found.usd.keys() == {column for column, _ in COLUMNS.values()}
    assert found.as_of == datetime.now(UTC).date()
    assert found.usd["gp3_gib"] == 0.0952 and found.usd["io2_iops_above_64000"] == 0.03822
    assert found.usd["gp3_mib_s"] == pytest.approx(0.048)  # the list has it per GiB/s
    assert endpoint.calls["GetProducts"] == 3


def test_pages_are_followed(endpoint: AwsEndpoint) -> None:
    endpoint.more_products = tuple(("System Operation", f"SnapshotCopy.{n}", "GB", 0.1) for n in range(230))
    assert prices_of(connection_for(ACCOUNT), REGION).usd["gp3_iops"] == 0.006
    assert endpoint.calls["GetProducts"] == 5


@pytest.mark.parametrize(
    ("product", "problem"),
    [
        (("Storage", "VolumeUsage.gp3", "GB-Mo", 0.2), "two prices of VolumeUsage.gp3"),
        (("Storage", "VolumeUsage.gp2", "TB-Mo", 119.0), "the price of VolumeUsage.gp2 is per TB-Mo"),
        (("Storage", "VolumeUsage.st1", "GB-Mo", -1.0), "the price of VolumeUsage.st1 is -1.0"),
    ],
)
def test_a_doubtful_price_is_an_error(
    endpoint: AwsEndpoint, product: tuple[str, str, str, float], problem: str
) -> None:
    endpoint.more_products = (product,)
    with pytest.raises(MalformedAnswer, match=problem):
        prices_of(connection_for(ACCOUNT), REGION)


def test_a_region_without_prices_is_an_error(endpoint: AwsEndpoint) -> None:
    with pytest.raises(MalformedAnswer, match="no price of EBS in eu-south-9"):
        prices_of(connection_for(ACCOUNT), "eu-south-9")


def row(warehouse: sa.Engine, region: str) -> sa.Row[tuple[date, str, float]]:
    with warehouse.connect() as connection:
        query = sa.text("select as_of, source, gp3_gib from inventory.ebs_price where region = :region")
        return connection.execute(query, {"region": region}).one()


def test_fetched_prices_stay_until_the_file_has_newer_ones(
    endpoint: AwsEndpoint, warehouse: sa.Engine, tmp_path: Path
) -> None:
    config = load_config()
    load_prices(warehouse, config)
    assert row(warehouse, REGION)[1] != FROM_API
    assert refresh_prices(warehouse, config) == [REGION, "us-east-1"]
    for _ in range(2):
        assert row(warehouse, REGION) == (datetime.now(UTC).date(), FROM_API, 0.0952)
        assert {price.region for price in load_prices(warehouse, config)} > {REGION, "eu-west-1"}
    own = tmp_path / "own.csv"
    own.write_text("region,as_of,source,gp2_gib,gp3_gib,gp3_iops,gp3_mib_s,io1_gib,io1_iops,io2_gib,io2_iops,"
                   "io2_iops_above_32000,io2_iops_above_64000,st1_gib,sc1_gib\n"
                   f"{REGION},2020-01-01,a contract,,0.01,,,,,,,,,,\n")  # fmt: skip
    negotiated = Config(ebs_prices=own)
    load_prices(warehouse, negotiated)
    assert row(warehouse, REGION) == (date(2020, 1, 1), "a contract", 0.01)
    with pytest.raises(StreamwardenError, match="remove the key to fetch list prices"):
        refresh_prices(warehouse, negotiated)


def test_a_denied_call_is_one_line_and_changes_nothing(endpoint: AwsEndpoint, warehouse: sa.Engine) -> None:
    endpoint.faults.inject("deny", times=None, action="GetProducts")
    load_prices(warehouse, load_config())
    before = row(warehouse, REGION)
    with pytest.raises(StreamwardenError, match="access denied for pricing:GetProducts; grant it to"):
        refresh_prices(warehouse, load_config())
    assert row(warehouse, REGION) == before and before[0] < datetime.now(UTC).date() - timedelta(days=90)
