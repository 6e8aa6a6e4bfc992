"""EC2's inventory as the Spark data sources `ec2_volumes` and `ec2_instances`: one partition per account and region.

Reads DescribeVolumes, DescribeInstances, and DescribeInstanceTypes (permissions of the same names), all free of
charge, in pages of 500. EC2 returns the current state only. A region without volumes or instances gives one row
without an id. By AWS's model every member of a response may be absent: then it is unknown, and null.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from spark_apps.sources.aws_client import Connection, Failure, PlacesSource, listed, unseen

PAGE_SIZE = 500
GIGABIT = 1e9 / 8  # in bytes
MEGA = 1_000_000  # EC2 reports megabytes, not mebibytes
Row = dict[str, Any]


class Ec2Volumes(PlacesSource):
    """Every EBS volume with its attachments."""

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "ec2_volumes"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "account string, region string, volume_id string, volume_type string, size_gib int, iops int,"
            " throughput_mib_s int, state string, multi_attach boolean, created_at timestamp,"
            " attachments array<struct<instance_id: string, device: string, state: string, attached_at: timestamp>>,"
            " tags map<string, string>, observed_at timestamp, resource string, gap string"
        )

    def read_place(self, connection: Connection) -> Iterator[list[Row]]:
        """Volumes of one region."""
        resource = f"{connection.place} volumes"
        seen: set[str] = set()
        try:
            for page in _pages(connection, "describe_volumes"):
                observed_at = datetime.now(UTC)
                rows = unseen([_volume(volume) for volume in listed(page, "Volumes")], "volume_id", seen)
                yield [row | {"observed_at": observed_at, "resource": resource} for row in rows or [{}]]
        except Failure as error:
            yield [{"resource": resource, "gap": connection.gap(error)}]


class Ec2Instances(PlacesSource):
    """Every EC2 instance with the limits of its type."""

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "ec2_instances"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "account string, region string, instance_id string, instance_type string, state string, private_ip string,"
            " private_dns string, launched_at timestamp, is_spot boolean, vcpus int, memory_bytes bigint,"
            " nitro boolean, ebs_baseline_iops double, ebs_maximum_iops double, ebs_baseline_bytes_per_second double,"
            " ebs_maximum_bytes_per_second double, network_baseline_bytes_per_second double,"
            " network_peak_bytes_per_second double, tags map<string, string>, observed_at timestamp,"
            " resource string, gap string"
        )

    def read_place(self, connection: Connection) -> Iterator[list[Row]]:
        """Instances of one region."""
        resource = f"{connection.place} instances"
        types, seen = _InstanceTypes(connection), set[str]()
        try:
            for page in _pages(connection, "describe_instances"):
                observed_at = datetime.now(UTC)
                lots = listed(page, "Reservations")
                rows = [_instance(instance) for lot in lots for instance in lot.get("Instances", ())]
                rows = unseen(rows, "instance_id", seen)
                types.learn({row["instance_type"] for row in rows if row["instance_type"]})
                rows = [row | types.known.get(row["instance_type"], {}) for row in rows]
                yield [row | {"observed_at": observed_at, "resource": resource} for row in rows or [{}]]
        except Failure as error:
            yield [{"resource": resource, "gap": connection.gap(error)}]
        if types.asked:
            yield [{"resource": f"{connection.place} instance types", "gap": types.gap}]


class Ec2InstanceTypes(PlacesSource):
    """Types by name, with what each offers. Option `types`: names, separated by commas; none: nothing is asked."""

    @classmethod
    def name(cls) -> str:
        return "ec2_instance_types"

    def schema(self) -> str:
        return (
            "account string, region string, instance_type string, vcpus int, memory_bytes bigint, nitro boolean,"
            " ebs_baseline_iops double, ebs_maximum_iops double, ebs_baseline_bytes_per_second double,"
            " ebs_maximum_bytes_per_second double, network_baseline_bytes_per_second double,"
            " network_peak_bytes_per_second double, resource string, gap string"
        )

    def read_place(self, connection: Connection) -> Iterator[list[Row]]:
        types = _InstanceTypes(connection)
        types.learn({name for name in self.options.get("types", "").split(",") if name})
        resource = f"{connection.place} instance types"
        rows = [{"instance_type": name, **limits} for name, limits in types.known.items()]
        if types.asked:
            yield [row | {"resource": resource} for row in rows] + [{"resource": resource, "gap": types.gap}]


class _InstanceTypes:
    """Memory, vCPUs, and EBS limits by type; without permission they are unknown, and instances keep their rows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.known: dict[str, Row] = {}
        self.asked: set[str] = set()
        self.refusal: str | None = None

    @property
    def gap(self) -> str | None:
        """Why some types are unknown; None if all are known."""
        unknown = sorted(self.asked - self.known.keys())
        if self.refusal or not unknown:
            return self.refusal
        return f"missing: {self.connection.place}: EC2 does not describe {', '.join(unknown)}: memory, limits unknown."

    def learn(self, names: set[str]) -> None:
        """Requests the types that are not known yet."""
        missing = sorted(names - self.known.keys())
        # A filter, because one unknown name in InstanceTypes fails the whole request; a filter has at most 200 values.
        for wanted in (missing[i : i + 200] for i in range(0, len(missing), 200)):
            self.asked |= {*wanted}
            try:
                paginator = self.connection.client("ec2").get_paginator("describe_instance_types")
                for page in paginator.paginate(Filters=[{"Name": "instance-type", "Values": wanted}]):
                    kinds = listed(page, "InstanceTypes")
                    self.known |= {kind.get("InstanceType", ""): _limits(kind) for kind in kinds}
            except Failure as error:
                self.refusal = self.connection.gap(error)


def _pages(connection: Connection, operation: str) -> Iterator[dict[str, Any]]:
    paginator = connection.client("ec2").get_paginator(operation)
    return iter(paginator.paginate(PaginationConfig={"PageSize": PAGE_SIZE}))


def _tags(item: dict[str, Any]) -> list[tuple[str, str]]:
    return [(tag["Key"], tag.get("Value", "")) for tag in item.get("Tags", ()) if "Key" in tag]


def _volume(volume: dict[str, Any]) -> Row:
    return {
        "volume_id": volume.get("VolumeId"),
        "volume_type": volume.get("VolumeType"),
        "size_gib": volume.get("Size"),
        "iops": volume.get("Iops"),
        "throughput_mib_s": volume.get("Throughput"),
        "state": volume.get("State"),
        "multi_attach": volume.get("MultiAttachEnabled"),
        "created_at": volume.get("CreateTime"),
        "attachments": [
            {
                "instance_id": attachment.get("InstanceId"),
                "device": attachment.get("Device"),
                "state": attachment.get("State"),
                "attached_at": attachment.get("AttachTime"),
            }
            for attachment in volume.get("Attachments", ())
        ],
        "tags": _tags(volume),
    }


def _instance(instance: dict[str, Any]) -> Row:
    return {
        "instance_id": instance.get("InstanceId"),
        "instance_type": instance.get("InstanceType"),
        "state": instance.get("State", {}).get("Name"),
        "private_ip": instance.get("PrivateIpAddress"),
        "private_dns": instance.get("PrivateDnsName") or None,
        "launched_at": instance.get("LaunchTime"),
        "is_spot": instance.get("InstanceLifecycle") == "spot",
        "tags": _tags(instance),
    }


def _limits(kind: dict[str, Any]) -> Row:
    ebs_info, hypervisor = kind.get("EbsInfo", {}), kind.get("Hypervisor")
    ebs, nvme = ebs_info.get("EbsOptimizedInfo", {}), ebs_info.get("NvmeSupport")
    return {
        "vcpus": kind.get("VCpuInfo", {}).get("DefaultVCpus"),
        "memory_bytes": _times(kind.get("MemoryInfo", {}).get("SizeInMiB"), 1024**2),
        # Bare metal has no hypervisor; it is Nitro if its volumes are NVMe.
        "nitro": hypervisor == "nitro" if hypervisor else nvme and nvme == "required",
        "ebs_baseline_iops": _times(ebs.get("BaselineIops"), 1.0),
        "ebs_maximum_iops": _times(ebs.get("MaximumIops"), 1.0),
        "ebs_baseline_bytes_per_second": _times(ebs.get("BaselineThroughputInMBps"), MEGA),
        "ebs_maximum_bytes_per_second": _times(ebs.get("MaximumThroughputInMBps"), MEGA),
        "network_baseline_bytes_per_second": _bandwidth(kind, "BaselineBandwidthInGbps"),
        "network_peak_bytes_per_second": _bandwidth(kind, "PeakBandwidthInGbps"),
    }


def _bandwidth(kind: Row, which: str) -> float | None:
    """Sum over all network cards, in bytes per second; null if one of them has no value."""
    cards = [card.get(which) for card in kind.get("NetworkInfo", {}).get("NetworkCards", ())]
    return sum(cards) * GIGABIT if cards and None not in cards else None


def _times(figure: float | None, factor: float) -> float | None:
    return None if figure is None else figure * factor
