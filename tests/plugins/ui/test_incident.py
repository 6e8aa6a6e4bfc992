"""The page of an incident in a real browser: root cause, effects, ruled-out causes, hours, recent changes."""

from __future__ import annotations

import os
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect
from streamwarden.base.config import Config
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
        for number, size in ((-1, 100), (0, 200)):
            row = {"account": "1", "region": "r", "volume_id": "vol-1", "size_gib": size}
            insert_row(connection, "inventory.volume_hourly", {"hour": hour(number), **row})
    for number in range(3):
        scenario.evaluate(number, {"vol-1": "firing"}, message="Its bucket is empty.")
        states = {"billing": "firing", "search": "firing" if number else "ok", "audit": "firing"}
        scenario.evaluate(number, states, LAG, severity="warning", reason="stuck", message="It is <b>late</b>.")
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
        "warning consumer_group_lagging title: billing 90 %",
        "warning consumer_group_lagging title: search 70 %",
    ]
    assert "Its partitions lie there. Firing since between 2026-01-05 09:00 and 11:00 UTC." in tree[0]
    refused = page.locator("section:has(#refused)").inner_text()
    assert "audit" in refused and "its partitions lie there" in refused
    assert "vol-1: size 100 GiB → 200 GiB (hour 2026-01-05 10:00 UTC)" in text
    expect(page.locator("section:has(#hours) svg.strip")).to_have_count(3)
    assert "0.90" in page.locator("section:has(#why)").inner_text()
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/incident.png", full_page=True)


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
