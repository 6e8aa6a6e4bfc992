"""Evaluating an hour: stored evaluations, reruns, blocked and failed detectors."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.config.detectors import Owner
from streamwarden.detectors import Detector, evaluate, findings, load_detectors
from streamwarden.detectors.evaluate import sync_config

from tests.sql.rows import insert_row

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
HEADER = """/*
title: A test
resource_kind: group
owner_role: tests
maturity: experimental
reads: [metrics.consumer_group_hourly]
verdicts:
  bad: {status: firing, severity: warning, message: "{{ size_bytes }} of {{ name }} on {{ bootstrap_servers }}.",
        impact: "Nothing happens.", actions: ["Fix it."], commands: ["fix {{ group_id }} {{ size_bytes }}"]}
  good: {status: ok, message: "Fine."}
  dark: {status: unknown, message: "Nothing.", is_not_applicable: true}
clear_after_hours: 1
runbook: none
limitations: none
*/
"""


def detector(folder: Path, sql: str, params: str = "") -> Detector:
    file = folder / "tests" / "a_test.sql"
    file.parent.mkdir(exist_ok=True)
    file.write_text(HEADER.replace("clear_after", f"{params}clear_after") + sql)
    return load_detectors(folder, check=False)["a_test"]


def loaded(warehouse: sa.Engine, status: str = "loaded") -> None:
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into detect.load values (:hour, 'consumer_groups', :status, '{}', 'no route', now(), now())"
            ),
            {"hour": HOUR, "status": status},
        )


def stored(warehouse: sa.Engine) -> list[tuple[str, str]]:
    with warehouse.connect() as connection:
        return list(
            connection.execute(sa.text("select resource_name, status from detect.evaluation order by 1")).tuples()
        )


ROW = (
    "select case when :hour is null then 'good' when false then 'dark' when false then 'bad'"
    " else '{reason}' end as reason, 'c' as cluster, 'a <b>' as group_id, 7168 as size_bytes"
)


def test_an_hour_evaluated_twice_is_stored_once(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    for reason in ("bad", "good"):
        detector_run = evaluate(warehouse, detector(tmp_path, ROW.format(reason=reason)), HOUR, Config())
        assert detector_run.status == "evaluated", detector_run.message
    assert stored(warehouse) == [("c/a <b>", "ok")]
    with warehouse.connect() as connection:
        row = connection.execute(sa.text("select * from detect.evaluation")).one()
    assert row.metrics == {"size_bytes": 7168}
    assert (row.severity, row.identity, row.resource) == (None, {"cluster": "c", "group_id": "a <b>"}, "group:c/a <b>")


def test_a_stored_finding_is_readable_in_the_view_findings_now(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    config = Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": "kafka-1:9092"}]})
    evaluate(warehouse, detector(tmp_path, ROW.format(reason="bad")), HOUR, config)
    with warehouse.connect() as connection:
        row = connection.execute(sa.text("select * from public.findings_now")).one()
    assert (row.reason, row.severity, row.message) == ("bad", "warning", "7.0 KiB of c/a <b> on kafka-1:9092.")
    assert (row.actions, row.commands) == (["Fix it."], ["fix 'a <b>' 7168"])


def test_a_row_is_about_the_first_narrower_kind_with_all_its_columns(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    header = HEADER.replace("resource_kind: group", "resource_kind: cluster\nnarrower_kinds: [group, client, topic]")
    columns = ("group_id", "client_id", "topic")
    known = [(None, None, None), (None, None, "t"), (None, "x", "t"), ("g", "x", "t"), ("t", None, None)]
    values = ", ".join(str(tuple(value or "" for value in row)) for row in known)
    given = ", ".join(f"nullif({column}, '') as {column}" for column in columns)
    sql = f"""select case when false then 'good' when false then 'dark' else 'bad' end as reason,
        'c' as cluster, 1 as size_bytes, {given} from (values {values}) as row (group_id, client_id, topic)"""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a_test.sql").write_text(header + sql)
    one = load_detectors(tmp_path, check=False)["a_test"]
    exception = {"where": {"topic": "t"}, "off": True, "why": "a test", "until": "2999-01-01"}
    config = Config.model_validate({"detectors": {"a_test": {"exceptions": [exception]}}})
    assert evaluate(warehouse, one, HOUR, config).status == "evaluated"
    with warehouse.connect() as connection:
        rows = connection.exec_driver_sql("select resource, identity, status from detect.evaluation").all()
    assert {row.resource: row.status for row in rows} == {
        "cluster:c": "firing", "topic:c/t": "ok", "client:c/x": "firing", "group:c/g": "firing",
        "group:c/t": "firing",
    }  # fmt: skip
    assert {"cluster": "c", "client_id": "x"} in [row.identity for row in rows]


@pytest.mark.parametrize(
    ("servers", "listed", "shown"),
    [
        ("dead:9092,up-1:9092, up-2:9092", {1: "up-1", 2: "up-2"}, "up-1:9092,up-2:9092"),
        ("DEAD:9092,up-1:9092", {1: "up-1"}, "up-1:9092"),
        ("dead:9092", {1: "up-1"}, "dead:9092"),  # nothing else is known
        ("dead:9092,dead:9093,bootstrap:9092", {1: "dead"}, "dead:9092,dead:9093,bootstrap:9092"),  # one of two there
        ("up-1:9092,dead:9092", {1: "up-1", 3: "dead"}, "up-1:9092,dead:9092"),
    ],
)
def test_commands_do_not_begin_with_a_dead_broker(
    warehouse: sa.Engine, tmp_path: Path, servers: str, listed: dict[int, str], shown: str
) -> None:
    loaded(warehouse)
    with warehouse.begin() as connection:
        for broker_id in (1, 2, 3):
            known = {"cluster": "c", "broker_id": broker_id, "replicas": 1}
            before = {"hour": HOUR - timedelta(hours=2), "host": {3: "dead"}.get(broker_id, f"up-{broker_id}")}
            insert_row(connection, "inventory.broker_hourly", known | before | {"is_listed": True})
            now = {"hour": HOUR, "host": listed.get(broker_id), "is_listed": broker_id in listed}
            insert_row(connection, "inventory.broker_hourly", known | now)
            elsewhere = {"cluster": "d", "hour": HOUR, "host": None, "is_listed": False}
            insert_row(connection, "inventory.broker_hourly", known | elsewhere)
    config = Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": servers}]})
    with warehouse.connect() as connection:
        (found,) = findings(connection, detector(tmp_path, ROW.format(reason="bad")), HOUR, config, {})
    assert found.message == f"7.0 KiB of c/a <b> on {shown}."


def test_each_line_of_a_template_is_one_command(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    loop = "{% for one in topics or [] %}fix  {{ one }}\\n{% endfor %}"
    one = detector(tmp_path, ROW.format(reason="bad") + ", jsonb_build_array('a', E'b\\n;c') as topics")
    verdict = replace(one.verdicts["bad"], commands=(loop.replace("\\n", "\n"), "{% if not topics %}x{% endif %}"))
    with warehouse.connect() as connection:
        (found,) = findings(connection, replace(one, verdicts={**one.verdicts, "bad": verdict}), HOUR, Config(), {})
    assert found.commands == ("fix a", "fix 'b ;c'")


@pytest.mark.parametrize(
    ("column", "reason", "days", "is_noted"),
    [
        ("added_usd_per_month", "bad", 91, True),
        ("added_usd_per_month", "bad", 90, False),
        ("added_usd_per_month", "good", 91, False),
        ("charged_usd_per_month", "bad", 91, False),
        ("cpu_mean_percent", "bad", 91, False),
    ],
)
def test_a_finding_with_a_list_price_states_its_age(
    warehouse: sa.Engine, tmp_path: Path, column: str, reason: str, days: int, is_noted: bool
) -> None:
    sql = (
        f"select case when :hour is null then 'good' when false then 'dark' else '{reason}' end as reason,"
        f" 'c' as cluster, 'g' as group_id, 'n' as name, 1024.0 as size_bytes, 12.5 as {column}"
    )
    loaded(warehouse)
    volume = {"hour": HOUR, "account": "1", "volume_id": "v"}
    with warehouse.begin() as connection:
        for region, age in (("r", days), ("unused", 400)):
            as_of = HOUR.date() - timedelta(days=age)
            insert_row(
                connection, "inventory.ebs_price", {"hour": HOUR, "region": region, "as_of": as_of, "source": "s"}
            )
        insert_row(connection, "inventory.volume_hourly", volume | {"region": "r"})
        [found] = findings(connection, detector(tmp_path, sql), HOUR, Config(), {})
    note = f"AWS list prices of {HOUR.date() - timedelta(days=days)} are more than 90 days old."
    assert (note in found.details) is is_noted


def test_a_resource_has_the_owner_of_the_first_matching_pattern(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    owners = [{"key_pattern": "^group:c/b", "owner": "others"}, {"key_pattern": "^group:c/a", "owner": "payments"}]
    with warehouse.begin() as connection:
        insert_row(connection, "metrics.consumer_group_hourly", {"hour": HOUR, "cluster": "c", "group_id": "a <b>"})
    for config, owner in ((Config.model_validate({"owners": owners}), "payments"), (Config(), None)):
        evaluate(warehouse, detector(tmp_path, ROW.format(reason="bad")), HOUR, config)
        with warehouse.connect() as connection:
            assert connection.execute(sa.text("select owner from detect.evaluation")).scalar_one() == owner


def test_the_latency_target_is_that_of_the_first_matching_pattern(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    targets = [{"key_pattern": "^application:c/a", "seconds": 0.5}, {"key_pattern": "/a", "seconds": 9}]
    for config, expected in (
        (Config.model_validate({"latency_targets": targets}), [0.5, 9, None]),
        (Config(), [None] * 3),
    ):
        evaluate(warehouse, detector(tmp_path, ROW.format(reason="bad")), HOUR, config)
        with warehouse.connect() as connection:
            ask = sa.text(
                "select detect.latency_target_of(key) from unnest(array[:a, :b, :c]) with ordinality as k (key, n)"
            )
            keys = {"a": "application:c/a-1", "b": "application:d/a", "c": "application:c/b"}
            assert connection.execute(ask, keys).scalars().all() == expected


def excepting(**exception: object) -> Config:
    return Config.model_validate({"detectors": {"a_test": {"exceptions": [{"why": "known", **exception}]}}})


@pytest.mark.parametrize(
    ("exception", "statuses"),
    [
        ({"where": {"group_id": "nightly"}, "params": {"limit": 100}}, {"c/nightly": "ok", "c/other": "firing"}),
        ({"where": {"group_id": "^night"}, "params": {"limit": 100}}, {"c/nightly": "ok", "c/other": "firing"}),
        ({"where": {"group_id": "night"}, "params": {"limit": 100}}, {"c/nightly": "firing", "c/other": "firing"}),
        ({"where": {"cluster": "d"}, "off": True}, {"c/nightly": "firing", "c/other": "firing"}),
        ({"where": {"group_id": "other"}, "off": True}, {"c/nightly": "firing", "c/other": "ok"}),
        (
            {"where": {"group_id": "other"}, "off": True, "until": "2026-01-05"},
            {"c/nightly": "firing", "c/other": "ok"},
        ),
        (
            {"where": {"group_id": "other"}, "off": True, "until": "2026-01-04"},
            {"c/nightly": "firing", "c/other": "firing"},
        ),
    ],
)
def test_resources_may_have_their_own_thresholds(
    warehouse: sa.Engine, tmp_path: Path, exception: dict[str, object], statuses: dict[str, str]
) -> None:
    loaded(warehouse)
    rule = detector(
        tmp_path,
        "select case when :hour is null then 'dark' when n > :limit then 'bad' else 'good' end as reason,"
        " 'c' as cluster, group_id, n as size_bytes from (values ('nightly', 50), ('other', 60)) as t (group_id, n)",
        params='params: {limit: {default: 10, unit: x, why: "x"}}\n',
    )
    detector_run = evaluate(warehouse, rule, HOUR, excepting(**exception))
    assert detector_run.status == "evaluated", detector_run.message
    assert dict(stored(warehouse)) == statuses
    with warehouse.connect() as connection:
        row = connection.execute(sa.text("select * from detect.exception")).one()
    assert row.resources == (0 if exception["where"] in ({"cluster": "d"}, {"group_id": "night"}) else 1)
    assert (row.matched_hour is None) == (row.resources == 0)
    evaluate(warehouse, rule, HOUR, Config())
    with warehouse.connect() as connection:
        assert connection.execute(sa.text("select count(*) from detect.exception")).scalar() == 0


def test_two_clusters_may_have_different_flush_limits_for_the_same_topic(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        for cluster in ("raw", "mail"):
            place = {"hour": HOUR, "cluster": cluster, "endpoint": "e1"}
            flushes = {"samples": 3, "covered_seconds": 3600, "log_flushes_per_second": 1, "log_flush_p95_ms": 400}
            insert_row(connection, "metrics.broker_hourly", {**place, "broker_id": 1, **flushes})
            insert_row(connection, "metrics.broker_topic_sample", {**place, "topic": "orders", "log_bytes": 1})
    exception = {"where": {"cluster": "mail"}, "params": {"patterns": '{"^orders$": 5000}'}, "why": "nobody waits"}
    config = Config.model_validate({"detectors": {"log_flush_slow": {"exceptions": [exception]}}})
    rule = load_detectors()["log_flush_slow"]
    with warehouse.connect() as connection:
        found = findings(connection, rule, HOUR, config, rule.params_in_force(config))
    limits = {finding.resource.columns["cluster"]: (finding.reason, finding.metrics["limit_ms"]) for finding in found}
    assert limits == {"raw": ("slow", 100), "mail": ("within_limit", 5000)}


def test_a_failed_load_blocks_the_detector_and_keeps_its_stored_findings(warehouse: sa.Engine, tmp_path: Path) -> None:
    loaded(warehouse)
    evaluate(warehouse, detector(tmp_path, ROW.format(reason="bad")), HOUR, Config())
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update detect.load set status = 'failed'")
    detector_run = evaluate(warehouse, detector(tmp_path, ROW.format(reason="good")), HOUR, Config())
    assert (detector_run.status, detector_run.message) == ("blocked", "app consumer_groups failed: no route")
    assert stored(warehouse) == [("c/a <b>", "firing")]


def test_a_missing_load_blocks_the_detector(warehouse: sa.Engine, tmp_path: Path) -> None:
    detector_run = evaluate(warehouse, detector(tmp_path, ROW.format(reason="good")), HOUR, Config())
    assert (detector_run.status, detector_run.message) == ("blocked", "app consumer_groups has not loaded this hour")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1 / 0 as reason, :hour as x", "a_test.sql: division by zero"),
        ("select\n  nothing, :hour as x", 'a_test.sql:17:3: column "nothing" does not exist (`nothing, :hour as x`)'),
        ("select :hour::nothing as x", 'a_test.sql:16:15: type "nothing" does not exist'),
        (ROW.format(reason="fine"), "reason 'fine' is not defined under `verdicts`"),
        (f"{ROW.format(reason='good')} union all {ROW.format(reason='good')}", "two rows about group:c/a <b>"),
        (ROW.format(reason="good").replace("'c' as cluster", "null as cluster"), "key column cluster is null"),
        (ROW.format(reason="bad").replace("size_bytes", "weight"), "verdicts.bad: c/a <b>: "),
    ],
)
def test_bad_sql_is_one_line_and_stores_nothing(warehouse: sa.Engine, tmp_path: Path, sql: str, expected: str) -> None:
    loaded(warehouse)
    detector_run = evaluate(warehouse, detector(tmp_path, sql), HOUR, Config())
    assert detector_run.status == "failed"
    assert expected in str(detector_run.message)
    assert "a_test.sql" in str(detector_run.message)
    assert "\n" not in str(detector_run.message)
    assert stored(warehouse) == []


def test_an_invalid_owner_pattern_is_skipped_with_a_warning(
    warehouse: sa.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    owners = [Owner.model_construct(key_pattern=one, owner="a") for one in ("^(?P<c>demo)/", "^group:")]
    with warehouse.begin() as connection:
        sync_config(connection, Config.model_construct(owners=owners, latency_targets=[]))
        assert connection.exec_driver_sql("select detect.owner_of('group:demo/x')").scalar() == "a"
    assert "key_pattern '^(?P<c>demo)/' is ignored" in caplog.text
