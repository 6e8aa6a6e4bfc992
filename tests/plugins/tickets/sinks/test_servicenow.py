"""What is specific to ServiceNow: fields, states, resolution codes, roles."""

from __future__ import annotations

import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import IssueGone, TrackerDown

from tests.plugins.tickets.endpoints.servicenow import ServiceNow
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, issue_draft


def endpoint_of(team: Team) -> ServiceNow:
    assert isinstance(team.endpoint, ServiceNow)
    return team.endpoint


def test_fields_and_the_plot() -> None:
    team = Team("servicenow", assignment_group="a" * 32, fields={"category": "software"})
    issue = team.sink.create(issue_draft())
    (incident,) = endpoint_of(team).incidents.values()
    assert issue.key == f"INC0000001/{incident['sys_id']}"
    assert (incident["urgency"], incident["assignment_group"], incident["category"]) == ("1", "a" * 32, "software")
    assert incident["correlation_id"] == FINGERPRINT
    assert endpoint_of(team).attached == [incident["sys_id"]]


def test_closing_sets_code_and_notes_and_reopening_sets_the_state_new() -> None:
    team = Team("servicenow")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "close", "Healthy again."))
    (incident,) = endpoint_of(team).incidents.values()
    assert (incident["state"], incident["close_code"]) == ("6", "Resolved by caller")
    assert incident["close_notes"].startswith("Healthy again.")
    team.sink.update(change(issue.key, "reopen", "It is back.", "m2"))
    assert incident["state"] == "1", "a reopened incident is New, not In Progress"
    team.sink.update(change(issue.key, "close", "No.", "m3", is_wont_fix=True))
    assert incident["state"] == "8"
    with pytest.raises(IssueGone, match="is closed permanently"):
        team.sink.update(change(issue.key, "reopen", "It is back.", "m4"))


def test_a_text_begins_no_html() -> None:
    team = Team("servicenow")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "comment", "client [code]<a href='//x'>[/CODE] [b]"))
    ((note,),) = endpoint_of(team).journal.values()
    assert "client (code]<a href='//x'>(/CODE] [b]" in note


def test_the_error_for_a_mandatory_field_is_that_of_servicenow() -> None:
    team = Team("servicenow", close_code="")
    issue = team.sink.create(issue_draft())
    with pytest.raises(
        StreamwardenError, match=r"Operation Failed; Data Policy Exception: .*Resolution code.*\(HTTP 403"
    ):
        team.sink.update(change(issue.key, "close", "Over."))
    assert endpoint_of(team).journal[issue.key.partition("/")[2]] == [], "state and note are one request"


def test_a_missing_role_is_reported_and_no_incident_counts_as_deleted() -> None:
    team = Team("servicenow")
    issue = team.sink.create(issue_draft())
    endpoint_of(team).may_read = False
    with pytest.raises(TrackerDown, match=r"Insufficient rights.*the user needs the role itil"):
        team.sink.check()
    with pytest.raises(StreamwardenError, match="Insufficient rights"):
        team.sink.look(issue.key, FINGERPRINT)


def test_a_refused_note_on_a_closed_incident_does_not_block_later_changes(caplog: pytest.LogCaptureFixture) -> None:
    team = Team("servicenow")
    issue = team.sink.create(issue_draft())
    endpoint = endpoint_of(team)
    endpoint.answer(issue.key, "wont_fix")
    endpoint.closed_is_read_only = True
    team.sink.update(change(issue.key, "close", "Over."))
    assert list(endpoint.journal.values()) == [[]] and "it is closed, and the work note is left out" in caplog.text
