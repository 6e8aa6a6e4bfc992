"""`streamwarden plan replicas`: where to put missing replicas, and those on parked brokers or in a single rack.

Each partition keeps its correctly placed replicas. A new replica goes to a rack without one, if possible. Within it,
the broker with the fewest partitions of the topic is chosen, and among these the one with the most free disk space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from streamwarden.plans.rebalance import room_bytes
from streamwarden.store.queries import Row


@dataclass(frozen=True)
class Placement:
    """The new replicas of a partition, leader first, and the brokers among them that get one (`added`)."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    added: tuple[int, ...]
    copied_bytes: float


@dataclass
class Placed:
    """The placements of a topic, and the number of partitions without one."""

    topic: str
    weakness: str
    placements: list[Placement] = field(default_factory=list)
    moving: int = 0
    """Partitions that are under-replicated or being reassigned, and therefore left out."""
    unplaceable: int = 0
    """Partitions of which no broker can take a replica."""


def place(brokers: Sequence[Row], topics: Sequence[Row], partitions: Sequence[Row]) -> list[Placed]:
    """Placements by topic, from the rows of `plans/rebalance_brokers`, `plans/replicas`, and
    `plans/rebalance_partitions`."""
    by_id = {one["broker_id"]: one for one in brokers}
    room = {number: room_bytes(one) for number, one in by_id.items() if one["barred_because"] is None}
    placed: list[Placed] = []
    seen: set[str] = set()
    for topic in topics:
        if topic["topic"] in seen:  # A topic with several weaknesses: one plan fixes the first.
            continue
        seen.add(topic["topic"])
        own = [row for row in partitions if row["topic"] == topic["topic"]]
        held = Counter(broker for row in own for broker in row["replica_ids"])
        of_topic = Placed(topic["topic"], topic["weakness"])
        for row in own:
            _place_one(of_topic, row, topic["wanted"], by_id, room, held)
        placed.append(of_topic)
    return placed


def _place_one(
    placed: Placed, row: Row, wanted: int | None, brokers: dict[int, Row], room: dict[int, float], held: Counter[int]
) -> None:
    """Adds the placement of a partition to `placed`, and updates `room` (bytes) and `held` (replicas) by broker."""
    holders = sorted(row["replica_ids"], key=lambda broker: (broker != row["leader"], broker))
    kept = _kept(placed.weakness, holders, brokers)
    count = len(holders)
    if placed.weakness not in ("on a parked broker", "one rack"):
        count = max(count, min(wanted or count, len(room.keys() | set(holders))))
    if len(kept) >= count:
        return
    if not row["may_move"]:
        placed.moving += 1
        return
    replicas, added = list(kept), []
    while len(replicas) < count:
        racks = {_rack(brokers, broker) for broker in replicas} - {None}
        able = [one for one in room if one not in holders and one not in added and room[one] >= row["size_bytes"]]
        if placed.weakness == "one rack":
            able = [one for one in able if _rack(brokers, one) not in racks | {None}]
        if not able:
            placed.unplaceable += 1
            return
        best = min(able, key=lambda one: (_rack(brokers, one) in racks, held[one], -room[one], one))
        replicas.append(best)
        added.append(best)
    for broker in added:
        room[broker] -= row["size_bytes"]
        held[broker] += 1
    copied = row["size_bytes"] * len(added)
    placed.placements.append(
        Placement(placed.topic, row["partition"], tuple(replicas), row["leader"], tuple(added), copied)
    )


def _kept(weakness: str, holders: list[int], brokers: dict[int, Row]) -> list[int]:
    """The replicas of a partition that stay, leader first."""
    if weakness == "on a parked broker":
        return [one for one in holders if brokers.get(one, {}).get("barred_because") != "parked"]
    racks = {_rack(brokers, one) for one in holders}
    is_in_one = weakness == "one rack" and len(holders) > 1 and len(racks) == 1 and None not in racks
    return holders[:-1] if is_in_one else holders


def _rack(brokers: dict[int, Row], broker: int) -> str | None:
    return brokers.get(broker, {}).get("rack")
