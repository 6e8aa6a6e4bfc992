"""`make mutants` reports the changes of a detector that no case detects."""

from dataclasses import replace

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
def test_each_mutant_has_one_change(sql: str, changed: set[str]) -> None:
    assert changes(sql) == changed


def test_each_conjunct_of_a_join_is_removed_once() -> None:
    left_out = {" ".join(text.split()) for text in changes("/**/ join t on a = b and (c or d) where e")}
    assert {"/**/ join t on (c or d) where e", "/**/ join t on a = b where e"} <= left_out


def test_an_undetected_mutant_is_reported_with_its_location(
    module_warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = DETECTORS["partitions_under_replicated"]
    monkeypatch.setitem(CASES_OF, detector.id, CASES_OF[detector.id][:1])
    output = mutants.report(mutants.score(module_warehouse, detector))
    line = next(n for n, text in enumerate(detector.sql.splitlines(), 1) if "'tolerated'" in text and "when" in text)
    assert f"{detector.file}:{line}:" in output and "> → >=" in output


def test_a_mutant_of_a_function_is_tried_with_the_other_detectors_that_call_it(module_warehouse: sa.Engine) -> None:
    caller = DETECTORS["changelog_abandoned"]
    source = next(source for source in mutants.sources_of(caller) if source.name == "public.topic_sent")
    changed = next(m for m in mutants.mutants(source) if m.change == "= → <>")
    scores = [mutants.Score("topic_abandoned", [changed], 0, [changed], 0), mutants.Score(caller.id, [], 0, [], 0)]
    assert list(mutants.detected_by_callers(module_warehouse, scores)) == [changed]


def test_a_detected_mutant_is_not_tried_again(module_warehouse: sa.Engine) -> None:
    detector = DETECTORS["changelog_abandoned"]
    detected = {mutant for source in mutants.sources_of(detector) for mutant in mutants.mutants(source)}
    assert mutants.score(module_warehouse, detector, 9, detected=detected).tried == []


@pytest.mark.rare
def test_tests_of_a_function_may_detect_what_no_case_does(module_warehouse: sa.Engine) -> None:
    sql = "public.page_cache"
    source = next(source for source in mutants.sources_of(DETECTORS["consumer_rogue"]) if source.name == sql)
    kept = next(m for m in mutants.mutants(source) if m.change.startswith("* →") or "hour = last_hour" in m.line)
    alike = replace(kept, new=source.text[kept.start : kept.end])
    assert list(mutants.detected_by_tests(module_warehouse, [kept, alike])) == [kept]
