"""Samza's jobs as groups: each is named as the job, has no members, and commits what its checkpoints say."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.hours import ONLY_PRESENT

from spark_apps.apps.consumer_groups.rows import GROUP


def with_jobs(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The sources with rows of jobs among those of groups. A job that is named as a group is left out: whose a commit
    is couldn't be told. Which jobs there are is known only of now: none is listed in an hour that is over. What is
    persisted is what was read, so this is done again for each who asks."""
    if "samza_checkpoints" not in sources:
        return sources
    groups = sources["kafka_groups"].filter("group_id is not null").select(*GROUP)
    is_over = sources["kafka_groups"].filter(f.contains("gap", f.lit(ONLY_PRESENT))).select("cluster")
    told = sources["samza_checkpoints"].filter("gap is null and kind is not null").join(groups, GROUP, "left_anti")
    committed = told.filter("kind = 'committed'")
    listed = (
        told.filter("kind = 'read'")
        .join(f.broadcast(is_over), "cluster", "left_anti")
        .select(*GROUP, "resource")
        .distinct()
        .withColumns({"protocol": f.lit("samza"), "state": f.lit("EMPTY"), "members": f.array()})
        .withColumn("observed_at", f.current_timestamp())
    )
    added = {
        "kafka_groups": listed.withColumn("members", f.col("members").cast(_type(sources["kafka_groups"], "members"))),
        "kafka_offsets": committed.select(*GROUP, "kind", "topic", "partition", "committed_offset", "resource"),
        "kafka_commits": told.filter("kind in ('commit', 'read')").drop("gap"),
    }
    return {
        name: frame.unionByName(added[name], allowMissingColumns=True) if name in added else frame
        for name, frame in sources.items()
    }


def _type(frame: DataFrame, column: str) -> str:
    return frame.schema[column].dataType.simpleString()
