"""Waits for what a JVM tells over Jolokia."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import httpx


def wait_until(
    url: str, mbeans: str, is_so: Callable[[Collection[Mapping[str, Any]]], bool], seconds: float = 120
) -> None:
    """Until the attributes of all MBeans of a pattern are so. `mbeans`: as behind `/read/`."""
    deadline, told = time.monotonic() + seconds, list[Mapping[str, Any]]()
    while time.monotonic() < deadline:
        try:
            told = list(httpx.get(f"{url}/read/{mbeans}", timeout=5).json().get("value", {}).values())
            if is_so(told):
                return
        except httpx.HTTPError:
            pass  # it doesn't listen yet
        time.sleep(0.3)
    raise AssertionError(f"{mbeans} isn't as it should be, but {told}")
