"""The steps of an hourly run: prices, detectors, causes, tickets; and a whole run in one process, without Airflow.

`streamwarden.dag_graph` has the dependencies of the steps; the `hourly` DAG runs the same steps as tasks.
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
from streamwarden.rendering.readable import counted
from streamwarden.store.migrate import migrated_warehouse
from streamwarden.store.prices import FROM_API, EbsPrice, has_own_prices, load_prices, store_fetched
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import reconcile_and_deliver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_GAPS, MOST_EXAMPLES = 20, 3
Progress = Callable[[str, str, bool], None]
"""Called after each step with its name, its result in words, and whether it succeeded."""


def log_step(step: str, result: str, is_ok: bool) -> None:
    """Progress as a line in the log of a task, which has what the task prints."""
    mark = "" if is_ok or result.startswith(("blocked", "failed")) else "failed: "
    print(f"{step}: {mark}{result}")


@dataclass
class HourRun:
    """Result of an hourly run."""

    hour: datetime
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of loaded rows, by app and table."""
    failed: dict[str, str] = field(default_factory=dict)
    """The error of each failed step, by step."""
    detector_runs: list[DetectorRun] = field(default_factory=list)
    gaps: Sequence[Row] = ()
    """Missing data: rows with app, reason, number of resources, and examples; the most frequent first."""

    @property
    def ok(self) -> bool:
        """Whether every step succeeded and every detector was evaluated."""
        return not self.failed and all(detector_run.status == "evaluated" for detector_run in self.detector_runs)


def evaluate_detectors(
    warehouse: sa.Engine, detectors: Iterable[Detector], hour: datetime, config: Config, progress: Progress,
    asked: Collection[str] = APPS,
) -> list[DetectorRun]:  # fmt: skip
    """Evaluates detectors one after the other; a failed or blocked one does not stop those after it.

    Args:
        asked: apps of this run. A detector that is blocked only by other apps is left out of the result.
    """
    detector_runs = []
    for detector in detectors:
        try:
            detector_run = evaluate(warehouse, detector, hour, config)
        # Errors in a detector's own SQL do not raise: `evaluate` stores them with status `failed`.
        except (sa.exc.SQLAlchemyError, psycopg.Error) as error:
            detector_run = DetectorRun(detector.id, "failed", one_line(error))
        if detector_run.blocked_by and not {*detector_run.blocked_by} & {*asked}:
            continue
        detector_runs.append(detector_run)
        if detector_run.status == "evaluated" and not detector_run.findings and _not_configured(detector, config):
            continue
        counts = f"{detector_run.firing} firing, {detector_run.ok} ok, {detector_run.unknown} unknown"
        result = counts if detector_run.status == "evaluated" else f"{detector_run.status}: {detector_run.message}"
        progress(f"evaluate {detector.id}", result, detector_run.status == "evaluated")
    return detector_runs


def _not_configured(detector: Detector, config: Config) -> str | None:
    """What has to be configured for a detector, if none of its sources is configured; else None."""
    missing = [APPS[app].not_configured(config) for app in detector.apps]
    return missing[0] if missing and all(missing) else None


def one_line(error: Exception) -> str:
    """The error's message in one line, with credentials masked."""
    if isinstance(error, StreamwardenError):
        return str(error)
    lines = str(getattr(error, "orig", error)).strip().splitlines()
    return masked(f"{type(error).__name__}: {lines[0] if lines else ''}")


def refresh_prices(warehouse: sa.Engine, config: Config) -> list[str]:
    """Fetches the list prices of EBS in the config's regions from the AWS Price List API, and returns the regions.

    Raises:
        StreamwardenError: one line; AWS did not return a price, the config has prices of its own, or names no account.
    """
    from spark_apps.sources import ebs_prices
    from spark_apps.sources.aws_client import Failure

    if has_own_prices(config):
        raise StreamwardenError(
            f"ebs_prices: the config names {config.ebs_prices}; remove the key to fetch list prices."
        )
    if not config.aws:
        raise StreamwardenError("aws: no account is in the config, so nothing is known to fetch prices with.")
    regions = list(dict.fromkeys(region for account in config.aws for region in account.regions))
    connection = ebs_prices.connection_for(config.aws[0].account)
    try:
        found = [ebs_prices.prices_of(connection, region) for region in regions]
    except Failure as error:
        raise StreamwardenError(f"EBS prices: {connection.gap(error).partition(': ')[2]}") from None
    missing = dict.fromkeys(EbsPrice.model_fields)
    rows = [{**missing, **one.usd, "region": one.region, "as_of": one.as_of, "source": FROM_API} for one in found]
    store_fetched(warehouse, [EbsPrice.model_validate(row) for row in rows])
    return regions


def run_hour(config: Config, hour: datetime, apps: list[str], progress: Progress) -> HourRun:
    """Gathers data of one hour, evaluates detectors, and updates tickets. Independent steps run in parallel.

    A failed app blocks only the detectors that read its tables. Tickets are reconciled even if steps fail.

    Args:
        apps: apps to run, with the detectors that read their tables; empty: all.
    """
    warehouse = migrated_warehouse(config)
    detectors = load_detectors(config=config)  # before Spark starts: reports invalid headers at once
    run, asked = HourRun(hour), {*(apps or APPS)}
    selected = [detector for detector in detectors.values() if not apps or asked & {*detector.apps}]

    def do(step: str) -> None:
        kind, _, name = step.partition(".")
        try:
            if step == f"gather.{PRICES}":
                regions = len(load_prices(warehouse, config))
                if not apps:
                    progress("gather prices", counted(regions, "region"), True)
            elif kind == "gather":
                run.rows[name] = spark.run_app(name, hour)
                progress(f"gather {name}", counted(sum(run.rows[name].values()), "row"), True)
            elif kind == "evaluate":
                of_subject = [detector for detector in selected if detector.subject == name]
                run.detector_runs.extend(evaluate_detectors(warehouse, of_subject, hour, config, progress, asked))
            elif step == "causes":
                missing = Counter(filter(None, (_not_configured(detector, config) for detector in selected)))
                for what, number in missing.items():
                    progress("evaluate", f"{what} configured: {counted(number, 'detector')} not evaluated", True)
                progress("causes", find_causes(warehouse, detectors, hour, rule.params_in_force(config)), True)
            else:
                progress("tickets", reconcile_and_deliver(warehouse, config, detectors), True)
        except Exception as error:
            run.failed[step] = one_line(error)
            progress(step.replace(".", " "), run.failed[step], False)

    with _Spark(config, warehouse) as spark:
        _follow(hour_graph(selected, apps or APPS), do)
    try:
        run.gaps = _gaps(warehouse, hour)
    # Without a connection, the rest of the result is still returned.
    except (sa.exc.SQLAlchemyError, psycopg.Error) as error:
        run.failed["gaps"] = one_line(error)
    return run


def _follow(graph: Mapping[str, set[str]], do: Callable[[str], None]) -> None:
    """Runs each step as soon as its upstream steps have ended."""
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
        pool.shutdown(wait=False, cancel_futures=True)  # after an interrupt: running steps end with the Spark session


class _Spark:
    """One Spark session for all apps of an hour; started by the first app."""

    def __init__(self, config: Config, warehouse: sa.Engine) -> None:
        self._config = config
        self._warehouse = warehouse
        self._starts = threading.Lock()

    def __enter__(self) -> _Spark:
        return self

    def __exit__(self, *_: object) -> None:
        if "_session" in vars(self):
            with suppress(Exception):  # the JVM may have died: then there is nothing to stop
                self._session.stop()

    def run_app(self, name: str, hour: datetime) -> dict[str, int]:
        """Runs an app and returns the number of loaded rows by table.

        Raises:
            StreamwardenError: the app failed, or the JVM died; the message is one line.
        """
        from spark_apps import submit  # imports pyspark

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
