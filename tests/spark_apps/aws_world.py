"""Helpers of the tests of AWS sources: a config for a world, and sources read in this process, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from demo.aws_endpoint import AwsEndpoint
from demo.ebs_load import LoadModel
from demo.world import World
from streamwarden.base.config import CONFIG_ENV

from spark_apps.sources.aws_client import Connection, Place, PlacesSource
from spark_apps.sources.cloudwatch import Span, _Reader

ACCOUNT, OTHER, REGION = "123456789012", "210987654321", "eu-central-1"
NOW = datetime(2026, 11, 18, 12, 20, tzinfo=UTC)
HOUR = NOW.replace(minute=0)
INSTANCE = "i-0aaaaaaaaaaaaaaa1"


def volume_id(number: int) -> str:
    return f"vol-0{number:016x}"


def world_of(volumes: int, load: LoadModel | None = None) -> World:
    """One instance with so many gp3 volumes."""
    world = World(seed=3, now=lambda: NOW)
    world.add_instance(ACCOUNT, REGION, INSTANCE, "m5.4xlarge")
    for number in range(volumes):
        world.add_volume(
            ACCOUNT, REGION, volume_id(number), "gp3", 100, instance_id=INSTANCE, device="/dev/sdf", load=load
        )
    return world


def environment(
    endpoint: AwsEndpoint, folder: Path, accounts: Iterable[Mapping[str, Any]] | None = None
) -> dict[str, str]:
    """Sets the environment of a task: endpoint, keys, and a config with these accounts."""
    file = folder / "streamwarden.yaml"
    file.write_text(json.dumps({"aws": list(accounts or [{"account": ACCOUNT, "regions": [REGION]}])}))
    return {**endpoint.environment(ACCOUNT, REGION), CONFIG_ENV: str(file)}


def read_place(source: type[PlacesSource], place: Place, **options: str) -> list[dict[str, Any]]:
    """All rows of one place."""
    return [row for lot in source(options).read_place(Connection(place)) for row in lot]


def series(resource_id: str, name: str, stat: str = "Sum", batch: int = 0, **place: str) -> dict[str, Any]:
    """One row of a series frame, as `read_metrics` numbers it."""
    return {
        "account": place.get("account", ACCOUNT),
        "region": place.get("region", REGION),
        "resource_id": resource_id,
        "metric": name,
        "namespace": "AWS/EBS",
        "name": name,
        "dimensions": [("VolumeId", resource_id)],
        "stat": stat,
        "batch": batch,
    }


_SERIES = pa.schema(
    [
        *((name, pa.string()) for name in ("account", "region", "resource_id", "metric", "namespace", "name")),
        ("dimensions", pa.map_(pa.string(), pa.string())),
        ("stat", pa.string()),
        ("batch", pa.int32()),
    ]
)


def ask(rows: list[dict[str, Any]], span: Span) -> list[dict[str, Any]]:
    """Rows that a task of `read_metrics` returns for these series."""
    batch = pa.RecordBatch.from_pylist(rows, schema=_SERIES)
    return [row for answer in _Reader(span, 1).read(iter([batch])) for row in answer.to_pylist()]


def points(answer: list[dict[str, Any]], resource_id: str, metric: str | None = None) -> dict[datetime, float]:
    """The points of a resource (and metric)."""
    return {
        row["at"]: row["value"]
        for row in answer
        if row["resource_id"] == resource_id and row["at"] and metric in (None, row["metric"])
    }


def gaps(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Gap by resource."""
    return {row["resource"]: row["gap"] for row in rows if row.get("gap")}
