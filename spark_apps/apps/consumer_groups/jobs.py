"""Samza jobs as consumer groups: a group with the job's name, no members, and the offsets of its checkpoints."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.hours import ONLY_PRESENT

from spark_apps.apps.consumer_groups.rows import GROUP


def with_jobs(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The sources with rows of Samza jobs added to those of groups.

    A job with the name of a group is left out, because the owner of a commit would be ambiguous. Jobs are known only
    as of now: none is listed in an hour that has ended. Only what was read is persisted, so each caller adds the
    rows again.
    """
    if "samza_checkpoints" not in sources:
        return sources
    groups = sources["kafka_groups"].filter("group_id is not null").select(*GROUP)
    is_over = sources["kafka_groups"].filter(f.contains("gap", f.lit(ONLY_PRESENT))).select("cluster")
    checkpoints = sources["samza_checkpoints"].filter("gap is null and kind is not null")
    checkpoints = checkpoints.join(groups, GROUP, "left_anti")
    committed = checkpoints.filter("kind = 'committed'")
    listed = (
        checkpoints.filter("kind = 'read'")
        .join(f.broadcast(is_over), "cluster", "left_anti")
        .select(*GROUP, "resource")
        .distinct()
        .withColumns({"protocol": f.lit("samza"), "state": f.lit("EMPTY"), "members": f.array()})
        .withColumn("observed_at", f.current_timestamp())
    )
    added = {
        "kafka_groups": listed.withColumn("members", f.col("members").cast(_type(sources["kafka_groups"], "members"))),
        "kafka_offsets": committed.select(*GROUP, "kind", "topic", "partition", "committed_offset", "resource"),
        "kafka_commits": checkpoints.filter("kind in ('commit', 'read')").drop("gap"),
    }
    return {
        name: frame.unionByName(added[name], allowMissingColumns=True) if name in added else frame
        for name, frame in sources.items()
    }


def _type(frame: DataFrame, column: str) -> str:
    return frame.schema[column].dataType.simpleString()
