"""The scheduled reports."""

from streamwarden.reports.daily import Report, owners_of, render_daily, write_report
from streamwarden.reports.mail import mail_owner, mail_report

__all__ = ["Report", "mail_owner", "mail_report", "owners_of", "render_daily", "write_report"]
