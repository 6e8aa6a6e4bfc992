"""AWS accounts: running instances and their addresses, the number of volumes, and clusters of Amazon MSK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import boto3
from botocore.exceptions import BotoCoreError

from spark_apps.sources.aws_client import Connection, Failure, Place, caller_account, is_forbidden, listed, places_of
from spark_apps.sources.msk_discovery import Found, MskCluster, discover
from streamwarden.base.config import AwsAccount, Config, MskClusters
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.probe.result import sentence

MAX_INSTANCES = 2_000
"""Instances of a region that are listed; the rest is named as not searched."""


@dataclass(frozen=True)
class Instance:
    """A running EC2 instance."""

    instance_id: str
    addresses: tuple[str, ...]
    """Private address first, then its other addresses and names."""


@dataclass
class Aws:
    """What AWS returned."""

    accounts: list[AwsAccount] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    volumes: int = 0
    msk: list[MskCluster] = field(default_factory=list)
    problems: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Resource, reason, and what fixes it."""


def accounts_of(roles: Iterable[str], regions: list[str]) -> list[AwsAccount]:
    """The account of the credentials, and those of the roles.

    Raises:
        StreamwardenError: one line with the option that is missing or wrong.
        botocore.exceptions.BotoCoreError, ClientError: there are no credentials, or AWS rejects them.
    """
    regions = list(dict.fromkeys(regions)) or _default_region()
    accounts = []
    for role in dict.fromkeys(roles):
        parts = role.split(":")
        if len(parts) < 6 or parts[:1] != ["arn"] or parts[2] != "iam":
            raise StreamwardenError(f"--role {role}: is no ARN of a role; write arn:aws:iam::ACCOUNT:role/NAME.")
        accounts.append({"account": parts[4], "regions": regions, "role_arn": role})
    if not accounts:
        accounts.append({"account": caller_account(regions[0]), "regions": regions})
    from streamwarden.base.config.load import config_path, validated

    return validated({"aws": accounts}, config_path()).aws


def _default_region() -> list[str]:
    region = None
    with suppress(BotoCoreError):  # a profile that is not there
        region = boto3.Session().region_name
    if region is None:
        raise StreamwardenError("no AWS region is set; name one or more by --region, or set AWS_DEFAULT_REGION.")
    return [region]


def gather(config: Config) -> Aws:
    """Everything that the accounts of a config have. `config` must be in force, because connections look there."""
    found = Aws(list(config.aws))
    places = places_of(config)
    with ThreadPoolExecutor(min(len(places), 8) or 1) as pool:
        for of_place in pool.map(_in_place, places):
            found.instances += of_place.instances
            found.volumes += of_place.volumes
            found.problems += of_place.problems
    of_msk = _msk(config)
    found.msk = [cluster for cluster in of_msk.clusters if cluster.arn]
    for resource, reason in of_msk.gaps:
        if not reason.startswith("missing"):  # no cluster of that name: nothing is wrong
            found.problems.append((resource, sentence(reason), _statement_in(reason)))
    return found


def _msk(config: Config) -> Found:
    entries = [
        MskClusters(account=one.account, regions=one.regions, connect=False, open_monitoring=False)
        for one in config.aws
    ]
    return discover(config.model_copy(update={"msk": entries}))


def _in_place(place: Place) -> Aws:
    found, connection = Aws(), Connection(place, quick=True)
    try:
        client = connection.client("ec2")
    except Failure as error:
        found.problems.append((f"aws {place}", sentence(connection.gap(error)), None))
        return found
    try:
        running = [{"Name": "instance-state-name", "Values": ["running"]}]
        pages = client.get_paginator("describe_instances").paginate(
            Filters=running, PaginationConfig={"PageSize": 500, "MaxItems": MAX_INSTANCES}
        )
        found.instances = [
            _instance(one) for page in pages for lot in listed(page, "Reservations") for one in lot["Instances"]
        ]
    except Failure as error:
        found.problems.append(_problem(connection, error, "ec2:DescribeInstances"))
    try:
        pages = client.get_paginator("describe_volumes").paginate(
            PaginationConfig={"PageSize": 500, "MaxItems": 50_000}
        )
        found.volumes = sum(len(listed(page, "Volumes")) for page in pages)
    except Failure as error:
        found.problems.append(_problem(connection, error, "ec2:DescribeVolumes"))
    return found


def _instance(described: dict[str, object]) -> Instance:
    keys = ("PrivateIpAddress", "PrivateDnsName", "PublicIpAddress", "PublicDnsName")
    return Instance(str(described["InstanceId"]), tuple(str(described[key]) for key in keys if described.get(key)))


def _problem(connection: Connection, error: BaseException, permission: str) -> tuple[str, str, str | None]:
    statement = _statement(permission) if is_forbidden(error) else None
    return f"aws {connection.place}", sentence(connection.gap(error)), statement


def _statement_in(reason: str) -> str | None:
    words = reason.replace(";", " ").split()
    return _statement(words[words.index("for") + 1]) if "access denied for" in reason else None


def _statement(permission: str) -> str:
    return json.dumps({"Effect": "Allow", "Action": [permission], "Resource": "*"})


def msk_entries(clusters: Iterable[MskCluster]) -> Iterator[tuple[dict[str, object], str]]:
    """Entries under `msk`, and for each a comment: one for each way to log in of an account's region."""
    by_way: dict[tuple[str, str, str], list[MskCluster]] = {}
    clusters = list(clusters)
    for cluster in clusters:
        by_way.setdefault((cluster.account, cluster.region, _way(cluster)), []).append(cluster)
    for (account, region, way), of_way in by_way.items():
        is_only = sum((one.account, one.region) == (account, region) for one in clusters) == len(of_way)
        for cluster in of_way[:1] if is_only else of_way:
            entry: dict[str, object] = {"account": account, "regions": [region]}
            entry["clusters"] = "*" if is_only else cluster.msk_name
            comment = ", ".join(
                f"{one.msk_name} ({one.state}, {one.kind})" for one in (of_way if is_only else [cluster])
            )
            if way in ("iam", "none"):
                entry["authentication"] = way
            else:
                entry |= {"authentication": "none", "connect": False}
                comment += f". Clients log in by {way}: {_TO_LOG_IN[way]}, and remove `connect: false`"
            if not any(one.has_jmx_exporter or one.has_node_exporter for one in of_way):
                entry["open_monitoring"] = False
                comment += ". Open monitoring is off: CloudWatch only"
            yield entry, f"{comment}."


_TO_LOG_IN = {
    "scram": "set `authentication: scram` and `secret`, the secret's name in AWS Secrets Manager",
    "mtls": "set `authentication: mtls`, `certificate`, and `key`",
}


def _way(cluster: MskCluster) -> str:
    return next((way for way in ("iam", "none", "scram", "mtls") if way in cluster.authentications), "iam")
