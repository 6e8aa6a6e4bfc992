"""Clusters with at most one fault or decoy each, evaluated by every detector on brokers and their disks.

If a decoy of one detector makes another one fire, that is a false alarm of the other one. An event that is a fault for
several detectors (a slow flush, say) is a fault of each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from streamwarden.base.config import Config

from tests.simulator import broker_kinds as b
from tests.simulator import cluster_kinds as c
from tests.simulator import cluster_sources
from tests.simulator import move_kinds as m
from tests.simulator import request_kinds as r
from tests.simulator import retention_kinds as k
from tests.simulator.bench import Bench
from tests.simulator.cluster_fleet import DOWN, FLUSHES, Fleet
from tests.simulator.clusters import NOW, Cluster, cluster_of
from tests.simulator.scenario import EVALUATED, Scenario, Truth, Verdict
from tests.simulator.score import Score, at_once, score

Make = Callable[[Fleet, Cluster], None]
FAULTS: tuple[Make, ...] = (
    b.files_high,
    b.files_nearly_full,
    b.files_leak,
    b.maps_high,
    b.maps_nearly_gone,
    b.flushes_slowed,
    b.flushes_creep,
    b.producers_wait,
    b.slow_tail,
    b.slow_since_ever,
    b.flushes_over_the_limit,
    b.flushes_over_a_limit_of_its_own,
    b.leaders_left_behind,
    b.hot_topic,
    b.uneven_since_ever,
    b.uneven_and_near_a_limit,
    b.many_and_calm,
    b.many_and_busy,
    b.many_and_files,
    b.many_and_more,
    b.far_too_many,
    b.no_controller,
    b.no_dedicated_controller,
    b.two_controllers,
    b.too_large,
    b.without_keys,
    b.min_isr_not_met_for_hours,
    b.refused_without_a_reason,
    b.cleaner_dies,
    b.log_given_up,
    b.cleaner_hangs,
    *k.FAULTS,
    r.too_many_for_days,
    r.too_many_since_a_release,
    r.beyond_a_knee_of_its_own,
    c.broker_down,
    c.its_machine_is_gone,
    c.its_machine_is_gone_while_peers_restart,
    c.its_region_is_not_read,
    c.its_disk_filled,
    c.its_files_were_used_up,
    c.its_heap_was_full,
    c.its_credits_were_spent,
    c.down_after_it_had_been_short,
    c.down_beside_a_short_peer,
    c.two_down,
    c.cannot_keep_up,
    c.metadata_refused,
    c.down_during_a_reassignment,
    c.single_replica_down,
    c.last_in_sync_down,
    c.a_listener_is_lost,
    c.elected_uncleanly,
    c.producer_grew,
    c.producer_grew_much,
    c.producer_grew_yesterday,
    c.nearly_full,
    c.slowly_full,
    c.page_cache_too_small,
    c.page_cache_too_small_and_disks_busy,
    c.page_cache_too_small_by_day,
    c.page_cache_too_small_during_a_batch,
    c.page_cache_too_small_by_node_exporter,
    *m.FAULTS,
)
DECOYS: tuple[Make, ...] = (
    b.files_at_a_start,
    b.files_of_a_million,
    b.files_without_limit,
    b.files_by_day,
    b.files_by_a_step,
    b.files_by_saw_teeth,
    b.many_segments,
    b.hardly_any_traffic,
    b.flush_settings_changed,
    b.slow_after_a_start,
    b.slow_each_week,
    b.slow_each_week_on_one,
    b.one_slow_sample,
    b.flushes_breathe,
    b.flushes_below_the_limit,
    b.flushes_below_a_limit_of_its_own,
    b.few_flushes,
    b.leaders_return,
    b.leaders_returned,
    b.unequal_machines,
    b.controllers_beside,
    b.even_surge,
    b.two_brokers,
    b.uneven_but_idle,
    b.fewer_and_busy,
    b.few_and_more,
    b.controller_moves,
    b.a_controller_is_silent,
    b.controllers_elsewhere,
    b.leaders_move,
    b.unauthorized_client_retries,
    b.replicas_out_of_sync_for_minutes,
    b.restarts_for_two_hours,
    b.somebody_tries,
    b.one_of_thousands,
    b.refused_until_an_hour_ago,
    b.cleaner_has_much_to_do,
    b.nothing_is_compacted,
    b.cleaner_came_back,
    b.cleaner_metrics_not_exposed,
    *k.DECOYS,
    r.many_requests_at_ease,
    r.busy_with_something_else,
    r.peak_of_each_night,
    r.many_for_an_hour,
    r.takes_the_share_of_one_that_is_down,
    c.replicas_added,
    c.all_replicas_added,
    c.just_started,
    c.rolls,
    c.back_between_samples,
    c.taken_out,
    c.comes_up,
    c.out_of_reach,
    c.most_out_of_reach,
    c.topic_just_made,
    c.elected_uncleanly_before,
    c.full_but_steady,
    c.saw_teeth,
    c.moved_in,
    c.young_disk,
    c.rises_on_weekdays,
    c.disk_sizes_not_reported,
    c.traffic_rose,
    c.backfill_each_night,
    c.batch_each_night,
    c.starts_read,
    c.restores_read,
    c.replicas_read,
    c.moves_read,
    c.rogues_read,
    c.little_is_read_by_node_exporter,
    c.two_cold_days,
    c.little_is_read,
    c.disks_of_the_machine,
    *m.DECOYS,
    b.healthy,
    b.rolling_upgrade,
    b.silent_broker,
    b.unknown_figures,
)
SIZES = {b.two_brokers: 2, c.two_down: 4, c.replicas_added: 5, c.all_replicas_added: 5, c.down_during_a_reassignment: 5}
SIZES |= m.SIZES
SHORTAGES = ("is_heap_full", "is_volume_empty")


def build(scenario: Scenario) -> Fleet:
    """Clusters of all kinds in rotation."""
    fleet = Fleet(scenario)
    kinds = (*scenario.some(FAULTS), *DECOYS)
    for n in range(scenario.clusters):
        make = kinds[n % len(kinds)]
        chance = np.random.default_rng([scenario.seed, 15, n])
        cluster = cluster_of(f"cluster{n:04d}", make.__name__.replace("_", " "), chance, SIZES.get(make))
        make(fleet, cluster)
        fleet.clusters.append(cluster)
        _settle(fleet, cluster)
    return fleet


def _settle(fleet: Fleet, cluster: Cluster) -> None:
    """Adds the faults by the absolute limit of log flushes, which holds for any broker, and the decoys."""
    p95 = cluster.gauges["log_flush_p95_ms"][:, NOW]
    flushes = 3600 * cluster.rates["log_flushes_total"][:, NOW]
    limit = fleet.flush_limits.get(cluster.name, 100.0)
    for broker in range(cluster.brokers):
        if flushes[broker] > 33 and p95[broker] > 1.02 * limit and cluster.answers[broker, NOW]:
            fleet.fault(FLUSHES, cluster, broker, "warning")
        elif p95[broker] > 0.95 * limit:
            fleet.unclear(FLUSHES, cluster, broker)
    for truth in fleet.truth.values():
        truth.decoys[cluster.name] = cluster.kind
        truth.decoys |= {cluster.broker(n): cluster.kind for n in range(cluster.brokers + len(cluster.controllers))}


def evaluate(bench: Bench, scenario: Scenario) -> list[Score]:
    """Simulates, evaluates, and scores."""
    fleet = build(scenario)
    with TemporaryDirectory() as folder:
        cluster_sources.load(bench, fleet.clusters, Path(folder))
    limits = [
        {"where": {"cluster": name}, "params": {"slow_ms": limit}, "why": "its owners bear another one"}
        for name, limit in fleet.flush_limits.items()
    ]
    config = Config.model_validate({"detectors": {FLUSHES: {"exceptions": limits}}})
    scores = {rule: _score(bench, rule, truth, config) for rule, truth in fleet.truth.items()}
    _claim_shortages(fleet, *scores[DOWN])
    return [one for one, _ in scores.values()]


def _claim_shortages(fleet: Fleet, result: Score, verdicts: list[Verdict]) -> None:
    """Scores whether the finding names exactly the resources that a broker ran out of before it went down."""
    said = {verdict.resource_name: verdict for verdict in verdicts if verdict.status == "firing"}
    for fault in fleet.truth[DOWN].faults:
        if verdict := said.get(fault.resource_name):
            output = {name for name in SHORTAGES if verdict.metrics.get(name)}
            wrong = ", ".join(output ^ fleet.shortages.get(fault.resource_name, set()))
            result.claim("names exhausted resources", fault, verdict, wrong or None)


def _score(bench: Bench, rule: str, truth: Truth, config: Config) -> tuple[Score, list[Verdict]]:
    """Verdicts on the clusters of this fleet only: other parts may have left rows in the warehouse."""
    verdicts = []
    for finding in bench.findings(rule, config):
        columns = finding.resource.columns
        if columns["cluster"] not in truth.decoys:
            continue
        resource_name = "/".join(str(columns[name]) for name in ("cluster", "broker_id") if name in columns)
        said = finding.reason if rule == DOWN else finding.severity or ""
        verdicts.append(
            Verdict(resource_name, EVALUATED, finding.status, finding.message, said, finding.metrics, finding.severity)
        )
    return score(rule, at_once(bench.detector(rule)), verdicts, truth), verdicts
