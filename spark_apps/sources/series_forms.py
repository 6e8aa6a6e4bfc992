"""The names that an attribute of an MBean may have in Prometheus' exposition format, by structure.

An exporter's rules build a name from the parts of an object name: domain, type, `name`, and the attribute, in this
order. They drop some parts, move others into labels, and write them in words, in lower case, or as they are. So a name
is compared by its letters and digits alone, and each part has a few ways to be written:

- `kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec"}`: without rules, MSK's open monitoring;
- `kafka_server_brokertopicmetrics_bytesin_total`: the exporter's examples, Strimzi;
- `kafka_server_brokertopicmetrics_bytesinpersec_total`: Strimzi Metrics Reporter;
- `kafka_server_brokertopicmetrics_total_bytesinpersec_count`: Bitnami;
- `kafka_server_brokertopicmetrics_bytesinpersec`: Confluent;
- `kafka_producer_producer_metrics_record_send_total`, and `kafka_producer_record_send_total` (Micrometer).

A rate or a percentile has its attribute in the name or in the label `quantile`; it is never taken for a counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from spark_apps.sources.jmx_catalog import MBean, Reading, key_properties

Slot = tuple[str, ...]
"""Ways to write one part of a name, in words parted by `_`; the empty one leaves it out."""
CLIENT_DOMAINS = ("kafka.streams", "kafka.producer", "kafka.consumer")
BARE, NO_DOMAIN, NO_TYPE = 1, 2, 4
"""Added to the rank of a name without its attribute, domain, or type: of two names the fuller one counts."""
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
    """Labels, as `bare` writes them, that a series must have; `*` is any value, the empty one none."""
    rank: int = 0
    implied: Mapping[str, str] = field(default_factory=dict)
    """Key properties that stand in the name, as `bare` writes them."""

    def names(self) -> set[str]:
        """As `squashed` writes them."""
        return {squashed("".join(parts)) for parts in product(*self.slots)}


@lru_cache(maxsize=2**16)
def squashed(name: str) -> str:
    """A name's letters and digits: what is left of it whoever wrote it."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(maxsize=2**12)
def bare(key: str) -> str:
    """A label's: rules write client-id, client_id and clientId."""
    return squashed(key)


def words(text: str) -> str:
    """`BytesInPerSec` and `client-id` in words: `bytes_in_per_sec`."""
    return "_".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)).lower()


def forms_of(bean: MBean) -> Iterator[Form]:
    """All of a bean's attributes; texts are left out, which no exporter exposes."""
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
    """A mean times its count may be exposed as a sum."""
    return "Sum" if reading.times else None


def _of_name(domain: str, kind: str, name: str, attribute: str, where: Mapping[str, str]) -> Iterator[Form]:
    """Of a bean with the key property `name`, which stands in a label or in the name."""
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
    """Of a bean whose attributes tell what they are."""
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
    """`BytesInPerSec` is called `bytesin`, too, and a percent may have its unit behind the attribute."""
    stem = re.sub(r"(PerSec|Percent)$", "", name)
    return tuple(dict.fromkeys((words(name), words(stem))))


def _endings(attribute: str) -> Iterator[tuple[Slot, int, Mapping[str, str]]]:
    """How the attribute of a bean with a `name` is written: last part, rank, and the label `quantile`."""
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
    """How an attribute that tells what it is is written."""
    name = words(attribute)
    stem = name.removesuffix("_total")
    return (name, stem) if stem != name else (name, f"{name}_total", f"{name}_software")


def queries_of(bean: MBean) -> set[tuple[str, str]]:
    """Regular expressions (RE2, whole name, in lower case) that match all names of a bean, and few others.

    A Prometheus server is asked by them for what may be the bean; `Form` says what is. Each is a beginning and the
    rest, so that those which begin alike can be asked for in few characters.
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
    """The longer of alternatives may be the shorter and more."""
    spaced = sorted(map(_spaced, slot), key=len)
    rest = [each.removeprefix(spaced[0]) for each in spaced[1:]]
    if all(each.startswith(spaced[0]) for each in spaced):
        return f"{spaced[0]}({'|'.join(rest)})?" if rest else spaced[0]
    return f"({'|'.join(spaced)})"


def _spaced(text: str) -> str:
    return text.replace("_", ".?")
