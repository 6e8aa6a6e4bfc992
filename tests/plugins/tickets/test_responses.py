"""What people say of findings, wherever they say it: kept, done, told to the others, and heard of once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from streamwarden.base.config import Config
from streamwarden.tickets import Response, ResponseError, deliver, listen, reconcile, respond
from streamwarden.tickets.responses import COMMAND_LINE, MAX_CHARACTERS, PAGE

from tests.plugins.tickets.story import DETECTORS, MemorySink, Story, hour, print_of, say
from tests.plugins.tickets.test_muting import command, well  # noqa: F401  a fixture

LAG = "consumer_group_lagging"
V1, G1 = print_of("v1"), print_of("g1", LAG)
Saying = Callable[..., list[str]]


@pytest.fixture
def filed(story: Story, sink: MemorySink) -> Story:
    """A volume starves, a group follows from it, another volume has a ticket of its own; the tracker has both."""
    story.judge(0, {"g1": "firing"}, LAG, severity="warning")
    story.causes(0, {(G1, V1): 0.9})
    for volumes in ({"v1": "firing"}, {"v1": "firing", "v2": "firing"}):
        story.judge(0, volumes)
        tell(story, sink)
    assert [issue_draft.resource_name for issue_draft in sink.issue_drafts] == ["v1", "v2"]
    return story


@pytest.fixture
def verdicts(filed: Story) -> Saying:
    """Vera says something on the page, at eleven."""

    def said(fingerprint: str, verb: Any, words: str = "", until: datetime | None = None, other: str | None = None):
        with filed.engine.begin() as connection:
            return respond(connection, fingerprint, Response(verb, "Vera", PAGE, words, until, other), hour(1))

    return said


def tell(story: Story, sink: MemorySink) -> list[tuple[str, str | None]]:
    """The next run: what it tells the tracker, and as which answer."""
    before = len(sink.updates)
    listen(story.engine, sink, hour(1))
    reconcile(story.engine, Config(), DETECTORS, hour(1))
    assert deliver(story.engine, sink, Config()).failed == []
    return [(update.notification.note, update.answer) for update in sink.updates[before:]]


EARLIER = "A higher severity ends the snooze earlier."


@pytest.mark.parametrize(
    ("verb", "words", "until", "told", "after"),
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
def test_what_is_said_on_the_page_is_kept_done_and_told_once(
    filed: Story, sink: MemorySink, verdicts: Saying, verb: str, words: str, until: Any, told: Any, after: Any
) -> None:
    verdicts(V1, verb, words, until)
    ticket = filed.tickets()[0]
    assert (ticket["state"], ticket["muted"], ticket["acknowledged_by"]) == after
    (kept,) = filed.rows("select * from tickets.response")
    assert (kept["verb"], kept["who"], kept["place"], kept["words"], kept["until"], kept["detector"]) == (
        verb, "Vera", "the page", words or None, until, "ebs_volume_starving",
    )  # fmt: skip
    assert tell(filed, sink) == [told]
    assert tell(filed, sink) == [], "neither told nor heard a second time"
    assert len(filed.rows("select * from tickets.response")) == 1, "what we told the tracker isn't taken for an answer"


def test_a_part_of_an_incident_is_answered_at_the_incidents_issue(
    filed: Story, sink: MemorySink, verdicts: Saying
) -> None:
    verdicts(G1, "acknowledge")
    verdicts(G1, "snooze", "Known.", hour(9))
    verdicts(G1, "wont_fix", "Known.")
    name = "About consumer_group_lagging title: g1"
    assert tell(filed, sink) == [
        (f"{name}: Acknowledged by Vera.", "acknowledged"),
        (f"{name}: Snoozed until 2026-01-05 19:00 UTC by Vera: Known. {EARLIER}", None),
        (f"{name}: Marked as won't fix by Vera: Known.", None),
    ]
    assert {(t["resource_name"], t["state"], t["muted"], t["acknowledged_by"]) for t in filed.tickets()} == {
        ("v1", "open", None, "Vera"), ("g1", "closed", "wont_fix", None), ("v2", "open", None, None),
    }  # fmt: skip
    assert [update.action for update in sink.updates] == ["comment"] * 3


def test_what_is_said_in_the_tracker_is_kept_as_well(filed: Story, sink: MemorySink) -> None:
    sink.states["0"] = "acknowledged"
    assert tell(filed, sink) == []
    assert filed.tickets()[0]["acknowledged_by"] == "a person in console"
    kept = [(row["verb"], row["who"], row["place"]) for row in filed.rows("select * from tickets.response")]
    assert kept == [("acknowledge", "a person", "console")]


def test_a_snooze_taken_away_in_the_tracker_is_over(filed: Story, sink: MemorySink, verdicts: Saying) -> None:
    verdicts(V1, "snooze", "Known.", hour(9))
    tell(filed, sink)
    assert listen(filed.engine, sink, hour(1)) == 0
    sink.states["0"] = "acknowledged"
    assert [listen(filed.engine, sink, hour(1)) for _ in range(3)] == [1, 1, 0]
    assert (filed.tickets()[0]["muted"], filed.tickets()[0]["acknowledged_by"]) == (None, "a person in console")


def test_who_answered_elsewhere_meanwhile_is_heard_and_nothing_fails(
    filed: Story, sink: MemorySink, verdicts: Saying
) -> None:
    look = sink.look

    def late(key: str, fingerprint: str) -> Any:
        if key == "0" and filed.tickets()[0]["state"] == "open":
            verdicts(V1, "wont_fix", "Known.")  # after the tickets were read
        return look(key, fingerprint)

    sink.look, sink.states["0"] = late, "closed"  # type: ignore[method-assign]
    assert listen(filed.engine, sink, hour(1)) == 0
    assert [row["verb"] for row in filed.rows("select verb from tickets.response")] == ["wont_fix"]


def test_split_and_joined_on_the_page(filed: Story, sink: MemorySink, verdicts: Saying) -> None:
    assert verdicts(G1, "split", "Another reason.") == ["ebs_volume_starving title: v1"]
    tell(filed, sink)
    assert [issue_draft.resource_name for issue_draft in sink.issue_drafts] == ["v1", "v2", "g1"]
    verdicts(G1, "link", "It is the disk.", other=V1)
    tell(filed, sink)
    assert {t["resource_name"]: t["summary_ticket_id"] for t in filed.tickets()} == {"v1": None, "v2": None, "g1": 1}


@pytest.mark.parametrize(
    ("fingerprint", "said", "why"),
    [
        (V1, ("false_positive", " \n"), "v1: cannot apply false positive without a text"),
        (V1, ("comment", "x" * (MAX_CHARACTERS + 1)), "2,001 characters; the limit is 2,000"),
        (V1, ("snooze", "Known."), "cannot apply snooze without an end"),
        (V1, ("snooze", "Known.", hour(1)), "is in the past"),
        (V1, ("unmute",), "v1: cannot apply unmute: the ticket is not muted"),
        (print_of("v2"), ("split", "Else."), "v2: cannot split: the finding is alone"),
        (V1, ("link", "Same.", None, "0" * 64), "000000000000: no ticket has this fingerprint"),
        (V1, ("link", "Same.", None, V1), "cannot link a finding to itself"),
        ("0" * 64, ("comment", "x"), "no such finding"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    filed: Story, verdicts: Saying, fingerprint: str, said: Any, why: str
) -> None:
    before = filed.actions()
    with pytest.raises(ResponseError, match=why) as told:
        verdicts(fingerprint, *said)
    assert "\n" not in str(told.value)
    assert (filed.rows("select * from tickets.response"), filed.actions()) == ([], before)


def test_a_closed_ticket_is_not_acknowledged(filed: Story, verdicts: Saying) -> None:
    verdicts(V1, "wont_fix", "Known.")
    with pytest.raises(ResponseError, match="v1: cannot apply acknowledge: the ticket is closed"):
        verdicts(V1, "acknowledge")


def test_a_finding_without_a_ticket_can_be_called_wrong_and_no_more(story: Story) -> None:
    story.judge(0, {"calm": "firing"}, severity="info")
    with story.engine.begin() as connection:
        respond(connection, print_of("calm"), Response("false_positive", "Vera", PAGE, "It is a copy."))
    (kept,) = story.rows("select * from tickets.response")
    assert (kept["ticket_id"], kept["detector"], story.actions()) == (None, "ebs_volume_starving", [])
    with (
        pytest.raises(ResponseError, match="calm: cannot apply acknowledge: the finding has no ticket"),
        story.engine.begin() as connection,
    ):
        respond(connection, print_of("calm"), Response("acknowledge", "Vera", PAGE))


def test_the_command_line_has_the_same_verbs(filed: Story, command: Any) -> None:  # noqa: F811
    finding = V1[:12]
    assert "acknowledged. The trackers are notified" in well(command("acknowledge", finding))
    assert "open, acknowledged by vera" in well(command("list"))
    well(command("comment", finding, "I look at it."))
    assert "reported as a false positive" in well(command("false-positive", finding, "--reason", "It is a copy."))
    assert "acknowledge" in well(command("responses", finding)) and "It is a copy." in well(
        command("responses", finding)
    )
    assert "There are no responses." in well(command("responses", print_of("v2")))
    assert {row["place"] for row in filed.rows("select place from tickets.response")} == {COMMAND_LINE}
    refused = command("comment", finding, " ")
    assert refused.returncode == 1 and "cannot apply comment without a text" in refused.stderr


def test_a_finding_in_a_storm_is_acknowledged_by_itself(story: Story) -> None:
    story.judge(0, {f"v{number}": "firing" for number in range(30)})
    reconcile(story.engine, Config(), DETECTORS)
    member = next(t for t in story.tickets() if t["summary_ticket_id"])
    told = len(story.actions())
    say(story.engine, member["ticket_id"], Response("acknowledge", "Vera", PAGE))
    assert [t["resource_name"] for t in story.tickets() if t["acknowledged_by"]] == [member["resource_name"]]
    assert len(story.actions()) == told
