"""The demo's inventories: a broker, the Streams application `orders`, and volumes that must not alert; for the fault
`chain`, three brokers, one of them with a throttled volume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from demo.ebs_days import minute_of
from demo.ebs_load import LoadModel, Surge
from demo.ebs_physics import GP2_CREDITS
from demo.ebs_resources import FOREVER
from demo.world import Metric, World

DEMO_ACCOUNT, DEMO_REGION = "123456789012", "eu-central-1"
BROKER_INSTANCE_ID, ORDERS_INSTANCE_ID = "i-0b1a6f2d4c8e90b11", "i-0a17c3e5d9f20b4a1"
BATCH_INSTANCE_ID = "i-0d14b8e6a2c07f9d3"
BROKER_VOLUME_ID, ORDERS_VOLUME_ID = "vol-0b40ce71d2a9f3851", "vol-0a2de95f1c70b3e64"
RECOVERING_VOLUME_ID, SPIKY_VOLUME_ID = "vol-0d1f4a7c93e2b6058", "vol-0d2b8e05c71f9a346"
QUIET_VOLUME_ID, DETACHED_VOLUME_ID = "vol-0d3c6d19f4e8a2b70", "vol-0d4e7a3b52c9f1806"
CHAIN_BROKERS = {
    1: ("i-0c1e7a5b3d9f20481", "vol-0c1a96e3f70d2b854"),
    2: ("i-0c2b4d8f6a1e30592", "vol-0c2d58b1e94f7a063"),
    3: ("i-0c3f9c1e7b5d406a3", "vol-0c3b70f4a8e2d6915"),
}
"""Node → its instance and volume; the volume of the last one is throttled."""
STARVED_NODE = 3
STARVED_FOR = timedelta(minutes=20)  # how long the burst balance is 0 when the fleet starts
EBS_FAULT_LEAD = timedelta(hours=3)  # so long that the burst balance is 0 during the whole evaluated hour


def demo_world(faults: set[str], now: Callable[[], datetime], broker_volume_id: str = BROKER_VOLUME_ID) -> World:
    """The demo's inventory: a broker, the Streams application `orders`, and volumes that must not alert."""
    world = World(seed=7, now=now)
    place = (DEMO_ACCOUNT, DEMO_REGION)
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    hour = now().replace(minute=0, second=0, microsecond=0)
    born = today - timedelta(days=30)

    def tags(name: str, application: str, owner: str) -> dict[str, str]:
        return {"Name": name, "application": application, "owner": owner}

    kafka, orders, batch = ("kafka", "team-platform"), ("orders", "team-orders"), ("batch", "team-data")
    world.add_instance(*place, BROKER_INSTANCE_ID, "m5.large", tags("kafka-1", *kafka), born)
    world.add_instance(*place, ORDERS_INSTANCE_ID, "c5.large", tags("orders-1", *orders), born)
    world.add_instance(*place, BATCH_INSTANCE_ID, "m5.large", tags("batch-1", *batch), born)
    # The broker mostly reads from the page cache, so there are few disk reads; 128 KiB is the kernel's read-ahead.
    quiet = LoadModel(read_iops=0.4, write_iops=12, read_kib=128, write_kib=64, daily_swing=0.4, noise=0.3)
    world.add_volume(*place, broker_volume_id, "gp3", 500, 3000, 125, BROKER_INSTANCE_ID, "/dev/sdf",
                     tags("kafka-1-log", *kafka), quiet, born)  # fmt: skip
    healthy = LoadModel(read_iops=15, write_iops=20, daily_swing=0.3)
    surge = Surge(hour - EBS_FAULT_LEAD, FOREVER, read_iops=500, write_iops=450)
    starving = LoadModel(read_iops=15, write_iops=20, daily_swing=0.3, surges=(surge,))
    world.add_volume(*place, ORDERS_VOLUME_ID, "gp2", 10, None, None, ORDERS_INSTANCE_ID, "/dev/sdf",
                     tags("orders-1-state", *orders), starving if "ebs" in faults else healthy, born)  # fmt: skip
    add_decoys(world, place, tags("batch-1", *batch), hour, born)
    return world


def add_decoys(world: World, place: tuple[str, str], tags: dict[str, str], hour: datetime, born: datetime) -> None:
    """Volumes that must not alert: a low burst balance that recovers, one-minute spikes, no bucket, and detached."""
    spent = Surge(hour - timedelta(minutes=100), hour - timedelta(minutes=35), read_iops=900, write_iops=600)
    loads = [
        (RECOVERING_VOLUME_ID, "gp2", "/dev/sdg", LoadModel(read_iops=20, write_iops=20, surges=(spent,))),
        (SPIKY_VOLUME_ID, "gp2", "/dev/sdh", LoadModel(spike_every_minutes=30, spike_iops=2400)),
        (QUIET_VOLUME_ID, "gp3", "/dev/sdi", LoadModel(read_iops=5, write_iops=10)),
        (DETACHED_VOLUME_ID, "gp2", "/dev/sdj", LoadModel()),
    ]
    for volume_id, volume_type, device, load in loads:
        world.add_volume(*place, volume_id, volume_type, 100, None, None, BATCH_INSTANCE_ID, device, tags, load, born)
    world.detach(DETACHED_VOLUME_ID, hour - timedelta(days=3))


def chain_world(now: Callable[[], datetime]) -> World:
    """Instances of three brokers. The 30 GiB gp2 (100 IOPS) of the third has a demand of 290 IOPS and no credits."""
    world = World(seed=11, now=now)
    place, born = (
        (DEMO_ACCOUNT, DEMO_REGION),
        now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=30),
    )
    tags = {"application": "kafka", "owner": "team-platform"}
    quiet = LoadModel(read_iops=0.4, write_iops=12, read_kib=128, write_kib=64, daily_swing=0, noise=0.3)
    base, asked = 100.0, 290.0
    surge = Surge(
        now() - STARVED_FOR - timedelta(seconds=GP2_CREDITS / (asked - base)), FOREVER, 140, asked - 140 - 12.4
    )
    # The queue of a device has 128 requests (Linux nr_requests), and writeback fills it.
    starving = replace(quiet, weekend_factor=1, noise=0.02, concurrency=128, surges=(surge,))
    for node, (instance_id, volume_id) in CHAIN_BROKERS.items():
        names = [{**tags, "Name": name} for name in (f"kafka-{node}", f"kafka-{node}-log")]
        world.add_instance(*place, instance_id, "m5.large", names[0], born)
        world.add_volume(*place, volume_id, "gp2", 30, None, None, instance_id, "/dev/sdf", names[1],
                         starving if node == STARVED_NODE else quiet, born)  # fmt: skip
    return world


def seconds_per_request(world: World, volume_id: str, at: datetime) -> float:
    """Latency of a request to the volume in seconds, by Little's law: requests in flight / requests per second."""
    volume = world.volumes[volume_id]

    def metric(name: str) -> float:
        metric = Metric("AWS/EBS", name, frozenset({("VolumeId", volume_id)}))
        found = world.read(volume.account, volume.region, metric, minute_of(at), 1)
        return float(found[1][0]) if found else 0.0

    done = metric("VolumeReadOps") + metric("VolumeWriteOps")
    return metric("VolumeQueueLength") / (done / 60) if done else 0.0
