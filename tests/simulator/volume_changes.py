"""Volumes and instances that change during the history: modified, grown, moved, attached twice, terminated; and
instances that borrow their EBS performance.

What a change does is AWS's text, not the product's: while a volume is optimizing it performs at least as before
(EBS User Guide, "Amazon EBS volume modifications"); a Multi-Attach volume sends no status checks ("Attach an EBS volume
to multiple EC2 instances"); a T3 or T4g instance runs at its EBS maximum for 30 minutes ("Amazon EBS-optimized
instance types"). The labels come from the simulated disk, as those of the others do (see `volumes._label`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from demo.ebs_load import LoadModel, Surge
from demo.ebs_physics import volume_limits
from demo.ebs_resources import Configuration
from streamwarden.base.hours import HOUR

if TYPE_CHECKING:
    from tests.simulator.volume_kinds import Builder

MINUTE = timedelta(minutes=1)


def modified_too_little(builder: Builder) -> None:
    """A gp3 volume above its IOPS is modified to some more, which do not suffice either."""
    start = builder.at(1, timedelta(hours=12))
    end = start + MINUTE * builder.chance.randint(300, 480)
    more = 3000 * builder.chance.uniform(1.05, 1.15)
    wanted = more * builder.chance.uniform(1.15, 1.3)
    load = LoadModel(20, 20, noise=0.1, surges=(Surge(start, end, wanted * 0.5, wanted * 0.5),))
    builder.add(0, "gp3", 300, load)
    _modify(builder, start + MINUTE * builder.chance.randint(70, 200), Configuration("gp3", 300, int(more), 125))
    builder.fleet.causes[builder.volume_id(0)] = [start]
    builder.scare(end - HOUR, end)


def grown_while_throttled(builder: Builder) -> None:
    """A gp2 volume whose bucket is empty is enlarged, or becomes gp3: the same load fits from then on."""
    start = builder.at(1, timedelta(hours=20))
    wanted = builder.chance.uniform(1800, 2500)
    surge = Surge(start, start + 18 * HOUR, wanted * 0.5, wanted * 0.5)
    builder.add(0, "gp2", 100, LoadModel(15, 15, noise=0.05, weekend_factor=1.0, surges=(surge,)))
    ready = _modify(builder, start + MINUTE * builder.chance.randint(120, 300), _larger(builder))
    builder.fleet.causes[builder.volume_id(0)] = [start]
    builder.scare(ready, ready + 4 * HOUR)


def modified_in_time(builder: Builder) -> None:
    """A load that empties a bucket in six to ten hours; the volume is enlarged, or becomes gp3, before that."""
    limits = volume_limits("gp2", 100, None, None)
    start = builder.at(1, timedelta(hours=20))
    wanted = limits.base_iops + limits.credits / (builder.chance.uniform(6, 10) * 3600)
    surge = Surge(start, start + 18 * HOUR, wanted * 0.5, wanted * 0.5)
    builder.add(0, "gp2", 100, LoadModel(10, 10, noise=0.05, weekend_factor=1.0, surges=(surge,)))
    ready = _modify(builder, start + MINUTE * builder.chance.randint(60, 180), _larger(builder))
    # Neither: the load would have throttled it.
    builder.fleet.truth.unclear.append((builder.volume_id(0), start, ready))
    builder.scare(ready, ready + 4 * HOUR)


def modified_down(builder: Builder) -> None:
    """A gp3 volume that bought more than it needs is modified to the included limits."""
    each = builder.chance.uniform(500, 1100)
    load = LoadModel(each, each, noise=0.05, daily_swing=0.1, weekend_factor=1.0)
    builder.add(0, "gp3", 500, load, iops=8000, throughput_mib_s=500)
    ready = _modify(builder, builder.at(1, timedelta(hours=12)), Configuration("gp3", 500, 3000, 125))
    builder.scare(ready - 3 * HOUR, ready + 3 * HOUR)


def _larger(builder: Builder) -> Configuration:
    gp3 = Configuration("gp3", 100, builder.chance.choice([4000, 6000]), 250)
    return builder.chance.choice([Configuration("gp2", 1200, None, None), gp3])


def _modify(builder: Builder, at: datetime, to: Configuration) -> datetime:
    """Modifies the first volume; returns when it is ready, some minutes to two hours later."""
    ready = at + MINUTE * builder.chance.randint(5, 120)
    builder.fleet.world.modify(builder.volume_id(0), at, ready, to)
    return ready


def multi_attach_limit(builder: Builder) -> None:
    """A cluster of two instances asks more of a shared io1 or io2 volume than its provisioned IOPS."""
    start = builder.at(1, timedelta(hours=12))
    iops = builder.chance.choice([800, 2000, 5000])
    wanted = iops * builder.chance.uniform(1.15, 1.5)
    surge = Surge(start, start + MINUTE * builder.chance.randint(120, 400), wanted * 0.5, wanted * 0.5)
    _attach_twice(builder, iops, LoadModel(20, 20, noise=0.1, surges=(surge,)))
    builder.fleet.causes[builder.volume_id(0)] = [start]


def multi_attach_near_its_limit(builder: Builder) -> None:
    """Two instances use most of what a shared volume provides, all day."""
    iops = builder.chance.choice([800, 2000, 5000])
    each = iops * builder.chance.uniform(0.7, 0.85) / 2
    load = LoadModel(each, each, noise=0.02, daily_swing=0.03, weekend_factor=1.0)
    _attach_twice(builder, iops, load)
    first = builder.at(1, timedelta(hours=6))
    builder.scare(first, first + 2 * HOUR)


def _attach_twice(builder: Builder, iops: int, load: LoadModel) -> None:
    """A volume of 300 GiB at two instances, whose limits are far from its own."""
    volume = builder.add(0, builder.chance.choice(["io1", "io2"]), 300, load, iops=iops)
    volume.is_multi_attach = True
    builder.peer(builder.chance.choice(["m5.4xlarge", "r5.2xlarge"]))


def burstable_limit(builder: Builder) -> None:
    """Two gp3 volumes on a T3 or T4g instance: within their own limits, above what the instance sustains."""
    kind = builder.fleet.world.instances[builder.instance_id].type
    start = builder.at(1, timedelta(hours=16))
    # The instance's bucket lasts one to four hours.
    excess = kind.io_credits / (builder.chance.uniform(1, 4) * 3600)
    each = min(kind.base_iops + excess, 5600) / 2 - 100
    end = start + HOUR * builder.chance.uniform(7, 10)
    for position in range(2):
        load = LoadModel(30, 30, 8, 8, noise=0.03, surges=(Surge(start, end, each * 0.5, each * 0.5),))
        builder.add(position, "gp3", 300, load)
    builder.fleet.causes |= {builder.volume_id(p): [start] for p in range(2)}
    builder.fleet.kinds |= {builder.volume_id(p): "instance's limit, burstable" for p in range(2)}


def burstable_instance_bursts(builder: Builder) -> None:
    """A T3 or T4g instance above its EBS baseline for some minutes, within its burst."""
    start = builder.at(1, timedelta(hours=12))
    surge = Surge(start, start + MINUTE * builder.chance.randint(10, 17), 1300, 1300)
    for position in range(2):
        builder.add(position, "gp3", 300, LoadModel(20, 20, 8, 8, noise=0.05, surges=(surge,)))
    builder.scare(start, start)


def moved_to_a_smaller_instance(builder: Builder) -> None:
    """A gp3 volume with 8,000 IOPS is moved to an instance that sustains 3,600."""
    at = builder.at(1.5, timedelta(hours=16))
    each = builder.chance.uniform(2400, 3000)
    load = LoadModel(each, each, 8, 8, noise=0.05, daily_swing=0.02, weekend_factor=1.0)
    builder.add(0, "gp3", 500, load, iops=8000, throughput_mib_s=250)
    attached_at = at + MINUTE * builder.chance.randint(2, 30)
    builder.fleet.world.move(
        builder.volume_id(0),
        at,
        attached_at,
        builder.peer(builder.chance.choice(["m6g.large", "m7g.large", "m5.large"])),
    )
    builder.fleet.causes[builder.volume_id(0)] = [attached_at]


def moved(builder: Builder) -> None:
    """A volume with a calm load is moved to another instance."""
    builder.add(0, builder.chance.choice(["gp2", "gp3"]), 500, builder.calm(1500))
    at = builder.at(1, timedelta(hours=12))
    attached_at = at + MINUTE * builder.chance.randint(2, 90)
    builder.fleet.world.move(builder.volume_id(0), at, attached_at, builder.peer("m7g.xlarge"))
    builder.scare(at - 2 * HOUR, attached_at + 2 * HOUR)


def instance_terminated(builder: Builder) -> None:
    """An instance is terminated under a calm load, with its volume or without."""
    builder.add(0, builder.chance.choice(["gp2", "gp3"]), 200, builder.calm(600))
    at = builder.at(1, timedelta(hours=12))
    builder.fleet.world.terminate_instance(builder.instance_id, at)
    if builder.chance.random() < 0.5:
        builder.fleet.world.delete_volume(builder.volume_id(0), at)
    builder.scare(at - HOUR, at + 2 * HOUR)


FAULTS = {
    "modified too little": modified_too_little,
    "grown while throttled": grown_while_throttled,
    "multi-attach limit": multi_attach_limit,
    "instance's limit, burstable": burstable_limit,
    "instance's limit after a move": moved_to_a_smaller_instance,
}
DECOYS = {
    "modified in time": modified_in_time,
    "modified down": modified_down,
    "multi-attach near its limit": multi_attach_near_its_limit,
    "burstable instance bursts": burstable_instance_bursts,
    "moved": moved,
    "instance terminated": instance_terminated,
}
INSTANCE_OF = {
    "instance's limit, burstable": ("t3.medium", "t3.large", "t4g.medium", "t4g.large"),
    "burstable instance bursts": ("t3.medium", "t4g.medium"),
    "instance's limit after a move": ("m5.2xlarge", "r5.2xlarge"),
    "multi-attach limit": ("m5.4xlarge", "r5.2xlarge"),
    "multi-attach near its limit": ("m5.4xlarge", "r5.2xlarge"),
}
