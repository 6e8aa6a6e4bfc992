"""PagerDuty: incidents by the Events API v2; with a token, notes and people's responses by the REST API.

An incident is identified by its dedup key, which is derived from the fingerprint: a repeated event creates no second
incident. PagerDuty cannot reopen: a finding that fires again is a new incident with the same key. PagerDuty creates
an incident some time after its event. Until then the newest incident with the key is the former one, and changes wait,
because a close would end up there. An event that resolves has no text: without a token, the reason of closing and
comments on closed incidents are not delivered.
"""

from __future__ import annotations

import logging
from typing import Any, Literal

from pydantic import BaseModel

from streamwarden.base.config.trackers import PagerDuty
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import SETTLES, Issue, IssueDraft, IssueGone, Notification, State, Update
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network, Refused
from streamwarden.tickets.sinks.plain import notification_text

SUMMARY_LIMIT = 1024
TEXT_LIMIT = 100_000  # an event has at most 512 KB, a character up to four bytes
NOTE_LIMIT = 25_000
log = logging.getLogger(__name__)
STATES: dict[str, State] = {"triggered": "open", "acknowledged": "acknowledged", "resolved": "closed"}
_BEFORE = "streamwarden-"


class _Accepted(BaseModel):
    status: Literal["success"]
    dedup_key: str


class _Incident(BaseModel):
    id: str
    html_url: str
    status: str
    incident_key: str


class _Incidents(BaseModel):
    incidents: list[_Incident]


class _Note(BaseModel):
    content: str


class _Notes(BaseModel):
    notes: list[_Note]


class _NewNote(BaseModel):
    note: _Note


class Tracker:
    """Client of one integration of a service."""

    takes_files = False
    settles = SETTLES

    def __init__(self, name: str, settings: PagerDuty, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        user, self._routing_key = login(name, settings)
        self._events = Api(name, settings.url, network, secrets=(self._routing_key,))
        headers = {
            "Accept": "application/vnd.pagerduty+json;version=2",
            "Authorization": f"Token token={settings.api_token}",
            "From": user,
        }
        token = settings.api_token or ""
        self._rest = Api(name, settings.api_url, network, headers=headers, secrets=(token,)) if token else None
        self.remembers = self._rest is not None
        self._resolved_before: dict[str, str] = {}
        """By dedup key: id of the resolved incident after which this run triggers a new one."""

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        if self._rest is None:
            return "events cannot be tested without an incident; without `api_token` responses of people are not read"
        self._rest.get("/incidents", _Incidents, limit=1)
        return "incidents can be read; events cannot be tested without an incident"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest incident with this fingerprint, open or closed; None: there is none."""
        incident = self._newest(_key(fingerprint))
        self._note_resolved(incident)  # a create follows
        return self._issue_of(incident) if incident else None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The incident with this key as it is now; None: it was deleted, or belongs to another finding."""
        if key != _key(fingerprint):
            return None
        incident = self._newest(key)  # events are processed with a delay, so a missing incident may not exist yet
        return self._issue_of(incident) if incident else Issue(key, None, None)

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        self._require_ours(update)
        incident = self._newest(update.key)
        if self._rest is None or incident is None:
            return False
        if update.action == "reopen":
            return incident.status != "resolved"
        notes = self._rest.get(f"/incidents/{incident.id}/notes", _Notes).notes
        return any(update.marker in note.content for note in notes)

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the incident and returns it."""
        key = _key(issue_draft.fingerprint)
        self._trigger(key, issue_draft.title, issue_draft.severity, issue_draft.notification, issue_draft.fingerprint)
        return Issue(key, None, "open")

    def update(self, update: Update) -> None:
        """Posts a change to the incident. Raises IssueGone if it no longer exists."""
        self._require_ours(update)
        incident = self._newest(update.key)
        if self._rest is not None and (incident is None or self._is_former(incident, update)):
            raise StreamwardenError(
                f"{self._rest.url}: {update.key}: the incident does not exist yet; the next run delivers it."
            )
        if update.action == "close":
            self._send({"event_action": "resolve", "dedup_key": update.key})
        elif update.action == "reopen" or (self._rest is None and update.is_open):
            self._note_resolved(incident)
            self._trigger(update.key, update.title, update.severity, update.notification, update.marker)
        elif incident is not None and incident.status != "resolved":
            self._trigger(update.key, update.title, update.severity, None, update.marker)  # updates the severity
        if update.answer == "acknowledged" and update.is_open:
            self._send({"event_action": "acknowledge", "dedup_key": update.key})
        if self._rest is not None and incident is not None and update.action != "reopen":
            text = notification_text(update.notification, NOTE_LIMIT - 200)
            note = {"note": {"content": f"{text}\nReference: {update.marker}"}}
            try:
                self._rest.request("POST", f"/incidents/{incident.id}/notes", _NewNote, json=note)
            except Refused as error:  # the event took effect; a refusal would repeat and block all later changes
                log.warning("%s: %s: the note is left out", update.key, error)

    def _trigger(self, key: str, title: str, severity: str, notification: Notification | None, marker: str) -> None:
        finding = notification.finding if notification else None
        details = {"text": notification_text(notification, TEXT_LIMIT)} if notification else {}
        event: dict[str, Any] = {
            "event_action": "trigger",
            "dedup_key": key,
            "client": "Streamwarden",
            "payload": {
                "summary": title[:SUMMARY_LIMIT],
                "source": finding.resource_name if finding and finding.resource_name else "streamwarden",
                "severity": severity,
                "custom_details": {**details, "reference": marker},
                **({"class": finding.detector} if finding else {}),
            },
        }
        if notification and notification.url:
            event |= {
                "client_url": notification.url,
                "links": [{"href": notification.url, "text": "Chart, history, detector, SQL"}],
            }
        if self._settings.image_url and notification:
            source = self._settings.image_url.replace("{fingerprint}", key.removeprefix(_BEFORE))
            event["images"] = [{"src": source, "href": notification.url or source, "alt": "The evidence"}]
        self._send(event)

    def _send(self, event: dict[str, Any]) -> None:
        self._events.request("POST", "/v2/enqueue", _Accepted, json={"routing_key": self._routing_key, **event})

    def _newest(self, key: str) -> _Incident | None:
        if self._rest is None:
            return None
        asked = {"incident_key": key, "date_range": "all", "sort_by": "created_at:desc", "limit": 1}
        try:
            found = self._rest.get("/incidents", _Incidents, **asked).incidents
        except Refused as error:
            raise StreamwardenError(f"{error}; check `api_token` of tickets.trackers.{self.name}.") from None
        return found[0] if found else None

    def _require_ours(self, update: Update) -> None:
        if update.key != _key(update.fingerprint):
            raise IssueGone(f"{update.key}: is not the incident that was triggered.")

    def _note_resolved(self, incident: _Incident | None) -> None:
        if incident is not None and incident.status == "resolved":
            self._resolved_before[incident.incident_key] = incident.id

    def _is_former(self, incident: _Incident, update: Update) -> bool:
        """Whether this is the incident before the one to change, which PagerDuty has not created yet."""
        if update.action == "reopen" or incident.status != "resolved":
            return False
        return update.is_start_new or self._resolved_before.get(update.key) == incident.id

    def _issue_of(self, incident: _Incident) -> Issue:
        return Issue(incident.incident_key, incident.html_url, STATES.get(incident.status))


def _key(fingerprint: str) -> str:
    return f"{_BEFORE}{fingerprint}"
