"""Waits for conditions on the MBeans of a JVM, over Jolokia."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import httpx


def wait_until(
    url: str, mbeans: str, is_so: Callable[[Collection[Mapping[str, Any]]], bool], seconds: float = 120
) -> None:
    """Waits until `is_so` holds for the attributes of the MBeans that match a pattern (`mbeans`: as behind `/read/`).

    Raises AssertionError after `seconds`.
    """
    deadline, attributes = time.monotonic() + seconds, list[Mapping[str, Any]]()
    while time.monotonic() < deadline:
        try:
            attributes = list(httpx.get(f"{url}/read/{mbeans}", timeout=5).json().get("value", {}).values())
            if is_so(attributes):
                return
        except httpx.HTTPError:
            pass  # the agent does not listen yet
        time.sleep(0.3)
    raise AssertionError(f"{mbeans}: condition not met after {seconds} s, last response: {attributes}")
