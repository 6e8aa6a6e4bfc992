"""What a large and old warehouse costs: judging an hour by each detector, the pages, the views for people,
and a backtest.

A million partitions take a quarter of an hour and 15 GB; `LARGEST=100000` leaves them out.
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
from streamwarden.ui import pages
from streamwarden.ui.render import render

from tests.bench.large import HOUR, Large, fill
from tests.bench.metric import Metric
from tests.conftest import a_database

JUDGED = Large(brokers=100, partitions=100_000, groups=500, volumes=5_000, applications=500)
TARGETED = Config.model_validate({"latency_targets": [{"key_pattern": "^application:", "seconds": 5}]})
"""All applications are judged by all rules."""
LIVED_WITH = Large(brokers=8, partitions=10_000, groups=100, volumes=5_000, applications=100, days=455)
TRIED_ON = Large(brokers=3, partitions=1_000, groups=10, volumes=500, applications=100, watched_hours=337)
LARGEST = int(os.environ.get("LARGEST", "1000000"))
SIZES = [size for size in (10_000, 100_000, 1_000_000) if size <= LARGEST]
BACKTEST_SECONDS = 15
JUDGING_CPU_SECONDS, WORST_EXPONENT, PAGE_SECONDS, VIEW_SECONDS = 20, 1.1, 0.3, 1.0
_ADDRESS = {
    "root": "/streamwarden",
    "airflow": "/",
    "assets": "1",
    "form": None,
    "expected": None,
}  # as a viewer sees it
LEAST_CPU_SECONDS = 0.3
"""What costs less has no exponent worth to be told."""


def measure() -> list[Metric]:
    """All of it; the judging of the largest fleet takes minutes."""
    return [*_judging(), *_growth(), *_reading(), *_backtest()]


def _judging() -> list[Metric]:
    with _large(JUDGED) as warehouse:
        costs = judging(warehouse)
    worst = sorted(costs, key=lambda name: -costs[name])[:5]
    return [
        Metric("judging an hour of 100 brokers, 5,000 volumes", sum(costs.values()), "CPU s", JUDGING_CPU_SECONDS),
        *(Metric(f"  {name}", costs[name], "CPU s") for name in worst),
    ]


def _growth() -> list[Metric]:
    costs = {}
    for partitions in SIZES:
        with _large(Large(partitions=partitions)) as warehouse:
            costs[partitions] = judging(warehouse)
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
        *(Metric(f"judging {size:,} partitions", sum(costs[size].values()), "CPU s") for size in SIZES),
        Metric(
            "exponent of that", exponent(lambda size: sum(costs[size].values())), "", WORST_EXPONENT,
        ),
        *(Metric(f"  {name}", exponents[name], "") for name in worst),
    ]  # fmt: skip


def _reading() -> list[Metric]:
    with _large(LIVED_WITH) as warehouse:
        shown = page_seconds()
        asked = view_seconds(warehouse)
    slowest = sorted(asked, key=lambda name: -asked[name])[:3]
    return [
        *(Metric(f"page {name}, after {LIVED_WITH.days} days", s, "s", PAGE_SECONDS) for name, (s, _) in shown.items()),
        Metric("largest page", max(size for _, size in shown.values()) / 1e6, "MB"),
        *(Metric(f"view {name}", asked[name], "s", VIEW_SECONDS) for name in slowest),
    ]


def _backtest() -> list[Metric]:
    with _large(TRIED_ON) as warehouse:
        started = time.monotonic()
        rule, start = load_detectors()["ebs_volume_starving"], HOUR - timedelta(days=14)
        result = backtest(warehouse, Config(), rule, start, HOUR, tried=None, progress=lambda *_: None)
        seconds = time.monotonic() - started
    if len(result.hours) != result.hours_asked:
        raise AssertionError(f"{len(result.hours)} of {result.hours_asked} hours are there")
    return [Metric("backtest of 14 days of 500 volumes", seconds, "s", BACKTEST_SECONDS)]


@contextmanager
def _large(large: Large) -> Iterator[sa.Engine]:
    with a_database() as url, NamedTemporaryFile(suffix=".yaml") as config:
        os.environ |= {WAREHOUSE_ENV: url, CONFIG_ENV: config.name}
        warehouse = engine(url)
        migrate(warehouse)
        fill(warehouse, large)
        yield warehouse


def judging(warehouse: sa.Engine) -> dict[str, float]:
    """CPU seconds of the database, by detector."""
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
    # Of a rule with a plot.
    found = pages.findings(None, "ebs_volume_starving", None)["findings"][0]
    shown: dict[str, tuple[str, Callable[[], pages.Row]]] = {
        "now": ("now.html", pages.now),
        "findings": ("findings.html", lambda: pages.findings(None, None, None)),
        "finding": ("finding.html", lambda: pages.finding(found["fingerprint"], None)),
        "coverage": ("coverage.html", lambda: pages.coverage(None)),
        "rules": ("detectors.html", pages.detectors),
        "rule": ("detector.html", lambda: pages.detector(found["detector"])),
    }
    result = {}
    for name, (template, values) in shown.items():
        seconds = []
        for _ in range(4):  # the first warms up
            started = time.monotonic()
            html = render(template, _ADDRESS | values())
            seconds.append(time.monotonic() - started)
        result[name] = (median(seconds[1:]), len(html))
    return result


def view_seconds(warehouse: sa.Engine) -> dict[str, float]:
    """Seconds to count the rows of each view for people, all columns made; of those with hours, of the newest."""
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
    """Of the whole server: those of the backends that have ended are their parent's."""
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
