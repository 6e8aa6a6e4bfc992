"""The overview fits one screen, and pages keep their budgets with many findings and thousands of resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.causes import store_topology
from streamwarden.ui.overview import MAX_INCIDENTS

from tests.sql.rows import insert_row, insert_rows
from tests.variations import rare_after

pytestmark = pytest.mark.slow
FINDINGS, TOPICS, APPLICATIONS, TICKETS = 500, 2_000, 200, 31
CLUSTERS = ("orders-prod", "payments-prod")
KIB = 1024


@pytest.fixture(scope="module")
def large(module_warehouse: sa.Engine) -> Iterator[sa.Engine]:
    """500 firing findings of 2,000 topics, of which 31 have tickets: the last has 20 of them as downstream effects."""
    newest = last_full_hour()
    at = {"hour": newest}
    with module_warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": newest.date()})
        insert_row(connection, "detect.load", {**at, "app": "topics", "status": "loaded"})
        coverage = {**at, "app": "topics", "source": "kafka", "resource_name": "c", "status": "complete"}
        insert_row(connection, "detect.coverage", coverage)
        title = {**at, "detector": "topic_abandoned", "title": "Unused topics", "severity": "warning"}
        insert_row(connection, "detect.detector", title)
        run = {"detector": "topic_abandoned", "status": "evaluated", "firing": FINDINGS, "ok": 7}
        insert_row(connection, "detect.detector_run", {**at, **run})
        place = [{"cluster": CLUSTERS[n % 2], "topic": f"team-{n % 40}.orders-{n:05}.v1"} for n in range(TOPICS)]
        insert_rows(connection, "inventory.topic_hourly", [{**at, **one} for one in place])
        leads = [{**at, **one, "partition": 0, "leader": 1} for one in place]
        insert_rows(connection, "metrics.partition_hourly", leads)
        for n, cluster in enumerate(CLUSTERS):
            broker = {**at, "cluster": cluster, "broker_id": 1, "endpoint": f"http://broker-{n}:8778/jolokia"}
            insert_row(connection, "metrics.broker_hourly", broker)
        process = [
            {**at, "cluster": CLUSTERS[n % 2], "app": f"app-{n:03}", "endpoint": f"http://app-{n}:1/metrics"}
            for n in range(APPLICATIONS)
        ]
        insert_rows(connection, "metrics.jvm_app_hourly", process)
        for back in range(24):
            insert_rows(
                connection, "detect.evaluation", [_evaluation(newest - back * HOUR, n) for n in range(FINDINGS)]
            )
        insert_rows(connection, "tickets.ticket", [_ticket(newest, n) for n in range(TICKETS)])
        connection.execute(
            sa.text("""
                update tickets.ticket set summary_ticket_id = root.ticket_id, cause_ticket_id = root.ticket_id
                from (select max(ticket_id) as ticket_id from tickets.ticket) as root
                where tickets.ticket.ticket_id <= 20""")
        )
    store_topology(module_warehouse, newest)
    yield module_warehouse


def _evaluation(hour: Any, n: int) -> dict[str, Any]:
    name = f"{CLUSTERS[n % 2]}/team-{n % 40}.orders-{n:05}.v1"
    return {
        "hour": hour, "detector": "topic_abandoned", "fingerprint": f"{n:064x}", "resource_name": name,
        "resource": f"topic:{name}", "status": "firing" if (hour.hour + n) % 5 else "ok", "reason": "unused",
        "severity": ("warning", "info")[n % 2], "message": "Topic " + "is unused. " * 8, "owner": f"team-{n % 40}",
        "application": f"app-{n % 7:03}", "key_metrics": "[]", "commands": "[]", "actions": "[]",
    }  # fmt: skip


def _ticket(newest: Any, n: int) -> dict[str, Any]:
    name = f"{CLUSTERS[n % 2]}/team-{n % 40}.orders-{n:05}.v1"
    return {
        "hour": newest, "fingerprint": f"{n:064x}", "detector": "topic_abandoned", "resource_name": name,
        "resource": f"topic:{name}", "severity": "warning", "title": "Unused topics", "state": "open", "muted": None,
        "opened_hour": newest - 5 * HOUR, "last_firing_hour": newest, "role": "alone",
    }  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
@pytest.mark.parametrize("scheme", rare_after(1, ["light", "dark"]))
def test_the_overview_fits_one_screen(page: Any, large: sa.Engine, width: int, height: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": height})
    page.goto("/streamwarden/")
    last = page.locator("section:has(#applications) .more").bounding_box()
    assert last["y"] + last["height"] <= height
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_root_cause_with_the_most_effects_is_first(page: Any, large: sa.Engine) -> None:
    page.goto("/streamwarden/")
    first = page.locator(".incidents tbody tr").first
    assert "Unused topics +20 effects" in first.inner_text()
    expect(page.locator(".incidents tbody tr")).to_have_count(MAX_INCIDENTS)


def test_the_incidents_are_paged_and_have_no_downstream_effects(page: Any, large: sa.Engine) -> None:
    page.goto("/streamwarden/")
    total = int(page.locator("#open").inner_text().split("(")[1].rstrip(")"))
    seen: list[str] = []
    while True:
        seen += page.locator(".incidents tbody tr td:nth-child(2) a").evaluate_all("links => links.map(a => a.href)")
        following = page.locator("a[rel=next]")
        if len(seen) > 60 or not following.count():
            break
        with page.expect_navigation():
            following.click()
    assert len({*seen}) == len(seen) >= 60
    effects = {f"{n:064x}" for n in range(20)}
    assert not any(address.rpartition("/")[2] in effects for address in seen)
    page.goto(f"/streamwarden/?page={-(-total // MAX_INCIDENTS)}")
    expect(page.locator("a[rel=next]")).to_have_count(0)
    page.goto("/streamwarden/?page=999")
    expect(page.locator("main")).to_contain_text("No more incidents.")


@pytest.mark.parametrize(
    ("path", "most_kib"),
    [("/", 60), ("/search", 60), ("/search?q=orders", 60), ("/findings", 200),
     ("/resources/cluster/orders-prod", 200), ("/resources/broker/orders-prod%2F1?range=35d", 200),
     ("/resources/topic/orders-prod%2Fteam-0.orders-00000.v1?range=35d", 200)],
)  # fmt: skip
def test_pages_keep_their_budgets(page: Any, large: sa.Engine, path: str, most_kib: int) -> None:
    answer = page.goto(f"/streamwarden{path}")
    assert answer.status == 200
    assert len(answer.body()) <= most_kib * KIB


def test_mine_filters_by_the_owners_of_the_login(page: Any, editor_page: Any, large: sa.Engine) -> None:
    for address in ("/streamwarden/", "/streamwarden/findings"):
        page.goto(address)
        page.get_by_role("link", name="Mine (team-1, team-3)").click()
        page.wait_for_load_state()
        assert page.url.endswith("?owner=team-1&owner=team-3")
        expect(page.locator("main")).to_contain_text("Only owner team-1, team-3.")
    # The findings of one owner are all healthy in one hour of five, and those of the other in another.
    page.goto("/streamwarden/?owner=team-1&owner=team-3")
    owners = page.locator(".incidents tbody tr td:nth-child(4)").all_inner_texts()
    assert owners and {*owners} <= {"team-1", "team-3"}
    shown = int(page.locator(".tiles .info b").inner_text())
    page.locator(".tiles .info a").click()
    expect(page.locator(".lead")).to_contain_text(f"{shown} findings")
    editor_page.goto("/streamwarden/")
    assert editor_page.get_by_role("link", name="Mine").count() == 0


def test_tiles_show_the_worst_state(page: Any, large: sa.Engine) -> None:
    page.goto("/streamwarden/")
    clusters = page.locator("section:has(#clusters) li")
    assert clusters.evaluate_all("tiles => tiles.map(tile => tile.className)") == ["warning", "info"]
    page.locator("section:has(#applications) .more a").click()
    expect(page.locator("#resources")).to_have_text(f"Applications ({APPLICATIONS})")
