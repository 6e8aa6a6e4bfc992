"""EC2 instances and EBS volumes of the modeled world: what was launched, attached, modified, and what failed when."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from demo.ebs_load import LoadModel
from demo.ebs_physics import INSTANCE_TYPES, InstanceType, Limits, volume_limits

FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(eq=False)
class Instance:
    """An EC2 instance with its measured or modeled usage."""

    account: str
    region: str
    instance_id: str
    instance_type: str
    tags: dict[str, str]
    launched_at: datetime
    private_ip: str
    detailed_monitoring: bool
    cpu_percent: float
    memory_used_percent: float
    terminated_at: datetime | None = None
    measured_memory: dict[int, float] = field(default_factory=dict)  # minute → bytes
    network: list[tuple[datetime, datetime, float, float]] = field(default_factory=list)
    """Spans with bytes/s received and sent; NETWORK_BYTES_PER_SECOND at other times."""
    cpu_credits: list[tuple[datetime, datetime, float, float, float]] = field(default_factory=list)
    """Spans with credit balance, surplus credits, and charged surplus credits per five minutes; default 500, 0, 0."""
    failed_checks: list[tuple[str, datetime, datetime]] = field(default_factory=list)  # which status check, when

    @property
    def type(self) -> InstanceType:
        return INSTANCE_TYPES[self.instance_type]

    @property
    def image_id(self) -> str:
        return f"ami-{zlib.crc32(self.region.encode()):017x}"


class Configuration(NamedTuple):
    """Type, size, and bought limits of a volume; None: not bought."""

    volume_type: str
    size_gib: int
    iops: int | None
    throughput_mib_s: int | None

    @property
    def limits(self) -> Limits:
        return volume_limits(*self)


class Modification(NamedTuple):
    """A ModifyVolume: EC2 describes the new configuration from `at` on. Until `ready_at` the volume is optimizing, and
    performs as before: AWS promises no less."""

    at: datetime
    ready_at: datetime
    to: Configuration


@dataclass(eq=False)
class Volume:
    """An EBS volume with its attachment and load."""

    account: str
    region: str
    volume_id: str
    volume_type: str
    size_gib: int
    iops: int | None
    throughput_mib_s: int | None
    instance_id: str | None
    device: str | None
    tags: dict[str, str]
    load: LoadModel
    created_at: datetime
    initial_balance_percent: float
    detached_at: datetime | None = None
    deleted_at: datetime | None = None
    stalls: list[tuple[datetime, datetime]] = field(default_factory=list)
    slow: list[tuple[datetime, datetime, float]] = field(default_factory=list)
    """Spans with a latency factor: the volume is impaired, or initialized from its snapshot."""
    gaps: list[tuple[datetime, datetime]] = field(default_factory=list)
    measured: dict[int, tuple[float, float]] = field(default_factory=dict)  # minute → read and write bytes
    modifications: list[Modification] = field(default_factory=list)
    """In order of time."""
    is_multi_attach: bool = False
    """Attached to several instances; the demand of all of them is this volume's."""
    earlier: Volume | None = None
    """The volume at its earlier instance, if it was moved."""

    @property
    def first_configuration(self) -> Configuration:
        return Configuration(self.volume_type, self.size_gib, self.iops, self.throughput_mib_s)

    @property
    def limits(self) -> Limits:
        """The limits before any modification."""
        return self.first_configuration.limits

    def configuration(self, at: datetime) -> Configuration:
        """What EC2 describes at a time."""
        return next((each.to for each in reversed(self.modifications) if each.at <= at), self.first_configuration)

    def limits_at(self, at: datetime) -> Limits:
        """The limits that bind at a time."""
        ready = (each.to for each in reversed(self.modifications) if each.ready_at <= at)
        return next(ready, self.first_configuration).limits

    @property
    def attachments(self) -> list[Volume]:
        """The volume at each of its instances, the last one first."""
        return [self, *(self.earlier.attachments if self.earlier else ())]
