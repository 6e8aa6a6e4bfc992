"""Samples in long format (one row per metric, labels, and time) to hourly columns."""

from __future__ import annotations

import json

from pyspark.sql import Column
from pyspark.sql import functions as f


def labels_are(**labels: str) -> Column:
    """Whether a row has exactly these labels; without labels: of the whole JVM."""
    return f.col("labels") == json.dumps(labels, sort_keys=True)


def reading(metric: str, **labels: str) -> Column:
    """The value if the row has this metric and exactly these labels, otherwise null; for max, min, or avg within a
    group."""
    return f.when((f.col("metric") == metric) & labels_are(**labels), f.col("value"))


def counted(metric: str, **labels: str) -> Column:
    """Increase of a counter (see `spark_apps.models.counters`) within a group."""
    return f.max(f.when((f.col("metric") == metric) & labels_are(**labels), f.col("counted")))


def label(name: str) -> Column:
    """Value of a label."""
    return f.get_json_object("labels", f"$.{name}")


def sum_unless_unknown(column: str) -> Column:
    """Sum within a group; null if any part of it is unknown."""
    return f.when(f.count("*") == f.count(column), f.sum(column)).alias(column)
