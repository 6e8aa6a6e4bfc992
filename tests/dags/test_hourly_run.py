"""The hourly DAG in a real Airflow with real Spark jobs, one of which fails: the rest of the hour must go on.

The fleet is empty, so that the Spark jobs are short; the failing app is one whose spark-submit ends with code 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from streamwarden.base.catalogue import APPS, WRITER_OF
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors

from tests.conftest import a_database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
LAST = ("settled", "causes", "tickets", "incomplete")
FAILING, HOUR = "jvm_apps", datetime(2026, 11, 20, 5, tzinfo=UTC)


class Place:
    """Stands for the demo's fleet: a folder, and an environment whose spark-submit fails for one app."""

    def __init__(self, folder: Path, warehouse_url: str, programs: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.listening: set[str] = set()
        self._environment = {
            CONFIG_ENV: str(folder / "streamwarden.yaml"),
            WAREHOUSE_ENV: warehouse_url,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        (folder / "streamwarden.yaml").write_text("tickets: {trackers: {}}\n")

    def environment(self) -> dict[str, str]:
        return self._environment

    def say(self, line: str, /) -> None:
        self.said.append(line)
        self.listening |= _listening()

    def states(self) -> dict[str, str]:
        """State of each task, as it was told to the user."""
        return {words[1]: words[0] for words in map(str.split, self.said) if "." in words[1] or words[1] in LAST}


@pytest.fixture
def metadata_url() -> Iterator[str]:
    """A database of this test's own for Airflow."""
    with a_database() as url:
        yield url


@pytest.fixture
def broken_spark(tmp_path: Path) -> Path:
    """A folder for PATH with a spark-submit that fails for one app and is the real one for all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = Path(sys.executable).with_name("spark-submit")
    script = f'#!/bin/sh\ncase "$*" in *" {FAILING} "*) echo "out of luck" >&2; exit 1;; esac\nexec {real} "$@"\n'
    (folder / "spark-submit").write_text(script)
    (folder / "spark-submit").chmod(0o755)
    return folder


def test_a_failed_app_blocks_only_the_detectors_that_read_its_tables(
    tmp_path: Path, warehouse: sa.Engine, warehouse_url: str, metadata_url: str, broken_spark: Path
) -> None:
    place = Place(tmp_path, warehouse_url, broken_spark)
    with Airflow(place, port=0, metadata_url=metadata_url) as airflow, pytest.raises(StreamwardenError, match="failed"):
        airflow.run_hour(HOUR)
    with warehouse.connect() as connection:
        asked = {"hour": HOUR}
        judgements = connection.execute(
            sa.text("select detector, status from detect.judgement where hour = :hour"), asked
        )
        verdicts = dict(judgements.tuples().all())
        loads = set(connection.execute(sa.text("select app from detect.load where hour = :hour"), asked).scalars())
    detectors = load_detectors().values()
    blocked = {d.id for d in detectors if FAILING in {WRITER_OF.get(table) for table in d.reads}}
    subjects = {d.subject: {other.id for other in detectors if other.subject == d.subject} for d in detectors}
    assert place.listening == {"127.0.0.1"}
    assert loads == set(APPS) - {FAILING}
    assert verdicts == {d.id: "blocked" if d.id in blocked else "judged" for d in detectors}
    assert place.states() == {
        **{f"gather.{app}": "failed" if app == FAILING else "success" for app in APPS},
        **{f"judge.{subject}": "skipped" if ids <= blocked else "success" for subject, ids in subjects.items()},
        "gather.prices": "success",
        "settled": "success",
        "causes": "success",
        "tickets": "success",
        "incomplete": "failed",
    }


def _listening() -> set[str]:
    """Addresses at which Airflow's processes, their tasks and Spark accept connections."""
    found: set[str] = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "AIRFLOW_HOME" not in process.environ():  # of another test
                continue
            connections = process.net_connections(kind="inet")
            found |= {one.laddr.ip.removeprefix("::ffff:") for one in connections if one.status == psutil.CONN_LISTEN}
    return found
