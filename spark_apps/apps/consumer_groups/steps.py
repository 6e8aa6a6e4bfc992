"""Rebalances of consumer groups: when a new generation began, which members had left, and which had joined.

A generation begins when all members have joined; classic groups consume nothing until then.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_apps.apps.consumer_groups.rows import GROUP, clock, readable


def group_steps(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.group_step_hourly. A generation that begins with the first record read counts as a rebalance."""
    in_order = Window.partitionBy(*GROUP).orderBy("log_partition", "log_offset")
    before = f.lag("members").over(in_order)
    is_step = (f.col("generation") > 0) & (
        f.col("generation") != f.coalesce(f.lag("generation").over(in_order), f.lit(-1))
    )
    return (
        readable(sources["kafka_commits"])
        .filter("kind = 'group'")
        .join(clock(sources), "cluster")
        .withColumns(
            {
                "is_step": is_step,
                "gone": _others(before, f.col("members"), "client_id", "host", "assignment"),
                "come": _others(f.col("members"), before, "client_id", "host"),
            }
        )
        .filter(f.col("is_step") & f.col("written_at").between(f.lit(hour), f.col("as_of")))
        .select(
            *GROUP,
            "generation",
            f.col("written_at").alias("began_at"),
            f.when(f.col("members").isNotNull(), f.size("members")).alias("members"),
            "gone",
            "come",
            f.array_max(f.transform("members", lambda m: m["poll_interval_ms"])).alias("poll_interval_ms"),
            f.array_max(f.transform("members", lambda m: m["session_timeout_ms"])).alias("session_timeout_ms"),
        )
    )


def _others(of: Column, than: Column, *fields: str) -> Column:
    """These fields of members that are not in the other list, as JSON; null where a list is not known."""
    known = f.transform(than, lambda m: m["member_id"])
    others = f.filter(of, lambda m: ~f.array_contains(known, m["member_id"]))
    return f.to_json(f.transform(others, lambda m: f.struct(*(m[name].alias(name) for name in fields))))
