"""The kinds of reports by period: how each is rendered, and who has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.reports.daily import daily_owners, render_daily
from streamwarden.reports.monthly import month_of, monthly_owners, render_monthly
from streamwarden.reports.rendering import Report
from streamwarden.reports.weekly import monday_of, render_weekly, weekly_owners


@dataclass(frozen=True)
class Period:
    """A kind of report. Its functions take the first day of a period (UTC)."""

    first_day: Callable[[date], date]
    """The first day of the period of a day."""
    render_from: Callable[..., Report]
    owners_from: Callable[[sa.Engine, date], list[str]]

    def render(self, engine: sa.Engine, config: Config, day: date, owner: str | None = None) -> Report:
        """Renders the report of the period with a day (UTC), of all owners or of one.

        Raises:
            StreamwardenError: the period has not begun.
        """
        return self.render_from(engine, config, self.first_day(day), owner=owner)

    def owners(self, engine: sa.Engine, day: date) -> list[str]:
        """Names of the owners who have a report of the period with a day (UTC)."""
        return self.owners_from(engine, self.first_day(day))


PERIODS = {
    "daily": Period(lambda day: day, render_daily, daily_owners),
    "weekly": Period(monday_of, render_weekly, weekly_owners),
    "monthly": Period(month_of, render_monthly, monthly_owners),
}
