"""Fixtures of the demo fleet's tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from demo.process import Process, free_port


@pytest.fixture(scope="session")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A real Roundup: its address and its folder."""
    folder, port = tmp_path_factory.mktemp("roundup") / "tracker", free_port()
    url = f"http://127.0.0.1:{port}"
    with Process("tracker", [sys.executable, "-m", "demo.tracker", str(folder), str(port)], folder.parent) as process:
        for _ in range(100):
            process.check()
            try:
                httpx.get(url)
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield url, folder
