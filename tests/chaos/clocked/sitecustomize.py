"""Loaded by a Python process whose clock may jump.

libfaketime's `clock_nanosleep` refuses monotonic deadlines, and a JVM under it waits busily: what the process starts
has the machine's clock.
"""

import os
import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
os.environ.pop("LD_PRELOAD", None)
