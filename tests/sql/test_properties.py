"""Properties of every detector, tested on changed copies of its own cases.

Missing data never turns firing or unknown into ok: each metric of such a case is set to null in turn. Another
cluster or account next to it changes no verdict. Draws are seeded, so a failure can be repeated.
"""

from __future__ import annotations

import copy
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.detectors import Detector

from tests.sql.cases import CASES_OF, DETECTORS, evaluate_case
from tests.variations import rare_after

DRAWS = rare_after(1, [2, int(os.environ.get("DRAWS", "8"))])
"""Number of missing values and of cases drawn for each detector; `make mutants` draws more."""
EXCEPTIONS = {
    # The value of earlier hours: with fewer of them the baseline is higher.
    ("app_blocked_on_external_calls", "metrics.jvm_app_hourly.record_latency_ms"),
    ("app_blocked_on_external_calls", "metrics.jvm_app_hourly.records_processed"),
    # Most hosts have no CloudWatch agent, so the memory of the known JVMs is used. Without it no process could be
    # evaluated, and a case of one hour cannot show that there was an agent.
    ("app_memory_heavy", "metrics.instance_hourly.memory_used_mean_percent"),
    # The value of an earlier hour with fewer stores, or the only sign of stores in a process without a known
    # application id. With an application id, the changelogs show the stores.
    ("app_memory_heavy", "metrics.jvm_app_hourly.store_instances"),
    # The cluster lists the broker. Only JMX and CloudWatch, which many fleets lack, show an outage between two runs.
    ("broker_down", "metrics.broker_hourly.broker_id"),
    ("broker_down", "metrics.broker_hourly.samples"),
    ("broker_down", "metrics.instance_network_sample.in_bytes"),
    ("broker_down", "metrics.instance_network_sample.out_bytes"),
    ("broker_down", "metrics.volume_sample.write_bytes"),
    # Not every exporter reports segments. A case of one hour cannot show that this one did before.
    ("broker_file_descriptors_high", "metrics.broker_hourly.segments"),
    # The value of an earlier slow hour: with one hour less no capacity is learned, and the default applies.
    ("broker_requests_high", "metrics.broker_hourly.produce_p99_ms"),
    ("broker_requests_high", "metrics.broker_hourly.produce_requests_per_second"),
    # No response, which counts as a broker that is down where the cluster did not return its brokers.
    ("broker_requests_high", "metrics.broker_hourly.samples"),
    # The days that show how long the topics rest: with fewer, a process that ran days ago counts as use.
    ("changelog_abandoned", "metrics.partition_hourly.log_end_offset"),
    # Offsets of days ago that date the records: without them, the age of the records is not known.
    ("compaction_stalled", "metrics.partition_hourly.log_end_offset"),
    ("compaction_stalled", "metrics.partition_hourly.log_end_offset_first"),
    # A gauge that is absent until a restore begins: its first value is one of a restore.
    ("consumer_group_rebalancing", "metrics.jvm_app_hourly.records_to_restore"),
    # Not every member reports its max.poll.interval.ms: where none does, Kafka's default applies.
    ("consumer_poison_pill", "metrics.group_step_hourly.poll_interval_ms"),
    # An hour of the days with cold reads. A gap in a week is too common to make all groups unknown.
    ("consumer_replaying", "metrics.consumer_group_hourly.lag_seconds_max"),
    ("consumer_replaying", "metrics.partition_hourly.log_end_offset_first"),
    ("consumer_replaying", "metrics.partition_hourly.log_end_offset_last"),
    ("consumer_replaying", "metrics.topic_hourly.bytes_in"),
    ("consumer_replaying", "metrics.topic_hourly.messages_in"),
    # Earlier hours of the trial: without commits the group has run for fewer hours, or commits more rarely; without
    # its lag, an hour was not tried.
    ("consumer_trial_failed", "metrics.consumer_group_hourly.commits"),
    ("consumer_trial_failed", "metrics.consumer_group_hourly.lag_seconds_max"),
    ("consumer_trial_failed", "metrics.consumer_partition_hourly.commits"),
    # Usage of more than a week ago: without it, no growth over weeks is known.
    ("disk_filling", "metrics.log_dir_hourly.total_bytes"),
    ("disk_filling", "metrics.log_dir_hourly.usable_bytes"),
    ("host_disk_filling", "metrics.file_system_hourly.available_bytes"),
    # The only hour of the week in which the credits ran out: without it, the load is one that they sufficed for.
    ("instance_cpu_starving", "metrics.instance_health_hourly.cpu_credits"),
    # The only burst of the day, in an earlier hour: without it, a rate at the baseline is not throttled.
    ("instance_network_starving", "metrics.instance_network_hourly.minutes_above_baseline"),
    # An early sign next to the status checks, which are known. Instances end in every deployment, and most have no
    # CloudWatch agent.
    ("instance_unhealthy", "metrics.instance_sample.cpu_percent"),
    ("instance_unhealthy", "metrics.instance_sample.memory_used_percent"),
    # Brokers answer for topics that moved away as well: only the size of its log shows that a topic is on the broker.
    ("log_flush_slow", "metrics.broker_topic_sample.log_bytes"),
    # The cluster returned the leaders. Only JMX of controllers, which many fleets lack, counts unclean elections.
    ("partitions_leaderless", "metrics.broker_hourly.unclean_elections"),
    # No response, which is how a broker restarts.
    ("partitions_under_replicated", "metrics.broker_hourly.samples"),
    # A producer that has just started reports no rate: it must not make its whole cluster unknown.
    ("produce_failing", "metrics.client_hourly.record_errors"),
    # The only lag before the reassignment: without one, no rise is known.
    ("reassignment_impact", "metrics.consumer_group_hourly.lag_seconds_max"),
    # The leader of the only moving partition of a slow broker: without a leader, that broker copies nothing for it.
    ("reassignment_impact", "metrics.partition_hourly.leader"),
    # Only hosts with a node exporter report file systems.
    ("state_store_growing", "metrics.file_system_hourly.available_bytes"),
    # A day on which the store grew: with one less, it grew on too few days.
    ("state_store_growing", "metrics.state_store_memory_hourly.sst_bytes"),
    # The rate of an observed restore: without one, the default applies.
    ("state_store_restore_slow", "metrics.jvm_app_hourly.restored_records_per_second"),
    # The value of the only earlier hours with more threads: no other table keeps the thread count.
    ("stream_threads_dead", "metrics.jvm_app_hourly.stream_threads_alive"),
    # Null means that there is none: no limit of its own, no registered schema, no bucket, a bucket that refills, a lag
    # that is exact.
    ("app_memory_heavy", "metrics.jvm_app_hourly.memory_limit_bytes"),
    ("state_store_schema_drift", "metrics.state_store_change_hourly.old_schema_id"),
    ("ebs_volume_starving", "metrics.volume_hourly.bucket_credits"),
    ("ebs_volume_starving", "metrics.volume_hourly.hours_to_exhaustion"),
    ("consumer_group_lagging", "metrics.consumer_partition_hourly.lag_seconds_low"),
    # Computed from the minutes that minutes_present counts: null only together with it.
    ("ebs_volume_starving", "metrics.volume_hourly.minutes_throttled"),
    ("ebs_volume_starving", "metrics.volume_hourly.minutes_draining"),
    ("ebs_volume_starving", "metrics.volume_hourly.burst_balance_last_percent"),
    ("ebs_volume_starving", "metrics.volume_hourly.iops_mean"),
    ("ebs_volume_starving", "metrics.volume_hourly.iops_now"),
    ("ebs_volume_starving", "metrics.volume_hourly.hours_to_exhaustion_low"),
    ("ebs_volume_starving", "metrics.volume_hourly.credits_per_hour"),
    ("ebs_volume_starving", "metrics.volume_hourly.burst_iops"),
    # One of several data points of the hour: the others show the trend, or it is unknown in this hour.
    ("ebs_volume_starving", "metrics.instance_sample.ebs_byte_balance_percent"),
    ("ebs_volume_starving", "metrics.instance_sample.ebs_io_balance_percent"),
    # Exporters may omit it, and the other limits of the detector hold without it: the memory, and the lag limit.
    ("app_memory_heavy", "metrics.jvm_app_hourly.gc_seconds"),
    ("app_memory_heavy", "metrics.jvm_app_hourly.heap_survived_bytes"),
    ("consumer_group_lagging", "metrics.consumer_partition_hourly.still_seconds"),
    # Without members one commit gap counts instead of three, so the group is reported later.
    ("consumer_group_lagging", "metrics.consumer_group_hourly.members"),
    # Values of the day before: constants are compared only where a whole day is known.
    ("state_store_schema_drift", "metrics.state_store_hourly.values_profiled"),
    # Not every client reports failures: where none are, the number of living threads decides.
    ("stream_threads_dead", "metrics.jvm_app_hourly.stream_threads_failed"),
    # An hour that shows the trend of days: with one less, the growth is not known for long enough.
    ("topic_message_size_changed", "metrics.topic_hourly.bytes_in"),
    ("topic_message_size_changed", "metrics.topic_hourly.covered_seconds"),
    ("topic_message_size_changed", "metrics.topic_hourly.messages_in"),
    # Client metrics are optional: without the fetches of a client, the records of its session decide.
    ("topic_polled_empty", "metrics.client_hourly.covered_seconds"),
    ("topic_polled_empty", "metrics.client_hourly.fetches"),
    # The offset of one of many days: without it, the day before or after it dates the last record.
    ("topic_abandoned", "metrics.partition_hourly.log_end_offset"),
    # The busiest hour of days, of the topic or its hottest partition: no other hour was as busy.
    ("topic_underpartitioned", "metrics.consumer_partition_hourly.arriving_per_second"),
    ("topic_underpartitioned", "metrics.topic_hourly.covered_seconds"),
    ("topic_underpartitioned", "metrics.topic_hourly.messages_in"),
    # Where the members are unknown, the threads of the application count.
    ("topic_underpartitioned", "metrics.consumer_group_hourly.members"),
    # One of several processes: the others show how many records a thread can process.
    ("topic_underpartitioned", "metrics.jvm_app_hourly.record_latency_ms"),
    ("topic_underpartitioned", "metrics.jvm_app_hourly.records_processed"),
}
"""Missing values that make a verdict ok because no other data shows the fault, each with the reason."""
SCOPES = ("cluster", "account")
OWN = ("instance_id", "volume_id", "endpoint", "instance_group", "scaling_group", "kubernetes")
"""Columns whose values no two clusters or accounts share."""


def verdicts_of(warehouse: sa.Engine, detector: Detector, case: dict[str, Any]) -> dict[str, str]:
    """Status of a case's resources by key, and by name where only one resource has that name."""
    found = evaluate_case(warehouse, detector, case)
    times = Counter(finding.resource_name for finding in found)
    named = {finding.resource_name: finding.status for finding in found if times[finding.resource_name] == 1}
    return named | {finding.resource.key: finding.status for finding in found}


def _cases(detector: Detector) -> list[dict[str, Any]]:
    return [case for case in CASES_OF[detector.id] if case["expect"]]


def _bad(detector: Detector, case: dict[str, Any]) -> list[str]:
    """Resources of a case that are not ok."""
    return [
        row.get("resource") or row["resource_name"]
        for row in case["expect"]
        if detector.verdicts[row["reason"]].status != "ok"
    ]


def _gaps(detector: Detector) -> Iterator[tuple[dict[str, Any], str, int, str]]:
    """Values of metrics that can be missing in cases with a resource that is not ok: case, table, row, and column."""
    for case in _cases(detector):
        for table, rows in case["given"].items() if _bad(detector, case) else ():
            for n, row in enumerate(rows or []):
                for column, value in row.items():
                    is_number = isinstance(value, float | int) and not isinstance(value, bool)
                    if (
                        table.startswith("metrics.")
                        and is_number
                        and (detector.id, f"{table}.{column}") not in EXCEPTIONS
                    ):
                        yield case, table, n, column


@pytest.mark.parametrize("draws", DRAWS, ids=["few", "many"])
@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_missing_data_never_gives_ok(module_warehouse: sa.Engine, detector: Detector, draws: int) -> None:
    gaps = list(_gaps(detector))
    wrong = []
    for case, table, n, column in random.Random(5).sample(gaps, min(draws, len(gaps))):  # noqa: S311 a simulation
        less = copy.deepcopy(case)
        less["given"][table][n][column] = None
        try:
            verdicts = verdicts_of(module_warehouse, detector, less)
        except sa.exc.IntegrityError:
            continue  # the column is not nullable
        healthy = [name for name in _bad(detector, case) if verdicts.get(name) == "ok"]
        wrong += [f"{case['name']}: {table}.{column} [{n}]: {name}" for name in healthy]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("draws", DRAWS, ids=["few", "many"])
@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_another_cluster_or_account_changes_no_verdict(
    module_warehouse: sa.Engine, detector: Detector, draws: int
) -> None:
    cases = _cases(detector)
    for case in random.Random(7).sample(cases, min(draws, len(cases))):  # noqa: S311 a simulation
        alone = verdicts_of(module_warehouse, detector, case)
        both = verdicts_of(module_warehouse, detector, _with_another(module_warehouse, case))
        assert {resource_name: both[resource_name] for resource_name in alone} == alone, case["name"]


def _another(name: str | list[str]) -> str | list[str]:
    """The name of another cluster or account; a list stands for several."""
    return [f"another {one}" for one in name] if isinstance(name, list) else f"another {name}"


def _with_another(warehouse: sa.Engine, case: dict[str, Any]) -> dict[str, Any]:
    """The case with its rows twice: as they are, and with other names of all clusters and accounts."""
    inspector = sa.inspect(warehouse)
    given: dict[str, list[dict[str, Any]]] = {}
    for table, rows in case["given"].items():
        schema, relation = table.split(".")
        columns = {column["name"] for column in inspector.get_columns(relation, schema=schema)}
        scopes = [column for column in SCOPES if column in columns]
        given[table] = list(rows or [])
        for row in list(given[table]) if scopes else []:
            scope = {column: _another(row.get(column, "")) for column in scopes}
            own = {column: f"{row[column]}x" for column in OWN if row.get(column)}
            given[table].append(row | scope | own)
    return case | {"given": given}
