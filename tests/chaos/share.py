"""A share of the rounds: what a process with a world of its own does, one after the other."""

from __future__ import annotations

import queue
import random
import tempfile
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.chaos.faults import FAULTS
from tests.chaos.rounds import Outcome, Reference, Runner, draw_apps, draw_faults, one_round
from tests.chaos.world import World


def share(
    numbers: Sequence[int],
    seed: int,
    only: Sequence[str],
    output: queue.Queue[tuple[int, Outcome] | str],
    enough: threading.Event,
) -> None:
    """Does these rounds and tells what came of each, until it is enough. Where a round breaks off, which none should,
    its traceback is told as text, and the next one has a new world.

    Raises:
        RuntimeError: no round could be done in a new world.
    """
    rest, stands = iter(numbers), True
    while stands:
        stands = False
        try:
            with tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True) as folder:
                for outcome in outcomes_of(Path(folder), rest, seed, only):
                    output.put(outcome)
                    stands = True
                    if enough.is_set():
                        return
            return
        except Exception as error:
            said = f"{error!r}\n{traceback.format_exc()}"
            if not stands:
                raise RuntimeError(said) from None  # not every library's errors reach another process
            output.put(said)


def outcomes_of(folder: Path, numbers: Iterable[int], seed: int, only: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
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
