"""Reconcile's rules on a real warehouse: opens, closes, reopens, storms, gone resources, mutes; in any order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.trackers import Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import gap_of_present
from streamwarden.tickets import deliver, listen, reconcile

from tests.plugins.tickets.story import DETECTORS, MemorySink, Story, hour, mute, print_of


@pytest.fixture
def run(story: Story, config: Config) -> Any:
    return lambda now=None: reconcile(story.engine, config, DETECTORS, now)


def test_an_alarm_opens_one_ticket_and_the_same_hour_again_changes_nothing(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing", "v2": "ok", "v3": "unknown"})
    assert run().opened == 1
    ticket, changes = story.tickets(), story.changes()
    story.judge(0, {"v1": "firing", "v2": "ok", "v3": "unknown"})
    plan = run()
    assert (plan.opened, plan.commented, plan.closed, plan.still_open) == (0, 0, 0, 1)
    assert [t["resource_name"] for t in ticket] == ["v1"]
    assert story.changes() == changes


def test_opens_after_so_many_alarms_in_a_row_and_skips_count_for_nothing(story: Story, run: Any) -> None:
    story.judge(0, {"a": "firing"}, "app_memory_heavy")
    assert run().opened == 0
    story.judge(1, {"a": "unknown"}, "app_memory_heavy")
    story.judge(2, {"a": "ok"}, "app_memory_heavy")
    story.judge(3, {"a": "firing"}, "app_memory_heavy")
    assert run().opened == 0
    story.judge(4, {"a": "unknown"}, "app_memory_heavy")
    story.judge(5, {"a": "firing"}, "app_memory_heavy")
    assert run().opened == 1
    assert story.tickets()[0]["opened_hour"] == hour(3)


def test_closes_only_after_clean_hours_with_data(story: Story, run: Any) -> None:
    for number, status in enumerate(["firing", "ok", "unknown", "firing", "ok", "unknown"]):
        story.judge(number, {"v1": status})
        assert run().closed == 0
    story.judge(6, {"v1": "ok"}, message="Bucket is full again.")
    assert run().closed == 1
    ticket, change = story.tickets()[0], story.changes()[-1]
    assert (ticket["state"], ticket["close_reason"], ticket["closed_hour"]) == ("closed", "healthy", hour(6))
    assert change["action"] == "close" and "Bucket is full again." in change["body"]


@pytest.mark.parametrize("coverage", ["refused", "late"])
def test_a_source_that_is_down_neither_opens_nor_closes(story: Story, run: Any, coverage: str) -> None:
    story.judge(0, {"v1": "firing"})
    run()
    for number in range(1, 5):
        story.judge(number, {}, coverage=coverage)
        plan = run()
        assert (plan.opened, plan.closed, plan.still_open) == (0, 0, 1)


def test_a_detector_that_was_blocked_says_nothing_of_what_is_gone(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"})
    run()
    story.judge(1, {}, detector_run="blocked")
    story.judge(1, {"a": "ok"}, "app_memory_heavy")
    assert run().closed == 0


def test_a_gone_resource_closes_its_ticket_with_that_reason(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing", "v2": "ok"})
    run()
    story.judge(1, {"v2": "ok"}, coverage="missing")
    assert run().closed == 1
    assert story.tickets()[0]["close_reason"] == "deleted"
    assert "v1 was deleted" in story.changes()[-1]["body"]


def test_back_within_the_window_reopens_and_later_is_a_new_ticket_that_names_the_old(story: Story, run: Any) -> None:
    for number, status in enumerate(["firing", "ok", "ok"]):
        story.judge(number, {"v1": status})
        run()
    story.judge(20, {"v1": "firing"})
    assert run().reopened == 1
    assert [t["state"] for t in story.tickets()] == ["open"]
    story.judge(21, {"v1": "ok"})
    story.judge(22, {"v1": "ok"})
    run()
    story.judge(22 + 25, {"v1": "firing"})
    assert run().opened == 1
    old, new = story.tickets()
    assert (old["state"], new["state"], new["previous_ticket_id"]) == ("closed", "open", old["ticket_id"])


def test_backfilling_an_old_hour_changes_nothing_that_newer_hours_decided(story: Story, run: Any) -> None:
    for number, status in ((10, "firing"), (11, "ok"), (12, "ok")):
        story.judge(number, {"v1": status, "v2": "firing"})
        run()
    before = story.tickets()
    story.judge(2, {"v1": "firing", "v2": "ok"})
    story.judge(3, {"v1": "firing", "v2": "ok"})
    plan = run()
    assert (plan.opened, plan.closed, plan.reopened, plan.commented) == (0, 0, 0, 0)
    assert [(t["state"], t["closed_hour"]) for t in story.tickets()] == [(t["state"], t["closed_hour"]) for t in before]


def test_an_hour_judged_anew_takes_its_ticket_back(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"})
    run()
    story.judge(0, {"v1": "ok"})
    assert run().closed == 1


def test_comments_only_when_something_that_matters_changed(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"}, message="Balance is 12 % since 05:00, 3 min left.", reason="draining")
    run()
    story.judge(1, {"v1": "firing"}, message="Quite another wording of it.", reason="draining")
    assert run().commented == 0, "other words and figures are no news"
    story.judge(2, {"v1": "firing"}, message="The instance binds.", reason="instance_limit")
    assert run().commented == 1
    assert "The instance binds." in story.changes()[-1]["finding"]["message"]
    story.judge(3, {"v1": "firing"}, reason="draining")
    assert run().commented == 0, "it was told already"
    story.judge(4, {"v1": "firing"}, reason="instance_limit", severity="warning")
    assert run().commented == 1
    assert "from critical to warning" in story.changes()[-1]["body"]


def test_the_parts_of_a_finding_in_another_order_are_no_news(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"}, metrics={"topics": ["a", "b"]}, affected=("topic:c/a", "topic:c/b"))
    run()
    story.judge(1, {"v1": "firing"}, metrics={"topics": ["b", "a"]}, affected=("topic:c/b", "topic:c/a"))
    assert run().commented == 0


def test_what_is_below_the_least_severity_opens_no_ticket_until_it_rises(story: Story, run: Any) -> None:
    for number in (0, 1):
        story.judge(number, {"v1": "firing"}, severity="info")
        plan = run()
        assert (plan.opened, plan.in_storm, plan.still_open) == (0, 0, 0)
    assert not story.changes()
    story.judge(2, {"v1": "firing"}, severity="warning")
    assert run().opened == 1


def test_advice_is_no_storm_and_crowds_nobody_out(story: Story, run: Any) -> None:
    story.judge(0, {f"v{n}": "firing" for n in range(50)}, severity="info")
    story.judge(0, {"g1": "firing", "g2": "firing", "g3": "firing"}, "consumer_group_lagging", severity="warning")
    plan = run()
    assert (plan.opened, plan.in_storm) == (3, 0)


def test_an_open_ticket_that_falls_below_the_least_severity_stays_as_it_is_until_it_closes(
    story: Story, run: Any
) -> None:
    story.judge(0, {"v1": "firing"}, severity="warning", reason="bad")
    run()
    changes = story.changes()
    story.judge(1, {"v1": "firing"}, severity="info", reason="other")
    run()
    ticket = story.tickets()[0]
    assert (ticket["state"], ticket["severity"], story.changes()) == ("open", "warning", changes)
    for number in (2, 3):
        story.judge(number, {"v1": "ok"})
        run()
    assert story.tickets()[0]["state"] == "closed"
    story.judge(4, {"v1": "firing"}, severity="info")
    assert run().reopened == 0
    story.judge(5, {"v1": "firing"}, severity="warning")
    assert run().reopened == 1


def test_with_info_as_the_least_severity_advice_opens_tickets_too(story: Story) -> None:
    story.judge(0, {"v1": "firing"}, severity="info")
    assert reconcile(story.engine, Config(tickets=Tickets(least_severity="info")), DETECTORS).opened == 1


def test_a_storm_files_the_cap_and_one_summary(story: Story, run: Any, sink: MemorySink, config: Config) -> None:
    story.judge(0, {f"v{n}": "firing" for n in range(500)})
    plan = run()
    assert (plan.opened, plan.in_storm) == (500, 497)
    assert story.actions() == ["create"] * 4
    assert run().opened == 0, "the next run files no further slice of it"
    deliver(story.engine, sink, config)
    assert sum("Alert storm: 497 more findings" in issue_draft.title for issue_draft in sink.issue_drafts) == 1
    story.judge(1, {f"v{n}": "ok" for n in range(500)})
    run()
    assert len(story.actions()) == 4
    story.judge(2, {f"v{n}": "ok" for n in range(500)})
    run()
    assert story.actions()[4:] == ["close"] * 4
    assert {t["state"] for t in story.tickets()} == {"closed"}


def test_a_storm_of_one_run_hides_no_detectors_first_critical_finding(story: Story, run: Any) -> None:
    story.judge(0, {f"m{n}": "firing" for n in range(5)}, "app_memory_heavy", severity="warning")
    for number in (0, 1):
        story.judge(number, {f"v{n}": "firing" for n in range(50)})
        story.judge(number, {f"g{n}": "firing" for n in range(5)}, "consumer_group_lagging")
    story.judge(1, {f"m{n}": "firing" for n in range(5)}, "app_memory_heavy", severity="warning")
    plan = run()
    filed = [t["detector"] for t in story.tickets() if t["summary_ticket_id"] is None and t["detector"] != "storm"]
    assert filed == ["ebs_volume_starving"] * 2 + ["consumer_group_lagging"]
    assert (plan.opened, plan.in_storm) == (60, 57)


def test_what_gets_worse_in_a_storm_is_told_once(story: Story, run: Any) -> None:
    story.judge(0, {f"v{n}": "firing" for n in range(10)}, severity="warning")
    run()
    story.judge(1, {f"v{n}": "firing" for n in range(10)}, severity="critical")
    run()
    run()
    summary = next(t["ticket_id"] for t in story.tickets() if t["detector"] == "storm")
    told = [c["body"] for c in story.changes() if c["ticket_id"] == summary and c["action"] == "comment"]
    assert len(told) == 1 and told[0].count("is now critical") == 7


def test_wont_fix_is_never_heard_of_again(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"}, severity="warning")
    run()
    mute(story.engine, story.tickets()[0]["ticket_id"], until=None, who="Vera", why="Known.")
    assert story.actions() == ["create", "close"]
    for number in range(1, 200, 30):
        story.judge(number, {"v1": "firing"}, severity="critical")
        plan = run()
        assert (plan.opened, plan.reopened, plan.commented) == (0, 0, 0)


def test_a_snooze_is_silent_and_ends_by_itself(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"}, severity="warning")
    run(hour(1))
    mute(story.engine, story.tickets()[0]["ticket_id"], until=hour(5), who="Vera", why="Known.", now=hour(1))
    story.judge(2, {"v1": "firing"}, severity="warning", message="Another thing.")
    assert run(hour(3)).commented == 0
    story.judge(5, {"v1": "firing"}, severity="warning", message="Another thing.")
    run(hour(6))
    assert "The snooze has ended" in "".join(c["body"] or "" for c in story.changes())
    assert story.tickets()[0]["muted"] is None


def test_a_rise_in_severity_ends_a_snooze(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"}, severity="warning")
    run(hour(1))
    mute(story.engine, story.tickets()[0]["ticket_id"], until=hour(100), who="Vera", why="Known.", now=hour(1))
    story.judge(2, {"v1": "firing"}, severity="critical")
    assert run(hour(3)).commented == 1
    assert story.tickets()[0]["muted"] is None


def test_a_snoozed_finding_that_went_away_does_not_reopen_before_its_time(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"})
    run(hour(1))
    mute(story.engine, story.tickets()[0]["ticket_id"], until=hour(9), who="Vera", why="Known.", now=hour(1))
    for number, status in ((1, "ok"), (2, "ok"), (4, "firing")):
        story.judge(number, {"v1": status})
        assert run(hour(number + 1)).reopened == 0
    story.judge(9, {"v1": "firing"})
    assert run(hour(10)).reopened == 1


def test_muting_into_the_past_is_one_clear_line(story: Story, run: Any) -> None:
    story.judge(0, {"v1": "firing"})
    run()
    with pytest.raises(
        StreamwardenError, match="v1: cannot snooze until 2026-01-05 10:00 UTC: this time is in the past"
    ):
        mute(story.engine, 1, until=hour(0), who="Vera", why="Known.")


def test_what_may_be_the_cause_is_linked(story: Story, run: Any, sink: MemorySink, config: Config) -> None:
    story.judge(0, {"group": "firing"}, "consumer_group_lagging")
    story.judge(0, {"1": "firing"})
    story.causes(0, {(print_of("group", "consumer_group_lagging"), print_of("1")): 0.45})
    run()
    assert [ticket["cause_ticket_id"] for ticket in story.tickets()] == [None, None]
    deliver(story.engine, sink, config)
    related = {
        issue_draft.resource_name: [(r.relation, r.title) for r in issue_draft.notification.related]
        for issue_draft in sink.issue_drafts
    }
    assert related["group"] == [("Possible cause", "ebs_volume_starving title: 1")]
    assert related["1"] == [("Possible downstream effect", "consumer_group_lagging title: group")]


def test_a_change_of_tracker_files_what_is_open_anew(story: Story, run: Any, sink: MemorySink, config: Config) -> None:
    story.judge(0, {"v1": "firing"})
    run()
    deliver(story.engine, sink, config)
    other = Config(tickets=Tickets(trackers={"roundup": Roundup(url="https://x", password="p")}))
    reconcile(story.engine, other, DETECTORS)
    new = MemorySink(name="roundup")
    deliver(story.engine, new, other)
    assert [issue_draft.fingerprint for issue_draft in new.issue_drafts] == [print_of("v1")]


def test_a_disabled_detector_leaves_its_tickets_as_they_are(story: Story, run: Any, config: Config) -> None:
    story.judge(0, {"v1": "firing"})
    run()
    story.judge(1, {"v1": "ok"})
    story.judge(2, {"v1": "ok"})
    others = {id_: d for id_, d in DETECTORS.items() if id_ != "ebs_volume_starving"}
    assert reconcile(story.engine, config, others).closed == 0


def test_nothing_evaluated_yet_plans_nothing(run: Any) -> None:
    assert str(run()) == "0 opened, 0 reopened, 0 commented, 0 closed, 0 open"


@pytest.fixture(scope="module")
def shared_story(module_warehouse: sa.Engine) -> Story:
    return Story(module_warehouse)


HOURS = st.lists(st.sampled_from(["firing", "ok", "unknown", "gone", "none"]), min_size=1, max_size=9)


def _tell(story: Story, number: int, status: str, detector_id: str = "ebs_volume_starving") -> None:
    """Judges an hour of the resource r as `HOURS` has it, and brings tickets in line."""
    rows = {"other": "ok"} | ({} if status in ("gone", "none") else {"r": status})
    story.judge(number, rows, detector_id, coverage="refused" if status == "none" else "answered")
    reconcile(story.engine, Config(), DETECTORS)


def _open(story: Story) -> list[Any]:
    return [(t["resource_name"], t["opened_hour"]) for t in story.tickets() if t["state"] == "open"]


def _evaluations(story: Story) -> list[Any]:
    return story.rows(
        "select hour, resource_name, status, reason, message from detect.evaluation order by hour, resource_name"
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statuses=HOURS, data=st.data(), detector_id=st.sampled_from(["ebs_volume_starving", "app_memory_heavy"]))
def test_the_order_in_which_hours_are_judged_does_not_matter(
    shared_story: Story, statuses: list[str], data: st.DataObject, detector_id: str
) -> None:
    """Any order ends with the rows and the open ticket of the hours in order, where the newest is in alarm.

    Where it isn't, an alarm that was judged after it opens nothing any more.
    """
    story = shared_story
    story.clear()
    for number, status in enumerate(statuses):
        _tell(story, number, status, detector_id)
    in_order, rows = _open(story), _evaluations(story)
    story.clear()
    for number in data.draw(st.permutations(range(len(statuses)))):
        _tell(story, number, statuses[number], detector_id)
    assert _evaluations(story) == rows
    assert _open(story) in ([in_order] if statuses[-1] == "firing" else [in_order, []])
    changes = story.changes()
    reconcile(story.engine, Config(), DETECTORS)
    assert story.changes() == changes, "a further run finds nothing to do"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statuses=HOURS, data=st.data())
def test_backfilled_hours_lengthen_the_history_of_what_is_open_and_do_nothing_else(
    shared_story: Story, statuses: list[str], data: st.DataObject
) -> None:
    """The newest hour first, then those before it in any order, some of them twice."""
    story, newest = shared_story, len(statuses) - 1
    story.clear()
    for number, status in enumerate(statuses):
        _tell(story, number, status)
    since = [opened for _, opened in _open(story)] if statuses[-1] == "firing" else []
    story.clear()
    _tell(story, newest, statuses[newest])
    told = story.changes()
    assert len(told) == (statuses[-1] == "firing")
    for number in data.draw(st.permutations([*range(newest), *range(0, newest, 2)])):
        _tell(story, number, statuses[number])
    assert story.changes() == told
    assert [ticket["opened_hour"] for ticket in story.tickets()] == since


def test_a_backfilled_alarm_opens_nothing_while_the_newest_hour_is_well(story: Story, run: Any) -> None:
    story.judge(7, {"v1": "ok"}, message="The bucket refills.")
    story.judge(5, {"v1": "firing", "gone since": "firing"}, message="It will be empty in 33 min.")
    plan = run()
    assert (plan.opened, plan.reopened, story.tickets(), story.changes()) == (0, 0, [], [])


def test_a_backfilled_alarm_is_no_news(story: Story, run: Any) -> None:
    """A ticket stays open while nothing is known of its resource; an older hour says something else of it."""
    story.judge(0, {"v1": "firing"}, severity="warning")
    story.judge(2, {"v1": "unknown"})
    run()
    assert not story.tickets()
    story.judge(3, {"v1": "firing"}, severity="warning")
    run()
    story.judge(5, {"v1": "unknown"})
    run()
    told = story.changes()
    story.judge(4, {"v1": "firing"}, reason="worse", message="It is worse.", severity="critical")
    run()
    assert story.changes() == told
    assert story.tickets()[0]["severity"] == "warning"


def test_hours_asked_too_late_close_nothing(story: Story, run: Any) -> None:
    """What a cluster doesn't list now may have been there in an hour that is over."""
    story.judge(0, {"v1": "firing"})
    run()
    gap = str(gap_of_present(hour(1), "EC2's inventory")).partition(": ")[2]
    story.judge(1, {"v2": "ok"}, coverage="missing")
    with story.engine.begin() as connection:
        connection.execute(
            sa.text("update detect.coverage set message = :gap where hour = :hour and status = 'missing'"),
            {"hour": hour(1), "gap": gap},
        )
    assert run().closed == 0


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statuses=HOURS)
def test_the_tracker_hears_opening_and_closing_in_turn(shared_story: Story, statuses: list[str]) -> None:
    """Of one ticket: first create, then close and reopen alternate."""
    story = shared_story
    story.clear()
    for number, status in enumerate(statuses):
        rows = {"other": "ok"} | ({} if status in ("gone", "none") else {"r": status})
        story.judge(number, rows, coverage="refused" if status == "none" else "answered")
        reconcile(story.engine, Config(), DETECTORS)
    for ticket in story.tickets():
        turns = [c["action"] for c in story.changes() if c["ticket_id"] == ticket["ticket_id"]]
        assert turns[0] == "create"
        assert turns[1:] == [("close", "reopen")[n % 2] for n in range(len(turns) - 1)]


def test_people_decide_in_the_tracker(story: Story, run: Any, sink: MemorySink, config: Config) -> None:
    story.judge(0, {"v1": "firing", "v2": "firing", "v3": "firing"}, severity="warning")
    run(hour(1))
    deliver(story.engine, sink, config)
    states = dict(zip((t["resource_name"] for t in story.tickets()), ("closed", "snoozed", "wont_fix"), strict=True))
    sink.states = {t["external_key"]: states[t["resource_name"]] for t in story.tickets()}
    assert listen(story.engine, sink, hour(1) + timedelta(minutes=20)) == 3
    assert listen(story.engine, sink, hour(1) + timedelta(minutes=30)) == 0
    story.judge(1, {"v1": "firing", "v2": "firing", "v3": "firing"}, severity="warning")
    assert run(hour(2)).reopened == 0, "the hour in which it was closed says nothing yet"
    story.judge(2, {"v1": "firing", "v2": "firing", "v3": "firing"}, severity="warning", message="Else.")
    plan = run(hour(3))
    assert (plan.reopened, plan.commented, plan.opened) == (1, 0, 0)
    assert [(t["resource_name"], t["state"]) for t in story.tickets()] == list(
        zip(states, ("open", "open", "closed"), strict=True)
    )


@pytest.mark.parametrize(
    ("until", "opens"),
    [("2026-01-05T09:59:00+00:00", 0), ("2026-01-05T04:20:00Z", 0), ("2026-01-05T10:00:00+00:00", 1), (None, 1)],
)
def test_evidence_that_ended_before_the_evaluated_hour_opens_nothing(
    story: Story, run: Any, until: str | None, opens: int
) -> None:
    story.judge(0, {"v1": "firing"}, metrics={"evidence_until": until})
    assert run().opened == opens


def test_evidence_that_ended_reopens_nothing_and_closes_nothing(story: Story, run: Any) -> None:
    within, ended = {"evidence_until": hour(0).isoformat()}, {"evidence_until": hour(3).isoformat()}
    for number, (status, metrics) in enumerate([("firing", within), ("firing", within), ("ok", {}), ("ok", {})]):
        story.judge(number, {"v1": status}, metrics=metrics)
        run()
    assert story.actions() == ["create", "close"]
    story.judge(4, {"v1": "firing"}, metrics=ended)
    run()
    assert story.actions() == ["create", "close"]
    story.judge(5, {"v1": "firing"}, metrics={"evidence_until": hour(5).isoformat()})
    run()
    assert story.actions() == ["create", "close", "reopen"]


@pytest.mark.parametrize(
    ("topics", "counts"),
    [(["topic:c/clicks", "topic:c/orders"], (0, 1)), (["topic:c/bills"], (1, 0)), ([], (0, 1))],
)
def test_a_finding_about_a_cluster_reopens_only_for_what_it_affected(
    story: Story, run: Any, topics: list[str], counts: tuple[int, int]
) -> None:
    rogue: dict[str, Any] = {"detector_id": "consumer_rogue", "affected": ("topic:c/clicks",)}
    for number, status in enumerate(["firing", "ok", "ok"]):
        story.judge(number, {"c": status}, **rogue)
        run()
    story.judge(3, {"c": "firing"}, **rogue | {"affected": tuple(topics)})
    plan = run()
    assert (plan.opened, plan.reopened) == counts


def test_other_affected_resources_of_an_open_cluster_finding_are_news_once(story: Story, run: Any) -> None:
    rogue: dict[str, Any] = {"detector_id": "consumer_rogue"}
    for number, topics in enumerate([["topic:c/clicks"], ["topic:c/clicks", "topic:c/bills"], ["topic:c/orders"]]):
        story.judge(number, {"c": "firing"}, **rogue, affected=tuple(topics))
        run()
        run()
    assert story.actions() == ["create", "comment"]
    assert story.changes()[1]["body"] == "The affected resources changed:"
