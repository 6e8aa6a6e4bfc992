"""Simulated fleets: equal for equal seeds, with every fault and decoy, and physically consistent."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from demo.ebs_days import Day
from streamwarden.base.hours import HOUR

from tests.simulator import brokers, consumers, lag, schemas, volume_sources, volumes, workloads
from tests.simulator.clusters import NOW
from tests.simulator.scenario import EVALUATED, SMALL, START, Case, Verdict
from tests.simulator.volume_kinds import DECOYS, FAULTS, OTHER_REGION, REGION, Fleet
from tests.simulator.volumes import FIRST
from tests.simulator.workloads import process_lifetimes as lives


def test_volumes_come_out_the_same_from_the_same_seed() -> None:
    first, second = volumes.build(SMALL), volumes.build(SMALL)
    assert first.truth == second.truth and volumes.cases(first) == volumes.cases(second)
    assert len(first.world.volumes) == SMALL.volumes
    assert set(first.kinds.values()) >= {*FAULTS, *DECOYS}


def test_a_volume_fault_is_measured_on_the_disk() -> None:
    fleet = volumes.build(SMALL)
    chosen = set(volumes.cases(fleet))
    for fault in fleet.truth.faults:
        # An unplanned fault has no time from which on it was predictable.
        assert (fault.outage is None) == (fault.kind not in FAULTS)
        assert fault.begins <= (fault.outage or fault.begins) <= fault.due + HOUR
        assert Case(fault.resource_name, fault.due) in chosen
        if fault.outage and fault.kind.startswith("bucket"):
            start = int((fault.outage - START).total_seconds() // 60)
            days = [day.balance_percent for day in _days(fleet, fault.resource_name)]
            balance = np.concatenate(days)
            assert balance[start + 5] < 1 < balance[start - 60]


def test_decoys_of_volumes_are_never_throttled_for_long() -> None:
    fleet = volumes.build(SMALL)
    hurt = {fault.resource_name for fault in fleet.truth.faults}
    assert not [name for name, kind in fleet.kinds.items() if kind in DECOYS and name in hurt]


def test_changes_of_volumes_are_as_ec2_describes_them_and_as_the_disk_performs() -> None:
    fleet = volumes.build(SMALL)
    by_kind = {kind: fleet.world.volumes[name] for name, kind in fleet.kinds.items()}
    grown = by_kind["grown while throttled"]
    change, fault = grown.modifications[0], next(f for f in fleet.truth.faults if f.resource_name == grown.volume_id)
    assert change.at < fault.ends <= change.ready_at
    case = Case(grown.volume_id, change.at.replace(minute=0, second=0))
    assert volume_sources._volume_row(fleet, case)["size_gib"] == change.to.size_gib
    moved = by_kind["instance's limit after a move"]
    later, earlier = moved.attachments
    assert later.instance_id == f"{earlier.instance_id}-peer"
    before = volume_sources._volume_row(fleet, Case(moved.volume_id, moved.created_at - 5 * HOUR))
    assert before["attachments"][0]["instance_id"].startswith(f"{earlier.instance_id}@")
    twice = volume_sources._volume_row(fleet, Case(by_kind["multi-attach limit"].volume_id, START + 30 * HOUR))
    assert twice["multi_attach"] and len(twice["attachments"]) == 2
    assert {volume.region for volume in fleet.world.volumes.values()} == {REGION, OTHER_REGION}


def test_a_fleet_may_have_decoys_only() -> None:
    calm = replace(SMALL, has_faults=False)
    kinds = set(volumes.build(calm).kinds.values())
    assert not kinds & {*FAULTS} and kinds >= {*DECOYS}
    events = [event for cluster in consumers.build(calm).clusters.values() for event in cluster.events]
    assert events and not {event.kind for event in events} & {*consumers.ROGUES}


def _days(fleet: Fleet, resource_name: str) -> list[Day]:
    volume = fleet.world.volumes[resource_name]
    unit, first = fleet.world._unit_of(volume), int(START.timestamp() // 86_400)
    return [unit.day(day)[0][unit.volumes.index(volume)] for day in range(first, first + fleet.scenario.days)]


def test_stores_have_every_fault_and_decoy_and_a_rare_old_version() -> None:
    fleet = schemas.build(replace(SMALL, days=4, stores=len(schemas.FAULTS) + len(schemas.DECOYS)))
    kinds = set(fleet.truth.decoys.values())
    assert set(schemas.VERDICTS) <= kinds and len(kinds - set(schemas.VERDICTS)) == len(schemas.DECOYS)
    fault = next(fault for fault in fleet.truth.faults if fault.kind == "rare old version")
    store = fleet.stores[fault.resource_name]
    release = store.release[store.survivors((fault.due + HOUR - START).total_seconds() / 60)]
    assert (len(release), int((release == 0).sum())) == (schemas.LARGE, schemas.RARE)


def test_clusters_of_workloads_come_out_the_same_and_each_kind_is_there() -> None:
    first, second = workloads.build(SMALL), workloads.build(SMALL)
    kinds = {kind.__name__.replace("_", " ") for kind in (*workloads.FAULTS, *workloads.DECOYS)}
    assert {life.kind for life in first} == kinds
    for one, other in zip(first, second, strict=True):
        assert (one.case, one.kind, one.rights) == (other.case, other.kind, other.rights)
        assert [list(t.weight) for t in one.topics.values()] == [list(t.weight) for t in other.topics.values()]
        assert not (one.before and one.rights)
    assert {rule for life in first for rule in life.rights} == set(workloads.RULES)


def test_a_group_rereads_records_after_a_rewind_and_keeps_its_offset_after_it_stopped() -> None:
    life = next(life for life in workloads.build(SMALL) if life.kind == "replays for a repair")
    topic, group = life.topics["events"], life.groups["batch"]
    sent, came = group.bytes_read(topic).sum(), topic.bytes(lives.NOW)
    assert sent > came * 1.001, "what it read twice was sent twice"
    group.died = lives.NOW - 30.0
    assert group.committed(topic, 0, lives.NOW) == group.committed(topic, 0, lives.NOW - 20)
    assert topic.time_of(topic.end(lives.NOW - 50)) == pytest.approx(lives.NOW - 50, abs=0.01)


def _behind(timeline: lag.Timeline, partition: int, moment: datetime) -> float:
    """Age in seconds of the first readable record that the reader has not read."""
    log = timeline.logs[partition]
    wanted = slice(max(timeline.consumed(partition, moment), log.start(moment)), log.end(moment))
    unread = log.appended[wanted][log.readable[wanted]]
    return (moment - START).total_seconds() - float(unread[0]) if len(unread) else 0.0


@pytest.mark.rare
def test_groups_lag_exactly_where_the_truth_has_a_fault() -> None:
    fleet = lag.build(SMALL)
    faults = {fault.resource_name: fault for fault in fleet.truth.faults}
    assert {fault.kind for fault in faults.values()} and len(faults) < len(fleet.timelines)
    for name, timeline in fleet.timelines.items():
        ends = [case.hour + HOUR for case in lag.cases(fleet) if case.resource_name == name]
        pairs = zip(timeline.logs, timeline.paths, strict=True)
        distinct = {(id(log), id(path)): p for p, (log, path) in enumerate(pairs)}.values()
        most = {end: max(_behind(timeline, p, end) for p in distinct) for end in ends}
        if name in faults:
            assert most[faults[name].due + HOUR] >= 300, timeline.kind
            assert max(most[end] for end in ends if end <= faults[name].begins) < 60, timeline.kind
        elif timeline.kind == "rewound and soon back":
            assert sum(seconds > 60 for seconds in most.values()) == 1
        elif timeline.kind == "punctual by a guess":
            assert 60 < max(most.values()) < 400
        elif timeline.assigned:
            unclear = [(start, end) for of, start, end in fleet.truth.unclear if of == name]
            clear = [end for end in ends if not any(start <= end - HOUR < until for start, until in unclear)]
            assert max(most[end] for end in clear) < 60, timeline.kind


def test_offsets_by_time_follow_timestamps_and_not_append_times() -> None:
    log = lag.Log(np.array([10.0, 20, 30, 40]), np.array([10.0, 3000, 30, 40]), np.ones(4, bool))
    asked = START + timedelta(seconds=60)
    assert [log.offset_at(START + timedelta(seconds=s), asked) for s in (5, 15, 35, 4000)] == [0, 1, 1, 4]
    assert [log.time_of(offset) for offset in range(4)] == [10, 3000, 3000, 3000]


def test_advice_is_checked_against_the_demand_and_not_the_throttled_load() -> None:
    fleet = volumes.build(SMALL)
    fault = next(fault for fault in fleet.truth.faults if fault.kind == "clamped for days")
    volume = fleet.world.volumes[fault.resource_name]

    def advice(iops: float) -> str | None:
        metrics = {"advised_volume_type": volume.volume_type, "advised_size_gib": volume.size_gib, "advised_iops": iops,
                   "advised_throughput_mib_s": 500 if volume.volume_type == "gp3" else None}  # fmt: skip
        return volumes._wrong_advice(fleet, fault, metrics)

    assert "carries it in" in str(advice(volume.limits.base_iops * 1.05))
    assert advice(volume.limits.base_iops * 3) is None
    assert volumes._wrong_advice(fleet, fault, dict.fromkeys(volumes.ADVISED)) == "no volume is advised"


def test_a_volume_is_held_by_its_instance_in_most_of_its_throttled_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = volumes.build(SMALL)
    name, hour = next(iter(fleet.world.volumes)), START + HOUR

    def is_held(held: int, over: int) -> bool:
        minutes = np.arange(120)
        hurt = volumes._Hurt(*((minutes >= 60) & (minutes < 60 + n) for n in (held, 0, over, 0)))
        monkeypatch.setattr(volumes, "_hurt", lambda *_: hurt)
        return volumes._is_held_by_instance(fleet, Verdict(name, hour, "firing", ""))

    assert is_held(60, 30) and not is_held(60, 29) and not is_held(0, 0)
    assert is_held(16, 16), "it ends within the hour"


def test_no_hour_within_a_volume_fault_is_evaluated_alone() -> None:
    fleet = volumes.build(SMALL)
    chosen = set(volumes.cases(fleet))
    within = [case for case in chosen if case.hour > FIRST and fleet.truth.is_underway(case.resource_name, case.hour)]
    assert within and not [c for c in within if not {replace(c, hour=c.hour + n * HOUR) for n in (-1, 1)} & chosen]


@pytest.mark.rare
def test_clusters_come_out_the_same_from_the_same_seed_with_every_fault_and_decoy() -> None:
    first, second = brokers.build(SMALL), brokers.build(SMALL)
    assert first.truth == second.truth
    assert len({cluster.kind for cluster in first.clusters}) == len(brokers.FAULTS) + len(brokers.DECOYS)
    for one, other in zip(first.clusters, second.clusters, strict=True):
        assert all(np.array_equal(one.rates[name], other.rates[name]) for name in one.rates)
        assert (one.used_bytes <= one.disk_bytes).all() and (one.rates["bytes_in_total"] >= 0).all(), one.kind
        held = sum(len(replicas) for topic in one.topics if topic.begun < EVALUATED for replicas in topic.before)
        assert one.gauges["partitions"][:, NOW].sum() == held or "unequal" in one.kind
