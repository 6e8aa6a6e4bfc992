"""The overview and the page of an incident with hostile input: names, owners, and messages; unknown ids; hours without
data; 10,000 findings."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect
from streamwarden.base.config import Config
from streamwarden.tickets import reconcile

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, fingerprint_of, hour
from tests.variations import rare_after

pytestmark = pytest.mark.slow
LAG = "consumer_group_lagging"
NAMES = {
    "script": '"><script>alert(1)</script>',
    "attribute": "' onmouseover=alert(1) x='",
    "long": "x" * 200,
    "right_to_left": "\u202eevil\u2066\u200f",
    "emoji": "🧨👩‍👩‍👧‍👦é",
    "markup": "{{ 7 * 7 }}{% raw %}&lt;b&gt;",
}
EFFECTS = 10_000
SECONDS = 10
"""Far above the budget of 0.3 s, which `make bench PART=pages` measures."""


@pytest.fixture(scope="module")
def hostile(module_warehouse: sa.Engine) -> dict[str, str]:
    """An incident: a volume as the root cause, a group for each hostile name as an effect. Key → fingerprint."""
    scenario = DeliveryScenario(module_warehouse)
    root, groups = NAMES["script"], {key: fingerprint_of(name, LAG) for key, name in NAMES.items()}
    for number in range(2):
        hostile: dict[str, Any] = {"owner": root, "message": " ".join(NAMES.values()), "actions": [NAMES["markup"]]}
        scenario.evaluate(number, {root: "firing"}, **hostile)
        scenario.evaluate(number, dict.fromkeys(NAMES.values(), "firing"), LAG, severity="warning", **hostile)
        scenario.store_causes(number, {(effect, fingerprint_of(root)): 0.9 for effect in groups.values()})
        reconcile(scenario.engine, Config(), DETECTORS)
    return groups | {"root": fingerprint_of(root)}


@pytest.fixture(scope="module")
def large(module_warehouse: sa.Engine, hostile: dict[str, str]) -> dict[str, str]:
    """10,000 more effects of the same incident."""
    with module_warehouse.begin() as connection:
        connection.execute(
            sa.text("""
                insert into detect.evaluation
                select e.* from detect.evaluation as model
                cross join generate_series(1, :many) as n
                cross join lateral jsonb_populate_record(model, jsonb_build_object(
                  'fingerprint', lpad(to_hex(n), 64, '0'), 'resource_name', 'group-' || n,
                  'resource', 'group:c/group-' || n)) as e
                where model.fingerprint = :model"""),
            {"many": EFFECTS, "model": hostile["emoji"]},
        )
        connection.execute(
            sa.text("""
                insert into tickets.ticket overriding system value
                select t.* from tickets.ticket as model
                cross join generate_series(1, :many) as n
                cross join lateral jsonb_populate_record(model, jsonb_build_object(
                  'ticket_id', 100000 + n, 'fingerprint', lpad(to_hex(n), 64, '0'), 'title', 'Lag: group-' || n,
                  'resource_name', 'group-' || n, 'resource', 'group:c/group-' || n)) as t
                where model.fingerprint = :model"""),
            {"many": EFFECTS, "model": hostile["emoji"]},
        )
        connection.exec_driver_sql("analyze detect.evaluation, tickets.ticket")
    return hostile


@pytest.mark.parametrize("kind", rare_after(2, NAMES))
@pytest.mark.parametrize("scheme", rare_after(1, ["light", "dark"]))
def test_a_hostile_name_is_text(page: Any, hostile: dict[str, str], kind: str, scheme: str) -> None:
    """The fixture `page` fails on a dialog, a blocked script, and an error of a script."""
    page.emulate_media(color_scheme=scheme)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for path in ("", "findings", f"findings/{hostile[kind]}", f"incidents/{hostile[kind]}"):
            answer = page.goto(f"/streamwarden/{path}")
            assert answer.status == 200
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
            assert "\u202e" not in answer.text() and "<script>alert" not in answer.text(), path
        if kind in ("script", "attribute", "markup"):
            assert NAMES[kind] in page.locator("main").inner_text()


@pytest.mark.parametrize(
    "asked",
    ["0" * 64, "x", "x" * 200, "%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "%E2%80%AEevil", "%F0%9F%A7%A8",
     "..%2f..%2fetc", "%00", "%ff"],
)  # fmt: skip
def test_an_unknown_incident_is_a_page_with_a_way_back(page: Any, hostile: dict[str, str], asked: str) -> None:
    answer = page.goto(f"/streamwarden/incidents/{asked}")
    assert answer.status in (400, 404)
    expect(page.locator("main").get_by_role("link", name="Overview")).to_have_count(1)
    assert "Traceback" not in answer.text() and "<script>alert" not in answer.text()


def test_a_hostile_page_number_or_owner_is_a_clear_page(page: Any, hostile: dict[str, str]) -> None:
    for query, status in (
        ("page=-1", 400), ("page=1e9", 400), ("page=99999999999999999999", 400), ("page=9999", 200),
        ("owner=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", 200), ("owner=" + "x" * 201, 400), ("owner=%E2%80%AE", 200),
        ("&".join(["owner=a"] * 60), 400), ("unknown=1", 200),
    ):  # fmt: skip
        answer = page.goto(f"/streamwarden/?{query}")
        assert answer.status == status, query
        assert "<script>alert" not in answer.text() and "Traceback" not in answer.text()


def test_an_hour_without_data_is_a_clear_page(page: Any, hostile: dict[str, str]) -> None:
    away = f"{hour(-30):%Y-%m-%dT%H:%M}Z"
    page.goto(f"/streamwarden/findings/{hostile['emoji']}?hour={away}")
    assert "This finding was not evaluated in that hour." in page.get_by_role("alert").inner_text()
    assert page.goto(f"/streamwarden/coverage?hour={away}").status == 200
    assert page.goto(f"/streamwarden/findings/{hostile['emoji']}/chart.svg?hour={away}").status == 404


def test_ten_thousand_findings_are_paged_and_the_incident_is_bounded(page: Any, large: dict[str, str]) -> None:
    for path, kib in (("", 60), ("findings", 200), ("findings?q=group", 200), ("search?q=group", 60),
                      (f"incidents/{large['root']}", 200), (f"incidents/{'0' * 60}2710", 200)):  # fmt: skip
        answer = page.request.get(f"/streamwarden/{path}", headers={"accept": "text/html"}, timeout=SECONDS * 1000)
        assert answer.status == 200, path
        assert len(answer.body()) <= kib * 1024, (path, len(answer.body()))
    page.goto(f"/streamwarden/incidents/{large['root']}")
    text = page.locator("section:has(#follows)").inner_text()
    assert f"Downstream effects ({EFFECTS + len(NAMES):,})" in text and "more" in text
    assert page.locator(".tree > li").count() < 50
