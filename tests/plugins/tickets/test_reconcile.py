"""`reconcile` on a real warehouse: opening, closing, reopening, storms, deleted resources, mutes; in any order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.trackers import Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import gap_of_present
from streamwarden.detectors import Finding
from streamwarden.detectors.results import store_findings
from streamwarden.tickets import deliver, listen, reconcile

from tests.plugins.tickets.scenario import (
    DETECTORS,
    DeliveryScenario,
    MemorySink,
    fingerprint_of,
    hour,
    mute,
    resource,
)


@pytest.fixture
def run(scenario: DeliveryScenario, config: Config) -> Any:
    return lambda now=None: reconcile(scenario.engine, config, DETECTORS, now)


def test_a_firing_finding_opens_one_ticket_and_a_rerun_changes_nothing(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing", "v2": "ok", "v3": "unknown"})
    assert run().opened == 1
    ticket, changes = scenario.tickets(), scenario.changes()
    scenario.evaluate(0, {"v1": "firing", "v2": "ok", "v3": "unknown"})
    plan = run()
    assert (plan.opened, plan.commented, plan.closed, plan.still_open) == (0, 0, 0, 1)
    assert [t["resource_name"] for t in ticket] == ["v1"]
    assert scenario.changes() == changes


def test_a_ticket_opens_after_open_after_hours_and_unknown_hours_do_not_count(
    scenario: DeliveryScenario, run: Any
) -> None:
    scenario.evaluate(0, {"a": "firing"}, "app_memory_heavy")
    assert run().opened == 0
    scenario.evaluate(1, {"a": "unknown"}, "app_memory_heavy")
    scenario.evaluate(2, {"a": "ok"}, "app_memory_heavy")
    scenario.evaluate(3, {"a": "firing"}, "app_memory_heavy")
    assert run().opened == 0
    scenario.evaluate(4, {"a": "unknown"}, "app_memory_heavy")
    scenario.evaluate(5, {"a": "firing"}, "app_memory_heavy")
    assert run().opened == 1
    assert scenario.tickets()[0]["opened_hour"] == hour(3)


def test_a_ticket_closes_only_after_clean_hours_with_data(scenario: DeliveryScenario, run: Any) -> None:
    for number, status in enumerate(["firing", "ok", "unknown", "firing", "ok", "unknown"]):
        scenario.evaluate(number, {"v1": status})
        assert run().closed == 0
    scenario.evaluate(6, {"v1": "ok"}, message="Bucket is full again.")
    assert run().closed == 1
    ticket, change = scenario.tickets()[0], scenario.changes()[-1]
    assert (ticket["state"], ticket["close_reason"], ticket["closed_hour"]) == ("closed", "healthy", hour(6))
    assert change["action"] == "close" and "Bucket is full again." in change["body"]


@pytest.mark.parametrize("coverage", ["failed", "late"])
def test_a_source_that_is_down_neither_opens_nor_closes(scenario: DeliveryScenario, run: Any, coverage: str) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run()
    for number in range(1, 5):
        scenario.evaluate(number, {}, coverage=coverage)
        plan = run()
        assert (plan.opened, plan.closed, plan.still_open) == (0, 0, 1)


def test_a_blocked_detector_closes_no_ticket_of_a_missing_resource(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run()
    scenario.evaluate(1, {}, detector_run="blocked")
    scenario.evaluate(1, {"a": "ok"}, "app_memory_heavy")
    assert run().closed == 0


def test_the_ticket_of_a_deleted_resource_closes_with_that_reason(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing", "v2": "ok"})
    run()
    scenario.evaluate(1, {"v2": "ok"}, coverage="missing")
    assert run().closed == 1
    assert scenario.tickets()[0]["close_reason"] == "deleted"
    assert "v1 was deleted" in scenario.changes()[-1]["body"]


def test_firing_again_reopens_within_the_window_and_opens_a_new_ticket_after_it(
    scenario: DeliveryScenario, run: Any
) -> None:
    for number, status in enumerate(["firing", "ok", "ok"]):
        scenario.evaluate(number, {"v1": status})
        run()
    scenario.evaluate(20, {"v1": "firing"})
    assert run().reopened == 1
    assert [t["state"] for t in scenario.tickets()] == ["open"]
    scenario.evaluate(21, {"v1": "ok"})
    scenario.evaluate(22, {"v1": "ok"})
    run()
    scenario.evaluate(22 + 25, {"v1": "firing"})
    assert run().opened == 1
    old, new = scenario.tickets()
    assert (old["state"], new["state"], new["previous_ticket_id"]) == ("closed", "open", old["ticket_id"])


def test_a_backfilled_hour_does_not_override_newer_hours(scenario: DeliveryScenario, run: Any) -> None:
    for number, status in ((10, "firing"), (11, "ok"), (12, "ok")):
        scenario.evaluate(number, {"v1": status, "v2": "firing"})
        run()
    before = scenario.tickets()
    scenario.evaluate(2, {"v1": "firing", "v2": "ok"})
    scenario.evaluate(3, {"v1": "firing", "v2": "ok"})
    plan = run()
    assert (plan.opened, plan.closed, plan.reopened, plan.commented) == (0, 0, 0, 0)
    assert [(t["state"], t["closed_hour"]) for t in scenario.tickets()] == [
        (t["state"], t["closed_hour"]) for t in before
    ]


def test_an_hour_evaluated_again_as_ok_closes_its_ticket(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run()
    scenario.evaluate(0, {"v1": "ok"})
    assert run().closed == 1


def test_comments_only_for_a_new_reason_or_severity(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"}, message="Balance is 12 % since 05:00, 3 min left.", reason="draining")
    run()
    scenario.evaluate(1, {"v1": "firing"}, message="Another message.", reason="draining")
    assert run().commented == 0, "a new message with the same reason is not posted"
    scenario.evaluate(2, {"v1": "firing"}, message="The instance binds.", reason="instance_limit")
    assert run().commented == 1
    assert "The instance binds." in scenario.changes()[-1]["finding"]["message"]
    scenario.evaluate(3, {"v1": "firing"}, reason="draining")
    assert run().commented == 0, "this reason was posted already"
    scenario.evaluate(4, {"v1": "firing"}, reason="instance_limit", severity="warning")
    assert run().commented == 1
    assert "from critical to warning" in scenario.changes()[-1]["body"]


def test_lists_in_another_order_are_not_a_change(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"}, metrics={"topics": ["a", "b"]}, affected=("topic:c/a", "topic:c/b"))
    run()
    scenario.evaluate(1, {"v1": "firing"}, metrics={"topics": ["b", "a"]}, affected=("topic:c/b", "topic:c/a"))
    assert run().commented == 0


def test_a_finding_below_the_least_severity_opens_no_ticket_until_it_rises(
    scenario: DeliveryScenario, run: Any
) -> None:
    for number in (0, 1):
        scenario.evaluate(number, {"v1": "firing"}, severity="info")
        plan = run()
        assert (plan.opened, plan.in_storm, plan.still_open) == (0, 0, 0)
    assert not scenario.changes()
    scenario.evaluate(2, {"v1": "firing"}, severity="warning")
    assert run().opened == 1


def test_info_findings_do_not_count_towards_the_cap(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {f"v{n}": "firing" for n in range(50)}, severity="info")
    scenario.evaluate(0, {"g1": "firing", "g2": "firing", "g3": "firing"}, "consumer_group_lagging", severity="warning")
    plan = run()
    assert (plan.opened, plan.in_storm) == (3, 0)


def test_an_open_ticket_below_the_least_severity_is_unchanged_until_it_closes(
    scenario: DeliveryScenario, run: Any
) -> None:
    scenario.evaluate(0, {"v1": "firing"}, severity="warning", reason="bad")
    run()
    changes = scenario.changes()
    scenario.evaluate(1, {"v1": "firing"}, severity="info", reason="other")
    run()
    ticket = scenario.tickets()[0]
    assert (ticket["state"], ticket["severity"], scenario.changes()) == ("open", "warning", changes)
    for number in (2, 3):
        scenario.evaluate(number, {"v1": "ok"})
        run()
    assert scenario.tickets()[0]["state"] == "closed"
    scenario.evaluate(4, {"v1": "firing"}, severity="info")
    assert run().reopened == 0
    scenario.evaluate(5, {"v1": "firing"}, severity="warning")
    assert run().reopened == 1


def test_with_info_as_the_least_severity_info_findings_open_tickets(scenario: DeliveryScenario) -> None:
    scenario.evaluate(0, {"v1": "firing"}, severity="info")
    assert reconcile(scenario.engine, Config(tickets=Tickets(least_severity="info")), DETECTORS).opened == 1


def test_a_storm_files_the_cap_and_one_summary(
    scenario: DeliveryScenario, run: Any, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {f"v{n}": "firing" for n in range(500)})
    plan = run()
    assert (plan.opened, plan.in_storm) == (500, 497)
    assert scenario.actions() == ["create"] * 4
    assert run().opened == 0, "the next run files no more of them"
    deliver(scenario.engine, sink, config)
    assert sum("Alert storm: 497 more findings" in issue_draft.title for issue_draft in sink.issue_drafts) == 1
    scenario.evaluate(1, {f"v{n}": "ok" for n in range(500)})
    run()
    assert len(scenario.actions()) == 4
    scenario.evaluate(2, {f"v{n}": "ok" for n in range(500)})
    run()
    assert scenario.actions()[4:] == ["close"] * 4
    assert {t["state"] for t in scenario.tickets()} == {"closed"}


def test_a_storm_still_files_the_first_critical_finding_of_each_detector(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {f"m{n}": "firing" for n in range(5)}, "app_memory_heavy", severity="warning")
    for number in (0, 1):
        scenario.evaluate(number, {f"v{n}": "firing" for n in range(50)})
        scenario.evaluate(number, {f"g{n}": "firing" for n in range(5)}, "consumer_group_lagging")
    scenario.evaluate(1, {f"m{n}": "firing" for n in range(5)}, "app_memory_heavy", severity="warning")
    plan = run()
    filed = [t["detector"] for t in scenario.tickets() if t["summary_ticket_id"] is None and t["detector"] != "storm"]
    assert filed == ["ebs_volume_starving"] * 2 + ["consumer_group_lagging"]
    assert (plan.opened, plan.in_storm) == (60, 57)


def test_a_rise_in_severity_within_a_storm_is_posted_once(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {f"v{n}": "firing" for n in range(10)}, severity="warning")
    run()
    scenario.evaluate(1, {f"v{n}": "firing" for n in range(10)}, severity="critical")
    run()
    run()
    summary = next(t["ticket_id"] for t in scenario.tickets() if t["detector"] == "storm")
    comments = [c["body"] for c in scenario.changes() if c["ticket_id"] == summary and c["action"] == "comment"]
    assert len(comments) == 1 and comments[0].count("is now critical") == 7


def test_a_finding_marked_as_wont_fix_is_never_posted_again(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"}, severity="warning")
    run()
    mute(scenario.engine, scenario.tickets()[0]["ticket_id"], until=None, who="Vera", why="Known.")
    assert scenario.actions() == ["create", "close"]
    for number in range(1, 200, 30):
        scenario.evaluate(number, {"v1": "firing"}, severity="critical")
        plan = run()
        assert (plan.opened, plan.reopened, plan.commented) == (0, 0, 0)


def test_a_snooze_suppresses_comments_and_expires(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"}, severity="warning")
    run(hour(1))
    mute(scenario.engine, scenario.tickets()[0]["ticket_id"], until=hour(5), who="Vera", why="Known.", now=hour(1))
    scenario.evaluate(2, {"v1": "firing"}, severity="warning", message="Another message.")
    assert run(hour(3)).commented == 0
    scenario.evaluate(5, {"v1": "firing"}, severity="warning", message="Another message.")
    run(hour(6))
    assert "The snooze has ended" in "".join(c["body"] or "" for c in scenario.changes())
    assert scenario.tickets()[0]["muted"] is None


def test_a_rise_in_severity_ends_a_snooze(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"}, severity="warning")
    run(hour(1))
    mute(scenario.engine, scenario.tickets()[0]["ticket_id"], until=hour(100), who="Vera", why="Known.", now=hour(1))
    scenario.evaluate(2, {"v1": "firing"}, severity="critical")
    assert run(hour(3)).commented == 1
    assert scenario.tickets()[0]["muted"] is None


def test_a_resolved_snoozed_finding_does_not_reopen_before_the_snooze_ends(
    scenario: DeliveryScenario, run: Any
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run(hour(1))
    mute(scenario.engine, scenario.tickets()[0]["ticket_id"], until=hour(9), who="Vera", why="Known.", now=hour(1))
    for number, status in ((1, "ok"), (2, "ok"), (4, "firing")):
        scenario.evaluate(number, {"v1": status})
        assert run(hour(number + 1)).reopened == 0
    scenario.evaluate(9, {"v1": "firing"})
    assert run(hour(10)).reopened == 1


def test_a_snooze_that_ends_in_the_past_is_a_one_line_error(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run()
    with pytest.raises(
        StreamwardenError, match="v1: cannot snooze until 2026-01-05 10:00 UTC: this time is in the past"
    ):
        mute(scenario.engine, 1, until=hour(0), who="Vera", why="Known.")


def test_a_possible_cause_is_linked(scenario: DeliveryScenario, run: Any, sink: MemorySink, config: Config) -> None:
    scenario.evaluate(0, {"group": "firing"}, "consumer_group_lagging")
    scenario.evaluate(0, {"1": "firing"})
    scenario.store_causes(0, {(fingerprint_of("group", "consumer_group_lagging"), fingerprint_of("1")): 0.45})
    run()
    assert [ticket["cause_ticket_id"] for ticket in scenario.tickets()] == [None, None]
    deliver(scenario.engine, sink, config)
    related = {
        issue_draft.resource_name: [(r.relation, r.title) for r in issue_draft.notification.related]
        for issue_draft in sink.issue_drafts
    }
    assert related["group"] == [("Possible cause", "ebs_volume_starving title: 1")]
    assert related["1"] == [("Possible downstream effect", "consumer_group_lagging title: group")]


def test_a_new_tracker_receives_the_open_tickets(
    scenario: DeliveryScenario, run: Any, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run()
    deliver(scenario.engine, sink, config)
    other = Config(tickets=Tickets(trackers={"roundup": Roundup(url="https://x", password="p")}))
    reconcile(scenario.engine, other, DETECTORS)
    new = MemorySink(name="roundup")
    deliver(scenario.engine, new, other)
    assert [issue_draft.fingerprint for issue_draft in new.issue_drafts] == [fingerprint_of("v1")]


def test_tickets_of_a_disabled_detector_are_unchanged(scenario: DeliveryScenario, run: Any, config: Config) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    run()
    scenario.evaluate(1, {"v1": "ok"})
    scenario.evaluate(2, {"v1": "ok"})
    others = {id_: d for id_, d in DETECTORS.items() if id_ != "ebs_volume_starving"}
    assert reconcile(scenario.engine, config, others).closed == 0


def test_nothing_evaluated_yet_plans_nothing(run: Any) -> None:
    assert str(run()) == "0 opened, 0 reopened, 0 commented, 0 closed, 0 open"


@pytest.fixture(scope="module")
def shared_scenario(module_warehouse: sa.Engine) -> DeliveryScenario:
    return DeliveryScenario(module_warehouse)


HOURS = st.lists(st.sampled_from(["firing", "ok", "unknown", "gone", "none"]), min_size=1, max_size=9)


def _run_hour(scenario: DeliveryScenario, number: int, status: str, detector_id: str = "ebs_volume_starving") -> None:
    """Evaluates an hour in which resource r has this status of `HOURS`, and reconciles."""
    rows = {"other": "ok"} | ({} if status in ("gone", "none") else {"r": status})
    scenario.evaluate(number, rows, detector_id, coverage="failed" if status == "none" else "complete")
    reconcile(scenario.engine, Config(), DETECTORS)


def _open(scenario: DeliveryScenario) -> list[Any]:
    return [(t["resource_name"], t["opened_hour"]) for t in scenario.tickets() if t["state"] == "open"]


def _evaluations(scenario: DeliveryScenario) -> list[Any]:
    return scenario.rows(
        "select hour, resource_name, status, reason, message from detect.evaluation order by hour, resource_name"
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statuses=HOURS, data=st.data(), detector_id=st.sampled_from(["ebs_volume_starving", "app_memory_heavy"]))
def test_the_order_in_which_hours_are_evaluated_does_not_matter(
    shared_scenario: DeliveryScenario, statuses: list[str], data: st.DataObject, detector_id: str
) -> None:
    """Every order ends with the same rows, and with the same open ticket if the newest hour is firing.

    If the newest hour is not firing, an older firing hour that is evaluated after it opens no ticket.
    """
    scenario = shared_scenario
    scenario.clear()
    for number, status in enumerate(statuses):
        _run_hour(scenario, number, status, detector_id)
    in_order, rows = _open(scenario), _evaluations(scenario)
    scenario.clear()
    for number in data.draw(st.permutations(range(len(statuses)))):
        _run_hour(scenario, number, statuses[number], detector_id)
    assert _evaluations(scenario) == rows
    assert _open(scenario) in ([in_order] if statuses[-1] == "firing" else [in_order, []])
    changes = scenario.changes()
    reconcile(scenario.engine, Config(), DETECTORS)
    assert scenario.changes() == changes, "a further run changes nothing"


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statuses=HOURS, data=st.data())
def test_backfilled_hours_only_move_the_opened_hour_of_open_tickets(
    shared_scenario: DeliveryScenario, statuses: list[str], data: st.DataObject
) -> None:
    """Evaluates the newest hour first, then the older hours in any order, some of them twice."""
    scenario, newest = shared_scenario, len(statuses) - 1
    scenario.clear()
    for number, status in enumerate(statuses):
        _run_hour(scenario, number, status)
    since = [opened for _, opened in _open(scenario)] if statuses[-1] == "firing" else []
    scenario.clear()
    _run_hour(scenario, newest, statuses[newest])
    changes = scenario.changes()
    assert len(changes) == (statuses[-1] == "firing")
    for number in data.draw(st.permutations([*range(newest), *range(0, newest, 2)])):
        _run_hour(scenario, number, statuses[number])
    assert scenario.changes() == changes
    assert [ticket["opened_hour"] for ticket in scenario.tickets()] == since


def test_a_backfilled_firing_hour_opens_nothing_if_the_newest_hour_is_ok(scenario: DeliveryScenario, run: Any) -> None:
    scenario.evaluate(7, {"v1": "ok"}, message="The bucket refills.")
    scenario.evaluate(5, {"v1": "firing", "gone since": "firing"}, message="It will be empty in 33 min.")
    plan = run()
    assert (plan.opened, plan.reopened, scenario.tickets(), scenario.changes()) == (0, 0, [], [])


def test_a_backfilled_firing_hour_is_not_posted(scenario: DeliveryScenario, run: Any) -> None:
    """The ticket is open, the newest hour is unknown, and an older hour with another reason is backfilled."""
    scenario.evaluate(0, {"v1": "firing"}, severity="warning")
    scenario.evaluate(2, {"v1": "unknown"})
    run()
    assert not scenario.tickets()
    scenario.evaluate(3, {"v1": "firing"}, severity="warning")
    run()
    scenario.evaluate(5, {"v1": "unknown"})
    run()
    changes = scenario.changes()
    scenario.evaluate(4, {"v1": "firing"}, reason="worse", message="It is worse.", severity="critical")
    run()
    assert scenario.changes() == changes
    assert scenario.tickets()[0]["severity"] == "warning"


def test_hours_that_were_read_too_late_close_no_ticket(scenario: DeliveryScenario, run: Any) -> None:
    """A resource that is not listed now may have existed in a past hour."""
    scenario.evaluate(0, {"v1": "firing"})
    run()
    gap = str(gap_of_present(hour(1), "EC2's inventory")).partition(": ")[2]
    scenario.evaluate(1, {"v2": "ok"}, coverage="missing")
    with scenario.engine.begin() as connection:
        connection.execute(
            sa.text("update detect.coverage set message = :gap where hour = :hour and status = 'missing'"),
            {"hour": hour(1), "gap": gap},
        )
    assert run().closed == 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statuses=HOURS)
def test_the_tracker_receives_closings_and_reopenings_alternately(
    shared_scenario: DeliveryScenario, statuses: list[str]
) -> None:
    """The changes of a ticket start with create; then close and reopen alternate."""
    scenario = shared_scenario
    scenario.clear()
    for number, status in enumerate(statuses):
        rows = {"other": "ok"} | ({} if status in ("gone", "none") else {"r": status})
        scenario.evaluate(number, rows, coverage="failed" if status == "none" else "complete")
        reconcile(scenario.engine, Config(), DETECTORS)
    for ticket in scenario.tickets():
        turns = [c["action"] for c in scenario.changes() if c["ticket_id"] == ticket["ticket_id"]]
        assert turns[0] == "create"
        assert turns[1:] == [("close", "reopen")[n % 2] for n in range(len(turns) - 1)]


def test_responses_in_the_tracker_are_applied(
    scenario: DeliveryScenario, run: Any, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing", "v2": "firing", "v3": "firing"}, severity="warning")
    run(hour(1))
    deliver(scenario.engine, sink, config)
    states = dict(zip((t["resource_name"] for t in scenario.tickets()), ("closed", "snoozed", "wont_fix"), strict=True))
    sink.states = {t["external_key"]: states[t["resource_name"]] for t in scenario.tickets()}
    assert listen(scenario.engine, sink, hour(1) + timedelta(minutes=20)) == 3
    assert listen(scenario.engine, sink, hour(1) + timedelta(minutes=30)) == 0
    scenario.evaluate(1, {"v1": "firing", "v2": "firing", "v3": "firing"}, severity="warning")
    assert run(hour(2)).reopened == 0, "the hour in which it was closed does not reopen it"
    scenario.evaluate(2, {"v1": "firing", "v2": "firing", "v3": "firing"}, severity="warning", message="Else.")
    plan = run(hour(3))
    assert (plan.reopened, plan.commented, plan.opened) == (1, 0, 0)
    assert [(t["resource_name"], t["state"]) for t in scenario.tickets()] == list(
        zip(states, ("open", "open", "closed"), strict=True)
    )


@pytest.mark.parametrize(
    ("until", "opens"),
    [("2026-01-05T09:59:00+00:00", 0), ("2026-01-05T04:20:00Z", 0), ("2026-01-05T10:00:00+00:00", 1), (None, 1)],
)
def test_evidence_that_ended_before_the_evaluated_hour_opens_nothing(
    scenario: DeliveryScenario, run: Any, until: str | None, opens: int
) -> None:
    scenario.evaluate(0, {"v1": "firing"}, metrics={"evidence_until": until})
    assert run().opened == opens


def test_evidence_that_ended_reopens_nothing_and_closes_nothing(scenario: DeliveryScenario, run: Any) -> None:
    within, ended = {"evidence_until": hour(0).isoformat()}, {"evidence_until": hour(3).isoformat()}
    for number, (status, metrics) in enumerate([("firing", within), ("firing", within), ("ok", {}), ("ok", {})]):
        scenario.evaluate(number, {"v1": status}, metrics=metrics)
        run()
    assert scenario.actions() == ["create", "close"]
    scenario.evaluate(4, {"v1": "firing"}, metrics=ended)
    run()
    assert scenario.actions() == ["create", "close"]
    scenario.evaluate(5, {"v1": "firing"}, metrics={"evidence_until": hour(5).isoformat()})
    run()
    assert scenario.actions() == ["create", "close", "reopen"]


@pytest.mark.parametrize(
    ("topics", "counts"),
    [(["topic:c/clicks", "topic:c/orders"], (0, 1)), (["topic:c/bills"], (1, 0)), ([], (0, 1))],
)
def test_a_finding_about_a_cluster_reopens_only_for_what_it_affected(
    scenario: DeliveryScenario, run: Any, topics: list[str], counts: tuple[int, int]
) -> None:
    rogue: dict[str, Any] = {"detector_id": "consumer_rogue", "affected": ("topic:c/clicks",)}
    for number, status in enumerate(["firing", "ok", "ok"]):
        scenario.evaluate(number, {"c": status}, **rogue)
        run()
    scenario.evaluate(3, {"c": "firing"}, **rogue | {"affected": tuple(topics)})
    plan = run()
    assert (plan.opened, plan.reopened) == counts


def test_other_affected_resources_of_an_open_cluster_finding_are_news_once(
    scenario: DeliveryScenario, run: Any
) -> None:
    rogue: dict[str, Any] = {"detector_id": "consumer_rogue"}
    for number, topics in enumerate([["topic:c/clicks"], ["topic:c/clicks", "topic:c/bills"], ["topic:c/orders"]]):
        scenario.evaluate(number, {"c": "firing"}, **rogue, affected=tuple(topics))
        run()
        run()
    assert scenario.actions() == ["create", "comment"]
    assert scenario.changes()[1]["body"] == "The affected resources changed:"


FINDINGS = [
    ("ebs_volume_starving", "v1"), ("ebs_volume_starving", "v2"), ("consumer_group_lagging", "billing"),
    ("consumer_group_lagging", "search"), ("consumer_rogue", "c"), ("app_memory_heavy", "p1"),
]  # fmt: skip
PAST = st.tuples(
    st.sampled_from(["firing", "firing", "ok", "unknown", "gone"]), st.sampled_from(["bad", "worse"]),
    st.sampled_from(["warning", "critical"]),
)  # fmt: skip


def _backfill(scenario: DeliveryScenario, number: int, past: list[tuple[str, str, str]], tie: float) -> None:
    """An hour with these findings, its causes, tickets, and deliveries."""
    for detector_id in DETECTORS:
        mine = [(name, of) for (id_, name), of in zip(FINDINGS, past, strict=True) if id_ == detector_id]
        scenario.evaluate(number, {"other": "ok"}, detector_id)
        with scenario.engine.begin() as connection:
            for name, (status, reason, severity) in mine:
                if status != "gone":
                    is_firing = status == "firing"
                    finding = Finding(
                        detector_id, resource(name, detector_id), reason, status,  # type: ignore[arg-type]
                        severity if is_firing else None, {}, f"It is {reason}.",
                    )  # fmt: skip
                    store_findings(connection, [finding], hour(number), hour(number))
    firing = {name for (_, name), (status, *_) in zip(FINDINGS, past, strict=True) if status == "firing"}
    ties = {
        (fingerprint_of(group, "consumer_group_lagging"), fingerprint_of(volume)): tie
        for group, volume in (("billing", "v1"), ("search", "v2"))
        if {group, volume} <= firing
    }
    if ties:
        scenario.store_causes(number, ties)
    reconcile(scenario.engine, Config(), DETECTORS)


@pytest.mark.rare
@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
@given(
    order=st.permutations(range(24)),
    hours=st.lists(st.lists(PAST, min_size=len(FINDINGS), max_size=len(FINDINGS)), min_size=24, max_size=24),
    ties=st.lists(st.sampled_from([0.9, 0.2]), min_size=24, max_size=24),
)
def test_a_backfilled_day_changes_only_the_history_of_the_open_tickets(
    shared_scenario: DeliveryScenario, order: list[int], hours: list[list[tuple[str, str, str]]], ties: list[float]
) -> None:
    """The present hour has an incident, a single finding, and healthy resources; then the 24 hours before arrive."""
    scenario, sink = shared_scenario, MemorySink()
    scenario.clear()
    now = [("firing", "bad", "critical")] * 3 + [("ok", "good", "")] * 2 + [("firing", "bad", "warning")]
    for number in (24, 25):  # app_memory_heavy opens after two hours
        _backfill(scenario, number, now, 0.9)
    deliver(scenario.engine, sink, Config())

    def present() -> tuple[Any, ...]:
        history = ("opened_hour", "updated_at")
        tickets = [{key: t[key] for key in t if key not in history} for t in scenario.tickets()]
        return tickets, scenario.changes(), list(sink.issue_drafts), list(sink.updates)

    before = present()
    assert {t["resource_name"] for t in before[0] if t["state"] == "open"} == {"v1", "v2", "billing", "p1"}
    assert len(sink.issue_drafts) == 3, "billing is in the issue of v1"
    for number in order:
        _backfill(scenario, number, hours[number], ties[number])
        deliver(scenario.engine, sink, Config())
        assert present() == before, (number, hours[number])
