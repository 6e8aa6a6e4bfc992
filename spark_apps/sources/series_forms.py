"""The names that an attribute of an MBean may have in Prometheus' exposition format, by structure.

An exporter's rules build a name from the parts of an object name, in this order: domain, type, `name`, and attribute.
They drop some parts, move others into labels, and write them with underscores, in lower case, or unchanged. Therefore
only letters and digits of a name are compared, and each part has a few alternatives:

- `kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec"}`: without rules, MSK's open monitoring;
- `kafka_server_brokertopicmetrics_bytesin_total`: the exporter's examples, Strimzi;
- `kafka_server_brokertopicmetrics_bytesinpersec_total`: Strimzi Metrics Reporter;
- `kafka_server_brokertopicmetrics_total_bytesinpersec_count`: Bitnami;
- `kafka_server_brokertopicmetrics_bytesinpersec`: Confluent;
- `kafka_producer_producer_metrics_record_send_total`, and `kafka_producer_record_send_total` (Micrometer).

A rate or a percentile has its attribute in the name or in the label `quantile`; it is never read as a counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from spark_apps.sources.jmx_mbeans import MBean, Reading
from spark_apps.sources.jmx_readings import key_properties

Slot = tuple[str, ...]
"""Alternatives for one part of a name, as words joined by `_`; the empty one omits the part."""
CLIENT_DOMAINS = ("kafka.streams", "kafka.producer", "kafka.consumer")
BARE, NO_DOMAIN, NO_TYPE = 1, 2, 4
"""Added to the rank of a name without its attribute, domain, or type: the name with the lowest rank counts."""
_COUNT: Slot = ("count", "count_total", "total_count")
_VALUE: Slot = ("value", "value_total")
_UNMARKED: Slot = ("", "total")
"""Exporters since 1.0 append `_total` to every counter and remove it from everything else."""


@dataclass(frozen=True)
class Form:
    """Names of one attribute: every combination of the slots."""

    attribute: str
    slots: tuple[Slot, ...]
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels that a series must have, as written by `bare`; `*` is any value, an empty value means no such label."""
    rank: int = 0
    implied: Mapping[str, str] = field(default_factory=dict)
    """Key properties that the name contains, as written by `bare`."""

    def names(self) -> set[str]:
        """All names, as written by `squashed`."""
        return {squashed("".join(parts)) for parts in product(*self.slots)}


@lru_cache(maxsize=2**16)
def squashed(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(maxsize=2**12)
def bare(key: str) -> str:
    """The same of a label's key: rules write client-id, client_id, and clientId."""
    return squashed(key)


def words(text: str) -> str:
    """`BytesInPerSec` and `client-id` in words: `bytes_in_per_sec`."""
    return "_".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)).lower()


def forms_of(bean: MBean) -> Iterator[Form]:
    """Forms of all attributes of an MBean, except texts, which exporters do not expose."""
    domain, properties = bean.pattern.partition(":")[0], key_properties(bean.pattern)
    (_, kind), *others = properties.items()
    if "*" in kind:
        return
    where = {bare(key): value for key, value in others if key != "name"}
    where |= {bare(key): "" for key in bean.without}
    for reading in bean.readings:
        if reading.label and not reading.words:
            continue
        for attribute in filter(None, (reading.attribute, reading.times, _sum_of(reading))):
            if "name" in properties:
                yield from _of_name(domain, kind, properties["name"], attribute, where)
            else:
                yield from _of_type(domain, kind, attribute, where)


def _sum_of(reading: Reading) -> str | None:
    """Summaries expose the sum in place of a mean and a count."""
    return "Sum" if reading.times else None


def _of_name(domain: str, kind: str, name: str, attribute: str, where: Mapping[str, str]) -> Iterator[Form]:
    """Forms of an MBean with the key property `name`, which is in a label or in the name."""
    start, types = (words(domain),), (words(kind), f"{words(kind)}_total")
    names = _written(name)
    fixed = {key: value for key, value in where.items() if value not in ("*", "")}
    for ending, rank, quantile in _endings(attribute):
        labeled = {**where, **quantile}
        if rank < BARE or quantile:
            yield Form(attribute, (start, types[:1], ending), {**labeled, "name": name}, rank)
        yield Form(attribute, (start, types, names, ending), labeled, rank)
        is_own = words(domain).endswith(f"_{words(kind)}")  # kafka.log:type=Log
        yield Form(attribute, (start, names, ending), labeled, rank + (BARE if is_own else NO_TYPE))
        if fixed:
            values = tuple(words(value) for value in fixed.values())
            rest = {key: value for key, value in labeled.items() if key not in fixed}
            yield Form(attribute, (start, types, names, values, ending), rest, rank + BARE, fixed)


def _of_type(domain: str, kind: str, attribute: str, where: Mapping[str, str]) -> Iterator[Form]:
    """Forms of an MBean without the key property `name`: Kafka metrics, and MBeans of the JVM."""
    start, ending = (words(domain),), _attribute(attribute)
    full = words(kind)
    short = full.removesuffix("_metrics")
    types = tuple(dict.fromkeys((full, short, short.removeprefix("stream_"))))
    yield Form(attribute, (start, types, ending), where)
    yield Form(attribute, (start, ("quota",), ending), {**where, "resource": kind})
    if domain in CLIENT_DOMAINS:
        yield Form(attribute, (("kafka",), (short,), ending), where, NO_DOMAIN)
        yield Form(attribute, (start, ending), where, NO_TYPE)


def _written(name: str) -> Slot:
    """`BytesInPerSec` is also written `bytesin`, and `Percent` may follow the attribute."""
    stem = re.sub(r"(PerSec|Percent)$", "", name)
    return tuple(dict.fromkeys((words(name), words(stem))))


def _endings(attribute: str) -> Iterator[tuple[Slot, int, Mapping[str, str]]]:
    """Alternatives for the attribute of an MBean with a `name`: last part, rank, and the label `quantile`."""
    unmarked = {"quantile": ""}
    if percentile := re.fullmatch(r"(\d+)thPercentile", attribute):
        number = percentile[1]
        yield (f"{number}th_percentile", f"p{number}", f"{number}p", f"{number}_percentile"), 0, unmarked
        for quantile in dict.fromkeys((f"0.{number}", f"0.{number.rstrip('0')}")):
            yield ("",), 0, {"quantile": quantile}
    elif attribute == "Count":
        yield _COUNT, 0, unmarked
        yield _UNMARKED, BARE, unmarked
    elif attribute == "Value":
        yield _VALUE, 0, unmarked
        yield _UNMARKED, BARE, unmarked
    elif attribute.endswith("Rate"):
        yield (words(attribute), f"{words(attribute)}_percent"), 0, unmarked
    else:
        yield (words(attribute),), 0, unmarked


def _attribute(attribute: str) -> Slot:
    """Alternatives for the attribute of an MBean without a `name`."""
    name = words(attribute)
    stem = name.removesuffix("_total")
    return (name, stem) if stem != name else (name, f"{name}_total", f"{name}_software")


def queries_of(bean: MBean) -> set[tuple[str, str]]:
    """Regular expressions (RE2, whole name, lower case) that match all names of an MBean, and few others.

    A query to a Prometheus server uses them; `Form` decides on its response. Each expression is split into a beginning
    and the rest, so that a query can factor out common beginnings.
    """
    domain, properties = bean.pattern.partition(":")[0], key_properties(bean.pattern)
    start, kind = _spaced(words(domain)), _spaced(words(properties["type"]))
    forms = list(forms_of(bean))
    if "name" not in properties:
        start = "kafka" if domain in CLIENT_DOMAINS else start
        return {(f"{start}.*", _any_of(form.slots[-1])) for form in forms}
    values = {words(value) for value in properties.values() if value != "*"}
    endings = {each for form in forms for each in (*form.slots[-1], *values) if each}
    end = f"(.?({'|'.join(sorted(map(_spaced, endings)))}))*"
    return {(f"{start}.*", f"{_any_of(_written(properties['name']))}{end}"), (f"{start}.?", f"{kind}{end}")}


def rendered(queries: Iterable[tuple[str, str]]) -> str:
    """One regular expression of several."""
    by_start: dict[str, list[str]] = {}
    for start, rest in sorted(queries):
        by_start.setdefault(start, []).append(rest)
    return "|".join(f"{start}({'|'.join(rests)})" for start, rests in by_start.items())


def _any_of(slot: Slot) -> str:
    """An alternation; a common prefix is factored out where one alternative extends the other."""
    spaced = sorted(map(_spaced, slot), key=len)
    rest = [each.removeprefix(spaced[0]) for each in spaced[1:]]
    if all(each.startswith(spaced[0]) for each in spaced):
        return f"{spaced[0]}({'|'.join(rest)})?" if rest else spaced[0]
    return f"({'|'.join(spaced)})"


def _spaced(text: str) -> str:
    return text.replace("_", ".?")
