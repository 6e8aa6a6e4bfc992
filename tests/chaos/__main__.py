"""`make chaos [PART=hour] [N=1000]`: random kills and faults, and whether all is as if there had been none.

    trackers   requests to each tracker lost, late, doubled, wrong: the property tests that `make test` runs with few
    hour       the whole hour while drivers, JVMs, PostgreSQL, brokers, AWS, metrics and the tracker fail

A round of `hour` draws one to three faults, by its seed and number alone: `--seed 7 --round 17` is that one again. The
exit code is 1 when anything was lost, doubled or not told.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.rounds import Outcome, Reference, Runner, draw, one_round
from tests.chaos.world import World

TRACKERS = "tests/plugins/tickets/sinks/test_chaos.py"
console = Console(highlight=False, soft_wrap=True, width=160)


def main() -> int:
    """Runs one part, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["all", "trackers", "hour"], default="all")
    parser.add_argument("-n", type=int, default=1000, help="rounds, or examples of each test (default: 1000)")
    parser.add_argument("-k", default="", help="trackers: only tests of this name, e.g. a tracker's kind")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="hour: what is drawn")
    parser.add_argument("--round", type=int, help="hour: this one only")
    parser.add_argument("--only", default="", help="hour: these faults, comma-separated, instead of drawn ones")
    given = parser.parse_args()
    code = 0
    if given.part in ("all", "trackers"):
        code = _trackers(given.n, given.k)
    if given.part in ("all", "hour"):
        numbers = range(given.n) if given.round is None else [given.round]
        only = [fault for fault in FAULTS if fault.name in given.only.split(",")]
        code = max(code, _hour(numbers, given.seed, only))
    return code


def _trackers(most: int, only: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", TRACKERS, *(["-k", only] * bool(only))]
    with tempfile.TemporaryDirectory(prefix="chaos") as folder:
        tally = Path(folder) / "tally.json"
        asked = {"CHAOS_EXAMPLES": str(most), "CHAOS_TALLY": str(tally)}
        code = subprocess.run(command, env=os.environ | asked, check=False).returncode
        if tally.exists():
            for subject, counted in json.loads(tally.read_text(encoding="utf-8")).items():
                console.print(_counts(subject, counted))
    return code


def _counts(subject: str, counted: dict[str, dict[str, int]]) -> Table:
    """By tracker: requests by the fault that they met, or changes by what came of them."""
    table = Table(subject, *counted, box=None)
    for what in dict.fromkeys(what for found in counted.values() for what in found):
        table.add_row(what, *(f"{found.get(what, 0):,}" for found in counted.values()))
    return table


def _hour(numbers: Sequence[int], seed: int, only: list[Fault]) -> int:
    console.print(f"{len(numbers)} rounds, seed {seed}")
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True) as folder:
        for number, outcome in outcomes_of(Path(folder), numbers, seed, only):
            outcomes.append(outcome)
            met = ", ".join(outcome.faults)
            console.print(f"{number}: {met}: {outcome.disturbed}, whole again after {outcome.seconds:.0f} s")
            for line in outcome.wrong:
                console.print(f"   [red]{line[:1000]}")
    console.print(_table(outcomes))
    wrong = sum(bool(one.wrong) for one in outcomes)
    console.print(f"{len(outcomes)} rounds, {wrong} of them wrong")
    return 1 if wrong else 0


def outcomes_of(folder: Path, numbers: Sequence[int], seed: int, only: list[Fault]) -> Iterator[tuple[int, Outcome]]:
    """The rounds, one after the other, in one world; an hour that is spent gives way to the next."""
    with World(folder) as world:
        runner = Runner(world)
        try:
            reference = Reference.of(world, runner)
            for number in numbers:
                if world.hour_is_spent:
                    runner.kill()  # its Spark has the old hour's addresses
                    world.begin_hour()
                    reference = Reference.of(world, runner)
                chance = random.Random(f"{seed} {number}")  # noqa: S311 — not for secrets
                yield number, one_round(world, runner, reference, only or draw(chance), chance)
        finally:
            runner.kill()


def _table(outcomes: list[Outcome]) -> Table:
    """Faults by kind: how the disturbed runs ended, what was wrong, and how long until the hour was whole."""
    table = Table("fault", "rounds", "whole", "incomplete", "gone", "hung", "wrong", "median s", "most s", box=None)
    for fault in FAULTS:
        met = [one for one in outcomes if fault.name in one.faults]
        if met:
            ends = [sum(one.disturbed == end for one in met) for end in ("whole", "incomplete", "gone", "hung")]
            seconds = [one.seconds for one in met]
            figures = [len(met), *ends, sum(bool(one.wrong) for one in met)]
            table.add_row(fault.name, *map(str, figures), f"{statistics.median(seconds):.0f}", f"{max(seconds):.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
