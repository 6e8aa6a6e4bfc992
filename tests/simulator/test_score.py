"""The scorer: what counts as found, as missed, as a false alarm, and as found in time."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console
from streamwarden.base.hours import HOUR
from streamwarden.detectors import load_detectors

from tests.simulator import courses
from tests.simulator.__main__ import PARTS, by_analysis, scores_of, seeds_of
from tests.simulator.plateau import DEFAULTS, Variant, table, variants
from tests.simulator.scenario import SMALL, START, Case, Fault, Truth, Verdict
from tests.simulator.score import SETTLE, Score, pooled, score, show, show_wrong

DETECTOR = load_detectors()["ebs_volume_starving"]
LAGGING = load_detectors()["consumer_group_lagging"]
OUTAGE = START + 9.5 * HOUR
FAULT = Fault("disk", "empties", START + 5.25 * HOUR, START + 9 * HOUR, START + 12 * HOUR, OUTAGE)


def scored(statuses: str, truth: Truth | None = None, resource_name: str = "disk") -> Score:
    """Score of one verdict per hour from START on: a firing, o ok, s unknown, space not evaluated."""
    names = {"a": "firing", "o": "ok", "s": "unknown"}
    said = [Verdict(resource_name, START + n * HOUR, names[s], "…") for n, s in enumerate(statuses) if s != " "]
    return score("disks", DETECTOR, said, truth or Truth([FAULT]))


@pytest.mark.parametrize(
    ("statuses", "missed", "false"),
    [
        ("ooooooaaaaaao", 0, 0),
        ("oooooooooaaao", 0, 0),
        ("ooooooooooaao", 1, 0),
        ("ooooooooooooo", 1, 0),
        ("aooooooooaaao", 0, 1),
        ("aosaooooaaaao", 0, 1),
        ("aooaooaaaaaao", 0, 2),
        ("ooooooaaaaaaa", 0, 0),
        ("      a o a", 0, 0),
        ("a o a a o aaa", 0, 2),
    ],
)
def test_tickets_against_a_fault(statuses: str, missed: int, false: int) -> None:
    result = scored(statuses)
    assert (len(result.missed), len(result.false_alarms)) == (missed, false)
    assert result.tickets == 1 - missed + false


def test_lead_time_counts_from_when_the_hour_is_evaluated() -> None:
    [(_, lead)] = scored("oooooaaaaa").warnings
    assert lead == OUTAGE - (START + 6 * HOUR + SETTLE) == timedelta(hours=3, minutes=20)
    assert scored("oooooaaaaa").warned == 1 and scored("oooooooaaa").warned == 0
    sudden = Fault("disk", "empties", OUTAGE - 2 * HOUR, START + 9 * HOUR, START + 12 * HOUR, OUTAGE)
    assert scored("ooooooooaa", Truth([sudden])).warned is None


@pytest.mark.parametrize(("minutes_before", "is_asked"), [(240, True), (176, True), (174, False), (120, False)])
def test_a_warning_is_expected_only_if_an_hourly_run_could_give_it_in_time(minutes_before: int, is_asked: bool) -> None:
    """The outage is at 09:30: the hour 06:00, evaluated at 07:10, is the last that can fire two hours before."""
    begins = OUTAGE - timedelta(minutes=minutes_before)
    fault = Fault("disk", "empties", begins, START + 9 * HOUR, START + 12 * HOUR, OUTAGE)
    assert bool(scored("ooooooaaaa", Truth([fault])).warnings) is is_asked


def test_unclear_spans_count_neither_way() -> None:
    truth = Truth(unclear=[("disk", START + 2 * HOUR, START + 3 * HOUR)], decoys={"disk": "recovers"})
    result = scored("ooaoo", truth)
    assert (result.refuted, result.tickets) == (1, 0)
    result = scored("ooooa", truth)
    assert [decoy for _, decoy in result.false_alarms] == ["recovers"] and result.precision == 0


def test_a_fault_with_another_verdict_is_listed() -> None:
    fault = replace(FAULT, outage=None, verdicts=("critical: restore",))
    said = [
        Verdict("disk", fault.due, "firing", "…", verdict) for verdict in ("critical: restore", "warning: rollback")
    ]
    right, wrong = (score("disks", DETECTOR, [each], Truth([fault])) for each in said)
    assert (right.compared, right.wrong_verdicts, right.right_verdict_ratio) == (1, [], 1.0)
    assert (wrong.compared, wrong.wrong_verdicts, wrong.missed) == (1, [(fault, said[1])], [])
    assert [goal.name for goal in wrong.goals if not goal.is_met] == ["severity and direction right, of 1"]


def test_a_case_is_parsed_from_its_name() -> None:
    case = Case("vol-1", START + 30 * HOUR)
    assert Case.of(case.name) == case


def test_a_missed_goal_is_named_with_the_command_that_reproduces_it() -> None:
    verdict = Verdict("vol-2", START, "firing", "Its bucket will be empty.")
    result = Score("starving volumes", 10, 2, 0, 1, [FAULT], false_alarms=[(verdict, "nightly batch")])
    result.claim("advice", FAULT, verdict, "1,000 IOPS advised, 2,000 wanted")
    result.claim("advice", FAULT, verdict, None)
    out = io.StringIO()
    console = Console(file=out, width=250)
    show_wrong(console, result, "make evaluate SEED=7 ONLY=volumes")
    assert not show(console, [result])
    said = out.getvalue()
    assert "missed starving volumes: disk (empties), due" in said
    assert "false alarm starving volumes: vol-2 (nightly batch)" in said
    assert "not so: advice starving volumes: disk (empties)" in said and "2,000 wanted" in said
    assert said.count("(make evaluate SEED=7 ONLY=volumes)") == 3
    better = replace(result, missed=[], false_alarms=[], false_claims=[])
    assert show(Console(file=io.StringIO()), [better])


def test_seeds_are_pooled_as_one_fleet() -> None:
    good, bad = scored("oooooaaaaa"), scored("aooooooooo")
    both = pooled([good, bad])
    assert (both.faults, len(both.missed), len(both.false_alarms)) == (2, 1, 1)
    assert (both.recall, both.precision) == (0.5, 0.5)
    assert both.warnings == good.warnings + bad.warnings and both.cases == good.cases + bad.cases


def test_a_part_may_score_several_detectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is pooled separately over its seeds, in order of first occurrence."""
    one, two = replace(scored("oooooaaaaa"), analysis="slow"), replace(scored("aooooooooo"), analysis="full")
    monkeypatch.setitem(PARTS, "brokers", lambda *_: [one, two])
    monkeypatch.setitem(PARTS, "lag", lambda *_: one)
    bench: Any = None
    assert scores_of("brokers", bench, SMALL) == [one, two] and scores_of("lag", bench, SMALL) == [one]
    pooled_both = by_analysis([one, two, one, two])
    assert [(each.analysis, each.faults, len(each.missed)) for each in pooled_both] == [("slow", 2, 0), ("full", 2, 2)]


def test_seeds_are_drawn_unless_they_are_named() -> None:
    assert seeds_of({"SEED": "7"}) == seeds_of({"SEEDS": "7,"}) == [7]
    assert seeds_of({"SEEDS": "1,2,3"}) == [1, 2, 3]
    first, second = seeds_of({"SEEDS": "20"}), seeds_of({"SEEDS": "20"})
    assert len({*first}) == len({*second}) == 20 and first != second
    assert len(seeds_of({})) == 1


@pytest.mark.parametrize("asked", [{"SEED": "x"}, {"SEEDS": "1,-2"}, {"SEEDS": "0"}, {"SEED": "1", "SEEDS": "2"}])
def test_invalid_seeds_are_one_clear_line(asked: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="SEED"):
        seeds_of(asked)


def test_an_ok_verdict_in_the_middle_of_a_fault_is_a_false_claim() -> None:
    fault = replace(FAULT, ends=START + 13 * HOUR, hurts_from=OUTAGE)
    result = scored("ooooooaaaaosoo", Truth([fault]))
    assert result.claims["expected throughout"] == 3
    assert [verdict.hour for _, _, verdict, _ in result.false_claims] == [START + 10 * HOUR, START + 12 * HOUR]


def test_a_seed_is_not_taken_for_a_number_of_seeds() -> None:
    with pytest.raises(ValueError, match=r"79963 seeds never end \(1,000 at most\); that seed is SEED=79963"):
        seeds_of({"SEEDS": "79963"})
    assert seeds_of({"SEEDS": "79963,"}) == [79963] and len(seeds_of({"SEEDS": "1000"})) == 1000


def test_a_plateau_varies_numbers_only_and_skips_what_rounds_to_the_default() -> None:
    made = [(variant.parameter, variant.value) for variant in variants(LAGGING)]
    assert ("late_seconds", 300) in made and ("late_seconds", 900) in made
    assert [value for name, value in made if name == "tail_records"] == [2], "1 x 0.5, 0.75, and 1.25 round to 0 or 1"
    assert {type(value) for _, value in made} == {int}
    changed = Variant("late_seconds", 0.5, 300).config(LAGGING)
    assert LAGGING.params_in_force(changed)["late_seconds"] == 300


def test_a_plateau_table_shows_only_what_differs_from_the_defaults() -> None:
    perfect, worse = Score("lag", 10, 5, 0, 4), Score("lag", 10, 5, 0, 4, missed=[FAULT])
    scores = {
        DEFAULTS: [perfect],
        Variant("late_seconds", 0.5, 300): [worse],
        Variant("late_seconds", 1.5, 900): [perfect],
    }
    assert list(table(LAGGING, scores))[-2] == (
        "| late_seconds | 600 seconds | 1.000 / 0.750 | rounds to the default | rounds to the default | = |"
    )


def test_a_course_counts_what_opens_and_closes_and_what_changes_without_data() -> None:
    course = courses.Course("clears", "c1", [(1.0, 2.0)], silent={3})
    hurts, well = courses.State(True, True, False, True), courses.State(False, False, True, True)
    silent, is_late = courses.State(True, True, False, False), courses.State(True, False, False, True)
    states = [well, hurts, hurts, silent, well, well, well, well]
    volume, group = "ebs_volume_starving volume:1/r/c1-v1", "consumer_group_lagging group:c1/checkout"
    root = "volume:1/r/c1-v1"

    def score(*seen: list[str], root: str = root) -> courses.CoursesScore:
        result = courses.CoursesScore("courses", 0, 0, 0, 0)
        courses._score(result, course, states, [dict.fromkeys(each, (7, root)) for each in seen], skipped={2})
        return result

    right = score([], [volume], [volume], [volume], [volume, group], [volume], [], [])
    assert right.wrong == [] and [goal.is_met for goal in right.goals] == [True] * 5
    late = score([], [], [volume], [], [], [], [volume], [], root="group:c1/checkout")
    unheard = ["nothing changes without data"] * 2
    assert [line.split(":")[0] for line in late.wrong] == ["open while it hurts", *unheard, "resolved once it is well"]
    foreign = score([], [volume], [volume], [volume], [group], [], [], [], root="broker:c1/2")
    assert [line.split(":")[0] for line in foreign.wrong] == ["root is the volume"]
    # The group is late before the volume was throttled for long enough to fire: it has no root yet.
    states[0] = is_late
    early = score([group], [group], [volume], [volume], [], [], [], [], root="group:c1/checkout")
    assert [line for line in early.wrong if line.startswith("root")] == [
        "root is the volume: c1 (clears), hour 1: group:c1/checkout"
    ]
