"""Every DAG is importable, light, documented, and retried; the hourly graph follows from tables read and written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.detectors import load_detectors

DAGS = PROJECT_ROOT / "dags"
HEAVY = {"pyspark", "boto3", "botocore", "confluent_kafka", "pandas", "numpy", "altair", "pyarrow", "aiokafka"}


@pytest.fixture(scope="module")
def dags(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """All DAGs as Airflow parses them. The environment is set before Airflow is imported first."""
    home = tmp_path_factory.mktemp("airflow")
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        from airflow.dag_processing.dagbag import DagBag

        bag = DagBag(dag_folder=DAGS)
        assert bag.import_errors == {}
        yield dict(bag.dags)


def test_there_are_the_dags_that_the_design_names(dags: dict[str, Any]) -> None:
    reports = {"daily_report", "weekly_report", "monthly_report"}
    assert set(dags) == {"hourly", "housekeeping", "monthly_prices", *reports}
    assert {dag_id: Path(dag.fileloc).stem for dag_id, dag in dags.items()} == {dag_id: dag_id for dag_id in dags}


def test_every_dag_is_documented_and_has_no_catchup(dags: dict[str, Any]) -> None:
    for dag in dags.values():
        assert dag.doc_md and dag.description, dag.dag_id
        assert not dag.catchup, dag.dag_id
        assert dag.max_active_runs == 1, dag.dag_id
        assert "streamwarden" in dag.tags, dag.dag_id


def test_every_task_is_retried_bounded_and_owned(dags: dict[str, Any]) -> None:
    for dag in dags.values():
        for task in dag.tasks:
            assert task.owner == "streamwarden", task.task_id
            # What `together` doesn't load, each app's own task tries again.
            assert task.retries >= 2 or task.task_id in ("incomplete", "gather.together"), task.task_id
            # The wait for an hour to settle isn't bound: it costs no worker.
            assert task.execution_timeout or task.task_id == "settled", task.task_id


def test_an_hour_of_a_run_is_its_data_interval_of_one_hour(dags: dict[str, Any]) -> None:
    from airflow.sdk import CronDataIntervalTimetable

    assert dags["hourly"].schedule == CronDataIntervalTimetable("0 * * * *", timezone="UTC")


def test_each_app_is_a_spark_job_of_the_hour_in_the_pool(dags: dict[str, Any]) -> None:
    tasks = {task.task_id: task for task in dags["hourly"].tasks}
    for name in (*APPS, "together"):
        task = tasks[f"gather.{name}"]
        assert task.application == str(PROJECT_ROOT / "spark_apps" / "submit.py")
        assert task.application_args == [name, "--hour", "{{ hour(dag_run) }}"]
        assert (task._conn_id, task.pool) == ("spark_default", "spark")
        assert task.env_vars["PYTHONSAFEPATH"] == "1"
        assert task.upstream_task_ids == ({"settled"} if name == "together" else {"settled", "gather.together"})


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("loaded", [["brokers", "machines"], []])
def test_tasks_of_apps_that_were_loaded_together_are_skipped(
    dags: dict[str, Any], monkeypatch: pytest.MonkeyPatch, fails: bool, loaded: list[str]
) -> None:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk.exceptions import AirflowException, DownstreamTasksSkipped
    from streamwarden import operators

    def submit(*_: Any) -> None:
        if fails:
            raise AirflowException("Cannot execute spark-submit: exit code 1")

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)
    monkeypatch.setattr(operators, "_loaded_since", lambda moment, hour: loaded)
    run = SimpleNamespace(data_interval_start=datetime(2026, 11, 20, 5, tzinfo=UTC))
    with pytest.raises(AirflowException) as raised:
        dags["hourly"].get_task("gather.together").execute({"dag_run": run})
    if fails and not loaded:
        assert "exit code 1" in str(raised.value)
    else:
        assert isinstance(raised.value, DownstreamTasksSkipped)
        assert sorted(raised.value.tasks) == [f"gather.{app}" for app in loaded]


def test_a_subject_waits_for_the_apps_that_its_detectors_read(dags: dict[str, Any]) -> None:
    tasks = {task.task_id: task for task in dags["hourly"].tasks if task.task_id.startswith("evaluate.")}
    folders = (PROJECT_ROOT / "sql" / "detectors").glob("*/*.sql")
    assert set(tasks) == {f"evaluate.{file.parent.name}" for file in folders}
    # By ebs_volume_starving; by consumer_rogue and consumer_group_lagging; by its two kinds of rules about topics.
    assert tasks["evaluate.storage"].upstream_task_ids >= {"gather.ebs_volumes", "gather.prices"}
    assert tasks["evaluate.consumers"].upstream_task_ids >= {"gather.brokers", "gather.consumer_groups"}
    gathered = {"brokers", "confluent", "consumer_groups", "ebs_volumes", "jvm_apps", "kubernetes", "msk"}
    assert tasks["evaluate.topics"].upstream_task_ids == {f"gather.{app}" for app in gathered}
    for task in tasks.values():
        assert task.trigger_rule.value == "all_done"  # a failed app is noted by the detectors it blocks


def test_tickets_come_last_whatever_failed_and_a_failure_fails_the_run(dags: dict[str, Any]) -> None:
    dag = dags["hourly"]
    tickets, incomplete = dag.get_task("tickets"), dag.get_task("incomplete")
    every = {task.task_id for task in dag.tasks} - {"gather.together"}  # each app's own task repairs what failed there
    assert tickets.upstream_task_ids == every - {"settled", "tickets", "incomplete"}
    assert tickets.trigger_rule.value == "all_done"
    assert incomplete.upstream_task_ids == every - {"incomplete"}
    assert incomplete.trigger_rule.value == "one_failed"


def test_a_dag_file_imports_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import runpy, sys, time\nimport airflow.sdk\nbefore = set(sys.modules)\nstarted = time.perf_counter()\n"
        "for file in sys.argv[1:]: runpy.run_path(file)\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        f"print(sorted(new & {HEAVY!r}), round(time.perf_counter() - started, 3))"
    )
    files = [str(file) for file in sorted(DAGS.glob("*.py"))]
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run(
        [sys.executable, "-c", script, *files], env=environment, capture_output=True, text=True, check=True
    )
    heavy, seconds = done.stdout.strip().splitlines()[-1].rsplit(" ", 1)
    assert heavy == "[]"
    assert float(seconds) < 20  # it takes 0.3 s; a machine under load may be slow, a network call would be slower


def test_airflow_loads_only_the_plugin_file_under_plugins() -> None:
    """Airflow executes every other .py there and registers it under its bare file name."""
    ignored = [
        line.rstrip("/")
        for line in (PROJECT_ROOT / "plugins" / ".airflowignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    left = [path.name for path in (PROJECT_ROOT / "plugins").glob("*") if path.name not in ignored]
    assert {name for name in left if not name.startswith((".", "__"))} == {"streamwarden_plugin.py"}


def test_no_secret_reaches_a_spark_argument(dags: dict[str, Any]) -> None:
    for name in (*APPS, "together"):
        task = dags["hourly"].get_task(f"gather.{name}")
        shown = " ".join([*task.application_args, *map(str, task.conf.values()), *task.env_vars.values()])
        assert not re.search(r"password|secret|://[^/]*:[^/]*@", shown, re.IGNORECASE)


def test_the_hour_of_a_run(dags: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    from streamwarden.base.errors import StreamwardenError
    from streamwarden.operators import hour_of, settled_at

    begin = datetime(2026, 11, 21, 5, tzinfo=UTC)
    assert hour_of(SimpleNamespace(data_interval_start=begin, run_after=None)) == "2026-11-21T05:00:00+00:00"
    # Triggered manually without a date: the last full hour.
    by_hand = SimpleNamespace(data_interval_start=None, run_after=begin.replace(minute=40))
    assert hour_of(by_hand) == "2026-11-21T04:00:00+00:00"
    with pytest.raises(StreamwardenError, match="must be the start of an hour, like 2026-11-21T05:00"):
        hour_of(SimpleNamespace(data_interval_start=begin.replace(minute=7), run_after=None))
    assert settled_at(begin, 10) == datetime(2026, 11, 21, 6, 10, tzinfo=UTC)


def test_a_detector_that_does_not_fit_fails_the_task_of_its_subject(
    dags: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = dags["hourly"].get_task("evaluate.brokers").python_callable
    known = load_detectors()
    broken = next(detector for detector in known.values() if detector.subject == "brokers")
    known[broken.id] = replace(broken, key_metrics=("no_such_metric",))
    monkeypatch.setitem(evaluate.__globals__, "load_config", Config)
    monkeypatch.setitem(evaluate.__globals__, "load_detectors", lambda **_: known)
    with pytest.raises(StreamwardenError, match=f"{broken.id}.*no_such_metric"):
        evaluate("brokers", "2026-11-21T05:00")


def test_parsing_is_quick_once_airflow_is_there(dags: dict[str, Any]) -> None:
    import runpy

    started = time.process_time()
    runpy.run_path(str(DAGS / "hourly.py"))
    assert time.process_time() - started < 3  # CPU seconds; it takes 0.05
