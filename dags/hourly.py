"""One hour: Spark apps gather data → detectors evaluate it → causes are ranked → tickets are updated.

The dependencies are in `streamwarden.dag_graph`. A failed app blocks only the detectors that read its tables. Tickets
are reconciled even then, and the run fails (`incomplete`). The task `together` runs the small apps in one driver; each
app's own task is skipped if the app was loaded there. To load one app again, clear its task.

* A run covers the hour that begins at the start of its data interval. The run waits until the hour is over and the
  data of CloudWatch is complete. To evaluate an hour at once, trigger the DAG with `{"settle": false}`.
* A task under `evaluate` runs the detectors of a subject, with one line for each in its log. The task is skipped if all
  its detectors were blocked, and fails if one of them failed.
* Hours are gathered one at a time, as counters are compared with those of the previous hour: scheduled runs and
  backfills wait for each other.
* Clear a run to repeat its hour; the result is the same. For past hours, backfill: `airflow backfill create --dag-id
  hourly --max-active-runs 1 --from-date … --to-date …` (both hours included).
* The connection `spark_default` sets the Spark master. The pool `spark` limits the number of concurrent drivers
  (`airflow pools set spark 3 "Spark drivers at a time"`).
* Hours before `$STREAMWARDEN_FIRST_HOUR` (default: 2026) are not scheduled.
"""

from __future__ import annotations

import os

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TaskGroup, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import parse_hour
from streamwarden.dag_graph import hour_graph
from streamwarden.detectors.load import checked, load_detectors
from streamwarden.operators import DEFAULT_ARGS, SettledHour, SparkAppOperator, SparkTogetherOperator, hour_of

from spark_apps.runtime.class_archive import driver_java_options

HOUR = "{{ hour(dag_run) }}"
TOGETHER_CONF = {"spark.driver.extraJavaOptions": driver_java_options()}
ALONE_CONF = {"spark.driver.extraJavaOptions": driver_java_options(compiled_well=True)}  # mostly large apps run alone


@task
def prices() -> str:
    """Loads the EBS price table into the warehouse; a changed table takes effect in the next run."""
    from streamwarden.pipeline import load_prices, migrated_warehouse
    from streamwarden.rendering.readable import counted

    config = load_config()
    return counted(len(load_prices(migrated_warehouse(config), config)), "region")


@task(trigger_rule="all_done")
def evaluate(subject: str, hour: str) -> str:
    """Evaluates the detectors of a subject for the hour, one after the other; returns the status of each.

    Raises:
        StreamwardenError: a detector failed, or the header and the SQL of one do not fit.
        AirflowSkipException: none was evaluated: they were blocked, or are off in the config.
    """
    from streamwarden import pipeline

    config = load_config()
    enabled = load_detectors(config=config, check=False).values()
    detectors = [checked(detector) for detector in enabled if detector.subject == subject]
    warehouse = pipeline.migrated_warehouse(config)
    detector_runs = pipeline.evaluate_detectors(warehouse, detectors, parse_hour(hour), config, pipeline.log_step)
    what = "; ".join(f"{detector_run.detector} {detector_run.status}" for detector_run in detector_runs)
    statuses = {detector_run.status for detector_run in detector_runs}
    if "failed" in statuses:
        raise StreamwardenError(what)
    if "evaluated" not in statuses:
        raise AirflowSkipException(what or "all detectors of this subject are off in the config")
    return what


@task(trigger_rule="all_done")
def causes(hour: str) -> str:
    """Ranks which firing finding may have caused which."""
    from streamwarden import pipeline

    config = load_config()
    params = pipeline.rule.params_in_force(config)
    detectors = load_detectors(config=config, check=False)
    return pipeline.find_causes(pipeline.migrated_warehouse(config), detectors, parse_hour(hour), params)


@task(trigger_rule="all_done")
def tickets() -> str:
    """Reconciles tickets with all evaluations, and delivers the changes to the trackers."""
    from streamwarden.pipeline import migrated_warehouse, reconcile_and_deliver

    config = load_config()
    return reconcile_and_deliver(migrated_warehouse(config), config, load_detectors(config=config, check=False))


@task(trigger_rule="one_failed", retries=0)
def incomplete() -> None:
    """Fails the run if any upstream task failed, because `tickets` succeeds even then."""
    raise AirflowFailException("The hour is incomplete: see the failed tasks. Clear them after fixing the problem.")


with DAG(
    dag_id="hourly",
    description="Gathers data of one hour, evaluates detectors, updates tickets",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=parse_hour(os.environ.get("STREAMWARDEN_FIRST_HOUR", "2026-01-01T00:00")),
    catchup=False,
    max_active_runs=1,  # counters are compared with those of the previous hour
    params={"settle": Param(True, type="boolean", description="Wait until the hour is over and has settled.")},
    user_defined_macros={"hour": hour_of},
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    detectors = list(load_detectors(check=False).values())
    settled = SettledHour(task_id="settled", doc_md=SettledHour.__doc__, execution_timeout=None)
    tasks, gathering, evaluating = {}, TaskGroup("gather"), TaskGroup("evaluate")
    together = SparkTogetherOperator(hour=HOUR, conf=TOGETHER_CONF, task_group=gathering)
    for step, waits_for in hour_graph(detectors).items():
        match step.split("."):
            case "gather", "prices":
                tasks[step] = prices.override(task_group=gathering)()
            case "gather", app:
                tasks[step] = SparkAppOperator(app=app, hour=HOUR, conf=ALONE_CONF, task_group=gathering)
                settled >> together >> tasks[step]
            case "evaluate", subject:
                titles = "\n".join(f"* {d.title} (`{d.id}`)" for d in detectors if d.subject == subject)
                tasks[step] = evaluate.override(task_id=subject, task_group=evaluating, doc_md=titles)(subject, HOUR)
            case ["causes"]:
                tasks[step] = causes(HOUR)
            case _:
                tasks[step] = tickets()
        ([tasks[name] for name in waits_for] or settled) >> tasks[step]
    [settled, *tasks.values()] >> incomplete()
