"""Loads into the warehouse: an hour twice, gaps, a killed load that is retried, and names with special characters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pyspark.sql import DataFrame, SparkSession
from streamwarden.base.catalog import SparkApp
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import gap_of_present
from streamwarden.base.warehouse import engine

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.load import ANALYZED_FROM_ROWS, READ_PER_ROW, Stage, last_rows, record_failure, replace_hour
from spark_apps.runtime.session import COMPILED_FROM_ROWS, ROWS_PER_PIECE, pieces, session_for
from spark_apps.runtime.warehouse_io import read_query
from tests.plugins.base.postgres_servers import PGBOUNCER, pgbouncer

pytestmark = pytest.mark.slow

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
APP = SparkApp("test_app", "For tests", (), ("metrics.topic_hourly",))
TOPICS = "cluster string, topic string, brokers int, bytes_in double"
REST = {
    "covered_seconds": "double",
    "counted_from": "timestamp",
    "counted_to": "timestamp",
    "bytes_out": "double",
    "messages_in": "double",
    "failed_produces": "double",
    "bytes_rejected": "double",
    "remote_fetch_bytes": "double",
    "fetch_requests": "double",
    "produce_requests": "double",
    "log_bytes": "double",
}
"""The other columns of metrics.topic_hourly, for the loads of this process and of the one that is killed"""
NULLS = [f"cast(null as {kind}) as {name}" for name, kind in REST.items()]


def topics(spark: SparkSession, *rows: tuple[str, int, float | None]) -> DataFrame:
    frame = driver_rows(spark, [("c", *row) for row in rows], TOPICS)
    return frame.selectExpr("*", *NULLS)


def coverage(spark: SparkSession, status: str = "complete") -> DataFrame:
    return driver_rows(
        spark, [("jolokia", "b1", status, None)], "source string, resource_name string, status string, message string"
    )


def load(warehouse: sa.Engine, frame: DataFrame, status: str = "complete") -> dict[str, int]:
    spark = frame.sparkSession
    return replace_hour(
        warehouse, APP, HOUR, {"metrics.topic_hourly": frame}, coverage(spark, status), datetime.now(UTC)
    )


def stored(warehouse: sa.Engine) -> list[tuple[str, float | None]]:
    with warehouse.connect() as connection:
        return list(connection.execute(sa.text("select topic, bytes_in from metrics.topic_hourly order by 1")).tuples())


def staging_tables(warehouse: sa.Engine) -> int:
    with warehouse.connect() as connection:
        return connection.execute(sa.text("select count(*) from pg_tables where schemaname = 'staging'")).scalar_one()


def test_an_hour_loaded_twice_has_the_same_rows(spark: SparkSession, warehouse: sa.Engine) -> None:
    ugly = "a\"b'; drop table x; -- <script> \\ \t ü"
    for _ in range(2):
        assert load(warehouse, topics(spark, (ugly, 1, 1.5), ("b", 1, None))) == {"metrics.topic_hourly": 2}
    assert stored(warehouse) == [(ugly, 1.5), ("b", None)]
    assert staging_tables(warehouse) == 0
    with warehouse.connect() as connection:
        assert connection.execute(sa.text("select app, status from detect.load")).tuples().all() == [
            ("test_app", "loaded")
        ]
        assert connection.execute(sa.text("select source, status from detect.coverage")).tuples().all() == [
            ("jolokia", "complete")
        ]


def test_the_size_of_the_last_load_decides_whether_plans_are_compiled(
    spark: SparkSession, warehouse: sa.Engine
) -> None:
    assert last_rows(warehouse, "test_app") == 0
    load(warehouse, topics(spark, ("a", 1, 1.5), ("b", 1, None)))
    assert last_rows(warehouse, "test_app") == 2
    wanted = [session_for(spark, rows).conf.get("spark.sql.codegen.wholeStage") for rows in (2, COMPILED_FROM_ROWS)]
    assert wanted == ["false", "true"]


def test_the_values_that_an_app_read_count_for_its_size(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.execute(
            sa.text("""
                insert into metrics.state_store_hourly (hour, cluster, topic, application_id, store, values_profiled)
                values (:hour, 'c', 'a-s-changelog', 'a', 's', :values),
                       (:hour, 'c', 'a-t-changelog', 'a', 't', 24)"""),
            {"hour": HOUR, "values": COMPILED_FROM_ROWS * READ_PER_ROW},
        )
        connection.execute(
            sa.text("""
                insert into detect.load (hour, app, status, rows, started_at, finished_at)
                values (:hour, 'state_stores', 'loaded', '{"metrics.state_store_hourly": 2}', now(), now())"""),
            {"hour": HOUR},
        )
    assert last_rows(warehouse, "state_stores") == COMPILED_FROM_ROWS + 1


def test_reads_of_a_large_app_have_more_partitions(spark: SparkSession) -> None:
    assert [pieces(session_for(spark, rows)) for rows in (0, 2 * ROWS_PER_PIECE, 20 * ROWS_PER_PIECE)] == [2, 2, 20]


@pytest.mark.rare
def test_the_planner_knows_how_many_rows_a_large_hour_has(spark: SparkSession, warehouse: sa.Engine) -> None:
    topic = spark.range(ANALYZED_FROM_ROWS).selectExpr(
        "'c' as cluster", "concat('topic-', id) as topic", "1 as brokers", "1d as bytes_in", *NULLS
    )
    load(warehouse, topic)
    with warehouse.connect() as connection:
        plan = connection.execute(
            sa.text("explain (format json) select * from metrics.topic_hourly where hour = :hour"), {"hour": HOUR}
        ).scalar_one()
    assert plan[0]["Plan"]["Plan Rows"] == ANALYZED_FROM_ROWS


def test_a_complete_response_replaces_removed_rows(spark: SparkSession, warehouse: sa.Engine) -> None:
    load(warehouse, topics(spark, ("a", 1, 1.0), ("b", 1, 2.0)))
    load(warehouse, topics(spark, ("b", 1, None)))
    assert stored(warehouse) == [("b", None)]


def test_a_gap_keeps_the_known_rows(spark: SparkSession, warehouse: sa.Engine) -> None:
    load(warehouse, topics(spark, ("a", 1, 1.0), ("b", 1, 2.0)))
    load(warehouse, topics(spark, ("b", 1, None), ("c", 1, 3.0)), status="failed")
    assert stored(warehouse) == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


@pytest.mark.parametrize("periods", [(300, 60), (60, 300)], ids=str)
def test_a_minute_is_not_mixed_with_the_five_minutes_that_begin_with_it(
    periods: tuple[int, int], spark: SparkSession, warehouse: sa.Engine
) -> None:
    app = SparkApp("test_samples", "For tests", (), ("metrics.instance_network_sample",))
    kinds = "account string, region string, instance_id string, at timestamp, period_seconds int, in_bytes double"
    values = {300: (5e9, 5e8), 60: (1e9, None)}
    for period in periods:
        frame = driver_rows(spark, [("1", "r", "i", HOUR, period, *values[period])], f"{kinds}, out_bytes double")
        replace_hour(
            warehouse, app, HOUR, {"metrics.instance_network_sample": frame}, coverage(spark), datetime.now(UTC)
        )
    with warehouse.connect() as connection:
        rows = connection.execute(
            sa.text("select period_seconds, in_bytes, out_bytes from metrics.instance_network_sample")
        )
        assert rows.tuples().all() == [(60, *values[60])]


@pytest.mark.rare
def test_a_late_read_does_not_replace_a_read_in_time(spark: SparkSession, warehouse: sa.Engine) -> None:
    """An hour read in time, then late, and the reverse: rows and coverage are the same at the end."""
    kind = "source string, resource_name string, status string, message string"
    gap = str(gap_of_present(HOUR, "a cluster's list of topics")).partition(": ")[2]
    in_time = [("topics", "c", "complete", None), ("commits", "c", "failed", "it is down")]
    late = [("topics", "c", "missing", gap), ("commits", "c", "complete", None)]

    def run(coverage: list[tuple[str, str, str, str | None]], *rows: tuple[str, int, float | None]) -> None:
        frames = {"metrics.topic_hourly": topics(spark, *rows)}
        started_at = HOUR + timedelta(hours=1 if coverage is in_time else 2)
        replace_hour(warehouse, APP, HOUR, frames, driver_rows(spark, coverage, kind), started_at)

    def coverage_rows() -> list[Any]:
        with warehouse.connect() as connection:
            query = "select source, status, message, (select count(*) from metrics.topic_hourly) from detect.coverage"
            return sorted(map(tuple, connection.execute(sa.text(query))))

    run([("topics", "c", "failed", "it is down"), ("commits", "c", "complete", None)])
    run(late)  # a failure is not kept: it was late, too
    assert coverage_rows() == [("commits", "complete", None, 0), ("topics", "missing", gap, 0)]
    run(in_time, ("a", 1, 1.0))
    assert coverage_rows() == [("commits", "failed", "it is down", 1), ("topics", "complete", None, 1)]
    run(late)
    assert coverage_rows() == [("commits", "complete", None, 1), ("topics", "complete", None, 1)]


def test_rows_that_contradict_each_other_load_nothing(spark: SparkSession, warehouse: sa.Engine) -> None:
    load(warehouse, topics(spark, ("a", 1, 1.0)))
    with pytest.raises(sa.exc.DBAPIError):
        load(warehouse, topics(spark, ("b", 1, 1.0), ("b", 1, 2.0)))
    assert stored(warehouse) == [("a", 1.0)]
    assert staging_tables(warehouse) == 0


def test_an_unknown_column_of_a_frame_is_named_in_the_error(spark: SparkSession, warehouse: sa.Engine) -> None:
    with pytest.raises(StreamwardenError, match=r"metrics\.topic_hourly: frame and table differ in columns colour"):
        load(warehouse, topics(spark, ("a", 1, 1.0)).selectExpr("*", "1 as colour"))


def test_a_failure_does_not_undo_a_loaded_hour(spark: SparkSession, warehouse: sa.Engine) -> None:
    record_failure(warehouse, "test_app", HOUR, "no route", datetime.now(UTC))
    load(warehouse, topics(spark, ("a", 1, 1.0)))
    record_failure(warehouse, "test_app", HOUR, "no route", datetime.now(UTC))
    with warehouse.connect() as connection:
        assert connection.execute(sa.text("select status, error from detect.load")).tuples().all() == [("loaded", None)]


def test_a_crash_of_postgresql_between_staging_and_publishing_loses_no_rows(
    spark: SparkSession, warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates a crash: sessions end, unlogged tables are empty, and a second later clients reconnect."""
    load(warehouse, topics(spark, ("before", 1, 1.0)))
    fill = Stage.fill

    def fill_and_crash(stage: Stage, frame: DataFrame) -> None:
        fill(stage, frame)
        if stage.table == "metrics.topic_hourly":
            with warehouse.begin() as connection:
                connection.exec_driver_sql(f"truncate {stage.name}")
                connection.execute(
                    sa.text("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database ="
                            " (select oid from pg_database where datname = current_database())")
                )  # fmt: skip

    monkeypatch.setattr(Stage, "fill", fill_and_crash)
    with pytest.raises(sa.exc.OperationalError):
        load(warehouse, topics(spark, ("after", 1, 1.0)))
    assert stored(warehouse) == [("before", 1.0)]
    monkeypatch.undo()
    load(warehouse, topics(spark, ("after", 1, 1.0)))
    assert stored(warehouse) == [("after", 1.0)]
    assert staging_tables(warehouse) == 0


@pytest.mark.usefixtures("slow_commits")
def test_two_loads_at_once_wait_for_each_other(spark: SparkSession, warehouse: sa.Engine) -> None:
    """Also for the tables that the first load drops at its end."""
    with ThreadPoolExecutor() as pool:
        loads = [pool.submit(load, warehouse, topics(spark, (name, 1, 1.0))) for name in ("a", "b")]
    assert [load.result() for load in loads] == [{"metrics.topic_hourly": 1}] * 2
    assert stored(warehouse) in ([("a", 1.0)], [("b", 1.0)])
    assert staging_tables(warehouse) == 0


@pytest.mark.skipif(PGBOUNCER is None, reason="needs Debian's package pgbouncer")
def test_two_loads_at_once_through_pgbouncer_wait_for_each_other(spark: SparkSession, warehouse: sa.Engine) -> None:
    """Each transaction may run in another session, in which the other load has just been."""
    with pgbouncer(warehouse) as url, ThreadPoolExecutor() as pool:
        pooled = engine(f"{url}?pooler=transaction")
        loads = [pool.submit(load, pooled, topics(spark, (name, 1, 1.0))) for name in ("a", "b")]
        assert [load.result() for load in loads] == [{"metrics.topic_hourly": 1}] * 2
        pooled.dispose()
    assert stored(warehouse) in ([("a", 1.0)], [("b", 1.0)])
    assert staging_tables(warehouse) == 0


@pytest.mark.rare
def test_loads_of_many_apps_at_once_need_one_connection_each(spark: SparkSession, warehouse: sa.Engine) -> None:
    """And one that they share: a load that kept two would wait for one that another keeps."""
    few = sa.create_engine(warehouse.url, pool_size=4, max_overflow=0, pool_timeout=20)
    hours = [HOUR - timedelta(hours=back) for back in range(3)]
    frames = {"metrics.topic_hourly": topics(spark, ("a", 1, 1.0))}

    def loaded(hour: datetime) -> dict[str, int]:
        return replace_hour(few, APP, hour, frames, coverage(spark), datetime.now(UTC))

    with ThreadPoolExecutor(len(hours)) as pool:
        assert list(pool.map(loaded, hours)) == [{"metrics.topic_hourly": 1}] * len(hours)
    few.dispose()


def test_a_load_that_fails_early_lets_the_next_one_in(spark: SparkSession, warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:  # a session that reads the remains of a killed load
        connection.exec_driver_sql("create table staging.test_app_2026010510_left (one integer)")
        connection.exec_driver_sql("create view public.looks as select * from staging.test_app_2026010510_left")
    with pytest.raises(sa.exc.DBAPIError, match="other objects depend on it"):
        load(warehouse, topics(spark, ("a", 1, 1.0)))
    another = sa.create_engine(warehouse.url, poolclass=sa.NullPool)  # a session of its own
    with another.begin() as connection:
        connection.exec_driver_sql("drop table staging.test_app_2026010510_left cascade")
        connection.exec_driver_sql("set local lock_timeout = '10s'")
        lock = sa.text("select pg_advisory_xact_lock(hashtext(:run))")
        connection.execute(lock, {"run": f"test_app {HOUR}"})


@pytest.mark.rare
def test_a_killed_load_leaves_nothing_and_can_be_repeated(
    spark: SparkSession, warehouse: sa.Engine, warehouse_url: str, tmp_path: Path, project_root: Path
) -> None:
    """SIGKILL ends the load while its tasks write. A retry loads the complete hour, without rows of the first try."""
    load(warehouse, topics(spark, ("before", 1, 1.0)))
    job = tmp_path / "killed.py"
    job.write_text(
        textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(project_root)!r})
        from datetime import UTC, datetime
        from pyspark.sql import functions as f
        from streamwarden.base.catalog import SparkApp
        from spark_apps.runtime.load import replace_hour
        from spark_apps.runtime.session import start_session
        from streamwarden.base.warehouse import engine
        spark = start_session("killed", master="local[2]")
        app = SparkApp("test_app", "", (), ("metrics.topic_hourly",))
        def slowly(batches):
            for batch in batches:
                yield batch
                time.sleep(60)
        rows = spark.range(2).selectExpr(
            "'c' as cluster", "concat('killed', id) as topic", "1 as brokers", "1.0D as bytes_in", *{NULLS})
        coverage = spark.createDataFrame([("s", "r", "complete", None)],
            "source string, resource_name string, status string, message string")
        hour = datetime(2026, 1, 5, 10, tzinfo=UTC)
        replace_hour(engine({warehouse_url!r}), app, hour,
            {{"metrics.topic_hourly": rows.mapInArrow(slowly, rows.schema)}}, coverage, hour)
        """)
    )
    process = subprocess.Popen([sys.executable, job], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 90
        while staging_tables(warehouse) < 2 and time.monotonic() < deadline:
            assert process.poll() is None, "the load ended before it could be killed"
            time.sleep(0.2)
        time.sleep(3)
        assert staging_tables(warehouse) == 2
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert stored(warehouse) == [("before", 1.0)]
    load(warehouse, topics(spark, ("after", 1, 1.0)))
    assert stored(warehouse) == [("after", 1.0)]
    assert staging_tables(warehouse) == 0


def test_reading_casts_to_the_schema(spark: SparkSession, warehouse: sa.Engine) -> None:
    load(warehouse, topics(spark, ("a", 1, 1.0)))
    query = "select topic, hour, brokers from metrics.topic_hourly"
    row = read_query(spark, query, "topic string, hour timestamp, brokers long").collect()[0]
    assert (row.topic, row.brokers) == ("a", 1)
    assert (
        row.hour.replace(tzinfo=None).isoformat() == "2026-01-05T10:00:00" or row.hour.timestamp() == HOUR.timestamp()
    )
