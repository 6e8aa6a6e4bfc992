"""The page of an incident, in a real browser: the root, what follows and why, what doesn't, the hours, what changed."""

from __future__ import annotations

import os
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect
from streamwarden.base.config import Config
from streamwarden.tickets import reconcile

from tests.plugins.tickets.story import DETECTORS, Story, hour, print_of
from tests.sql.rows import insert_row

pytestmark = pytest.mark.slow
LAG = "consumer_group_lagging"
GROUPS = ("billing", "search", "audit")


@pytest.fixture(scope="module")
def incident(module_warehouse: sa.Engine) -> Story:
    """A volume starves, two groups follow from it, a third was held against it and doesn't."""
    story = Story(module_warehouse)
    volume, (billing, search, audit) = print_of("vol-1"), [print_of(name, LAG) for name in GROUPS]
    with story.engine.begin() as connection:
        for number, size in ((-1, 100), (0, 200)):
            row = {"account": "1", "region": "r", "volume_id": "vol-1", "size_gib": size}
            insert_row(connection, "inventory.volume_hourly", {"hour": hour(number), **row})
    for number in range(3):
        story.judge(number, {"vol-1": "firing"}, message="Its bucket is empty.")
        states = {"billing": "firing", "search": "firing" if number else "ok", "audit": "firing"}
        story.judge(number, states, LAG, severity="warning", reason="stuck", message="It is <b>late</b>.")
        story.causes(number, {(billing, volume): 0.9, (search, volume): 0.7, (audit, volume): 0.1})
        reconcile(story.engine, Config(), DETECTORS)
    return story


def test_an_incident_is_one_page(page: Any, incident: Story) -> None:
    page.goto(f"/streamwarden/findings/{print_of('billing', LAG)}")
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
    assert page.locator("section:has(#hours) svg.strip").count() == 3
    assert "0.90" in page.locator("section:has(#why)").inner_text()
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/incident.png", full_page=True)


def test_what_usually_has_a_cause_and_has_none_says_so_on_both_pages(page: Any, incident: Story) -> None:
    for place in ("findings", "incidents"):
        page.goto(f"/streamwarden/{place}/{print_of('audit', LAG)}")
        told = page.locator("section:has(#unexplained)").inner_text()
        assert "No related finding explains this one. Also checked: " in told and "EBS volume" not in told
        assert "ebs_volume_starving title: vol-1: its partitions lie there." in told
        page.goto(f"/streamwarden/{place}/{print_of('billing', LAG)}")
        assert not page.locator("#unexplained").count(), "its cause is known"
    if folder := os.environ.get("PICTURES"):
        page.goto(f"/streamwarden/incidents/{print_of('audit', LAG)}")
        page.screenshot(path=f"{folder}/unexplained.png", full_page=True)


def test_what_has_no_ticket_belongs_to_no_incident(page: Any, incident: Story) -> None:
    page.goto(f"/streamwarden/incidents/{'0' * 64}")
    assert "no incident" in page.locator("main").inner_text()
    page.goto("/streamwarden/incidents/x")
    assert "has 64 hexadecimal digits" in page.locator("main").inner_text()


def test_a_phone_needs_no_sideways_scrolling(page: Any, incident: Story) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/streamwarden/incidents/{print_of('vol-1')}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
