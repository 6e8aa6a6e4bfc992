"""State stores: the values in their changelogs, the schema versions that the log holds, and the changes between
them.

Each hour reads the log again, sampled evenly within bounds (see `spark_apps.sources.changelog_values`): only the log
shows what compaction has left of older versions, so an hour gives the same result whenever it runs. Spark determines
the exact type of each value (`schema_of_variant`; Spark's schema inference would merge conflicts), once for values
that look alike, and counts equal shapes per section of the log. `spark_apps.models.schema_versions` finds versions
and changes in these counts, per changelog. Values framed by a Schema Registry are counted by schema id, and the
schemas are compared (`spark_apps.models.registered_schemas`): a registry has few, so that is plain Python.
"""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from typing import Any, cast

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from streamwarden.base.config import Config

from spark_apps.models.json_shapes import FRAMED
from spark_apps.models.registered_schemas import Registered, RegisteredReport, registered_schemas
from spark_apps.models.schema_frames import with_common_frames
from spark_apps.models.schema_report import Exemplar, Report, one_row_each
from spark_apps.models.schema_versions import Profile, ShapeCount
from spark_apps.models.value_shapes import (
    cluster_of_changelog,
    schema_id_after_side,
    schema_id_in_frame,
    shapes_of,
    text_of_value,
)
from spark_apps.runtime.kept import kept
from spark_apps.runtime.warehouse_io import read_query
from spark_apps.sources.changelog_values import ChangelogValues
from spark_apps.sources.kafka_client import clusters_of, read_clusters, unreadable
from spark_apps.sources.schema_registry import SchemaRegistry

_WINDOWED_SHARE = 0.9
_SAMPLE = 2000
"""Number of values per changelog whose strings are examined."""
_PATHS = (
    "array<struct<version: int, path: string, type: string, count: bigint, parents: bigint,"
    " enum_values: array<string>, first_position: bigint, last_position: bigint, first_offset: string,"
    " last_offset: string, example: string>>"
)
_CHANGES = (
    "array<struct<path: string, change: string, old_version: int, new_version: int, old_type: string,"
    " new_type: string, old_presence: double, new_presence: double, old_count: bigint, new_count: bigint,"
    " breaks_backward: boolean, breaks_forward: boolean, strict_only: boolean, old_last_position: bigint,"
    " new_first_position: bigint, old_last_offset: string, new_first_offset: string, old_example: string,"
    " new_example: string, old_schema_id: int, new_schema_id: int>>"
)
_SCHEMAS = (
    "array<struct<schema_id: int, registered_as: string, format: string, values: bigint, first_offset: string,"
    " last_offset: string>>"
)
_REPORT = (
    "resource string, gap string, format string, readable bigint, versions int, uncompared string,"
    f" schemas {_SCHEMAS}, paths {_PATHS}, changes {_CHANGES}"
)
_REGISTERED = (
    "cluster string, subject string, version int, schema_id int, schema_type string, definition string,"
    " schema_references string"
)
_REFERENCES = "array<struct<name: string, subject: string, version: int>>"


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """All changelogs of all clusters, up to the end of the hour."""
    watched = clusters_of(config)
    clusters = [cluster.name for cluster in watched]
    sample = config.gathering.changelog_sample_values
    sources = {
        "changelog_values": read_clusters(
            spark, ChangelogValues, clusters, hour=hour.isoformat(), sample_values=sample
        ),
        # Schemas that a registry has deleted, or cannot return now, still frame values.
        "known_schemas": read_query(
            spark,
            "select cluster, null, null, schema_id, schema_type, definition, schema_references::text"
            " from inventory.registered_schema",
            _REGISTERED,
        ),
    }
    if registries := [cluster.name for cluster in watched if cluster.schema_registry]:
        sources["schema_registry"] = read_clusters(spark, SchemaRegistry, registries, levels="no")
    return sources


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Stores, their schema versions per path, and changes between them; `gaps`: changelogs that cannot be profiled."""
    rows = sources["changelog_values"]
    # Partial reads do not count: a changelog with a gap has no profile in this hour.
    topics = _topics(rows)
    refused = topics.where("gap is not null").select("resource")
    values = rows.where("value is not null").join(f.broadcast(refused), "resource", "left_anti")
    values = with_common_frames(values, clusters_of(config))
    names = sorted(row.resource for row in topics.where("gap is null").select("resource").collect())
    report = _reports(values, names, _registered(sources), show_values=config.gathering.show_example_values)
    topics = _with_gaps(topics, report)
    named = topics.select("resource", "cluster", "topic")
    paths = report.select("resource", f.inline("paths")).join(named, "resource")
    changes = report.select("resource", f.inline("changes")).join(named, "resource")
    return {
        "gaps": report.where("gap is not null").select("resource", "gap"),
        "metrics.state_store_hourly": _stores(topics, rows, report.drop("gap")),
        "metrics.state_store_path_hourly": paths.select(
            "cluster",
            "topic",
            "version",
            "path",
            "type",
            "count",
            "parents",
            f.to_json("enum_values").alias("enum_values"),
            _written_at("first_position").alias("first_at"),
            _written_at("last_position").alias("last_at"),
            "first_offset",
            "last_offset",
            "example",
        ),
        "metrics.state_store_change_hourly": changes.select(
            "cluster",
            "topic",
            "path",
            "change",
            "old_version",
            "new_version",
            "old_type",
            "new_type",
            "old_presence",
            "new_presence",
            "old_count",
            "new_count",
            "breaks_backward",
            "breaks_forward",
            "strict_only",
            "old_last_offset",
            _written_at("old_last_position").alias("old_last_at"),
            "new_first_offset",
            _written_at("new_first_position").alias("new_first_at"),
            "old_example",
            "new_example",
            "old_schema_id",
            "new_schema_id",
        ),
    }


def _registered(sources: dict[str, DataFrame]) -> DataFrame | None:
    """Registered schemas, from the registry and from earlier hours; None: no registry was queried."""
    frames = [sources[name] for name in ("schema_registry", "known_schemas") if name in sources]
    columns = [column.split()[0] for column in _REGISTERED.split(", ")]
    rows = [frame.select(*columns).where("schema_id is not null and definition is not null") for frame in frames]
    return reduce(DataFrame.unionByName, rows) if rows else None


def _reports(values: DataFrame, names: list[str], registered: DataFrame | None, *, show_values: bool) -> DataFrame:
    """Reports on these changelogs. A changelog that Spark fails on gets a gap."""
    some = values.where(f.col("resource").isin(names))
    try:
        report = kept(schema_report(some, registered, show_values=show_values))
        report.count()
    except Exception as error:  # a topic may hold any bytes
        if len(names) == 1:
            return values.sparkSession.createDataFrame([_without_report(names[0], error)], _REPORT)
        halves = (names[: len(names) // 2], names[len(names) // 2 :])
        return reduce(
            DataFrame.unionByName, (_reports(some, half, registered, show_values=show_values) for half in halves)
        )
    return report


def _without_report(resource: str, error: Exception) -> dict[str, Any]:
    return {"resource": resource, "gap": unreadable(error)}


def _with_gaps(topics: DataFrame, report: DataFrame) -> DataFrame:
    found = report.select("resource", f.col("gap").alias("found"))
    joined = topics.join(f.broadcast(found), "resource", "left")
    return joined.withColumn("gap", f.coalesce("gap", "found")).drop("found")


def schema_report(values: DataFrame, registered: DataFrame | None, *, show_values: bool) -> DataFrame:
    """One row per changelog with its paths and changes, from columns resource, partition, offset, position, value."""
    # Persisted, because it is read for the schemas, the exemplars, and the report.
    shapes = kept(shapes_of(values, registered))
    schemas = _schemas_of(shapes, registered) if registered is not None else {}

    nothing = dict.fromkeys(cast(StructType, StructType.fromDDL(_REPORT)).names)

    def report(shapes: pd.DataFrame, exemplars: pd.DataFrame) -> pd.DataFrame:
        try:
            return report_of(shapes, exemplars, schemas, show_values=show_values)
        except Exception as error:  # a topic may hold any bytes: the others are profiled nevertheless
            return pd.DataFrame([nothing | _without_report(shapes["resource"].iloc[0], error)], dtype=object)

    return (
        shapes.groupBy("resource")
        .cogroup(exemplars_of(values, shapes).groupBy("exemplar_of"))
        .applyInPandas(report, _REPORT)  # type: ignore[arg-type]
    )


def exemplars_of(values: DataFrame, shapes: DataFrame) -> DataFrame:
    """The records that a report examines: a bounded number per changelog, including an even sample."""
    wanted = shapes.groupBy("resource").applyInPandas(_wanted, "resource string, position bigint")
    every = shapes.groupBy("resource").agg(f.ceil(f.sum("count") / _SAMPLE).alias("every"))
    is_sample = f.expr("pmod(xxhash64(position), every) = 0")
    found = (
        values.join(f.broadcast(every), "resource")
        .join(f.broadcast(wanted.withColumn("wanted", f.lit(True))), ["resource", "position"], "left")
        .where(f.col("wanted") | is_sample)
    )
    # An alias: both sides of the cogroup come from the same frame.
    return found.select(
        f.col("resource").alias("exemplar_of"),
        "position",
        "partition",
        "offset",
        f.try_validate_utf8(text_of_value()).alias("text"),
        f.when(schema_id_after_side().isNotNull(), f.expr("substring(value, 2)"))
        .when(schema_id_in_frame().isNotNull(), f.col("value"))
        .alias("raw"),
        is_sample.alias("is_sample"),
    )


def _schemas_of(shapes: DataFrame, registered: DataFrame) -> dict[str, dict[int, Registered]]:
    """Schemas that frame values, by cluster and id, including the schemas that they reference."""
    seen = (
        shapes.where(f.startswith("shape", f.lit(FRAMED)))
        .select(cluster_of_changelog().alias("cluster"), f.substring("shape", len(FRAMED) + 1, 10).alias("id"))
        .select("cluster", f.col("id").try_cast("int").alias("schema_id"))
        .distinct()
    )
    if seen.isEmpty():
        return {}
    referred = (
        registered.select("cluster", f.explode(f.from_json("schema_references", _REFERENCES)).alias("r"))
        .select("cluster", "r.subject", "r.version")
        .distinct()
    )
    needed = registered.join(f.broadcast(seen), ["cluster", "schema_id"], "left_semi").unionByName(
        registered.join(f.broadcast(referred), ["cluster", "subject", "version"], "left_semi")
    )
    with_references = needed.withColumn("references", f.from_json("schema_references", _REFERENCES))
    return registered_schemas([row.asDict(recursive=True) for row in with_references.distinct().collect()])


def _topics(rows: DataFrame) -> DataFrame:
    """One row per changelog: its owner, the size of its log, and its gap, if any."""
    return (
        rows.where("offset is null and topic is not null")
        .groupBy("resource", "cluster", "topic", "application_id", "store")
        .agg(
            f.max("gap").alias("gap"),
            f.sum(f.expr("log_end_offset - hour_start_offset")).alias("records"),
            f.sum(f.expr("log_end_offset - log_start_offset")).alias("values_total"),
        )
    )


def _stores(topics: DataFrame, rows: DataFrame, report: DataFrame) -> DataFrame:
    read = (
        rows.where("offset is not null")
        .groupBy("resource")
        .agg(
            f.count_if(f.col("value").isNull()).alias("tombstones"),
            f.count("value").alias("values_profiled"),
            f.sum(f.length("value")).alias("bytes"),
            f.min("at").alias("first_at"),
            f.max("at").alias("last_at"),
            (f.avg(_is_windowed().cast("int")) >= _WINDOWED_SHARE).alias("windowed"),
        )
    )
    whole = f.col("gap").isNull()

    def known(column: str, default: Any = None) -> Column:
        return f.when(whole, f.coalesce(f.col(column), f.lit(default))).alias(column)

    return (
        topics.join(read, "resource", "left")
        .join(report, "resource", "left")
        .select(
            "cluster",
            "topic",
            f.coalesce("application_id", f.lit("")).alias("application_id"),
            f.coalesce("store", f.lit("")).alias("store"),
            "format",
            known("windowed"),
            known("records", 0),
            known("tombstones", 0),
            f.when(whole, f.coalesce(f.col("values_profiled") - f.col("readable"), f.lit(0))).alias(
                "unreadable_values"
            ),
            known("values_profiled", 0),
            known("values_total", 0),
            known("versions"),
            known("uncompared"),
            f.to_json("schemas").alias("schemas"),
            known("bytes", 0),
            known("first_at"),
            known("last_at"),
        )
    )


def _is_windowed() -> Column:
    """Whether a window's start or end in milliseconds is 12 (time) or 16 and 8 (session) bytes before the end of the
    key."""

    def moment(place: int) -> Column:
        milliseconds = f.conv(f.hex(f.expr(f"substring(key, {place}, 8)")), 16, 10).try_cast("bigint")
        return f.abs(milliseconds - f.unix_millis("at")) < 400 * 86_400_000

    size = f.length("key")
    return (((size > 12) & moment(-12)) | ((size > 16) & moment(-16) & moment(-8))) & f.col("key").isNotNull()


def _written_at(position: str) -> Column:
    return f.timestamp_millis(f.shiftright(position, 20))


def _profile(shapes: pd.DataFrame) -> Profile:
    columns = ["bucket", "shape", "count", "first", "last"]
    return Profile([ShapeCount(*row) for row in shapes[columns].itertuples(index=False, name=None)])


def _wanted(shapes: pd.DataFrame) -> pd.DataFrame:
    try:
        positions = _profile(shapes).wanted_positions()
    except Exception:  # the report fails in the same way, and reports it
        positions = []
    return pd.DataFrame({"resource": shapes["resource"].iloc[0], "position": positions})


def report_of(
    shapes: pd.DataFrame,
    exemplars: pd.DataFrame,
    schemas: dict[str, dict[int, Registered]],
    *,
    show_values: bool,
) -> pd.DataFrame:
    """The report on one changelog, in a task: its size grows with the number of paths, not of values."""
    profile, resource = _profile(shapes), shapes["resource"].iloc[0]
    known = {
        row.position: Exemplar(row.partition, row.offset, row.text, row.raw, row.is_sample)
        for row in exemplars.itertuples(index=False)
    }
    report = Report(profile, known, show_values=show_values)
    registered = RegisteredReport(profile, known, schemas.get(resource.rpartition("/")[0], {}), show_values=show_values)
    return pd.DataFrame(
        [
            {
                "resource": resource,
                "gap": None,
                "format": profile.format,
                "readable": profile.readable_values,
                "versions": profile.newest_version + registered.versions,
                "uncompared": registered.uncompared,
                "schemas": registered.schema_rows() or None,
                "paths": report.path_rows() + registered.path_rows(),
                "changes": one_row_each(report.change_rows() + report.constant_rows() + registered.change_rows()),
            }
        ]
    )
