"""Responses of people, on a page, in a tracker, or by the command line: stored, applied, and forwarded once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from streamwarden.base.config import Config
from streamwarden.tickets import Response, ResponseError, deliver, listen, reconcile, respond
from streamwarden.tickets.responses import COMMAND_LINE, MAX_CHARACTERS, MAX_SNOOZE, PAGE
from streamwarden.tickets.sinks.contract import Issue

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, MemorySink, fingerprint_of, hour, respond_to
from tests.plugins.tickets.test_muting import command, output_of  # noqa: F401  a fixture

LAG = "consumer_group_lagging"
V1, G1 = fingerprint_of("v1"), fingerprint_of("g1", LAG)
Responder = Callable[..., list[str]]


@pytest.fixture
def filed(scenario: DeliveryScenario, sink: MemorySink) -> DeliveryScenario:
    """Volume v1 with its downstream effect group g1, and volume v2 with a ticket of its own; both are delivered."""
    scenario.evaluate(0, {"g1": "firing"}, LAG, severity="warning")
    scenario.store_causes(0, {(G1, V1): 0.9})
    for volumes in ({"v1": "firing"}, {"v1": "firing", "v2": "firing"}):
        scenario.evaluate(0, volumes)
        deliver_next(scenario, sink)
    assert [issue_draft.resource_name for issue_draft in sink.issue_drafts] == ["v1", "v2"]
    return scenario


@pytest.fixture
def answer_on_page(filed: DeliveryScenario) -> Responder:
    """Vera responds on the page in hour 1."""

    def answer(fingerprint: str, verb: Any, words: str = "", until: datetime | None = None, other: str | None = None):
        with filed.engine.begin() as connection:
            return respond(connection, fingerprint, Response(verb, "Vera", PAGE, words, until, other), hour(1))

    return answer


def deliver_next(scenario: DeliveryScenario, sink: MemorySink) -> list[tuple[str, str | None]]:
    """Runs the next hour. Returns (note, response) of each update that it delivered."""
    before = len(sink.updates)
    listen(scenario.engine, sink, hour(1))
    reconcile(scenario.engine, Config(), DETECTORS, hour(1))
    assert deliver(scenario.engine, sink, Config()).failed == []
    return [(update.notification.note, update.answer) for update in sink.updates[before:]]


EARLIER = "A higher severity ends the snooze earlier."


@pytest.mark.parametrize(
    ("verb", "words", "until", "delivered", "after"),
    [
        ("acknowledge", "", None, ("Acknowledged by Vera.", "acknowledged"), ("open", None, "Vera")),
        (
            "snooze", "A move runs.", hour(9),
            (f"Snoozed until 2026-01-05 19:00 UTC by Vera: A move runs. {EARLIER}", "snoozed"),
            ("open", "snoozed", None),
        ),
        ("wont_fix", "A test's.", None, ("Marked as won't fix by Vera: A test's.", None), ("closed", "wont_fix", None)),
        (
            "false_positive", "It is a copy.", None,
            ("Reported as a false positive by Vera: It is a copy.", None), ("open", None, None),
        ),
        ("comment", "I look\nat it.", None, ("Comment by Vera: I look at it.", None), ("open", None, None)),
    ],
)  # fmt: skip
def test_a_response_on_the_page_is_stored_applied_and_delivered_once(
    filed: DeliveryScenario,
    sink: MemorySink,
    answer_on_page: Responder,
    verb: str,
    words: str,
    until: Any,
    delivered: Any,
    after: Any,
) -> None:
    answer_on_page(V1, verb, words, until)
    ticket = filed.tickets()[0]
    assert (ticket["state"], ticket["muted"], ticket["acknowledged_by"]) == after
    (kept,) = filed.rows("select * from tickets.response")
    assert (kept["verb"], kept["who"], kept["place"], kept["words"], kept["until"], kept["detector"]) == (
        verb, "Vera", "the page", words or None, until, "ebs_volume_starving",
    )  # fmt: skip
    assert deliver_next(filed, sink) == [delivered]
    assert deliver_next(filed, sink) == [], "it is neither delivered nor read a second time"
    assert len(filed.rows("select * from tickets.response")) == 1, "our own update does not count as a response"


def test_a_response_to_an_effect_is_posted_to_the_issue_of_the_incident(
    filed: DeliveryScenario, sink: MemorySink, answer_on_page: Responder
) -> None:
    answer_on_page(G1, "acknowledge")
    answer_on_page(G1, "snooze", "Known.", hour(9))
    answer_on_page(G1, "wont_fix", "Known.")
    name = "About consumer_group_lagging title: g1"
    assert deliver_next(filed, sink) == [
        (f"{name}: Acknowledged by Vera.", "acknowledged"),
        (f"{name}: Snoozed until 2026-01-05 19:00 UTC by Vera: Known. {EARLIER}", None),
        (f"{name}: Marked as won't fix by Vera: Known.", None),
    ]
    assert {(t["resource_name"], t["state"], t["muted"], t["acknowledged_by"]) for t in filed.tickets()} == {
        ("v1", "open", None, "Vera"), ("g1", "closed", "wont_fix", None), ("v2", "open", None, None),
    }  # fmt: skip
    assert [update.action for update in sink.updates] == ["comment"] * 3


def test_a_response_in_the_tracker_is_stored(filed: DeliveryScenario, sink: MemorySink) -> None:
    sink.states["0"] = "acknowledged"
    assert deliver_next(filed, sink) == []
    assert filed.tickets()[0]["acknowledged_by"] == "a person in console"
    kept = [(row["verb"], row["who"], row["place"]) for row in filed.rows("select * from tickets.response")]
    assert kept == [("acknowledge", "a person", "console")]


def test_a_snooze_removed_in_the_tracker_ends(
    filed: DeliveryScenario, sink: MemorySink, answer_on_page: Responder
) -> None:
    answer_on_page(V1, "snooze", "Known.", hour(9))
    deliver_next(filed, sink)
    assert listen(filed.engine, sink, hour(1)) == 0
    sink.states["0"] = "acknowledged"
    assert [listen(filed.engine, sink, hour(1)) for _ in range(3)] == [1, 1, 0]
    assert (filed.tickets()[0]["muted"], filed.tickets()[0]["acknowledged_by"]) == (None, "a person in console")


def test_a_snooze_of_centuries_in_the_tracker_is_one_of_a_year(filed: DeliveryScenario, sink: MemorySink) -> None:
    sink.look = lambda key, _: Issue(key, None, "snoozed", datetime(9999, 12, 31, tzinfo=UTC))  # type: ignore[method-assign]
    assert listen(filed.engine, sink, hour(1)) == 2
    assert {ticket["muted_until"] for ticket in filed.tickets() if not ticket["summary_ticket_id"]} == {
        hour(1) + MAX_SNOOZE
    }


def test_a_response_elsewhere_while_the_tracker_is_read_wins_and_nothing_fails(
    filed: DeliveryScenario, sink: MemorySink, answer_on_page: Responder
) -> None:
    look = sink.look

    def late(key: str, fingerprint: str) -> Any:
        if key == "0" and filed.tickets()[0]["state"] == "open":
            answer_on_page(V1, "wont_fix", "Known.")  # after the tickets were read
        return look(key, fingerprint)

    sink.look, sink.states["0"] = late, "closed"  # type: ignore[method-assign]
    assert listen(filed.engine, sink, hour(1)) == 0
    assert [row["verb"] for row in filed.rows("select verb from tickets.response")] == ["wont_fix"]


def test_split_and_link_on_the_page(filed: DeliveryScenario, sink: MemorySink, answer_on_page: Responder) -> None:
    assert answer_on_page(G1, "split", "Another reason.") == ["ebs_volume_starving title: v1"]
    deliver_next(filed, sink)
    assert [issue_draft.resource_name for issue_draft in sink.issue_drafts] == ["v1", "v2", "g1"]
    answer_on_page(G1, "link", "It is the disk.", other=V1)
    deliver_next(filed, sink)
    assert {t["resource_name"]: t["summary_ticket_id"] for t in filed.tickets()} == {"v1": None, "v2": None, "g1": 1}


@pytest.mark.parametrize(
    ("fingerprint", "response", "message"),
    [
        (V1, ("false_positive", " \n"), "v1: cannot apply false positive without a text"),
        (V1, ("comment", "x" * (MAX_CHARACTERS + 1)), "2,001 characters; the limit is 2,000"),
        (V1, ("snooze", "Known."), "cannot apply snooze without an end"),
        (V1, ("snooze", "Known.", hour(1)), "is in the past"),
        (V1, ("snooze", "Known.", hour(1 + 24 * 366 + 1)), "the limit is 366 days, 2027-01-06 11:00 UTC. To keep"),
        (V1, ("comment", "a\0b"), "the text has a NUL character"),
        (V1, ("comment", "a\udc80b"), "characters that are not valid Unicode"),
        (V1, ("unmute",), "v1: cannot apply unmute: the ticket is not muted"),
        (fingerprint_of("v2"), ("split", "Else."), "v2: cannot split: the finding is alone"),
        (V1, ("link", "Same.", None, "0" * 64), "000000000000: no ticket has this fingerprint"),
        (V1, ("link", "Same.", None, V1), "cannot link a finding to itself"),
        ("0" * 64, ("comment", "x"), "no such finding"),
    ],
)
def test_an_invalid_response_is_a_one_line_error_and_stores_nothing(
    filed: DeliveryScenario, answer_on_page: Responder, fingerprint: str, response: Any, message: str
) -> None:
    before = filed.actions()
    with pytest.raises(ResponseError, match=message) as error:
        answer_on_page(fingerprint, *response)
    assert "\n" not in str(error.value)
    assert (filed.rows("select * from tickets.response"), filed.actions()) == ([], before)


def test_a_closed_ticket_is_not_acknowledged(filed: DeliveryScenario, answer_on_page: Responder) -> None:
    answer_on_page(V1, "wont_fix", "Known.")
    with pytest.raises(ResponseError, match="v1: cannot apply acknowledge: the ticket is closed"):
        answer_on_page(V1, "acknowledge")


def test_a_finding_without_a_ticket_only_accepts_false_positive(scenario: DeliveryScenario) -> None:
    scenario.evaluate(0, {"calm": "firing"}, severity="info")
    with scenario.engine.begin() as connection:
        respond(connection, fingerprint_of("calm"), Response("false_positive", "Vera", PAGE, "It is a copy."))
    (kept,) = scenario.rows("select * from tickets.response")
    assert (kept["ticket_id"], kept["detector"], scenario.actions()) == (None, "ebs_volume_starving", [])
    with (
        pytest.raises(ResponseError, match="calm: cannot apply acknowledge: the finding has no ticket"),
        scenario.engine.begin() as connection,
    ):
        respond(connection, fingerprint_of("calm"), Response("acknowledge", "Vera", PAGE))


def test_the_command_line_has_the_same_verbs(filed: DeliveryScenario, command: Any) -> None:  # noqa: F811
    finding = V1[:12]
    assert "acknowledged. The trackers are notified" in output_of(command("acknowledge", finding))
    assert "open, acknowledged by vera" in output_of(command("list"))
    output_of(command("comment", finding, "I look at it."))
    assert "reported as a false positive" in output_of(command("false-positive", finding, "--reason", "It is a copy."))
    assert "acknowledge" in output_of(command("responses", finding)) and "It is a copy." in output_of(
        command("responses", finding)
    )
    assert "There are no responses." in output_of(command("responses", fingerprint_of("v2")))
    assert {row["place"] for row in filed.rows("select place from tickets.response")} == {COMMAND_LINE}
    refused = command("comment", finding, " ")
    assert refused.returncode == 1 and "cannot apply comment without a text" in refused.stderr


def test_a_finding_in_a_storm_is_acknowledged_alone(scenario: DeliveryScenario) -> None:
    scenario.evaluate(0, {f"v{number}": "firing" for number in range(30)})
    reconcile(scenario.engine, Config(), DETECTORS)
    member = next(t for t in scenario.tickets() if t["summary_ticket_id"])
    before = len(scenario.actions())
    respond_to(scenario.engine, member["ticket_id"], Response("acknowledge", "Vera", PAGE))
    assert [t["resource_name"] for t in scenario.tickets() if t["acknowledged_by"]] == [member["resource_name"]]
    assert len(scenario.actions()) == before
