"""Readings of processor nodes as hourly rows: per node over tasks and samples, its sources, and where records wait."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_apps.models.stream_nodes import stream_nodes
from spark_apps.runtime.driver_rows import driver_rows

pytestmark = pytest.mark.slow
AT = datetime(2026, 1, 5, 11, 2, tzinfo=UTC)


def test_an_hour_of_nodes(spark: Any) -> None:
    """A node without records, a task idle in one sample, a clock ahead, two topics, and named nodes."""
    rows: list[tuple[str, str, dict[str, str], int, float | None]] = []

    def ages(endpoint: str, node: str, task: str, moment: int, *of: float | None) -> None:
        labels = {"node": node, "task": task}
        for metric, value in zip(("min", "mean", "max"), of, strict=True):
            rows.append((endpoint, f"record_age_{metric}_ms", labels, moment, value))

    ages("e1", "source", "0_0", 0, -20.0, 100.4, 300.0)
    ages("e1", "source", "0_0", 1, 5.0, 99.6, 200.0)
    ages("e1", "source", "0_10", 0, 7.0, 400.0, 500.0)
    ages("e1", "source", "0_10", 1, None, None, None)
    ages("e1", "sink", "1_0", 0, 8.0, 40.0, 900.0)
    ages("e1", "idle", "1_0", 0, None, None, None)
    ages("e2", "source", "name__0_3", 0, 1.0, 2.0, 3.0)
    for topic in ("b", "a"):
        rows.append(("e1", "reads_topic", {"node": "source", "topic": topic}, 1, 1.0))
    rows.append(("e1", "holds_back", {"node": "windows", "task": "1_0"}, 0, 1.0))
    rows.append(("e1", "holds_back", {"task": "1_7"}, 0, 1.0))
    rows.append(("e2", "holds_back", {"task": "0_7"}, 0, 1.0))
    samples = driver_rows(
        spark,
        [
            ("c", "app", endpoint, metric, json.dumps(labels, sort_keys=True), AT + timedelta(seconds=moment), value)
            for endpoint, metric, labels, moment, value in rows
        ],
        "cluster string, app string, endpoint string, metric string, labels string, at timestamp, value double",
    )
    found = {(row["endpoint"], row["node"]): row.asDict() for row in stream_nodes(samples).collect()}
    assert set(found) == {("e1", "source"), ("e1", "sink"), ("e2", "source")}
    source, sink, named = found["e1", "source"], found["e1", "sink"], found["e2", "source"]
    assert (source["subtopology"], source["topics"], source["holds_back"]) == ("0", '["a","b"]', False)
    assert (source["readings"], source["ages_ms"], source["age_mean_ms"]) == (3, "[100,100,400]", 200.0)
    assert (source["age_min_ms"], source["age_max_ms"]) == (-20.0, 500.0)
    assert (sink["subtopology"], sink["topics"], sink["holds_back"], sink["readings"]) == ("1", None, True, 1)
    assert (named["subtopology"], named["topics"], named["holds_back"]) == ("name__0", None, False)
