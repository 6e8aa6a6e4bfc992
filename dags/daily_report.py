"""The daily report: open, new, and closed findings, and what was not evaluated. An HTML file, and mail on request.

The file is written to `reports.folder`. Mail is sent to `reports.mail_to` through Airflow's SMTP connection
`smtp_default`. Each owner's report is a file too, and is mailed if `tickets.routes` mail that owner's tickets.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, task
from streamwarden.operators import DEFAULT_ARGS, CronDataIntervalTimetable, deliver


@task
def report(day: str) -> str:
    """Writes the report of a day (UTC, ISO 8601) and mails it if there are recipients; returns the path of the file."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import render_daily
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    return deliver(render_daily(migrated_warehouse(config), config, date.fromisoformat(day)), config)


@task
def owners(day: str) -> list[str]:
    """Names of the owners of findings that were open or closed on the day."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import owners_of
    from streamwarden.store.migrate import migrated_warehouse

    return owners_of(migrated_warehouse(load_config()), date.fromisoformat(day))


@task
def report_of(owner: str, day: str) -> str:
    """Writes an owner's report of a day and mails it as routed; returns the path of the file."""
    from datetime import date

    from streamwarden.base.config import load_config
    from streamwarden.reports import render_daily
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    return deliver(render_daily(migrated_warehouse(config), config, date.fromisoformat(day), owner=owner), config)


with DAG(
    dag_id="daily_report",
    description="Daily report to a file and by mail",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("30 0 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=["streamwarden"],
) as dag:
    day = "{{ (data_interval_start or dag_run.run_after) | ds }}"
    report(day)
    report_of.partial(day=day).expand(owner=owners(day))
