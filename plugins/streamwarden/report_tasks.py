"""Tasks of the DAGs `daily_report`, `weekly_report`, and `monthly_report`.

A report is written to `reports.folder`. The one of all owners is mailed to `reports.mail_to` through Airflow's SMTP
connection `smtp_default`. Each owner's report is mailed if `tickets.routes` mail that owner's tickets.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from airflow.sdk import task

from streamwarden.base.config import Config, load_config

if TYPE_CHECKING:
    from streamwarden.reports import Report

DAY = "{{ (data_interval_start or dag_run.run_after) | ds }}"
"""First day of a run's period; of a run without a data interval, the day that it runs after."""


def add_reports(period: str) -> None:
    """Adds the tasks of a period of `reports.PERIODS` to the DAG: the report of all owners, and one of each owner."""
    report(period, DAY)
    report.override(task_id="report_of").partial(period=period, day=DAY).expand(owner=owners(period, DAY))


@task
def report(period: str, day: str, owner: str | None = None) -> str:
    """Writes the report of the period with a day (UTC, ISO 8601) and mails it; returns the path of the file."""
    from streamwarden.reports import PERIODS
    from streamwarden.store.migrate import migrated_warehouse

    config = load_config()
    made = PERIODS[period].render(migrated_warehouse(config), config, date.fromisoformat(day), owner)
    return _deliver(made, config)


@task
def owners(period: str, day: str) -> list[str]:
    """Names of the owners who have a report of the period with a day (UTC, ISO 8601)."""
    from streamwarden.reports import PERIODS
    from streamwarden.store.migrate import migrated_warehouse

    return PERIODS[period].owners(migrated_warehouse(load_config()), date.fromisoformat(day))


def _deliver(made: Report, config: Config) -> str:
    """Writes a report to its file and mails it, if it has recipients; returns the path of the file."""
    from streamwarden.reports import mail_owner, mail_report, write_report

    path = write_report(made, config)
    if made.owner is not None:
        mail_owner(made, config)
    elif config.reports.mail_to:
        from airflow.providers.smtp.hooks.smtp import SmtpHook

        with SmtpHook("smtp_default") as hook:
            mail_report(made, config, hook)
    return str(path)
