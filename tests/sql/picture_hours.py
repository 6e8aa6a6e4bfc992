"""Example hours for the pictures of the detector pages (tests/sql/pictures.py): only the columns that a chart reads.

The columns of the first row name the resource of the chart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.sql.rows import HOUR

GIB, MIB = 2**30, 2**20
Row = dict[str, Any]
Rows = dict[str, list[Row]]
PLACE = {"account": "123456789012", "region": "eu-central-1"}
SHOP = {"cluster": "shop"}
BROKER = SHOP | {"broker_id": 3, "endpoint": "http://10.0.0.3:8778/jolokia"}
PROCESS = SHOP | {"endpoint": "http://10.0.0.7:8778/jolokia", "app": "orders", "application_id": "orders"}


def hourly(row: Row, hours: int, every: int = 1, until: int = 0, **columns: Callable[[int], Any]) -> list[Row]:
    """A row per hour, `hours` of them up to the evaluated hour; `columns` give a value by hours ago."""
    return [
        row | {"hour": HOUR - timedelta(hours=ago)} | {name: of(ago) for name, of in columns.items()}
        for ago in range(hours, until - 1, -every)
    ]


def wave(ago: int, height: float = 1.0) -> float:
    """A daily rhythm between -height and height, highest in the afternoon."""
    return height * math.sin(2 * math.pi * (4 - ago) / 24)


def noise(ago: float, height: float = 1.0) -> float:
    """Deterministic noise between -height and height."""
    return height * (0.6 * math.sin(ago * 12.9) + 0.4 * math.sin(ago * 4.1))


def evaluation(detector: str, resource: Row, metrics: Row, key: str | None = None) -> Row:
    """A row of detect.evaluation: the detector's finding in the evaluated hour."""
    return {"detector": detector, "fingerprint": "-", "status": "firing", "resource": key, "identity": resource,
            "metrics": json.dumps(metrics)}  # fmt: skip


def ebs_volume_starving() -> Rows:
    """A gp2 volume of 100 GiB with load above its baseline: the burst balance is exhausted in half an hour."""
    volume = PLACE | {"volume_id": "vol-0a1b2c3d4e5f60718"}
    samples, balance = [], 100.0
    for minute in range(-420, 60, 5):
        iops = (900 if minute >= -65 else 240) * (1 + 0.12 * math.sin(minute / 7))
        balance = min(balance + (300 - iops) * 300 / 54_000, 100.0)
        samples.append(
            volume | {"at": HOUR + timedelta(minutes=minute), "period_seconds": 300, "read_ops": iops * 100,
                      "write_ops": iops * 200, "read_bytes": iops * 100 * 16384, "write_bytes": iops * 200 * 16384,
                      "burst_balance_percent": balance}
        )  # fmt: skip
    facts = {"known_until": HOUR + timedelta(hours=1), "burst_iops": 3000, "baseline_iops": 300,
             "baseline_bytes_per_second": 75 * MIB, "burst_bytes_per_second": 128 * MIB,
             "demand_iops_p95": 1000, "demand_bytes_per_second_p95": 16 * MIB, "burst_balance_last_percent": balance,
             "hours_to_exhaustion": balance * 54_000 / 600 / 3600}  # fmt: skip
    return {"metrics.volume_sample": samples, "metrics.volume_hourly": [volume | facts]}


def app_memory_heavy() -> Rows:
    """A heap of 3.5 GiB and thirty RocksDB stores on 4 GiB."""
    process = {"cluster": "shop", "app": "orders", "application_id": "orders",
               "endpoint": "http://10.0.0.7:8778/jolokia", "samples": 3,
               "memory_limit_bytes": 4 * GIB, "heap_max_bytes": 3.4 * GIB, "heap_used_bytes": 0.9 * GIB,
               "non_heap_used_bytes": 150 * MIB, "thread_stack_bytes": 60 * MIB, "direct_bytes": 32 * MIB,
               "store_instances": 30, "rocksdb_measured_bytes": 1.1 * GIB,
               "rocksdb_expected_bytes": 30 * 98 * MIB}  # fmt: skip
    return {"metrics.jvm_app_hourly": [process]}


def state_store_schema_drift() -> Rows:
    """In orders, quantity became text, postcode was removed, and coupon was added."""
    topic = {"cluster": "shop", "topic": "orders-customer-latest-changelog", "old_last_offset": "3:48211",
             "new_first_offset": "3:48212", "new_first_at": HOUR + timedelta(minutes=12), "old_version": 1,
             "new_version": 2}  # fmt: skip
    changes: list[dict[str, Any]] = [
        {"path": "$.quantity", "change": "type_changed", "old_type": "integer", "new_type": "string",
         "old_count": 41_200, "new_count": 8_800, "breaks_backward": True, "breaks_forward": True},
        {"path": "$.address.postcode", "change": "field_removed", "old_type": "string", "new_type": None,
         "old_count": 41_200, "new_count": 8_800, "breaks_backward": False, "breaks_forward": True},
        {"path": "$.coupon", "change": "optional_field_added", "old_type": None, "new_type": "string",
         "old_count": 41_200, "new_count": 2_640, "breaks_backward": False, "breaks_forward": False},
    ]  # fmt: skip
    return {"metrics.state_store_change_hourly": [{**topic, **change} for change in changes]}


def consumer_rogue() -> Rows:
    """A consumer reads from the disks of three brokers since 10:17, while no group lags."""
    hours = [HOUR + timedelta(hours=n) for n in range(-5, 1)]
    rows: Rows = {table: [] for table in ("metrics.broker_hourly", "inventory.volume_hourly", "metrics.volume_hourly",
                                          "metrics.volume_sample", "metrics.consumer_partition_hourly",
                                          "detect.evaluation")}  # fmt: skip
    for broker in range(3):
        instance, volume = f"i-broker{broker}", PLACE | {"volume_id": f"vol-broker{broker}"}
        rows["metrics.broker_hourly"].append({"cluster": "shop", "endpoint": instance, "instance_id": instance})
        rows["inventory.volume_hourly"].append(volume | {"instance_id": instance})
        baseline = (broker + 2) * MIB
        rows["metrics.volume_hourly"] += [
            volume | {"hour": hour, "read_baseline_bytes_per_second": baseline} for hour in hours
        ]
        for minute in range(-300, 60, 2):
            rate = baseline * (1 + 0.2 * math.sin(minute + broker))
            if 17 <= minute < 52:
                rate += (38 + 5 * broker) * MIB * (1 + 0.08 * math.sin(minute * 2 + broker))
            sample = {"at": HOUR + timedelta(minutes=minute), "period_seconds": 120, "read_bytes": rate * 120}
            rows["metrics.volume_sample"].append(volume | sample)
    for n, hour in enumerate(hours):
        rows["metrics.consumer_partition_hourly"] += [
            {"hour": hour, "cluster": "shop", "group_id": group, "topic": topic, "partition": 0, "lag_seconds": lag}
            for group, topic, lag in (("billing", "orders", 4 + n % 3), ("search", "clicks", (30, 210, 90)[n % 3]))
        ]
        metrics = json.dumps({"page_cache_holds_seconds": 2400 + 60 * n})
        rows["detect.evaluation"].append(
            {"hour": hour, "detector": "consumer_rogue", "fingerprint": "-", "status": "ok",
             "identity": {"cluster": "shop"}, "metrics": metrics}
        )  # fmt: skip
    return rows


def app_memory_growing() -> Rows:
    """Native memory grows since the process started six days ago."""
    return {"metrics.jvm_app_hourly": hourly(
        PROCESS | {"process_started_at": HOUR - timedelta(hours=144)}, 143,
        resident_bytes=lambda ago: (5.2 + 0.016 * (143 - ago) + noise(ago, 0.03)) * GIB,
        heap_used_after_gc_bytes=lambda ago: (1.3 + wave(ago, 0.15) + noise(ago, 0.05)) * GIB,
        rocksdb_measured_bytes=lambda ago: (1.9 - 0.5 * math.exp((ago - 143) / 12)) * GIB,
        thread_stack_bytes=lambda ago: 80 * MIB, direct_bytes=lambda ago: 160 * MIB,
    )}  # fmt: skip


def app_crash_looping() -> Rows:
    """A process that ran for days now exits within an hour of each start."""

    def started(ago: int) -> datetime:
        minutes = 24 + noise(ago, 14) if ago < 17 else 60 * (110 - ago)
        return HOUR + timedelta(hours=1 - ago, minutes=-minutes)

    return {"metrics.jvm_app_hourly": hourly(PROCESS, 47, process_started_at=started)}


def app_blocked_on_external_calls() -> Rows:
    """For five hours each record has waited for an external call."""
    return {"metrics.jvm_app_hourly": hourly(
        PROCESS, 47, records_processed=lambda ago: 1e6, cpu_seconds=lambda ago: 1800 + noise(ago, 150),
        record_latency_ms=lambda ago: (15 if ago < 5 else 3.2) + noise(ago, 0.4),
    )}  # fmt: skip


def broker_down() -> Rows:
    """Open files rose to the limit; the broker stopped responding two hours ago."""
    files = {"max_file_descriptors": 100_000, "heap_max_bytes": 6 * GIB}
    disk = BROKER | {"log_dir": "/data", "total_bytes": 2000 * GIB}
    return {
        "metrics.broker_hourly": hourly(
            BROKER | files, 23, until=2, open_file_descriptors=lambda ago: min(98_500, 99_000 - 2600 * (ago - 2)),
            heap_used_bytes=lambda ago: (3.2 + noise(ago, 0.6)) * GIB,
        ),
        "metrics.log_dir_hourly": hourly(
            {key: value for key, value in disk.items() if key != "endpoint"}, 23, until=2,
            usable_bytes=lambda ago: int((600 + 2 * ago) * GIB),
        ),
    }  # fmt: skip


def broker_file_descriptors_high() -> Rows:
    """Topics were added three days ago, and open files grow since then."""
    open_files = {"max_file_descriptors": 100_000}
    return {"metrics.broker_hourly": hourly(
        BROKER | open_files, 167, segments=lambda ago: 21_000 + (14_000 - 120 * ago if ago < 70 else 0),
        open_file_descriptors=lambda ago: 52_000 + wave(ago, 600) + (30_000 - 260 * ago if ago < 70 else 0),
    )}  # fmt: skip


def broker_imbalanced() -> Rows:
    """One broker took over the leaders of another four days ago."""

    def bytes_in(broker: int, ago: int) -> float:
        share = (1, 1.06, {True: 1.9, False: 0.97}[ago < 96], {True: 0.3, False: 1.02}[ago < 96])[broker]
        return share * (40 + wave(ago, 14) + noise(ago + broker, 2)) * MIB

    return {"metrics.broker_hourly": [
        row for n in range(4)
        for row in hourly(SHOP | {"broker_id": n, "endpoint": f"http://10.0.0.{n}:8778/jolokia"}, 335, every=3,
                          bytes_in_per_second=lambda ago, n=n: bytes_in(n, ago))
    ]}  # fmt: skip


def broker_partitions_too_many() -> Rows:
    """Two of four brokers hold too many partitions."""
    return {
        "metrics.broker_hourly": [
            SHOP | {"broker_id": n, "endpoint": f"b{n}", "partitions": partitions, "leaders": partitions // 3}
            for n, partitions in enumerate((6180, 5240, 2900, 2750))
        ],
        "detect.detector_run": [{"detector": "broker_partitions_too_many", "params": {"many": 4000}}],
    }


def broker_requests_high() -> Rows:
    """Requests doubled two days ago, and latency rises at the daily peaks."""

    def requests(ago: int) -> float:
        return (4200 if ago < 48 else 2300) * (1 + wave(ago, 0.3)) + noise(ago, 80)

    return {"metrics.broker_hourly": hourly(
        BROKER, 167, produce_requests_per_second=requests,
        produce_p99_ms=lambda ago: 9 + max(0, requests(ago) - 4000) ** 2 / 25_000 + noise(ago, 1),
    )}  # fmt: skip


def broker_slow() -> Rows:
    """Log flushes of one broker take three times as long for a day; those of its peers do not."""

    def flush(ago: int, broker: int) -> float:
        return (3.2 if broker == 3 and ago < 30 else 1) * (6 + wave(ago, 1.5) + noise(ago + broker, 0.5))

    return {"metrics.broker_hourly": [
        row for n in (3, 1, 2)
        for row in hourly(SHOP | {"broker_id": n, "endpoint": f"http://10.0.0.{n}:8778/jolokia"}, 335, every=3,
                          log_flush_p95_ms=lambda ago, n=n: flush(ago, n),
                          log_flush_p999_ms=lambda ago, n=n: 2.4 * flush(ago, n))
    ]}  # fmt: skip


def changelog_abandoned() -> Rows:
    """Internal topics unused for three weeks."""
    topic = SHOP | {"topic": "orders-v1-totals-changelog"}
    return {
        "inventory.topic_hourly": [topic | {"application_id": "orders-v1", "kind": "changelog"}],
        "metrics.topic_hourly": hourly(
            topic | {"covered_seconds": 3600}, 839, every=6,
            bytes_in=lambda ago: 0 if ago < 500 else (2.1 + wave(ago, 0.7) + noise(ago, 0.2)) * MIB * 3600,
            bytes_out=lambda ago: 0 if ago < 500 else (0.4 + noise(ago, 0.3)) * MIB * 3600,
        ),
    }  # fmt: skip


def compaction_stalled() -> Rows:
    """The log cleaner died a day ago, and log sizes only grow since then."""

    def bytes_of(period: int, height: float) -> Callable[[int], float]:
        return lambda ago: (
            (height + height / period * (24 + (72 - 24) % period - ago if ago < 24 else (72 - ago) % period)) * GIB
        )

    sizes = {"orders-totals-changelog": (12, 9.0), "customers-changelog": (17, 5.0), "carts-changelog": (9, 2.0)}
    return {
        "metrics.broker_hourly": hourly(BROKER, 71),
        "inventory.topic_hourly": [SHOP | {"topic": topic, "cleanup_policy": "compact"} for topic in sizes],
        "metrics.broker_topic_sample": [
            row for topic, (period, height) in sizes.items()
            for row in hourly(SHOP | {"endpoint": BROKER["endpoint"], "topic": topic}, 71,
                              log_bytes=bytes_of(period, height))
        ],
    }  # fmt: skip


def consumer_data_at_risk() -> Rows:
    """A group that reads more slowly than retention deletes."""
    place = SHOP | {"topic": "orders", "partition": 4}
    committed = {"committed_offset": lambda ago: 9_000_000 - 60_000 * ago}
    return {
        "metrics.consumer_partition_hourly": hourly(
            place | {"group_id": "billing"}, 47, lag_records=lambda ago: 4_000_000, **committed
        ),
        "metrics.partition_hourly": hourly(
            place, 47, log_start_offset=lambda ago: 8_700_000 - 110_000 * ago,
            log_end_offset=lambda ago: int(14_000_000 - 110_000 * ago + wave(ago, 90_000)),
        ),
    }  # fmt: skip


def consumer_group_lagging() -> Rows:
    """A group lags on one topic since the morning, but not on the other one."""
    group = SHOP | {"group_id": "billing"}
    return {"metrics.consumer_partition_hourly": [
        *hourly(group | {"topic": "orders", "partition": 0}, 23,
                lag_seconds=lambda ago: 20 + noise(ago, 15) + max(0, 7 - ago) * 410),
        *hourly(group | {"topic": "refunds", "partition": 0}, 23, lag_seconds=lambda ago: 60 + noise(ago, 40)),
    ]}  # fmt: skip


def consumer_group_rebalancing() -> Rows:
    """One client leaves and joins for hours, another left once."""
    steps: list[tuple[int, Row]] = [(-minute, {"client_id": "billing-2", "host": "10.0.1.12"}) for minute in
                                    (*range(-50, 300, 12), *range(-55, 200, 31))]  # fmt: skip
    steps.append((-700, {"client_id": "billing-1", "host": "10.0.1.11"}))
    return {"metrics.group_step_hourly": [
        SHOP | {"group_id": "billing", "generation": n, "began_at": (at := HOUR + timedelta(minutes=minute)),
                "hour": at.replace(minute=0), "gone": [gone]}
        for n, (minute, gone) in enumerate(steps)
    ]}  # fmt: skip


def consumer_trial_failed() -> Rows:
    """A group three days old that falls behind at the daily peaks."""
    group, topic = SHOP | {"group_id": "pricing"}, SHOP | {"topic": "orders"}

    def bytes_in(ago: int) -> float:
        return (22 + wave(ago, 9) + noise(ago, 1)) * MIB

    return {
        "metrics.consumer_group_hourly": hourly(
            group, 70, lag_seconds_max=lambda ago: max(20, (wave(ago + 2) - 0.2) * 2600) + noise(ago, 10)
        ),
        "metrics.consumer_partition_hourly": [group | topic],
        "metrics.topic_hourly": hourly(
            topic | {"covered_seconds": 3600}, 100, bytes_in=lambda ago: 3600 * bytes_in(ago)
        ),
    }


def consumer_poison_pill() -> Rows:
    """One partition has been stuck for four hours."""
    group = SHOP | {"group_id": "billing", "topic": "orders"}
    return {"metrics.consumer_partition_hourly": [
        row for partition, slope in enumerate((41_000, 38_000, 44_000, 36_500))
        for row in hourly(
            group | {"partition": partition, "still_seconds": 14_000 if partition == 2 else 0, "lag_records": 9}, 15,
            committed_offset=lambda ago, n=partition, slope=slope: (
                slope * -max(ago, 4 if n == 2 else 0) + int(wave(ago, 2000))
            ),
        )
    ]}  # fmt: skip


def consumer_replaying() -> Rows:
    """A group reads two days of records again every other night."""

    def lag(ago: int) -> float:
        since = (ago + 5) % 48
        return 180_000 * since / 9 if since < 9 else 30 + noise(ago, 20)

    return {"metrics.consumer_group_hourly": [
        *hourly(SHOP | {"group_id": "reports"}, 167, lag_seconds_max=lag),
        *hourly(SHOP | {"group_id": "billing"}, 167, lag_seconds_max=lambda ago: 2000 + noise(ago, 1500)),
    ]}  # fmt: skip


def consumer_untracked() -> Rows:
    """A consumer without commits reads twice as much as the others."""
    topic = SHOP | {"topic": "orders"}
    return {
        "inventory.consumer_member_hourly": [SHOP | {"group_id": "search", "member_id": "search-1",
                                                     "assignment": {"orders": [0]}}],
        "metrics.topic_hourly": hourly(
            topic | {"covered_seconds": 3600}, 11, bytes_in=lambda ago: 3600 * 12 * MIB, messages_in=lambda ago: 1e6,
            bytes_out=lambda ago: 3600 * (38 + noise(ago, 2)) * MIB,
        ),
        "metrics.consumer_partition_hourly": hourly(
            topic | {"group_id": "billing", "partition": 0, "consumed_seconds": 3600}, 11,
            records_consumed=lambda ago: 1e6 + noise(ago, 5e4),
            committed_offset=lambda ago: int(1e9 - 1e6 * ago),
        ),
    }  # fmt: skip


def controllers_missing() -> Rows:
    """A controller election at night, and no active controller in the last hour."""
    rows = []
    for ago in range(23, -1, -1):
        for endpoint in range(3):
            for minute in (20, 40):
                active = endpoint == (1 if ago > 13 else 2) and ago > 0 and not (ago == 14 and minute == 20)
                rows.append(
                    SHOP | {"hour": HOUR - timedelta(hours=ago), "endpoint": f"http://10.0.0.{endpoint}:8778/jolokia",
                            "metric": "active_controllers", "value": float(active),
                            "at": HOUR - timedelta(hours=ago, minutes=-minute)}
                )  # fmt: skip
    params = {"detector": "controllers_missing", "params": {"expected": 1}}
    return {"metrics.broker_sample": rows, "detect.detector_run": [params]}


def copartition_broken() -> Rows:
    """One of three topics got more partitions three days ago."""
    return {"inventory.topic_hourly": [
        row for topic, more in (("customers", 0), ("orders", 12), ("orders-joined-changelog", 0))
        for row in hourly(SHOP | {"application_id": "orders", "topic": topic}, 14 * 24, every=24,
                          partitions=lambda ago, more=more: 12 + (more if ago <= 72 else 0))
    ]}  # fmt: skip


def disk_filling() -> Rows:
    """A producer was added four days ago: disk usage grows under the daily cycle of retention."""
    directory = SHOP | {"broker_id": 3, "log_dir": "/data", "total_bytes": 2000 * GIB}
    return {"metrics.log_dir_hourly": hourly(
        directory, 167,
        usable_bytes=lambda ago: int((900 - 40 * ((167 - ago) % 24) / 24 - max(0, 96 - ago) * 6.6) * GIB),
    )}  # fmt: skip


def instance_cpu_starving() -> Rows:
    """CPU credits were earned back each day until two days ago."""

    def left(ago: int) -> float:
        return max(60, 510 + wave(ago, 60) - max(0, 48 - ago) * 9)

    return {"metrics.instance_health_hourly": hourly(
        PLACE | {"instance_id": "i-0a1b2c3d4e5f60718", "instance_group": "search"}, 167, cpu_credits=left
    )}  # fmt: skip


def instance_unhealthy() -> Rows:
    """Memory was exhausted first, then the CPU, then the health check failed."""
    instance = PLACE | {"instance_id": "i-0a1b2c3d4e5f60718"}
    minutes = range(-120, 60)
    return {
        "metrics.instance_health_hourly": [PLACE | {"instance_group": "orders"} | instance | {"failing_since": HOUR}],
        "metrics.instance_sample": [
            instance | {"at": HOUR + timedelta(minutes=minute),
                        "memory_used_percent": min(97.0, 64 + noise(minute, 0.5) + max(0, minute + 70) * 0.36),
                        "cpu_percent": min(99.0, 36 + noise(minute, 5) + max(0, minute - 12) * 4.2)}
            for minute in minutes
        ],
    }  # fmt: skip


def instance_network_starving() -> Rows:
    """The instance used its network burst and is throttled to its baseline."""
    instance = PLACE | {"instance_id": "i-0a1b2c3d4e5f60718"}
    baseline, peak = 156e6, 1250e6

    def sent(minute: int) -> float:
        if minute < -150:
            return 110e6 + noise(minute, 12e6)
        return 620e6 + noise(minute, 40e6) if minute < 5 else baseline * (1 + noise(minute, 0.01))

    return {
        "metrics.instance_network_hourly": [
            instance | {"direction": "out", "baseline_bytes_per_second": baseline, "peak_bytes_per_second": peak,
                        "bytes_per_second_max": 660e6, "minutes_expected": 60}
        ],
        "metrics.instance_network_sample": [
            instance | {"at": HOUR + timedelta(minutes=minute), "period_seconds": 300, "out_bytes": 300 * sent(minute),
                        "in_bytes": 300 * (70e6 + noise(minute, 9e6))}
            for minute in range(-300, 60, 5)
        ],
    }  # fmt: skip


def internal_topic_foreign_consumer() -> Rows:
    """A job reads two changelogs of another application."""
    topics = {"orders-totals-changelog": ("changelog", 3.1), "orders-by-customer-repartition": ("repartition", 8.4)}
    return {
        "inventory.consumer_member_hourly": [
            SHOP | {"group_id": "warehouse-loader", "member_id": "loader-1", "client_id": "loader-1",
                    "host": "10.0.2.8", "assignment": {topic: [0] for topic in topics}}
        ],
        "inventory.topic_hourly": [
            SHOP | {"topic": topic, "kind": kind, "application_id": "orders"} for topic, (kind, _) in topics.items()
        ],
        "metrics.topic_hourly": [
            SHOP | {"topic": topic, "covered_seconds": 3600, "bytes_out": rate * MIB * 3600}
            for topic, (_, rate) in topics.items()
        ],
    }  # fmt: skip


def latency_over_target() -> Rows:
    """Records wait in the log since this morning."""
    application = SHOP | {"application_id": "orders"}

    def metrics(ago: int) -> str:
        log = 1.2 + noise(ago, 0.4) + max(0, 9 - ago) * 1.4
        before, inside = 0.8 + noise(ago + 5, 0.2), 1.5 + noise(ago + 9, 0.3)
        return json.dumps({"target_seconds": 10, "age_mean_seconds": log + before + inside, "in_log_seconds": log,
                           "before_kafka_seconds": before, "in_application_seconds": inside})  # fmt: skip

    found = evaluation("latency_over_target", application, {}, "application:shop/orders")
    return {"detect.evaluation": hourly(found, 47, metrics=metrics)}


def log_flush_slow() -> Rows:
    """Log flushes take longer at each daily peak, and now exceed the limit of the strictest topic."""
    broker = {"cluster": "shop", "broker_id": "3"}
    return {
        "metrics.broker_hourly": hourly(
            BROKER, 167, log_flush_mean_ms=lambda ago: 7 + wave(ago, 2) + (167 - ago) * 0.05,
            log_flush_p95_ms=lambda ago: 20 + wave(ago, 9) + (167 - ago) ** 2 * 0.0026 + noise(ago, 2),
        ),
        "detect.evaluation": [evaluation("log_flush_slow", broker, {"limit_ms": 80})],
    }  # fmt: skip


def host_disk_filling() -> Rows:
    """State stores grow each day and will fill the file system."""
    host = SHOP | {"endpoint": "http://10.0.0.7:9100/metrics"}
    on = {"instance_id": "i-0a1b2c3d4e5f60718"}
    return {
        "metrics.node_hourly": [host | on],
        "metrics.file_system_hourly": hourly(
            host | on | {"mountpoint": "/data", "size_bytes": 200 * GIB}, 167,
            available_bytes=lambda ago: (14 + 0.42 * ago + noise(ago, 1.2)) * GIB,
        ),
        "detect.evaluation": [evaluation("host_disk_filling", host, {"mountpoint": "/data"})],
        "metrics.jvm_app_hourly": hourly(PROCESS | on, 167),
        "metrics.state_store_memory_hourly": hourly(
            SHOP | {"app": "orders", "endpoint": PROCESS["endpoint"], "store": "totals"}, 167,
            sst_bytes=lambda ago: (118 - 0.38 * ago + noise(ago, 1)) * GIB,
        ),
    }  # fmt: skip


def page_cache_small() -> Rows:
    """At each daily peak brokers read from disk."""

    def sent(ago: int) -> float:
        return (120 + wave(ago, 60) + noise(ago, 6)) * MIB

    on = {"instance_id": "i-0a1b2c3d4e5f60718"}
    return {
        "metrics.broker_hourly": hourly(BROKER | on | {"partitions": 900}, 167, bytes_out_per_second=sent),
        "metrics.node_hourly": hourly(
            SHOP | {"endpoint": "http://10.0.0.3:9100/metrics"} | on, 167,
            disk_read_bytes_per_second=lambda ago: max(2 * MIB, 0.9 * (sent(ago) - 130 * MIB)),
        ),
    }  # fmt: skip


def partitions_leaderless() -> Rows:
    """A broker failed six hours ago, another one three hours ago."""

    def without(partition: int, ago: int) -> bool:
        return (ago < 6 and partition < 2) or (ago < 3 and partition < 5)

    return {"metrics.partition_hourly": [
        row for n in range(8)
        for row in hourly(SHOP | {"topic": "orders", "partition": n}, 23,
                          leader=lambda ago, n=n: None if without(n, ago) else 1,
                          isr=lambda ago, n=n: 0 if without(n, ago) and n < 4 else 1)
    ]}  # fmt: skip


def partitions_under_replicated() -> Rows:
    """A broker restarted three days ago and has been down for nine hours."""

    def missing(ago: int) -> list[int]:
        return [3] if ago in (75, 76) or ago < 9 else []

    return {
        "metrics.broker_hourly": hourly(
            BROKER | {"under_min_isr_partitions": 0}, 167, until=9,
            under_replicated_partitions=lambda ago: 3 if ago in (77, 120) else 0,
        ),
        "metrics.partition_hourly": [
            row for n in range(14)
            for row in hourly(SHOP | {"topic": "orders", "partition": n}, 167, missing_brokers=missing)
        ],
    }  # fmt: skip


def produce_failing() -> Rows:
    """Records are too large since a release; errors of a leader election at midnight resolved."""

    def errors(ago: int) -> dict[str, int]:
        return ({"NOT_LEADER_OR_FOLLOWER": 2600} if ago == 10 else {}) | (
            {"MESSAGE_TOO_LARGE": int(5200 + noise(ago, 900))} if ago < 7 else {}
        )

    return {
        "metrics.broker_hourly": hourly(BROKER, 23, produce_errors=errors),
        "metrics.client_hourly": hourly(
            SHOP | {"app": "checkout", "endpoint": "http://10.0.2.4:8778/jolokia", "kind": "producer",
                    "client_id": "checkout-1"}, 6, record_errors=lambda ago: 4100 + noise(ago, 700),
        ),
    }  # fmt: skip


def reassignment_impact() -> Rows:
    """Flushes of the leader slow down when copying begins, twelve hours ago."""

    def flush(ago: int, broker: int) -> float:
        return (3.1 if broker == 1 and ago < 12 else 1) * (7 + wave(ago, 1.5) + noise(ago + broker, 0.6))

    return {"metrics.broker_hourly": [
        row for n in (1, 3)
        for row in hourly(
            SHOP | {"broker_id": n, "endpoint": f"http://10.0.0.{n}:8778/jolokia"}, 71,
            log_flush_p95_ms=lambda ago, n=n: flush(ago, n),
            reassignment_bytes_out_per_second=lambda ago, n=n: 40 * MIB if n == 1 and ago < 12 else 0.0,
            reassignment_bytes_in_per_second=lambda ago, n=n: 40 * MIB if n == 3 and ago < 12 else 0.0,
        )
    ]}  # fmt: skip


def reassignment_stuck() -> Rows:
    """A reassignment slowed down, and has copied nothing for hours."""

    def left(ago: int) -> float:
        return 240 + 1.5 * max(0, ago - 14) ** 1.55

    return {
        "inventory.reassignment_hourly": hourly(
            SHOP | {"topic": "orders", "partition": 0, "replicas": [1, 2, 3], "adding": [3], "removing": [1]}, 48,
            left_bytes=lambda ago: int(left(ago) * GIB),
        ),
        "metrics.broker_hourly": hourly(
            BROKER, 60, reassignment_bytes_in_per_second=lambda ago: (
                (left(ago + 1) - left(ago)) * GIB / 3600 if ago <= 48 else 0.0
            ),
        ),
    }  # fmt: skip


def replication_throttle_leftover() -> Rows:
    """A reassignment ended a day ago, its throttle did not."""
    rates = {"leader.replication.throttled.rate": {"value": "10485760", "source": "dynamic_broker_config"}}
    return {
        "inventory.broker_hourly": [
            row for n in (1, 2, 3)
            for row in hourly(
                SHOP | {"broker_id": n, "is_listed": True}, 71,
                adding_replicas=lambda ago: max(0, ago - 25) // 4 if ago < 50 else 0,
                throttles=lambda ago: rates if ago < 50 else {},
            )
        ],
        "inventory.topic_hourly": [
            row for topic in ("orders", "payments")
            for row in hourly(
                SHOP | {"topic": topic}, 71, leader_throttled_replicas=lambda ago: "*" if ago < 50 else None
            )
        ],
    }  # fmt: skip


def state_store_growing() -> Rows:
    """A store whose number of keys grows without bound."""
    return {
        "inventory.topic_hourly": [SHOP | {"topic": "orders-totals-changelog"}],
        "metrics.state_store_memory_hourly": hourly(
            SHOP | {"app": "orders", "endpoint": PROCESS["endpoint"], "store": "totals"}, 335,
            every=3, sst_bytes=lambda ago: (96 - 0.17 * ago + ((335 - ago) % 18) * 0.25) * GIB,
        ),
        "metrics.jvm_app_hourly": hourly(PROCESS, 335, every=3),
    }  # fmt: skip


def state_store_restore_slow() -> Rows:
    """Three of five stores have no standby."""
    stores = (("order-totals", 1480, False), ("customers", 920, False), ("carts", 610, True),
              ("prices", 240, False), ("vouchers", 90, True))  # fmt: skip
    slowest = [{"store": store, "failover_seconds": took, "has_standby": has} for store, took, has in stores]
    application = {"cluster": "shop", "application_id": "orders"}
    return {"detect.evaluation": [
        evaluation("state_store_restore_slow", application, {"slowest_stores": slowest})
    ]}  # fmt: skip


def stream_threads_dead() -> Rows:
    """Two of eight stream threads died at night, and the group lags since then."""
    return {
        "metrics.jvm_app_hourly": hourly(
            PROCESS, 47, stream_threads_alive=lambda ago: 8 - (ago < 9) - (ago < 6),
            stream_threads_failed=lambda ago: (ago < 9) + (ago < 6),
        ),
        "metrics.consumer_group_hourly": hourly(
            SHOP | {"group_id": "orders"}, 47, lag_seconds_max=lambda ago: 25 + noise(ago, 15) + max(0, 9 - ago) * 300
        ),
    }  # fmt: skip


def _topics(detector: str, metric: str, column: str, **sizes: float) -> Rows:
    """A finding of a cluster with its worst topics and their sizes."""
    worst = [{"topic": topic.replace("_", "-"), column: size} for topic, size in sizes.items()]
    return {"detect.evaluation": [evaluation(detector, {"cluster": "shop"}, {metric: worst})]}


def topic_abandoned() -> Rows:
    return _topics("topic_abandoned", "topics", "bytes", clicks_2023=412 * GIB, audit_old=230 * GIB,
                   orders_test=84 * GIB, vouchers_tmp=21 * GIB, prices_import=9 * GIB)  # fmt: skip


def topic_compaction_wasteful() -> Rows:
    return _topics("topic_compaction_wasteful", "worst_topics", "saved_bytes", orders_totals_changelog=96 * GIB,
                   customers_changelog=41 * GIB, carts_changelog=17 * GIB)  # fmt: skip


def topic_retention_wasteful() -> Rows:
    return _topics("topic_retention_wasteful", "worst_topics", "saved_bytes", clicks=1900 * GIB, impressions=1250 * GIB,
                   audit=310 * GIB, orders=120 * GIB)  # fmt: skip


def topic_overpartitioned() -> Rows:
    worst = [
        {"topic": topic, "partitions": partitions, "needed_partitions": needed}
        for topic, partitions, needed in (("vouchers", 600, 6), ("prices", 240, 12), ("returns", 96, 3))
    ]
    return {"detect.evaluation": [evaluation("topic_overpartitioned", {"cluster": "shop"}, {"worst_topics": worst})]}


def topic_replication_weak() -> Rows:
    weak = [
        {"owner": owner, "weakness": weakness, "bytes": size * GIB}
        for owner, weakness, size in (("payments", "one replica", 310), ("payments", "one rack", 140),
                                      ("search", "one replica", 95), (None, "high min.insync.replicas", 60))
    ]  # fmt: skip
    return {"detect.evaluation": [evaluation("topic_replication_weak", {"cluster": "shop"}, {"weak_topics": weak})]}


def topic_on_parked_broker() -> Rows:
    sizes = {"orders": (84, 61), "refunds": (12, 0), "vouchers": (0, 7)}
    return {
        "detect.evaluation": [
            evaluation("topic_on_parked_broker", {"cluster": "shop"},
                 {"parked_broker_ids": "8, 9", "worst_topics": [{"topic": topic} for topic in sizes]})
        ],
        "metrics.replica_sample": [
            SHOP | {"topic": topic, "broker_id": 8 + n, "log_dir": "/data", "size_bytes": size * GIB}
            for topic, of_brokers in sizes.items() for n, size in enumerate(of_brokers) if size
        ],
    }  # fmt: skip


def topic_message_size_changed() -> Rows:
    """Messages are larger since a release two days ago."""
    return {"metrics.topic_hourly": hourly(
        SHOP | {"topic": "orders", "messages_in": 1e6}, 503, every=3,
        bytes_in=lambda ago: 1e6 * ((620 if ago < 50 else 340) + wave(ago, 25) + noise(ago, 8)),
    )}  # fmt: skip


def topic_underpartitioned() -> Rows:
    """Traffic peaks have grown to the capacity of the group's threads."""
    reading = {"cluster": "shop", "topic": "orders", "group_id": "billing"}
    return {
        "detect.evaluation": [
            evaluation("topic_underpartitioned", reading,
                 {"capacity_records_per_second": 2400, "thread_records_per_second": 400}, "reading:shop/orders/billing")
        ],
        "metrics.topic_hourly": hourly(
            SHOP | {"topic": "orders", "covered_seconds": 3600}, 335, every=3,
            messages_in=lambda ago: 3600 * (1500 - ago + wave(ago, 800 - ago) + noise(ago, 60)),
        ),
    }  # fmt: skip


def topic_polled_empty() -> Rows:
    """A consumer fetches twenty times per second from a topic with hardly any records."""
    topic = SHOP | {"topic": "vouchers"}
    return {
        "metrics.topic_hourly": hourly(
            topic | {"covered_seconds": 3600}, 23, messages_in=lambda ago: 3600 * max(0, 0.4 + wave(ago, 0.4)),
            fetch_requests=lambda ago: 6 * 3600 * ((22 if ago < 15 else 2) + noise(ago, 0.4)),
        ),
        "inventory.topic_hourly": hourly(topic | {"partitions": 6}, 23),
    }  # fmt: skip


def transaction_hanging() -> Rows:
    """The last stable offset has been stuck for five hours."""
    return {"metrics.partition_hourly": hourly(
        SHOP | {"topic": "orders", "partition": 2}, 23,
        log_end_offset=lambda ago: 4_000_000 - 52_000 * ago + int(wave(ago, 20_000)),
        last_stable_offset=lambda ago: 4_000_000 - 52_000 * max(ago, 5) + int(wave(max(ago, 5), 20_000)),
    )}  # fmt: skip


PICTURES: dict[str, Callable[[], Rows]] = {
    make.__name__: make
    for make in (
        app_memory_growing, app_memory_heavy, app_crash_looping, app_blocked_on_external_calls, broker_down,
        broker_file_descriptors_high, broker_imbalanced, broker_partitions_too_many, broker_requests_high, broker_slow,
        changelog_abandoned, compaction_stalled, consumer_data_at_risk, consumer_group_lagging,
        consumer_group_rebalancing, consumer_trial_failed, consumer_poison_pill, consumer_replaying, consumer_rogue,
        consumer_untracked, controllers_missing, copartition_broken, disk_filling, ebs_volume_starving,
        instance_cpu_starving, instance_unhealthy, instance_network_starving, internal_topic_foreign_consumer,
        latency_over_target,
        log_flush_slow, host_disk_filling, page_cache_small, partitions_leaderless, partitions_under_replicated,
        produce_failing, reassignment_impact, reassignment_stuck, replication_throttle_leftover,
        state_store_growing, state_store_restore_slow,
        state_store_schema_drift, stream_threads_dead, topic_abandoned, topic_compaction_wasteful,
        topic_message_size_changed, topic_on_parked_broker, topic_underpartitioned, topic_overpartitioned,
        topic_polled_empty, topic_replication_weak, topic_retention_wasteful, transaction_hanging,
    )
}  # fmt: skip
