"""Charts of findings in a real browser: drawn by Vega under the Content Security Policy, and as pictures without it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from playwright.sync_api import expect
from streamwarden.base.config import Config
from streamwarden.base.hours import last_full_hour

from tests.sample_fleet import run_hours
from tests.variations import rare_after

from .conftest import page_of
from .test_browser import picture

pytestmark = pytest.mark.slow
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def volume(module_warehouse: sa.Engine, airflow: Airflow) -> str:
    """The page of the throttled volume of the sample fleet."""
    run_hours(module_warehouse, last_full_hour(), Config(), [])
    query = sa.text("select fingerprint from tickets.ticket where resource_name like 'vol-%'")
    with module_warehouse.connect() as connection:
        return f"/streamwarden/findings/{connection.execute(query).scalars().first()}"


def test_a_chart_has_values_at_the_pointer_and_zoom(chromium: Any, airflow: Airflow, volume: str) -> None:
    with page_of(chromium, airflow, "viewer") as page:
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(volume)
        canvas = page.locator(".chart-canvas")
        for text in ("IOPS", "Burst balance", "Throttle limit (100 %)", "shaded: evaluated hour"):
            expect(canvas.locator("svg")).to_contain_text(text)
        assert len(page.content()) < 200_000
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 120)
        expect(page.locator("#vg-tooltip-element.visible")).to_contain_text("Burst balance")
        shown = page.locator("#vg-tooltip-element").inner_text()
        assert "NaN" not in shown and "undefined" not in shown and f"{last_full_hour():%Y-}" in shown
        picture(page, "chart-tooltip")
        axis = canvas.locator(".role-axis-label text")
        before = axis.all_text_contents()
        page.keyboard.down("Shift")
        page.mouse.wheel(0, -600)
        page.keyboard.up("Shift")
        page.wait_for_function(
            "before => [...document.querySelectorAll('.chart-canvas .role-axis-label text')].map(x => x.textContent)"
            ".join() !== before", arg=",".join(before),
        )  # fmt: skip
        assert problems == [], "nothing is blocked by the Content Security Policy"


@pytest.mark.parametrize("scheme", rare_after(1, ["light", "dark"]))
def test_a_chart_fits_a_phone_in_both_themes(chromium: Any, airflow: Airflow, volume: str, scheme: str) -> None:
    with page_of(chromium, airflow, "viewer") as page:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(PHONE)
        page.goto(volume)
        svg = page.locator(".chart-canvas > svg, .chart-canvas .chart-wrapper svg, .chart-canvas svg.marks").first
        expect(svg).to_contain_text("Throttle limit")
        background = {"light": "#ffffff", "dark": "#161b22"}[scheme]
        expect(page.locator(f".chart-canvas svg rect.background[fill='{background}']").or_(
            page.locator(f".chart-canvas svg [fill='{background}']")).first).to_be_attached()  # fmt: skip
        assert svg.evaluate("svg => svg.getBoundingClientRect().right <= innerWidth")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("figure.chart").scroll_into_view_if_needed()
        picture(page, f"chart-phone-{scheme}")


def test_without_javascript_and_without_the_specification_the_picture_is_shown(
    chromium: Any, airflow: Airflow, volume: str
) -> None:
    with page_of(chromium, airflow, "viewer") as page:
        page.route("**/chart.json*", lambda route: route.abort())
        page.goto(volume)
        image = page.locator("img.plot:visible")
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth > 300)")
        assert "Throttle limit" in image.get_attribute("alt")
        source = page.locator("figure.chart noscript").text_content()
        assert "chart.svg?hour=&amp;theme=light" in source and "chart.svg?hour=&amp;theme=dark" in source


def test_the_address_of_a_chart_is_checked(chromium: Any, airflow: Airflow, volume: str) -> None:
    with page_of(chromium, airflow, "viewer") as page:
        for address, status in (
            (f"{volume}/chart.svg?theme=dark", 200), (f"{volume}/chart.json", 200), (f"{volume}/chart.png", 400),
            (f"{volume}/chart.svg?theme=blue", 400), (f"{volume}/chart.svg?hour=2001-01-01T00:00Z", 404),
            ("/streamwarden/findings/" + "0" * 64 + "/chart.json", 404),
        ):  # fmt: skip
            assert page.request.get(address, headers={"accept": "text/html"}).status == status, address
