"""Every detector against its own cases, each in a rolled-back transaction."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.detectors import Detector

from tests.sql.cases import BROKEN, CASES_OF, DETECTORS, FOLDER, Case, evaluate_case, file_of, readable, unmet
from tests.sql.commands import faults_of

CASE_PARAMS = [
    pytest.param(DETECTORS[id_], case, id=f"{id_}: {case['name']}") for id_, cases in CASES_OF.items() for case in cases
]


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_each_verdict_of_a_detector_has_a_case(detector: Detector) -> None:
    assert detector.id not in BROKEN, BROKEN[detector.id]
    assert detector.id in CASES_OF, f"{detector.id} has no cases: write {file_of(detector)}"
    expected = {row["reason"] for case in CASES_OF[detector.id] for row in case["expect"] if "reason" in row}
    assert set(detector.verdicts) <= expected, f"no case for {sorted(set(detector.verdicts) - expected)}"
    assert {case.status for case in detector.verdicts.values()} == {"firing", "ok", "unknown"}


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_a_case_has_two_clusters_with_different_verdicts(detector: Detector) -> None:
    assert any(_has_different_verdicts(detector, case) for case in CASES_OF.get(detector.id, ())), (
        f"{file_of(detector)}: a detector that mixes up two {detector.identity[0]}s would pass all cases"
    )


def _has_different_verdicts(detector: Detector, case: Case) -> bool:
    scope = detector.identity[0]  # cluster or account
    named = [row[scope] for rows in case["given"].values() for row in rows or [] if scope in row]
    scopes = {one for name in named for one in (name if isinstance(name, list) else [name])}
    return len(scopes) > 1 and len({row.get("reason") for row in case["expect"]}) > 1


def test_no_cases_without_a_detector() -> None:
    files = {f"{file.parent.name}/{file.stem}" for file in FOLDER.glob("*/*.yaml")}
    assert files <= {f"{detector.subject}/{detector.id}" for detector in DETECTORS.values()}


@pytest.mark.parametrize(("detector", "case"), CASE_PARAMS)
def test_case(module_warehouse: sa.Engine, detector: Detector, case: Case) -> None:
    found = evaluate_case(module_warehouse, detector, case)
    differences = [*unmet(found, case), *(fault for finding in found for fault in faults_of(finding))]
    assert not differences, "\n".join(differences)


def test_a_broken_case_file_is_named_and_others_still_run(tmp_path: Path) -> None:
    good = file_of(next(iter(DETECTORS.values())))
    broken = {"no yaml": "- [", "no list": "name: x", "no expect": "- {name: x, given: {}}"}
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
    cases, why = readable({"good": good, **{name: tmp_path / name for name in broken}})
    assert list(cases) == ["good"] and list(why) == list(broken)
    assert all(str(tmp_path / name) in why[name] for name in broken)
