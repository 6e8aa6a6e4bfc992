"""Airflow's real API server with our plugin on a warehouse with findings, and a real headless Chromium."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from demo.airflow import Airflow
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.causes import store_topology
from streamwarden.detectors import evaluate, load_detectors
from streamwarden.tickets import reconcile

from tests.conftest import TEST_SERVER, SpareWarehouses

NASTY_TOPIC = "<script>alert('topic')</script>"
TRACKER = "http://127.0.0.1:9/issue7"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)


@dataclass(frozen=True)
class Place:
    """What Airflow needs to run: a folder, a config, a warehouse."""

    folder: Path
    warehouse_url: str
    reports: Path

    def environment(self) -> dict[str, str]:
        config = self.folder / "streamwarden.yaml"
        owners = [{"owner": "team-1", "users": ["viewer"]}, {"owner": "team-3", "roles": ["viewer"]}]
        config.write_text(json.dumps({"owners": owners, "reports": {"folder": str(self.reports)}}))
        return {CONFIG_ENV: str(config), WAREHOUSE_ENV: self.warehouse_url}

    def say(self, line: str, /) -> None:
        print(line)


@pytest.fixture(scope="session")
def pages_warehouse(spare_warehouses: SpareWarehouses) -> str:
    """URL of the warehouse that the pages show."""
    return spare_warehouses.take()


@pytest.fixture(scope="module")
def module_warehouse(pages_warehouse: str, spare_warehouses: SpareWarehouses) -> Iterator[sa.Engine]:
    """Engine on the warehouse that the pages show, empty before each module."""
    yield engine(pages_warehouse)
    assert spare_warehouses.empty(pages_warehouse)


@pytest.fixture(scope="session")
def reports_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the reports that the pages show."""
    return tmp_path_factory.mktemp("archive") / "reports"


@pytest.fixture(scope="session")
def airflow(pages_warehouse: str, reports_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """The API server alone, for all modules: it serves the pages; nothing is scheduled here."""
    metadata = embedded_url(TEST_SERVER, "ui_airflow")
    place = Place(tmp_path_factory.mktemp("ui"), pages_warehouse, reports_folder)
    with Airflow(place, port=0, metadata_url=metadata, components=("api-server",)) as airflow:
        airflow.wait_until_ready()
        yield airflow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A Chromium with a new profile; without a Chromium the tests are skipped."""
    program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if program is None:
        pytest.skip("no Chromium here: the page tests are left out (sudo apt-get install chromium)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # the default of 5 s is too short for a busy machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, airflow: Airflow) -> Iterator[Any]:
    """A page of a viewer who has logged in; a dialog or a blocked script fails the test."""
    with page_of(chromium, airflow, "viewer") as page:
        yield page


@pytest.fixture
def editor_page(chromium: Any, airflow: Airflow) -> Iterator[Any]:
    """A page of an editor, who may edit DAGs and therefore respond."""
    with page_of(chromium, airflow, "editor") as page:
        yield page


@contextmanager
def page_of(chromium: Any, airflow: Airflow, user: str) -> Iterator[Any]:
    """A page of a user who has logged in."""
    state = _state_of(chromium, airflow.url, airflow.password(user), user)
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, base_url=airflow.url, storage_state=state)
    context.set_default_timeout(60_000)
    page = context.new_page()
    faults: list[str] = []
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda m: faults.append(m.text) if "Content Security Policy" in m.text else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []


_states: dict[tuple[str, str], Any] = {}


def _state_of(chromium: Any, url: str, password: str, user: str) -> Any:
    """Cookies and storage of a user who has logged in; the form is filled in once per user, as it takes a second."""
    if (url, user) not in _states:
        with chromium.new_context(base_url=url) as context:
            _fill_in(context.new_page(), "/streamwarden/", password, user)
            _states[url, user] = context.storage_state()
    return _states[url, user]


def log_in(page: Any, airflow: Airflow, path: str, user: str = "viewer") -> None:
    """Opens a page, and logs in with the form that Airflow shows instead."""
    _fill_in(page, path, airflow.password(user), user)


def _fill_in(page: Any, path: str, password: str, user: str) -> None:
    page.goto(path, timeout=60_000)
    page.fill("input[name=username]", user, timeout=60_000)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: "/auth/" not in url, timeout=60_000)


@pytest.fixture(scope="module")
def findings(module_warehouse: sa.Engine) -> dict[str, str]:
    """Six hours of two consumer groups: billing lags from the fourth hour on, quiet is unknown in the last hour.

    Returns fingerprints by group. The other apps are not loaded, so their detectors are blocked.
    """
    newest = last_full_hour()
    detectors = load_detectors()
    for back in range(5, -1, -1):
        hour = newest - back * HOUR
        _store_hour(module_warehouse, hour, lag_seconds=4000 if back < 3 else 0, is_newest=back == 0)
        for detector in detectors.values():
            evaluate(module_warehouse, detector, hour, Config())
    with module_warehouse.begin() as connection:
        more = (
            "update detect.evaluation set actions = jsonb_build_array(cast(:actions as text)),"
            " metrics = cast(cast(metrics as jsonb) || cast(:more as jsonb) as json)"
        )
        connection.execute(sa.text(more), {"actions": "Add members: 3 of 12 partitions are read.", "more": _FIGURES})
    store_topology(module_warehouse, newest)
    reconcile(module_warehouse, Config(), detectors)
    with module_warehouse.begin() as connection:
        connection.execute(
            sa.text("update tickets.issue set external_key = 'issue7', external_url = :url"), {"url": TRACKER}
        )
        rows = connection.execute(
            sa.text("select distinct identity ->> 'group_id', fingerprint from detect.evaluation")
        )
        return dict(rows.tuples().all())


_FIGURES = json.dumps(
    {
        "nasty_list": ["<img src=x onerror=alert(1)>"],
        "nasty_table": [{"topic": "<b>x</b>", "bytes_out": 4096}],
    }
)


def _store_hour(warehouse: sa.Engine, hour: datetime, *, lag_seconds: int, is_newest: bool) -> None:
    """Stores an hour as the app consumer_groups would have loaded it."""
    values = {"hour": hour, "topic": NASTY_TOPIC, "lag": lag_seconds, "at": datetime.now(UTC) - timedelta(minutes=3)}
    statements = [
        "insert into detect.load values (:hour, 'consumer_groups', 'loaded', '{}', null, :at, :at)",
        "insert into detect.load values (:hour, 'brokers', 'failed', '{}', 'no route to <b>10.0.0.5</b>', :at, :at)",
        "insert into detect.coverage values (:hour, 'consumer_groups', 'kafka_offsets', 'demo', 'complete', null, :at)",
        "insert into detect.coverage values (:hour, 'brokers', 'jmx', :topic, 'missing', 'no route', :at)",
        "insert into inventory.topic_hourly (hour, cluster, topic, partitions, kind, observed_at)"
        " values (:hour, 'demo', :topic, 1, 'plain', :at)",
    ]
    for group in ("billing", "quiet"):
        known = not (group == "quiet" and is_newest)
        values[group] = lag_seconds if group == "billing" else 0
        statements.append(
            "insert into metrics.consumer_group_hourly"
            " (hour, cluster, group_id, state, members, topics, partitions, lag_unknown_partitions)"
            f" values (:hour, 'demo', '{group}', 'STABLE', 1, 1, 1, 0)"
        )
        lag = f":{group}" if known else "null"
        statements.append(
            "insert into metrics.consumer_partition_hourly"
            " (hour, cluster, group_id, topic, partition, lag_records, lag_seconds, status)"
            f" values (:hour, 'demo', '{group}', :topic, 0, {lag}, {lag}, 'warn')"
        )
    with warehouse.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement), values)
