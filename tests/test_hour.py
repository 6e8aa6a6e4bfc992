"""The hour, end to end, without Airflow: a real fleet with four faults, gathered and evaluated twice, and scored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from demo.faults import FAULTS
from demo.fleet import Fleet
from demo.ports import Ports
from demo.score import open_tickets, score
from demo.verdicts import with_verdicts
from streamwarden.base.config import WAREHOUSE_ENV

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(1200)]

# The hour is not over: by the second run CloudWatch has more minutes, and a JVM may have another MBean. The age of the
# record at a committed offset is only read for lagging groups: by the second run the group may have caught up.
GROWING = ("_sample", "cloudwatch_cost_hourly", "detect.coverage", "coverage kafka_record_times demo answered")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """The four faults of plain `make demo`, on free ports."""
    with Fleet(tmp_path, frozenset(FAULTS), Ports(0, 0, 0, 0, 0)) as running:
        running.load()
        yield running


def test_a_rerun_of_the_hour_has_the_same_rows_and_four_tickets(
    fleet: Fleet, warehouse: sa.Engine, warehouse_url: str
) -> None:
    first_output = _run_hour(fleet, warehouse_url)
    first = _rows(warehouse)
    assert first["metrics.volume_hourly"] and first["metrics.broker_hourly"], first_output
    _run_hour(fleet, warehouse_url)
    second = _rows(warehouse)

    assert {table: n for table, n in second.items() if not table.endswith(GROWING)} == {
        table: n for table, n in first.items() if not table.endswith(GROWING)
    }
    assert second["metrics.broker_sample"] < 1.2 * first["metrics.broker_sample"]
    tickets = open_tickets(fleet.tracker_url, "streamwarden", fleet.tracker_password("streamwarden"))
    with warehouse.connect() as connection:
        found = with_verdicts(connection, tickets)
        assert score(fleet.truth, found, fleet.started_at).is_perfect, found
        assert len(tickets) == 4
        actions = connection.execute(sa.text("select action, count(*) from tickets.change group by 1")).tuples().all()
    assert dict(actions)["create"] == 4


def _run_hour(fleet: Fleet, warehouse_url: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).with_name("streamwarden"), "run", "--hour", f"{fleet.hour:%Y-%m-%dT%H:%M}"],
        env={**os.environ, **fleet.environment(), WAREHOUSE_ENV: warehouse_url},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


def _rows(warehouse: sa.Engine) -> dict[str, int]:
    tables = sa.text("""
        select n.nspname || '.' || c.relname from pg_class as c
        inner join pg_namespace as n on n.oid = c.relnamespace
        where n.nspname in ('inventory', 'metrics', 'detect') and c.relkind in ('r', 'p') and not c.relispartition""")
    with warehouse.connect() as connection:
        names = connection.execute(tables).scalars().all()
        rows = {name: connection.execute(sa.text(f"select count(*) from {name}")).scalar_one() for name in names}
        evaluated = sa.text("""
            select detector || ' ' || status, count(*) from detect.evaluation group by 1
            union all
            select concat_ws(' ', 'coverage', source, resource_name, status, message), 1 from detect.coverage""")
        return rows | dict(connection.execute(evaluated).tuples().all())
