"""A REST API that is read: bounded, retried, and silent for the run once it did not respond."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx
from streamwarden.base.bounded_http import LIMITS, BoundedClient, LimitExceeded, Limits, json_of

TRIES = 3
_LONGEST_PAUSE_SECONDS = 5.0
Json = Any


class Refused(Exception):
    """Why the API gave no data, without credentials."""


class RestApi:
    """Requests to one API.

    Args:
        name: what it is and where, for messages.

    Raises:
        Refused: its address is not valid.
    """

    accept = "application/json"
    limits: Limits = LIMITS
    later: tuple[int, ...] = (429, 500, 502, 503, 504)
    """Statuses after which a request is sent again."""

    def __init__(self, name: str, url: str, user: str | None, password: str | None, timeout_seconds: float) -> None:
        self.name = name
        self._silence: str | None = None
        try:
            self._client = BoundedClient(
                base_url=url,
                auth=(user, password or "") if user else None,
                seconds=timeout_seconds,
                limits=self.limits,
                timeout=timeout_seconds,
                headers={"accept": self.accept},
            )
        except (httpx.InvalidURL, ValueError):
            raise Refused(f"{self.name}: not a valid address") from None

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Json:
        """The JSON of a response with status 200.

        Raises:
            LookupError: what was asked for does not exist (`is_missing`).
            Refused: any other failure.
        """
        return self._document("GET", path, params=params)

    def post(self, path: str, query: Json, params: Mapping[str, Any] | None = None) -> Json:
        """The same for a query that changes nothing, and is sent as a JSON body."""
        return self._document("POST", path, params=params, json=query)

    def _document(self, method: str, path: str, **request: Any) -> Json:
        response = self._request(method, path, **request)
        try:
            body = json_of(response.content, self.limits)
        except LimitExceeded as limit:
            raise Refused(f"{self.name}: {limit} ({method} {path})") from None
        except ValueError:
            body = None
        if response.status_code == httpx.codes.OK and body is not None:
            return body
        if response.status_code == httpx.codes.OK:
            raise Refused(f"{self.name} responds to {method} {path} with something other than JSON")
        if response.status_code == httpx.codes.NOT_FOUND and self.is_missing(body):
            raise LookupError(path)
        raise self.refusal(path, response.status_code)

    def text(self, path: str) -> str:
        """The text of a response with status 200. Raises as `get`, without LookupError."""
        response = self._request("GET", path)
        if response.status_code != httpx.codes.OK:
            raise self.refusal(path, response.status_code)
        return response.text

    def is_missing(self, _body: Json) -> bool:
        """Whether a 404 with this body comes from the API itself."""
        return False

    def refusal(self, path: str, status: int) -> Refused:
        """The message for any other status."""
        return Refused(f"{self.name} responds to GET {path} with status {status}")

    def _request(self, method: str, path: str, **request: Any) -> httpx.Response:
        for attempt in range(1, TRIES + 1):
            if self._silence:
                raise Refused(self._silence)
            try:
                response = self._client.request(method, path, **request)
            except LimitExceeded as limit:
                raise Refused(f"{self.name}: {limit} ({method} {path})") from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                self._silence = f"{self.name} did not respond ({type(error).__name__})"
                raise Refused(self._silence) from None
            if response.status_code not in self.later or attempt == TRIES:
                break
            time.sleep(_pause_seconds(response, attempt))
        return response


def _pause_seconds(response: httpx.Response, attempt: int) -> float:
    """The pause that the API requests, within bounds; otherwise a little longer each time."""
    wished = response.headers.get("retry-after", "")
    return min(float(wished), _LONGEST_PAUSE_SECONDS) if wished.isdecimal() else 0.2 * 2**attempt
