"""The daily report: open, new, and closed findings, and what was not evaluated.

A file in `reports.folder`, mailed to `reports.mail_to` through the connection `smtp_default`, and one of each owner,
mailed as `tickets.routes` mail that owner's tickets. A run covers the day (UTC) of its data interval.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG
from streamwarden.operators import DEFAULT_ARGS, CronDataIntervalTimetable
from streamwarden.report_tasks import add_reports

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
    add_reports("daily")
