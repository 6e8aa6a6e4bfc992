"""The start of Spark: nothing of its own on the user's screen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spark_apps.runtime.session import MODULE_WARNING, _forward

START = """
import os
from spark_apps.runtime.session import start_session
spark = start_session("screen", master="local[1]")
os.write(2, b"of Python\\n")
spark._jvm.java.lang.System.err.println("of the JVM")
spark._jvm.java.lang.System.err.println("last")
spark.stop()
"""


def test_only_the_module_warning_is_left_out() -> None:
    (source, sink), (read, screen) = os.pipe(), os.pipe()
    lines = [b"a\n", MODULE_WARNING + b"\n", b"WARNING: Using incubator modules: jdk.other\n", b"\n", b"no line end"]
    os.write(sink, b"".join(lines))
    os.close(sink)
    _forward(source, screen)
    with os.fdopen(read, "rb") as shown:
        assert shown.read() == b"".join(line for line in lines if not line.startswith(MODULE_WARNING))


@pytest.mark.rare
@pytest.mark.slow
def test_a_started_session_shows_no_warning_of_java() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stderr.splitlines()) == ["last", "of Python", "of the JVM"]
