"""Webhooks: each change is one signed POST of JSON, and the same change always has the same key.

The service cannot be queried, so a request without a response is sent again; `Idempotency-Key` identifies duplicates.
`X-Streamwarden-Signature: t=<Unix time>,v1=<hex>` is the HMAC-SHA256 of `<Unix time>.<body>`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any

from streamwarden.base.config.trackers import Webhook
from streamwarden.tickets.sinks.contract import SETTLES, Issue, IssueDraft, Notification, Update
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network
from streamwarden.tickets.sinks.plain import notification_text

TEXT_LIMIT = 50_000


class Tracker:
    """Client of one URL."""

    remembers = False
    takes_files = False
    settles = SETTLES

    def __init__(self, name: str, settings: Webhook, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        self._now = network.now
        _, self._secret = login(name, settings)
        self._api = Api(name, settings.url, network, secrets=(self._secret,))

    def check(self) -> str:
        """Returns a sentence: without a ticket, nothing can be tested."""
        return "cannot be tested without a ticket"

    def find(self, fingerprint: str) -> Issue | None:
        """None: the service cannot be queried."""
        return None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The ticket as given: the service cannot be queried."""
        return Issue(key, None, None)

    def has(self, update: Update) -> bool:
        """False: the service cannot be queried."""
        return False

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Posts a new ticket. Its key is derived from the finding and the hour."""
        # With the hour, because a later ticket of the finding has another key.
        key = f"{issue_draft.fingerprint[:32]}-{issue_draft.notification.hour:%Y%m%dT%H}"
        resource = {"detector": issue_draft.detector, "resource_name": issue_draft.resource_name}
        self._post(
            "create",
            key,
            key,
            issue_draft.fingerprint,
            issue_draft.title,
            issue_draft.severity,
            issue_draft.notification,
            resource,
        )
        return Issue(key, None, "open")

    def update(self, update: Update) -> None:
        """Posts a change of a ticket."""
        finding = update.notification.finding
        resource = {"detector": finding.detector, "resource_name": finding.resource_name} if finding else {}
        self._post(
            update.action,
            update.key,
            update.marker,
            update.fingerprint,
            update.title,
            update.severity,
            update.notification,
            resource,
        )

    def _post(
        self, action: str, key: str, marker: str, fingerprint: str, title: str, severity: str,
        notification: Notification, resource: dict[str, str],
    ) -> None:  # fmt: skip
        finding = notification.finding
        values = {
            "action": action, "key": key, "id": marker, "fingerprint": fingerprint, "title": title,
            "severity": severity, "owner": (finding.resource.owner if finding else None) or "", "detector": "",
            "resource_name": "", "text": notification_text(notification, TEXT_LIMIT), "url": notification.url,
            "hour": notification.hour.isoformat(), **resource,
        }  # fmt: skip
        body = json.dumps(_filled(self._settings.body, values) if self._settings.body else values).encode()
        at = str(int(self._now().timestamp()))
        signature = hmac.new(self._secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": marker,
            "X-Streamwarden-Signature": f"t={at},v1={signature}",
        }
        self._api.request("POST", "", object, content=body, headers=headers)


def _filled(template: Any, values: dict[str, str]) -> Any:
    """The template with `{name}` replaced in all strings; unknown names stay unchanged."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), template)
