"""Fixtures for all tests: a real PostgreSQL (embedded; a migrated and empty database each time) and one Spark."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
from sqlalchemy.pool import PoolProxiedConnection
from streamwarden.base.config import WAREHOUSE_ENV
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.store.migrate import migrate

TEST_SERVER = PROJECT_ROOT / "var" / "test-postgres"
PAGES = "tests/plugins/ui/"


@pytest.fixture(scope="session")
def migrated_template() -> Iterator[str]:
    """URL of a database with all migrations and views, without rows."""
    with a_database() as url:
        migrate_for_any_day(engine(url))
        engine(url).dispose()
        yield url


def migrate_for_any_day(warehouse: sa.Engine) -> None:
    """Migrates a warehouse and adds partitions for rows of any day."""
    migrate(warehouse)
    with warehouse.begin() as connection:
        connection.exec_driver_sql(_ANY_DAY)


@cache
def _admin() -> sa.Engine:
    """Engine for commands to the server of the tests, whose fsync is off: it need not survive a power failure."""
    admin = engine(embedded_url(TEST_SERVER, "postgres")).execution_options(isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("alter system set fsync = off")
        connection.exec_driver_sql("select pg_reload_conf()")
    return admin


@contextmanager
def a_database(like: str | None = None) -> Iterator[str]:
    """URL of a new database on the server of the tests, empty or a copy of `like` (URL). Dropped after the block."""
    name = f"t{uuid.uuid4().hex[:12]}"
    admin = _admin()
    with admin.connect() as connection:
        template = sa.make_url(like).database if like else "template1"
        connection.exec_driver_sql(f'create database "{name}" template "{template}"')
    url = embedded_url(TEST_SERVER, name)
    try:
        yield url
    finally:
        engine(url).dispose()
        with admin.connect() as connection:
            connection.exec_driver_sql(f'drop database if exists "{name}" with (force)')


class SpareWarehouses:
    """A pool of migrated, empty databases: emptying one takes a tenth of the time of creating one."""

    def __init__(self, template: str, stack: ExitStack) -> None:
        self.template, self.stack = template, stack
        self.spare: list[str] = []
        with engine(template).connect() as connection:
            self.schema = {*connection.exec_driver_sql(_SCHEMA)}
        engine(template).dispose()  # the template of a copy must have no connections

    def take(self) -> str:
        """URL of a database that no test uses."""
        return self.spare.pop() if self.spare else self.stack.enter_context(a_database(like=self.template))

    def give_back(self, url: str) -> None:
        """Returns a database to the pool, unless its schema has changed."""
        if self.empty(url):
            self.spare.append(url)

    def empty(self, url: str) -> bool:
        """Closes its connections and empties it. Returns whether its schema is unchanged."""
        pool = engine(url)
        pool.dispose()
        with pool.begin() as connection:
            connection.exec_driver_sql(_END_OTHERS)
            connection.exec_driver_sql(_EMPTY)
            schema = {*connection.exec_driver_sql(_SCHEMA)}
        pool.dispose()
        return schema == self.schema


# Default partitions for rows of any day, so that no test creates partitions. `empty_warehouse` has none.
_ANY_DAY = """
    do $$
    declare
      parent regclass;
    begin
      for parent in select partrelid from pg_partitioned_table loop
        execute format('create table %%s_any partition of %%s default', parent, parent);
      end loop;
    end $$"""
_END_OTHERS = """
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()"""
# A view has a new version (xmin) when it is replaced.
_SCHEMA = """
    select c.oid::regclass::text as name, c.relkind::text as kind, c.relnatts as columns, r.xmin::text as version
    from pg_class as c
    left join pg_rewrite as r on r.ev_class = c.oid
    where c.relkind in ('r', 'p', 'v') and c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
    union all
    select name, 'migration', 0, checksum from public.schema_migration"""
_EMPTY = """
    do $$
    declare
      filled text;
      sequence regclass;
    begin
      select string_agg(c.oid::regclass::text, ', ') into filled from pg_class as c
      where c.relkind = 'r' and c.relname <> 'schema_migration' and pg_relation_size(c.oid) > 0
      and c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)';
      if filled is not null then execute 'truncate ' || filled || ' cascade'; end if;
      for sequence in
        select format('%%I.%%I', schemaname, sequencename) from pg_sequences where last_value is not null
      loop
        execute format('alter sequence %%s restart', sequence);
      end loop;
    end $$"""


@pytest.fixture(scope="session")
def spare_warehouses(migrated_template: str) -> Iterator[SpareWarehouses]:
    """The pool of databases of `warehouse_url`."""
    with ExitStack() as stack:
        yield SpareWarehouses(migrated_template, stack)


@pytest.fixture
def warehouse_url(spare_warehouses: SpareWarehouses, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of a migrated, empty warehouse for this test, also set as `$STREAMWARDEN_WAREHOUSE_URL`."""
    url = spare_warehouses.take()
    monkeypatch.setenv(WAREHOUSE_ENV, url)
    yield url
    spare_warehouses.give_back(url)


@pytest.fixture
def empty_warehouse() -> Iterator[sa.Engine]:
    """Engine on a database without any table."""
    with a_database() as url:
        yield engine(url)


@pytest.fixture(scope="module")
def module_warehouse(migrated_template: str) -> Iterator[sa.Engine]:
    """Engine on a migrated, empty warehouse that the tests of a module share."""
    with a_database(like=migrated_template) as url:
        yield engine(url)


@pytest.fixture
def warehouse(warehouse_url: str) -> sa.Engine:
    """Engine on `warehouse_url`."""
    return engine(warehouse_url)


@pytest.fixture
def slow_commits(warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays each commit to `warehouse`; until then another run does not see its changes."""
    commit = warehouse.dialect.do_commit

    def slowly(connection: PoolProxiedConnection) -> None:
        time.sleep(0.3)
        commit(connection)

    monkeypatch.setattr(warehouse.dialect, "do_commit", slowly)


@pytest.fixture(scope="session")
def spark():  # type: ignore[no-untyped-def]  # pyspark is imported only by the tests that ask for it
    """One local Spark session."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from spark_apps.runtime.session import start_session

    session = start_session("tests", master="local[2]")
    # Compiling code for a few rows takes longer than interpreting it.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_frames_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drops cached DataFrames of the session after each test."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]  # imported when asked for
    """A real Kafka broker with Jolokia (`bootstrap_servers`, `jolokia_url`, `pid`); use unique topic names."""
    from demo.broker import Broker

    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def project_root() -> Path:
    """Root of the checkout."""
    return PROJECT_ROOT


def pytest_configure(config: pytest.Config) -> None:
    """Examples of Hypothesis are the same in each `make test`; `make test-all` draws new ones."""
    hypothesis.settings.register_profile("tests", derandomize=config.option.markexpr == "not rare", database=None)
    hypothesis.settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts tests: fast ones first, then the longest ones, so that no worker runs a long test alone at the end."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is not None, -_longest_seconds(item)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assigns all tests of a file, and all files of the page tests, to one worker: they share one Airflow."""
    from xdist.scheduler import LoadFileScheduling

    class ByAirflow(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return PAGES if nodeid.startswith(PAGES) else super()._split_scope(nodeid)

    return ByAirflow(config, log)


def _longest_seconds(item: pytest.Item) -> float:
    timeout = item.get_closest_marker("timeout")
    return timeout.args[0] if timeout else 0


def pytest_unconfigure() -> None:
    """Silences libraries that log at exit, so that the last line of the output is the result of the run."""
    logging.raiseExceptions = False
