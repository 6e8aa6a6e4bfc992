"""The monthly report: capacity with dates, costs with their trend, and advice acted on. An HTML file, and mail.

The file is written to `reports.folder`. Mail is sent to `reports.mail_to` through Airflow's SMTP connection
`smtp_default`. Each owner's report is a file too, and is mailed if `tickets.routes` mail that owner's tickets. A run
covers the month (UTC) at the start of its data interval.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, task
from streamwarden.operators import DEFAULT_ARGS, CronDataIntervalTimetable, deliver


@task
def report(day: str) -> str:
    """Writes the report of the month of a day (ISO 8601), mails it if there are recipients; returns the file's path."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import month_of, render_monthly
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    return deliver(render_monthly(migrated_warehouse(config), config, month_of(date.fromisoformat(day))), config)


@task
def owners(day: str) -> list[str]:
    """Names of the owners of volumes or findings in the month."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import month_of, monthly_owners
    from streamwarden.store.migrate import migrated_warehouse

    return monthly_owners(migrated_warehouse(load_config()), month_of(date.fromisoformat(day)))


@task
def report_of(owner: str, day: str) -> str:
    """Writes an owner's report of a month and mails it as routed; returns the path of the file."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import month_of, render_monthly
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    first = month_of(date.fromisoformat(day))
    return deliver(render_monthly(migrated_warehouse(config), config, first, owner=owner), config)


with DAG(
    dag_id="monthly_report",
    description="Monthly report to a file and by mail",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("30 1 1 * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    day = "{{ (data_interval_start or dag_run.run_after) | ds }}"
    report(day)
    report_of.partial(day=day).expand(owner=owners(day))
