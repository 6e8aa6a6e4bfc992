"""What is specific to Alertmanager: labels and annotations, the end of an alert, changed labels, repetition."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from pydantic import ValidationError
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.trackers import Alertmanager as Settings
from streamwarden.tickets import reconcile
from streamwarden.tickets.deliver import deliver, refresh

from tests.plugins.tickets.endpoints.alertmanager import Alertmanager
from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, fingerprint_of
from tests.plugins.tickets.sinks.test_trackers import FINGERPRINT, Team, change, issue_draft


def endpoint_of(team: Team) -> Alertmanager:
    assert isinstance(team.endpoint, Alertmanager)
    return team.endpoint


def test_an_alert_has_labels_annotations_and_links() -> None:
    team = Team("alertmanager", labels={"source": "streamwarden"})
    draft = issue_draft()
    issue = team.sink.create(replace(draft, notification=replace(draft.notification, runbook_url="https://air/d/rule")))
    (alert,) = endpoint_of(team).firing()
    assert alert["labels"] == {
        "alertname": "rule", "severity": "critical", "owner": "storage", "resource": "volume:1/r/vol-1",
        "finding": FINGERPRINT, "source": "streamwarden",
    }  # fmt: skip
    assert alert["annotations"]["summary"] == "Disk is slow: vol-1"
    assert alert["annotations"]["description"].startswith("It is bad. Firing since")
    assert alert["annotations"]["runbook_url"] == "https://air/d/rule"
    assert alert["generatorURL"] == "https://air/streamwarden/findings/ab"
    assert alert["startsAt"] == draft.notification.since
    assert issue.url and issue.url.startswith("https://alertmanager.acme.example/#/alerts?filter=%7Bfinding%3D%22abab")


def test_a_resource_of_kafka_has_its_cluster_as_a_label() -> None:
    team = Team("alertmanager")
    team.sink.create(replace(issue_draft(), resource="group:shop/billing"))
    assert endpoint_of(team).firing()[0]["labels"]["cluster"] == "shop"


def test_an_alert_ends_by_itself_unless_it_is_sent_again() -> None:
    team = Team("alertmanager")
    issue = team.sink.create(issue_draft())
    for _ in range(20):
        team.clock.pause(3600)
        team.sink.refresh([change(issue.key, "comment", "", "r")])  # type: ignore[attr-defined]
        assert "warning" in {one["labels"]["severity"] for one in endpoint_of(team).firing()}
    team.clock.pause(12 * 3600 + 1)
    assert endpoint_of(team).firing() == []


def test_a_changed_severity_or_owner_resolves_the_former_alert() -> None:
    team = Team("alertmanager")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "comment", "Severity changed."))
    assert [one["labels"]["severity"] for one in endpoint_of(team).firing()] == ["warning"]
    team.sink.update(replace(change(issue.key, "comment", "Owner changed.", "m2"), owner="orders"))
    (alert,) = endpoint_of(team).firing()
    assert alert["labels"]["owner"] == "orders"
    team.sink.update(change(issue.key, "close", "Over.", "m3"))
    assert endpoint_of(team).firing() == [], "the alert with the former owner is resolved too"


def test_a_start_in_the_future_is_posted_as_now() -> None:
    team = Team("alertmanager")
    draft = issue_draft()
    future = replace(draft.notification, since=team.clock.now + timedelta(days=3))
    team.sink.create(replace(draft, notification=future))
    assert [one["startsAt"] for one in endpoint_of(team).firing()] == [team.clock.now]


def test_a_muted_ticket_does_not_fire() -> None:
    team = Team("alertmanager")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "comment", "Snoozed.", is_muted=True, answer="snoozed"))
    assert endpoint_of(team).firing() == []
    team.sink.update(change(issue.key, "comment", "More.", "m2", is_muted=True))
    assert endpoint_of(team).firing() == []
    team.sink.update(change(issue.key, "reopen", "The snooze has ended.", "m3"))
    assert len(endpoint_of(team).firing()) == 1


def test_a_comment_on_a_closed_ticket_does_not_fire() -> None:
    team = Team("alertmanager")
    issue = team.sink.create(issue_draft())
    team.sink.update(change(issue.key, "close", "Over."))
    team.sink.update(change(issue.key, "comment", "More.", "m2", is_open=False))
    assert endpoint_of(team).firing() == []


def test_open_tickets_are_sent_again_in_every_run(scenario: DeliveryScenario) -> None:
    team = Team("alertmanager")
    config = Config(tickets=Tickets(trackers={"team": team.settings}))  # type: ignore[dict-item]
    scenario.evaluate(0, {"vol-1": "firing", "vol-2": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    assert deliver(scenario.engine, team.sink, config, lambda: team.clock.now).failed == []
    assert len(endpoint_of(team).firing()) == 2
    endpoint_of(team).alerts.clear()  # it was restarted without its data
    assert refresh(scenario.engine, team.sink, config, lambda: team.clock.now) is None
    firing = endpoint_of(team).firing()
    assert {one["labels"]["finding"] for one in firing} == {fingerprint_of("vol-1"), fingerprint_of("vol-2")}
    assert all("findings/" in one["generatorURL"] and one["annotations"]["description"] for one in firing)
    assert all(
        one["annotations"]["runbook_url"].endswith("/streamwarden/detectors/ebs_volume_starving") for one in firing
    )
    for change_of_ticket in (
        "muted = 'snoozed'",
        "muted = null, summary_ticket_id = (select t.ticket_id from tickets.ticket as t where t.fingerprint <> :f)",
    ):
        with scenario.engine.begin() as connection:
            statement = sa.text(f"update tickets.ticket set {change_of_ticket} where fingerprint = :f")
            connection.execute(statement, {"f": fingerprint_of("vol-2")})
        endpoint_of(team).alerts.clear()
        refresh(scenario.engine, team.sink, config, lambda: team.clock.now)
        assert [one["labels"]["finding"] for one in endpoint_of(team).firing()] == [fingerprint_of("vol-1")]


def test_an_unreachable_alertmanager_is_one_line_when_tickets_are_sent_again(scenario: DeliveryScenario) -> None:
    team = Team("alertmanager")
    config = Config(tickets=Tickets(trackers={"team": team.settings}))  # type: ignore[dict-item]
    scenario.evaluate(0, {"vol-1": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    deliver(scenario.engine, team.sink, config, lambda: team.clock.now)
    failure = refresh(scenario.engine, team.through(*["no connection"] * 20), config, lambda: team.clock.now)
    assert failure and "the tracker does not respond: connection refused" in failure and "\n" not in failure


def test_the_probe_names_the_version_and_what_is_not_tested() -> None:
    assert Team("alertmanager").sink.check() == (
        "Alertmanager 0.28.1 responds; posting cannot be tested without an alert"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"url": "http://am:9093", "password": "x"}, "must begin with https://"),
        ({"url": "http://am:9093", "user": "x"}, "needs `password`"),
        ({"url": "http://am:9093", "labels": {"severity": "page"}}, "severity"),
        ({"url": "http://am:9093", "labels": {"a-b": "x"}}, "labels"),
        ({"url": "http://am:9093", "expires_hours": 1}, "expires_hours"),
    ],
)
def test_wrong_settings_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(values)
    assert Settings(url="http://am:9093").password is None, "most have no password of their own"
    assert timedelta(hours=Settings(url="http://am:9093").expires_hours) == timedelta(hours=12)
