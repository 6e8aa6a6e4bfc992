"""Gathers, judges and files one hour: Spark apps → detectors → tickets.

The graph is drawn from what the apps write (`streamwarden/base/catalogue.py`) and what the detectors read (headers in
`sql/detectors/`). A failed app blocks only the detectors that read its tables: they are *skipped* and say why, all
others go on, tickets are brought in line, and the run ends as failed (`incomplete`).

* A run is about the hour that begins at its data interval's start. It waits until the hour is over and CloudWatch has
  settled; trigger it with `{"settle": false}` to judge an hour as it stands.
* Any hour can be run again, with the same result: clear its run. Past hours: `airflow backfill create --dag-id hourly
  --max-active-runs 1 --from-date … --to-date …` (both hours included).
* Spark runs where the connection `spark_default` says; the pool `spark` bounds how many drivers run at once
  (`airflow pools set spark 3 "Spark drivers at a time"`).
* Hours before `$STREAMWARDEN_FIRST_HOUR` (default: 2026) are never scheduled by themselves.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TaskGroup, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from streamwarden.base.catalogue import APPS, SparkApp
from streamwarden.base.hours import parse_hour
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.detectors.load import load_detectors
from streamwarden.operators import SettledHour, hour_of

from spark_apps.runtime.class_archive import driver_java_options

HOUR = "{{ hour(dag_run) }}"
PRICES = "inventory.ebs_price"
# spark-submit puts the script's folder first on sys.path, where `jars.py` or `session.py` would shadow others.
SPARK_ENVIRONMENT = {"PYTHONSAFEPATH": "1", "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}


def gather(app: SparkApp) -> SparkSubmitOperator:
    """The task that runs an app."""
    return SparkSubmitOperator(
        task_id=app.name,
        doc_md=f"{app.title}.\n\nWrites {', '.join(f'`{table}`' for table in app.writes)}.",
        conn_id="spark_default",
        application=str(PROJECT_ROOT / "spark_apps" / "submit.py"),
        application_args=[app.name, "--hour", HOUR],
        name=f"streamwarden-{app.name}",
        conf={"spark.driver.extraJavaOptions": driver_java_options()},
        env_vars=SPARK_ENVIRONMENT,
        pool="spark",
        priority_weight=2 if app.mostly_waits else 1,
        weight_rule="absolute",
        execution_timeout=timedelta(minutes=25),
    )


@task
def prices() -> str:
    """Reads the table of EBS prices, so that a new one takes effect with the next hour."""
    from streamwarden.base.config import load_config
    from streamwarden.store.migrate import migrated_warehouse
    from streamwarden.store.prices import load_prices

    config = load_config()
    return f"{len(load_prices(migrated_warehouse(config), config))} regions"


@task(trigger_rule="all_done")
def judge(detector_id: str, hour: str) -> str:
    """Judges the hour with one detector; skipped where its tables weren't loaded."""
    from streamwarden.base.config import load_config
    from streamwarden.detectors import evaluate
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    detector = load_detectors(config=config).get(detector_id)
    if detector is None:
        raise AirflowSkipException(f"{detector_id} is switched off in the config")
    judgement = evaluate(migrated_warehouse(config), detector, parse_hour(hour), config)
    if judgement.status == "blocked":
        raise AirflowSkipException(f"blocked: {judgement.reason}")
    if judgement.status == "failed":
        raise AirflowFailException(judgement.reason)
    return f"{judgement.alarms} alarm, {judgement.oks} ok, {judgement.skips} can't be judged"


@task(trigger_rule="all_done")
def tickets() -> str:
    """Brings tickets in line with all that was judged, and tells the tracker."""
    from streamwarden.base.config import load_config
    from streamwarden.store.migrate import migrated_warehouse
    from streamwarden.tickets import reconcile_and_deliver

    config = load_config()
    return reconcile_and_deliver(migrated_warehouse(config), config, load_detectors(config=config))


@task(trigger_rule="one_failed", retries=0)
def incomplete() -> None:
    """Fails the run when any task before it failed, though tickets went on with what there was."""
    raise AirflowFailException("The hour is incomplete: see the failed tasks. Clear them when they are mended.")


with DAG(
    dag_id="hourly",
    description="Gathers, judges and files one hour",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=parse_hour(os.environ.get("STREAMWARDEN_FIRST_HOUR", "2026-01-01T00:00")),
    catchup=False,
    max_active_runs=1,  # counters are compared with those of the hour before
    params={
        "settle": Param(True, type="boolean", description="Wait until the hour is over and CloudWatch has settled.")
    },
    user_defined_macros={"hour": hour_of},
    default_args={
        "owner": "streamwarden",
        "retries": 2,
        "retry_delay": timedelta(seconds=20),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=5),
        "execution_timeout": timedelta(minutes=10),
    },
    tags=["streamwarden"],
) as dag:
    settled = SettledHour(task_id="settled", doc_md=SettledHour.__doc__, execution_timeout=None)
    with TaskGroup("gather"):
        gathered: dict[str, Any] = {name: gather(app) for name, app in APPS.items()} | {"prices": prices()}
    settled >> list(gathered.values())

    filed = tickets()
    judged = []
    detectors = load_detectors()
    with TaskGroup("judge"):
        for subject in sorted({detector.subject for detector in detectors.values()}):
            with TaskGroup(subject):
                for detector in (d for d in detectors.values() if d.subject == subject):
                    about = f"**{detector.title}**\n\n{detector.runbook}"
                    verdict = judge.override(task_id=detector.id, doc_md=about)(detector.id, HOUR)
                    sources = [*detector.apps, *(["prices"] if PRICES in detector.reads else [])]
                    [gathered[source] for source in sources] >> verdict
                    judged.append(verdict)
    list(gathered.values()) >> filed
    judged >> filed
    [settled, *gathered.values(), *judged, filed] >> incomplete()
