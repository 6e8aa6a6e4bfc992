"""List prices of EBS, fetched each month from the AWS Price List API (needs `pricing:GetProducts`).

A config with prices of its own (`ebs_prices`) or without an AWS account is skipped. Where the API is not permitted, the
task fails, and the earlier prices stay in use.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import DAG, task
from streamwarden.operators import DEFAULT_ARGS


@task
def fetch() -> str:
    """Fetches the prices of the config's regions; returns the regions."""
    from streamwarden.base.config import load_config
    from streamwarden.pipeline import migrated_warehouse, refresh_prices
    from streamwarden.store.prices import has_own_prices

    config = load_config()
    if has_own_prices(config) or not config.aws:
        raise AirflowSkipException("the config has prices of its own, or no AWS account")
    return ", ".join(refresh_prices(migrated_warehouse(config), config))


with DAG(
    dag_id="monthly_prices",
    description="List prices of EBS from the AWS Price List API",
    doc_md=__doc__,
    schedule="40 3 1 * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    fetch()
