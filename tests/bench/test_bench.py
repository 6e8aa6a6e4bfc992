"""`make bench`: which parts are measured, and what is printed."""

from __future__ import annotations

from functools import partial

import pytest

from tests.bench.__main__ import PARTS, main
from tests.bench.metric import Metric


def test_a_part_that_raises_stops_no_other_and_missed_limits_are_listed_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PARTS, "load", partial(int, "no [such] number"))
    monkeypatch.setitem(PARTS, "hour", partial(list, [Metric("a metric", 2, "s", limit=1), Metric("other", 2, "s")]))
    monkeypatch.setenv("PART", "load,hour")
    assert main() == 1
    output = capsys.readouterr().out
    assert "load failed: ValueError" in output and "no [such] number" in output
    assert "2.00 s    ≤ 1.00 s  missed" in output
    assert output.rstrip().endswith("missed: a metric\nfailed: load")


@pytest.mark.parametrize("name", ["PART", "ONLY"])
def test_an_unknown_part_is_an_error(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "load,nope")
    assert main() == 2
    assert "no part 'nope'" in capsys.readouterr().out
