"""To tell stories in a warehouse: who was judged how in which hour; and a tracker of a few lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from streamwarden.detectors import Detector
from streamwarden.detectors.evaluate import fingerprint
from streamwarden.tickets.sinks.contract import Draft, Issue, Update

START = datetime(2026, 1, 5, 10, tzinfo=UTC)


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


def detector(id_: str, subject: str, reads: tuple[str, ...] = ("metrics.volume_hourly",), **header: Any) -> Detector:
    values: dict[str, Any] = {
        "title": f"{id_} title", "severity": "critical", "owner": "platform", "maturity": "stable",
        "identity": ("id",), "params": {}, "clear_after_hours": 2, "runbook": "1. Look.\n2. Mend.",
        "blind_spots": "The dark.", "sql": "select 1", "file": f"sql/detectors/{subject}/{id_}.sql",
    }  # fmt: skip
    return Detector(id=id_, subject=subject, reads=reads, **(values | header))


DETECTORS = {
    d.id: d
    for d in (
        detector("ebs_volume_starving", "storage"),
        detector("app_memory_heavy", "memory", ("metrics.jvm_app_hourly",), open_after_hours=2),
        detector(
            "consumer_group_lagging",
            "consumers",
            ("metrics.consumer_group_hourly",),
            severity="warning",
            follows_from=("ebs_volume_starving",),
        ),
    )
}
APP_OF = {
    "ebs_volume_starving": "ebs_volumes", "app_memory_heavy": "jvm_apps", "consumer_group_lagging": "consumer_groups",
}  # fmt: skip


@dataclass
class Story:
    """Writes what an hour was: each call is one judging of one detector, as `evaluate` would store it."""

    engine: sa.Engine

    def judge(
        self, number: int, statuses: dict[str, str], detector_id: str = "ebs_volume_starving", *,
        coverage: str = "answered", severity: str = "critical", reason: str = "It is bad.",
        evidence: dict[str, Any] | None = None, judgement: str = "judged",
    ) -> None:  # fmt: skip
        """`statuses`: resource → alarm, ok or skip."""
        at, app = hour(number), APP_OF[detector_id]
        with self.engine.begin() as connection:
            run = lambda sql, **values: connection.execute(sa.text(sql), values)  # noqa: E731
            run("select public.ensure_day(:day)", day=at.date())
            for table in ("load", "coverage"):
                run(f"delete from detect.{table} where hour = :hour and app = :app", hour=at, app=app)
            for table in ("judgement", "evaluation"):
                run(f"delete from detect.{table} where hour = :hour and detector = :d", hour=at, d=detector_id)
            run("insert into detect.load values (:hour, :app, 'loaded', '{}', null, now(), now())", hour=at, app=app)
            run(
                "insert into detect.coverage values (:hour, :app, 'src', 'a', 'answered', null, now()),"
                " (:hour, :app, 'src', 'b', :status, 'because', now())",
                hour=at, app=app, status=coverage,
            )  # fmt: skip
            run(
                "insert into detect.judgement values (:hour, :d, :status, null, 'abc', '{}', 0, 0, 0, 0.1, now())",
                hour=at, d=detector_id, status=judgement,
            )  # fmt: skip
            for resource, status in statuses.items():
                run(
                    "insert into detect.evaluation values"
                    " (:hour, :d, :f, :resource, :identity, :status, :severity, :reason, :evidence, now())",
                    hour=at, d=detector_id, f=print_of(resource, detector_id), resource=resource,
                    identity=json.dumps({"id": resource}), status=status, severity=severity, reason=reason,
                    evidence=json.dumps(evidence or {}),
                )  # fmt: skip

    def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(sa.text(sql), values).mappings()]

    def tickets(self) -> list[dict[str, Any]]:
        return self.rows("select * from tickets.ticket order by ticket_id")

    def changes(self) -> list[dict[str, Any]]:
        return self.rows("select * from tickets.change order by change_id")

    def actions(self) -> list[str]:
        return [change["action"] for change in self.changes()]

    def clear(self) -> None:
        with self.engine.begin() as connection:
            for table in ("load", "coverage", "judgement", "evaluation"):
                connection.execute(sa.text(f"delete from detect.{table}"))
            connection.execute(sa.text("truncate tickets.ticket, tickets.change restart identity"))


def print_of(resource: str, detector_id: str = "ebs_volume_starving") -> str:
    return fingerprint(detector_id, {"id": resource})


@dataclass
class MemorySink:
    """A tracker of a few lines that remembers everything, and can be told to break at a given moment."""

    name: str = "console"
    remembers: bool = True
    takes_files: bool = False
    drafts: list[Draft] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    broken: Exception | None = None
    break_after_create: Exception | None = None

    def find(self, fingerprint: str) -> Issue | None:
        if self.broken:
            raise self.broken
        keys = [str(number) for number, draft in enumerate(self.drafts) if draft.fingerprint == fingerprint]
        return Issue(keys[-1], f"http://tracker/{keys[-1]}", self.states.get(keys[-1], "open")) if keys else None

    def create(self, draft: Draft) -> Issue:
        self.drafts.append(draft)
        if self.break_after_create:
            raise self.break_after_create
        key = str(len(self.drafts) - 1)
        return Issue(key, f"http://tracker/{key}", "open")

    def update(self, update: Update) -> None:
        if update.marker not in {done.marker for done in self.updates}:
            self.updates.append(update)
            self.states[update.key] = {"close": "closed", "reopen": "open"}.get(
                update.action, self.states.get(update.key, "open")
            )
