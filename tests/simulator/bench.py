"""Evaluates simulated hours: a new warehouse, and the product's own loader and detectors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from pyspark.sql import DataFrame, SparkSession
from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.detectors import Detector, Finding, findings
from streamwarden.detectors.load import FOLDER, load_detector
from streamwarden.store.migrate import migrate

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.load import replace_hour
from tests.simulator.scenario import EVALUATED

PAST = timedelta(days=7)
"""The longest look-back of detectors."""
_COVERAGE = "source string, resource_name string, status string, message string"


@dataclass(frozen=True)
class Bench:
    """Spark and a migrated warehouse."""

    spark: SparkSession
    warehouse: sa.Engine

    def load(self, name: str, frames: dict[str, DataFrame]) -> None:
        """Loads the frames that an app computed from the simulated sources, as the app itself does."""
        coverage = driver_rows(self.spark, [], _COVERAGE)
        replace_hour(self.warehouse, APPS[name], EVALUATED, frames, coverage, datetime.now(UTC))

    def remember(self, table: str, id_column: str) -> None:
        """Copies rows of other evaluated hours of the same resource, so that each case has its previous hours."""
        schema, relation = table.split(".")
        inspector = sa.inspect(self.warehouse)
        kinds = {c["name"]: c["type"] for c in inspector.get_columns(relation, schema=schema)}
        columns = list(kinds)
        keys = inspector.get_pk_constraint(relation, schema=schema)["constrained_columns"]
        same = ", ".join(["id", *(key for key in keys if key not in ("hour", id_column))])
        # The times of all cases were moved to one hour; here they are moved back.
        moved = " - make_interval(hours => now.n - earlier.n)"
        values = {c: f'earlier."{c}"{moved if isinstance(kinds[c], sa.DateTime) else ""}' for c in columns}
        values[id_column] = f"now.{id_column}"
        cases = (
            f"select *, split_part({id_column}, '@', 1) as id, split_part({id_column}, '@', 2)::int as n from {table}"
        )
        with self.warehouse.begin() as connection:
            for day in range(PAST.days + 2):
                connection.execute(
                    sa.text("select public.ensure_day(:day)"), {"day": (EVALUATED - timedelta(day)).date()}
                )
            connection.exec_driver_sql(
                f"insert into {table} ({', '.join(columns)})"
                f" with evaluated as materialized ({cases} where hour = '{EVALUATED.isoformat()}')"
                f" select {', '.join(values.values())}"
                f" from evaluated as now inner join evaluated as earlier using ({same})"
                f" where now.n - earlier.n between 1 and {PAST // HOUR}"
            )

    def detector(self, name: str) -> Detector:
        """The detector of this id."""
        return load_detector(next(FOLDER.glob(f"*/{name}.sql")))

    def findings(self, name: str, config: Config | None = None, *, is_analyzed: bool = False) -> list[Finding]:
        """The findings of the detector; without a config with the defaults of its params."""
        detector, config = self.detector(name), config or Config()
        with self.warehouse.connect() as connection:
            if not is_analyzed:
                connection.exec_driver_sql("analyze")
            found = findings(connection, detector, EVALUATED, config, detector.params_in_force(config))
            connection.rollback()
        return found


@contextmanager
def a_bench(spark: SparkSession) -> Iterator[Bench]:
    """A bench on a new database of the embedded server, dropped at the end."""
    name, folder = f"simulator{uuid.uuid4().hex[:8]}", PROJECT_ROOT / "var" / "test-postgres"
    admin = engine(embedded_url(folder, "postgres")).execution_options(isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f'create database "{name}"')
    warehouse = engine(embedded_url(folder, name))
    try:
        migrate(warehouse)
        yield Bench(spark, warehouse)
    finally:
        warehouse.dispose()
        with admin.connect() as connection:
            connection.exec_driver_sql(f'drop database "{name}" with (force)')
