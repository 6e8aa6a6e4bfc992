"""Inferring schemas: exact shapes of changelog values against Spark's own JSON inference over the same values; and what
the report on a log holds in memory, of ten times the values."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_apps.apps.state_stores import exemplars_of, report_of
from spark_apps.models.json_shapes import paths_of
from spark_apps.models.value_shapes import shapes_of
from spark_apps.runtime.session import start_session
from tests.bench.metric import Metric

VALUES = 400_000
TURNS = 3


def measure() -> list[Metric]:
    """Cost of both, each the best of TURNS taken in turn."""
    spark = start_session("bench", master="local[2]")
    try:
        values = _values(spark).persist()
        values.count()
        both = [(_cost(lambda: _spark_s_own(values)), _cost(lambda: shapes_of(values).count())) for _ in range(TURNS)]
        few, many = (_peak_mib(values.where(f.col("position") < count)) for count in (VALUES // 10, VALUES))
    finally:
        spark.stop()
    (own_s, own_cpu), (our_s, our_cpu) = (map(min, zip(*costs, strict=True)) for costs in zip(*both, strict=True))
    return [
        Metric(f"{VALUES:,} JSON values, Spark's inference", own_s, "s"),
        Metric(f"{VALUES:,} JSON values, Spark's inference, CPU", own_cpu, "s"),
        Metric(f"{VALUES:,} JSON values, exact shapes", our_s, "s"),
        Metric(f"{VALUES:,} JSON values, exact shapes, CPU", our_cpu, "s"),
        Metric("exact shapes against Spark's inference", our_s / own_s, "times", 1.5),
        Metric("exact shapes against Spark's inference, CPU", our_cpu / own_cpu, "times", 1.5),
        Metric(f"report on {VALUES // 10:,} values, peak memory", few, "MiB"),
        Metric(f"report on {VALUES:,} values, peak memory against that", many / few, "times", 1.5),
    ]


def _values(spark: SparkSession) -> DataFrame:
    """Orders of some 300 bytes: nested, with arrays of several lengths, optional fields, integers and fractions."""
    number = f.col("id")
    line = f.struct(
        f.concat(f.lit("s"), number % 997).alias("sku"), (number % 7).alias("qty"), (number / 7.0).alias("price")
    )
    order = f.struct(
        f.concat(f.lit("o-"), number).alias("orderId"),
        f.struct(number.alias("id"), f.lit('Ann "A" Smith').alias("name"), f.lit("gold").alias("tier")).alias(
            "customer"
        ),
        f.when(number % 3 == 0, number / 13.0).otherwise((number % 100).cast("double")).alias("amount"),
        f.lit("EUR").alias("currency"),
        f.array_repeat(line, (number % 4 + 1).cast("int")).alias("lines"),
        f.when(number % 7 == 0, "C1").alias("coupon"),
        (number + 1_700_000_000_000).alias("at"),
    )
    return spark.range(VALUES, numPartitions=2).select(
        f.lit("demo/orders-changelog").alias("resource"),
        number.alias("position"),
        f.lit(0).alias("partition"),
        number.alias("offset"),
        f.to_json(order).cast("binary").alias("value"),
    )


def _spark_s_own(values: DataFrame) -> None:
    texts = values.select(f.col("value").cast("string"))
    strings = values.sparkSession._jvm.org.apache.spark.sql.Encoders.STRING()  # type: ignore[union-attr]
    values.sparkSession._jsparkSession.read().json(getattr(texts._jdf, "as")(strings)).schema()


def _peak_mib(values: DataFrame) -> float:
    """What Python holds at most while it reports on a log."""
    shapes = shapes_of(values).persist()
    given = shapes.toPandas(), exemplars_of(values, shapes).toPandas()
    paths_of.cache_clear()
    tracemalloc.start()
    report_of(*given, {}, show_values=False)
    peak = tracemalloc.get_traced_memory()[1] + sum(frame.memory_usage(deep=True).sum() for frame in given)
    tracemalloc.stop()
    shapes.unpersist()
    return float(peak) / 2**20


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and CPU seconds of Spark and its Python."""
    started, cpu = time.perf_counter(), _cpu_seconds()
    work()
    return time.perf_counter() - started, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    return sum(sum(process.cpu_times()[:4]) for process in psutil.Process().children(recursive=True))
