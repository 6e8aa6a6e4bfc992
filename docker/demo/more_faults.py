"""The faults that FAULTS=all adds to the four default faults of `make demo`; each can occur in a small real fleet.

A fault has a function that starts its cause, and the detector, resource, and reason that must be found.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import NewTopic

from demo.broker import create_topics
from demo.demo_world import DEMO_ACCOUNT, DEMO_REGION

if TYPE_CHECKING:
    from demo.fleet import Fleet

MORE_LOAD_SECONDS = 150.0
"""Duration of the traffic with one of these faults: the speed of a group needs at least two minutes of commits."""


@dataclass(frozen=True)
class More:
    """A fault. `params`: the detector's parameters that differ because the fleet is only minutes old."""

    detector: str
    resource: str
    why: str
    reasons: tuple[str, ...]
    start: Callable[[Fleet], None]
    is_late: bool = False
    """Whether it is injected after half of the traffic, because an earlier start would exhaust its resources."""
    params: Mapping[str, Any] = field(default_factory=dict)


def _lag(fleet: Fleet) -> None:
    # One partition, because the consumer would read several one after the other, with random numbers of records.
    _topic(fleet, "payments", 1)
    for role in ("payments", "ledger"):
        fleet.start_client(role)


def _stranger(fleet: Fleet) -> None:
    fleet.start_client("analytics")


def _refused(fleet: Fleet) -> None:
    _topic(fleet, "receipts", 1, {"max.message.bytes": "2000"})
    fleet.start_client("receipts")


def _broker(fleet: Fleet) -> None:
    west = fleet.start_cluster("west")
    create_topics(west.bootstrap_servers, NewTopic("stock", 6, replication_factor=3))
    west.brokers[2].kill()


def _poison(fleet: Fleet) -> None:
    _topic(fleet, "invoices", 4)
    fleet.start_client("invoices")


def _lost(fleet: Fleet) -> None:
    _topic(fleet, "parcels", 1)
    fleet.start_client("parcels")


def _instance(fleet: Fleet) -> None:
    instance_id = "i-0e5c7a1f93b2d8046"
    tags = {"Name": "search-1", "application": "search", "owner": "team-search"}
    fleet.world.add_instance(DEMO_ACCOUNT, DEMO_REGION, instance_id, "m5.large", tags)
    fleet.world.take_out(instance_id, "search", datetime.now(UTC), "an EC2 instance status checks failure")


def _files(fleet: Fleet) -> None:
    """Lowers the file descriptor limit of the running broker, so that one in six is left."""
    open_files = len(list(Path(f"/proc/{fleet.broker.pid}/fd").iterdir()))
    limit = round(open_files * 1.2)
    resource.prlimit(fleet.broker.pid, resource.RLIMIT_NOFILE, (limit, limit))


MORE = {
    "lag": More(
        detector="consumer_group_lagging",
        resource="ledger",
        why="the group `ledger` reads 4 payments a second while 20 come, and is 50 minutes behind",
        reasons=("falling_behind",),
        start=_lag,
    ),
    "stranger": More(
        detector="internal_topic_foreign_consumer",
        resource="analytics",
        why="the group `analytics` reads a changelog of the application `orders`",
        reasons=("foreign_read",),
        start=_stranger,
    ),
    "refused": More(
        detector="produce_failing",
        resource="demo",
        why="a producer sends records to `receipts` that are larger than its max.message.bytes",
        reasons=("rejected",),
        start=_refused,
    ),
    "broker": More(
        detector="broker_down",
        resource="3",
        why="broker 3 of the cluster `west` was killed",
        reasons=("down",),
        start=_broker,
    ),
    "poison": More(
        detector="consumer_poison_pill",
        resource="bookkeeping",
        why="a record of `invoices` keeps each member of the group `bookkeeping` busy until it is out of the group",
        reasons=("poll_timeout_loop",),
        start=_poison,
        params={"still_minutes": 0.5, "still_gaps": 1, "few_share": 0.3},
    ),
    "lost": More(
        detector="consumer_data_at_risk",
        resource="archive",
        why="of `parcels` 2,990 were deleted that the group `archive` hadn't read",
        reasons=("lost", "records_deleted"),  # the second is certain only with the hours before
        start=_lost,
    ),
    "instance": More(
        detector="instance_unhealthy",
        resource="search",
        why="Auto Scaling took an instance of the group `search` out of service: its status checks failed",
        reasons=("health_check_failed",),
        start=_instance,
    ),
    "files": More(
        detector="broker_file_descriptors_high",
        resource="1",
        why="of the files that the broker may open, five in six are open",
        reasons=("high",),
        start=_files,
        is_late=True,
        params={"start_minutes": 0},
    ),
}


def start(fleet: Fleet, *, late: bool) -> None:
    """Injects the selected faults in the order of the list: those at the start, or the late ones."""
    for name, fault in MORE.items():
        if name in fleet.faults and fault.is_late == late:
            fault.start(fleet)
            fleet.injected(name, fault.detector, fault.resource, fault.why, fault.reasons)


def params(faults: frozenset[str]) -> dict[str, Any]:
    """The section `detectors` of the config for these faults."""
    return {
        fault.detector: {"params": dict(fault.params)}
        for name, fault in MORE.items()
        if name in faults and fault.params
    }


def _topic(fleet: Fleet, name: str, partitions: int, more: Mapping[str, str] | None = None) -> None:
    config = {"retention.ms": str(6 * 3_600_000), **(more or {})}
    create_topics(fleet.broker.bootstrap_servers, NewTopic(name, partitions, config=config))
