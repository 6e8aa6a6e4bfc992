"""What runs the hours of a round: a process that stays warm, or a real Airflow."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psutil
import sqlalchemy as sa
from demo.airflow import FINAL_STATES, Airflow
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import embedded_url, engine

from tests.chaos.faults import jvms
from tests.chaos.world import World, environment_of, tree

LONGEST_WAIT_SECONDS = 900
"""Longest duration of an undisturbed run, on a host that is busy with other work."""
Answers = queue.Queue[dict[str, Any]]
"""How a run ended: `failed` and `not_evaluated`, messages by step and detector; `traceback`, or `gone` if there is no
answer because the process has ended."""


class Runner(ABC):
    """Runs hours in a world, and stays warm between them."""

    run_seconds: float
    """Longest duration of a disturbed run; a longer one hangs."""

    @property
    @abstractmethod
    def process(self) -> psutil.Process:
        """The parent of the processes that run the hours."""

    @property
    @abstractmethod
    def twin(self) -> Runner:
        """A second runner, for a concurrent run of the hours."""

    @abstractmethod
    def start(self) -> None:
        """Starts it, unless it is running."""

    @abstractmethod
    def ask(self, hours: Sequence[datetime], apps: Sequence[str], answers: Answers) -> None:
        """Runs these apps for the hours in this order, and puts one answer into the queue."""

    def run(self, hours: Sequence[datetime], apps: Sequence[str]) -> dict[str, Any]:
        """Runs the hours undisturbed and returns the answer.

        Raises:
            TimeoutError: no answer within LONGEST_WAIT_SECONDS; with the stacks.
        """
        answers: Answers = queue.Queue()
        self.ask(hours, apps, answers)
        try:
            return answers.get(timeout=LONGEST_WAIT_SECONDS)
        except queue.Empty:
            raise TimeoutError(f"the undisturbed hours did not end:\n{self.stacks()}") from None

    def advance(self, seconds: float, share: float) -> None:
        """Waits these seconds, after which about this share of an undisturbed run is over."""
        time.sleep(seconds)

    @abstractmethod
    def stacks(self) -> str:
        """What its processes are doing."""

    @abstractmethod
    def kill(self) -> None:
        """Kills its processes."""

    @abstractmethod
    def close(self) -> None:
        """Kills its processes and the twin's."""


class ProcessRunner(Runner):
    """A process that runs hours as `streamwarden run` does."""

    run_seconds = 240

    def __init__(self, world: World) -> None:
        self._world = world
        self._log = world.folder / "runner.log"
        self._child: subprocess.Popen[str] | None = None

    @cached_property
    def twin(self) -> Runner:
        """A second process."""
        return ProcessRunner(self._world)

    @property
    def process(self) -> psutil.Process:
        assert self._child
        return psutil.Process(self._child.pid)

    def start(self) -> None:
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.runner"],
                env=environment_of(self._world),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log.open("a"),
                text=True, start_new_session=True,
            )  # fmt: skip

    def ask(self, hours: Sequence[datetime], apps: Sequence[str], answers: Answers) -> None:
        self.start()
        child = self._child
        assert child and child.stdin and child.stdout
        child.stdin.write(json.dumps({"hours": [hour.isoformat() for hour in hours], "apps": apps}) + "\n")
        child.stdin.flush()

        def listen() -> None:
            line = child.stdout.readline() if child.stdout else ""
            answers.put(json.loads(line) if line else {"gone": True})

        threading.Thread(target=listen, daemon=True).start()

    def stacks(self) -> str:
        """Stack traces of the process and its JVMs."""
        with self._log.open("a") as log:
            before = self._log.stat().st_size
            self.process.send_signal(signal.SIGUSR1)
            for jvm in jvms(self.process):
                subprocess.run(["jstack", str(jvm.pid)], stdout=log, stderr=log, timeout=30, check=False)
        return self._log.read_bytes()[before:].decode(errors="replace")

    def kill(self) -> None:
        if self._child is not None:
            with suppress(psutil.NoSuchProcess):
                for process in tree(self.process):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
            self._child.wait()
            self._child = None

    def close(self) -> None:
        self.kill()
        if "twin" in vars(self):
            self.twin.kill()


_SOON = {
    "SCHEDULER_HEARTBEAT_SEC": 1,
    "SCHEDULER_HEALTH_CHECK_THRESHOLD": 10,
    "ORPHANED_TASKS_CHECK_INTERVAL": 5,
    "TASK_INSTANCE_HEARTBEAT_SEC": 2,
    "TASK_INSTANCE_HEARTBEAT_TIMEOUT": 30,
    "TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": 5,
}
"""Settings of the scheduler: it looks for tasks of a scheduler that is gone within seconds instead of minutes."""
_RETRY_SOON = """
from datetime import timedelta
def task_policy(task):
    task.retry_delay = timedelta(seconds=3)
"""


class _Place:
    """What Airflow needs of a world."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self.folder = world, folder

    def environment(self) -> dict[str, str]:
        return {
            **self._world.environment,
            "PYTHONPATH": str(Path.cwd()),
            **{f"AIRFLOW__SCHEDULER__{name}": str(value) for name, value in _SOON.items()},
        }

    def say(self, line: str, /) -> None:
        """Prints nothing."""


class AirflowRunner(Runner):
    """A real Airflow, which runs the DAG `hourly`. Its metadata is in the PostgreSQL of the world."""

    run_seconds = 1800

    def __init__(self, world: World) -> None:
        self._world = world
        self._runs: list[str] = []

    @property
    def twin(self) -> Runner:
        """The same: a second run of the DAG waits for the first one."""
        return self

    @property
    def process(self) -> psutil.Process:
        assert self._world.airflow
        return psutil.Process(self._world.airflow.process("scheduler").pid)

    def start(self) -> None:
        if self._world.airflow is None:
            place = _Place(self._world, self._world.folder / "airflow")
            settings = place.folder / "airflow" / "config" / "airflow_local_settings.py"
            settings.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text(_RETRY_SOON)
            airflow = Airflow(place, port=0, metadata_url=embedded_url(self._world.postgres, "airflow"))
            self._world.airflow = airflow.__enter__()
            airflow.wait_until_ready()

    def ask(self, hours: Sequence[datetime], apps: Sequence[str], answers: Answers) -> None:
        """Triggers a run of the DAG for each hour; it has all apps."""
        self.start()
        airflow = self._world.airflow
        assert airflow
        runs = self._runs = [airflow.trigger(hour) for hour in hours]

        def follow() -> None:
            failed = {name: state for run in runs for name, state in self._failed(airflow, run).items()}
            answers.put({"failed": failed, "not_evaluated": self._not_evaluated(hours)})

        threading.Thread(target=follow, daemon=True).start()

    def advance(self, seconds: float, share: float) -> None:
        """Waits until this share of the tasks have ended; not if the API server does not respond."""
        with suppress(httpx.HTTPError, StreamwardenError):
            while self._ended_share() < share:
                time.sleep(0.5)

    def _ended_share(self) -> float:
        assert self._world.airflow
        tasks = [task for run in self._runs for task in self._world.airflow.progress(run)[1]]
        return sum(task["state"] in FINAL_STATES for task in tasks) / len(tasks)

    def _failed(self, airflow: Airflow, run: str) -> dict[str, str]:
        """Failed tasks of a run that failed, at its end. Meanwhile the API server may be down."""
        while self._world.airflow is airflow:
            with suppress(httpx.HTTPError, StreamwardenError):
                state, tasks = airflow.progress(run)
                if state == "success":  # even if `together` failed and each app then ran by its own task
                    return {}
                if state == "failed":
                    failed = [task for task in tasks if task["state"] in ("failed", "upstream_failed")]
                    return {str(task["task_id"]): str(task["state"]) for task in failed}
            time.sleep(1)
        return {"run": "Airflow was stopped"}

    def _not_evaluated(self, hours: Sequence[datetime]) -> dict[str, str]:
        asked = sa.text("select detector, status from detect.detector_run where hour = any(:hours)")
        with engine(self._world.url).connect() as connection:
            statuses = connection.execute(asked, {"hours": list(hours)}).tuples().all()
        return {detector: status for detector, status in statuses if status != "evaluated"}

    def stacks(self) -> str:
        """The end of each component's log."""
        logs = sorted((self._world.folder / "airflow").rglob("airflow-*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-1500:]}" for log in logs)

    def kill(self) -> None:
        if self._world.airflow is not None:
            self._world.airflow.__exit__(None, None, None)
            self._world.airflow = None

    close = kill
