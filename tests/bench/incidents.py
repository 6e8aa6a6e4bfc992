"""Root causes and tickets of one hour with many incidents: 20 of 200 brokers have a starving volume, and each of 1,980
groups falls behind on the partitions that one of those brokers leads. 100,000 partitions, read by 2,000 groups.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import sqlalchemy as sa
from streamwarden.base.hours import HOUR
from streamwarden.base.warehouse import engine, ensure_day
from streamwarden.causes import find_causes
from streamwarden.detectors import Finding
from streamwarden.detectors.results import store_findings
from streamwarden.store.migrate import migrate
from streamwarden.tickets import reconcile

from tests.bench.metric import Metric
from tests.conftest import a_database
from tests.simulator.incidents import CONFIG, DETECTORS, Row, Spot, _found, insert_many
from tests.simulator.scenario import EVALUATED

BROKERS, SICK_BROKERS, TOPICS, PARTITIONS_PER_TOPIC, FINDINGS = 200, 20, 1_000, 100, 2_000
LIMIT_SECONDS = 3
_SIZED = ("metrics.partition_hourly", "metrics.consumer_partition_hourly")
"""Analyzed after a load of this size."""


def measure() -> list[Metric]:
    """Seconds to find the root causes and to decide on the tickets; the seed is random."""
    dice = random.Random()  # noqa: S311
    with a_database() as url:
        warehouse = engine(url)
        migrate(warehouse)
        _fill(warehouse, dice)
        started = time.monotonic()
        find_causes(warehouse, DETECTORS, EVALUATED)
        found = time.monotonic()
        reconcile(warehouse, CONFIG, DETECTORS, EVALUATED + HOUR)
        ended = time.monotonic()
        _check(warehouse)
    what = f"incidents of {FINDINGS:,} findings, {TOPICS * PARTITIONS_PER_TOPIC:,} partitions"
    return [
        Metric(what, ended - started, "s", LIMIT_SECONDS),
        Metric("  of it root causes", found - started, "s"),
        Metric("  of it tickets", ended - found, "s"),
    ]


def _fill(warehouse: sa.Engine, dice: random.Random) -> None:
    """Topology and findings of the hour."""
    sick = dice.sample(range(1, BROKERS + 1), SICK_BROKERS)
    leaders = {
        (f"t{t}", p): sick[t % SICK_BROKERS] if p < 5 else dice.randint(1, BROKERS)
        for t in range(TOPICS)
        for p in range(PARTITIONS_PER_TOPIC)
    }
    ensure_day(warehouse, EVALUATED.date())
    with warehouse.begin() as connection:
        insert_many(connection, _topology(leaders))
        store_findings(connection, _findings(leaders, sick), EVALUATED, datetime.now(UTC))
        run = {"hour": EVALUATED, "status": "evaluated"}
        insert_many(connection, (("detect.detector_run", run | {"detector": detector}) for detector in DETECTORS))
        for table in _SIZED:
            connection.exec_driver_sql(f"analyze {table}")


def _topology(leaders: dict[Spot, int]) -> Iterator[tuple[str, Row]]:
    for n in range(1, BROKERS + 1):
        machine = {"hour": EVALUATED, "account": "1", "region": "r", "instance_id": f"i{n}"}
        yield "inventory.volume_hourly", machine | {"volume_id": f"v{n}"}
        yield "inventory.instance_hourly", machine | {"private_ip": f"ip{n}"}
        broker = {"hour": EVALUATED, "cluster": "c", "endpoint": f"b{n}", "broker_id": n, "instance_id": f"i{n}"}
        yield "metrics.broker_hourly", broker
    for (topic, partition), leader in leaders.items():
        place = {"hour": EVALUATED, "cluster": "c", "topic": topic, "partition": partition}
        yield "metrics.partition_hourly", place | {"leader": leader, "replicas": 3, "isr": 3}
        for group in (int(topic[1:]), int(topic[1:]) + TOPICS):
            yield "metrics.consumer_partition_hourly", place | {"group_id": f"g{group}"}


def _findings(leaders: dict[Spot, int], sick: list[int]) -> list[Finding]:
    volumes = [_found("ebs_volume_starving", f"volume:1/r/v{n}", "bucket_empty") for n in sick]
    groups = []
    for group in range(FINDINGS - SICK_BROKERS):
        topic, broker = f"t{group % TOPICS}", sick[group % SICK_BROKERS]
        behind = [(topic, p) for p in range(PARTITIONS_PER_TOPIC) if leaders[topic, p] == broker]
        groups.append(_found("consumer_group_lagging", f"group:c/g{group}", "falling_behind", behind))
    return volumes + groups


def _check(warehouse: sa.Engine) -> None:
    with warehouse.connect() as connection:
        tickets, own = connection.execute(_TICKETS).one()
    if (tickets, own) != (FINDINGS, SICK_BROKERS):
        raise AssertionError(f"{tickets} tickets, {own} of them not represented by another")


_TICKETS = sa.text(
    "select count(*), count(*) filter (where summary_ticket_id is null) from tickets.ticket where state = 'open'"
)
