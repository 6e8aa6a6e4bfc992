"""How Kafka clients log in to Amazon MSK: tokens that AWS credentials sign (IAM), or a secret of AWS Secrets Manager.

A token is valid for 15 minutes. librdkafka asks for the next one in `oauth_cb` before it expires; kafka-python asks
its provider at each connection. Source: Amazon MSK Developer Guide, "Configure clients for IAM access control" (SASL
mechanism OAUTHBEARER, signer aws-msk-iam-sasl-signer-python) and "Sign-in credentials authentication with AWS Secrets
Manager" (SCRAM-SHA-512; a secret with `username` and `password`, whose name begins with AmazonMSK_).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.credentials import CredentialProvider
from streamwarden.base.config import AwsLogin
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.aws_client import Connection, Failure, Place

FRESH_SHARE = 0.8
"""Of its life a token is used again; librdkafka asks for the next one by then, too."""
SAME_SECRET_SECONDS = 300


class Token(NamedTuple):
    """A token, when it was made, and when it expires: seconds since 1970."""

    text: str
    made_at: float
    expires_at: float

    @property
    def is_fresh(self) -> bool:
        return time.time() < self.made_at + FRESH_SHARE * (self.expires_at - self.made_at)


class Tokens:
    """Tokens of one login, which `make` fetches. It raises StreamwardenError, in one sentence without key or token."""

    def __init__(self, make: Callable[[], Token]) -> None:
        self._make = make
        self._token: Token | None = None
        self._lock = threading.Lock()

    def token(self) -> Token:
        """A fresh one; the same as before while that is fresh."""
        with self._lock:
            if self._token is None or not self._token.is_fresh:
                self._token = self._make()
            return self._token

    def oauth_cb(self, _config: str) -> tuple[str, float]:
        """As librdkafka wants it: token, and when it expires."""
        token = self.token()
        return token.text, token.expires_at


def sign(login: AwsLogin) -> Token:
    """A new token by the credentials of the account, or of its role."""
    connection = Connection(Place(login.account, login.region))
    try:
        keys = connection.credentials()
        text, expires_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(
            login.region, _Known(keys)
        )
    except Failure as error:
        raise StreamwardenError(connection.gap(error).removeprefix("failed: ")) from None
    return Token(text, time.time(), expires_ms / 1000)


class _Known(CredentialProvider):
    """Hands the signer keys that are there already."""

    def __init__(self, keys: Any) -> None:
        super().__init__()
        self.keys = keys

    def load(self) -> Any:
        return self.keys


@lru_cache(maxsize=64)
def tokens_of(login: AwsLogin) -> Tokens:
    """The tokens that all clients of this process share."""
    return Tokens(lambda: sign(login))


def login_properties(login: AwsLogin) -> dict[str, Any]:
    """The librdkafka properties of a login. Raises StreamwardenError where AWS refuses it."""
    if login.authentication == "scram":
        user, password = scram_user(login)
        login_by = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": user, "sasl.password": password}
        return {"security.protocol": "SASL_SSL", **login_by}
    tokens = tokens_of(login)
    tokens.token()  # a refusal is known before a client waits for its token
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": tokens.oauth_cb}


def scram_user(login: AwsLogin) -> tuple[str, str]:
    """User and password of the secret. Raises StreamwardenError where it cannot be read."""
    return _scram_user(login.account, login.region, login.secret or "", int(time.time() / SAME_SECRET_SECONDS))


@lru_cache(maxsize=64)
def _scram_user(account: str, region: str, secret: str, _period: int) -> tuple[str, str]:
    connection = Connection(Place(account, region))
    try:
        answer = connection.client("secretsmanager").get_secret_value(SecretId=secret)
    except Failure as error:
        raise StreamwardenError(connection.gap(error).removeprefix("failed: ")) from None
    try:
        held = json.loads(answer.get("SecretString", ""))
        return str(held["username"]), str(held["password"])
    except (ValueError, KeyError, TypeError):
        raise StreamwardenError(
            f"secret {secret} in {account}/{region} must be JSON with `username` and `password`, as MSK needs it."
        ) from None


def oauth_provider(token: Callable[[], Token], extensions: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A token provider of kafka-python. `extensions` (RFC 7628) are sent with each token."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token().text

        def extensions(self) -> dict[str, str]:
            return dict(extensions)

    return Provider()
