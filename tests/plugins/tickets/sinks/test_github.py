"""What is specific to GitHub: permissions, repositories that move, rate-limit headers, labels that people set."""

from __future__ import annotations

import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import TrackerDown
from streamwarden.tickets.sinks.markdown import escaped

from tests.plugins.tickets.endpoints.github import APP_TOKEN, Github
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, issue_draft


@pytest.fixture
def team() -> Team:
    return Team("github", labels=["ops"], assignees=["octocat"])


def endpoint_of(team: Team) -> Github:
    assert isinstance(team.endpoint, Github)
    return team.endpoint


def labels(team: Team, number: int = 1) -> list[str]:
    return [label["name"] for label in endpoint_of(team).issues[number]["labels"]]


def test_labels_and_assignees(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    assert (issue.key, issue.url) == ("acme/ops#1", "https://github.com/acme/ops/issues/1")
    assert labels(team) == ["streamwarden", "critical", "ops"]
    assert endpoint_of(team).issues[1]["assignees"] == [{"login": "octocat"}]
    endpoint_of(team).issues[1]["labels"].append({"name": "theirs"})
    team.sink.update(change(issue.key, "comment", "Less."))
    assert labels(team) == ["ops", "streamwarden", "theirs", "warning"], "labels that people added are kept"


@pytest.mark.parametrize(("is_wont_fix", "message"), [(False, "completed"), (True, "not_planned")])
def test_it_is_closed_as_completed_or_not_planned(team: Team, is_wont_fix: bool, message: str) -> None:
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "close", "Over.", is_wont_fix=is_wont_fix))
    assert endpoint_of(team).issues[1]["state_reason"] == message


def test_a_transferred_issue_is_followed(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint = endpoint_of(team)
    endpoint.issues[2] = endpoint.issues.pop(1) | {"number": 2, "url": f"{endpoint.api}/repos/acme/ops/issues/2"}
    endpoint.comments[2] = []
    for path in ("", "/comments"):
        old, new = (f"/repos/acme/ops/issues/{number}{path}" for number in (1, 2))
        endpoint.moved[old] = f"{endpoint.api}{new}"
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.key == "acme/ops#2"
    team.sink.update(change(issue.key, "close", "Over."))
    assert endpoint.issues[2]["state"] == "closed" and len(endpoint.comments[2]) == 1


def test_a_renamed_repository_still_works_and_is_logged(team: Team, caplog: pytest.LogCaptureFixture) -> None:
    endpoint = endpoint_of(team)
    endpoint.repository = "acme/operations"
    for path in ("", "/issues"):
        endpoint.moved[f"/repos/acme/ops{path}"] = f"{endpoint.api}/repos/acme/operations{path}"
    assert team.sink.create(issue_draft()).key == "acme/operations#1"
    assert "tickets.trackers.team: /repos/acme/ops has moved to /repos/acme/operations" in caplog.text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"repository": "acme/other"}, "no repository acme/ops, or the token has no access to it"),
        ({"archived": True}, "is archived: issues cannot be filed"),
        ({"has_issues": False}, "has issues disabled"),
        ({"role": "none"}, "the token may not label issues there: give it Issues: read and write"),
    ],
)
def test_a_missing_permission_is_reported_before_anything_is_filed(
    team: Team, values: dict[str, object], message: str
) -> None:
    for key, value in values.items():
        setattr(team.endpoint, key, value)
    for act in (team.sink.check, lambda: team.sink.create(issue_draft())):
        with pytest.raises(TrackerDown, match=message):
            act()
    assert team.endpoint.tickets() == []


def test_an_app_token_without_a_role_can_file() -> None:
    team = Team("github", password=APP_TOKEN)
    endpoint_of(team).role = "none"
    assert team.sink.check()
    team.sink.create(issue_draft())
    assert labels(team) == ["streamwarden", "critical"]


def test_a_server_that_lists_no_permissions_is_tried(team: Team) -> None:
    endpoint_of(team).lists_permissions = False
    assert team.sink.check()
    team.sink.create(issue_draft())
    assert labels(team) == ["streamwarden", "critical", "ops"]


def test_issues_of_a_repository_without_access_do_not_count_as_deleted(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).repository = "acme/private"
    with pytest.raises(TrackerDown, match="the token has no access to it"):
        team.sink.look(issue.key, FINGERPRINT)


def test_the_error_for_an_unknown_assignee_is_that_of_github() -> None:
    with pytest.raises(StreamwardenError, match=r"POST /repos/acme/ops/issues: Validation Failed; .*field: assignees"):
        Team("github", assignees=["nobody"]).sink.create(issue_draft())


def test_many_issues_and_comments_are_read_to_the_end(team: Team) -> None:
    first = team.sink.create(issue_draft())
    for number in range(230):
        team.sink.create(issue_draft(fingerprint=f"{number:064x}"))
        team.sink.update(change(first.key, "comment", "More.", f"n{number}"))
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == first.key
    assert team.sink.has(change(first.key, "comment", "More.", "n229"))
    assert not team.sink.has(change(first.key, "comment", "More.", "n230"))


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("a_b *c* <d> [e](f)", r"a\_b \*c\* \<d\> \[e\](f)"),
        ("@all #1 !2", "@\u2060all #\u20601 !\u20602"),
        ("/close it", r"\/close it"),
        ("1. x", r"1\. x"),
        ("- x", r"\- x"),
        ("4.0 GiB, 5 %", r"4.0 GiB, 5 \%"),
        ("&lt; \\", r"\&lt; \\"),
        ("10.0.0.1:8778:x: 07:40:00", "10.0.0.1:\u20608778:\u2060x: 07:\u206040:00"),
    ],
)
def test_text_is_escaped(text: str, markup: str) -> None:
    assert escaped(text) == markup
