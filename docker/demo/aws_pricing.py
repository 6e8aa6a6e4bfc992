"""GetProducts of the strict AWS endpoint: the products of EBS, as the AWS Price List API returns them.

Shapes and bounds are those of botocore's model (pricing, 2017-10-15); regions are those of the AWS Price List Query API
endpoints. Products are JSON in strings, with the attributes and units of the offer file AmazonEC2.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from demo.aws_wire import AwsError, Caller, next_token, resume

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

ENDPOINTS = ("us-east-1", "eu-central-1", "ap-south-1")
PREFIXES = {"us-east-1": "", "eu-central-1": "EUC1-", "eu-west-1": "EU-", "us-east-2": "USE2-"}
"""Of usage types, by region."""
PRODUCTS = (
    ("Storage", "VolumeUsage", "GB-Mo", 0.055), ("Storage", "VolumeUsage.gp2", "GB-Mo", 0.119),
    ("Storage", "VolumeUsage.gp3", "GB-Mo", 0.0952), ("Storage", "VolumeUsage.piops", "GB-Mo", 0.149),
    ("Storage", "VolumeUsage.io2", "GB-month", 0.149), ("Storage", "VolumeUsage.st1", "GB-Mo", 0.054),
    ("Storage", "VolumeUsage.sc1", "GB-Mo", 0.018), ("System Operation", "VolumeIOUsage", "IOs", 5.9e-8),
    ("System Operation", "VolumeP-IOPS.gp3", "IOPS-Mo", 0.006),
    ("System Operation", "VolumeP-IOPS.piops", "IOPS-Mo", 0.078),
    ("System Operation", "VolumeP-IOPS.io2", "IOPS-Mo", 0.078),
    ("System Operation", "VolumeP-IOPS.io2.tier2", "IOPS-Mo", 0.0546),
    ("System Operation", "VolumeP-IOPS.io2.tier3", "IOPS-Mo", 0.03822),
    ("Provisioned Throughput", "VolumeP-Throughput.gp3", "GiBps-mo", 49.152),
)  # fmt: skip
MAX_RESULTS = 100


def get_products(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetProducts: 100 a page at most; filters that no product meets leave none."""
    if caller.region not in ENDPOINTS:
        raise AwsError("InvalidParameterException", f"The API is not served in {caller.region}.")
    if params["ServiceCode"] != "AmazonEC2":
        raise AwsError("NotFoundException", "The service code is not known.")
    if params.get("FormatVersion", "aws_v1") != "aws_v1":
        raise AwsError("InvalidParameterException", "Input Parameters are invalid. Format version is not aws_v1.")
    size = params.get("MaxResults", MAX_RESULTS)
    if not 1 <= size <= MAX_RESULTS:
        raise AwsError("InvalidParameterException", f"MaxResults must be from 1 to {MAX_RESULTS}.")
    (start,) = resume(caller, params, "InvalidNextTokenException") or (0,)
    found = [text for text in _products(endpoint) if _meets(text, params.get("Filters", []))]
    page: dict[str, Any] = {
        "FormatVersion": "aws_v1",
        "PriceList": [json.dumps(one) for one in found[start : start + size]],
    }
    if start + size < len(found):
        page["NextToken"] = next_token(caller, params, [start + size])
    return page


def _products(endpoint: AwsEndpoint) -> list[dict[str, Any]]:
    return [
        _product(region, prefix, *product)
        for region, prefix in PREFIXES.items()
        for product in (*PRODUCTS, *endpoint.more_products)
    ]


def _product(region: str, prefix: str, family: str, usage: str, unit: str, usd: float) -> dict[str, Any]:
    sku = f"{zlib.crc32(f'{region} {usage} {unit}'.encode()):016X}"
    dimension = {"unit": unit, "pricePerUnit": {"USD": f"{usd:.10f}"}, "beginRange": "0", "endRange": "Inf"}
    return {
        "product": {
            "productFamily": family,
            "sku": sku,
            "attributes": {
                "usagetype": f"{prefix}EBS:{usage}", "regionCode": region, "servicecode": "AmazonEC2",
                "locationType": "AWS Region",
            },
        },
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {f"{sku}.J": {"priceDimensions": {f"{sku}.J.6": dimension}, "sku": sku}}},
        "publicationDate": "2026-11-20T00:00:00Z",
    }  # fmt: skip


def _meets(product: dict[str, Any], filters: list[dict[str, str]]) -> bool:
    facts = {"productFamily": product["product"]["productFamily"], **product["product"]["attributes"]}
    return all(facts.get(one["Field"]) == one["Value"] for one in filters)
