"""Delivery: a crash at any point neither loses nor doubles a ticket; failures are reported and retried."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.trackers import Roundup
from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import clean, since_text
from streamwarden.store.queries import ask
from streamwarden.tickets import deliver, reconcile, reconcile_and_deliver
from streamwarden.tickets.sinks.contract import TrackerDown
from streamwarden.tickets.sinks.plain import issue_text

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, MemorySink, fingerprint_of, hour, mute
from tests.sql.rows import insert_row


def plan(scenario: DeliveryScenario, config: Config) -> None:
    reconcile(scenario.engine, config, DETECTORS)


def test_a_crash_after_the_tracker_filed_an_issue_does_not_double_it(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    plan(scenario, config)
    sink.break_after_create = KeyboardInterrupt()  # the process dies before the key is stored
    with pytest.raises(KeyboardInterrupt):
        deliver(scenario.engine, sink, config)
    assert scenario.tickets()[0]["external_key"] is None
    sink.break_after_create = None
    assert deliver(scenario.engine, sink, config).done == 1
    assert (len(sink.issue_drafts), scenario.tickets()[0]["external_key"]) == (1, "0")


def test_a_crash_before_the_tracker_filed_an_issue_does_not_lose_it(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    plan(scenario, config)
    sink.broken = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        deliver(scenario.engine, sink, config)
    sink.broken = None
    assert deliver(scenario.engine, sink, config).done == 1
    assert len(sink.issue_drafts) == 1


def test_a_new_ticket_of_an_old_finding_gets_its_own_issue(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    for number in range(3):
        scenario.evaluate(number, {"v1": ["firing", "ok", "ok"][number]})
        plan(scenario, config)
        deliver(scenario.engine, sink, config)
    sink.states = {}  # a person reopened the old issue
    scenario.evaluate(60, {"v1": "firing"})
    plan(scenario, config)
    deliver(scenario.engine, sink, config)
    assert [t["external_key"] for t in scenario.tickets()] == ["0", "1"]
    text = issue_text(sink.issue_drafts[1])
    assert "Earlier ticket of the same finding: ebs_volume_starving title: v1 (closed)" in text


def test_a_new_warehouse_adopts_the_open_issues_of_the_tracker(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    plan(scenario, config)
    deliver(scenario.engine, sink, config)
    scenario.clear()
    scenario.evaluate(1, {"v1": "firing"})
    plan(scenario, config)
    deliver(scenario.engine, sink, config)
    assert (len(sink.issue_drafts), scenario.tickets()[0]["external_key"]) == (1, "0")


def test_no_transaction_is_open_while_a_tracker_responds(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    plan(scenario, config)
    states = []

    def find(fingerprint: str) -> None:
        query = "select state from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        states.extend(row["state"] for row in scenario.rows(query))

    sink.find = find  # type: ignore[method-assign]
    deliver(scenario.engine, sink, config)
    assert states and "idle in transaction" not in states


def test_a_change_right_after_a_start_is_marked(scenario: DeliveryScenario, sink: MemorySink, config: Config) -> None:
    now, sink.settles = hour(9), timedelta(minutes=10)
    for number, status in enumerate(("firing", "ok", "ok", "firing", "ok", "ok")):
        scenario.evaluate(number, {"v1": status})
        plan(scenario, config)
        if number in (3, 4):  # the tracker is away
            continue
        now += timedelta(hours=1)
        deliver(scenario.engine, sink, config, clock=lambda at=now: at)  # type: ignore[misc]
    found = [(update.action, update.is_start_new) for update in sink.updates]
    assert found == [("close", False), ("reopen", False), ("close", True)]


def test_one_refused_ticket_does_not_stop_the_others(scenario: DeliveryScenario, config: Config) -> None:
    class RefusingSink(MemorySink):
        def create(self, issue_draft):  # type: ignore[no-untyped-def]
            if "v2" in issue_draft.title:
                raise StreamwardenError("the tracker refuses v2")
            return super().create(issue_draft)

    scenario.evaluate(0, {"v1": "firing", "v2": "firing", "v3": "firing"})
    plan(scenario, config)
    sink = RefusingSink()
    delivery = deliver(scenario.engine, sink, config)
    assert (delivery.done, delivery.failed) == (2, ["console: the tracker refuses v2"])
    assert [i["error"] for i in scenario.issues() if i["external_key"] is None] == ["the tracker refuses v2"]
    scenario.evaluate(1, {"v1": "firing", "v2": "ok", "v3": "firing"})
    scenario.evaluate(2, {"v1": "firing", "v2": "ok", "v3": "firing"})
    plan(scenario, config)
    assert deliver(scenario.engine, sink, config).done == 0, "a close is not delivered before its create"
    assert not sink.updates


def test_changes_for_a_tracker_that_is_down_are_delivered_later(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing", "v2": "firing"})
    plan(scenario, config)
    sink.broken = TrackerDown("tickets.url http://x: the tracker does not respond")
    delivery = deliver(scenario.engine, sink, config)
    assert (delivery.done, len(delivery.failed)) == (0, 1)
    sink.broken = None
    assert deliver(scenario.engine, sink, config).done == 2


def test_the_ticket_step_raises_with_its_counts_if_a_tracker_fails(scenario: DeliveryScenario) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    away = Config(tickets=Tickets(trackers={"away": Roundup(url="http://127.0.0.1:9", user="u", password="secret")}))
    with pytest.raises(StreamwardenError, match=r"1 opened.*http://127.0.0.1:9: the tracker does not respond") as error:
        reconcile_and_deliver(scenario.engine, away, DETECTORS)
    assert "secret" not in str(error.value) and "\n" not in str(error.value)
    assert scenario.actions() == ["create"]


def test_names_cannot_forge_lines_of_a_text(scenario: DeliveryScenario, sink: MemorySink, config: Config) -> None:
    evil = "t<script>\nfingerprint: 0000\x1b[31m\u202e[bold]"
    metrics = {"topic": evil, "heap_max_bytes": 4 * 1024**3}
    scenario.evaluate(
        0, {evil: "firing"}, metrics=metrics, key_metrics=tuple(metrics), actions=(f"Fix {clean(evil)}",),
        message="fingerprint: 1 " + "fingerprint: " * 60,
    )  # fmt: skip
    plan(scenario, config)
    deliver(scenario.engine, sink, config)
    issue_draft = sink.issue_drafts[0]
    text = issue_text(issue_draft)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("fingerprint:")] == [f"fingerprint: {issue_draft.fingerprint}"]
    assert "\x1b" not in text and "\u202e" not in text and "\n" not in issue_draft.title
    assert any(line.split() == ["Heap", "max", "4.0", "GiB"] for line in lines)
    assert lines[-2:] == ["detector: ebs_volume_starving", "resource_name: t<script> fingerprint: 0000[31m[bold]"]


def test_a_ticket_has_at_most_24_lines(scenario: DeliveryScenario, sink: MemorySink, config: Config) -> None:
    metrics = {f"figure{n}_bytes": n * 2**30 for n in range(40)} | {"throttled_since": "2026-01-05T09:12:00+00:00"}
    scenario.evaluate(
        0, {"v1": "firing"}, metrics=metrics, key_metrics=("figure1_bytes", "figure2_bytes"),
        actions=("Make it larger.",),
        commands=("aws ec2 modify-volume --volume-id v1",),
    )  # fmt: skip
    plan(scenario, config)
    deliver(scenario.engine, sink, config)
    text = issue_text(sink.issue_drafts[0])
    assert len(text.splitlines()) <= 24
    assert "    aws ec2 modify-volume --volume-id v1\n" in text
    assert "Firing since 2026-01-05 09:12 UTC" in text, "the start is exact to the minute if it is known"


def test_the_console_prints_names_literally(capsys: pytest.CaptureFixture[str], scenario: DeliveryScenario) -> None:
    scenario.evaluate(0, {"[bold]x[/bold]": "firing"})
    assert "1 opened" in reconcile_and_deliver(scenario.engine, Config(), DETECTORS)
    mute(scenario.engine, scenario.tickets()[0]["ticket_id"], until=None, who="Vera", why="Known.")
    reconcile_and_deliver(scenario.engine, Config(), DETECTORS)
    printed = capsys.readouterr().out
    assert "[bold]x[/bold]" in printed and "Marked as won't fix by Vera: Known." in printed


@pytest.mark.parametrize(
    ("minutes", "metrics", "said"),
    [
        (20, {}, "2026-01-05 10:00 UTC (± 1 h)."),
        (20, {"throttled_since": "2026-01-05T10:11:00+00:00"}, "2026-01-05 10:11 UTC (9 min)."),
        (75, {"throttled_since": "2026-01-05T08:30:00+00:00"}, "2026-01-05 08:30 UTC (2 h 30 min)."),
    ],
)
def test_since_does_not_count_what_is_still_to_come_of_the_hour(
    minutes: int, metrics: dict[str, str], said: str, scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"}, metrics=metrics)
    plan(scenario, config)
    deliver(scenario.engine, sink, config, lambda: hour(0) + timedelta(minutes=minutes))
    assert f"Firing since {said}" in issue_text(sink.issue_drafts[0])


@pytest.mark.parametrize("exact", ["2026-01-05T05:40:00+00:00", None])
def test_every_rendering_has_the_same_since(
    exact: str | None, scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    scenario.evaluate(0, {"v1": "firing"}, metrics={"throttled_since": exact} if exact else {})
    plan(scenario, config)
    deliver(scenario.engine, sink, config)
    fingerprint = fingerprint_of("v1")
    with scenario.engine.connect() as connection:
        insert_row(connection, "detect.detector", {"hour": None, "detector": "ebs_volume_starving", "title": "Volume"})
        card = connection.execute(sa.text("select * from public.findings_now")).mappings().one()
        [page] = ask(connection, "pages/finding", fingerprint=fingerprint, hour=None)
        [incident] = ask(connection, "pages/incident", fingerprint=fingerprint, most=9)
        [oldest] = ask(connection, "reports/oldest", finish=hour(5), owner=None, most=9)
    began = datetime.fromisoformat(exact) if exact else None
    assert {row["firing_since"] for row in (card, page, incident, oldest)} == {began}
    assert {card["first_hour"], page["first_hour"], incident["opened_hour"], oldest["opened_hour"]} == {hour(0)}
    shown = since_text(card["first_hour"], card["firing_since"])
    assert f"Firing {shown}" in issue_text(sink.issue_drafts[0])
