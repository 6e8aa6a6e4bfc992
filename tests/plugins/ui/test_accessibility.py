"""Every page: axe-core (light, dark, 390 px), no console error, text without JavaScript, and the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from axe_playwright_python.sync_playwright import Axe
from demo.airflow import Airflow
from playwright.sync_api import expect
from streamwarden.base.config import Config
from streamwarden.base.hours import last_full_hour

from tests.sample_fleet import run_hours
from tests.variations import rare_after

from .conftest import page_of

pytestmark = pytest.mark.slow
PAGES = (
    "/", "/findings", "/findings/{root}", "/incidents/{root}", "/resources/broker/orders-prod%2F3",
    "/resources/group/orders-prod%2Fbilling?range=7d", "/resources/cluster/orders-prod", "/search?q=orders",
    "/coverage", "/detectors", "/detectors/ebs_volume_starving", "/questions", "/questions/application_cost?run=true",
    "/reports", "/findings/x",
)  # fmt: skip
EACH_KIND = 5
"""Of the pages, the overview, a list, and the pages of a finding come first: with all that the others are made of."""
VIEWS = (("light", 1280), ("dark", 1280), ("light", 390))
PRELOAD = {"resultTypes": ["violations"], "preload": False}
"""axe would fetch style sheets again, which only helps with those of other hosts."""


@pytest.fixture(scope="module")
def root(module_warehouse: sa.Engine) -> str:
    """Fingerprint of the throttled volume of the sample fleet, the root of an incident. A backtest is kept."""
    run_hours(module_warehouse, last_full_hour(), Config(), [])
    with module_warehouse.begin() as connection:
        connection.execute(
            sa.text("""
                insert into detect.backtest (detector, params, who, requested_at, finished_at, message)
                values ('ebs_volume_starving', '{}', 'ann', now(), now(), 'No hour.')""")
        )
        found = sa.text("select fingerprint from tickets.ticket where resource_name like 'vol-%'")
        return str(connection.execute(found).scalar_one())


@pytest.fixture(scope="module")
def editor(chromium: Any, airflow: Airflow, root: str) -> Iterator[tuple[Any, list[str]]]:
    """One page for all addresses, and the console errors since the test began."""
    errors: list[str] = []
    with page_of(chromium, airflow, "editor") as page:
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        yield page, errors


def violations(page: Any) -> list[str]:
    """What axe-core finds: rule, element, and reason."""
    results = Axe().run(page, options=PRELOAD).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:120]}: {node['failureSummary']}" for rule in results for node in rule["nodes"]
    ]


@pytest.mark.parametrize("path", rare_after(EACH_KIND, PAGES))
def test_axe_finds_nothing_and_the_console_has_no_error(editor: tuple[Any, list[str]], root: str, path: str) -> None:
    page, errors = editor
    errors.clear()
    found = []
    for scheme, width in VIEWS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        if page.url.partition("/streamwarden")[2] != path:
            page.goto(f"/streamwarden{path.format(root=root)}")
        charts = page.locator("figure.chart")
        expect(charts.locator(".chart-canvas svg")).to_have_count(charts.count())
        found += [f"{scheme}, {width} px: {one}" for one in violations(page)]
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), width
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    assert found == []
    assert [one for one in errors if "status of 404" not in one] == [], "the page of an unknown finding has status 404"


@pytest.fixture(scope="module")
def without_javascript(chromium: Any, airflow: Airflow, editor: tuple[Any, list[str]]) -> Iterator[Any]:
    """A page without JavaScript with the session of the editor: Airflow's login needs JavaScript."""
    state = editor[0].context.storage_state()
    context = chromium.new_context(java_script_enabled=False, base_url=airflow.url, storage_state=state)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", rare_after(3, PAGES))
def test_a_page_has_the_same_text_without_javascript(
    editor: tuple[Any, list[str]], without_javascript: Any, root: str, path: str
) -> None:
    texts = []
    for page in (editor[0], without_javascript):
        page.goto(f"/streamwarden{path.format(root=root)}")
        # Without a script, a chart is a picture.
        page.evaluate("document.querySelectorAll('figure.chart').forEach(chart => { chart.hidden = true; })")
        texts.append(page.locator("main").inner_text())
    assert texts[0] == texts[1] and len(texts[0]) > 40


def test_from_the_overview_to_a_backtest_with_the_keyboard_alone(editor: tuple[Any, list[str]], root: str) -> None:
    page, _ = editor
    page.goto("/streamwarden/")
    press_enter_on(page, f"a[href$='/incidents/{root}']")
    assert page.url.endswith(f"/incidents/{root}")
    press_enter_on(page, f"a[href$='/findings/{root}']")
    press_enter_on(page, "a[href$='/detectors/ebs_volume_starving']")
    assert page.url.endswith("/detectors/ebs_volume_starving")
    tab_to(page, "form[action$=backtests] button")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def tab_to(page: Any, selector: str) -> None:
    """Presses Tab until an element that matches has the focus."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector}: Tab does not reach it on {page.url}")


def press_enter_on(page: Any, selector: str) -> None:
    tab_to(page, selector)
    with page.expect_navigation():
        page.keyboard.press("Enter")
