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
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from streamwarden.base.config import Config

from spark_apps.models.json_look_alikes import look_alikes
from spark_apps.models.json_shapes import FRAMED
from spark_apps.models.registered_schemas import Registered, RegisteredReport, registered_schemas
from spark_apps.models.schema_courses import BUCKETS
from spark_apps.models.schema_frames import with_common_frames
from spark_apps.models.schema_report import Exemplar, Report, one_row_each
from spark_apps.models.schema_versions import Profile, ShapeCount
from spark_apps.models.streams_topics import OWN_FORMATS
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
_SIDES = ("right", "left")
"""A store of an outer join: the first byte is the side of the value (Kafka Streams' LeftOrRightValueSerializer)."""
_UNKNOWN = "UNKNOWN "
"""Prefix of the shape of a value that may be framed, with an id that no registry knows."""
_MOST_UNKNOWN_SCHEMAS = 20
_NEAR_MS = 400 * 86_400_000
_TIMES_MS = (946_684_800_000, 4_102_444_800_000)
"""The years 2000 to 2100."""
_LOOK_ALIKES = "resource string, bucket int, value binary, is_deep boolean, count bigint, first bigint, last bigint"
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
        f.try_validate_utf8(_text()).alias("text"),
        f.when(_side_frame().isNotNull(), f.expr("substring(value, 2)"))
        .when(_frame().isNotNull(), f.col("value"))
        .alias("raw"),
        is_sample.alias("is_sample"),
    )


def _schemas_of(shapes: DataFrame, registered: DataFrame) -> dict[str, dict[int, Registered]]:
    """Schemas that frame values, by cluster and id, including the schemas that they reference."""
    seen = (
        shapes.where(f.startswith("shape", f.lit(FRAMED)))
        .select(_cluster().alias("cluster"), f.substring("shape", len(FRAMED) + 1, 10).alias("id"))
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


def shapes_of(values: DataFrame, registered: DataFrame | None = None) -> DataFrame:
    """Number of values by shape and bucket of a log, with the first and last position of each."""
    quantiles = f.percentile_approx("position", [i / BUCKETS for i in range(1, BUCKETS)], 1000)
    edges = {row.resource: row.edges for row in values.groupBy("resource").agg(quantiles.alias("edges")).collect()}
    shapes = values.select("resource", "position", "value").mapInArrow(look_alikes(edges), _LOOK_ALIKES)  # type: ignore[arg-type]
    registered_frame = registered_side_frame = f.lit(None).cast("bigint")
    if registered is not None:
        ids = registered.groupBy("cluster").agg(f.collect_set("schema_id").alias("ids"))
        shapes = shapes.join(f.broadcast(ids), _cluster() == f.col("cluster"), "left")
        registered_frame, registered_side_frame = (
            f.when(f.array_contains("ids", frame.try_cast("int")), frame) for frame in (_frame(), _side_frame())
        )
    shapes = shapes.withColumn("shape", _shape(registered_frame, registered_side_frame))
    is_unknown = f.startswith("shape", f.lit(FRAMED)) & f.coalesce(registered_frame, registered_side_frame).isNull()
    marked = f.when(_begins_with_time(), "BINARY").otherwise(f.concat(f.lit(_UNKNOWN), _schema_id()))
    shapes = shapes.withColumn("shape", f.when(is_unknown, marked).otherwise(f.col("shape")))
    return _counted(_judged(_counted(shapes)))


def _counted(shapes: DataFrame) -> DataFrame:
    return shapes.groupBy("resource", "bucket", "shape").agg(
        f.sum("count").alias("count"), f.min("first").alias("first"), f.max("last").alias("last")
    )


def _judged(shapes: DataFrame) -> DataFrame:
    """Decides whether values that may be framed are. Ids that no registry knows must be few, and each must occur again,
    unless the log has known ids too: another binary format that begins with a zero has as many ids as values."""
    of_log = Window.partitionBy("resource")
    is_unknown = f.startswith("shape", f.lit(_UNKNOWN))
    ids = f.size(f.collect_set(f.when(is_unknown, f.col("shape"))).over(of_log))
    values = f.sum(f.when(is_unknown, f.col("count"))).over(of_log)
    has_known = f.max(f.startswith("shape", f.lit(FRAMED))).over(of_log)
    are_ids = (ids <= _MOST_UNKNOWN_SCHEMAS) & (has_known | (2 * ids <= values))
    framed = f.concat(f.lit(FRAMED), _schema_id())
    return shapes.withColumn("shape", f.when(~is_unknown, f.col("shape")).when(are_ids, framed).otherwise("BINARY"))


def _shape(registered_frame: Column, registered_side_frame: Column) -> Column:
    """Exact type of a JSON value, without the precision of decimals; otherwise the format that its bytes indicate."""
    # Deep recursion in Spark ends in a stack overflow, which ends the JVM.
    exact = f.schema_of_variant(f.try_parse_json(f.when(~f.col("is_deep"), _text())))
    fractions = f.regexp_replace(exact, r"DECIMAL\([0-9]+,[1-9][0-9]*\)", "DOUBLE")
    # A serialized long begins with zeros like a frame, but is always 8 bytes long.
    may_be_long = f.length("value") == 8
    of_serializer = f.coalesce(
        fractions,
        f.concat(f.lit(FRAMED), f.coalesce(registered_frame, registered_side_frame)),
        f.when(may_be_long & f.expr("substring(value, 1, 1) in (X'00', X'FF')"), "LONG")
        .when(_frame().isNotNull(), f.concat(f.lit(FRAMED), _frame()))
        .when(f.expr("is_valid_utf8(cast(value as string))") & ~f.contains(f.col("value"), f.lit(b"\x00")), "TEXT")
        .otherwise("BINARY"),
    )
    is_own_format = f.col("resource").rlike(OWN_FORMATS) | _is_list() | _has_record_context()
    return f.when(is_own_format, "BINARY").otherwise(of_serializer)


def _schema_id() -> Column:
    """The id in a shape, as text."""
    return f.regexp_extract("shape", "[0-9]+$", 0)


def _first_milliseconds() -> Column:
    return f.conv(f.hex(f.expr("substring(value, 1, 8)")), 16, 10).try_cast("bigint")


def _begins_with_time() -> Column:
    """Whether the first 8 bytes are a time in milliseconds near the time of the record, as in a buffer of Kafka
    Streams.

    The id and payload of a frame read as a time are far from it, except for ids near 105,000.
    """
    is_near = f.abs(_first_milliseconds() - f.shiftright("first", 20)) < _NEAR_MS
    is_near &= _first_milliseconds().between(*_TIMES_MS)
    return (f.length("value") > 8) & f.coalesce(is_near, f.lit(False))


def _context_topic() -> Column:
    """The topic in a record context; null where the four bytes before it are no length."""
    length = "try_cast(conv(hex(substring(value, 17, 4)), 16, 10) as int)"
    return f.expr(f"decode(substring(value, 21, {length}), 'ISO-8859-1')")


def _has_record_context() -> Column:
    """Whether the value begins like a buffer of Kafka Streams, whatever the store's name: time, offset, and the
    length and name of the record's topic (ProcessorRecordContext)."""
    topic = _context_topic()
    has_topic = _number_at(17).between(1, 249) & topic.rlike("^[a-zA-Z0-9._-]+$") & (f.length(topic) == _number_at(17))
    return f.coalesce(_first_milliseconds().between(*_TIMES_MS) & has_topic, f.lit(False))


def _is_list() -> Column:
    """Whether the value is a list of Kafka Streams (ListSerializer), as in the store of an outer join: 1, the number of
    entries, and the length of the first."""
    entries, length = _number_at(2), _number_at(6)
    rest = f.length("value") - 9
    fits = ((entries == 1) & (length == rest)) | ((entries > 1) & (length < rest))
    return f.coalesce(f.expr("startswith(value, X'010000')") & fits, f.lit(False))


def _cluster() -> Column:
    return f.regexp_extract("resource", "(.*)/", 1)


def _text() -> Column:
    """The value as text; for an outer join's store, as JSON with the side as its key."""
    is_of_side = f.expr("substring(value, 1, 1) in (X'00', X'01') and substring(value, 2, 1) in (X'7B', X'5B')")
    side = f.when(f.expr("startswith(value, X'00')"), _SIDES[0]).otherwise(_SIDES[1])
    of_side = f.concat(f.lit('{"'), side, f.lit('":'), f.expr("cast(substring(value, 2) as string)"), f.lit("}"))
    return f.when(is_of_side, of_side).otherwise(f.expr("cast(value as string)"))


def _frame() -> Column:
    """The schema id in a Schema Registry's frame, if the value begins with one."""
    return f.when((f.length("value") >= 5) & f.expr("startswith(value, X'00')"), _schema_id_at(2))


def _side_frame() -> Column:
    """The same after an outer join's side byte; no registry assigns the id 0."""
    begins = f.expr("startswith(value, X'0100')") | f.expr("startswith(value, X'0000000000')")
    return f.when((f.length("value") >= 6) & (f.length("value") != 8) & begins, _schema_id_at(3))


def _schema_id_at(place: int) -> Column:
    """Schema ids are positive 32-bit integers; null for other bytes."""
    return f.when(_number_at(place) < 1 << 31, _number_at(place))


def _number_at(place: int) -> Column:
    """Four bytes at a position (the first is 1) as an unsigned integer."""
    return f.conv(f.hex(f.expr(f"substring(value, {place}, 4)")), 16, 10).cast("bigint")


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
