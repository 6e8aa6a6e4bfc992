"""One cause, one story: open findings that touch the same thing are linked, and `follows_from` in a detector's header
says which may be the cause. What is merely shared makes no cause: a changed schema doesn't follow from a slow disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter

from streamwarden.detectors import Detector


@dataclass(frozen=True)
class Linkable:
    """What linking needs to know of an open finding."""

    fingerprint: str
    detector: Detector
    since: datetime
    touches: frozenset[str]


def causes(findings: Sequence[Linkable]) -> Mapping[str, tuple[str, str]]:
    """Fingerprint of a finding → fingerprint of its likeliest cause among the others, and what both touch."""
    touching = _by_touch(findings)
    found: dict[str, tuple[str, str]] = {}
    for finding in findings:
        follows_from = finding.detector.follows_from
        possible = [
            (follows_from.index(other.detector.id), other.since, other.fingerprint, touch)
            for touch in finding.touches
            for other in touching[touch]
            if other.detector.id in follows_from
        ]
        if possible:
            found[finding.fingerprint] = min(possible)[2:]
    return found


def causes_first(detectors: Mapping[str, Detector]) -> Mapping[str, int]:
    """Detector → its place in an order where what may be a cause comes before what follows from it."""
    order = TopologicalSorter({id_: sorted(detectors[id_].follows_from) for id_ in sorted(detectors)}).static_order()
    return {id_: place for place, id_ in enumerate(order)}


def _by_touch(findings: Iterable[Linkable]) -> Mapping[str, list[Linkable]]:
    touching: dict[str, list[Linkable]] = {}
    for finding in findings:
        for touch in finding.touches:
            touching.setdefault(touch, []).append(finding)
    return touching
