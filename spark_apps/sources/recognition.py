"""How much of what the exporter of a JVM could expose is there.

Metrics recognized of those expected, detectors that cannot be evaluated without the others, and the rules of the JMX
exporter that expose them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from streamwarden.base.metric_uses import NEEDED_BY

from spark_apps.sources.jmx_catalog import MBEANS, METRICS, MBean, Role, key_properties
from spark_apps.sources.known_series import NODE_SERIES, STARTED

_OF_CONTROLLERS = frozenset({"active_controllers", "offline_partitions", "unclean_elections_total"})
_NOT_ALWAYS = frozenset(
    {
        "broker_info",  # `broker_id` of the endpoint stands for it
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
_STREAMS = frozenset(
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
        "records_dropped_total",
        "reads_topic",
        "record_age_min_ms",
        "record_age_mean_ms",
        "record_age_max_ms",
    }
)
_STORES = frozenset(r.metric for bean in MBEANS if "rocksdb-state-id" in bean.pattern for r in bean.readings)
_CLIENTS = {
    start: frozenset(metric for metric in METRICS if metric.startswith(start) and not metric.endswith("_max_ms"))
    for start in ("producer_", "consumer_")
}
"""A process without a producer has no metric of one."""


@dataclass(frozen=True)
class Recognized:
    """Metrics of one endpoint."""

    role: Role
    found: frozenset[str]
    missing: tuple[str, ...]
    """Expected of such an endpoint, and not there; in the catalog's order."""
    clashes: tuple[str, ...] = ()

    @property
    def share(self) -> str:
        """`33 of 42 metrics recognized`."""
        return f"{len(self.found)} of {len(self.found) + len(self.missing)} metrics recognized"

    @property
    def not_evaluated(self) -> list[str]:
        """Detectors that need what is missing."""
        needs = NEEDED_BY.get(self.role, {})
        return sorted({detector for metric in self.missing for detector in needs.get(metric, ())})

    @property
    def gap(self) -> str | None:
        """As a source's gap; none where all is there."""
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
    """What of an endpoint's metrics is there and what isn't.

    Args:
        role: of the endpoint.
        metrics: all that its answers have, with a value or without.
        clashes: what was ambiguous.
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
    for kind in (_STREAMS, _STORES, *_CLIENTS.values()):
        expected |= kind if found & kind else frozenset()
    return expected - _NOT_ALWAYS


def rule_lines(role: Role, missing: Collection[str]) -> list[str]:
    """Rules that expose metrics, to stand before all others in the JMX exporter's file, as lines of YAML.

    They have no name: the exporter then writes the object name as it is, with all its key properties as labels.
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
    """The exporter writes the first key property's value into the name: of these a pool's, or a collector's."""
    return "*" in bean.pattern.partition(",")[0] or (bean.pattern.startswith("java.") and "name" in bean.labels)


def _patterns(bean: MBean, attributes: list[str]) -> Iterator[tuple[str, str, str]]:
    """Pattern with NAME for the key property `name`, the name, and the attribute's part."""
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
