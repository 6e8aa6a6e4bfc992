"""A week of notifications: faults start and end in the same clusters, and metrics change every hour. Is any
notification sent twice?

Faults are those of `incidents`; here their symptoms also end, each in its own hour, get worse and better, turn into
another reason of the same detector, flap, or are not evaluated for an hour. The product computes causes, incidents, and
notifications; the tracker counts them. An issue may get one notification per hour, and only if it was created or
resolved, or its cause, its severity, its findings, or their reasons changed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from streamwarden.base.hours import HOUR
from streamwarden.causes import find_causes
from streamwarden.detectors import Finding
from streamwarden.detectors.results import store_findings
from streamwarden.tickets import deliver, reconcile

from tests.plugins.tickets.scenario import MemorySink
from tests.simulator.bench import Bench
from tests.simulator.incidents import CONFIG, DETECTORS, Cluster, Symptom, World, _at, _empty, _found, insert_many
from tests.simulator.scenario import STANDARD, Scenario
from tests.simulator.score import Goal, Score

WEEK, SMALL_WEEK = 168, 36
STRETCH = 12
"""Hours between the faults of one stretch and the next; the last ones of a stretch are quiet, or nearly."""
EvaluatedRow = tuple[str, str]
"""Severity and reason of a symptom in an hour; without a reason it is unknown."""
Shape = tuple[str, str | None, frozenset[str], frozenset[tuple[str, str]]]
"""An issue in an hour: severity, root, findings, and their reasons."""


@dataclass
class NotificationsScore(Score):
    """Notifications per issue compared with its changes."""

    issues: int = 0
    output: int = 0
    allowed: int = 0
    sent_too_often: int = 0
    sent_twice: int = 0

    @property
    def goals(self) -> list[Goal]:
        of = f"{self.output} notifications, {self.allowed} changes"
        return [
            Goal(f"notifications ÷ changes, of {of}", self.output / max(self.allowed, 1), 1, at_most=True),
            Goal(
                f"hours with more notifications than changes, of {self.issues} issues",
                self.sent_too_often,
                0,
                at_most=True,
            ),
            Goal("identical notifications of an issue", self.sent_twice, 0, at_most=True),
        ]


@dataclass
class Tracker(MemorySink):
    """Counts the notifications of each issue, and lists those sent twice."""

    output: Counter[str] = field(default_factory=Counter)
    twice: list[str] = field(default_factory=list)
    last: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def create(self, issue_draft: Any) -> Any:
        issue = super().create(issue_draft)
        self._record(issue.key, "create", issue_draft)
        return issue

    def update(self, update: Any) -> None:
        super().update(update)
        self._record(update.key, update.action, update)

    def _record(self, key: str, action: str, what: Any) -> None:
        finding = what.notification.finding
        said = (
            action,
            what.title,
            what.severity,
            what.notification.note,
            finding and (finding.reason, finding.severity),
        )
        self.output[key] += 1
        if self.last.get(key) == said:
            self.twice.append(f"{what.title}: {action} {what.notification.note!r}")
        self.last[key] = said


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Scores a week, or a day and a half of a small fleet."""
    small = scenario.days < STANDARD.days
    return week(bench.warehouse, random.Random(scenario.seed), SMALL_WEEK if small else WEEK, 1 if small else 2)  # noqa: S311


def week(warehouse: sa.Engine, dice: random.Random, hours: int, clusters: int) -> NotificationsScore:
    """Evaluates the hours in order and delivers their notifications; scores what was delivered."""
    result = NotificationsScore("news", hours, clusters, 0, 0)
    _empty(warehouse)
    sink, before, notified_before = Tracker(), dict[str, Shape](), Counter[str]()
    plan, places = dice.random(), dice.random()
    for start in range(0, hours, STRETCH):
        made = [Cluster(random.Random(f"{places} {n}"), f"c{n}") for n in range(clusters)]  # noqa: S311
        world = World(random.Random(f"{plan} {start}"), made)  # noqa: S311
        courses = [(symptom, _course(dice, symptom)) for symptom in world.symptoms]
        result.faults += len(courses)
        for hour in range(start, min(start + STRETCH, hours)):
            with warehouse.begin() as connection:
                _write(connection, world, courses, hour - start, _at(hour), dice)
            find_causes(warehouse, DETECTORS, _at(hour))
            reconcile(warehouse, CONFIG, DETECTORS, _at(hour) + HOUR)
            assert deliver(warehouse, sink, CONFIG).failed == []
            now = _shapes(warehouse)
            for key in sink.output:
                is_changed = now.get(key) != before.get(key)
                result.allowed += is_changed
                if (times := sink.output[key] - notified_before[key]) > is_changed:
                    result.sent_too_often += 1
                    what = "changed" if is_changed else "unchanged"
                    result.wrong.append(
                        f"{sink.issue_drafts[int(key)].title}: {times} notifications in hour {hour}, issue {what}"
                    )
            before, notified_before = now, sink.output.copy()
    result.issues, result.output = len(sink.output), sink.output.total()
    result.sent_twice = len(sink.twice)
    result.wrong += [f"sent twice: {line}" for line in sink.twice]
    return result


def _course(dice: random.Random, symptom: Symptom) -> dict[int, EvaluatedRow]:
    """States of a symptom by hour of its stretch, without the hours in which it is ok."""
    begins = max(symptom.begins, 0)
    ends = begins + dice.choice([1, 2, 3, 4, 5, 6, 8, STRETCH])
    firing = [name for name, case in DETECTORS[symptom.detector].verdicts.items() if case.status == "firing"]
    worse, better = dice.choice([(99, 99), (99, 99), (2, 99), (1, 4)])
    turns = dice.choice([99, 99, 99, 3])
    course: dict[int, EvaluatedRow] = {}
    for hour in range(begins, min(ends, STRETCH)):
        age = hour - begins
        severity = "critical" if worse <= age < better else "warning"
        reason = dice.choice(firing) if age == turns else course.get(hour - 1, ("", symptom.reason))[1]
        course[hour] = severity, reason or symptom.reason
        if age and dice.random() < 0.06:
            course[hour] = severity, ""
        elif age and dice.random() < 0.06:
            del course[hour]
    return course


def _write(
    connection: sa.Connection, world: World, courses: list[tuple[Symptom, dict[int, EvaluatedRow]]], number: int,
    at: datetime,
    dice: random.Random,
) -> None:  # fmt: skip
    connection.execute(sa.text("select public.ensure_day(:day)"), {"day": at.date()})
    insert_many(connection, (row for cluster in world.clusters for row in cluster.rows(at)))
    found = {(f.detector, f.resource.key): f for f in _well(world)}
    for symptom, course in courses:
        severity, reason = course.get(number, ("", None))
        one = _found(symptom.detector, symptom.resource, reason or None, symptom.affected, symptom.metrics)
        if reason:
            metric = dice.randint(1, 10**6)
            one = replace(one, severity=severity, metrics={**symptom.metrics, "n": metric}, message=f"It is {metric}.")
        elif reason == "":
            one = replace(one, status="unknown", severity=None)
        found[one.detector, one.resource.key] = one
    store_findings(connection, list(found.values()), at, datetime.now(UTC))
    run = {"hour": at, "status": "evaluated", "firing": 0}
    insert_many(connection, (("detect.detector_run", run | {"detector": detector}) for detector in DETECTORS))


def _well(world: World) -> Iterator[Finding]:
    """Findings with status ok for all resources that can have a symptom."""
    for cluster in world.clusters:
        for name in cluster.groups:
            for detector in ("consumer_group_lagging", "consumer_data_at_risk"):
                yield _found(detector, cluster.group(name), None)
        for app in cluster.apps:
            yield _found("stream_threads_dead", f"process:{cluster.name}/jmx-{app}", None)
            yield _found("app_memory_heavy", f"application:{cluster.name}/{app}", None)
            yield _found("state_store_schema_drift", f"store:{cluster.name}/{app}-s-changelog", None)
        for topic in {topic for topic, _ in cluster.leaders}:
            for detector in ("transaction_hanging", "consumer_rogue"):
                yield _found(detector, f"topic:{cluster.name}/{topic}", None)
        for machine in cluster.machines:
            yield _found("ebs_volume_starving", f"volume:1/r/{machine}-v", None)
        for broker in cluster.brokers:
            yield _found("ebs_volume_starving", cluster.volume(broker), None)
            for detector in ("broker_slow", "log_flush_slow", "partitions_under_replicated"):
                yield _found(detector, f"broker:{cluster.name}/{broker}", None)


def _shapes(warehouse: sa.Engine) -> dict[str, Shape]:
    """Open issues by their key in the tracker."""
    with warehouse.connect() as connection:
        rows = connection.execute(_ISSUES).all()
    return {key: (severity, root, frozenset(members), frozenset(zip(members, verdicts, strict=True)))
            for key, severity, root, members, verdicts in rows}  # fmt: skip


_ISSUES = sa.text("""
    select
      i.external_key, coalesce(c.issue_severity, c.severity) as severity,
      coalesce(r.fingerprint, c.fingerprint) as root,
      array_agg(t.fingerprint order by t.fingerprint) as members,
      array_agg(coalesce(e.reason, '') order by t.fingerprint) as says
    from tickets.ticket as c
    inner join tickets.issue as i on c.ticket_id = i.ticket_id
    inner join tickets.ticket as t on c.ticket_id in (t.ticket_id, t.summary_ticket_id) and t.state = 'open'
    left join tickets.ticket as r on c.root_ticket_id = r.ticket_id
    left join detect.evaluation as e on t.fingerprint = e.fingerprint and t.last_firing_hour = e.hour
    where c.state = 'open' and c.summary_ticket_id is null
    group by i.external_key, c.issue_severity, c.severity, r.fingerprint, c.fingerprint""")
