"""Identities of the strict AWS endpoint: keys, signatures, and temporary credentials of STS."""

from __future__ import annotations

import math
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from demo.aws_wire import AwsError, Caller, signature_is_right, validation_error

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

MAX_CLOCK_SKEW_SECONDS = 300


class Identity(NamedTuple):
    """Account, role, and secret of an access key."""

    account: str
    arn: str
    secret_key: str
    token: str | None = None
    expires_at: float = math.inf


INVALID_KEY = {
    "ec2": ("AuthFailure", "AWS was not able to validate the provided access credentials", 401),
    "monitoring": ("UnrecognizedClientException", "The security token included in the request is invalid.", 403),
    "sts": ("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
    "autoscaling": ("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
    "kafka": ("UnrecognizedClientException", "The security token included in the request is invalid.", 403),
    "secretsmanager": ("UnrecognizedClientException", "The security token included in the request is invalid.", 400),
    "glue": ("UnrecognizedClientException", "The security token included in the request is invalid.", 400),
    "pricing": ("UnrecognizedClientException", "The security token included in the request is invalid.", 400),
}


def authenticate(
    endpoint: AwsEndpoint, found: re.Match[str], path: str, headers: Any, body: bytes, method: str = "POST"
) -> Caller:
    """The caller, if key, token, date and signature are right; otherwise the service's own refusal."""
    service = found["service"]
    identity = endpoint.identity(found["key"])
    if identity is None or identity.token != headers.get("X-Amz-Security-Token"):
        raise AwsError(*INVALID_KEY[service])
    if time.time() > identity.expires_at:
        code = {"ec2": "RequestExpired", "sts": "ExpiredToken", "autoscaling": "ExpiredToken"}.get(
            service, "ExpiredTokenException"
        )
        raise AwsError(code, "The security token included in the request is expired", 403)
    if not signature_is_right(found.groupdict(), identity.secret_key, path, headers, body, method):
        if service == "ec2":
            raise AwsError(*INVALID_KEY["ec2"])
        raise AwsError("SignatureDoesNotMatch", "The request signature we calculated does not match yours.", 403)
    signed_at = datetime.strptime(headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs(time.time() + endpoint.clock_skew_seconds - signed_at.timestamp()) > MAX_CLOCK_SKEW_SECONDS:
        if service == "ec2":
            raise AwsError("RequestExpired", f"Request has expired. Timestamp date is {signed_at:%FT%TZ}.")
        raise AwsError(
            "SignatureDoesNotMatch", f"Signature expired: {signed_at:%Y%m%dT%H%M%SZ} is too old or too new.", 403
        )
    return Caller(identity.account, found["region"], identity.arn)


def get_caller_identity(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetCallerIdentity."""
    return {"UserId": "AIDAEXAMPLE", "Account": caller.account, "Arn": caller.arn}


def assume_role(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """AssumeRole: temporary keys of another account, where a role trusts the caller."""
    arn, session = params["RoleArn"], params["RoleSessionName"]
    seconds = params.get("DurationSeconds", 3600)
    if not 900 <= seconds <= 43_200:
        raise validation_error(
            f"1 validation error detected: Value '{seconds}' at 'durationSeconds' is out of 900..43200"
        )
    found = re.fullmatch(r"arn:aws:iam::(\d{12}):role/([\w+=,.@/-]+)", arn)
    trusted = found and found[1] in endpoint.world.accounts and (arn in endpoint.roles or found[2] == "streamwarden")
    if not found or not trusted or endpoint.roles.get(arn) not in (None, params.get("ExternalId")):
        message = f"User: {caller.arn} is not authorized to perform: sts:AssumeRole on resource: {arn}"
        raise AwsError("AccessDenied", message, 403)
    key_id, identity = endpoint.assume(found[1], found[2], session, seconds)
    return {
        "Credentials": {
            "AccessKeyId": key_id,
            "SecretAccessKey": identity.secret_key,
            "SessionToken": identity.token,
            "Expiration": identity.expires_at,
        },
        "AssumedRoleUser": {"AssumedRoleId": f"AROAEXAMPLE:{session}", "Arn": identity.arn},
    }
