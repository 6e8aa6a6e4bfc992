"""Addresses and names of resources, links to other systems, changes between hours, and the stored topology."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.causes import store_topology
from streamwarden.charts.changes import change_text, changes_of
from streamwarden.detectors.resources import KINDS, resource_key
from streamwarden.ui.links import UnknownError, display_name, external_links, key_columns, resource_path

from tests.sql.rows import HOUR, insert_row

NASTY = 'a/b ?#%"><script>\u202e..'


@pytest.mark.parametrize("kind", KINDS)
def test_the_address_of_a_resource_names_its_key(kind: str) -> None:
    columns = dict.fromkeys(KINDS[kind], "x") | {KINDS[kind][-1]: NASTY}
    path = resource_path(resource_key(kind, *columns.values()))
    assert path.isascii() and path.count("/") == 3
    assert key_columns(kind, unquote(path.rpartition("/")[2])) == columns


@pytest.mark.parametrize(("kind", "rest"), [("shelf", "a"), ("broker", "orders"), ("volume", "1/r"), ("topic", "c/")])
def test_an_address_without_a_key_is_unknown(kind: str, rest: str) -> None:
    with pytest.raises(UnknownError):
        key_columns(kind, rest)


def test_names_come_from_keys() -> None:
    keys = ("broker:c/3", "process:c/http://10.0.0.5:8778/jolokia", "reading:c/t/g", "volume:1/r/vol-1", "cluster:c")
    assert [display_name(key) for key in keys] == ["c broker 3", "10.0.0.5:8778", "t as read by g", "vol-1", "c"]


def test_links_to_other_systems_are_encoded() -> None:
    link = {"name": "UI", "kinds": ["topic"], "url": "https://ui.internal/{cluster}?t={topic}"}
    config = Config.model_validate({"external_links": [link]})
    assert external_links(config, "topic", {"cluster": "c", "topic": "a&b/é"}) == [
        {"name": "UI", "url": "https://ui.internal/c?t=a%26b%2F%C3%A9"}
    ]
    assert external_links(config, "broker", {"cluster": "c", "broker_id": "1"}) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"url": "https://ui/{group_id}"}, "`url` has {group_id}; a topic has {cluster}, {topic}"),
     ({"url": "https://ui/{topic!r}"}, "only names of key columns"),
     ({"url": "https://ui/{topic:{cluster}}"}, "only names of key columns"),
     ({"url": "https://ui/{"}, "is not a template"), ({"url": "javascript:{topic}"}, "http:// or https://"),
     ({"kinds": ["shelf"]}, "there is no kind of resource 'shelf'")],
)  # fmt: skip
def test_an_invalid_link_is_refused(change: dict[str, Any], problem: str) -> None:
    link = {"name": "UI", "kinds": ["topic"], "url": "https://ui.internal/{topic}"}
    with pytest.raises(ValueError, match="external_links") as error:
        Config.model_validate({"external_links": [link | change]})
    assert problem in str(error.value)


def test_changes_are_found_between_known_hours() -> None:
    states: list[dict[str, Any] | None] = [
        {"size_gib": 100, "restarted": "2026-01-05T06:00:00+00:00"},
        None,
        {"size_gib": None, "restarted": "2026-01-05T06:00:20+00:00"},  # the same start
        {"size_gib": 200, "restarted": "2026-01-05T08:30:00+00:00"},
    ]
    known = [{"hour": HOUR + timedelta(hours=n), "state": state} for n, state in enumerate(states)]
    assert [(row["hour"] - HOUR, change_text(row)) for row in changes_of(known)] == [
        (timedelta(hours=3), "Size: 100 GiB → 200 GiB"),
        (timedelta(hours=3), "Restarted at 2026-01-05 08:30 UTC"),
    ]


def test_hours_with_rebalances_are_changes() -> None:
    known = [{"hour": HOUR + timedelta(hours=n), "state": {"rebalances": count}} for n, count in enumerate((1, 0, 3))]
    assert [(row["hour"] - HOUR, row["text"]) for row in changes_of(known)] == [
        (timedelta(0), "1 rebalance"),
        (timedelta(hours=2), "3 rebalances"),
    ]


def test_the_stored_topology_is_that_of_the_newest_hour(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        for number, topic in ((0, "old"), (25, "new")):
            hour = HOUR + timedelta(hours=number)
            insert_row(connection, "inventory.topic_hourly", {"hour": hour, "cluster": "c", "topic": topic})
            place = {"hour": hour, "cluster": "c", "topic": topic, "partition": 0, "leader": 1}
            insert_row(connection, "metrics.partition_hourly", place)
    assert store_topology(warehouse, HOUR) == 2
    assert store_topology(warehouse, HOUR + timedelta(hours=25)) == 2
    assert store_topology(warehouse, HOUR) == 0  # a backfill
    with warehouse.connect() as connection:
        assert {*connection.execute(sa.text("select key from detect.resource")).scalars()} == {
            "cluster:c",
            "topic:c/new",
        }
        downstream = connection.execute(sa.text("select upstream, downstream from detect.resource_link")).all()
    assert downstream == [("broker:c/1", "topic:c/new")]
