"""Causes of findings: the cases in tests/sql/causes/*.yaml, storing, parameters, and the header of the query."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.causes import find_causes, rule, weigh
from streamwarden.causes.backtest import CauseChange, backtest, parse_settings
from streamwarden.causes.weighing import short_name
from streamwarden.detectors.mechanisms import Mechanism

from tests.sql.cause_cases import CASES, DETECTORS, CauseCase, store
from tests.sql.rows import HOUR

MANY = "broker_partitions_too_many"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_a_case_of_causes(module_warehouse: sa.Engine, case: CauseCase) -> None:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        resources = case.insert(connection)
        problem = case.unmet(case.weigh(connection), resources)
        transaction.rollback()
    assert problem is None, problem


def test_an_hour_that_is_weighed_again_gives_the_same_causes(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        for resource, of, reason in (
            ("cluster:c", "topic_overpartitioned", "overpartitioned"),
            ("cluster:c", MANY, "many"),
        ):
            store(connection, {"of": of, "resource": resource, "reason": reason}, "firing")
    for _ in range(2):
        assert find_causes(warehouse, DETECTORS, HOUR) == "0 causes accepted, 1 possible, 0 ruled out"
        with warehouse.connect() as connection:
            rows = connection.execute(sa.text("select hour, mechanism, strength, message from detect.cause")).all()
        assert rows == [(HOUR, "overpartitioning_adds_partitions", 0.59, "unneeded partitions are among those counted")]
    assert find_causes(warehouse, DETECTORS, HOUR - timedelta(days=1)).startswith("0 causes accepted")


def test_a_cycle_is_cut_at_the_finding_that_began_first(
    module_warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    there_and_back = {name: Mechanism(path=("broker",), parts="resource", message="so") for name in ("there", "back")}
    monkeypatch.setattr("streamwarden.causes.weighing.mechanisms", lambda: there_and_back)
    slow, flushes = DETECTORS["broker_slow"], DETECTORS["log_flush_slow"]
    detectors = {
        slow.id: replace(slow, causes={"there": ("clients_affected",)}, caused_by={"back": ("clients_affected",)}),
        flushes.id: replace(flushes, causes={"back": ("slow",)}, caused_by={"there": ("slow",)}),
    }
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        store(connection, {"of": slow.id, "resource": "broker:c/1", "reason": "clients_affected"}, "firing")
        first = store(connection, {"of": flushes.id, "resource": "broker:c/1", "reason": "slow", "hours": 2}, "firing")
        found = weigh(connection, detectors, HOUR)
        transaction.rollback()
    assert {cause.effect == first: cause.is_accepted for cause in found} == {False: True, True: False}


@pytest.mark.parametrize(
    ("params", "strength", "counts"),
    [({"contributes_margin": 0.1}, 0.5, "0 causes accepted, 1 possible, 0 ruled out"),
     ({"possible_strength": 0.7, "accepted_strength": 0.8}, 0.79,
      "0 causes accepted, 1 possible, 0 ruled out"),
     ({"possible_strength": 0.8}, 0.59, "0 causes accepted, 0 possible, 1 ruled out")],
)  # fmt: skip
def test_the_config_overrides_parameters(
    warehouse: sa.Engine, params: dict[str, float], strength: float, counts: str
) -> None:
    with warehouse.begin() as connection:
        for of, reason in (("topic_overpartitioned", "overpartitioned"), (MANY, "many")):
            store(connection, {"of": of, "resource": "cluster:c", "reason": reason}, "firing")
    in_force = rule.params_in_force(Config.model_validate({"causes": {"params": params}}))
    assert find_causes(warehouse, DETECTORS, HOUR, in_force) == counts
    with warehouse.connect() as connection:
        stored = connection.execute(sa.text("select strength from detect.cause")).scalars().one()
    assert round(stored, 2) == strength


def test_a_backtest_shows_findings_that_get_another_cause(warehouse: sa.Engine) -> None:
    case = next(case for case in CASES if [row.get("accepted") for row in case.case["expect"]] == [True])
    with warehouse.begin() as connection:
        case.insert(connection)
    find_causes(warehouse, DETECTORS, HOUR)
    with warehouse.connect() as connection:
        effect, cause, strength = connection.execute(sa.text("select effect, cause, strength from detect.cause")).one()
    progress: list[tuple[int, int]] = []
    span = HOUR - timedelta(hours=3), HOUR + timedelta(hours=1)
    in_force = rule.params_in_force()
    tried = rule.with_params(in_force, parse_settings([f"accepted_strength={strength + 0.01}"]), "--set ")
    result = backtest(
        warehouse, DETECTORS, *span, in_force=in_force, tried=tried, progress=lambda *at: progress.append(at)
    )
    assert (result.hours, result.accepted_in_force, result.accepted_tried) == (1, 1, 0)
    assert result.changes == (CauseChange(HOUR, effect, cause, None),)
    assert progress == [(1, 1)]
    same = backtest(warehouse, DETECTORS, *span, in_force=in_force, tried=in_force, progress=lambda *_: None)
    assert same.changes == ()
    with pytest.raises(StreamwardenError, match="no causes were ranked from 2026-01-05 07:00"):
        backtest(
            warehouse, DETECTORS, span[0], HOUR, in_force=in_force, tried=tried, progress=lambda *_: None
        )  # fmt: skip


@pytest.mark.parametrize("text", ["accepted_strength", "accepted_strength=", "accepted_strength=high"])
def test_a_backtest_refuses_a_setting_that_is_no_number(text: str) -> None:
    with pytest.raises(StreamwardenError, match=f"--set {text}: write it as name=value, with a number"):
        parse_settings([text])


@pytest.mark.parametrize(
    ("params", "problem"),
    [({"accepted": 0.5}, "causes.params.accepted: unknown parameter; causes has: accepted_strength, "),
     ({"prior_peers": -1}, "causes.params.prior_peers: must be 0 or more and finite, not -1."),
     ({"amount_needed": 0}, "causes.params.amount_needed: must be more than 0.")],
)  # fmt: skip
def test_an_invalid_parameter_is_refused(params: dict[str, Any], problem: str) -> None:
    with pytest.raises(StreamwardenError) as error:
        rule.params_in_force(Config.model_validate({"causes": {"params": params}}))
    assert str(error.value).startswith(problem)


def test_thresholds_are_in_the_header() -> None:
    assert list(rule.bare_constants()) == []
    file = rule.PIECES / "strength.sql"
    changed = file.read_text().replace(":undecided_share_factor", "0.55", 1)
    line = changed[: changed.index("0.55")].count("\n") + 1
    assert list(rule.bare_constants_in(file, changed)) == [
        f"sql/causes/weigh/strength.sql:{line}: 0.55: a bare constant; name it in the params of sql/causes/weigh.sql."
    ]
    text = "/* x: 7 */\nselect 0, 1, 100, interval '1 hour', '7' -- 7\n, interval '6 hours'"
    assert [one.split(":")[1:3] for one in rule.bare_constants_in(file, text)] == [["3", " '6 hours'"]]


def test_a_parameter_that_only_the_header_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rule.query()
    rule.params.cache_clear()
    monkeypatch.setattr(rule, "query", lambda: whole.replace(":causes_kept", ":causes_shown"))
    with pytest.raises(StreamwardenError, match=r"params\.causes_kept: never used in the SQL"):
        rule.params()
    rule.params.cache_clear()


@pytest.mark.parametrize(
    ("key", "name"),
    [("process:orders-prod/http://10.0.0.4:8778/jolokia", "10.0.0.4:8778"),
     ("process:c/service:jmx:rmi:///jndi/rmi://h-2:9999/jmxrmi", "h-2:9999"),
     ("process:c/worker-1:9404", "worker-1:9404"), ("group:c/team/billing", "group team/billing"),
     ("broker:c/3", "broker 3"), ("volume:1/eu-central-1/vol-1", "vol-1"), ("cluster:c", "c")],
)  # fmt: skip
def test_a_short_name_tells_resources_of_a_cluster_apart(key: str, name: str) -> None:
    assert short_name(key) == name
