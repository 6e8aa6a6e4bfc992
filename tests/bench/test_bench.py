"""`make bench`: which parts are measured, and what is told of them."""

from __future__ import annotations

from functools import partial

import pytest

from tests.bench.__main__ import PARTS, main
from tests.bench.metric import Metric


def test_a_part_that_breaks_off_stops_no_other_and_all_that_was_missed_is_named_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PARTS, "load", partial(int, "no [such] number"))
    monkeypatch.setitem(PARTS, "hour", partial(list, [Metric("a figure", 2, "s", limit=1), Metric("other", 2, "s")]))
    monkeypatch.setenv("PART", "load,hour")
    assert main() == 1
    said = capsys.readouterr().out
    assert "load broke off: ValueError" in said and "no [such] number" in said
    assert "2.00 s    ≤ 1.00 s  missed" in said
    assert said.rstrip().endswith("missed: a figure\nbroke off: load")


@pytest.mark.parametrize("name", ["PART", "ONLY"])
def test_a_part_that_is_not_there_is_refused_by_name(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "load,nope")
    assert main() == 2
    assert "no part 'nope'" in capsys.readouterr().out
