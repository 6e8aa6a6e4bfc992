"""`streamwarden plan rebalance`: which partitions to move, one at a time, so that brokers do equal work.

Four loads are to be even, each by the broker's weight: bytes in, bytes out, leaders and bytes of logs. How uneven they
are is the sum, over brokers and loads, of (load / even load - 1)². Each step takes from the broker that has most too
much, and takes what lessens that sum most per byte that has to be copied. Another leader costs nothing and comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwarden.store.queries import Row

LOADS = ("bytes in", "bytes out", "leaders", "bytes of logs")
EVEN = 0.1
"""Standard deviation / mean at which a load is even enough; Cruise Control goes on at 9 %."""
LEAST_GAIN = 0.1
"""Of what a move would gain if all partitions had to be moved: smaller steps aren't worth watching."""
WATCHING_BYTES = 8 * 2.0**30
"""What each move costs beside its own bytes: somebody watches it, about as long as 3 minutes at 50 MiB/s take."""
DISK_KEPT_FREE = 0.2
"""Of a broker's disks, after what it gets: what a dead peer's replicas need."""
MOST_LEADERS = 100
"""Changes of leaders before the first copy: they need no watching, but a plan has an end."""

Floats = NDArray[np.float64]


@dataclass(eq=False)
class Partition:
    """One that may be moved. `holders`: its leader first."""

    topic: str
    number: int
    holders: list[int]
    size_bytes: float
    follows: Floats
    """What a follower of it costs its broker, by LOADS."""
    leads: Floats
    """What its leader costs more than a follower."""


@dataclass(frozen=True)
class Move:
    """One step: the partition's replicas as they are to be, leader first; 0 bytes where only the leader changes."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    source: int
    target: int
    copied_bytes: float
    spreads: dict[str, float]
    """By load: standard deviation / mean after it."""


@dataclass
class Balance:
    """What brokers carry now, and what each could take."""

    ids: list[int]
    loads: Floats
    even: Floats
    may_get: NDArray[np.bool_]
    room_bytes: Floats
    """On their disks, beyond what is to stay free; infinite where it isn't known."""
    racks: dict[int, str | None]
    """By broker, also of those that take no part: what they hold lies there. None: it isn't known, or it has none."""
    held: dict[int, list[Partition]]
    """By broker: what may be moved of what it holds."""
    movable: int

    @classmethod
    def of(cls, brokers: Sequence[Row], rows: Sequence[Row]) -> Balance:
        """From the rows of `plans/rebalance_brokers` and `plans/rebalance_partitions`. Parked and silent brokers take
        no part; one whose disk fills up gives only."""
        taking = [one for one in brokers if one["barred_because"] in (None, "filling")]
        place = {one["broker_id"]: i for i, one in enumerate(taking)}
        loads, movable = np.zeros((len(taking), len(LOADS))), 0
        held: dict[int, list[Partition]] = {one["broker_id"]: [] for one in taking}
        for row in rows:
            one = _partition(row)
            movable += row["may_move"]
            for holder in place.keys() & one.holders:
                loads[place[holder]] += one.follows + (one.leads if holder == row["leader"] else 0)
                if row["may_move"]:
                    held[holder].append(one)
        weight = np.array([float(one["weight"]) for one in taking])
        return cls(
            ids=[one["broker_id"] for one in taking],
            loads=loads,
            even=np.outer(weight / weight.sum(), loads.sum(axis=0)) if taking else loads,
            may_get=np.array([one["barred_because"] is None for one in taking]),
            room_bytes=np.array([room_bytes(one) for one in taking]),
            racks={one["broker_id"]: one["rack"] for one in brokers},
            held=held,
            movable=movable,
        )

    def spreads(self) -> dict[str, float]:
        """By load: standard deviation / mean of what brokers have, each against its even share."""
        return dict(zip(LOADS, map(float, self.excess().std(axis=0)), strict=True))

    def excess(self) -> Floats:
        """By broker and load: how much more than its even share, as a part of that; 0 where nobody has any."""
        return np.divide(self.loads, self.even, out=np.ones_like(self.loads), where=self.even > 0) - 1

    def uneven(self) -> float:
        """What the plan lessens."""
        return float((self.excess() ** 2).sum())

    def gains(self, source: int, amounts: Floats) -> Floats:
        """How much less uneven it is when the source gives an amount (rows, by LOADS) to a broker (columns)."""
        excess = self.excess()
        share = np.divide(1.0, self.even, out=np.zeros_like(self.even), where=self.even > 0)
        given = excess[source] ** 2 - (excess[source] - amounts * share[source]) ** 2
        got = excess**2 - (excess + amounts[:, None, :] * share) ** 2
        return np.asarray(given.sum(axis=1)[:, None] + got.sum(axis=2))


@dataclass(frozen=True)
class _Choice:
    partition: Partition
    source: int
    target: int
    amount: Floats
    gives_replica: bool


def plan(balance: Balance, *, most: int) -> list[Move]:
    """The moves in their order, at most `most` of them with bytes to copy; none where all is even or nothing helps. The
    balance is what it is after them."""
    return list(_moves(balance, most)) if len(balance.ids) > 1 else []


def _moves(balance: Balance, most: int) -> Iterator[Move]:
    least = LEAST_GAIN * balance.uneven() / max(balance.movable, 1)
    for gives_replica, steps in ((False, MOST_LEADERS), (True, most)):
        for _ in range(steps):
            if max(balance.spreads().values()) <= EVEN:
                return
            fullest = np.argsort(-(np.maximum(balance.excess(), 0) ** 2).sum(axis=1))
            choices = (_best(balance, int(source), least, gives_replica) for source in fullest)
            best = next(filter(None, choices), None)
            if best is None:
                break
            yield _make(balance, best)


def _best(balance: Balance, source: int, least: float, gives_replica: bool) -> _Choice | None:
    """Of all that this broker could give, what gains most per byte: a replica, or only the lead of one."""
    here = [one for one in balance.held[balance.ids[source]] if gives_replica or one.holders[0] == balance.ids[source]]
    if not here:
        return None
    leads = np.array([one.holders[0] == balance.ids[source] for one in here])
    amounts = leads[:, None] * np.array([one.leads for one in here])
    copied = np.zeros(len(here))
    if gives_replica:
        amounts += np.array([one.follows for one in here])
        copied += [one.size_bytes for one in here]
    gains = balance.gains(source, amounts)
    allowed = _may_get(balance, here, source) if gives_replica else _may_lead(balance, here)
    gains[~allowed | (copied[:, None] > balance.room_bytes) | (gains < least)] = -np.inf
    worth = gains / (copied[:, None] + WATCHING_BYTES)
    row, target = np.unravel_index(worth.argmax(), worth.shape)
    if worth[row, target] <= 0:
        return None
    return _Choice(here[row], source, int(target), amounts[row], gives_replica)


def _make(balance: Balance, choice: _Choice) -> Move:
    one, source, target = choice.partition, balance.ids[choice.source], balance.ids[choice.target]
    balance.loads[choice.source] -= choice.amount
    balance.loads[choice.target] += choice.amount
    if choice.gives_replica:
        balance.room_bytes[choice.target] -= one.size_bytes
        one.holders[one.holders.index(source)] = target
        balance.held[source].remove(one)
        balance.held[target].append(one)
    else:
        one.holders.remove(target)
        one.holders.insert(0, target)
    copied = one.size_bytes if choice.gives_replica else 0.0
    return Move(one.topic, one.number, tuple(one.holders), source, target, copied, balance.spreads())


def _may_lead(balance: Balance, of: list[Partition]) -> NDArray[np.bool_]:
    """By partition and broker: it is a follower."""
    place = {broker: i for i, broker in enumerate(balance.ids)}
    allowed = np.zeros((len(of), len(place)), dtype=bool)
    for row, one in zip(allowed, of, strict=True):
        row[[place[holder] for holder in one.holders[1:] if holder in place]] = True
    return allowed & balance.may_get


def _may_get(balance: Balance, of: list[Partition], source: int) -> NDArray[np.bool_]:
    """By partition and broker: it has no replica yet, and brings no two into a rack that aren't now."""
    place, giver = {broker: i for i, broker in enumerate(balance.ids)}, balance.ids[source]
    allowed = np.tile(balance.may_get, (len(of), 1))
    for row, one in zip(allowed, of, strict=True):
        row[[place[holder] for holder in one.holders if holder in place]] = False
        racks = {balance.racks.get(holder) for holder in one.holders if holder != giver} - {None}
        if balance.racks[giver] not in racks:
            row &= [balance.racks[broker] not in racks for broker in balance.ids]
    return allowed


def _partition(row: Row) -> Partition:
    """Followers write what comes in; the leader sends it to each of them as well, and to its readers."""
    holders = sorted(row["replica_ids"], key=lambda broker: (broker != row["leader"], broker))
    came, sent, size = row["bytes_in_per_second"], row["bytes_out_per_second"], row["size_bytes"]
    return Partition(
        row["topic"], row["partition"], holders, size,
        follows=np.array([came, 0.0, 0.0, size]), leads=np.array([0.0, sent + came * (len(holders) - 1), 1.0, 0.0]),
    )  # fmt: skip


def room_bytes(broker: Row) -> float:
    """What its disks can take beyond what is to stay free; infinite where it isn't known."""
    if broker["usable_bytes"] is None:
        return float("inf")
    return float(broker["usable_bytes"] - DISK_KEPT_FREE * broker["total_bytes"])
