"""EBS volumes: the truth about simulated disks, the evaluated hours, and the score.

The truth is measured on the simulated disk, not planned: a fault is a long span of throttling, and begins with the load
that led to it. Only decisive hours are evaluated: those around each fault, the most fault-like of each decoy, and some
random hours of each instance. All volumes of an instance are evaluated together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from demo.ebs_physics import INSTANCE_BURST_SECONDS, Minutes, charged_bytes, pieces, serve, volume_limits
from demo.ebs_resources import Volume
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import Finding
from streamwarden.store.prices import load_prices

from spark_apps.apps import ebs_volumes as app
from tests.simulator.bench import Bench
from tests.simulator.scenario import EVALUATED, START, Case, Fault, Scenario, Verdict
from tests.simulator.score import Score, score
from tests.simulator.volume_kinds import JUST_NOW, MINUTE, REGION, Fleet, meant
from tests.simulator.volume_loads import LONGEST_PAUSE, ON_OFF
from tests.simulator.volume_sources import sources

DETECTOR = "ebs_volume_starving"
FIRST = START + timedelta(days=1)
"""The first evaluated hour: the app looks back a day."""
HURTS, HARMLESS = 25, 10
"""Minutes of throttling: more is a fault, less is not; anything between counts neither way."""
STALL_HURTS, SLOW = 2, 5
"""Minutes without progress that are an incident; and the multiple of the baseline latency that is one."""
DRY = 6
"""Minutes after which the hour in which burst balance reached 0 must report it: its decrease was visible."""
PAUSE = 10
HOURS_PER_FAULT, CONTROL_HOURS = 16, 4
ADVICE, SINCE = "advice carries what is wanted", "since when is right"
PRICES = "prices where they are known"
LOST, BACKLOG_SECONDS = "hours with a backlog are reported", 600
"""A second definition of harm, without minutes at limits: how long the demand that an hour did not serve would take at
the baseline of the volume (SSD only)."""
EFFECT = (("throttled", "_if_changed"), ("unknown", ""))
ADVISED = ("advised_volume_type", "advised_size_gib", "advised_iops", "advised_throughput_mib_s")
CARRIED, SPARE_MINUTES = 0.98, 60
"""Share of the minutes in which the advised volume must meet the demand; and the fewest minutes that prove it."""
LONG, OF_IT = timedelta(minutes=90), 0.8
"""In a fault that has lasted so long, this share of its minutes must be reported."""


# The truth


def build(scenario: Scenario) -> Fleet:
    """The fleet of a scenario with its truth."""
    fleet = meant(scenario)
    _label(fleet)
    return fleet


class _Hurt(NamedTuple):
    """Minutes of a volume over all days."""

    held: Minutes
    """Minutes in which it served less than the demand, or with a multiple of the baseline latency."""
    stalled: Minutes
    instance_over: Minutes
    instance_drains: Minutes
    """Minutes in which the demand exceeded the instance's baseline and was served from its burst."""


def _label(fleet: Fleet) -> None:
    for volume in fleet.world.volumes.values():
        hurt = _hurt(fleet, volume)
        meant_at = fleet.causes.get(volume.volume_id, [])
        kind = fleet.kinds.get(volume.volume_id, "beside a fault" if meant_at else "healthy")
        fleet.truth.decoys[volume.volume_id] = kind
        _label_volume(fleet, volume, kind, hurt, meant_at)
        # Neither: a load that would have throttled it, had it lasted. Its end is not predictable, but it is visible
        # some minutes later.
        hurt_by = {fault.begins for fault in fleet.truth.faults if fault.resource_name == volume.volume_id}
        for at in set(meant_at) - hurt_by:
            surges = [surge for v in fleet.world._unit_of(volume).volumes for surge in v.load.surges]
            ends = max((surge.end for surge in surges if surge.start == at), default=at)
            fleet.truth.unclear.append((volume.volume_id, at, ends - HOUR + JUST_NOW))
        # Neither: its instance was at its limit, but the volume lost little.
        beside = [at for v in fleet.world._unit_of(volume).volumes for at in fleet.causes.get(v.volume_id, [])]
        for first, last, minutes in _spans(hurt.instance_over):
            start, end = START + first * MINUTE, START + last * MINUTE
            if minutes > HARMLESS:
                began = max((at for at in beside if at <= start), default=start)
                fleet.truth.unclear.append((volume.volume_id, began, end))
        # Neither: its instance used its burst for longer than designed, and then the load ended.
        for first, last, minutes in _spans(hurt.instance_drains):
            if minutes > INSTANCE_BURST_SECONDS / 60:
                end = START + last * MINUTE
                fleet.truth.unclear.append((volume.volume_id, START + first * MINUTE, end - HOUR + JUST_NOW))


def _label_volume(fleet: Fleet, volume: Volume, kind: str, hurt: _Hurt, meant_at: list[datetime]) -> None:
    output: set[datetime] = set()
    began = ended = START - 2 * HOUR
    for first, last, minutes in _spans(hurt.held, LONGEST_PAUSE if kind in ON_OFF else PAUSE):
        start, end = START + first * MINUTE, START + last * MINUTE
        # An unplanned fault begins with its first span: a growing load reaches the limit intermittently.
        began, ended = (start if start - ended > HOUR else began), end
        of_cause = max((at for at in meant_at if at <= start), default=None)
        stalls = np.flatnonzero(hurt.stalled[first : last + 1])
        if len(stalls) >= STALL_HURTS:
            enough, seen = STALL_HURTS, int(stalls[STALL_HURTS - 1])
        else:
            # An empty bucket is visible at once; slower effects must fill a quarter of the hour. A full bucket does not
            # help if the instance throttles the volume.
            by_instance = hurt.instance_over[first : last + 1].any()
            is_dry = volume.limits_at(start).credits and not volume.slow and not by_instance
            held = np.flatnonzero(hurt.held[first : last + 1])
            enough, seen = HURTS, DRY if is_dry or minutes < HURTS else int(held[HURTS - 1])
        cause, due = of_cause or began, start_of_hour(start + seen * MINUTE)
        if minutes <= HARMLESS and minutes < enough:
            continue
        # Neither: little impact, the same load again, or before the first evaluated hour.
        if minutes < enough or cause in output or due < FIRST:
            fleet.truth.unclear.append((volume.volume_id, cause, end))
            continue
        outage = start if of_cause else None
        fleet.truth.faults.append(Fault(volume.volume_id, kind, cause, due, end, outage, hurts_from=start))
        output.add(cause)


def _hurt(fleet: Fleet, volume: Volume) -> _Hurt:
    """Of all its attachments: a volume that was moved has minutes at each of its instances."""
    parts = [_hurt_at(fleet, each) for each in volume.attachments]
    return _Hurt(*(np.any(minutes, axis=0) for minutes in zip(*parts, strict=True)))


def _hurt_at(fleet: Fleet, volume: Volume) -> _Hurt:
    unit = fleet.world._unit_of(volume)
    row, first = unit.volumes.index(volume), int(START.timestamp() // 86_400)
    held, stalled, over, drains = [], [], [], []
    for day in range(first, first + fleet.scenario.days):
        metrics, instance = unit.day(day)
        mine = metrics[row]
        of_instance = instance.iops_exceeded + instance.bytes_exceeded if instance else np.zeros(len(mine.queue))
        exceeded = np.nan_to_num(mine.iops_exceeded) + np.nan_to_num(mine.bytes_exceeded) + np.nan_to_num(mine.stalled)
        held.append(exceeded + of_instance * (np.nan_to_num(mine.queue) >= 1) > 0)
        stalled.append(np.nan_to_num(mine.stalled) > 0)
        is_there = ~np.isnan(mine.queue)
        over.append((of_instance > 0) & is_there)
        balances = [instance.io_balance_percent, instance.byte_balance_percent] if instance else [of_instance]
        drains.append(np.any([np.diff(balance, prepend=balance[0]) < 0 for balance in balances], axis=0) & is_there)
    slow = np.zeros(fleet.scenario.days * 1440, bool)
    for start, end, factor in volume.slow:
        if factor >= SLOW:
            slow[int((start - START) / MINUTE) : int((end - START) / MINUTE)] = True
    return _Hurt(np.concatenate(held) | slow, *map(np.concatenate, (stalled, over, drains)))


def _spans(held: np.ndarray, pause: int = PAUSE) -> Iterator[tuple[int, int, int]]:
    """(first minute, last minute, throttled minutes) of each span without a long pause."""
    at = np.flatnonzero(held)
    for part in np.split(at, np.flatnonzero(np.diff(at) > pause) + 1):
        if len(part):
            yield int(part[0]), int(part[-1]), len(part)


def cases(fleet: Fleet) -> list[Case]:
    """The hours of volumes to evaluate, with all volumes of their instance."""
    chance = random.Random(f"{fleet.scenario.seed} hours")  # noqa: S311 a simulation
    last = fleet.scenario.end - HOUR
    wanted: dict[str, set[datetime]] = {}
    for fault in fleet.truth.faults:
        until = fault.due
        first = max(start_of_hour(fault.begins) - HOUR, until - HOURS_PER_FAULT * HOUR)
        of = wanted.setdefault(fault.resource_name, set())
        of |= {first + n * HOUR for n in range(int((until - first) / HOUR) + 2)}
        if start_of_hour(fault.begins) - HOUR < first:
            begun = start_of_hour(fault.begins)
            of |= {begun + n * HOUR for n in range(3)}
    for resource_name, scary in fleet.scary.items():
        wanted.setdefault(resource_name, set()).update(scary)
    for resource_name in fleet.world.volumes:
        of = wanted.setdefault(resource_name, set())
        of |= {START + HOUR * chance.randrange(24, fleet.scenario.days * 24) for _ in range(CONTROL_HOURS)}
    together: dict[str, set[datetime]] = {}
    for resource_name, hours in wanted.items():
        for each in fleet.world.volumes[resource_name].attachments:
            together.setdefault(str(each.instance_id), set()).update(hours)
    for volume in fleet.world.volumes.values():
        for each in volume.attachments:
            # Short throttling that continues that of the hour before is known by that hour.
            hours = together[str(each.instance_id)]
            hours |= {hour - HOUR for hour in hours if fleet.truth.is_underway(volume.volume_id, hour)}
    return [
        Case(volume.volume_id, hour)
        for volume in fleet.world.volumes.values()
        for hour in sorted({hour for each in volume.attachments for hour in together[str(each.instance_id)]})
        if FIRST <= hour <= last and (volume.deleted_at is None or volume.deleted_at > hour + HOUR)
    ]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    scored = prepare(bench, scenario)
    return scored(bench.findings(DETECTOR))


def prepare(bench: Bench, scenario: Scenario) -> Callable[[list[Finding]], Score]:
    """Simulates and loads; returns what scores findings of the detector, with whatever parameters they were made."""
    fleet = build(scenario)
    load(bench, fleet, cases(fleet))
    return lambda found: _scored(bench, fleet, found)


def _scored(bench: Bench, fleet: Fleet, found: list[Finding]) -> Score:
    verdicts = [_verdict(row) for row in found]
    result = score("starving volumes", bench.detector(DETECTOR), verdicts, fleet.truth)
    result.errors, result.error_of = _forecast_errors(verdicts, fleet.truth.faults), "time to exhaustion"
    _check_claims(result, fleet, verdicts)
    _check_lost_demand(result, fleet, verdicts)
    return result


def _check_lost_demand(result: Score, fleet: Fleet, verdicts: list[Verdict]) -> None:
    """Scores each evaluated hour that leaves a long backlog: that hour, or the next one, must fire."""
    said = {(verdict.resource_name, verdict.hour): verdict for verdict in verdicts}
    for verdict in verdicts:
        backlog = _backlog_seconds(fleet, fleet.world.volumes[verdict.resource_name], verdict.hour)
        if backlog < BACKLOG_SECONDS or verdict.status == "unknown":
            continue
        then = [said.get((verdict.resource_name, at)) for at in (verdict.hour, verdict.hour + HOUR)]
        kind = fleet.truth.decoys[verdict.resource_name]
        harmed = Fault(verdict.resource_name, kind, verdict.hour, verdict.hour, verdict.hour + HOUR)
        is_reported = any(each is not None and each.status == "firing" for each in then)
        wrong = f"a backlog of {backlog / 60:.0f} min: {verdict.message}"
        result.claim(LOST, harmed, verdict, None if is_reported else wrong)


def _backlog_seconds(fleet: Fleet, volume: Volume, hour: datetime) -> float:
    """Operations that an SSD volume did not serve in the hour, in seconds at its baseline."""
    unit = fleet.world._unit_of(volume)
    day, first = divmod(int(hour.timestamp() // 60), 1440)
    metrics = unit.day(day)[0][unit.volumes.index(volume)]
    span = slice(first, first + 60)
    wanted = 60 * float(np.sum(metrics.wanted_reads[span] + metrics.wanted_writes[span]))
    served = float(np.sum(metrics.read_ops[span]) + np.sum(metrics.write_ops[span]))  # NaN: not measured
    if volume.volume_type not in ("gp2", "gp3", "io1", "io2") or np.isnan(served):
        return 0.0
    return (wanted - served) / volume.limits_at(hour + HOUR).base_iops


def verdicts_of(bench: Bench, fleet: Fleet, chosen: list[Case]) -> list[Verdict]:
    """Verdicts of the detector on these hours."""
    load(bench, fleet, chosen)
    return [_verdict(row) for row in bench.findings(DETECTOR)]


def _verdict(row: Finding) -> Verdict:
    return Verdict.of(row.resource.columns["volume_id"], row)


def load(bench: Bench, fleet: Fleet, chosen: list[Case]) -> None:
    """Loads these hours of volumes into the warehouse, as the app does."""
    with TemporaryDirectory() as folder:
        frames = app.transform(sources(bench.spark, fleet, chosen, Path(folder)), EVALUATED, Config())
        # No detector of volumes reads single minutes.
        frames["metrics.volume_sample"] = frames["metrics.volume_sample"].limit(0)
        bench.load("ebs_volumes", frames)
    for table in ("inventory.volume_hourly", "metrics.volume_hourly"):
        bench.remember(table, "volume_id")
    load_prices(bench.warehouse, Config())


def _check_claims(result: Score, fleet: Fleet, verdicts: list[Verdict]) -> None:
    """Scores the due verdict and the last one of each fault: advice, and start of the impact."""
    firing: dict[str, list[Verdict]] = {}
    evaluated = {(verdict.resource_name, verdict.hour) for verdict in verdicts}

    def evaluated_since(verdict: Verdict) -> datetime:
        hour = verdict.hour
        while (verdict.resource_name, hour - HOUR) in evaluated:
            hour -= HOUR
        return hour

    for verdict in verdicts:
        if verdict.status == "firing":
            firing.setdefault(verdict.resource_name, []).append(verdict)
    for fault in fleet.truth.faults:
        during = [v for v in firing.get(fault.resource_name, []) if fault.due <= v.hour <= fault.ends]
        first = [v for v in during if v.hour == fault.due]
        for verdict in {v.hour: v for v in (*first, *during[-1:])}.values():
            lasts = fault.ends - fault.begins >= SPARE_MINUTES * MINUTE
            # If the instance's limit is lower, another volume does not help.
            if lasts and _is_of_volume(fault) and not _is_held_by_instance(fleet, verdict):
                result.claim(ADVICE, fault, verdict, _wrong_advice(fleet, fault, verdict.metrics))
            if verdict.metrics["advised_volume_type"] is not None:
                result.claim(PRICES, fault, verdict, _wrong_prices(fleet, fault, verdict.metrics))
            if fault.kind.startswith("instance") and verdict.metrics.get("instance_wanted_iops") is not None:
                result.claim(ADVICE, fault, verdict, _wrong_instance(fleet, fault, verdict.metrics))
            # For instance limits and latency the last day is not read: previously evaluated hours give the start.
            by_hours = verdict.metrics["minutes_at_instance_limit"] or verdict.metrics["slow_minutes"]
            known_from = evaluated_since(verdict) if by_hours else START
            hurt_from = max(fault.hurts_from or fault.begins, known_from)
            hurt = min(verdict.hour + HOUR, fault.ends) - hurt_from
            # An on-off load is throttled again after each pause.
            if fault.ends >= verdict.hour + HOUR and hurt >= LONG and fault.kind not in ON_OFF:
                output = max(verdict.metrics[name] or 0 for name in ("throttled_minutes", "slow_minutes"))
                held = _held_minutes(fleet, fault, max(hurt_from, verdict.hour + HOUR - app.LOOK_BACK), verdict.hour)
                wrong = f"{output:.0f} min reported of {held}" if output < held * OF_IT else None
                result.claim(SINCE, fault, verdict, wrong)


def _held_minutes(fleet: Fleet, fault: Fault, since: datetime, hour: datetime) -> int:
    """Throttled or slow minutes of the volume from a time on until the end of an hour."""
    held = _hurt(fleet, fleet.world.volumes[fault.resource_name]).held
    first, last = (int((at - START) / MINUTE) for at in (since, hour + HOUR))
    return int(held[first:last].sum())


def _is_of_volume(fault: Fault) -> bool:
    """Whether the fault is one of the volume itself, so that another type or size helps."""
    return not fault.kind.startswith(("instance", "stalled", "slow", "hydrating", "beside", "healthy"))


def _is_held_by_instance(fleet: Fleet, verdict: Verdict) -> bool:
    """Whether its instance's limit was reached in half of the hour's throttled minutes."""
    hurt = _hurt(fleet, fleet.world.volumes[verdict.resource_name])
    first = int((verdict.hour - START) / MINUTE)
    held = hurt.held[first : first + 60]
    over = int((held & hurt.instance_over[first : first + 60]).sum())
    return over > 0 and over >= held.sum() / 2


def _wrong_advice(fleet: Fleet, fault: Fault, metrics: Mapping[str, Any]) -> str | None:
    """Simulates the advised volume with the demand during the fault; None if the volume suffices, else the error."""
    advised = [metrics[name] for name in ADVISED]
    if advised[0] is None:
        return "no volume is advised"
    if fault.kind.startswith("micro") and metrics["is_demand_lower_bound"]:
        # What is cut off within the minute is open demand: the advice is a step, and its effect is not known.
        then, unknown = (metrics[f"minutes_{name}_in_14_days{which}"] for name, which in EFFECT)
        return None if unknown or then is None else f"at least {advised}, and yet throttled for {then} min with it"
    volume = fleet.world.volumes[fault.resource_name]
    limits = volume_limits(advised[0], *(None if metric is None else int(metric) for metric in advised[1:]))
    reads, writes = _wanted(fleet, volume, fault)
    iops = pieces(limits, volume.load.sizes, reads, writes)
    rate = charged_bytes(limits, volume.load.sizes, reads, writes)
    served = serve(limits, iops, rate, limits.credits, np.ones(len(iops)), volume.load.duty)
    carried = 1 - float(np.mean((served.share < 1 - 1e-3) | served.iops_exceeded | served.bytes_exceeded))
    if carried >= CARRIED:
        return None
    wanted = f"{np.percentile(iops, 99):.0f} IOPS and {np.percentile(rate, 99) / 2**20:.0f} MiB/s"
    given = ", ".join(str(metric) for metric in advised if metric is not None)
    return f"{given} for {wanted}: carries it in {100 * carried:.0f} % of its minutes"


def _wrong_prices(fleet: Fleet, fault: Fault, metrics: Mapping[str, Any]) -> str | None:
    """None if there are prices exactly in the region that has a price list, else the error."""
    region = fleet.world.volumes[fault.resource_name].region
    are_known = bool(metrics["are_prices_known"])
    return None if are_known == (region == REGION) else f"prices {'' if are_known else 'un'}known in {region}"


def _wrong_instance(fleet: Fleet, fault: Fault, metrics: Mapping[str, Any]) -> str | None:
    """None if the advised instance limits cover the demand of its volumes in 90 % of minutes, else the error."""
    iops, rate = np.zeros(1), np.zeros(1)
    for volume in fleet.world._unit_of(fleet.world.volumes[fault.resource_name]).volumes:
        reads, writes = _wanted(fleet, volume, fault)
        iops = iops + reads + writes
        rate = rate + charged_bytes(volume.limits, volume.load.sizes, reads, writes)
    output = metrics["instance_wanted_iops"], metrics["instance_wanted_bytes_per_second"]
    if np.mean((iops <= output[0] * 1.02) & (rate <= output[1] * 1.02)) >= 0.9:
        return None
    wanted = f"{np.percentile(iops, 90):.0f} IOPS and {np.percentile(rate, 90) / 1e6:.0f} MB/s"
    return f"{output[0]:.0f} IOPS and {output[1] / 1e6:.0f} MB/s for {wanted}"


def _wanted(fleet: Fleet, volume: Volume, fault: Fault) -> tuple[Minutes, Minutes]:
    """Demand on a volume during the fault, in reads and writes per second."""
    unit = fleet.world._unit_of(volume)
    row, first = unit.volumes.index(volume), int(START.timestamp() // 86_400)
    days = [unit.day(day)[0][row] for day in range(first, first + fleet.scenario.days)]
    span = slice(*(int((at - START) / MINUTE) for at in (fault.begins, fault.ends)))
    reads, writes = ([getattr(day, f"wanted_{kind}") for day in days] for kind in ("reads", "writes"))
    return np.concatenate(reads)[span], np.concatenate(writes)[span]


def _forecast_errors(verdicts: list[Verdict], faults: list[Fault]) -> list[float]:
    """Relative errors of forecasts an hour or more ahead, from hours with the complete load that drained the bucket."""
    errors = []
    outages = {fault.resource_name: fault for fault in faults if fault.kind.startswith(("b", "n"))}
    for verdict in verdicts:
        fault, output = outages.get(verdict.resource_name), verdict.metrics["hours_to_exhaustion"]
        if fault is None or fault.outage is None or not output or fault.begins > verdict.hour:
            continue
        left = (fault.outage - verdict.hour - HOUR) / HOUR
        if left >= 1:
            errors.append(abs(output - left) / left)
    return errors
