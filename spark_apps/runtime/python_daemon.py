"""Forks Spark's Python workers (`spark.python.daemon.module`) after importing once what every worker would import.

Spark adds its zipped pyspark and a jar to the workers' path, and before each task makes Python invalidate its import
caches. For a zip that means reading its directory again: 0.2 CPU seconds per task, 20 in a small hour. Where pyspark is
installed as a package, neither is needed.
"""

import gc
import sys
from contextlib import suppress
from importlib.machinery import PathFinder

_folders = [path for path in sys.path if not path.rstrip("/").endswith((".zip", ".jar"))]
if PathFinder.find_spec("pyspark", _folders) and PathFinder.find_spec("py4j", _folders):
    sys.path[:] = _folders
    sys.path_importer_cache.clear()

from pyspark import daemon  # noqa: E402 only now is it known from where

if __name__ == "__main__":
    # Importing what tasks need costs each of thirty workers 0.5 CPU seconds; workers forked from here have it.
    from streamwarden.base.config import load_config
    from streamwarden.base.errors import StreamwardenError

    import spark_apps.runtime.warehouse_io
    import spark_apps.sources.cloudwatch
    import spark_apps.sources.jmx
    import spark_apps.sources.kafka_coordinators
    import spark_apps.sources.kafka_topics
    import spark_apps.sources.read_source  # noqa: F401
    from spark_apps.sources.aws_client import load_models

    with suppress(StreamwardenError):  # a task reports it
        if load_config().aws:  # the config is cached, too, until its file changes
            load_models()

    gc.freeze()  # workers collect garbage after each task: imported objects need not be scanned,
    gc.set_threshold(100_000)  # and most objects created within a task are needed
    daemon.manager()
