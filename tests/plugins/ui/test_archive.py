"""The archive of reports in a real browser: the list, filters, paging, a report without blocked styles, and its PDF."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
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
from tests.variations import rare_after

from .conftest import page_of

pytestmark = pytest.mark.slow
TODAY = last_full_hour().date()
HOSTILE = '"><script>alert(1)</script>\u202e'


@pytest.fixture(scope="module")
def folder(module_warehouse: sa.Engine, reports_folder: Path) -> Iterator[Path]:
    """The archive: three reports of the sample fleet, one of an owner with a hostile name, and 455 older ones."""
    reports = reports_folder
    config = Config(reports=Reports(folder=reports))
    run_hours(module_warehouse, last_full_hour(), config, [])
    for made in (
        render_daily(module_warehouse, config, TODAY), render_daily(module_warehouse, config, TODAY, owner=HOSTILE),
        render_weekly(module_warehouse, config, monday_of(TODAY)),
        render_weekly(module_warehouse, config, monday_of(TODAY), owner="storage"),
        render_monthly(module_warehouse, config, month_of(TODAY)),
    ):  # fmt: skip
        write_report(made, config)
    for days in range(1, 456):
        (reports / f"daily-{TODAY - timedelta(days=days)}.html").write_text("<p>Old report")
    (reports / f"daily-{TODAY}.pdf").write_bytes(b"%PDF-1.7 test")
    (reports / "daily-2026-99-99.html").write_text("no date")
    (reports / "notes.html").write_text("no report")
    (reports / "daily-2001-01-01.html").symlink_to("/etc/hostname")
    yield reports
    for file in reports.iterdir():
        file.unlink()


def test_the_newest_reports_are_listed_and_lead_to_the_older_ones(page: Any, folder: Path) -> None:
    answer = page.goto("/streamwarden/")
    page.get_by_role("navigation").first.get_by_role("link", name="Reports").click()
    page.wait_for_url("**/reports")
    rows = page.locator("tbody tr")
    assert rows.count() == 40
    assert rows.first.inner_text().split("\t")[0] == f"Daily report {TODAY}"
    assert "1–40 of 460" in page.locator(".pages").inner_text(), "files that are no report are not listed"
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**page=2")
    assert "41–80 of 460" in page.locator(".pages").inner_text()
    answer = page.request.get("/streamwarden/reports")
    assert len(answer.body()) < 60_000


def test_filters_are_in_the_address(page: Any, folder: Path) -> None:
    page.goto("/streamwarden/reports")
    page.get_by_label("Period").select_option("weekly")
    page.get_by_label("Owner").select_option("storage")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**form=weekly&owner=storage")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.goto("/streamwarden/reports?form=monthly&owner=nothing")
    page.get_by_role("link", name="All reports").click()
    expect(page.locator("tbody tr")).to_have_count(40)


@pytest.mark.parametrize("form", rare_after(1, ["daily", "weekly", "monthly"]))
def test_a_report_has_its_styles_and_pictures_under_the_policy(page: Any, folder: Path, form: str) -> None:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(f"/streamwarden/reports?form={form}&owner=-")
    page.locator("tbody a").first.click()
    page.wait_for_url(f"**/reports/{form}-*.html")
    assert page.locator("h1").inner_text().startswith("Streamwarden ")
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") in ("960px", "600px")
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert errors == []
    policy = page.request.get(page.url).headers["content-security-policy"]
    assert "unsafe" not in policy and "sha256-" in policy


def test_a_pdf_is_a_download(page: Any, folder: Path) -> None:
    page.goto("/streamwarden/reports?form=daily&owner=-")
    with page.expect_download() as download:
        page.get_by_role("link", name=f"PDF of daily-{TODAY}").click()
    assert Path(download.value.path()).read_bytes() == b"%PDF-1.7 test"
    assert download.value.suggested_filename == f"daily-{TODAY}.pdf"


def test_the_report_of_an_owner_with_a_hostile_name_is_listed_and_opened(page: Any, folder: Path) -> None:
    page.goto("/streamwarden/reports?form=daily")
    page.get_by_role("row", name="script_alert_1_").get_by_role("link").first.click()
    assert "<script>alert(1)</script>" in page.locator("h1").inner_text()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/reports/daily-1990-01-01.html", 404), ("/reports/daily-2001-01-01.html", 404), ("/reports/notes.html", 404),
     ("/reports/..%2fstreamwarden.html", 404), ("/reports/daily-2026-01-01.exe", 400), ("/reports?page=0", 400),
     ("/reports?form=yearly", 400), (f"/reports/{'a' * 300}.html", 400), ("/reports/%22%3E%3Cscript%3E.html", 404)],
)  # fmt: skip
def test_an_unknown_report_is_a_page_with_a_way_back(page: Any, folder: Path, path: str, status: int) -> None:
    assert page.goto(f"/streamwarden{path}").status == status
    assert page.locator("main").get_by_role("link", name="Overview").count() == 1


def test_an_empty_archive_says_where_reports_come_from(chromium: Any, airflow: Airflow, folder: Path) -> None:
    folder.rename(folder.with_suffix(".away"))
    try:
        with page_of(chromium, airflow, "viewer") as page:
            assert page.goto("/streamwarden/reports").status == 200
            assert f"No reports in {folder} of this server." in page.locator("main").inner_text()
    finally:
        folder.with_suffix(".away").rename(folder)


def test_the_days_of_the_archive_are_in_order(folder: Path) -> None:
    from streamwarden.reports import filed_reports

    found = filed_reports(Config(reports=Reports(folder=folder)))
    begins = [one.begin for one in found]
    assert begins == sorted(begins, reverse=True) and begins[-1] == TODAY - timedelta(days=455)
