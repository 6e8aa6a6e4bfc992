"""The scheduled reports."""

from streamwarden.reports.daily import Report, render_daily, write_report
from streamwarden.reports.mail import mail_report

__all__ = ["Report", "mail_report", "render_daily", "write_report"]
