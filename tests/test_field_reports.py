"""Field reports: each has its principle, and tests that exist. `tests/field_reports.yaml` lists them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamwarden.base.paths import PROJECT_ROOT

REPORTS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("field_reports.yaml").read_text())
NUMBERS = [*map(str, range(1, 42)), "17b", "17c", "17d", "17e", "17f", "20b", "25b"]


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests in a module, or of the cases in a YAML file."""
    text = (PROJECT_ROOT / path).read_text()
    if not path.endswith(".py"):
        document = yaml.safe_load(text)
        cases = document["cases"] if isinstance(document, dict) else document
        return frozenset(case["name"] for case in cases)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, functions))


def test_each_report_is_there_once() -> None:
    assert sorted(str(report["report"]) for report in REPORTS) == sorted(NUMBERS)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: str(report["report"]))
def test_a_report_has_a_principle_siblings_and_tests_that_exist(report: dict[str, Any]) -> None:
    assert report.keys() == {"report", "principle", "siblings", "tests"}
    assert all(report[key].endswith(".") and "\n" not in report[key] for key in ("principle", "siblings"))
    assert report["tests"]
    for test in report["tests"]:
        path, _, name = test.partition("::")
        assert name in names_in(path), test
