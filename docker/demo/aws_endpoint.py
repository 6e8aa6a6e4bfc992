"""A strict stand-in for EC2, Auto Scaling, CloudWatch, STS, Amazon MSK, and Secrets Manager.

Serves a `World` to boto3 over AWS_ENDPOINT_URL.

As strict as the original where it matters to a client: signatures, limits, paging, alignment, retention, throttling,
partial data. It rejects what it does not implement (metric math, trimmed statistics), and never invents values.

    python -m demo.aws_endpoint --port 4566 --world demo --faults ebs
"""

import argparse
import hashlib
import math
import re
import secrets
import socket
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Self

from demo.aws_autoscaling import describe_scaling_activities
from demo.aws_cloudwatch import get_metric_data, list_metrics
from demo.aws_ec2 import (
    describe_instance_types,
    describe_instances,
    describe_regions,
    describe_subnets,
    describe_volumes,
)
from demo.aws_glue import get_schema, get_schema_version, list_schema_versions, list_schemas
from demo.aws_msk import (
    describe_cluster_v2,
    get_bootstrap_brokers,
    get_secret_value,
    list_clusters_v2,
    list_nodes,
)
from demo.aws_pricing import get_products
from demo.aws_wire import (
    AUTHORIZATION,
    REST_SERVICES,
    SERVICES,
    AwsError,
    Call,
    Caller,
    answer,
    error,
    parse,
    parse_rest,
    signature_is_right,
    validation_error,
)  # fmt: skip
from demo.demo_world import demo_world
from demo.world import Metric, World

MAX_CLOCK_SKEW_SECONDS = 300

Kind = Literal[
    "throttle", "deny", "server_error", "reset", "hang", "malformed", "internal_error", "partial", "forbidden"
]


@dataclass
class Fault:
    """A fault and the calls it meets: `times` of them (None: all), after letting `after` pass."""

    kind: Kind
    times: int | None = 1
    after: int = 0
    action: str | None = None
    account: str | None = None
    region: str | None = None
    metric: str | None = None  # for the faults of one metric: its name
    resource: str | None = None  # … and a value of one of its dimensions
    seconds: float = 30.0  # how long a hanging call hangs


class Faults:
    """The faults that are on. Tests and the demo set them; every answer asks for its own."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def inject(self, kind: Kind, **which: Any) -> None:
        with self._lock:
            self._faults.append(Fault(kind, **which))

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def take(self, *kinds: Kind, **facts: str | None) -> Fault | None:
        """The first fault of these kinds that meets the facts, counted down."""
        with self._lock:
            for fault in self._faults:
                if fault.kind in kinds and all(getattr(fault, n) in (None, fact) for n, fact in facts.items()):
                    if fault.after:
                        fault.after -= 1
                        continue
                    if fault.times is not None:
                        fault.times -= 1
                        if fault.times == 0:
                            self._faults.remove(fault)
                    return fault
        return None

    def take_for(self, metric: Metric, *kinds: Kind) -> Fault | None:
        """The first fault of these kinds that meets the metric."""
        if not self._faults:
            return None
        for _, value in metric.dimensions or {("", "")}:
            if fault := self.take(*kinds, metric=metric.name, resource=value):
                return fault
        return None


class Identity(NamedTuple):
    """Whose key it is."""

    account: str
    arn: str
    secret_key: str
    token: str | None = None
    expires_at: float = math.inf


class TokenBucket:
    """A rate limit: `rate` a second, and as many at once."""

    def __init__(self, rate: float):
        self.rate, self.tokens, self.at = rate, rate, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self.tokens, self.at = min(self.rate, self.tokens + (now - self.at) * self.rate), now
        self.tokens -= (taken := self.tokens >= 1)
        return taken


class AwsEndpoint:
    """The server; a context manager. `calls` counts requests by action, `errors` counts refusals by code."""

    def __init__(
        self,
        world: World,
        port: int = 0,
        *,
        settle_delay_seconds: float = 0.0,
        calls_per_second: float = 50.0,
    ):
        self.world = world
        self.faults = Faults()
        self.settle_delay_seconds = settle_delay_seconds
        self.calls_per_second = calls_per_second
        self.clock_skew_seconds = 0.0  # how far the service's clock is ahead of ours
        self.more_products: tuple[tuple[str, str, str, float], ...] = ()
        """Of the price list, as in aws_pricing."""
        self.calls: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.roles: dict[
            str, str | None
        ] = {}  # role ARN → external id; accounts' `streamwarden` roles are trusted anyway
        self.stopping = threading.Event()
        self._identities: dict[str, Identity] = {}
        self._buckets: defaultdict[tuple[str, ...], TokenBucket] = defaultdict(lambda: TokenBucket(calls_per_second))
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), partial(_Handler, self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="aws-endpoint", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def access_key(self, account: str) -> tuple[str, str]:
        """Key id and secret of the account's user, made from the account's number so that they outlive the process."""
        return f"AKIAEXAMPLE{account[-9:]:0>9}", hashlib.sha256(account.encode()).hexdigest()[:40]

    def environment(self, account: str | None = None, region: str = "eu-central-1") -> dict[str, str]:
        """What boto3 needs in its environment to call this endpoint as the account's user."""
        key_id, secret_key = self.access_key(account or min(self.world.accounts))
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": key_id,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def identity(self, key_id: str) -> Identity | None:
        with self._lock:
            if key_id in self._identities:
                return self._identities[key_id]
        for account in self.world.accounts:
            own_id, secret_key = self.access_key(account)
            if own_id == key_id:
                return Identity(account, f"arn:aws:iam::{account}:user/streamwarden", secret_key)
        return None

    def assume(self, account: str, role: str, session: str, seconds: int) -> tuple[str, Identity]:
        """New temporary keys for the role."""
        key_id = f"ASIA{secrets.token_hex(8).upper()}"
        arn = f"arn:aws:sts::{account}:assumed-role/{role}/{session}"
        identity = Identity(account, arn, secrets.token_hex(20), secrets.token_urlsafe(120), time.time() + seconds)
        with self._lock:
            self._identities[key_id] = identity
        return key_id, identity

    def count(self, action: str, code: str | None = None) -> None:
        with self._lock:
            if code is None:
                self.calls[action] += 1
            else:
                self.errors[code] += 1

    def admit(self, service: str, caller: Caller) -> None:
        """Spends one call of the account's rate in the region."""
        with self._lock:
            admitted = self._buckets[service, caller.account, caller.region].take()
        if not admitted:
            raise throttled(service)

    def handle(self, call: Call, caller: Caller) -> dict[str, Any]:
        handler = HANDLERS.get((call.service, call.action))
        if handler is None:
            raise AwsError("InvalidAction", f"The action {call.action} is not served by this stand-in.")
        return handler(self, caller, call.params)


def throttled(service: str) -> AwsError:
    if service == "ec2":
        return AwsError("RequestLimitExceeded", "Request limit exceeded.", 503)
    if service in REST_SERVICES:
        return AwsError("TooManyRequestsException", "Rate exceeded", 429)
    return AwsError("Throttling", "Rate exceeded")


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
    """AssumeRole: temporary keys of another account whose role trusts the caller."""
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


HANDLERS: dict[tuple[str, str], Callable[[AwsEndpoint, Caller, dict[str, Any]], dict[str, Any]]] = {
    ("monitoring", "GetMetricData"): get_metric_data,
    ("monitoring", "ListMetrics"): list_metrics,
    ("ec2", "DescribeVolumes"): describe_volumes,
    ("ec2", "DescribeInstances"): describe_instances,
    ("ec2", "DescribeInstanceTypes"): describe_instance_types,
    ("ec2", "DescribeRegions"): describe_regions,
    ("autoscaling", "DescribeScalingActivities"): describe_scaling_activities,
    ("sts", "GetCallerIdentity"): get_caller_identity,
    ("sts", "AssumeRole"): assume_role,
    ("kafka", "ListClustersV2"): list_clusters_v2,
    ("kafka", "DescribeClusterV2"): describe_cluster_v2,
    ("kafka", "GetBootstrapBrokers"): get_bootstrap_brokers,
    ("kafka", "ListNodes"): list_nodes,
    ("ec2", "DescribeSubnets"): describe_subnets,
    ("secretsmanager", "GetSecretValue"): get_secret_value,
    ("glue", "ListSchemas"): list_schemas,
    ("glue", "ListSchemaVersions"): list_schema_versions,
    ("glue", "GetSchemaVersion"): get_schema_version,
    ("glue", "GetSchema"): get_schema,
    ("pricing", "GetProducts"): get_products,
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in mid-answer is its own affair; anything else is a fault of ours and is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered: headers and body leave together

    def __init__(self, endpoint: AwsEndpoint, *args: Any):
        self.endpoint = endpoint
        super().__init__(*args)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the counters tell what was called."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_json = "X-Amz-Target" in self.headers
        request_id = secrets.token_hex(16)
        service = "monitoring" if is_json else "ec2"
        try:
            found = AUTHORIZATION.fullmatch(self.headers.get("Authorization", ""))
            if found is None:
                message = "The request must carry a well-formed Signature Version 4."
                if "Authorization" in self.headers:
                    raise AwsError("IncompleteSignature", message)
                raise AwsError("MissingAuthenticationToken", message, 403)
            if found["service"] not in SERVICES:
                raise AwsError("SignatureDoesNotMatch", f"Credential is scoped to {found['service']}.", 403)
            service = found["service"]
            if (service in REST_SERVICES) != (self.command != "POST"):
                raise AwsError("SignatureDoesNotMatch", f"{service} takes no {self.command}.", 403)
            caller = authenticate(self.endpoint, found, self.path, self.headers, body, self.command)
            if service in REST_SERVICES:
                call = parse_rest(service, self.command, self.path, body)
            else:
                call = parse(service, self.headers, body)
            self.endpoint.count(call.action)
            fault = self._refuse(call, caller)
            content_type, answered = answer(call, self.endpoint.handle(call, caller), request_id)
        except AwsError as problem:
            self.endpoint.count("", problem.code)
            headers, answered = error(service, is_json, problem, request_id)
            self._send(problem.status, headers, answered, request_id)
            return
        if fault is None:
            self._send(200, {"Content-Type": content_type}, answered, request_id)
        else:
            self._spoil(fault, content_type, answered, request_id)

    def _refuse(self, call: Call, caller: Caller) -> Fault | None:
        """Raises the refusal that is due; gives back a fault that spoils the answer instead."""
        facts = {"action": call.action, "account": caller.account, "region": caller.region}
        self.endpoint.admit(call.service, caller)
        fault = self.endpoint.faults.take("throttle", "deny", "server_error", "reset", "hang", "malformed", **facts)
        if fault is None:
            return None
        if fault.kind == "throttle":
            raise throttled(call.service)
        if fault.kind == "deny":
            prefix = {"monitoring": "cloudwatch"}.get(call.service, call.service)
            message = f"User: {caller.arn} is not authorized to perform: {prefix}:{call.action}"
            code = "UnauthorizedOperation" if call.service == "ec2" else "AccessDenied"
            raise AwsError("AccessDeniedException" if call.is_json or call.is_rest else code, message, 403)
        if fault.kind == "server_error":
            code = "InternalServerErrorException" if call.is_rest else "InternalError"
            raise AwsError("InternalServiceError" if call.is_json else code, "An internal error occurred.", 500)
        return fault

    def _spoil(self, fault: Fault, content_type: str, answered: bytes, request_id: str) -> None:
        headers = {"Content-Type": content_type}
        if fault.kind == "hang":
            self.endpoint.stopping.wait(fault.seconds)
            self.close_connection = True
        elif fault.kind == "malformed":
            self._send(200, headers, answered[: len(answered) // 2], request_id)
        else:  # reset: half a page, then the connection dies
            self._send(
                200, {**headers, "Content-Length": str(len(answered))}, answered[: len(answered) // 2], request_id
            )
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

    def _send(self, status: int, headers: dict[str, str], body: bytes, request_id: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "x-amzn-RequestId": request_id, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((timestamp or time.time()) + self.endpoint.clock_skew_seconds)


def main() -> None:
    """Serves the demo's world alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--world", choices=["demo"], default="demo")
    parser.add_argument("--faults", default="", help="names, separated by commas; only `ebs` changes this world")
    asked = parser.parse_args()
    world = demo_world(set(filter(None, asked.faults.split(","))), lambda: datetime.now(UTC))
    try:
        endpoint = AwsEndpoint(world, asked.port)
    except OSError as problem:
        raise SystemExit(
            f"port {asked.port} (AWS endpoint) is not available: {problem.strerror}; choose another --port"
        ) from None
    with endpoint:
        for name, value in endpoint.environment().items():
            print(f"export {name}={value}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
