"""`streamwarden plan` and `streamwarden whatif`, and the views behind them, on a real warehouse."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV

from tests.plugins.cli.test_cli import in_this_process
from tests.sql.rows import HOUR, insert_row


@pytest.fixture
def environment(warehouse: sa.Engine, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "s.yaml"
    file.write_text("kafka: [{name: c, bootstrap_servers: 'kafka-1:9092'}]\n")
    url = warehouse.url.render_as_string(hide_password=False).replace("+psycopg", "")
    return {CONFIG_ENV: str(file), WAREHOUSE_ENV: url}


def _insert(warehouse: sa.Engine, table: str, *rows: dict[str, Any]) -> None:
    with warehouse.begin() as connection:
        for row in rows:
            hour = row.get("hour", HOUR)
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour.date()})
            insert_row(connection, table, {"hour": HOUR, **row})


def _abandoned(warehouse: sa.Engine, cluster: str, reason: str, message: str) -> None:
    """An application `old` with two stores, and its evaluation by changelog_abandoned."""
    topic = {"cluster": cluster, "kind": "changelog", "application_id": "old", "partitions": 6, "replication_factor": 2}
    _insert(
        warehouse, "inventory.topic_hourly",
        topic | {"topic": "old-a-changelog"}, topic | {"topic": "old-b-changelog"},
        topic | {"topic": "else-changelog", "application_id": "else"},
    )  # fmt: skip
    held = {"cluster": cluster, "log_dir": "/d", "topic": "old-b-changelog", "size_bytes": 2**30}
    _insert(warehouse, "metrics.replica_sample", held | {"broker_id": 1}, held | {"broker_id": 2})
    evaluation = {
        "detector": "changelog_abandoned", "fingerprint": cluster, "status": "firing", "reason": reason,
        "message": message, "identity": {"cluster": cluster, "application_id": "old"},
    }  # fmt: skip
    _insert(warehouse, "detect.evaluation", evaluation)


def _evaluated(warehouse: sa.Engine) -> None:
    _insert(warehouse, "detect.detector_run", {"detector": "changelog_abandoned", "status": "evaluated"})


def test_the_plan_of_a_removal_is_ordered_commands(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "c", "abandoned", "Nobody has used it for 9 d.")
    done = in_this_process("plan", "removal", "old", **environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "# old on c: 2 topics, 12 partitions, 2.0 GiB in all replicas.", "# Nobody has used it for 9 d.",
    ]  # fmt: skip
    commands = [line for line in lines if not line.startswith("#")]
    alter = "kafka-configs.sh --bootstrap-server kafka-1:9092 --alter --entity-type topics --entity-name"
    assert commands == [
        f"{alter} old-b-changelog --add-config cleanup.policy=delete,retention.ms=60000",
        f"{alter} old-a-changelog --add-config cleanup.policy=delete,retention.ms=60000",
        "kafka-log-dirs.sh --bootstrap-server kafka-1:9092 --describe --topic-list old-b-changelog,old-a-changelog",
        "kafka-topics.sh --bootstrap-server kafka-1:9092 --delete --topic old-b-changelog",
        "kafka-topics.sh --bootstrap-server kafka-1:9092 --delete --topic old-a-changelog",
        "kafka-consumer-groups.sh --bootstrap-server kafka-1:9092 --delete --group old",
    ]


def test_a_plan_with_park_keeps_one_replica_on_parked_brokers(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "c", "abandoned", "Nobody has used it for 9 d.")
    broker = {"endpoint": "e", "samples": 3}
    for number in (1, 7, 8):
        _insert(
            warehouse, "metrics.broker_hourly", broker | {"cluster": "c", "broker_id": number, "endpoint": f"e{number}"}
        )
    _insert(warehouse, "metrics.broker_hourly", broker | {"cluster": "d", "broker_id": 9})
    done = in_this_process("plan", "removal", "old", "--park", **environment)
    assert (done.returncode, done.stderr) == (
        1,
        "streamwarden: c: no parked broker responded over JMX; they are set in parked_brokers of"
        " topic_on_parked_broker.\n",
    )
    _insert(warehouse, "detect.detector_run", {
        "detector": "topic_on_parked_broker", "status": "evaluated",
        "params": json.dumps({"parked_brokers": "^(c/7|c/8|d/9)$"}),
    })  # fmt: skip
    done = in_this_process("plan", "removal", "old", "--park", **environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    at = lines.index("# 3. Keep one replica of each partition on parked brokers 7, 8.")
    assert lines[at + 1] == "cat > park.json <<'JSON'" and lines[at + 3] == "JSON"
    placed = json.loads(lines[at + 2])["partitions"]
    assert {(one["topic"], one["partition"]) for one in placed} == {
        (topic, partition) for topic in ("old-a-changelog", "old-b-changelog") for partition in range(6)
    }
    assert sorted(one["replicas"] for one in placed) == [[7]] * 6 + [[8]] * 6
    tool = "kafka-reassign-partitions.sh --bootstrap-server kafka-1:9092 --reassignment-json-file park.json"
    assert lines[at + 4 : at + 6] == [f"{tool} --execute", f"{tool} --verify"]
    assert "--delete --topic" not in done.stdout
    assert lines[-1] == "kafka-consumer-groups.sh --bootstrap-server kafka-1:9092 --delete --group old"
    assert "--add-config cleanup.policy=delete,retention.ms=60000" in done.stdout


def test_the_removal_of_a_samza_job_includes_its_coordinator_topic_and_no_group(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "c", "abandoned", "Nobody has used it for 9 d.")
    topic = {"cluster": "c", "application_id": "old", "partitions": 1, "replication_factor": 1}
    _insert(
        warehouse, "inventory.topic_hourly",
        topic | {"topic": "__samza_coordinator_old_1", "kind": "coordinator"},
        topic | {"topic": "old-sink", "kind": "plain"},
    )  # fmt: skip
    done = in_this_process("plan", "removal", "old", **environment)
    assert "--delete --topic __samza_coordinator_old_1" in done.stdout
    assert "old-sink" not in done.stdout and "--delete --group" not in done.stdout


def test_no_plan_removes_what_is_in_use_or_what_nobody_has_evaluated(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    done = in_this_process("plan", "removal", "old", **environment)
    assert (done.returncode, done.stderr) == (
        1, "streamwarden: old: has no internal topics in the newest evaluated hour.\n",
    )  # fmt: skip
    _evaluated(warehouse)
    _abandoned(warehouse, "c", "in_use", "Its internal topics are in use: records.")
    done = in_this_process("plan", "removal", "old", **environment)
    assert (done.returncode, done.stderr) == (
        1, "streamwarden: old: is not abandoned: Its internal topics are in use: records.\n",
    )  # fmt: skip
    done = in_this_process("plan", "removal", "else", **environment)
    assert done.stderr == "streamwarden: else: is not abandoned: it was not evaluated.\n"


def test_commands_of_a_plan_begin_with_a_broker_that_is_up(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "c", "abandoned", "Nobody has used it for 9 d.")
    text = "kafka: [{name: c, bootstrap_servers: 'kafka-1:9092,kafka-2:9092'}]\n"
    Path(environment[CONFIG_ENV]).write_text(text)
    _insert(warehouse, "detect.load", {"app": "topics", "status": "loaded"})
    before = {"hour": HOUR - timedelta(hours=1), "cluster": "c", "is_listed": True}
    now = {"cluster": "c", "is_listed": True}
    _insert(
        warehouse, "inventory.broker_hourly",
        before | {"broker_id": 1, "host": "kafka-1"}, before | {"broker_id": 2, "host": "kafka-2"},
        now | {"broker_id": 1, "host": None, "is_listed": False}, now | {"broker_id": 2, "host": "kafka-2"},
    )  # fmt: skip
    done = in_this_process("plan", "removal", "old", **environment)
    assert "--bootstrap-server kafka-2:9092 " in done.stdout and "kafka-1" not in done.stdout


def test_commands_of_a_plan_name_the_servers_of_a_discovered_cluster(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "orders", "abandoned", "Nobody has used it for 9 d.")
    Path(environment[CONFIG_ENV]).write_text("msk: [{account: '111122223333', regions: [eu-central-1]}]\n")
    _insert(warehouse, "detect.load", {"app": "topics", "status": "loaded"})
    found = {
        "account": "111122223333",
        "region": "eu-central-1",
        "cluster": "orders",
        "bootstrap_servers": "b-1.kafka:9098",
    }
    _insert(warehouse, "inventory.msk_cluster_hourly", found)
    done = in_this_process("plan", "removal", "old", **environment)
    assert "--bootstrap-server b-1.kafka:9098 " in done.stdout and "<host:port>" not in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "removal", "old", "--cluster", "nope"],
        ["plan", "rebalance", "nope"],
        ["plan", "replicas", "nope"],
        ["whatif", "topic", "--cluster", "nope", "--partitions", "1", "--mb-per-second", "1"],
    ],
)
def test_an_unknown_cluster_is_named_with_those_that_exist(
    warehouse: sa.Engine, environment: dict[str, str], command: list[str]
) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "d", "abandoned", "Nobody has used it for 9 d.")
    _insert(warehouse, "detect.load", {"app": "topics", "status": "loaded"})
    done = in_this_process(*command, **environment)
    assert done.returncode == 1 and "nope: no such cluster; there are: c, d." in done.stderr


def test_an_application_id_in_two_clusters_needs_the_cluster(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    _evaluated(warehouse)
    _abandoned(warehouse, "c", "in_use", "It is in use.")
    _abandoned(warehouse, "d", "large", "Nobody has used it.")
    done = in_this_process("plan", "removal", "old", **environment)
    assert done.stderr == "streamwarden: old: exists in clusters c, d; choose one: --cluster c.\n"
    done = in_this_process("plan", "removal", "old", "--cluster", "d", **environment)
    assert done.returncode == 0 and "# old on d: 2 topics" in done.stdout and "<host:port>" in done.stdout
    assert in_this_process("plan", "removal", "old", "--cluster", "c", **environment).returncode == 1


def _brokers(warehouse: sa.Engine) -> None:
    """Two brokers and a controller. The peak CPU of broker 1 is above its current CPU."""
    one = {
        "cluster": "c", "samples": 3, "cpu_ratio": 0.4, "bytes_in_per_second": 1e6,
        "replication_bytes_in_per_second": 1e6, "bytes_out_per_second": 1e6, "replication_bytes_out_per_second": 1e6,
        "partitions": 100, "open_file_descriptors": 500, "max_file_descriptors": 1000,
    }  # fmt: skip
    for ago in range(21):
        hour = HOUR - timedelta(hours=ago)
        peak = 0.4 if ago else 0.2
        _insert(
            warehouse, "metrics.broker_hourly",
            one | {"hour": hour, "broker_id": 1, "endpoint": "e1", "cpu_ratio": peak, "instance_id": "i-1"},
            one | {"hour": hour, "broker_id": 2, "endpoint": "e2", "cpu_ratio": 0.1, "partitions": 300},
        )  # fmt: skip
    _insert(warehouse, "metrics.broker_hourly", {"cluster": "c", "endpoint": "k", "active_controllers": 1})
    machine = {"account": "1", "region": "r", "instance_id": "i-1"}
    _insert(
        warehouse, "metrics.instance_network_hourly",
        machine | {"direction": "in", "baseline_bytes_per_second": 10e6},
        machine | {"direction": "out", "baseline_bytes_per_second": 8e6},
        machine | {"direction": "out", "baseline_bytes_per_second": 1e6, "hour": HOUR - timedelta(hours=1)},
        machine | {"direction": "in", "baseline_bytes_per_second": 1e6, "instance_id": "i-2"},
    )  # fmt: skip
    disk = {"cluster": "c", "total_bytes": 1000 * 10**9, "usable_bytes": 600 * 10**9}
    _insert(
        warehouse, "metrics.log_dir_hourly",
        disk | {"broker_id": 1, "log_dir": "/a"}, disk | {"broker_id": 1, "log_dir": "/b"},
    )  # fmt: skip


def test_headroom_is_for_the_peak_and_for_a_lost_peer(warehouse: sa.Engine) -> None:
    _brokers(warehouse)
    with warehouse.connect() as connection:
        rows = connection.execute(sa.text("select * from cluster_headroom")).mappings().all()
    assert [(row["broker_id"], row["brokers"], row["hours"]) for row in rows] == [("1", 2, 21), ("2", 2, 21)]
    first, second = rows
    assert first["cpu_ratio"] == pytest.approx(0.4) and second["cpu_one_lost_ratio"] == pytest.approx(0.5)
    assert (first["bytes_in_per_second"], first["bytes_out_per_second"]) == (2e6, 2e6)
    assert (first["disk_ratio"], first["usable_bytes"]) == (pytest.approx(0.4), 1200 * 10**9)
    assert second["disk_ratio"] is None
    assert (second["partitions"], first["partitions_one_lost"], first["open_files_ratio"]) == (300, 400, 0.5)
    assert first["open_files_one_lost_ratio"] == 1.0
    network = [name for name in first if name.startswith("network_")]
    assert [first[name] for name in network] == pytest.approx([0.2, 0.4, 0.25, 0.5])
    assert [second[name] for name in network] == [None] * 4


def test_whatif_reports_limits_that_a_topic_would_exceed(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    _brokers(warehouse)
    small = ("whatif", "topic", "--cluster", "c", "--partitions", "10", "--mb-per-second", "0.4", "--replicas", "2")
    done = in_this_process(*small, **environment)
    assert done.returncode == 0, done.stderr
    # 0.4 MB/s to each of two replicas on two brokers; one copy goes to the follower and one to the consumer.
    assert "1.1 TiB" in done.stdout and "2.3 MiB/s" in done.stdout and "110" in done.stdout
    # The network sustains 8 MB/s; 2 MB/s go out and 0.4 MB/s more. With a lost peer, open files are 110 / 100.
    assert done.stdout.rstrip().splitlines()[-3:] == [
        "Broker 1: open files 110 % if another broker fails.", "Broker 2: open files 103 % if another broker fails.",
        "Broker 2: unknown: disk free, network.",
    ]  # fmt: skip
    large = ("whatif", "topic", "--cluster", "c", "--partitions", "9000", "--mb-per-second", "20")
    done = in_this_process(*large, **environment)
    output = done.stdout
    assert "The topic needs 3 replicas; the cluster has 2 brokers." in output
    assert "Broker 1: CPU 640 %, above the limit of 80 %." in output
    # 30 MB/s more each way: 32 of 10 MB/s in, 32 of 8 MB/s out.
    assert "Broker 1: network 400 %, above the limit of 80 %." in output
    assert "Broker 1: open files 6,800 %, above the limit of 80 %." in output
    assert "Broker 1: its disk fills up before the retention is reached." in output
    assert "Broker 2: 13,800 partitions, above the limit of 4,000." in output
    done = in_this_process(
        "whatif", "topic", "--cluster", "x", "--partitions", "1", "--mb-per-second", "1", **environment
    )
    assert done.stderr == "streamwarden: --cluster x: no such cluster; there are: c.\n"


def test_costs_are_volumes_logs_and_possible_savings(warehouse: sa.Engine) -> None:
    volume = {"account": "1", "region": "r", "volume_type": "gp3", "size_gib": 100, "provisioned_iops": 3000,
              "provisioned_throughput_mib_s": 125}  # fmt: skip
    _insert(
        warehouse, "inventory.volume_hourly",
        volume | {"volume_id": "v-1", "instance_id": "i-1"},
        volume | {"volume_id": "v-2", "application": "search"},
        volume | {"volume_id": "v-3", "application": "search", "region": "unpriced"},
    )  # fmt: skip
    _insert(warehouse, "metrics.broker_hourly", {"cluster": "c", "endpoint": "e", "instance_id": "i-1"})
    _insert(warehouse, "inventory.ebs_price", {"region": "r", "as_of": "2026-01-01", "gp3_gib": 0.08, "gp3_iops": 0.005,
                                               "gp3_mib_s": 0.04})  # fmt: skip
    _insert(
        warehouse, "metrics.replica_sample",
        {"cluster": "c", "topic": "t", "broker_id": 1, "log_dir": "/d", "size_bytes": 25 * 2**30},
        {"cluster": "c", "topic": "t", "broker_id": 2, "log_dir": "/d", "size_bytes": 25 * 2**30},
        {"cluster": "c", "topic": "u", "broker_id": 2, "log_dir": "/d", "size_bytes": 0},
    )  # fmt: skip
    topic = {"cluster": "c", "topic": "t"}
    _insert(
        warehouse, "inventory.topic_hourly",
        topic | {"partitions": 6}, topic | {"topic": "u", "partitions": 2}, topic | {"cluster": "d", "partitions": 50},
        topic | {"partitions": 40, "hour": HOUR - timedelta(hours=1)},
    )  # fmt: skip
    rates = topic | {"covered_seconds": 3000, "bytes_in": 6000, "bytes_out": 9000}
    _insert(
        warehouse, "metrics.topic_hourly",
        rates, rates | {"topic": "u", "bytes_in": 3000}, rates | {"cluster": "d"},
        rates | {"hour": HOUR - timedelta(hours=1)},
    )  # fmt: skip
    _insert(warehouse, "detect.detector_run", {"detector": "topic_retention_wasteful", "status": "evaluated"})
    _insert(warehouse, "detect.detector", {"detector": "topic_retention_wasteful", "title": "Kept too long"})
    _insert(
        warehouse, "detect.evaluation",
        {"detector": "topic_retention_wasteful", "fingerprint": "f", "status": "firing",
         "metrics": '{"saved_usd_per_month": 2.5}'},
        {"detector": "topic_retention_wasteful", "fingerprint": "g", "status": "ok",
         "metrics": '{"saved_usd_per_month": 9}'},
    )  # fmt: skip
    with warehouse.connect() as connection:
        rows = connection.execute(sa.text(
            "select kind, coalesce(title, application, cluster) as of_what,"
            " resources, without_price, usd_per_month, partitions, bytes_in_per_second,"
            " bytes_out_per_second from costs order by kind, of_what"
        )).all()  # fmt: skip
    nothing = (None, None, None)
    assert [tuple(row) for row in rows] == [
        ("advice", "Kept too long", 1, 0, 2.5, *nothing), ("logs", "c", 2, 0, pytest.approx(4.0), 8, 3.0, 6.0),
        ("volumes", "c", 1, 0, pytest.approx(8.0), *nothing),
        ("volumes", "search", 2, 1, pytest.approx(8.0), *nothing),
    ]  # fmt: skip


def _uneven(warehouse: sa.Engine) -> None:
    """Three brokers of one volume each, of which the third holds nothing; one broker of another cluster."""
    for number in (1, 2, 3):
        of = {"broker_id": number, "cluster": "c", "endpoint": f"e{number}", "instance_id": f"i-{number}", "samples": 3}
        _insert(
            warehouse,
            "metrics.broker_hourly",
            of | {"bytes_in_per_second": 1e6, "bytes_out_per_second": 2e6, "partitions": 9},
        )
        _insert(warehouse, "metrics.log_dir_hourly", {
            "cluster": "c", "broker_id": number, "log_dir": "/d", "total_bytes": 10**12, "usable_bytes": 9 * 10**11,
        })  # fmt: skip
        _insert(warehouse, "inventory.instance_hourly", {
            "account": "1", "region": "r", "instance_id": f"i-{number}", "ebs_baseline_bytes_per_second": 100 * 2**20,
        })  # fmt: skip
        volume = {"account": "1", "region": "r", "volume_id": f"vol-{number}"}
        _insert(warehouse, "inventory.volume_hourly", volume | {"instance_id": f"i-{number}"})
        _insert(warehouse, "metrics.volume_hourly", volume | {
            "baseline_bytes_per_second": 200 * 2**20, "bytes_per_second_p95": 60 * 2**20,
        })  # fmt: skip
    _insert(warehouse, "metrics.broker_hourly", {"cluster": "d", "endpoint": "x", "broker_id": 9, "samples": 3})
    _insert(warehouse, "metrics.topic_hourly", {
        "cluster": "c", "topic": "t", "brokers": 2, "covered_seconds": 3600, "bytes_in": 3.6e9, "bytes_out": 3.6e9,
    })  # fmt: skip
    for partition in range(12):
        _insert(warehouse, "metrics.partition_hourly", {
            "cluster": "c", "topic": "t", "partition": partition, "leader": 1 + partition % 2, "replicas": 2, "isr": 2,
            "log_end_offset_first": 0, "log_end_offset_last": 100,
        })  # fmt: skip
    held = {str(partition): 2**30 for partition in range(12)}
    for number in (1, 2):
        _insert(warehouse, "metrics.replica_sample", {
            "cluster": "c", "topic": "t", "broker_id": number, "log_dir": "/d", "is_future": False, "replicas": 12,
            "size_bytes": 12 * 2**30, "partition_bytes": json.dumps(held),
        })  # fmt: skip


def test_the_plan_of_a_rebalance_is_files_and_commands_one_move_at_a_time(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    done = in_this_process("plan", "rebalance", "c", **environment)
    assert (done.returncode, done.stderr) == (
        1, "streamwarden: c: has no brokers in the newest gathered hour.\n",
    )  # fmt: skip
    _uneven(warehouse)
    done = in_this_process("plan", "rebalance", "c", "--moves", "4", **environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "# c, 3 brokers: standard deviation / mean of bytes in 71 %, bytes out 71 %, leaders 71 %"
    )
    assert lines[1].startswith("# After 4 moves (4.0 GiB): bytes in ")
    assert lines[2] == "# No broker has a rack (broker.rack): replicas of a partition may share an availability zone."
    # 70 % of the instance's 100 MiB/s, of which 60 are in use: 10 MiB/s.
    first = lines.index("cat > move-01.json <<'JSON'")
    assert lines[first - 1] == (
        "# t-0: broker 1 -> 3, 1.0 GiB, about 2 min at 10.0 MiB/s."
        " Their spare network bandwidth is unknown: the throttle considers only the disks."
    )
    assert json.loads(lines[first + 1]) == {
        "version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2]}],
    }  # fmt: skip
    reassign = "kafka-reassign-partitions.sh --bootstrap-server kafka-1:9092 --reassignment-json-file move-01.json"
    assert lines[first + 3] == f"{reassign} --throttle 10485760 --execute"
    assert lines[first + 4].startswith(f"{reassign} --verify")
    assert lines[first + 5].endswith("broker 1 976.6 KiB/s in, 1.9 MiB/s out; broker 3 976.6 KiB/s in, 1.9 MiB/s out.")


def test_no_move_of_the_plan_brings_two_replicas_into_one_rack(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    """Brokers 1 and 3 are in a, 2 in b: what the new broker 3 gets, broker 1 gives."""
    _uneven(warehouse)
    known: dict[str, Any] = {"cluster": "c", "is_listed": True}
    for number, rack in ((1, "a"), (2, "b"), (3, "a")):
        _insert(
            warehouse, "inventory.broker_hourly",
            known | {"broker_id": number, "rack": rack}, known | {"cluster": "d", "broker_id": number, "rack": "b"},
            known | {"broker_id": number, "rack": "b", "hour": HOUR - timedelta(hours=1)},
        )  # fmt: skip
    done = in_this_process("plan", "rebalance", "c", "--moves", "9", **environment)
    copies = [line for line in done.stdout.splitlines() if line.startswith("# t-") and " -> 3" in line]
    assert len(copies) > 2 and all(": broker 1 -> 3" in line for line in copies), done.stdout
    assert "zone" not in done.stdout
    with warehouse.begin() as connection:
        connection.execute(sa.text("update inventory.broker_hourly set rack = null where broker_id = 3"))
    done = in_this_process("plan", "rebalance", "c", "--moves", "9", **environment)
    assert "# Rack unknown for broker 3: replicas of a partition may share an availability zone." in done.stdout
    assert ": broker 2 -> 3" in done.stdout


def test_the_pace_leaves_the_network_its_room_too(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    _uneven(warehouse)
    machine = {"account": "1", "region": "r", "baseline_bytes_per_second": 100 * 2**20}
    for number in (1, 2, 3):
        for direction, used in (("in", 62 if number == 3 else 69), ("out", 69 if number == 3 else 65)):
            of = machine | {"instance_id": f"i-{number}", "direction": direction}
            _insert(
                warehouse, "metrics.instance_network_hourly", of | {"bytes_per_second_p99": used * 2**20},
                of | {"bytes_per_second_p99": 99 * 2**20, "region": "s"},
            )  # fmt: skip
    # Who sends has 5 MiB/s left to send, who gets it 8 to get; their disks have 10.
    done = in_this_process("plan", "rebalance", "c", "--moves", "1", **environment)
    assert "about 3 min at 5.0 MiB/s.\n" in done.stdout and "--throttle 5242880 --execute" in done.stdout
    with warehouse.begin() as connection:
        connection.execute(sa.text(
            "update metrics.instance_network_hourly set bytes_per_second_p99 = 69.5 * 1048576"
            " where instance_id = 'i-3' and direction = 'in'"
        ))  # fmt: skip
    done = in_this_process("plan", "rebalance", "c", "--moves", "1", **environment)
    assert "Not now: more than 70 % of the bandwidth of their network is in use." in done.stdout
    done = in_this_process("plan", "rebalance", "c", "--moves", "1", "--throttle-mb", "50", **environment)
    assert "--throttle 50000000 --execute" in done.stdout


def _weak(warehouse: sa.Engine, detector: str, metrics: dict[str, Any], params: dict[str, Any]) -> None:
    """What was judged of cluster c."""
    _insert(
        warehouse, "detect.detector_run", {"detector": detector, "status": "evaluated", "params": json.dumps(params)}
    )
    status = "firing" if metrics else "ok"
    _insert(warehouse, "detect.evaluation", {
        "detector": detector, "fingerprint": "f", "status": status, "reason": "-", "identity": {"cluster": "c"},
        "metrics": json.dumps(metrics),
    })  # fmt: skip


def test_the_plan_of_replicas_is_a_file_for_each_topic(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    done = in_this_process("plan", "replicas", "c", **environment)
    assert done.stderr == "streamwarden: c: the replication of its topics was not evaluated.\n"
    _uneven(warehouse)
    _weak(warehouse, "topic_on_parked_broker", {}, {"parked_brokers": ""})
    done = in_this_process("plan", "replicas", "c", **environment)
    assert done.stderr == "streamwarden: c: no topic needs other replicas, as of the newest evaluated hour.\n"
    for number, rack in ((1, "a"), (2, "a"), (3, "b")):
        _insert(warehouse, "inventory.broker_hourly", {"cluster": "c", "broker_id": number, "rack": rack})
    weak = [
        {"topic": "t", "weakness": "one rack", "replicas": 2},
        {"topic": "else", "weakness": "high min.insync.replicas", "replicas": 3},
    ]
    metrics = {"weak_topics": weak, "one_rack_topics": 2, "high_min_isr_topics": 1}
    _weak(warehouse, "topic_replication_weak", metrics, {"replicas": 3})
    done = in_this_process("plan", "replicas", "c", **environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "# c: 1 topic, one after the other.",
        "# Covers the 1 largest of 2 topics (one rack): print the plan again afterwards.",
        "# t (one rack): 12 replicas to copy, 12.0 GiB. Throttle: 10.0 MiB/s per broker."
        " Their spare network bandwidth is unknown: the throttle considers only the disks.",
    ]
    assert lines[3] == "cat > replicas-01.json <<'JSON'"
    placed = {one["partition"]: one["replicas"] for one in json.loads(lines[4])["partitions"]}
    assert placed == {n: [1 + n % 2, 3] for n in range(12)}  # the leader stays
    reassign = "kafka-reassign-partitions.sh --bootstrap-server kafka-1:9092 --reassignment-json-file replicas-01.json"
    assert lines[6] == f"{reassign} --throttle 10485760 --execute"
    assert lines[7].startswith(f"{reassign} --verify") and len(lines) == 8


def test_two_replicas_get_a_third_and_what_lies_on_a_parked_broker_goes(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    _uneven(warehouse)
    two = {"topic": "t", "weakness": "high min.insync.replicas", "replicas": 2}
    metrics = {"weak_topics": [two | {"weakness": "one replica", "topic": "gone"}, two], "high_min_isr_topics": 1}
    _weak(warehouse, "topic_replication_weak", metrics, {"replicas": 3})
    done = in_this_process("plan", "replicas", "c", **environment)
    lines = done.stdout.splitlines()
    assert lines[1] == "# No broker has a rack (broker.rack): replicas of a partition may share an availability zone."
    assert lines[2] == "# gone (one replica): 0 replicas to copy, 0 B."
    assert lines[4] == "cat > replicas-02.json <<'JSON'"
    assert {tuple(one["replicas"]) for one in json.loads(lines[5])["partitions"]} == {(1, 2, 3), (2, 1, 3)}
    with warehouse.begin() as connection:
        connection.execute(sa.text("delete from detect.evaluation"))
    _weak(warehouse, "topic_on_parked_broker", {"worst_topics": [{"topic": "t"}]}, {"parked_brokers": "^c/1$"})
    lines = in_this_process("plan", "replicas", "c", **environment).stdout.splitlines()
    assert lines[2].startswith("# t (on a parked broker): 12 replicas to copy, 12.0 GiB. Throttle: ")
    assert {tuple(one["replicas"]) for one in json.loads(lines[4])["partitions"]} == {(2, 3)}


def test_without_the_disks_limits_the_pace_has_to_be_named(warehouse: sa.Engine, environment: dict[str, str]) -> None:
    _uneven(warehouse)
    with warehouse.begin() as connection:
        connection.execute(
            sa.text("update metrics.volume_hourly set baseline_bytes_per_second = null where volume_id = 'vol-3'")
        )
    done = in_this_process("plan", "rebalance", "c", "--moves", "1", **environment)
    assert "set the throttle with --throttle-mb" in done.stdout and "--execute" not in done.stdout
    done = in_this_process("plan", "rebalance", "c", "--moves", "1", "--throttle-mb", "50", **environment)
    assert "--throttle 50000000 --execute" in done.stdout and "about 1 min" not in done.stdout.splitlines()[0]
    full = "update metrics.volume_hourly set baseline_bytes_per_second = 9e7, bytes_per_second_p95 = 8e7"
    with warehouse.begin() as connection:
        connection.execute(sa.text(full))
    done = in_this_process("plan", "rebalance", "c", "--moves", "1", **environment)
    assert "Not now: more than 70 % of the bandwidth of their disks is in use." in done.stdout


def test_a_broker_that_fills_up_is_parked_or_silent_gets_nothing(
    warehouse: sa.Engine, environment: dict[str, str]
) -> None:
    _uneven(warehouse)
    _insert(warehouse, "detect.evaluation", {
        "detector": "disk_filling", "fingerprint": "f", "status": "firing", "reason": "filling",
        "identity": {"cluster": "c", "broker_id": "3"},
    })  # fmt: skip
    done = in_this_process("plan", "rebalance", "c", **environment)
    assert done.stdout.splitlines()[1:] == [
        "# Broker 3 has a disk that is filling up: no partition is moved to it.",
        "# No move improves the balance enough to be worth its cost.",
    ]  # fmt: skip
    _insert(warehouse, "detect.detector_run", {
        "detector": "topic_on_parked_broker", "status": "evaluated", "params": json.dumps({"parked_brokers": "^c/3$"}),
    })  # fmt: skip
    done = in_this_process("plan", "rebalance", "c", **environment)
    assert "# Broker 3 is parked: no partition is moved to it." in done.stdout
    with warehouse.begin() as connection:
        connection.execute(sa.text("update metrics.broker_hourly set samples = null where broker_id = 3"))
    done = in_this_process("plan", "rebalance", "c", **environment)
    assert "# Broker 3 did not respond over JMX: no partition is moved to it." in done.stdout
