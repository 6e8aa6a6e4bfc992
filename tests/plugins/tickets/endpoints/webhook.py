"""A receiver of webhooks: checks the signature, takes each key once (IETF's draft of the Idempotency-Key header)."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, StoredTicket

SECRET = "webhook-s3cr3t"


@dataclass
class Webhook(Endpoint):
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)
    supported_responses: ClassVar[tuple[str, ...]] = ()
    can_delete: ClassVar[bool] = False
    is_confirmed_by_status: ClassVar[bool] = True
    routes: ClassVar[list[tuple[str, str, str]]] = [("POST", "/hooks/streamwarden", "take")]

    def take(self, request: httpx.Request) -> Any:
        parts = dict(part.split("=") for part in request.headers["x-streamwarden-signature"].split(","))
        signed = hmac.new(SECRET.encode(), f"{parts['t']}.".encode() + request.content, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signed, parts["v1"]) or abs(int(parts["t"]) - self.clock.now.timestamp()) > 3600:
            return 403, {"message": "the signature is wrong or old"}
        self.taken.setdefault(request.headers["idempotency-key"], json.loads(request.content))
        return 202, None

    def tickets(self) -> list[StoredTicket]:
        by_key: dict[str, list[dict[str, Any]]] = {}
        for change in self.taken.values():
            by_key.setdefault(change["key"], []).append(change)
        return [
            StoredTicket(
                changes[0]["fingerprint"],
                [change["action"] for change in changes if change["action"] != "comment"][-1] != "close",
                changes[0]["title"],
                tuple(change["text"] for change in changes),
            )
            for changes in by_key.values()
        ]
