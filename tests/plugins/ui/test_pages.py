"""The pages in a real browser on a real Airflow, with and without a login."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from playwright.sync_api import expect

from tests.variations import rare_after

from .conftest import NASTY_TOPIC, TRACKER, log_in

pytestmark = pytest.mark.slow

PATHS = (
    "/", "/findings", "/findings?q=x", f"/findings/{'0' * 64}", "/findings/x/y", "/coverage", "/detectors",
    "/detectors/app_memory_heavy", "/static/style.css", "/static/frame.js", "/static/../app.py", "/docs",
    "/openapi.json", "/nothing", "/resources/topic/demo%2Fx", "/findings?q=%00",
    "/search?q=x", "/search/suggestions?q=x",
    "/questions", "/questions/topic_readers?topic=orders&format=csv",
)  # fmt: skip


# Must be the first test: the warehouse is empty until a test uses the fixture `findings`.
def test_pages_of_an_empty_warehouse_name_the_next_step(page: Any) -> None:
    page.goto("/streamwarden/")
    assert page.locator("h1").inner_text() == "No hour has been evaluated yet"
    assert "streamwarden config check" in page.locator("main").inner_text()
    page.goto("/streamwarden/coverage")
    assert "No source was queried yet" in page.locator("main").inner_text()
    page.goto("/streamwarden/findings")
    assert "No open findings." in page.locator("main").inner_text()


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", PATHS)
def test_every_path_needs_a_login(airflow: Airflow, findings: dict[str, str], path: str, method: str) -> None:
    answer = httpx.request(method, f"{airflow.url}/streamwarden{path}")
    assert answer.status_code == 401, answer.text
    assert len(answer.content) < 100


@pytest.mark.parametrize("cookies", [{}, {"_token": "made.up.token"}])
def test_a_browser_without_a_session_is_redirected_to_the_login(
    airflow: Airflow, findings: dict[str, str], cookies: dict[str, str]
) -> None:
    address = f"{airflow.url}/streamwarden/findings/{findings['billing']}"
    answer = httpx.get(address, headers={"Accept": "text/html"}, cookies=cookies)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/auth/login?next=")
    assert answer.content == b""


@pytest.mark.parametrize("name", ["Host", "X-Forwarded-Host"])
def test_the_host_header_never_enters_the_next_page_of_the_login(
    airflow: Airflow, findings: dict[str, str], name: str
) -> None:
    headers = {"Accept": "text/html", name: "login.evil.example"}
    answer = httpx.get(f"{airflow.url}/streamwarden/findings?q=a%26b", headers=headers)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/auth/login?next=%2Fstreamwarden%2Ffindings%3Fq%3Da%2526b"


def test_the_login_returns_to_the_requested_page(chromium: Any, airflow: Airflow, findings: dict[str, str]) -> None:
    with chromium.new_context(base_url=airflow.url) as context:
        page = context.new_page()
        log_in(page, airflow, f"/streamwarden/findings/{findings['billing']}")
        assert page.url.endswith(findings["billing"])


def test_pages_carry_strict_headers(airflow: Airflow, findings: dict[str, str]) -> None:
    client = httpx.Client(base_url=f"{airflow.url}/streamwarden", headers=_bearer(airflow))
    for path in ("/", "/coverage", "/static/style.css", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


INVALID = ("%00", "a%00b", "%00%00")


@pytest.mark.parametrize("text", rare_after(1, INVALID))
@pytest.mark.parametrize(
    "address",
    [
        *(f"/findings?{name}={{}}" for name in ("q", "after", "severity", "detector", "other")),
        *(f"/findings/{'0' * 64}?{name}={{}}" for name in ("hour", "stored")),
        f"/incidents/{'0' * 64}?stored={{}}", "/coverage?hour={}", "/findings?q=a&q={}", "/findings?{}=a",
        "/findings/{}", "/detectors/{}", "/static/{}", "/nothing/{}",
    ],
)  # fmt: skip
def test_invalid_text_in_an_address_is_an_error_of_the_address(
    airflow: Airflow, findings: dict[str, str], address: str, text: str
) -> None:
    path = f"{airflow.url}/streamwarden{address.format(text)}"
    answer = httpx.get(path, headers=_bearer(airflow) | {"Accept": "text/html"})
    assert answer.status_code == 400, answer.text
    assert "The address is invalid" in answer.text and "NUL character" in answer.text
    assert "PostgreSQL" not in answer.text and "warehouse" not in answer.text.lower()


def test_the_overview(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/")
    assert page.locator("h1").inner_text() == "1 warning open"
    row = page.locator(".incidents tbody tr")
    expect(row).to_have_count(1)
    for text in ("warning", "Consumer lag not recovering", "demo/billing", "unassigned", "issue7"):
        assert text in row.inner_text()
    assert "healthy 3 h, then firing 3 h" in (row.locator("svg").get_attribute("aria-label") or "")
    assert page.locator("section:has(#clusters) li").inner_text().split("\n") == ["demo", "1 warning"]
    page.get_by_role("link", name="1 of 2 requests succeeded, 1 of 2 sources up to date").click()
    not_evaluated = page.locator("section", has=page.locator("#not-evaluated")).inner_text()
    assert "Not evaluated: the lag of 1 of 1 partition is unknown, in records or in seconds." in not_evaluated
    assert "app brokers failed: no route to <b>10.0.0.5</b>" in not_evaluated


def test_the_page_of_a_finding(page: Any, findings: dict[str, str]) -> None:
    page.goto(f"/streamwarden/findings/{findings['billing']}")
    text = page.locator("main").text_content()  # includes collapsed sections
    assert "1 h 7 min behind" in text
    assert f"{NASTY_TOPIC}-0" in text, "the topic name is rendered as text"
    assert "<img src=x onerror=alert(1)>" in text
    expect(page.locator("main script, main img[src=x], main b")).to_have_count(0)
    assert page.locator(".scroll table").inner_text().split() == [
        "Nasty",
        "table",
        "Topic",
        "Bytes",
        "out",
        "<b>x</b>",
        "4,096",
    ]
    assert r"\i sql/detectors/consumers/consumer_group_lagging.sql" in text
    expect(page.locator(".chart-canvas svg")).to_contain_text("alert")
    assert NASTY_TOPIC in page.locator(".chart-canvas").get_attribute("aria-label")
    expect(page.locator("#history ~ table tbody tr")).to_have_count(2)
    page.locator("summary", has_text="SQL: ").click()
    assert "with alone as" in page.locator("details[open] pre").inner_text()
    page.locator("#history ~ table a").last.click()
    expect(page.locator("main")).to_contain_text("This page shows the hour")


def test_the_filter_finds_findings_and_reports_no_match(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/findings")
    page.fill("main input[name=q]", "BILL")
    page.press("main input[name=q]", "Enter")
    expect(page.locator("article")).to_have_count(1)
    page.fill("main input[name=q]", "'; drop table x; -- \"<script>alert(1)</script>")
    page.press("main input[name=q]", "Enter")
    expect(page.locator("main")).to_contain_text("No open finding matches.")


def test_coverage_and_detectors(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/coverage")
    text = page.locator("main").inner_text()
    assert f"{NASTY_TOPIC}" in text
    assert "no route to <b>10.0.0.5</b>" in text
    page.locator("a[rel=prev]").click()
    expect(page.locator("a[rel=next]")).to_have_count(1)
    page.goto("/streamwarden/detectors")
    page.get_by_role("link", name="Consumer lag not recovering", exact=True).click()
    expect(page.locator("main")).to_contain_text("Limitations")
    expect(page.locator("main")).to_contain_text("users of a stream notice a delay of ten minutes")


def test_a_question_is_asked_and_downloaded(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/questions")
    page.get_by_role("link", name="How the lag of a group developed").click()
    page.get_by_label("group_id").fill("billing")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Answer").locator("tbody tr")).to_have_count(6)
    with page.expect_download() as download:
        page.get_by_role("link", name="Parquet").click()
    assert download.value.suggested_filename == "group_history.parquet"


def test_the_pages_work_with_the_keyboard(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    for _ in range(40):
        page.keyboard.press("Tab")
        if "incidents/" in (page.evaluate("document.activeElement.getAttribute('href')") or ""):
            break
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/incidents/{findings['billing']}")


@pytest.mark.parametrize("scheme", rare_after(1, ["light", "dark"]))
def test_pages_fit_the_width_of_a_phone(page: Any, findings: dict[str, str], scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    for path in (
        "/",
        "/findings",
        f"/findings/{findings['billing']}",
        "/coverage",
        "/detectors",
        "/detectors/consumer_rogue",
        "/questions",
        "/questions/owners_by_findings?run=true",
    ):
        page.goto(f"/streamwarden{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(246, 248, 250)", "dark": "rgb(13, 17, 23)"}[scheme]


def test_tickets_open_in_a_new_tab_from_the_frame_in_airflow(page: Any, findings: dict[str, str]) -> None:
    page.goto("/")
    page.get_by_role("link", name="Streamwarden").click()
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name="Findings").click()
    frame.locator("article h3 a").click()
    frame.locator("h1", has_text="Consumer lag not recovering").wait_for()
    with page.context.expect_page() as opened:
        frame.get_by_role("link", name="Open ticket issue7").click()
    opened.value.wait_for_url(lambda url: url == TRACKER or url.startswith("chrome-error:"), wait_until="commit")


def test_unknown_resources_and_hours_are_one_line_errors(page: Any, findings: dict[str, str]) -> None:
    for path, line in (
        (f"/findings/{'0' * 64}", "There is no such finding."),
        ("/findings/x", "The address does not name a finding: a fingerprint has 64 hexadecimal digits."),
        ("/coverage?hour=now", "hour 'now': not a time; write it like 2026-11-21T05:00."),
        ("/coverage?hour=9999-12-31T23:00", "hour '9999-12-31T23:00': must be between 1970 and 2261."),
        (f"/findings/{'0' * 64}?hour=0001-01-01T00:00", "hour '0001-01-01T00:00': must be between 1970 and 2261."),
        ("/detectors/nothing", "There is no such detector; the page Detectors lists all."),
        ("/questions/nothing", "No question has this name. The page Questions lists all."),
    ):
        answer = page.goto(f"/streamwarden{path}")
        assert answer.status == 404
        assert page.get_by_role("alert").inner_text() == line


def test_the_schema_of_a_newer_release_is_named(
    airflow: Airflow, findings: dict[str, str], module_warehouse: sa.Engine
) -> None:
    newer = "insert into public.schema_migration (name, checksum) values ('migrations/9999_newer.sql', 'x')"
    with module_warehouse.begin() as connection:
        connection.exec_driver_sql("alter table tickets.ticket rename column title to heading")
        connection.exec_driver_sql(newer)
    try:
        headers = _bearer(airflow) | {"Accept": "text/html"}
        answer = httpx.get(f"{airflow.url}/streamwarden/findings/{findings['billing']}", headers=headers)
    finally:
        with module_warehouse.begin() as connection:
            connection.exec_driver_sql("alter table tickets.ticket rename column heading to title")
            connection.exec_driver_sql("delete from public.schema_migration where checksum = 'x'")
    assert answer.status_code == 503
    assert "The warehouse is of another release" in answer.text and "does not exist" not in answer.text
    assert "migrated by a newer release: this release does not have sql/migrations/9999_newer.sql" in answer.text


# Must be the last test: it closes the warehouse.
def test_an_unreachable_warehouse_is_a_one_line_error(page: Any, module_warehouse: sa.Engine) -> None:
    name = module_warehouse.url.database
    admin = sa.create_engine(module_warehouse.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f'alter database "{name}" allow_connections false')
        module_warehouse.dispose()
        connection.execute(
            sa.text("select pg_terminate_backend(pid) from pg_stat_activity where datname = :name"), {"name": name}
        )
        try:
            for path in ("", f"incidents/{'a' * 64}", "findings", "resources/topic/demo%2Fa", "search?q=a"):
                answer = page.goto(f"/streamwarden/{path}")
                assert answer.status == 503
                assert page.locator("h1").inner_text() == "The warehouse does not respond"
                assert "not currently accepting connections" in page.get_by_role("alert").inner_text()
                assert "Traceback" not in page.content() and "postgresql://" not in page.content()
                expect(page.locator("main").get_by_role("link", name="Overview")).to_have_count(1)
        finally:
            connection.exec_driver_sql(f'alter database "{name}" allow_connections true')
    assert page.goto("/streamwarden/").status == 200


def _bearer(airflow: Airflow) -> dict[str, str]:
    return {"Authorization": f"Bearer {airflow.token('viewer')}", "Accept": "text/html"}
