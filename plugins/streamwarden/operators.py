"""Building blocks of the DAGs: default arguments, operators for Spark apps, the wait for late data."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, DownstreamTasksSkipped
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator

try:
    from airflow.sdk import CronDataIntervalTimetable as CronDataIntervalTimetable
except ImportError:  # Airflow 3.1
    from airflow.timetables.interval import (  # type: ignore[assignment]
        CronDataIntervalTimetable as CronDataIntervalTimetable,
    )

from streamwarden.base.catalog import APPS, TOGETHER
from streamwarden.base.config import load_config
from streamwarden.base.hours import HOUR, last_full_hour, parse_hour
from streamwarden.base.paths import SPARK_APPS

DEFAULT_ARGS = {
    "owner": "streamwarden",
    "retries": 2,
    "retry_delay": timedelta(seconds=20),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=5),
    "execution_timeout": timedelta(minutes=30),
}

TURN = timedelta(seconds=15)
"""How often a run that waits for another looks whether that has ended."""

# spark-submit puts the script's folder first on sys.path, where `jars.py` or `session.py` would shadow other modules.
SPARK_ENVIRONMENT = {"PYTHONSAFEPATH": "1", "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}


class SparkHourOperator(SparkSubmitOperator):
    """Submits `spark_apps/submit.py` for an hour, to the master of the connection `spark_default`."""

    def __init__(self, *, what: str, hour: str, **task: Any) -> None:
        super().__init__(
            task_id=what,
            conn_id="spark_default",
            application=str(SPARK_APPS / "submit.py"),
            application_args=[what, "--hour", hour],
            name=f"streamwarden-{what}",
            env_vars=SPARK_ENVIRONMENT,
            pool="spark",
            weight_rule="absolute",
            **task,
        )


class SparkTogetherOperator(SparkHourOperator):
    """Runs the small apps in one driver, because starting a driver for each takes longer than their work.

    The tasks of the apps that were loaded are skipped. There are no retries: apps that were too large or failed are run
    by their own tasks.
    """

    def __init__(self, **task: Any) -> None:
        super().__init__(what=TOGETHER, doc_md=self.__doc__, retries=0, **task)

    def execute(self, context: Any) -> None:
        """Skips the tasks of loaded apps, also if another app failed. Each can still be cleared: then it runs.

        Raises:
            AirflowException: Spark failed before any app was loaded.
        """
        began, hour = datetime.now(UTC), parse_hour(hour_of(context["dag_run"]))
        try:
            super().execute(context)
        except AirflowException:
            if not _loaded_since(began, hour):
                raise
            self.log.warning("An app failed (see above). Apps that were not loaded run by their own tasks.")
        loaded = _loaded_since(began, hour)
        raise DownstreamTasksSkipped(tasks=[task for task in self.downstream_task_ids if task.split(".")[-1] in loaded])


class SparkAppOperator(SparkHourOperator):
    """Runs an app; skipped if `together` has loaded it."""

    def __init__(self, *, app: str, **task: Any) -> None:
        line = APPS[app]
        super().__init__(
            what=app,
            doc_md=f"{line.title}.\n\nWrites {', '.join(f'`{table}`' for table in line.writes)}.",
            priority_weight=2 if line.mostly_waits else 1,
            # Runs whether `together` succeeded or failed, but not if `settled` failed.
            trigger_rule="all_done_min_one_success",
            **task,
        )


def _loaded_since(moment: datetime, hour: datetime) -> list[str]:
    """Names of the apps that have loaded the hour since the moment."""
    from streamwarden.base.warehouse import open_warehouse
    from streamwarden.store.queries import ask

    with open_warehouse(load_config()).connect() as connection:
        loads = ask(connection, "pages/loads", hour=hour)
    return [load["app"] for load in loads if load["status"] == "loaded" and load["started_at"] >= moment]


def hour_of(dag_run: Any) -> str:
    """Start of a run's hour in ISO 8601: of its data interval, or without one the last full hour before `run_after`.

    Raises:
        StreamwardenError: the data interval does not begin at a full hour.
    """
    start = dag_run.data_interval_start or last_full_hour(dag_run.run_after)
    return parse_hour(start.isoformat()).isoformat()


def settled_at(hour: datetime, settle_minutes: int) -> datetime:
    """When the data of an hour is complete: CloudWatch delivers data points late."""
    return hour + HOUR + timedelta(minutes=settle_minutes)


class SettledHour(BaseOperator):
    """Waits until the data of the hour is complete, and until it is this run's turn. Deferrable: no worker is occupied.

    Past hours do not wait for data. A backfill and the schedule wait for each other.
    """

    def execute(self, context: Any) -> None:
        """Defers until the hour has settled (not with the DAG's param `settle` = false), and then until its turn.

        Raises:
            StreamwardenError: the warehouse has to be migrated first.
        """
        from streamwarden.store.migrate import migrated_warehouse
        from streamwarden.store.turns import leave_turn

        config = load_config()
        leave_turn(migrated_warehouse(config), context["dag_run"].run_id)
        if not context["params"]["settle"]:
            return self.has_settled(context)
        hour = parse_hour(hour_of(context["dag_run"]))
        moment = settled_at(hour, config.gathering.settle_minutes)
        if moment > datetime.now(UTC):
            self.log.info("Waiting until %s: the data of the hour %s is complete then.", moment, hour)
            self.defer(trigger=DateTimeTrigger(moment=moment), method_name="has_settled")
        return self.has_settled(context)

    def has_settled(self, context: Any, event: Any = None) -> None:
        """Called when the data is complete: defers as long as a run that asked before is active."""
        from streamwarden.base.warehouse import open_warehouse
        from streamwarden.store.turns import waits_for

        dag_run, count = context["dag_run"], context["ti"].get_dr_count

        def is_active(run_id: str) -> bool:
            return bool(count(dag_id=dag_run.dag_id, run_ids=[run_id], states=["running"]))

        if other := waits_for(open_warehouse(load_config()), dag_run.run_id, is_active):
            self.log.info("Waiting for the run %s: hours are gathered one at a time.", other)
            self.defer(trigger=DateTimeTrigger(moment=datetime.now(UTC) + TURN), method_name="has_settled")
