"""A server in a process of its own, so that what is measured doesn't share an interpreter with what it asks."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any


@contextmanager
def serving(serve: Callable[[Connection], None]) -> Iterator[Any]:
    """What `serve` sends when it is ready; it is ended at the end."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        yield ours.recv()
    finally:
        server.terminate()
        server.join()
