"""Every failure of a JVM's agent, by every protocol over HTTP: one gap per failure, and complete rows of the others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceReader
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import start_of_hour

from spark_apps.sources.jmx import ARCHIVES, PROTOCOLS, Jmx
from spark_apps.sources.jmx_endpoint import with_labels_as_json
from tests.spark_apps.sources.agents import Agents, running_agents, without_coverage
from tests.variations import rare_after

FAILURES = {
    "hangs": "no answer within 3 s",
    "trickles": "no answer within 3 s",
    "resets": "the connection was closed before the response was complete",
    "locked": "HTTP 401: `user` or `password` of the endpoint is missing or was rejected",
    "forbidden": "HTTP 403: `user` or `password` of the endpoint is missing or was rejected",
    "fails": "HTTP 500",
    "noise": "the response is not ",
    "broken": "the response is not ",
    "empty": "the response is not ",
}
CLOSED = "http://127.0.0.1:1/closed"


def rows_of(reader: DataSourceReader) -> list[dict[str, Any]]:
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return without_coverage(pa.Table.from_batches(batches).to_pylist())


@pytest.fixture
def agents() -> Iterator[Agents]:
    with running_agents() as running:
        yield running


@pytest.mark.parametrize("protocol", rare_after(1, sorted({*PROTOCOLS, *ARCHIVES} - {"jmx_rmi"})))
def test_each_failure_is_a_gap_and_the_other_rows_remain(
    agents: Agents, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = "app" if protocol == "dropwizard" else "broker"
    good = agents.url("servlet" if protocol == "dropwizard" else "good")
    expected = {agents.url(kind): reason for kind, reason in FAILURES.items()}
    expected |= {
        CLOSED: "cannot connect (connection refused or unknown host)",
        "ftp://a/b": "the address is not valid for its protocol",
    }
    jvm = {"cluster": "c", "role": role, "app": "a", "protocol": protocol, "url": good}
    jvm |= {"match": 'job="a"'} if protocol in ARCHIVES else {}
    name = '{job="a"}' if protocol in ARCHIVES else ""
    config = {"kafka": [{"name": "c", "bootstrap_servers": "b"}]}
    config["jmx"] = [{**jvm, "url": agents.url("locked"), "user": "reader", "password": "wrong"}]
    (tmp_path / "streamwarden.yaml").write_text(json.dumps(config))
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "streamwarden.yaml"))
    endpoints = [
        {"cluster": "c", "role": role, "app": None, "protocol": protocol, "address": url + name}
        | {"match": jvm.get("match"), "has_credentials": url.endswith("locked")}
        | {"timeout_seconds": 3 if url.endswith(("hangs", "trickles")) else 120}
        for url in [*expected, good]
    ]
    options = {"samples": "2", "sample_seconds": "0.1", "partitions": "1", "endpoints": json.dumps(endpoints)}
    source = Jmx(options | {"hour": start_of_hour(datetime.now(UTC)).isoformat()})
    reader = source.reader(source.schema())
    rows = without_coverage(
        pa.Table.from_batches([b for part in reader.partitions() for b in reader.read(part)]).to_pylist()
    )
    gaps = {row["endpoint"].removesuffix(name): row["gap"] for row in rows if row["gap"]}
    assert gaps.keys() == expected.keys()
    for url, reason in expected.items():
        assert gaps[url].startswith(f"failed: {reason}"), url
        assert sum(row["endpoint"] == url + name for row in rows) == 1
    assert any(row["endpoint"] == good + name and row["metric"] for row in rows)
    assert "wrong" not in str(rows) and "out of memory" not in str(rows)
    assert len([path for path in agents.asked if path.startswith("/hangs")]) == 1  # is not called again


@pytest.mark.parametrize(
    ("protocol", "path", "reason"),
    [
        ("jolokia", "unknown", "no reading is a number"),
        ("prometheus", "unknown", "no reading is a number"),
        ("prometheus_api", "unknown", "no reading is a number"),
        ("dropwizard", "servlet/unknown", "no reading is a number"),
        ("jolokia", "odd", "the response does not follow its protocol (OverflowError)"),
    ],
)
def test_a_response_without_valid_numbers_is_no_response(agents: Agents, protocol: str, path: str, reason: str) -> None:
    good = agents.url("servlet" if protocol == "dropwizard" else "good")
    endpoint = {"cluster": "c", "role": "app" if protocol == "dropwizard" else "broker", "app": None} | {
        "protocol": protocol, "has_credentials": False, "timeout_seconds": 120}  # fmt: skip
    endpoints = [endpoint | {"address": url, "match": 'job="a"'} for url in (agents.url(path), good)]
    options = {"samples": "1", "sample_seconds": "0", "partitions": "1", "endpoints": json.dumps(endpoints)}
    source = Jmx(options | {"hour": start_of_hour(datetime.now(UTC)).isoformat()})
    reader = source.reader(source.schema())
    rows = without_coverage(
        pa.Table.from_batches([b for part in reader.partitions() for b in reader.read(part)]).to_pylist()
    )
    [alone] = [row for row in rows if row["endpoint"] == agents.url(path)]
    assert alone["gap"] == f"failed: {reason}" and alone["metric"] is None
    assert any(row["endpoint"] == good and row["value"] is not None for row in rows)


def test_a_clock_that_is_set_back_meanwhile_delays_no_read(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_apps.sources.jmx.TASKS_BEGIN_SECONDS", 0.5)
    endpoint = {"cluster": "c", "role": "broker", "app": None, "protocol": "jolokia", "address": agents.url("good")}
    endpoints = [endpoint | {"match": None, "has_credentials": False, "timeout_seconds": 120}]
    options = {"samples": "2", "sample_seconds": "0.1", "partitions": "1", "endpoints": json.dumps(endpoints)}
    source = Jmx(options | {"hour": start_of_hour(datetime.now(UTC)).isoformat()})
    reader = source.reader(source.schema())
    ever_earlier = count(time.time(), -30)
    monkeypatch.setattr(time, "time", lambda: next(ever_earlier))
    started = time.monotonic()
    rows = without_coverage(
        pa.Table.from_batches([b for part in reader.partitions() for b in reader.read(part)]).to_pylist()
    )
    assert 0.6 <= time.monotonic() - started < 25  # not the 30 s by which the clock was set back
    assert len({row["at"] for row in rows if row["metric"]}) == 2


def test_labels_can_be_stored_whatever_the_client_id() -> None:
    labels = {"client": "a\0b\ud800c\udc00", "emoji": "\U0001f600"}
    [(_, text, _)] = with_labels_as_json([("threads", labels, 1.0)])
    assert json.loads(text) == {"client": "a\ufffdb\ufffdc\ufffd", "emoji": "\U0001f600"}
