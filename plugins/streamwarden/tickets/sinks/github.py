"""GitHub issues over REST (version 2022-11-28), also GitHub Enterprise.

An issue is identified by Streamwarden's label and the fingerprint in its text, a comment by its marker. Issues are
listed, not searched, because GitHub's search lags by minutes.
"""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel

from streamwarden.base.config.trackers import Github
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

BODY_LIMIT = 65_536  # characters of an issue or a comment
TITLE_LIMIT = 256
log = logging.getLogger(__name__)
MAY_LABEL = ("triage", "push", "maintain", "admin")


class _Label(BaseModel):
    name: str


class _Issue(BaseModel):
    number: int
    url: str
    html_url: str
    state: str
    state_reason: str | None = None
    locked: bool = False
    body: str | None = None
    labels: list[_Label]
    assignees: list[dict[str, Any]] = []


class _Comment(BaseModel):
    id: int
    body: str | None = None


class _Repository(BaseModel):
    full_name: str
    has_issues: bool
    archived: bool
    permissions: dict[str, bool] = {}


class Tracker(IssueTracker[_Issue]):
    """Client of one repository."""

    remembers = True
    takes_files = False  # GitHub has no API for uploading images; the finding's page shows the chart
    settles = SETTLES

    def __init__(self, name: str, settings: Github, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        _, token = login(name, settings)
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {token}",
        }
        self._api = Api(name, settings.url, network, headers=headers, secrets=(token,))
        self._may_file = False
        self._is_app = token.startswith("ghs_")  # the token of a GitHub App has permissions, but no role

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        repository = self._repository()
        return f"{repository.full_name}: permission to file and label issues"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest issue with this fingerprint, open or closed; None: there is none."""
        wanted = {"state": "all", "labels": self._settings.label, "sort": "created", "direction": "desc"}
        for issue in self._api.pages(f"/repos/{self._settings.repository}/issues", _Issue, **wanted):
            if hidden(fingerprint) in (issue.body or ""):
                return self._issue_of(issue)
        return None

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        try:
            comments = self._api.pages(f"{_path(update.key)}/comments", _Comment)
            return any(hidden(update.marker) in (comment.body or "") for comment in comments)
        except Refused as error:
            raise self._gone_or(update.key, error) from None

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the issue and returns it."""
        if not self._may_file:
            self._repository()  # without permission to label, GitHub drops the label, and the issue would not be found
            self._may_file = True
        issue = self._api.request(
            "POST",
            f"/repos/{self._settings.repository}/issues",
            _Issue,
            json={
                "title": issue_draft.title[:TITLE_LIMIT],
                "body": markdown(issue_draft.notification, issue_draft.fingerprint, BODY_LIMIT),
                "labels": [self._settings.label, issue_draft.severity, *self._settings.labels],
                "assignees": self._settings.assignees,
            },
        )
        if hidden(issue_draft.fingerprint) not in (issue.body or ""):
            raise Unsure(f"{self._api.url}: returned another issue than the one that was sent.")
        if self._settings.label not in {label.name for label in issue.labels}:
            log.warning("%s: the token may not label issues: GitHub dropped the labels", issue.html_url)
        return self._issue_of(issue)

    def update(self, update: Update) -> None:
        """Posts a change to the issue. Raises IssueGone if it no longer exists."""
        issue = self._get(update.key)
        if issue is None or not self._is_ours(issue, update.fingerprint):
            raise IssueGone(f"{update.key}: is not the ticket that was filed.")
        path = _path(update.key)
        names = {label.name for label in issue.labels}
        labels = names - {*SEVERITIES} | {update.severity}
        values: dict[str, Any] = {}
        if update.action == "close":
            values = {"state": "closed", "state_reason": "not_planned" if update.is_wont_fix else "completed"}
        elif update.action == "reopen":
            values = {"state": "open", "state_reason": "reopened"} if issue.state == "closed" else {}
            labels -= {self._settings.snoozed, self._settings.wont_fix}
        if update.answer:
            labels.add(self._settings.label_of(update.answer))
        if labels != names:
            values["labels"] = sorted(labels)
        if values:
            self._api.request("PATCH", path, _Issue, json=values)
        body = {"body": markdown(update.notification, update.marker, BODY_LIMIT)}
        try:
            self._api.request("POST", f"{path}/comments", _Comment, json=body)
        except Refused as error:
            if not (issue.locked or error.status == 422 or "disabled" in error.message):
                raise  # a missing permission or a rate limit: the next run delivers it
            with self._warned_of(update.key, "the comment is left out"):
                raise

    def _require_permissions(self) -> None:
        self._repository()

    def _repository(self) -> _Repository:
        """The repository, after checking that issues can be created in it."""
        name = self._settings.repository
        try:
            repository = self._api.get(f"/repos/{name}", _Repository)
        except Refused as error:
            if error.status != 404:
                raise
            raise TrackerDown(f"{self._api.url}: no repository {name}, or the token has no access to it.") from None
        listed = repository.permissions  # empty where the server does not list them
        problem = (
            "is archived: issues cannot be filed" if repository.archived
            else "has issues disabled (Settings, Features)" if not repository.has_issues
            else "the token may not label issues there: give it Issues: read and write, and its user the role Triage"
            if not self._is_app and listed and not any(listed.get(role) for role in MAY_LABEL)
            else ""
        )  # fmt: skip
        if problem:
            raise TrackerDown(f"{self._api.url}: repository {name}: {problem}.")
        return repository

    def _read(self, key: str) -> _Issue:
        return self._api.get(_path(key), _Issue)

    def _gone_or(self, key: str, error: Refused) -> StreamwardenError:
        """410 means deleted; so does 404 if the repository is accessible."""
        if error.status == 404:
            self._repository()
        return IssueGone(f"{key}: was deleted.") if error.status in (404, 410) else error

    def _is_ours(self, issue: _Issue, fingerprint: str) -> bool:
        body = issue.body or ""  # people may edit it
        return hidden(fingerprint) in body or HIDDEN not in body

    def _issue_of(self, issue: _Issue) -> Issue:
        names = {label.name for label in issue.labels}
        settings = self._settings
        repository = issue.url.rpartition("/repos/")[2].rpartition("/issues/")[0]
        state: State
        if settings.wont_fix in names or (issue.state == "closed" and issue.state_reason == "not_planned"):
            state = "wont_fix"
        elif issue.state == "closed":
            state = "closed"
        elif settings.snoozed in names:
            state = "snoozed"
        elif settings.acknowledged in names:
            state = "acknowledged"
        else:
            state = "open"
        return Issue(f"{repository}#{issue.number}", issue.html_url, state)


def _path(key: str) -> str:
    repository, _, number = key.partition("#")
    return f"/repos/{repository}/issues/{number}"
