"""Jira: Cloud (REST v3) and Data Center (REST v2).

An issue is identified by its key; if the key is unknown, by the reference at the end of its description (or a custom
field), never by labels, because people edit them. A comment is identified by its last line. JQL lags behind writes, so
a request without a response is sent again only after a while (`settles`).
"""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel

from streamwarden.base.config.trackers import Jira
from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import SEVERITIES
from streamwarden.tickets.sinks.contract import SETTLES, Issue, IssueDraft, IssueGone, State, TrackerDown, Update
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network, Refused
from streamwarden.tickets.sinks.issues import IssueTracker
from streamwarden.tickets.sinks.jira_markup import adf, adf_text, fingerprints, reference, wiki

SUMMARY_LIMIT = 255
PAGE = 100
CANDIDATES = 10  # issues with the fingerprint in their description; some may only quote it
NEEDED = ("BROWSE_PROJECTS", "CREATE_ISSUES", "EDIT_ISSUES", "ADD_COMMENTS", "TRANSITION_ISSUES")

log = logging.getLogger(__name__)


class _Named(BaseModel):
    name: str


class _Category(BaseModel):
    key: str


class _Status(BaseModel):
    name: str
    statusCategory: _Category


class _Fields(BaseModel):
    status: _Status
    resolution: _Named | None = None
    labels: list[str] = []
    description: Any = None
    model_config = {"extra": "allow"}


class _Issue(BaseModel):
    key: str
    fields: _Fields


class _Created(BaseModel):
    id: str
    key: str


class _Found(BaseModel):
    issues: list[_Issue]


class _Comment(BaseModel):
    id: str
    body: Any = None


class _Comments(BaseModel):
    comments: list[_Comment]
    total: int


class _Transition(BaseModel):
    id: str
    name: str
    to: _Status


class _Transitions(BaseModel):
    transitions: list[_Transition]


class _Project(BaseModel):
    key: str
    issueTypes: list[_Named]


class _Permission(BaseModel):
    havePermission: bool


class _Permissions(BaseModel):
    permissions: dict[str, _Permission]


class Tracker(IssueTracker[_Issue]):
    """Client of one project."""

    remembers = True
    takes_files = True
    settles = SETTLES

    def __init__(self, name: str, settings: Jira, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        user, password = login(name, settings)
        headers = {} if user else {"Authorization": f"Bearer {password}"}
        self._api = Api(
            name, settings.url, network, headers=headers, auth=(user, password) if user else None, secrets=(password,)
        )
        self._rest = f"/rest/api/{3 if settings.edition == 'cloud' else 2}"

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        project = self._project()
        types = [kind.name for kind in project.issueTypes]
        if self._settings.issue_type not in types:
            raise StreamwardenError(
                f"{self._api.url}: project {project.key} has no issue type '{self._settings.issue_type}'; it has"
                f" {', '.join(types)}."
            )
        self._require_permissions(project.key)
        return f"project {project.key}, type {self._settings.issue_type}: permission to file, edit, and close issues"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest issue with this fingerprint, open or closed; None: there is none."""
        settings = self._settings
        known_by = f'description ~ "{fingerprint}"'
        if own := settings.fingerprint_field:
            known_by = f'({known_by} OR cf[{own.removeprefix("customfield_")}] ~ "{fingerprint}")'
        jql = f'project = "{settings.project}" AND {known_by} ORDER BY created DESC'
        path = f"{self._rest}/search{'/jql' if settings.edition == 'cloud' else ''}"
        asked = {"jql": jql, "maxResults": CANDIDATES, "fields": self._fields()}
        found = self._api.request("POST", path, _Found, harmless=True, json=asked).issues
        return next((self._issue_of(issue) for issue in found if fingerprint in self._fingerprints(issue)), None)

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        start = 0
        while True:
            path = f"{self._rest}/issue/{update.key}/comment"
            try:
                page = self._api.get(path, _Comments, startAt=start, maxResults=PAGE)
            except Refused as error:
                raise self._gone_or(update.key, error) from None
            if any(reference(update.marker) in adf_text(comment.body) for comment in page.comments):
                return True
            start += len(page.comments)
            if not page.comments or start >= page.total:
                return False

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the issue and returns it."""
        settings = self._settings
        fields: dict[str, Any] = {
            "project": {"key": settings.project},
            "issuetype": {"name": settings.issue_type},
            "summary": issue_draft.title[:SUMMARY_LIMIT],
            "description": self._body(issue_draft.notification, issue_draft.fingerprint),
            "labels": [settings.label, issue_draft.severity, _label(issue_draft.fingerprint), *settings.labels],
            **({"priority": {"name": priority}} if (priority := settings.priority_of(issue_draft.severity)) else {}),
            **({settings.fingerprint_field: issue_draft.fingerprint} if settings.fingerprint_field else {}),
            **settings.fields,
        }
        created = self._api.request("POST", f"{self._rest}/issue", _Created, json={"fields": fields})
        if issue_draft.plot_png:
            self._attach(created.key, issue_draft.plot_png)
        return Issue(created.key, self._page(created.key), "open")

    def update(self, update: Update) -> None:
        """Posts a change to the issue. Raises IssueGone if it no longer exists."""
        issue = self._get(update.key)
        if issue is None or not self._is_ours(issue, update.fingerprint):
            raise IssueGone(f"{self._page(update.key)}: is not the ticket that was filed.")
        path = f"{self._rest}/issue/{issue.key}"
        if edit := self._edit(issue, update):
            with self._warned_of(issue.key, "its labels stay as they are"):
                self._api.request("PUT", path, type(None), json=edit)
        is_done = issue.fields.status.statusCategory.key == "done"
        if update.action in ("close", "reopen") and is_done != (update.action == "close"):
            self._transit(issue, update)
        body = {"body": self._body(update.notification, update.marker)}
        with self._warned_of(issue.key, "the comment is left out"):
            self._api.request("POST", f"{path}/comment", _Comment, json=body)

    def _edit(self, issue: _Issue, update: Update) -> dict[str, Any]:
        """Labels and priority that differ; labels are added and removed one by one, to keep those that people set."""
        settings, labels = self._settings, set(issue.fields.labels)
        leave = {*SEVERITIES} - {update.severity}
        if update.action == "reopen":
            leave |= {settings.snoozed, settings.wont_fix}
        join = {update.severity} | ({settings.label_of(update.answer)} if update.answer else set())
        changes = [{"add": label} for label in sorted(join - labels)]
        changes += [{"remove": label} for label in sorted(leave & labels)]
        if not changes:
            return {}
        priority = settings.priority_of(update.severity)
        return {"update": {"labels": changes}} | ({"fields": {"priority": {"name": priority}}} if priority else {})

    def _transit(self, issue: _Issue, update: Update) -> None:
        settings = self._settings
        path = f"{self._rest}/issue/{issue.key}/transitions"
        offered = self._api.get(path, _Transitions).transitions
        closes = update.action == "close"
        wanted = settings.close_transition if closes else settings.reopen_transition
        fitting = [one for one in offered if (one.to.statusCategory.key == "done") == closes]
        chosen = next((one for one in offered if one.name == wanted), None) if wanted else next(iter(fitting), None)
        if chosen is None:
            names = ", ".join(f"'{one.name}'" for one in offered) or "none"
            key = f"{'close' if closes else 'reopen'}_transition"
            named = f"'{wanted}' " if wanted else ""
            raise StreamwardenError(
                f"{self._page(issue.key)}: no transition {named}to {update.action} it from status"
                f" '{issue.fields.status.name}': name one of {names} in tickets.trackers.{self.name}.{key}."
            )
        resolution = settings.wont_fix_resolution if update.is_wont_fix else settings.resolution
        fields = {"fields": {"resolution": {"name": resolution}}} if closes and resolution else {}
        self._api.request("POST", path, type(None), json={"transition": {"id": chosen.id}, **fields})

    def _attach(self, key: str, png: bytes) -> None:
        path, header = f"{self._rest}/issue/{key}/attachments", {"X-Atlassian-Token": "no-check"}
        try:
            self._api.request("POST", path, list[Any], files={"file": ("plot.png", png, "image/png")}, headers=header)
        except StreamwardenError as error:  # a ticket without its chart is better than no ticket
            log.warning("no plot at %s: %s", key, error)

    def _require_permissions(self, project: str | None = None) -> None:
        project = project or self._project().key
        asked = {"projectKey": project, "permissions": ",".join(NEEDED)}
        held = self._api.get(f"{self._rest}/mypermissions", _Permissions, **asked).permissions
        if missing := [name for name in NEEDED if name not in held or not held[name].havePermission]:
            raise StreamwardenError(f"{self._api.url}: project {project}: missing permissions: {', '.join(missing)}.")

    def _project(self) -> _Project:
        try:
            return self._api.get(f"{self._rest}/project/{self._settings.project}", _Project)
        except Refused as error:
            if error.status != 404:
                raise
            raise TrackerDown(
                f"{self._api.url}: no project {self._settings.project}, or the user has no access to it."
            ) from None

    def _read(self, key: str) -> _Issue:
        return self._api.get(f"{self._rest}/issue/{key}", _Issue, fields=",".join(self._fields()))

    def _gone_or(self, key: str, error: Refused) -> StreamwardenError:
        if error.status != 404:
            return error
        self._project()  # 404 also means that the project is not visible
        return IssueGone(f"{self._page(key)}: was deleted.")

    def _fields(self) -> list[str]:
        own = self._settings.fingerprint_field
        return ["status", "resolution", "labels", "description", *([own] if own else [])]

    def _is_ours(self, issue: _Issue, fingerprint: str) -> bool:
        """The key identifies the issue, unless the issue has the reference of another finding."""
        found = self._fingerprints(issue)
        return fingerprint in found or not found

    def _fingerprints(self, issue: _Issue) -> set[str]:
        """Fingerprints in an issue: at the end of its description, and in the custom field."""
        value = getattr(issue.fields, self._settings.fingerprint_field or "", None)
        found = fingerprints(adf_text(issue.fields.description))
        return found | ({value} if isinstance(value, str) and value else set())

    def _issue_of(self, issue: _Issue) -> Issue:
        fields, settings = issue.fields, self._settings
        is_done = fields.status.statusCategory.key == "done"
        refusals = {"Won't Do", "Won't Fix", settings.wont_fix_resolution}
        state: State = "open"
        if settings.wont_fix in fields.labels or (is_done and fields.resolution and fields.resolution.name in refusals):
            state = "wont_fix"
        elif is_done:
            state = "closed"
        elif settings.snoozed in fields.labels:
            state = "snoozed"
        elif settings.acknowledged in fields.labels or fields.status.statusCategory.key == "indeterminate":
            state = "acknowledged"
        return Issue(issue.key, self._page(issue.key), state)

    def _body(self, notification: Any, marker: str) -> Any:
        return adf(notification, marker) if self._settings.edition == "cloud" else wiki(notification, marker)

    def _page(self, key: str) -> str:
        return f"{self._api.url}/browse/{key}"


def _label(fingerprint: str) -> str:
    """Label for searches by people; Streamwarden does not read it."""
    return f"streamwarden-{fingerprint[:32]}"
