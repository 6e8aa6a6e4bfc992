"""Any service that takes JSON: each change is one signed POST, and the same change always has the same key.

Nothing can be asked, so what was sent without an answer is sent again: by `Idempotency-Key` the receiver knows it.
`X-Streamwarden-Signature: t=<Unix time>,v1=<hex>` is the HMAC-SHA256 of `<Unix time>.<body>`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any

from streamwarden.base.config.trackers import Webhook
from streamwarden.tickets.sinks.contract import SETTLES, Draft, Issue, Letter, Update
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network
from streamwarden.tickets.sinks.plain import letter_text

TEXT_LIMIT = 50_000


class Tracker:
    """Posts to one address."""

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
        return "can't be tried without a ticket"

    def find(self, fingerprint: str) -> Issue | None:
        return None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        return Issue(key, None, None)

    def has(self, update: Update) -> bool:
        return False

    def create(self, draft: Draft) -> Issue:
        key = f"{draft.fingerprint[:32]}-{draft.letter.hour:%Y%m%dT%H}"  # a later ticket of the finding has another one
        about = {"detector": draft.detector, "resource": draft.resource}
        self._post("create", key, key, draft.fingerprint, draft.title, draft.severity, draft.letter, about)
        return Issue(key, None, "open")

    def update(self, update: Update) -> None:
        finding = update.letter.finding
        about = {"detector": finding.detector, "resource": finding.resource} if finding else {}
        self._post(
            update.action,
            update.key,
            update.marker,
            update.fingerprint,
            update.title,
            update.severity,
            update.letter,
            about,
        )

    def _post(
        self, action: str, key: str, marker: str, fingerprint: str, title: str, severity: str, letter: Letter,
        about: dict[str, str],
    ) -> None:  # fmt: skip
        finding = letter.finding
        values = {
            "action": action, "key": key, "id": marker, "fingerprint": fingerprint, "title": title,
            "severity": severity, "owner": (finding.about.owner if finding else None) or "", "detector": "",
            "resource": "",
            "text": letter_text(letter, TEXT_LIMIT), "url": letter.url, "hour": letter.hour.isoformat(), **about,
        }  # fmt: skip
        body = json.dumps(_filled(self._settings.body, values) if self._settings.body else values).encode()
        at = str(int(self._now().timestamp()))
        signature = hmac.new(self._secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": marker,
            "X-Streamwarden-Signature": f"t={at},v1={signature}",
        }
        self._api.ask("POST", "", object, content=body, headers=headers)


def _filled(template: Any, values: dict[str, str]) -> Any:
    """The template with `{name}` replaced in its texts; what else stands in braces stays."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), template)
