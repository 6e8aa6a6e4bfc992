"""A share of the rounds: what a process with a world of its own does, one after the other."""

from __future__ import annotations

import queue
import random
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.chaos.faults import FAULTS
from tests.chaos.rounds import Outcome, Reference, Runner, draw_apps, draw_faults, one_round
from tests.chaos.world import World


def share(
    numbers: Sequence[int],
    seed: int,
    only: Sequence[str],
    told: queue.Queue[tuple[int, Outcome]],
    enough: threading.Event,
) -> None:
    """Does these rounds and tells what came of each, until it is enough. RuntimeError with the traceback as text where
    the world breaks off: not every library's errors reach another process."""
    try:
        with tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True) as folder:
            for outcome in outcomes_of(Path(folder), numbers, seed, only):
                told.put(outcome)
                if enough.is_set():
                    break
    except Exception as error:
        raise RuntimeError(f"{error!r}\n{traceback.format_exc()}") from None


def outcomes_of(folder: Path, numbers: Sequence[int], seed: int, only: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
    """The rounds, one after the other, in one world; an hour that is spent gives way to the next."""
    wanted = [fault for fault in FAULTS if fault.name in only]
    references: dict[tuple[str, ...], Reference] = {}
    with World(folder) as world:
        runner = Runner(world)
        try:
            for number in numbers:
                if world.hour_is_spent:
                    runner.close()  # its Spark has the old hour's addresses
                    world.begin_hour()
                    references.clear()
                chance = random.Random(f"{seed} {number}")  # noqa: S311 — not for secrets
                apps = draw_apps(chance, wanted)
                if apps not in references:
                    references[apps] = Reference.of(world, runner, apps)
                faults = wanted or draw_faults(chance, references[apps])
                yield number, one_round(world, runner, references[apps], faults, chance)
        finally:
            runner.close()
