"""A real Roundup for tests, a client for it, and a function for proxies in front of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from demo.process import Process, free_port
from demo.tracker import credentials
from streamwarden.base.config.trackers import Roundup

START_SECONDS = 30


@dataclass(frozen=True)
class Tracker:
    """A running Roundup: settings of the sink, client of its user, and login of its administrator."""

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


@contextmanager
def running_tracker(folder: Path) -> Iterator[Tracker]:
    """Runs a Roundup in a folder during the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with Process("tracker", [sys.executable, "-m", "demo.tracker", str(folder), str(port)], folder) as process:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            process.check()
            with suppress(httpx.TransportError):
                httpx.get(url, timeout=5)
                break
            time.sleep(0.1)
        passwords = credentials(folder)
        password = passwords["streamwarden"]
        settings = Roundup(url=url, user="streamwarden", password=password)
        headers = {"X-Requested-With": "rest", "Origin": url, "Referer": f"{url}/"}
        rest, user = f"{url}/rest/data", ("streamwarden", password)
        with httpx.Client(base_url=rest, auth=user, headers=headers, timeout=30) as client:
            yield Tracker(settings, client, ("admin", passwords["admin"]))


def pass_on(url: str, method: str, path: str, headers: Mapping[str, str], body: bytes) -> httpx.Response:
    """Passes a request on to the Roundup behind a proxy and returns its response."""
    kept = {name: value for name, value in headers.items() if name.lower() not in ("host", "content-length")}
    kept |= {"Origin": url, "Referer": f"{url}/", "Accept-Encoding": "identity"}
    return httpx.request(method, f"{url}{path}", content=body, headers=kept, timeout=30)
