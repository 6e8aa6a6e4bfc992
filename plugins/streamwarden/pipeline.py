"""The steps of an hour: prices, detectors, causes, tickets; and the whole hour in one process, without Airflow.

What waits for what stands in `streamwarden.dag_graph`; the `hourly` DAG runs the same steps as tasks.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import psycopg
import sqlalchemy as sa

from streamwarden.base.addresses import masked
from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.causes import find_causes, rule
from streamwarden.dag_graph import PRICES, hour_graph
from streamwarden.detectors import Detector, DetectorRun, evaluate, load_detectors
from streamwarden.store.migrate import migrated_warehouse
from streamwarden.store.prices import load_prices
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import reconcile_and_deliver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_GAPS, MOST_EXAMPLES = 20, 3
Progress = Callable[[str, str, bool], None]
"""Called after each step: its name, what came of it, whether it went well."""


@dataclass
class HourRun:
    """What came of an hour."""

    hour: datetime
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Steps that failed, and why."""
    detector_runs: list[DetectorRun] = field(default_factory=list)
    gaps: Sequence[Row] = ()
    """What couldn't be had: app, reason, resources, examples; the most frequent first."""

    @property
    def ok(self) -> bool:
        """Whether every step went well and every detector judged."""
        return not self.failed and all(detector_run.status == "evaluated" for detector_run in self.detector_runs)


def judge(
    warehouse: sa.Engine, detectors: Iterable[Detector], hour: datetime, config: Config, progress: Progress,
    asked: Collection[str] = APPS,
) -> list[DetectorRun]:  # fmt: skip
    """Judges with one detector after the other. One that fails, or is blocked, doesn't stop those after it.

    Args:
        asked: apps that were to be gathered. A detector that only others block is left out of what is returned.
    """
    detector_runs = []
    for detector in detectors:
        try:
            detector_run = evaluate(warehouse, detector, hour, config)
        # What is wrong with a detector's own SQL has been noted as `failed`.
        except (sa.exc.SQLAlchemyError, psycopg.Error) as error:
            detector_run = DetectorRun(detector.id, "failed", one_line(error))
        if detector_run.blocked_by and not {*detector_run.blocked_by} & {*asked}:
            continue
        detector_runs.append(detector_run)
        if detector_run.status == "evaluated" and not detector_run.findings and _not_configured(detector, config):
            continue
        counts = f"{detector_run.firing} alarm, {detector_run.ok} ok, {detector_run.unknown} skip"
        said = counts if detector_run.status == "evaluated" else f"{detector_run.status}: {detector_run.message}"
        progress(f"judge {detector.id}", said, detector_run.status == "evaluated")
    return detector_runs


def _not_configured(detector: Detector, config: Config) -> str | None:
    """What the config would have to name for any of a detector's sources; null where it names one."""
    lacking = [APPS[app].not_configured(config) for app in detector.apps]
    return lacking[0] if lacking and all(lacking) else None


def one_line(error: Exception) -> str:
    """The reason of a failure, in one line."""
    if isinstance(error, StreamwardenError):
        return str(error)
    lines = str(getattr(error, "orig", error)).strip().splitlines()
    return masked(f"{type(error).__name__}: {lines[0] if lines else ''}")


def run_hour(config: Config, hour: datetime, apps: list[str], progress: Progress) -> HourRun:
    """Gathers, judges and files one hour; steps that don't wait for each other run at the same time.

    A failed app blocks only the detectors that read its tables; whatever fails, tickets are brought in line.

    Args:
        apps: those to run, with the detectors that read what they write; none: all.
    """
    warehouse = migrated_warehouse(config)
    detectors = load_detectors(config=config)  # a slip in a header is told before Spark starts
    run, asked = HourRun(hour), {*(apps or APPS)}
    judging = [detector for detector in detectors.values() if not apps or asked & {*detector.apps}]

    def do(step: str) -> None:
        kind, _, name = step.partition(".")
        try:
            if step == f"gather.{PRICES}":
                regions = len(load_prices(warehouse, config))
                if not apps:
                    progress("gather prices", f"{regions} regions", True)
            elif kind == "gather":
                run.rows[name] = spark.run_app(name, hour)
                progress(f"gather {name}", f"{sum(run.rows[name].values())} rows", True)
            elif kind == "judge":
                of_subject = [detector for detector in judging if detector.subject == name]
                run.detector_runs.extend(judge(warehouse, of_subject, hour, config, progress, asked))
            elif step == "causes":
                lacking = Counter(filter(None, (_not_configured(detector, config) for detector in judging)))
                for what, number in lacking.items():
                    progress("judge", f"{what} configured: {number} detectors not evaluated", True)
                progress("causes", find_causes(warehouse, detectors, hour, rule.params_in_force(config)), True)
            else:
                progress("tickets", reconcile_and_deliver(warehouse, config, detectors), True)
        except Exception as error:
            run.failed[step] = one_line(error)
            progress(step.replace(".", " "), run.failed[step], False)

    with _Spark(config, warehouse) as spark:
        _follow(hour_graph(judging, apps or APPS), do)
    try:
        run.gaps = _gaps(warehouse, hour)
    except (sa.exc.SQLAlchemyError, psycopg.Error) as error:  # gone since: what came of the hour is told all the same
        run.failed["gaps"] = one_line(error)
    return run


def _follow(graph: Mapping[str, set[str]], do: Callable[[str], None]) -> None:
    """Does each step as soon as all that it waits for is done."""
    order = TopologicalSorter(graph)
    order.prepare()
    pool = ThreadPoolExecutor(len(graph))
    steps: dict[Future[None], str] = {}
    try:
        while order.is_active():
            steps |= {pool.submit(do, step): step for step in order.get_ready()}
            for ended in wait(steps, return_when=FIRST_COMPLETED).done:
                ended.result()
                order.done(steps.pop(ended))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # interrupted: what runs ends when Spark does


class _Spark:
    """One session for all apps of an hour; it starts when the first app asks for it."""

    def __init__(self, config: Config, warehouse: sa.Engine) -> None:
        self._config = config
        self._warehouse = warehouse
        self._starts = threading.Lock()

    def __enter__(self) -> _Spark:
        return self

    def __exit__(self, *_: object) -> None:
        if "_session" in vars(self):
            with suppress(Exception):  # nothing is left to stop of a JVM that is gone
                self._session.stop()

    def run_app(self, name: str, hour: datetime) -> dict[str, int]:
        """Rows by table.

        Raises:
            StreamwardenError: the app failed, or its JVM is gone; one line.
        """
        from spark_apps import submit  # pyspark: only where a job runs

        try:
            with self._starts:
                session = self._session
            return submit.run_app(session, name, hour, self._config)
        except Exception as error:
            raise StreamwardenError(submit.one_line(error)) from error

    @cached_property
    def _session(self) -> SparkSession:
        from spark_apps import submit
        from spark_apps.runtime.session import master_for, start_session

        has_large = len(submit.small_apps(self._warehouse)) < len(APPS)
        return start_session("hour", master=master_for(len(APPS)), config=self._config, compiled_well=has_large)


def _gaps(warehouse: sa.Engine, hour: datetime) -> Sequence[Row]:
    with warehouse.connect() as connection:
        return ask(connection, "pages/hour_gaps", hour=hour, most=MOST_GAPS, examples=MOST_EXAMPLES)
