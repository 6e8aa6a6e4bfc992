"""User and password: from the config's environment, or from an Airflow connection."""

from __future__ import annotations

import json

import pytest
from streamwarden.base.config.trackers import Jira
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.credentials import login

pytestmark = pytest.mark.slow  # imports Airflow


def settings(connection: str) -> Jira:
    return Jira(url="https://acme.atlassian.net", project="OPS", connection=connection)


def test_an_airflow_connection_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"conn_type": "http", "login": "bot@acme.example", "password": "s3cr3t"}
    monkeypatch.setenv("AIRFLOW_CONN_JIRA_OPS", json.dumps(given))
    assert login("team", settings("jira_ops")) == ("bot@acme.example", "s3cr3t")
    monkeypatch.setenv("AIRFLOW_CONN_JIRA_OPS", json.dumps(given | {"password": ""}))
    with pytest.raises(StreamwardenError, match=r"tickets\.trackers\.team\.connection: .* 'jira_ops' has no password"):
        login("team", settings("jira_ops"))


def test_a_connection_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        StreamwardenError, match=r"Airflow has no connection 'nowhere_at_all' .*airflow connections add"
    ):
        login("team", settings("nowhere_at_all"))
