"""What is specific to GitLab: permissions, labels, uploads, issues that move."""

from __future__ import annotations

import pytest
from streamwarden.tickets.sinks.contract import TrackerDown

from tests.plugins.tickets.endpoints.gitlab import Gitlab
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, issue_draft


@pytest.fixture
def team() -> Team:
    return Team("gitlab", labels=["kafka"])


def endpoint_of(team: Team) -> Gitlab:
    assert isinstance(team.endpoint, Gitlab)
    return team.endpoint


def test_labels_and_the_plot(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    filed = endpoint_of(team).issues[1]
    assert (issue.key, issue.url) == ("1", "https://gitlab.com/acme/ops/-/issues/1")
    assert filed["labels"] == ["streamwarden", "critical", "kafka"]
    assert "![plot](/uploads/1/plot.png)" in filed["description"]
    filed["labels"].append("theirs")
    team.sink.update(change(issue.key, "close", "No.", is_wont_fix=True))
    assert sorted(filed["labels"]) == ["kafka", "streamwarden", "theirs", "warning", "wont-fix"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"project": "acme/other"}, "no project acme/ops, or the token has no access to it"),
        ({"archived": True}, "is archived"),
        ({"role": 10}, "the token's role is below Reporter"),
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


@pytest.mark.parametrize(
    "values",
    [
        {"shown": False, "role": 20},
        {"shown": False, "role": 40},
        {"role": 15},
        {"role": 0, "is_admin": True},
        {"role": 10, "is_admin": True},
        {"shown": False, "scopes": frozenset()},
        {"shown": False, "scopes": frozenset({"user"})},
    ],
)
def test_a_token_that_may_set_labels_can_file(team: Team, values: dict[str, object]) -> None:
    for key, value in values.items():
        setattr(team.endpoint, key, value)
    assert "may be filed" in team.sink.check()
    team.sink.create(issue_draft())
    assert endpoint_of(team).issues[1]["labels"] == ["streamwarden", "critical", "kafka"]


def test_a_token_that_may_not_read_its_role_files_and_is_warned_if_labels_are_dropped(
    team: Team, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = endpoint_of(team)
    endpoint.shown, endpoint.scopes, endpoint.role = False, frozenset(), 10
    issue = team.sink.create(issue_draft())
    assert "GitLab dropped the labels" in caplog.text
    assert team.sink.look(issue.key, FINGERPRINT) == issue  # by its key


def test_a_role_below_reporter_through_an_invited_group_is_reported(team: Team) -> None:
    endpoint_of(team).shown, endpoint_of(team).role = False, 10
    with pytest.raises(TrackerDown, match="the token's role is below Reporter"):
        team.sink.create(issue_draft())


def test_a_foreign_issue_with_the_same_number_is_not_updated(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).issues[1] |= {"description": "Coffee is out.", "labels": [], "author": {"id": 1}}
    assert team.sink.look(issue.key, FINGERPRINT) is None


def test_an_issue_that_moved_to_another_project_does_not_count_as_closed(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).issues[1] |= {"state": "closed", "moved_to_id": 77}
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.state is None


def test_many_issues_and_notes_are_read_to_the_end(team: Team) -> None:
    first = team.sink.create(issue_draft())
    for number in range(130):
        team.sink.create(issue_draft(fingerprint=f"{number:064x}"))
        team.sink.update(change(first.key, "comment", "More.", f"n{number}"))
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == first.key
    assert team.sink.has(change(first.key, "comment", "More.", "n0"))
