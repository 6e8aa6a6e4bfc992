"""`detectors new` writes a detector that loads and cases that pass."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors
from streamwarden.detectors.new import new_detector

from tests.sql.cases import evaluate_case, read_cases, unmet
from tests.sql.commands import faults_of


def new(tmp_path: Path, name: str, kind: str, *reads: str, metric: str = "") -> tuple[Path, Path]:
    return new_detector(name, kind, reads, metric, tmp_path / "sql", tmp_path / "cases")


@pytest.mark.parametrize(
    ("resource", "reads"),
    [
        ("cluster", ("metrics.broker_hourly", "inventory.topic_hourly")),
        ("broker", ("metrics.broker_hourly",)),
        ("volume", ("metrics.volume_hourly", "inventory.volume_hourly")),
        ("group", ("metrics.consumer_group_hourly",)),
        ("process", ("metrics.jvm_app_hourly",)),
        ("store", ("metrics.state_store_hourly",)),
        ("topic", ("inventory.topic_hourly",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_new_detector_loads_and_its_cases_pass(
    module_warehouse: sa.Engine, tmp_path: Path, resource: str, reads: tuple[str, ...]
) -> None:
    sql, cases = new(tmp_path, f"examples/{resource}_wrong", resource, *reads)
    detector = load_detectors(tmp_path / "sql")[f"{resource}_wrong"]
    assert (detector.resource_kind, detector.reads, detector.sql) == (resource, reads, sql.read_text())
    found = read_cases(cases)
    for case in found:
        findings = evaluate_case(module_warehouse, detector, case)
        assert list(unmet(findings, case)) == []
        assert [fault for finding in findings for fault in faults_of(finding)] == []
    assert {row["reason"] for case in found for row in case["expect"]} == set(detector.verdicts)
    assert len({row[detector.identity[0]] for row in found[-1]["given"][reads[0]]}) == 2


def test_the_columns_of_all_tables_are_listed_in_the_sql(tmp_path: Path) -> None:
    sql, _ = new(tmp_path, "brokers/broker_odd", "broker", "metrics.broker_hourly", "inventory.topic_hourly")
    assert "--   open_file_descriptors: Open file descriptors, maximum of the samples\n" in sql.read_text()
    assert "--   retention_ms: retention.ms\n" in sql.read_text()


@pytest.mark.parametrize(
    ("name", "resource", "reads", "expected"),
    [
        ("broker_odd", "broker", ("metrics.broker_hourly",), "broker_odd: must be SUBJECT/ID"),
        ("brokers/x", "brokr", ("metrics.broker_hourly",), "--kind brokr: no kind of resource; there are: volume, "),
        ("brokers/x", "broker", ("metrics.broker",), "--reads metrics.broker: no such table; "),
        ("brokers/x", "group", ("metrics.broker_hourly",), "--reads metrics.broker_hourly: has no group_id; "),
        ("brokers/x", "broker", (), "--reads: name at least one table"),
    ],
)
def test_an_error_is_one_line(tmp_path: Path, name: str, resource: str, reads: tuple[str, ...], expected: str) -> None:
    with pytest.raises(StreamwardenError) as error:
        new(tmp_path, name, resource, *reads)
    assert str(error.value).startswith(expected) and "\n" not in str(error.value)
    assert not list(tmp_path.glob("*/*/*"))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    _, cases = new(tmp_path, "brokers/broker_odd", "broker", "metrics.broker_hourly")
    cases.unlink()
    with pytest.raises(StreamwardenError, match=r"broker_odd\.sql: exists already"):
        new(tmp_path, "brokers/broker_odd", "broker", "metrics.broker_hourly")
    with pytest.raises(StreamwardenError, match="broker_odd: the id is taken by "):
        new(tmp_path, "examples/broker_odd", "broker", "metrics.broker_hourly")
