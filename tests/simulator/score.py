"""Precision, recall, and lead time: verdicts of a detector compared with the truth about the fleet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple, cast

from rich.console import Console
from rich.table import Table
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import Detector
from streamwarden.detectors.episodes import Status, replay

from tests.simulator.scenario import Fault, Truth, Verdict

SETTLE = timedelta(minutes=10)
"""Delay of the evaluation after the end of an hour."""
RECALL, PRECISION, RIGHT_VERDICTS, WARNED, FORECAST_ERROR, CLAIMS = 0.98, 0.98, 0.98, 0.95, 0.15, 0.98
AHEAD, SEEN = 2 * HOUR, timedelta(minutes=25)
"""Part of a new lasting load that an hour must contain: with less, the load cannot be distinguished from a burst."""


class Goal(NamedTuple):
    """A measured value and its goal."""

    name: str
    metric: float
    limit: float
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        return self.metric <= self.limit if self.at_most else self.metric >= self.limit


@dataclass
class Score:
    """The score of one analysis."""

    analysis: str
    cases: int
    resources: int
    unknown: int
    faults: int
    missed: list[Fault] = field(default_factory=list)
    refuted: int = 0
    """Tickets that were right by the data of their hour and were refuted by later data; they count neither way."""
    false_alarms: list[tuple[Verdict, str]] = field(default_factory=list)
    """With the decoy that caused it."""
    compared: int = 0
    """Faults that were found in the hour in which they were due, and whose valid verdicts are known."""
    wrong_verdicts: list[tuple[Fault, Verdict]] = field(default_factory=list)
    """Those of them with another verdict."""
    warnings: list[tuple[Fault, timedelta]] = field(default_factory=list)
    """Lead time of the finding before the outage, of faults that an hourly run could find AHEAD of it: the first
    hour with enough of the load was evaluated by then."""
    errors: list[float] = field(default_factory=list)
    """Relative errors of a forecast."""
    error_of: str = ""
    claims: Counter[str] = field(default_factory=Counter)
    """Number of claims that can be compared with the truth, by kind: since when, or which action helps."""
    false_claims: list[tuple[str, Fault, Verdict, str]] = field(default_factory=list)
    """The false ones, each with the difference."""

    wrong: list[str] = field(default_factory=list)
    """Other errors, one line each."""

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.faults if self.faults else 1.0

    @property
    def tickets(self) -> int:
        """Tickets: one per fault found, however many evaluated hours found it, plus the false alarms."""
        return self.faults - len(self.missed) + len(self.false_alarms)

    @property
    def precision(self) -> float:
        return 1 - len(self.false_alarms) / self.tickets if self.tickets else 1.0

    @property
    def warned(self) -> float | None:
        """Share of faults found AHEAD of the outage."""
        return sum(lead >= AHEAD for _, lead in self.warnings) / len(self.warnings) if self.warnings else None

    @property
    def error(self) -> float | None:
        return median(self.errors) if self.errors else None

    @property
    def right_verdict_ratio(self) -> float:
        return 1 - len(self.wrong_verdicts) / self.compared if self.compared else 1.0

    def claim(self, name: str, fault: Fault, verdict: Verdict, wrong: str | None) -> None:
        """Counts a claim; `wrong` is the reason why it is false, else None."""
        self.claims[name] += 1
        if wrong:
            self.false_claims.append((name, fault, verdict, wrong))

    @property
    def goals(self) -> list[Goal]:
        """The goals of this analysis."""
        rows = [Goal("recall", self.recall, RECALL), Goal("precision", self.precision, PRECISION)]
        if self.compared:
            rows.append(
                Goal(f"severity and direction right, of {self.compared}", self.right_verdict_ratio, RIGHT_VERDICTS)
            )
        if self.warned is not None:
            rows.append(Goal(f"warned ≥ {AHEAD // HOUR} h ahead, of {len(self.warnings)}", self.warned, WARNED))
        if self.error is not None:
            name = f"{self.error_of}: median error, of {len(self.errors)}"
            rows.append(Goal(name, self.error, FORECAST_ERROR, at_most=True))
        for name, count in self.claims.items():
            false = sum(each[0] == name for each in self.false_claims)
            rows.append(Goal(f"{name}, of {count}", 1 - false / count, CLAIMS))
        return rows


def pooled(scores: Sequence[Score]) -> Score:
    """Pools several seeds of one analysis into one score."""
    total = type(scores[0])(scores[0].analysis, 0, 0, 0, 0)
    for each in scores:
        for name, value in vars(each).items():
            if name != "analysis" and not isinstance(value, str):
                setattr(total, name, getattr(total, name) + value)
        total.error_of = total.error_of or each.error_of
    return total


def score(analysis: str, detector: Detector, verdicts: Sequence[Verdict], truth: Truth) -> Score:
    """Compares verdicts with the truth: faults by the hours in which they are due, tickets by their resources."""
    by_resource: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in sorted(verdicts, key=lambda v: v.hour):
        by_resource[verdict.resource_name].append(verdict)
    unknown = sum(v.status == "unknown" for v in verdicts)
    result = Score(analysis, len(verdicts), len(by_resource), unknown, len(truth.faults))
    leads: dict[tuple[str, datetime, datetime], tuple[Fault, timedelta]] = {}
    for fault in truth.faults:
        expected = [v.hour for v in by_resource[fault.resource_name] if v.status == "firing" and _during(v.hour, fault)]
        if not expected or expected[0] > fault.due:
            result.missed.append(fault)
        for verdict in by_resource[fault.resource_name]:
            if fault.hurts_from and max(fault.due, fault.hurts_from) <= verdict.hour <= fault.ends - HOUR:
                wrong = verdict.message if verdict.status == "ok" else None
                result.claim("expected throughout", fault, verdict, wrong)
            if fault.verdicts and verdict.hour == fault.due and verdict.status == "firing":
                result.compared += 1
                if verdict.verdict not in fault.verdicts:
                    result.wrong_verdicts.append((fault, verdict))
        first = start_of_hour(fault.begins + SEEN)
        if fault.outage and fault.outage - _evaluated_at(first) >= AHEAD:
            lead = fault.outage - _evaluated_at(expected[0]) if expected else timedelta(0)
            cause = (fault.kind, fault.begins, fault.outage)  # one finding on any volume of an instance is enough, say
            leads[cause] = max(leads.get(cause, (fault, lead)), (fault, lead), key=lambda each: each[1])
    result.warnings = list(leads.values())
    for resource_name, said in by_resource.items():
        for ticket in tickets(detector, said):
            if any(f.resource_name == resource_name and _during(ticket.hour, f) for f in truth.faults):
                continue
            if _is_unclear(ticket, truth):
                result.refuted += 1
            else:
                result.false_alarms.append((ticket, truth.decoys.get(resource_name, "healthy")))
    return result


def at_once(detector: Detector) -> Detector:
    """The same detector with a ticket for the first firing verdict: one evaluated hour per resource represents many."""
    return replace(detector, open_after_hours=1)


def tickets(detector: Detector, said: Sequence[Verdict]) -> Iterator[Verdict]:
    """Verdicts that create a ticket by the product's rules, in each consecutive run of evaluated hours."""
    for run in _runs(said):
        opened: datetime | None = None
        for n in range(1, len(run) + 1):
            hours = [(v.hour, cast(Status, v.status)) for v in run[:n]]
            standing = replay("", detector, hours, None)
            if standing.open_since is not None and standing.open_since != opened:
                yield run[n - 1]
            opened = standing.open_since


def _runs(said: Iterable[Verdict]) -> list[list[Verdict]]:
    runs: list[list[Verdict]] = []
    for verdict in said:
        if runs and verdict.hour - runs[-1][-1].hour == HOUR:
            runs[-1].append(verdict)
        else:
            runs.append([verdict])
    return runs


def _evaluated_at(hour: datetime) -> datetime:
    return hour + HOUR + SETTLE


def _during(hour: datetime, fault: Fault) -> bool:
    return start_of_hour(fault.begins) <= hour <= fault.ends


def _is_unclear(ticket: Verdict, truth: Truth) -> bool:
    return any(
        resource_name == ticket.resource_name and start_of_hour(start) <= ticket.hour <= end
        for resource_name, start, end in truth.unclear
    )


def metrics(score: Score) -> str:
    """One line of metrics for a seed."""
    return ", ".join(f"{goal.name.split(',')[0]} {goal.metric:.3f}" for goal in score.goals)


def show_wrong(console: Console, score: Score, again: str) -> None:
    """Prints each missed fault, false alarm, and false claim, with the command that reproduces it."""
    name = score.analysis
    for line in score.wrong:
        _show(console, f"[red]wrong[/] {name}: {line}", again)
    for fault in score.missed:
        _show(console, f"[red]missed[/] {name}: {fault.resource_name} ({fault.kind}), due {_at(fault.due)}", again)
    for fault, verdict in score.wrong_verdicts:
        said = f"{verdict.verdict}, not {' or '.join(fault.verdicts)}: {verdict.message}"
        _show(
            console,
            f"[red]wrong verdict[/] {name}: {fault.resource_name} ({fault.kind}) at {_at(fault.due)}: {said}",
            again,
        )
    for verdict, decoy in score.false_alarms:
        where = f"{verdict.resource_name} ({decoy}) at {_at(verdict.hour)}"
        _show(console, f"[red]false alarm[/] {name}: {where}: {verdict.message}", again)
    for fault, lead in score.warnings:
        if lead < AHEAD:
            times = f"begun {fault.begins:%d %H:%M}, outage {fault.outage:%d %H:%M}: {lead / HOUR:.1f} h ahead"
            _show(console, f"[yellow]late[/] {name}: {fault.resource_name} ({fault.kind}), {times}", again)
    for claim, fault, verdict, wrong in score.false_claims:
        where = f"{fault.resource_name} ({fault.kind}) at {_at(verdict.hour)}"
        _show(console, f"[red]not so: {claim}[/] {name}: {where}: {wrong}", again)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _show(console: Console, line: str, again: str) -> None:
    console.print(f"{line} [dim]({again})[/]")


def show(console: Console, scores: Sequence[Score]) -> bool:
    """Prints each analysis; returns whether every goal is met."""
    table = Table("analysis", "evaluated", "faults", "tickets", "unknown", "goal", "figure", "limit", "", box=None)
    for each in scores:
        evaluated = f"{each.cases} h of {each.resources}"
        left = [each.analysis, evaluated, str(each.faults), str(each.tickets), str(each.unknown)]
        for goal in each.goals:
            limit = f"{'≤' if goal.at_most else '≥'} {goal.limit}"
            table.add_row(*left, goal.name, f"{goal.metric:.3f}", limit, "met" if goal.is_met else "[red]missed")
            left = [""] * 5
    console.print(table)
    for each in scores:
        if each.refuted:
            made = each.refuted + each.tickets
            console.print(
                f"{each.analysis}: {each.refuted} of {made} tickets ({each.refuted / made:.0%}) count neither way: what"
                " they foretold was right by what was known then and ended by itself, or it had only just ended, or"
                " hurt a little."
            )
    leads = [lead / HOUR for each in scores for _, lead in each.warnings]
    if leads:
        console.print(f"Hours of warning: median {median(leads):.1f}, least {min(leads):.1f}.")
    return all(goal.is_met for each in scores for goal in each.goals)
