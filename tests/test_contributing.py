"""CONTRIBUTING.md: the files that it names exist, and the path of one value visits each file once."""

import re
from pathlib import Path

_PATHS = re.compile(r"`((?:dags|docs|plugins|spark_apps|sql|tests)/[\w./]+)`")


def test_every_named_file_exists(project_root: Path) -> None:
    named = set(_PATHS.findall((project_root / "CONTRIBUTING.md").read_text()))
    assert len(named) > 10
    assert {path for path in named if not (project_root / path).exists()} == set()


def test_the_path_of_one_value_is_at_most_eight_files(project_root: Path) -> None:
    text = (project_root / "CONTRIBUTING.md").read_text()
    walk = re.findall(
        r"^\d\. `([\w./]+)`", text.partition("Follow one BurstBalance value")[2].partition("## ")[0], re.M
    )
    assert 5 < len(walk) <= 8 and len(set(walk)) == len(walk)
    assert all((project_root / path).is_file() for path in walk)
