"""Forks Spark's Python workers: `spark.python.daemon.module`. Imports once what every worker would import.

Spark puts its zipped pyspark on the workers' path, and before each task asks Python to forget what it knows of the
path; for a zip that means reading its directory again, 0.3 CPU seconds a task, 20 in a small hour. Where pyspark is
installed as a package the zip isn't needed.
"""

import sys
from importlib.machinery import PathFinder

_without_zip = [path for path in sys.path if not path.endswith("pyspark.zip")]
if PathFinder.find_spec("pyspark", _without_zip):
    sys.path[:] = _without_zip
    for path in [path for path in sys.path_importer_cache if "pyspark.zip" in path]:
        del sys.path_importer_cache[path]

from pyspark import daemon  # noqa: E402 only now is it known from where

import spark_apps.sources.planned  # noqa: E402
import spark_apps.warehouse_io  # noqa: E402, F401

if __name__ == "__main__":
    daemon.manager()
