"""`make chaos [PART=hour] [N=1000]`: random kills and faults, and whether all is as if there had been none.

    trackers   requests to each tracker lost, late, doubled, wrong: the property tests that `make test` runs with few
    hour       the whole hour while drivers, JVMs, PostgreSQL, brokers, AWS, metrics and the tracker fail

A round of `hour` draws an app, now and then all, and up to six faults, by its seed and number alone: `--seed 7
--round 17` is that one again; there are rounds until N faults were met. An hour that isn't whole then is run again.
With `--keep FILE` a run of the same seed goes on where the last one ended; SIGTERM ends it after the rounds under way.
The exit code is 1 when anything was lost, doubled or not told.
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
from tests.chaos.share import share

TRACKERS = "tests/plugins/tickets/sinks/test_chaos.py"
console = Console(highlight=False, soft_wrap=True, width=160)


def main() -> int:
    """Runs one part, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["all", "trackers", "hour"], default="all")
    parser.add_argument(
        "-n", type=int, default=1000, help="faults of the hour, and examples of each tracker's test (default: 1000)"
    )
    parser.add_argument("-k", default="", help="trackers: only tests of this name, e.g. a tracker's kind")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="hour: what is drawn")
    parser.add_argument("--round", type=int, help="hour: this one only")
    parser.add_argument("--only", default="", help="hour: these faults, comma-separated, instead of drawn ones")
    parser.add_argument(
        "--keep", type=Path, help="hour: a file of what came of each round; those in it aren't done again"
    )
    parser.add_argument("--worlds", type=int, default=3, help="hour: how many side by side (default: 3)")
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
    """One test after the other, which takes one core; what they said is told when they end."""
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
    """By tracker: requests by the fault that they met, or changes by what came of them."""
    table = Table(subject, *counted, box=None)
    for what in dict.fromkeys(what for found in counted.values() for what in found):
        table.add_row(what, *(f"{found.get(what, 0):,}" for found in counted.values()))
    return table


def _hour(
    numbers: Sequence[int], most: int, seed: int, only: Sequence[str], worlds: int, keep: Path | None = None
) -> int:
    """Shared out to worlds side by side, each a process with a broker, a PostgreSQL and a tracker of its own."""
    console.print(f"until {most:,} faults were met, seed {seed}, in {worlds} worlds")
    for fault in FAULTS:
        if not fault.can_be:
            console.print(f"not drawn, for this machine lacks what it takes: {fault.name} (docker/setup.sh)")
    done = _kept(keep, seed)
    numbers, outcomes, broke_off = [number for number in numbers if number not in done], list(done.values()), 0
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(worlds, spawn) as pool:
        output, enough = manager.Queue(), manager.Event()
        ended = threading.Event()  # `enough` is another process's: what is under way with it a signal may not cross
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        shares = [pool.submit(share, numbers[start::worlds], seed, only, output, enough) for start in range(worlds)]
        while not (all(one.done() for one in shares) and output.empty()):
            with suppress(queue.Empty):
                said = output.get(timeout=1)
                if isinstance(said, str):
                    broke_off += 1
                    console.print(f"a round broke off: {said[:6_000]}", markup=False)
                    continue
                number, outcome = said
                outcomes.append(outcome)
                if keep:
                    with keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"seed": seed, "round": number, "outcome": asdict(outcome)}) + "\n")
                _tell(number, outcome, len(outcomes))
            if ended.is_set() or _faults(outcomes) >= most:
                enough.set()
    console.print(_table(outcomes))
    wrong = sum(bool(one.wrong) for one in outcomes)
    whole_hours = sum(outcome.apps == ALL for outcome in outcomes)
    console.print(
        f"{_faults(outcomes):,} faults in {len(outcomes):,} rounds, {whole_hours} of them whole hours;"
        f" {wrong} of the rounds wrong, {broke_off} broke off"
    )
    for one in shares:
        if error := one.exception():
            broke_off += 1
            console.print(f"a world broke off: {error}", markup=False)
    return 1 if wrong or broke_off else 0


def _kept(keep: Path | None, seed: int) -> dict[int, Outcome]:
    """What came of the rounds of this seed that were done before."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep and keep.exists() else []
    found = [json.loads(line) for line in lines]
    return {
        one["round"]: Outcome(**one["outcome"] | {"apps": tuple(one["outcome"]["apps"])})
        for one in found
        if one["seed"] == seed
    }


def _faults(outcomes: Sequence[Outcome]) -> int:
    return sum(len(outcome.faults) for outcome in outcomes)


def _tell(number: int, outcome: Outcome, so_far: int) -> None:
    hour = "the hour" if outcome.apps == ALL else outcome.apps[0]
    met = ", ".join(outcome.faults)
    console.print(
        f"{so_far}. round {number}, {hour}: {met}: {outcome.disturbed}, {outcome.repaired}, {outcome.seconds:.0f} s"
    )
    for line in outcome.wrong:
        console.print(f"   {line[:6_000]}", style="red", markup=False)


def _table(outcomes: list[Outcome]) -> Table:
    """Faults by kind: how the disturbed runs ended, how the hour became whole and in which time, what was wrong."""
    ends, ways = ("whole", "incomplete", "gone", "hung"), ("by itself", "by rerun", "by restart and rerun")
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
