"""EC2 of the strict AWS endpoint: volumes, instances, instance types and regions with filters and paging."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from demo.aws_msk import subnet_of
from demo.aws_wire import AwsError, Caller, next_token, resume
from demo.ebs_physics import INSTANCE_TYPES, MIB
from demo.ebs_resources import FOREVER, Instance, Volume

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

TERMINATED_VISIBLE = timedelta(hours=1)
Filters = dict[str, Callable[[Any], list[str]]]


def _zone(region: str) -> str:
    return f"{region}a"


def _tags(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _attached(volume: Volume, now: datetime) -> bool:
    return volume.instance_id is not None and (volume.detached_at is None or now < volume.detached_at)


def _volume(volume: Volume, now: datetime) -> dict[str, Any]:
    attached = _attached(volume, now)
    configuration = volume.configuration(now)
    volume_type, limits = configuration.volume_type, configuration.limits
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
        "VolumeType": volume_type,
        "Size": configuration.size_gib,
        # EC2 returns the baseline of gp2 as Iops, and no Iops or Throughput for HDD volumes
        "Iops": None if limits.is_hdd or volume_type == "standard" else int(limits.base_iops),
        "Throughput": int(limits.base_bytes // MIB) if volume_type == "gp3" else None,
        "State": "in-use" if attached else "available",
        "CreateTime": volume.attachments[-1].created_at,
        "AvailabilityZone": _zone(volume.region),
        "Encrypted": True,
        "MultiAttachEnabled": volume.is_multi_attach,
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
        and volume.created_at <= now < (volume.deleted_at or FOREVER)
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
        and (instance.terminated_at is None or now < instance.terminated_at + TERMINATED_VISIBLE)
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
        "NetworkInfo": {
            "NetworkPerformance": f"Up to {kind.peak_gbps:g} Gigabit" if kind.peak_gbps else "Moderate",
            "MaximumNetworkCards": 1,
            "NetworkCards": [
                {
                    "NetworkCardIndex": 0,
                    "MaximumNetworkInterfaces": 3,
                    "BaselineBandwidthInGbps": kind.base_gbps,
                    "PeakBandwidthInGbps": kind.peak_gbps,
                }
            ],
        },
    }


INSTANCE_TYPE_FILTERS: Filters = {
    "instance-type": lambda kind: [kind["InstanceType"]],
    "hypervisor": lambda kind: [kind["Hypervisor"]],
    "current-generation": lambda kind: [str(kind["CurrentGeneration"]).lower()],
}


SUBNET_FILTERS: Filters = {
    "availability-zone": lambda subnet: [subnet["AvailabilityZone"]],
    "subnet-id": lambda subnet: [subnet["SubnetId"]],
}


def describe_subnets(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeSubnets: one subnet in each of three availability zones, in which MSK's brokers are."""
    subnets = {
        subnet_of(caller.region, number): {
            "SubnetId": subnet_of(caller.region, number),
            "AvailabilityZone": f"{caller.region}{'abc'[number]}",
        }
        for number in range(3)
    }
    wanted = params.get("SubnetIds")
    if unknown := [each for each in wanted or () if each not in subnets]:
        raise AwsError("InvalidSubnetID.NotFound", f"The subnet ID '{unknown[0]}' does not exist")
    if wanted and "MaxResults" in params:
        raise _bad_pair("subnetSet")
    chosen = _filtered([subnets[i] for i in dict.fromkeys(wanted or sorted(subnets))], params, SUBNET_FILTERS)
    return _page(caller, params, "Subnets", chosen, (5, 1000))


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
    (start,) = resume(caller, params, "InvalidParameterValue") or (0,)
    page: dict[str, Any] = {name: items[start : start + size]}
    if start + size < len(items):
        page["NextToken"] = next_token(caller, params, [start + size])
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
