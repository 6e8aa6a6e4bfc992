"""What is specific to PagerDuty: events, dedup keys, severities, notes, and responses by its REST API."""

from __future__ import annotations

from datetime import timedelta

import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import TrackerDown

from tests.plugins.tickets.endpoints.pagerduty import PagerDuty
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, issue_draft


def endpoint_of(team: Team) -> PagerDuty:
    assert isinstance(team.endpoint, PagerDuty)
    return team.endpoint


def test_an_event_has_summary_severity_links_and_images() -> None:
    team = Team("pagerduty_events", image_url="https://plots.acme.example/{fingerprint}.png")
    team.sink.create(issue_draft())
    (event,) = endpoint_of(team).events
    assert event["dedup_key"] == f"streamwarden-{FINGERPRINT}"
    assert (event["payload"]["summary"], event["payload"]["source"]) == ("Disk is slow: vol-1", "vol-1")
    assert (event["payload"]["severity"], event["payload"]["class"]) == ("critical", "rule")
    assert event["links"] == [{"href": "https://air/streamwarden/findings/ab", "text": "Chart, history, detector, SQL"}]
    assert event["images"][0]["src"] == f"https://plots.acme.example/{FINGERPRINT}.png"


def test_a_lower_severity_is_an_event_without_text_and_a_note() -> None:
    team = Team("pagerduty")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "comment", "Severity changed."))
    assert endpoint_of(team).severities[issue.key] == ["critical", "warning"]
    assert len(endpoint_of(team).incidents) == 1


def test_a_comment_does_not_trigger_a_resolved_incident_again() -> None:
    team = Team("pagerduty")
    issue = team.sink.create(issue_draft())
    endpoint_of(team).answer(issue.key, "closed")
    team.sink.update(change(issue.key, "comment", "More."))
    assert [incident["status"] for incident in endpoint_of(team).incidents] == ["resolved"]
    assert len(endpoint_of(team).log[issue.key]) == 2


def test_a_reopened_ticket_is_a_new_incident_with_the_same_key() -> None:
    team = Team("pagerduty")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "close", "Over.", "m1"))
    back = change(issue.key, "reopen", "It is back.", "m2")
    assert not team.sink.has(back)
    team.sink.update(back)
    assert team.sink.has(back)
    assert [incident["status"] for incident in endpoint_of(team).incidents] == ["resolved", "triggered"]


def test_an_incident_that_does_not_exist_yet_does_not_count_as_gone() -> None:
    team = Team("pagerduty")
    endpoint_of(team).lag = timedelta(minutes=2)
    issue = team.sink.create(issue_draft())
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.state is None
    with pytest.raises(StreamwardenError, match="the incident does not exist yet; the next run delivers it"):
        team.sink.update(change(issue.key, "comment", "More."))
    assert len(endpoint_of(team).events) == 1


def notes_of(team: Team, number: int) -> int:
    """Number of notes of the incident with this number."""
    return endpoint_of(team).noted.count(endpoint_of(team).incidents[number - 1]["id"])


@pytest.mark.parametrize("action", ["close", "comment"])
@pytest.mark.parametrize("is_other_run", [False, True])
@pytest.mark.parametrize("start", ["reopen", "create"])
def test_a_change_right_after_a_start_waits_for_the_new_incident(start: str, is_other_run: bool, action: str) -> None:
    team = Team("pagerduty")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "close", "Over.", "m1"))
    endpoint, before = endpoint_of(team), notes_of(team, 1)
    team.clock.now += timedelta(hours=1)
    endpoint.lag = timedelta(minutes=2)
    if start == "reopen":
        team.sink.update(change(issue.key, "reopen", "It is back.", "m2"))
    else:
        team.sink.find(FINGERPRINT)
        team.sink.create(issue_draft())
    sink = team.through() if is_other_run else team.sink
    next_change = change(issue.key, action, "Over again.", "m3", is_open=action != "close", is_start_new=is_other_run)
    with pytest.raises(StreamwardenError, match="the incident does not exist yet; the next run delivers it"):
        sink.update(next_change)
    assert notes_of(team, 1) == before and endpoint.incidents[1]["status"] == "triggered"
    team.clock.now += timedelta(minutes=3)
    sink.update(next_change)
    assert (notes_of(team, 1), notes_of(team, 2)) == (before, 1)
    assert endpoint.incidents[1]["status"] == ("resolved" if action == "close" else "triggered")


def test_a_read_only_key_does_not_block_changes(caplog: pytest.LogCaptureFixture) -> None:
    team = Team("pagerduty")
    issue = team.sink.create(issue_draft())
    endpoint_of(team).takes_notes = False
    team.sink.update(change(issue.key, "comment", "More.", "m1"))
    team.sink.update(change(issue.key, "close", "Over.", "m2"))
    assert [incident["status"] for incident in endpoint_of(team).incidents] == ["resolved"]
    assert "Access Denied (HTTP 403): the note is left out" in caplog.text


def test_wrong_keys_are_named() -> None:
    with pytest.raises(TrackerDown, match=r"rejects the credentials \(HTTP 401\)"):
        Team("pagerduty", api_token="wrong").sink.check()
    with pytest.raises(StreamwardenError, match=r"Event object is invalid; Invalid routing key \(HTTP 400\)|HTTP 400"):
        Team("pagerduty_events", password="x" * 32).sink.create(issue_draft())
