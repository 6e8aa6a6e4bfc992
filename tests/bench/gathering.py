"""The hour of one large cluster, as `streamwarden run` does it: eight brokers, 300 groups, up to a million partitions.

Two cores cannot run such a cluster, so the rows of its sources are generated before and read instead: a commit per
minute of each group and partition, broker counters of each topic, all replicas. Everything after the sources is real:
Spark, the warehouse, all detectors. The cost of the sources is measured by `kafka`, `jmx`, and `aws`. Takes 15 minutes;
`LARGEST=1000000` also measures a million partitions.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import psutil
import sqlalchemy as sa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.base.warehouse import engine, ensure_day
from streamwarden.pipeline import run_hour
from streamwarden.store.migrate import migrate

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.session import start_session
from spark_apps.sources import jmx, kafka_client
from spark_apps.sources.jmx import Jmx
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from spark_apps.sources.samza_checkpoints import SamzaCheckpoints
from tests.bench.metric import Metric
from tests.conftest import a_database

BROKERS, GROUPS, SAMPLES = 8, 300, 3
LARGEST = int(os.environ.get("LARGEST", "100000"))
SIZES = [size for size in (10_000, 100_000, 1_000_000) if size <= LARGEST]
LIMIT_SECONDS, WORST_EXPONENT, LIMITED = 90, 1.1, 100_000
APPS = ["brokers", "consumer_groups"]
SOURCES = (KafkaTopics, KafkaGroups, KafkaLogDirs, KafkaOffsets, KafkaCommits, SamzaCheckpoints, Jmx)
CONFIG = {
    "kafka": [{"name": "c", "bootstrap_servers": "127.0.0.1:1"}],
    "jmx": [
        {"role": "broker", "cluster": "c", "url": f"http://broker-{b}:8778/jolokia", "broker_id": b}
        for b in range(BROKERS)
    ],
}

# A topic has ten partitions, each on three brokers; each is read by one group.
_TOPICS = "(select id as n, concat('team.orders-', id, '.v1') as topic from range({topics}))"
_PARTS = f"(select *, n * 10 + p as i from {_TOPICS} lateral view explode(sequence(0, 9)) as p)"
_ANSWERED = "'c' as cluster, 'c' as resource, cast(null as string) as gap"
_REPLICAS = f"transform(sequence(0, 2), r -> cast((n + p + r) % {BROKERS} as int))"
_GROUP = f"concat('reader-', n % {GROUPS})"
_ROWS: dict[type[DataSource], tuple[str, ...]] = {
    KafkaTopics: (
        f"""select {_ANSWERED}, topic, map(
          'cleanup.policy', named_struct('value', 'delete', 'source', 'DEFAULT_CONFIG'),
          'retention.ms', named_struct('value', '604800000', 'source', 'DEFAULT_CONFIG'),
          'min.insync.replicas', named_struct('value', '2', 'source', 'STATIC_BROKER_CONFIG'),
          'segment.bytes', named_struct('value', '1073741824', 'source', 'DEFAULT_CONFIG')) as configs,
          transform(sequence(0, 9), p -> named_struct('partition', p, 'leader', cast((n + p) % {BROKERS} as int),
          'leader_error', cast(null as string), 'replicas', {_REPLICAS}, 'isr', {_REPLICAS})) as partitions,
          {{ends}} as observed_at from {_TOPICS}""",
        f"""select {_ANSWERED}, cast(id as int) as broker, concat('broker-', id) as host, {{ends}} as observed_at
          from range({BROKERS})""",
    ),
    KafkaGroups: (
        f"""select {_ANSWERED}, group_id, 'classic' as protocol, 'STABLE' as state, 'range' as assignor,
          array(named_struct('member_id', concat(group_id, '-1'), 'client_id', group_id, 'host', '/10.0.0.5',
          'assignment', map_from_entries(collect_list(struct(topic, sequence(0, 9)))))) as members,
          {{ends}} as observed_at from (select *, {_GROUP} as group_id from {_TOPICS}) group by group_id""",
    ),
    KafkaLogDirs: (
        f"""select {_ANSWERED}, 'log_dir' as kind, cast(id as int) as broker, '/var/lib/kafka/data' as log_dir,
          4000000000000 as total_bytes, 2000000000000 as usable_bytes, {{ends}} as observed_at from range({BROKERS})""",
        f"""select {_ANSWERED}, 'replica' as kind, cast((n + p + r) % {BROKERS} as int) as broker,
          '/var/lib/kafka/data' as log_dir, topic, p as partition, 1000000 + i as size_bytes, 0L as offset_lag,
          false as is_future, {{ends}} as observed_at
          from {_PARTS} lateral view explode(sequence(0, 2)) as r""",
    ),
    KafkaOffsets: (
        f"""select {_ANSWERED}, 'log' as kind, topic, p as partition, 0L as log_start_offset, end as log_end_offset,
          end as last_stable_offset, end - 6000 as offset_at_from, end - 100 as recent_offset, end as offset_at_to,
          {{ends}} as as_of, {{read}} as read_at from (select *, {{base}} + i + 6000 as end from {_PARTS})""",
        f"""select {_ANSWERED}, 'committed' as kind, {_GROUP} as group_id, topic, p as partition,
          {{base}} + i + 6000 as committed_offset, {{ends}} as as_of, {{read}} as read_at from {_PARTS}""",
    ),
    KafkaCommits: (
        f"""select {_ANSWERED}, 'commit' as kind, {_GROUP} as group_id, topic, p as partition,
          {{base}} + i + 100 * m as committed_offset, {{begins}} + make_dt_interval(0, 0, m, 0) as committed_at,
          {{begins}} + make_dt_interval(0, 0, m, 0) as written_at, cast(n % {GROUPS} % 50 as int) as log_partition,
          m * 1000000L + i as log_offset from {_PARTS} lateral view explode(sequence(-14, 59)) as m""",
        f"select {_ANSWERED}, 'read' as kind, cast(id as int) as log_partition from range(50)",
    ),
    SamzaCheckpoints: (f"select {_ANSWERED}",),
    Jmx: tuple(
        f"""select {_ANSWERED}, 'broker' as role, concat('http://broker-', b, ':8778/jolokia') as endpoint, metric,
          '{kind}' as kind, {labels} as labels, {{ends}} + make_dt_interval(0, 0, 1, s * 5) as at,
          case metric when 'log_segments' then 2 when 'request_handler_idle_ratio' then 0.9
          when 'partitions' then {{replicas}} when 'leaders' then {{replicas}} / 3
          else 1e6 + s * 100 + b end as value, {{begins}} - interval 9 days as process_started_at
          from {rows} lateral view explode(sequence(0, {BROKERS - 1})) as b
          lateral view explode({samples}) as s lateral view explode(array({metrics})) as metric"""
        for kind, labels, rows, samples, metrics in (
            ("counter", "concat('{\"topic\": \"', topic, '\"}')", _TOPICS, f"array(0, {SAMPLES - 1})",
             "'bytes_in_total', 'bytes_out_total', 'messages_in_total', 'fetch_requests_total',"
             " 'produce_requests_total'"),
            ("gauge", "concat('{\"topic\": \"', topic, '\"}')", _TOPICS, f"array({SAMPLES - 1})",
             "'log_bytes', 'log_segments'"),
            ("counter", "'{}'", "range(1)", f"sequence(0, {SAMPLES - 1})",
             "'bytes_in_total', 'bytes_out_total', 'messages_in_total', 'cpu_seconds_total'"),
            ("gauge", "'{}'", "range(1)", f"sequence(0, {SAMPLES - 1})",
             "'partitions', 'leaders', 'request_handler_idle_ratio'"),
        )
    ),
}  # fmt: skip


def measure() -> list[Metric]:
    """Seconds of an hour by size, each in a new, cold process; and memory."""
    costs = {}
    for size in SIZES:
        # The second hour knows the first one, as hours do; made and run by other processes, so that it starts as cold.
        with TemporaryDirectory() as folder, a_database() as url:
            migrate(engine(url))
            _is_known(engine(url), size)
            engine(url).dispose()
            for hour in (last_full_hour() - HOUR, last_full_hour()):
                _apart(make, Path(folder), size // 10, hour)
                costs[size] = _apart(gather, Path(folder), url, hour)
    least, most = min(SIZES), max(SIZES)
    exponent = math.log(costs[most][0] / costs[least][0]) / math.log(most / least)
    return [
        *(
            Metric(f"an hour of {size:,} partitions", seconds, "s", LIMIT_SECONDS if size == LIMITED else None)
            for size, (seconds, _, _) in costs.items()
        ),
        Metric("exponent of that", exponent, "", WORST_EXPONENT),
        *(
            Metric(f"  memory of Python and JVM, {size:,} partitions", jvm, "GiB")
            for size, (_, jvm, _) in costs.items()
        ),
        *(Metric(f"  of it the driver's Python, {size:,}", own, "GiB") for size, (_, _, own) in costs.items()),
    ]


def _is_known(warehouse: sa.Engine, partitions: int) -> None:
    """Stores row counts of earlier hours, from which Spark plans are chosen."""
    loaded = sa.text("""
        insert into detect.load (hour, app, status, rows, started_at, finished_at)
        select :hour, app, 'loaded', jsonb_build_object('rows', :rows), now(), now()
        from unnest(cast(:apps as text[])) as app""")
    hour = last_full_hour() - 2 * HOUR
    ensure_day(warehouse, hour.date())
    with warehouse.begin() as connection:
        connection.execute(loaded, {"hour": hour, "apps": APPS, "rows": 5 * partitions})


def _apart(work, *given):  # type: ignore[no-untyped-def]  # what `work` takes and returns
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *given).result()


def make(folder: Path, topics: int, hour: datetime) -> None:
    """Writes the rows of each source for an hour, as one Parquet folder per source."""
    spark = start_session("bench", master="local[2]")
    moments = {"begins": hour, "ends": hour + HOUR, "read": hour + HOUR + timedelta(minutes=1)}
    values = {name: f"timestamp '{at.isoformat()}'" for name, at in moments.items()}
    values |= {"topics": str(topics), "replicas": f"{10 * 3 * topics // BROKERS}d"}
    values |= {"base": f"{6000 * int(hour.timestamp() / 3600)}L"}  # 100 records a minute
    for source, selects in _ROWS.items():
        parts = [spark.sql(_filled(select, values)) for select in selects]
        frame = parts[0]
        for part in parts[1:]:
            frame = frame.unionByName(part, allowMissingColumns=True)
        # Sources stream their rows: no task of the hour should hold 128 MB of them.
        frame.write.mode("overwrite").option("parquet.block.size", 4 * 2**20).parquet(str(folder / source.name()))
    spark.stop()


def _filled(select: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        select = select.replace(f"{{{name}}}", value)
    return select


def gather(folder: Path, url: str, hour: datetime) -> tuple[float, float, float]:
    """Seconds of the hour, peak memory of this process with its JVM, and peak memory of this process, in GiB."""
    os.environ |= {WAREHOUSE_ENV: url, CONFIG_ENV: str(folder / "streamwarden.yaml")}
    config = Config.model_validate(CONFIG)

    def output(spark: SparkSession, source: DataSource) -> DataFrame:
        rows = folder / source.name()
        return (
            spark.read.schema(source.schema()).parquet(str(rows))
            if rows.exists()
            else driver_rows(spark, [], source.schema())
        )

    with patch.object(kafka_client, "read_source", output), patch.object(jmx, "read_source", output), _memory() as most:
        started = time.monotonic()
        run = run_hour(config, hour, APPS, lambda *_: None)
        seconds = time.monotonic() - started
    if run.failed or not all(run.rows[app] for app in APPS):
        raise AssertionError(f"the hour isn't whole: {run.failed}, {run.rows}")
    return seconds, most["all"], most["own"]


@contextmanager
def _memory() -> Iterator[dict[str, float]]:
    """Peak memory of this process and its children, sampled twice a second."""
    most, over = {"all": 0.0, "own": 0.0}, threading.Event()
    mine = psutil.Process()

    def look() -> None:
        while not over.wait(0.5):
            sizes = []
            for process in (mine, *mine.children(recursive=True)):
                try:
                    sizes.append(process.memory_info().rss / 2**30)
                except psutil.Error:
                    continue  # it has just ended
            most.update({"all": max(most["all"], sum(sizes)), "own": max(most["own"], sizes[0])})

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()
