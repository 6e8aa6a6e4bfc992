"""What a large and old warehouse costs: evaluation of an hour by each detector, pages, public views, and a backtest.

A million partitions take 15 minutes and 15 GB; `LARGEST=100000` skips them.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import median
from tempfile import NamedTemporaryFile

import psutil
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config
from streamwarden.base.paths import SQL
from streamwarden.base.warehouse import engine
from streamwarden.detectors import evaluate, load_detectors
from streamwarden.detectors.backtest import backtest
from streamwarden.store.migrate import migrate
from streamwarden.ui import detectors as detector_pages
from streamwarden.ui import overview, pages
from streamwarden.ui.render import render

from tests.bench.large import HOUR, Large, fill
from tests.bench.metric import Metric
from tests.conftest import a_database

EVALUATED = Large(brokers=100, partitions=100_000, groups=500, volumes=5_000, applications=500)
TARGETED = Config.model_validate({"latency_targets": [{"key_pattern": "^application:", "seconds": 5}]})
"""All applications have a latency target, so that every detector evaluates them."""
WITH_HISTORY = Large(brokers=8, partitions=10_000, groups=100, volumes=5_000, applications=100, days=455)
BACKTESTED = Large(brokers=3, partitions=1_000, groups=10, volumes=500, applications=100, watched_hours=337)
LARGEST = int(os.environ.get("LARGEST", "1000000"))
SIZES = [size for size in (10_000, 100_000, 1_000_000) if size <= LARGEST]
BACKTEST_SECONDS = 10
EVALUATION_CPU_SECONDS, WORST_EXPONENT, PAGE_SECONDS, VIEW_SECONDS = 15, 1.1, 0.3, 1.0
_ADDRESS = {
    "root": "/streamwarden",
    "airflow": "/",
    "assets": "1",
    "version": "0.1.0",
    "form": None,
    "stored": None,
}  # as a viewer sees it
LEAST_CPU_SECONDS = 0.3
"""Minimum cost for which an exponent is reported."""


def measure() -> list[Metric]:
    """All metrics; the evaluation of the largest fleet takes minutes."""
    return [*_evaluation(), *_growth(), *_reading(), *_backtest()]


def _evaluation() -> list[Metric]:
    with _large(EVALUATED) as warehouse:
        costs = evaluation_costs(warehouse)
    worst = sorted(costs, key=lambda name: -costs[name])[:5]
    return [
        Metric(
            "evaluation of an hour of 100 brokers, 5,000 volumes", sum(costs.values()), "CPU s", EVALUATION_CPU_SECONDS
        ),
        *(Metric(f"  {name}", costs[name], "CPU s") for name in worst),
    ]


def _growth() -> list[Metric]:
    costs = {}
    for partitions in SIZES:
        with _large(Large(partitions=partitions)) as warehouse:
            costs[partitions] = evaluation_costs(warehouse)
    least, most = min(SIZES), max(SIZES)

    def exponent(cost: Callable[[int], float]) -> float:
        return math.log(cost(most) / cost(least)) / math.log(most / least)

    exponents = {
        name: exponent(lambda size, name=name: costs[size][name])
        for name in costs[least]
        if costs[least][name] > 0 and costs[most][name] > LEAST_CPU_SECONDS
    }
    worst = sorted(exponents, key=lambda name: -exponents[name])[:3]
    return [
        *(Metric(f"evaluation of {size:,} partitions", sum(costs[size].values()), "CPU s") for size in SIZES),
        Metric(
            "exponent of that", exponent(lambda size: sum(costs[size].values())), "", WORST_EXPONENT,
        ),
        *(Metric(f"  {name}", exponents[name], "") for name in worst),
    ]  # fmt: skip


def _reading() -> list[Metric]:
    with _large(WITH_HISTORY) as warehouse:
        shown = page_seconds()
        asked = view_seconds(warehouse)
    slowest = sorted(asked, key=lambda name: -asked[name])[:3]
    return [
        *(
            Metric(f"page {name}, after {WITH_HISTORY.days} days", s, "s", PAGE_SECONDS)
            for name, (s, _) in shown.items()
        ),
        Metric("largest page", max(size for _, size in shown.values()) / 1e6, "MB"),
        *(Metric(f"view {name}", asked[name], "s", VIEW_SECONDS) for name in slowest),
    ]


def _backtest() -> list[Metric]:
    with _large(BACKTESTED) as warehouse:
        started = time.monotonic()
        detector, start = load_detectors()["ebs_volume_starving"], HOUR - timedelta(days=14)
        result = backtest(warehouse, Config(), detector, start, HOUR, tried=None, progress=lambda *_: None)
        seconds = time.monotonic() - started
    if len(result.hours) != result.hours_asked:
        raise AssertionError(f"{len(result.hours)} of {result.hours_asked} hours are available")
    return [Metric("backtest of 14 days of 500 volumes", seconds, "s", BACKTEST_SECONDS)]


@contextmanager
def _large(large: Large) -> Iterator[sa.Engine]:
    with a_database() as url, NamedTemporaryFile(suffix=".yaml") as config:
        os.environ |= {WAREHOUSE_ENV: url, CONFIG_ENV: config.name}
        warehouse = engine(url)
        migrate(warehouse)
        fill(warehouse, large)
        yield warehouse


def evaluation_costs(warehouse: sa.Engine) -> dict[str, float]:
    """CPU seconds of the database server, by detector."""
    costs = {}
    for detector in load_detectors().values():
        before = _cpu_seconds(warehouse)
        detector_run = evaluate(warehouse, detector, HOUR, TARGETED)
        if detector_run.status != "evaluated":
            raise AssertionError(f"{detector.id}: {detector_run.status}: {detector_run.message}")
        costs[detector.id] = _cpu_seconds(warehouse) - before
    return costs


def page_seconds() -> dict[str, tuple[float, int]]:
    """Seconds, and bytes of HTML, of each page of the warehouse that the environment names."""
    # A finding of a detector with a plot.
    found = pages.findings(None, detector="ebs_volume_starving")["findings"][0]
    shown: dict[str, tuple[str, Callable[[], pages.Row]]] = {
        "overview": ("overview.html", overview.overview),
        "findings": ("findings.html", lambda: pages.findings(None)),
        "finding": ("finding.html", lambda: pages.finding(found["fingerprint"], None)),
        "coverage": ("coverage.html", lambda: pages.coverage(None)),
        "detectors": ("detectors.html", detector_pages.detectors),
        "detector": ("detector.html", lambda: detector_pages.detector(found["detector"])),
    }
    result = {}
    for name, (template, values) in shown.items():
        seconds = []
        for _ in range(4):  # the first run warms up
            started = time.monotonic()
            html = render(template, _ADDRESS | values())
            seconds.append(time.monotonic() - started)
        result[name] = (median(seconds[1:]), len(html))
    return result


def view_seconds(warehouse: sa.Engine) -> dict[str, float]:
    """Seconds to count the rows of each public view with all columns; of views with hours only the newest hour."""
    result = {}
    for view in sorted(file.stem for file in (SQL / "views").glob("*.sql")):
        has_hours = any(column["name"] == "hour" for column in sa.inspect(warehouse).get_columns(view, "public"))
        newest = f" where hour = '{HOUR}'" if has_hours else ""
        with warehouse.connect() as connection:
            started = time.monotonic()
            connection.exec_driver_sql(f"select count(v) from public.{view} as v{newest}")
            result[view] = time.monotonic() - started
    return result


def _cpu_seconds(warehouse: sa.Engine) -> float:
    """CPU seconds of the server with its backends; those of ended backends are counted in their parent."""
    with warehouse.connect() as connection:
        file = connection.exec_driver_sql("select pg_read_file('postmaster.pid')").scalar_one()
    server = psutil.Process(int(file.splitlines()[0]))
    seconds = sum(server.cpu_times()[:4])
    for process in server.children():
        try:
            seconds += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue  # it has just ended
    return float(seconds)
