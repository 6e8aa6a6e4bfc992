"""OAuth/OIDC login of kafka-python: tokens by the grant `client_credentials`, as librdkafka fetches them itself.

Sources: librdkafka's CONFIGURATION.md (`sasl.oauthbearer.*` with method oidc), RFC 6749 section 4.4 (request and
response), RFC 7628 (extensions).
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import httpx
from streamwarden.base.bounded_http import BoundedClient, LimitExceeded, json_of
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.kafka_login import Token, Tokens, oauth_provider

_PREFIX = "sasl.oauthbearer."
_NEEDED = ("client.id", "client.secret", "token.endpoint.url")
OIDC_PROPERTIES = frozenset(
    {f"{_PREFIX}{name}" for name in ("method", "scope", "extensions", *_NEEDED)} | {"https.ca.location"}
)
"""librdkafka's properties that this module reads."""
_SECONDS = 10.0
_DEFAULT_LIFE_SECONDS = 300
"""Of a token without `expires_in` in the response."""


def is_oidc(properties: Mapping[str, str]) -> bool:
    """Whether the client logs in by OAuth with a client id and a secret."""
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))
    return mechanism == "OAUTHBEARER" and properties.get(f"{_PREFIX}method") == "oidc"


def oidc_provider(properties: Mapping[str, str]) -> Any:
    """A token provider of kafka-python. It raises StreamwardenError when no token can be fetched.

    Raises:
        StreamwardenError: a property is missing.
    """
    if missing := [name for name in _NEEDED if not properties.get(f"{_PREFIX}{name}")]:
        raise StreamwardenError(f"sasl.oauthbearer.method oidc needs {_PREFIX}{missing[0]}.")
    given = properties.get(f"{_PREFIX}extensions", "")
    extensions = dict(part.split("=", 1) for part in re.split(r"\s*,\s*", given) if "=" in part)
    return oauth_provider(_tokens_of(frozenset(properties.items())).token, extensions)


@lru_cache(maxsize=64)
def _tokens_of(properties: frozenset[tuple[str, str]]) -> Tokens:
    """The tokens that all clients of this process with these properties share."""
    return Tokens(lambda: _fetch(dict(properties)))


def _fetch(properties: Mapping[str, str]) -> Token:
    url, scope = properties[f"{_PREFIX}token.endpoint.url"], properties.get(f"{_PREFIX}scope")
    login = (properties[f"{_PREFIX}client.id"], properties[f"{_PREFIX}client.secret"])
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    made_at = time.time()
    try:
        ca = properties.get("https.ca.location")
        trust = ssl.create_default_context(cafile=None if ca == "probe" else ca)
        client = BoundedClient(seconds=_SECONDS, timeout=_SECONDS, auth=login, verify=trust)
        try:
            response = client.request("POST", url, data=form, headers={"accept": "application/json"})
        finally:
            client.close()
        body = json_of(response.content) if response.status_code == httpx.codes.OK else None
    except (httpx.HTTPError, httpx.InvalidURL, LimitExceeded, OSError, ValueError) as error:
        raise StreamwardenError(f"no token from {url}: {type(error).__name__}: {error}") from None
    if not (isinstance(body, dict) and isinstance(text := body.get("access_token"), str)):
        raise StreamwardenError(
            f"no token from {url}: it responds with status {response.status_code}{_reason(response)}"
        )
    seconds = body.get("expires_in")
    life = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else _DEFAULT_LIFE_SECONDS
    return Token(text, made_at, made_at + life)


def _reason(response: httpx.Response) -> str:
    """The code of the error (RFC 6749 section 5.2), such as `invalid_client`, after a comma; else nothing."""
    try:
        code = json_of(response.content)["error"]
    except (ValueError, LookupError, TypeError, LimitExceeded):
        return ""
    return f", {code[:60]}" if isinstance(code, str) else ""
