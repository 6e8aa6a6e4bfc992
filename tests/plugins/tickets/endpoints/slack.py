"""Slack's Web API: a channel with threads, metadata and reactions. docs.slack.dev/reference/methods"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx

from tests.plugins.tickets.endpoints.endpoint import Endpoint, InvalidRequest, StoredTicket, body_of, numbers

TOKEN = "xoxb-slack-s3cr3t"
CHANNEL = "C0OPS"
SCOPES = ("chat:write", "channels:history", "reactions:write")


@dataclass
class Slack(Endpoint):
    messages: list[dict[str, Any]] = field(default_factory=list)
    is_member: bool = True
    locked: set[str] = field(default_factory=set)
    """Threads that administrators locked."""
    scopes: tuple[str, ...] = SCOPES
    supported_responses: ClassVar[tuple[str, ...]] = ("acknowledged",)
    displayed_states: ClassVar[tuple[str, ...]] = ("acknowledged",)
    keeps_all_notes: ClassVar[bool] = True
    routes: ClassVar[list[tuple[str, str, str]]] = [
        ("GET", "/api/auth.test", "who"),
        ("POST", "/api/chat.postMessage", "post"),
        ("GET", "/api/conversations.history", "history"),
        ("GET", "/api/conversations.replies", "replies"),
        ("POST", "/api/reactions.add", "react"),
        ("POST", "/api/reactions.remove", "unreact"),
    ]

    def refused(self, request: httpx.Request) -> Any:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return 200, {"ok": False, "error": "invalid_auth"}
        return None

    def who(self, _: httpx.Request) -> Any:
        return 200, {
            "ok": True,
            "url": "https://acme.slack.com/",
            "team": "Acme",
            "user": "streamwarden",
            "bot_id": "B1",
        }

    def post(self, request: httpx.Request) -> Any:
        values = body_of(
            request, needs={"channel", "text"}, may={"thread_ts", "metadata", "unfurl_links", "unfurl_media"}
        )
        if error := self._error(values["channel"], "chat:write"):
            return 200, error
        assert values["metadata"].keys() == {"event_type", "event_payload"}
        assert all(isinstance(value, str | int | bool) for value in values["metadata"]["event_payload"].values())
        if "thread_ts" in values and self._message(values["thread_ts"]) is None:
            return 200, {"ok": False, "error": "thread_not_found"}
        if values.get("thread_ts") in self.locked:
            return 200, {"ok": False, "error": "restricted_action_thread_locked"}
        text = values["text"][:40_000]
        if re.search(r"<!|<@", text):
            raise InvalidRequest("somebody is called")
        ts = f"{int(self.clock.now.timestamp())}.{len(self.messages):06d}"
        kept = {"type": "message", "user": "U1", "ts": ts, "written": self.clock.now, "reactions": []}
        self.messages.append(kept | values | {"text": text})
        return 200, {"ok": True, "channel": values["channel"], "ts": ts, "message": {"text": text}}

    def history(self, request: httpx.Request) -> Any:
        query = numbers(request, "channel", "limit", "cursor", "oldest", "include_all_metadata")
        if error := self._error(query["channel"], "channels:history"):
            return 200, error
        found = [
            message
            for message in reversed(self.messages)
            if "thread_ts" not in message
            and self.is_found(message["written"])
            and message["ts"] >= query.get("oldest", "")
        ]
        return 200, self._page(found, query)

    def replies(self, request: httpx.Request) -> Any:
        query = numbers(request, "channel", "ts", "limit", "cursor", "include_all_metadata")
        if error := self._error(query["channel"], "channels:history"):
            return 200, error
        if self._message(query["ts"]) is None:
            return 200, {"ok": False, "error": "thread_not_found"}
        found = [one for one in self.messages if query["ts"] in (one["ts"], one.get("thread_ts"))]
        return 200, self._page(found, query)

    def react(self, request: httpx.Request) -> Any:
        return self._reaction(request, is_added=True)

    def unreact(self, request: httpx.Request) -> Any:
        return self._reaction(request, is_added=False)

    def _reaction(self, request: httpx.Request, *, is_added: bool) -> Any:
        values = body_of(request, needs={"channel", "timestamp", "name"})
        if error := self._error(values["channel"], "reactions:write"):
            return 200, error
        message = self._message(values["timestamp"])
        if message is None:
            return 200, {"ok": False, "error": "message_not_found"}
        if values["timestamp"] in self.locked:
            return 200, {"ok": False, "error": "thread_locked"}
        is_there = any(reaction["name"] == values["name"] for reaction in message["reactions"])
        if is_there == is_added:
            return 200, {"ok": False, "error": "already_reacted" if is_added else "no_reaction"}
        kept = [reaction for reaction in message["reactions"] if reaction["name"] != values["name"]]
        message["reactions"] = [*kept, {"name": values["name"], "count": 1, "users": ["U1"]}] if is_added else kept
        return 200, {"ok": True}

    def _page(self, found: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
        start, most = int(query.get("cursor") or 0), int(query["limit"])
        assert most <= 999 and query.get("include_all_metadata", "true") == "true"
        page = [{key: value for key, value in one.items() if key != "written"} for one in found[start : start + most]]
        cursor = str(start + most) if start + most < len(found) else ""
        return {"ok": True, "messages": page, "has_more": bool(cursor), "response_metadata": {"next_cursor": cursor}}

    def _error(self, channel: str, scope: str) -> dict[str, Any] | None:
        if scope not in self.scopes:
            return {"ok": False, "error": "missing_scope", "needed": scope, "provided": ",".join(self.scopes)}
        if channel != CHANNEL:
            return {"ok": False, "error": "channel_not_found"}
        return None if self.is_member else {"ok": False, "error": "not_in_channel"}

    def _message(self, ts: str) -> dict[str, Any] | None:
        return next((message for message in self.messages if message["ts"] == ts), None)

    def delete(self, key: str) -> None:
        self.messages = [message for message in self.messages if message["ts"] != key.partition("/")[2]]

    def answer(self, key: str, state: str) -> None:
        message = self._message(key.partition("/")[2])
        assert message
        message["reactions"].append({"name": "eyes", "count": 1, "users": ["U2"]})

    def tickets(self) -> list[StoredTicket]:
        return [
            StoredTicket(
                parent["metadata"]["event_payload"]["fingerprint"],
                all(reaction["name"] != "white_check_mark" for reaction in parent["reactions"]),
                parent["text"].splitlines()[0],
                tuple(one["text"] for one in self.messages if parent["ts"] in (one["ts"], one.get("thread_ts"))),
            )
            for parent in self.messages
            if parent["metadata"]["event_type"] == "streamwarden_ticket"
        ]
