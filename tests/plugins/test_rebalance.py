"""The moves of a rebalance plan, and their order."""

from __future__ import annotations

from typing import Any

import pytest
from streamwarden.plans.rebalance import EVEN, Balance, Move
from streamwarden.plans.rebalance import plan as plan_of

GIB = 2.0**30


def broker(number: int, **more: Any) -> dict[str, Any]:
    return {
        "broker_id": number, "weight": 1, "total_bytes": 100 * GIB, "usable_bytes": 80 * GIB, "barred_because": None,
        "rack": None,
    } | more  # fmt: skip


def partition(number: int, *holders: int, **more: Any) -> dict[str, Any]:
    """A partition with replicas on `holders`; the first one is the leader."""
    return {
        "topic": "t", "partition": number, "leader": holders[0], "replica_ids": sorted(holders), "size_bytes": GIB,
        "bytes_in_per_second": 1e6, "bytes_out_per_second": 1e6, "may_move": True,
    } | more  # fmt: skip


def plan(brokers: list[dict[str, Any]], rows: list[dict[str, Any]], *, most: int) -> list[Move]:
    return plan_of(Balance.of(brokers, rows), most=most)


def test_an_even_cluster_needs_no_move() -> None:
    even = [partition(n, 1 + n % 3, 1 + (n + 1) % 3) for n in range(12)]
    assert plan([broker(n) for n in (1, 2, 3)], even, most=20) == []
    assert plan([broker(1)], [partition(0, 1)], most=20) == []
    assert plan([broker(1), broker(2)], [], most=20) == []


def test_a_leader_change_is_preferred_to_a_copy() -> None:
    led_by_one = [partition(n, 1, 2 + n % 2) for n in range(8)] + [partition(8 + n, 2 + n % 2, 1) for n in range(2)]
    made = plan([broker(n) for n in (1, 2, 3)], led_by_one, most=20)
    assert made and made[0].copied_bytes == 0 and made[0].source == 1
    assert made[0].replicas[0] == made[0].target != 1


def test_a_new_broker_gets_its_share_and_every_move_improves_the_balance() -> None:
    brokers = [broker(n) for n in (1, 2, 3)]
    rows = [partition(n, 1 + n % 2, 2 - n % 2) for n in range(12)]
    made = plan(brokers, rows, most=50)
    assert max(made[-1].spreads.values()) <= EVEN
    worst = [sum(spread**2 for spread in one.spreads.values()) for one in made]
    assert worst == sorted(worst, reverse=True)
    assert all(one.target == 3 for one in made if one.copied_bytes)
    assert all(len(set(one.replicas)) == 2 for one in made)


def test_the_number_of_copies_is_limited() -> None:
    made = plan([broker(n) for n in (1, 2, 3)], [partition(n, 1, 2) for n in range(12)], most=3)
    assert sum(one.copied_bytes > 0 for one in made) == 3


def test_of_two_equal_moves_the_smaller_one_is_first() -> None:
    rows = [partition(n, 1, size_bytes=GIB * (9 if n % 2 else 1)) for n in range(8)]
    made = plan([broker(1), broker(2)], rows, most=1)
    assert made[0].partition % 2 == 0


@pytest.mark.parametrize("barred", ["silent", "parked", "filling"])
def test_an_excluded_broker_gets_no_replica(barred: str) -> None:
    rows = [partition(n, 1) for n in range(12)]
    made = plan([broker(1), broker(2), broker(3, barred_because=barred)], rows, most=20)
    assert {one.target for one in made} == {2}


def test_a_broker_gets_no_more_than_its_free_disk_space() -> None:
    rows = [partition(n, 1) for n in range(12)]
    little = broker(2, usable_bytes=20 * GIB + 2.5 * GIB)
    assert sum(one.copied_bytes for one in plan([broker(1), little], rows, most=20)) == 2 * GIB


def test_no_move_puts_two_replicas_into_one_rack() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="b"), broker(3, rack="b"), broker(4, rack="a")]
    rows = [partition(n, 1, 2) for n in range(12)]
    racks = {one["broker_id"]: one["rack"] for one in brokers}
    made = plan(brokers, rows, most=50)
    assert made and all({racks[holder] for holder in one.replicas} == {"a", "b"} for one in made)


def test_the_rack_of_an_unresponsive_broker_still_counts() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="b", barred_because="silent"), broker(3, rack="b")]
    rows = [partition(n, 1, 2) for n in range(12)]
    assert not [one for one in plan(brokers, rows, most=20) if one.copied_bytes]
    assert plan([*brokers, broker(4, rack="c")], rows, most=1)[0].target == 4


def test_larger_instances_get_more_load() -> None:
    brokers = [broker(1, weight=4), broker(2, weight=8)]
    even = [partition(n, 1 if n % 3 == 0 else 2) for n in range(12)]
    assert plan(brokers, even, most=20) == []
    assert plan([broker(1), broker(2)], even, most=20)


def test_an_under_replicated_partition_counts_and_is_not_moved() -> None:
    rows = [partition(n, 1, may_move=n == 5) for n in range(12)]
    made = plan([broker(1), broker(2)], rows, most=20)
    assert [one.partition for one in made] == [5]
    assert Balance.of([broker(1), broker(2)], rows).loads[0][2] == 12
