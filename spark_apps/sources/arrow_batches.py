"""Columns to Arrow, for sources with so many rows that a dict for each would cost more than reading them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

FIRST_MS_BEYOND_CALENDARS = 253_402_300_800_000
"""The year 10000: Python has no later times."""


def moments(ms: npt.NDArray[np.int64]) -> pa.Array:
    """Times from milliseconds since 1970; null where a client wrote a number that is not a time."""
    is_none = (ms < 0) | (ms >= FIRST_MS_BEYOND_CALENDARS)
    return pa.array(ms, pa.timestamp("ms", "UTC"), mask=is_none)


def batch_of(schema: StructType, rows: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Columns by name: lists and tuples as they are, single values repeated for all rows, all others null."""
    wanted = to_arrow_schema(schema)
    arrays = []
    for column in wanted:
        value = columns.get(column.name)
        many = isinstance(value, list | tuple)
        arrays.append(pa.array(value, column.type) if many else pa.repeat(pa.scalar(value, column.type), rows))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)
