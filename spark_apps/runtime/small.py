"""How a small hour is computed: sources are read in the driver, and every frame is a local relation of one partition.

A source that is read in Spark's tasks costs Python workers, jobs, and a cached relation that each later plan is
compared with. For the 1,800 rows of a small fleet that took 80 CPU seconds, most of them for planning. As local
relations, frames have short plans without shuffles, and what is empty is removed from them. `session_for` decides by
the app's last hour; a source that returns more than expected is written to a file, and the rest of the app is computed
as for a large hour.
"""

from __future__ import annotations

import shutil
import tempfile
from atexit import register
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

MOST_ROWS, MOST_BYTES = 20_000, 32 * 2**20
"""A source or frame above one of these is not held in the driver."""
READS_AT_ONCE = 16
_SMALL = "streamwarden.small"
_SETTINGS = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
}
"""Settings of a small and of any other session: compiling a plan costs 0.1 to 1 CPU seconds."""
_ONE_PARTITION = ("spark.sql.leafNodeDefaultParallelism", "spark.sql.shuffle.partitions")


def is_small(spark: SparkSession) -> bool:
    """Whether the session computes a small hour."""
    return spark.conf.get(_SMALL, "false") == "true"


def set_small(spark: SparkSession, small: bool) -> None:
    """Makes the session one for a small hour, or for any other."""
    spark.conf.set(_SMALL, str(small).lower())
    for name, (of_small, of_others) in _SETTINGS.items():
        spark.conf.set(name, of_small if small else of_others)
    for name in _ONE_PARTITION:
        spark.conf.set(name, 1 if small else spark.sparkContext.defaultParallelism)


def kept(frame: DataFrame) -> DataFrame:
    """The frame, computed once however often it is used: a local relation in a small hour, otherwise persisted."""
    spark = frame.sparkSession
    if is_small(spark):
        table = frame.toArrow()
        if fits([table]):
            return spark.createDataFrame(table, frame.schema)
    return frame.persist()


def read_here(
    spark: SparkSession, reader: DataSourceReader, partitions: Sequence[InputPartition], schema: StructType
) -> DataFrame:
    """Rows of a source, read by threads of the driver: a local relation, or a file if they are too many for one."""
    rows = _Rows(to_arrow_schema(schema))

    def read(partition: InputPartition) -> None:
        for batch in reader.read(partition):
            rows.add(batch)

    try:
        if partitions:
            with ThreadPoolExecutor(min(len(partitions), READS_AT_ONCE)) as pool:
                list(pool.map(read, partitions))  # raises what a thread raised
    finally:
        rows.close()
    if rows.file is None:
        return spark.createDataFrame(pa.Table.from_batches(rows.batches, rows.schema), schema)
    set_small(spark, False)
    return spark.read.schema(schema).parquet(str(rows.file))


class _Rows:
    """Rows of several threads: batches in memory, or a Parquet file once they exceed what the driver holds."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.batches: list[pa.RecordBatch] = []
        self.file: Path | None = None
        self._writer: pq.ParquetWriter | None = None
        self._lock = Lock()

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds a batch with the columns of the schema; its types are cast."""
        with self._lock:
            self.batches.extend(self._cast(batch))
            if not fits(self.batches):
                self._write()

    def close(self) -> None:
        """Completes the file, if there is one."""
        if self._writer:
            self._write()
            self._writer.close()

    def _cast(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches([batch])
        return iter(table.select(self.schema.names).cast(self.schema).to_batches())

    def _write(self) -> None:
        if self._writer is None:
            self.file = _folder() / f"{uuid4().hex}.parquet"
            self._writer = pq.ParquetWriter(self.file, self.schema)
        for batch in self.batches:
            self._writer.write_batch(batch)
        self.batches = []


def fits(parts: Sequence[pa.Table | pa.RecordBatch]) -> bool:
    """Whether the driver may hold these rows."""
    return sum(part.num_rows for part in parts) <= MOST_ROWS and sum(part.nbytes for part in parts) <= MOST_BYTES


@cache
def _folder() -> Path:
    """A private folder for files of this process, deleted at its end."""
    folder = Path(tempfile.mkdtemp(prefix="streamwarden-"))
    register(shutil.rmtree, folder, ignore_errors=True)
    return folder
