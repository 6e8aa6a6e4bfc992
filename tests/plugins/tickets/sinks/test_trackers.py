"""What all trackers do alike, against their endpoints: file, find, change, hear, refuse in one line, keep secrets."""

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
from tests.plugins.tickets.story import hour

NASTY = "<b>*x*</b> [a](http://e.vil) @everyone <!channel> #1 {code} `y` |\n/close\n-- \x1b[31m"
PRINT = "ab" * 32


def finding(name: str = "vol-1", **said: Any) -> Finding:
    resource = Resource("volume", {"account": "1", "region": "r", "volume_id": name}, name, "storage", "orders")
    given = {"metrics": {"heap_max_bytes": 2**32, "rate_percent": 5}, "key_metrics": ("heap_max_bytes", "rate_percent")}
    given |= {
        "message": "It is bad.",
        "actions": ("Make it larger.",),
        "commands": ("aws ec2 modify-volume --volume-id vol-1",),
    }
    return Finding("rule", resource, "bad", "firing", "critical", **(given | said))


def notification(note: str = "", found: Finding | None = None) -> Notification:
    related = (Related("Possible cause", "Disk is slow: vol-0", "open", "https://t/1"),) if found else ()
    since = hour(0) if found else None
    return Notification(note, hour(0), found, since, url="https://air/streamwarden/findings/ab", related=related)


def issue_draft(
    title: str = "Disk is slow: vol-1", said: Notification | None = None, fingerprint: str = PRINT
) -> IssueDraft:
    return IssueDraft(
        fingerprint, "rule", "vol-1", title, "critical", said or notification(found=finding()), b"\x89PNG\r\n"
    )


def change(key: str, action: str, note: str, marker: str = "m1", **more: Any) -> Update:
    return Update(key, PRINT, f"{PRINT[:32]}.{marker}", action, "T", "warning", notification(note), **more)  # type: ignore[arg-type]


class Team:
    """A sink and its endpoint."""

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


def test_a_ticket_is_filed_found_changed_closed_and_opened(team: Team) -> None:
    sink = team.sink
    assert sink.check()
    assert sink.find(PRINT) is None
    issue = sink.create(issue_draft())
    (told,) = team.endpoint.tickets()
    assert (told.fingerprint, told.is_open) == (PRINT, True)
    text = told.said[0]
    plain = re.sub(r"\\(.)", r"\1", text)
    for expected in ("It is bad.", "Firing since", "Owner: storage", "Make it larger.", "--volume-id vol-1",
                     "4.0 GiB", "findings/ab"):  # fmt: skip
        assert expected in plain, expected
    for number, action in enumerate(("comment", "close", "reopen")):
        sink.update(change(issue.key, action, f"Said {number}.", f"m{number}"))
        assert team.endpoint.tickets()[0].is_open == (action != "close")
    notes = [found for said in team.endpoint.tickets()[0].said for found in re.findall(r"Said \d", said)]
    assert notes == ["Said 0", *(["Said 1"] if team.endpoint.tells_all else []), "Said 2"]


def test_what_it_has_it_says_and_nothing_else(team: Team) -> None:
    if not team.sink.remembers:
        pytest.skip("takes the same thing twice as once instead")
    issue = team.sink.create(issue_draft())
    done = change(issue.key, "comment", "Said.")
    assert not team.sink.has(done)
    team.sink.update(done)
    assert team.sink.has(done)
    assert not team.sink.has(change(issue.key, "comment", "Said.", "m2"))
    found = team.sink.find(PRINT)
    assert found is not None and found.key == issue.key
    assert team.sink.find("cd" * 32) is None
    seen = team.sink.look(issue.key, PRINT)
    assert seen is not None and (seen.key, seen.state in ("open", None)) == (issue.key, True)


def test_a_second_ticket_of_a_finding_is_another_one(team: Team) -> None:
    if not team.sink.remembers:
        pytest.skip("cannot be asked")
    first = team.sink.create(issue_draft())
    team.sink.update(change(first.key, "close", "Over."))
    team.clock.pause(60)
    again = team.sink.create(issue_draft())
    found = team.sink.find(PRINT)
    assert found is not None and found.key == again.key
    assert team.endpoint.tickets()[-1].is_open


@pytest.mark.parametrize("state", ["acknowledged", "snoozed", "closed", "wont_fix"])
def test_people_are_heard(team: Team, state: str) -> None:
    if state not in team.endpoint.people_say:
        pytest.skip("people can't say so there")
    issue = team.sink.create(issue_draft())
    team.endpoint.answer(issue.key, state)
    seen = team.sink.look(issue.key, PRINT)
    assert seen is not None and seen.state == state
    if state == "snoozed":
        team.sink.update(change(issue.key, "reopen", "The snooze has ended."))
        seen = team.sink.look(issue.key, PRINT)
        assert seen is not None and seen.state == "open"


@pytest.mark.parametrize("state", ["acknowledged", "snoozed"])
def test_what_people_answered_elsewhere_is_said_and_shown(team: Team, state: str) -> None:
    issue = team.sink.create(issue_draft())
    told = change(issue.key, "comment", "Said by Vera.", answer=state)
    for _ in range(2):  # the second time as if its answer had been lost
        if not team.sink.has(told):
            team.sink.update(told)
    assert any("Said by Vera." in text for text in team.endpoint.tickets()[0].said)
    seen = team.sink.look(issue.key, PRINT)
    if team.sink.remembers:
        assert seen is not None and seen.state in ((state,) if state in team.endpoint.shows else ("open", None))
    team.sink.update(change(issue.key, "close", "Over.", "m2"))
    assert not team.endpoint.tickets()[0].is_open


def test_what_was_deleted_is_gone(team: Team) -> None:
    if not team.endpoint.can_delete:
        pytest.skip("nothing can be deleted there")
    issue = team.sink.create(issue_draft())
    team.endpoint.delete(issue.key)
    assert team.sink.look(issue.key, PRINT) is None
    with pytest.raises(IssueGone):
        team.sink.update(change(issue.key, "comment", "More."))
    with pytest.raises(IssueGone):
        team.sink.has(change(issue.key, "comment", "More."))


def test_somebody_elses_issue_is_not_touched(team: Team) -> None:
    if not team.sink.remembers:
        pytest.skip("cannot be asked")
    other = team.sink.create(issue_draft(fingerprint="cd" * 32))
    assert team.sink.look(other.key, PRINT) is None
    before = team.endpoint.tickets()
    with pytest.raises(IssueGone):
        team.sink.update(change(other.key, "close", "Over."))
    assert team.endpoint.tickets() == before


def edited(endpoint: Any) -> None:
    """People clear all that they can edit: labels, the text, the id of another system."""
    for kept in (endpoint.issues if hasattr(endpoint, "issues") else endpoint.incidents).values():
        issue = kept.get("fields", kept)
        text = issue.get("body") or issue.get("description")
        nothing = "Reworded." if isinstance(text, str) else {"version": 1, "type": "doc", "content": []}
        for key, value in {"labels": [], "body": nothing, "description": nothing, "correlation_id": ""}.items():
            if key in issue:
                issue[key] = value


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira", "jira_data_center", "servicenow"])
def test_a_ticket_is_known_by_its_key_whatever_people_edit(kind: str) -> None:
    team = Team(kind)
    issue = team.sink.create(issue_draft())
    edited(team.endpoint)
    seen = team.sink.look(issue.key, PRINT)
    assert seen is not None and seen.key == issue.key
    team.sink.update(change(issue.key, "close", "Over."))
    (told,) = team.endpoint.tickets()
    assert not told.is_open and "Over." in told.said[-1]


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira", "jira_data_center"])
def test_a_comment_that_is_refused_holds_nothing_up(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    team = Team(kind)
    issue = team.sink.create(issue_draft())
    locked: set[Any] = team.endpoint.locked  # type: ignore[attr-defined]
    locked.add(issue.key if kind.startswith("jira") else 1)
    team.sink.update(change(issue.key, "comment", "More."))
    team.sink.update(change(issue.key, "close", "Over.", "m2"))
    (told,) = team.endpoint.tickets()
    assert (told.is_open, len(told.said)) == (False, 1)
    assert f"{issue.key}: " in caplog.text and "is left out" in caplog.text
    locked.clear()
    team.sink.update(change(issue.key, "reopen", "It is back.", "m3"))
    assert "It is back." in team.endpoint.tickets()[0].said[-1]


def test_a_text_that_is_too_long_is_cut_and_says_so(team: Team) -> None:
    storm = "Many.\n\n" + "\n".join(f"- {number} {'x' * 300}" for number in range(5000))
    issue = team.sink.create(issue_draft(said=notification(storm)))
    team.sink.update(change(issue.key, "comment", "One line of " + "words " * 200_000))
    (told,) = team.endpoint.tickets()
    for text in told.said[:2]:
        assert "findings/ab" in text, "the way to the page is never cut"
    assert "Truncated: the limit of this tracker is reached" in "".join(told.said).replace("\\", "")


def test_a_long_title_is_cut(team: Team) -> None:
    team.sink.create(issue_draft(title="Ä" * 2000))
    assert len(team.endpoint.tickets()) == 1


def test_nothing_from_outside_is_markup(team: Team) -> None:
    found = finding(
        NASTY, message=f"It is {NASTY}", actions=(NASTY,), commands=(NASTY,), metrics={"n": NASTY}, key_metrics=("n",)
    )
    said = notification(f"Note {NASTY}", found)
    team.sink.create(issue_draft(title=clean(NASTY), said=said))
    (told,) = team.endpoint.tickets()
    text = "\n".join(told.said)
    assert "\x1b" not in text
    if team.endpoint.has_quick_actions:
        assert not re.search("^/close", text, flags=re.MULTILINE)
    if team.endpoint.has_calls:
        assert "<!channel>" not in text.partition("```")[0] and "@everyone" not in text.partition("```")[0]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_are_not_carried_to_another_host(team: Team, status: int) -> None:
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


def test_wrong_credentials_are_one_line_without_them(team: Team) -> None:
    sink = opened(team.settings.model_copy(update={"password": "hunter2-wrong"}), team.endpoint, team.clock)
    with pytest.raises(StreamwardenError) as told:
        sink.create(issue_draft())
    assert "hunter2" not in str(told.value) and "\n" not in str(told.value)
    assert not isinstance(told.value, Unsure)


def test_a_tracker_that_is_busy_is_waited_for_but_not_for_ever(team: Team) -> None:
    team.through("busy", "busy", "fine", "busy").create(issue_draft())
    assert len(team.endpoint.tickets()) == 1
    waits = httpx.MockTransport(lambda request: httpx.Response(429, headers={"Retry-After": "3600"}))
    before = team.clock.now
    with pytest.raises(TrackerDown, match="rate limit exceeded: the tracker requests a wait of 1 h"):
        opened(team.settings, waits, team.clock).create(issue_draft())
    assert team.clock.now == before


def test_a_tracker_that_is_away_is_told_in_one_line(team: Team) -> None:
    with pytest.raises(TrackerDown, match="the tracker does not respond: connection refused"):
        team.through(*["no connection"] * 20).create(issue_draft())
    assert team.endpoint.tickets() == []


def test_its_settings_show_no_secret(team: Team) -> None:
    assert "s3cr3t" not in repr(team.settings) and "s3cr3t" not in str(vars(team.sink).get("_settings", ""))
