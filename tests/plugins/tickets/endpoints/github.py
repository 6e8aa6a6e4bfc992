"""GitHub's REST API, version 2022-11-28: issues, comments, labels of one repository.

docs.github.com/rest/issues, …/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, StoredTicket, body_of, numbers

TOKEN = "github-s3cr3t"
APP_TOKEN = "ghs_s3cr3t"
NOT_FOUND = {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}


@dataclass
class Github(Endpoint):
    repository: str = "acme/ops"
    api: str = "https://api.github.com"
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    written: dict[int, datetime] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    """Path → where it is now."""
    deleted: set[int] = field(default_factory=set)
    locked: set[int] = field(default_factory=set)
    """Issues that only who may push comments."""
    has_issues: bool = True
    archived: bool = False
    role: str = "triage"
    lists_permissions: bool = True
    assignable: ClassVar[set[str]] = {"octocat"}
    has_mentions: ClassVar[bool] = True
    displayed_states: ClassVar[tuple[str, ...]] = ("acknowledged", "snoozed")
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("GET", r"/repos/([^/]+/[^/]+)", "read_repository"),
        ("GET", r"/repos/([^/]+/[^/]+)/issues", "list_issues"),
        ("POST", r"/repos/([^/]+/[^/]+)/issues", "create_issue"),
        ("GET", r"/repos/([^/]+/[^/]+)/issues/(\d+)", "read_issue"),
        ("PATCH", r"/repos/([^/]+/[^/]+)/issues/(\d+)", "edit_issue"),
        ("GET", r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments", "list_comments"),
        ("POST", r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments", "create_comment"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        assert request.headers["user-agent"], "GitHub refuses requests without one"
        assert request.headers["x-github-api-version"] == "2022-11-28"
        assert request.headers["accept"] == "application/vnd.github+json"
        if request.headers.get("authorization") not in (f"Bearer {TOKEN}", f"Bearer {APP_TOKEN}"):
            return 401, {"message": "Bad credentials", "status": "401"}
        if target := self.moved.get(request.url.path):
            return 301, {"message": "Moved Permanently", "url": target}, {"Location": target}
        return None

    def read_repository(self, _: httpx.Request, name: str) -> Any:
        if name != self.repository:
            return 404, NOT_FOUND
        permissions = {role: role == self.role for role in ("admin", "maintain", "push", "triage")} | {"pull": True}
        return 200, {
            "id": 1, "full_name": name, "has_issues": self.has_issues, "archived": self.archived,
            **({"permissions": permissions} if self.lists_permissions else {}),
        }  # fmt: skip

    def list_issues(self, request: httpx.Request, name: str) -> Any:
        query = numbers(request, "state", "labels", "sort", "direction", "per_page", "page")
        if name != self.repository:
            return 404, NOT_FOUND
        size = int(query.get("per_page", 30))
        assert size <= 100
        start = (int(query.get("page", 1)) - 1) * size
        found = [
            self.issues[number]
            for number in sorted(self.issues, reverse=query["direction"] == "desc")
            if number not in self.deleted
            and self.is_found(self.written[number])
            and query["labels"] in {label["name"] for label in self.issues[number]["labels"]}
            and (query["state"] == "all" or query["state"] == self.issues[number]["state"])
        ]
        return 200, found[start : start + size]

    def create_issue(self, request: httpx.Request, name: str) -> Any:
        if name != self.repository:
            return 404, NOT_FOUND
        if not self.has_issues:
            return 410, {"message": "Issues are disabled for this repo"}
        values = body_of(request, needs={"title"}, may={"body", "labels", "assignees"})
        if bad := self._invalid(values):
            return bad
        number = len(self.issues) + 1
        may_label = self.role != "none" or request.headers["authorization"] == f"Bearer {APP_TOKEN}"
        self.issues[number] = {
            "id": 1000 + number, "number": number, "state": "open", "state_reason": None, "title": values["title"],
            "body": values.get("body"), "labels": [], "assignees": [],
            "url": f"{self.api}/repos/{name}/issues/{number}", "html_url": f"https://github.com/{name}/issues/{number}",
        }  # fmt: skip
        if may_label:
            self._set(number, values)
        self.written[number], self.comments[number] = self.clock.now, []
        return 201, self.issues[number]

    def read_issue(self, _: httpx.Request, name: str, number: str) -> Any:
        return self._missing(name, number) or (200, self.issues[int(number)] | {"locked": int(number) in self.locked})

    def edit_issue(self, request: httpx.Request, name: str, number: str) -> Any:
        if missing := self._missing(name, number):
            return missing
        values = body_of(request, needs=set(), may={"title", "body", "state", "state_reason", "labels", "assignees"})
        if bad := self._invalid(values):
            return bad
        if values.get("state_reason") not in (None, "completed", "not_planned", "reopened", "duplicate"):
            return 422, {"message": "Validation Failed"}
        issue = self.issues[int(number)]
        self._set(int(number), values)
        issue.update({key: values[key] for key in ("state", "state_reason", "title", "body") if key in values})
        return 200, issue

    def list_comments(self, request: httpx.Request, name: str, number: str) -> Any:
        query = numbers(request, "per_page", "page", "since")
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        return self._missing(name, number) or (200, self.comments[int(number)][(page - 1) * size : page * size])

    def create_comment(self, request: httpx.Request, name: str, number: str) -> Any:
        values = body_of(request, needs={"body"})
        if missing := self._missing(name, number):
            return missing
        if bad := self._invalid(values):
            return bad
        if int(number) in self.locked and self.role not in ("push", "maintain", "admin"):
            return 403, {"message": "Unable to create comment because issue is locked.", "status": "403"}
        comments = self.comments[int(number)]
        comments.append({"id": len(comments) + 1, "body": values["body"]})
        return 201, comments[-1]

    def _set(self, number: int, values: dict[str, Any]) -> None:
        if "labels" in values:
            self.issues[number]["labels"] = [{"id": 1, "name": name} for name in dict.fromkeys(values["labels"])]
        if "assignees" in values:
            self.issues[number]["assignees"] = [{"login": login} for login in values["assignees"]]

    def _invalid(self, values: dict[str, Any]) -> Any:
        bad = [
            {"resource": "Issue", "field": key, "code": "custom", "message": f"{key} is too long (maximum is {most})"}
            for key, most in (("title", 256), ("body", 65_536))
            if len(values.get(key) or "") > most
        ] + [
            {"resource": "Issue", "field": "assignees", "code": "invalid", "value": login}
            for login in values.get("assignees", [])
            if login not in self.assignable
        ]  # fmt: skip
        return (422, {"message": "Validation Failed", "errors": bad}) if bad else None

    def _missing(self, name: str, number: str) -> Any:
        if int(number) in self.deleted:
            return 410, {"message": "This issue was deleted", "status": "410"}
        return (404, NOT_FOUND) if name != self.repository or int(number) not in self.issues else None

    def delete(self, key: str) -> None:
        self.deleted.add(int(key.partition("#")[2]))

    def answer(self, key: str, state: str) -> None:
        issue = self.issues[int(key.partition("#")[2])]
        if state in ("closed", "wont_fix"):
            message = "completed" if state == "closed" else "not_planned"
            issue.update(state="closed", state_reason=message)
        else:
            issue["labels"].append({"id": 2, "name": state})

    def tickets(self) -> list[StoredTicket]:
        return [
            StoredTicket(
                "".join(re.findall(r"<!-- streamwarden: (\w+) -->", issue["body"])[:1]),
                issue["state"] == "open", issue["title"],
                (issue["body"], *(comment["body"] for comment in self.comments[number])),
            )
            for number, issue in self.issues.items()
            if number not in self.deleted
        ]  # fmt: skip
