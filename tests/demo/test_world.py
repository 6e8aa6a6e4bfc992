"""The modeled world: credit buckets, caps, instance limits, measured values, and metrics of each volume."""

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from demo.demo_world import (
    BROKER_VOLUME_ID,
    CHAIN_BROKERS,
    DEMO_ACCOUNT,
    DEMO_REGION,
    DETACHED_VOLUME_ID,
    ORDERS_INSTANCE_ID,
    ORDERS_VOLUME_ID,
    QUIET_VOLUME_ID,
    RECOVERING_VOLUME_ID,
    SPIKY_VOLUME_ID,
    STARVED_NODE,
    chain_world,
    demo_world,
    seconds_per_request,
)
from demo.ebs_load import LoadModel, Surge
from demo.ebs_physics import GIB, MIB, spend, volume_limits
from demo.ebs_resources import Configuration
from demo.world import Metric, World

NOW = datetime(2026, 11, 18, 12, 20, tzinfo=UTC)
HOUR = NOW.replace(minute=0)
PLACE = ("111122223333", "eu-west-1")
STEADY = {"daily_swing": 0.0, "weekend_factor": 1.0, "noise": 0.0}


def make_world(instance_type: str = "m5.4xlarge") -> World:
    world = World(seed=1, now=lambda: NOW)
    world.add_instance(*PLACE, "i-1", instance_type, launched_at=NOW - timedelta(days=3))
    return world


def add(world: World, volume_id: str = "vol-1", volume_type: str = "gp2", size_gib: int = 100, **more) -> None:
    more.setdefault("created_at", HOUR - timedelta(days=1))
    world.add_volume(*PLACE, volume_id, volume_type, size_gib, instance_id="i-1", **more)


def read(world: World, name: str, resource_name: str = "vol-1", start: datetime = HOUR, minutes: int = 20, place=PLACE):
    namespace, key = ("AWS/EC2", "InstanceId") if resource_name.startswith("i-") else ("AWS/EBS", "VolumeId")
    if name.endswith("_percent"):
        namespace = "CWAgent"
    metric = Metric(namespace, name, frozenset({(key, resource_name)}))
    found = world.read(*place, metric, int(start.timestamp()) // 60, minutes)
    return None if found is None else found[1]


def test_unknown_types_are_one_line_errors():
    with pytest.raises(ValueError, match="volume type 'gp9' is unknown: use gp2"):
        volume_limits("gp9", 1, None, None)
    with pytest.raises(ValueError, match=r"instance type 'm5\.huge' is unknown"):
        World(1, lambda: NOW).add_instance(*PLACE, "i-1", "m5.huge")
    with pytest.raises(ValueError, match="instance i-1 is not in this world"):
        add(World(1, lambda: NOW))


def test_bucket_equals_the_minute_by_minute_formula():
    demand = np.random.default_rng(3).uniform(0, 4000, 1440) * (np.arange(1440) % 300 < 120)
    allowed, left = spend(demand, 300, 3000, 500_000, 200_000)
    have = 200_000.0
    for minute, wanted in enumerate(demand):
        assert allowed[minute] == pytest.approx(min(3000, 300 + have / 60))
        have = min(500_000, have + 300 * 60 - min(wanted, allowed[minute]) * 60)
        assert left[minute] == pytest.approx(have, abs=1e-3)
    assert left.min() == 0
    assert left.max() == 500_000


def test_gp2_at_1000_iops_on_100_baseline_is_empty_after_100_minutes_and_then_delivers_100():
    world = make_world()
    surge = Surge(HOUR - timedelta(minutes=150), HOUR + timedelta(hours=1), read_iops=1000)
    add(world, size_gib=10, load=LoadModel(0, 0, **STEADY, surges=(surge,)))
    balance = read(world, "BurstBalance", start=surge.start, minutes=150)
    assert balance[0] == pytest.approx(99)  # (1000 − 100) × 60 of 5.4 M is one per cent a minute
    assert np.flatnonzero(balance == 0)[0] == 99
    ops, queue = (read(world, name, start=surge.start, minutes=150) for name in ("VolumeReadOps", "VolumeQueueLength"))
    assert ops[99] == 60_000
    assert (ops[100:] == 6000).all()
    assert queue[99] < 2 < 20 < queue[100]
    assert read(world, "VolumeIdleTime").max() == 0
    assert read(world, "VolumeIOPSExceededCheck").min() == 1


def test_balance_refills_at_the_baseline():
    world = make_world()
    add(world, load=LoadModel(0, 0, **STEADY), created_at=HOUR, initial_balance_percent=10)
    balance = read(world, "BurstBalance", start=HOUR, minutes=60)
    assert balance[0] == pytest.approx(10 + 300 * 60 / 5_400_000 * 100)
    assert np.diff(balance) == pytest.approx(300 * 60 / 5_400_000 * 100)


def test_throughput_cap_binds_before_iops():
    world = make_world()
    add(world, volume_type="gp3", load=LoadModel(1000, 0, read_kib=256, **STEADY))
    assert read(world, "VolumeReadBytes") == pytest.approx(125 * MIB * 60)
    assert read(world, "VolumeThroughputExceededCheck").min() == 1
    assert read(world, "VolumeIOPSExceededCheck").max() == 0


def test_large_io_counts_as_several():
    world = make_world()
    add(world, volume_type="io1", iops=100, load=LoadModel(1000, 0, read_kib=512, **STEADY))
    assert read(world, "VolumeReadOps") == pytest.approx(100 / 2 * 60 * 1)


def test_hdd_bucket_is_counted_in_bytes():
    world = make_world()
    add(world, volume_type="st1", size_gib=1024, load=LoadModel(200, 0, read_kib=1024, **STEADY))
    # 200 MiB/s on a baseline of 40: 1 TiB lasts 1,048,576 / 160 s = 109 minutes; the volume is a day old
    assert read(world, "BurstBalance").max() < 1
    assert read(world, "VolumeReadBytes") == pytest.approx(40 * MIB * 60, rel=0.02)


def test_the_instance_can_be_the_bottleneck():
    world = make_world("m5.large")  # 3,600 IOPS for good, 18,750 for half an hour
    for number in range(3):
        add(world, f"vol-{number}", "gp3", load=LoadModel(2500, 0, **STEADY))
    ops = [read(world, "VolumeReadOps", f"vol-{number}") for number in range(3)]
    assert sum(ops) == pytest.approx(3600 * 60, rel=0.001)
    assert read(world, "VolumeIOPSExceededCheck").max() == 0
    assert np.nanmin(read(world, "InstanceEBSIOPSExceededCheck", "i-1")) == 1
    assert np.nanmax(read(world, "EBSIOBalance%", "i-1")) == 0
    assert np.nansum(read(world, "EBSReadOps", "i-1")) == pytest.approx(3600 * 60 * 20, rel=0.001)


def test_micro_bursts_hide_in_the_average_but_not_in_idle_time():
    world = make_world()
    add(world, volume_type="gp3", load=LoadModel(200, 0, duty=0.05, **STEADY))
    ops, idle = read(world, "VolumeReadOps"), read(world, "VolumeIdleTime")
    assert ops / 60 == pytest.approx(200)
    assert ops / (60 - idle) == pytest.approx(4000, rel=0.01)
    assert read(world, "VolumeIOPSExceededCheck").min() == 1


def test_a_minute_is_the_same_in_any_order_of_queries():
    forwards, backwards = make_world(), make_world()
    for world in (forwards, backwards):
        add(world, load=LoadModel(200, 200, noise=0.4), created_at=NOW - timedelta(days=6))
    days = [NOW - timedelta(days=back) for back in (5, 3, 1)]
    there = [read(forwards, "BurstBalance", start=day, minutes=300) for day in days]
    back = [read(backwards, "BurstBalance", start=day, minutes=300) for day in reversed(days)]
    for one, other in zip(there, reversed(back), strict=True):
        assert (one == other).all()


def test_skipping_quiet_days_changes_nothing(monkeypatch):
    metrics = []
    for skip in (True, False):
        world = make_world("m5.large")
        surge = Surge(HOUR - timedelta(hours=2), HOUR - timedelta(hours=1), read_iops=2000)
        add(world, created_at=NOW - timedelta(days=20), load=LoadModel(surges=(surge,)))
        if not skip:
            monkeypatch.setattr("demo.world.Unit._stays_full", lambda self, day: False)
        metrics.append([read(world, "BurstBalance"), read(world, "EBSIOBalance%", "i-1")])
    assert np.array_equal(metrics[0], metrics[1], equal_nan=True)
    assert metrics[0][0].max() < 100


def test_measured_minutes_replace_the_model_and_no_others():
    world = make_world()
    add(world, volume_type="gp3", load=LoadModel(10, 10))
    before = read(world, "VolumeReadBytes")
    world.feed_volume("vol-1", HOUR + timedelta(minutes=3, seconds=20), 3_000_000_123, 5)
    after = read(world, "VolumeReadBytes")
    assert after[3] == 3_000_000_123
    assert (np.delete(after, 3) == np.delete(before, 3)).all()
    assert read(world, "VolumeWriteBytes")[3] == 5


def test_measured_io_spends_credits():
    world = make_world()
    add(world, size_gib=10, load=LoadModel(0, 0, **STEADY))
    world.feed_volume("vol-1", HOUR, 1000 * 16 * 1024 * 60, 0)
    balance = read(world, "BurstBalance")
    assert balance[0] == pytest.approx(99)
    assert balance[5] == pytest.approx(99 + 5 / 9)


def test_memory_is_measured_against_the_instance():
    world = make_world("c5.large")
    world.feed_memory("i-1", HOUR + timedelta(minutes=2), 3 * GIB)
    used = read(world, "mem_used_percent", "i-1")
    assert used[2] == 75
    assert 50 < used[1] < 60


def test_only_existing_volumes_have_metrics():
    world = make_world()
    add(world, "vol-2", "gp2", created_at=HOUR + timedelta(minutes=5))
    add(world, "vol-3", "gp3")
    world.add_instance(*PLACE, "i-xen", "m4.large")
    world.add_volume(*PLACE, "vol-x", "gp2", 100, instance_id="i-xen")
    assert np.isnan(read(world, "BurstBalance", "vol-2")[:5]).all()
    assert not np.isnan(read(world, "BurstBalance", "vol-2")[5:]).any()
    assert read(world, "BurstBalance", "vol-3") is None
    assert read(world, "VolumeStalledIOCheck", "vol-x") is None
    assert read(world, "VolumeReadOps", "vol-x") is not None
    assert read(world, "VolumeReadOps", "vol-none") is None
    assert read(world, "VolumeReadOps", "vol-2", place=("111122223333", "us-east-1")) is None
    assert read(world, "VolumeConsumedReadWriteOps", "vol-3") is None


def test_detached_deleted_stalled_and_silent_minutes():
    world = make_world()
    for number in range(1, 5):
        add(world, f"vol-{number}", "gp3", load=LoadModel(50, 50))
    at, end = HOUR + timedelta(minutes=10), HOUR + timedelta(minutes=12)
    world.detach("vol-1", at)
    world.delete_volume("vol-2", at)
    world.lose_points("vol-3", at, end)
    world.stall("vol-4", at, end)
    for gone in ("vol-1", "vol-2"):
        ops = read(world, "VolumeReadOps", gone)
        assert (~np.isnan(ops) == (np.arange(20) < 10)).all()
    assert np.flatnonzero(np.isnan(read(world, "VolumeReadOps", "vol-3"))).tolist() == [10, 11]
    assert np.flatnonzero(read(world, "VolumeStalledIOCheck", "vol-4")).tolist() == [10, 11]
    assert (read(world, "VolumeReadOps", "vol-4")[10:12] == 0).all()
    assert read(world, "VolumeQueueLength", "vol-4")[10] >= 32


def test_a_slow_volume_queues_requests_without_a_failed_check():
    world = make_world()
    add(world, volume_type="gp3", load=LoadModel(900, 0, concurrency=32, **STEADY))
    at = HOUR + timedelta(minutes=10)
    world.slow("vol-1", at, at + timedelta(minutes=5), factor=100)
    ops, seconds = read(world, "VolumeReadOps"), read(world, "VolumeTotalReadTime")
    # 32 requests of 90 ms each: 356 a second
    assert ops[10] / 60 == pytest.approx(32 / 0.09, abs=1)
    assert seconds[10] / ops[10] == pytest.approx(0.09, rel=0.01)
    assert seconds[9] / ops[9] == pytest.approx(0.0009, rel=0.01)
    for check in ("VolumeIOPSExceededCheck", "VolumeThroughputExceededCheck", "VolumeStalledIOCheck"):
        assert read(world, check).max() == 0


def test_before_nitro_balances_come_in_five_minutes_and_reads_only_while_there_are_any():
    world = World(seed=1, now=lambda: NOW)
    world.add_instance(*PLACE, "i-1", "m4.xlarge", launched_at=NOW - timedelta(days=3))
    add(world, load=LoadModel(0, 50, **STEADY))
    add(world, "vol-2", "gp2", 2000, load=LoadModel(0, 50, **STEADY))
    assert np.flatnonzero(~np.isnan(read(world, "BurstBalance"))).tolist() == [0, 5, 10, 15]
    assert np.nanmin(read(world, "BurstBalance", "vol-2")) == 100
    assert np.isnan(read(world, "VolumeReadOps")).all()
    assert not np.isnan(read(world, "VolumeWriteOps")).any()


def test_basic_monitoring_sends_one_point_in_five_minutes():
    world = make_world()
    world.add_instance(*PLACE, "i-2", "m5.large", detailed_monitoring=True)
    assert np.flatnonzero(~np.isnan(read(world, "CPUUtilization", "i-1"))).tolist() == [0, 5, 10, 15]
    assert not np.isnan(read(world, "CPUUtilization", "i-2")).any()


@pytest.mark.parametrize("faults", [set(), {"ebs"}])
def test_the_demo_has_at_most_one_starved_volume(faults):
    world = demo_world(faults, lambda: NOW)
    place = (DEMO_ACCOUNT, DEMO_REGION)
    lowest = {}
    for volume_id in (ORDERS_VOLUME_ID, RECOVERING_VOLUME_ID, SPIKY_VOLUME_ID):
        balance = read(world, "BurstBalance", volume_id, place=place)
        lowest[volume_id] = balance.min()
        if volume_id == RECOVERING_VOLUME_ID:
            assert balance[0] < 25
            assert (np.diff(balance) > 0).all()
        throttled = read(world, "VolumeIOPSExceededCheck", volume_id, place=place).max()
        assert throttled == (volume_id == ORDERS_VOLUME_ID and "ebs" in faults)
    assert (lowest[ORDERS_VOLUME_ID] == 0) == ("ebs" in faults)
    if faults:
        ops = read(world, "VolumeReadOps", ORDERS_VOLUME_ID, place=place) + read(
            world, "VolumeWriteOps", ORDERS_VOLUME_ID, place=place
        )
        assert ops == pytest.approx(100 * 60, abs=1)
    assert read(world, "BurstBalance", QUIET_VOLUME_ID, place=place) is None
    assert np.isnan(read(world, "BurstBalance", DETACHED_VOLUME_ID, place=place)).all()
    week = read(
        world, "VolumeReadBytes", BROKER_VOLUME_ID, start=HOUR - timedelta(days=14), minutes=14 * 1440, place=place
    )
    assert 0 < np.nanmax(week) / 60 < 1 * MIB
    assert world.instances[ORDERS_INSTANCE_ID].type.memory_gib == 4
    assert len(world.volumes) == 6


def test_one_volume_of_the_chain_is_throttled_and_has_a_queue():
    world, place = chain_world(lambda: NOW), (DEMO_ACCOUNT, DEMO_REGION)
    for node, (_, volume_id) in CHAIN_BROKERS.items():
        starves = node == STARVED_NODE
        # its bucket is empty from 20 minutes before now on, which is the hour's beginning
        assert (read(world, "VolumeIOPSExceededCheck", volume_id, place=place)[2:] == starves).all()
        seconds = seconds_per_request(world, volume_id, NOW - timedelta(minutes=1))
        # Little's law: of the queue of 128 all but some wait, and 100 are done a second
        assert seconds == pytest.approx(1.25, abs=0.05) if starves else 0 < seconds < 0.01
    before = HOUR - timedelta(minutes=30)
    assert not read(world, "VolumeIOPSExceededCheck", volume_id, start=before, place=place).any()


def test_two_weeks_of_two_hundred_volumes_take_seconds():
    world = World(seed=1, now=lambda: NOW)
    for number in range(100):
        world.add_instance(*PLACE, f"i-{number}", "m5.large")
        for half in "ab":
            load = LoadModel(spike_every_minutes=30, spike_iops=500) if number % 3 == 0 else None
            world.add_volume(*PLACE, f"vol-{number}{half}", "gp2", 100, instance_id=f"i-{number}", load=load)
    started = time.process_time()
    for volume_id in world.volumes:
        read(world, "BurstBalance", volume_id)
    assert time.process_time() - started < 20  # 0.7 on an idle machine


def test_a_modified_volume_performs_as_before_until_it_is_ready():
    world, ready_at = make_world(), HOUR + timedelta(minutes=10)
    add(world, volume_type="gp3", load=LoadModel(read_iops=5000, write_iops=0, read_kib=4, **STEADY))
    world.modify("vol-1", HOUR, ready_at, Configuration("gp3", 100, 4000, 250))
    assert read(world, "VolumeReadOps")[[9, 10]].tolist() == [180_000, 240_000]
    assert read(world, "VolumeIOPSExceededCheck").all()
    assert world.volumes["vol-1"].configuration(HOUR).iops == 4000
    assert world.volumes["vol-1"].limits_at(HOUR).base_iops == 3000


def test_a_bucket_keeps_its_credits_when_the_volume_grows_and_is_gone_with_its_type():
    world, ready_at = make_world(), HOUR + timedelta(minutes=10)
    add(world, load=LoadModel(read_iops=1300, write_iops=0, **STEADY), initial_balance_percent=50, created_at=HOUR)
    world.modify("vol-1", HOUR, ready_at, Configuration("gp2", 200, None, None))
    world.modify("vol-1", HOUR, ready_at + timedelta(minutes=5), Configuration("gp3", 200, 3000, 125))
    balance = read(world, "BurstBalance")
    drained = np.diff(balance[:15]) * 54_000 / 60  # credits per second
    np.testing.assert_allclose(drained, [-1000] * 9 + [-700] * 5)
    assert np.isnan(balance[15:]).all()


def test_a_moved_volume_keeps_its_metrics_and_gets_the_limits_of_the_other_instance():
    world, attached_at = make_world("m5.4xlarge"), HOUR + timedelta(minutes=12)
    world.add_instance(*PLACE, "i-2", "m4.large", launched_at=NOW - timedelta(days=3))
    add(world, volume_type="gp3", iops=8000, load=LoadModel(read_iops=5000, write_iops=0, read_kib=4, **STEADY))
    world.move("vol-1", HOUR + timedelta(minutes=10), attached_at, "i-2")
    ops = read(world, "VolumeReadOps")
    assert ops[9] == 300_000 and np.isnan(ops[10:12]).all()
    np.testing.assert_allclose(ops[12:], 216_000, rtol=0.01)
    assert read(world, "EBSReadOps", "i-1")[15] == 0


def test_a_multi_attach_volume_sends_no_status_checks():
    world = make_world()
    add(world, volume_type="io2", iops=1000, load=LoadModel(read_iops=2000, write_iops=0, read_kib=4, **STEADY))
    assert read(world, "VolumeIOPSExceededCheck").all()
    world.volumes["vol-1"].is_multi_attach = True
    assert read(world, "VolumeIOPSExceededCheck") is None and read(world, "VolumeReadOps")[0] == 60_000
