"""Alertmanager's API v2: alerts are merged by their labels, and resolved at their end.

github.com/prometheus/alertmanager: api/v2/openapi.yaml, api/v2/api.go (postAlertsHandler), types/types.go (Merge)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, InvalidRequest, StoredTicket, numbers

TOKEN = "alertmanager-s3cr3t"
RESOLVE_TIMEOUT = timedelta(minutes=5)
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass
class Alertmanager(Endpoint):
    alerts: dict[tuple[tuple[str, str], ...], dict[str, Any]] = field(default_factory=dict)
    """By labels."""
    notes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Descriptions by reference, by the label `finding`."""
    supported_responses: ClassVar[tuple[str, ...]] = ()
    can_delete: ClassVar[bool] = False
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("POST", "/api/v2/alerts", "post"),
        ("GET", "/api/v2/alerts", "list"),
        ("GET", "/api/v2/status", "status"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        is_right = request.headers.get("authorization") == f"Bearer {TOKEN}"
        return None if is_right else (401, "Unauthorized\n")

    def status(self, _: httpx.Request) -> Any:
        return 200, {"versionInfo": {"version": "0.28.1"}, "cluster": {"status": "ready"}, "uptime": "2026-01-01"}

    def list(self, request: httpx.Request) -> Any:
        found = re.fullmatch(r'(\w+)="([^"\\]*)"', numbers(request, "filter")["filter"])
        if not found:
            return 400, json.dumps("bad matcher format")
        firing = [one for one in self.alerts.values() if one["endsAt"] > self.clock.now]
        return 200, [
            one | {name: one[name].isoformat() for name in ("startsAt", "endsAt")} | {"status": {"state": "active"}}
            for one in firing
            if one["labels"].get(found[1], "") == found[2]
        ]

    def post(self, request: httpx.Request) -> Any:
        if request.headers["content-type"] != "application/json":
            return 415, {"code": 415, "message": "unsupported media type"}
        for alert in json.loads(request.content):
            if alert.keys() - {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}:
                raise InvalidRequest(f"alert: {sorted(alert)}")
            labels = {name: value for name, value in alert["labels"].items() if value}
            for name, value in {**labels, **alert.get("annotations", {})}.items():
                if not _NAME.fullmatch(name) or not isinstance(value, str):
                    return 400, {"code": 400, "message": f"invalid label {name}"}
            starts, ends = (self._moment(alert.get(name)) for name in ("startsAt", "endsAt"))
            starts = starts or self.clock.now
            ends = ends or self.clock.now + RESOLVE_TIMEOUT
            if ends < starts or not labels:
                return 400, json.dumps("start time must be before end time")
            self._merge(labels, alert, starts, ends)
        return 200, None

    def _merge(self, labels: dict[str, str], alert: dict[str, Any], starts: datetime, ends: datetime) -> None:
        key = tuple(sorted(labels.items()))
        old = self.alerts.get(key)
        if old and old["endsAt"] >= starts:  # they overlap
            starts = min(starts, old["startsAt"])
        self.alerts[key] = {
            "labels": labels, "annotations": alert.get("annotations") or (old or {}).get("annotations", {}),
            "startsAt": starts, "endsAt": ends, "generatorURL": alert.get("generatorURL", ""),
        }  # fmt: skip
        texts = alert.get("annotations", {})
        if "reference" in texts:
            self.notes.setdefault(labels["finding"], {}).setdefault(texts["reference"], texts.get("description", ""))

    def _moment(self, text: str | None) -> datetime | None:
        moment = datetime.fromisoformat(text) if text else None
        if moment is not None and moment.tzinfo is None:
            raise InvalidRequest(f"{text}: not a date-time of RFC 3339")
        return moment

    def firing(self) -> list[dict[str, Any]]:
        """Alerts that are firing now."""
        return [one for one in self.alerts.values() if one["endsAt"] > self.clock.now]

    def tickets(self) -> list[StoredTicket]:
        firing = {one["labels"]["finding"] for one in self.firing()}
        titles = {one["labels"]["finding"]: one["annotations"]["summary"] for one in self.alerts.values()}
        return [
            StoredTicket(finding, finding in firing, titles[finding], tuple(notes.values()))
            for finding, notes in self.notes.items()
        ]
