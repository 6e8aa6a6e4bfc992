"""The source jolokia against agents that misbehave: one gap each, one plain sentence, and no rows of others lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.hours import HOUR

from spark_apps.sources.jmx import Jmx, read_jmx
from tests.clock import present_hour
from tests.spark_apps.sources.agents import Agents, running_agents


@pytest.fixture
def agents() -> Iterator[Agents]:
    with running_agents() as running:
        yield running


def ask(*addresses: str, hour: datetime | None = None, **options: Any) -> list[dict[str, Any]]:
    """Rows of the source, read here instead of in a Spark task."""
    endpoints = [
        {
            "cluster": "demo",
            "role": "broker",
            "app": None,
            "protocol": "jolokia",
            "address": address,
            "has_credentials": "locked" in address,
            "timeout_seconds": 0.7 if "hangs" in address else 60,
        }
        for address in addresses
    ]
    given = {"samples": 2, "sample_seconds": 0.1, "partitions": 1, **options}
    given |= {"endpoints": json.dumps(endpoints), "hour": (hour or present_hour()).isoformat()}
    source = Jmx({key: str(value) for key, value in given.items()})
    reader = source.reader(source.schema())
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def gap_of(rows: list[dict[str, Any]], address: str) -> str | None:
    gaps = {row["gap"] for row in rows if row["endpoint"] == address and row["gap"]}
    assert len(gaps) <= 1
    return gaps.pop() if gaps else None


def test_a_good_agent_is_read_in_every_sample_despite_missing_mbeans(agents: Agents) -> None:
    rows = ask(agents.url("good"))
    assert gap_of(rows, agents.url("good")) is None
    assert agents.asked == ["/good", "/good"]  # one request per sample
    heap = [row for row in rows if row["metric"] == "heap_used_bytes"]
    assert [row["value"] for row in heap] == [10, 10] and heap[0]["at"] < heap[1]["at"]
    values = {row["metric"]: row["value"] for row in rows}
    assert values["cpu_seconds_total"] == 2 and values["processors"] == 4
    assert values["heap_max_bytes"] is None and values["under_replicated_partitions"] is None  # -1 and NaN
    assert "bytes_in_total" not in values  # 404
    started = heap[0]["process_started_at"]
    assert heap[0]["at"] - started == timedelta(seconds=60)


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("single", "the agent responded with status 500"),
        ("short", "the response is not a Jolokia reply"),
    ],
)
def test_a_bad_agent_is_a_gap_and_the_other_rows_remain(agents: Agents, agent: str, reason: str) -> None:
    bad, good = agents.url(agent), agents.url("good")
    rows = ask(bad, good)
    assert (gap_of(rows, bad) or "").startswith(f"failed: {reason}")
    assert [row["metric"] for row in rows if row["endpoint"] == bad] == [None]
    assert gap_of(rows, good) is None and sum(row["endpoint"] == good for row in rows) > 5


def test_impossible_values_and_an_invalid_address(agents: Agents) -> None:
    rows = ask("http://", agents.url("strange"))
    assert gap_of(rows, "http://") == "failed: the address is not valid for its protocol"
    assert all(row["value"] is None for row in rows)


def test_agents_are_asked_at_the_same_time(agents: Agents) -> None:
    url = agents.meet(20)
    rows = ask(*(f"{url}?{n}" for n in range(20)))
    assert not any(row["gap"] for row in rows) and len({row["endpoint"] for row in rows}) == 20


def test_an_agent_that_hangs_is_not_asked_again(agents: Agents) -> None:
    rows = ask(agents.url("hangs"), agents.url("good"))
    assert gap_of(rows, agents.url("hangs")) == "failed: no answer within 0.7 s"
    assert agents.asked.count("/hangs") <= 1 and agents.asked.count("/good") == 2  # 0: it timed out while connecting


def test_a_denied_mbean_is_a_gap_in_addition_to_the_rows(agents: Agents) -> None:
    rows = ask(agents.url("denies"))
    assert "groups of MBeans were denied, such as java.lang:type=Memory" in (gap_of(rows, agents.url("denies")) or "")
    assert any(row["metric"] == "processors" for row in rows)


def test_credentials_come_from_the_config_and_are_in_no_row(
    agents: Agents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "streamwarden.yaml"
    monkeypatch.setenv(CONFIG_ENV, str(config))
    monkeypatch.setenv("JMX_PASSWORD", "sesame")
    locked = agents.url("locked")
    text = "kafka: [{name: demo, bootstrap_servers: b}]\njmx: [{role: broker, cluster: demo, url: URL, user: reader, "
    config.write_text(text.replace("URL", locked) + "password: '${JMX_PASSWORD}'}]")
    rows = ask(locked)
    assert gap_of(rows, locked) is None and any(row["metric"] == "processors" for row in rows)
    monkeypatch.setenv("JMX_PASSWORD", "wrong")
    config.write_text(config.read_text() + "\n")  # otherwise the loaded config is reused
    rows += ask(locked)
    assert (gap_of(rows, locked) or "").startswith("failed: HTTP 401")
    config.write_text("kafka: []\n# none\n")
    rows = ask(locked)
    assert gap_of(rows, locked) == "failed: the credentials are not in the config of the Spark worker"
    assert "sesame" not in str(rows) and "wrong" not in str(rows)


@pytest.mark.parametrize("age", [timedelta(hours=2), timedelta(days=2), -HOUR])
def test_other_hours_are_missing(agents: Agents, age: timedelta) -> None:
    rows = ask(agents.url("good"), hour=present_hour() - age)
    assert (gap_of(rows, agents.url("good")) or "").startswith("missing: a JVM only knows the present")
    assert len(rows) == 1 and agents.asked == []


def test_the_hour_before_still_counts(agents: Agents) -> None:
    rows = ask(agents.url("good"), hour=present_hour() - HOUR)
    assert gap_of(rows, agents.url("good")) is None


def test_no_endpoint_is_no_row() -> None:
    assert ask() == []


@pytest.mark.slow
def test_in_spark_tasks(agents: Agents, spark: Any) -> None:
    endpoints = [
        {"role": "app", "app": f"app-{n}", "cluster": "demo", "url": f"{agents.base}/{n}/good"} for n in range(5)
    ]
    config = Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": "b"}],
            "jmx": [*endpoints, {"role": "app", "app": "down", "cluster": "demo", "url": "http://127.0.0.1:1/j"}],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 1},
        }
    )
    frame = read_jmx(spark, config, present_hour(), "app")
    rows = [row.asDict() for row in frame.where("metric = 'processors' or gap is not null").collect()]
    assert sorted(row["app"] for row in rows) == sorted([f"app-{n}" for n in range(5)] * 2 + ["down"])
    for app in {row["app"] for row in rows} - {"down"}:
        first, second = sorted(row["at"] for row in rows if row["app"] == app)
        assert second > first  # how much later depends on when a busy machine reads the first response
