"""The page of a resource in a real browser: findings, timeline, metrics, dependencies, and invalid addresses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.variations import rare_after

from .conftest import NASTY_TOPIC

pytestmark = pytest.mark.slow
GROUP = "/streamwarden/resources/group/demo%2Fbilling"
TOPIC = f"/streamwarden/resources/topic/{quote(f'demo/{NASTY_TOPIC}', safe='')}"


def test_the_page_of_a_group(page: Any, findings: dict[str, str]) -> None:
    page.goto(f"/streamwarden/findings/{findings['billing']}")
    page.get_by_role("link", name="demo/billing", exact=True).click()
    page.wait_for_url(f"**{GROUP}")
    assert page.locator("h1").inner_text() == "demo/billing"
    assert page.locator(".facts").inner_text().split("\n")[-1] == "unassigned"
    firing = page.locator("section:has(#firing)")
    expect(firing).to_contain_text("1 h 7 min behind")
    expect(firing.get_by_role("link", name="Ticket issue7")).to_have_count(1)
    assert (
        "Consumer lag not recovering"
        in page.locator("section:has(#not-evaluated) ~ section:has(#tickets)").inner_text()
    )
    metrics = page.locator("section:has(#metrics) dl").inner_text()
    assert "Members" in metrics and "Partitions" in metrics
    firing.get_by_role("link", name="Consumer lag not recovering").click()
    page.wait_for_url(f"**/findings/{findings['billing']}")


def test_the_timeline_has_findings_changes_and_metrics_on_one_axis(page: Any, findings: dict[str, str]) -> None:
    page.goto(GROUP)
    canvas = page.locator(".chart-canvas svg")
    for text in ("Findings", "Consumer lag not recovering", "Members", "shaded: evaluated hour"):
        expect(canvas).to_contain_text(text)
    orange = page.locator(".chart-canvas svg path[fill='#e69f00']")
    orange.first.scroll_into_view_if_needed()
    orange.first.hover(force=True)
    expect(page.locator("#vg-tooltip-element.visible")).to_contain_text("1 h 7 min behind")
    page.get_by_role("link", name="35 days").click()
    page.wait_for_url("**?range=35d#timeline")
    assert page.locator("[aria-current=true]").inner_text() == "35 days"
    expect(canvas).to_contain_text("Consumer lag not recovering")
    for scope in ("24h", "7d", "35d"):
        for form, kind in (("svg", "image/svg+xml"), ("json", "application/json")):
            answer = page.request.get(f"/streamwarden/timelines/group/demo%2Fbilling?range={scope}&form={form}")
            assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, kind)
            assert len(answer.body()) < 200_000
            assert "Consumer lag not recovering" in answer.text()


def test_the_timeline_without_javascript_is_a_picture(page: Any, findings: dict[str, str]) -> None:
    page.route("**/timelines/**form=json*", lambda route: route.abort())
    page.goto(GROUP)
    image = page.locator("img.plot:visible")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth > 300)")
    assert "Consumer lag not recovering: " in image.get_attribute("alt")
    assert "form=svg&amp;theme=dark" in page.locator("figure.chart noscript").text_content()


def test_dependencies_lead_from_a_group_to_its_topic_and_back(page: Any, findings: dict[str, str]) -> None:
    page.goto(GROUP)
    page.locator("section:has(#chain)").get_by_role("link", name=NASTY_TOPIC).click()
    page.wait_for_url(f"**{TOPIC}")
    assert page.locator("h1").inner_text() == f"demo/{NASTY_TOPIC}"
    downstream = page.locator("section:has(#chain) .halves > div").last
    assert "2 consumer groups" in downstream.inner_text()
    assert downstream.locator("li").first.inner_text() == "billing warning"  # the worst first
    expect(page.locator("main script")).to_have_count(0)


def test_what_was_not_evaluated_has_a_reason(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/resources/group/demo%2Fquiet")
    assert "the lag of 1 of 1 partition is unknown" in page.locator("section:has(#not-evaluated)").inner_text()
    page.goto("/streamwarden/resources/cluster/demo")
    assert "app brokers failed: no route" in page.locator("section:has(#not-evaluated)").inner_text()
    assert "no firing finding" in page.locator(".card-head").inner_text()
    assert page.locator(".card-head a.unsure").inner_text().endswith("detectors not evaluated")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    rare_after(
        4,
        [("/resources/topic/demo%2Fnone", 404, "There is no topic with the key topic:demo/none. Search for its name."),
         ("/resources/topic/demo%2Fa%00b", 400, "rest: The text has a NUL character, or characters that are"),
         ("/resources/group/demo%2Fbilling?range=1y", 400, "range: Input should be '24h', '7d' or '35d'."),
         ("/timelines/group/demo%2Fbilling?form=png", 400, "form: Input should be 'json' or 'svg'."),
         ("/resources/shelf/a", 404, "There is no kind of resource 'shelf'"),
         ("/resources/volume/a%2Fb", 404, "A key of kind volume has 3 parts: account/region/volume_id."),
         ("/resources/topic/demo%2F..", 404, "There is no topic with the key topic:demo/.."),
         ("/timelines/topic/demo%2Fnone", 404, "This resource has no findings, changes, or metrics in this range."),
         ("/timelines/shelf/a", 404, "There is no kind of resource 'shelf'"),
         ("/findings?q=a%00b", 400, "q: The text has a NUL character, or characters that are not valid Unicode."),
         ("/findings?after=%00", 400, "after: The text has a NUL character, or characters that are not valid Unicode."),
         ("/findings?after=x", 400, "after: String should match pattern"),
         ("/coverage?hour=%00", 400, "hour: The text has a NUL character, or characters that are not valid Unicode.")],
    ),
)  # fmt: skip
def test_an_invalid_address_is_a_page_with_a_way_back(
    page: Any, findings: dict[str, str], path: str, status: int, text: str
) -> None:
    answer = page.goto(f"/streamwarden{path}")
    assert answer.status == status
    assert page.get_by_role("alert").inner_text().startswith(text)
    page.locator("main").get_by_role("link", name="Overview").click()
    expect(page.locator("h1")).to_contain_text("open")


@pytest.mark.parametrize("scheme", rare_after(1, ["light", "dark"]))
def test_the_page_fits_a_phone(page: Any, findings: dict[str, str], scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    for path in (GROUP, TOPIC, "/streamwarden/resources/cluster/demo"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
