"""Coverage of an exporter: metrics recognized of those expected, and what follows from the missing ones.

What follows: detectors that cannot be evaluated, and the JMX exporter rules that expose the missing metrics.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from streamwarden.base.metric_uses import NEEDED_BY

from spark_apps.sources.jmx_mbeans import MBEANS, MBean, Role
from spark_apps.sources.jmx_metrics import METRICS
from spark_apps.sources.jmx_readings import key_properties
from spark_apps.sources.known_series import NODE_SERIES, STARTED

_OF_CONTROLLERS = frozenset({"active_controllers", "offline_partitions", "unclean_elections_total"})
_NOT_ALWAYS = frozenset(
    {
        "broker_info",  # `broker_id` of the endpoint stands for it
        "remote_fetch_bytes_total",  # of brokers with tiered storage
        "client_fetch_bytes_per_second",  # of clients with a quota
        "produce_responses_total",  # since the first one
        "resident_bytes",
        "direct_buffer_bytes",
        "system_cpu_ratio",
        "gc_collections_total",
        "memory_pool_used_bytes",
        "streams_version",
        "records_to_restore",
        "holds_back",
    }
)
_TOGETHER: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "streams_info",
            "streams_state",
            "stream_threads_alive",
            "stream_threads_failed",
            "records_processed_total",
            "poll_ratio",
            "poll_latency_max_ms",
            "process_latency_mean_ms",
            "process_latency_max_ms",
        }
    ),
    frozenset({"records_dropped_total", "reads_topic", "record_age_min_ms", "record_age_mean_ms", "record_age_max_ms"}),
    frozenset(r.metric for bean in MBEANS if "rocksdb-state-id" in bean.pattern for r in bean.readings),
    *(
        frozenset(metric for metric in METRICS if re.match(start, metric))
        for start in ("producer_(?!topic_)", "consumer_(?!topic_)", "producer_topic_", "consumer_topic_")
    ),
)
"""Expected only where one of them is there: threads of Kafka Streams, its tasks, its stores, clients, and their topics.
A process without a producer has no producer metrics."""


@dataclass(frozen=True)
class Recognized:
    """Metrics of one endpoint, recognized and missing."""

    role: Role
    found: frozenset[str]
    missing: tuple[str, ...]
    """Expected of an endpoint of this role but not exposed, in the catalog's order."""
    clashes: tuple[str, ...] = ()

    @property
    def share(self) -> str:
        """`33 of 42 metrics recognized`."""
        return f"{len(self.found)} of {len(self.found) + len(self.missing)} metrics recognized"

    @property
    def not_evaluated(self) -> list[str]:
        """Detectors that need a missing metric."""
        needs = NEEDED_BY.get(self.role, {})
        return sorted({detector for metric in self.missing for detector in needs.get(metric, ())})

    @property
    def gap(self) -> str | None:
        """The gap for `detect.coverage`: `missing: <sentences>`; None if nothing is missing or ambiguous."""
        if not self.missing and not self.clashes:
            return None
        sentences = [f"{self.share}."]
        if self.missing:
            sentences.append(f"Not exposed: {', '.join(self.missing)}.")
        if self.not_evaluated:
            sentences.append(f"Not evaluated here: {', '.join(self.not_evaluated)}.")
        sentences += [f"Ambiguous: {clash}." for clash in self.clashes]
        return f"missing: {' '.join(sentences)}"


def recognized(role: Role, metrics: Iterable[str], clashes: Collection[str] = ()) -> Recognized:
    """Compares the metrics of an endpoint with those expected of its role.

    Args:
        role: of the endpoint.
        metrics: all metrics of its responses, also those without a value.
        clashes: ambiguous series, one text each.
    """
    found = frozenset(metrics) & METRICS.keys()
    missing = _expected(role, found) - found
    return Recognized(role, found, tuple(metric for metric in METRICS if metric in missing), tuple(clashes))


def _expected(role: Role, found: frozenset[str]) -> frozenset[str]:
    if role == "node":
        return frozenset(series.reading.metric for series in NODE_SERIES) - {STARTED}
    if role == "broker":
        all_ = frozenset(r.metric for bean in MBEANS if role in bean.roles for r in bean.readings)
        return all_ - _NOT_ALWAYS - (frozenset() if found & _OF_CONTROLLERS else _OF_CONTROLLERS)
    of_jvm = [bean for bean in MBEANS if role in bean.roles and bean.pattern.startswith("java.lang")]
    expected = frozenset(r.metric for bean in of_jvm for r in bean.readings)
    for kind in _TOGETHER:
        expected |= kind if found & kind else frozenset()
    return expected - _NOT_ALWAYS


def rule_lines(role: Role, missing: Collection[str]) -> list[str]:
    """JMX exporter rules that expose metrics, as lines of YAML; they must precede all other rules.

    The rules have no name, so the exporter uses its default: the object name, with all other key properties as labels.
    """
    wanted = [
        (bean, attributes)
        for bean in MBEANS
        if role in bean.roles and (attributes := _attributes(bean, missing)) and not _is_unnamed(bean)
    ]
    by_place: dict[tuple[str, str, str], list[str]] = {}
    for bean, attributes in wanted:
        for pattern, name, last in _patterns(bean, attributes):
            by_place.setdefault((pattern, last, "|".join(attributes)), []).append(name)
    return [
        f"- pattern: '{pattern.replace('NAME', _either(names))}{last}'"
        for (pattern, last, _), names in by_place.items()
    ]


def _attributes(bean: MBean, missing: Collection[str]) -> list[str]:
    readings = [reading for reading in bean.readings if reading.metric in missing]
    numbers = [reading for reading in readings if not reading.label or reading.words]
    named = [name for reading in numbers for name in (reading.attribute, reading.times) if name]
    if any(reading.metric == "streams_info" for reading in readings):
        named.append("client-state")  # its labels have the application's id
    return list(dict.fromkeys(named))


def _is_unnamed(bean: MBean) -> bool:
    """Whether the default name contains a value: of memory pools and collectors, the first key property is `name`."""
    return "*" in bean.pattern.partition(",")[0] or (bean.pattern.startswith("java.") and "name" in bean.labels)


def _patterns(bean: MBean, attributes: list[str]) -> Iterator[tuple[str, str, str]]:
    """Pattern with the placeholder NAME, the value of the key property `name`, and the attributes."""
    domain, properties = bean.pattern.partition(":")[0], key_properties(bean.pattern)
    (_, kind), *others = properties.items()
    keys = "".join(
        ", name=NAME" if key == "name" else f".*{key}={'.*' if value == '*' else value}" for key, value in others
    )
    by_item: dict[str, list[str]] = {}
    for attribute in attributes:
        item, _, part = attribute.partition(".")
        by_item.setdefault(item if part else "", []).append(part or item)
    for item, parts in by_item.items():
        yield (
            re.sub(r"(\.\*)+", ".*", f"{domain}<type={kind}{keys}.*><{item}>"),
            properties.get("name", ""),
            _either(parts),
        )


def _either(names: Collection[str]) -> str:
    escaped = list(dict.fromkeys(map(re.escape, names)))
    each = [name.replace(r"\-", "-") for name in escaped]
    return each[0] if len(each) == 1 else f"({'|'.join(each)})"
