"""Counts in lines for people: `1 row`, `2 rows`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.pipeline import log_step

NOUNS = (
    "account|application|app|broker|cause|change|cluster|column|command|detector|error|file|finding|group|hour"
    "|incident|line|partition|process|recipient|region|replica|request|resource|row|source|ticket|topic|tracker|volume"
)
_COUNTED = re.compile(rf"(?<!of )(?<!of the )\{{(?P<number>[^{{}}]+)\}} (?:open |past |more |new )?(?:{NOUNS})e?s\b")
_NEVER_ONE = re.compile(
    r"[A-Z][A-Z_]{3,}|len\(cells\)|partitions_after|\bmembers\b|limits\."
)  # constants, and what begins at two


def _miscounted(text: str) -> list[str]:
    return [found[0] for found in _COUNTED.finditer(text) if not _NEVER_ONE.search(found["number"])]


@pytest.mark.parametrize("folder", ["plugins/streamwarden", "dags"])
def test_a_count_of_one_is_singular(folder: str) -> None:
    files = sorted((PROJECT_ROOT / folder).rglob("*.py"))
    wrong = {str(Path(file).relative_to(PROJECT_ROOT)): _miscounted(file.read_text()) for file in files}
    assert {name: lines for name, lines in wrong.items() if lines} == {}, "use streamwarden.rendering.readable.counted"


def test_the_log_of_a_task_has_no_flags(capsys: pytest.CaptureFixture[str]) -> None:
    log_step("evaluate consumer_rogue", "1 firing, 0 ok, 1 unknown", True)
    log_step("evaluate disk_filling", "blocked: brokers was not loaded", False)
    log_step("evaluate broker_slow", "no connection", False)
    assert capsys.readouterr().out.splitlines() == [
        "evaluate consumer_rogue: 1 firing, 0 ok, 1 unknown",
        "evaluate disk_filling: blocked: brokers was not loaded",
        "evaluate broker_slow: failed: no connection",
    ]


@pytest.mark.parametrize("text", ['f"{found} findings follow"', 'f"{len(rows)} rows"', "f'{n:,} open tickets'"])
def test_such_a_count_is_found(text: str) -> None:
    assert _miscounted(text)
    assert _miscounted(text.replace("{", "of {")) == []
