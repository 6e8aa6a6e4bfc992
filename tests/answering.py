"""The small HTTP servers of tests, each in a thread of the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

_Server = TypeVar("_Server", bound=BaseServer)


@contextmanager
def answering(server: _Server) -> Iterator[_Server]:
    """The server, which answers within the block. By default it would notice its end up to half a second later."""
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
