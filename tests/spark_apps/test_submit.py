"""Errors of an app that fails."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from streamwarden.base.config import WAREHOUSE_ENV, Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import parse_hour

from spark_apps import submit
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


def test_a_reason_holds_no_credentials() -> None:
    assert submit.one_line(ValueError("no http://u:hunter2@h/x")) == "ValueError: no http://h/x"
