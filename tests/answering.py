"""Runs small HTTP servers in a thread of the test process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

_Server = TypeVar("_Server", bound=BaseServer)


@contextmanager
def answering(server: _Server) -> Iterator[_Server]:
    """Serves during the block. Polls for the shutdown every 20 ms; the default of 500 ms would slow tests down."""
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
