"""A driver JVM that starts in seconds: the C1 compiler only, the serial collector, and a class data sharing archive.

Starting Spark costs 15 CPU seconds, mostly for loading and compiling classes; with the archive (JEP 350) it costs 5.
The archive is created once per Java, pyspark, and options (`python -m spark_apps.runtime.class_archive`) in the
user's cache. It is optional: without it the start is slower. This module imports no pyspark, so DAG files may call
`driver_java_options`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from streamwarden.base.errors import StreamwardenError

_LOGGING = Path(__file__).absolute().with_name("log4j2.properties").as_uri()
# With one compiler Java reserves 48 MB for code; a session that runs all apps fills it, and Java stops compiling.
# The heap has its full size from the start (up to `spark.driver.memory`): growing it, and the room for classes, takes
# garbage collections.
_HEAP = "-XX:+UseSerialGC -XX:InitialRAMPercentage=100 -XX:MetaspaceSize=256m"
_OPTIONS = f"{_HEAP} -XX:ReservedCodeCacheSize=240m -Dlog4j2.configurationFile={_LOGGING}"
_LIGHT_COMPILER = "-XX:TieredStopAtLevel=1"
# Loads the classes that the apps need by running the apps on an empty fleet, without a warehouse, as for few rows.
_TRAINING = """
import importlib
from datetime import UTC, datetime
from spark_apps.runtime import warehouse_io
from streamwarden.base.catalog import APPS
from spark_apps.runtime.kept import kept
from spark_apps.runtime.session import session_for, start_session
from streamwarden.base.config import Config
spark = start_session("archive")
warehouse_io.read_query = lambda spark, query, schema: spark.createDataFrame([], schema)
spark.range(3).mapInArrow(lambda batches: batches, "id long").collect()
spark.range(3).groupBy("id").count().collect()
small = session_for(spark, 1)
hour = datetime(2026, 1, 5, tzinfo=UTC)
for name in APPS:
    app = importlib.import_module(f"spark_apps.apps.{name}")
    sources = {source: kept(frame) for source, frame in app.extract(small, hour, Config()).items()}
    for frame in app.transform(sources, hour, Config()).values():
        frame.collect()
spark.stop()
"""


def java() -> str:
    """Path of the Java launcher: that of JAVA_HOME, otherwise the one on PATH.

    Raises:
        StreamwardenError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise StreamwardenError(f"No Java at {found or 'PATH'}: install a JDK 17 or newer, or correct JAVA_HOME.")
    return found


def archive_path() -> Path:
    """Path of the archive for this Java, pyspark, and options, whether it exists or not."""
    java = shutil.which("java") or "java"
    home = os.environ.get("JAVA_HOME", "")
    key = hashlib.sha256(
        f"{home}|{Path(java).resolve()}|{version('pyspark')}|{sys.prefix}|{_OPTIONS}|{_TRAINING}".encode()
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "streamwarden" / "cds" / f"spark-{key.hexdigest()[:16]}.jsa"


def driver_java_options(*, compiled_well: bool = False) -> str:
    """Value of `spark.driver.extraJavaOptions`, with the archive if it exists.

    Args:
        compiled_well: enables C2 as well as C1. A computation of a minute takes half the time; a job that mostly starts
            takes longer.
    """
    archive = archive_path()
    shared = f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off" if archive.exists() else ""
    return " ".join(filter(None, ("" if compiled_well else _LIGHT_COMPILER, _OPTIONS, shared)))


def make_archive() -> Path:
    """Creates the archive, if it does not exist, from a small job that runs all apps (15–40 s, 140 MB); returns its
    path."""
    archive = archive_path()
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    making = archive.with_suffix(f".{os.getpid()}")
    job = archive.with_suffix(f".{os.getpid()}.py")
    job.write_text(_TRAINING)
    options = f"{_LIGHT_COMPILER} {_OPTIONS} -XX:ArchiveClassesAtExit={making} -Xlog:cds=off -Xlog:cds+dynamic=off"
    submit = Path(sys.executable).with_name("spark-submit")
    try:
        subprocess.run(
            [submit, "--master=local[2]", f"--driver-java-options={options}", job],
            check=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        making.rename(archive)
    except subprocess.CalledProcessError as error:
        print(f"Spark will start slower: no class archive ({error.stderr.strip().splitlines()[-1:]})", file=sys.stderr)
    finally:
        job.unlink()
        making.unlink(missing_ok=True)
    return archive


if __name__ == "__main__":
    print(make_archive())
