"""The Roundup sink against a real Roundup."""

from __future__ import annotations

from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config, Tickets
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets import deliver, listen, reconcile
from streamwarden.tickets.sinks.contract import IssueDraft, Notification, TrackerDown, Update
from streamwarden.tickets.sinks.roundup import Tracker as RoundupSink

from tests.answering import answering
from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, hour
from tests.roundup import Tracker, pass_on
from tests.variations import rare_after

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def notification(note: str) -> Notification:
    return Notification(note, hour(0))


def issue_draft(fingerprint: str, title: str = "A <script>alert(1)</script>") -> IssueDraft:
    return IssueDraft(
        fingerprint, "rule", "disk", title, "critical", notification("First line.\n\nSecond <b>line</b>."), PNG
    )


@pytest.fixture
def sink(tracker: Tracker) -> RoundupSink:
    return RoundupSink("roundup", tracker.settings)


def test_creates_finds_and_attaches(tracker: Tracker, sink: RoundupSink) -> None:
    assert sink.find("f1") is None
    issue = sink.create(issue_draft("f1"))
    assert sink.find("f1") == issue
    filed = next(one for one in tracker.issues() if str(one["id"]) == issue.key)
    assert (filed["title"], filed["priority"]["name"]) == ("A <script>alert(1)</script>", "critical")
    assert tracker.texts(filed)[0].startswith("First line.\n\nSecond <b>line</b>.\n")
    content = tracker.client.get(f"/file/{filed['files'][0]['id']}/binary_content").content
    assert content == PNG
    page = tracker.client.get(str(issue.url)).text
    assert "<script>alert(1)" not in page and "<b>line" not in page


def test_the_newest_ticket_of_a_finding_is_found(sink: RoundupSink) -> None:
    older, newer = sink.create(issue_draft("f2")), sink.create(issue_draft("f2"))
    assert older != newer and sink.find("f2") == newer


def test_an_update_is_posted_once_and_closes_and_reopens(tracker: Tracker, sink: RoundupSink) -> None:
    issue = sink.create(issue_draft("f3"))
    close = Update(issue.key, "f3", "f3.close.1", "close", "T", "critical", notification("Healthy again."))
    sink.update(close)
    sink.update(close)
    found = sink.find("f3")
    assert found is not None and found.state == "closed"
    sink.update(Update(issue.key, "f3", "f3.reopen.2", "reopen", "T", "warning", notification("It is back.")))
    filed = next(one for one in tracker.issues() if str(one["id"]) == issue.key)
    assert [text.strip() for text in tracker.texts(filed)][1:] == ["Healthy again.", "It is back."]
    assert (filed["status"]["name"], filed["priority"]["name"]) == ("unread", "urgent")


@pytest.mark.parametrize("how", ["deleted", "another tracker's"])
def test_a_deleted_issue_is_filed_again_while_its_finding_is_firing(
    tracker: Tracker, scenario: DeliveryScenario, how: str
) -> None:
    config = Config(tickets=Tickets(trackers={"roundup": tracker.settings}))
    sink = RoundupSink("roundup", tracker.settings)
    scenario.evaluate(0, {"disk-a": "firing", "disk-b": "firing"}, severity="warning")
    reconcile(scenario.engine, config, DETECTORS)
    deliver(scenario.engine, sink, config)
    strange = sink.create(issue_draft(f"somebody else's {how}"))
    keys = [t["external_key"] for t in scenario.tickets()]
    for key in keys:
        tracker.delete(key)
    if how != "deleted":
        with scenario.engine.begin() as connection:
            connection.execute(
                sa.text(
                    "update tickets.issue as i set external_key = :key from tickets.ticket as t"
                    " where i.ticket_id = t.ticket_id and t.resource_name = 'disk-a'"
                ),
                {"key": strange.key},
            )
    scenario.evaluate(1, {"disk-a": "firing", "disk-b": "ok"}, severity="critical")
    scenario.evaluate(2, {"disk-a": "firing", "disk-b": "ok"}, severity="critical")
    reconcile(scenario.engine, config, DETECTORS, hour(3))
    assert deliver(scenario.engine, sink, config).failed == []
    tickets = {t["resource_name"]: t for t in scenario.tickets()}
    assert {name: t["state"] for name, t in tickets.items()} == {"disk-a": "open", "disk-b": "closed"}
    assert tickets["disk-a"]["external_key"] not in {*keys, strange.key}
    untouched = next(one for one in tracker.issues() if str(one["id"]) == strange.key)
    assert len(tracker.texts(untouched)) == 1


def test_a_deleted_issue_without_new_changes_is_filed_again(tracker: Tracker, scenario: DeliveryScenario) -> None:
    config = Config(tickets=Tickets(trackers={"roundup": tracker.settings}))
    sink = RoundupSink("roundup", tracker.settings)
    scenario.evaluate(0, {"disk-c": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    deliver(scenario.engine, sink, config)
    before = scenario.tickets()[0]["external_key"]
    tracker.delete(before)
    assert listen(scenario.engine, sink, hour(1)) == 1
    assert deliver(scenario.engine, sink, config).done == 1
    again = sink.find(scenario.tickets()[0]["fingerprint"])
    assert again is not None and again.state == "open" and before != again.key == scenario.tickets()[0]["external_key"]
    assert listen(scenario.engine, sink, hour(1)) == 0


def test_edits_by_people_in_the_tracker_are_not_overwritten(tracker: Tracker, sink: RoundupSink) -> None:
    issue = sink.create(issue_draft("f4"))
    tracker.edit(issue.key, status="in-progress", title="Ours now")
    sink.update(Update(issue.key, "f4", "f4.comment.1", "comment", "T", "critical", notification("More.")))
    filed = next(one for one in tracker.issues() if str(one["id"]) == issue.key)
    assert (filed["status"]["name"], filed["title"]) == ("in-progress", "Ours now")


def test_a_response_given_elsewhere_sets_the_status(tracker: Tracker, sink: RoundupSink) -> None:
    issue = sink.create(issue_draft("f5"))
    for marker, answer in (("m1", "acknowledged"), ("m2", "snoozed")):
        update = Update(issue.key, "f5", marker, "comment", "T", "critical", notification("By Vera."), answer=answer)  # type: ignore[arg-type]
        sink.update(update)
        assert sink.look(issue.key, "f5") == replace(issue, state=answer)
    sink.update(Update(issue.key, "f5", "m3", "reopen", "T", "critical", notification("It has ended.")))
    assert sink.look(issue.key, "f5") == issue
    tracker.edit(issue.key, status="in-progress")
    assert sink.look(issue.key, "f5") == replace(issue, state="acknowledged")


def test_a_repeated_hour_a_resolved_finding_and_responses_in_the_tracker(
    tracker: Tracker, scenario: DeliveryScenario
) -> None:
    config = Config(tickets=Tickets(trackers={"roundup": tracker.settings}))
    sink = RoundupSink("roundup", tracker.settings)
    scenario.evaluate(0, {"vol-1": "firing", "vol-2": "firing", "vol-3": "firing"}, severity="warning")
    for _ in range(2):
        reconcile(scenario.engine, config, DETECTORS)
        assert deliver(scenario.engine, sink, config).failed == []
    keys = [t["external_key"] for t in scenario.tickets()]
    assert len(set(keys)) == 3
    mine = [one for one in tracker.issues() if "vol-" in one["title"]]
    assert len(mine) == 3
    tracker.client.post("/keyword", json={"name": "wont-fix"}).raise_for_status()
    tracker.edit(keys[1], status="deferred")
    tracker.edit(keys[2], keyword=["wont-fix"])
    assert listen(scenario.engine, sink, hour(1)) == 2
    assert [(t["state"], t["muted"]) for t in scenario.tickets()] == [
        ("open", None), ("open", "snoozed"), ("closed", "wont_fix"),
    ]  # fmt: skip
    for number in (1, 2):
        scenario.evaluate(number, {"vol-1": "ok", "vol-2": "firing", "vol-3": "firing"}, severity="warning")
    reconcile(scenario.engine, config, DETECTORS, hour(3))
    assert deliver(scenario.engine, sink, config).done == 1
    found = sink.find(scenario.tickets()[0]["fingerprint"])
    assert found is not None and found.state == "closed"


def test_wrong_credentials_and_a_wrong_url_are_one_line_errors(tracker: Tracker) -> None:
    wrong = tracker.settings.model_copy(update={"password": "hunter2"})
    with pytest.raises(
        TrackerDown, match=r"refuses user 'streamwarden': check `user` and `password` under tickets\.trackers\.roundup"
    ) as error:
        RoundupSink("roundup", wrong).find("x")
    assert "hunter2" not in str(error.value)
    with pytest.raises(TrackerDown, match="no Roundup REST API"):
        RoundupSink("roundup", tracker.settings.model_copy(update={"url": f"{tracker.settings.url}/nowhere"})).find("x")


def test_the_error_for_an_unknown_priority_is_that_of_the_tracker_in_one_line(
    sink: RoundupSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamwarden.tickets.sinks.roundup.PRIORITY", {"critical": "blocker"})
    with pytest.raises(StreamwardenError, match=r"POST /issue.*blocker") as error:
        sink.create(issue_draft("f5"))
    assert "\n" not in str(error.value)


class _Flaky(BaseHTTPRequestHandler):
    """Proxies to the real tracker, but fails the first try of each request: a 503, or a lost response."""

    target = ""
    lose_responses = False
    seen: ClassVar[dict[str, int]] = {}

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = f"{self.command} {self.path}"
        first = self.seen.setdefault(key, 0) == 0
        self.seen[key] += 1
        if first and not self.lose_responses:
            self.send_error(503)
            return
        answer = pass_on(self.target, self.command, self.path, self.headers, body)
        if first and self.lose_responses:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PATCH = _pass_on

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("lose_responses", rare_after(1, [True, False]), ids=["response lost", "503 first"])
def test_a_flaky_tracker_receives_each_ticket_and_comment_once(tracker: Tracker, lose_responses: bool) -> None:
    handler = type("H", (_Flaky,), {"target": tracker.settings.url, "lose_responses": lose_responses, "seen": {}})
    with answering(HTTPServer(("127.0.0.1", 0), handler)) as proxy:
        url = f"http://127.0.0.1:{proxy.server_port}"
        sink = RoundupSink("roundup", tracker.settings.model_copy(update={"url": url}))
        title = f"flaky {lose_responses}"
        issue = sink.create(issue_draft(f"s{lose_responses}", title))
        sink.update(
            Update(
                issue.key,
                f"s{lose_responses}",
                f"s{lose_responses}.1",
                "comment",
                "T",
                "critical",
                notification("Once."),
            )
        )
    filed = [one for one in tracker.issues() if one["title"] == title]
    assert [str(one["id"]) for one in filed] == [issue.key]
    assert [text.strip() for text in tracker.texts(filed[0])][1:] == ["Once."]


class _WithoutFiles(_Flaky):
    """Proxies to the real tracker, but refuses files."""

    def do_POST(self) -> None:
        if self.path.endswith("/file"):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(403, "File too large")
        else:
            self._pass_on()


def test_a_ticket_is_filed_without_a_chart_that_the_tracker_refuses(
    tracker: Tracker, caplog: pytest.LogCaptureFixture
) -> None:
    handler = type("H", (_WithoutFiles,), {"target": tracker.settings.url, "seen": {}})
    with answering(HTTPServer(("127.0.0.1", 0), handler)) as proxy:
        url = f"http://127.0.0.1:{proxy.server_port}"
        sink = RoundupSink("roundup", tracker.settings.model_copy(update={"url": url}))
        issue = sink.create(issue_draft("f9", "without a chart"))
    (filed,) = [one for one in tracker.issues() if one["title"] == "without a chart"]
    assert (str(filed["id"]), filed["files"]) == (issue.key, [])
    assert "no plot in Roundup" in caplog.text
