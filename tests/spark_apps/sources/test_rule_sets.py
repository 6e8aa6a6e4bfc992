"""Public rule sets of exporters: every metric that a page carries is recognized, none twice.

`pages/` has what a real broker (Kafka 4.3.1) and a real Streams application exposed on 2026-11-26 by the rule sets of
`exporter_rules`, by OpenTelemetry's Java agent 2.20.1, and by Strimzi Metrics Reporter 0.2.0: of topic `t`, a few
requests, and at most three series that differ in partition or thread.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from spark_apps.sources.jmx_mbeans import MBEANS
from spark_apps.sources.jmx_metrics import METRICS
from spark_apps.sources.jmx_series import Clash, names_of, readings_of
from spark_apps.sources.known_series import NODE_SERIES, SERIES
from spark_apps.sources.prometheus import series_of
from spark_apps.sources.series_forms import forms_of, rendered, squashed

PAGES = Path(__file__).with_name("pages")
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float | None]
JVM = {
    "cpu_seconds_total", "heap_max_bytes", "heap_used_bytes", "max_file_descriptors", "non_heap_used_bytes",
    "open_file_descriptors", "physical_memory_bytes", "processors",
}  # fmt: skip
"""Not on a page of an exporter beside the JVM unless a rule names java.lang; an agent in the JVM has most of them."""
MEANS = {"log_flush_ms_total", "request_ms_total"}
PERCENTILES = {"log_flush_p95_ms", "log_flush_p999_ms", "request_median_ms", "request_p99_ms"}
CLIENTS = {"client_connections", "client_fetch_bytes_per_second"}
IDLE = {"request_handler_idle_ratio"}
UNCLEANABLE = {"uncleanable_bytes", "uncleanable_partitions"}
BY_EXAMPLE = JVM | MEANS | IDLE
MISSING = {
    "kafka-2_0_0.yml-0.20.0": BY_EXAMPLE | {"client_connections"},
    "kafka-2_0_0.yml-1.0.1": BY_EXAMPLE | {"client_connections"},
    "kafka-kraft-3_0_0.yml-1.0.1": BY_EXAMPLE | CLIENTS | {"broker_info"},
    "kafka-0-8-2.yml-0.20.0": BY_EXAMPLE | CLIENTS | PERCENTILES | UNCLEANABLE | {"broker_info"},
    "early-koperator-0.20.0": BY_EXAMPLE | CLIENTS | PERCENTILES | UNCLEANABLE | {"broker_info"},
    "koperator-1.0.1": set(),
    "Strimzi-1.0.1": BY_EXAMPLE | {"broker_info", "client_fetch_bytes_per_second"},
    "Bitnami-1.0.1": MEANS | PERCENTILES | CLIENTS | UNCLEANABLE
    | {"broker_info", "cleaner_last_run_seconds", "dead_cleaner_threads", "log_flushes_total"},
    "PerSec-in-the-name-1.0.1": BY_EXAMPLE | CLIENTS | {"broker_info"},
    "all-counters-0.20.0": BY_EXAMPLE | CLIENTS | PERCENTILES | {"broker_info"},
    "Confluent-0.20.0": JVM | MEANS | {"broker_info"},
    "Confluent-1.0.1": JVM | MEANS | {"broker_info"},
    "strimzi-reporter": {"physical_memory_bytes", "processors"},
    "otel": MEANS | IDLE | UNCLEANABLE | CLIENTS | {"log_flush_p95_ms", "log_flush_p999_ms"}
    | {metric for metric in METRICS if metric.startswith(("reassign", "replication"))}
    | {
        "broker_info", "bytes_rejected_total", "cleaner_last_run_seconds", "dead_cleaner_threads", "leaders",
        "log_bytes", "log_segments", "max_file_descriptors", "open_file_descriptors", "physical_memory_bytes",
        "produce_responses_total", "under_min_isr_partitions",
    },
}  # fmt: skip
"""By page of a broker: metrics that it doesn't carry, of those without rules."""
OF_TOPIC = {"bytes_in_total": 340_881, "messages_in_total": 3_000, "log_bytes": 340_881, "log_segments": 3}
OF_BROKER = {"partitions": 13, "leaders": 13, "active_controllers": 1}


def read(page: bytes, role: Any, clashes: list[Clash] | None = None) -> Values:
    """What a page says in the last sample."""
    names = names_of(role, 1, 2)
    found = list(readings_of(names, series_of(page, names), clashes))
    values = {(metric, tuple(sorted(labels.items()))): value for metric, labels, value in found}
    assert len(values) == len(found), "a reading stands there twice"
    return values


def metrics_of(values: Values) -> set[str]:
    return {metric for metric, _ in values if metric in METRICS}


def test_without_rules_all_is_recognized() -> None:
    values = read((PAGES / "broker-without-rules-1.0.1.txt").read_bytes(), "broker")
    absent = {"resident_bytes", "remote_fetch_bytes_total"}  # of the agent's own page; of a broker with tiered storage
    assert metrics_of(values) == {r.metric for b in MBEANS if "broker" in b.roles for r in b.readings} - absent


@pytest.mark.parametrize("page", MISSING)
def test_what_a_broker_s_page_carries_is_recognized_once(page: str) -> None:
    every = read((PAGES / "broker-without-rules-1.0.1.txt").read_bytes(), "broker")
    clashes: list[Clash] = []
    values = read((PAGES / f"broker-{page}.txt").read_bytes(), "broker", clashes)
    assert not clashes
    assert metrics_of(every) - metrics_of(values) == MISSING[page]
    labels_of = {metric: {tuple(dict(labels)) for other, labels in every if other == metric} for metric, _ in every}
    for metric, labels in values:
        assert metric not in labels_of or tuple(dict(labels)) in labels_of[metric], (metric, labels)
    assert {metric: values[metric, ()] for metric in OF_BROKER if (metric, ()) in values} == {
        metric: value for metric, value in OF_BROKER.items() if metric not in MISSING[page]
    }
    by_topic = {metric: values.get((metric, (("topic", "t"),))) for metric in OF_TOPIC}
    assert page == "otel" or by_topic == OF_TOPIC


def test_a_rate_and_a_mean_since_the_start_are_no_counter_and_no_recent_rate() -> None:
    page = """kafka_server_brokertopicmetrics_bytesinpersec_oneminuterate 5
kafka_server_brokertopicmetrics_total_bytesinpersec_oneminuterate 5
kafka_server_brokertopicmetrics_bytesinpersec_meanrate{topic="t"} 5
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.5
kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_count_total 9
kafka_server_replicamanager_partitioncount 7
"""
    assert read(page.encode(), "broker") == {("partitions", ()): 7}


@pytest.mark.parametrize(
    ("page", "value", "clash"),
    [
        ("kafka_log_log_size{topic='t',partition='0'} 5\nkafka_log_size{topic='t'} 9", 5, True),
        (
            "kafka_log_log_size{topic='t',partition='0'} 5\nkafka_log_log_size_value{topic='t',partition='0'} 5",
            5,
            False,
        ),
        ("kafka_log_size_value{topic='t',partition='0'} 5", 5, False),
        ("kafka_log_log_size{topic='t',partition='0'} 5\nkafka_log_log_size_value{topic='t',partition='0'} 6", 6, True),
    ],
)
def test_one_reading_by_two_names_is_not_added_up(page: str, value: float, clash: bool) -> None:
    clashes: list[Clash] = []
    values = read(f"{page}\n".replace("'", '"').encode(), "broker", clashes)
    assert values == {("log_bytes", (("topic", "t"),)): value} and bool(clashes) == clash


def test_names_that_others_gave() -> None:
    page = """kafka_controller_controllerstats_unclean_leader_elections_total 3
kafka_server_replicamanager_partition_count 7
kafka_server_brokertopicmetrics_total_fetch_requests_total{topic="t"} 4
kafka_network_requestmetrics_totaltimems_produce_99thpercentile 12
kafka_network_requestmetrics_totaltimems{request="Produce, version=9",quantile=".5"} 9
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.5"} 4
kafka_server_Fetch_byte_rate{client_id="c",user=""} 8
kafka_server_ReplicaManager_Value{name="LeaderCount"} 6
"""
    assert read(page.encode(), "broker") == {
        ("unclean_elections_total", ()): 3,
        ("partitions", ()): 7,
        ("leaders", ()): 6,
        ("fetch_requests_total", (("topic", "t"),)): 4,
        ("request_p99_ms", (("request", "Produce"),)): 12,
        ("request_median_ms", (("request", "Produce"),)): 4,
        ("client_fetch_bytes_per_second", (("client", "c"),)): 8,
    }


def test_opentelemetry_s_requests() -> None:
    page = """messaging_kafka_network_io_bytes_total{state="in"} 7
kafka_request_time_total_milliseconds_total{type="produce"} 4
kafka_request_time_avg_milliseconds{type="produce"} 2.5
kafka_request_failed_total{type="fetch"} 1
kafka_request_failed_total{type="produce"} 3
kafka_leader_election_unclean_count_total 2
"""
    produce = (("request", "Produce"),)
    assert read(page.encode(), "broker") == {
        ("bytes_in_total", ()): 7,
        ("requests_total", produce): 4,
        ("request_ms_total", produce): 10,
        ("failed_produces_total", ()): 3,
        ("unclean_elections_total", ()): 2,
    }


@pytest.mark.parametrize(
    ("page", "recognized"),
    [
        ("app-kafka_stream.yml-0.20.0", {"stream_threads_alive", "stream_threads_failed"}),
        (
            "app-kafka_stream.yml-1.0.1",
            {"stream_threads_alive", "stream_threads_failed", "poll_latency_max_ms", "block_cache_usage_bytes"},
        ),
    ],
)
def test_series_whose_labels_a_rule_dropped(page: str, recognized: set[str]) -> None:
    """Before 1.0 one thread's series stood for all of them; since then the exporter names each."""
    assert metrics_of(read((PAGES / f"{page}.txt").read_bytes(), "app")) == recognized


def test_what_a_streams_application_s_page_carries_is_recognized_once() -> None:
    every = read((PAGES / "app-without-rules-1.0.1.txt").read_bytes(), "app")
    clashes: list[Clash] = []
    values = read((PAGES / "app-Confluent-1.0.1.txt").read_bytes(), "app", clashes)
    of_jvm = {r.metric for b in MBEANS if b.pattern.startswith("java") for r in b.readings}
    assert not clashes and metrics_of(every) - metrics_of(values) <= of_jvm
    assert values["streams_info", (("application_id", "orders"),)] == 1
    assert values["streams_version", (("version", "4.3.1"),)] == 1 and values["stream_threads_alive", ()] == 2
    assert {labels for metric, labels in values if metric == "reads_topic"} == {
        labels for metric, labels in every if metric == "reads_topic"
    }


def test_no_name_fits_attributes_of_two_beans() -> None:
    for role in ("broker", "app"):
        names = names_of(role, 1, 2)
        for name, meanings in names.meanings.items():
            beans = [m for m in meanings if names.families[m.family].table == "mbean"]
            for one, other in product(beans, beans):
                if (one.subject, one.attribute) != (other.subject, other.attribute) and one.rank == other.rank:
                    apart = {key for key in one.where.keys() | other.where.keys() if _apart(one, other, key)}
                    assert apart, f"{name}: {one.subject} {one.attribute}, {other.subject} {other.attribute}"


def _apart(one: Any, other: Any, key: str) -> bool:
    """Whether no series can be both, by a label."""
    first, second = one.where.get(key), other.where.get(key)
    if first is None or second is None or first == second:
        return False
    return "*" not in (first, second) or "" in (first, second)


def test_a_prometheus_server_is_asked_for_every_name() -> None:
    for role in ("broker", "app", "node"):
        names = names_of(role, 1, 2)
        pattern = re.compile(rendered(names.queries))
        spelled = {"_".join(filter(None, parts)) for b in MBEANS if role in b.roles for f in forms_of(b)
                   for parts in product(*f.slots)}  # fmt: skip
        spelled |= {name.lower() for one in (*SERIES, *NODE_SERIES) for name in one.attributes}
        for name in spelled:
            if squashed(name) in names.meanings:
                assert pattern.fullmatch(name) and pattern.fullmatch(re.sub("[^a-z0-9]", "", name)), name
        assert len(rendered(names.queries)) < 16_000  # VictoriaMetrics' -search.maxQueryLen
