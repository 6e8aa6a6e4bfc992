"""Child processes and ports: no process is left behind, and a port in use is a one-line error."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import psutil
import pytest
from demo import process as processes
from demo.process import Process, claim_port, end_leftover, free_port
from streamwarden.base.errors import StreamwardenError

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
IGNORE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
DEAF = [sys.executable, "-c", IGNORE]


def test_a_port_in_use_is_named_with_its_purpose_and_the_action() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StreamwardenError) as caught:
            claim_port(port, "Kafka broker", "DEMO_BROKER_PORT")
    assert str(caught.value) == (
        f"port {port} (Kafka broker) is taken by another process: stop it or set DEMO_BROKER_PORT to a free port"
    )
    assert claim_port(port, "Kafka broker", "DEMO_BROKER_PORT") == port


def test_a_process_is_gone_after_its_context_even_if_it_ignores_sigterm(tmp_path: Path) -> None:
    process = Process("deaf", DEAF, tmp_path).start()
    while not process.log.read_text():
        process.check()
    process.stop(grace_seconds=0.2)
    assert not psutil.pid_exists(process.pid)
    assert not process.pid_file.exists()


def test_a_process_that_ends_shows_the_error_line_of_its_log(tmp_path: Path) -> None:
    crash = [sys.executable, "-c", "print('fine'); raise ValueError('no such topic')"]
    with (
        Process("crasher", crash, tmp_path) as process,
        pytest.raises(StreamwardenError, match=r"crasher ended with code 1: ValueError: no such topic \(whole log"),
    ):
        process.wait(10)


def test_a_killed_supervisors_child_is_ended_but_a_reused_pid_is_not(tmp_path: Path) -> None:
    with Process("child", SLEEP, tmp_path) as child:
        created = float(child.pid_file.read_text().split()[1])
        other = tmp_path / "reused.pid"
        other.write_text(f"{child.pid} {created - 5}\n")
        end_leftover(other)
        assert psutil.pid_exists(child.pid)
        assert not other.exists()
        end_leftover(child.pid_file)
        child.stop()
        assert not psutil.pid_exists(child.pid)
    broken = tmp_path / "broken.pid"
    broken.write_text("")
    end_leftover(broken)
    assert not broken.exists()


WORKERS = """
import subprocess, sys, time
nap = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"]
print(*(subprocess.Popen(nap).pid for _ in range(2)), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("is_next_supervisor", [False, True])
def test_workers_of_a_killed_process_are_ended(tmp_path: Path, is_next_supervisor: bool) -> None:
    process = Process("scheduler", [sys.executable, "-c", WORKERS], tmp_path).start()
    while not process.log.read_text().endswith("\n"):
        process.check()
    workers = [psutil.Process(int(pid)) for pid in process.log.read_text().split()]
    psutil.Process(process.pid).kill()
    if is_next_supervisor:
        with pytest.raises(StreamwardenError, match="scheduler ended with code -9"):
            process.wait(10)
        end_leftover(process.pid_file)
    else:
        process.stop()
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]


def test_a_running_leader_keeps_its_workers(tmp_path: Path) -> None:
    with Process("scheduler", [sys.executable, "-c", WORKERS], tmp_path) as process:
        while not process.log.read_text().endswith("\n"):
            process.check()
        processes.end_orphans(process.pid, psutil.Process(process.pid).create_time())
        assert all(psutil.pid_exists(int(pid)) for pid in process.log.read_text().split())


def test_a_free_port_is_not_in_use_and_not_ephemeral(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        assert connection.getsockname()[1] not in processes.PORTS
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        monkeypatch.setattr(processes, "PORTS", [taken, taken, taken, free_port()])
        assert free_port() != taken
