"""Every page and report of the sample fleet in light, dark, and on a phone, with what a reader would notice at once.

`make pictures` runs these tests to draw docs/pictures/pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from playwright.sync_api import expect
from streamwarden.base.config import Config, Reports
from streamwarden.base.hours import last_full_hour
from streamwarden.reports import monday_of, month_of, render_daily, render_monthly, render_weekly, write_report

from tests.sample_fleet import run_hours

from .conftest import page_of
from .test_browser import picture

pytestmark = [pytest.mark.slow, pytest.mark.rare]
TODAY = last_full_hour().date()
VIEWS = {"light": ("light", 1280, 900), "dark": ("dark", 1280, 900), "phone": ("light", 390, 844)}
PAGES = {
    "overview": "/", "findings": "/findings", "finding": "/findings/{root}", "incident": "/incidents/{root}",
    "broker": "/resources/broker/orders-prod%2F3", "group": "/resources/group/orders-prod%2Fbilling?range=7d",
    "cluster": "/resources/cluster/orders-prod", "volume": "/resources/{volume}", "search": "/search?q=orders",
    "coverage": "/coverage", "detectors": "/detectors", "detector": "/detectors/ebs_volume_starving",
    "questions": "/questions", "question": "/questions/groups_lagging_most?run=true", "reports": "/reports",
    "report-daily": f"/reports/daily-{TODAY}.html", "report-weekly": "/reports/{week}.html",
    "report-monthly": f"/reports/monthly-{TODAY:%Y-%m}.html", "not-found": "/findings/x",
}  # fmt: skip
NOT_A_VALUE = ("undefined", "NaN", "[object")


@pytest.fixture(scope="module")
def names(module_warehouse: sa.Engine, reports_folder: Path) -> Iterator[dict[str, str]]:
    """What addresses name: the root finding, its volume, and the week of the report."""
    config = Config(reports=Reports(folder=reports_folder))
    run_hours(module_warehouse, last_full_hour(), config, [])
    monday = monday_of(TODAY)
    week = write_report(render_weekly(module_warehouse, config, monday), config).stem
    write_report(render_daily(module_warehouse, config, TODAY), config)
    write_report(render_monthly(module_warehouse, config, month_of(TODAY)), config)
    with module_warehouse.connect() as connection:
        found = sa.text("select fingerprint, resource from tickets.ticket where resource_name like 'vol-%'")
        fingerprint, resource = connection.execute(found).one()
    kind, _, rest = resource.partition(":")
    yield {"root": fingerprint, "volume": f"{kind}/{rest.replace('/', '%2F')}", "week": week}
    for file in reports_folder.iterdir():
        file.unlink()


@pytest.fixture(scope="module")
def viewer(chromium: Any, airflow: Airflow) -> Iterator[Any]:
    with page_of(chromium, airflow, "viewer") as page:
        yield page


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_the_pictures_of_all_pages(viewer: Any, names: dict[str, str], name: str, view: str) -> None:
    scheme, width, height = VIEWS[view]
    viewer.emulate_media(color_scheme=scheme)
    viewer.set_viewport_size({"width": width, "height": height})
    viewer.goto(f"/streamwarden{PAGES[name].format(**names)}")
    charts = viewer.locator("figure.chart")
    expect(charts.locator(".chart-canvas svg")).to_have_count(charts.count())
    assert viewer.evaluate("document.documentElement.scrollWidth <= innerWidth")
    text = viewer.locator("main").inner_text()
    assert not [word for word in NOT_A_VALUE if word in text]
    picture(viewer, f"pages/{name}-{view}", full_page=True)
