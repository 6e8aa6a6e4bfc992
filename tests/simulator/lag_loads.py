"""Groups on uneven partitions and groups that rebalance: idle partitions next to a busy one, pauses while well."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.simulator.scenario import START

if TYPE_CHECKING:
    from tests.simulator.lag import Builder, Log

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


FAULTS = (falls_behind_on_the_busy_one,)
DECOYS = (idle_beside_busy, pauses_to_rebalance)
