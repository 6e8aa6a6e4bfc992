"""Topics, groups, and applications: clusters with one fault, one decoy, or nothing, evaluated by all their detectors.

Each cluster has at most one fault, and weeks of its operation are simulated (`process_lifetimes`). The responses of the
sources in the evaluated hour are computed from that (`sources`) and passed to the real apps, once for all clusters of a
seed. The previous hours are written to the warehouse as the apps would have written them (`history`). Then every
detector evaluates every cluster. A detector that fires on a healthy cluster, or on the fault of another detector, gives
a false alarm. If a fault has a beginning, the same cluster is also evaluated before it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR
from streamwarden.detectors import Finding
from streamwarden.detectors.evaluate import sync_config
from streamwarden.detectors.resources import resource_key

from tests.simulator.bench import Bench
from tests.simulator.scenario import START, Case, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, score
from tests.simulator.workloads import (
    capacity,
    clients,
    counts,
    data_loss,
    external_calls,
    groups,
    history,
    idle_topics,
    latency,
    polls,
    restores,
    sources,
    streams,
    topics,
)
from tests.simulator.workloads.process_lifetimes import Life

Kind = Callable[[Life], None]
RULES = (
    topics.SIZE,
    topics.WASTED,
    topics.WEAK,
    topics.KEPT,
    topics.ABANDONED,
    topics.ASTRAY,
    topics.HANGS,
    groups.AT_RISK,
    groups.TRIAL,
    groups.UNTRACKED,
    groups.REPLAYS,
    groups.STRANGER,
    polls.POLLED,
    clients.UNKNOWN,
    idle_topics.POISONOUS,
    idle_topics.RESTLESS,
    counts.BROKEN,
    data_loss.FAILING,
    capacity.SHORT,
    streams.UNUSED,
    streams.GROWS,
    streams.DEAD,
    streams.RESTARTS,
    restores.SLOW,
    latency.LATE,
    external_calls.WAITS,
)
FAULTS: tuple[Kind, ...] = (
    *topics.FAULTS,
    *groups.FAULTS,
    *idle_topics.FAULTS,
    *polls.FAULTS,
    *clients.FAULTS,
    *counts.FAULTS,
    *data_loss.FAULTS,
    *capacity.FAULTS,
    *streams.FAULTS,
    *restores.FAULTS,
    *latency.FAULTS,
    *external_calls.FAULTS,
)
DECOYS: tuple[Kind, ...] = (
    *topics.DECOYS,
    *groups.DECOYS,
    *idle_topics.DECOYS,
    *polls.DECOYS,
    *clients.DECOYS,
    *counts.DECOYS,
    *data_loss.DECOYS,
    *capacity.DECOYS,
    *streams.DECOYS,
    *restores.DECOYS,
    *latency.DECOYS,
    *external_calls.DECOYS,
)
TURNS = 34
"""Value of `Scenario.groups` with which each kind occurs once."""
NAMED = {
    "topic_replication_weak": {
        "may_be_single": "^scratch-",
        "acks_all_topics": "payments",
        "parked_brokers": "/9$",
    },
    "topic_on_parked_broker": {"parked_brokers": "/9$"},
    "changelog_abandoned": {"parked_brokers": "/9$"},
    "topic_retention_wasteful": {"keep": "^ledger-"},
    "topic_abandoned": {"keep": "^ledger-"},
    "internal_topic_foreign_consumer": {"may_read": "^backup-"},
}
"""Params that a deployment has to set."""


def build(scenario: Scenario) -> list[Life]:
    """Clusters of all kinds in rotation, each evaluated at another hour of the week."""
    kinds = [*scenario.some(FAULTS), *DECOYS]
    random.Random(f"{scenario.seed} workloads").shuffle(kinds)  # noqa: S311 a simulation
    lives = []
    for number in range(len(kinds) * scenario.groups // TURNS):
        kind = kinds[number % len(kinds)]
        life = _life(scenario, number, kind, before=False)
        lives.append(life)
        if life.begins is not None:
            lives.append(_life(scenario, number, kind, before=True))
    return lives


def _life(scenario: Scenario, number: int, kind: Kind, *, before: bool) -> Life:
    chance = random.Random(f"{scenario.seed} workloads {number}")  # noqa: S311 a simulation
    draws = np.random.default_rng([scenario.seed, 11, number])
    name = f"{'before' if before else 'cluster'}{number:04d}"
    case = Case(name, START + HOUR * chance.randrange(14 * 24))
    life = Life(case, kind.__name__.replace("_", " "), chance, draws, before=before)
    kind(life)
    return life


def evaluate(bench: Bench, scenario: Scenario) -> list[Score]:
    """Simulates the clusters, evaluates them, and scores each detector."""
    lives = build(scenario)
    load(bench, lives)
    return [_scored(bench, lives, rule) for rule in RULES]


def load(bench: Bench, lives: Sequence[Life]) -> None:
    """Runs the apps for the evaluated hour, and writes the previous hours."""
    config = sources.config_of(lives)
    with TemporaryDirectory() as folder:
        bench.load("consumer_groups", sources.topics_and_groups(bench.spark, lives, Path(folder)))
        bench.load("brokers", sources.broker_counters(bench.spark, lives, config, Path(folder)))
        if any(life.processes for life in lives):
            bench.load("jvm_apps", sources.processes(bench.spark, lives, config, Path(folder)))
    history.write(bench, lives)
    targets = [
        {"key_pattern": f"^application:{life.cluster}/{app}$", "seconds": seconds}
        for life in lives for app, seconds in life.targets.items()
    ]  # fmt: skip
    with bench.warehouse.begin() as connection:
        sync_config(connection, Config.model_validate({"latency_targets": targets}))


def _scored(bench: Bench, lives: Sequence[Life], rule: str) -> Score:
    """The score of one detector. A fault counts per cluster, a true negative per resource."""
    by_cluster = {life.cluster: life for life in lives}
    config = Config.model_validate({"detectors": {rule: {"params": NAMED[rule]}} if rule in NAMED else {}})
    truth, verdicts, named = Truth(), list[Verdict](), list[tuple[Fault, Verdict, str | None]]()
    faults = {life.cluster: _fault(life, rule) for life in lives if rule in life.rights}
    truth.faults += faults.values()
    unknown = dict[str, Verdict]()
    for finding in bench.findings(rule, config, is_analyzed=True):
        life = by_cluster[finding.resource.columns["cluster"]]
        said = Verdict.of(life.cluster, finding, finding.reason)
        if rule in life.unknown and _is_meant(life.unknown[rule].resource, finding):
            unknown[life.cluster] = said
        if life.cluster in faults and _is_meant(life.rights[rule].resource, finding):
            named.append((faults[life.cluster], said, _misnamed(life, rule, finding)))
        else:
            said = replace(said, resource_name=f"{life.case.resource_name} {finding.resource_name}")
            truth.decoys[said.resource_name] = life.kind
            if rule in life.may:
                truth.unclear.append((said.resource_name, said.hour, said.hour))
        verdicts.append(said)
    # Evaluated once: the verdict represents all hours that a ticket needs.
    result = score(rule, replace(bench.detector(rule), open_after_hours=1), _worst(verdicts), truth)
    for fault, verdict, wrong in named:
        if verdict.status == "firing" and wrong is not None:
            result.claim("names what it is about", fault, verdict, wrong or None)
    for life in (life for life in lives if rule in life.unknown):
        reason = life.unknown[rule].reason
        said = unknown.get(life.cluster, Verdict(life.case.resource_name, life.case.hour, "unknown", "nothing"))
        wrong = None if said.verdict in reason else f"{said.verdict}, not {reason[0]}"
        result.claim("gives the reason of unknown", _event(life, reason), said, wrong)
    return result


def _fault(life: Life, rule: str) -> Fault:
    return _event(life, life.rights[rule].reason)


def _event(life: Life, reason: tuple[str, ...]) -> Fault:
    hour = life.case.hour
    return Fault(life.case.resource_name, life.kind, hour, hour, hour + HOUR, verdicts=reason)


def _is_meant(resource: Mapping[str, str], finding: Finding) -> bool:
    resource = finding.resource.columns
    return all(
        value in resource[key] if key == "endpoint" else resource[key] == value for key, value in resource.items()
    )


def _misnamed(life: Life, rule: str, finding: Finding) -> str | None:
    """Topics that the finding names wrongly or omits, and wrong metrics; None if the truth has no topics or metrics."""
    right = life.rights[rule]
    if not (right.topics or right.metrics):
        return None
    meant = {resource_key("topic", life.cluster, topic) for topic in right.topics}
    topics = {*finding.affected} ^ meant if right.topics else set()
    return ", ".join(
        [*topics, *(f"{k} {finding.metrics[k]}" for k, v in right.metrics.items() if finding.metrics[k] != v)]
    )


def _worst(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """One finding per resource: a firing one if there is one."""
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        known = found.get(verdict.resource_name)
        if known is None or (verdict.status == "firing" and known.status != "firing"):
            found[verdict.resource_name] = verdict
    return list(found.values())
