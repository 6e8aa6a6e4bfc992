"""The sink that prints tickets, used without a tracker."""

from __future__ import annotations

from datetime import timedelta

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from streamwarden.base.config.trackers import Console as Settings
from streamwarden.tickets.sinks.contract import Issue, IssueDraft, Update
from streamwarden.tickets.sinks.plain import issue_text, notification_text

_STYLE = {"critical": "red", "warning": "yellow", "info": "cyan"}


class Tracker:
    """Prints tickets to the log of the task, and stores nothing."""

    remembers = False
    takes_files = False
    settles = timedelta(0)

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self._console = Console()

    def check(self) -> str:
        """Always works."""
        return "tickets are printed to the log of the task"

    def find(self, fingerprint: str) -> Issue | None:
        """None: nothing is stored."""
        return None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The ticket as given: nothing is stored."""
        return None

    def has(self, update: Update) -> bool:
        """False: nothing is stored."""
        return False

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Prints a new ticket."""
        self._show(f"new, {issue_draft.severity}: {issue_draft.title}", issue_text(issue_draft), issue_draft.severity)
        return Issue(issue_draft.fingerprint[:12], None, "open")

    def update(self, update: Update) -> None:
        """Prints a change of a ticket."""
        self._show(f"{update.action}: {update.key}", notification_text(update.notification), update.severity)

    def _show(self, heading: str, body: str, severity: str) -> None:
        # As text, not markup: the name of a resource can be [bold].
        self._console.print(
            Panel(Text(body.rstrip()), title=Text(heading), title_align="left", border_style=_STYLE.get(severity, ""))
        )
