"""Several trackers: routing of tickets, and delivery to each exactly once, whatever happens to the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.tickets import Route
from streamwarden.base.config.trackers import Console, Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets import deliver, listen, reconcile
from streamwarden.tickets.sinks.contract import Issue, TrackerDown, Unsure, Update

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, MemorySink, hour

TEAM = Roundup(url="https://tracker.internal", user="u", password="p")


def config_of(*routes: Route, default: list[str] | None = None) -> Config:
    trackers = dict.fromkeys(("main", "billing", "oncall"), TEAM)
    return Config(tickets=Tickets(trackers=trackers, routes=list(routes), default=default))


def sinks() -> dict[str, MemorySink]:
    return {name: MemorySink(name=name) for name in ("main", "billing", "oncall")}


def reconcile_and_deliver_all(scenario: DeliveryScenario, config: Config, into: dict[str, MemorySink]) -> list[str]:
    reconcile(scenario.engine, config, DETECTORS, hour(3))
    return [failure for sink in into.values() for failure in deliver(scenario.engine, sink, config).failed]


def set_owner(scenario: DeliveryScenario, owner: str) -> None:
    with scenario.engine.begin() as connection:
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
def test_all_matching_routes_apply_and_the_default_is_for_the_rest(
    routes: list[Route], default: list[str] | None, of: tuple[str | None, str, str | None], wanted: list[str]
) -> None:
    assert config_of(*routes, default=default).tickets.trackers_for(*of) == wanted


def test_without_trackers_tickets_go_to_the_console() -> None:
    assert Tickets().trackers_for(None, "info", None) == ["console"]
    assert Tickets().all_trackers == {"console": Console()}


def test_a_ticket_in_two_trackers_is_delivered_to_both_in_order(scenario: DeliveryScenario) -> None:
    config, into = config_of(Route(owner="pay", to=["billing"]), ONCALL), sinks()
    scenario.evaluate(0, {"v1": "firing"})
    set_owner(scenario, "pay")
    assert reconcile_and_deliver_all(scenario, config, into) == []
    scenario.evaluate(1, {"v1": "ok"})
    scenario.evaluate(2, {"v1": "ok"})
    assert reconcile_and_deliver_all(scenario, config, into) == []
    assert {name: len(sink.issue_drafts) for name, sink in into.items()} == {"main": 0, "billing": 1, "oncall": 1}
    for name in ("billing", "oncall"):
        assert [update.action for update in into[name].updates] == ["close"]


def test_a_rise_in_severity_files_the_current_finding_in_a_further_tracker(scenario: DeliveryScenario) -> None:
    config, into = config_of(Route(to=["main"]), ONCALL), sinks()
    scenario.evaluate(0, {"v1": "firing"}, severity="warning", message="It began.")
    reconcile_and_deliver_all(scenario, config, into)
    scenario.evaluate(1, {"v1": "firing"}, severity="critical", message="It is worse.")
    reconcile_and_deliver_all(scenario, config, into)
    assert [update.action for update in into["main"].updates] == ["comment"]
    (joined,) = into["oncall"].issue_drafts
    assert (joined.severity, joined.notification.finding and joined.notification.finding.message) == (
        "critical",
        "It is worse.",
    )
    assert joined.notification.note == ""
    scenario.evaluate(2, {"v1": "firing"}, severity="warning", message="It is better.")
    reconcile_and_deliver_all(scenario, config, into)
    assert [update.action for update in into["oncall"].updates] == ["comment"], "a tracker that has the ticket keeps it"


SNOOZED = "Snoozed until 2026-01-12 11:00 UTC by a person in oncall. A higher severity ends the snooze earlier."


@pytest.mark.parametrize(
    ("state", "stored", "delivered"),
    [
        ("closed", ("closed", None), ("close", "Closed by a person in oncall.")),
        ("wont_fix", ("closed", "wont_fix"), ("close", "Marked as won't fix by a person in oncall.")),
        ("snoozed", ("open", "snoozed"), ("comment", SNOOZED)),
        ("acknowledged", ("open", None), ("comment", "Acknowledged by a person in oncall.")),
    ],
)
def test_a_response_in_one_tracker_is_delivered_to_the_others(
    scenario: DeliveryScenario, state: str, stored: tuple[str, str | None], delivered: tuple[str, str]
) -> None:
    config, into = config_of(Route(to=["main"]), ONCALL), sinks()
    scenario.evaluate(0, {"v1": "firing"})
    reconcile_and_deliver_all(scenario, config, into)
    into["oncall"].states["0"] = state
    assert listen(scenario.engine, into["oncall"], hour(1)) == 1
    assert listen(scenario.engine, into["oncall"], hour(1)) == 0
    (ticket,) = scenario.tickets()
    assert (ticket["state"], ticket["muted"]) == stored
    assert reconcile_and_deliver_all(scenario, config, into) == []
    assert [(update.action, update.notification.note) for update in into["main"].updates] == [delivered]
    assert into["oncall"].updates == []
    assert listen(scenario.engine, into["main"], hour(1)) == 0
    assert {issue["tracker"]: issue["state"] for issue in scenario.issues()}["oncall"] == state


def test_an_unreadable_issue_does_not_block_others(scenario: DeliveryScenario, sink: MemorySink) -> None:
    scenario.evaluate(0, {"v1": "firing", "v2": "firing"})
    reconcile(scenario.engine, Config(), DETECTORS, hour(1))
    deliver(scenario.engine, sink, Config())
    look, sink.states = sink.look, {"0": "closed", "1": "closed"}

    def refuse(key: str, fingerprint: str) -> Issue | None:
        if key == "0":
            raise StreamwardenError("this one is confidential")
        return look(key, fingerprint)

    sink.look = refuse  # type: ignore[method-assign]
    assert listen(scenario.engine, sink, hour(1)) == 1


def test_a_tracker_that_is_down_does_not_block_others(scenario: DeliveryScenario) -> None:
    config, into = config_of(Route(to=["main", "oncall"])), sinks()
    into["main"].broken = TrackerDown("https://tracker.internal: the tracker does not respond")
    scenario.evaluate(0, {"v1": "firing", "v2": "firing"})
    assert reconcile_and_deliver_all(scenario, config, into) == [
        "main: https://tracker.internal: the tracker does not respond"
    ]
    assert (len(into["main"].issue_drafts), len(into["oncall"].issue_drafts)) == (0, 2)
    into["main"].broken = None
    assert reconcile_and_deliver_all(scenario, config, into) == []
    assert (len(into["main"].issue_drafts), len(into["oncall"].issue_drafts)) == (2, 2)


def test_a_removed_tracker_receives_nothing_and_a_new_one_receives_open_tickets(scenario: DeliveryScenario) -> None:
    into = sinks()
    scenario.evaluate(0, {"v1": "firing"})
    reconcile_and_deliver_all(scenario, config_of(Route(to=["billing"])), into)
    scenario.evaluate(1, {"v1": "firing"}, reason="other", message="The reason is another one.")
    config = config_of(Route(to=["main"]))
    reconcile_and_deliver_all(scenario, config, {"main": into["main"]})
    assert [
        issue_draft.notification.finding.message
        for issue_draft in into["main"].issue_drafts
        if issue_draft.notification.finding
    ] == ["The reason is another one."]
    assert into["main"].updates == [] and into["billing"].updates == []


class LaggingSink(MemorySink):
    """A tracker whose responses to updates are lost and whose search lags until `lagging` is false."""

    lagging = True

    def find(self, fingerprint: str):  # type: ignore[no-untyped-def]
        return None if self.lagging else super().find(fingerprint)

    def has(self, update: Update) -> bool:
        return not self.lagging and super().has(update)

    def update(self, update: Update) -> None:
        super().update(update)
        raise Unsure("the response is lost")


def test_a_request_without_a_response_is_repeated_only_after_the_tracker_settled(
    scenario: DeliveryScenario,
) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink = LaggingSink(name="console", settles=timedelta(minutes=10), break_after_create=Unsure("the response is lost"))
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, Config(), DETECTORS)
    delivery = deliver(scenario.engine, sink, Config(), lambda: now)
    assert delivery.failed == ["console: the response is lost"]
    delivery = deliver(scenario.engine, sink, Config(), lambda: now + timedelta(minutes=9))
    assert delivery.failed == [
        "console: ebs_volume_starving title: v1: the request of 2026-01-05 12:00 UTC got no clear response; a run after"
        " 2026-01-05 12:10 UTC repeats it."
    ]
    assert len(sink.issue_drafts) == 1, "the search lags, and the issue is not filed twice"
    sink.lagging = False
    assert deliver(scenario.engine, sink, Config(), lambda: now + timedelta(minutes=9)).done == 1
    assert (len(sink.issue_drafts), scenario.tickets()[0]["external_key"]) == (1, "0")
    scenario.evaluate(1, {"v1": "firing"}, severity="warning")
    reconcile(scenario.engine, Config(), DETECTORS)
    for minutes in (0, 1, 2):
        deliver(scenario.engine, sink, Config(), lambda: now + timedelta(minutes=minutes))  # noqa: B023
    assert [update.action for update in sink.updates] == ["comment"]
    assert [issue["unsure_at"] for issue in scenario.issues()] == [None]


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=40)], ids=["clock right", "clock 40 days ahead"])
def test_a_request_that_never_arrived_is_repeated_after_the_tracker_settled(
    scenario: DeliveryScenario, sink: MemorySink, ahead: timedelta
) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink.settles, create = timedelta(minutes=10), sink.create
    sink.create = lambda issue_draft: (_ for _ in ()).throw(Unsure("lost"))  # type: ignore[method-assign]
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, Config(), DETECTORS)
    deliver(scenario.engine, sink, Config(), lambda: now + ahead)
    sink.create = create  # type: ignore[method-assign]
    (failed,) = deliver(scenario.engine, sink, Config(), lambda: now).failed
    assert failed.endswith("got no clear response; a run after 2026-01-05 12:10 UTC repeats it.")
    assert deliver(scenario.engine, sink, Config(), lambda: now + timedelta(minutes=10)).done == 1
    assert len(sink.issue_drafts) == 1


def test_a_failed_search_keeps_the_request_unsure(scenario: DeliveryScenario) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink = LaggingSink(name="console", settles=timedelta(minutes=10), break_after_create=Unsure("the response is lost"))
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, Config(), DETECTORS)
    deliver(scenario.engine, sink, Config(), lambda: now)
    find, sink.find = sink.find, lambda fingerprint: (_ for _ in ()).throw(TrackerDown("down"))  # type: ignore[method-assign]
    deliver(scenario.engine, sink, Config(), lambda: now + timedelta(minutes=1))
    sink.find = find  # type: ignore[method-assign]
    deliver(scenario.engine, sink, Config(), lambda: now + timedelta(minutes=2))
    assert len(sink.issue_drafts) == 1


def test_a_clear_refusal_is_retried_in_the_next_run(scenario: DeliveryScenario, sink: MemorySink) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    sink.settles, create = timedelta(minutes=10), sink.create
    sink.create = lambda issue_draft: (_ for _ in ()).throw(StreamwardenError("no"))  # type: ignore[method-assign]
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, Config(), DETECTORS)
    assert deliver(scenario.engine, sink, Config(), lambda: now).failed == ["console: no"]
    sink.create = create  # type: ignore[method-assign]
    assert deliver(scenario.engine, sink, Config(), lambda: now).done == 1
