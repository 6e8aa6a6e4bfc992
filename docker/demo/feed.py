"""The measured feed: what the broker's process really reads and writes, and what the application's really occupies,
goes into the AWS world as the figures of the broker's volume and of the application's instance."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Self

import psutil

from demo.demo_world import BROKER_VOLUME_ID, ORDERS_INSTANCE_ID
from demo.world import World

SAMPLE_SECONDS = 3.0


class Feed(threading.Thread):
    """Samples every few seconds until stopped; a minute's bytes add up as the minute goes."""

    def __init__(self, world: World, broker_pid: int, app_pid: int) -> None:
        super().__init__(name="measured-feed", daemon=True)
        self._world = world
        self._broker = psutil.Process(broker_pid)
        self._app = psutil.Process(app_pid)
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        before = self._broker.io_counters()
        minute, read_bytes, write_bytes = _this_minute(), 0, 0
        while not self._stopping.wait(SAMPLE_SECONDS):
            try:
                after, used_bytes = self._broker.io_counters(), self._app.memory_info().rss
            except psutil.NoSuchProcess:
                return  # it crashed: nothing is measured any more, and the fleet says why
            if (now := _this_minute()) != minute:
                minute, read_bytes, write_bytes = now, 0, 0
            read_bytes += after.read_bytes - before.read_bytes
            write_bytes += after.write_bytes - before.write_bytes
            before = after
            self._world.feed_volume(BROKER_VOLUME_ID, minute, read_bytes, write_bytes)
            self._world.feed_memory(ORDERS_INSTANCE_ID, minute, used_bytes)


def _this_minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)
