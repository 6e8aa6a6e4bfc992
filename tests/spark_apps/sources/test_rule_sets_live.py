"""Public rule sets on a real broker and a real Streams application, by each version of the exporter on Maven Central.

What rules carry is recognized and has Jolokia's values. OpenTelemetry's agent and Strimzi's reporter are in the broker.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import demo.broker
import httpx
import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.jar_set import ensure
from demo.jars import JOLOKIA, STREAMS, classpath
from demo.process import Jvm, free_port

from spark_apps.sources.jmx_mbeans import MBEANS, MBean, Role
from spark_apps.sources.jmx_readings import readings_of as by_jmx
from spark_apps.sources.jmx_series import Clash
from spark_apps.sources.recognition import recognized, rule_lines
from tests.spark_apps.sources.exporter_rules import APPLICATIONS, BROKERS, RuleSet, carried
from tests.spark_apps.sources.jmx_exporter import (
    BESIDE,
    OTEL_AGENT,
    STRIMZI_REPORTER,
    exposed_and_asked,
    exposed_beside,
    jmx_rmi_options,
)
from tests.spark_apps.sources.test_prometheus import wait_for_stores
from tests.spark_apps.sources.test_rule_sets import Values, metrics_of, read

pytestmark = [pytest.mark.slow, pytest.mark.rare]
MOVING = ("heap", "non_heap", "cpu", "open_file", "log_flush", "cleaner_last", "request_handler", "log_bytes")
NOT_SERVED = {("kafka-0-8-2.yml", "1.0.1"), ("early koperator", "1.0.1"), ("all counters", "1.0.1")}
"""Exporters since 1.0 answer with HTTP 500 where a rule calls a gauge below 0 a counter."""
JVM = {"heap_used_bytes", "heap_max_bytes", "non_heap_used_bytes", "cpu_seconds_total", "max_file_descriptors"}
JVM |= {"open_file_descriptors"}
"""The exporter's client library has these of the exporter's own JVM."""

Beans = list[tuple[MBean, Mapping[str, Any]]]
"""By bean its object names, by object name its attributes."""


@dataclass
class Watched:
    """A broker, and where it is read."""

    jolokia: str
    rmi: int
    otel: str
    reporter: str


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    rmi, otel, reporter = free_port(), free_port(), free_port()
    agent = {
        "jmx.target.system": "kafka-broker",
        "metrics.exporter": "prometheus",
        "exporter.prometheus.port": otel,
        "exporter.prometheus.host": "127.0.0.1",
        "traces.exporter": "none",
        "logs.exporter": "none",
    }
    options = [f"-javaagent:{ensure(OTEL_AGENT)[0]}", *(f"-Dotel.{key}={value}" for key, value in agent.items())]
    strimzi = "io.strimzi.kafka.metrics"
    settings = {
        "metric.reporters": f"org.apache.kafka.common.metrics.JmxReporter,{strimzi}.KafkaPrometheusMetricsReporter",
        "kafka.metrics.reporters": f"{strimzi}.YammerPrometheusMetricsReporter",
        "prometheus.metrics.reporter.listener": f"http://127.0.0.1:{reporter}",
    }
    with pytest.MonkeyPatch.context() as patch:
        own = demo.broker.classpath
        jars = ":".join(map(str, ensure(STRIMZI_REPORTER)))
        patch.setattr(demo.broker, "classpath", lambda of: f"{own(of)}:{jars}")
        folder = tmp_path_factory.mktemp("broker")
        with Broker(folder, options=[*options, *jmx_rmi_options(rmi)], settings=settings) as running:
            _use(running.bootstrap_servers)
            page = "http://127.0.0.1:{}/metrics"
            yield Watched(running.jolokia_url, rmi, page.format(otel), page.format(reporter))


def _use(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic("t", 3)])["t"].result(20)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(500):
        producer.produce("t", key=str(number), value=b"x" * 100)
    assert producer.flush(20) == 0


def of_jolokia(url: str, role: Role = "broker") -> Beans:
    beans = [bean for bean in MBEANS if role in bean.roles]
    asked = [{"type": "read", "mbean": f"{bean.pattern},*"} for bean in beans]
    answers = httpx.post(url, content=json.dumps(asked), timeout=60).json()
    return [(bean, answer.get("value") or {}) for bean, answer in zip(beans, answers, strict=True)]


def _registered(beans: Beans) -> list[dict[str, set[str]]]:
    return [{name: set(attributes) for name, attributes in by_name.items()} for _, by_name in beans]


def expected(beans: Beans, rules: RuleSet) -> set[str]:
    """Metrics of which the rules expose all that it takes, under names of their own."""
    found = set()
    for bean, by_name in beans:
        for name, attributes in by_name.items():
            for reading in bean.readings:
                needed = [part for part in (reading.attribute, reading.times) if part]
                has = all(part.split(".")[0] in attributes for part in needed)
                if has and not reading.label and set(needed) <= carried(rules, name, needed):
                    found.add(reading.metric)
    return found


def by_jolokia(beans: Beans) -> Values:
    return {
        (metric, tuple(sorted(labels.items()))): value
        for bean, by_name in beans
        for metric, labels, value in by_jmx(bean, by_name)
    }


@pytest.mark.parametrize("version", BESIDE)
@pytest.mark.parametrize("rules", BROKERS)
def test_what_the_rules_carry_has_jolokia_s_values(broker: Watched, rules: str, version: str, tmp_path: Path) -> None:
    file = BROKERS[rules].to_yaml(hostPort=f"127.0.0.1:{broker.rmi}")
    page, beans = exposed_and_asked(
        partial(exposed_beside, version, file, tmp_path), partial(of_jolokia, broker.jolokia), _registered
    )
    if (rules, version) in NOT_SERVED:
        assert not page
        return
    clashes: list[Clash] = []
    values = read(page.encode(), "broker", clashes)
    assert not clashes
    assert metrics_of(values) - JVM - {"broker_info", "resident_bytes"} == expected(beans, BROKERS[rules]) - JVM
    steady(values, by_jolokia(beans))


def steady(values: Values, of_jmx: Values) -> None:
    """Values that stay while nobody uses the broker are the same."""
    both = [s for s in values.keys() & of_jmx.keys() if not s[0].startswith(MOVING) and s[0] != "broker_info"]
    assert len(both) > 10
    assert {s: values[s] for s in both} == pytest.approx({s: of_jmx[s] for s in both})


@pytest.mark.parametrize("rules", ["kafka-2_0_0.yml", "kafka-0-8-2.yml", "Bitnami", "Confluent"])
def test_the_lines_of_the_probe_expose_what_is_missing(broker: Watched, rules: str, tmp_path: Path) -> None:
    """By an exporter in the JVM, `java.lang` is on the page as it is; beside it the lines expose that, too."""
    file, host = yaml.safe_load(BROKERS[rules].to_yaml()), f"127.0.0.1:{broker.rmi}"
    before = recognized("broker", metrics_of(read(_page(file, host, tmp_path), "broker")))
    assert before.missing
    file["rules"] = [*yaml.safe_load("\n".join(rule_lines("broker", before.missing))), *file["rules"]]
    clashes: list[Clash] = []
    values = read(_page(file, host, tmp_path), "broker", clashes)
    assert recognized("broker", metrics_of(values)).missing == () and not clashes
    steady(values, by_jolokia(of_jolokia(broker.jolokia)))


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A Streams application with key-value and window stores that are open, on a broker of its own."""
    folder, rmi, jolokia = tmp_path_factory.mktemp("orders"), free_port(), free_port()
    source = str(Path(demo.__path__[0]) / "OrdersApp.java")
    with Broker(folder / "broker") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 2)])["orders"].result(20)
        app = Jvm(
            "orders",
            [source, broker.bootstrap_servers, str(folder / "state"), "unbounded"],
            folder,
            classpath=classpath(STREAMS),
            agent=ensure(JOLOKIA)[0],
            jolokia_port=jolokia,
            options=["-Xmx160m", *jmx_rmi_options(rmi)],
        )
        with app:
            url = f"http://127.0.0.1:{jolokia}/jolokia"
            wait_for_stores(url, 4)
            yield Watched(url, rmi, "", "")


NOT_BY_NAME = {"memory_pool_used_bytes", "memory_pool_used_after_gc_bytes", "gc_seconds_total", "gc_collections_total"}
"""Without rules their pool's or collector's name stands in their own: an agent in the JVM has them by other names."""
OF_ANY_JVM = {"resident_bytes"} | {
    r.metric for bean in MBEANS if bean.pattern.startswith("java") for r in bean.readings
}


@pytest.mark.parametrize("version", BESIDE)
@pytest.mark.parametrize("rules", APPLICATIONS)
def test_what_the_rules_carry_of_a_streams_application(
    application: Watched, rules: str, version: str, tmp_path: Path
) -> None:
    of_rules = APPLICATIONS[rules]
    file = of_rules.to_yaml(hostPort=f"127.0.0.1:{application.rmi}")
    page, beans = exposed_and_asked(
        partial(exposed_beside, version, file, tmp_path), partial(of_jolokia, application.jolokia, "app"), _registered
    )
    clashes: list[Clash] = []
    values = read(page.encode(), "app", clashes)
    texts = {"streams_info", "streams_state", "streams_version"}
    # Before 1.0 an exporter drops all series but one that get the same name and labels.
    labels_dropped = {"poll_latency_max_ms", "block_cache_usage_bytes"} if rules == "kafka_stream.yml" else set()
    dropped = set() if version.startswith("1.") else labels_dropped
    assert not clashes
    assert metrics_of(values) - OF_ANY_JVM - texts == expected(beans, of_rules) - OF_ANY_JVM - texts - dropped
    assert (("streams_info", (("application_id", "orders"),)) in values) == (rules != "kafka_stream.yml")
    of_jmx = by_jolokia(beans)
    same = {"stream_threads_alive", "stream_threads_failed", "block_cache_capacity_bytes", "keys", "reads_topic"}
    both = [series for series in values.keys() & of_jmx.keys() if series[0] in same]
    assert both and {s: values[s] for s in both} == {s: of_jmx[s] for s in both}


def test_the_lines_of_the_probe_expose_what_an_application_s_rules_leave_out(
    application: Watched, tmp_path: Path
) -> None:
    file, host = yaml.safe_load(APPLICATIONS["kafka_stream.yml"].to_yaml()), f"127.0.0.1:{application.rmi}"
    every = {r.metric for bean in MBEANS if "app" in bean.roles for r in bean.readings}
    file["rules"] = [*yaml.safe_load("\n".join(rule_lines("app", every))), *file["rules"]]
    metrics = metrics_of(read(_page(file, host, tmp_path), "app"))
    assert set(recognized("app", metrics).missing) <= NOT_BY_NAME


def _page(file: dict[str, Any], host: str, folder: Path) -> bytes:
    return exposed_beside("0.20.0", yaml.safe_dump(file | {"hostPort": host}), folder).encode()


def test_strimzi_s_reporter_has_jolokia_s_values(broker: Watched) -> None:
    clashes: list[Clash] = []
    values = read(httpx.get(broker.reporter, timeout=60).content, "broker", clashes)
    of_jmx = by_jolokia(of_jolokia(broker.jolokia))
    assert not clashes
    assert metrics_of(of_jmx) - metrics_of(values) == {"physical_memory_bytes", "processors"}
    steady(values, of_jmx)


def test_opentelemetry_s_agent_has_jolokia_s_values(broker: Watched) -> None:
    deadline = time.monotonic() + 120  # the agent looks for MBeans again after some time
    while b"kafka_message_count" not in (page := httpx.get(broker.otel, timeout=60).content):
        assert time.monotonic() < deadline
        time.sleep(1)
    clashes: list[Clash] = []
    values = read(page, "broker", clashes)
    of_jmx = by_jolokia(of_jolokia(broker.jolokia))
    assert not clashes and len(metrics_of(values)) >= 20
    steady(values, of_jmx)
