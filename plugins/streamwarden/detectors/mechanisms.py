"""Mechanisms by which one finding causes another: `sql/mechanisms.yaml`. Headers of detectors refer to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.detectors.resources import KINDS
from streamwarden.store.sql_header import shown

if TYPE_CHECKING:
    from streamwarden.detectors.load import Detector

FILE = SQL / "mechanisms.yaml"
_EFFECT_KIND = {
    "leader": "group",
    "member": "group",
    "partition": "group",
    "replica": "broker",
    "follower": "broker",
    "led": "cluster",
}
"""Parts → resource kind of the effects that they are in; for other parts it is the last kind of the path."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Mechanism:
    """A mechanism by which a finding may cause another. `sql/mechanisms.yaml` describes the keys."""

    path: tuple[str, ...]
    parts: Literal["resource", "leader", "replica", "follower", "member", "partition", "led", "named"]
    message: str
    least_share: float = 0.8
    within_hours: float = 2
    amount: Literal["reads"] | None = None
    if_metric: str | None = None
    effect_if: dict[str, str] | None = None
    at_stable_offset: bool = False
    contributes: bool = False
    alone: bool = False

    @property
    def effect_kind(self) -> str:
        """The kind of resource that its effects are about."""
        return _EFFECT_KIND.get(self.parts, self.path[-1])


@cache
def mechanisms() -> dict[str, Mechanism]:
    """All mechanisms by name.

    Raises:
        StreamwardenError: the file is invalid; one line.
    """
    try:
        found = TypeAdapter(dict[str, Mechanism]).validate_python(yaml.load(FILE.read_text(), yaml.CSafeLoader))
    except (ValidationError, yaml.YAMLError) as error:
        raise StreamwardenError(f"{shown(FILE)}: {' '.join(str(error).split())[:200]}") from None
    for name, mechanism in found.items():
        if unknown := set(mechanism.path) - set(KINDS):
            raise StreamwardenError(f"{shown(FILE)}: {name}.path: {min(unknown)}: no kind of resource.")
    return found


def may_cause(detectors: Mapping[str, Detector], effect: str, reason: str) -> list[Detector]:
    """Detectors that can find a cause of a finding; those of the nearest resources come first.

    Args:
        effect: id of the detector of the finding.
        reason: the finding's reason.

    Returns:
        The detectors; empty if no mechanism leads to this reason.
    """
    names = {name for name, reasons in detectors[effect].caused_by.items() if reason in reasons}
    found = [detector for detector in detectors.values() if names & detector.causes.keys()]
    return sorted(found, key=lambda detector: (_distance(detector, names), detector.title))


def _distance(detector: Detector, names: set[str]) -> int:
    """Steps from the detector's resource to the end of the shortest path of these mechanisms."""
    paths = (mechanisms()[name].path[::-1] for name in names & detector.causes.keys())
    return min(path.index(detector.resource_kind) if detector.resource_kind in path else len(path) for path in paths)


def problems(detector: Detector) -> Iterator[str]:
    """A line for each mistake in the mechanisms of a header."""
    for key, named in (("causes", detector.causes), ("caused_by", detector.caused_by)):
        for name, reasons in named.items():
            mechanism = mechanisms().get(name)
            if mechanism is None:
                yield f"{key}.{name}: no such mechanism; there are: {', '.join(mechanisms())}."
                continue
            for reason in reasons:
                if reason not in detector.verdicts or detector.verdicts[reason].status != "firing":
                    yield f"{key}.{name}: {reason}: is not a firing reason of this detector."
            if key == "causes" and detector.resource_kind not in mechanism.path:
                kinds = ", ".join(mechanism.path)
                yield f"{key}.{name}: begins at {kinds}, and this detector evaluates: {detector.resource_kind}."
            if key == "caused_by" and detector.resource_kind != mechanism.effect_kind:
                kind = mechanism.effect_kind
                yield f"{key}.{name}: hits a {kind}, and this detector evaluates: {detector.resource_kind}."
