"""The weekly report: costs, trend of findings, findings by detector, and the findings that have been open longest.

A file in `reports.folder`, mailed to `reports.mail_to` through the connection `smtp_default`, and one of each owner,
mailed as `tickets.routes` mail that owner's tickets. A run covers the week (UTC), from Monday, of its data
interval.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG
from streamwarden.operators import DEFAULT_ARGS, CronDataIntervalTimetable
from streamwarden.report_tasks import add_reports

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
    add_reports("weekly")
