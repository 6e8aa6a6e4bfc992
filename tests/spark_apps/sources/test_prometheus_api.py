"""An hour from a Prometheus server: present and past hours, aligned timestamps, and servers that fail.

The server is a stand-in that answers range queries in the real format, from series that are functions of time.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from pydantic import ValidationError
from streamwarden.base.config import Config, JmxEndpoint
from streamwarden.base.hours import HOUR, start_of_hour

from spark_apps.sources.jmx import Jmx, replicas_of
from tests.answering import answering
from tests.clock import present_hour
from tests.spark_apps.sources.agents import without_coverage

PAST = datetime(2026, 1, 5, 10, tzinfo=UTC)
RESTART = (PAST - timedelta(days=3)).timestamp()
BYTES, LOG, MISREAD = "kafka_server_BrokerTopicMetrics_Count", "kafka_log_Log_Value", "kafka_cluster_Partition_Value"
_Series = list[tuple[dict[str, str], Callable[[float], float | None]]]
SERIES: _Series = [
    ({"__name__": "process_start_time_seconds"}, lambda _: RESTART),
    ({"__name__": "jvm_memory_used_bytes", "area": "heap"}, lambda t: 1000 + t % 3600),
    ({"__name__": BYTES, "name": "BytesInPerSec"}, lambda t: 10 * (t - RESTART)),
    ({"__name__": BYTES, "name": "BytesInPerSec", "topic": "a"}, lambda t: 4 * (t - RESTART)),
    ({"__name__": LOG, "name": "Size", "topic": "a", "partition": "0"}, lambda t: t),
    ({"__name__": MISREAD, "name": "UnderReplicated"}, lambda _: 1),
    ({"__name__": "kafka_server_ReplicaManager_Value", "name": "UnderReplicatedPartitions"}, lambda _: math.nan),
    ({"__name__": "process_open_fds"}, lambda t: 7 if t > PAST.timestamp() + 1800 else None),
]


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listening

    def do_POST(self) -> None:
        form = {k: v[0] for k, v in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()}
        self.server.asked.append((self.path, form))
        kind = self.path.split("/")[1]
        if kind == "hangs":
            self.server.freed.wait(60)
            self.close_connection = True  # the port is closed by now
            return
        text = {"fails": '{"status": "error", "error": "x"}', "strange": '{"status": "success"}'}
        remark = {key: value for key, value in self.server.remark.items() if key != "headers"}
        result = [*_answer(form, self.server.series), {"metric": {"__name__": "a_histogram"}, "histograms": []}]
        body = text.get(kind) or json.dumps({"status": "success", **remark, "data": {"result": result}})
        self.send_response(422 if kind == "rejects" else 200)
        for name, value in self.server.remark.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_arguments: Any) -> None:
        pass


def _answer(form: dict[str, str], series: Mapping[str, _Series]) -> list[dict[str, Any]]:
    names, instance = re.fullmatch(r'\{__name__=~"(.*?)",instance="(.*)"\}', form["query"]).groups()  # type: ignore[union-attr]
    start, end, step = (float(form[key]) for key in ("start", "end", "step"))
    times = [start + n * step for n in range(int((end - start) / step) + 1)]
    found = []
    for labels, value_at in series.get(instance, ()):
        values = [[round(t, 3), str(value_at(t)).replace("nan", "NaN")] for t in times if value_at(t) is not None]
        if re.fullmatch(names, labels["__name__"]) and values:
            found.append({"metric": {**labels, "instance": instance, "job": "kafka"}, "values": values})
    return found


class _Listening(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Server)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.series: Mapping[str, _Series] = {"b1:7071": SERIES}
        self.freed = threading.Event()
        self.remark: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def prometheus() -> Iterator[_Listening]:
    with answering(_Listening()) as server:
        yield server
        server.freed.set()


def ask(
    *urls: str,
    hour: datetime = PAST,
    match: str = 'instance="b1:7071"',
    matches: list[str] | None = None,
    role: str = "broker",
    timeout_seconds: float = 60,
) -> list[dict[str, Any]]:
    """Rows of the source, read here instead of in a Spark task; `matches`: one for each address."""
    jvm = {"cluster": "demo", "role": role, "app": None, "protocol": "prometheus_api"}
    jvm |= {"has_credentials": False}
    endpoints = [
        {**jvm, "address": f"{url}{{{match}}}" if match else url, "match": match}
        | {"timeout_seconds": 1 if url.endswith("/hangs") else timeout_seconds}
        for url, match in zip(urls, matches or [match] * len(urls), strict=True)
    ]
    options = {"endpoints": json.dumps(endpoints), "hour": hour.isoformat()}
    options |= {"samples": "2", "sample_seconds": "0.1", "partitions": "1"}
    source = Jmx(options)
    reader = source.reader(source.schema())
    batches = [b for part in reader.partitions() for b in reader.read(part)]
    return without_coverage(pa.Table.from_batches(batches).to_pylist()) if batches else []


def values_of(rows: list[dict[str, Any]], metric: str, labels: str = "{}") -> dict[datetime, float | None]:
    return {row["at"]: row["value"] for row in rows if (row["metric"], row["labels"]) == (metric, labels)}


def test_a_past_hour_is_read_completely(prometheus: _Listening) -> None:
    rows = ask(prometheus.url)
    assert not any(row["gap"] for row in rows)
    heap = values_of(rows, "heap_used_bytes")
    assert list(heap) == [PAST + timedelta(minutes=5 * n) for n in range(13)]
    assert heap[PAST + timedelta(minutes=5)] == 1300
    whole = values_of(rows, "bytes_in_total")
    assert whole[PAST + HOUR] - whole[PAST] == 36_000 and len(whole) == 2  # type: ignore[operator]
    topic = values_of(rows, "bytes_in_total", '{"topic": "a"}')
    assert topic[PAST + HOUR] - topic[PAST] == 14_400 and topic.keys() == {PAST, PAST + HOUR}  # type: ignore[operator]
    assert values_of(rows, "log_bytes", '{"topic": "a"}') == {PAST + HOUR: (PAST + HOUR).timestamp()}  # as by Jolokia
    assert set(values_of(rows, "under_replicated_partitions").values()) == {None}
    assert min(values_of(rows, "open_file_descriptors")) == PAST + timedelta(minutes=35)
    assert {row["process_started_at"].timestamp() for row in rows} == {RESTART}
    assert {row["endpoint"] for row in rows} == {prometheus.url + '{instance="b1:7071"}'}
    assert [path for path, _ in prometheus.asked] == ["/api/v1/query_range"] * 2


def test_many_hosts_of_one_server(prometheus: _Listening) -> None:
    """Each host has its own series. Hosts without series are one gap each and do not affect the others."""
    machines = [f"m{number}:9100" for number in range(60)]
    prometheus.series = {
        f"m{number}:9100": [
            ({"__name__": "node_boot_time_seconds"}, lambda _: RESTART),
            ({"__name__": "node_memory_MemTotal_bytes"}, lambda _, number=number: float(number)),
            ({"__name__": "node_cpu_seconds_total", "cpu": "0", "mode": "user"}, lambda t: t - RESTART),
        ]
        for number in range(50)
    }
    rows = ask(
        *[prometheus.url] * 60,
        timeout_seconds=30,
        matches=[f'instance="{machine}"' for machine in machines],
        role="node",
    )
    totals = {row["endpoint"]: row["value"] for row in rows if row["metric"] == "physical_memory_bytes"}
    assert totals == {f'{prometheus.url}{{instance="m{number}:9100"}}': number for number in range(50)}
    assert sorted(row["endpoint"] for row in rows if row["gap"]) == sorted(
        f'{prometheus.url}{{instance="{machine}"}}' for machine in machines[50:]
    )
    assert {row["process_started_at"].timestamp() for row in rows if not row["gap"]} == {RESTART}


def test_consecutive_hours_are_contiguous(prometheus: _Listening) -> None:
    one, next_one = ask(prometheus.url), ask(prometheus.url, hour=PAST + HOUR)
    at = PAST + HOUR
    assert values_of(one, "bytes_in_total")[at] == values_of(next_one, "bytes_in_total")[at]


def test_the_present_hour_is_read_until_now(prometheus: _Listening) -> None:
    hour, before = present_hour(), datetime.now(UTC)
    rows = ask(prometheus.url, hour=hour)
    moments = list(values_of(rows, "heap_used_bytes"))
    assert len(moments) == 13 and moments[0] == hour
    assert before - timedelta(seconds=1) <= moments[-1] <= datetime.now(UTC)
    assert values_of(rows, "bytes_in_total").keys() == {moments[0], moments[-1]}


@pytest.mark.parametrize(
    ("path", "match", "reason"),
    [
        ("strange", 'instance="b1:7071"', "the response is not from a Prometheus server"),
        ("fails", 'instance="b1:7071"', "the server could not evaluate the query"),
        ("rejects", 'instance="b1:7071"', "HTTP 422"),
        ("good", 'instance="b9:7071"', "the server has no series of this JVM for this hour"),
    ],
)
def test_a_target_without_series_is_a_gap(prometheus: _Listening, path: str, match: str, reason: str) -> None:
    (row,) = ask(f"{prometheus.url}/{path}", match=match)
    assert row["gap"].startswith(f"failed: {reason}")


def test_a_server_that_hangs_takes_one_time_out_for_all_its_jvms(prometheus: _Listening) -> None:
    rows = ask(*[f"{prometheus.url}/hangs"] * 20, prometheus.url)
    assert sum(row["gap"] is not None for row in rows) == 20
    # Four at once; a busy machine may time them out before they are sent.
    assert len([path for path, _ in prometheus.asked if path.startswith("/hangs")]) <= 4
    assert len(values_of(rows, "heap_used_bytes")) == 13


def test_a_future_hour(prometheus: _Listening) -> None:
    (row,) = ask(prometheus.url, hour=start_of_hour(datetime.now(UTC)) + HOUR)
    assert row["gap"] == "missing: the hour has not begun" and not prometheus.asked


def test_match_is_valid_for_this_protocol_only() -> None:
    jvm = {"role": "broker", "cluster": "c", "url": "http://prometheus:9090"}
    assert JmxEndpoint.model_validate({**jvm, "protocol": "prometheus_api", "match": 'instance="b1"'}).match
    for wrong in ({"protocol": "prometheus_api"}, {"protocol": "prometheus", "match": 'instance="b1"'}):
        with pytest.raises(ValidationError, match="`match` selects the series"):
            JmxEndpoint.model_validate({**jvm, **wrong})


def test_a_highly_available_pair_is_read_once(prometheus: _Listening) -> None:
    """The replica whose series end earlier is the older one."""
    names = [("jvm_memory_used_bytes", 100), ("jvm.thread.count", 40), ("jvm_memory_max_bytes", 400)]
    of = {"jvm.thread.count": {"jvm.thread.state": "waiting"}}
    prometheus.series = {
        "b1:7071": [
            (
                {"__name__": name, "prometheus_replica": replica, **of.get(name, {"area": "heap"})},
                lambda t, v=value, lags=lags: None if lags and t > PAST.timestamp() + 1800 else v - lags,
            )
            for name, value in names
            for replica, lags in (("b", 1), ("a", 0))
        ]
    }
    rows = ask(prometheus.url, role="app")
    jvm = {"role": "app", "app": "orders", "cluster": "c", "protocol": "prometheus_api", "match": 'instance="b1:7071"'}
    jvms = [jvm | {"url": prometheus.url}, jvm | {"url": f"{prometheus.url}/fails"}]
    config = Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": "b:9092"}], "jmx": jvms})
    [(resource, labels)] = replicas_of(config, PAST).items()
    assert labels == {"prometheus_replica": {"a", "b"}} and resource.startswith("orders of c at http://")
    for metric, expected in (("heap_used_bytes", 100), ("threads", 40), ("heap_max_bytes", 400)):
        assert list(values_of(rows, metric).values()) == [expected] * 13, metric


@pytest.mark.parametrize(
    ("remark", "reason"),
    [
        ({"warnings": ["partial response: store s-1 unavailable", "x"]}, "partial response: store s-1 unavailable; x"),
        ({"isPartial": True}, "some storage nodes did not respond"),
        ({"warnings": [], "isPartial": False, "infos": ["PromQL info: not a counter"]}, None),
        ({"warnings": None}, None),
        ({"headers": {"M3-Results-Limited": "max_fetch_series_limit_applied"}}, "max_fetch_series_limit_applied"),
    ],
)
def test_a_partial_response_is_an_error(prometheus: _Listening, remark: dict[str, Any], reason: str | None) -> None:
    prometheus.remark = remark
    rows = ask(prometheus.url)
    if reason:
        assert [row["gap"] for row in rows] == [f"failed: the server's response is partial: {reason}"]
    else:
        assert len(values_of(rows, "heap_used_bytes")) == 13
