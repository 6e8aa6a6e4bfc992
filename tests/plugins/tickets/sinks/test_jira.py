"""What is specific to Jira: permissions, fields, transitions, resolutions, moved projects and issues, markup."""

from __future__ import annotations

import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import TrackerDown
from streamwarden.tickets.sinks.jira_markup import adf, wiki

from tests.plugins.tickets.endpoints.jira import Jira
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, finding, issue_draft, notification


def endpoint_of(team: Team) -> Jira:
    assert isinstance(team.endpoint, Jira)
    return team.endpoint


@pytest.fixture(params=["jira", "jira_data_center"])
def team(request: pytest.FixtureRequest) -> Team:
    return Team(request.param)


def test_fields_labels_priority_and_the_plot(team: Team) -> None:
    team = Team(
        "jira", labels=["kafka"], fields={"customfield_10050": "x"}, priorities={"critical": "Highest"},
        fingerprint_field="customfield_10042",
    )  # fmt: skip
    issue = team.sink.create(issue_draft())
    fields = endpoint_of(team).issues["OPS-1"]["fields"]
    assert issue.url == "https://acme.atlassian.net/browse/OPS-1"
    assert fields["labels"] == ["streamwarden", "critical", f"streamwarden-{FINGERPRINT[:32]}", "kafka"]
    assert (fields["priority"], fields["customfield_10050"]) == ({"name": "Highest"}, "x")
    assert fields["customfield_10042"] == FINGERPRINT
    assert len(endpoint_of(team).attachments["OPS-1"]) == 1
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == "OPS-1"


def test_the_error_for_a_field_not_on_the_screen_is_that_of_jira() -> None:
    with pytest.raises(
        StreamwardenError, match=r"issue: customfield_1: Field 'customfield_1' cannot be set.*\(HTTP 400"
    ):
        Team("jira", fields={"customfield_1": "x"}).sink.create(issue_draft())


def test_labels_of_people_stay_and_the_severity_changes(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).issues["OPS-1"]["fields"]["labels"].append("theirs")
    team.sink.update(change(issue.key, "comment", "Less."))
    labels = endpoint_of(team).issues["OPS-1"]["fields"]["labels"]
    assert "theirs" in labels and "warning" in labels and "critical" not in labels


def test_an_issue_is_not_identified_by_its_labels(team: Team) -> None:
    first, second = team.sink.create(issue_draft()), team.sink.create(issue_draft(fingerprint="cd" * 32))
    issues = endpoint_of(team).issues
    issues[first.key]["fields"]["labels"], issues[second.key]["fields"]["labels"] = (
        issues[second.key]["fields"]["labels"], issues[first.key]["fields"]["labels"],
    )  # fmt: skip
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == first.key
    assert team.sink.look(second.key, FINGERPRINT) is None
    issues[first.key]["fields"]["labels"] = []
    found, seen = team.sink.find(FINGERPRINT), team.sink.look(first.key, FINGERPRINT)
    assert found is not None and seen is not None and found.key == seen.key == first.key


def test_an_issue_that_quotes_a_reference_is_another_one(team: Team) -> None:
    first = team.sink.create(issue_draft())
    team.sink.create(
        issue_draft(fingerprint="cd" * 32, text=notification(f"Quoted: Reference: {FINGERPRINT}, see there."))
    )
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == first.key


def test_a_user_without_permission_to_comment_is_an_error_and_no_comment_is_skipped(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).missing_permissions, endpoint_of(team).locked = {"ADD_COMMENTS"}, {"OPS-1"}
    with pytest.raises(StreamwardenError, match="missing permissions: ADD_COMMENTS"):
        team.sink.update(change(issue.key, "comment", "More."))


def test_named_transitions_and_resolutions() -> None:
    team = Team("jira", close_transition="Resolve", resolution="Fixed", wont_fix_resolution="Declined")
    endpoint = endpoint_of(team)
    issue = team.sink.create(issue_draft())
    with pytest.raises(
        StreamwardenError, match=r"no transition 'Resolve' to close it from status 'To Do': name one of"
    ):
        team.sink.update(change(issue.key, "close", "Over."))
    assert endpoint.comments["OPS-1"] == [], "the comment comes last: the next run posts it"
    endpoint.transitions, endpoint.needs_resolution = {"Back": "To Do", "Resolve": "Done"}, True
    team.sink.update(change(issue.key, "close", "Over."))
    assert endpoint.issues["OPS-1"]["fields"]["resolution"] == {"name": "Fixed"}
    team.sink.update(change(issue.key, "reopen", "It is back.", "m2"))
    team.sink.update(change(issue.key, "close", "No.", "m3", is_wont_fix=True))
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.state == "wont_fix"


def test_an_issue_that_a_person_already_closed_is_only_commented(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).answer("OPS-1", "closed")
    endpoint_of(team).transitions = {}
    team.sink.update(change(issue.key, "close", "Healthy again."))
    assert len(endpoint_of(team).comments["OPS-1"]) == 1


def test_a_moved_issue_is_followed(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint = endpoint_of(team)
    for kept in (endpoint.issues, endpoint.comments):
        kept["NET-5"] = kept.pop("OPS-1")  # type: ignore[attr-defined]
    endpoint.issues["NET-5"]["key"] = "NET-5"
    endpoint.moved["OPS-1"] = "NET-5"
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.key == "NET-5"
    team.sink.update(change(issue.key, "close", "Over."))
    assert endpoint.issues["NET-5"]["fields"]["status"] == "Done" and len(endpoint.comments["NET-5"]) == 1


def test_issues_of_a_renamed_project_do_not_count_as_deleted(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint = endpoint_of(team)
    endpoint.project, endpoint.former = "STREAM", {"OPS"}
    with pytest.raises(StreamwardenError, match="project: valid project is required"):
        team.sink.create(issue_draft(fingerprint="cd" * 32))
    seen = team.sink.look(issue.key, FINGERPRINT)
    assert seen is not None and seen.key == "OPS-1"


def test_issues_of_a_project_without_access_do_not_count_as_deleted(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).issues.clear()
    endpoint_of(team).project = "OTHER"
    with pytest.raises(TrackerDown, match="no project OPS, or the user has no access to it"):
        team.sink.look(issue.key, FINGERPRINT)


def test_missing_permissions_are_named(team: Team) -> None:
    endpoint_of(team).missing_permissions = {"ADD_COMMENTS", "TRANSITION_ISSUES"}
    with pytest.raises(StreamwardenError, match=r"missing permissions: ADD_COMMENTS, TRANSITION_ISSUES\.$"):
        team.sink.check()
    with pytest.raises(StreamwardenError, match="project OPS has no issue type 'Incident'; it has Bug, Task"):
        Team("jira", issue_type="Incident").sink.check()


def test_many_comments_are_read_to_the_end(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    for number in range(205):
        team.sink.update(change(issue.key, "comment", "More.", f"n{number}"))
    assert team.sink.has(change(issue.key, "comment", "More.", "n204"))
    assert not team.sink.has(change(issue.key, "comment", "More.", "n205"))


def test_adf_holds_tables_code_and_links() -> None:
    kinds = [node["type"] for node in adf(notification("Note.\n\n- one\n- two", finding()), "m")["content"]]
    assert kinds == [
        "paragraph", "bulletList", "paragraph", "heading", "orderedList", "heading", "codeBlock", "heading", "table",
        "heading", "bulletList", "bulletList", "paragraph",
    ]  # fmt: skip


def test_names_and_texts_are_escaped_in_wiki_markup() -> None:
    text = wiki(notification("[~admin] {code} *b* a-b", finding(commands=("echo {noformat}*",))), "m")
    assert "\\[\\~admin\\] \\{code\\} \\*b\\* a\\-b" in text
    assert "{noformat}\necho { noformat}*\n{noformat}" in text
    assert "||Heap max|4.0 GiB|" in text
    assert "* Possible cause: [Disk is slow: vol\\-0|https://t/1] (open)" in text
    assert text.endswith("\n\nReference: m")


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        (r"CORP\svc-reader", r"CORP&#92;svc\-reader"),
        ("\\\\host", "&#92;&#92;host"),
        ("(x) (i) (/) (!) (*r) (on)", r"&#40;x) &#40;i) &#40;/) &#40;\!) &#40;\*r) &#40;on)"),
        (":) :( :P ;)", ":&#41; :&#40; &#58;P &#59;&#41;"),
        ("h1. Title", "h1&#46; Title"),
        ("group:Payments (2 of 3)", "group:Payments (2 of 3)"),
    ],
)
def test_escapes_are_no_markup_themselves(text: str, markup: str) -> None:
    assert markup in wiki(notification(text), "m")
