"""Feeds measurements into the emulated AWS: disk I/O of broker processes becomes that of their volumes, and memory of
the application's process becomes that of its instance."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Self

import psutil

from demo.world import World

SAMPLE_SECONDS = 3.0


class Sampler(threading.Thread):
    """A thread that samples until its context ends: `run` repeats while `_stopping` is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()


class Feed(Sampler):
    """Samples every few seconds until stopped, and sums the bytes of each minute."""

    def __init__(self, world: World, disks: Mapping[str, int], memory: Mapping[str, int]) -> None:
        """`disks`: volume id → pid of the process that writes to it; `memory`: instance id → pid of its process."""
        super().__init__("measured-feed")
        self._world = world
        self._disks = {volume_id: psutil.Process(pid) for volume_id, pid in disks.items()}
        self._memory = {instance_id: psutil.Process(pid) for instance_id, pid in memory.items()}

    def run(self) -> None:
        with suppress(psutil.NoSuchProcess):  # the process crashed; the fleet reports it
            self._sample()

    def _sample(self) -> None:
        before = {volume_id: process.io_counters() for volume_id, process in self._disks.items()}
        minute = _this_minute()
        read_bytes: dict[str, int] = defaultdict(int)
        write_bytes: dict[str, int] = defaultdict(int)
        while not self._stopping.wait(SAMPLE_SECONDS):
            if (now := _this_minute()) != minute:
                minute = now
                read_bytes.clear()
                write_bytes.clear()
            for volume_id, process in self._disks.items():
                after = process.io_counters()
                read_bytes[volume_id] += after.read_bytes - before[volume_id].read_bytes
                write_bytes[volume_id] += after.write_bytes - before[volume_id].write_bytes
                before[volume_id] = after
                self._world.feed_volume(volume_id, minute, read_bytes[volume_id], write_bytes[volume_id])
            for instance_id, process in self._memory.items():
                self._world.feed_memory(instance_id, minute, process.memory_info().rss)


def _this_minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)
