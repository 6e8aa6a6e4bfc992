"""Changelogs, and a log cleaner that compacts them by Kafka's rules: configs that prevent compaction, and decoys.

Each cluster has one changelog; its hours are rows of the warehouse, as three apps gather them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pandas as pd
import sqlalchemy as sa
from streamwarden.base.hours import HOUR

from tests.simulator import fleets
from tests.simulator.bench import Bench
from tests.simulator.cluster_sources import copy
from tests.simulator.clusters import GIB
from tests.simulator.scenario import EVALUATED, Scenario, Verdict
from tests.simulator.score import Score, at_once, score

RULE = "topic_compaction_wasteful"
LIVED, KNOWN = 120 * 24, 9 * 24
"""Simulated hours, and the last hours of them that are in the warehouse."""
LEAST_BYTES, ADVISED = 10 * GIB, {"segment_hours": 24.0, "dirty_ratio": 0.1}


@dataclass
class Changelog:
    """A changelog of a store whose keys are updated at random. Arrays have one value per hour."""

    name: str
    kind: str
    chance: np.random.Generator
    live: np.ndarray
    """Bytes of the newest record of each key, per partition."""
    came: np.ndarray
    """Bytes appended per partition."""
    partitions: int = 6
    record_bytes: float = 200.0
    segment_hours: float = 168.0
    segment_bytes: float = 1.0 * GIB
    dirty_ratio: float = 0.5
    tombstone_hours: float = 24.0
    removed: float = 0.0
    """Share of appended bytes that are tombstones."""
    stands_from: int = LIVED
    """Hour from which on the cleaner is stuck."""
    known: int = KNOWN
    store: str = "key_value"
    policy: str = "compact"
    reports_key_counts: bool = True
    reports_topic_configs: bool = True

    def held(self, segment_hours: float, dirty_ratio: float) -> np.ndarray:
        """Bytes of the mean partition; partitions roll segments at different times."""
        phases = np.random.default_rng(7).uniform(0, segment_hours, self.partitions)
        return np.asarray(np.mean([self._partition(segment_hours, dirty_ratio, phase) for phase in phases], axis=0))

    def _partition(self, segment_hours: float, dirty_ratio: float, age: float) -> np.ndarray:
        clean, dirty, active, held = float(self.live[0]), 0.0, 0.0, np.empty(LIVED)
        for hour in range(LIVED):
            active, age = active + self.came[hour], age + 1
            if age >= segment_hours or active >= self.segment_bytes:
                dirty, active, age = dirty + active, 0.0, 0.0
            if dirty and hour < self.stands_from and dirty >= dirty_ratio * (clean + dirty):
                young = self.came[max(0, hour - int(self.tombstone_hours)) : hour].sum() * self.removed
                clean, dirty = min(float(self.live[hour]) + young, clean + dirty), 0.0
            held[hour] = clean + dirty + active
        return held

    def is_wasteful(self) -> bool | None:
        """Whether the advised configs would save enough bytes. None: close to the threshold, or only if records of the
        last delete.retention.ms are not tombstones, which is not observable."""
        now, days = self.held(self.segment_hours, self.dirty_ratio), slice(-1, -8 * 24, -24)
        saved = (now - self.held(**ADVISED))[-1] * self.partitions * 3
        young = self.came[-int(self.tombstone_hours) :].sum()
        if (now / self.live)[days].min() < 2.6 or saved < 0.7 * LEAST_BYTES:
            return False
        return True if ((now - young) / self.live)[days].min() > 3.6 and saved > 1.4 * LEAST_BYTES else None


Fleet = fleets.Fleet[Changelog]
Make = fleets.Make[Changelog]


def a_changelog(number: int, kind: str, chance: np.random.Generator) -> Changelog:
    """A large changelog, compacted by Kafka's defaults."""
    live = chance.uniform(1.5, 6) * GIB
    noise = chance.lognormal(0, 0.3, LIVED) * (1 + 0.4 * np.sin(2 * np.pi * np.arange(LIVED) / 24))
    came = live * chance.uniform(0.02, 0.4) / 168 * noise
    name = f"compacted{number:04d}"
    changelog = Changelog(name, kind, chance, np.full(LIVED, live), came, int(chance.integers(4, 12)))
    changelog.record_bytes = chance.uniform(80, 900)
    changelog.segment_bytes = chance.choice([1.0, 5.0]) * GIB
    return changelog


# Faults


def cleaned_too_late(fleet: Fleet, one: Changelog) -> None:
    """min.cleanable.dirty.ratio of nearly 1."""
    one.dirty_ratio = one.chance.uniform(0.88, 0.95)
    one.came *= 1.2 * one.live[0] / one.came.mean() / one.chance.uniform(100, 200)


def segments_of_months(fleet: Fleet, one: Changelog) -> None:
    one.segment_hours, one.segment_bytes = one.chance.uniform(40, 90) * 24, 100 * GIB
    one.live *= 0.25
    one.came *= one.chance.uniform(8, 14) * one.live[0] / one.came.mean() / one.segment_hours


def changed_faster_than_segments(fleet: Fleet, one: Changelog) -> None:
    """A few keys, each written many times within segment.ms."""
    one.live *= 0.02
    one.segment_bytes = 50 * GIB
    one.came *= one.chance.uniform(3, 6) * GIB / one.came.mean() / 168


# Decoys


def as_by_default(fleet: Fleet, one: Changelog) -> None:
    """Up to twice the live bytes, plus one segment."""


def as_advised(fleet: Fleet, one: Changelog) -> None:
    one.segment_hours, one.dirty_ratio = 24, 0.1
    one.came *= one.chance.uniform(1, 20)


def keys_grow(fleet: Fleet, one: Changelog) -> None:
    """All appended keys are new."""
    one.live = one.live[0] + np.cumsum(one.came)


def small_one(fleet: Fleet, one: Changelog) -> None:
    cleaned_too_late(fleet, one)
    one.live, one.came = one.live / 500, one.came / 500


def windowed(fleet: Fleet, one: Changelog) -> None:
    cleaned_too_late(fleet, one)
    one.store = "window"


def deleted_by_time_too(fleet: Fleet, one: Changelog) -> None:
    cleaned_too_late(fleet, one)
    one.policy = "compact,delete"


def young_one(fleet: Fleet, one: Changelog) -> None:
    """Created days ago."""
    cleaned_too_late(fleet, one)
    one.known = int(one.chance.integers(24, 7 * 24))


def cleaner_stands(fleet: Fleet, one: Changelog) -> None:
    """The cleaner has been stuck for weeks: no topic config is the cause."""
    one.stands_from = LIVED - 60 * 24
    one.came *= 12 * one.live[0] / one.came.mean() / (60 * 24)


def much_is_removed(fleet: Fleet, one: Changelog) -> None:
    """Tombstones that Kafka keeps for weeks (delete.retention.ms)."""
    one.removed, one.tombstone_hours = 0.8, 21 * 24
    one.segment_hours = 24
    one.came *= 6 * one.live[0] / one.came.mean() / one.tombstone_hours


def key_counts_not_reported(fleet: Fleet, one: Changelog) -> None:
    """The store is in memory, so that RocksDB reports no number of keys."""
    cleaned_too_late(fleet, one)
    one.reports_key_counts = False


def topic_configs_not_reported(fleet: Fleet, one: Changelog) -> None:
    cleaned_too_late(fleet, one)
    one.reports_topic_configs = False


FAULTS: tuple[Make, ...] = (cleaned_too_late, segments_of_months, changed_faster_than_segments)
DECOYS: tuple[Make, ...] = (
    as_by_default, as_advised, keys_grow, small_one, windowed, deleted_by_time_too, young_one, cleaner_stands,
    much_is_removed, key_counts_not_reported, topic_configs_not_reported,
)  # fmt: skip


def build(scenario: Scenario) -> Fleet:
    """A fleet; a changelog of these kinds is a fault if it wastes enough bytes by Kafka's rules."""
    fleet = fleets.build(scenario, 17, a_changelog, FAULTS, DECOYS)
    may_waste = {fleets.kind_of(make) for make in (*FAULTS, as_by_default, as_advised, keys_grow)}
    for one in fleet.resources:
        wasteful = one.kind in may_waste and one.is_wasteful()
        if wasteful:
            fleet.fault(one)
        elif wasteful is None:
            fleet.truth.unclear.append((one.name, EVALUATED, EVALUATED + HOUR))
    return fleet


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    fleet = build(scenario)
    with bench.warehouse.begin() as connection:
        for day in range(-1, KNOWN // 24 + 2):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (EVALUATED - timedelta(day)).date()})
        for table, rows in TABLES.items():
            copy(connection, table, *[rows(one) for one in fleet.resources])
    verdicts = [
        Verdict(name, EVALUATED, row.status, row.message, metrics=row.metrics)
        for row in bench.findings(RULE)
        if (name := str(row.resource.columns["cluster"])) in fleet.truth.decoys
    ]
    return score(RULE, at_once(bench.detector(RULE)), verdicts, fleet.truth)


def _hours(one: Changelog) -> pd.DataFrame:
    hours = pd.date_range(EVALUATED - (one.known - 1) * HOUR, EVALUATED, freq="h")
    return pd.DataFrame({"hour": hours, "cluster": one.name})


def _topic(one: Changelog) -> pd.DataFrame:
    configs = {"segment.ms": one.segment_hours * 3_600_000, "delete.retention.ms": one.tombstone_hours * 3_600_000,
               "min.cleanable.dirty.ratio": one.dirty_ratio}  # fmt: skip
    output = json.dumps({name: {"value": str(value)} for name, value in configs.items()})
    return _hours(one).tail(1).assign(
        topic="app-totals-changelog", partitions=one.partitions, replication_factor=3, kind="changelog",
        application_id="app", cleanup_policy=one.policy, segment_bytes=int(one.segment_bytes),
        configs=output if one.reports_topic_configs else None, observed_at=EVALUATED + HOUR,
    )  # fmt: skip


def _traffic(one: Changelog) -> pd.DataFrame:
    came = one.came[-one.known :] * one.partitions
    held = one.held(one.segment_hours, one.dirty_ratio)[-one.known :]
    return _hours(one).assign(
        topic="app-totals-changelog", brokers=3, covered_seconds=3600.0, bytes_in=came,
        messages_in=came / one.record_bytes, log_bytes=held * one.partitions * 3,
    )  # fmt: skip


def _processes(one: Changelog) -> pd.DataFrame:
    rows = _hours(one).assign(app="app", application_id="app", samples=2)
    return pd.concat([rows.assign(endpoint=f"{one.name}-{n}") for n in range(2)])


def _stores(one: Changelog) -> pd.DataFrame:
    """Two processes share the tasks; the second has a standby of each task of the first."""
    live = one.live[-one.known :]
    estimate = one.chance.uniform(0.98, 1.15) * one.chance.normal(1, 0.01, one.known)
    keys = live / one.record_bytes * estimate if one.reports_key_counts else np.full(one.known, np.nan)
    size = live * one.chance.uniform(0.6, 1.4)
    rows = _hours(one).assign(app="app", store="totals", kind=one.store, segments=1)
    first = one.partitions // 2
    return pd.concat([
        rows.assign(endpoint=f"{one.name}-{n}", tasks=tasks, keys=keys * tasks, sst_bytes=size * tasks)
        for n, tasks in enumerate((first, one.partitions))
    ])  # fmt: skip


TABLES: dict[str, Callable[[Changelog], pd.DataFrame]] = {
    "inventory.topic_hourly": _topic,
    "metrics.topic_hourly": _traffic,
    "metrics.jvm_app_hourly": _processes,
    "metrics.state_store_memory_hourly": _stores,
}
