"""Frames of values by other registries, rewritten as Confluent's: a zero byte, and an id of four bytes.

AWS Glue: version 3, compression (0: none, 5: zlib), and a UUID, of which the first 31 bits are the id (see
`spark_apps.sources.schema_registry_glue`). Apicurio v2: a zero byte and an id of eight bytes; as no registry assigns
the id 0, four more zero bytes distinguish it from an id of four bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from streamwarden.base.config import KafkaCluster

GLUE_BYTES = 18
APICURIO_BYTES = 9


def with_common_frames(values: DataFrame, clusters: Iterable[KafkaCluster]) -> DataFrame:
    """The values of logs (columns resource and value) with common frames; those of other registries are unchanged."""
    by_kind: dict[str, list[str]] = {"glue": [], "apicurio": []}
    for cluster in clusters:
        if cluster.schema_registry and cluster.schema_registry.kind in by_kind:
            by_kind[cluster.schema_registry.kind].append(cluster.name)
    if not any(by_kind.values()):
        return values
    of_log = f.regexp_extract("resource", "(.*)/", 1)
    framed = f.coalesce(
        f.when(of_log.isin(by_kind["glue"]), _of_glue()),
        f.when(of_log.isin(by_kind["apicurio"]), _of_apicurio()),
        f.col("value"),
    )
    return values.withColumn("value", framed)


def _of_glue() -> Column:
    is_framed = (f.length("value") >= GLUE_BYTES) & f.expr("substring(value, 1, 2) in (X'0300', X'0305')")
    first = f.conv(f.hex(f.expr("substring(value, 3, 1)")), 16, 10).cast("int").bitwiseAND(0x7F)
    schema_id = f.concat(f.unhex(f.format_string("%02X", first)), f.expr("substring(value, 4, 3)"))
    return f.when(is_framed, f.concat(f.lit(b"\x00"), schema_id, f.expr(f"substring(value, {GLUE_BYTES + 1})")))


def _of_apicurio() -> Column:
    is_framed = (f.length("value") > APICURIO_BYTES) & f.expr("startswith(value, X'0000000000')")
    return f.when(is_framed, f.concat(f.lit(b"\x00"), f.expr("substring(value, 6)")))
