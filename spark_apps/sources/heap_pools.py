"""A JVM's heap out of its memory pools, where an exporter has figures of pools only (Micrometer, OpenTelemetry).

What pools use adds up. Their maxima add up only where a collector parts the heap for good: Serial, Parallel and CMS. In
G1, ZGC and Shenandoah each pool may become the whole heap and says so, or knows no maximum; in OpenJ9 tenured space and
nursery each have a maximum of their own of which the sum is more than -Xmx (eclipse-openj9/openj9-docs#1363).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PARTED = (
    {"eden space", "survivor space", "tenured gen"},  # Serial
    {"ps eden space", "ps survivor space", "ps old gen"},
    {"par eden space", "par survivor space", "cms old gen"},
    {"tenured soa", "tenured loa"},  # OpenJ9's areas of tenured space
)
_Beans = list[tuple[dict[str, str], dict[str, float]]]


def of_whole_heap(metric: str, pool: str, beans: _Beans) -> _Beans:
    """What is to be added up for the whole heap, from beans (labels, attributes) of pools by the label `pool`.

    A figure without a pool is the whole already, whatever else is there.
    """
    if wholes := [(labels, attributes) for labels, attributes in beans if pool not in labels]:
        return wholes
    if metric != "heap_max_bytes":
        return beans
    return [({}, {"Value": heap_max({labels[pool]: attributes["Value"] for labels, attributes in beans})})]


def heap_max(pools: Mapping[str, float]) -> float:
    """The maximum of a heap by those of its pools, in bytes; -1 where none is known."""
    known = {re.sub(r"[^a-z0-9]+", " ", name.lower()): most for name, most in pools.items() if most > 0}
    parted = [sum(known.pop(name) for name in names & known.keys()) for names in _PARTED]
    return max((most for most in (*parted, *known.values()) if most > 0), default=-1.0)
