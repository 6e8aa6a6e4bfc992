"""The hourly DAG in a real Airflow with real Spark jobs, one of which fails: the rest of the hour must continue.

No source of the fleet responds, so the Spark jobs are short. The failing app is one whose table rejects inserts. No
secret of the config is in a log or among the arguments of spark-submit.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from streamwarden.base.catalog import APPS, WRITERS_OF
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors

from tests.conftest import a_database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
SECRETS = {"KAFKA_PASSWORD": "kafka-s3cr3t", "JMX_PASSWORD": "jmx-s3cr3t", "JMX_URL_PASSWORD": "jmxurl-s3cr3t"}
WAREHOUSE_PASSWORD = "warehouse-s3cr3t"
CONFIG = """
kafka:
  - name: c
    bootstrap_servers: 127.0.0.1:1
    client:
      {security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: u, sasl.password: '${KAFKA_PASSWORD}'}
jmx:
  - {role: broker, cluster: c, url: 'http://127.0.0.1:1/jolokia', user: u, password: '${JMX_PASSWORD}'}
  - {role: app, app: a, cluster: c, url: 'http://u:${JMX_URL_PASSWORD}@127.0.0.1:1/app'}
gathering: {jmx_samples: 2, jmx_sample_seconds: 0.5}
"""
LAST = ("settled", "causes", "tickets", "incomplete")
FAILING, HOUR = "jvm_apps", datetime(2026, 11, 20, 5, tzinfo=UTC)
NO_RETRIES = """
def task_policy(task):
    task.retries = 0
"""
REFUSES = """
    create function public.out_of_luck() returns trigger language plpgsql
      as $$ begin raise exception 'out of luck'; end $$;
    create trigger out_of_luck before insert on metrics.jvm_app_hourly execute function public.out_of_luck()"""


class Place:
    """Replaces the fleet of the demo: a folder, and an environment whose spark-submit records its arguments."""

    def __init__(self, folder: Path, warehouse_url: str, programs: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.listening: set[str] = set()
        self._environment = {
            CONFIG_ENV: str(folder / "streamwarden.yaml"),
            # The server trusts connections through its socket, whatever the password.
            WAREHOUSE_ENV: re.sub(r"//([^:@/]+)[^@/]*@", rf"//\1:{WAREHOUSE_PASSWORD}@", warehouse_url),
            **SECRETS,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        (folder / "streamwarden.yaml").write_text(CONFIG)
        (folder / "airflow" / "config").mkdir(parents=True)  # on sys.path of every process of Airflow
        (folder / "airflow" / "config" / "airflow_local_settings.py").write_text(NO_RETRIES)

    def environment(self) -> dict[str, str]:
        return self._environment

    def say(self, line: str, /) -> None:
        self.lines.append(line)
        self.listening |= _listening()

    def states(self) -> dict[str, str]:
        """State of each task, as printed to the user."""
        lines = map(str.split, self.lines)
        return {task: state for state, task, *_ in lines if task.startswith(("gather.", "evaluate.")) or task in LAST}


@pytest.fixture
def metadata_url() -> Iterator[str]:
    """A database of this test's own for Airflow."""
    with a_database() as url:
        yield url


@pytest.fixture
def noting_spark(tmp_path: Path) -> Path:
    """A folder for PATH with a spark-submit that runs the real one and records its arguments in `submitted`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = Path(sys.executable).with_name("spark-submit")
    (folder / "spark-submit").write_text(f'#!/bin/sh\necho "$*" >> {folder}/submitted\nexec {real} "$@"\n')
    (folder / "spark-submit").chmod(0o755)
    return folder


@pytest.fixture
def refusing_table(warehouse: sa.Engine) -> Iterator[None]:
    """During the test, inserts into a table of the failing app fail."""
    with warehouse.begin() as connection:
        connection.exec_driver_sql(REFUSES)
    yield
    with warehouse.begin() as connection:  # the next test gets the same database
        connection.exec_driver_sql("drop function public.out_of_luck() cascade")


@pytest.mark.usefixtures("refusing_table")
def test_a_failed_app_blocks_only_the_detectors_that_read_its_tables(
    tmp_path: Path, warehouse: sa.Engine, warehouse_url: str, metadata_url: str, noting_spark: Path
) -> None:
    place = Place(tmp_path, warehouse_url, noting_spark)
    with Airflow(place, port=0, metadata_url=metadata_url) as airflow, pytest.raises(StreamwardenError, match="failed"):
        airflow.run_hour(HOUR)
    with warehouse.connect() as connection:
        asked = {"hour": HOUR}
        detector_runs = connection.execute(
            sa.text("select detector, status from detect.detector_run where hour = :hour"), asked
        )
        verdicts = dict(detector_runs.tuples().all())
        loads = connection.execute(sa.text("select app, status from detect.load where hour = :hour"), asked)
        ended = dict(loads.tuples().all())
    detectors = load_detectors().values()
    blocked = {d.id for d in detectors if FAILING in {app for table in d.reads for app in WRITERS_OF.get(table, ())}}
    subjects = {d.subject: {other.id for other in detectors if other.subject == d.subject} for d in detectors}
    assert place.listening == {"127.0.0.1"}
    assert ended == {app: "failed" if app == FAILING else "loaded" for app in APPS}
    submitted = [
        line.split(" --hour ")[0].split()[-1] for line in (noting_spark / "submitted").read_text().splitlines()
    ]
    assert submitted == ["together", FAILING]  # apps that were loaded together are not loaded again
    assert verdicts == {d.id: "blocked" if d.id in blocked else "evaluated" for d in detectors}
    assert _leaks(tmp_path, place) == []
    assert place.states() == {
        **{f"gather.{app}": "failed" if app == FAILING else "skipped" for app in APPS},
        **{f"evaluate.{subject}": "skipped" if ids <= blocked else "success" for subject, ids in subjects.items()},
        "gather.together": "success",
        "gather.prices": "success",
        "settled": "success",
        "causes": "success",
        "tickets": "success",
        "incomplete": "failed",
    }


def _leaks(folder: Path, place: Place) -> list[str]:
    """Secrets found in logs of Airflow, tasks, and Spark, among arguments, and in the output to the user."""
    texts = {file: file.read_text(errors="replace") for file in [*folder.rglob("*.log"), folder / "bin" / "submitted"]}
    assert any("attempt=" in str(file) for file in texts), "no log of a task was searched"
    assert "out of luck" in "".join(texts.values())
    texts[Path("output")] = "\n".join(place.lines)
    secrets = (*SECRETS.values(), WAREHOUSE_PASSWORD)
    return [f"{file}: {secret}" for file, text in texts.items() for secret in secrets if secret in text]


def _listening() -> set[str]:
    """Addresses at which processes of Airflow, their tasks, and Spark accept connections."""
    found: set[str] = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            # A process of Airflow that sets its title overwrites its environment. The others are of another test.
            title = " ".join(process.cmdline())  # empty once it has ended
            if not title.startswith("airflow ") and "AIRFLOW_HOME" not in process.environ():
                continue
            connections = process.net_connections(kind="inet")
            found |= {one.laddr.ip.removeprefix("::ffff:") for one in connections if one.status == psutil.CONN_LISTEN}
    return found
