"""Responses on the pages: permissions, forged forms, and the exchange with a real tracker."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from itsdangerous import TimestampSigner
from playwright.sync_api import expect
from streamwarden.base.config import Config, Tickets
from streamwarden.tickets import reconcile_and_deliver

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, fingerprint_of
from tests.roundup import Tracker, running_tracker

pytestmark = pytest.mark.slow
LAG = "consumer_group_lagging"
VOLUME, BILLING, AUDIT = fingerprint_of("vol-1"), fingerprint_of("billing", LAG), fingerprint_of("audit", LAG)


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracker]:
    with running_tracker(tmp_path_factory.mktemp("tracker")) as running:
        yield running


@pytest.fixture(scope="module")
def filed(module_warehouse: sa.Engine, tracker: Tracker) -> DeliveryScenario:
    """A firing volume with a group as a downstream effect, and a group with its own issue; both in a real Roundup."""
    scenario = DeliveryScenario(module_warehouse)
    scenario.evaluate(0, {"vol-1": "firing"}, message="Its bucket is empty.")
    scenario.evaluate(0, {"billing": "firing", "audit": "firing"}, LAG, severity="warning")
    scenario.store_causes(0, {(BILLING, VOLUME): 0.9})
    next_run(scenario, tracker)
    assert len(tracker.issues()) == 2
    return scenario


def next_run(scenario: DeliveryScenario, tracker: Tracker) -> str:
    config = Config(tickets=Tickets(trackers={"roundup": tracker.settings}))
    return reconcile_and_deliver(scenario.engine, config, DETECTORS)


def responses(scenario: DeliveryScenario) -> list[tuple[str, str]]:
    return [
        (row["verb"], row["who"])
        for row in scenario.rows("select verb, who from tickets.response order by response_id")
    ]


class Visitor:
    """A client that has only the session cookie of Airflow, as a browser does."""

    def __init__(self, airflow: Airflow, user: str | None) -> None:
        cookies = {"_token": airflow.token(user)} if user else {}
        self.client = httpx.Client(
            base_url=f"{airflow.url}/streamwarden", cookies=cookies, headers={"Accept": "text/html"}, timeout=60
        )

    def token(self, path: str = f"/findings/{BILLING}") -> str:
        found = re.search(r'name="token" value="([^"]+)"', self.client.get(path).raise_for_status().text)
        return found[1] if found else ""

    def respond(self, verb: str = "comment", **fields: str) -> httpx.Response:
        token = fields.pop("token") if "token" in fields else self.token()
        values = {"fingerprint": BILLING, "words": "Known.", "verb": verb} | fields
        return self.client.post("/responses", data=values | ({} if token == "left out" else {"token": token}))


def test_users_who_may_edit_dags_may_respond(airflow: Airflow, filed: DeliveryScenario) -> None:
    before = responses(filed)
    for user in ("editor", "admin"):
        done = Visitor(airflow, user).respond()
        address = done.headers["location"]
        assert done.status_code == 303
        assert address.startswith(f"/streamwarden/findings/{BILLING}?stored=") and address.endswith("#responses")
    assert responses(filed) == [*before, ("comment", "editor"), ("comment", "admin")]


def test_only_a_response_leads_to_a_page_that_claims_one(airflow: Airflow, filed: DeliveryScenario) -> None:
    editor, other = Visitor(airflow, "editor"), Visitor(airflow, "admin")
    path = editor.respond().headers["location"].removeprefix("/streamwarden").removesuffix("#responses")
    claim = "<strong>Stored: comment.</strong>"
    assert claim in editor.client.get(path).text
    assert claim not in other.client.get(path).text
    # Not the last character of the signature: some of its bits may mean nothing.
    for forged in (path.replace(BILLING, AUDIT), path[:-2] + ("A" if path[-2] != "A" else "B") + path[-1]):
        assert "Stored:" not in editor.client.get(forged).raise_for_status().text
    for verb in ("comment", "snooze", "wont_fix", "close", "x" * 400, ""):
        for place in ("findings", "incidents"):
            page = editor.client.get(f"/{place}/{BILLING}", params={"stored": verb})
            assert "Stored:" not in page.raise_for_status().text


def test_viewers_see_no_form_and_are_refused(airflow: Airflow, filed: DeliveryScenario) -> None:
    before, viewer = responses(filed), Visitor(airflow, "viewer")
    for path in (f"/findings/{BILLING}", f"/incidents/{BILLING}"):
        page = viewer.client.get(path).text
        assert 'method="post"' not in page and 'name="token"' not in page
    for token in ("", Visitor(airflow, "editor").token()):
        refused = viewer.respond(token=token)
        assert refused.status_code == 403
        assert "Responses require permission to edit the DAG `hourly`" in refused.text
    assert responses(filed) == before


def test_a_response_without_a_login_is_refused(airflow: Airflow, filed: DeliveryScenario) -> None:
    before, stranger = responses(filed), Visitor(airflow, None)
    refused = stranger.respond(token=Visitor(airflow, "editor").token())
    assert refused.status_code == 401 and "Log in in another tab" in refused.text
    stranger.client.headers["Accept"] = "*/*"
    assert stranger.respond(token="x").json() == {"detail": "Not authenticated"}
    assert responses(filed) == before


@pytest.mark.parametrize("token", ["left out", "", "made.up.token", "of another user", "of another time"])
def test_a_form_with_a_missing_or_forged_token_is_refused(
    airflow: Airflow, filed: DeliveryScenario, token: str
) -> None:
    before, editor = responses(filed), Visitor(airflow, "editor")
    value, stamp, signature = editor.token().split(".")
    assert editor.respond(token=f"{value}.{stamp}.{signature}").status_code == 303
    other = Visitor(airflow, "admin").token()
    forged = {
        "of another user": other,
        "of another time": f"{value}.{stamp[:-1]}{'A' if stamp[-1] != 'A' else 'B'}.{signature}",
    }
    refused = editor.respond(token=forged.get(token, token))
    assert refused.status_code == 403 and "Reload the page and respond again." in refused.text
    assert responses(filed) == [*before, ("comment", "editor")]


def test_a_form_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__SECRET_KEY", "a secret of the test's")
    from streamwarden.ui import forms

    vera: Any = SimpleNamespace(get_id=lambda: "vera")
    token, now = forms._signer("forms").dumps("vera"), int(time.time())
    forms.require_own(token, vera)
    lasting = int(forms.LASTING.total_seconds())
    for seconds, is_expired in ((lasting - 5, False), (lasting + 5, True)):
        monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _, at=now + seconds: at)
        with pytest.raises(forms.ForgedError) if is_expired else nullcontext():
            forms.require_own(token, vera)


def test_text_of_a_form_in_an_odd_charset_is_refused(airflow: Airflow, filed: DeliveryScenario) -> None:
    before, editor = responses(filed), Visitor(airflow, "editor")
    fields = {"fingerprint": BILLING, "verb": "comment", "token": editor.token(), "words": "\\ud800"}
    parts = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    kind = {"Content-Type": "multipart/form-data; boundary=b; charset=unicode_escape"}
    refused = editor.client.post("/responses", content=f"{parts}--b--\r\n", headers=kind)
    assert refused.status_code == 422 and "words: The text has a NUL character" in refused.text
    assert responses(filed) == before


def test_the_session_cookie_is_not_sent_by_other_sites(editor_page: Any) -> None:
    (cookie,) = [one for one in editor_page.context.cookies() if one["name"] == "_token"]
    assert cookie["sameSite"] == "Lax"


@pytest.mark.parametrize(
    ("verb", "fields", "message"),
    [
        ("false_positive", {"words": " "}, "cannot apply false positive without a text"),
        ("snooze", {"until": "2020-01-01T00:00"}, "is in the past"),
        ("snooze", {"until": "9999-12-31T23:59"}, "the limit is 366 days"),
        ("snooze", {"until": "9999-12-31T23:59-14:00"}, "the limit is 366 days"),
        ("snooze", {"until": "0001-01-01T00:00+14:00"}, "is in the past"),
        ("comment", {"words": "a\0b"}, "words: The text has a NUL character"),
        ("comment", {"fingerprint": "a\0b"}, "fingerprint: The text has a NUL character"),
        ("link", {"other": "a\0b"}, "other: The text has a NUL character"),
        ("comment", {"more": "a\0b"}, "more: The text has a NUL character"),
        ("snooze", {"until": "soon"}, "until: Input should be a valid datetime"),
        ("dance", {}, "verb: Input should be"),
        ("comment", {"fingerprint": "0" * 64}, "no such finding"),
        ("comment", {"words": "x" * 5000}, "5,000 characters; the limit is 2,000"),
        ("link", {"other": VOLUME[:20]}, "no ticket has this fingerprint"),
        ("comment", {"place": "https://e.vil"}, "place: Input should be"),
    ],
)
def test_an_invalid_response_is_a_one_line_error(
    airflow: Airflow, filed: DeliveryScenario, verb: str, fields: dict[str, str], message: str
) -> None:
    before = responses(filed)
    refused = Visitor(airflow, "editor").respond(verb, **fields)
    assert refused.status_code == 422 and message in refused.text.replace("&#39;", "'")
    assert responses(filed) == before


def test_responses_are_exchanged_with_the_tracker(
    editor_page: Any, page: Any, filed: DeliveryScenario, tracker: Tracker
) -> None:
    editor_page.goto(f"/streamwarden/findings/{BILLING}")
    editor_page.get_by_role("button", name="Acknowledge").press("Enter")
    _expect_stored(editor_page, "acknowledged. The next run notifies the trackers.")
    assert "acknowledged by editor" in editor_page.locator(".card-head").first.inner_text()
    next_run(filed, tracker)
    issue = next(one for one in tracker.issues() if "vol-1" in one["title"])
    assert issue["status"]["name"] == "in-progress"
    assert "About consumer_group_lagging title: billing: Acknowledged by editor." in tracker.texts(issue)[-1]

    tracker.edit(str(issue["id"]), status="deferred")
    with (
        filed.engine.begin() as connection
    ):  # an hour later: an issue is not read right after a change was posted to it
        connection.execute(sa.text("update tickets.issue set attempted_at = attempted_at - interval '1 hour'"))
    next_run(filed, tracker)
    page.goto(f"/streamwarden/incidents/{BILLING}")
    rows = page.locator("section:has(#responses) tbody tr").all_inner_texts()
    assert "a person in roundup" in rows[0] and "snoozed until" in rows[0]
    assert "editor on the page" in rows[1] and "acknowledged" in rows[1]
    expect(page.locator("main form")).to_have_count(0)  # the viewer only reads

    editor_page.goto(f"/streamwarden/incidents/{BILLING}")
    editor_page.get_by_role("button", name="Unmute").click()
    _expect_stored(editor_page, "unmuted.")
    next_run(filed, tracker)
    assert next(one for one in tracker.issues() if "vol-1" in one["title"])["status"]["name"] == "unread"


def test_snooze_by_keyboard_on_a_phone_without_javascript(
    chromium: Any, airflow: Airflow, filed: DeliveryScenario
) -> None:
    context = chromium.new_context(
        viewport={"width": 390, "height": 800}, base_url=airflow.url, java_script_enabled=False,
        extra_http_headers={"Authorization": f"Bearer {airflow.token('editor')}"},
    )  # fmt: skip
    page = context.new_page()
    page.goto(f"/streamwarden/findings/{AUDIT}")
    page.locator("summary", has_text="Snooze").press("Enter")
    page.locator("details[open] textarea").press_sequentially("It moves tonight.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    _expect_stored(page, "snoozed.")
    (ticket,) = filed.rows("select * from tickets.ticket where fingerprint = :f", f=AUDIT)
    assert ticket["muted"] == "snoozed"
    assert timedelta(hours=22) < ticket["muted_until"] - datetime.now(UTC) <= timedelta(days=1)
    context.close()


def test_the_forms_work_in_the_frame_in_airflow(editor_page: Any, filed: DeliveryScenario) -> None:
    editor_page.goto("/")
    editor_page.get_by_role("link", name="Streamwarden").click()
    editor_page.frame_locator("iframe").get_by_role("link", name="Findings", exact=True).wait_for()
    frame = next(frame for frame in editor_page.frames if "/streamwarden" in frame.url and frame.parent_frame)
    frame.goto(f"/streamwarden/findings/{BILLING}")
    frame.locator("summary", has_text="Comment").click()
    frame.locator("details[open] textarea").fill("Written in the frame.")
    frame.get_by_role("button", name="Comment").click()
    _expect_stored(frame, "comment.")
    assert filed.rows("select words from tickets.response order by response_id desc limit 1") == [
        {"words": "Written in the frame."}
    ]


def test_a_false_positive_is_shown_on_the_page_of_the_detector(editor_page: Any, filed: DeliveryScenario) -> None:
    editor_page.goto(f"/streamwarden/incidents/{BILLING}")
    editor_page.locator("summary", has_text="Report false positive").click()
    editor_page.locator("details[open] textarea").fill("<b>The clock</b> was wrong.")
    editor_page.get_by_role("button", name="Report", exact=True).click()
    _expect_stored(editor_page, "false positive.")
    editor_page.goto("/streamwarden/detectors/ebs_volume_starving")
    text = editor_page.locator("main").inner_text()
    assert "1 report about 1 finding; the detector has opened 1 ticket." in text
    assert "<b>The clock</b> was wrong. editor" in text


def test_an_editor_splits_and_links(editor_page: Any, filed: DeliveryScenario, tracker: Tracker) -> None:
    editor_page.goto(f"/streamwarden/incidents/{BILLING}")
    editor_page.locator("summary", has_text="Split").click()
    editor_page.locator("details[open] select").select_option(BILLING)
    editor_page.locator("details[open] textarea").fill("Its consumers are slow.")
    editor_page.get_by_role("button", name="Split").click()
    _expect_stored(editor_page, "split.")
    next_run(filed, tracker)
    assert {one["title"].split()[-1] for one in tracker.issues()} == {"vol-1", "audit", "billing"}
    editor_page.goto(f"/streamwarden/findings/{BILLING}")
    editor_page.locator("summary", has_text="Link").click()
    editor_page.locator("details[open] select").select_option(label="critical: ebs_volume_starving title: vol-1")
    editor_page.locator("details[open] textarea").fill("It is the disk after all.")
    editor_page.get_by_role("button", name="Link", exact=True).click()
    _expect_stored(editor_page, "linked.")
    next_run(filed, tracker)
    editor_page.goto(f"/streamwarden/incidents/{VOLUME}")
    assert "billing" in editor_page.locator(".tree").inner_text()


def _expect_stored(page: Any, what: str) -> None:
    """Waits until the page, or the frame, reports that the response was stored."""
    expect(page.get_by_role("status")).to_contain_text(f"Stored: {what}")
