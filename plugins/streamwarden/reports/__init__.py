"""The daily and the weekly report."""

from streamwarden.reports.daily import owners_of, render_daily
from streamwarden.reports.mail import mail_owner, mail_report
from streamwarden.reports.rendering import Report, write_report
from streamwarden.reports.weekly import monday_of, render_weekly

__all__ = [
    "Report",
    "mail_owner",
    "mail_report",
    "monday_of",
    "owners_of",
    "render_daily",
    "render_weekly",
    "write_report",
]
