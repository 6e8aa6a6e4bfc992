"""PagerDuty: Events API v2 and the incidents and notes of its REST API v2.

developer.pagerduty.com/docs/events-api-v2, …/api-reference/9d0b4b12e36f9-list-incidents
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, InvalidRequest, StoredTicket, body_of, numbers

ROUTING_KEY = "r0ut1ngs3cr3tr0ut1ngs3cr3t012345"
TOKEN = "pagerduty-s3cr3t"
USER = "bot@acme.example"


@dataclass
class PagerDuty(Endpoint):
    incidents: list[dict[str, Any]] = field(default_factory=list)
    created: list[datetime] = field(default_factory=list)
    log: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By dedup key: reference and text of events and notes, in order."""
    titles: dict[str, str] = field(default_factory=dict)
    severities: dict[str, list[str]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)
    """Id of the incident of each note."""
    takes_notes: bool = True
    """Whether the API key may write."""
    supported_responses: ClassVar[tuple[str, ...]] = ("acknowledged", "closed")
    displayed_states: ClassVar[tuple[str, ...]] = ("acknowledged",)
    can_delete: ClassVar[bool] = False
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("POST", "/v2/enqueue", "enqueue"),
        ("GET", "/incidents", "list_incidents"),
        ("GET", r"/incidents/(\w+)/notes", "list_notes"),
        ("POST", r"/incidents/(\w+)/notes", "create_note"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        if request.url.host == "events.pagerduty.com":
            return None
        assert request.headers["accept"] == "application/vnd.pagerduty+json;version=2"
        if request.headers.get("authorization") != f"Token token={TOKEN}":
            return 401, {"error": {"message": "Invalid Login", "code": 2006}}
        return None

    def enqueue(self, request: httpx.Request) -> Any:
        if len(request.content) > 512 * 1024:
            return 413, {"status": "invalid event", "message": "Event object is too large"}
        event = body_of(
            request, needs={"routing_key", "event_action"},
            may={"dedup_key", "payload", "images", "links", "client", "client_url"},
        )  # fmt: skip
        errors = [] if event["routing_key"] == ROUTING_KEY else ["Invalid routing key"]
        key, action, payload = event["dedup_key"], event["event_action"], event.get("payload", {})
        if len(key) > 255:
            errors.append("Length of 'dedup_key' is incorrect (should be at most 255 characters)")
        if action == "trigger":
            errors += [
                f"'payload.{name}' is missing or blank"
                for name in ("summary", "source", "severity")
                if not payload.get(name)
            ]
            if payload.keys() - {
                "summary",
                "source",
                "severity",
                "timestamp",
                "component",
                "group",
                "class",
                "custom_details",
            }:
                raise InvalidRequest(f"payload: {sorted(payload)}")
            if len(payload["summary"]) > 1024 or payload["severity"] not in ("critical", "error", "warning", "info"):
                errors.append("'payload.summary' or 'payload.severity' is invalid")
        if errors:
            return 400, {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
        self.events.append(event)
        incident = self._open(key)
        if action == "resolve":
            if incident:
                incident["status"] = "resolved"
        elif action == "trigger":
            if incident is None:
                number = len(self.incidents) + 1
                self.incidents.append(
                    {
                        "id": f"Q{number}", "incident_key": key, "status": "triggered",
                        "html_url": f"https://acme.pagerduty.com/incidents/Q{number}",
                    }
                )  # fmt: skip
                self.created.append(self.clock.now)
            self.titles[key] = payload["summary"]
            self.severities.setdefault(key, []).append(payload["severity"])
            details = payload["custom_details"]
            if "text" in details:
                self._note(key, details["reference"], details["text"])
        elif action == "acknowledge":
            if incident:
                incident["status"] = "acknowledged"
        else:
            raise InvalidRequest(f"event_action {action}")
        return 202, {"status": "success", "message": "Event processed", "dedup_key": key}

    def list_incidents(self, request: httpx.Request) -> Any:
        query = numbers(request, "incident_key", "date_range", "sort_by", "limit", "offset")
        found = [
            incident
            for incident, created in zip(self.incidents, self.created, strict=True)
            if self.is_found(created)
            and query.get("incident_key", incident["incident_key"]) == incident["incident_key"]
        ]
        if query.get("sort_by") == "created_at:desc":
            found.reverse()
        most = int(query["limit"])
        return 200, {"incidents": found[:most], "limit": most, "offset": 0, "more": len(found) > most, "total": None}

    def list_notes(self, _: httpx.Request, id_: str) -> Any:
        key = next(incident["incident_key"] for incident in self.incidents if incident["id"] == id_)
        return 200, {"notes": [{"id": "1", "content": text} for _, text in self.log[key]]}

    def create_note(self, request: httpx.Request, id_: str) -> Any:
        if not self.takes_notes:
            return 403, {"error": {"message": "Access Denied", "code": 2010}}
        if "@" not in request.headers.get("from", ""):
            return 400, {"error": {"message": "Requester User Not Found", "code": 2010}}
        content = body_of(request, needs={"note"})["note"]["content"]
        if len(content) > 25_000:
            return 400, {
                "error": {"message": "Invalid Input Provided", "code": 2001, "errors": ["Content is too long."]}
            }
        key = next(incident["incident_key"] for incident in self.incidents if incident["id"] == id_)
        self.noted.append(id_)
        self._note(key, content, content)
        return 201, {"note": {"id": "1", "content": content}}

    def _note(self, key: str, reference: str, text: str) -> None:
        self.log.setdefault(key, []).append((reference, text))

    def _open(self, key: str) -> dict[str, Any] | None:
        mine = [one for one in self.incidents if one["incident_key"] == key and one["status"] != "resolved"]
        assert len(mine) < 2
        return mine[0] if mine else None

    def answer(self, key: str, state: str) -> None:
        states = {"acknowledged": "acknowledged", "closed": "resolved"}
        incident = self._open(key)
        assert incident
        incident["status"] = states[state]

    def tickets(self) -> list[StoredTicket]:
        return [
            StoredTicket(
                key.removeprefix("streamwarden-"), self._open(key) is not None, self.titles[key], self._texts(key)
            )
            for key in dict.fromkeys(incident["incident_key"] for incident in self.incidents)
        ]

    def _texts(self, key: str) -> tuple[str, ...]:
        return tuple(text for _, text in self.log.get(key, []))


@dataclass
class EventsOnly(PagerDuty):
    """Without a REST token, what was sent without an answer is sent again: the alert's log has it twice, nobody is
    called twice, and the reference shows that both are the same event."""

    keeps_all_notes: ClassVar[bool] = False
    supported_responses: ClassVar[tuple[str, ...]] = ()
    displayed_states: ClassVar[tuple[str, ...]] = ()

    def _texts(self, key: str) -> tuple[str, ...]:
        return tuple(dict(self.log.get(key, [])).values())
