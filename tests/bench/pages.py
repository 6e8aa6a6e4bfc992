"""What people wait for: each page, the search, and each list of the REST API, on a large fleet after 455 days.

The requests pass the whole application (routes, queries, templates, JSON); only Airflow's login is replaced. Median
of three requests after the first, which fills the caches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from tempfile import NamedTemporaryFile, TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.warehouse import engine
from streamwarden.causes import store_topology
from streamwarden.store.migrate import migrate

from tests.bench.large import HOUR, Large, fill
from tests.bench.metric import Metric
from tests.conftest import a_database

FLEET = Large(brokers=8, partitions=100_000, groups=300, volumes=5_000, applications=500, days=455)
PAGE_MS, SEARCH_MS, PAGE_KB, OVERVIEW_KB = 300, 100, 200, 60
CLUSTER = "orders-prod"
RESOURCES = (
    "cluster/orders-prod", "broker/orders-prod%2F3", "topic/orders-prod%2Fapp-1-store-0-changelog",
    "topic/orders-prod%2Fteam-7.orders-000007.v1", "group/orders-prod%2Fapp-7", "application/orders-prod%2Fapp-7",
    "volume/123456789012%2Feu-central-1%2Fvol-00000000000000003",
    "process/orders-prod%2Fhttp:%2F%2Fapp-7-0.example.com:8778%2Fjolokia",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A request, and its limits."""

    name: str
    path: str
    limit_ms: float = PAGE_MS
    limit_kb: float = PAGE_KB


def measure() -> list[Metric]:
    """Milliseconds and kilobytes of each request."""
    with _fleet() as warehouse, _clients() as (pages, api):
        metrics = []
        for client, requests in ((pages, _page_requests(warehouse)), (api, _api_requests(warehouse))):
            for request in requests:
                milliseconds, kilobytes = _measured(client, request)
                metrics.append(Metric(request.name, milliseconds, "ms", request.limit_ms))
                metrics.append(Metric("", kilobytes, "KB", request.limit_kb))
        return metrics


def _page_requests(warehouse: sa.Engine) -> list[Request]:
    fingerprint = _newest(warehouse, "ebs_volume_starving")
    paths = ["/findings", "/findings?owner=unassigned", f"/findings?cluster={CLUSTER}", f"/findings/{fingerprint}",
             f"/incidents/{fingerprint}", "/coverage", "/detectors", "/detectors/ebs_volume_starving", "/search",
             "/search?kind=topic", "/questions", "/questions/application_cost", "/reports"]  # fmt: skip
    paths += [f"/resources/{key}?range=24h" for key in RESOURCES]
    paths += [f"/resources/{key}?range=35d" for key in RESOURCES[:3]]
    paths += [f"/timelines/{key}?range=35d&form={form}" for key in RESOURCES[:2] for form in ("json", "svg")]
    words = ("vol", "team orders", "app-7", "orders-prod", "zzz")
    return [
        Request("page /", "/", limit_kb=OVERVIEW_KB),
        *(Request(f"page {_short(path, fingerprint)}", path) for path in paths),
        *(Request(f"suggestions for {one!r}", f"/search/suggestions?q={one}", SEARCH_MS) for one in words),
    ]


def _api_requests(warehouse: sa.Engine) -> list[Request]:
    fingerprint = _newest(warehouse, "ebs_volume_starving")
    paths = ["/resources", "/resources?kind=topic&limit=500", "/resources?owner=team-7",
             "/resources/broker/orders-prod/3", "/findings", "/findings?kind=volume", f"/findings/{fingerprint}",
             "/incidents", f"/incidents/{fingerprint}", f"/clusters/{CLUSTER}/groups",
             f"/clusters/{CLUSTER}/groups/app-7/lag"]  # fmt: skip
    return [Request(f"API {_short(path, fingerprint)}", path, limit_kb=500) for path in paths]


def _newest(warehouse: sa.Engine, detector: str) -> str:
    firing = sa.text("select fingerprint from tickets.ticket where detector = :detector and state = 'open' limit 1")
    with warehouse.connect() as connection:
        return str(connection.execute(firing, {"detector": detector}).scalar_one())


def _short(path: str, fingerprint: str) -> str:
    return path.replace(fingerprint, "ID").replace("123456789012%2Feu-central-1%2F", "")[:60]


def _measured(client: Any, request: Request) -> tuple[float, float]:
    """Milliseconds and kilobytes of the response."""
    seconds = []
    for _ in range(4):
        started = time.monotonic()
        response = client.get(request.path)
        seconds.append(time.monotonic() - started)
        if response.status_code != 200:
            raise AssertionError(f"{request.path}: status {response.status_code}: {response.text[:300]}")
    return median(seconds[1:]) * 1000, len(response.content) / 1000


@contextmanager
def _fleet() -> Iterator[sa.Engine]:
    with a_database() as url, NamedTemporaryFile(suffix=".yaml") as config:
        os.environ |= {WAREHOUSE_ENV: url, CONFIG_ENV: config.name}
        warehouse = engine(url)
        migrate(warehouse)
        fill(warehouse, FLEET)
        store_topology(warehouse, HOUR)
        with warehouse.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("analyze detect.resource, detect.resource_link")
        yield warehouse


@contextmanager
def _clients() -> Iterator[tuple[Any, Any]]:
    """Clients of the pages and of the API, logged in as a viewer."""
    with TemporaryDirectory() as home:
        os.environ["AIRFLOW_HOME"] = home
        from airflow.api_fastapi.core_api.security import get_user
        from fastapi.testclient import TestClient
        from streamwarden.api.app import app as api
        from streamwarden.ui import forms
        from streamwarden.ui.app import app as pages

        viewer = SimpleNamespace(get_id=lambda: "viewer", get_name=lambda: "viewer", role="viewer")
        accept: Callable[[], None] = lambda: None  # noqa: E731
        for app in (pages, api):
            login = app.router.dependencies[0].dependency
            assert login is not None
            app.dependency_overrides[login] = accept
            app.dependency_overrides[get_user] = lambda: viewer
        forms.form_for = lambda *_: None  # type: ignore[assignment]
        yield (
            TestClient(pages, headers={"Accept": "text/html"}, follow_redirects=False),
            TestClient(api, headers={"Accept": "application/json"}),
        )
