"""Daily maintenance of the warehouse: creates the partitions of the next days, drops partitions past their retention.

The retention is set by `warehouse.sample_retention_days`, `fact_retention_days`, and `retention_days` in the config,
counted from the newest row of each table. Tickets are never deleted. The task fails if more than a quarter of a table
would be dropped at once: `streamwarden warehouse housekeeping` lists these partitions, and drops them with `--yes`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import DAG, task
from streamwarden.operators import DEFAULT_ARGS


@task(multiple_outputs=False)
def keep_warehouse() -> dict[str, int]:
    """Creates the partitions of the next days and drops expired ones; returns the number of changes by table."""
    from streamwarden.base.config import load_config
    from streamwarden.store.housekeeping import keep_house
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    done, left = keep_house(migrated_warehouse(config), config.warehouse)
    if left:
        raise AirflowFailException(f"{'; '.join(map(str, left))}: run `streamwarden warehouse housekeeping`.")
    return done


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
