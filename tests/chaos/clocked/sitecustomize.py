"""Loaded by every Python process whose clock may jump: libfaketime's `clock_nanosleep` refuses monotonic deadlines."""

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
