"""Search over resources and findings, with and without JavaScript, and the filters of the page Findings."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.variations import rare_after

from .conftest import NASTY_TOPIC, log_in

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "words", rare_after(2, ["billing LAG", "recovering demo/billing", "issue7", "consumer_group_lagging bill"])
)
def test_all_words_match_in_any_order(page: Any, findings: dict[str, str], words: str) -> None:
    page.goto("/streamwarden/search")
    page.locator("main input[name=q]").fill(words)
    page.locator("main input[name=q]").press("Enter")
    found = page.locator("section:has(#findings) .results li")
    expect(found).to_have_count(1)
    found.get_by_role("link").click()
    page.wait_for_url(f"**/findings/{findings['billing']}")


def test_resources_are_found_by_name_and_kind(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/search?q=demo&kind=group")
    assert page.locator("#resources").inner_text() == "Consumer groups (2)"
    assert page.locator("section:has(#resources) li").first.inner_text().startswith("demo/billing")  # the worst first
    page.goto("/streamwarden/search?q=script%20alert")
    page.locator("section:has(#resources)").get_by_role("link", name=NASTY_TOPIC).first.click()
    expect(page.locator("h1")).to_have_text(f"demo/{NASTY_TOPIC}")


@pytest.mark.parametrize(
    "words", rare_after(2, ["'; drop table x; --", "%", "billing nothing", "\\", "\u202e\U0001f4a9", "zz " * 60])
)
def test_words_without_a_match_are_no_error(page: Any, findings: dict[str, str], words: str) -> None:
    page.goto("/streamwarden/search")
    page.locator("main input[name=q]").fill(words)
    page.locator("main input[name=q]").press("Enter")
    expect(page.locator("section:has(#findings)")).to_contain_text("None.")


def test_results_appear_while_typing_and_the_keyboard_is_enough(page: Any, findings: dict[str, str]) -> None:
    page.goto("/streamwarden/detectors")
    page.keyboard.press("/")
    with page.expect_response(lambda answer: answer.url.endswith("q=billing")):
        page.keyboard.type("billing")
    expect(page.locator("#search-results li")).to_have_count(3)  # the finding, the group, and the group on its topic
    page.keyboard.press("Escape")
    expect(page.locator("#search-results")).to_be_hidden()
    with page.expect_response(lambda answer: answer.url.endswith("demo%2F")):  # the list of the words before is as long
        page.keyboard.type(" demo/")
    expect(page.locator("#search-results")).to_be_visible()
    expect(page.locator("#search-results li")).to_have_count(3)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/resources/group/demo%2Fbilling")


def test_search_works_without_javascript(chromium: Any, airflow: Any, findings: dict[str, str]) -> None:
    with chromium.new_context(base_url=airflow.url) as context:
        page = context.new_page()
        log_in(page, airflow, "/streamwarden/")
        plain = chromium.new_context(
            base_url=airflow.url, java_script_enabled=False, storage_state=context.storage_state()
        )
        page = plain.new_page()
        page.goto("/streamwarden/")
        page.fill("#search-field", "billing")
        page.press("#search-field", "Enter")
        page.wait_for_url("**/search?q=billing")
        expect(page.locator("section:has(#resources) li")).to_have_count(2)
        plain.close()


@pytest.mark.parametrize(
    ("query", "number"),
    rare_after(
        3,
        [("kind=group&owner=unassigned", 1), ("state=muted", 0), ("q=lag+billing&cluster=demo", 1), ("cluster=demo", 1),
         ("cluster=other", 0), ("kind=broker", 0), ("state=firing&severity=warning", 1)],
    ),
)  # fmt: skip
def test_the_filters_are_in_the_address(page: Any, findings: dict[str, str], query: str, number: int) -> None:
    page.goto(f"/streamwarden/findings?{query}")
    expect(page.locator("article")).to_have_count(number)
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/findings?severity=**")
    expect(page.locator("article")).to_have_count(number)  # the form keeps the filters


def test_an_invalid_filter_is_a_page_with_status_400(page: Any, findings: dict[str, str]) -> None:
    for path in (
        "/findings?state=open",
        "/search?page=0",
        "/search?page=x",
        "/search?q=%00",
        "/search/suggestions?q=%00",
    ):
        assert page.goto(f"/streamwarden{path}").status == 400
    assert page.goto("/streamwarden/search?kind=shelf").status == 404
