"""One issue per incident: each row of what may happen to one, on a real warehouse, with causes as they were weighed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.main import app
from streamwarden.tickets import Response, deliver, listen, reconcile
from streamwarden.tickets.responses import PAGE
from streamwarden.tickets.sinks.contract import Notification
from streamwarden.tickets.sinks.plain import notification_text as lines_of
from typer.testing import CliRunner

from tests.plugins.tickets.story import DETECTORS, MemorySink, Story, hour, mute, print_of, say
from tests.sql.rows import insert_row

LAG = "consumer_group_lagging"
V1, V2 = print_of("v1"), print_of("v2")


def notification_text(notification: Notification) -> str:
    """Its text, in one line."""
    return " ".join(lines_of(notification).split())


def g(name: str) -> str:
    return print_of(name, LAG)


@pytest.fixture
def run(story: Story, config: Config) -> Any:
    return lambda now=None: reconcile(story.engine, config, DETECTORS, now)


class Telling:
    """A story whose tracker hears of every hour at once."""

    def __init__(self, story: Story, sink: MemorySink, config: Config) -> None:
        self.story, self.sink, self.config = story, sink, config
        self.hour = -1

    def go(
        self, volumes: dict[str, str], groups: dict[str, str], ties: dict[tuple[str, str], float] | None = None,
        severity: str = "warning", now: Any = None,
    ) -> None:  # fmt: skip
        """The next hour."""
        self.hour += 1
        self.story.judge(self.hour, volumes, severity="critical")
        self.story.judge(self.hour, groups, LAG, severity=severity)
        if ties is not None:
            self.story.causes(self.hour, ties)
        reconcile(self.story.engine, self.config, DETECTORS, now)
        deliver(self.story.engine, self.sink, self.config)

    @property
    def titles(self) -> list[str]:
        return [issue_draft.title.replace(" title", "") for issue_draft in self.sink.issue_drafts]

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(update.action, notification_text(update.notification)) for update in self.sink.updates]

    def states(self) -> dict[str, Any]:
        rows = self.story.tickets()
        names = {row["ticket_id"]: row["resource_name"] for row in rows}
        return {row["resource_name"]: (row["role"], names.get(row["summary_ticket_id"]), row["state"]) for row in rows}


@pytest.fixture
def tell(story: Story, sink: MemorySink, config: Config) -> Telling:
    return Telling(story, sink, config)


def test_findings_of_one_run_are_one_issue_that_says_what_follows_and_what_does_not(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, {(g("g1"), V1): 0.9, (g("g2"), V1): 0.1})
    assert tell.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g2"]
    assert tell.states()["g1"] == ("follows", "v1", "open")
    text = notification_text(tell.sink.issue_drafts[0].notification)
    assert (
        "Downstream effects (1) - consumer_group_lagging title: g1. It is bad. (its partitions lie there; 90 %)" in text
    )
    assert "Ruled out - consumer_group_lagging title: g2: its partitions lie there." in text
    assert "Related" not in text, "what is listed above isn't listed once more"
    tell.go({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, {(g("g1"), V1): 0.9, (g("g2"), V1): 0.1})
    assert (len(tell.titles), tell.told) == (2, [])


def test_a_finding_that_usually_has_a_cause_says_that_none_is_known_and_what_was_tested(tell: Telling) -> None:
    ties = {(g("g1"), V1): 0.2, (g("g2"), V1): 0.4, (V1, g("g1")): 0.1}
    tell.go({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, ties)
    tell.go({"v1": "firing"}, {"g1": "firing", "g2": "firing", "g3": "firing"}, ties)
    texts = {
        issue_draft.resource_name: notification_text(issue_draft.notification) for issue_draft in tell.sink.issue_drafts
    }
    assert texts.keys() == {"v1", "g1", "g2", "g3"}
    heading = "Root cause: none found"
    said = f"{heading} No related finding explains this one. - ebs_volume_starving title: v1:"
    assert f"{said} its partitions lie there." in texts["g1"]
    assert f"{said} possible cause (its partitions lie there; 40 %)." in texts["g2"]
    assert f"{heading} No related finding." in texts["g3"], "what fires elsewhere is no candidate"
    assert "Root cause: none found" not in texts["v1"], "nothing is known of that leads to it"


def test_the_title_of_a_disk_names_the_broker_on_it(tell: Telling) -> None:
    at = hour(0)
    with tell.story.engine.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": at.date()})
        machine = {"hour": at, "account": "1", "region": "r", "instance_id": "i-3"}
        insert_row(connection, "inventory.volume_hourly", machine | {"volume_id": "v1"})
        insert_row(connection, "inventory.instance_hourly", machine)
        broker = {"cluster": "shop", "endpoint": "b3", "broker_id": 3, "instance_id": "i-3", "hour": at}
        insert_row(connection, "metrics.broker_hourly", broker)
    tell.go({"v1": "firing", "v2": "firing"}, {})
    assert sorted(tell.titles) == ["ebs_volume_starving: v1, broker 3 of shop", "ebs_volume_starving: v2"]


def test_no_cause_known_names_the_sources_that_did_not_answer(tell: Telling) -> None:
    tell.go({"v1": "ok"}, {"g1": "ok"}, {})
    tell.story.judge(1, {"v1": "ok"}, coverage="refused")
    tell.story.judge(1, {"g1": "firing"}, LAG, severity="warning")
    reconcile(tell.story.engine, tell.config, DETECTORS)
    deliver(tell.story.engine, tell.sink, tell.config)
    text = (
        "No related finding. Checked: ebs_volume_starving title. Not evaluated: no response from src of b in that hour."
    )
    assert text in notification_text(tell.sink.issue_drafts[0].notification)


def test_missing_evidence_is_of_the_findings_own_cluster_and_account(tell: Telling) -> None:
    tell.go({"v1": "ok"}, {"g1": "ok"}, {})
    tell.story.judge(1, {"v1": "ok"})
    tell.story.judge(1, {"g1": "firing"}, LAG, severity="warning")
    at = hour(1)
    with tell.story.engine.begin() as connection:
        volume = {"account": "1", "region": "eu-west-1", "volume_id": "v1", "instance_id": "i-3", "hour": at}
        insert_row(connection, "inventory.volume_hourly", volume)
        insert_row(connection, "inventory.instance_hourly", {k: v for k, v in volume.items() if k != "volume_id"})
        broker = {"cluster": "c", "endpoint": "b3", "broker_id": 3, "instance_id": "i-3", "hour": at}
        insert_row(connection, "metrics.broker_hourly", broker)
        insert_row(connection, "metrics.partition_hourly", {"hour": at, "cluster": "c", "topic": "t", "leader": 3})
        read = {"hour": at, "cluster": "c", "topic": "t", "group_id": "g1"}
        insert_row(connection, "metrics.consumer_partition_hourly", read)
        for source, own, foreign in (
            ("kafka_log_dirs", "c broker 3 log dirs", "west broker 1 log dirs"),
            ("jmx", "broker of c at b3:9999", "broker of west at b1:9999"),
            ("ec2", "1/eu-west-1 volumes", "2/eu-west-1 volumes"),
        ):
            for name in (own, foreign):
                one = {"hour": at, "app": "ebs_volumes", "source": source, "resource_name": name, "status": "missing"}
                insert_row(connection, "detect.coverage", one)
    reconcile(tell.story.engine, tell.config, DETECTORS)
    deliver(tell.story.engine, tell.sink, tell.config)
    text = notification_text(tell.sink.issue_drafts[0].notification)
    own = "ec2 of 1/eu-west-1 volumes; jmx of broker of c at b3:9999; kafka_log_dirs of c broker 3 log dirs"
    assert f"no response from {own} in that hour." in text


def test_an_effect_that_has_its_cause_says_nothing_of_unknown_ones(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert tell.titles == ["ebs_volume_starving: v1"]
    assert "Root cause: none found" not in notification_text(tell.sink.issue_drafts[0].notification)


def test_an_effect_that_joins_later_is_a_line_in_a_comment(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "ok"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert tell.titles == ["ebs_volume_starving: v1"]
    (told,) = tell.told
    assert told[0] == "comment" and "- consumer_group_lagging title: g1. It is bad. (its partitions" in told[1]
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert len(tell.told) == 1


def test_the_severity_is_that_of_the_worst(tell: Telling, story: Story) -> None:
    story.judge(0, {"v1": "firing"}, severity="warning")
    story.judge(0, {"g1": "firing"}, LAG, severity="warning")
    story.causes(0, {(g("g1"), V1): 0.8})
    reconcile(story.engine, tell.config, DETECTORS)
    story.judge(1, {"v1": "firing"}, severity="warning")
    story.judge(1, {"g1": "firing"}, LAG, severity="critical")
    story.causes(1, {(g("g1"), V1): 0.8})
    reconcile(story.engine, tell.config, DETECTORS)
    deliver(story.engine, tell.sink, tell.config)
    (update,) = tell.sink.updates
    assert update.severity == "critical" and "Severity changed from warning to critical." in update.notification.note


def test_a_cause_that_shows_up_later_gives_the_issue_that_exists_its_title(tell: Telling) -> None:
    tell.go({"v1": "ok"}, {"g1": "firing"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert tell.titles == ["consumer_group_lagging: g1"]
    (update,) = tell.sink.updates
    assert update.title == "ebs_volume_starving title: v1" and update.key == "0"
    assert update.notification.finding is not None and update.notification.finding.resource.name == "v1"
    assert "Root cause found:" in update.notification.note
    assert tell.states() == {"g1": ("follows", None, "open"), "v1": ("root", "g1", "open")}
    for _ in range(2):  # it closes when all is over, though its own finding was over first
        tell.go({"v1": "firing"}, {"g1": "ok"}, {})
    assert len(tell.told) == 1
    for _ in range(2):
        tell.go({"v1": "ok"}, {"g1": "ok"}, {})
    action, text = tell.told[-1]
    assert action == "close" and text.index("title: g1") < text.index("title: v1")
    assert {row[2] for row in tell.states().values()} == {"closed"}


def test_two_incidents_that_turn_out_to_be_one_keep_the_older_issue(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "ok"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {})
    assert len(tell.titles) == 2
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert len(tell.titles) == 2
    by_key = {update.key: update for update in tell.sink.updates}
    assert by_key["1"].action == "close" and "http://tracker/0" in by_key["1"].notification.note
    assert by_key["0"].action == "comment" and "g1" in by_key["0"].notification.note
    assert listen(tell.story.engine, tell.sink) == 0, "nobody closed it but us"
    for _ in range(3):
        tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert len(tell.told) == 2


def test_an_effect_that_outlives_its_cause_leaves_after_two_hours(tell: Telling) -> None:
    tie = {(g("g1"), V1): 0.9}
    tell.go({"v1": "firing"}, {"g1": "firing"}, tie)
    for _ in range(3):  # over after two clean hours
        tell.go({"v1": "ok"}, {"g1": "firing"}, tie)
        assert len(tell.titles) == 1
    tell.go({"v1": "ok"}, {"g1": "firing"}, tie)
    assert tell.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g1"]
    assert (
        "Still firing after its cause was resolved: ebs_volume_starving title: v1: http://tracker/0"
        in tell.sink.issue_drafts[1].notification.note
    )
    assert [action for action, _ in tell.told] == ["close"]
    assert tell.states() == {"v1": ("alone", None, "closed"), "g1": ("alone", None, "open")}


@pytest.mark.parametrize("after", ["ok", "unknown", "ended"])
def test_an_effect_without_evidence_of_its_own_gets_no_issue_when_its_cause_is_resolved(
    tell: Telling, after: str
) -> None:
    tie = {(g("g1"), V1): 0.9}
    tell.go({"v1": "firing"}, {"g1": "firing"}, tie)
    for _ in range(2):
        tell.go({"v1": "ok"}, {"g1": "firing"}, tie)
    for _ in range(5):
        if after == "ended":
            tell.story.judge(tell.hour + 1, {"g1": "firing"}, LAG, metrics={"evidence_until": hour(2).isoformat()})
            tell.story.judge(tell.hour + 1, {"v1": "ok"})
            tell.story.causes(tell.hour + 1, {})
            tell.hour += 1
            reconcile(tell.story.engine, tell.config, DETECTORS)
            deliver(tell.story.engine, tell.sink, tell.config)
        else:
            tell.go({"v1": "ok"}, {"g1": after if tell.hour < 3 else "unknown"}, {})
    assert tell.titles == ["ebs_volume_starving: v1"]
    tell.go({"v1": "ok"}, {"g1": "firing"}, {})
    assert tell.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g1"], "it goes on by itself"


def test_between_strong_and_weak_nothing_changes_and_a_weak_tie_of_two_hours_parts_them(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.7})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.4})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.2})
    assert tell.told == []
    tell.go({"v1": "firing"}, {"g1": "unknown"}, {})
    assert tell.told == [], "what can't be judged parts nothing"
    for _ in range(2):
        tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.2})
    assert tell.titles[1:] == ["consumer_group_lagging: g1"]
    assert (
        "No longer a downstream effect of ebs_volume_starving title: v1" in tell.sink.issue_drafts[1].notification.note
    )
    assert [action for action, _ in tell.told] == ["comment"]


def test_an_hour_in_which_nothing_was_weighed_parts_nothing(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.7})
    for _ in range(4):
        tell.go({"v1": "firing"}, {"g1": "firing"})
    assert (len(tell.titles), tell.told) == (1, [])


def test_effects_of_what_is_muted_keep_quiet_but_for_a_critical_one(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "ok"}, {})
    mute(tell.story.engine, 1, until=None, who="Vera", why="Known.")
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert tell.titles == ["ebs_volume_starving: v1"]
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8}, severity="critical")
    assert tell.titles[1:] == ["consumer_group_lagging: g1"]
    assert "Its cause is muted: ebs_volume_starving title: v1" in tell.sink.issue_drafts[1].notification.note


def test_effects_of_what_is_snoozed_keep_quiet_but_for_a_critical_one(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "ok"}, {}, now=hour(1))
    mute(tell.story.engine, 1, until=hour(100), who="Vera", why="Known.", now=hour(1))
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8}, now=hour(2))
    assert [text.partition(" A higher")[0] for _, text in tell.told] == [
        "Snoozed until 2026-01-09 14:00 UTC by Vera: Known."
    ]
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8}, severity="critical", now=hour(3))
    assert "is snoozed, but a finding of the incident is critical:" in tell.told[-1][1] and len(tell.told) == 2


def test_the_cap_counts_incidents(tell: Telling) -> None:
    groups = {f"g{n}": "firing" for n in range(300)}
    tell.go({"v1": "firing"}, groups, {(g(name), V1): 0.9 for name in groups})
    assert tell.titles == ["ebs_volume_starving: v1"]
    assert "Downstream effects (51)" in notification_text(tell.sink.issue_drafts[0].notification)
    assert "- and 250 more" in notification_text(tell.sink.issue_drafts[0].notification)
    for _ in range(2):
        tell.go({"v1": "ok"}, dict.fromkeys(groups, "ok"), {})
    assert [action for action, _ in tell.told] == ["close"]


def test_an_incident_beyond_the_cap_is_in_the_storm_with_all_that_follows(tell: Telling) -> None:
    volumes = {f"v{n}": "firing" for n in range(6)}
    ties = {(g(f"g{n}"), print_of(f"v{n}")): 0.9 for n in range(6)}
    tell.go(volumes, {f"g{n}": "firing" for n in range(6)}, ties)
    assert len(tell.titles) == 4
    storm = next(issue_draft for issue_draft in tell.sink.issue_drafts if issue_draft.detector == "storm")
    assert "Alert storm: 6 more findings" in storm.title and "6 more findings in 3 incidents" in storm.notification.note


def test_what_comes_back_within_the_window_reopens_its_issue(tell: Telling) -> None:
    tie = {(g("g1"), V1): 0.9}
    tell.go({"v1": "firing"}, {"g1": "firing"}, tie)
    for _ in range(2):
        tell.go({"v1": "ok"}, {"g1": "ok"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, tie)
    assert [action for action, _ in tell.told] == ["close", "reopen"] and len(tell.titles) == 1
    assert "The finding is firing again." in tell.told[1][1] and "title: g1" in tell.told[1][1]


def test_a_reopened_finding_with_a_new_cause_is_a_new_incident(tell: Telling) -> None:
    tell.go({}, {"g1": "firing"}, {})
    for _ in range(2):
        tell.go({}, {"g1": "ok"}, {})
    assert [action for action, _ in tell.told] == ["close"]
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert tell.titles == ["consumer_group_lagging: g1", "ebs_volume_starving: v1"]
    assert [action for action, _ in tell.told] == ["close"], "the issue of the earlier cause stays closed"
    assert tell.states() == {"v1": ("root", None, "open"), "g1": ("follows", "v1", "open")}


def test_a_reopened_finding_with_the_cause_of_its_incident_reopens_that(tell: Telling) -> None:
    tell.go({}, {"g1": "firing"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert tell.states()["v1"] == ("root", "g1", "open"), "the cause joined the issue of its effect"
    for _ in range(2):
        tell.go({"v1": "ok"}, {"g1": "ok"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert tell.titles == ["consumer_group_lagging: g1"]
    assert [action for action, _ in tell.told][-2:] == ["close", "reopen"]


def test_hours_judged_in_another_order_end_in_the_same_incidents(story: Story, run: Any) -> None:
    tie = {(g("g1"), V1): 0.9}
    ends = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        story.clear()
        for number in order:
            story.judge(number, {"v1": "firing"})
            story.judge(number, {"g1": "firing"}, LAG)
            story.causes(number, tie)
            run()
        ends.append({(t["resource_name"], t["role"], t["state"], t["opened_hour"]) for t in story.tickets()})
    assert ends[0] == ends[1] == ends[2]


def test_tickets_that_stood_before_causes_were_weighed_go_on(story: Story, run: Any, tell: Telling) -> None:
    story.judge(0, {"v1": "firing"})
    story.judge(0, {"g1": "firing"}, LAG)
    run()
    story.judge(1, {"v1": "firing"})
    story.judge(1, {"g1": "firing"}, LAG)
    assert run().opened == 0 and story.actions() == ["create", "create"]
    assert timedelta(0) == story.tickets()[0]["opened_hour"] - hour(0)


def test_what_changed_just_before_is_told_of_the_things_between_as_well(tell: Telling) -> None:
    story = tell.story
    with story.engine.begin() as connection:
        for number, started in ((-2, "2026-01-05T01:00:00+00:00"), (-1, "2026-01-05T08:58:00+00:00"), (0, None)):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour(number).date()})
            at = {"hour": hour(number)}
            for broker in (3, 4):
                row = {"cluster": "c", "endpoint": f"b{broker}", "broker_id": broker, "process_started_at": started}
                insert_row(connection, "metrics.broker_hourly", at | row)
            volume = {"account": "1", "region": "r", "volume_id": "v1", "size_gib": 100 - number}
            insert_row(connection, "inventory.volume_hourly", at | volume)
    tell.story.causes(0, {(g("g1"), V1): 0.9})
    with story.engine.begin() as connection:
        connection.execute(sa.text("update detect.cause set path = '{volume:1/r/v1,broker:c/3}'"))
    tell.go({"v1": "firing"}, {"g1": "firing"})
    assert tell.sink.issue_drafts[0].notification.before == (
        "broker 3 was restarted at 2026-01-05 08:58 UTC",
        "v1: size 102 GiB → 101 GiB (hour 2026-01-05 09:00 UTC)",
        "v1: size 101 GiB → 100 GiB (hour 2026-01-05 10:00 UTC)",
    )


def test_what_people_split_stays_apart(tell: Telling) -> None:
    tie = {(g("g1"), V1): 0.9, (g("g2"), V1): 0.9}
    tell.go({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, tie)
    ticket = next(row["ticket_id"] for row in tell.story.tickets() if row["resource_name"] == "g1")
    assert say(tell.story.engine, ticket, Response("split", "Vera", PAGE, "Another reason.")) == [
        "ebs_volume_starving title: v1",
        "consumer_group_lagging title: g2",
    ]
    for _ in range(3):
        tell.go({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, tie)
    assert tell.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g1"]
    assert tell.states()["g2"] == ("follows", "v1", "open")
    with pytest.raises(StreamwardenError, match="g1: cannot split: the finding is alone"):
        say(tell.story.engine, ticket, Response("split", "Vera", PAGE, "Again."))


def test_what_people_joined_stays_together(tell: Telling) -> None:
    tell.go({"v1": "firing"}, {"g1": "ok"}, {})
    tell.go({"v1": "firing"}, {"g1": "firing"}, {})
    volume, group = tell.story.tickets()

    def link(other: str) -> None:
        say(tell.story.engine, group["ticket_id"], Response("link", "Vera", PAGE, "The same disk.", other=other))

    link(volume["fingerprint"])
    for _ in range(4):
        tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.0})
    assert [action for action, _ in tell.told] == ["close", "comment"] or [a for a, _ in tell.told] == [
        "comment",
        "close",
    ]
    assert tell.states()["g1"][1] == "v1"
    texts = dict(tell.told)
    assert texts["close"].startswith("Linked manually by Vera to ebs_volume_starving title: v1: http://tracker/0")
    assert (
        "Linked manually: - consumer_group_lagging title: g1. It is bad. (linked manually by Vera)" in texts["comment"]
    )
    with pytest.raises(StreamwardenError, match="cannot link a finding to itself"):
        link(group["fingerprint"])


def test_the_command_line_explains_splits_and_joins(tell: Telling, cli: Any) -> None:
    tell.go({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    said = cli("tickets", "explain", g("g1")[:12])
    assert "ebs_volume_starving title: v1, since 2026-01-05 10:00" in said
    assert "  consumer_group_lagging title: g1, since 2026-01-05 10:00: its partitions lie there (90 %)" in said
    assert "0.90 accepted" in said
    assert "split from ebs_volume_starving title: v1" in cli("tickets", "split", g("g1"), "--reason", "Something else.")
    said = cli("tickets", "link", g("g1"), V1, "--reason", "It is, after all.")
    assert "one incident from the next hour on" in said
    rows = tell.story.rows(
        "select is_linked, words from tickets.manual_link inner join tickets.response using (response_id)"
    )
    assert rows == [{"is_linked": True, "words": "It is, after all."}]
    assert "Root cause: none found" in cli("tickets", "explain", V1)
    assert "No firing finding depends on another one." in cli(
        "detectors", "causes", "--hour", f"{hour(0):%Y-%m-%dT%H:%M}"
    )


@pytest.fixture
def cli(story: Story, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "s.yaml").write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))

    def run(*words: str) -> str:
        return CliRunner(env={"COLUMNS": "300"}).invoke(app, words, catch_exceptions=False).output

    return run
