"""Faults of consumer groups, and decoys. See `topics`."""

from __future__ import annotations

import numpy as np

from tests.simulator.workloads.process_lifetimes import (
    COMMIT_EVERY,
    COMPACTED,
    DAY,
    HOURS,
    MIB,
    MINUTE,
    NOW,
    PLAIN,
    SECOND,
    Group,
    Life,
)

AT_RISK, TRIAL, UNTRACKED = "consumer_data_at_risk", "consumer_trial_failed", "consumer_untracked"
REPLAYS, STRANGER = "consumer_replaying", "internal_topic_foreign_consumer"
KEPT = DAY
A_DAY = PLAIN | {"retention.ms": str(KEPT * 3_600_000)}


def _billing(life: Life, **more: object) -> Group:
    """A group on a topic with one day of retention, next to a group that keeps up."""
    life.topic("events", configs=dict(A_DAY))
    life.group("search", "events")
    return life.group("billing", "events", **more)


def _behind(group: Group, hours: float) -> None:
    """A constant lag of so many hours."""
    group.path = [(0, -hours), (HOURS + 1, HOURS + 1 - hours)]


# Retention deletes unread records


def falls_behind_until_retention_takes_it(life: Life) -> None:
    group, slope, left = _billing(life), life.uniform(0.3, 0.8), life.uniform(1, 10)
    behind = KEPT - left * slope
    since = life.since(NOW - behind / slope)
    group.path = [(0, 0), (since, since), (since + HOURS, since + HOURS * (1 - slope))]
    life.fault(AT_RISK, "at_risk", group_id="billing")


def stopped_and_retention_comes_near(life: Life) -> None:
    group = _billing(life)
    group.died = life.since(NOW - KEPT + life.uniform(1.5, 10))
    life.fault(AT_RISK, "at_risk", group_id="billing")


def records_are_lost(life: Life) -> None:
    group = _billing(life)
    group.died = life.onset(KEPT + 2, 6 * DAY)
    life.fault(AT_RISK, "lost", group_id="billing")


def stays_on_the_brink(life: Life) -> None:
    group = _billing(life)
    behind = life.uniform(0.83, 0.95) * KEPT
    wobbles = life.draws.normal(0, 3 * MINUTE, HOURS)
    group.path = [(float(t), float(t - behind + wobbles[t])) for t in range(HOURS)]
    life.fault(AT_RISK, "near_retention", "at_risk", group_id="billing")


def falls_out_of_what_size_keeps(life: Life) -> None:
    group, slope, left = _billing(life), life.uniform(0.3, 0.7), life.uniform(1, 5)
    topic = life.topics["events"]
    a_day = float(topic.bytes(NOW) - topic.bytes(NOW - DAY))
    topic.configs = topic.configs | {"retention.ms": "-1", "retention.bytes": str(int(a_day / topic.partitions))}
    since = life.since(NOW - (KEPT - left * slope) / slope)
    group.path = [(0, 0), (since, since), (since + HOURS, since + HOURS * (1 - slope))]
    life.fault(AT_RISK, "at_risk", group_id="billing")


def topic_recreated(life: Life) -> None:
    group = _billing(life)
    topic = life.topics["events"]
    since = int(life.onset(4, 20)) if not life.before else 0
    topic.messages[:since] = 0
    topic.made = since
    if since:
        group.offsets["events"] = 10**9
        del life.groups["search"]
    life.fault(AT_RISK, "topic_recreated", group_id="billing")


def repartition_topic_is_purged(life: Life) -> None:
    life.topic("orders")
    life.application("joiner", "orders")
    group = life.groups["joiner"]
    life.topic("joiner-by-customer-repartition", configs=PLAIN | {"retention.ms": "-1"}, purged_by=group)
    group.topics.append("joiner-by-customer-repartition")
    _behind(group, life.uniform(1, 5))


def late_on_a_compacted_topic(life: Life) -> None:
    group = _billing(life)
    life.topics["events"].configs = dict(COMPACTED)
    _behind(group, life.uniform(10, 60))


def retired_group(life: Life) -> None:
    group = _billing(life)
    group.died, group.kept_for = NOW - life.uniform(8, 20) * DAY, 30 * DAY


def stopped_and_the_topic_ran_empty(life: Life) -> None:
    group = _billing(life)
    group.died = NOW - life.uniform(4, 6) * DAY
    life.topics["events"].messages[int(group.died) + 5 :] = 0


def late_and_safe(life: Life) -> None:
    _behind(_billing(life), life.uniform(1, 8))


def catches_up_from_far_behind(life: Life) -> None:
    """At full speed: a constant number of records per hour, above every hour's produce rate."""
    group, topic = _billing(life), life.topics["events"]
    topic.configs = dict(PLAIN)
    now, an_hour = life.uniform(40, 50), life.uniform(1.4, 2) * float(topic.messages[NOW - 14 * DAY :].max())
    moments = np.arange(NOW - 68, NOW + 1.1, 0.25)
    places = topic.after(NOW - now, (moments - NOW) * an_hour)
    behind = moments - places <= 68
    since = float(moments[behind][0])
    group.path = [(0, 0), (since - 68, since - 68), (since, since - 68)]
    group.path += list(zip(moments[behind][1:].tolist(), places[behind][1:].tolist(), strict=True))


def left_the_topic(life: Life) -> None:
    group = _billing(life)
    life.topic("orders")
    group.topics, group.left = ["orders"], {"events": NOW - life.uniform(0.5, 5) * DAY}


# Trial


def _newcomer(life: Life, name: str, least: float, most: float) -> Group:
    """A new group, so many hours old, next to an old group."""
    life.topic("events")
    life.group("search", "events")
    group = life.group(name, "events")
    group.born = NOW - life.uniform(least, most)
    return group


def newcomer_is_always_late(life: Life) -> None:
    """Lag beyond the records between two commits, which are indistinguishable from lag, and beyond five minutes."""
    _behind(_newcomer(life, "billing", 5 * DAY, 12 * DAY), life.uniform(COMMIT_EVERY + 6 * MINUTE, 3))
    life.fault(TRIAL, "failed", group_id="billing")


def newcomer_is_late_at_the_peak(life: Life) -> None:
    group, most = _newcomer(life, "billing", 5 * DAY, 12 * DAY), life.uniform(0.3, 2)
    behind = np.where((life.hour_of_day() >= 10) & (life.hour_of_day() < 16), most, BEHIND_A_LITTLE)
    group.path = [(float(t), float(t - behind[t])) for t in range(HOURS)]
    life.fault(TRIAL, "failed", group_id="billing")


def newcomer_never_commits(life: Life) -> None:
    group = _newcomer(life, "billing", 2 * DAY, 10 * DAY)
    group.commit_every = 0
    life.fault(TRIAL, "never_commits", group_id="billing")
    life.fault(UNTRACKED, "high_share", "untracked", group_id="billing")


def newcomer_that_leaves_a_topic_out(life: Life) -> None:
    """The group keeps up, and never commits on its second topic."""
    group = _newcomer(life, "billing", 6 * DAY, 13 * DAY)
    life.topic("orders")
    group.topics.append("orders")
    group.silent_on.append("orders")
    life.fault(TRIAL, "untracked", group_id="billing")
    life.fault(UNTRACKED, "high_share", "untracked", group_id="billing")


def newcomer_on_trial(life: Life) -> None:
    _newcomer(life, "billing", 4, 20)
    life.fault(TRIAL, "on_trial", group_id="billing")


def newcomer_that_passed(life: Life) -> None:
    _newcomer(life, "billing", 6 * DAY, 13 * DAY)


def newcomer_that_commits_seldom(life: Life) -> None:
    """The group keeps up; its lag is the records since its last commit."""
    _newcomer(life, "billing", 6 * DAY, 13 * DAY).commit_every = life.uniform(6 * MINUTE, 20 * MINUTE)


def newcomer_on_a_topic_to_which_nothing_comes(life: Life) -> None:
    """The second topic has nothing to commit; another group committed on it before."""
    newcomer_that_passed(life)
    life.topic("orders").messages[NOW - 4 * DAY :] = 0
    life.group("audit", "orders")
    life.groups["billing"].topics.append("orders")
    life.groups["billing"].silent_on.append("orders")


def newcomer_with_one_bad_hour(life: Life) -> None:
    group, bad = _newcomer(life, "billing", 6 * DAY, 13 * DAY), NOW - life.chance.randrange(2, 20)
    group.path = [(0, 0), (bad - 0.7, bad - 0.7), (bad, bad - 0.7), (bad + 0.5, bad + 0.5), (HOURS + 1, HOURS + 1)]


def looks_for_an_hour(life: Life) -> None:
    _behind(_newcomer(life, "try-out", 0.5, 1.6), 1)


def console_consumer(life: Life) -> None:
    _behind(_newcomer(life, f"console-consumer-{life.chance.randrange(10**5)}", 10, 60), 1)


def generated_name(life: Life) -> None:
    _behind(_newcomer(life, f"viewer-{life.chance.getrandbits(32):08x}-9d1c-4b6e-8c1a-5f0e2d3c4b5a", 10, 60), 1)


def renamed(life: Life) -> None:
    group = _newcomer(life, "billing-v2", 10, 120)
    life.group("billing", "events", died=group.born - life.uniform(0.1, 2))
    _behind(group, life.uniform(0.5, 2))


def new_cluster(life: Life) -> None:
    life.known = int(life.uniform(30, 200))
    _behind(_newcomer(life, "billing", life.known - 12, life.known - 1), 1)


# Commits


def never_commits(life: Life) -> None:
    _billing(life, commit_every=0)
    life.fault(UNTRACKED, "high_share", "untracked", group_id="billing")


def commits_on_one_topic_of_two(life: Life) -> None:
    group = _billing(life)
    life.topic("orders")
    group.topics.append("orders")
    group.silent_on.append("orders")
    life.fault(UNTRACKED, "high_share", "untracked", group_id="billing")


def before_its_first_commit(life: Life) -> None:
    _billing(life, commit_every=1.5, born=NOW - life.uniform(0.2, 1.2))


def keeps_its_offsets_elsewhere(life: Life) -> None:
    life.topic("events")
    life.group("search", "events")
    life.group("spark-kafka-source-0b5d0a4e-7d1f-4f63-driver-0", "events", commit_every=0)


def readers_without_groups(life: Life) -> None:
    """Store restores and global tables read without a group."""
    life.topic("orders")
    life.application("joiner", "orders")
    life.topics["joiner-totals-changelog"].others_read = 50.0 * MIB


def nothing_comes_to_commit(life: Life) -> None:
    _billing(life, commit_every=0)
    life.topics["events"].messages[NOW - 4 * DAY :] = 0
    life.topic("orders")
    life.group("audit", "orders")


def commits_by_the_hour(life: Life) -> None:
    _billing(life, commit_every=life.uniform(0.5, 1))


# Replays


def _busy(life: Life, held: float) -> Group:
    """A topic whose traffic fills the brokers' page cache within so many hours."""
    life.other_reads = 0.1 * MIB
    life.topic("events").messages *= life.cached_hours() / held
    life.group("search", "events")
    return life.group("batch", "events")


def _replay(group: Group, days: range, back: float, lasts: float, hour: float) -> None:
    """On these days the group resets its offsets so far back, and has caught up after so long."""
    group.path = [(0, 0)]
    for ago in reversed(days):
        t = NOW - ago * DAY - hour
        group.path += [(t, t), (t + SECOND, t - back), (t + lasts, t + lasts)]
    group.path.append((HOURS + 1, HOURS + 1))


def replays_on_many_days(life: Life) -> None:
    held = life.uniform(2, 5)
    days = life.chance.randint(4, 6)
    _replay(_busy(life, held), range(days), held + life.uniform(8, 24), life.uniform(1.5, 4), life.uniform(5, 18))
    life.fault(REPLAYS, "replays", group_id="batch")


def always_reads_what_memory_lost(life: Life) -> None:
    held = life.uniform(2, 5)
    _behind(_busy(life, held), held + life.uniform(4, 20))
    life.fault(REPLAYS, "replays", group_id="batch")


def replays_for_a_repair(life: Life) -> None:
    held = life.uniform(2, 5)
    _replay(_busy(life, held), range(life.chance.choice([1, 2])), held + life.uniform(8, 24), 3, life.uniform(5, 18))


def replays_out_of_memory(life: Life) -> None:
    held = life.uniform(8, 20)
    _replay(_busy(life, held), range(7), held / life.uniform(2, 4), 1.7, life.uniform(5, 18))


def replays_little_of_what_disks_read(life: Life) -> None:
    held = life.uniform(2, 5)
    _replay(_busy(life, held), range(5), held + 3, 2, life.uniform(5, 18))
    life.other_reads = 60.0 * MIB


# Foreign consumers


def _joiner(life: Life) -> str:
    life.topic("orders")
    life.application("joiner", "orders")
    return "joiner-totals-changelog"


def reads_another_ones_changelog(life: Life) -> None:
    life.group("analytics", _joiner(life))
    life.fault(STRANGER, "foreign_read", group_id="analytics")


def read_another_ones_changelog_today(life: Life) -> None:
    life.group("analytics", _joiner(life), died=NOW - life.uniform(1, 20))
    life.fault(STRANGER, "foreign_read", group_id="analytics")


def mirrors_all_topics(life: Life) -> None:
    life.topic("orders")
    names = [f"app{n}" for n in range(life.chance.randint(11, 14))]
    for name in names:
        life.application(name, "orders", processes=1)
    life.group("mirror", "orders", *(f"{name}-totals-changelog" for name in names))
    life.fault(STRANGER, "cluster_mirror", group_id="mirror")


def application_itself(life: Life) -> None:
    changelog = _joiner(life)
    life.groups["joiner"].topics.append(changelog)


def reset_tool(life: Life) -> None:
    changelog = _joiner(life)
    life.processes = []
    life.groups["joiner"].client = "StreamsResetter"
    life.groups["joiner"].topics.append(changelog)


def another_group_of_the_application(life: Life) -> None:
    life.group("joiner-global", _joiner(life), client="joiner-9f-global-consumer")


def old_offsets(life: Life) -> None:
    life.group("analytics", _joiner(life), died=NOW - life.uniform(1.2, 6) * DAY)


def topic_that_merely_ends_so(life: Life) -> None:
    life.topic("audit-changelog", configs=dict(COMPACTED))
    life.group("analytics", "audit-changelog")


def backup_that_may(life: Life) -> None:
    life.group("backup-nightly", _joiner(life))


BEHIND_A_LITTLE = 2 * SECOND
FAULTS = (
    falls_behind_until_retention_takes_it,
    stopped_and_retention_comes_near,
    records_are_lost,
    stays_on_the_brink,
    falls_out_of_what_size_keeps,
    topic_recreated,
    newcomer_is_always_late,
    newcomer_is_late_at_the_peak,
    newcomer_never_commits,
    newcomer_that_leaves_a_topic_out,
    newcomer_on_trial,
    never_commits,
    commits_on_one_topic_of_two,
    replays_on_many_days,
    always_reads_what_memory_lost,
    reads_another_ones_changelog,
    read_another_ones_changelog_today,
    mirrors_all_topics,
)
DECOYS = (
    repartition_topic_is_purged,
    late_on_a_compacted_topic,
    retired_group,
    stopped_and_the_topic_ran_empty,
    late_and_safe,
    catches_up_from_far_behind,
    left_the_topic,
    newcomer_that_passed,
    newcomer_that_commits_seldom,
    newcomer_on_a_topic_to_which_nothing_comes,
    newcomer_with_one_bad_hour,
    looks_for_an_hour,
    console_consumer,
    generated_name,
    renamed,
    new_cluster,
    before_its_first_commit,
    keeps_its_offsets_elsewhere,
    readers_without_groups,
    nothing_comes_to_commit,
    commits_by_the_hour,
    replays_for_a_repair,
    replays_out_of_memory,
    replays_little_of_what_disks_read,
    application_itself,
    reset_tool,
    another_group_of_the_application,
    old_offsets,
    topic_that_merely_ends_so,
    backup_that_may,
)
