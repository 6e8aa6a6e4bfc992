"""What every sink does, against its endpoint: file, find, update, read responses, report errors, keep secrets."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.finding import Finding
from streamwarden.detectors.resources import Resource
from streamwarden.rendering.readable import clean
from streamwarden.tickets.sinks.contract import (
    IssueDraft,
    IssueGone,
    Notification,
    Related,
    Sink,
    TrackerDown,
    Unsure,
    Update,
)

from tests.plugins.tickets.endpoints.endpoint import Clock, Endpoint, Faulty
from tests.plugins.tickets.endpoints.kinds import KINDS, opened
from tests.plugins.tickets.scenario import hour

NASTY = "<b>*x*</b> [a](http://e.vil) @everyone <!channel> #1 {code} `y` |\n/close\n-- \x1b[31m"
FINGERPRINT = "ab" * 32


def finding(name: str = "vol-1", **fields: Any) -> Finding:
    resource = Resource("volume", {"account": "1", "region": "r", "volume_id": name}, name, "storage", "orders")
    given = {"metrics": {"heap_max_bytes": 2**32, "rate_percent": 5}, "key_metrics": ("heap_max_bytes", "rate_percent")}
    given |= {
        "message": "It is bad.",
        "actions": ("Make it larger.",),
        "commands": ("aws ec2 modify-volume --volume-id vol-1",),
    }
    return Finding("rule", resource, "bad", "firing", "critical", **(given | fields))


def notification(note: str = "", found: Finding | None = None) -> Notification:
    related = (Related("Possible cause", "Disk is slow: vol-0", "open", "https://t/1"),) if found else ()
    since = hour(0) if found else None
    return Notification(note, hour(0), found, since, url="https://air/streamwarden/findings/ab", related=related)


def issue_draft(
    title: str = "Disk is slow: vol-1", text: Notification | None = None, fingerprint: str = FINGERPRINT
) -> IssueDraft:
    return IssueDraft(
        fingerprint, "rule", "vol-1", title, "critical", text or notification(found=finding()), b"\x89PNG\r\n",
        "volume:1/r/vol-1", "storage",
    )  # fmt: skip


def change(key: str, action: str, note: str, marker: str = "m1", **more: Any) -> Update:
    subject = {"detector": "rule", "resource_name": "vol-1", "resource": "volume:1/r/vol-1", "owner": "storage"}
    values: dict[str, Any] = {"title": "T", "severity": "warning", "action": action, **subject, **more}
    return Update(key, FINGERPRINT, f"{FINGERPRINT[:32]}.{marker}", notification=notification(note), **values)


class Team:
    """A sink, its endpoint, and their clock."""

    def __init__(self, kind: str, **settings: Any) -> None:
        endpoint_class, tracker = KINDS[kind]
        self.clock = Clock()
        self.endpoint: Endpoint = endpoint_class(self.clock)
        self.settings = tracker.model_copy(update=settings)
        self.sink: Sink = opened(self.settings, self.endpoint, self.clock)

    def through(self, *faults: str) -> Sink:
        return opened(self.settings, Faulty(self.endpoint, iter(faults), self.clock), self.clock)


@pytest.fixture(params=KINDS)
def team(request: pytest.FixtureRequest) -> Team:
    return Team(request.param)


def test_a_ticket_is_filed_found_updated_closed_and_reopened(team: Team) -> None:
    sink = team.sink
    assert sink.check()
    assert sink.find(FINGERPRINT) is None
    issue = sink.create(issue_draft())
    (ticket,) = team.endpoint.tickets()
    assert (ticket.fingerprint, ticket.is_open) == (FINGERPRINT, True)
    text = ticket.texts[0]
    plain = re.sub(r"\\(.)", r"\1", text)
    for expected in ("It is bad.", "Firing since", "Owner: storage", "Make it larger.", "--volume-id vol-1",
                     "4.0 GiB", "findings/ab"):  # fmt: skip
        assert expected in plain, expected
    for number, action in enumerate(("comment", "close", "reopen")):
        sink.update(change(issue.key, action, f"Said {number}.", f"m{number}"))
        assert team.endpoint.tickets()[0].is_open == (action != "close")
    notes = [found for text in team.endpoint.tickets()[0].texts for found in re.findall(r"Said \d", text)]
    assert notes == ["Said 0", *(["Said 1"] if team.endpoint.keeps_all_notes else []), "Said 2"]


def test_delivered_changes_and_issues_are_found_and_others_are_not(team: Team) -> None:
    if not team.sink.remembers:
        pytest.skip("accepts the same request twice as one instead")
    issue = team.sink.create(issue_draft())
    done = change(issue.key, "comment", "Said.")
    assert not team.sink.has(done)
    team.sink.update(done)
    assert team.sink.has(done)
    assert not team.sink.has(change(issue.key, "comment", "Said.", "m2"))
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == issue.key
    assert team.sink.find("cd" * 32) is None
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and (seen.key, seen.state in ("open", None)) == (issue.key, True)


def test_a_second_ticket_of_a_finding_is_another_one(team: Team) -> None:
    if not team.sink.remembers:
        pytest.skip("cannot be queried")
    first = team.sink.create(issue_draft())
    team.sink.update(change(first.key, "close", "Over."))
    team.clock.pause(60)
    again = team.sink.create(issue_draft())
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == again.key
    assert team.endpoint.tickets()[-1].is_open


@pytest.mark.parametrize("state", ["acknowledged", "snoozed", "closed", "wont_fix"])
def test_responses_in_the_tracker_are_read(team: Team, state: str) -> None:
    if state not in team.endpoint.supported_responses:
        pytest.skip("people cannot respond so there")
    issue = team.sink.create(issue_draft())
    team.endpoint.answer(issue.key, state)
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.state == state
    if state == "snoozed":
        team.sink.update(change(issue.key, "reopen", "The snooze has ended."))
        seen = team.sink.look(issue.key, FINGERPRINT)
        assert seen is not None and seen.state == "open"


@pytest.mark.parametrize("state", ["acknowledged", "snoozed"])
def test_a_response_given_elsewhere_is_posted_and_displayed(team: Team, state: str) -> None:
    issue = team.sink.create(issue_draft())
    response = change(issue.key, "comment", "Said by Vera.", answer=state)
    for _ in range(2):  # the second time as if the response to the first had been lost
        if not team.sink.has(response):
            team.sink.update(response)
    assert any("Said by Vera." in text for text in team.endpoint.tickets()[0].texts)
    seen = team.sink.look(issue.key, FINGERPRINT)
    if team.sink.remembers:
        assert seen is not None and seen.state in (
            (state,) if state in team.endpoint.displayed_states else ("open", None)
        )
    team.sink.update(change(issue.key, "close", "Over.", "m2"))
    assert not team.endpoint.tickets()[0].is_open


def test_a_deleted_issue_is_reported_as_gone(team: Team) -> None:
    if not team.endpoint.can_delete:
        pytest.skip("nothing can be deleted there")
    issue = team.sink.create(issue_draft())
    team.endpoint.delete(issue.key)
    assert team.sink.look(issue.key, FINGERPRINT) is None
    with pytest.raises(IssueGone):
        team.sink.update(change(issue.key, "comment", "More."))
    with pytest.raises(IssueGone):
        team.sink.has(change(issue.key, "comment", "More."))


def test_the_issue_of_another_finding_is_not_updated(team: Team) -> None:
    if not team.sink.remembers:
        pytest.skip("cannot be queried")
    other = team.sink.create(issue_draft(fingerprint="cd" * 32))
    assert team.sink.look(other.key, FINGERPRINT) is None
    before = team.endpoint.tickets()
    with pytest.raises(IssueGone):
        team.sink.update(change(other.key, "close", "Over."))
    assert team.endpoint.tickets() == before


def edited(endpoint: Any) -> None:
    """People clear every field that they can edit: labels, the text, the correlation id."""
    for kept in (endpoint.issues if hasattr(endpoint, "issues") else endpoint.incidents).values():
        issue = kept.get("fields", kept)
        text = issue.get("body") or issue.get("description")
        nothing = "Reworded." if isinstance(text, str) else {"version": 1, "type": "doc", "content": []}
        for key, value in {"labels": [], "body": nothing, "description": nothing, "correlation_id": ""}.items():
            if key in issue:
                issue[key] = value


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira", "jira_data_center", "servicenow"])
def test_a_ticket_is_found_by_its_key_after_people_edited_it(kind: str) -> None:
    team = Team(kind)
    issue = team.sink.create(issue_draft())
    edited(team.endpoint)
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.key == issue.key
    team.sink.update(change(issue.key, "close", "Over."))
    (ticket,) = team.endpoint.tickets()
    assert not ticket.is_open and "Over." in ticket.texts[-1]


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira", "jira_data_center"])
def test_a_refused_comment_does_not_block_later_changes(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    team = Team(kind)
    issue = team.sink.create(issue_draft())
    locked: set[Any] = team.endpoint.locked  # type: ignore[attr-defined]
    locked.add(issue.key if kind.startswith("jira") else 1)
    team.sink.update(change(issue.key, "comment", "More."))
    team.sink.update(change(issue.key, "close", "Over.", "m2"))
    (ticket,) = team.endpoint.tickets()
    assert (ticket.is_open, len(ticket.texts)) == (False, 1)
    assert f"{issue.key}: " in caplog.text and "is left out" in caplog.text
    locked.clear()
    team.sink.update(change(issue.key, "reopen", "It is back.", "m3"))
    assert "It is back." in team.endpoint.tickets()[0].texts[-1]


def test_a_text_over_the_limit_is_truncated_with_a_notice(team: Team) -> None:
    storm = "Many.\n\n" + "\n".join(f"- {number} {'x' * 300}" for number in range(5000))
    issue = team.sink.create(issue_draft(text=notification(storm)))
    team.sink.update(change(issue.key, "comment", "One line of " + "words " * 200_000))
    (ticket,) = team.endpoint.tickets()
    for text in ticket.texts[:2]:
        assert "findings/ab" in text, "the link to the page is never truncated"
    assert "Truncated: the limit of this tracker is reached" in "".join(ticket.texts).replace("\\", "")


def test_a_long_title_is_truncated(team: Team) -> None:
    team.sink.create(issue_draft(title="Ä" * 2000))
    assert len(team.endpoint.tickets()) == 1


def test_names_and_texts_from_outside_are_escaped(team: Team) -> None:
    found = finding(
        NASTY, message=f"It is {NASTY}", actions=(NASTY,), commands=(NASTY,), metrics={"n": NASTY}, key_metrics=("n",)
    )
    team.sink.create(issue_draft(title=clean(NASTY), text=notification(f"Note {NASTY}", found)))
    (ticket,) = team.endpoint.tickets()
    text = "\n".join(ticket.texts)
    assert "\x1b" not in text
    if team.endpoint.has_quick_actions:
        assert not re.search("^/close", text, flags=re.MULTILINE)
    if team.endpoint.has_mentions:
        assert "<!channel>" not in text.partition("```")[0] and "@everyone" not in text.partition("```")[0]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_are_not_sent_to_another_host(team: Team, status: int) -> None:
    asked = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(status, headers={"Location": "https://user:pw@e.vil/take"})

    sink = opened(team.settings, httpx.MockTransport(elsewhere), team.clock)
    with pytest.raises(
        TrackerDown, match=r"redirects to https://e\.vil\. Credentials are not sent to another host: check `url`"
    ):
        sink.create(issue_draft())
    assert "e.vil" not in asked


def test_the_error_for_wrong_credentials_is_one_line_without_them(team: Team) -> None:
    sink = opened(team.settings.model_copy(update={"password": "hunter2-wrong"}), team.endpoint, team.clock)
    with pytest.raises(StreamwardenError) as error:
        sink.create(issue_draft())
    assert "hunter2" not in str(error.value) and "\n" not in str(error.value)
    assert not isinstance(error.value, Unsure)


def test_a_rate_limit_is_waited_for_up_to_a_limit(team: Team) -> None:
    team.through("busy", "busy", "fine", "busy").create(issue_draft())
    assert len(team.endpoint.tickets()) == 1
    waits = httpx.MockTransport(lambda request: httpx.Response(429, headers={"Retry-After": "3600"}))
    before = team.clock.now
    with pytest.raises(TrackerDown, match="rate limit exceeded: the tracker requests a wait of 1 h"):
        opened(team.settings, waits, team.clock).create(issue_draft())
    assert team.clock.now == before


def test_an_unreachable_tracker_is_reported_in_one_line(team: Team) -> None:
    with pytest.raises(TrackerDown, match="the tracker does not respond: connection refused"):
        team.through(*["no connection"] * 20).create(issue_draft())
    assert team.endpoint.tickets() == []


def test_settings_and_sink_show_no_secret(team: Team) -> None:
    assert "s3cr3t" not in repr(team.settings) and "s3cr3t" not in str(vars(team.sink).get("_settings", ""))
