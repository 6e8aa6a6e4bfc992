"""Fixtures for all tests: a real PostgreSQL (an embedded server, a fresh migrated database each time) and one Spark."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden import PROJECT_ROOT
from streamwarden.config import WAREHOUSE_ENV
from streamwarden.migrate import migrate
from streamwarden.warehouse import embedded_url, engine

TEST_SERVER = PROJECT_ROOT / "var" / "test-postgres"


@pytest.fixture(scope="session")
def migrated_template() -> Iterator[str]:
    """URL of a database that has every migration and view and no rows."""
    with a_database() as url:
        migrate(engine(url))
        engine(url).dispose()
        yield url


@contextmanager
def a_database(like: str | None = None) -> Iterator[str]:
    """URL of a new database of the tests' server, empty or a copy of another's URL; dropped at the end."""
    name = f"t{uuid.uuid4().hex[:12]}"
    admin = engine(embedded_url(TEST_SERVER, "postgres")).execution_options(isolation_level="AUTOCOMMIT")
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


@pytest.fixture
def warehouse_url(migrated_template: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A migrated, empty warehouse of this test's own; `$STREAMWARDEN_WAREHOUSE_URL` names it."""
    with a_database(like=migrated_template) as url:
        monkeypatch.setenv(WAREHOUSE_ENV, url)
        yield url


@pytest.fixture(scope="module")
def module_warehouse(migrated_template: str) -> Iterator[sa.Engine]:
    """Engine on a migrated, empty warehouse that the tests of a module share (and leave as they found it)."""
    with a_database(like=migrated_template) as url:
        yield engine(url)


@pytest.fixture
def warehouse(warehouse_url: str) -> sa.Engine:
    """Engine on `warehouse_url`."""
    return engine(warehouse_url)


@pytest.fixture(scope="session")
def spark():  # type: ignore[no-untyped-def]  # pyspark is imported only by the tests that ask for it
    """One local Spark session."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from spark_apps.session import start_session

    session = start_session("tests", master="local[2]")
    # To compile code for a handful of rows takes longer than to interpret it.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]  # imported when asked for
    """A real Kafka broker with Jolokia (`bootstrap_servers`, `jolokia_url`, `pid`); take topic names of your own."""
    from demo.broker import Broker

    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def project_root() -> Path:
    """Root of the checkout."""
    return PROJECT_ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first: what is broken shows early. Then what may take longest, lest one worker ends alone with it."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is not None, -_longest_seconds(item)))


def _longest_seconds(item: pytest.Item) -> float:
    timeout = item.get_closest_marker("timeout")
    return timeout.args[0] if timeout else 0


def pytest_unconfigure() -> None:
    """Libraries log at exit, when pytest has closed the streams: the run's last line stays its result."""
    logging.raiseExceptions = False
