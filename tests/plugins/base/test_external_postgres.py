"""A warehouse behind PgBouncer in transaction mode, and over TLS with a certificate authority of one's own."""

from __future__ import annotations

import importlib
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import adbc_driver_postgresql.dbapi as adbc
import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config
from streamwarden.base.rds_login import with_password
from streamwarden.base.warehouse import address_of_engine, engine, with_session_options
from streamwarden.store.migrate import migrate, require_migrated

from tests.plugins.base.postgres_servers import PGBOUNCER, POSTGRES_WITH_TLS, authority, pgbouncer, postgres_with_tls

needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="needs Debian's package pgbouncer")
POOLED = "?pooler=transaction"
SETTINGS = "select current_setting('timezone'), pg_backend_pid()"


@pytest.fixture
def pooled(warehouse: sa.Engine) -> Iterator[sa.Engine]:
    """The warehouse of a test behind PgBouncer."""
    with pgbouncer(warehouse) as url:
        made = engine(url + POOLED)
        yield made
        made.dispose()


@needs_pgbouncer
def test_a_warehouse_is_migrated_through_pgbouncer(empty_warehouse: sa.Engine) -> None:
    with pgbouncer(empty_warehouse) as url:
        pooled = engine(url + POOLED)
        assert migrate(pooled)
        require_migrated(pooled)
        pooled.dispose()


@needs_pgbouncer
def test_statements_of_a_connection_run_in_several_sessions_each_in_utc(pooled: sa.Engine) -> None:
    with pooled.connect() as one, pooled.connect() as other:
        sessions: dict[sa.Connection, set[int]] = {one: set(), other: set()}
        for turn in range(20):  # psycopg would prepare the statement at the fifth time
            for connection in (one, other) if turn % 2 else (other, one):
                zone, session = connection.execute(sa.text(SETTINGS)).one()
                sessions[connection].add(session)
                assert zone == "UTC"
            one.rollback()
            other.rollback()
    assert len(sessions[one]) > 1
    with adbc.connect(with_session_options(address_of_engine(pooled))) as connection, connection.cursor() as cursor:
        for _ in range(3):
            cursor.execute(SETTINGS)
            assert cursor.fetchone()[0] == "UTC"
            connection.commit()


@needs_pgbouncer
def test_two_deliveries_through_pgbouncer_wait_for_each_other(
    pooled: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most = 0, 0
    waiting = threading.Barrier(2)

    def deliver_all(run: object) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        with pooled.begin() as connection:  # ends transactions of other sessions meanwhile
            connection.execute(sa.text("select pg_sleep(0.3)"))
        running -= 1
        return False

    delivery = importlib.import_module("streamwarden.tickets.deliver")
    monkeypatch.setattr(delivery._Run, "deliver_all", deliver_all)

    def one(_: int) -> None:
        waiting.wait()
        delivery.deliver(pooled, None, Config())  # type: ignore[arg-type]

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, range(2)))
    assert most == 1


@needs_pgbouncer
def test_without_the_marker_the_error_says_what_to_add(
    warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pgbouncer(warehouse) as url:
        monkeypatch.setenv(WAREHOUSE_ENV, url)
        monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "streamwarden.yaml"))
        (tmp_path / "streamwarden.yaml").write_text("{}")
        ran = subprocess.run(["streamwarden", "migrate"], capture_output=True, text=True)
    assert ran.returncode == 1
    [line] = ran.stderr.splitlines()
    assert line.endswith("(PgBouncer: add pooler=transaction to warehouse.url)")


def test_the_marker_does_not_reach_libpq() -> None:
    url = "postgresql://u:p@h/d?sslmode=require&pooler=transaction&application_name=x"
    assert with_password(url) == with_session_options(url) == "postgresql://u:p@h/d?sslmode=require&application_name=x"
    assert with_session_options("postgresql://u:p@h/d?pooler=transaction") == "postgresql://u:p@h/d"
    assert address_of_engine(engine(url)) == url


@pytest.mark.rare
@pytest.mark.skipif(POSTGRES_WITH_TLS is None, reason="needs Debian's package postgresql-15")
def test_tls_is_verified_against_the_authority_and_the_host_name(tmp_path: Path) -> None:
    stranger, _ = authority(tmp_path, "stranger")
    with postgres_with_tls(tmp_path) as port:

        def url(host: str, certificate: Path, mode: str = "verify-full") -> str:
            return f"postgresql://postgres@{host}:{port}/postgres?sslmode={mode}&sslrootcert={certificate}"

        good = url("localhost", tmp_path / "ca.pem")
        query = "select ssl, current_setting('timezone') from pg_stat_ssl where pid = pg_backend_pid()"
        with engine(good).connect() as connection:
            assert tuple(connection.execute(sa.text(query)).one()) == (True, "UTC")
        with adbc.connect(with_session_options(good)) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            assert cursor.fetchone() == (True, "UTC")
        assert migrate(engine(good))
        engine(good).dispose()
        refused = {
            "another authority": url("localhost", stranger),
            "another name": url("127.0.0.1", tmp_path / "ca.pem"),
            "no TLS": url("localhost", tmp_path / "ca.pem", "disable"),
        }
        for why, wrong in refused.items():
            with pytest.raises(sa.exc.OperationalError), engine(wrong).connect():
                pytest.fail(why)
            with pytest.raises(adbc.Error), adbc.connect(with_session_options(wrong)):
                pytest.fail(why)
