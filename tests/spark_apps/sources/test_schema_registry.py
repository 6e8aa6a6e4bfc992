"""Schema Registries over HTTP: every version of every subject, and one plain gap per kind of failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamwarden.base.config import CONFIG_ENV

from spark_apps.sources import schema_registry
from spark_apps.sources.schema_registry import SchemaRegistry
from tests.spark_apps.sources.reading import rows_of
from tests.spark_apps.sources.registry import MONEY, ORDER, SCHEMAS, registry

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Counter[tuple[str, str]]]]:
    with registry() as running:
        yield running


@pytest.fixture
def read(served: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Rows and gaps (by resource) of a registry with this behavior."""

    def rows(behaviour: str, url: str = "", **settings: Any) -> tuple[Rows, dict[str, str]]:
        file = tmp_path / f"{behaviour}.yaml"
        settings |= {"url": url or f"{served[0]}/{behaviour}"}
        cluster = {"name": "shop", "bootstrap_servers": "127.0.0.1:1", "schema_registry": settings}
        file.write_text(yaml.safe_dump({"kafka": [cluster]}))
        monkeypatch.setenv(CONFIG_ENV, str(file))
        source = SchemaRegistry({"clusters": '["shop"]'})
        found = rows_of(source, "shop")
        return [row for row in found if row["version"]], {row["resource"]: row["gap"] for row in found if row["gap"]}

    return rows


def levels(rows: Rows) -> dict[str, tuple[str | None, str | None]]:
    return {row["subject"]: (row["compatibility"], row["compatibility_source"]) for row in rows}


@pytest.mark.parametrize("behaviour", ["good", "all_at_once", "busy"])
def test_every_version_of_every_subject_with_its_level(read: Any, behaviour: str) -> None:
    rows, gaps = read(behaviour)
    assert gaps == {}
    assert [(row["subject"], row["version"], row["schema_id"]) for row in rows] == [
        (schema["subject"], schema["version"], schema["id"]) for schema in SCHEMAS
    ]
    assert levels(rows) == {
        "orders-value": ("FULL_TRANSITIVE", "subject"),
        "copies/of orders-value ü": ("NONE", "subject"),
        "money": ("BACKWARD", "global"),
        "bill-value": ("BACKWARD", "global"),
    }
    first, bill = rows[0], rows[-1]
    assert (first["schema_type"], first["definition"], first["schema_references"]) == ("AVRO", ORDER, None)
    assert (bill["schema_type"], yaml.safe_load(bill["schema_references"])) == ("PROTOBUF", MONEY)
    assert datetime.now(UTC) >= first["observed_at"]


def test_each_subject_is_requested_once(read: Any, served: tuple[str, Counter[tuple[str, str]]]) -> None:
    before = served[1].copy()
    read("good")
    assert served[1] - before == {("good", "schemas"): 3, ("good", "config"): 5}


def test_with_user_and_password_and_without(read: Any) -> None:
    rows, gaps = read("secured", user="reader", password="s3cret")
    assert (len(rows), gaps) == (len(SCHEMAS), {})
    rows, gaps = read("secured", user="reader", password="hunter2")
    assert rows == []
    [gap] = gaps.values()
    assert gap.endswith("rejected user and password for GET /schemas (401).")
    assert gap.startswith("failed: the schema registry of 'shop' at http://127.0.0.1:")
    assert "hunter2" not in gap


def test_a_registry_without_subjects_is_no_gap(read: Any) -> None:
    assert read("empty") == ([], {})


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("throttled", "responds to GET /schemas with status 429."),
        ("page", "responds to GET /schemas with something other than JSON."),
        ("other", "responds to GET /schemas with something other than schemas."),
        ("no_version", "responds to GET /schemas with something other than schemas."),
        ("no_subject", "responds to GET /schemas with something other than schemas."),
        ("large_id", "unreadable data: ArrowInvalid: Value 1099511627776 too large to fit in C integer type"),
        ("elsewhere", "does not support GET /schemas: not a Schema Registry, or the wrong address."),
        ("hangs", "did not respond (ReadTimeout)."),
    ],
)
def test_a_failing_registry_is_one_gap_within_the_time_limit(read: Any, behaviour: str, reason: str) -> None:
    rows, gaps = read(behaviour, timeout_seconds=0.5 if behaviour == "hangs" else 60)
    assert rows == []
    assert list(gaps) == ["shop schema registry"]
    assert gaps["shop schema registry"].endswith(reason)


def test_a_refused_connection_is_a_gap(read: Any) -> None:
    rows, gaps = read("dead", url="http://127.0.0.1:1", user="user", password="hunter2")
    assert rows == []
    assert gaps == {
        "shop schema registry": "failed: the schema registry of 'shop' at http://127.0.0.1:1"
        " did not respond (ConnectError)."
    }


def test_one_failing_subject_loses_only_its_compatibility_level(read: Any) -> None:
    rows, gaps = read("one_broken")
    assert len(rows) == len(SCHEMAS)
    assert levels(rows)["money"] == (None, None)
    assert levels(rows)["bill-value"] == ("BACKWARD", "global")
    assert list(gaps) == ["shop schema registry subject money"]


def test_a_level_of_null_is_a_gap_and_not_the_text_none(read: Any) -> None:
    rows, gaps = read("null_level")
    assert levels(rows)["money"] == (None, None)
    assert gaps["shop schema registry subject money"].endswith("/config/money without a compatibility level.")


def test_without_permission_to_read_levels_the_schemas_are_read(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "AT_ONCE", 3)
    rows, gaps = read("no_levels")
    assert len(rows) == len(SCHEMAS)
    assert set(levels(rows).values()) == {(None, None)}
    assert list(gaps) == ["shop schema registry"]  # one message for all
    assert "(403)" in gaps["shop schema registry"]


def test_a_truncated_response_keeps_the_pages_before(read: Any) -> None:
    rows, gaps = read("dies")
    assert [row["subject"] for row in rows] == [schema["subject"] for schema in SCHEMAS[:3]]
    assert "did not respond (RemoteProtocolError)" in gaps["shop schema registry"]
