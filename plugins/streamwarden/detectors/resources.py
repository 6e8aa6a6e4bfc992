"""Kinds of things that findings are about, and the name by which a thing is known everywhere: its key.

A key is `kind:` and the values of the kind's columns with `/` between them: `broker:orders-prod/3`. In SQL
`public.resource_key` makes it, here `Thing.key`; the view `public.thing` has all things that were seen lately.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

KINDS: dict[str, tuple[str, ...]] = {
    "volume": ("account", "region", "volume_id"),
    "instance": ("account", "region", "instance_id"),
    "instances": ("account", "region", "instance_group"),
    "host": ("cluster", "endpoint"),
    "cluster": ("cluster",),
    "broker": ("cluster", "broker_id"),
    "process": ("cluster", "endpoint"),
    "store": ("cluster", "topic"),
    "application": ("cluster", "application_id"),
    "topic": ("cluster", "topic"),
    "reading": ("cluster", "topic", "group_id"),
    "group": ("cluster", "group_id"),
    "client": ("cluster", "client_id"),
}
"""Kind → the columns that identify one, in the order of its key. The deeper layers come first."""


@dataclass(frozen=True)
class Resource:
    """What a finding is about."""

    kind: str
    columns: Mapping[str, str]
    """Its key columns, in the order of `KINDS`."""
    name: str
    """Short, for people."""
    owner: str | None = None
    application: str | None = None

    @property
    def key(self) -> str:
        return resource_key(self.kind, *self.columns.values())


def owner_entry(key: str) -> str:
    """The line of the config, under `owners:`, that names an owner for the thing of this key.

    >>> owner_entry("group:orders-prod/billing.v2")
    "- {key_pattern: '^group:orders-prod/billing\\\\.v2$', owner: NAME}"
    """
    pattern = re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", key).replace("'", "''")
    return f"- {{key_pattern: '^{pattern}$', owner: NAME}}"


def resource_key(kind: str, *parts: str) -> str:
    """The key of a thing, as `public.resource_key` of the warehouse makes it."""
    return f"{kind}:{'/'.join(parts)}"
