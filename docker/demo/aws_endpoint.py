"""A strict stand-in for EC2, Auto Scaling, CloudWatch, STS, Amazon MSK, and Secrets Manager.

Serves a `World` to boto3 over AWS_ENDPOINT_URL.

As strict as the original where it matters to a client: signatures, limits, paging, alignment, retention, throttling,
partial data. It rejects what it does not implement (metric math, trimmed statistics), and never invents values.

    python -m demo.aws_endpoint --port 4566 --world demo --faults ebs
"""

import argparse
import hashlib
import secrets
import socket
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from demo.aws_autoscaling import describe_scaling_activities
from demo.aws_cloudwatch import get_metric_data, list_metrics
from demo.aws_ec2 import (
    describe_instance_types,
    describe_instances,
    describe_regions,
    describe_subnets,
    describe_volumes,
)
from demo.aws_faults import Fault, Faults
from demo.aws_glue import get_schema, get_schema_version, list_schema_versions, list_schemas
from demo.aws_msk import (
    describe_cluster_v2,
    get_bootstrap_brokers,
    get_secret_value,
    list_clusters_v2,
    list_nodes,
)
from demo.aws_pricing import get_products
from demo.aws_sts import Identity, assume_role, authenticate, get_caller_identity
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
)  # fmt: skip
from demo.demo_world import demo_world
from demo.world import World

_ENDLESS_BYTES = 2**50
_BLANKS = b" " * 2**16


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
        fault = self.endpoint.faults.take(
            "throttle", "deny", "server_error", "reset", "hang", "endless", "malformed", **facts
        )
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
        elif fault.kind == "endless":
            self._send(200, {**headers, "Content-Length": str(_ENDLESS_BYTES)}, answered, request_id)
            self.close_connection = True
            with suppress(OSError):  # the client has given up
                while not self.endpoint.stopping.is_set():
                    self.wfile.write(_BLANKS)
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
