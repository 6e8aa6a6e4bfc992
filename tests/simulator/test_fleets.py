"""Simulated fleets: the same from the same seed, with every fault and decoy in them, and physically sound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from demo.ebs_days import Day
from streamwarden.base.hours import HOUR

from tests.simulator import schemas, volumes
from tests.simulator.scenario import SMALL, START, Case


def test_volumes_come_out_the_same_from_the_same_seed() -> None:
    first, second = volumes.build(SMALL), volumes.build(SMALL)
    assert first.truth == second.truth and volumes.cases(first) == volumes.cases(second)
    assert len(first.world.volumes) == SMALL.volumes
    assert set(first.kinds.values()) >= {*volumes.FAULTS, *volumes.DECOYS}


def test_a_volume_fault_is_what_the_disk_did() -> None:
    fleet = volumes.build(SMALL)
    chosen = set(volumes.cases(fleet))
    for fault in fleet.truth.faults:
        # What nobody meant has no moment before which it could be foreseen.
        assert (fault.outage is None) == (fault.kind not in volumes.FAULTS)
        assert fault.begins <= (fault.outage or fault.begins) <= fault.due + HOUR
        assert Case(fault.resource, fault.due) in chosen
        if fault.outage and fault.kind.startswith("bucket"):
            start = int((fault.outage - START).total_seconds() // 60)
            days = [day.balance_percent for day in _days(fleet, fault.resource)]
            balance = np.concatenate(days)
            assert balance[start + 5] < 1 < balance[start - 60]


def test_decoys_of_volumes_are_never_held_back_for_long() -> None:
    fleet = volumes.build(SMALL)
    hurt = {fault.resource for fault in fleet.truth.faults}
    assert not [name for name, kind in fleet.kinds.items() if kind in volumes.DECOYS and name in hurt]


def _days(fleet: volumes.Fleet, resource: str) -> list[Day]:
    volume = fleet.world.volumes[resource]
    unit, first = fleet.world._unit_of(volume), int(START.timestamp() // 86_400)
    return [unit.day(day)[0][unit.volumes.index(volume)] for day in range(first, first + fleet.scenario.days)]


def test_stores_hold_every_fault_and_decoy_and_a_version_of_a_thousandth_and_a_half() -> None:
    fleet = schemas.build(replace(SMALL, days=4, stores=len(schemas.FAULTS) + len(schemas.DECOYS)))
    kinds = set(fleet.truth.decoys.values())
    assert set(schemas.VERDICTS) <= kinds and len(kinds - set(schemas.VERDICTS)) == len(schemas.DECOYS)
    fault = next(fault for fault in fleet.truth.faults if fault.kind == "rare old version")
    store = fleet.stores[fault.resource]
    release = store.release[store.survivors((fault.due + HOUR - START).total_seconds() / 60)]
    assert (len(release), int((release == 0).sum())) == (schemas.LARGE, schemas.RARE)
