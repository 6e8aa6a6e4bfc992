"""Apps: one subject of the warehouse each, a module with two functions.

    extract(spark, hour, config) -> {source name: DataFrame}      reads sources (and warehouse tables)
    transform(sources, hour, config) -> {table: DataFrame}        pure DataFrame code: models, no thresholds

Source frames with a `gap` column (see `spark_apps.sources`) become `detect.coverage`. `spark_apps.runtime.load`
replaces the hour in the warehouse.
"""
