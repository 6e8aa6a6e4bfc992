"""ServiceNow incidents by the Table API.

An incident is identified by its correlation id, which is the fingerprint, a work note by its last line. State and note
are set by one request.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from pydantic import BaseModel

from streamwarden.base.config.trackers import ServiceNow
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import (
    SETTLES,
    Issue,
    IssueDraft,
    IssueGone,
    State,
    TrackerDown,
    Unsure,
    Update,
)
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network, Refused
from streamwarden.tickets.sinks.issues import IssueTracker
from streamwarden.tickets.sinks.plain import notification_text

TABLE = "/api/now/table/incident"
TITLE_LIMIT = 160
TEXT_LIMIT = 4000
FIELDS = "sys_id,number,state,correlation_id"
NEW, WORKED_ON, ON_HOLD, RESOLVED, CLOSED, CANCELED = "1", "2", "3", "6", "7", "8"
STATES: dict[str, State] = {
    NEW: "open", WORKED_ON: "acknowledged", ON_HOLD: "snoozed", RESOLVED: "closed", CLOSED: "closed",
    CANCELED: "wont_fix",
}  # fmt: skip
URGENCY = {"critical": "1", "warning": "2", "info": "3"}

log = logging.getLogger(__name__)


class _Incident(BaseModel):
    sys_id: str
    number: str
    state: str
    correlation_id: str = ""


class _One(BaseModel):
    result: _Incident


class _Many(BaseModel):
    result: list[_Incident]


class _Shown(BaseModel):
    display_value: str | None
    value: str | None


class _Notes(BaseModel):
    work_notes: _Shown


class _Journal(BaseModel):
    result: _Notes


class Tracker(IssueTracker[_Incident]):
    """Client of one instance."""

    remembers = True
    takes_files = True
    settles = SETTLES

    def __init__(self, name: str, settings: ServiceNow, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        user, password = login(name, settings)
        headers = {} if user else {"Authorization": f"Bearer {password}"}
        self._api = Api(
            name, settings.url, network, headers=headers, auth=(user, password) if user else None, secrets=(password,)
        )

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        self._require_table()
        return "incidents can be read; the first ticket shows whether filing is permitted"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest incident with this fingerprint, open or closed; None: there is none."""
        query = f"correlation_id={fingerprint}^ORDERBYDESCsys_created_on"
        found = self._api.get(TABLE, _Many, sysparm_query=query, sysparm_limit=1, sysparm_fields=FIELDS).result
        return self._issue_of(found[0]) if found else None

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        asked = {"sysparm_fields": "work_notes", "sysparm_display_value": "all"}
        try:
            notes = self._api.get(f"{TABLE}/{_id(update.key)}", _Journal, **asked).result.work_notes
        except Refused as error:
            raise self._gone_or(update.key, error) from None
        return _reference(update.marker) in (notes.display_value or "")

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the incident and returns it."""
        values: dict[str, Any] = {
            "short_description": issue_draft.title[:TITLE_LIMIT],
            "description": _plain(notification_text(issue_draft.notification, TEXT_LIMIT)),
            "correlation_id": issue_draft.fingerprint,
            "correlation_display": "Streamwarden",
            "urgency": URGENCY[issue_draft.severity],
            **({"assignment_group": self._settings.assignment_group} if self._settings.assignment_group else {}),
            **self._settings.fields,
        }
        incident = self._api.request("POST", TABLE, _One, json=values, params={"sysparm_fields": FIELDS}).result
        if incident.correlation_id != issue_draft.fingerprint:
            raise Unsure(f"{self._api.url}: returned another incident than the one that was sent.")
        if issue_draft.plot_png:
            self._attach(incident.sys_id, issue_draft.plot_png)
        return self._issue_of(incident)

    def update(self, update: Update) -> None:
        """Posts a change to the incident. Raises IssueGone if it no longer exists."""
        incident = self._get(update.key)
        if incident is None or not self._is_ours(incident, update.fingerprint):
            raise IssueGone(f"{self._api.url}: {update.key} is not the incident that was filed.")
        reference = _reference(update.marker)
        text = _plain(notification_text(update.notification, TEXT_LIMIT - len(reference) - 1))
        values: dict[str, Any] = {"work_notes": f"{text}\n{reference}", "urgency": URGENCY[update.severity]}
        is_over = incident.state in (RESOLVED, CLOSED, CANCELED)
        if update.action == "close" and not is_over:
            state = CANCELED if update.is_wont_fix else RESOLVED
            code = {"close_code": self._settings.close_code, "close_notes": text.strip()}
            values |= {"state": state, **code}
        elif update.answer == "acknowledged" and incident.state == NEW:
            values["state"] = WORKED_ON
        elif update.action == "reopen":
            if incident.state in (CLOSED, CANCELED):
                raise IssueGone(f"{self._api.url}: {update.key} is closed permanently.")
            values["state"] = NEW  # people set In Progress themselves
        asked = {"sysparm_fields": FIELDS}
        try:
            self._api.request("PATCH", f"{TABLE}/{incident.sys_id}", _One, json=values, params=asked)
        except Refused:
            if not is_over:
                raise
            with self._warned_of(update.key, "it is closed, and the work note is left out"):
                raise

    def _require_permissions(self) -> None:
        self._require_table()

    def _attach(self, sys_id: str, png: bytes) -> None:
        asked = {"table_name": "incident", "table_sys_id": sys_id, "file_name": "plot.png"}
        header = {"Content-Type": "image/png"}
        try:
            self._api.request("POST", "/api/now/attachment/file", object, params=asked, content=png, headers=header)
        except StreamwardenError as error:  # a ticket without its chart is better than no ticket
            log.warning("no plot in ServiceNow: %s", error)

    def _require_table(self) -> None:
        try:
            self._api.get(TABLE, _Many, sysparm_limit=1, sysparm_fields=FIELDS)
        except Refused as error:
            raise TrackerDown(f"{error}: the user needs the role itil (or sn_incident_write).") from None

    def _read(self, key: str) -> _Incident:
        return self._api.get(f"{TABLE}/{_id(key)}", _One, sysparm_fields=FIELDS).result

    def _gone_or(self, key: str, error: Refused) -> StreamwardenError:
        if error.status != 404:
            return error
        self._require_table()  # 404 also means that the table is not visible
        return IssueGone(f"{self._api.url}: {key} was deleted.")

    def _is_ours(self, incident: _Incident, fingerprint: str) -> bool:
        """A sys_id is never reused, so only the fingerprint of another finding shows that the incident is not ours."""
        return incident.correlation_id == fingerprint or not re.fullmatch("[0-9a-f]{64}", incident.correlation_id)

    def _issue_of(self, incident: _Incident) -> Issue:
        url = f"{self._api.url}/nav_to.do?uri=incident.do%3Fsys_id%3D{incident.sys_id}"
        return Issue(f"{incident.number}/{incident.sys_id}", url, STATES.get(incident.state))


def _id(key: str) -> str:
    return key.partition("/")[2]


def _reference(marker: str) -> str:
    return f"Reference: {marker}"


def _plain(text: str) -> str:
    """Text in which `[code]` begins no HTML, as it does in journal fields."""
    return re.sub(r"\[(?=/?code\])", "(", text, flags=re.IGNORECASE)
