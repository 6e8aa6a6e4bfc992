"""Fixtures for the tests of all sources."""

import pytest


@pytest.fixture(autouse=True)
def _no_other_tasks_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_apps.sources.jmx.TASKS_BEGIN_SECONDS", 0)
