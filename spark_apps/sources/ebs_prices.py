"""List prices of EBS by the AWS Price List API, one row per region.

Calls GetProducts of service AmazonEC2, three times a region (product families Storage, System Operation, and
Provisioned Throughput), with `regionCode` as a filter. Needs `pricing:GetProducts`; free of charge. Few regions serve
the API, so us-east-1 is asked. A price is found by its usage type (`EUC1-EBS:VolumeUsage.gp3`) and must have the unit
that is expected of it: another unit would be off by a factor, and is an error.

Sources: AWS Price List API Reference (GetProducts), and the usage types and units of the offer file AmazonEC2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from spark_apps.sources.aws_client import Connection, MalformedAnswer, Place, listed

API_REGION = "us-east-1"
FAMILIES = ("Storage", "System Operation", "Provisioned Throughput")
PAGE_SIZE = 100
MAX_PRODUCTS = 5_000
"""Of a region and family: System Operation has some hundred."""
_GIB, _IOPS, _THROUGHPUT = {"gb-mo": 1.0, "gb-month": 1.0}, {"iops-mo": 1.0}, {"gibps-mo": 1 / 1024, "mibps-mo": 1.0}
"""Units by their names in the price list: the factor to a price per GiB, per IOPS, and per MiB/s."""
COLUMNS: dict[str, tuple[str, dict[str, float]]] = {
    "VolumeUsage.gp2": ("gp2_gib", _GIB),
    "VolumeUsage.gp3": ("gp3_gib", _GIB),
    "VolumeP-IOPS.gp3": ("gp3_iops", _IOPS),
    "VolumeP-Throughput.gp3": ("gp3_mib_s", _THROUGHPUT),
    "VolumeUsage.piops": ("io1_gib", _GIB),
    "VolumeP-IOPS.piops": ("io1_iops", _IOPS),
    "VolumeUsage.io2": ("io2_gib", _GIB),
    "VolumeP-IOPS.io2": ("io2_iops", _IOPS),
    "VolumeP-IOPS.io2.tier2": ("io2_iops_above_32000", _IOPS),
    "VolumeP-IOPS.io2.tier3": ("io2_iops_above_64000", _IOPS),
    "VolumeUsage.st1": ("st1_gib", _GIB),
    "VolumeUsage.sc1": ("sc1_gib", _GIB),
}
"""By usage type without its region: the column of `inventory.ebs_price`, and the units that it may have."""
_USAGE_TYPE = re.compile(r"(?:[A-Z0-9]+-)?EBS:(.+)")


@dataclass(frozen=True)
class RegionPrices:
    """Prices of a region, USD a month; columns that are not offered there are missing."""

    region: str
    as_of: date
    """Day of the request: the prices are valid then."""
    usd: dict[str, float]


def prices_of(connection: Connection, region: str) -> RegionPrices:
    """The prices of a region. `connection`: one of API_REGION.

    Raises:
        the errors of `aws_client.Failure`; MalformedAnswer if a price is unreadable, ambiguous, or in another unit.
    """
    client = connection.client("pricing")
    usd: dict[str, float] = {}
    for family in FAMILIES:
        for product in _products(client, region, family):
            found = _USAGE_TYPE.fullmatch(str(product.get("product", {}).get("attributes", {}).get("usagetype", "")))
            if found is None or found[1] not in COLUMNS:
                continue
            column, units = COLUMNS[found[1]]
            price = _price(product, found[1], units)
            if usd.setdefault(column, price) != price:
                raise MalformedAnswer(f"it has two prices of {found[1]} in {region}")
    if not usd:
        raise MalformedAnswer(f"it has no price of EBS in {region}")
    return RegionPrices(region, datetime.now(UTC).date(), usd)


def connection_for(account: str) -> Connection:
    """The connection to the API, with the credentials or the role of an account in the config."""
    return Connection(Place(account, API_REGION))


def _products(client: Any, region: str, family: str) -> Iterator[dict[str, Any]]:
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in (("regionCode", region), ("productFamily", family))
    ]
    pages = client.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2",
        Filters=filters,
        FormatVersion="aws_v1",
        PaginationConfig={"PageSize": PAGE_SIZE, "MaxItems": MAX_PRODUCTS},
    )
    for page in pages:
        for text in listed(page, "PriceList"):
            try:
                product = json.loads(str(text))
            except (ValueError, RecursionError):
                raise MalformedAnswer("a product is not JSON") from None
            if isinstance(product, dict):
                yield product


def _price(product: dict[str, Any], usage_type: str, units: dict[str, float]) -> float:
    """The one on-demand price of a product."""
    try:
        [term] = product["terms"]["OnDemand"].values()
        [dimension] = term["priceDimensions"].values()
        unit, amount = str(dimension["unit"]), float(dimension["pricePerUnit"]["USD"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise MalformedAnswer(f"the price of {usage_type} is not one amount in USD") from None
    if unit.lower() not in units:
        raise MalformedAnswer(f"the price of {usage_type} is per {unit}, which is not known")
    if not 0 <= amount < 1e6:
        raise MalformedAnswer(f"the price of {usage_type} is {amount}")
    return round(amount * units[unit.lower()], 8)
