"""The role and the examples of docs/analyst.md work on a warehouse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from asyncio import StreamReader, StreamWriter, gather, get_running_loop, open_unix_connection, run, start_server
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
import sqlalchemy as sa
from demo.jar_set import ensure
from demo.jars import JDBC
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import psql_program

from tests.sql.rows import HOUR, insert_rows

PAGE = (PROJECT_ROOT / "docs" / "analyst.md").read_text()


def block(heading: str, language: str) -> str:
    """The first code block of a language under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found, (heading, language)
    return found[1]


@pytest.fixture
def analyst(warehouse: sa.Engine, warehouse_url: str) -> Iterator[str]:
    """URL of a warehouse with a lagging group, as the role of the page."""
    role = f"analyst_{uuid.uuid4().hex[:8]}"
    with warehouse.begin() as connection:
        connection.exec_driver_sql(block("A read-only role", "sql").replace("analyst", role))
        place = {"hour": HOUR, "cluster": "c", "group_id": "billing"}
        insert_rows(connection, "metrics.consumer_group_hourly", [place | {"lag_seconds_max": 90.5}])
        row = place | {"topic": "orders", "partition": 0, "lag_seconds": 90.5}
        insert_rows(connection, "metrics.consumer_partition_hourly", [row])
    yield sa.make_url(warehouse_url).set(username=role, password="change-me").render_as_string(hide_password=False)
    with warehouse.begin() as connection:
        connection.exec_driver_sql(f"drop role {role}")


def test_psql(analyst: str) -> None:
    command = block("psql", "sh").replace("psql ", f"{psql_program()} ", 1)
    done = subprocess.run(
        ["bash", "-c", command], env={"WAREHOUSE_URL": analyst}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "cluster,group_id,lag_seconds_max\nc,billing,90.5\n", done.stderr


def test_pandas(analyst: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("pandas", "python")],
        env={"WAREHOUSE_URL": analyst}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert re.search(r"c +billing +90\.5", done.stdout), done.stderr


def test_duckdb(analyst: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("DuckDB", "python")],
        env={"WAREHOUSE_URL": analyst}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert re.search(r"c +│ billing +│ +90\.5", done.stdout), done.stderr


def test_duckdb_reads_the_parquet_file_of_a_question(analyst: str, warehouse_url: str, tmp_path: Path) -> None:
    import duckdb
    from streamwarden.base.warehouse import engine
    from streamwarden.questions import load_questions, run_question
    from streamwarden.questions.formats import parquet_bytes

    answer = run_question(engine(warehouse_url), load_questions()["owners_by_findings"], {})
    file = tmp_path / "owners_by_findings.parquet"
    file.write_bytes(parquet_bytes(answer))
    query = block("DuckDB", "sql").replace(file.name, str(file))
    assert duckdb.sql(query).fetchall() == [(row[0], row[1]) for row in answer.rows]


@pytest.mark.slow
@pytest.mark.rare
@pytest.mark.timeout(900)
def test_spark(analyst: str) -> None:
    url = sa.make_url(analyst)
    with forwarded(f"{url.query['host']}/.s.PGSQL.{url.port or 5432}") as port:
        tcp = sa.URL.create("postgresql", url.username, url.password, "127.0.0.1", port, url.database)
        environment = os.environ | {
            "WAREHOUSE_URL": tcp.render_as_string(hide_password=False),
            "PYSPARK_SUBMIT_ARGS": f"--master local[1] --jars {ensure(JDBC)[0]} pyspark-shell",
        }
        done = subprocess.run(
            [sys.executable, "-c", block("Spark", "python")],
            env=environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    assert re.search(r"\|c +\|billing +\|90\.5", done.stdout), done.stderr


@contextmanager
def forwarded(socket: str) -> Iterator[int]:
    """A TCP port on which the embedded server answers, which itself only listens on a Unix socket."""
    ports: list[int] = []
    is_ready, is_over = Event(), Event()

    async def pump(reader: StreamReader, writer: StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        behind_reader, behind_writer = await open_unix_connection(socket)
        await gather(pump(reader, behind_writer), pump(behind_reader, writer), return_exceptions=True)

    async def serve() -> None:
        server = await start_server(connected, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        is_ready.set()
        await get_running_loop().run_in_executor(None, is_over.wait)
        server.close()

    thread = Thread(target=lambda: run(serve()), daemon=True)
    thread.start()
    assert is_ready.wait(30)
    try:
        yield ports[0]
    finally:
        is_over.set()
        thread.join(30)


def test_role_cannot_write_and_has_a_timeout(analyst: str) -> None:
    engine = sa.create_engine(analyst.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert connection.execute(sa.text("show statement_timeout")).scalar() == "1min"
        with pytest.raises(sa.exc.DBAPIError, match="read-only transaction"):
            connection.execute(sa.text("create table public.mine (a integer)"))
    with engine.connect() as connection:
        connection.execute(sa.text("set transaction read write"))
        with pytest.raises(sa.exc.DBAPIError, match="permission denied"):
            connection.execute(sa.text("delete from detect.load"))
