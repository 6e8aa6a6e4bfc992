"""Several trackers: who gets which ticket, and that each is told all of it, once, whatever happens to the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.model import Route
from streamwarden.base.config.trackers import Console, Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets import deliver, listen, reconcile
from streamwarden.tickets.sinks.contract import Issue, TrackerDown, Unsure, Update

from tests.plugins.tickets.story import DETECTORS, MemorySink, Story, hour

TEAM = Roundup(url="https://tracker.internal", user="u", password="p")


def config_of(*routes: Route, default: list[str] | None = None) -> Config:
    trackers = dict.fromkeys(("main", "billing", "oncall"), TEAM)
    return Config(tickets=Tickets(trackers=trackers, routes=list(routes), default=default))


def sinks() -> dict[str, MemorySink]:
    return {name: MemorySink(name=name) for name in ("main", "billing", "oncall")}


def tell(story: Story, config: Config, into: dict[str, MemorySink]) -> list[str]:
    reconcile(story.engine, config, DETECTORS, hour(3))
    return [failure for sink in into.values() for failure in deliver(story.engine, sink, config).failed]


def own(story: Story, owner: str) -> None:
    with story.engine.begin() as connection:
        connection.exec_driver_sql(f"update detect.evaluation set owner = '{owner}'")


ONCALL = Route(least_severity="critical", to=["oncall"])


@pytest.mark.parametrize(
    ("routes", "default", "of", "wanted"),
    [
        ([], None, ("a", "info", "storage"), ["main"]),
        ([], [], ("a", "info", "storage"), []),
        ([ONCALL], None, ("a", "critical", "storage"), ["oncall"]),
        ([ONCALL], ["billing", "main"], ("a", "warning", "storage"), ["billing", "main"]),
        ([Route(to=["main"]), ONCALL], None, ("a", "critical", None), ["main", "oncall"]),
        ([Route(owner="bill", to=["billing"])], None, ("billing", "critical", None), ["main"]),
        ([Route(owner="^bill", to=["billing"])], None, ("billing", "critical", None), ["billing"]),
        ([Route(owner="^", to=["billing"])], None, (None, "critical", None), ["main"]),
        ([Route(subject="storage", to=["main", "billing"])], None, ("a", "info", "storage"), ["main", "billing"]),
        ([Route(subject="storage", owner="a", to=["billing"])], None, ("a", "info", "memory"), ["main"]),
    ],
)  # fmt: skip
def test_routes_add_up_and_the_default_is_for_the_rest(
    routes: list[Route], default: list[str] | None, of: tuple[str | None, str, str | None], wanted: list[str]
) -> None:
    assert config_of(*routes, default=default).tickets.trackers_for(*of) == wanted


def test_no_tracker_is_the_console() -> None:
    assert Tickets().trackers_for(None, "info", None) == ["console"]
    assert Tickets().all_trackers == {"console": Console()}


def test_a_ticket_in_two_trackers_is_told_to_both_in_order(story: Story) -> None:
    config, into = config_of(Route(owner="pay", to=["billing"]), ONCALL), sinks()
    story.judge(0, {"v1": "firing"})
    own(story, "pay")
    assert tell(story, config, into) == []
    story.judge(1, {"v1": "ok"})
    story.judge(2, {"v1": "ok"})
    assert tell(story, config, into) == []
    assert {name: len(sink.issue_drafts) for name, sink in into.items()} == {"main": 0, "billing": 1, "oncall": 1}
    for name in ("billing", "oncall"):
        assert [update.action for update in into[name].updates] == ["close"]


def test_what_gets_worse_joins_a_further_tracker_as_it_is_then(story: Story) -> None:
    config, into = config_of(Route(to=["main"]), ONCALL), sinks()
    story.judge(0, {"v1": "firing"}, severity="warning", message="It began.")
    tell(story, config, into)
    story.judge(1, {"v1": "firing"}, severity="critical", message="It is worse.")
    tell(story, config, into)
    assert [update.action for update in into["main"].updates] == ["comment"]
    (joined,) = into["oncall"].issue_drafts
    assert (joined.severity, joined.notification.finding and joined.notification.finding.message) == (
        "critical",
        "It is worse.",
    )
    assert joined.notification.note == ""
    story.judge(2, {"v1": "firing"}, severity="warning", message="It is better.")
    tell(story, config, into)
    assert [update.action for update in into["oncall"].updates] == ["comment"], "who has it keeps it"


SNOOZED = "Snoozed until 2026-01-12 11:00 UTC by a person in oncall. A higher severity ends the snooze earlier."


@pytest.mark.parametrize(
    ("state", "heard", "told"),
    [
        ("closed", ("closed", None), ("close", "Closed by a person in oncall.")),
        ("wont_fix", ("closed", "wont_fix"), ("close", "Marked as won't fix by a person in oncall.")),
        ("snoozed", ("open", "snoozed"), ("comment", SNOOZED)),
        ("acknowledged", ("open", None), ("comment", "Acknowledged by a person in oncall.")),
    ],
)
def test_what_people_say_in_one_tracker_is_told_to_the_others(
    story: Story, state: str, heard: tuple[str, str | None], told: tuple[str, str]
) -> None:
    config, into = config_of(Route(to=["main"]), ONCALL), sinks()
    story.judge(0, {"v1": "firing"})
    tell(story, config, into)
    into["oncall"].states["0"] = state
    assert listen(story.engine, into["oncall"], hour(1)) == 1
    assert listen(story.engine, into["oncall"], hour(1)) == 0
    (ticket,) = story.tickets()
    assert (ticket["state"], ticket["muted"]) == heard
    assert tell(story, config, into) == []
    assert [(update.action, update.notification.note) for update in into["main"].updates] == [told]
    assert into["oncall"].updates == []
    assert listen(story.engine, into["main"], hour(1)) == 0
    assert {issue["tracker"]: issue["state"] for issue in story.issues()}["oncall"] == state


def test_an_issue_that_cannot_be_read_holds_up_no_other(story: Story, sink: MemorySink) -> None:
    story.judge(0, {"v1": "firing", "v2": "firing"})
    reconcile(story.engine, Config(), DETECTORS, hour(1))
    deliver(story.engine, sink, Config())
    look, sink.states = sink.look, {"0": "closed", "1": "closed"}

    def refuse(key: str, fingerprint: str) -> Issue | None:
        if key == "0":
            raise StreamwardenError("this one is confidential")
        return look(key, fingerprint)

    sink.look = refuse  # type: ignore[method-assign]
    assert listen(story.engine, sink, hour(1)) == 1


def test_a_tracker_that_is_down_holds_up_no_other(story: Story) -> None:
    config, into = config_of(Route(to=["main", "oncall"])), sinks()
    into["main"].broken = TrackerDown("https://tracker.internal: the tracker doesn't answer")
    story.judge(0, {"v1": "firing", "v2": "firing"})
    assert tell(story, config, into) == ["main: https://tracker.internal: the tracker doesn't answer"]
    assert (len(into["main"].issue_drafts), len(into["oncall"].issue_drafts)) == (0, 2)
    into["main"].broken = None
    assert tell(story, config, into) == []
    assert (len(into["main"].issue_drafts), len(into["oncall"].issue_drafts)) == (2, 2)


def test_a_tracker_that_left_the_config_is_told_nothing_and_a_new_one_begins_anew(story: Story) -> None:
    into = sinks()
    story.judge(0, {"v1": "firing"})
    tell(story, config_of(Route(to=["billing"])), into)
    story.judge(1, {"v1": "firing"}, reason="other", message="It is another thing.")
    config = config_of(Route(to=["main"]))
    tell(story, config, {"main": into["main"]})
    assert [
        issue_draft.notification.finding.message
        for issue_draft in into["main"].issue_drafts
        if issue_draft.notification.finding
    ] == ["It is another thing."]
    assert into["main"].updates == [] and into["billing"].updates == []


class Forgetful(MemorySink):
    """Its answers are lost, and it finds what it has only later."""

    lagging = True

    def find(self, fingerprint: str):  # type: ignore[no-untyped-def]
        return None if self.lagging else super().find(fingerprint)

    def has(self, update: Update) -> bool:
        return not self.lagging and super().has(update)

    def update(self, update: Update) -> None:
        super().update(update)
        raise Unsure("the answer is lost")


def test_what_was_sent_without_an_answer_is_sent_again_only_after_the_tracker_settled(story: Story) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink = Forgetful(name="console", settles=timedelta(minutes=10), break_after_create=Unsure("the answer is lost"))
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, Config(), DETECTORS)
    told = deliver(story.engine, sink, Config(), lambda: now)
    assert told.failed == ["console: the answer is lost"]
    told = deliver(story.engine, sink, Config(), lambda: now + timedelta(minutes=9))
    assert told.failed == [
        "console: ebs_volume_starving title: v1: the request of 2026-01-05 12:00 UTC got no clear response; a run after"
        " 2026-01-05 12:10 UTC repeats it."
    ]
    assert len(sink.issue_drafts) == 1, "its search lags: it isn't there, and yet not filed twice"
    sink.lagging = False
    assert deliver(story.engine, sink, Config(), lambda: now + timedelta(minutes=9)).done == 1
    assert (len(sink.issue_drafts), story.tickets()[0]["external_key"]) == (1, "0")
    story.judge(1, {"v1": "firing"}, severity="warning")
    reconcile(story.engine, Config(), DETECTORS)
    for minutes in (0, 1, 2):
        deliver(story.engine, sink, Config(), lambda: now + timedelta(minutes=minutes))  # noqa: B023
    assert [update.action for update in sink.updates] == ["comment"]
    assert [issue["unsure_at"] for issue in story.issues()] == [None]


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=40)], ids=["clock right", "clock 40 days ahead"])
def test_what_never_arrived_is_sent_once_the_tracker_settled(story: Story, sink: MemorySink, ahead: timedelta) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink.settles, create = timedelta(minutes=10), sink.create
    sink.create = lambda issue_draft: (_ for _ in ()).throw(Unsure("lost"))  # type: ignore[method-assign]
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, Config(), DETECTORS)
    deliver(story.engine, sink, Config(), lambda: now + ahead)
    sink.create = create  # type: ignore[method-assign]
    (failed,) = deliver(story.engine, sink, Config(), lambda: now).failed
    assert failed.endswith("got no clear response; a run after 2026-01-05 12:10 UTC repeats it.")
    assert deliver(story.engine, sink, Config(), lambda: now + timedelta(minutes=10)).done == 1
    assert len(sink.issue_drafts) == 1


def test_a_question_that_fails_leaves_what_was_sent_in_doubt(story: Story) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink = Forgetful(name="console", settles=timedelta(minutes=10), break_after_create=Unsure("the answer is lost"))
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, Config(), DETECTORS)
    deliver(story.engine, sink, Config(), lambda: now)
    find, sink.find = sink.find, lambda fingerprint: (_ for _ in ()).throw(TrackerDown("down"))  # type: ignore[method-assign]
    deliver(story.engine, sink, Config(), lambda: now + timedelta(minutes=1))
    sink.find = find  # type: ignore[method-assign]
    deliver(story.engine, sink, Config(), lambda: now + timedelta(minutes=2))
    assert len(sink.issue_drafts) == 1


def test_a_clear_refusal_is_tried_again_at_once(story: Story, sink: MemorySink) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink.settles, create = timedelta(minutes=10), sink.create
    sink.create = lambda issue_draft: (_ for _ in ()).throw(StreamwardenError("no"))  # type: ignore[method-assign]
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, Config(), DETECTORS)
    assert deliver(story.engine, sink, Config(), lambda: now).failed == ["console: no"]
    sink.create = create  # type: ignore[method-assign]
    assert deliver(story.engine, sink, Config(), lambda: now).done == 1
