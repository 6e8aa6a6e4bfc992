"""The names of JVM metrics in the Prometheus exposition format: the second namespace besides MBEANS.

Six dialects; each is used for metrics that the previous ones do not have (a page often has several, and their values
must not be added up):

1. the JMX exporter without rules, and MSK's open monitoring: domain, type, and attribute in the name, other keys as
   labels: `kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"}`;
2. the JMX exporter with its example rules for Kafka, which Strimzi uses too:
   `kafka_server_brokertopicmetrics_bytesin_total{topic="t"}`;
3. JVM metrics of Prometheus' client library: `jvm_memory_used_bytes{area="heap"}`;
4. Micrometer (Spring Boot): `jvm_memory_used_bytes{area="heap",id="G1 Eden Space"}`, `kafka_stream_state_…`;
5. OpenTelemetry: `jvm_memory_used_bytes{jvm_memory_type="heap",jvm_memory_pool_name="G1 Eden Space"}`;
6. cAdvisor's metrics of the JVM's container: `container_cpu_cfs_periods_total`.

A label that is not a key property of the MBean, such as Thanos' replica label of a highly available pair, does not
make another MBean: series that differ only in such labels are one reading.

The first two dialects and Micrometer's Kafka metrics follow from MBEANS. A host's page is node exporter's, with one
dialect. Names are compared in lower case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from spark_apps.sources.heap_pools import of_whole_heap
from spark_apps.sources.jmx_catalog import METRICS, MBean, Role, beans_of, key_properties, sums_of
from spark_apps.sources.known_series import (
    CONTAINER,
    DIALECTS,
    NODE_SERIES,
    RESIDENT,
    SERIES,
    STARTED,
    UPTIME,
    Dialect,
)

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """Series of one dialect that belong together."""

    dialect: Dialect
    bean: MBean
    """Its labels have the names of the series' labels."""
    keys: Mapping[str, str]
    """Labels that distinguish MBeans: as written by `_bare` → as in the MBean."""
    pool: str | None = None
    """As in Series."""


@dataclass(frozen=True)
class Meaning:
    """Meaning of a series with a given name."""

    family: int
    """Index of the family."""
    attribute: str
    where: Mapping[str, str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels matches."""
        return self.where.items() <= labels.items() or (
            "*" in self.where.values()
            and all(key in labels and value in ("*", labels[key]) for key, value in self.where.items())
        )


@dataclass(frozen=True, eq=False)
class Names:
    """All series to read in one sample: by name in lower case."""

    families: tuple[Family, ...]
    meanings: Mapping[str, tuple[Meaning, ...]]
    hints: Mapping[str, re.Pattern[str]]
    """By name: text that a matching line contains; labels of other lines need not be parsed."""


@cache
def names_of(role: Role, sample: int, samples: int) -> Names:
    """Series to read in sample number `sample` (from 0) of `samples`."""
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
            parts=tuple(_safe(key) for key in bean.parts),
        )
        for dialect, names in _names_of_bean(bean).items():
            for name, attribute, where in names:
                meanings.setdefault(name, []).append(Meaning(len(families), attribute, where))
            families.append(Family(dialect, exposed, _keys_of(exposed, (where for _, _, where in names))))
    for series in [one for one in SERIES if one.reading.metric in wanted] if beans else NODE_SERIES:
        bean = MBean(series.name, (series.reading,), (role,), labels=series.labels, parts=series.parts)
        meanings.setdefault(series.name, []).append(Meaning(len(families), "Value", series.where))
        families.append(Family(series.dialect, bean, _keys_of(bean, [series.where]), series.pool))
    hints = {name: [_hint(meaning) for meaning in of_name] for name, of_name in meanings.items()}
    return Names(
        tuple(families),
        {name: tuple(of_name) for name, of_name in meanings.items()},
        {name: re.compile("|".join(dict.fromkeys(words)) if all(words) else "") for name, words in hints.items()},
    )


def _keys_of(bean: MBean, wheres: Iterable[Mapping[str, str]]) -> dict[str, str]:
    keys = (*bean.labels, *bean.without, *bean.parts, *(key for where in wheres for key in where))
    return {_bare(key): key for key in keys}


def _hint(meaning: Meaning) -> str:
    """A label's value in quotes, or an empty text."""
    return next((re.escape(f'"{value}"') for value in meaning.where.values() if value != "*"), "")


_Named = list[tuple[str, str, dict[str, str]]]
"""Name in lower case, attribute, distinguishing labels."""


def _names_of_bean(bean: MBean) -> dict[Dialect, _Named]:
    domain, keys = bean.pattern.partition(":")[0], key_properties(bean.pattern)
    (_, kind), *others = keys.items()
    labels_by_name = {_safe(key): value for key, value in others}
    named: dict[Dialect, _Named] = {
        # Version 1.x of the exporter removes _total from names of metrics that it does not know to be counters.
        "jmx": [
            (name, a, labels_by_name)
            for a in _attributes_of(bean)
            for name in {_safe(f"{domain}_{kind}_{a}"), _safe(f"{domain}_{kind}_{a}").removesuffix("_total")}
        ],
    }
    if domain in ("kafka.streams", "kafka.producer", "kafka.consumer"):
        group = kind.removesuffix("-metrics")
        named["micrometer"] = [(_safe(f"kafka_{group}_{a}"), a, labels_by_name) for a in _attributes_of(bean)]
    if "name" in keys:
        labels_by_name = {key: value for key, value in labels_by_name.items() if key != "name"}
        named["rules"] = [
            (_safe(f"{domain}_{kind}_{name}"), attribute, labels_by_name | quantile)
            for attribute in _attributes_of(bean)
            for name, quantile in _names_by_rules(keys["name"], attribute)
        ]
    return named


def _attributes_of(bean: MBean) -> list[str]:
    return list(dict.fromkeys(name for r in bean.readings for name in (r.attribute, r.times) if name))


def _names_by_rules(name: str, attribute: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Rest of the name, and a quantile. No rule has means and one-minute rates."""
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
def _meant(names: Names, name: str, labels: Labels) -> tuple[tuple[int, str, Labels, Labels], ...]:
    """Index of the family, attribute, labels of the MBean, and labels of the scraper.

    Cached: all brokers of a cluster have the same series. Some rules write label keys in lower case, so all are
    compared in lower case.
    """
    by_name = {_safe(key): value for key, value in labels}
    found = []
    for meaning in names.meanings[name]:
        if meaning.holds(by_name):
            keys = names.families[meaning.family].keys
            own = tuple((keys[_bare(key)], value) for key, value in by_name.items() if _bare(key) in keys)
            others = tuple((key, value) for key, value in by_name.items() if _bare(key) not in (*keys, "quantile"))
            found.append((meaning.family, meaning.attribute, tuple(sorted(own)), others))
    return tuple(found)


def _safe(name: str) -> str:
    return re.sub(r"[^a-z0-9_:]", "_", name.lower())


@cache
def _bare(key: str) -> str:
    """Rules write client-id, client_id, and clientId."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def readings_of(
    names: Names, found: Iterable[tuple[str, Labels, float]]
) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """Metric, labels, and value from series (name in lower case, labels, value).

    Of series that differ only in the scraper's labels, the newest comes last.
    """
    scraped: list[dict[Labels, dict[Labels, _Attributes]]] = [{} for _ in names.families]
    for name, of_series, value in found:
        for family_index, attribute, of_bean, by in _meant(names, name, of_series):
            scraped[family_index].setdefault(of_bean, {}).setdefault(by, {})[attribute] = value
    dialect_of: dict[str, Dialect] = {}
    seen: set[tuple[str, Labels]] = set()
    for dialect in DIALECTS:
        for family, of_family in zip(names.families, scraped, strict=True):
            if family.dialect != dialect or not of_family:
                continue
            beans = [(dict(own), _one_of(family.bean, list(by.values()))) for own, by in of_family.items()]
            beans = of_whole_heap(family.bean.readings[0].metric, family.pool, beans) if family.pool else beans
            for metric, labels, total in sums_of(family.bean, beans):
                series = (metric, tuple(labels.items()))
                if dialect_of.setdefault(metric, dialect) == dialect and series not in seen:
                    seen.add(series)
                    yield metric, labels, total


def replicas_in(names: Names, found: Iterable[tuple[str, Labels, float]]) -> dict[str, set[str]]:
    """Labels in which series of one reading differ, and their values: they identify the replicas."""
    scraped: dict[tuple[int, str, Labels], list[dict[str, str]]] = {}
    for name, of_series, _ in found:
        for family, attribute, of_bean, by in _meant(names, name, of_series):
            scraped.setdefault((family, attribute, of_bean), []).append(dict(by))
    differing: dict[str, set[str]] = {}
    for replicas in scraped.values():
        for label in {label for one in replicas for label in one}:
            if len(values := {one.get(label, "") for one in replicas}) > 1:
                differing.setdefault(label, set()).update(values)
    return differing


_Attributes = dict[str, float]


def _one_of(bean: MBean, replicas: list[_Attributes]) -> _Attributes:
    """The reading of an MBean with several scrapes: the one with the highest counter, otherwise the newest."""
    if len(replicas) == 1:
        return replicas[0]
    counters = [r.attribute for r in bean.readings if METRICS.get(r.metric) == "counter" and not r.times]

    def counted(attributes: _Attributes) -> float:
        return sum(value for name in counters if math.isfinite(value := attributes.get(name, 0)))

    known = [{name: value for name, value in one.items() if not math.isnan(value)} for one in replicas]
    one: _Attributes = {}
    for each in [*replicas, *sorted(known, key=counted)]:
        one |= each
    return one
