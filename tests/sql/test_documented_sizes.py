"""The sizes in docs/deploy.md: what people buy disks by is what a row takes with the columns that there are now."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from tests.bench import size


@pytest.mark.parametrize("resource", size.THINGS, ids=lambda resource: resource.name)
def test_a_row_takes_what_the_docs_say(resource: size.Resource, warehouse: sa.Engine) -> None:
    [(said, unit)] = re.findall(
        rf"^\| {re.escape(resource.name)} \(.*, ([\d.]+) (B|KB)\) \|", _documented(), re.MULTILINE
    )
    hour = {table: size.fill(warehouse, table, share=0.1) for table in resource.tables}
    assert float(said) * {"B": 1, "KB": 1000}[unit] == pytest.approx(resource.bytes_each(hour), rel=0.1)


def test_the_docs_have_all_of_the_table() -> None:
    filled = {table: size.Filled(1, 100) for resource in size.THINGS for table in resource.tables}
    assert _without_figures(_documented()) == _without_figures(size.documented(filled))


def test_a_column_that_is_not_filled_is_named(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("alter table metrics.volume_sample add column colour text")
    try:
        with pytest.raises(AssertionError, match="'colour'"):
            size.fill(warehouse, "metrics.volume_sample", share=0.1)
    finally:
        with warehouse.begin() as connection:
            connection.exec_driver_sql("alter table metrics.volume_sample drop column colour")


def _documented() -> str:
    return size.DEPLOY.read_text(encoding="utf-8").partition(size.BEGIN)[2].partition(size.END)[0]


def _without_figures(text: str) -> str:
    return re.sub(r"[\d.]+ (B|KB|MB|GB)\b", "", text)
