"""What is specific to Slack: scopes, membership, threads, escaping."""

from __future__ import annotations

import pytest
from streamwarden.tickets.sinks.contract import IssueGone, TrackerDown
from streamwarden.tickets.sinks.slack import mrkdwn

from tests.plugins.tickets.endpoints.slack import CHANNEL, SCOPES, Slack
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, finding, issue_draft, notification


@pytest.fixture
def team() -> Team:
    return Team("slack")


def endpoint_of(team: Team) -> Slack:
    assert isinstance(team.endpoint, Slack)
    return team.endpoint


def test_a_ticket_is_one_thread_with_a_link(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    parent = endpoint_of(team).messages[0]
    assert issue.key == f"{CHANNEL}/{parent['ts']}"
    assert issue.url == f"https://acme.slack.com/archives/{CHANNEL}/p{parent['ts'].replace('.', '')}"
    team.sink.update(change(issue.key, "comment", "More."))
    assert endpoint_of(team).messages[1]["thread_ts"] == parent["ts"]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_missing_scope_is_named(team: Team, scope: str) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).scopes = tuple(one for one in SCOPES if one != scope)
    with pytest.raises(TrackerDown, match=f"missing_scope: the app needs the scope {scope}"):
        team.sink.update(change(issue.key, "close", "Over."))


def test_an_app_that_is_not_in_the_channel_is_reported_with_the_action(team: Team) -> None:
    endpoint_of(team).is_member = False
    with pytest.raises(TrackerDown, match="not_in_channel: invite the app"):
        team.sink.check()


def test_a_long_channel_and_a_long_thread_are_read_to_the_end(team: Team) -> None:
    first = team.sink.create(issue_draft())
    for number in range(230):
        team.sink.update(change(first.key, "comment", "More.", f"n{number}"))
        team.sink.create(issue_draft(fingerprint=f"{number:064x}"))
    found = team.sink.find(FINGERPRINT)
    assert found is not None and found.key == first.key
    assert team.sink.has(change(first.key, "comment", "More.", "n229"))


def test_a_thread_that_was_deleted_is_gone(team: Team) -> None:
    issue = team.sink.create(issue_draft())
    endpoint_of(team).delete(issue.key)
    with pytest.raises(IssueGone):
        team.sink.update(change(issue.key, "close", "Over."))


def test_mentions_and_links_in_texts_are_escaped() -> None:
    text = mrkdwn(notification("<!channel> <@U1> <http://e.vil|x> & ```", finding(commands=("a ``` <b>",))), "")
    assert "&lt;!channel&gt; &lt;@U1&gt; &lt;http://e.vil|x&gt; &amp;" in text
    assert "```\na ''' &lt;b&gt;\n```" in text
    assert "Heap max: 4.0 GiB" in text
    assert "Possible cause: <https://t/1|Disk is slow: vol-0> (open)" in text


def test_a_name_becomes_no_emoji_and_a_command_is_unchanged() -> None:
    text = mrkdwn(notification("host:8778:x:", finding(commands=("curl http://h:80:x:",))), "")
    assert "host:\u20608778:\u2060x:" in text
    assert "```\ncurl http://h:80:x:\n```" in text
    assert "<https://t/1|Disk is slow: vol-0>" in text


def test_a_locked_thread_does_not_block_later_changes(caplog: pytest.LogCaptureFixture) -> None:
    team = Team("slack")
    issue = team.sink.create(issue_draft())
    endpoint_of(team).locked = {issue.key.partition("/")[2]}
    team.sink.update(change(issue.key, "close", "Over."))
    assert len(endpoint_of(team).messages) == 1
    assert "restricted_action_thread_locked: the update was skipped" in caplog.text
