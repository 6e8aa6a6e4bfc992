"""A strict stand-in for EC2, CloudWatch and STS: serves a `World` to boto3 over AWS_ENDPOINT_URL.

As strict as the original where it matters to a client: signatures, limits, paging, alignment, retention, throttling,
partial data. What it doesn't know (metric math, trimmed statistics) it refuses; it never answers with a made-up figure.

    python -m demo.aws_endpoint --port 4566 --world demo --faults ebs
"""

import argparse
import base64
import binascii
import fnmatch
import hashlib
import json
import math
import re
import secrets
import socket
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from demo.aws_wire import AUTHORIZATION, SERVICES, AwsError, Call, answer, error, parse, signature_is_right
from demo.world import INSTANCE_TYPES, Instance, Metric, Volume, World, demo_world

MAX_QUERIES, MAX_POINTS = 500, 100_800
METRIC_ID = re.compile(r"[a-z][a-zA-Z0-9_]*")
PERCENTILE = re.compile(r"p(100|\d{1,2}(\.\d{1,10})?)")
HIGH_RESOLUTION = (1, 5, 10, 20, 30)
# age of StartTime in days → the finest period that still has points
RETENTION = ((15, 60), (63, 300), (455, 3600))
MAX_CLOCK_SKEW_SECONDS = 300
EC2_TERMINATED_VISIBLE = timedelta(hours=1)

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


@dataclass(frozen=True)
class Caller:
    """Who calls, and which region they signed for."""

    account: str
    region: str
    arn: str


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
    return AwsError("Throttling", "Rate exceeded")


# ---- signature -----------------------------------------------------------------------------------------------------

INVALID_KEY = {
    "ec2": ("AuthFailure", "AWS was not able to validate the provided access credentials", 401),
    "monitoring": ("UnrecognizedClientException", "The security token included in the request is invalid.", 403),
    "sts": ("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
}


def authenticate(endpoint: AwsEndpoint, found: re.Match[str], path: str, headers: Any, body: bytes) -> Caller:
    """The caller, if key, token, date and signature are right; otherwise the service's own refusal."""
    service = found["service"]
    identity = endpoint.identity(found["key"])
    if identity is None or identity.token != headers.get("X-Amz-Security-Token"):
        raise AwsError(*INVALID_KEY[service])
    if time.time() > identity.expires_at:
        code = {"ec2": "RequestExpired", "sts": "ExpiredToken"}.get(service, "ExpiredTokenException")
        raise AwsError(code, "The security token included in the request is expired", 403)
    if not signature_is_right(found.groupdict(), identity.secret_key, path, headers, body):
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


# ---- CloudWatch ----------------------------------------------------------------------------------------------------


def get_metric_data(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetMetricData: one page of at most MaxDatapoints points; a metric may go on in the next."""
    _check_metric_data(params)
    digest = _digest(caller, params)
    queries = [query for query in params["MetricDataQueries"] if query.get("ReturnData", True)]
    position, skip, now = 0, 0, endpoint.world.now().timestamp()
    if "NextToken" in params:
        # `now` comes from the first page, so that no page holds points which an earlier one could not see
        position, skip, now = _open_token(params["NextToken"], digest, "InvalidNextToken")
    left = params.get("MaxDatapoints", MAX_POINTS)
    newest_first = params.get("ScanBy", "TimestampDescending") == "TimestampDescending"
    grids = {period: _grid(params, period, now) for period in {query["MetricStat"]["Period"] for query in queries}}
    results = []
    while position < len(queries) and left:
        query = queries[position]
        times, values, status = _points(endpoint, caller, query, grids[query["MetricStat"]["Period"]], now)
        if newest_first:
            times, values = times[::-1], values[::-1]
        end = min(len(values), skip + left)
        cut = end < len(values)
        left -= end - skip
        results.append(_result(query, times[skip:end], values[skip:end], "PartialData" if cut else status))
        position, skip = (position, end) if cut else (position + 1, 0)
    page: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
    if position < len(queries):
        page["NextToken"] = _token([position, skip, now], digest)
    return page


def _check_metric_data(params: dict[str, Any]) -> None:
    queries = params["MetricDataQueries"]
    if len(queries) > MAX_QUERIES:
        raise _validation(f"The collection MetricDataQueries must not have a size greater than {MAX_QUERIES}.")
    if not queries:
        raise _validation("The parameter MetricDataQueries is required.")
    if params["StartTime"] == params["EndTime"]:
        raise _validation("The parameter StartTime must not equal parameter EndTime.")
    if params["StartTime"] > params["EndTime"]:
        raise _validation("The parameter StartTime must be less than the parameter EndTime.")
    if not 1 <= params.get("MaxDatapoints", MAX_POINTS) <= MAX_POINTS:
        raise _validation(f"The value for parameter MaxDatapoints must be between 1 and {MAX_POINTS}.")
    seen: set[str] = set()
    for query in queries:
        _check_query(query)
        if query["Id"] in seen:
            raise _validation(f"The values for parameter id in MetricDataQueries are not unique: {query['Id']}")
        seen.add(query["Id"])


def _check_query(query: dict[str, Any]) -> None:
    if not METRIC_ID.fullmatch(query["Id"]):
        raise _validation(
            f"The value {query['Id']} for parameter MetricDataQueries.member.Id is not matching the expected pattern "
            "^[a-z][a-zA-Z0-9_]*$"
        )
    if ("Expression" in query) == ("MetricStat" in query):
        raise _validation("Either Expression or MetricStat must be set in a MetricDataQuery, but not both.")
    if "Expression" in query:
        raise _validation("This stand-in for CloudWatch knows no metric math and no Metrics Insights.")
    stat, period = query["MetricStat"]["Stat"], query["MetricStat"]["Period"]
    if period % 60 and period not in HIGH_RESOLUTION:
        raise _validation(f"Period {period} of {query['Id']} must be 1, 5, 10, 20, 30 or a multiple of 60.")
    if stat not in STATISTICS and not PERCENTILE.fullmatch(stat):
        raise _validation(f"The value {stat} for parameter MetricDataQueries.member.MetricStat.Stat is not supported.")


def _validation(message: str) -> AwsError:
    return AwsError("ValidationError", message)


class Grid(NamedTuple):
    """The periods of a request: their start times, and the minutes that fill them; none where nothing is retained."""

    times: list[int]
    first_minute: int
    minutes_each: int


def _grid(params: dict[str, Any], period: int, now: float) -> Grid:
    """Periods that start in [StartTime, EndTime), aligned to the clock; none if finer than what is still retained."""
    age_days = (now - params["StartTime"]) / 86_400
    finest = next((finest for days, finest in RETENTION if age_days <= days), None)
    if finest is None or period % finest:
        return Grid([], 0, 1)
    start = math.floor(params["StartTime"] / finest) * finest
    first = math.ceil(start / period) * period
    return Grid(list(range(first, math.ceil(params["EndTime"]), period)), first // 60, period // 60)


STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Average": partial(np.nanmean, axis=1),
    "Sum": partial(np.nansum, axis=1),
    "Minimum": partial(np.nanmin, axis=1),
    "Maximum": partial(np.nanmax, axis=1),
    "SampleCount": lambda samples: np.count_nonzero(~np.isnan(samples), axis=1).astype(float),
}


def _points(
    endpoint: AwsEndpoint, caller: Caller, query: dict[str, Any], grid: Grid, now: float
) -> tuple[list[int], list[float], str]:
    """Times, values and status of one metric, oldest first."""
    stat = query["MetricStat"]
    dimensions = frozenset((each["Name"], each["Value"]) for each in stat["Metric"].get("Dimensions", ()))
    metric = Metric(stat["Metric"].get("Namespace", ""), stat["Metric"].get("MetricName", ""), dimensions)
    fault = endpoint.faults.take_for(metric, "internal_error", "partial", "forbidden")
    if query.get("AccountId", caller.account) != caller.account or (fault and fault.kind == "forbidden"):
        return [], [], "Forbidden"
    if fault and fault.kind == "internal_error":
        return [], [], "InternalError"
    count = len(grid.times) * grid.minutes_each
    # Nothing is made for minutes to come; the rest of their periods stays empty.
    known = min(count, int(now // 60) - grid.first_minute)
    found = endpoint.world.read(caller.account, caller.region, metric, grid.first_minute, known) if known > 0 else None
    if found is None or stat.get("Unit", found[0]) != found[0]:
        return [], [], "Complete"
    samples = np.full(count, np.nan)
    samples[:known] = _settled(found, grid.first_minute, now, endpoint.settle_delay_seconds)
    samples = samples.reshape(-1, grid.minutes_each)
    filled = ~np.isnan(samples).all(axis=1)
    values = _statistic(stat["Stat"], samples[filled]).tolist()
    times = [at for at, has in zip(grid.times, filled.tolist(), strict=True) if has]
    if fault:  # partial: the newest half is not there yet
        return times[: len(times) // 2], values[: len(values) // 2], "PartialData"
    return times, values, "Complete"


def _settled(found: tuple[str, np.ndarray], first_minute: int, now: float, delay_seconds: float) -> np.ndarray:
    """Hides what is younger than half the delay, and counts only half of what is younger than the delay."""
    unit, figures = found
    if not delay_seconds:
        return figures
    age = now - (first_minute + 1 + np.arange(len(figures))) * 60
    late = np.where((age < delay_seconds) & (unit in ("Count", "Bytes", "Seconds")), figures / 2, figures)
    return np.where(age < delay_seconds / 2, np.nan, late)


def _statistic(stat: str, samples: np.ndarray) -> np.ndarray:
    if not len(samples):
        return np.empty(0)
    if stat in STATISTICS:
        return STATISTICS[stat](samples)
    return np.nanpercentile(samples, float(stat[1:]), axis=1)


MESSAGES = {
    "InternalError": {"Code": "InternalError", "Value": "An internal error occurred. Retry the request."},
    "Forbidden": {"Code": "Forbidden", "Value": "The caller may not read this account's metrics."},
}


def _result(query: dict[str, Any], times: list[int], values: list[float], status: str) -> dict[str, Any]:
    label = query.get("Label") or query["MetricStat"]["Metric"].get("MetricName", "")
    result = {"Id": query["Id"], "Label": label, "Timestamps": times, "Values": values, "StatusCode": status}
    return result | {"Messages": [MESSAGES[status]]} if status in MESSAGES else result


def list_metrics(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """ListMetrics: 500 a page; a dimension without a value matches any."""
    digest = _digest(caller, params)
    skip = _open_token(params["NextToken"], digest, "InvalidNextToken")[0] if "NextToken" in params else 0
    wanted = [(each["Name"], each.get("Value")) for each in params.get("Dimensions", ())]
    found = [
        {
            "Namespace": metric.namespace,
            "MetricName": metric.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in sorted(metric.dimensions)],
        }
        for metric in endpoint.world.metrics(caller.account, caller.region)
        if metric.namespace == params.get("Namespace", metric.namespace)
        and metric.name == params.get("MetricName", metric.name)
        and all(any(n == name and value in (None, v) for n, v in metric.dimensions) for name, value in wanted)
    ]
    page: dict[str, Any] = {"Metrics": found[skip : skip + 500]}
    if len(found) > skip + 500:
        page["NextToken"] = _token([skip + 500], digest)
    return page


def _digest(caller: Caller, params: dict[str, Any]) -> str:
    """What a token belongs to: the caller and the request without the token and the page size."""
    rest = {name: value for name, value in params.items() if name not in ("NextToken", "MaxResults", "MaxDatapoints")}
    return hashlib.sha256(json.dumps([caller.account, caller.region, rest], sort_keys=True).encode()).hexdigest()


def _token(state: list[Any], digest: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([digest, state]).encode()).decode()


def _open_token(token: str, digest: str, code: str) -> list[Any]:
    try:
        belongs_to, state = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, binascii.Error):
        belongs_to, state = None, []
    if belongs_to != digest:
        raise AwsError(code, "The NextToken is not valid for this request.")
    return state


# ---- EC2 -----------------------------------------------------------------------------------------------------------

Filters = dict[str, Callable[[Any], list[str]]]


def _zone(region: str) -> str:
    return f"{region}a"


def _tags(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _attached(volume: Volume, now: datetime) -> bool:
    return volume.instance_id is not None and (volume.detached_at is None or now < volume.detached_at)


def _volume(volume: Volume, now: datetime) -> dict[str, Any]:
    attached = _attached(volume, now)
    limits = volume.limits
    attachment = {
        "VolumeId": volume.volume_id,
        "InstanceId": volume.instance_id,
        "Device": volume.device,
        "State": "attached",
        "AttachTime": volume.created_at,
        "DeleteOnTermination": False,
    }
    return {
        "VolumeId": volume.volume_id,
        "VolumeType": volume.volume_type,
        "Size": volume.size_gib,
        # EC2 gives the baseline of gp2 as Iops, and neither figure for disks that are judged by throughput
        "Iops": None if volume.hdd or volume.volume_type == "standard" else int(limits.base_iops),
        "Throughput": int(limits.base_bytes // 1024**2) if volume.volume_type == "gp3" else None,
        "State": "in-use" if attached else "available",
        "CreateTime": volume.created_at,
        "AvailabilityZone": _zone(volume.region),
        "Encrypted": True,
        "MultiAttachEnabled": False,
        "SnapshotId": "",
        "Attachments": [attachment] if attached else [],
        "Tags": _tags(volume.tags),
    }


def _of_attachment(name: str) -> Callable[[dict[str, Any]], list[str]]:
    return lambda volume: [str(attachment[name]) for attachment in volume["Attachments"]]


VOLUME_FILTERS: Filters = {
    "attachment.instance-id": _of_attachment("InstanceId"),
    "attachment.device": _of_attachment("Device"),
    "attachment.status": _of_attachment("State"),
    "availability-zone": lambda volume: [volume["AvailabilityZone"]],
    "size": lambda volume: [str(volume["Size"])],
    "status": lambda volume: [volume["State"]],
    "volume-id": lambda volume: [volume["VolumeId"]],
    "volume-type": lambda volume: [volume["VolumeType"]],
}


def describe_volumes(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeVolumes: the volumes that exist now."""
    now = endpoint.world.now()
    volumes = {
        volume.volume_id: _volume(volume, now)
        for volume in list(endpoint.world.volumes.values())
        if (volume.account, volume.region) == (caller.account, caller.region)
        and volume.created_at <= now < (volume.deleted_at or datetime.max.replace(tzinfo=UTC))
    }
    wanted = params.get("VolumeIds")
    for volume_id in wanted or ():
        if not re.fullmatch(r"vol-[0-9a-f]{8,17}", volume_id):
            raise _bad_value(f"Value ({volume_id}) for parameter volumes is invalid. Expected: 'vol-...'.")
        if volume_id not in volumes:
            raise AwsError("InvalidVolume.NotFound", f"The volume '{volume_id}' does not exist.")
    if wanted and "MaxResults" in params:
        raise _bad_pair("volumesSet")
    chosen = _filtered([volumes[i] for i in dict.fromkeys(wanted or sorted(volumes))], params, VOLUME_FILTERS)
    return _page(caller, params, "Volumes", chosen, (5, 1000))


def _instance(instance: Instance, volumes: list[Volume], now: datetime) -> dict[str, Any]:
    running = instance.terminated_at is None or now < instance.terminated_at
    return {
        "InstanceId": instance.instance_id,
        "InstanceType": instance.instance_type,
        "ImageId": instance.image_id,
        "State": {"Code": 16, "Name": "running"} if running else {"Code": 48, "Name": "terminated"},
        "LaunchTime": instance.launched_at,
        "PrivateIpAddress": instance.private_ip if running else None,
        "Placement": {"AvailabilityZone": _zone(instance.region), "Tenancy": "default"},
        "Monitoring": {"State": "enabled" if instance.detailed_monitoring else "disabled"},
        "Architecture": "x86_64",
        "Hypervisor": "xen",  # the API says so of Nitro instances too
        "EbsOptimized": True,
        "BlockDeviceMappings": [
            {
                "DeviceName": volume.device,
                "Ebs": {"VolumeId": volume.volume_id, "Status": "attached", "AttachTime": volume.created_at},
            }
            for volume in volumes
            if volume.instance_id == instance.instance_id and _attached(volume, now)
        ],
        "Tags": _tags(instance.tags),
    }


INSTANCE_FILTERS: Filters = {
    "availability-zone": lambda instance: [instance["Placement"]["AvailabilityZone"]],
    "block-device-mapping.volume-id": lambda i: [each["Ebs"]["VolumeId"] for each in i["BlockDeviceMappings"]],
    "image-id": lambda instance: [instance["ImageId"]],
    "instance-id": lambda instance: [instance["InstanceId"]],
    "instance-state-name": lambda instance: [instance["State"]["Name"]],
    "instance-type": lambda instance: [instance["InstanceType"]],
    "private-ip-address": lambda instance: [instance["PrivateIpAddress"] or ""],
}


def describe_instances(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeInstances: a reservation for each instance; terminated ones stay visible for an hour."""
    now = endpoint.world.now()
    volumes = list(endpoint.world.volumes.values())
    instances = {
        instance.instance_id: _instance(instance, volumes, now)
        for instance in list(endpoint.world.instances.values())
        if (instance.account, instance.region) == (caller.account, caller.region)
        and instance.launched_at <= now
        and (instance.terminated_at is None or now < instance.terminated_at + EC2_TERMINATED_VISIBLE)
    }
    wanted = params.get("InstanceIds")
    for instance_id in wanted or ():
        if not re.fullmatch(r"i-[0-9a-f]{8,17}", instance_id):
            raise AwsError("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
        if instance_id not in instances:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist")
    if wanted and "MaxResults" in params:
        raise _bad_pair("instancesSet")
    chosen = _filtered([instances[i] for i in dict.fromkeys(wanted or sorted(instances))], params, INSTANCE_FILTERS)
    page = _page(caller, params, "Instances", chosen, (5, 1000))
    reservations = [
        {
            "ReservationId": f"r-{instance['InstanceId'][2:]}",
            "OwnerId": caller.account,
            "Groups": [],
            "Instances": [instance],
        }
        for instance in page.pop("Instances")
    ]
    return {"Reservations": reservations, **page}


def _instance_type(name: str) -> dict[str, Any]:
    kind = INSTANCE_TYPES[name]
    return {
        "InstanceType": name,
        "CurrentGeneration": kind.nitro,
        "BareMetal": False,
        "Hypervisor": "nitro" if kind.nitro else "xen",
        "VCpuInfo": {"DefaultVCpus": kind.vcpus},
        "MemoryInfo": {"SizeInMiB": int(kind.memory_gib * 1024)},
        "EbsInfo": {
            "EbsOptimizedSupport": "default",
            "EncryptionSupport": "supported",
            "EbsOptimizedInfo": {
                "BaselineBandwidthInMbps": kind.base_mbps,
                "BaselineThroughputInMBps": kind.base_mbps / 8,
                "BaselineIops": kind.base_iops,
                "MaximumBandwidthInMbps": kind.max_mbps,
                "MaximumThroughputInMBps": kind.max_mbps / 8,
                "MaximumIops": kind.max_iops,
            },
            "NvmeSupport": "required" if kind.nitro else "unsupported",
        },
    }


INSTANCE_TYPE_FILTERS: Filters = {
    "instance-type": lambda kind: [kind["InstanceType"]],
    "hypervisor": lambda kind: [kind["Hypervisor"]],
    "current-generation": lambda kind: [str(kind["CurrentGeneration"]).lower()],
}


def describe_instance_types(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeInstanceTypes: pages of 100 at most, also when no size is asked for."""
    wanted = params.get("InstanceTypes")
    unknown = [name for name in wanted or () if name not in INSTANCE_TYPES]
    if unknown:
        raise AwsError(
            "InvalidInstanceType", f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        )
    if wanted and "MaxResults" in params:
        raise _bad_pair("instanceTypes")
    if len(wanted or ()) > 100:
        raise _bad_value("The maximum number of instance types in one request is 100.")
    names = wanted or sorted(INSTANCE_TYPES)
    chosen = _filtered([_instance_type(name) for name in names], params, INSTANCE_TYPE_FILTERS, tagged=False)
    return _page(caller, {"MaxResults": 100, **params}, "InstanceTypes", chosen, (5, 100))


def _bad_value(message: str) -> AwsError:
    return AwsError("InvalidParameterValue", message)


def _bad_pair(ids: str) -> AwsError:
    return AwsError("InvalidParameterCombination", f"The parameter {ids} cannot be used with the parameter maxResults")


def _filtered(
    items: list[dict[str, Any]], params: dict[str, Any], known: Filters, *, tagged: bool = True
) -> list[dict[str, Any]]:
    """What meets every filter: any of its values, with * and ? as wildcards."""
    if params.get("DryRun"):
        raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
    for each in params.get("Filters", ()):
        name, values = each.get("Name", ""), each.get("Values", [])
        if not (name in known or (tagged and (name == "tag-key" or name.startswith("tag:")))):
            raise _bad_value(f"The filter '{name}' is invalid")
        facts = known.get(name) or partial(_tag_facts, name)
        items = [
            item
            for item in items
            if any(fnmatch.fnmatchcase(fact, _pattern(value)) for fact in facts(item) for value in values)
        ]
    return items


def _pattern(value: str) -> str:
    return value.replace("[", "[[]")  # EC2 has no character classes


def _tag_facts(name: str, item: dict[str, Any]) -> list[str]:
    if name == "tag-key":
        return [tag["Key"] for tag in item["Tags"]]
    return [tag["Value"] for tag in item["Tags"] if tag["Key"] == name.removeprefix("tag:")]


def _page(
    caller: Caller, params: dict[str, Any], name: str, items: list[dict[str, Any]], bounds: tuple[int, int]
) -> dict[str, Any]:
    size = params.get("MaxResults", len(items))
    if "MaxResults" in params and not bounds[0] <= size <= bounds[1]:
        raise _bad_value(
            f"Value ( {size} ) for parameter maxResults is invalid. "
            f"Expecting a value between {bounds[0]} and {bounds[1]}."
        )
    digest = _digest(caller, params)
    start = _open_token(params["NextToken"], digest, "InvalidParameterValue")[0] if "NextToken" in params else 0
    page: dict[str, Any] = {name: items[start : start + size]}
    if start + size < len(items):
        page["NextToken"] = _token([start + size], digest)
    return page


def describe_regions(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeRegions: those in which the account has anything, and the caller's own."""
    owned = [*endpoint.world.instances.values(), *endpoint.world.volumes.values()]
    regions = {each.region for each in owned if each.account == caller.account} | {caller.region}
    return {
        "Regions": [
            {"RegionName": name, "Endpoint": f"ec2.{name}.amazonaws.com", "OptInStatus": "opt-in-not-required"}
            for name in sorted(regions)
        ]
    }


# ---- STS -----------------------------------------------------------------------------------------------------------


def get_caller_identity(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetCallerIdentity."""
    return {"UserId": "AIDAEXAMPLE", "Account": caller.account, "Arn": caller.arn}


def assume_role(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """AssumeRole: temporary keys of another account whose role trusts the caller."""
    arn, session = params["RoleArn"], params["RoleSessionName"]
    seconds = params.get("DurationSeconds", 3600)
    if not 900 <= seconds <= 43_200:
        raise _validation(f"1 validation error detected: Value '{seconds}' at 'durationSeconds' is out of 900..43200")
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
    ("sts", "GetCallerIdentity"): get_caller_identity,
    ("sts", "AssumeRole"): assume_role,
}

# ---- HTTP ----------------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in mid-answer is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, endpoint: AwsEndpoint, *args: Any):
        self.endpoint = endpoint
        super().__init__(*args)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the counters tell what was called."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_json = "X-Amz-Target" in self.headers
        request_id = secrets.token_hex(16)
        service = "monitoring" if is_json else "ec2"
        try:
            found = AUTHORIZATION.fullmatch(self.headers.get("Authorization", ""))
            if found is None:
                code = "MissingAuthenticationToken" if "Authorization" not in self.headers else "IncompleteSignature"
                raise AwsError(code, "The request must carry a well-formed Signature Version 4.", 403)
            if found["service"] not in SERVICES:
                raise AwsError("SignatureDoesNotMatch", f"Credential is scoped to {found['service']}.", 403)
            service = found["service"]
            caller = authenticate(self.endpoint, found, self.path, self.headers, body)
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
            raise AwsError("AccessDeniedException" if call.is_json else code, message, 403)
        if fault.kind == "server_error":
            raise AwsError(
                "InternalServiceError" if call.is_json else "InternalError", "An internal error occurred.", 500
            )
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
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

    def _send(self, status: int, headers: dict[str, str], body: bytes, request_id: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "x-amzn-RequestId": request_id, **headers}.items():
            self.send_header(name, value)
        self._headers_buffer.append(b"\r\n" + body)  # one write: one packet, where it fits
        self.flush_headers()

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
            f"port {asked.port} (AWS endpoint) can't be had: {problem.strerror}; choose another --port"
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
