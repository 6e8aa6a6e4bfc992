"""Small hours: sources and kept frames are local relations, a larger source is read from a file, and rows are equal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Barrier

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_apps.runtime import small
from spark_apps.runtime.session import COMPILED_FROM_ROWS, session_for
from spark_apps.sources.arrow_batches import batch_of
from spark_apps.sources.read_source import read_source

pytestmark = pytest.mark.slow
SCHEMA = "name string, at timestamp, values map<string, bigint>, members array<struct<id: string>>"
AT = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)


class Numbers(DataSource):
    """Two partitions of ten rows, in batches of five."""

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(schema)


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType) -> None:
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(start) for start in (0, 10)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for start in (partition.value, partition.value + 5):
            numbers = range(start, start + 5)
            columns = {
                "name": [str(n) for n in numbers],
                "at": AT,
                "values": [{"n": n} for n in numbers],
                "members": [[{"id": "a"}], *([None] * 4)],
            }
            yield batch_of(self.schema, 5, columns)


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().analyzed())


def test_a_small_hour_reads_the_same_rows_as_tasks_do(spark: SparkSession) -> None:
    large, of_small = session_for(spark, COMPILED_FROM_ROWS), session_for(spark, 0)
    in_tasks, here = (read_source(session, Numbers({})) for session in (large, of_small))
    assert "MapInArrow" in _plan(in_tasks)
    assert "LocalRelation" in _plan(here)
    assert here.schema == in_tasks.schema
    assert sorted(here.collect()) == sorted(in_tasks.collect())
    assert len(here.collect()) == 20


def test_a_source_larger_than_expected_is_read_from_a_file(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sorted(read_source(session_for(spark, COMPILED_FROM_ROWS), Numbers({})).collect())
    monkeypatch.setattr(small, "MOST_ROWS", 7)
    session = session_for(spark, 0)
    frame = read_source(session, Numbers({}))
    assert not small.is_small(session)
    assert session.conf.get("spark.sql.codegen.wholeStage") == "true"
    assert sorted(frame.collect()) == expected


def test_a_kept_frame_is_local_only_while_it_is_small(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_for(spark, 0)
    frame = read_source(session, Numbers({})).withColumn("n", f.col("values")["n"])
    kept = small.kept(frame)
    assert "LocalRelation" in _plan(kept) and "Project" not in _plan(kept)
    assert sorted(kept.collect()) == sorted(frame.collect())
    monkeypatch.setattr(small, "MOST_ROWS", 7)
    persisted = small.kept(frame)
    assert "Project" in _plan(persisted)
    persisted.unpersist()


class _Meeting(_Reader):
    """Its partitions wait for each other."""

    def __init__(self, schema: StructType) -> None:
        super().__init__(schema)
        self.barrier = Barrier(2)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self.barrier.wait(60)
        yield from super().read(partition)


class Waiting(Numbers):
    """As `Numbers`, with partitions that wait for each other."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Meeting(schema)


def test_partitions_are_read_at_the_same_time(spark: SparkSession) -> None:
    assert read_source(session_for(spark, 0), Waiting({})).count() == 20


class Failing(Numbers):
    """A source with an error in one partition."""

    def reader(self, schema: StructType) -> DataSourceReader:
        class Reader(_Reader):
            def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
                if partition.value:
                    raise ValueError("no such partition")
                yield from super().read(partition)

        return Reader(schema)


def test_an_error_of_a_partition_fails_the_source(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="no such partition"):
        read_source(session_for(spark, 0), Failing({}))
