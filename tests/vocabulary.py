"""The vocabulary check of `make check`: texts and identifiers use the field's words (`python -m tests.vocabulary`).

It is a net, not the standard: a text that passes may still be hard to read. Exit code 1 with a line for each place.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BANNED = {
    r"told|untold": "reported, exposed, returned (a source); notified, delivered (a tracker, a user)",
    r"garbled": "unreadable",
    r"thing|things": "resource",
    r"cure|cures": "action",
    r"convinces|convincing": "key_metrics",
    r"heals|healed": "resolved",
    r"mend|mends|mended": "fix",
    r"anew": "again",
    r"at hand": "available",
    r"lacks|lacking": "is missing, has no",
    r"stands still": "is stuck",
    r"no rest": "continuous rebalancing",
    r"the usual|habit": "baseline",
    r"sayings|letter": "notification, message",
    r"heir|heirs": "successor",
    r"hears|heard": "receives",
    r"blind spots?": "limitations",
    r"can't judge|couldn't be judged|not judged|judging|judgement": "not evaluated, evaluation",
    r"what doesn't|held against": "ruled out",
    r"by hand": "manually",
}
SCOPES = (
    "sql/*", "plugins/*", "spark_apps/*", "dags/*", "docker/*", "docs/*.md", "*.md", "*.yaml", "tests/*", "Makefile"
)  # fmt: skip
EXCLUDED = ("docs/detectors/*", "docs/warehouse.md", "docs/config.md", "docs/detectors.md", "tests/vocabulary.py")
"""Generated pages (their sources are checked), and this file."""


class Allowed(NamedTuple):
    """A place where a banned word is right."""

    files: str
    text: str
    reason: str


ALLOWED = (
    Allowed("*", "s letter", "of the alphabet"),
    Allowed("*", "capital letter", "of the alphabet"),
    Allowed("*", "dead letter", "dead letter queues and topics, as Kafka Connect names them"),
)
MAX_ALLOWED = 15


def problems(root: Path = ROOT) -> Iterator[str]:
    """A line for each banned word: file, line, word, and what to write instead."""
    words = "|".join(f"(?P<w{n}>{word})" for n, word in enumerate(BANNED))
    pattern = re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.I)
    instead = list(BANNED.values())
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if not any(fnmatch(name, scope) for scope in SCOPES) or any(fnmatch(name, one) for one in EXCLUDED):
            continue
        if Path(name).suffix not in ("", ".py", ".sql", ".md", ".yaml", ".yml", ".html", ".txt", ".sh", ".js", ".css"):
            continue
        for number, line in enumerate((root / name).read_text().splitlines(), 1):
            for found in pattern.finditer(line):
                if any(fnmatch(name, one.files) and one.text in line for one in ALLOWED):
                    continue
                yield f"{name}:{number}: '{found[0]}': write {instead[int((found.lastgroup or 'w0')[1:])]}"


def main() -> int:
    """Prints what is wrong; 1 if anything is."""
    found = list(problems())
    print("\n".join(found))
    if len(ALLOWED) > MAX_ALLOWED:
        print(f"the allow list has {len(ALLOWED)} entries, at most {MAX_ALLOWED}")
    return int(bool(found) or len(ALLOWED) > MAX_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
