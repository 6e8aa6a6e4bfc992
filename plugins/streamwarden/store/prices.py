"""EBS prices in the warehouse, for detectors: of `sql/prices/ebs.csv`, of the AWS Price List API, or of the config's
`ebs_prices`. The table of a deployment counts alone; of the other two, the newer price of each region counts."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import named_in_config
from streamwarden.store.sql_header import shown

FROM_API = "AWS Price List API"
"""Source of prices that were fetched. The hourly step does not replace them by older ones of the repository."""
Usd = Annotated[float, Field(ge=0)] | None


class EbsPrice(BaseModel):
    """List prices of a region in USD; the comments of `inventory.ebs_price` have their units."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    region: str = Field(min_length=1)
    as_of: date
    source: str = Field(min_length=1)
    gp2_gib: Usd
    gp3_gib: Usd
    gp3_iops: Usd
    gp3_mib_s: Usd
    io1_gib: Usd
    io1_iops: Usd
    io2_gib: Usd
    io2_iops: Usd
    io2_iops_above_32000: Usd
    io2_iops_above_64000: Usd
    st1_gib: Usd
    sc1_gib: Usd


def load_prices(engine: sa.Engine, config: Config) -> list[EbsPrice]:
    """Puts the prices of the file into the warehouse, and returns those that the warehouse has then.

    Raises:
        StreamwardenError: one line with file, region, column, and problem; the warehouse is not changed.
    """
    prices = read_prices(named_in_config(config.ebs_prices))
    with engine.begin() as connection:
        _lock(connection)
        kept = [] if has_own_prices(config) else _fetched(connection)
        newest = {price.region: price for price in sorted([*prices, *kept], key=lambda price: price.as_of)}
        _replace(connection, list(newest.values()))
    return list(newest.values())


def store_fetched(engine: sa.Engine, prices: Sequence[EbsPrice]) -> None:
    """Stores prices of the Price List API. Regions that are not among them keep theirs."""
    with engine.begin() as connection:
        _lock(connection)
        known = [EbsPrice.model_validate(dict(row)) for row in connection.execute(_ALL).mappings()]
        _replace(connection, list({price.region: price for price in [*known, *prices]}.values()))


def has_own_prices(config: Config) -> bool:
    """Whether the config names a table of prices, such as negotiated ones: then no others count."""
    return "ebs_prices" in config.model_fields_set


def _lock(connection: sa.Connection) -> None:
    # Without the lock, the second of two concurrent runs would not see the rows to delete, and insert duplicates.
    connection.execute(sa.text("lock table inventory.ebs_price in share row exclusive mode"))


def _fetched(connection: sa.Connection) -> list[EbsPrice]:
    rows = connection.execute(_ALL).mappings()
    return [price for price in (EbsPrice.model_validate(dict(row)) for row in rows) if price.source == FROM_API]


def _replace(connection: sa.Connection, prices: Sequence[EbsPrice]) -> None:
    columns, binds = ", ".join(EbsPrice.model_fields), ", ".join(f":{column}" for column in EbsPrice.model_fields)
    connection.execute(sa.text("delete from inventory.ebs_price"))
    connection.execute(
        sa.text(f"insert into inventory.ebs_price ({columns}) values ({binds})"),  # noqa: S608 our own names
        [price.model_dump() for price in prices],
    )


_ALL = sa.text("select * from inventory.ebs_price")


def read_prices(file: Path) -> list[EbsPrice]:
    """The prices in a CSV file; lines that begin with `#` are comments.

    Raises:
        StreamwardenError: one line with file, region, column, and problem.
    """
    try:
        lines = [line for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]
    except OSError as error:
        raise StreamwardenError(f"ebs_prices: {shown(file)}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StreamwardenError(f"ebs_prices: {shown(file)}: is not UTF-8 text; save it in UTF-8.") from None
    prices: dict[str, EbsPrice] = {}
    for row in csv.DictReader(lines):
        where = f"{shown(file)}: {row.get('region')}"
        try:
            price = EbsPrice.model_validate({column: value or None for column, value in row.items() if column})
        except ValidationError as error:
            first = error.errors()[0]
            raise StreamwardenError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
        if price.region in prices:
            raise StreamwardenError(f"{where}: duplicate region.")
        prices[price.region] = price
    if not prices:
        raise StreamwardenError(f"{shown(file)}: contains no prices.")
    return list(prices.values())
