"""The hour in one process: apps, detectors, tickets, in the order their reads and writes ask for. No Airflow needed.

The `hourly` DAG runs the same steps as tasks; what can run at all is decided in `streamwarden.detectors.evaluate`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from streamwarden.base.catalogue import APPS
from streamwarden.base.config import Config
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.detectors import Judgement, evaluate, load_detectors
from streamwarden.store.migrate import migrated_warehouse
from streamwarden.store.prices import load_prices
from streamwarden.tickets import reconcile_and_deliver

MOST_GAPS, MOST_EXAMPLES = 20, 3
Progress = Callable[[str, str, bool], None]
"""Called after each step: its name, what came of it, whether it went well."""


@dataclass
class HourRun:
    """What came of an hour."""

    hour: datetime
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    failed_apps: dict[str, str] = field(default_factory=dict)
    judgements: list[Judgement] = field(default_factory=list)
    gaps: Sequence[sa.RowMapping] = ()
    """What couldn't be had: app, reason, resources, examples; the most frequent first."""

    @property
    def ok(self) -> bool:
        """Whether every app loaded and every detector judged."""
        return not self.failed_apps and all(judgement.status == "judged" for judgement in self.judgements)


def run_hour(config: Config, hour: datetime, apps: list[str], progress: Progress) -> HourRun:
    """Gathers, judges and files one hour. A failed app blocks only the detectors that read its tables."""
    warehouse = migrated_warehouse(config)
    load_prices(warehouse, config)
    detectors = load_detectors(config=config)  # a slip in a header is told before Spark starts
    run = HourRun(hour)
    _gather(config, hour, apps, run, progress)
    run.gaps = _gaps(warehouse, hour)
    for detector in detectors.values():
        judgement = evaluate(warehouse, detector, hour, config)
        run.judgements.append(judgement)
        counts = f"{judgement.alarms} alarm, {judgement.oks} ok, {judgement.skips} skip"
        progress(f"judge {detector.id}", judgement.reason or counts, judgement.status == "judged")
    progress("tickets", str(reconcile_and_deliver(warehouse, config, detectors)), True)
    return run


def _gather(config: Config, hour: datetime, apps: list[str], run: HourRun, progress: Progress) -> None:
    from spark_apps.runtime.session import start_session  # pyspark: only where a job runs
    from spark_apps.submit import one_line, run_app

    spark = start_session("hour", master=os.environ.get("STREAMWARDEN_SPARK_MASTER", "local[2]"))
    try:
        for name in apps or APPS:
            try:
                run.rows[name] = run_app(spark, name, hour, config)
                progress(f"gather {name}", f"{sum(run.rows[name].values())} rows", True)
            except Exception as error:
                run.failed_apps[name] = one_line(error)
                progress(f"gather {name}", run.failed_apps[name], False)
    finally:
        spark.stop()


def _gaps(warehouse: sa.Engine, hour: datetime) -> Sequence[sa.RowMapping]:
    query = (PROJECT_ROOT / "sql" / "pages" / "hour_gaps.sql").read_text()
    with warehouse.connect() as connection:
        return (
            connection.execute(sa.text(query), {"hour": hour, "most": MOST_GAPS, "examples": MOST_EXAMPLES})
            .mappings()
            .all()
        )
