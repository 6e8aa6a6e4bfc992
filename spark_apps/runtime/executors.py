"""What executors on other hosts need: our Python code, the config, and the warehouse's address.

With a local master, tasks have all three. For a cluster, our code is sent as a zip; third-party packages must be
installed there (`pip install streamwarden`, or the image). The config and the warehouse's address contain passwords:
they are sent only if Spark encrypts its network traffic and its files; otherwise executors take them from their own
environment ($STREAMWARDEN_CONFIG and $STREAMWARDEN_WAREHOUSE_URL). They are sent as environment variables of the
tasks' Python processes, so that no plan, page, or log of Spark shows them.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import streamwarden
from pyspark.sql import SparkSession
from streamwarden.base.config import SENT_CONFIG_ENV, WAREHOUSE_ENV, Config, load_config
from streamwarden.base.errors import StreamwardenError

import spark_apps

_ENCRYPTION = ("spark.network.crypto.enabled", "spark.io.encryption.enabled")
_NEED = (
    f"give Spark's executors a config and ${WAREHOUSE_ENV}, or turn on {' and '.join(_ENCRYPTION)} to have them sent"
)


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run in processes that we started on this host."""
    return (spark.sparkContext.master or "").startswith("local")


def equip(spark: SparkSession, config: Config) -> None:
    """Sends a cluster's executors what they need, waits for them, and checks that each can run tasks.

    Raises:
        StreamwardenError: an executor has no config or no warehouse address, and secrets cannot be sent.
    """
    if is_local(spark):
        return
    context = spark.sparkContext
    context.addPyFile(str(_code_archive()))
    if all(context.getConf().get(name, "false") == "true" for name in _ENCRYPTION):
        context.environment[SENT_CONFIG_ENV] = config.model_dump_json(exclude_unset=True, by_alias=True)
        context.environment[WAREHOUSE_ENV] = os.environ[WAREHOUSE_ENV]
    slices = context.defaultParallelism
    answers = spark.range(slices, numPartitions=slices).mapInArrow(_problems, "problem string").collect()
    if problems := {answer.problem for answer in answers if answer.problem}:
        raise StreamwardenError(f"{min(problems)} ({_NEED}).")


def _problems(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: why it cannot run, or null."""
    problem = None
    for _ in batches:
        try:
            load_config()
            address_of_warehouse(None)
        except StreamwardenError as error:
            problem = str(error)
    yield pa.RecordBatch.from_pydict({"problem": [problem]}, schema=pa.schema([("problem", pa.string())]))


def address_for_tasks(spark: SparkSession, address: str) -> str | None:
    """The warehouse's address as a task's function may carry it; None on a cluster, where it would leave this host."""
    return address if is_local(spark) else None


def address_of_warehouse(carried: str | None) -> str:
    """In a task: the carried address, otherwise the one of its environment.

    Raises:
        StreamwardenError: there is neither.
    """
    if address := carried or os.environ.get(WAREHOUSE_ENV):
        return address
    raise StreamwardenError(f"${WAREHOUSE_ENV} is not set")


def _code_archive() -> Path:
    """Creates a zip of our packages as they are now."""
    file = Path(tempfile.mkdtemp(prefix="streamwarden-")) / "streamwarden_code.zip"
    acting, computing = Path(streamwarden.__path__[0]), Path(spark_apps.__path__[0])
    files = [acting / "__init__.py", *(acting / "base").rglob("*.py")]
    files += [path for path in computing.rglob("*") if path.suffix in (".py", ".java")]
    with zipfile.ZipFile(file, "w") as archive:
        for path in files:
            root = acting if path.is_relative_to(acting) else computing
            archive.write(path, Path(root.name) / path.relative_to(root))
    return file
