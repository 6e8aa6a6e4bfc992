"""What executors on other machines need of us: our Python code, the config, the warehouse's address.

Where Spark is local, tasks have all three. On a cluster the code is sent as a zip; third-party packages must be there
(`pip install streamwarden`, or the image). The config and the warehouse's address hold passwords: they are sent only
where Spark encrypts what it sends and what it writes to disk; else executors take them from their own environment
($STREAMWARDEN_CONFIG and $STREAMWARDEN_WAREHOUSE_URL). They travel as the environment of the tasks' Python processes:
no plan, page or log of Spark shows it.
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
    """Whether tasks run in processes of this machine that we started."""
    return (spark.sparkContext.master or "").startswith("local")


def equip(spark: SparkSession, config: Config) -> None:
    """Sends a cluster's executors what they need, waits until they are there, and checks that each can begin.

    Raises:
        StreamwardenError: an executor has no config or no address of the warehouse, and secrets can't be sent.
    """
    if is_local(spark):
        return
    context = spark.sparkContext
    context.addPyFile(str(_code_archive()))
    if all(context.getConf().get(name, "false") == "true" for name in _ENCRYPTION):
        context.environment[SENT_CONFIG_ENV] = config.model_dump_json(exclude_unset=True, by_alias=True)
        context.environment[WAREHOUSE_ENV] = os.environ[WAREHOUSE_ENV]
    slices = context.defaultParallelism
    answers = spark.range(slices, numPartitions=slices).mapInArrow(_lacks, "lacks string").collect()
    if lacks := {answer.lacks for answer in answers if answer.lacks}:
        raise StreamwardenError(f"{min(lacks)} ({_NEED}).")


def _lacks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: what it needs and hasn't, or null."""
    lacks = None
    for _ in batches:
        try:
            load_config()
            address_of_warehouse(None)
        except StreamwardenError as error:
            lacks = str(error)
    yield pa.RecordBatch.from_pydict({"lacks": [lacks]}, schema=pa.schema([("lacks", pa.string())]))


def address_for_tasks(spark: SparkSession, address: str) -> str | None:
    """The warehouse's address as a task's function may carry it; null where it would leave this machine."""
    return address if is_local(spark) else None


def address_of_warehouse(carried: str | None) -> str:
    """In a task: the address it carries, or that of its environment."""
    if address := carried or os.environ.get(WAREHOUSE_ENV):
        return address
    raise StreamwardenError(f"${WAREHOUSE_ENV} isn't set")


def _code_archive() -> Path:
    """Our packages as a zip, as they are now."""
    file = Path(tempfile.mkdtemp(prefix="streamwarden-")) / "streamwarden_code.zip"
    acting, computing = Path(streamwarden.__path__[0]), Path(spark_apps.__path__[0])
    files = [acting / "__init__.py", *(acting / "base").rglob("*.py")]
    files += [path for path in computing.rglob("*") if path.suffix in (".py", ".java")]
    with zipfile.ZipFile(file, "w") as archive:
        for path in files:
            root = acting if path.is_relative_to(acting) else computing
            archive.write(path, Path(root.name) / path.relative_to(root))
    return file
