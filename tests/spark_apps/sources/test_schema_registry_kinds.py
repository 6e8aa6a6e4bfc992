"""AWS Glue and Apicurio registries: the same rows as of Confluent's, and frames of values that lead to them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.aws_glue import GlueRegistry, GlueSchema
from demo.world import World
from pydantic import ValidationError
from streamwarden.base.config import CONFIG_ENV, Config, KafkaCluster

from spark_apps.models.schema_frames import with_common_frames
from spark_apps.models.value_shapes import schema_id_in_frame
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources.schema_registry import SchemaRegistry
from spark_apps.sources.schema_registry_glue import glue_schema_id
from tests.spark_apps.aws_world import ACCOUNT, NOW, REGION
from tests.spark_apps.sources.apicurio import ORDER, apicurio
from tests.spark_apps.sources.reading import rows_of

FIRST, SECOND, THIRD = (f"{n}7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63" for n in ("f", "1", "2"))
Rows = list[dict[str, Any]]
Read = Callable[..., tuple[Rows, dict[str, str]]]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Rows and gaps (by resource) of the registry of the cluster shop."""

    def rows(**registry: Any) -> tuple[Rows, dict[str, str]]:
        file = tmp_path / "streamwarden.yaml"
        cluster = {"name": "shop", "bootstrap_servers": "127.0.0.1:1", "schema_registry": registry}
        file.write_text(yaml.safe_dump({"kafka": [cluster], "aws": [{"account": ACCOUNT, "regions": [REGION]}]}))
        monkeypatch.setenv(CONFIG_ENV, str(file))
        source = SchemaRegistry({"clusters": '["shop"]'})
        found = rows_of(source, "shop")
        return [row for row in found if row["version"]], {row["resource"]: row["gap"] for row in found if row["gap"]}

    return rows


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[AwsEndpoint, GlueRegistry]]:
    world = World(seed=3, now=lambda: NOW)
    registry = GlueRegistry(ACCOUNT, REGION, "streams")
    registry.schemas = [GlueSchema(f"topic-{n:03}", "AVRO", []) for n in range(120)]  # more than a page
    versions = [
        (FIRST, ORDER, "AVAILABLE"),
        (SECOND, ORDER.replace("long", "string"), "AVAILABLE"),
        (THIRD, "", "FAILURE"),
    ]
    registry.schemas[110] = GlueSchema("orders", "AVRO", versions, "BACKWARD_ALL")
    world.glue.append(registry)
    with AwsEndpoint(world) as endpoint:
        for name, value in endpoint.environment(ACCOUNT, REGION).items():
            monkeypatch.setenv(name, value)
        yield endpoint, registry


GLUE = {"kind": "glue", "account": ACCOUNT, "region": REGION, "registry": "streams"}


def test_available_versions_of_a_glue_registry_with_their_level(glue: tuple[Any, Any], read: Read) -> None:
    rows, gaps = read(**GLUE)
    assert gaps == {}
    assert [(row["subject"], row["version"], row["schema_id"], row["schema_type"]) for row in rows] == [
        ("orders", 1, glue_schema_id(FIRST), "AVRO"), ("orders", 2, glue_schema_id(SECOND), "AVRO")
    ]  # fmt: skip
    assert (rows[0]["definition"], rows[0]["compatibility"], rows[0]["compatibility_source"]) == (
        ORDER, "BACKWARD_TRANSITIVE", "subject"
    )  # fmt: skip
    assert glue_schema_id(FIRST) == 0x77B4A7F0


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("ListSchemas", "access denied for glue:ListSchemas; grant it"),
        ("GetSchemaVersion", "access denied for glue:GetSchemaVersion; grant it"),
    ],
)
def test_a_missing_permission_is_one_gap(glue: tuple[Any, Any], read: Read, action: str, reason: str) -> None:
    glue[0].faults.inject("deny", times=None, action=action)
    rows, gaps = read(**GLUE)
    assert rows == []
    assert list(gaps) == ["shop schema registry"]
    assert reason in gaps["shop schema registry"]


def test_a_level_that_cannot_be_read_is_a_gap_of_its_schema(glue: tuple[Any, Any], read: Read) -> None:
    glue[0].faults.inject("deny", times=None, action="GetSchema")
    rows, gaps = read(**GLUE)
    assert [row["compatibility"] for row in rows] == [None, None]
    assert "glue:GetSchema" in gaps["shop schema registry subject orders"]


def test_an_unknown_registry_and_equal_beginnings_of_ids_are_gaps(glue: tuple[Any, Any], read: Read) -> None:
    assert "EntityNotFoundException" in read(**GLUE | {"registry": "other"})[1]["shop schema registry"]
    alike = str(UUID(int=UUID(FIRST).int + 1))
    glue[1].schemas[0].versions.append((alike, ORDER, "AVAILABLE"))
    assert "begin with the same 31 bits" in read(**GLUE)[1]["shop schema registry"]


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with apicurio() as url:
        yield url


@pytest.mark.parametrize(
    ("path", "ids", "offset"), [("", None, 0), ("", "global", 100), ("/apis/registry/v2", None, 100)]
)
def test_versions_of_an_apicurio_registry(served: str, read: Read, path: str, ids: str | None, offset: int) -> None:
    settings = {"kind": "apicurio", "url": f"{served}/good{path}"} | ({"ids": ids} if ids else {})
    rows, gaps = read(**settings)
    assert gaps == {}
    assert [(row["subject"], row["version"], row["schema_id"], row["schema_type"]) for row in rows] == [
        ("orders-value", 1, offset + 7, "AVRO"),
        ("orders-value", 2, offset + 8, "AVRO"),
        ("billing/bills/ü", 100_001, offset + 9, "PROTOBUF"),
        ("billing/money", 1, offset + 10, "PROTOBUF"),
    ]
    assert {row["subject"]: (row["compatibility"], row["compatibility_source"]) for row in rows} == {
        "orders-value": ("FULL", "subject"),
        "billing/bills/ü": ("BACKWARD", "global"),
        "billing/money": ("BACKWARD", "global"),
    }
    assert rows[0]["definition"] == ORDER
    [reference] = yaml.safe_load(rows[2]["schema_references"])
    assert reference == {"name": "money.proto", "subject": "billing/money", "version": 1}


def test_a_version_that_was_deleted_since_it_was_listed_is_left_out(served: str, read: Read) -> None:
    rows, gaps = read(kind="apicurio", url=f"{served}/deleted")
    assert gaps == {}
    assert [(row["subject"], row["version"]) for row in rows][:2] == [("orders-value", 2), ("billing/bills/ü", 100_001)]


def test_versions_are_numbered_in_the_order_of_the_list_whichever_response_comes_first(served: str, read: Read) -> None:
    rows, _ = read(kind="apicurio", url=f"{served}/overtaken")
    assert [row["version"] for row in rows if row["subject"] == "orders-value"] == [100_001, 100_002]


def test_a_version_that_is_a_time_is_numbered(served: str, read: Read) -> None:
    rows, gaps = read(kind="apicurio", url=f"{served}/dated")
    assert gaps == {}
    numbers = {row["version"] for row in rows if row["subject"] == "orders-value"}
    assert len(numbers) == 2 and 2 in numbers and max(numbers) > 100_000


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        ("odd", "unreadable data: TypeError"),
        ("page", "with something other than JSON."),
        ("secured", "rejected user and password for GET"),
        ("good/elsewhere", "not a Schema Registry, or the wrong address."),
    ],
)
def test_a_failing_apicurio_registry_is_one_gap(served: str, read: Read, behavior: str, reason: str) -> None:
    rows, gaps = read(kind="apicurio", url=f"{served}/{behavior}")
    assert rows == []
    assert list(gaps) == ["shop schema registry"]
    assert reason in gaps["shop schema registry"]


@pytest.mark.parametrize(
    ("registry", "problem"),
    [
        ({"kind": "glue", "url": "http://r:8081"}, "needs `account` and `region`, and has no `url`"),
        ({"kind": "apicurio"}, "`kind: apicurio` needs `url`"),
        ({}, "`kind: confluent` needs `url`"),
    ],
)
def test_each_kind_needs_its_keys(registry: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": "b:1", "schema_registry": registry}]})


def test_frames_of_other_registries_lead_to_the_same_ids(spark: Any) -> None:
    kinds = {"g": GLUE, "a": {"kind": "apicurio", "url": "http://r"}, "c": {"url": "http://r"}}
    clusters = [
        KafkaCluster.model_validate({"name": name, "bootstrap_servers": "b:1", "schema_registry": registry})
        for name, registry in kinds.items()
    ]
    glue = UUID(FIRST).bytes + b"value"
    of_four, of_eight = b"\x00" + struct.pack(">I", 7) + b"value", b"\x00" + struct.pack(">Q", 107) + b"value"
    values = [
        ("g/t", b"\x03\x00" + glue), ("g/t", b"\x03\x05" + glue),
        ("g/t", b"\x03\x07" + glue), ("g/t", b"\x03\x00short"),
        ("a/t", of_four), ("a/t", of_eight), ("a/t", of_eight[:9]), ("c/t", b"\x03\x00" + glue), ("c/t", of_eight),
    ]  # fmt: skip
    frame = driver_rows(spark, [(n, *row) for n, row in enumerate(values)], "n int, resource string, value binary")
    found = (
        with_common_frames(frame, clusters)
        .select("n", "value", schema_id_in_frame().alias("id"))
        .orderBy("n")
        .collect()
    )
    assert [row.id for row in found] == [glue_schema_id(FIRST)] * 2 + [None, None, 7, 107, 0, None, 0]
    assert [bytes(found[n].value)[5:] for n in (0, 1, 4, 5)] == [b"value"] * 4
    assert [bytes(found[n].value) for n in (2, 3, 7, 8)] == [values[n][1] for n in (2, 3, 7, 8)]
