"""A JVM's heap from its memory pools, for exporters that expose pools only (Micrometer, OpenTelemetry).

Used bytes of pools add up. Their maxima add up only with collectors that divide the heap permanently: Serial,
Parallel, and CMS. In G1, ZGC, and Shenandoah each pool can become the whole heap and reports that, or reports no
maximum; in OpenJ9 tenured space and nursery each have their own maximum, and the sum exceeds -Xmx
(eclipse-openj9/openj9-docs#1363).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PARTED = (
    # Serial, ParNew, Parallel, CMS, and GraalVM's native images: a JVM has one young and one old collector of these.
    {"eden space", "survivor space", "tenured gen", "par eden space", "par survivor space", "cms old gen"}
    | {"ps eden space", "ps survivor space", "ps old gen", "old generation space"},
    {"tenured soa", "tenured loa"},  # OpenJ9's areas of tenured space
)
_NO_LIMIT = 2.0**62
"""Exporters write Long.MAX_VALUE where there is no limit."""
_Beans = list[tuple[dict[str, str], dict[str, float]]]


def of_whole_heap(metric: str, pool: str, beans: _Beans) -> _Beans:
    """Beans (labels, attributes) to add up for the whole heap, from beans of pools by the label `pool`.

    A metric without a pool is the whole heap already, whatever else is exposed.
    """
    if wholes := [(labels, attributes) for labels, attributes in beans if pool not in labels]:
        return wholes
    if metric != "heap_max_bytes":
        return beans
    return [({}, {"Value": heap_max({labels[pool]: attributes["Value"] for labels, attributes in beans})})]


def heap_max(pools: Mapping[str, float]) -> float:
    """The maximum of a heap from those of its pools, in bytes; -1 if none is known."""
    known = {re.sub(r"[^a-z0-9]+", " ", name.lower()): most for name, most in pools.items() if 0 < most < _NO_LIMIT}
    parted = [sum(known.pop(name) for name in names & known.keys()) for names in _PARTED]
    return max((most for most in (*parted, *known.values()) if most > 0), default=-1.0)
