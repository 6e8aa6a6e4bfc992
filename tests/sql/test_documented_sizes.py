"""Sizes in docs/deploy.md, which disks are planned by, are those of rows with the current columns."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from tests.bench import size


@pytest.mark.parametrize("resource", size.RESOURCES, ids=lambda resource: resource.name)
def test_the_documented_size_of_a_row_is_the_measured_one(resource: size.Resource, warehouse: sa.Engine) -> None:
    [(documented, unit)] = re.findall(
        rf"^\| {re.escape(resource.name)} \(.*, ([\d.]+) (B|KB)\) \|", _documented(), re.MULTILINE
    )
    hour = {table: size.fill(warehouse, table, share=0.1) for table in resource.tables}
    assert float(documented) * {"B": 1, "KB": 1000}[unit] == pytest.approx(resource.bytes_each(hour), rel=0.1)


def test_the_docs_have_the_whole_table() -> None:
    filled = {table: size.Filled(1, 100) for resource in size.RESOURCES for table in resource.tables}
    assert _without_figures(_documented()) == _without_figures(size.documented(filled))


def test_a_column_that_is_not_filled_is_named(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("alter table metrics.volume_sample add column color text")
    try:
        with pytest.raises(AssertionError, match="'color'"):
            size.fill(warehouse, "metrics.volume_sample", share=0.1)
    finally:
        with warehouse.begin() as connection:
            connection.exec_driver_sql("alter table metrics.volume_sample drop column color")


def _documented() -> str:
    return size.DEPLOY.read_text(encoding="utf-8").partition(size.BEGIN)[2].partition(size.END)[0]


def _without_figures(text: str) -> str:
    return re.sub(r"[\d.]+ (B|KB|MB|GB)\b", "", text)
