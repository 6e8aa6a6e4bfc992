"""Stories in a fresh warehouse, and a real Roundup."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from demo.process import Process, free_port
from demo.tracker import credentials
from streamwarden.base.config import Config, Tickets
from streamwarden.base.config.trackers import Roundup

from tests.plugins.tickets.storytelling import MemorySink, Story


@pytest.fixture
def story(warehouse: sa.Engine) -> Story:
    return Story(warehouse)


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def config() -> Config:
    return Config(tickets=Tickets(max_new_per_run=3, reopen_within_hours=24))


@dataclass(frozen=True)
class Tracker:
    """A running Roundup."""

    settings: Roundup
    client: httpx.Client
    admin: tuple[str, str]

    def issues(self, **filters: str) -> list[dict[str, Any]]:
        fields = {"@verbose": "2", "@fields": "title,status,priority,keyword,messages,files"}
        return self.client.get("/issue", params=fields | filters).raise_for_status().json()["data"]["collection"]

    def texts(self, issue: dict[str, Any]) -> list[str]:
        return [self.client.get(f"/msg/{m['id']}/content").json()["data"]["data"].strip() for m in issue["messages"]]

    def delete(self, key: str) -> None:
        etag = self.client.get(f"/issue/{key}").json()["data"]["@etag"]
        gone = self.client.request("DELETE", f"/issue/{key}", json={}, headers={"If-Match": etag}, auth=self.admin)
        gone.raise_for_status()

    def edit(self, key: str, **values: Any) -> None:
        etag = self.client.get(f"/issue/{key}").json()["data"]["@etag"]
        self.client.patch(f"/issue/{key}", json=values, headers={"If-Match": etag}).raise_for_status()


@pytest.fixture(scope="session")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracker]:
    folder: Path = tmp_path_factory.mktemp("tracker")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with Process("tracker", [sys.executable, "-m", "demo.tracker", str(folder), str(port)], folder) as process:
        for _ in range(100):
            process.check()
            try:
                httpx.get(url, timeout=5)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        passwords = credentials(folder)
        password = passwords["streamwarden"]
        settings = Roundup(url=url, user="streamwarden", password=password)
        headers = {"X-Requested-With": "rest", "Origin": url, "Referer": f"{url}/"}
        with httpx.Client(base_url=f"{url}/rest/data", auth=("streamwarden", password), headers=headers) as client:
            yield Tracker(settings, client, ("admin", passwords["admin"]))
