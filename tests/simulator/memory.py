"""JVMs and Kafka Streams applications: heaps, RocksDB that grows to its configured size, and hosts out of memory.

Memory use grows over hours: the heap expands towards -Xmx, block caches fill, and write buffers vary. A fault is a
configuration (or a leak) that exceeds the host's memory. The outage is the minute in which the sum on the host exceeds
it. The unit of evaluation is a process in an hour, with the others on its host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import functions as f
from streamwarden.base.hours import HOUR
from streamwarden.detectors import Finding

from spark_apps.apps import jvm_apps as app
from tests.simulator.bench import Bench
from tests.simulator.frames import EARLIER_COUNTERS, rows_frame
from tests.simulator.memory_fleet import Fleet
from tests.simulator.memory_kinds import build
from tests.simulator.memory_sources import config_of, load_machines, readings_of
from tests.simulator.scenario import EVALUATED, START, Case, Fault, Scenario, Verdict
from tests.simulator.score import Score, score

DETECTOR = "app_memory_heavy"
WORST_FIRST = ("firing", "unknown", "ok")


def cases(fleet: Fleet) -> list[Case]:
    """Every process in the evaluated hours of its host, except before its first start."""
    last = fleet.scenario.end - HOUR
    return [
        Case(process.name, hour)
        for process in fleet.processes.values()
        for hour in sorted(fleet.hours[process.host])
        if START + 24 * HOUR <= hour <= last and process.shapes[0][0] < hour + HOUR
    ]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    scored = prepare(bench, scenario)
    return scored(bench.findings(DETECTOR))


def prepare(bench: Bench, scenario: Scenario) -> Callable[[list[Finding]], Score]:
    """Simulates and loads; returns what scores findings of the detector, with whatever parameters they were made."""
    fleet = build(scenario)
    chosen = cases(fleet)
    config = config_of(fleet, chosen)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "jolokia.parquet"
        readings_of(fleet, chosen).to_parquet(file, coerce_timestamps="us", allow_truncated_timestamps=True)
        read = bench.spark.read.parquet(str(file))
        sources = {
            "jmx": read.withColumns({"resource": f.col("endpoint"), "gap": f.lit(None).cast("string")}),
            "earlier_counters": rows_frame(bench.spark, [], EARLIER_COUNTERS),
        }
        frames = app.transform(sources, EVALUATED, config)
        frames["metrics.jvm_app_sample"] = frames["metrics.jvm_app_sample"].limit(0)
        bench.load("jvm_apps", frames)
    load_machines(bench, fleet, chosen)
    for table in ("metrics.jvm_app_hourly", "metrics.state_store_memory_hourly"):
        bench.remember(table, "cluster")
    return lambda found: _scored(bench, fleet, found)


def _scored(bench: Bench, fleet: Fleet, found: list[Finding]) -> Score:
    rows = [
        Verdict.of(f"{row.metrics['app']}@{row.resource.columns['cluster'].rsplit('@', 1)[1]}", row) for row in found
    ]
    by_hour: dict[tuple[str, datetime], list[Verdict]] = {}
    for row in rows:
        by_hour.setdefault((row.resource_name, row.hour), []).append(row)
    # The verdict of an application is that of its worst instance.
    verdicts = [min(each, key=lambda row: WORST_FIRST.index(row.status)) for each in by_hour.values()]
    result = score("memory-heavy applications", bench.detector(DETECTOR), verdicts, fleet.truth)
    _check_claims(result, fleet, by_hour)
    return result


def _check_claims(result: Score, fleet: Fleet, by_hour: dict[tuple[str, datetime], list[Verdict]]) -> None:
    """Claims: one cause gives one finding, and an unknown process is not `ok`."""
    instances = Counter(process.unit for process in fleet.processes.values())
    for process in fleet.processes.values():
        begins, ends = process.speechless or (START, START)
        for hour in (begins + (n - 1) * HOUR for n in range(int((ends - begins) / HOUR))):
            for verdict in by_hour.get((process.unit, hour), []):
                wrong = verdict.message if verdict.status == "ok" else None
                unsaid = Fault(process.unit, "says NaN", begins, hour, ends)
                result.claim("what isn't known isn't ok", unsaid, verdict, wrong)
    for fault in fleet.truth.faults:
        said = by_hour.get((fault.resource_name, fault.due), [])
        firing = [verdict for verdict in said if verdict.status == "firing"]
        if firing and instances[fault.resource_name] > 1:
            wrong = f"{len(firing)} findings" if len(firing) > 1 else None
            result.claim("one finding for an application", fault, firing[0], wrong)
        process = next(p for p in fleet.processes.values() if p.unit == fault.resource_name)
        for (unit, hour), rows in by_hour.items():
            if process.hides_stores and unit == fault.resource_name and hour >= process.shapes[-1][0]:
                wrong = rows[0].message if rows[0].status == "ok" else None
                result.claim("what isn't known isn't ok", fault, rows[0], wrong)
