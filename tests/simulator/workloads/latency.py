"""End-to-end latency above target, and decoys. See `topics`."""

from __future__ import annotations

from tests.simulator.workloads.process_lifetimes import DAY, MINUTE, NEVER, NOW, SECOND, Group, Life, Topic, Way

LATE = "latency_over_target"
TOPIC, APP = "orders", "joiner"
SHORTLY = (0.01, 0.2, 1.0)
"""Latency below any target, in seconds: minimum, mean, and maximum."""


def _application(
    life: Life, target: float | None = None, partitions: int = 6, **way: tuple[float, float, float]
) -> Way:
    """An application with a latency target in seconds, and the time of its records outside of the log."""
    topic = life.topic(TOPIC, life.uniform(4, 10) * partitions, partitions=partitions)
    life.group("search", TOPIC)
    life.application(APP, TOPIC)
    life.targets[APP] = life.uniform(5, 20)
    made = Way(topic, life.groups[APP], **({"before": SHORTLY, "inside": SHORTLY} | way))
    for process in life.processes:
        process.way = made
    return made


def _path(begins: float, late: float) -> list[tuple[float, float]]:
    """The application was stopped for so long, and has read at the produce rate since then."""
    kept = begins - 2 * SECOND
    return [(0.0, -2 * SECOND), (begins, kept), (begins + late, kept), (NOW + 1, NOW + 1 - late)]


def _falls_behind(life: Life, group: Group, least: float = 13, most: float = 40) -> None:
    begins = life.onset(2, 20)
    if begins != NEVER:
        group.path = _path(begins, life.uniform(least, most) * MINUTE)


def group_is_a_quarter_of_an_hour_behind(life: Life) -> None:
    """Commits every five minutes: so much of its lag may be processed already."""
    _falls_behind(life, _application(life).group)
    life.fault(LATE, "in_log", application_id=APP)


def group_is_minutes_behind(life: Life) -> None:
    _falls_behind(life, _application(life).group, 6, 13)
    life.fault(LATE, "in_log", "before_processing", application_id=APP)


def one_partition_is_minutes_behind(life: Life) -> None:
    way = _application(life)
    begins = life.onset(2, 20)
    if begins != NEVER:
        way.group.own_paths[TOPIC, life.chance.randrange(6)] = _path(begins, life.uniform(15, 40) * MINUTE)
    life.fault(LATE, "in_log", application_id=APP)


def group_in_front_of_windows_is_behind(life: Life) -> None:
    way = _application(life, inside=(60, 1800, 3600))
    way.holds_back = True
    _falls_behind(life, way.group)
    life.fault(LATE, "in_log", application_id=APP)


def calls_of_others_take_long(life: Life) -> None:
    mean = life.uniform(30, 90)
    _application(life, inside=(0.2, mean, 3 * mean))
    life.fault(LATE, "in_application", application_id=APP)


def some_producers_send_late(life: Life) -> None:
    """Within the commit interval the time in the log may be the cause as well."""
    mean = life.uniform(30, 90)
    _application(life, before=(0.1, mean, 4 * mean))
    life.fault(LATE, "before_kafka", "before_processing", application_id=APP)


def target_is_kept(life: Life) -> None:
    """A record takes 5.5 s on average: 1.5 s before the log, 2 s in the log, 2 s in the application."""
    _application(life, before=(0.1, 1.5, 30), inside=(0.01, 2, 20))
    life.targets[APP] = life.uniform(6, 20)


def late_without_a_target(life: Life) -> None:
    _application(life, inside=(0.2, 300, 900))
    life.targets.clear()


def one_task_of_many_is_late(life: Life) -> None:
    """The share of readings above target is below the limit."""
    way = _application(life, partitions=30)
    way.group.own_paths[TOPIC, 7] = _path(NOW - life.uniform(2, 20), life.uniform(10, 30) * MINUTE)


def windows_emit_at_their_end(life: Life) -> None:
    _application(life, inside=(60, 1800, 3600)).holds_back = True


def old_records_are_written_again(life: Life) -> None:
    old = life.uniform(1, 100) * 3600
    _application(life, before=(old, old + 1, old + 3))


def clock_of_producers_is_behind(life: Life) -> None:
    behind = life.uniform(25, 300)
    _application(life, before=(behind, behind + 0.2, behind + 1))


def clock_of_a_producer_is_ahead(life: Life) -> None:
    _application(life, before=(-life.uniform(5, 3600), 30, 60))


def _reads_again(way: Way, since: float, back: float) -> None:
    """From so long ago on, a third faster than the produce rate."""
    first = max(since - back, 0)
    until = since + (since - first) / 0.33
    way.group.path += [(since + 1e-6, first), (until, first + (until - since) * 1.33)]


def group_went_back(life: Life) -> None:
    way, since = _application(life), NOW - life.uniform(2, 8)
    way.group.path = [(0.0, -2 * SECOND), (since, since - 2 * SECOND)]
    _reads_again(way, since, life.uniform(20, 40))
    life.may |= {"consumer_replaying", "consumer_data_at_risk", "topic_underpartitioned"}


def new_application_reads_all_there_is(life: Life) -> None:
    way, since = _application(life), NOW - life.uniform(3, 8)
    way.group.born = since
    way.group.path = [(0.0, 0.0)]
    _reads_again(way, since, life.uniform(20, 40))
    for process in life.processes:
        process.starts = [since]
    life.may |= {"consumer_replaying", "consumer_trial_failed", "consumer_data_at_risk", "topic_underpartitioned"}


def late_until_an_hour_ago(life: Life) -> None:
    begins, late = NOW - life.uniform(4, 20), life.uniform(10, 30) * MINUTE
    path = [*_path(begins, late)[:-1], (NOW - 1.5, NOW - 1.5 - late), (NOW - 1.2, NOW - 1.2 - 2 * SECOND)]
    _application(life).group.path = [*path, (NOW + 1, NOW + 1 - 2 * SECOND)]


def nothing_comes_in(life: Life) -> None:
    topic: Topic = _application(life).topic
    topic.messages[NOW - 3 * DAY :] = 0


def client_does_not_expose_its_topics(life: Life) -> None:
    way = _application(life, inside=(0.2, 300, 900))
    way.reports_topics = False


def late_processes_are_silent(life: Life) -> None:
    _application(life, inside=(0.2, 300, 900))
    for process in life.processes:
        process.silent_from = NOW - 0.5


FAULTS = (
    group_is_a_quarter_of_an_hour_behind,
    group_is_minutes_behind,
    one_partition_is_minutes_behind,
    group_in_front_of_windows_is_behind,
    calls_of_others_take_long,
    some_producers_send_late,
)
DECOYS = (
    target_is_kept,
    late_without_a_target,
    one_task_of_many_is_late,
    windows_emit_at_their_end,
    old_records_are_written_again,
    clock_of_producers_is_behind,
    clock_of_a_producer_is_ahead,
    group_went_back,
    new_application_reads_all_there_is,
    late_until_an_hour_ago,
    nothing_comes_in,
    client_does_not_expose_its_topics,
    late_processes_are_silent,
)
