"""An OpenID Connect provider for tests: tokens by client id and secret (RFC 6749, 4.4), and its keys (RFC 7517)."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.answering import answering

CLIENT, SECRET, SCOPE = "streamwarden", "s3:cr+et", "kafka.read"


class IdentityProvider(ThreadingHTTPServer):
    """`/token` and `/keys` on a free port. `life_seconds` is that of the next tokens; `issued` counts them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.life_seconds, self.issued = 900, 0
        self.response: tuple[int, bytes] | None = None
        """Status and body instead of a token."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def properties(self, secret: str = SECRET) -> dict[str, str]:
        """librdkafka's properties of a client."""
        prefix = "sasl.oauthbearer."
        return {
            "sasl.mechanism": "OAUTHBEARER",
            f"{prefix}method": "oidc",
            f"{prefix}client.id": CLIENT,
            f"{prefix}client.secret": secret,
            f"{prefix}scope": SCOPE,
            f"{prefix}token.endpoint.url": f"{self.url}/token",
            f"{prefix}extensions": "logicalCluster=lkc-1,identityPoolId=pool-7",
        }


class _Handler(BaseHTTPRequestHandler):
    server: IdentityProvider

    def do_GET(self) -> None:
        key = RSAAlgorithm.to_jwk(self.server.key.public_key(), as_dict=True)
        self._respond(200, {"keys": [key | {"kid": "1", "use": "sig", "alg": "RS256"}]})

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        kind, _, login = self.headers.get("authorization", "").partition(" ")
        if self.server.response:
            self._respond(*self.server.response)
        elif form.get("grant_type") != ["client_credentials"]:
            self._respond(400, {"error": "unsupported_grant_type"})
        elif kind != "Basic" or b64decode(login) != f"{CLIENT}:{SECRET}".encode():
            self._respond(401, {"error": "invalid_client"})
        elif form.get("scope") != [SCOPE]:
            self._respond(400, {"error": "invalid_scope"})
        else:
            self.server.issued += 1
            now, life = int(time.time()), self.server.life_seconds
            claims = {"sub": CLIENT, "aud": "kafka", "iss": self.server.url, "iat": now, "exp": now + life}
            token = jwt.encode(claims | {"scope": SCOPE}, self.server.key, "RS256", {"kid": "1"})
            self._respond(200, {"access_token": token, "token_type": "Bearer", "expires_in": life})

    def _respond(self, status: int, body: Any) -> None:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        """Silence."""


def an_identity_provider() -> AbstractContextManager[IdentityProvider]:
    """A running provider."""
    return answering(IdentityProvider())
