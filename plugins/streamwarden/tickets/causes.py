"""One cause, one story: findings that share something they touch are linked, and the lower layer is the cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

LAYERS = ("storage", "memory", "brokers", "topics", "streams", "consumers")  # a cause lies further left
ROOTS = ("storage", "memory")  # what is wrong by its size or setting has no cause among the others


@dataclass(frozen=True)
class Linkable:
    """What linking needs to know of an open finding."""

    fingerprint: str
    subject: str
    since: datetime
    touches: frozenset[str]


def layer(subject: str) -> int:
    """Position among the layers; an unknown subject is never a cause of a known one."""
    return LAYERS.index(subject) if subject in LAYERS else len(LAYERS)


def causes(findings: Sequence[Linkable]) -> Mapping[str, tuple[str, str]]:
    """Fingerprint of a finding → fingerprint of its possible cause at the lowest layer, and what both touch."""
    touching = by_touch(findings)
    found: dict[str, tuple[str, str]] = {}
    for finding in findings:
        if finding.subject in ROOTS:
            continue
        lower = [
            (other, touch)
            for touch in finding.touches
            for other in touching[touch]
            if layer(other.subject) < layer(finding.subject)
        ]
        if lower:
            cause, touch = min(lower, key=lambda one: (layer(one[0].subject), one[0].since, one[0].fingerprint, one[1]))
            found[finding.fingerprint] = cause.fingerprint, touch
    return found


def by_touch(findings: Iterable[Linkable]) -> Mapping[str, list[Linkable]]:
    """What is touched → the findings that touch it."""
    touching: dict[str, list[Linkable]] = {}
    for finding in findings:
        for touch in finding.touches:
            touching.setdefault(touch, []).append(finding)
    return touching
