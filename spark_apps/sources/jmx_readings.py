"""Readings of MBeans: metric, labels, and value of their attributes.

Negative, NaN, and null readings mean "unknown" in JMX: they are stored as null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spark_apps.sources.jmx_mbeans import MBEANS, MBean, Reading, Role


def beans_of(role: Role, sample: int, samples: int) -> tuple[MBean, ...]:
    """MBeans to read from a JVM in sample number `sample` (from 0) of `samples`."""
    first, last = sample == 0, sample == samples - 1
    return tuple(
        bean
        for bean in MBEANS
        if role in bean.roles and (bean.when == "each" or last or (first and bean.when == "ends"))
    )


def readings_of(bean: MBean, found: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """Metric, labels, and value of all MBeans found: object name → {attribute: value}."""
    return sums_of(bean, ((key_properties(name), attributes) for name, attributes in found.items()))


def sums_of(
    bean: MBean, found: Iterable[tuple[Mapping[str, str], Any]]
) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """The same, from key properties and attributes."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float | None] = {}
    for keys, attributes in found:
        if not isinstance(attributes, Mapping) or any(key in keys for key in bean.without):
            continue
        labels = {**{label: keys[key] for key, label in bean.labels.items() if key in keys}, **bean.constant}
        labels_of_bean = tuple(sorted(labels.items()))
        for reading in bean.readings:
            if reading.attribute not in attributes and reading.attribute.split(".")[0] not in attributes:
                continue
            own, value = _value_of(reading, attributes, labels)
            series = (reading.metric, labels_of_bean if own is labels else tuple(sorted(own.items())))
            # An unknown part makes the sum unknown; equal texts are the same text, however often they occur.
            if reading.label or reading.presence or series not in sums:
                sums[series] = value
            else:
                known = sums[series]
                sums[series] = None if value is None or known is None else known + value
    for (metric, labels_of_series), value in sums.items():
        yield metric, dict(labels_of_series), value


def _value_of(
    reading: Reading, attributes: Mapping[str, Any], labels: dict[str, str]
) -> tuple[dict[str, str], float | None]:
    raw: Any = attributes
    for part in [reading.attribute] if reading.attribute in attributes else reading.attribute.split("."):
        raw = raw.get(part) if isinstance(raw, Mapping) else None
    if reading.label:
        raw = _word(reading.words, raw) if reading.words else raw
        is_text = isinstance(raw, str) and not raw.startswith("ERROR:")  # Jolokia's text for a failed attribute
        return ({**labels, reading.label: raw}, 1.0) if is_text else (labels, None)
    if reading.presence:
        return labels, 1.0
    value = number(raw, signed=reading.signed)
    value = None if value is not None and reading.most is not None and value > reading.most else value
    other = number(attributes.get(reading.times)) if reading.times else 1.0
    return labels, None if value is None or other is None else value * reading.factor * other


def _word(words: tuple[str, ...], raw: Any) -> str | None:
    place = number(raw)
    return words[int(place)] if place is not None and place < len(words) else None


def number(raw: Any, *, signed: bool = False) -> float | None:
    """The reading as a number; null if the JVM does not know it."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        value = float(raw)
    except OverflowError:  # an integer with hundreds of digits
        return None
    return value if math.isfinite(value) and (signed or value >= 0) else None


def key_properties(name: str) -> dict[str, str]:
    """Key properties of an object name, unquoted: `d:type=Log,topic=a` → {type: Log, topic: a}."""
    pairs = re.findall(r'([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)', name.partition(":")[2])
    return {key: re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value for key, value in pairs}
