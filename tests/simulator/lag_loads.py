"""Loads of groups that the rules of lag did not grow up with: uneven partitions, rebalances while well and while late,
days and nights, changes of leaders, and thousands of partitions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator.scenario import START

if TYPE_CHECKING:
    from tests.simulator.lag import Builder, Log, Timeline

MINUTE = timedelta(minutes=1)
READS_ALL = 1e6


def _uneven(builder: Builder) -> list[Log]:
    """A busy partition, one with a record every some minutes, and one with a few records in all."""
    rare = builder.chance.uniform(0.002, 0.01)
    return [builder.log(builder.chance.uniform(8, 20)), builder.log(rare), builder.log(0.0005)]


def falls_behind_on_the_busy_one(builder: Builder) -> None:
    """Only the busy partition is late; the idle ones have no lag."""
    from tests.simulator.lag import Reader

    at, share = builder.moment(3, 7), builder.chance.uniform(0.3, 0.75)
    logs = _uneven(builder)
    rate = len(logs[0].appended) / (builder.until - START).total_seconds()
    readers = [Reader([(START, READS_ALL), (at, rate * share)]), *[Reader([(START, READS_ALL)])] * 2]
    kind = "falls behind beside idle partitions"
    builder.add(kind, logs, readers)
    late = at + timedelta(minutes=12) / (1 - share)
    builder.fault(kind, at, late)
    builder.unclear(at, late)


def idle_beside_busy(builder: Builder) -> None:
    """A group that keeps up on a busy partition and on two that are nearly idle."""
    from tests.simulator.lag import Reader

    builder.add("idle partitions beside a busy one", _uneven(builder), Reader([(START, READS_ALL)]))


def pauses_to_rebalance(builder: Builder) -> None:
    """Rebalances stop the whole group for one to three minutes, several times; it catches up each time."""
    from tests.simulator.lag import Reader

    rate = builder.chance.uniform(2, 8)
    speed = [(START, READS_ALL)]
    for _ in range(builder.chance.randint(3, 8)):
        at = builder.moment(2, 15)
        speed += [(at, 0.0), (at + builder.chance.uniform(1, 3) * MINUTE, rate * builder.chance.uniform(4, 20))]
    builder.add("pauses to rebalance", builder.logs(rate), Reader(sorted(speed)))


def rebalances_while_late(builder: Builder) -> None:
    """Reads fewer records than are produced, and rebalances stop it several times."""
    from tests.simulator.lag import Reader

    at, rate = builder.moment(3, 6), builder.chance.uniform(2, 8)
    share = builder.chance.uniform(0.3, 0.7)
    speed = [(START, READS_ALL), (at, rate * share)]
    for _ in range(builder.chance.randint(4, 10)):
        pause = at + builder.chance.uniform(0.2, 8) * HOUR
        speed += [(pause, 0.0), (pause + builder.chance.uniform(1, 3) * MINUTE, rate * share)]
    kind = "falls behind and rebalances"
    builder.add(kind, builder.logs(rate), Reader(sorted(speed)))
    late = at + timedelta(minutes=12) / (1 - share)
    builder.fault(kind, at, late)
    builder.unclear(at, late)


def _day_and_night(builder: Builder, rate: float, peak: float) -> list[Log]:
    """Traffic with a daily peak at an hour, of 1.8 times the mean; a fifth of it twelve hours away."""
    logs, until = [], (builder.until - START).total_seconds()
    for _ in range(3):
        seconds = builder.draws.uniform(0, until, int(rate * 1.8 * until))
        load = 1 + 0.8 * np.cos((seconds / 3600 - peak) * 2 * np.pi / 24)
        logs.append(builder.log_of(seconds[builder.draws.random(len(seconds)) * 1.8 < load]))
    return logs


def lag_seconds(timeline: Timeline, moment: datetime) -> float:
    """Age of the first unread record, the largest of all partitions; 0 if everything is read."""
    seconds, worst = (moment - START).total_seconds(), 0.0
    for partition, log in enumerate(timeline.logs):
        unread = log.appended[timeline.consumed(partition, moment) : log.end(moment)]
        worst = max(worst, seconds - float(unread[0])) if len(unread) else worst
    return worst


def late_by_day(builder: Builder) -> None:
    """Too few consumers for the day's peak: late for hours by day, and well again in the evening."""
    from tests.simulator.lag import Reader

    kind, rate, peak = "late by day", builder.chance.uniform(2, 5), builder.chance.uniform(8, 10)
    capacity = rate * builder.chance.uniform(1.3, 1.5)
    timeline = builder.add(kind, _day_and_night(builder, rate, peak), Reader([(START, capacity)]))
    minutes = range(int((builder.until - START) / MINUTE))
    late = np.array([lag_seconds(timeline, START + n * MINUTE) for n in minutes])
    begins = int(np.flatnonzero(late >= 60)[0])
    seen = begins + int(np.flatnonzero(late[begins:] >= 720)[0])
    worst = int(np.argmax(late))
    builder.fault(kind, START + begins * MINUTE, START + seen * MINUTE, START + worst * MINUTE)
    # Neither: growing, but less than the least lag that hurts; and catching up.
    builder.unclear(START + begins * MINUTE, START + seen * MINUTE)
    builder.unclear(START + worst * MINUTE, builder.until)


def busy_by_day(builder: Builder) -> None:
    """Five times the traffic by day as by night, and enough consumers for both."""
    from tests.simulator.lag import Reader

    rate = builder.chance.uniform(2, 5)
    logs = _day_and_night(builder, rate, builder.chance.uniform(6, 16))
    builder.add("day and night", logs, Reader([(START, rate * builder.chance.uniform(2.2, 4))]))


def leaders_change(builder: Builder) -> None:
    """Partitions are without a leader for seconds, several times: producers retry, and append all they held back."""
    from tests.simulator.lag import Reader

    logs = builder.logs()
    for log in logs:
        for _ in range(builder.chance.randint(2, 6)):
            without_leader(log, builder.moment(2, 15), timedelta(seconds=builder.chance.uniform(5, 50)))
    builder.add("leaders change", logs, Reader([(START, READS_ALL)]))


def stuck_since_the_leader_changed(builder: Builder) -> None:
    """One partition changes its leader, and its consumer never fetches from the new one."""
    from tests.simulator.lag import DETECTED_AFTER, Reader

    at, logs, kind = builder.moment(), builder.logs(), "stuck since a leader change"
    for log in logs:
        without_leader(log, at, timedelta(seconds=builder.chance.uniform(5, 50)))
    readers = [Reader([(START, READS_ALL), (at, 0.0)]), *[Reader([(START, READS_ALL)])] * 2]
    builder.add(kind, logs, readers)
    builder.fault(kind, at, at + DETECTED_AFTER)


def without_leader(log: Log, moment: datetime, lasts: timedelta) -> None:
    """Records of that time are appended when the partition has a leader again; their timestamps are older."""
    first = (moment - START).total_seconds()
    held = (log.appended >= first) & (log.appended < first + lasts.total_seconds())
    log.appended[held] = first + lasts.total_seconds()


def one_of_many_is_stuck(builder: Builder) -> None:
    """A topic with a thousand partitions and more, one of which is stuck."""
    from tests.simulator.lag import DETECTED_AFTER, Reader

    at, kind = builder.moment(), "one of a thousand partitions stuck"
    logs = _many(builder)
    every = Reader([(START, READS_ALL)], commit_every=5 * MINUTE)
    stuck = Reader([(START, READS_ALL), (at, 0.0)], commit_every=5 * MINUTE)
    builder.add(kind, logs, [stuck, *[every] * (len(logs) - 1)])
    builder.fault(kind, at, at + DETECTED_AFTER)


def many_are_read(builder: Builder) -> None:
    """A topic with a thousand partitions and more, all of them read."""
    from tests.simulator.lag import Reader

    builder.add("a thousand partitions", _many(builder), Reader([(START, READS_ALL)], commit_every=5 * MINUTE))


def _many(builder: Builder) -> list[Log]:
    """Partitions of eight kinds of traffic, down to one record an hour."""
    kinds = [builder.log(rate) for rate in (5, 2, 1, 0.3, 0.1, 0.02, 0.004, 0.0003)]
    return [kinds[n % len(kinds)] for n in range(builder.chance.randint(1000, 2000))]


FAULTS = (
    falls_behind_on_the_busy_one,
    rebalances_while_late,
    late_by_day,
    stuck_since_the_leader_changed,
    one_of_many_is_stuck,
)
DECOYS = (idle_beside_busy, pauses_to_rebalance, busy_by_day, leaders_change, many_are_read)
