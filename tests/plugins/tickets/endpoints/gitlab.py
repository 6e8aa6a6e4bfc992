"""GitLab's REST API v4: issues, notes and uploads of one project.

docs.gitlab.com/api/issues, …/api/notes, …/api/members, …/api/users
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, InvalidRequest, StoredTicket, body_of, numbers

TOKEN = "glpat-gitlab-s3cr3t"
PROJECT = "acme/ops"
MISSING = {"message": "404 Not found"}
BOT = 7


@dataclass
class Gitlab(Endpoint):
    project: str = PROJECT
    role: int = 20
    shown: bool = True
    """The role stands in the project's permissions; else the user is a member through an invited group."""
    is_admin: bool = False
    locked: set[int] = field(default_factory=set)
    """Issues that may not be commented."""
    scopes: frozenset[str] = frozenset({"user", "member"})
    """What a fine-grained token may read besides issues."""
    archived: bool = False
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    written: dict[int, datetime] = field(default_factory=dict)
    notes: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    uploads: int = 0
    has_mentions: ClassVar[bool] = True
    displayed_states: ClassVar[tuple[str, ...]] = ("acknowledged", "snoozed")
    has_quick_actions: ClassVar[bool] = True
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("GET", r"/api/v4/projects/(acme/\w+)", "read_project"),
        ("GET", "/api/v4/user", "read_user"),
        ("GET", r"/api/v4/projects/(acme/\w+)/members/all/(\d+)", "read_member"),
        ("GET", r"/api/v4/projects/(acme/\w+)/issues", "list_issues"),
        ("POST", r"/api/v4/projects/(acme/\w+)/issues", "create_issue"),
        ("GET", r"/api/v4/projects/(acme/\w+)/issues/(\d+)", "read_issue"),
        ("PUT", r"/api/v4/projects/(acme/\w+)/issues/(\d+)", "edit_issue"),
        ("GET", r"/api/v4/projects/(acme/\w+)/issues/(\d+)/notes", "list_notes"),
        ("POST", r"/api/v4/projects/(acme/\w+)/issues/(\d+)/notes", "create_note"),
        ("POST", r"/api/v4/projects/(acme/\w+)/uploads", "upload"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        if b"acme%2F" not in request.url.raw_path and request.url.path != "/api/v4/user":
            raise InvalidRequest("a project's path is one part of the address: %2F")
        if request.headers.get("private-token") != TOKEN:
            return 401, {"message": "401 Unauthorized"}
        return None

    def read_project(self, _: httpx.Request, name: str) -> Any:
        if name != self.project:
            return 404, {"message": "404 Project Not Found"}
        access = {"access_level": self.role, "notification_level": 3} if self.shown and self.role else None
        permissions = {"project_access": access, "group_access": None}
        return 200, {
            "id": 1, "path_with_namespace": name, "archived": self.archived, "issues_enabled": True,
            "permissions": permissions,
        }  # fmt: skip

    def read_user(self, _: httpx.Request) -> Any:
        if "user" not in self.scopes:
            return 403, {"error": "insufficient_granular_scope"}
        return 200, {"id": BOT, "username": "bot"} | ({"is_admin": True} if self.is_admin else {})

    def read_member(self, _: httpx.Request, name: str, user: str) -> Any:
        if "member" not in self.scopes:
            return 403, {"message": "403 Forbidden"}
        if name != self.project or int(user) != BOT or not self.role:
            return 404, MISSING
        return 200, {"id": BOT, "username": "bot", "state": "active", "access_level": self.role}

    def list_issues(self, request: httpx.Request, name: str) -> Any:
        query = numbers(request, "labels", "state", "order_by", "sort", "per_page", "page")
        if name != self.project:
            return 404, MISSING
        size, page = int(query["per_page"]), int(query["page"])
        found = [
            issue
            for number, issue in sorted(self.issues.items(), reverse=query["sort"] == "desc")
            if self.is_found(self.written[number]) and query["labels"] in issue["labels"]
        ]
        return 200, found[(page - 1) * size : page * size]

    def create_issue(self, request: httpx.Request, name: str) -> Any:
        values = body_of(request, needs={"title"}, may={"description", "labels", "assignee_ids"})
        if name != self.project:
            return 404, MISSING
        if len(values["title"]) > 255:
            return 400, {"message": {"title": ["is too long (maximum is 255 characters)"]}}
        if bad := self._text(values.get("description", ""), 1_048_576):
            return bad
        number = len(self.issues) + 1
        self.issues[number] = {
            "id": 100 + number, "iid": number, "state": "opened", "title": values["title"], "moved_to_id": None,
            "description": values.get("description"), "labels": self._labels(values["labels"]),
            "author": {"id": BOT, "username": "bot"}, "discussion_locked": None,
            "web_url": f"https://gitlab.com/{name}/-/issues/{number}",
        }  # fmt: skip
        self.written[number], self.notes[number] = self.clock.now, []
        return 201, self.issues[number]

    def read_issue(self, _: httpx.Request, name: str, number: str) -> Any:
        return self._missing(name, number) or (200, self.issues[int(number)])

    def edit_issue(self, request: httpx.Request, name: str, number: str) -> Any:
        values = body_of(
            request, needs=set(), may={"state_event", "add_labels", "remove_labels", "description", "title"}
        )
        if missing := self._missing(name, number):
            return missing
        if not self._may_label():
            return 403, {"message": "403 Forbidden"}
        issue = self.issues[int(number)]
        if "state_event" in values:
            issue["state"] = {"close": "closed", "reopen": "opened"}[values["state_event"]]
        gone, new = (set(filter(None, values.get(key, "").split(","))) for key in ("remove_labels", "add_labels"))
        issue["labels"] = [label for label in issue["labels"] if label not in gone] + sorted(new - set(issue["labels"]))
        return 200, issue

    def list_notes(self, request: httpx.Request, name: str, number: str) -> Any:
        query = numbers(request, "sort", "order_by", "per_page", "page")
        size, page = int(query["per_page"]), int(query["page"])
        return self._missing(name, number) or (
            200, list(reversed(self.notes[int(number)]))[(page - 1) * size : page * size],
        )  # fmt: skip

    def create_note(self, request: httpx.Request, name: str, number: str) -> Any:
        values = body_of(request, needs={"body"})
        if bad := self._missing(name, number) or self._text(values["body"], 1_000_000):
            return bad
        if int(number) in self.locked:
            return 403, {"message": "403 Forbidden"}
        notes = self.notes[int(number)]
        notes.append({"id": len(notes) + 1, "body": values["body"]})
        return 201, notes[-1]

    def upload(self, request: httpx.Request, _: str) -> Any:
        assert b'name="file"' in request.content
        self.uploads += 1
        return 201, {"alt": "plot", "url": "/uploads/1/plot.png", "markdown": "![plot](/uploads/1/plot.png)"}

    def _labels(self, given: str) -> list[str]:
        return given.split(",") if self._may_label() else []

    def _may_label(self) -> bool:
        return self.is_admin or self.role >= 15  # Planner

    def _text(self, text: str, most: int) -> Any:
        if re.search(r"^/(close|label|assign|spend)", text, flags=re.MULTILINE):
            raise InvalidRequest("a quick action")
        return (
            (400, {"message": {"note": [f"is too long (maximum is {most} characters)"]}}) if len(text) > most else None
        )

    def _missing(self, name: str, number: str) -> Any:
        return (404, MISSING) if name != self.project or int(number) not in self.issues else None

    def delete(self, key: str) -> None:
        del self.issues[int(key)]

    def answer(self, key: str, state: str) -> None:
        issue = self.issues[int(key)]
        if state == "closed":
            issue["state"] = "closed"
        else:
            issue["labels"].append({"wont_fix": "wont-fix"}.get(state, state))

    def tickets(self) -> list[StoredTicket]:
        return [
            StoredTicket(
                "".join(re.findall(r"<!-- streamwarden: (\w+) -->", issue["description"])[:1]),
                issue["state"] == "opened", issue["title"],
                (issue["description"], *(note["body"] for note in self.notes[number])),
            )
            for number, issue in self.issues.items()
        ]  # fmt: skip
