"""What is specific to webhooks: the signature, the template, one idempotency key per change."""

from __future__ import annotations

from typing import Any

import pytest
from streamwarden.base.errors import StreamwardenError

from tests.plugins.tickets.endpoints.webhook import Webhook
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, issue_draft


def accepted(team: Team) -> list[dict[str, Any]]:
    assert isinstance(team.endpoint, Webhook)
    return list(team.endpoint.taken.values())


def test_a_template_is_filled_in() -> None:
    body = {"text": "{severity}: {title} {url}", "blocks": [{"of": "{owner}"}], "number": 7, "{kept}": "{unknown} {"}
    team = Team("webhook", body=body)
    team.sink.create(issue_draft())
    assert accepted(team) == [
        {
            "text": "critical: Disk is slow: vol-1 https://air/streamwarden/findings/ab", "blocks": [{"of": "storage"}],
            "number": 7, "{kept}": "{unknown} {",
        }
    ]  # fmt: skip


def test_the_same_change_is_accepted_once() -> None:
    team = Team("webhook")
    issue = team.sink.create(issue_draft())
    assert team.sink.create(issue_draft()).key == issue.key
    for _ in range(2):
        team.sink.update(change(issue.key, "close", "Over."))
    assert [(one["action"], one["key"], one["fingerprint"]) for one in accepted(team)] == [
        ("create", issue.key, FINGERPRINT), ("close", issue.key, FINGERPRINT),
    ]  # fmt: skip
    assert accepted(team)[0]["text"].startswith("It is bad. Firing since")


def test_the_error_for_a_wrong_secret_is_that_of_the_receiver() -> None:
    with pytest.raises(StreamwardenError, match=r"the signature is wrong or old \(HTTP 403\)"):
        Team("webhook", password="other").sink.create(issue_draft())
