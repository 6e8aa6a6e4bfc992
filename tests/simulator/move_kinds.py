"""Partition reassignments with an impact, stuck ones, leftover throttles, and decoys."""

from __future__ import annotations

from tests.simulator.broker_kinds import slow
from tests.simulator.cluster_fleet import DOWN, MOVES, SLOW, STUCK, THROTTLE, UNDER_REPLICATED, UNEVEN, Fleet
from tests.simulator.cluster_kinds import goes_down
from tests.simulator.clusters import GIB, NOW, Cluster, Move

RATE = "leader.replication.throttled.rate"
SOURCE, TARGET, OTHER = 1, 4, 0
"""Brokers of a cluster of five: the second partition of its first topic is on brokers 1 to 3."""
MOVED = 1


def moves(cluster: Cluster, hours: int, copies: float = 0.4, advances: bool = True) -> Move:
    """A partition of the first topic gets a replica, for so many hours so far, at this share of its brokers' load."""
    topic = cluster.topics[0]
    size = int(cluster.chance.uniform(20, 400) * GIB)
    left = size * cluster.chance.uniform(0.3, 0.8)
    per_hour = left * cluster.chance.uniform(0.05, 0.3) if advances else 0.0
    move = Move(topic.name, MOVED, TARGET, size, [int(min(left + n * per_hour, size)) for n in range(hours + 1)])
    cluster.moves.append(move)
    topic.replicas[MOVED].append(TARGET)
    since = slice(NOW - hours, None)
    carried = sum(cluster.rates[f"{name}_total"] for name in ("bytes_in", "bytes_out", "replication_bytes_in"))
    for broker, name in ((SOURCE, "reassignment_bytes_out_total"), (TARGET, "reassignment_bytes_in_total")):
        cluster.rates[name][broker, since] = copies * carried[broker, since]
    cluster.update_isr_gauges()
    return move


def throttled(cluster: Cluster, hours: int, rates: bool = True, topics: bool = True) -> None:
    """A throttle that is so many hours old."""
    cluster.throttled_hours = hours
    if rates:
        cluster.throttles = {broker: {RATE: "10485760"} for broker in range(cluster.brokers)}
    if topics:
        cluster.topics[0].configs["leader.replication.throttled.replicas"] = "1:1,1:2,1:3"


def move_slows_flushes(fleet: Fleet, cluster: Cluster) -> None:
    hours = int(cluster.chance.integers(1, 5))
    moves(cluster, hours)
    slow(cluster, SOURCE, slice(NOW - hours, None), cluster.chance.uniform(2.5, 5), floor=20)
    fleet.fault(MOVES, cluster, None, "warning")
    fleet.unclear(SLOW, cluster, SOURCE)


def throttled_and_slow_all_the_same(fleet: Fleet, cluster: Cluster) -> None:
    throttled(cluster, 4)
    move_slows_flushes(fleet, cluster)


def move_leaves_replicas_behind(fleet: Fleet, cluster: Cluster) -> None:
    """Other replicas on the target broker cannot keep up."""
    moves(cluster, 2)
    cluster.drop_from_isr(TARGET, cluster.topics[1:])
    cluster.update_isr_gauges()
    fleet.fault(MOVES, cluster, None, "warning")
    fleet.fault(UNDER_REPLICATED, cluster, TARGET, "warning")
    fleet.unclear(UNEVEN, cluster)


def move_stuck(fleet: Fleet, cluster: Cluster) -> None:
    moves(cluster, int(cluster.chance.integers(2, 5)), copies=0.01, advances=False)
    fleet.fault(STUCK, cluster, None, "warning")


def moves_to_one_that_is_down(fleet: Fleet, cluster: Cluster) -> None:
    moves(cluster, 3, copies=0.0, advances=False)
    goes_down(cluster, TARGET)
    fleet.fault(STUCK, cluster, None, "warning")
    fleet.fault(DOWN, cluster, TARGET, "down")
    fleet.fault(UNDER_REPLICATED, cluster, TARGET, "warning")


def throttle_left_behind(fleet: Fleet, cluster: Cluster) -> None:
    throttled(cluster, int(cluster.chance.integers(2, 6)))
    fleet.fault(THROTTLE, cluster, None, "warning")


def rates_left_behind(fleet: Fleet, cluster: Cluster) -> None:
    """No topic lists throttled replicas, so the throttle has no effect."""
    throttled(cluster, 4, topics=False)
    fleet.fault(THROTTLE, cluster, None, "info")


def names_left_behind(fleet: Fleet, cluster: Cluster) -> None:
    throttled(cluster, 4, rates=False)
    fleet.fault(THROTTLE, cluster, None, "info")


def moves_and_disturbs_nobody(fleet: Fleet, cluster: Cluster) -> None:
    throttled(cluster, 4)
    moves(cluster, 4, copies=0.15)


def just_began_to_move(fleet: Fleet, cluster: Cluster) -> None:
    moves(cluster, 0)


def slow_elsewhere(fleet: Fleet, cluster: Cluster) -> None:
    """A broker outside of the reassignment is slow meanwhile."""
    moves(cluster, 3)
    slow(cluster, OTHER, slice(NOW - 3, None), cluster.chance.uniform(2.5, 5), floor=20)
    fleet.unclear(SLOW, cluster, OTHER)


def slow_beside_a_trickle(fleet: Fleet, cluster: Cluster) -> None:
    """A broker of the reassignment copies almost nothing: it is slow for another reason."""
    moves(cluster, 3, copies=0.01)
    slow(cluster, SOURCE, slice(NOW - 3, None), cluster.chance.uniform(2.5, 5), floor=20)
    fleet.unclear(SLOW, cluster, SOURCE)


def replicas_out_of_sync_before(fleet: Fleet, cluster: Cluster) -> None:
    """Replicas of other brokers are out of sync, unrelated to the reassignment."""
    moves(cluster, 2)
    elsewhere = [t for t in cluster.topics[1:] if any(OTHER in r for r in t.replicas)]
    for topic in elsewhere:
        for partition, replicas in enumerate(topic.replicas):
            if OTHER in replicas and SOURCE not in replicas and TARGET not in replicas:
                topic.isr[partition] = [r for r in topic.isr[partition] if r != OTHER]
                topic.leaders[partition] = topic.isr[partition][0]
    cluster.update_isr_gauges()
    for broker in range(cluster.brokers):
        fleet.unclear(UNDER_REPLICATED, cluster, broker)
    fleet.unclear(UNEVEN, cluster)


def throttle_of_a_move_that_just_ended(fleet: Fleet, cluster: Cluster) -> None:
    throttled(cluster, 5)
    move = moves(cluster, 5)
    cluster.topics[0].replicas[MOVED].remove(TARGET)
    cluster.update_isr_gauges()
    move.ended = int(cluster.chance.integers(1, 3))


def reassignments_not_readable(fleet: Fleet, cluster: Cluster) -> None:
    """Without the ACL neither reassignments nor the owner of a throttle are known."""
    throttled(cluster, 5)
    cluster.reports_reassignments = False


FAULTS = (
    move_slows_flushes,
    throttled_and_slow_all_the_same,
    move_leaves_replicas_behind,
    move_stuck,
    moves_to_one_that_is_down,
    throttle_left_behind,
    rates_left_behind,
    names_left_behind,
)
DECOYS = (
    moves_and_disturbs_nobody,
    just_began_to_move,
    slow_elsewhere,
    slow_beside_a_trickle,
    replicas_out_of_sync_before,
    throttle_of_a_move_that_just_ended,
    reassignments_not_readable,
)
SIZES = dict.fromkeys((*FAULTS, *DECOYS), 5)
