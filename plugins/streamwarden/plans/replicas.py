"""`streamwarden plan replicas`: where the replicas go that topics lack, or that lie on parked brokers or in one rack.

Each partition keeps what it has that isn't wrong. What it gets goes into a rack that has none of it yet, if there is
one, to the broker that has least of the topic's partitions and, of these, most room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from streamwarden.plans.rebalance import room_bytes
from streamwarden.store.queries import Row


@dataclass(frozen=True)
class Placement:
    """A partition's replicas as they are to be, leader first; and who of them gets one."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    added: tuple[int, ...]
    copied_bytes: float


@dataclass
class Placed:
    """What becomes of a topic."""

    topic: str
    weakness: str
    placements: list[Placement] = field(default_factory=list)
    moving: int = 0
    """Partitions that aren't whole, or are being moved: not now."""
    homeless: int = 0
    """Partitions that no broker can take a replica of."""


def place(brokers: Sequence[Row], topics: Sequence[Row], partitions: Sequence[Row]) -> list[Placed]:
    """From the rows of `plans/rebalance_brokers`, `plans/replicas` and `plans/rebalance_partitions`."""
    by_id = {one["broker_id"]: one for one in brokers}
    room = {number: room_bytes(one) for number, one in by_id.items() if one["barred_because"] is None}
    placed: list[Placed] = []
    seen: set[str] = set()
    for topic in topics:
        if topic["topic"] in seen:  # astray and weak: its first need is enough for one plan
            continue
        seen.add(topic["topic"])
        own = [row for row in partitions if row["topic"] == topic["topic"]]
        held = Counter(broker for row in own for broker in row["replica_ids"])
        told = Placed(topic["topic"], topic["weakness"])
        for row in own:
            _place_one(told, row, topic["wanted"], by_id, room, held)
        placed.append(told)
    return placed


def _place_one(
    told: Placed, row: Row, wanted: int | None, brokers: dict[int, Row], room: dict[int, float], held: Counter[int]
) -> None:
    holders = sorted(row["replica_ids"], key=lambda broker: (broker != row["leader"], broker))
    kept = _kept(told.weakness, holders, brokers)
    count = len(holders)
    if told.weakness not in ("astray", "one rack"):
        count = max(count, min(wanted or count, len(room.keys() | set(holders))))
    if len(kept) >= count:
        return
    if not row["may_move"]:
        told.moving += 1
        return
    replicas, added = list(kept), []
    while len(replicas) < count:
        racks = {_rack(brokers, broker) for broker in replicas} - {None}
        able = [one for one in room if one not in holders and one not in added and room[one] >= row["size_bytes"]]
        if told.weakness == "one rack":
            able = [one for one in able if _rack(brokers, one) not in racks | {None}]
        if not able:
            told.homeless += 1
            return
        best = min(able, key=lambda one: (_rack(brokers, one) in racks, held[one], -room[one], one))
        replicas.append(best)
        added.append(best)
    for broker in added:
        room[broker] -= row["size_bytes"]
        held[broker] += 1
    copied = row["size_bytes"] * len(added)
    told.placements.append(
        Placement(told.topic, row["partition"], tuple(replicas), row["leader"], tuple(added), copied)
    )


def _kept(weakness: str, holders: list[int], brokers: dict[int, Row]) -> list[int]:
    """Of a partition's holders, leader first, those that stay."""
    if weakness == "astray":
        return [one for one in holders if brokers.get(one, {}).get("barred_because") != "parked"]
    racks = {_rack(brokers, one) for one in holders}
    is_in_one = weakness == "one rack" and len(holders) > 1 and len(racks) == 1 and None not in racks
    return holders[:-1] if is_in_one else holders


def _rack(brokers: dict[int, Row], broker: int) -> str | None:
    return brokers.get(broker, {}).get("rack")
