"""Judging an hour: stored evaluations, reruns, blocked and failed detectors."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.detectors import Detector, evaluate, load_detectors

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
HEADER = """/*
title: A test
severity: warning
owner: tests
maturity: experimental
reads: [metrics.consumer_group_hourly]
identity: [name]
clear_after_hours: 1
runbook: none
blind_spots: none
*/
"""


def detector(folder: Path, sql: str) -> Detector:
    file = folder / "tests" / "a_test.sql"
    file.parent.mkdir(exist_ok=True)
    file.write_text(HEADER + sql)
    return load_detectors(folder)["a_test"]


def loaded(warehouse: sa.Engine, status: str = "loaded") -> None:
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into detect.load values (:hour, 'consumer_groups', :status, '{}', 'no route', now(), now())"
            ),
            {"hour": HOUR, "status": status},
        )


def stored(warehouse: sa.Engine) -> list[tuple[str, str]]:
    with warehouse.connect() as connection:
        return list(connection.execute(sa.text("select resource, status from detect.evaluation order by 1")).tuples())


ROW = "select :hour as x, 'a <b>' as resource, '{status}' as status, 'because' as reason, 'a' as name, 7 as size_bytes"


def test_an_hour_judged_twice_is_stored_once(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    for status in ("alarm", "ok"):
        judgement = evaluate(warehouse, detector(tmp_path, ROW.format(status=status)), HOUR, Config())
        assert judgement.status == "judged", judgement.reason
    assert stored(warehouse) == [("a <b>", "ok")]
    with warehouse.connect() as connection:
        row = connection.execute(sa.text("select evidence, severity, identity from detect.evaluation")).one()
    assert row.evidence["size_bytes"] == 7
    assert (row.severity, row.identity) == ("warning", {"name": "a"})


def test_not_loaded_is_blocked_and_keeps_what_was_said(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    evaluate(warehouse, detector(tmp_path, ROW.format(status="alarm")), HOUR, Config())
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update detect.load set status = 'failed'")
    judgement = evaluate(warehouse, detector(tmp_path, ROW.format(status="ok")), HOUR, Config())
    assert (judgement.status, judgement.reason) == ("blocked", "app consumer_groups failed: no route")
    assert stored(warehouse) == [("a <b>", "alarm")]


def test_never_loaded_is_blocked(warehouse: sa.Engine, tmp_path: Path) -> None:
    judgement = evaluate(warehouse, detector(tmp_path, ROW.format(status="ok")), HOUR, Config())
    assert (judgement.status, judgement.reason) == ("blocked", "app consumer_groups hasn't loaded this hour")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select 1 / 0 as resource, :hour as x", "division by zero"),
        ("select nothing, :hour as x", 'column "nothing" does not exist'),
        (ROW.format(status="fine"), "status 'fine' of a <b>: not alarm, ok or skip"),
        (f"{ROW.format(status='ok')} union all {ROW.format(status='ok')}", "two rows with the identity"),
        (ROW.format(status="ok").replace("'a' as name", "null as name"), "identity column name is null"),
        (ROW.format(status="ok").replace("as reason", "as because"), "the select has no column reason"),
    ],
)
def test_bad_sql_is_one_line_and_stores_nothing(warehouse: sa.Engine, tmp_path: Path, sql: str, told: str) -> None:
    loaded(warehouse)
    judgement = evaluate(warehouse, detector(tmp_path, sql), HOUR, Config())
    assert judgement.status == "failed"
    assert told in str(judgement.reason)
    assert "a_test.sql" in str(judgement.reason)
    assert "\n" not in str(judgement.reason)
    assert stored(warehouse) == []
