"""The role and the examples of docs/analyst.md work on a warehouse."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
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
