"""Faults that the demo injects: which are chosen, and what must be found."""

from __future__ import annotations

from dataclasses import dataclass

from streamwarden.base.errors import StreamwardenError

from demo import more_faults

FAULTS = ("ebs", "memory", "schema", "rogue")
"""The default faults of `make demo`; demo.more_faults has the others."""
CHAIN = "chain"  # has its own fleet: demo.chain


@dataclass(frozen=True)
class Injected:
    """An injected fault: the detector that must find it, its resource, and its cause."""

    fault: str
    detector: str
    resource: str
    injected_at: str
    why: str
    reasons: tuple[str, ...]
    """Reasons of the finding that are right: the first that is expected, and others that say the same."""
    follows: tuple[str, ...] = ()
    """Downstream effects that its ticket has to list: titles with resources."""


def parse_faults(text: str) -> frozenset[str]:
    """`FAULTS`: a comma-separated list, `all`, `none`, or `chain` alone; empty: none."""
    names = {name.strip() for name in text.split(",") if name.strip()} - {"none"}
    known = (*FAULTS, *more_faults.MORE, CHAIN, "all")
    if unknown := sorted(names - {*known}):
        raise StreamwardenError(f"FAULTS: '{unknown[0]}' is unknown; choose among {', '.join(known)} and none")
    if CHAIN in names:
        if len(names) > 1:
            raise StreamwardenError("FAULTS: 'chain' has three brokers of its own: leave out the other faults")
        return frozenset({CHAIN})
    return frozenset((*FAULTS, *more_faults.MORE)) if "all" in names else frozenset(names)
