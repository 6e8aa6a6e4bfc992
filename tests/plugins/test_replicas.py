"""Placement of missing replicas of topics."""

from __future__ import annotations

from typing import Any

from streamwarden.plans.replicas import Placed, place

from tests.plugins.test_rebalance import GIB, broker, partition


def placed(weakness: str, brokers: list[dict[str, Any]], *rows: dict[str, Any], wanted: int | None = 3) -> Placed:
    [one] = place(brokers, [{"topic": "t", "weakness": weakness, "wanted": wanted}], rows)
    return one


def replicas(of: Placed) -> list[tuple[int, ...]]:
    return [one.replicas for one in of.placements]


def test_a_single_replica_gets_others_in_other_racks_up_to_the_number_of_brokers() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    brokers = [broker(number, rack=rack) for number, rack in racks.items()]
    made = placed("one replica", brokers, partition(0, 1), partition(1, 3))
    assert [{racks[one] for one in each} for each in replicas(made)] == [{"a", "b", "c"}] * 2
    assert [each[0] for each in replicas(made)] == [1, 3] and made.placements[0].copied_bytes == 2 * GIB
    assert replicas(placed("one replica", brokers[:2], partition(0, 1))) == [(1, 2)]


def test_new_replicas_are_spread_over_brokers_with_free_space() -> None:
    brokers = [broker(number) for number in (1, 2, 3, 4)]
    made = placed("one replica", brokers, *(partition(n, 1) for n in range(6)), wanted=2)
    assert sorted(each[1] for each in replicas(made)) == [2, 2, 3, 3, 4, 4]
    brokers[1] |= {"usable_bytes": 20 * GIB + 1.5 * GIB}
    brokers[2] |= {"barred_because": "filling"}
    brokers[3] |= {"barred_because": "silent"}
    made = placed("one replica", brokers, *(partition(n, 1) for n in range(3)), wanted=2)
    assert (replicas(made), made.unplaceable) == ([(1, 2)], 2)


def test_a_follower_in_the_same_rack_moves_to_another_rack_or_stays() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b"), broker(4, rack=None)]
    made = placed("one rack", brokers, partition(0, 2, 1), partition(1, 1, 3), partition(2, 1, 4))
    assert replicas(made) == [(2, 3)]
    made = placed("one rack", [brokers[0], brokers[1], brokers[3]], partition(0, 2, 1))
    assert (made.placements, made.unplaceable) == ([], 1)


def test_replicas_on_a_parked_broker_move_unless_a_reassignment_is_running() -> None:
    brokers = [broker(1), broker(2), broker(9, barred_because="parked")]
    made = placed(
        "on a parked broker", brokers, partition(0, 9, 1), partition(1, 1, 2), partition(2, 1, 9, may_move=False)
    )
    assert (replicas(made), made.moving, made.placements[0].leader) == ([(1, 2)], 1, 9)
