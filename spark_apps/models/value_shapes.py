"""Shapes of a changelog's values, as Spark columns: the exact type of JSON, else the format that the bytes indicate."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_apps.models.json_look_alikes import look_alikes
from spark_apps.models.json_shapes import FRAMED
from spark_apps.models.schema_courses import BUCKETS
from spark_apps.models.streams_topics import OWN_FORMATS

_SIDES = ("right", "left")
"""A store of an outer join: the first byte is the side of the value (Kafka Streams' LeftOrRightValueSerializer)."""
_UNKNOWN = "UNKNOWN "
"""Prefix of the shape of a value that may be framed, with an id that no registry knows."""
_MOST_UNKNOWN_SCHEMAS = 20
_LATER_SCHEMAS = 10_000
"""Registries count ids upward: an id so far beyond all that a cluster's registry knows is not one of its ids."""
_NEAR_MS = 400 * 86_400_000
_TIMES_MS = (946_684_800_000, 4_102_444_800_000)
"""The years 2000 to 2100."""
_LOOK_ALIKES = "resource string, bucket int, value binary, is_deep boolean, count bigint, first bigint, last bigint"


def shapes_of(values: DataFrame, registered: DataFrame | None = None) -> DataFrame:
    """Number of values by shape and bucket of a log, with the first and last position of each."""
    quantiles = f.percentile_approx("position", [i / BUCKETS for i in range(1, BUCKETS)], 1000)
    edges = {row.resource: row.edges for row in values.groupBy("resource").agg(quantiles.alias("edges")).collect()}
    shapes = values.select("resource", "position", "value").mapInArrow(look_alikes(edges), _LOOK_ALIKES)  # type: ignore[arg-type]
    registered_frame = registered_side_frame = f.lit(None).cast("bigint")
    is_beyond = f.lit(False)
    if registered is not None:
        ids = registered.groupBy("cluster").agg(
            f.collect_set("schema_id").alias("ids"), f.max("schema_id").alias("newest")
        )
        shapes = shapes.join(f.broadcast(ids), cluster_of_changelog() == f.col("cluster"), "left")
        registered_frame, registered_side_frame = (
            f.when(f.array_contains("ids", frame.try_cast("int")), frame)
            for frame in (schema_id_in_frame(), schema_id_after_side())
        )
        is_beyond = _schema_id().try_cast("bigint") > f.col("newest") + _LATER_SCHEMAS
    shapes = shapes.withColumn("shape", _shape(registered_frame, registered_side_frame))
    is_unknown = f.startswith("shape", f.lit(FRAMED)) & f.coalesce(registered_frame, registered_side_frame).isNull()
    marked = f.when(_begins_with_time() | f.coalesce(is_beyond, f.lit(False)), "BINARY").otherwise(
        f.concat(f.lit(_UNKNOWN), _schema_id())
    )
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
    exact = f.schema_of_variant(f.try_parse_json(f.when(~f.col("is_deep"), text_of_value())))
    fractions = f.regexp_replace(exact, r"DECIMAL\([0-9]+,[1-9][0-9]*\)", "DOUBLE")
    # A serialized long begins with zeros like a frame, but is always 8 bytes long.
    may_be_long = f.length("value") == 8
    of_serializer = f.coalesce(
        fractions,
        f.concat(f.lit(FRAMED), f.coalesce(registered_frame, registered_side_frame)),
        f.when(may_be_long & f.expr("substring(value, 1, 1) in (X'00', X'FF')"), "LONG")
        .when(schema_id_in_frame().isNotNull(), f.concat(f.lit(FRAMED), schema_id_in_frame()))
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


def cluster_of_changelog() -> Column:
    """The cluster in `resource`, which is cluster/topic."""
    return f.regexp_extract("resource", "(.*)/", 1)


def text_of_value() -> Column:
    """The value as text; for an outer join's store, as JSON with the side as its key."""
    is_of_side = f.expr("substring(value, 1, 1) in (X'00', X'01') and substring(value, 2, 1) in (X'7B', X'5B')")
    side = f.when(f.expr("startswith(value, X'00')"), _SIDES[0]).otherwise(_SIDES[1])
    of_side = f.concat(f.lit('{"'), side, f.lit('":'), f.expr("cast(substring(value, 2) as string)"), f.lit("}"))
    return f.when(is_of_side, of_side).otherwise(f.expr("cast(value as string)"))


def schema_id_in_frame() -> Column:
    """The schema id in a Schema Registry's frame, if the value begins with one."""
    return f.when((f.length("value") >= 5) & f.expr("startswith(value, X'00')"), _schema_id_at(2))


def schema_id_after_side() -> Column:
    """The same after an outer join's side byte; no registry assigns the id 0."""
    begins = f.expr("startswith(value, X'0100')") | f.expr("startswith(value, X'0000000000')")
    return f.when((f.length("value") >= 6) & (f.length("value") != 8) & begins, _schema_id_at(3))


def _schema_id_at(place: int) -> Column:
    """Schema ids are positive 32-bit integers; null for other bytes."""
    return f.when(_number_at(place) < 1 << 31, _number_at(place))


def _number_at(place: int) -> Column:
    """Four bytes at a position (the first is 1) as an unsigned integer."""
    return f.conv(f.hex(f.expr(f"substring(value, {place}, 4)")), 16, 10).cast("bigint")
