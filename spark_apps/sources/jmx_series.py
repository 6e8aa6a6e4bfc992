"""The names that JVM metrics have in Prometheus' exposition format: the second name space beside MBEANS.

Five dialects, each taken where those before it don't tell a metric (a page often has several, and their figures must
not be added up):

1. the JMX exporter without rules, and MSK's open monitoring: domain, type and attribute in the name, other keys as
   labels: `kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"}`;
2. the JMX exporter with its example rules for Kafka, which Strimzi has too:
   `kafka_server_brokertopicmetrics_bytesin_total{topic="t"}`;
3. the JVM's own figures of Prometheus' client library: `jvm_memory_used_bytes{area="heap"}`;
4. Micrometer (Spring Boot): `jvm_memory_used_bytes{area="heap",id="G1 Eden Space"}`, `kafka_stream_state_…`;
5. cAdvisor's of the JVM's container: `container_cpu_cfs_periods_total`.

The first two and Micrometer's Kafka metrics follow from MBEANS. A machine's page is node exporter's, which has one
dialect. Names are compared in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Literal

from spark_apps.sources.jmx_catalog import MBean, Reading, Role, beans_of, key_properties, sums_of

Labels = tuple[tuple[str, str], ...]
Dialect = Literal["jmx", "rules", "jvm", "micrometer", "container", "node"]
DIALECTS: tuple[Dialect, ...] = ("jmx", "rules", "jvm", "micrometer", "container", "node")
STARTED = "process_start_seconds"
UPTIME = "process_uptime_ms"
"""Readings beside METRICS: when the process (or machine) began, and how long it has run."""
RESIDENT = "resident_bytes"
CONTAINER = {"periods_total": "cpu_periods_total", "throttled_periods_total": "throttled_periods_total"}
"""No MBean has these."""


@dataclass(frozen=True)
class Series:
    """A series that is no attribute of one of the MBEANS."""

    dialect: Dialect
    name: str
    reading: Reading
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels that it must have; `*` is any value."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label of the series → our label."""


def _jvm(name: str, metric: str, factor: float = 1, **more: Any) -> Series:
    return Series("jvm", name, Reading("Value", metric, factor), **more)


def _micrometer(name: str, metric: str, factor: float = 1, **more: Any) -> Series:
    return Series("micrometer", name, Reading("Value", metric, factor), **more)


_HEAP, _NON_HEAP = {"area": "heap"}, {"area": "nonheap"}
_BROKER_ID: tuple[tuple[Dialect, str, str, dict[str, str]], ...] = (
    ("jmx", "kafka_server_app_info_starttimems", "id", {"id": "*"}),
    ("rules", "kafka_server_app_info_start_time_ms", "client_id", {"client_id": "*"}),
    ("rules", "kafka_server_quota_start_time_ms", "clientid", {"resource": "app-info", "clientid": "*"}),
)
SERIES: tuple[Series, ...] = (
    # A text attribute isn't exposed (so none for streams_version): the broker's id is a label of the number beside it.
    *(
        Series(dialect, name, Reading("Value", "broker_info", presence=True), where, {label: "broker_id"})
        for dialect, name, label, where in _BROKER_ID
    ),
    *(
        Series("jmx", name, Reading("Value", "streams_info", presence=True), {label: "*"}, {label: label})
        for name, label in (
            ("kafka_streams_stream_metrics_client_state", "application_id"),
            ("kafka_stream_client_state", "application_id"),  # Micrometer
        )
    ),
    Series("jmx", "java_lang_runtime_uptime", Reading("Value", UPTIME)),
    Series("rules", "kafka_streams_alive_stream_threads", Reading("Value", "stream_threads_alive")),
    Series("rules", "kafka_streams_failed_stream_threads", Reading("Value", "stream_threads_failed")),
    # Prometheus' client library: 1.x, and 0.x as in MSK
    _jvm("process_start_time_seconds", STARTED),
    *(
        series
        for used, limit, pool in (
            ("jvm_memory_used_bytes", "jvm_memory_max_bytes", "jvm_memory_pool_used_bytes"),
            ("jvm_memory_bytes_used", "jvm_memory_bytes_max", "jvm_memory_pool_bytes_used"),
        )
        for series in (
            _jvm(used, "heap_used_bytes", where=_HEAP),
            _jvm(used, "non_heap_used_bytes", where=_NON_HEAP),
            Series("jvm", limit, Reading("Value", "heap_max_bytes", skip_unknown=True), where=_HEAP),
            _jvm(pool, "memory_pool_used_bytes", labels={"pool": "pool"}),
        )
    ),
    _jvm("jvm_memory_pool_collection_used_bytes", "memory_pool_used_after_gc_bytes", labels={"pool": "pool"}),
    _jvm("jvm_buffer_pool_used_bytes", "direct_buffer_bytes", where={"pool": "direct"}),
    _jvm("jvm_threads_current", "threads"),
    _jvm("jvm_gc_collection_seconds_sum", "gc_seconds_total", labels={"gc": "collector"}),
    _jvm("jvm_gc_collection_seconds_count", "gc_collections_total", labels={"gc": "collector"}),
    _jvm("process_cpu_seconds_total", "cpu_seconds_total"),
    _jvm("process_resident_memory_bytes", RESIDENT),
    _jvm("process_open_fds", "open_file_descriptors"),
    _jvm("process_max_fds", "max_file_descriptors"),
    # Micrometer, where it isn't the same name
    _micrometer("jvm_memory_used_bytes", "memory_pool_used_bytes", where={"id": "*"}, labels={"id": "pool"}),
    _micrometer("jvm_buffer_memory_used_bytes", "direct_buffer_bytes", where={"id": "direct"}),
    _micrometer("jvm_threads_live_threads", "threads"),
    _micrometer("jvm_gc_pause_seconds_sum", "gc_seconds_total", labels={"gc": "collector"}),
    _micrometer("jvm_gc_pause_seconds_count", "gc_collections_total", labels={"gc": "collector"}),
    _micrometer("process_cpu_time_ns_total", "cpu_seconds_total", 1e-9),
    _micrometer("system_cpu_count", "processors"),
    _micrometer("system_cpu_usage", "system_cpu_ratio"),
    _micrometer("process_files_open_files", "open_file_descriptors"),
    _micrometer("process_files_max_files", "max_file_descriptors"),
    _micrometer("hikaricp_connections", "pool_connections"),
    _micrometer("hikaricp_connections_active", "pool_connections_in_use"),
    _micrometer("hikaricp_connections_pending", "pool_threads_waiting"),
    # cAdvisor's, beside the JVM's own in a Prometheus server; without a container's name it is the pod's sum.
    *(
        Series("container", f"container_cpu_cfs_{name}", Reading("Value", metric), {"container": "*"})
        for name, metric in CONTAINER.items()
    ),
)


def _node(name: str, metric: str, *labels: str) -> Series:
    return Series("node", f"node_{name}", Reading("Value", metric), labels={label: label for label in labels})


_FILE_SYSTEM = ("mountpoint", "device", "fstype")
NODE_SERIES: tuple[Series, ...] = (
    _node("boot_time_seconds", STARTED),
    _node("memory_memtotal_bytes", "physical_memory_bytes"),
    _node("memory_memavailable_bytes", "available_memory_bytes"),
    _node("memory_cached_bytes", "page_cache_bytes"),
    _node("load1", "load_1m"),
    _node("cpu_seconds_total", "machine_cpu_seconds_total", "mode"),
    _node("disk_read_bytes_total", "disk_read_bytes_total", "device"),
    _node("disk_written_bytes_total", "disk_written_bytes_total", "device"),
    _node("disk_reads_completed_total", "disk_reads_total", "device"),
    _node("disk_writes_completed_total", "disk_writes_total", "device"),
    _node("disk_io_time_seconds_total", "disk_busy_seconds_total", "device"),
    _node("filesystem_size_bytes", "file_system_bytes", *_FILE_SYSTEM),
    _node("filesystem_avail_bytes", "file_system_available_bytes", *_FILE_SYSTEM),
    _node("filesystem_readonly", "file_system_read_only", *_FILE_SYSTEM),
)


@dataclass(frozen=True)
class Family:
    """Series of one dialect that belong together."""

    dialect: Dialect
    bean: MBean
    """Its labels are named as the series' are."""


@dataclass(frozen=True)
class Meaning:
    """What a series of some name is."""

    family: int
    """Index of the family."""
    attribute: str
    where: Mapping[str, str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels is meant."""
        return self.where.items() <= labels.items() or (
            "*" in self.where.values()
            and all(key in labels and value in ("*", labels[key]) for key, value in self.where.items())
        )


@dataclass(frozen=True, eq=False)
class Names:
    """All that is to be read in one sample: by name in lower case."""

    families: tuple[Family, ...]
    meanings: Mapping[str, tuple[Meaning, ...]]
    hints: Mapping[str, re.Pattern[str]]
    """By name: what a line has somewhere, else its labels needn't be looked at."""


@cache
def names_of(role: Role, sample: int, samples: int) -> Names:
    """What to read in sample number `sample` (from 0) of `samples`."""
    families: list[Family] = []
    meanings: dict[str, list[Meaning]] = {}
    beans = beans_of(role, sample, samples)
    wanted = {STARTED, UPTIME, RESIDENT, *CONTAINER.values()} | {
        reading.metric for bean in beans for reading in bean.readings
    }
    for bean in beans:
        exposed = replace(
            bean,
            labels={_safe(key): label for key, label in bean.labels.items()},
            without=tuple(_safe(key) for key in bean.without),
        )
        for dialect, names in _names_of_bean(bean).items():
            for name, attribute, where in names:
                meanings.setdefault(name, []).append(Meaning(len(families), attribute, where))
            families.append(Family(dialect, exposed))
    for series in [one for one in SERIES if one.reading.metric in wanted] if beans else NODE_SERIES:
        bean = MBean(series.name, (series.reading,), (role,), labels=series.labels)
        meanings.setdefault(series.name, []).append(Meaning(len(families), "Value", series.where))
        families.append(Family(series.dialect, bean))
    hints = {name: [_hint(meaning) for meaning in of_name] for name, of_name in meanings.items()}
    return Names(
        tuple(families),
        {name: tuple(of_name) for name, of_name in meanings.items()},
        {name: re.compile("|".join(dict.fromkeys(words)) if all(words) else "") for name, words in hints.items()},
    )


def _hint(meaning: Meaning) -> str:
    """A label's value in its quotes, or nothing."""
    return next((re.escape(f'"{value}"') for value in meaning.where.values() if value != "*"), "")


_Named = list[tuple[str, str, dict[str, str]]]
"""Name in lower case, attribute, labels that tell it."""


def _names_of_bean(bean: MBean) -> dict[Dialect, _Named]:
    domain, keys = bean.pattern.partition(":")[0], key_properties(bean.pattern)
    (_, kind), *others = keys.items()
    told_by = {_safe(key): value for key, value in others}
    named: dict[Dialect, _Named] = {
        # The exporter's 1.x takes _total off the names of what it doesn't know to be a counter.
        "jmx": [
            (name, a, told_by)
            for a in _attributes_of(bean)
            for name in {_safe(f"{domain}_{kind}_{a}"), _safe(f"{domain}_{kind}_{a}").removesuffix("_total")}
        ],
    }
    if domain in ("kafka.streams", "kafka.producer", "kafka.consumer"):
        group = kind.removesuffix("-metrics")
        named["micrometer"] = [(_safe(f"kafka_{group}_{a}"), a, told_by) for a in _attributes_of(bean)]
    if "name" in keys:
        told_by = {key: value for key, value in told_by.items() if key != "name"}
        named["rules"] = [
            (_safe(f"{domain}_{kind}_{name}"), attribute, told_by | quantile)
            for attribute in _attributes_of(bean)
            for name, quantile in _names_by_rules(keys["name"], attribute)
        ]
    return named


def _attributes_of(bean: MBean) -> list[str]:
    return list(dict.fromkeys(name for r in bean.readings for name in (r.attribute, r.times) if name))


def _names_by_rules(name: str, attribute: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Rest of the name, and a quantile. Means and one-minute rates are in no rule."""
    if percentile := re.fullmatch(r"(\d+)thPercentile", attribute):
        yield name, {"quantile": f"0.{percentile[1]}"}
    elif attribute == "Count" and "PerSec" in name:
        yield f"{name.partition('PerSec')[0]}_total", {}
        yield name, {}
    elif attribute == "Count":
        yield f"{name}_count", {}
    elif attribute == "Value":
        yield name, {}


@lru_cache(maxsize=2**17)
def _meant(names: Names, name: str, labels: Labels) -> tuple[tuple[int, str, Labels], ...]:
    """Index of the family, attribute, labels of the bean. Kept: all brokers of a cluster have the same series.

    Some rules write the keys of labels in lower case: all are taken so.
    """
    by_name = {key.lower(): value for key, value in labels}
    same_bean = tuple((key, value) for key, value in by_name.items() if key != "quantile")
    return tuple((m.family, m.attribute, same_bean) for m in names.meanings[name] if m.holds(by_name))


def _safe(name: str) -> str:
    return re.sub(r"[^a-z0-9_:]", "_", name.lower())


def readings_of(
    names: Names, found: Iterable[tuple[str, Labels, float]]
) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """Metric, labels and value out of series (name in lower case, labels, value)."""
    beans: list[dict[Labels, dict[str, float]]] = [{} for _ in names.families]
    for name, of_series, value in found:
        for family_index, attribute, same_bean in _meant(names, name, of_series):
            beans[family_index].setdefault(same_bean, {})[attribute] = value
    dialect_of: dict[str, Dialect] = {}
    seen: set[tuple[str, Labels]] = set()
    for dialect in DIALECTS:
        for family, of_family in zip(names.families, beans, strict=True):
            if family.dialect == dialect and of_family:
                for metric, labels, total in sums_of(family.bean, ((dict(k), a) for k, a in of_family.items())):
                    series = (metric, tuple(labels.items()))
                    if dialect_of.setdefault(metric, dialect) == dialect and series not in seen:
                        seen.add(series)
                        yield metric, labels, total
