"""Gathers, judges and files one hour: Spark apps → detectors → causes → tickets.

The graph is `streamwarden.dag_graph`: what the apps write, what the detectors read. A failed app blocks only the detectors
that read its tables; tickets are brought in line all the same, and the run ends as failed (`incomplete`). `together`
comes first: it runs the small apps in one driver; the task of each runs only what wasn't loaded there.

* A run is about the hour that begins at its data interval's start. It waits until the hour is over and CloudWatch has
  settled; trigger it with `{"settle": false}` to judge an hour as it stands.
* A task under `judge` runs the detectors of a subject; its log has a line for each. It is skipped when none of them
  could judge, and failed when one of them failed.
* Any hour can be run again, with the same result: clear its run. Past hours: `airflow backfill create --dag-id hourly
  --max-active-runs 1 --from-date … --to-date …` (both hours included).
* Spark runs where the connection `spark_default` says; the pool `spark` bounds how many drivers run at once
  (`airflow pools set spark 3 "Spark drivers at a time"`).
* Hours before `$STREAMWARDEN_FIRST_HOUR` (default: 2026) are never scheduled by themselves.
"""

from __future__ import annotations

import os

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TaskGroup, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import parse_hour
from streamwarden.dag_graph import hour_graph
from streamwarden.detectors.load import load_detectors
from streamwarden.operators import DEFAULT_ARGS, SettledHour, SparkAppOperator, SparkTogetherOperator, hour_of

from spark_apps.runtime.class_archive import driver_java_options

HOUR = "{{ hour(dag_run) }}"
TOGETHER_CONF = {"spark.driver.extraJavaOptions": driver_java_options()}
ALONE_CONF = {"spark.driver.extraJavaOptions": driver_java_options(compiled_well=True)}  # mostly of large apps


@task
def prices() -> str:
    """Reads the table of EBS prices, so that a new one takes effect with the next hour."""
    from streamwarden.pipeline import load_prices, migrated_warehouse

    config = load_config()
    return f"{len(load_prices(migrated_warehouse(config), config))} regions"


@task(trigger_rule="all_done")
def judge(subject: str, hour: str) -> str:
    """Judges the hour with the detectors of a subject, one after the other."""
    from streamwarden import pipeline

    config = load_config()
    detectors = [d for d in load_detectors(config=config).values() if d.subject == subject]
    detector_runs = pipeline.judge(pipeline.migrated_warehouse(config), detectors, parse_hour(hour), config, print)
    what = "; ".join(f"{detector_run.detector} {detector_run.status}" for detector_run in detector_runs)
    statuses = {detector_run.status for detector_run in detector_runs}
    if "failed" in statuses:
        raise StreamwardenError(what)
    if "evaluated" not in statuses:
        raise AirflowSkipException(what or "all of them are switched off in the config")
    return what


@task(trigger_rule="all_done")
def causes(hour: str) -> str:
    """Weighs which firing finding may have caused which."""
    from streamwarden import pipeline

    config = load_config()
    params = pipeline.rule.params_in_force(config)
    return pipeline.find_causes(
        pipeline.migrated_warehouse(config), load_detectors(config=config), parse_hour(hour), params
    )


@task(trigger_rule="all_done")
def tickets() -> str:
    """Brings tickets in line with all that was judged, and tells the tracker."""
    from streamwarden.pipeline import migrated_warehouse, reconcile_and_deliver

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
    params={"settle": Param(True, type="boolean", description="Wait until the hour is over and has settled.")},
    user_defined_macros={"hour": hour_of},
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    detectors = list(load_detectors().values())
    settled = SettledHour(task_id="settled", doc_md=SettledHour.__doc__, execution_timeout=None)
    tasks, gathering, judging = {}, TaskGroup("gather"), TaskGroup("judge")
    together = SparkTogetherOperator(hour=HOUR, conf=TOGETHER_CONF, task_group=gathering)
    for step, waits_for in hour_graph(detectors).items():
        match step.split("."):
            case "gather", "prices":
                tasks[step] = prices.override(task_group=gathering)()
            case "gather", app:
                tasks[step] = SparkAppOperator(app=app, hour=HOUR, conf=ALONE_CONF, task_group=gathering)
                settled >> together >> tasks[step]
            case "judge", subject:
                resource = "\n".join(f"* {d.title} (`{d.id}`)" for d in detectors if d.subject == subject)
                tasks[step] = judge.override(task_id=subject, task_group=judging, doc_md=resource)(subject, HOUR)
            case ["causes"]:
                tasks[step] = causes(HOUR)
            case _:
                tasks[step] = tickets()
        ([tasks[name] for name in waits_for] or settled) >> tasks[step]
    [settled, *tasks.values()] >> incomplete()
