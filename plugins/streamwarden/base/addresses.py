"""Removes credentials from URLs before they are shown or stored: a URL can contain a user, a password, and a token."""

from __future__ import annotations

import re
from functools import cache

_CREDENTIALS = re.compile(r"(?<=//)[^\s'\"<>]*@|[^\s'\"<>/:]+:[^\s'\"<>/]+@")
"""The credentials of a URL: `user:password@`, and everything between `//` and the last `@`."""
_QUERY = re.compile(r"(://[^\s'\"<>?]*)\?[^\s'\"<>]*")
_PROPERTY = re.compile(r"(?i)(;\s*(?:user|username|password|pwd)\s*=)[^;\s'\"<>]*")
"""Properties of a JDBC URL of SQL Server or Db2."""


@cache
def address_of(url: str) -> str:
    """The URL without user, password and query."""
    import httpx  # takes 0.1 s, and most commands do not need it

    try:
        return str(httpx.URL(url).copy_with(userinfo=b"", query=None, fragment=None))
    except httpx.InvalidURL:
        return url.split("?")[0].rpartition("@")[2]


def masked(text: str) -> str:
    """The text, with user, password, and query removed from all URLs."""
    return _PROPERTY.sub(r"\1…", _QUERY.sub(r"\1", _CREDENTIALS.sub("", text)))
