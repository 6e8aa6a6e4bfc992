"""ServiceNow's Table API for incidents, and its attachments. docs.servicenow.com, REST API reference: Table API"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, InvalidRequest, StoredTicket, body_of, numbers

USER, PASSWORD = "streamwarden", "servicenow-s3cr3t"
MISSING = {
    "error": {"message": "No Record found", "detail": "Record doesn't exist or ACL restricts it"},
    "status": "failure",
}
FIELDS = {
    "short_description", "description", "correlation_id", "correlation_display", "urgency", "impact", "state",
    "assignment_group", "work_notes", "close_code", "close_notes", "category",
}  # fmt: skip


@dataclass
class ServiceNow(Endpoint):
    incidents: dict[str, dict[str, str]] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)
    journal: dict[str, list[str]] = field(default_factory=dict)
    attached: list[str] = field(default_factory=list)
    may_read: bool = True
    closed_is_read_only: bool = False
    """Whether closed incidents are read-only, as their ACL makes them for the role itil."""
    displayed_states: ClassVar[tuple[str, ...]] = ("acknowledged",)
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("GET", "/api/now/table/incident", "list_incidents"),
        ("POST", "/api/now/table/incident", "create_incident"),
        ("GET", r"/api/now/table/incident/(\w+)", "read_incident"),
        ("PATCH", r"/api/now/table/incident/(\w+)", "edit_incident"),
        ("POST", "/api/now/attachment/file", "attach"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        basic = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {basic}":
            return 401, {
                "error": {"message": "User Not Authenticated", "detail": "Required to provide Auth information"}
            }
        if not self.may_read:
            return 403, {
                "error": {"message": "Insufficient rights to query records", "detail": "ACL"},
                "status": "failure",
            }
        return None

    def list_incidents(self, request: httpx.Request) -> Any:
        query = numbers(request, "sysparm_query", "sysparm_limit", "sysparm_fields", "sysparm_offset")
        wanted = re.fullmatch(r"correlation_id=(\w+)\^ORDERBYDESCsys_created_on", query.get("sysparm_query", ""))
        if "sysparm_query" in query and not wanted:
            raise InvalidRequest(f"query {query['sysparm_query']}")
        found = [
            self._shown(incident, query)
            for id_, incident in reversed(self.incidents.items())
            if self.is_found(self.written[id_]) and (not wanted or incident["correlation_id"] == wanted[1])
        ]
        return 200, {"result": found[: int(query["sysparm_limit"])]}

    def create_incident(self, request: httpx.Request) -> Any:
        query = numbers(request, "sysparm_fields")
        values = body_of(request, needs={"short_description"}, may=FIELDS)
        if bad := self._bad(values):
            return bad
        id_ = f"{len(self.incidents) + 1:032x}"
        number = f"INC{len(self.incidents) + 1:07d}"
        self.incidents[id_] = {"sys_id": id_, "number": number, "state": "1", **values}
        self.written[id_], self.journal[id_] = self.clock.now, []
        return 201, {"result": self._shown(self.incidents[id_], query)}

    def read_incident(self, request: httpx.Request, id_: str) -> Any:
        query = numbers(request, "sysparm_fields", "sysparm_display_value")
        if id_ not in self.incidents:
            return 404, MISSING
        if query.get("sysparm_display_value") == "all":
            notes = "\n\n".join(
                f"2026-01-05 12:00:00 - bot (Work notes)\n{note}" for note in reversed(self.journal[id_])
            )
            return 200, {"result": {"work_notes": {"display_value": notes, "value": ""}}}
        return 200, {"result": self._shown(self.incidents[id_], query)}

    def edit_incident(self, request: httpx.Request, id_: str) -> Any:
        query = numbers(request, "sysparm_fields")
        values = body_of(request, needs=set(), may=FIELDS)
        if id_ not in self.incidents:
            return 404, MISSING
        if bad := self._bad(values):
            return bad
        if self.closed_is_read_only and self.incidents[id_]["state"] in ("7", "8"):
            detail = "ACL Exception Update Failed due to security constraints"
            return 403, {"error": {"message": "Operation Failed", "detail": detail}, "status": "failure"}
        if values.get("state") in ("6", "7") and not (values.get("close_code") and values.get("close_notes")):
            detail = "The following mandatory fields are not filled in: Resolution code, Resolution notes"
            return 403, {"error": {"message": "Operation Failed", "detail": f"Data Policy Exception: {detail}"}}
        if note := values.pop("work_notes", ""):
            self.journal[id_].append(note)
        self.incidents[id_].update(values)
        return 200, {"result": self._shown(self.incidents[id_], query)}

    def attach(self, request: httpx.Request) -> Any:
        query = numbers(request, "table_name", "table_sys_id", "file_name")
        assert request.headers["content-type"] == "image/png"
        self.attached.append(query["table_sys_id"])
        return 201, {"result": {"sys_id": "1", "file_name": query["file_name"]}}

    def _shown(self, incident: dict[str, str], query: dict[str, str]) -> dict[str, str]:
        return {key: incident.get(key, "") for key in query["sysparm_fields"].split(",")}

    def _bad(self, values: dict[str, str]) -> Any:
        if len(values.get("short_description", "")) > 160 or len(values.get("description", "")) > 4000:
            raise InvalidRequest("ServiceNow would cut this in silence")
        if len(values.get("correlation_id", "")) > 100 or values.get("urgency", "1") not in ("1", "2", "3"):
            return 400, {"error": {"message": "Invalid value", "detail": ""}, "status": "failure"}
        return None

    def delete(self, key: str) -> None:
        del self.incidents[key.partition("/")[2]]

    def answer(self, key: str, state: str) -> None:
        states = {"acknowledged": "2", "snoozed": "3", "closed": "6", "wont_fix": "8"}
        self.incidents[key.partition("/")[2]]["state"] = states[state]

    def tickets(self) -> list[StoredTicket]:
        return [
            StoredTicket(
                incident["correlation_id"], incident["state"] not in ("6", "7", "8"), incident["short_description"],
                (incident["description"], *self.journal[id_]),
            )
            for id_, incident in self.incidents.items()
        ]  # fmt: skip
