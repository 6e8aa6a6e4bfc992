"""The scheduled reports, and the plots that they share with pages and tickets."""

from streamwarden.reports.daily import Report, render_daily, write_report
from streamwarden.reports.mail import mail_report
from streamwarden.reports.plots import plot_finding

__all__ = ["Report", "mail_report", "plot_finding", "render_daily", "write_report"]
