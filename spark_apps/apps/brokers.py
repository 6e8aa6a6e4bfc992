"""App brokers: JMX metrics of brokers. Samples are stored as read, except that topic metrics are stored per topic,
broker, and hour (a large cluster has a million readings of topics an hour); then one row per broker and one per
topic."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config

from spark_apps.models.counters import counts, earlier_counters
from spark_apps.models.hourly_columns import counted, label, labels_are, reading
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.kept import kept
from spark_apps.runtime.warehouse_io import read_query
from spark_apps.sources.jmx import asked_in_time, endpoints_of, read_jmx
from spark_apps.sources.jmx_endpoint import name_of

BROKER = ("cluster", "endpoint")
_REMEMBERED = timedelta(days=7)
_COUNTERS = """(
    select hour, cluster, endpoint, metric, labels, at, kind, value from metrics.broker_sample
    union all
    select s.hour, s.cluster, s.endpoint, c.metric, format('{"topic": %s}', to_json(s.topic)), s.at, 'counter', c.value
    from metrics.broker_topic_sample as s
    cross join lateral (
      values
      ('bytes_in_total', s.bytes_in_total), ('bytes_out_total', s.bytes_out_total),
      ('messages_in_total', s.messages_in_total), ('failed_produces_total', s.failed_produces_total),
      ('bytes_rejected_total', s.bytes_rejected_total), ('remote_fetch_bytes_total', s.remote_fetch_bytes_total),
      ('fetch_requests_total', s.fetch_requests_total), ('produce_requests_total', s.produce_requests_total)
    ) as c (metric, value)
)"""


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Current readings of the JVMs, earlier counters, and the last known broker id of each address."""
    known = f"""
        select distinct on (cluster, endpoint) cluster, endpoint, broker_id from metrics.broker_hourly
        where hour >= '{(hour - _REMEMBERED).isoformat()}' and hour < '{hour.isoformat()}' and broker_id is not null
        order by cluster, endpoint, hour desc"""  # noqa: S608 times
    return {
        "jmx": read_jmx(spark, config, hour, "broker"),
        "earlier_counters": earlier_counters(spark, _COUNTERS, hour),
        "known_brokers": read_query(spark, known, "cluster string, endpoint string, known_broker_id int"),
    }


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Gauges to minimum, mean, or maximum of the samples, counters to exact rates."""
    samples = sources["jmx"].where(f.col("metric").isNotNull())
    gained = kept(counts(samples, sources["earlier_counters"], hour))
    on_brokers = kept(_broker_topics(samples, gained))
    return {
        "metrics.broker_sample": samples.where(label("topic").isNull()).select(
            *BROKER, "metric", "labels", "at", "kind", "value", "process_started_at"
        ),
        "metrics.broker_topic_sample": on_brokers,
        "metrics.broker_hourly": _broker_hourly(
            asked_in_time(_configured(samples.sparkSession, config), sources["jmx"]),
            samples,
            gained,
            sources["known_brokers"],
        ),
        "metrics.topic_hourly": _topic_hourly(on_brokers, gained),
    }


def _broker_hourly(configured: DataFrame, samples: DataFrame, gained: DataFrame, known: DataFrame) -> DataFrame:
    """One row per configured broker, including those that did not respond."""
    gauges = samples.groupBy(*BROKER).agg(*_gauges())
    rates = gained.groupBy(*BROKER).agg(*_rates())
    joined = (
        configured.join(known, [*BROKER], "left")
        .join(gauges, [*BROKER], "left")
        .join(rates, [*BROKER], "left")
        .join(_produce_errors(gained), [*BROKER], "left")
    )
    per_second = [
        (f.col(name) / f.col("covered_seconds")).alias(f"{name}_per_second")
        for name in (
            "bytes_in",
            "bytes_out",
            "remote_fetch_bytes",
            "messages_in",
            "replication_bytes_in",
            "replication_bytes_out",
            "reassignment_bytes_in",
            "reassignment_bytes_out",
            "log_flushes",
            *(f"{name}_requests" for name in _REQUESTS),
        )
    ]
    return joined.select(
        *BROKER,
        f.coalesce("reported_broker_id", "configured_broker_id", "known_broker_id").alias("broker_id"),
        "instance_id",
        f.date_trunc("second", "process_started_at").alias("process_started_at"),
        "samples",
        "covered_seconds",
        *per_second,
        *_latencies("log_flushes", "log_flush", "p95", "p999"),
        *(column for name in _REQUESTS for column in _latencies(f"{name}_requests", name, "median", "p99")),
        "request_queue_max",
        "request_handler_idle_min_ratio",
        "active_controllers",
        "under_replicated_partitions",
        "under_replicated_partitions_max",
        "under_min_isr_partitions",
        "reassigning_partitions",
        "offline_partitions",
        "partitions",
        "leaders",
        "log_bytes",
        "segments",
        "client_connections",
        "open_file_descriptors",
        "max_file_descriptors",
        (f.col("cpu_seconds") / f.col("covered_seconds") / f.col("processors")).alias("cpu_ratio"),
        "heap_used_bytes",
        "heap_max_bytes",
        "failed_produces",
        "produce_errors",
        "unclean_elections",
        *_CLEANER,
    )


def _produce_errors(gained: DataFrame) -> DataFrame:
    """Produce responses with an error by broker, as JSON; only brokers that report responses by error."""
    responses = gained.where((f.col("metric") == "produce_responses_total") & f.col("counted").isNotNull())
    error = f.when((label("error") != "NONE") & (f.col("counted") > 0), label("error"))
    return responses.groupBy(*BROKER).agg(
        f.to_json(
            f.map_from_entries(f.collect_list(f.when(error.isNotNull(), f.struct(error, f.col("counted")))))
        ).alias("produce_errors")
    )


def _latencies(calls: str, name: str, *percentiles: str) -> list[Column]:
    """Null without requests: an empty histogram reports 0 ms, and an idle one its last values."""
    called = f.col(calls) > 0
    return [
        f.when(called, f.col(f"{name}_ms") / f.col(calls)).alias(f"{name}_mean_ms"),
        *(f.when(called, f.col(f"{name}_{p}_ms")).alias(f"{name}_{p}_ms") for p in percentiles),
    ]


_READ_ONCE = {"log_bytes": "log_bytes", "log_segments": "segments", "client_connections": "client_connections"}
"""Read only in the last sample of a run, by topic or client."""
_CLEANER = ("dead_cleaner_threads", "uncleanable_partitions", "uncleanable_bytes", "cleaner_last_run_seconds")
_REQUESTS = {"produce": "Produce", "fetch_consumer": "FetchConsumer", "fetch_follower": "FetchFollower"}


def _gauges() -> list[Column]:
    latencies = [
        f.max(reading(f"request_{figure}_ms", request=request)).alias(f"{name}_{figure}_ms")
        for name, request in _REQUESTS.items()
        for figure in ("median", "p99")
    ]
    return [
        f.count_distinct("at").cast("int").alias("samples"),
        f.max("process_started_at").alias("process_started_at"),
        f.max(f.when(f.col("metric") == "broker_info", label("broker_id"))).try_cast("int").alias("reported_broker_id"),
        f.max(reading("log_flush_p95_ms")).alias("log_flush_p95_ms"),
        f.max(reading("log_flush_p999_ms")).alias("log_flush_p999_ms"),
        *latencies,
        f.max(reading("request_queue")).alias("request_queue_max"),
        f.min(reading("request_handler_idle_ratio")).alias("request_handler_idle_min_ratio"),
        f.max(reading("active_controllers")).alias("active_controllers"),
        f.max(reading("offline_partitions")).alias("offline_partitions"),
        f.min(reading("under_replicated_partitions")).alias("under_replicated_partitions"),
        f.max(reading("under_replicated_partitions")).alias("under_replicated_partitions_max"),
        f.max(reading("under_min_isr_partitions")).alias("under_min_isr_partitions"),
        f.max(reading("reassigning_partitions")).alias("reassigning_partitions"),
        f.max(reading("partitions")).alias("partitions"),
        f.max(reading("leaders")).alias("leaders"),
        *(f.sum(f.when(f.col("metric") == metric, f.col("value"))).alias(name) for metric, name in _READ_ONCE.items()),
        f.max(reading("open_file_descriptors")).alias("open_file_descriptors"),
        f.max(reading("max_file_descriptors")).alias("max_file_descriptors"),
        f.max(reading("processors")).alias("processors"),
        f.max(reading("heap_used_bytes")).alias("heap_used_bytes"),
        f.max(reading("heap_max_bytes")).alias("heap_max_bytes"),
        *(f.max(reading(name)).alias(name) for name in _CLEANER),
    ]


def _rates() -> list[Column]:
    calls = [
        counted(f"{metric}_total", request=request).alias(f"{name}_{column}")
        for name, request in _REQUESTS.items()
        for metric, column in (("requests", "requests"), ("request_ms", "ms"))
    ]
    return [
        # All counters of a JVM come in one response: one time span applies to all of them.
        f.max(f.when(labels_are(), f.col("covered_seconds"))).alias("covered_seconds"),
        counted("bytes_in_total").alias("bytes_in"),
        counted("bytes_out_total").alias("bytes_out"),
        counted("remote_fetch_bytes_total").alias("remote_fetch_bytes"),
        counted("messages_in_total").alias("messages_in"),
        counted("replication_bytes_in_total").alias("replication_bytes_in"),
        counted("replication_bytes_out_total").alias("replication_bytes_out"),
        counted("reassignment_bytes_in_total").alias("reassignment_bytes_in"),
        counted("reassignment_bytes_out_total").alias("reassignment_bytes_out"),
        counted("log_flushes_total").alias("log_flushes"),
        counted("log_flush_ms_total").alias("log_flush_ms"),
        *calls,
        counted("failed_produces_total").alias("failed_produces"),
        counted("unclean_elections_total").alias("unclean_elections"),
        counted("cpu_seconds_total").alias("cpu_seconds"),
    ]


def _configured(spark: SparkSession, config: Config) -> DataFrame:
    rows = [(e.cluster, name_of(e), e.broker_id, e.instance_id) for e in endpoints_of(config, "broker")]
    return driver_rows(spark, rows, "cluster string, endpoint string, configured_broker_id int, instance_id string")


def _broker_topics(samples: DataFrame, gained: DataFrame) -> DataFrame:
    """A row for each topic on a broker: increases of its counters, and their last readings."""
    topic = label("topic").alias("topic")
    with_topic = label("topic").isNotNull()

    def last(metric: str) -> Column:
        return f.max_by("value", f.when((f.col("metric") == metric) & f.col("value").isNotNull(), f.col("at")))

    read = (
        samples.where(with_topic)
        .groupBy(*BROKER, topic)
        .agg(
            f.max("at").alias("at"),
            *(last(f"{name}_total").alias(f"{name}_total") for name in _TOPIC_COUNTS),
            f.max(f.when(f.col("metric") == "log_bytes", f.col("value"))).alias("log_bytes"),
            f.max(f.when(f.col("metric") == "log_segments", f.col("value"))).alias("segments"),
        )
    )
    return read.join(_counted_of_topics(gained), [*BROKER, "topic"], "left")


def _counted_of_topics(gained: DataFrame) -> DataFrame:
    counts_of = (f.max(_of_metric(name)).alias(name) for name in _TOPIC_COUNTS)
    return gained.where(label("topic").isNotNull()).groupBy(*BROKER, label("topic").alias("topic")).agg(*counts_of)


def _of_metric(name: str) -> Column:
    return f.when(f.col("metric") == f"{name}_total", f.col("counted"))


def _topic_hourly(on_brokers: DataFrame, gained: DataFrame) -> DataFrame:
    """Sums over the brokers. A broker that reports topics but not this one has counted 0 bytes for it, not null.

    Brokers may have counted for different times, after a restart for example: all are scaled to the longest.
    """
    seconds, longest = f.col("covered_seconds"), f.max("covered_seconds")

    def none_of_all(name: str) -> Column:
        return f.when(f.col(f"all_{name}").isNotNull(), 0.0)

    whole = (
        gained.where(labels_are())
        .groupBy(*BROKER)
        .agg(
            f.max("covered_seconds").alias("covered_seconds"),
            f.min("counted_from").alias("counted_from"),
            f.max("counted_to").alias("counted_to"),
            *(f.max(_of_metric(name)).alias(f"all_{name}") for name in _TOPIC_COUNTS),
        )
    )
    return (
        on_brokers.join(whole, [*BROKER], "left")
        .groupBy("cluster", "topic")
        .agg(
            f.count("*").cast("int").alias("brokers"),
            longest.alias("covered_seconds"),
            f.min("counted_from").alias("counted_from"),
            f.max("counted_to").alias("counted_to"),
            *(
                (longest * f.sum(f.coalesce(f.col(name) / seconds, none_of_all(name)))).alias(name)
                for name in _TOPIC_COUNTS
            ),
            f.sum("log_bytes").alias("log_bytes"),
        )
    )


_TOPIC_COUNTS = (
    "bytes_in",
    "bytes_out",
    "remote_fetch_bytes",
    "messages_in",
    "failed_produces",
    "bytes_rejected",
    "fetch_requests",
    "produce_requests",
)
