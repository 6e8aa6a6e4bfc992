"""Roundup over its REST API (2.x, classic template).

A ticket is identified by the Message-ID of its first message, which contains the fingerprint; a comment by its own.
People respond in the tracker: the status `in-progress` acknowledges, `deferred` snoozes, `resolved` closes; the keyword
`wont-fix` closes permanently.
"""

from __future__ import annotations

import logging
from typing import Any

import httpx
from tenacity import RetryCallState, retry, retry_if_exception, stop_after_attempt, wait_random_exponential

from streamwarden.base.bounded_http import BoundedClient, LimitExceeded, json_of
from streamwarden.base.config.trackers import Roundup
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
from streamwarden.tickets.sinks.http import TIMEOUT_SECONDS, TOTAL_SECONDS
from streamwarden.tickets.sinks.plain import issue_text, notification_text

log = logging.getLogger(__name__)
PRIORITY = {"critical": "critical", "warning": "urgent", "info": "bug"}
CLOSED, SNOOZED, REOPENED, WORKED_ON = ("resolved", "done-cbb"), "deferred", "unread", "in-progress"
ANSWERED = {"acknowledged": WORKED_ON, "snoozed": SNOOZED}
STATES: dict[str, State] = {**dict.fromkeys(CLOSED, "closed"), SNOOZED: "snoozed", WORKED_ON: "acknowledged"}
WONT_FIX = "wont-fix"
CONFLICTS = 5  # retries after edit conflicts


class _Passing(Exception):
    """A temporary error (5xx, 429), worth a retry."""


class _Conflict(Exception):
    """The issue was edited since it was read."""


class _Refused(StreamwardenError):
    """The tracker rejected the request."""


def _give_up(state: RetryCallState) -> None:
    tracker, method = state.args[:2]
    error = state.outcome.exception() if state.outcome else None
    kind = TrackerDown if method == "GET" else Unsure
    raise kind(f"{tracker.url}: the tracker does not respond: {error or 'no message given'}") from None


class Tracker:
    """Client of one Roundup tracker."""

    remembers = True
    takes_files = True
    settles = SETTLES

    def __init__(self, name: str, settings: Roundup) -> None:
        self.name = name
        self.url = settings.url.rstrip("/")
        self._user, password = login(name, settings)
        self._client = BoundedClient(
            seconds=TOTAL_SECONDS,
            auth=(self._user, password),
            timeout=TIMEOUT_SECONDS,
            # Roundup's CSRF protection requires all three headers on writes.
            headers={"X-Requested-With": "rest", "Origin": self.url, "Referer": f"{self.url}/"},
        )

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        self._ask("GET", "/issue", params={"@page_size": "1", "@fields": "status,keyword"})
        self._ask("GET", "/msg", params={"@page_size": "1", "@fields": "messageid"})
        return "issues and messages can be read; the first ticket shows whether filing is permitted"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest issue with this fingerprint, open or closed; None: there is none."""
        # Two requests, because the API cannot search issues by a property of their messages.
        messages = self._messages(_message_id(fingerprint))
        if not messages:
            return None
        wanted = {"messages": ",".join(messages), "@fields": "status,keyword", "@verbose": "2"}
        issues = self._ask("GET", "/issue", params=wanted | {"@sort": "-id", "@page_size": "1"})["collection"]
        return self._issue(issues[0]) if issues else None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The issue with this key as it is now; None: it was deleted, or belongs to another finding."""
        ours = set(self._messages(_message_id(fingerprint)))
        wanted = {"@fields": "status,keyword,messages", "@verbose": "2", "id": key}
        found = self._ask("GET", "/issue", params=wanted)["collection"]
        issue = next((one for one in found if str(one["id"]) == key), None)
        if issue is None or not ours.intersection(str(message["id"]) for message in issue["messages"]):
            return None
        return self._issue(issue)

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        issue = self._ask("GET", f"/issue/{update.key}", params={"@verbose": "0"})
        return not set(self._messages(_message_id(update.marker))).isdisjoint(map(str, issue["attributes"]["messages"]))

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the issue and returns it."""
        message = self._add_message(_message_id(issue_draft.fingerprint), issue_text(issue_draft))
        issue: dict[str, Any] = {
            "title": issue_draft.title,
            "priority": PRIORITY[issue_draft.severity],
            "status": REOPENED,
            "messages": [message],
        }
        if issue_draft.plot_png:
            try:
                issue["files"] = [self._add_file("plot.png", issue_draft.plot_png)]
            except StreamwardenError as error:  # a ticket without its chart is better than no ticket
                log.warning("no plot in Roundup: %s", error)
        token = str(self._ask("POST", "/issue/@poe", json={})["link"]).rsplit("/", 1)[-1]
        try:
            key = self._ask("POST", f"/issue/@poe/{token}", json=issue)["id"]
        except _Refused as refusal:
            # A token is valid for one request, so this error also follows a request with a lost response.
            found = self.find(issue_draft.fingerprint) if "POE token" in str(refusal) else None
            if found is None:
                raise
            return found
        return Issue(str(key), f"{self.url}/issue{key}", "open")

    def update(self, update: Update) -> None:
        """Posts a change to the issue. Raises IssueGone if it no longer exists."""
        ours = set(self._messages(_message_id(update.fingerprint)))
        marker = _message_id(update.marker)
        message = None
        changes = {"close": {"status": CLOSED[0]}, "reopen": {"status": REOPENED}, "comment": {}}[update.action]
        if update.answer:
            changes = {"status": ANSWERED[update.answer]}
        for _ in range(CONFLICTS):
            issue = self._ask("GET", f"/issue/{update.key}", params={"@verbose": "0"})
            messages = [str(one) for one in issue["attributes"]["messages"]]
            if not ours.intersection(messages):
                raise IssueGone(f"{self.url}/issue{update.key}: is not the ticket that was filed.")
            message = (
                message
                or next(iter(self._messages(marker)), None)
                or self._add_message(marker, notification_text(update.notification))
            )
            if message in messages:
                return
            values = {"messages": [*messages, message], "priority": PRIORITY[update.severity], **changes}
            try:
                self._ask("PATCH", f"/issue/{update.key}", json=values, headers={"If-Match": issue["@etag"]})
                return
            except _Conflict:
                continue
        raise StreamwardenError(
            f"{self.url}/issue{update.key}: edited by others at the same time; the next run tries again."
        )

    def _messages(self, message_id: str) -> list[str]:
        """Ids of the messages with this Message-ID, oldest first. After a lost response, one may have no issue."""
        found = self._ask("GET", "/msg", params={"messageid:": message_id, "@sort": "id"})["collection"]
        return [str(message["id"]) for message in found]

    def _add_message(self, message_id: str, text: str) -> str:
        summary = text.strip().splitlines()[0][:200]
        fields = {"content": text, "messageid": message_id, "summary": summary, "type": "text/plain"}
        # `.` is the current time. Without these fields, the page shows neither author nor date.
        fields |= {"author": self._user, "date": "."}
        return str(self._ask("POST", "/msg", json=fields)["id"])

    def _add_file(self, name: str, png: bytes) -> str:
        fields = {"name": name, "type": "image/png"}
        return str(self._ask("POST", "/file", data=fields, files={"content": (name, png, "image/png")})["id"])

    @retry(
        retry=retry_if_exception(lambda error: isinstance(error, httpx.RequestError | _Passing)),
        stop=stop_after_attempt(4),
        wait=wait_random_exponential(multiplier=0.2, max=3),
        retry_error_callback=_give_up,
    )
    def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        try:
            answer = self._client.request(method, f"{self.url}/rest/data{path}", **request)
            body = json_of(answer.content)
        except LimitExceeded as limit:
            raise (TrackerDown if method == "GET" else Unsure)(f"{self.url}: {method} {path}: {limit}.") from None
        except ValueError:
            body = None
        if answer.status_code >= 500 or answer.status_code == 429:
            raise _Passing(f"HTTP {answer.status_code}")
        if answer.status_code == 401:
            raise TrackerDown(
                f"{self.url}: the tracker refuses user '{self._user}': check `user` and `password` under"
                f" tickets.trackers.{self.name}."
            )
        if answer.status_code == 412:
            raise _Conflict
        if not isinstance(body, dict):
            raise TrackerDown(f"{self.url}: there is no Roundup REST API (HTTP {answer.status_code}).")
        if "data" not in body:
            message = " ".join(str(body.get("error", {}).get("msg", "no message given")).split())
            # Roundup calls deleted items retired: they can be read, but not changed.
            if answer.status_code == 404 or "is retired" in message:
                raise IssueGone(f"{self.url}: {method} {path}: {message}")
            raise _Refused(f"{self.url}: {method} {path.partition('/@')[0]}: {message} (HTTP {answer.status_code})")
        return dict(body["data"])

    def _issue(self, found: dict[str, Any]) -> Issue:
        status = (found.get("status") or {}).get("name", "")
        keywords = {keyword.get("name") for keyword in found.get("keyword") or []}
        key = str(found["id"])
        state = STATES.get(status, "open")
        return Issue(key, f"{self.url}/issue{key}", "wont_fix" if WONT_FIX in keywords else state)


def _message_id(marker: str) -> str:
    return f"<{marker}@streamwarden>"
