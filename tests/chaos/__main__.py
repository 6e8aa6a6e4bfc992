"""`make chaos [PART=hour] [N=1000]`: random kills and faults; the result must be as if there had been none.

    trackers   requests to each tracker lost, late, doubled, wrong: the property tests of `make test` with more examples
    hour       the hour while drivers, JVMs, PostgreSQL, brokers, AWS, metrics, the tracker, and Airflow fail

A round of `hour` draws an app, sometimes all apps, and up to six faults from its seed and number: `--seed 7 --round 17`
repeats that round. Some rounds run several hours in random order, some the DAG in a real Airflow. Rounds are run until
N faults occurred. An incomplete hour is run again. With `--keep FILE` a run with the same seed continues where the last
one ended; SIGTERM ends it after the current rounds. The exit code is 1 if anything was lost, doubled, or not reported.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos.faults import FAULTS
from tests.chaos.rounds import ALL, Outcome
from tests.chaos.share import share, shares_of

TRACKERS = "tests/plugins/tickets/sinks/test_chaos.py"
console = Console(highlight=False, soft_wrap=True, width=160)


def main() -> int:
    """Runs one part, or all. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["all", "trackers", "hour"], default="all")
    parser.add_argument(
        "-n", type=int, default=1000, help="faults of the hour, and examples of each tracker's test (default: 1000)"
    )
    parser.add_argument("-k", default="", help="trackers: only tests of this name, for example the kind of a tracker")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="hour: seed of the draws")
    parser.add_argument("--round", type=int, help="hour: run only this round")
    parser.add_argument("--only", default="", help="hour: these faults, comma-separated, instead of drawn ones")
    parser.add_argument(
        "--keep", type=Path, help="hour: file of the outcome of each round; rounds in it are not run again"
    )
    parser.add_argument("--worlds", type=int, default=3, help="hour: number of worlds in parallel (default: 3)")
    given = parser.parse_args()
    codes = []
    with ThreadPoolExecutor() as parts:
        if given.part in ("all", "trackers"):
            trackers = parts.submit(_trackers, given.n, given.k)
        if given.part in ("all", "hour"):
            numbers = range(given.n) if given.round is None else [given.round]
            only = [name for name in given.only.split(",") if name]
            codes.append(_hour(numbers, given.n, given.seed, only, min(given.worlds, len(numbers)), given.keep))
        if given.part in ("all", "trackers"):
            codes.append(trackers.result())
    return max(codes)


def _trackers(most: int, only: str) -> int:
    """Runs the tests one after the other on one core; prints their output at the end."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", TRACKERS, *(["-k", only] * bool(only))]
    with tempfile.TemporaryDirectory(prefix="chaos") as folder:
        tally = Path(folder) / "tally.json"
        asked = {"CHAOS_EXAMPLES": str(most), "CHAOS_TALLY": str(tally)}
        ended = subprocess.run(command, env=os.environ | asked, check=False, stdout=subprocess.PIPE, text=True)
        console.print(ended.stdout)
        code = ended.returncode
        if tally.exists():
            for subject, counted in json.loads(tally.read_text(encoding="utf-8")).items():
                console.print(_counts(subject, counted))
    return code


def _counts(subject: str, counted: dict[str, dict[str, int]]) -> Table:
    """Counts by tracker: of requests by fault, or of changes by outcome."""
    table = Table(subject, *counted, box=None)
    for what in dict.fromkeys(what for found in counted.values() for what in found):
        table.add_row(what, *(f"{found.get(what, 0):,}" for found in counted.values()))
    return table


def _hour(
    numbers: Sequence[int], most: int, seed: int, only: Sequence[str], worlds: int, keep: Path | None = None
) -> int:
    """Runs the rounds in parallel worlds, each a process with its own broker, PostgreSQL, and tracker."""
    console.print(f"until {most:,} faults occurred, seed {seed}, in {worlds} worlds")
    for fault in FAULTS:
        if not fault.is_available:
            console.print(f"skipped, because this host does not have the tools: {fault.name} (docker/setup.sh)")
    done = _kept(keep, seed)
    numbers, outcomes, failed_rounds = [number for number in numbers if number not in done], list(done.values()), 0
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(worlds, spawn) as pool:
        output, enough = manager.Queue(), manager.Event()
        ended = threading.Event()  # a signal handler must not use `enough`: it calls another process
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        shares = [
            pool.submit(share, rounds, seed, only, output, enough) for rounds in shares_of(numbers, seed, only, worlds)
        ]
        while not (all(one.done() for one in shares) and output.empty()):
            with suppress(queue.Empty):
                received = output.get(timeout=1)
                if isinstance(received, str):
                    failed_rounds += 1
                    console.print(f"a round raised: {received[:6_000]}", markup=False)
                    continue
                number, outcome = received
                outcomes.append(outcome)
                if keep:
                    with keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"seed": seed, "round": number, "outcome": asdict(outcome)}) + "\n")
                _print_outcome(number, outcome, len(outcomes))
            if ended.is_set() or _faults(outcomes) >= most:
                enough.set()
    console.print(_table(outcomes))
    wrong = sum(bool(one.wrong) for one in outcomes)
    full_hours = sum(outcome.apps == ALL for outcome in outcomes)
    console.print(
        f"{_faults(outcomes):,} faults in {len(outcomes):,} rounds, {full_hours} of them with all apps;"
        f" {wrong} of the rounds wrong, {failed_rounds} raised"
    )
    for one in shares:
        if error := one.exception():
            failed_rounds += 1
            console.print(f"a world raised: {error}", markup=False)
    return 1 if wrong or failed_rounds else 0


def _kept(keep: Path | None, seed: int) -> dict[int, Outcome]:
    """Outcomes of earlier rounds of this seed, by number."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep and keep.exists() else []
    found = [json.loads(line) for line in lines]
    return {
        one["round"]: Outcome(**one["outcome"] | {"apps": tuple(one["outcome"]["apps"])})
        for one in found
        if one["seed"] == seed
    }


def _faults(outcomes: Sequence[Outcome]) -> int:
    return sum(len(outcome.faults) for outcome in outcomes)


def _print_outcome(number: int, outcome: Outcome, so_far: int) -> None:
    hour = "the hour" if outcome.apps == ALL else outcome.apps[0]
    met = ", ".join(outcome.faults)
    console.print(
        f"{so_far}. round {number}, {hour}: {met}: {outcome.disturbed}, {outcome.repaired}, {outcome.seconds:.0f} s"
    )
    for line in outcome.wrong:
        console.print(f"   {line[:6_000]}", style="red", markup=False)


def _table(outcomes: list[Outcome]) -> Table:
    """Rounds by fault: how the disturbed runs ended, how and how fast the hour became complete, how many were wrong."""
    ends, ways = ("complete", "incomplete", "gone", "hung"), ("by itself", "by rerun", "by restart and rerun")
    table = Table("fault", "rounds", *ends, *ways, "wrong", "median s", "most s", box=None)
    for fault in FAULTS:
        met = [one for one in outcomes if fault.name in one.faults]
        if met:
            seconds = [one.seconds for one in met]
            metrics = [
                len(met),
                *(sum(one.disturbed == end for one in met) for end in ends),
                *(sum(one.repaired == way for one in met) for way in ways),
                sum(bool(one.wrong) for one in met),
            ]
            table.add_row(fault.name, *map(str, metrics), f"{statistics.median(seconds):.0f}", f"{max(seconds):.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
