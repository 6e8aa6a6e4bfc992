"""`make bench`: which parts are measured."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import main


@pytest.mark.parametrize("name", ["PART", "ONLY"])
def test_a_part_that_is_not_there_is_refused_by_name(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "load,nope")
    assert main() == 2
    assert "no part 'nope'" in capsys.readouterr().out
