"""Rows that the driver has, as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_apps.runtime.schemas import struct_of


def driver_rows(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str | StructType) -> DataFrame:
    """These few rows as a part of the plan.

    `createDataFrame(rows)` passes them through a Python worker. Its environment differs from that of `mapInArrow`, so
    it even has a daemon of its own, which takes two CPU seconds to start; an Arrow table needs neither.

    Args:
        schema: a DDL string, or its type; the values of each row are in its order.

    Raises:
        pyarrow.ArrowException: a value does not have its column's type.
    """
    struct = struct_of(schema)
    types = to_arrow_schema(struct)
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(types)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=types), struct)
