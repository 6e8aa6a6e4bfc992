"""Dropwizard's servlet: names under any root, failing gauges, and invalid responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from streamwarden.base.config import JmxEndpoint
from streamwarden.base.hours import start_of_hour

from spark_apps.sources.dropwizard import readings_of
from spark_apps.sources.jmx import Jmx
from tests.spark_apps.sources.agents import Agents, running_agents


@pytest.fixture
def agents() -> Iterator[Agents]:
    with running_agents() as running:
        yield running


def ask(*addresses: str) -> list[dict[str, Any]]:
    """Rows of the source, read here instead of in a Spark task."""
    jvm = {"cluster": "demo", "role": "app", "app": "billing", "protocol": "dropwizard", "timeout_seconds": 60}
    endpoints = [{**jvm, "address": address, "has_credentials": False} for address in addresses]
    options = {
        "endpoints": json.dumps(endpoints),
        "hour": start_of_hour(datetime.now(UTC)).isoformat(),
        "samples": "2",
        "sample_seconds": "0.1",
        "partitions": "1",
    }
    source = Jmx(options)
    reader = source.reader(source.schema())
    return pa.Table.from_batches([b for part in reader.partitions() for b in reader.read(part)]).to_pylist()


def test_gauges_of_the_jvm_are_read_in_every_sample(agents: Agents) -> None:
    rows = ask(agents.url("servlet"))
    assert agents.asked == ["/servlet", "/servlet"] and not any(row["gap"] for row in rows)
    assert {(row["metric"], row["labels"]): row["value"] for row in rows} == {
        ("heap_used_bytes", "{}"): 9_000_000,
        ("heap_max_bytes", "{}"): None,  # -1
        ("non_heap_used_bytes", "{}"): None,  # the gauge failed in the application
        ("memory_pool_used_bytes", '{"pool": "G1-Old-Gen"}'): 700,
        ("memory_pool_used_after_gc_bytes", '{"pool": "G1-Old-Gen"}'): 500,
        ("direct_buffer_bytes", "{}"): 81920,
        ("threads", "{}"): 23,
        ("gc_seconds_total", '{"collector": "G1-Young-Generation"}'): 0.25,
        ("gc_collections_total", '{"collector": "G1-Young-Generation"}'): 4,
    }
    (started,) = {row["process_started_at"] for row in rows}  # the same in all samples of one process
    assert min(row["at"] for row in rows) - started == timedelta(seconds=60)


@pytest.mark.parametrize("root", ["jvm.memory.", "jvm.", "memory.", "billing.jvm.memory.", "driver.jvm."])
def test_any_root_path_is_accepted(root: str) -> None:
    assert list(readings_of({f"{root}heap.used": {"value": 5}})) == [("heap_used_bytes", {}, 5)]


def test_similar_names_are_ignored() -> None:
    assert not list(readings_of({"cache.memory.heap.used": {"value": 5}, "heap.used": {"value": 5}, "x": None}))


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("[]", "the response is not the JSON"),
        ('{"gauges": 7}', "the response is not the JSON"),
        ("[" * 100_000, "response is nested deeper than 64 levels"),
        ('{"gauges": {"orders.cache.size": {"value": 7}}}', "there is no JVM gauge"),
        ('{"gauges": {"jvm.attribute.uptime": {"value": 7}}}', "there is no JVM gauge"),
    ],
)
def test_invalid_pages(agents: Agents, page: str, reason: str) -> None:
    (row,) = ask(agents.serve(page))
    assert row["gap"].startswith(f"failed: {reason}")


def test_brokers_have_no_servlet() -> None:
    with pytest.raises(ValidationError, match="brokers have no Dropwizard servlet"):
        JmxEndpoint.model_validate({"role": "broker", "cluster": "c", "url": "http://b", "protocol": "dropwizard"})
