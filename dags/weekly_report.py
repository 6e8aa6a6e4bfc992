"""The weekly report: costs, trend of findings, findings by detector, and the findings that have been open longest.

An HTML file in `reports.folder`, mailed to `reports.mail_to` through Airflow's SMTP connection `smtp_default`. Each
owner's report is a file too, and is mailed if `tickets.routes` mail that owner's tickets. A run covers the week (UTC)
that begins on the Monday at the start of its data interval.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, task
from streamwarden.operators import DEFAULT_ARGS, CronDataIntervalTimetable, deliver


@task
def report(day: str) -> str:
    """Writes the report of the week of a day (ISO 8601), mails it if there are recipients; returns the file's path."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import monday_of, render_weekly
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    return deliver(render_weekly(migrated_warehouse(config), config, monday_of(date.fromisoformat(day))), config)


@task
def owners(day: str) -> list[str]:
    """Names of the owners of findings in the week."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import monday_of, owners_of
    from streamwarden.store.migrate import migrated_warehouse

    return owners_of(migrated_warehouse(load_config()), monday_of(date.fromisoformat(day)), days=7)


@task
def report_of(owner: str, day: str) -> str:
    """Writes an owner's report of a week and mails it as routed; returns the path of the file."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import monday_of, render_weekly
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    monday = monday_of(date.fromisoformat(day))
    return deliver(render_weekly(migrated_warehouse(config), config, monday, owner=owner), config)


with DAG(
    dag_id="weekly_report",
    description="Weekly report to a file and by mail",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 1 * * 1", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    day = "{{ (data_interval_start or dag_run.run_after) | ds }}"
    report(day)
    report_of.partial(day=day).expand(owner=owners(day))
