"""Frames that several tables are computed from: read once in hours of any size, and short plans in small ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from spark_apps.runtime.kept import kept, leaf
from spark_apps.runtime.session import COMPILED_FROM_ROWS, LEAVES_UP_TO_ROWS, session_for
from spark_apps.sources.read_source import read_source
from tests.variations import rare_after

pytestmark = pytest.mark.slow
SIZES = {"never ran": 0, "small": 10, "middle": COMPILED_FROM_ROWS, "large": LEAVES_UP_TO_ROWS}
SCHEMA = "name string, n bigint"


class Asked(DataSource):
    """A source of two partitions that notes each request in a file."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(self.notes)


class _Reader(DataSourceReader):
    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(2)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with self.notes.open("a") as notes:
            notes.write(f"{partition.value}\n")
        yield pa.RecordBatch.from_pydict({"name": ["a", "b"], "n": [partition.value, None]})


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().analyzed().toString())


@pytest.mark.parametrize("rows", rare_after(1, SIZES.values()), ids=SIZES)
def test_a_source_is_asked_once_however_many_tables_come_from_it(spark: Any, tmp_path: Path, rows: int) -> None:
    notes = tmp_path / "requests"
    source = kept(read_source(session_for(spark, rows), Asked(notes)))
    sums = kept(source.groupBy("name").agg(f.sum("n").alias("n"), f.count("*").alias("rows")))
    joined = source.join(f.broadcast(sums.select("name", "rows")), "name").where("n is not null")
    assert {tuple(row) for row in sums.collect()} == {("a", 1, 2), ("b", None, 2)}
    assert sorted(tuple(row) for row in joined.collect()) == [("a", 0, 2), ("a", 1, 2)]
    assert source.count() == 4
    assert sorted(notes.read_text().split()) == ["0", "1"]


def test_plans_of_a_small_hour_begin_at_its_sources(spark: Any, tmp_path: Path) -> None:
    plans = {
        name: plan_of(kept(read_source(session_for(spark, rows), Asked(tmp_path / "requests"))).where("n > 0"))
        for name, rows in SIZES.items()
    }
    assert {name: "MapInArrow" in plan for name, plan in plans.items()} == {
        "never ran": False,
        "small": False,
        "middle": False,
        "large": True,
    }


def test_the_tables_of_a_small_hour_are_one_task_each(spark: Any, tmp_path: Path) -> None:
    plans, partitions = {}, {}
    for name, rows in SIZES.items():
        source = kept(read_source(session_for(spark, rows), Asked(tmp_path / "requests")))
        sums = kept(source.unionByName(source).groupBy("name").agg(f.sum("n").alias("n")))
        table = source.select("name").distinct().join(sums, "name")
        partitions[name] = source.rdd.getNumPartitions()
        plans[name] = str(table._jdf.queryExecution().executedPlan().toString())
        assert {tuple(row) for row in table.collect()} == {("a", 2), ("b", None)}
    assert {name: "Exchange" in plan for name, plan in plans.items()} == {
        "never ran": True,
        "small": False,
        "middle": True,
        "large": True,
    }
    assert partitions == {"never ran": 2, "small": 1, "middle": 2, "large": 2}


def test_a_leaf_is_made_once(spark: Any) -> None:
    made = leaf(session_for(spark, 1).range(3).select("id"))
    assert leaf(made) is made and kept(made) is made


@pytest.mark.parametrize("rows", [10, COMPILED_FROM_ROWS], ids=["small", "large"])
def test_few_rows_are_joined_without_a_broadcast(spark: Any, rows: int) -> None:
    own = session_for(spark, rows)
    joined = own.range(3).join(f.broadcast(own.range(2, 5)), "id")
    assert [row.id for row in joined.collect()] == [2]
    plan = str(joined._jdf.queryExecution().executedPlan().toString())
    assert ("Broadcast" in plan) == (rows == COMPILED_FROM_ROWS)
