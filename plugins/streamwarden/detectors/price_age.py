"""A finding with a list price says so where the price is old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from streamwarden.detectors.finding import Finding

OLD_PRICE_DAYS = 90
"""AWS changes its prices rarely."""


def with_age_of_prices(connection: sa.Connection, hour: datetime, found: Sequence[Finding]) -> list[Finding]:
    """The findings of an hour; the firing ones with a list price have one more detail if it is older than that."""
    if not any(_has_list_price(finding) for finding in found):
        return list(found)
    as_of = connection.execute(_OLDEST, {"hour": hour}).scalar()
    if as_of is None or hour.date() - as_of <= timedelta(days=OLD_PRICE_DAYS):
        return list(found)
    note = f"AWS list prices of {as_of} are more than {OLD_PRICE_DAYS} days old."
    return [replace(one, details=(*one.details, note)) if _has_list_price(one) else one for one in found]


def _has_list_price(finding: Finding) -> bool:
    """Charged credits are priced by a parameter of their detector; all others by the table of prices."""
    return finding.status == "firing" and any(
        column.endswith("usd_per_month") and not column.startswith("charged_") and value is not None
        for column, value in finding.metrics.items()
    )


_OLDEST = sa.text("""
    select min(as_of) from inventory.ebs_price
    where region in (select region from inventory.volume_hourly where hour = :hour)""")
