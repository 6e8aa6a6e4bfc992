"""The page of an incident in a real browser: root cause, effects, ruled-out causes, hours, recent changes."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR
from streamwarden.tickets import reconcile

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, fingerprint_of, hour
from tests.sql.rows import insert_row

pytestmark = pytest.mark.slow
LAG = "consumer_group_lagging"
GROUPS = ("billing", "search", "audit")


@pytest.fixture(scope="module")
def incident(module_warehouse: sa.Engine) -> DeliveryScenario:
    """A firing volume with two groups as downstream effects; for a third group the volume was ruled out."""
    scenario = DeliveryScenario(module_warehouse)
    volume, (billing, search, audit) = fingerprint_of("vol-1"), [fingerprint_of(name, LAG) for name in GROUPS]
    with scenario.engine.begin() as connection:
        connection.execute(
            sa.text("""
            insert into detect.detector (detector, title, severity, maturity, owner, header, sql_checksum, loaded_at)
            select id, id || ' title', 'critical', 'stable', 'sre', '{}', 'abc', now()
            from unnest(cast(:ids as text[])) as id"""),
            {"ids": ["ebs_volume_starving", LAG]},
        )
        for number, size in ((-1, 100), (0, 200)):
            row = {"account": "1", "region": "r", "volume_id": "vol-1", "size_gib": size}
            insert_row(connection, "inventory.volume_hourly", {"hour": hour(number), **row})
        ticket = {"detector": "ebs_volume_starving", "severity": "critical", "state": "closed", "muted": None,
                  "role": "alone"}  # fmt: skip
        for days, name, reason in ((9, "vol-2", "healthy"), (5, "vol-1", "person"), (3, "vol-3", "wont_fix")):
            opened = hour(-24 * days)
            times = {"hour": opened, "opened_hour": opened, "last_firing_hour": opened + 4 * HOUR}
            names = {"fingerprint": fingerprint_of(name), "resource_name": name, "resource": f"volume:1/r/{name}",
                     "title": f"ebs_volume_starving title: {name}", "close_reason": reason}  # fmt: skip
            insert_row(connection, "tickets.ticket", {**ticket, **times, **names, "closed_hour": opened + 6 * HOUR})
        connection.execute(
            sa.text("""
            insert into tickets.response (fingerprint, detector, ticket_id, verb, who, place, words)
            select fingerprint, detector, ticket_id, 'close', 'ann', 'page', 'Moved to <b>gp3</b>.'
            from tickets.ticket where close_reason = 'person'""")
        )
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour(-24 * 5).date()})
        for number, size in ((3, 100), (5, 300)):
            row = {"account": "1", "region": "r", "volume_id": "vol-1", "size_gib": size}
            insert_row(connection, "inventory.volume_hourly", {"hour": hour(-24 * 5 + number), **row})
    for number in range(3):
        actions = ["Raise the limit."]
        metrics = {"throttled_since": f"{hour(0) + timedelta(minutes=12):%Y-%m-%dT%H:%M:%SZ}"}
        scenario.evaluate(number, {"vol-1": "firing"}, message="Its bucket is empty.", actions=actions, metrics=metrics)
        states = {"billing": "firing", "search": "firing" if number else "ok", "audit": "firing"}
        late: Any = {"severity": "warning", "reason": "stuck", "message": "It is <b>late</b>."}
        scenario.evaluate(number, states, LAG, actions=["Add members."], **late)
        scenario.store_causes(number, {(billing, volume): 0.9, (search, volume): 0.7, (audit, volume): 0.1})
        reconcile(scenario.engine, Config(), DETECTORS)
    return scenario


def test_an_incident_is_one_page(page: Any, incident: DeliveryScenario) -> None:
    page.goto(f"/streamwarden/findings/{fingerprint_of('billing', LAG)}")
    page.get_by_role("link", name="Incident: root cause, downstream effects").click()
    expect(page.locator("h1")).to_have_text("ebs_volume_starving title: vol-1")
    text = page.locator("main").inner_text()
    assert "Its bucket is empty." in text and "Downstream effects (2)" in text
    tree = page.locator(".tree li").all_inner_texts()
    assert [line.splitlines()[0] for line in tree] == [
        "warning consumer_group_lagging title: billing evidence 90\N{NO-BREAK SPACE}%",
        "warning consumer_group_lagging title: search evidence 70\N{NO-BREAK SPACE}%",
    ]
    assert "Its partitions lie there. Firing since 2026-01-05 10:00 UTC (± 1 h)." in tree[0]
    refused = page.locator("section:has(#refused)").inner_text()
    assert "audit" in refused and "its partitions lie there" in refused
    assert "vol-1: size 100 GiB → 200 GiB (hour 2026-01-05 10:00 UTC)" in text
    expect(page.locator("section:has(#hours) svg.strip")).to_have_count(3)
    assert "0.90" in page.locator("section:has(#why)").inner_text()
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/incident.png", full_page=True)


def test_the_incident_says_what_to_do_and_draws_its_chain(page: Any, incident: DeliveryScenario) -> None:
    page.goto(f"/streamwarden/incidents/{fingerprint_of('search', LAG)}")
    assert "Raise the limit." in page.locator(".advice").inner_text()
    graph = page.locator(".chain svg")
    label = graph.get_attribute("aria-label")
    assert label == ("Chain from the root cause: vol-1 (critical); then billing (warning), search (warning).")
    assert graph.locator("rect").count() == 2 * 3 and graph.locator("path.link").count() == 2


def test_all_pages_show_the_same_start(page: Any, incident: DeliveryScenario) -> None:
    volume = fingerprint_of("vol-1")
    for path in (f"incidents/{volume}", f"findings/{volume}", "findings"):
        page.goto(f"/streamwarden/{path}")
        expect(page.locator("main")).to_contain_text("since 2026-01-05 10:12 UTC", ignore_case=True)
    page.goto("/streamwarden/")
    expect(page.locator(".incidents tbody tr").first).to_contain_text("05 Jan 10:12")


def test_an_effect_names_its_root_cause_before_its_own_actions(page: Any, incident: DeliveryScenario) -> None:
    first = "Fix the root cause first: ebs_volume_starving title: vol-1"
    page.goto(f"/streamwarden/findings/{fingerprint_of('billing', LAG)}")
    advice = page.locator(".advice").inner_text()
    assert advice.index(first) < advice.index("Add members.")
    page.goto(f"/streamwarden/findings/{fingerprint_of('audit', LAG)}")
    assert "Fix the root cause" not in page.locator(".advice").inner_text()


def test_similar_past_incidents_and_what_closed_them(page: Any, incident: DeliveryScenario) -> None:
    page.goto(f"/streamwarden/incidents/{fingerprint_of('vol-1')}")
    rows = page.locator("section:has(#similar) tbody tr")
    assert [row.split("title: ")[1][:5] for row in rows.all_inner_texts()] == ["vol-1", "vol-3", "vol-2"]
    first = rows.first.inner_text()
    assert "same resource" in first and "closed by a person" in first
    assert "closed by ann: Moved to <b>gp3</b>." in first and "Size: 100 GiB → 300 GiB" in first
    assert "won't fix" in rows.nth(1).inner_text() and "same detector" in rows.nth(1).inner_text()


def test_both_pages_show_that_no_root_cause_was_found(page: Any, incident: DeliveryScenario) -> None:
    for place in ("findings", "incidents"):
        page.goto(f"/streamwarden/{place}/{fingerprint_of('audit', LAG)}")
        text = page.locator("section:has(#unexplained)").inner_text()
        assert "No related finding explains this one. Also checked: " in text and "EBS volume" not in text
        assert "ebs_volume_starving title: vol-1: its partitions lie there." in text
        page.goto(f"/streamwarden/{place}/{fingerprint_of('billing', LAG)}")
        expect(page.locator("#unexplained")).to_have_count(0)  # its root cause is known
    if folder := os.environ.get("PICTURES"):
        page.goto(f"/streamwarden/incidents/{fingerprint_of('audit', LAG)}")
        page.screenshot(path=f"{folder}/unexplained.png", full_page=True)


def test_a_finding_without_a_ticket_has_no_incident(page: Any, incident: DeliveryScenario) -> None:
    page.goto(f"/streamwarden/incidents/{'0' * 64}")
    assert "no incident" in page.locator("main").inner_text()
    page.goto("/streamwarden/incidents/x")
    assert "has 64 hexadecimal digits" in page.locator("main").inner_text()


def test_the_page_fits_the_width_of_a_phone(page: Any, incident: DeliveryScenario) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/streamwarden/incidents/{fingerprint_of('vol-1')}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
