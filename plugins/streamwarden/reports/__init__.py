"""The daily, the weekly, and the monthly report."""

from streamwarden.reports.archive import archive_folder, filed_reports, read_filed
from streamwarden.reports.daily import daily_owners, render_daily
from streamwarden.reports.mail import mail_owner, mail_report
from streamwarden.reports.monthly import month_of, monthly_owners, render_monthly
from streamwarden.reports.periods import PERIODS
from streamwarden.reports.rendering import Report, write_pdf, write_report
from streamwarden.reports.weekly import monday_of, render_weekly

__all__ = [
    "PERIODS",
    "Report",
    "archive_folder",
    "daily_owners",
    "filed_reports",
    "mail_owner",
    "mail_report",
    "monday_of",
    "month_of",
    "monthly_owners",
    "read_filed",
    "render_daily",
    "render_monthly",
    "render_weekly",
    "write_pdf",
    "write_report",
]
