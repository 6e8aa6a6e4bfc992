"""GitLab issues over REST (v4), on gitlab.com or a self-managed server.

An issue is identified by Streamwarden's label and the fingerprint in its text, a note by its marker.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from streamwarden.base.config.trackers import Gitlab
from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import SEVERITIES
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
from streamwarden.tickets.sinks.markdown import HIDDEN, hidden, markdown

TEXT_LIMIT = 900_000  # GitLab's limit is 1,048,576 characters, for notes 1,000,000
TITLE_LIMIT = 255
PLANNER = 15  # lowest role that may edit and label issues; before GitLab 17.7 it was Reporter, 20

log = logging.getLogger(__name__)


class _User(BaseModel):
    id: int
    is_admin: bool = False


class _Author(BaseModel):
    id: int


class _Issue(BaseModel):
    iid: int
    author: _Author | None = None
    web_url: str
    state: str
    description: str | None = None
    labels: list[str]
    moved_to_id: int | None = None


class _Note(BaseModel):
    id: int
    body: str


class _Role(BaseModel):
    access_level: int


class _Permissions(BaseModel):
    project_access: _Role | None = None
    group_access: _Role | None = None


class _Project(BaseModel):
    path_with_namespace: str
    archived: bool = False
    issues_enabled: bool = True
    permissions: _Permissions = _Permissions()


class _Upload(BaseModel):
    markdown: str


class Tracker(IssueTracker[_Issue]):
    """Client of one project."""

    remembers = True
    takes_files = True
    settles = SETTLES

    def __init__(self, name: str, settings: Gitlab, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        _, token = login(name, settings)
        self._api = Api(name, settings.url, network, headers={"PRIVATE-TOKEN": token}, secrets=(token,))
        self._may_file = False
        self._user: _User | None = None
        self._path = f"/api/v4/projects/{quote(settings.project, safe='')}"

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        return f"{self._project().path_with_namespace}: issues may be filed, edited and labelled"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest issue with this fingerprint, open or closed; None: there is none."""
        wanted = {"labels": self._settings.label, "state": "all", "order_by": "created_at", "sort": "desc"}
        for issue in self._api.pages(f"{self._path}/issues", _Issue, **wanted):
            if hidden(fingerprint) in (issue.description or ""):
                return self._issue_of(issue)
        return None

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        try:
            notes = self._api.pages(f"{self._path}/issues/{update.key}/notes", _Note, sort="desc")
            return any(hidden(update.marker) in note.body for note in notes)
        except Refused as error:
            raise self._gone_or(update.key, error) from None

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the issue and returns it."""
        if not self._may_file:
            self._project()  # below Planner, GitLab drops the label, and the issue would not be found
            self._may_file = True
        text = markdown(issue_draft.notification, issue_draft.fingerprint, TEXT_LIMIT)
        if issue_draft.plot_png and (picture := self._upload(issue_draft.plot_png)):
            text = f"{text}\n{picture}\n"
        values: dict[str, Any] = {
            "title": issue_draft.title[:TITLE_LIMIT],
            "description": text,
            "labels": ",".join([self._settings.label, issue_draft.severity, *self._settings.labels]),
            **({"assignee_ids": self._settings.assignee_ids} if self._settings.assignee_ids else {}),
        }
        issue = self._api.request("POST", f"{self._path}/issues", _Issue, json=values)
        if hidden(issue_draft.fingerprint) not in (issue.description or ""):
            raise Unsure(f"{self._api.url}: returned another issue than the one that was sent.")
        if self._settings.label not in issue.labels:
            log.warning("%s: the token's role is below Reporter: GitLab dropped the labels", issue.web_url)
        return self._issue_of(issue)

    def update(self, update: Update) -> None:
        """Posts a change to the issue. Raises IssueGone if it no longer exists."""
        issue = self._get(update.key)
        if issue is None or not self._is_ours(issue, update.fingerprint):
            raise IssueGone(f"{self._api.url}: issue {update.key} is not the ticket that was filed.")
        path = f"{self._path}/issues/{issue.iid}"
        leave = {*SEVERITIES} - {update.severity}
        if update.action == "reopen":
            leave |= {self._settings.snoozed, self._settings.wont_fix}
        values: dict[str, Any] = (
            {"remove_labels": gone} if (gone := ",".join(sorted(leave & set(issue.labels)))) else {}
        )
        join = {update.severity}
        if update.answer:
            join.add(self._settings.label_of(update.answer))
        if issue.state == "opened" and update.action == "close":
            values["state_event"] = "close"
            if update.is_wont_fix:
                join.add(self._settings.wont_fix)
        elif issue.state == "closed" and update.action == "reopen":
            values["state_event"] = "reopen"
        if new := ",".join(sorted(join - set(issue.labels))):
            values["add_labels"] = new
        if values:
            self._api.request("PUT", path, _Issue, json=values)
        body = {"body": markdown(update.notification, update.marker, TEXT_LIMIT)}
        with self._warned_of(update.key, "the note is left out"):
            self._api.request("POST", f"{path}/notes", _Note, json=body)

    def _require_permissions(self) -> None:
        self._project()

    def _upload(self, png: bytes) -> str:
        try:
            files = {"file": ("plot.png", png, "image/png")}
            return self._api.request("POST", f"{self._path}/uploads", _Upload, files=files).markdown
        except StreamwardenError as error:  # a ticket without its chart is better than no ticket
            log.warning("no plot in GitLab: %s", error)
            return ""

    def _project(self) -> _Project:
        name = self._settings.project
        try:
            project = self._api.get(self._path, _Project)
        except Refused as error:
            if error.status != 404:
                raise
            raise TrackerDown(f"{self._api.url}: no project {name}, or the token has no access to it.") from None
        problem = (
            "is archived: issues cannot be filed" if project.archived
            else "has issues disabled (Settings, General, Visibility)" if not project.issues_enabled
            else "the token's role is below Reporter: it may not label issues"
            if not self._may_label(project)
            else ""
        )  # fmt: skip
        if problem:
            raise TrackerDown(f"{self._api.url}: project {name}: {problem}.")
        return project

    def _may_label(self, project: _Project) -> bool:
        """The project's permissions list neither members through an invited group nor administrators. A token that may
        not ask who it is, or which role it has, files: the issue shows whether it may label."""
        roles = (project.permissions.project_access, project.permissions.group_access)
        if any(role.access_level >= PLANNER for role in roles if role):
            return True
        if (user := self._me()) is None or user.is_admin:
            return True
        try:
            return self._api.get(f"{self._path}/members/all/{user.id}", _Role).access_level >= PLANNER
        except Refused as error:
            if error.status not in (403, 404):
                raise
            return error.status == 403  # 404: not a member

    def _me(self) -> _User | None:
        """The token's user; None: its scopes do not include that."""
        try:
            self._user = self._user or self._api.get("/api/v4/user", _User)
        except Refused as error:
            if error.status != 403:
                raise
        return self._user

    def _read(self, key: str) -> _Issue:
        return self._api.get(f"{self._path}/issues/{key}", _Issue)

    def _gone_or(self, key: str, error: Refused) -> StreamwardenError:
        if error.status != 404:
            return error
        self._project()  # 404 also means that the project is not visible
        return IssueGone(f"{self._api.url}: issue {key} was deleted.")

    def _is_ours(self, issue: _Issue, fingerprint: str) -> bool:
        """People may edit text and labels. The number alone is not unique: another project has it too."""
        text = issue.description or ""
        if hidden(fingerprint) in text or HIDDEN in text:
            return hidden(fingerprint) in text
        me = self._me()
        is_author = me is not None and issue.author is not None and issue.author.id == me.id
        return self._settings.label in issue.labels or is_author

    def _issue_of(self, issue: _Issue) -> Issue:
        settings = self._settings
        state: State | None = "open"
        if issue.moved_to_id is not None:
            state = None  # closed here by the move; the token may have no access to the other project
        elif settings.wont_fix in issue.labels:
            state = "wont_fix"
        elif issue.state == "closed":
            state = "closed"
        elif settings.snoozed in issue.labels:
            state = "snoozed"
        elif settings.acknowledged in issue.labels:
            state = "acknowledged"
        return Issue(str(issue.iid), issue.web_url, state)
