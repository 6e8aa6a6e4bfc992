"""Schemas of frames, as DDL or as a type."""

from __future__ import annotations

from typing import cast

from pyspark.sql.types import StructType


def struct_of(schema: str | StructType) -> StructType:
    """The type of rows. DDL is parsed by Spark's JVM, so only in the driver."""
    return cast(StructType, StructType.fromDDL(schema)) if isinstance(schema, str) else schema
