"""The page of an incident that the product's own detectors found, for a viewer and an editor, also on a phone.

`make pictures` runs these tests to draw the pictures of README and docs/tickets.md.
"""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from PIL import Image
from playwright.sync_api import expect
from rich.console import Console
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.trackers import Console as ConsoleSettings
from streamwarden.base.hours import last_full_hour
from streamwarden.tickets.sinks.console import Tracker as ConsoleSink
from streamwarden.tickets.sinks.roundup import Tracker as RoundupSink

from tests.plugins.tickets.endpoints.endpoint import Clock
from tests.plugins.tickets.endpoints.kinds import MAIL, opened
from tests.plugins.tickets.endpoints.mail import Mailbox
from tests.roundup import Tracker, running_tracker
from tests.sample_fleet import run_hours
from tests.variations import rare_after

from .conftest import page_of

pytestmark = pytest.mark.slow
FOLDER = os.environ.get("PICTURES")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 800}


class SampleFleet:
    """The sample fleet of `tests.sample_fleet`, delivered to a tracker, a mailbox, and the console."""

    def __init__(self, tracker: Tracker, warehouse: sa.Engine) -> None:
        self.tracker, self.mailbox = tracker, Mailbox(Clock())
        self.log = Console(record=True, width=118, file=io.StringIO())
        console = ConsoleSink("console", ConsoleSettings())
        console._console = self.log
        names = ("main", "team-mail", "watch")
        trackers = {"main": tracker.settings, "team-mail": MAIL[1], "watch": ConsoleSettings()}
        config = Config(tickets=Tickets(trackers=trackers, default=list(names)))
        sinks = [RoundupSink("", tracker.settings), opened(MAIL[1], self.mailbox, self.mailbox.clock), console]
        for sink, name in zip(sinks, names, strict=True):
            sink.name = name
        run_hours(warehouse, last_full_hour(), config, sinks)
        with warehouse.connect() as connection:
            rows = connection.execute(sa.text("select resource_name, fingerprint, role from tickets.ticket"))
            self.fingerprints = {row.resource_name: row.fingerprint for row in rows}

    @property
    def root(self) -> str:
        return next(value for name, value in self.fingerprints.items() if name.startswith("vol-"))


@pytest.fixture(scope="module")
def sample_fleet(
    module_warehouse: sa.Engine, airflow: Airflow, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SampleFleet]:
    with running_tracker(tmp_path_factory.mktemp("tracker")) as tracker:
        yield SampleFleet(tracker, module_warehouse)


def picture(page: Any, name: str, **how: Any) -> None:
    """Saves a picture to $PICTURES, if that is set."""
    if FOLDER:
        drawn = Image.open(io.BytesIO(page.screenshot(animations="disabled", **how)))
        file = Path(FOLDER) / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        drawn.quantize(128).save(file, optimize=True)


def test_a_volume_leads_to_the_groups_that_it_delays_and_back(
    chromium: Any, airflow: Airflow, sample_fleet: SampleFleet
) -> None:
    with page_of(chromium, airflow, "viewer") as page:
        page.goto(f"/streamwarden/incidents/{sample_fleet.root}")
        start = page.locator("main").inner_text().split("Firing since ")[1][: len("2026-01-05 10:12 UTC")]
        assert start.endswith(":12 UTC"), "the minute in which the throttling began"
        page.get_by_role("link", name="timeline, dependencies").click()
        expect(page.locator("section:has(#firing)")).to_contain_text(f"Firing since {start}.")
        downstream = page.locator("section:has(#chain) .halves > div").last
        expect(downstream).to_contain_text("3 consumer groups 3 with a firing finding")
        downstream.get_by_role("link", name="billing", exact=True).click()
        expect(page.locator("h1")).to_have_text("orders-prod/billing")
        expect(page.locator("section:has(#metrics)")).to_contain_text("Lag max")
        upstream = page.locator("section:has(#chain) .halves > div").first
        expect(upstream).to_contain_text("vol-03a1b2c3d4e5f607")


@pytest.mark.parametrize("user", rare_after(1, ["editor", "viewer"]))
def test_an_incident_shows_its_root_cause_effects_hours_and_changes(
    chromium: Any, airflow: Airflow, sample_fleet: SampleFleet, user: str
) -> None:
    with page_of(chromium, airflow, user) as page:
        page.goto(f"/streamwarden/findings/{sample_fleet.fingerprints['orders-prod/search']}")
        page.get_by_role("link", name="Incident: root cause, downstream effects").click()
        expect(page.locator("h1")).to_contain_text("EBS volume I/O-starved: vol-03a1b2c3d4e5f607")
        tree = page.locator(".tree > li").all_inner_texts()
        reasons = {
            "Log flush latency (p95) above limit: orders-prod broker 3": "the broker writes its logs to",
            "orders-prod/billing": "4 of 4 lagging partitions are led by",
            "orders-prod/search": "2 of 2 lagging partitions are led by",
            "Under-replicated partitions": "the broker writes its logs to",
        }
        for name, reason in reasons.items():
            assert any(name in line and reason in line.lower() and "%" in line.split("\n")[0] for line in tree), (
                name,
                tree,
            )
        assert "orders-prod/audit: 2 of 6 lagging partitions" in page.locator("section:has(#refused) li").inner_text()
        expect(page.locator("section:has(#hours) svg.strip")).to_have_count(len(tree) + 1)
        assert "10.0.1.2" in page.locator("section:has(#before)").inner_text()
        assert (page.locator("main form").count() > 0) == (user == "editor")
        picture(page, f"incident-{user}", full_page=True)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            picture(page, f"incident-{user}-phone-{scheme}", full_page=True)
        page.set_viewport_size(WIDE)
        picture(page, f"incident-{user}-dark", full_page=True)


@pytest.mark.rare
def test_the_pictures_of_the_readme(chromium: Any, airflow: Airflow, sample_fleet: SampleFleet) -> None:
    with page_of(chromium, airflow, "editor") as page:
        page.goto("/streamwarden/")
        assert "1 critical" in page.locator("h1").inner_text()
        page.set_viewport_size({"width": 1280, "height": 560})
        picture(page, "fleet")
        page.goto("/streamwarden/resources/group/orders-prod%2Fsearch")
        for text in ("Findings and changes", "1 change", "shaded: evaluated hour; ▼ change"):
            expect(page.locator(".chart-canvas svg")).to_contain_text(text)
        page.goto("/streamwarden/resources/broker/orders-prod%2F3")
        expect(page.locator(".chart-canvas svg")).to_contain_text("Limit of its strictest topic")
        page.set_viewport_size({"width": 1280, "height": 1450})
        picture(page, "resource")
        page.goto(f"/streamwarden/findings/{sample_fleet.root}")
        expect(page.locator(".chart-canvas svg")).to_contain_text("Throttle limit (100 %)")
        page.set_viewport_size({"width": 1280, "height": 1400})
        picture(page, "finding")
        page.goto(f"/streamwarden/incidents/{sample_fleet.root}")
        picture(page, "incident")


@pytest.mark.rare
def test_the_pictures_of_a_ticket(chromium: Any, sample_fleet: SampleFleet) -> None:
    """The same ticket in a tracker, as a mail, and on the console."""
    context = chromium.new_context(viewport={"width": 1100, "height": 900})
    page = context.new_page()
    issue = next(one for one in sample_fleet.tracker.issues() if "vol-03a1" in one["title"])
    page.goto(f"{sample_fleet.tracker.settings.url}/issue{issue['id']}")
    assert "Downstream effects" in page.locator("body").inner_text()
    picture(page, "ticket-roundup", full_page=True)
    mail = next(one for one in sample_fleet.mailbox.mails.values() if "vol-03a1" in str(one["Subject"]))
    plot = next(part for part in mail.iter_attachments()).get_content()
    heads = "".join(f"<b>{name}</b> {html.escape(str(mail[name]))}<br>" for name in ("From", "To", "Subject"))
    text = html.escape(str(mail.get_body(("plain",)).get_content()))
    page.set_content(
        f"<style>body{{font:15px system-ui;margin:20px}}pre{{white-space:pre-wrap;font:14px/1.45 monospace}}</style>"
        f"<p>{heads}</p><pre>{text}</pre><img width=760 src='data:image/png;base64,{base64.b64encode(plot).decode()}'>"
    )
    assert page.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth > 100)")
    picture(page, "ticket-mail", full_page=True)
    log = sample_fleet.log.export_text().partition("╯")[0] + "╯"
    assert "EBS volume I/O-starved" in log
    page.set_content(
        "<style>body{background:#0d1117;color:#e6edf3}pre{font:13px/1.25 'DejaVu Sans Mono'}</style>"
        f"<pre>{html.escape(log)}</pre>"
    )
    picture(page.locator("pre"), "ticket-console")
    context.close()
