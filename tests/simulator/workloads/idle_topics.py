"""Causes of continuous rebalancing, poison-pill records or members, and decoys. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import HOURS, MINUTE, NOW, SECOND, Generation, Group, Life, Member

POISONOUS, RESTLESS = "consumer_poison_pill", "consumer_group_rebalancing"
BAD = ("events", 4)
"""The partition with the poison-pill record."""
MEMBERS = 3


def _billing(life: Life, **more: object) -> Group:
    """A group of some members, next to one that keeps up."""
    life.topic("events")
    life.group("search", "events")
    return life.group("billing", "events", members=MEMBERS, **more)


def _stands(group: Group, since: float) -> None:
    group.own_paths[BAD] = [(0.0, 0.0), (since, since), (NOW + 1.0, since)]


class _Lives:
    """Members by number; a member that rejoins has another id. The bad partition is assigned in rotation."""

    def __init__(self, life: Life, group: Group) -> None:
        self.life, self.group = life, group
        self.ids = list(range(MEMBERS))
        self.number = MEMBERS
        self.owner = 0

    def begins(self, t: float, present: list[int], owner: int | None) -> None:
        """Adds a generation of these members, one of which owns the bad partition."""
        topic = self.life.topics["events"]
        rest = [p for p in range(topic.partitions) if ("events", p) != BAD]
        assigned: dict[int, list[int]] = {n: rest[i :: len(present)] for i, n in enumerate(present)}
        if owner is not None:
            assigned[owner] = [*assigned[owner], BAD[1]]
        members = tuple(
            Member(f"billing-{n}-{self.ids[n]}", f"billing-{n}", f"/10.0.0.{n + 1}", {"events": sorted(assigned[n])})
            for n in present
        )
        self.group.generations.append(Generation(t, members))

    def renew(self, member: int) -> None:
        self.number += 1
        self.ids[member] = self.number


def _loop(life: Life, group: Group, since: float, takes: float) -> None:
    """From `since` on, the owner of the bad partition is busy for `takes` and leaves the group after the poll interval.

    A member that has finished rejoins with the next generation.
    """
    lives = _Lives(life, group)
    away: dict[int, float] = {}
    lives.begins(since - 5, list(range(MEMBERS)), 0)
    owner, t = 0, since
    while t < NOW:
        leaves = t + group.poll_interval + life.uniform(0, 4) * SECOND
        away[owner] = max(t + takes, leaves)
        t = leaves + life.uniform(0, 15) * SECOND
        lives.renew(owner)
        present = [n for n in range(MEMBERS) if away.get(n, 0.0) <= t]
        if not present:
            group.generations.append(Generation(t, ()))
            t = min(away.values()) + life.uniform(1, 4) * SECOND
            present = [n for n in range(MEMBERS) if away[n] <= t]
        owner = next(n for n in [*range(owner + 1, MEMBERS), *range(owner + 1)] if n in present)
        lives.begins(t, present, owner)


def _deploy(life: Life, group: Group, at: float, apart: float) -> None:
    """A rolling restart of the members."""
    lives = _Lives(life, group)
    lives.begins(at - 5, list(range(MEMBERS)), 0)
    for n in range(MEMBERS):
        others = [m for m in range(MEMBERS) if m != n]
        lives.begins(at, others, others[0])
        lives.renew(n)
        lives.begins(at + life.uniform(20, 40) * SECOND, list(range(MEMBERS)), n)
        at += apart


def _come_and_go(life: Life, group: Group, since: float, low: float, high: float, *, away: float = 10 * SECOND) -> None:
    """One member leaves periodically and rejoins."""
    lives = _Lives(life, group)
    everyone = list(range(MEMBERS))
    lives.begins(since - 5, everyone, 0)
    t = since
    while t < NOW - 2 * MINUTE:
        t += life.uniform(low, high)
        lives.begins(t, everyone[1:], 1)
        lives.renew(0)
        lives.begins(t + away, everyone, 0)


def _costs(life: Life, group: Group, since: float) -> None:
    """The group reads a share of a constant produce rate, so that no quiet hour makes up for its lag."""
    events = life.topics["events"]
    events.messages = events.messages.mean() * life.draws.lognormal(0, 0.05, HOURS)
    group.path = [(0, 0), (since, since), (since + HOURS, since + HOURS * life.uniform(0.2, 0.6))]
    life.may |= {"consumer_data_at_risk"}


# Records


def record_takes_too_long(life: Life) -> None:
    group = _billing(life, poll_interval=life.chance.choice([3, 5, 10]) * MINUTE)
    since = life.onset(4 * group.poll_interval + 6 * MINUTE, 5)
    _stands(group, since)
    if since < NOW:
        _loop(life, group, since, group.poll_interval * life.uniform(1.05, 4))
    life.fault(POISONOUS, "poll_timeout_loop", group_id="billing")
    life.may.add(RESTLESS)


def record_never_ends(life: Life) -> None:
    """One member after the other hangs until it is restarted."""
    group = _billing(life)
    since = life.onset(26 * MINUTE, 3)
    _stands(group, since)
    if since < NOW:
        _loop(life, group, since, life.uniform(12, 16) * MINUTE)
    life.fault(POISONOUS, "poll_timeout_loop", group_id="billing")
    life.may.add(RESTLESS)


def record_kills_its_readers(life: Life) -> None:
    """Each member ends, and is restarted a minute later."""
    group = _billing(life)
    since = life.onset(0.5, 5)
    _stands(group, since)
    lives, owner = _Lives(life, group), 0
    lives.begins(since - 5, list(range(MEMBERS)), 0)
    t = since
    while t < NOW:
        t += life.uniform(3, 50) * SECOND
        others = [n for n in range(MEMBERS) if n != owner]
        lives.renew(owner)
        owner = others[0]
        lives.begins(t, others, owner)
        t += life.uniform(40, 80) * SECOND
        lives.begins(t, list(range(MEMBERS)), owner)
    life.fault(POISONOUS, "member_exit_loop", group_id="billing")
    life.may.add(RESTLESS)


def hot_partition_moves_slowly(life: Life) -> None:
    group, since = _billing(life), NOW - life.uniform(0.5, 6)
    group.own_paths[BAD] = [(0.0, 0.0), (since, since), (NOW + 1.0, since + 0.3 * (NOW + 1 - since))]
    _deploy(life, group, NOW - 0.8, 5 * MINUTE)


def partition_is_paused(life: Life) -> None:
    group = _billing(life)
    _stands(group, NOW - life.uniform(0.4, 5))


def partition_is_paused_in_a_deploy(life: Life) -> None:
    group = _billing(life)
    since = NOW - life.uniform(0.6, 2)
    _stands(group, since)
    _deploy(life, group, NOW - life.uniform(0.2, 0.5), life.uniform(1, 3) * MINUTE)


def partition_without_traffic(life: Life) -> None:
    group = _billing(life)
    life.topic("rare").messages[NOW - 3 :] = 0
    group.topics.append("rare")
    _come_and_go(life, group, NOW - 3, 4.9 * MINUTE, 5.1 * MINUTE)
    life.may.add("topic_overpartitioned")


def store_is_restored(life: Life) -> None:
    """Partitions wait for their stores, and probing rebalances check for finished warm-up tasks."""
    life.topic("events")
    life.application("billing", "events")
    group = life.groups["billing"]
    for process in life.processes:
        process.to_restore = 1e6
    _stands(group, NOW - life.uniform(0.5, 1))
    _come_and_go(life, group, NOW - 3, 9.9 * MINUTE, 10.1 * MINUTE)


def transaction_is_open(life: Life) -> None:
    """read_committed consumers wait for the transaction, and a deploy is in progress."""
    group, since = _billing(life, stops_at_open=True), NOW - life.uniform(0.5, 3)
    life.topics["events"].stable = lambda partition, t: min(t, since) if partition == BAD[1] else t
    _stands(group, since)
    _deploy(life, group, NOW - 0.8, 5 * MINUTE)
    life.may.add("transaction_hanging")


def partition_without_a_leader(life: Life) -> None:
    group, since = _billing(life), NOW - life.uniform(0.5, 3)
    life.topics["events"].leaderless = BAD[1]
    _stands(group, since)
    _deploy(life, group, NOW - 0.8, 5 * MINUTE)


def commits_seldom_in_a_deploy(life: Life) -> None:
    group = _billing(life, commit_every=life.uniform(0.6, 1))
    _deploy(life, group, NOW - 0.9, 5 * MINUTE)


# Members


def poll_takes_too_long(life: Life) -> None:
    group = _billing(life)
    since = life.onset(2.5, 10)
    _come_and_go(life, group, since, 5 * MINUTE, 5.2 * MINUTE)
    _costs(life, group, since)
    life.fault(RESTLESS, "poll_interval_exceeded", group_id="billing")


def heartbeats_are_lost(life: Life) -> None:
    group = _billing(life, session_timeout=2 * MINUTE)
    since = life.onset(2.5, 10)
    _come_and_go(life, group, since, 1.9 * MINUTE, 2.1 * MINUTE)
    _costs(life, group, since)
    life.fault(RESTLESS, "session_expired", group_id="billing")


def member_is_started_again_and_again(life: Life) -> None:
    group = _billing(life)
    since = life.onset(2.5, 10)
    _come_and_go(life, group, since, 7 * MINUTE, 9 * MINUTE)
    _costs(life, group, since)
    life.fault(RESTLESS, "member_leaves", group_id="billing")


def storm(life: Life) -> None:
    """A member has not rejoined yet when the next one leaves."""
    group = _billing(life, session_timeout=10 * SECOND)
    since = life.onset(2.5, 10)
    _come_and_go(life, group, since, 20 * SECOND, 45 * SECOND, away=8 * SECOND)
    _costs(life, group, since)
    life.fault(RESTLESS, "member_leaves", "session_expired", group_id="billing")


def members_disagree(life: Life) -> None:
    """The members rejoin without a restart."""
    group = _billing(life)
    since = life.onset(2.5, 10)
    lives, t = _Lives(life, group), since
    while t < NOW:
        lives.begins(t, list(range(MEMBERS)), 0)
        t += life.uniform(3, 8) * MINUTE
    _costs(life, group, since)
    life.fault(RESTLESS, "members_unchanged", group_id="billing")


def rebalances_that_cost_nothing(life: Life) -> None:
    _come_and_go(life, _billing(life), NOW - 10, 5 * MINUTE, 5.2 * MINUTE)


def rolling_deploy(life: Life) -> None:
    group = _billing(life)
    at = NOW - life.uniform(0.4, 0.9)
    _deploy(life, group, at, life.uniform(1, 4) * MINUTE)
    group.path = [(0, 0), (at, at), (NOW, at + 0.5 * (NOW - at)), (NOW + 1, NOW + 1)]


def scales_at_its_usual_hours(life: Life) -> None:
    group = _billing(life)
    lives = _Lives(life, group)
    for t in np.sort(life.draws.uniform(NOW - 0.9, NOW, 3)):
        lives.begins(float(t), [0, 1], 0)


def probes_for_warm_ups(life: Life) -> None:
    life.topic("events")
    life.application("billing", "events")
    for process in life.processes:
        process.to_restore = 1e6
    group = life.groups["billing"]
    _come_and_go(life, group, NOW - 6, 9 * MINUTE, 9.5 * MINUTE)
    _costs(life, group, NOW - 3)


def epochs_of_the_new_protocol(life: Life) -> None:
    group = _billing(life)
    group.generations = [Generation(float(t), None) for t in np.arange(NOW - 5, NOW, 4 * MINUTE)]


def workers_of_connect(life: Life) -> None:
    group = _billing(life)
    workers = life.group("connect-cluster", commit_every=0)
    _come_and_go(life, group, NOW - 5, 5 * MINUTE, 6 * MINUTE)
    workers.generations, group.generations = group.generations, []


def first_hour(life: Life) -> None:
    group = _billing(life)
    group.born = NOW - life.uniform(0.8, 0.95)
    _come_and_go(life, group, group.born, 5 * MINUTE, 6 * MINUTE)
    behind = 0.5
    group.path = [(0, -behind), (NOW + 1, NOW + 1 - behind)]


FAULTS = (
    record_takes_too_long,
    record_never_ends,
    record_kills_its_readers,
    poll_takes_too_long,
    heartbeats_are_lost,
    member_is_started_again_and_again,
    storm,
    members_disagree,
)
DECOYS = (
    hot_partition_moves_slowly,
    partition_is_paused,
    partition_is_paused_in_a_deploy,
    partition_without_traffic,
    store_is_restored,
    transaction_is_open,
    partition_without_a_leader,
    commits_seldom_in_a_deploy,
    rebalances_that_cost_nothing,
    rolling_deploy,
    scales_at_its_usual_hours,
    probes_for_warm_ups,
    epochs_of_the_new_protocol,
    workers_of_connect,
    first_hour,
)
