"""Addresses as people and rows may see them: a URL can hold a user, a password and a token."""

from __future__ import annotations

import re
from functools import cache

_CREDENTIALS = re.compile(r"(?<=//)[^\s'\"<>]*@|[^\s'\"<>/:]+:[^\s'\"<>/]+@")
"""What stands before an address: `user:password@`, and whatever lies between `//` and the last `@`."""
_QUERY = re.compile(r"(://[^\s'\"<>?]*)\?[^\s'\"<>]*")


@cache
def address_of(url: str) -> str:
    """The URL without user, password and query."""
    import httpx  # 0.1 s, and most commands need no address

    try:
        return str(httpx.URL(url).copy_with(userinfo=b"", query=None, fragment=None))
    except httpx.InvalidURL:
        return url.split("?")[0].rpartition("@")[2]


def masked(text: str) -> str:
    """A text in which the URLs stand without user, password and query."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("", text))
