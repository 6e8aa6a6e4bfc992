"""Forks Spark's Python workers (`spark.python.daemon.module`), having imported once what every worker would import.

Spark puts its zipped pyspark and a jar on the workers' path, and before each task asks Python to forget what it knows
of the path; for a zip that means reading its directory again: 0.2 CPU seconds a task, 20 in a small hour. Where pyspark
is installed as a package, neither is needed.
"""

import gc
import sys
from importlib.machinery import PathFinder

_folders = [path for path in sys.path if not path.rstrip("/").endswith((".zip", ".jar"))]
if PathFinder.find_spec("pyspark", _folders) and PathFinder.find_spec("py4j", _folders):
    sys.path[:] = _folders
    sys.path_importer_cache.clear()

from pyspark import daemon  # noqa: E402 only now is it known from where

if __name__ == "__main__":
    # What tasks import costs each of twenty workers 0.5 CPU seconds; forked from here they have it.
    import spark_apps.runtime.warehouse_io
    import spark_apps.sources.ec2
    import spark_apps.sources.jmx
    import spark_apps.sources.kafka_topics
    import spark_apps.sources.read_source  # noqa: F401

    gc.freeze()  # workers collect garbage after each task: what is imported need not be looked at,
    gc.set_threshold(100_000)  # and within a task most of what is made is needed
    daemon.manager()
