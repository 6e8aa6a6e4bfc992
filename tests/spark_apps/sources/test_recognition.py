"""What an exporter doesn't expose: metrics, detectors that need them, rules that expose them, and the hour's row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
import yaml
from streamwarden.base.hours import start_of_hour

from spark_apps.sources.jmx import METRICS_OF, Jmx
from spark_apps.sources.jmx_mbeans import MBEANS
from spark_apps.sources.jmx_readings import key_properties
from spark_apps.sources.recognition import recognized, rule_lines
from tests.docker.documented import block
from tests.spark_apps.sources.agents import Agents, running_agents
from tests.spark_apps.sources.exporter_rules import Rule, RuleSet, carried
from tests.spark_apps.sources.node_page import node_page
from tests.spark_apps.sources.test_rule_sets import MISSING, PAGES, metrics_of, read


@pytest.fixture
def agents() -> Iterator[Agents]:
    with running_agents() as running:
        yield running


def coverage(address: str, role: str = "broker") -> dict[str, str | None]:
    """Gaps by resource, of the rows that say what an endpoint exposes."""
    endpoint = {"cluster": "demo", "role": role, "app": None, "protocol": "prometheus", "address": address}
    endpoint |= {"has_credentials": False, "timeout_seconds": 20}
    options = {"samples": "2", "sample_seconds": "0.05", "partitions": "1", "endpoints": json.dumps([endpoint])}
    source = Jmx(options | {"hour": start_of_hour(datetime.now(UTC)).isoformat()})
    reader = source.reader(source.schema())
    rows = pa.Table.from_batches([batch for part in reader.partitions() for batch in reader.read(part)]).to_pylist()
    return {row["resource"]: row["gap"] for row in rows if row["resource"].startswith(METRICS_OF)}


def page(name: str) -> bytes:
    return (PAGES / f"{name}.txt").read_bytes()


def test_a_broker_by_the_example_rules(agents: Agents) -> None:
    address = agents.serve(page("broker-kafka-2_0_0.yml-1.0.1"))
    [(resource, gap)] = coverage(address).items()
    assert resource == f"metrics of broker of demo at {address}"
    assert gap == (
        "missing: 35 of 47 metrics recognized. Not exposed: heap_used_bytes, heap_max_bytes, non_heap_used_bytes,"
        " cpu_seconds_total, processors, physical_memory_bytes, open_file_descriptors, max_file_descriptors,"
        " log_flush_ms_total, request_ms_total, request_handler_idle_ratio, client_connections."
        " Not evaluated here: broker_file_descriptors_high, broker_requests_high, broker_slow."
    )


def test_an_endpoint_that_exposes_all_is_answered(agents: Agents) -> None:
    assert list(coverage(agents.serve(page("broker-without-rules-1.0.1"))).values()) == [None]
    assert list(coverage(agents.serve(node_page()), "node").values()) == [None]


def test_ambiguous_names_are_named(agents: Agents) -> None:
    all_ = page("broker-without-rules-1.0.1") + b'kafka_log_size{topic="t"} 1\n'
    [gap] = coverage(agents.serve(all_)).values()
    assert str(gap).endswith(
        "Ambiguous: kafka_log_Log_Value and kafka_log_size: different values of the same attribute."
    )


def test_a_half_read_hour_says_nothing_of_metrics(agents: Agents) -> None:
    assert coverage(agents.url("fails")) == {}


def test_a_broker_that_is_no_controller_misses_nothing_of_one() -> None:
    of_broker = {r.metric for bean in MBEANS if "broker" in bean.roles for r in bean.readings}
    controllers = {"active_controllers", "offline_partitions", "unclean_elections_total"}
    assert recognized("broker", of_broker - controllers).gap is None
    assert recognized("broker", of_broker - {"active_controllers"}).missing == ("active_controllers",)


def test_an_application_misses_what_it_can_have() -> None:
    """Stores, and clients, only if one of their metrics is there; Streams, too."""
    jvm = recognized("app", {"heap_used_bytes"}).missing
    assert "heap_max_bytes" in jvm and not any(metric.startswith(("stream", "producer", "block")) for metric in jvm)
    stateful = recognized("app", {"stream_threads_alive", "sst_bytes", "consumer_records_total"})
    assert {"streams_info", "stream_threads_failed", "block_cache_usage_bytes", "consumer_bytes_total"} <= set(
        stateful.missing
    )
    assert not {"producer_records_total", "consumer_topic_bytes_total"} & set(stateful.missing)
    assert {"stream_threads_dead", "state_store_growing"} <= set(stateful.not_evaluated)


@pytest.mark.parametrize("name", [name for name in MISSING if name != "otel"])
def test_the_rules_expose_what_is_missing(name: str) -> None:
    known = recognized("broker", metrics_of(read(page(f"broker-{name}"), "broker")))
    lines = yaml.safe_load("\n".join(rule_lines("broker", known.missing)) or "[]")
    rules = RuleSet((*(Rule(line["pattern"]) for line in lines), Rule("no such bean")))
    for bean, attributes in _of_metrics("broker", known.missing):
        assert carried(rules, bean, attributes) == set(attributes), bean


def test_the_rules_expose_all_of_an_application_but_pools_and_collectors() -> None:
    """The exporter's client library has those of pools and collectors on every page of an agent."""
    every = tuple(r.metric for bean in MBEANS if "app" in bean.roles for r in bean.readings)
    rules = RuleSet(tuple(Rule(line["pattern"]) for line in yaml.safe_load("\n".join(rule_lines("app", every)))))
    hidden = {
        bean.partition("=")[2].partition(",")[0]
        for bean, attributes in _of_metrics("app", every)
        if carried(rules, bean, attributes) != set(attributes)
    }
    assert hidden == {"MemoryPool", "GarbageCollector", "Pool (x)"}


def test_the_documented_rules_are_those_for_all_that_is_expected_of_a_broker() -> None:
    expected = recognized("broker", {"active_controllers"}).missing
    assert block("jmx-exporter-broker").splitlines()[1:] == [
        "  " + line for line in rule_lines("broker", (*expected, "active_controllers"))
    ]


def _of_metrics(role: Any, metrics: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Object names as a broker has them, in its order of keys, and the attributes that the metrics take."""
    for bean in MBEANS:
        readings = [r for r in bean.readings if role in bean.roles and r.metric in metrics and not r.label]
        if attributes := [name for r in readings for name in (r.attribute, r.times) if name]:
            properties = {key: value.replace("*", "x") for key, value in key_properties(bean.pattern).items()}
            properties |= {key: "x" for key in (*bean.labels, *bean.parts) if key not in properties}
            domain = bean.pattern.partition(":")[0]
            yield f"{domain}:{','.join(f'{key}={value}' for key, value in properties.items())}", attributes


def test_rules_are_few_and_of_one_form() -> None:
    assert rule_lines("broker", ("log_flush_p95_ms", "bytes_in_total", "bytes_out_total", "heap_max_bytes")) == [
        "- pattern: 'java.lang<type=Memory.*><HeapMemoryUsage>max'",
        "- pattern: 'kafka.server<type=BrokerTopicMetrics, name=(BytesInPerSec|BytesOutPerSec).*><>Count'",
        "- pattern: 'kafka.log<type=LogFlushStats, name=LogFlushRateAndTimeMs.*><>95thPercentile'",
    ]
