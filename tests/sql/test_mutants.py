"""`make mutants` tells which changes of a detector no case notices."""

import pytest
import sqlalchemy as sa

from tests.sql import mutants
from tests.sql.cases import CASES_OF, DETECTORS
from tests.sql.mutants import Source


def changes(sql: str) -> set[str]:
    return {mutant.text for mutant in mutants.mutants(Source("f.sql", "", sql, 0, sql))}


@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        ("/**/ a >= :b", {"/**/ a > :b"}),
        ("/**/ a = 1", {"/**/ a <> 1", "/**/ a = 0"}),
        ("/**/ x.a - 0", {"/**/ x.a + 0", "/**/ x.a - 1"}),
        ("/**/ least(a, b)", {"/**/ greatest(a, b)"}),
        ("/**/ a is not null", {"/**/ a is null"}),
        ("/**/ coalesce(a, f(b, c))", {"/**/ coalesce(a, null)"}),
        ("/**/ join t using (a, b)", {"/**/ join t using (b)", "/**/ join t using (a)"}),
        ("/**/ a between :b and :c", set()),
        ("/* a > 1 */ select 'a > 1' -- a > 1", set()),
    ],
)
def test_one_piece_is_changed_at_a_time(sql: str, changed: set[str]) -> None:
    assert changes(sql) == changed


def test_each_conjunct_of_a_join_is_left_out_once() -> None:
    left_out = {" ".join(text.split()) for text in changes("/**/ join t on a = b and (c or d) where e")}
    assert {"/**/ join t on (c or d) where e", "/**/ join t on a = b where e"} <= left_out


def test_what_no_case_notices_is_named_with_its_place(
    module_warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = DETECTORS["partitions_under_replicated"]
    monkeypatch.setitem(CASES_OF, detector.id, CASES_OF[detector.id][:1])
    told = mutants.report([mutants.score(module_warehouse, detector)])
    line = next(n for n, text in enumerate(detector.sql.splitlines(), 1) if "'tolerated'" in text and "when" in text)
    assert f"{detector.file}:{line}:" in told and "> → >=" in told
