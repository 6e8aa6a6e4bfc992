"""Child processes of the demo fleet, each with a log and a pid file, and their ports. Children are always stopped."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from streamwarden.base.errors import StreamwardenError

from spark_apps.runtime.class_archive import java

# Small JVMs: one compiler thread, one collector thread, no duplicate mappings.
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "-Xshare:auto", "-Dlog4j2.level=WARN")

PORTS = range(10_000, 32_000)
"""Below the ephemeral ports of Linux and macOS, which outgoing connections use."""
ERROR = re.compile(r"Exception|\w*Error\b")
PACKAGES = Path(__file__).parent.parent  # PYTHONPATH of children, so that they can import `demo` from any folder


def free_port() -> int:
    """A free port of 127.0.0.1 below the ephemeral ports, so that no outgoing connection takes it meanwhile."""
    while True:
        port = PORTS[secrets.randbelow(len(PORTS))]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def claim_port(port: int, what: str, variable: str) -> int:
    """Returns the port if it is free (0: any free port); else raises one line with the variable that changes it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise StreamwardenError(
                f"port {port} ({what}) is taken by another process: stop it or set {variable} to a free port"
            ) from None
    return port or free_port()


class Process:
    """A child process in its own session, so that Ctrl-C in the terminal reaches only the supervisor."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.command = list(command)
        self.folder = folder
        self.log = folder / f"{name}.log"
        self.pid_file = folder / f"{name}.pid"
        self._env = {**os.environ, "PYTHONPATH": f"{PACKAGES}:{os.environ.get('PYTHONPATH', '')}", **(env or {})}
        self._child: subprocess.Popen[bytes] | None = None
        self._created = 0.0

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        end_leftover(self.pid_file)
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._created = psutil.Process(self.pid).create_time()
        self.pid_file.write_text(f"{self.pid} {self._created}\n")
        return self

    @property
    def pid(self) -> int:
        if self._child is None:
            raise StreamwardenError(f"{self.name} was not started")
        return self._child.pid

    def check(self) -> None:
        """Raises with the relevant line of the log if the process has ended."""
        code = self._child.poll() if self._child else None
        if code is not None:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            telling = next((line for line in lines if ERROR.search(line)), (lines or ["no output"])[-1])
            raise StreamwardenError(f"{self.name} ended with code {code}: {telling.strip()} (whole log: {self.log})")

    def wait(self, seconds: float) -> None:
        """Waits until the process ends; raises after a failure or a timeout."""
        try:
            code = self._child.wait(seconds) if self._child else 0
        except subprocess.TimeoutExpired:
            raise StreamwardenError(f"{self.name} did not end within {seconds:.0f} s (log: {self.log})") from None
        if code:
            self.check()

    def terminate(self) -> None:
        if self._child is not None:
            self._child.terminate()

    def stop(self, grace_seconds: float = 8) -> None:
        """Sends SIGTERM, and SIGKILL after a timeout; then ends what the process left behind in its session."""
        if self._child is not None:
            self._child.terminate()
            try:
                self._child.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            end_orphans(self.pid, self._created)
        self.pid_file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Jvm(Process):
    """A Java process with a Jolokia agent on the loopback; see `Process`."""

    def __init__(
        self,
        name: str,
        main: Sequence[str],
        folder: Path,
        *,
        classpath: str,
        agent: Path,
        jolokia_port: int,
        options: Sequence[str] = (),
        host: str = "127.0.0.1",
    ) -> None:
        self.jolokia_url = f"http://{host}:{jolokia_port}/jolokia"
        jolokia = f"-javaagent:{agent}=host={host},port={jolokia_port},discoveryEnabled=false"
        super().__init__(name, [java(), *JVM_OPTIONS, *options, jolokia, "-cp", classpath, *main], folder)


def end_leftover(pid_file: Path) -> None:
    """Ends a process that a killed supervisor left behind, and the orphans of a process that was killed.

    Start times are compared, because pids are reused.
    """
    with suppress(FileNotFoundError, ValueError):
        pid, created = pid_file.read_text().split()
        _end(int(pid), float(created))
        end_orphans(int(pid), float(created))
    pid_file.unlink(missing_ok=True)


def end_orphans(pid: int, created: float) -> None:
    """Ends the processes of a session after the end of its leader, such as Airflow's workers without a scheduler.

    They keep locks and connections: without them, a new scheduler queues nothing. While one of them runs, the kernel
    gives the leader's pid to no other process.

    Args:
        pid: of the former leader.
        created: its start, seconds since 1970.
    """
    if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        return
    orphans = [process for process in psutil.process_iter() if _is_in_session(process, pid, created)]
    for orphan in orphans:
        with suppress(psutil.NoSuchProcess):
            orphan.terminate()
    for orphan in _still_running_after(3, orphans):
        with suppress(psutil.NoSuchProcess):
            orphan.kill()
    _still_running_after(3, orphans)


def _still_running_after(seconds: float, processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """The processes that have not ended within the given time; a zombie, which only its parent can remove, has."""
    deadline = time.monotonic() + seconds
    while (running := [process for process in processes if _is_running(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_in_session(process: psutil.Process, pid: int, created: float) -> bool:
    try:
        return os.getsid(process.pid) == pid and process.pid != pid and process.create_time() >= created
    except (ProcessLookupError, PermissionError, psutil.Error):
        return False


def _end(pid: int, created: float) -> None:
    with suppress(psutil.NoSuchProcess):
        leftover = psutil.Process(pid)
        if leftover.create_time() != created:
            return
        leftover.send_signal(signal.SIGTERM)
        try:
            leftover.wait(10)
        except psutil.TimeoutExpired:
            leftover.kill()
            leftover.wait(10)
