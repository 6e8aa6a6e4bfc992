"""What the DAGs need beyond Airflow's own operators: the hour a run is about, and the wait until it has settled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator

from streamwarden.base.config import load_config
from streamwarden.base.hours import HOUR, last_full_hour, parse_hour


def hour_of(dag_run: Any) -> str:
    """Start of the hour that a run is about, in ISO 8601: of its data interval; without one, the last full hour before.

    Raises:
        StreamwardenError: the data interval doesn't begin on the hour.
    """
    start = dag_run.data_interval_start or last_full_hour(dag_run.run_after)
    return parse_hour(start.isoformat()).isoformat()


def settled_at(hour: datetime, settle_minutes: int) -> datetime:
    """From when on the sources know the whole hour: CloudWatch's points come late."""
    return hour + HOUR + timedelta(minutes=settle_minutes)


class SettledHour(BaseOperator):
    """Waits in the triggerer, without a worker, until the hour is over and has settled; past hours don't wait."""

    def execute(self, context: Any) -> None:
        """Fails while `streamwarden migrate` is due. The DAG's param `settle` = false takes the hour as it is."""
        from streamwarden.store.migrate import migrated_warehouse

        config = load_config()
        migrated_warehouse(config)
        if not context["params"]["settle"]:
            return
        hour = parse_hour(hour_of(context["dag_run"]))
        moment = settled_at(hour, config.gathering.settle_minutes)
        if moment > datetime.now(UTC):
            self.log.info("The hour %s has settled at %s: waiting.", hour, moment)
            self.defer(trigger=DateTimeTrigger(moment=moment), method_name="has_settled")

    def has_settled(self, context: Any, event: Any = None) -> None:
        """The triggerer's word; there is nothing left to do."""
