"""RocksDB memory of a Kafka Streams application: current use, and the maximum by configuration.

expected = Σ over RocksDB instances (write_buffer_size × max_write_buffers + block cache); a store has one instance
per assigned partition and segment (windowed and session stores: 3 segments).

JMX exposes usage and capacity of the block cache per store and task, summed over the open segments if each has its
own cache. JMX does not expose the write buffers' configuration (a key of the endpoint in the config, otherwise
Kafka's defaults), the number of open segments, and whether a cache is shared. Sharing is inferred from the metrics:
caches of equal capacity with the same number of bytes (or pinned bytes) in every store at one time are one cache.
Separate caches differ by some block even when all are full. While caches are nearly empty, sharing is unknown: then
caches of Kafka's default size count as separate (Kafka's default), and nothing is expected of others.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from spark_apps.models.hourly_columns import label, sum_unless_unknown

APP = ("cluster", "app", "endpoint")
SEGMENTS = {"key_value": 1, "window": 3, "session": 3}
DEFAULT_CACHE_BYTES = 50 * 2**20
TELLING_BYTES = 64 * 2**10
"""Caches with less content are not compared: empty caches are all alike."""
READ_APART_RATIO = 0.001
"""Tolerance for one cache that changes while the MBeans of the stores are read one after the other."""
NOT_FULL_RATIO = 0.95
"""Separate full caches are nearly alike too; above this share only exactly equal values count."""
_FIGURES = (
    "memtable_bytes",
    "memtable_unflushed_bytes",
    "block_cache_usage_bytes",
    "block_cache_pinned_bytes",
    "block_cache_capacity_bytes",
    "table_readers_bytes",
    "sst_bytes",
    "keys",
)


def store_instances(samples: DataFrame, buffers: DataFrame) -> DataFrame:
    """One row per store and task: its metrics in the newest sample, `cache` ('own', 'shared', or null), and more.

    Args:
        samples: long format with app.
        buffers: per endpoint, `write_buffers_bytes` of one RocksDB instance.
    """
    readings = (
        samples.where(f.col("metric").isin(*_FIGURES))
        .groupBy(*APP, label("store").alias("store"), label("kind").alias("kind"), label("task").alias("task"), "at")
        .agg(*(f.max(f.when(f.col("metric") == name, f.col("value"))).alias(name) for name in _FIGURES))
    )
    one_moment = Window.partitionBy(*APP, "block_cache_capacity_bytes", "at")
    gauges = readings.select(
        "*",
        _looks_shared(one_moment).alias("looks_shared"),
        (f.max("block_cache_usage_bytes").over(one_moment) >= TELLING_BYTES).alias("telling"),
        f.count("*").over(one_moment).alias("alike"),
        (
            f.max("block_cache_pinned_bytes").over(one_moment) >= f.sum("memtable_unflushed_bytes").over(one_moment)
        ).alias("holds_memtables"),
    )
    alike = Window.partitionBy(*APP, "block_cache_capacity_bytes")
    newest = Window.partitionBy(*APP)
    evaluated = gauges.select(
        "*",
        f.max("looks_shared").over(alike).alias("shared"),
        f.max("telling").over(alike).alias("was_telling"),
        f.max("at").over(newest).alias("newest_at"),
        f.min("block_cache_capacity_bytes").over(newest).alias("least_capacity"),
    ).where(f.col("at") == f.col("newest_at"))
    return evaluated.join(buffers, [*APP], "left").select(
        *APP,
        "store",
        "kind",
        "task",
        _segments().alias("segments"),
        *_FIGURES,
        f.when(f.col("shared"), "shared")
        .when((f.col("alike") == 1) | f.col("was_telling") | _several(f.lit(DEFAULT_CACHE_BYTES)), "own")
        .alias("cache"),
        (f.col("shared") & f.col("holds_memtables")).alias("holds_memtables"),
        _capacity_of_one().alias("capacity_of_one"),
        "write_buffers_bytes",
    )


def _looks_shared(one_moment: WindowSpec) -> Column:
    """Whether all caches of this capacity hold the same number of bytes at this time."""

    def equal(column: str, tolerance: Column) -> Column:
        most, least = f.max(column).over(one_moment), f.min(column).over(one_moment)
        return (most >= TELLING_BYTES) & (most - least <= tolerance)

    usage, capacity = f.max("block_cache_usage_bytes").over(one_moment), f.col("block_cache_capacity_bytes")
    apart = f.when(usage <= NOT_FULL_RATIO * capacity, READ_APART_RATIO * usage).otherwise(0.0)
    return (f.count("*").over(one_moment) > 1) & (
        equal("block_cache_usage_bytes", apart) | equal("block_cache_pinned_bytes", f.lit(0.0))
    )


def _segments() -> Column:
    return f.coalesce(*(f.when(f.col("kind") == kind, n) for kind, n in SEGMENTS.items()), f.lit(1))


def _capacity_of_one() -> Column:
    """Cache capacity of one RocksDB instance: for a segmented store JMX has the sum over its open segments.

    The number of open segments follows from a unit that divides the sum: Kafka's default, or the smallest cache of
    the process. If neither does, all segments count as open.
    """
    total, default = f.col("block_cache_capacity_bytes"), f.lit(float(DEFAULT_CACHE_BYTES))
    unit = (
        f.when(_several(default), default)
        .when(_several(f.col("least_capacity")), f.col("least_capacity"))
        .otherwise(total / _segments())
    )
    return f.when(f.col("shared") | (_segments() == 1), total).otherwise(unit)


def _several(unit: Column) -> Column:
    """Whether the capacity is a multiple of this unit by a possible number of segments (one more while the oldest is
    dropped)."""
    total = f.col("block_cache_capacity_bytes")
    return (unit > 0) & (total % unit == 0) & (total / unit <= SEGMENTS["window"] + 1)


def _caches(instances: DataFrame) -> DataFrame:
    """One row per distinct block cache: usage, capacity at full growth, and the same if it were not shared."""
    shared = (
        instances.where(f.col("cache") == "shared")
        .groupBy(*APP, "block_cache_capacity_bytes")
        .agg(f.max("block_cache_usage_bytes").alias("usage"), f.max("capacity_of_one").alias("capacity"))
        .select(*APP, "usage", "capacity", f.col("capacity").alias("capacity_max"), f.col("capacity").alias("shared"))
    )
    grown = f.col("capacity_of_one") * f.col("segments")
    own = instances.where(f.col("cache").isNull() | (f.col("cache") == "own")).select(
        *APP,
        f.col("block_cache_usage_bytes").alias("usage"),
        f.when(f.col("cache") == "own", grown).alias("capacity"),
        grown.alias("capacity_max"),
        f.lit(0.0).alias("shared"),
    )
    return shared.unionByName(own)


def by_process(instances: DataFrame) -> DataFrame:
    """Per process: store_instances, and the columns rocksdb_… of metrics.jvm_app_hourly."""
    caches = (
        _caches(instances)
        .groupBy(*APP)
        .agg(
            f.sum("usage").alias("usage"),
            sum_unless_unknown("capacity"),
            sum_unless_unknown("capacity_max"),
            f.sum("shared").alias("shared_capacity"),
        )
    )
    # A write buffer manager that charges the cache: the cache's metrics include its memtables.
    outside = f.when(~f.coalesce("holds_memtables", f.lit(False)), 1.0).otherwise(0.0)
    rest = instances.groupBy(*APP).agg(
        f.count("*").cast("int").alias("store_instances"),
        f.sum(outside * f.col("memtable_bytes")).alias("memtables"),
        f.sum("table_readers_bytes").alias("table_readers"),
        f.sum(outside * f.col("write_buffers_bytes") * f.col("segments")).alias("write_buffers"),
        f.when(f.max(f.col("cache").isNull()), None).otherwise(f.max(f.col("cache") == "shared")).alias("shared"),
    )
    return rest.join(caches, [*APP], "left").select(
        *APP,
        "store_instances",
        (f.col("memtables") + f.col("usage") + f.col("table_readers")).alias("rocksdb_measured_bytes"),
        (f.col("capacity") + f.col("write_buffers")).alias("rocksdb_expected_bytes"),
        (f.col("capacity_max") + f.col("write_buffers")).alias("rocksdb_expected_max_bytes"),
        f.col("shared_capacity").alias("rocksdb_shared_bytes"),
        f.col("shared").alias("rocksdb_shared_cache"),
    )


def by_store(instances: DataFrame) -> DataFrame:
    """Rows of metrics.state_store_memory_hourly."""
    shared, own = f.col("cache") == "shared", f.col("cache") == "own"
    inside = f.coalesce("holds_memtables", f.lit(False))
    expected = f.when(own, f.col("capacity_of_one") + f.col("write_buffers_bytes")).when(
        shared, f.when(inside, 0.0).otherwise(f.col("write_buffers_bytes"))
    )
    return instances.groupBy(*APP, "store", "kind").agg(
        f.count("*").cast("int").alias("tasks"),
        f.max("segments").alias("segments"),
        f.sum("memtable_bytes").alias("memtable_bytes"),
        f.when(f.max(shared), f.max("block_cache_usage_bytes"))
        .otherwise(f.sum("block_cache_usage_bytes"))
        .alias("block_cache_usage_bytes"),
        f.max("capacity_of_one").alias("block_cache_capacity_bytes"),
        f.sum("table_readers_bytes").alias("table_readers_bytes"),
        f.sum("sst_bytes").alias("sst_bytes"),
        f.sum("keys").alias("keys"),
        f.sum(expected * f.col("segments")).alias("expected_bytes"),
    )
