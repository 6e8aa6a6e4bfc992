"""`make chaos PART=trackers N=1000`: many random faults, by the property tests that `make test` runs with few."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

PARTS = {"trackers": ["tests/plugins/tickets/sinks/test_chaos.py"]}


def main() -> int:
    """Runs the tests of a part, or of all, with so many examples each."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("part", nargs="?", choices=["all", *PARTS], default="all")
    parser.add_argument("-n", type=int, default=1000, help="examples of each test (default: 1000)")
    parser.add_argument("-k", default="", help="only tests of this name, e.g. a tracker's kind")
    given = parser.parse_args()
    files = [file for part, files in PARTS.items() if given.part in ("all", part) for file in files]
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", *files, *(["-k", given.k] if given.k else [])]
    return subprocess.run(command, env=os.environ | {"CHAOS_EXAMPLES": str(given.n)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
