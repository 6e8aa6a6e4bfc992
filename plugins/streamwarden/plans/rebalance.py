"""`streamwarden plan rebalance`: which partitions to move, one at a time, to balance the load of brokers.

Four loads are balanced in proportion to the brokers' weights: bytes in, bytes out, leaders, and bytes of logs. The
imbalance is the sum, over brokers and loads, of (load / fair share - 1)². Each step moves a partition away from the
most overloaded broker: the one that reduces the imbalance most per copied byte. Leadership changes copy nothing and
come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwarden.store.queries import Row

LOADS = ("bytes in", "bytes out", "leaders", "bytes of logs")
EVEN = 0.1
"""Standard deviation / mean up to which a load counts as balanced. Cruise Control's default is 9 %."""
LEAST_GAIN = 0.1
"""Minimum gain of a move, as a share of the imbalance divided by the number of movable partitions."""
WATCHING_BYTES = 8 * 2.0**30
"""Fixed cost of each move in bytes: an operator watches it, about as long as copying takes 3 minutes at 50 MiB/s."""
DISK_KEPT_FREE = 0.2
"""Share of a broker's disks that stays free after the moves, for the replicas of a failed broker."""
MOST_LEADERS = 100
"""Maximum number of leadership changes before the first copy."""

Floats = NDArray[np.float64]


@dataclass(eq=False)
class Partition:
    """A partition, its replicas (`holders`: broker ids, leader first), and the load that they put on brokers."""

    topic: str
    number: int
    holders: list[int]
    size_bytes: float
    follows: Floats
    """Load of a follower on its broker, by LOADS."""
    leads: Floats
    """Additional load of the leader on its broker, by LOADS."""


@dataclass(frozen=True)
class Move:
    """One step: the new replicas of a partition, leader first. `copied_bytes` is 0 if only the leader changes."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    source: int
    target: int
    copied_bytes: float
    spreads: dict[str, float]
    """Standard deviation / mean after the move, by load."""


@dataclass
class Balance:
    """Current load, fair share, and free capacity of each broker."""

    ids: list[int]
    loads: Floats
    even: Floats
    may_get: NDArray[np.bool_]
    room_bytes: Floats
    """Free disk space, without the share that stays free; infinite if unknown."""
    racks: dict[int, str | None]
    """By broker, including those that take no part, because they hold replicas too. None: unknown or not set."""
    held: dict[int, list[Partition]]
    """Movable partitions by broker."""
    movable: int

    @classmethod
    def of(cls, brokers: Sequence[Row], rows: Sequence[Row]) -> Balance:
        """From the rows of `plans/rebalance_brokers` and `plans/rebalance_partitions`.

        Brokers that are parked or did not respond take no part. A broker with a disk that is filling up only gives.
        """
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
        """Standard deviation / mean of (load / fair share), by load."""
        return dict(zip(LOADS, map(float, self.excess().std(axis=0)), strict=True))

    def excess(self) -> Floats:
        """(load / fair share - 1) by broker (rows) and load (columns); 0 for a load that no broker has."""
        return np.divide(self.loads, self.even, out=np.ones_like(self.loads), where=self.even > 0) - 1

    def uneven(self) -> float:
        """The imbalance: the sum of squared excesses, which the plan minimizes."""
        return float((self.excess() ** 2).sum())

    def gains(self, source: int, amounts: Floats) -> Floats:
        """Reduction of the imbalance if the source gives an amount (rows, by LOADS) to a broker (columns)."""
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
    """The moves in order, at most `most` of them with bytes to copy; none if the loads are balanced or no move helps.

    Updates the balance to the state after the moves.
    """
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
    """The replica, or the leadership, that this broker can give with the largest gain per byte; None: there is none."""
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
    """By partition and broker: whether the broker holds a follower and may become the leader."""
    place = {broker: i for i, broker in enumerate(balance.ids)}
    allowed = np.zeros((len(of), len(place)), dtype=bool)
    for row, one in zip(allowed, of, strict=True):
        row[[place[holder] for holder in one.holders[1:] if holder in place]] = True
    return allowed & balance.may_get


def _may_get(balance: Balance, of: list[Partition], source: int) -> NDArray[np.bool_]:
    """By partition and broker: whether the broker may get a replica.

    A broker that has one may not, and no move brings two replicas of a partition into one rack that are in two now.
    """
    place, giver = {broker: i for i, broker in enumerate(balance.ids)}, balance.ids[source]
    allowed = np.tile(balance.may_get, (len(of), 1))
    for row, one in zip(allowed, of, strict=True):
        row[[place[holder] for holder in one.holders if holder in place]] = False
        racks = {balance.racks.get(holder) for holder in one.holders if holder != giver} - {None}
        if balance.racks[giver] not in racks:
            row &= [balance.racks[broker] not in racks for broker in balance.ids]
    return allowed


def _partition(row: Row) -> Partition:
    """Followers write what is produced. The leader also sends it to each follower and to consumers."""
    holders = sorted(row["replica_ids"], key=lambda broker: (broker != row["leader"], broker))
    came, sent, size = row["bytes_in_per_second"], row["bytes_out_per_second"], row["size_bytes"]
    return Partition(
        row["topic"], row["partition"], holders, size,
        follows=np.array([came, 0.0, 0.0, size]), leads=np.array([0.0, sent + came * (len(holders) - 1), 1.0, 0.0]),
    )  # fmt: skip


def room_bytes(broker: Row) -> float:
    """Free disk space of a broker, without the share that stays free; infinite if unknown."""
    if broker["usable_bytes"] is None:
        return float("inf")
    return float(broker["usable_bytes"] - DISK_KEPT_FREE * broker["total_bytes"])
