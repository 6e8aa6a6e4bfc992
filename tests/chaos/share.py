"""A share of the rounds, which one process runs one after the other in its own world."""

from __future__ import annotations

import queue
import random
import tempfile
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.rounds import Outcome, Reference, Subject, draw_faults, draw_subject, one_round
from tests.chaos.runners import AirflowRunner, ProcessRunner, Runner
from tests.chaos.world import World

BLOCK = 300
"""Number of rounds that have fewer than 1,000 faults."""


def subject_of(number: int, seed: int, only: Sequence[str]) -> Subject:
    """What a round runs."""
    return draw_subject(_chance(seed, number), _wanted(only))


def shares_of(numbers: Iterable[int], seed: int, only: Sequence[str], worlds: int) -> list[list[int]]:
    """Numbers of the rounds by world.

    All rounds of a subject are in one world, which needs one reference for them. Airflow's are the last ones of each
    BLOCK, because they need another hour than the others.
    """
    by_subject: dict[Subject, list[int]] = defaultdict(list)
    for number in numbers:
        by_subject[subject_of(number, seed, only)].append(number)
    shares: list[list[int]] = [[] for _ in range(worlds)]
    for group in sorted(by_subject.values(), key=len, reverse=True):
        min(shares, key=len).extend(group)
    for share in shares:
        share.sort(key=lambda number: (number // BLOCK, subject_of(number, seed, only).kind == "airflow", number))
    return [share for share in shares if share]


def share(
    numbers: Sequence[int],
    seed: int,
    only: Sequence[str],
    output: queue.Queue[tuple[int, Outcome] | str],
    enough: threading.Event,
) -> None:
    """Runs these rounds and puts each (number, outcome) into `output`, until `enough` is set.

    If a round raises, which none should, its traceback is put into `output` as text. The next round has a new world.

    Raises:
        RuntimeError: the first round in a new world raised.
    """
    rest, is_usable = iter(numbers), True
    while is_usable:
        is_usable = False
        try:
            with tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True) as folder:
                for outcome in outcomes_of(Path(folder), rest, seed, only):
                    output.put(outcome)
                    is_usable = True
                    if enough.is_set():
                        return
            return
        except Exception as error:
            text = f"{error!r}\n{traceback.format_exc()}"
            if not is_usable:
                raise RuntimeError(text) from None  # not every exception can be pickled for another process
            output.put(text)


def outcomes_of(folder: Path, numbers: Iterable[int], seed: int, only: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
    """Runs the rounds one after the other in one world; begins the next hour when the current one is too old."""
    wanted = _wanted(only)
    references: dict[Subject, Reference] = {}
    with World(folder) as world:
        process, airflow = ProcessRunner(world), AirflowRunner(world)
        try:
            for number in numbers:
                chance = _chance(seed, number)
                subject = draw_subject(chance, wanted)
                for_airflow = subject.kind == "airflow"
                if world.is_hour_too_old or world.is_for_airflow != for_airflow:
                    _close(process, airflow)  # they have the addresses of the old hour
                    world.begin_hour(for_airflow=for_airflow)
                    references.clear()
                if subject not in references:
                    references[subject] = Reference.of(world, process, subject)
                faults = wanted or draw_faults(chance, references[subject])
                yield number, one_round(world, airflow if for_airflow else process, references[subject], faults, chance)
        finally:
            _close(process, airflow)


def _close(*runners: Runner) -> None:
    for runner in runners:
        runner.close()


def _wanted(only: Sequence[str]) -> list[Fault]:
    return [fault for fault in FAULTS if fault.name in only]


def _chance(seed: int, number: int) -> random.Random:
    return random.Random(f"{seed} {number}")  # noqa: S311 — not for secrets
