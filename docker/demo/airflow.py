"""Airflow for the demo and the tests: its four processes on 127.0.0.1, metadata in the embedded PostgreSQL.

with Airflow(fleet) as airflow:      # returns at once; it comes up in the background
    airflow.run_hour(hour)           # triggers the DAG `hourly` for that hour and waits for its end
    airflow.where_to_click()
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

import httpx
import psutil
import sqlalchemy as sa
from cryptography.fernet import Fernet
from streamwarden.base.config import Warehouse
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import AIRFLOW_DATABASE, embedded_url, engine

from demo.process import Process, claim_port

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
# Their log servers would listen on all interfaces, which is not configurable; the API server reads the same folder.
_OPTIONS = {"scheduler": ["--skip-serve-logs"], "triggerer": ["--skip-serve-logs"]}
BOARDS = PROJECT_ROOT / "docker" / "grafana" / "dashboards"
USERS = {"admin": "admin", "editor": "user", "viewer": "viewer"}
PORT_VARIABLE = "DEMO_AIRFLOW_PORT"
VENV_VARIABLE = "DEMO_AIRFLOW"  # folder of a virtual environment with another Airflow
READY_SECONDS = 180.0
RUN_SECONDS = 1200.0
STOP_SECONDS = 20.0
_HEALTH = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}
# Three Spark drivers on two cores: those that read JMX mostly wait for the next sample.
_POOL = {"name": "spark", "slots": 3, "description": "Spark drivers at a time", "include_deferred": False}
_SET_POOL = {"action": "create", "entities": [_POOL], "action_on_existence": "overwrite"}
_NO_RESPONSE = "the API server does not respond"
FINAL_STATES = {"success", "failed", "skipped", "upstream_failed", "removed"}


class Place(Protocol):
    """The interface of the fleet that Airflow needs."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """Environment variables for Streamwarden, including the path of the config file."""

    def say(self, line: str, /) -> None:
        """Prints a line of progress."""


class Airflow:
    """Airflow's four processes (or the given `components`), stopped by pid at the end."""

    def __init__(
        self,
        place: Place,
        *,
        port: int | None = None,
        metadata_url: str | None = None,
        components: Sequence[str] = COMPONENTS,
    ) -> None:
        self.folder = place.folder / "airflow"
        self._place = place
        wanted = port if port is not None else int(os.environ.get(PORT_VARIABLE) or 8080)
        self.port = claim_port(wanted, "Airflow", PORT_VARIABLE)
        self.url = f"http://127.0.0.1:{self.port}"
        self._bin = Path(os.environ.get(VENV_VARIABLE) or sys.prefix).resolve() / "bin"
        self.version = _version(self._bin)
        self._metadata_url = metadata_url or embedded_url(PROJECT_ROOT / Warehouse().data_folder, self._database())
        self._components = components
        self._processes: list[Process] = []
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="airflow")
        self._started: Future[None] | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._secrets = _secrets(self.folder)
        self._started = self._starter.submit(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.shutdown()
        children = [child for process in self._processes for child in _family(process)]
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.stop(STOP_SECONDS)
        for child in psutil.wait_procs(children, timeout=2)[1]:
            child.kill()

    def run_hour(self, hour: datetime) -> None:
        """Runs the DAG `hourly` for the hour, and prints each task when it ends.

        Raises:
            StreamwardenError: the run failed, or took longer than RUN_SECONDS.
        """
        self.wait_until_ready()
        run_id = self.trigger(hour)
        self._place.say(f"Airflow {self.version} runs the hour {hour:%Y-%m-%d %H:%M} UTC")
        if (state := self._follow(run_id)) != "success":
            raise StreamwardenError(f"the hourly run ended as {state}: {self.url}/dags/hourly/runs/{run_id}")

    def trigger(self, hour: datetime) -> str:
        """Triggers a run of the DAG `hourly` for the hour and returns its id."""
        interval = {"data_interval_start": hour.isoformat(), "data_interval_end": (hour + HOUR).isoformat()}
        now = datetime.now(UTC)
        run_id = f"demo_{hour:%Y-%m-%dT%H}_{now:%H%M%S}"
        # Airflow ignores the interval without a logical date, which must be unique: an hour may be run several times.
        run = {"dag_run_id": run_id, "logical_date": now.isoformat(), **interval, "conf": {"settle": False}}
        with self._client() as client:
            _must(client.patch("/pools", json={"actions": [_SET_POOL]}))
            _must(client.patch("/dags/hourly", json={"is_paused": False}))
            return str(_must(client.post("/dags/hourly/dagRuns", json=run))["dag_run_id"])

    def progress(self, run_id: str) -> tuple[str, list[dict[str, Any]]]:
        """State of a run of the DAG `hourly`, and its task instances as in Airflow's REST API.

        Raises:
            StreamwardenError: the API server responds with an error.
            httpx.HTTPError: it does not respond.
        """
        with self._client() as client:
            state = str(_must(client.get(f"/dags/hourly/dagRuns/{run_id}"))["state"])
            tasks = _must(client.get(f"/dags/hourly/dagRuns/{run_id}/taskInstances"))["task_instances"]
        return state, tasks

    def process(self, component: str) -> Process:
        """The process of a component."""
        return next(process for process in self._processes if process.name == f"airflow-{component}")

    def where_to_click(self) -> list[str]:
        """Lines with URLs and logins for the user."""
        token = f"token: STREAMWARDEN_METRICS_TOKEN in {self._place.folder / 'environment.sh'}"
        return [
            f"Overview:           {self.url}/streamwarden/ (user admin, password {self.password('admin')})",
            f"in Airflow:         {self.url}/plugin/streamwarden",
            f"the hour's run:     {self.url}/dags/hourly",
            f"REST API:           {self.url}/streamwarden/api/v1/findings (docs/interfaces.md: token and routes)",
            f"Prometheus metrics: {self.url}/streamwarden/metrics ({token})",
            f"Grafana to import:  {BOARDS / 'fleet.json'}",
        ]

    def password(self, user: str) -> str:
        """The generated password of a user."""
        return str(json.loads((self.folder / "passwords.json").read_text())[user])

    def token(self, user: str = "admin") -> str:
        """A token for Airflow's REST API."""
        body = {"username": user, "password": self.password(user)}
        return str(
            httpx.post(f"{self.url}/auth/token", json=body, timeout=30).raise_for_status().json()["access_token"]
        )

    def wait_until_ready(self) -> None:
        """Returns when all components are healthy and the DAG `hourly` is loaded.

        Raises:
            StreamwardenError: a process ended, or Airflow is not ready in time; with the path of the log.
        """
        if self._started is None:
            raise StreamwardenError("Airflow was not started")
        self._started.result()
        _wait(self._not_ready, READY_SECONDS, self)

    def check(self) -> None:
        """Raises with the relevant line of the log if a process has ended."""
        for process in self._processes:
            process.check()

    def environment(self) -> dict[str, str]:
        """Environment variables of the processes and tasks, including secrets."""
        return {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            **_settings(self.folder, self.port),
            **self._secrets,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self._metadata("psycopg2"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": self._metadata("asyncpg"),
            **self._place.environment(),
        }

    def _start(self) -> None:
        environment = self.environment()
        _call([str(Path(sys.executable).with_name("streamwarden")), "migrate"], environment)
        self._migrate_metadata(environment)
        first, *rest = self._components
        self._launch(first, environment)
        if first == "api-server":
            self._end_leftovers()
        for component in rest:
            self._launch(component, environment)

    def _launch(self, component: str, environment: Mapping[str, str]) -> None:
        command = [str(self._bin / "airflow"), component, *_OPTIONS.get(component, [])]
        self._processes.append(Process(f"airflow-{component}", command, self.folder, environment).start())

    def _end_leftovers(self) -> None:
        """Fails unfinished runs of an earlier Airflow, which would run first and on another fleet."""
        _wait(lambda: _NO_RESPONSE if self._health() is None else "", READY_SECONDS, self)
        with self._client() as client:
            _must(client.patch("/dags/hourly", json={"is_paused": True}), also=404)
            unfinished = _must(client.get("/dags/~/dagRuns", params={"state": ["running", "queued"]}))["dag_runs"]
            for run in unfinished:
                _must(client.patch(f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}", json={"state": "failed"}))

    def _migrate_metadata(self, environment: Mapping[str, str]) -> None:
        """Migrates Airflow's metadata; takes nine seconds, so only for a new database or another version."""
        stamp = self.folder / "metadata-version"
        with engine(self._metadata_url).connect() as connection:
            is_there = connection.execute(sa.text("select to_regclass('public.alembic_version')")).scalar()
        if not is_there or not stamp.exists() or stamp.read_text() != self.version:
            _call([str(self._bin / "airflow"), "db", "migrate"], environment)
            stamp.write_text(self.version)

    def _database(self) -> str:
        """Name of the metadata database: one for each version, because Airflow cannot read that of a newer one."""
        own = _version(Path(sys.prefix) / "bin")
        return AIRFLOW_DATABASE if self.version == own else f"{AIRFLOW_DATABASE}_{self.version}"

    def _metadata(self, driver: str) -> str:
        return self._metadata_url.replace("postgresql://", f"postgresql+{driver}://", 1)

    def _not_ready(self) -> str:
        """What is not ready yet, in words; empty if everything is ready."""
        health = self._health()
        if health is None:
            return _NO_RESPONSE
        wanted = {"metadatabase", *(_HEALTH[component] for component in self._components if component in _HEALTH)}
        if unwell := sorted(part for part in wanted if health[part]["status"] != "healthy"):
            return f"unhealthy: {', '.join(unwell)}"
        if "dag-processor" not in self._components:
            return ""
        with self._client() as client:
            return "" if client.get("/dags/hourly").is_success else "the DAG `hourly` is not loaded"

    def _health(self) -> dict[str, Any] | None:
        """Airflow's health by component; None while it does not respond."""
        try:
            # The execution API is only built on its first request.
            httpx.get(f"{self.url}/execution/health", timeout=10).raise_for_status()
            return dict(httpx.get(f"{self.url}/api/v2/monitor/health", timeout=10).raise_for_status().json())
        except httpx.HTTPError:
            return None

    def _client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token()}"}
        return httpx.Client(base_url=f"{self.url}/api/v2", headers=headers, timeout=30)

    def _follow(self, run_id: str) -> str:
        printed: set[str] = set()
        deadline = time.monotonic() + RUN_SECONDS
        while time.monotonic() < deadline:
            self.check()
            state, tasks = self.progress(run_id)
            for task in sorted(tasks, key=lambda task: task["end_date"] or ""):
                if task["state"] in FINAL_STATES and task["task_id"] not in printed:
                    printed.add(task["task_id"])
                    self._print(task)
            if state in ("success", "failed"):
                return state
            time.sleep(1)
        raise StreamwardenError(f"the hourly run did not end within {RUN_SECONDS:.0f} s: {self.url}/dags/hourly")

    def _print(self, task: Mapping[str, Any]) -> None:
        if task["task_id"] == "incomplete" and task["state"] == "skipped":
            return  # skipped means that the hour is complete
        seconds = f"{task['duration']:.0f} s" if task["duration"] else ""
        self._place.say(f"{task['state']:<8} {task['task_id']} {seconds}")


def _wait(not_ready: Callable[[], str], seconds: float, airflow: Airflow) -> None:
    """Returns when `not_ready` returns an empty text; raises if a process ended, or after the timeout."""
    deadline = time.monotonic() + seconds
    while problem := not_ready():
        airflow.check()
        if time.monotonic() > deadline:
            raise StreamwardenError(f"Airflow is not ready after {seconds:.0f} s ({problem}): {airflow.folder}")
        time.sleep(0.5)


def _settings(folder: Path, port: int) -> dict[str, str]:
    """Airflow's configuration: loopback only, few workers, folders of this project."""
    url = f"http://127.0.0.1:{port}"
    sections = {
        "CORE": {
            "DAGS_FOLDER": PROJECT_ROOT / "dags",
            "PLUGINS_FOLDER": PROJECT_ROOT / "plugins",
            "LOAD_EXAMPLES": False,
            "EXECUTOR": "LocalExecutor",
            "PARALLELISM": 6,  # three Spark drivers and three evaluations; each worker is a process, even if idle
            "SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
            "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": folder / "passwords.json",
            "EXECUTION_API_SERVER_URL": f"{url}/execution/",
        },
        "API": {"HOST": "127.0.0.1", "PORT": port, "BASE_URL": url, "WORKERS": 1},
        "LOGGING": {"BASE_LOG_FOLDER": folder / "logs"},
        "SCHEDULER": {"SCHEDULER_IDLE_SLEEP_TIME": 0.5, "ENABLE_HEALTH_CHECK": False},
        "DAG_PROCESSOR": {"PARSING_PROCESSES": 1},
        "TRIGGERER": {"CAPACITY": 100},
        "USAGE_DATA_COLLECTION": {"ENABLED": False},
    }
    settings = {f"AIRFLOW__{s}__{k}": str(v) for s, values in sections.items() for k, v in values.items()}
    spark = {
        "conn_type": "spark",
        "host": "local[2]",
        "extra": {"deploy-mode": "client", "spark-binary": "spark-submit"},
    }
    return {
        **settings,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
        # The fleet's hour is triggered explicitly; Airflow schedules only later hours.
        "STREAMWARDEN_FIRST_HOUR": f"{datetime.now(UTC):%Y-%m-%dT%H}:00",
    }


def _secrets(folder: Path) -> dict[str, str]:
    """Keys as environment variables; creates `passwords.json` for the users. The files are private to the owner."""
    keys, passwords = folder / "secrets.json", folder / "passwords.json"
    if not keys.exists():
        _write_private(
            keys,
            {
                "AIRFLOW__CORE__FERNET_KEY": Fernet.generate_key().decode(),
                "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
                "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            },
        )
    if not passwords.exists():
        _write_private(passwords, {user: secrets.token_urlsafe(12) for user in USERS})
    return dict(json.loads(keys.read_text()))


def _write_private(file: Path, content: Mapping[str, str]) -> None:
    file.touch(mode=0o600)
    file.write_text(json.dumps(content))


def _version(folder: Path) -> str:
    """Version of the Airflow that is installed in the environment of the folder `bin`."""
    command = [folder / "python", "-c", "import importlib.metadata as m; print(m.version('apache-airflow'))"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise StreamwardenError(f"{VENV_VARIABLE}: {folder.parent} has no Airflow") from None


def _call(command: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise StreamwardenError(f"`{' '.join([Path(command[0]).name, *command[1:]])}` failed: {lines[-1]}")


def _must(answer: httpx.Response, also: int | None = None) -> dict[str, Any]:
    """The JSON of the response; a status other than success or `also` raises one line."""
    if answer.is_error and answer.status_code != also:
        raise StreamwardenError(
            f"Airflow responded {answer.status_code} to {answer.request.url.path}: {answer.text[:200]}"
        )
    return dict(answer.json())


def _family(process: Process) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
