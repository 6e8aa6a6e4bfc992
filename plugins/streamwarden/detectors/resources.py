"""The kinds of resources that findings are about, and the keys of resources.

A key is `kind:` and the values of the kind's columns, joined by `/`: `broker:orders-prod/3`. `Resource.key` builds it
here, `public.resource_key` in SQL. The view `public.resource` lists all recently seen resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from streamwarden.base.catalog import KINDS

__all__ = ["KINDS", "Resource", "owner_entry", "resource_key"]


@dataclass(frozen=True)
class Resource:
    """A resource that a finding is about."""

    kind: str
    columns: Mapping[str, str]
    """Values of its key columns, in the order of `KINDS`."""
    name: str
    """Short display name."""
    owner: str | None = None
    application: str | None = None

    @property
    def key(self) -> str:
        """The resource's key, e.g. `broker:orders-prod/3`."""
        return resource_key(self.kind, *self.columns.values())


def cluster_of(key: str) -> str | None:
    """The Kafka cluster in the key of a resource; None for AWS resources.

    >>> cluster_of("broker:orders-prod/3")
    'orders-prod'
    """
    kind, _, parts = key.partition(":")
    return parts.split("/")[0] if KINDS.get(kind, ("",))[0] == "cluster" else None


def owner_entry(key: str) -> str:
    """The line of the config, under `owners:`, that sets an owner for the resource with this key.

    >>> owner_entry("group:orders-prod/billing.v2")
    "- {key_pattern: '^group:orders-prod/billing\\\\.v2$', owner: NAME}"
    """
    pattern = re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", key).replace("'", "''")
    return f"- {{key_pattern: '^{pattern}$', owner: NAME}}"


def resource_key(kind: str, *parts: str) -> str:
    """The key of a resource, equal to `public.resource_key` in the warehouse."""
    return f"{kind}:{'/'.join(parts)}"
