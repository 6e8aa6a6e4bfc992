"""Start times of processes come from two clocks, so they are never compared for equality; a known start is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.sources.jmx import _known_starts
from spark_apps.sources.jmx_endpoint import Answer, carried_over, start_of, time_of
from spark_apps.sources.prometheus import _started_at
from tests.spark_apps.sources.agents import Agents, running_agents
from tests.spark_apps.sources.test_jolokia import ask
from tests.sql.rows import insert_row

AT = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
START = AT - timedelta(hours=2)


@pytest.fixture(scope="module", name="running")
def _running() -> Iterator[Agents]:
    with running_agents() as running:
        yield running


def test_an_exposed_start_time_is_used_if_the_clocks_agree() -> None:
    for late in (0.0, 0.4, 7.0, 59.0):
        assert start_of(AT + timedelta(seconds=late), 7_200_000, START) == START
    skewed = START + timedelta(minutes=7)
    assert start_of(AT, 7_200_000, skewed) == START, "their clock is ahead: ours less the uptime"
    assert start_of(AT, None, START) == START and start_of(AT, 7_200_000, None) == START
    assert start_of(AT, None, None) is None and time_of(None) is None and time_of(1e300) is None
    assert start_of(AT, 10, AT + timedelta(seconds=30)) == AT, "no process starts in the future"


def test_the_exposed_start_time_of_a_prometheus_page_is_used() -> None:
    assert _started_at(AT + timedelta(seconds=5), None, START.timestamp(), 7_200_000.0) == START


@given(st.lists(st.floats(0, 59), min_size=1, max_size=20))
def test_slow_responses_are_not_restarts(delays: list[float]) -> None:
    """JVMs without a restart have one start time over all hours; each hour knows the previous ones."""
    known: list[datetime] = []
    for hour, delay in enumerate(delays):
        at = AT + timedelta(hours=hour)
        answer = Answer(
            at + timedelta(seconds=delay), start_of(at + timedelta(seconds=delay), hour * 3_600_000, None), []
        )
        carried_over([answer], known)
        assert answer.process_started_at is not None
        known.append(answer.process_started_at)
    assert len(set(known)) == 1


def test_a_restart_is_a_new_start_and_samples_of_one_run_agree() -> None:
    starts = [START, START + timedelta(seconds=1), None, START + timedelta(minutes=90), START + timedelta(minutes=91)]
    answers = [Answer(AT, start, []) for start in starts]
    carried_over(answers, [])
    again = START + timedelta(minutes=90)
    assert [answer.process_started_at for answer in answers] == [START, START, None, again, starts[-1]]


def test_a_start_time_in_the_warehouse_is_kept(running: Agents, warehouse: sa.Engine) -> None:
    """The agent reports an uptime of one minute; the previous hour stored a start some seconds off."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    url = running.url("good")
    stored = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=70)
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (hour - timedelta(hours=1)).date()})
        row = {"hour": hour - timedelta(hours=1), "cluster": "demo", "endpoint": url, "process_started_at": stored}
        insert_row(connection, "metrics.broker_hourly", row)
    known = _known_starts(hour)
    assert known == {"demo": {url: [stored.timestamp()]}}
    rows = ask(url, known_starts=json.dumps(known))
    assert {row["process_started_at"] for row in rows} == {stored}
    assert stored not in {row["process_started_at"] for row in ask(url)}


def test_an_exact_start_is_never_taken_for_an_earlier_one() -> None:
    soon = START + timedelta(seconds=10)
    answers = [Answer(AT, START, [], reported_start=START), Answer(AT, soon, [], reported_start=soon)]
    carried_over(answers, [START])
    assert [answer.process_started_at for answer in answers] == [START, soon]
