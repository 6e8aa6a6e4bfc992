"""A PgBouncer in front of the server of the tests, and a PostgreSQL with TLS and a certificate authority of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from demo.process import free_port

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
"""Debian's package pgbouncer."""
POSTGRES_WITH_TLS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
"""Debian's package postgresql-15 or another one: the embedded server is built without TLS."""


def _user() -> str | None:
    """Neither server runs as root."""
    return "embedded_postgres" if os.geteuid() == 0 else None


@contextmanager
def _running(command: list[str], folder: Path, port: int, stop: int = signal.SIGTERM) -> Iterator[None]:
    """Runs a server, in a folder of its own user, until it accepts connections."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, user=_user(), stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while True:
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None and time.monotonic() < deadline, (folder / "server.log").read_text()
                time.sleep(0.05)
            yield
        finally:
            process.send_signal(stop)
            process.wait(30)


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp", prefix="streamwarden-test-") as name:
        if user := _user():
            shutil.chown(name, user)
        yield Path(name)


@contextmanager
def pgbouncer(warehouse: sa.Engine, sessions: int = 4) -> Iterator[str]:
    """URL of a PgBouncer in transaction mode with so many sessions of the warehouse's server."""
    port, address = free_port(), warehouse.url
    with _folder() as folder:
        server = f"host={address.query['host']} user={address.username}"
        (folder / "pgbouncer.ini").write_text(
            f"""[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
server_round_robin = 1
"""
        )
        assert PGBOUNCER
        with _running([PGBOUNCER, str(folder / "pgbouncer.ini")], folder, port):
            yield f"postgresql://anybody@127.0.0.1:{port}/{address.database}"


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def authority(folder: Path, name: str) -> tuple[Path, Path]:
    """Certificate and key of a new certificate authority."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", str(key),
            "-out", str(certificate))  # fmt: skip
    return certificate, key


@contextmanager
def postgres_with_tls(certificates: Path) -> Iterator[int]:
    """Port of a PostgreSQL that accepts only TLS, with a certificate for `localhost` by the authority `ca`."""
    assert POSTGRES_WITH_TLS
    certificate, key = authority(certificates, "ca")
    port = free_port()
    with _folder() as folder:
        names, request = folder / "names", str(folder / "request")
        names.write_text("subjectAltName=DNS:localhost")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout",
                str(folder / "server.key"), "-out", request)  # fmt: skip
        openssl("x509", "-req", "-in", request, "-CA", str(certificate), "-CAkey", str(key), "-days", "2",
                "-CAcreateserial", "-extfile", str(names), "-out", str(folder / "server.pem"))  # fmt: skip
        for file in folder.iterdir():
            file.chmod(0o600)
            if user := _user():
                shutil.chown(file, user)
        data = folder / "data"
        subprocess.run([POSTGRES_WITH_TLS / "initdb", "-D", data, "-U", "postgres", "-A", "trust"], check=True,
                       capture_output=True, user=_user())  # fmt: skip
        (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "ssl": "on",
            "ssl_cert_file": folder / "server.pem",
            "ssl_key_file": folder / "server.key",
            "fsync": "off",
        }
        command = [str(POSTGRES_WITH_TLS / "postgres"), "-D", str(data)]
        with _running(
            [*command, *(f"--{name}={value}" for name, value in settings.items())], folder, port, signal.SIGINT
        ):
            ready = [str(POSTGRES_WITH_TLS / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
            while subprocess.run(ready).returncode:
                time.sleep(0.05)
            yield port
