"""The page of a detector: precision, last firings, and a backtest of other parameters from the page."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from playwright.sync_api import expect

pytestmark = pytest.mark.slow
LAG = "consumer_group_lagging"
ADDRESS = f"/streamwarden/detectors/{LAG}"


@pytest.fixture(scope="module")
def reported(module_warehouse: sa.Engine, findings: dict[str, str]) -> dict[str, str]:
    """The findings, of which that of billing has a ticket that was reported as a false positive."""
    with module_warehouse.begin() as connection:
        connection.execute(
            sa.text("""
                insert into tickets.response (fingerprint, detector, ticket_id, verb, who, place, words)
                select fingerprint, detector, ticket_id, 'false_positive', 'ann', 'page', 'Planned <b>replay</b>.'
                from tickets.ticket where fingerprint = :fingerprint"""),
            {"fingerprint": findings["billing"]},
        )
    return findings


def test_precision_and_last_firings(page: Any, reported: dict[str, str]) -> None:
    page.goto(ADDRESS)
    assert "0 %: 1 of 1 ticket reported as false positive" in page.locator(".facts").first.inner_text()
    row = page.locator("h2#firings + table tbody tr")
    assert row.count() == 1
    text = row.inner_text()
    assert "billing" in text and "false positive" in text and "open" in text and "issue7" in text
    page.goto("/streamwarden/detectors/broker_down")
    assert "not known: no tickets" in page.locator(".facts").first.inner_text()


def test_a_parameter_is_tried_and_the_result_is_kept(editor_page: Any, reported: dict[str, str]) -> None:
    editor_page.goto(ADDRESS)
    editor_page.fill("input[name=late_seconds]", "9999")
    editor_page.get_by_role("button", name="Backtest 14 days").click()
    result = editor_page.locator("h3:has-text('Backtest 1')")
    expect(result).to_contain_text("late_seconds = 9999 (in force: 600)")
    table = editor_page.locator("h3 ~ table").first
    expect(table).to_contain_text("as tried", timeout=60_000)
    assert [row.split("\t")[1] for row in table.locator("tbody tr").all_inner_texts()] == ["1", "0"]
    differing = editor_page.locator("h3 ~ table").nth(1).inner_text()
    assert "billing" in differing and "is not opened" in differing
    editor_page.goto(ADDRESS)
    expect(editor_page.locator("h3:has-text('Backtest 1')")).to_be_visible()
    assert editor_page.locator("[data-pending]").count() == 0


def test_a_wrong_value_is_refused_and_the_way_back_is_named(editor_page: Any, reported: dict[str, str]) -> None:
    editor_page.goto(ADDRESS)
    editor_page.fill("input[name=late_seconds]", "<b>soon</b>")
    editor_page.get_by_role("button", name="Backtest 14 days").click()
    text = editor_page.locator("main").inner_text()
    assert "late_seconds: must be" in text and "Go back" in text


def test_a_viewer_has_no_form_and_cannot_start_a_backtest(
    page: Any, airflow: Airflow, reported: dict[str, str]
) -> None:
    page.goto(ADDRESS)
    assert page.locator("form[action$=backtests]").count() == 0
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    response = httpx.post(f"{airflow.url}{ADDRESS}/backtests", cookies=cookies, data={"late_seconds": "9999"})
    assert response.status_code == 403


def test_a_form_without_its_token_is_refused(editor_page: Any, airflow: Airflow, reported: dict[str, str]) -> None:
    cookies = {cookie["name"]: cookie["value"] for cookie in editor_page.context.cookies()}
    address = f"{airflow.url}{ADDRESS}/backtests"
    response = httpx.post(address, cookies=cookies, data={"late_seconds": "9999"}, headers={"Accept": "text/html"})
    assert response.status_code == 403 and "Reload the page" in response.text
