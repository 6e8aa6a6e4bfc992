"""Columns to Arrow, where a source has so many rows that a dict for each would cost more than to ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def batch_of(schema: StructType, rows: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Columns by name: lists and tuples as they are, single values repeated for all rows, the rest null."""
    wanted = to_arrow_schema(schema)
    arrays = []
    for column in wanted:
        value = columns.get(column.name)
        many = isinstance(value, list | tuple)
        arrays.append(pa.array(value, column.type) if many else pa.repeat(pa.scalar(value, column.type), rows))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)
