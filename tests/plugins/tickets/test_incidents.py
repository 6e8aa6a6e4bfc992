"""One issue per incident: effects join, leave, and outlive their causes, on a real warehouse with weighed causes."""

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

from tests.plugins.tickets.scenario import (
    DETECTORS,
    DeliveryScenario,
    MemorySink,
    fingerprint_of,
    hour,
    mute,
    respond_to,
)
from tests.sql.rows import insert_row

LAG = "consumer_group_lagging"
V1, V2 = fingerprint_of("v1"), fingerprint_of("v2")


def notification_text(notification: Notification) -> str:
    """The text of a notification, joined to one line."""
    return " ".join(lines_of(notification).split())


def g(name: str) -> str:
    return fingerprint_of(name, LAG)


@pytest.fixture
def run(scenario: DeliveryScenario, config: Config) -> Any:
    return lambda now=None: reconcile(scenario.engine, config, DETECTORS, now)


class HourlyDelivery:
    """A scenario that reconciles and delivers each hour at once."""

    def __init__(self, scenario: DeliveryScenario, sink: MemorySink, config: Config) -> None:
        self.scenario, self.sink, self.config = scenario, sink, config
        self.hour = -1

    def run(
        self, volumes: dict[str, str], groups: dict[str, str], ties: dict[tuple[str, str], float] | None = None,
        severity: str = "warning", now: Any = None,
    ) -> None:  # fmt: skip
        """Evaluates the next hour: `volumes` and `groups` by name → status, `ties` as in `store_causes`."""
        self.hour += 1
        self.scenario.evaluate(self.hour, volumes, severity="critical")
        self.scenario.evaluate(self.hour, groups, LAG, severity=severity)
        if ties is not None:
            self.scenario.store_causes(self.hour, ties)
        reconcile(self.scenario.engine, self.config, DETECTORS, now)
        deliver(self.scenario.engine, self.sink, self.config)

    @property
    def titles(self) -> list[str]:
        return [issue_draft.title.replace(" title", "") for issue_draft in self.sink.issue_drafts]

    @property
    def delivered(self) -> list[tuple[str, str]]:
        return [(update.action, notification_text(update.notification)) for update in self.sink.updates]

    def states(self) -> dict[str, Any]:
        rows = self.scenario.tickets()
        names = {row["ticket_id"]: row["resource_name"] for row in rows}
        return {row["resource_name"]: (row["role"], names.get(row["summary_ticket_id"]), row["state"]) for row in rows}


@pytest.fixture
def hourly(scenario: DeliveryScenario, sink: MemorySink, config: Config) -> HourlyDelivery:
    return HourlyDelivery(scenario, sink, config)


def test_one_issue_lists_downstream_effects_and_ruled_out_causes(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, {(g("g1"), V1): 0.9, (g("g2"), V1): 0.1})
    assert hourly.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g2"]
    assert hourly.states()["g1"] == ("follows", "v1", "open")
    text = notification_text(hourly.sink.issue_drafts[0].notification)
    effect = "consumer_group_lagging title: g1. It is bad. (its partitions lie there; evidence 90 %)"
    assert f"Downstream effects (1) - {effect}" in text
    assert "Ruled out - consumer_group_lagging title: g2: its partitions lie there." in text
    assert "Related" not in text, "a finding is not listed twice"
    hourly.run({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, {(g("g1"), V1): 0.9, (g("g2"), V1): 0.1})
    assert (len(hourly.titles), hourly.delivered) == (2, [])


def test_an_issue_without_a_root_cause_lists_what_was_checked(hourly: HourlyDelivery) -> None:
    ties = {(g("g1"), V1): 0.2, (g("g2"), V1): 0.4, (V1, g("g1")): 0.1}
    hourly.run({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, ties)
    hourly.run({"v1": "firing"}, {"g1": "firing", "g2": "firing", "g3": "firing"}, ties)
    texts = {
        issue_draft.resource_name: notification_text(issue_draft.notification)
        for issue_draft in hourly.sink.issue_drafts
    }
    assert texts.keys() == {"v1", "g1", "g2", "g3"}
    heading = "Upstream causes: none found"
    start = f"{heading} No related finding explains this one. - ebs_volume_starving title: v1:"
    assert f"{start} its partitions lie there." in texts["g1"]
    assert f"{start} possible cause (its partitions lie there; evidence 40 %)." in texts["g2"]
    assert f"{heading} No related finding." in texts["g3"], "a finding of another resource is not a candidate"
    assert "Upstream causes: none found" not in texts["v1"], "its detector has no known causes"


def test_the_title_of_a_disk_names_the_broker_on_it(hourly: HourlyDelivery) -> None:
    at = hour(0)
    with hourly.scenario.engine.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": at.date()})
        machine = {"hour": at, "account": "1", "region": "r", "instance_id": "i-3"}
        insert_row(connection, "inventory.volume_hourly", machine | {"volume_id": "v1"})
        insert_row(connection, "inventory.instance_hourly", machine)
        broker = {"cluster": "shop", "endpoint": "b3", "broker_id": 3, "instance_id": "i-3", "hour": at}
        insert_row(connection, "metrics.broker_hourly", broker)
    hourly.run({"v1": "firing", "v2": "firing"}, {})
    assert sorted(hourly.titles) == ["ebs_volume_starving: v1, broker 3 of shop", "ebs_volume_starving: v2"]


def test_the_title_of_a_claimed_volume_names_no_other_broker_of_its_node(hourly: HourlyDelivery) -> None:
    at = {"hour": hour(0)}
    machine = at | {"account": "1", "region": "r", "instance_id": "i-3"}
    pods = {"v1": ("orders-0", {"role": "app", "endpoint": "a1"}), "v2": ("b-3", {"role": "broker", "broker_id": 3})}
    with hourly.scenario.engine.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour(0).date()})
        insert_row(connection, "inventory.instance_hourly", machine)
        for node, endpoint in ((3, "b3"), (4, "b4")):
            broker = {"cluster": "shop", "endpoint": endpoint, "broker_id": node, "instance_id": "i-3"}
            insert_row(connection, "metrics.broker_hourly", at | broker)
        for volume, (pod, more) in pods.items():
            insert_row(connection, "inventory.volume_hourly", machine | {"volume_id": volume})
            place = at | {"kubernetes": "k", "namespace": "n", "pod": pod}
            insert_row(connection, "inventory.pod_hourly", place | {"uid": pod, "cluster": "shop"} | more)
            insert_row(connection, "inventory.pod_claim_hourly", place | {"claim": volume, "volume_id": volume})
    hourly.run({"v1": "firing", "v2": "firing"}, {})
    assert sorted(hourly.titles) == ["ebs_volume_starving: v1", "ebs_volume_starving: v2, broker 3 of shop"]


def test_no_root_cause_found_names_the_sources_that_did_not_respond(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "ok"}, {"g1": "ok"}, {})
    hourly.scenario.evaluate(1, {"v1": "ok"}, coverage="failed")
    hourly.scenario.evaluate(1, {"g1": "firing"}, LAG, severity="warning")
    reconcile(hourly.scenario.engine, hourly.config, DETECTORS)
    deliver(hourly.scenario.engine, hourly.sink, hourly.config)
    text = "No related finding. Checked: ebs_volume_starving title. Sources without a response in that hour: src (b)."
    assert text in notification_text(hourly.sink.issue_drafts[0].notification)


def test_missing_evidence_is_limited_to_the_cluster_and_account_of_the_finding(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "ok"}, {"g1": "ok"}, {})
    hourly.scenario.evaluate(1, {"v1": "ok"})
    hourly.scenario.evaluate(1, {"g1": "firing"}, LAG, severity="warning")
    at = hour(1)
    with hourly.scenario.engine.begin() as connection:
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
    reconcile(hourly.scenario.engine, hourly.config, DETECTORS)
    deliver(hourly.scenario.engine, hourly.sink, hourly.config)
    text = notification_text(hourly.sink.issue_drafts[0].notification)
    own = "ec2 (1/eu-west-1 volumes), jmx (broker of c at b3:9999), kafka_log_dirs (c broker 3 log dirs)"
    assert f"Sources without a response in that hour: {own}." in text


def test_an_effect_with_a_root_cause_has_no_section_root_cause_none_found(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert hourly.titles == ["ebs_volume_starving: v1"]
    assert "Upstream causes: none found" not in notification_text(hourly.sink.issue_drafts[0].notification)


def test_an_effect_that_joins_later_is_posted_as_a_comment(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "ok"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert hourly.titles == ["ebs_volume_starving: v1"]
    (delivered,) = hourly.delivered
    assert (
        delivered[0] == "comment" and "- consumer_group_lagging title: g1. It is bad. (its partitions" in delivered[1]
    )
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert len(hourly.delivered) == 1


def test_the_severity_of_an_issue_is_that_of_its_worst_finding(
    hourly: HourlyDelivery, scenario: DeliveryScenario
) -> None:
    scenario.evaluate(0, {"v1": "firing"}, severity="warning")
    scenario.evaluate(0, {"g1": "firing"}, LAG, severity="warning")
    scenario.store_causes(0, {(g("g1"), V1): 0.8})
    reconcile(scenario.engine, hourly.config, DETECTORS)
    scenario.evaluate(1, {"v1": "firing"}, severity="warning")
    scenario.evaluate(1, {"g1": "firing"}, LAG, severity="critical")
    scenario.store_causes(1, {(g("g1"), V1): 0.8})
    reconcile(scenario.engine, hourly.config, DETECTORS)
    deliver(scenario.engine, hourly.sink, hourly.config)
    (update,) = hourly.sink.updates
    assert update.severity == "critical" and "Severity changed from warning to critical." in update.notification.note


def test_a_root_cause_found_later_renames_the_existing_issue(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "ok"}, {"g1": "firing"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert hourly.titles == ["consumer_group_lagging: g1"]
    (update,) = hourly.sink.updates
    assert update.title == "ebs_volume_starving title: v1" and update.key == "0"
    assert update.notification.finding is not None and update.notification.finding.resource.name == "v1"
    assert "Root cause found:" in update.notification.note
    assert hourly.states() == {"g1": ("follows", None, "open"), "v1": ("root", "g1", "open")}
    for _ in range(2):  # it stays open until every finding is resolved
        hourly.run({"v1": "firing"}, {"g1": "ok"}, {})
    assert len(hourly.delivered) == 1
    for _ in range(2):
        hourly.run({"v1": "ok"}, {"g1": "ok"}, {})
    action, text = hourly.delivered[-1]
    assert action == "close" and text.index("title: g1") < text.index("title: v1")
    assert {row[2] for row in hourly.states().values()} == {"closed"}


def test_two_incidents_that_merge_keep_the_older_issue(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "ok"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {})
    assert len(hourly.titles) == 2
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert len(hourly.titles) == 2
    by_key = {update.key: update for update in hourly.sink.updates}
    assert by_key["1"].action == "close" and "http://tracker/0" in by_key["1"].notification.note
    assert by_key["0"].action == "comment" and "g1" in by_key["0"].notification.note
    assert listen(hourly.scenario.engine, hourly.sink) == 0, "our own closing does not count as a response"
    for _ in range(3):
        hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert len(hourly.delivered) == 2


def test_an_effect_that_outlives_its_cause_gets_its_own_issue_after_two_hours(hourly: HourlyDelivery) -> None:
    tie = {(g("g1"), V1): 0.9}
    hourly.run({"v1": "firing"}, {"g1": "firing"}, tie)
    for _ in range(3):  # resolved after two clean hours
        hourly.run({"v1": "ok"}, {"g1": "firing"}, tie)
        assert len(hourly.titles) == 1
    hourly.run({"v1": "ok"}, {"g1": "firing"}, tie)
    assert hourly.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g1"]
    assert (
        "Still firing after its cause was resolved: ebs_volume_starving title: v1: http://tracker/0"
        in hourly.sink.issue_drafts[1].notification.note
    )
    assert [action for action, _ in hourly.delivered] == ["close"]
    assert hourly.states() == {"v1": ("alone", None, "closed"), "g1": ("alone", None, "open")}


@pytest.mark.parametrize("after", ["ok", "unknown", "ended"])
def test_an_effect_without_evidence_of_its_own_gets_no_issue_when_its_cause_is_resolved(
    hourly: HourlyDelivery, after: str
) -> None:
    tie = {(g("g1"), V1): 0.9}
    hourly.run({"v1": "firing"}, {"g1": "firing"}, tie)
    for _ in range(2):
        hourly.run({"v1": "ok"}, {"g1": "firing"}, tie)
    for _ in range(5):
        if after == "ended":
            hourly.scenario.evaluate(
                hourly.hour + 1, {"g1": "firing"}, LAG, metrics={"evidence_until": hour(2).isoformat()}
            )
            hourly.scenario.evaluate(hourly.hour + 1, {"v1": "ok"})
            hourly.scenario.store_causes(hourly.hour + 1, {})
            hourly.hour += 1
            reconcile(hourly.scenario.engine, hourly.config, DETECTORS)
            deliver(hourly.scenario.engine, hourly.sink, hourly.config)
        else:
            hourly.run({"v1": "ok"}, {"g1": after if hourly.hour < 3 else "unknown"}, {})
    assert hourly.titles == ["ebs_volume_starving: v1"]
    hourly.run({"v1": "ok"}, {"g1": "firing"}, {})
    assert hourly.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g1"], "it goes on by itself"


def test_a_tie_that_is_weak_for_two_hours_splits_an_incident(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.7})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.4})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.2})
    assert hourly.delivered == []
    hourly.run({"v1": "firing"}, {"g1": "unknown"}, {})
    assert hourly.delivered == [], "an unknown status does not split an incident"
    for _ in range(2):
        hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.2})
    assert hourly.titles[1:] == ["consumer_group_lagging: g1"]
    assert (
        "No longer a downstream effect of ebs_volume_starving title: v1"
        in hourly.sink.issue_drafts[1].notification.note
    )
    assert [action for action, _ in hourly.delivered] == ["comment"]


def test_hours_without_weighed_causes_do_not_split_an_incident(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.7})
    for _ in range(4):
        hourly.run({"v1": "firing"}, {"g1": "firing"})
    assert (len(hourly.titles), hourly.delivered) == (1, [])


def test_effects_of_a_muted_cause_are_only_posted_if_critical(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "ok"}, {})
    mute(hourly.scenario.engine, 1, until=None, who="Vera", why="Known.")
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8})
    assert hourly.titles == ["ebs_volume_starving: v1"]
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8}, severity="critical")
    assert hourly.titles[1:] == ["consumer_group_lagging: g1"]
    assert "Its cause is muted: ebs_volume_starving title: v1" in hourly.sink.issue_drafts[1].notification.note


def test_effects_of_a_snoozed_cause_are_only_posted_if_critical(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "ok"}, {}, now=hour(1))
    mute(hourly.scenario.engine, 1, until=hour(100), who="Vera", why="Known.", now=hour(1))
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8}, now=hour(2))
    assert [text.partition(" A higher")[0] for _, text in hourly.delivered] == [
        "Snoozed until 2026-01-09 14:00 UTC by Vera: Known."
    ]
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.8}, severity="critical", now=hour(3))
    assert (
        "is snoozed, but a finding of the incident is critical:" in hourly.delivered[-1][1]
        and len(hourly.delivered) == 2
    )


def test_the_cap_counts_incidents(hourly: HourlyDelivery) -> None:
    groups = {f"g{n}": "firing" for n in range(300)}
    hourly.run({"v1": "firing"}, groups, {(g(name), V1): 0.9 for name in groups})
    assert hourly.titles == ["ebs_volume_starving: v1"]
    assert "Downstream effects (51)" in notification_text(hourly.sink.issue_drafts[0].notification)
    assert "- and 250 more" in notification_text(hourly.sink.issue_drafts[0].notification)
    for _ in range(2):
        hourly.run({"v1": "ok"}, dict.fromkeys(groups, "ok"), {})
    assert [action for action, _ in hourly.delivered] == ["close"]


def test_an_incident_over_the_cap_is_in_the_storm_with_its_effects(hourly: HourlyDelivery) -> None:
    volumes = {f"v{n}": "firing" for n in range(6)}
    ties = {(g(f"g{n}"), fingerprint_of(f"v{n}")): 0.9 for n in range(6)}
    hourly.run(volumes, {f"g{n}": "firing" for n in range(6)}, ties)
    assert len(hourly.titles) == 4
    storm = next(issue_draft for issue_draft in hourly.sink.issue_drafts if issue_draft.detector == "storm")
    assert "Alert storm: 6 more findings" in storm.title and "6 more findings in 3 incidents" in storm.notification.note


def test_an_incident_that_fires_again_within_the_window_reopens_its_issue(hourly: HourlyDelivery) -> None:
    tie = {(g("g1"), V1): 0.9}
    hourly.run({"v1": "firing"}, {"g1": "firing"}, tie)
    for _ in range(2):
        hourly.run({"v1": "ok"}, {"g1": "ok"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, tie)
    assert [action for action, _ in hourly.delivered] == ["close", "reopen"] and len(hourly.titles) == 1
    assert "The finding is firing again." in hourly.delivered[1][1] and "title: g1" in hourly.delivered[1][1]


def test_a_reopened_finding_with_a_new_cause_is_a_new_incident(hourly: HourlyDelivery) -> None:
    hourly.run({}, {"g1": "firing"}, {})
    for _ in range(2):
        hourly.run({}, {"g1": "ok"}, {})
    assert [action for action, _ in hourly.delivered] == ["close"]
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert hourly.titles == ["consumer_group_lagging: g1", "ebs_volume_starving: v1"]
    assert [action for action, _ in hourly.delivered] == ["close"], "the issue of the earlier cause stays closed"
    assert hourly.states() == {"v1": ("root", None, "open"), "g1": ("follows", "v1", "open")}


def test_a_reopened_finding_with_the_cause_of_its_incident_reopens_that(hourly: HourlyDelivery) -> None:
    hourly.run({}, {"g1": "firing"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert hourly.states()["v1"] == ("root", "g1", "open"), "the cause joined the issue of its effect"
    for _ in range(2):
        hourly.run({"v1": "ok"}, {"g1": "ok"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    assert hourly.titles == ["consumer_group_lagging: g1"]
    assert [action for action, _ in hourly.delivered][-2:] == ["close", "reopen"]


def test_hours_evaluated_in_another_order_end_in_the_same_incidents(scenario: DeliveryScenario, run: Any) -> None:
    tie = {(g("g1"), V1): 0.9}
    ends = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        scenario.clear()
        for number in order:
            scenario.evaluate(number, {"v1": "firing"})
            scenario.evaluate(number, {"g1": "firing"}, LAG)
            scenario.store_causes(number, tie)
            run()
        ends.append({(t["resource_name"], t["role"], t["state"], t["opened_hour"]) for t in scenario.tickets()})
    assert ends[0] == ends[1] == ends[2]


def test_tickets_from_before_causes_were_weighed_are_kept(
    scenario: DeliveryScenario, run: Any, hourly: HourlyDelivery
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    scenario.evaluate(0, {"g1": "firing"}, LAG)
    run()
    scenario.evaluate(1, {"v1": "firing"})
    scenario.evaluate(1, {"g1": "firing"}, LAG)
    assert run().opened == 0 and scenario.actions() == ["create", "create"]
    assert timedelta(0) == scenario.tickets()[0]["opened_hour"] - hour(0)


def test_recent_changes_include_resources_between_cause_and_effect(hourly: HourlyDelivery) -> None:
    scenario = hourly.scenario
    with scenario.engine.begin() as connection:
        for number, started in ((-2, "2026-01-05T01:00:00+00:00"), (-1, "2026-01-05T08:58:00+00:00"), (0, None)):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour(number).date()})
            at = {"hour": hour(number)}
            for broker in (3, 4):
                row = {"cluster": "c", "endpoint": f"b{broker}", "broker_id": broker, "process_started_at": started}
                insert_row(connection, "metrics.broker_hourly", at | row)
            volume = {"account": "1", "region": "r", "volume_id": "v1", "size_gib": 100 - number}
            insert_row(connection, "inventory.volume_hourly", at | volume)
    hourly.scenario.store_causes(0, {(g("g1"), V1): 0.9})
    with scenario.engine.begin() as connection:
        connection.execute(sa.text("update detect.cause set path = '{volume:1/r/v1,broker:c/3}'"))
    hourly.run({"v1": "firing"}, {"g1": "firing"})
    assert hourly.sink.issue_drafts[0].notification.before == (
        "broker 3 was restarted at 2026-01-05 08:58 UTC",
        "v1: size 102 GiB → 101 GiB (hour 2026-01-05 09:00 UTC)",
        "v1: size 101 GiB → 100 GiB (hour 2026-01-05 10:00 UTC)",
    )


def test_findings_that_people_split_stay_split(hourly: HourlyDelivery) -> None:
    tie = {(g("g1"), V1): 0.9, (g("g2"), V1): 0.9}
    hourly.run({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, tie)
    ticket = next(row["ticket_id"] for row in hourly.scenario.tickets() if row["resource_name"] == "g1")
    assert respond_to(hourly.scenario.engine, ticket, Response("split", "Vera", PAGE, "Another reason.")) == [
        "ebs_volume_starving title: v1",
        "consumer_group_lagging title: g2",
    ]
    for _ in range(3):
        hourly.run({"v1": "firing"}, {"g1": "firing", "g2": "firing"}, tie)
    assert hourly.titles == ["ebs_volume_starving: v1", "consumer_group_lagging: g1"]
    assert hourly.states()["g2"] == ("follows", "v1", "open")
    with pytest.raises(StreamwardenError, match="g1: cannot split: the finding is alone"):
        respond_to(hourly.scenario.engine, ticket, Response("split", "Vera", PAGE, "Again."))


def test_findings_that_people_linked_stay_linked(hourly: HourlyDelivery) -> None:
    hourly.run({"v1": "firing"}, {"g1": "ok"}, {})
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {})
    volume, group = hourly.scenario.tickets()

    def link(other: str) -> None:
        respond_to(
            hourly.scenario.engine, group["ticket_id"], Response("link", "Vera", PAGE, "The same disk.", other=other)
        )

    link(volume["fingerprint"])
    for _ in range(4):
        hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.0})
    assert [action for action, _ in hourly.delivered] == ["close", "comment"] or [a for a, _ in hourly.delivered] == [
        "comment",
        "close",
    ]
    assert hourly.states()["g1"][1] == "v1"
    texts = dict(hourly.delivered)
    assert texts["close"].startswith("Linked manually by Vera to ebs_volume_starving title: v1: http://tracker/0")
    assert (
        "Linked manually: - consumer_group_lagging title: g1. It is bad. (linked manually by Vera)" in texts["comment"]
    )
    with pytest.raises(StreamwardenError, match="cannot link a finding to itself"):
        link(group["fingerprint"])


def test_the_command_line_explains_splits_and_links(hourly: HourlyDelivery, cli: Any) -> None:
    hourly.run({"v1": "firing"}, {"g1": "firing"}, {(g("g1"), V1): 0.9})
    output = cli("tickets", "explain", g("g1")[:12])
    assert "ebs_volume_starving title: v1, since 2026-01-05 10:00" in output
    assert "  consumer_group_lagging title: g1, since 2026-01-05 10:00: its partitions lie there (90 %)" in output
    assert "0.90 accepted" in output
    output = cli("tickets", "split", g("g1"), "--reason", "Something else.")
    assert "consumer_group_lagging title: g1: split from ebs_volume_starving title: v1." in output
    assert "one incident from the next hour on" in cli("tickets", "link", g("g1"), V1, "--reason", "It is, after all.")
    rows = hourly.scenario.rows(
        "select is_linked, words from tickets.manual_link inner join tickets.response using (response_id)"
    )
    assert rows == [{"is_linked": True, "words": "It is, after all."}]
    assert "Upstream causes: none found" in cli("tickets", "explain", V1)
    assert "No firing finding depends on another one." in cli(
        "detectors", "causes", "--hour", f"{hour(0):%Y-%m-%dT%H:%M}"
    )


@pytest.fixture
def cli(scenario: DeliveryScenario, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "s.yaml").write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))

    def run(*words: str) -> str:
        return CliRunner(env={"COLUMNS": "300"}).invoke(app, words, catch_exceptions=False).output

    return run
