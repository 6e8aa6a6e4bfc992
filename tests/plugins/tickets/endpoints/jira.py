"""Jira's REST API: Cloud (v3, ADF, /search/jql) and Data Center (v2, wiki markup, /search).

developer.atlassian.com/cloud/jira/platform/rest/v3, …/cloud/jira/platform/apis/document/structure,
docs.atlassian.com/software/jira/docs/api/REST/9.12.0
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, InvalidRequest, StoredTicket, body_of, numbers

TOKEN = "jira-s3cr3t"
USER = "bot@acme.example"
MISSING = {"errorMessages": ["Issue does not exist or you do not have permission to see it."], "errors": {}}
STATUSES = {"To Do": "new", "In Progress": "indeterminate", "Done": "done"}
CHILDREN = {
    "doc": {"paragraph", "heading", "bulletList", "orderedList", "codeBlock", "table"},
    "paragraph": {"text", "hardBreak"},
    "heading": {"text"},
    "codeBlock": {"text"},
    "bulletList": {"listItem"},
    "orderedList": {"listItem"},
    "listItem": {"paragraph"},
    "table": {"tableRow"},
    "tableRow": {"tableHeader", "tableCell"},
    "tableHeader": {"paragraph"},
    "tableCell": {"paragraph"},
}


@dataclass
class Jira(Endpoint):
    cloud: bool = True
    project: str = "OPS"
    former: set[str] = field(default_factory=set)
    """Keys that the project had before it was renamed."""
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)
    comments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    attachments: dict[str, list[bytes]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    missing_permissions: set[str] = field(default_factory=set)
    transitions: dict[str, str] = field(
        default_factory=lambda: {"Back": "To Do", "Start": "In Progress", "Finish": "Done"}
    )
    needs_resolution: bool = False
    locked: set[str] = field(default_factory=set)
    """Issues in a status whose properties deny edits and comments (jira.issue.editable, jira.permission.comment)."""
    displayed_states: ClassVar[tuple[str, ...]] = ("acknowledged", "snoozed")
    custom: ClassVar[set[str]] = {"customfield_10042", "customfield_10050"}
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("GET", r"/rest/api/[23]/project/(\w+)", "read_project"),
        ("GET", r"/rest/api/[23]/mypermissions", "read_permissions"),
        ("POST", r"/rest/api/3/search/jql", "search"),
        ("POST", r"/rest/api/2/search", "search"),
        ("POST", r"/rest/api/[23]/issue", "create_issue"),
        ("GET", r"/rest/api/[23]/issue/([\w-]+)", "read_issue"),
        ("PUT", r"/rest/api/[23]/issue/([\w-]+)", "edit_issue"),
        ("GET", r"/rest/api/[23]/issue/([\w-]+)/comment", "list_comments"),
        ("POST", r"/rest/api/[23]/issue/([\w-]+)/comment", "create_comment"),
        ("GET", r"/rest/api/[23]/issue/([\w-]+)/transitions", "list_transitions"),
        ("POST", r"/rest/api/[23]/issue/([\w-]+)/transitions", "transit"),
        ("POST", r"/rest/api/[23]/issue/([\w-]+)/attachments", "attach"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        assert request.url.path.startswith(f"/rest/api/{3 if self.cloud else 2}/")
        basic = f"Basic {b64encode(f'{USER}:{TOKEN}'.encode()).decode()}"
        if request.headers.get("authorization") != (basic if self.cloud else f"Bearer {TOKEN}"):
            return 401, "Client must be authenticated to access this resource."
        return None

    def read_project(self, _: httpx.Request, key: str) -> Any:
        if key != self.project and key not in self.former:
            return 404, {"errorMessages": [f"No project could be found with key '{key}'."], "errors": {}}
        return 200, {
            "id": "1",
            "key": self.project,
            "issueTypes": [{"id": "1", "name": "Bug"}, {"id": "2", "name": "Task"}],
        }

    def read_permissions(self, request: httpx.Request) -> Any:
        asked = numbers(request, "projectKey", "permissions")["permissions"].split(",")
        return 200, {
            "permissions": {key: {"key": key, "havePermission": key not in self.missing_permissions} for key in asked}
        }

    def search(self, request: httpx.Request) -> Any:
        asked = body_of(request, needs={"jql"}, may={"maxResults", "fields", "nextPageToken", "startAt"})
        query = re.fullmatch(
            r'project = "(\w+)" AND (\()?description ~ "(\w+)"(?(2) OR cf\[(\d+)\] ~ "\3"\)) ORDER BY created DESC',
            asked["jql"],
        )
        if query is None:
            raise InvalidRequest(f"JQL: {asked['jql']}")
        project, _, word, custom = query.groups()
        if project != self.project:
            return 400, {
                "errorMessages": [f"The value '{project}' does not exist for the field 'project'."],
                "errors": {},
            }
        found = [
            issue
            for key, issue in reversed(self.issues.items())
            if self.is_found(self.written[key])
            and (
                word in re.findall(r"\w+", words(issue["fields"]["description"]))
                or word == issue["fields"].get(f"customfield_{custom}")
            )
        ][: asked.get("maxResults", 50)]
        page = {"issues": [self._shown(issue, asked["fields"]) for issue in found]}
        return 200, page | ({"isLast": True} if self.cloud else {"startAt": 0, "maxResults": 50, "total": len(found)})

    def create_issue(self, request: httpx.Request) -> Any:
        fields = body_of(request, needs={"fields"}, may={"update"})["fields"]
        errors = self._errors(fields)
        for key in ("project", "summary", "issuetype"):
            if key not in fields:
                errors[key] = f"{key} is required."
        if fields["project"] != {"key": self.project}:
            errors["project"] = "valid project is required"
        if fields["issuetype"]["name"] not in ("Bug", "Task"):
            errors["issuetype"] = "The issue type selected is invalid."
        if errors:
            return 400, {"errorMessages": [], "errors": errors}
        key = f"{self.project}-{len(self.issues) + 1}"
        self.issues[key] = {
            "id": str(len(self.issues) + 1),
            "key": key,
            "fields": {"status": "To Do", "resolution": None, **fields},
        }
        self.written[key], self.comments[key], self.attachments[key] = self.clock.now, [], []
        return 201, {"id": self.issues[key]["id"], "key": key, "self": f"https://jira/rest/{key}"}

    def read_issue(self, request: httpx.Request, key: str) -> Any:
        asked = numbers(request, "fields", "expand")["fields"].split(",")
        issue = self._issue(key)
        return (404, MISSING) if issue is None else (200, self._shown(issue, asked))

    def edit_issue(self, request: httpx.Request, key: str) -> Any:
        values = body_of(request, needs=set(), may={"fields", "update"})
        if (issue := self._issue(key)) is None:
            return 404, MISSING
        if issue["key"] in self.locked:
            return 403, {"errorMessages": ["You do not have permission to edit issues in this project."], "errors": {}}
        if errors := self._errors(values.get("fields", {})):
            return 400, {"errorMessages": [], "errors": errors}
        issue["fields"].update(values.get("fields", {}))
        for change in values.get("update", {}).get("labels", []):
            ((verb, label),) = change.items()
            labels = [one for one in issue["fields"]["labels"] if one != label]
            issue["fields"]["labels"] = [*labels, label] if verb == "add" else labels
        return 204, None

    def list_comments(self, request: httpx.Request, key: str) -> Any:
        query = numbers(request, "startAt", "maxResults", "orderBy", "expand")
        if (issue := self._issue(key)) is None:
            return 404, MISSING
        start, most = int(query["startAt"]), min(int(query["maxResults"]), 100)
        comments = self.comments[issue["key"]]
        return 200, {
            "startAt": start,
            "maxResults": most,
            "total": len(comments),
            "comments": comments[start : start + most],
        }

    def create_comment(self, request: httpx.Request, key: str) -> Any:
        values = body_of(request, needs={"body"}, may={"visibility", "properties"})
        if (issue := self._issue(key)) is None:
            return 404, MISSING
        if issue["key"] in self.locked:
            return 403, {"errorMessages": ["You do not have the permission to comment on this issue."], "errors": {}}
        if too_long := self._text_errors("comment", values["body"]):
            return 400, {"errorMessages": [], "errors": too_long}
        comments = self.comments[issue["key"]]
        comments.append({"id": str(len(comments) + 1), "body": values["body"]})
        return 201, comments[-1]

    def list_transitions(self, _: httpx.Request, key: str) -> Any:
        if self._issue(key) is None:
            return 404, MISSING
        return 200, {
            "transitions": [
                {"id": str(number), "name": name, "to": self._status(status)}
                for number, (name, status) in enumerate(self.transitions.items())
            ]
        }

    def transit(self, request: httpx.Request, key: str) -> Any:
        values = body_of(request, needs={"transition"}, may={"fields", "update"})
        if (issue := self._issue(key)) is None:
            return 404, MISSING
        fields = values.get("fields", {})
        status = list(self.transitions.values())[int(values["transition"]["id"])]
        if self.needs_resolution and status == "Done" and "resolution" not in fields:
            return 400, {"errorMessages": [], "errors": {"resolution": "Resolution is required."}}
        if not self.needs_resolution and fields:
            return 400, {
                "errorMessages": [],
                "errors": {
                    "resolution": "Field 'resolution' cannot be set. It is not on the appropriate screen, or unknown."
                },
            }
        issue["fields"]["status"] = status
        issue["fields"]["resolution"] = fields.get("resolution") if status == "Done" else None
        return 204, None

    def attach(self, request: httpx.Request, key: str) -> Any:
        if request.headers.get("x-atlassian-token") != "no-check":
            return 403, "XSRF check failed"
        if (issue := self._issue(key)) is None:
            return 404, MISSING
        assert b'name="file"' in request.content
        self.attachments[issue["key"]].append(request.content)
        return 200, [{"id": "1", "filename": "plot.png"}]

    def _issue(self, key: str) -> dict[str, Any] | None:
        return self.issues.get(self.moved.get(key, key))

    def _shown(self, issue: dict[str, Any], asked: list[str]) -> dict[str, Any]:
        fields = {key: issue["fields"].get(key) for key in asked}
        return {"id": issue["id"], "key": issue["key"], "fields": fields | {"status": self._status(fields["status"])}}

    def _status(self, name: str) -> dict[str, Any]:
        return {"name": name, "statusCategory": {"id": 1, "key": STATUSES[name]}}

    def _errors(self, fields: dict[str, Any]) -> dict[str, str]:
        errors = {}
        for key in fields:
            if key not in {"project", "summary", "issuetype", "description", "labels", "priority", *self.custom}:
                errors[key] = f"Field '{key}' cannot be set. It is not on the appropriate screen, or unknown."
        if len(fields.get("summary", "")) > 255 or "\n" in fields.get("summary", ""):
            errors["summary"] = "Summary must be less than 255 characters."
        if any(" " in label or len(label) > 255 for label in fields.get("labels", [])):
            errors["labels"] = "The label can't contain spaces."
        return errors | (self._text_errors("description", fields["description"]) if "description" in fields else {})

    def _text_errors(self, key: str, text: Any) -> dict[str, str]:
        if self.cloud:
            assert (text["version"], text["type"]) == (1, "doc")
            _check_adf(text)
        else:
            assert isinstance(text, str)
        if len(json.dumps(text) if self.cloud else text) > 32_767:
            return {key: "The entered text is too long. It exceeds the allowed limit of 32,767 characters."}
        return {}

    def delete(self, key: str) -> None:
        del self.issues[key]

    def answer(self, key: str, state: str) -> None:
        fields = self.issues[key]["fields"]
        if state == "acknowledged":
            fields["status"] = "In Progress"
        elif state == "snoozed":
            fields["labels"].append("snoozed")
        else:
            fields["status"], fields["resolution"] = "Done", {"name": "Done" if state == "closed" else "Won't Do"}

    def tickets(self) -> list[StoredTicket]:
        tickets = []
        for key, issue in self.issues.items():
            fields = issue["fields"]
            texts = [words(one) for one in (fields["description"], *(one["body"] for one in self.comments[key]))]
            found = re.findall(r"Reference: (\w+)", texts[0])
            tickets.append(
                StoredTicket("".join(found[-1:]), fields["status"] != "Done", fields["summary"], tuple(texts))
            )
        return tickets


class DataCenter(Jira):
    """Jira Data Center, with a personal access token."""

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        self.cloud = False


def words(node: Any) -> str:
    """All words and URLs of a text."""
    if isinstance(node, str):
        return node
    if isinstance(node, list):
        return "\n".join(words(one) for one in node)
    links = " ".join(mark["attrs"]["href"] for mark in node.get("marks", []))
    return f"{node.get('text', '')} {links}{words(node.get('content', []))}"


def _check_adf(node: dict[str, Any]) -> None:
    """Raises InvalidRequest where Jira responds INVALID_INPUT: a node in the wrong place, or an empty text."""
    for child in node.get("content", []):
        if child["type"] not in CHILDREN[node["type"]]:
            raise InvalidRequest(f"ADF: {child['type']} within {node['type']}")
        if child["type"] == "text":
            if not child["text"] or child.keys() - {"type", "text", "marks"}:
                raise InvalidRequest(f"ADF: {child}")
        elif child["type"] != "hardBreak":
            if not child["content"]:
                raise InvalidRequest(f"ADF: empty {child['type']}")
            _check_adf(child)
