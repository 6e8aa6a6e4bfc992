"""Prometheus Alertmanager: findings as alerts by its API v2, so that existing routes, inhibitions, and silences apply.

An alert is its labels: the same labels sent twice are one alert, so a request without a response is sent again. An
alert that is not sent again expires: open tickets are sent again in every run (`refresh`), with an end in the future.
If severity or owner change, the alert with the former labels is resolved in the same request. Silences of Alertmanager
are not read: they mute its notifications, not the ticket.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from streamwarden.base.config.trackers import Alertmanager
from streamwarden.detectors.resources import cluster_of
from streamwarden.rendering.readable import clean
from streamwarden.tickets.sinks.contract import SETTLES, Issue, IssueDraft, Notification, Update
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network
from streamwarden.tickets.sinks.plain import notification_text

TEXT_LIMIT = 8000
SUMMARY_LIMIT = 1024
BATCH = 100
FINDING = "finding"
"""Label with the fingerprint, by which the alerts of a finding are found."""
_Alert = dict[str, Any]


class _Known(BaseModel):
    """An alert that is not resolved."""

    labels: dict[str, str]
    startsAt: datetime


class _Version(BaseModel):
    version: str


class _Status(BaseModel):
    versionInfo: _Version


class Tracker:
    """Client of one Alertmanager."""

    remembers = False
    takes_files = False
    settles = SETTLES

    def __init__(self, name: str, settings: Alertmanager, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        self._now = network.now
        user, password = login(name, settings)
        token = {"Authorization": f"Bearer {password}"} if password and not user else {}
        self._api = Api(
            name, settings.url, network,
            headers=token, auth=(user, password) if user else None, secrets=(password,),
        )  # fmt: skip

    def check(self) -> str:
        """Checks that it can be read. Returns what works."""
        version = self._api.get("/api/v2/status", _Status).versionInfo.version
        return f"Alertmanager {clean(version)} responds; posting cannot be tested without an alert"

    def find(self, fingerprint: str) -> Issue | None:
        """None: Alertmanager forgets resolved alerts, and the same alert sent again is no second one."""
        return None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The ticket as given: an alert has no state that people set."""
        return Issue(key, None, None)

    def has(self, update: Update) -> bool:
        """False: the same alert sent again is no second one."""
        return False

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Posts a new alert. Its key is the beginning of the fingerprint."""
        self._post(issue_draft, issue_draft.fingerprint, is_firing=True)
        shown = quote(f'{{{FINDING}="{issue_draft.fingerprint}"}}')
        return Issue(issue_draft.fingerprint[:12], f"{self._api.url}/#/alerts?filter={shown}", "open")

    def update(self, update: Update) -> None:
        """Posts a change: a closed or muted ticket resolves its alert."""
        is_firing = update.action == "reopen" or (update.action == "comment" and update.is_open)
        self._post(update, update.marker, is_firing=is_firing and not update.is_muted)

    def refresh(self, updates: Sequence[Update]) -> None:
        """Posts alerts of open tickets again."""
        alerts = [self._alert(update, update.marker, is_firing=True) for update in updates]
        for start in range(0, len(alerts), BATCH):
            self._send(alerts[start : start + BATCH])

    def _post(self, change: IssueDraft | Update, reference: str, *, is_firing: bool) -> None:
        alert = self._alert(change, reference, is_firing=is_firing)
        known = self._api.get("/api/v2/alerts", list[_Known], filter=f'{FINDING}="{change.fingerprint}"')
        others = [one for one in known if one.labels != alert["labels"]]
        self._send([alert, *({"labels": one.labels, **self._ended(one.startsAt)} for one in others)])

    def _send(self, alerts: list[_Alert]) -> None:
        self._api.request("POST", "/api/v2/alerts", type(None), json=alerts)

    def _alert(self, change: IssueDraft | Update, reference: str, *, is_firing: bool) -> _Alert:
        notification = change.notification
        since = min(notification.since or notification.hour, self._now())  # a start after the end is refused
        expires = self._now() + timedelta(hours=self._settings.expires_hours)
        times = {"startsAt": since.isoformat(), "endsAt": expires.isoformat()} if is_firing else self._ended(since)
        return {
            "labels": self._labels(change),
            "annotations": {**_annotations(change.title, notification), "reference": reference},
            "generatorURL": notification.url,
            **times,
        }

    def _labels(self, change: IssueDraft | Update) -> dict[str, str]:
        values = {
            **self._settings.labels,
            "alertname": change.detector,
            "severity": change.severity,
            "owner": change.owner,
            "cluster": cluster_of(change.resource) if change.resource else None,
            "resource": change.resource or change.resource_name,
            FINDING: change.fingerprint,
        }
        return {name: clean(value) for name, value in values.items() if value}

    def _ended(self, since: datetime) -> dict[str, str]:
        now = self._now() - timedelta(seconds=1)  # an end in the future would not resolve it
        return {"startsAt": min(since, now).isoformat(), "endsAt": now.isoformat()}


def _annotations(title: str, notification: Notification) -> dict[str, str]:
    values = {
        "summary": clean(title)[:SUMMARY_LIMIT],
        "description": notification_text(notification, TEXT_LIMIT).strip(),
        "runbook_url": notification.runbook_url,
    }
    return {name: value for name, value in values.items() if value}
