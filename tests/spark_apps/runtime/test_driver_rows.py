"""Rows of the driver are a part of the plan, and the same as those of `createDataFrame`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from spark_apps.runtime.driver_rows import driver_rows

pytestmark = pytest.mark.slow
SCHEMA = "name string, at timestamp, size bigint, ratio double, parts array<struct<number: int, host: string>>"
ROWS: list[list[Any]] = [
    ["ö", datetime(2026, 1, 5, 10, 0, 0, 123456, UTC), 2**62, 0.1, [{"number": 1, "host": None}]],
    [None, None, None, None, None],
    ["", datetime(1970, 1, 1, tzinfo=UTC), -1, 2.0, []],
]


@pytest.mark.parametrize("rows", [ROWS, []], ids=["three rows", "none"])
def test_rows_without_a_python_worker(spark: Any, rows: list[list[Any]]) -> None:
    frame = driver_rows(spark, rows, SCHEMA)
    expected = spark.createDataFrame(rows, SCHEMA)
    assert (frame.schema, frame.collect()) == (expected.schema, expected.collect())
    assert frame._jdf.queryExecution().executedPlan().nodeName() == "LocalTableScan"


def test_a_value_of_another_type_is_refused(spark: Any) -> None:
    with pytest.raises(pa.ArrowException, match="bigger"):
        driver_rows(spark, [["bigger"]], "size bigint")
