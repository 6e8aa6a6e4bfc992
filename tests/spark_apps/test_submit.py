"""Errors of an app that fails."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession
from streamwarden.base.catalog import APPS
from streamwarden.base.config import WAREHOUSE_ENV, Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import parse_hour

from spark_apps import submit
from spark_apps.runtime.driver_rows import driver_rows
from tests.conftest import a_database


def test_the_first_error_is_reported_though_the_warehouse_cannot_store_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def extract(*_: Any) -> None:
        raise StreamwardenError("the first error")

    monkeypatch.setattr(submit, "session_for", lambda spark, expected_rows: spark)
    monkeypatch.setitem(sys.modules, "spark_apps.apps.brokers", SimpleNamespace(extract=extract))
    with a_database() as unmigrated:
        monkeypatch.setenv(WAREHOUSE_ENV, unmigrated)
        with pytest.raises(StreamwardenError, match="the first error"):
            submit.run_app(None, "brokers", parse_hour("2026-11-21T05:00"), Config())  # type: ignore[arg-type]


def test_an_app_that_only_adds_needs_no_spark_where_nothing_is_configured_for_it(
    warehouse: sa.Engine, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WAREHOUSE_ENV, warehouse_url)
    loaded = [name for name, app in APPS.items() if app.only_adds]
    for name in loaded:
        assert submit.run_app(None, name, parse_hour("2026-11-21T05:00"), Config()) == {}  # type: ignore[arg-type]
    with warehouse.connect() as connection:
        loads = connection.execute(sa.text("select app, status from detect.load")).tuples().all()
    assert sorted(loads) == [(name, "loaded") for name in sorted(loaded)]


def test_a_reason_holds_no_credentials() -> None:
    assert submit.one_line(ValueError("no http://u:hunter2@h/x")) == "ValueError: no http://h/x"


@pytest.mark.parametrize("others", [["missing: b"], ["late: b"], ["missing: b", "late: b", None]])
def test_a_resource_that_failed_in_part_has_failed(spark: SparkSession, others: list[str | None]) -> None:
    """`missing` closes findings of what is gone, so it stands only where every request had a response."""
    rows = [("r", gap) for gap in (*others, "failed: a")] + [
        ("whole", None),
        ("gone", "late: d"),
        ("gone", "missing: c"),
    ]
    answer = driver_rows(spark, rows, "resource string, gap string")
    found = {row.resource_name: (row.status, row.message) for row in submit.coverage_of(spark, {"s": answer}).collect()}
    assert found == {"r": ("failed", "a"), "whole": ("complete", None), "gone": ("missing", "c")}
