"""Scenarios for tests of tickets: evaluations written hour by hour into a warehouse, and an in-memory tracker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from streamwarden.detectors import Detector, Finding, Verdict
from streamwarden.detectors.resources import KINDS, Resource
from streamwarden.detectors.results import store_findings
from streamwarden.tickets import Response
from streamwarden.tickets.responses import COMMAND_LINE, respond
from streamwarden.tickets.sinks.contract import Issue, IssueDraft, Update

from tests.sql.rows import insert_row

START = datetime(2026, 1, 5, 10, tzinfo=UTC)


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


def detector(id_: str, subject: str, resource: str, reads: tuple[str, ...], **header: Any) -> Detector:
    verdicts = {
        "bad": Verdict("firing", "It is bad.", "critical"),
        "good": Verdict("ok", "Good."),
        "dark": Verdict("unknown", "Dark."),
    }
    values: dict[str, Any] = {
        "title": f"{id_} title", "owner_role": "platform", "maturity": "stable", "verdicts": verdicts,
        "params": {}, "clear_after_hours": 2, "runbook": "1. Look.\n2. Fix.",
        "limitations": "Missing data.", "sql": "select 1", "file": f"sql/detectors/{subject}/{id_}.sql",
    }  # fmt: skip
    return Detector(id=id_, subject=subject, resource_kind=resource, reads=reads, **(values | header))


_DELAYS = {"broker_delays_consumers": ("bad",)}
DETECTORS = {
    d.id: d
    for d in (
        detector("ebs_volume_starving", "storage", "volume", ("metrics.volume_hourly",), causes=_DELAYS),
        detector("app_memory_heavy", "memory", "process", ("metrics.jvm_app_hourly",), open_after_hours=2),
        detector("consumer_rogue", "consumers", "cluster", ("metrics.volume_sample",)),
        detector("consumer_group_lagging", "consumers", "group", ("metrics.consumer_group_hourly",), caused_by=_DELAYS),
    )
}
APP_OF = {
    "consumer_rogue": "ebs_volumes", "ebs_volume_starving": "ebs_volumes", "app_memory_heavy": "jvm_apps",
    "consumer_group_lagging": "consumer_groups", "state_store_schema_drift": "state_stores",
}  # fmt: skip


@dataclass
class DeliveryScenario:
    """Writes evaluations into a warehouse, as `streamwarden.detectors.evaluate` would store them."""

    engine: sa.Engine

    def evaluate(
        self, number: int, statuses: dict[str, str], detector_id: str = "ebs_volume_starving", *,
        coverage: str = "complete", severity: str = "critical", message: str = "It is bad.", reason: str = "bad",
        detector_run: str = "evaluated", owner: str | None = None, **fields: Any,
    ) -> None:  # fmt: skip
        """Stores one run of one detector for hour `number`.

        `statuses`: resource name → `firing`, `ok`, or `unknown`. `fields`: further fields of the findings. A second
        call for the same hour and detector replaces the first.
        """
        at, app = hour(number), APP_OF[detector_id]
        with self.engine.begin() as connection:
            run = lambda sql, **values: connection.execute(sa.text(sql), values)  # noqa: E731
            run("select public.ensure_day(:day)", day=at.date())
            for table in ("load", "coverage"):
                run(f"delete from detect.{table} where hour = :hour and app = :app", hour=at, app=app)
            for table in ("detector_run", "evaluation"):
                run(f"delete from detect.{table} where hour = :hour and detector = :d", hour=at, d=detector_id)
            run("insert into detect.load values (:hour, :app, 'loaded', '{}', null, now(), now())", hour=at, app=app)
            run(
                "insert into detect.coverage values (:hour, :app, 'src', 'a', 'complete', null, now()),"
                " (:hour, :app, 'src', 'b', :status, 'because', now())",
                hour=at, app=app, status=coverage,
            )  # fmt: skip
            run(
                "insert into detect.detector_run values (:hour, :d, :status, null, 'abc', '{}', 0, 0, 0, 0.1, now())",
                hour=at, d=detector_id, status=detector_run,
            )  # fmt: skip
            for resource_name, status in statuses.items():
                finding = Finding(
                    detector_id, replace(resource(resource_name, detector_id), owner=owner), reason, status,  # type: ignore[arg-type]
                    severity if status == "firing" else None, **{"metrics": {}, **fields}, message=message,
                )  # fmt: skip
                store_findings(connection, [finding], at, datetime.now(UTC))

    def store_causes(self, number: int, ties: dict[tuple[str, str], float], factor: str = "share_factor") -> None:
        """Stores the weighed causes of an hour.

        `ties`: (fingerprint of the effect, fingerprint of the cause) → strength, 0 to 1. `factor` is the factor that
        limits the strength; all other factors are 1.
        """
        with self.engine.begin() as connection:
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour(number).date()})
            connection.execute(sa.text("delete from detect.cause where hour = :hour"), {"hour": hour(number)})
            connection.execute(sa.text("delete from detect.weighing where hour = :hour"), {"hour": hour(number)})
            insert_row(connection, "detect.weighing", {"hour": hour(number)})
            strongest = {effect: max(s for (e, _), s in ties.items() if e == effect) for effect, _ in ties}
            for (effect, cause), strength in ties.items():
                one = dict.fromkeys(("place_factor", "time_factor", "share_factor", "peers_factor"), 1.0)
                row = one | {
                    "hour": hour(number), "effect": effect, "cause": cause, "strength": strength, factor: strength,
                    "is_accepted": strength >= 0.6 and strength == strongest[effect],
                    "is_possible": strength >= 0.3, "path": "{}",
                    "message": "its partitions lie there",
                }  # fmt: skip
                insert_row(connection, "detect.cause", row)

    def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(sa.text(sql), values).mappings()]

    def tickets(self) -> list[dict[str, Any]]:
        return self.rows(
            "select t.*, filed.external_key from tickets.ticket as t"
            " left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id order by t.ticket_id"
        )

    def issues(self) -> list[dict[str, Any]]:
        return self.rows("select * from tickets.issue order by ticket_id, tracker")

    def changes(self) -> list[dict[str, Any]]:
        return self.rows("select * from tickets.change order by change_id")

    def actions(self) -> list[str]:
        return [change["action"] for change in self.changes()]

    def clear(self) -> None:
        with self.engine.begin() as connection:
            for table in ("load", "coverage", "detector_run", "evaluation", "cause", "weighing"):
                connection.execute(sa.text(f"delete from detect.{table}"))
            names = ", ".join(f"tickets.{name}" for name in ("ticket", "change", "issue", "manual_link", "response"))
            connection.execute(sa.text(f"truncate {names} restart identity"))


def resource(resource_name: str, detector_id: str) -> Resource:
    """A resource of a scenario: the last part of its key is its name."""
    kind = DETECTORS[detector_id].resource_kind
    columns = dict(
        zip(
            KINDS[kind],
            {"volume": ("1", "r", resource_name), "cluster": (resource_name,)}.get(kind, ("c", resource_name)),
            strict=True,
        )
    )
    return Resource(kind, columns, resource_name)


def fingerprint_of(resource_name: str, detector_id: str = "ebs_volume_starving") -> str:
    return Finding(
        detector_id, resource(resource_name, detector_id), "bad", "firing", "critical", {}, "It is bad."
    ).fingerprint


def mute(
    engine: sa.Engine, ticket_id: int, *, until: datetime | None, who: str, why: str, now: datetime | None = None
) -> None:
    """Snoozes a ticket by the command line; for good (won't fix) when `until` is null."""
    respond_to(engine, ticket_id, Response("snooze" if until else "wont_fix", who, COMMAND_LINE, why, until), now)


def unmute(engine: sa.Engine, ticket_id: int, *, who: str) -> None:
    """Removes the mute of a ticket by the command line."""
    respond_to(engine, ticket_id, Response("unmute", who, COMMAND_LINE))


def respond_to(engine: sa.Engine, ticket_id: int, response: Response, now: datetime | None = None) -> list[str]:
    """A person responds to the finding of a ticket. Returns what `respond` returns."""
    with engine.begin() as connection:
        query = sa.text("select fingerprint from tickets.ticket where ticket_id = :id")
        return respond(connection, connection.execute(query, {"id": ticket_id}).scalar_one(), response, now)


@dataclass
class MemorySink:
    """An in-memory tracker that keeps everything it receives. `broken` and `break_after_create` make it raise."""

    name: str = "console"
    remembers: bool = True
    takes_files: bool = False
    settles: timedelta = timedelta(0)
    issue_drafts: list[IssueDraft] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    broken: Exception | None = None
    break_after_create: Exception | None = None

    def check(self) -> str:
        return "works"

    def find(self, fingerprint: str) -> Issue | None:
        if self.broken:
            raise self.broken
        keys = [
            str(number)
            for number, issue_draft in enumerate(self.issue_drafts)
            if issue_draft.fingerprint == fingerprint
        ]
        return self._issue(keys[-1]) if keys else None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        if self.broken:
            raise self.broken
        return self._issue(key)

    def _issue(self, key: str) -> Issue:
        return Issue(key, f"http://tracker/{key}", self.states.get(key, "open"))  # type: ignore[arg-type]

    def has(self, update: Update) -> bool:
        return update.marker in {done.marker for done in self.updates}

    def create(self, issue_draft: IssueDraft) -> Issue:
        self.issue_drafts.append(issue_draft)
        if self.break_after_create:
            raise self.break_after_create
        key = str(len(self.issue_drafts) - 1)
        return Issue(key, f"http://tracker/{key}", "open")

    def update(self, update: Update) -> None:
        self.updates.append(update)
        before = self.states.get(update.key, "open")
        after = {"close": "closed", "reopen": "open"}.get(update.action, before)
        self.states[update.key] = update.answer or after
