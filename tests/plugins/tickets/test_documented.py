"""docs/tickets.md: every kind of tracker has a section with an example, and every example loads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from streamwarden.base.config import load_config
from streamwarden.base.config.trackers import Tracker
from streamwarden.base.paths import PROJECT_ROOT

PAGE = (PROJECT_ROOT / "docs" / "tickets.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(tickets:.*?)```", PAGE, flags=re.DOTALL)
KINDS = {get_args(kind.model_fields["kind"].annotation)[0] for kind in get_args(get_args(Tracker)[0])}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"\$\{(\w+)\}", example):
        monkeypatch.setenv(name, "secret")
    (tmp_path / "s.yaml").write_text(example)
    assert load_config(tmp_path / "s.yaml").tickets.trackers


def test_every_kind_has_a_section_and_an_example() -> None:
    sections = {text.split("\n", 1)[0]: text for text in PAGE.split("\n## ")[1:]}
    assert KINDS - {"console"} == sections.keys()
    assert all(f"kind: {kind}" in text and "```yaml" in text for kind, text in sections.items())


@pytest.mark.parametrize("page", ["README.md", "docs/tickets.md"])
def test_every_picture_exists(page: str) -> None:
    file = PROJECT_ROOT / page
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", file.read_text())
    assert pictures and all((file.parent / picture).is_file() for picture in pictures)
