"""Addresses and names of resources on pages, from their keys alone, and links to other systems."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.resources import KINDS
from streamwarden.store.queries import Row

KIND_LABELS = {
    "volume": ("EBS volume", "EBS volumes"),
    "instance": ("EC2 instance", "EC2 instances"),
    "instances": ("instance group", "instance groups"),
    "host": ("host", "hosts"),
    "cluster": ("Kafka cluster", "Kafka clusters"),
    "broker": ("broker", "brokers"),
    "process": ("application process", "application processes"),
    "store": ("state store", "state stores"),
    "application": ("application", "applications"),
    "topic": ("topic", "topics"),
    "connector": ("connector", "connectors"),
    "reading": ("group on a topic", "groups on topics"),
    "group": ("consumer group", "consumer groups"),
    "client": ("client", "clients"),
}
"""Kind → its name for people, singular and plural."""


class UnknownError(StreamwardenError):
    """The address names something that does not exist."""


def key_columns(kind: str, rest: str) -> dict[str, str]:
    """The key columns of a resource from its address. Only the last one can contain `/`.

    Raises:
        UnknownError: there is no such kind, or the key has too few parts.
    """
    if kind not in KINDS:
        raise UnknownError(f"There is no kind of resource {kind[:40]!r}; the kinds are {', '.join(KINDS)}.")
    names = KINDS[kind]
    parts = rest.split("/", len(names) - 1)
    if len(parts) != len(names) or not all(parts):
        raise UnknownError(f"A key of kind {kind} has {len(names)} parts: {'/'.join(names)}.")
    return dict(zip(names, parts, strict=True))


def resource_path(key: str) -> str:
    """The path of a resource's page, e.g. `/resources/topic/orders-prod%2Forders`: the key is one segment."""
    kind, _, rest = key.partition(":")
    return f"/resources/{quote(kind, safe='')}/{quote(rest, safe='')}"


def display_name(key: str) -> str:
    """Short name of a resource from its key alone: `broker 3`, `10.0.0.5:8778`."""
    kind, _, rest = key.partition(":")
    names = KINDS.get(kind, ())
    parts = rest.split("/", max(len(names) - 1, 0))
    last = parts[-1]
    if kind == "broker":
        return f"{parts[0]} broker {last}"
    if kind in ("host", "process"):
        return urlsplit(last).netloc or last
    return f"{parts[1]} as read by {last}" if kind == "reading" and len(parts) == 3 else last


def external_links(config: Config, kind: str, columns: Mapping[str, str]) -> list[Row]:
    """Links of the config for a kind: name and URL, with the key columns percent-encoded."""
    values = {name: quote(value, safe="") for name, value in columns.items()}
    return [
        {"name": link.name, "url": link.url.format_map(values)} for link in config.external_links if kind in link.kinds
    ]
