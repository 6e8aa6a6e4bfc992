"""Keeps the warehouse in shape, once a day: partitions made ahead, samples and facts dropped when they are too old.

How long: `warehouse.sample_retention_days` and `warehouse.fact_retention_days` in the config. Tickets stay for good.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, task
from streamwarden.operators import DEFAULT_ARGS


@task(multiple_outputs=False)
def keep_warehouse() -> dict[str, int]:
    """Makes the next days' partitions and drops what is too old; returns what was done, by table."""
    from streamwarden.base.config import load_config
    from streamwarden.store.housekeeping import keep_house
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    return keep_house(migrated_warehouse(config), config.warehouse)


with DAG(
    dag_id="housekeeping",
    description="Partitions ahead, retention",
    doc_md=__doc__,
    schedule="20 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    keep_warehouse()
