"""Grafana's dashboards: the JSON is current; every panel's SQL runs on the sample fleet as Grafana sends it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from grafana.build import BOARDS, FOLDER, as_json
from streamwarden.base.config import Config
from streamwarden.base.hours import last_full_hour
from streamwarden.base.paths import PROJECT_ROOT, SQL

from tests.conftest import SpareWarehouses
from tests.sample_fleet import CLUSTER, run_hours
from tests.sql.rows import insert_rows

APP = 'billing\'s "app"'
VOLUME = "vol-03a1b2c3d4e5f607"
NEWEST = last_full_hour()
FILES = sorted(FOLDER.glob("*.json"))
DOCUMENTS = {file.stem: json.loads(file.read_text()) for file in FILES}
PANELS = [(name, panel) for name, document in DOCUMENTS.items() for panel in document["panels"]]
EMPTY = {"Failed deliveries to trackers", "False positives", "Time to resolve (median)"}
"""Panels without rows on the sample fleet: nothing failed, and nothing was closed or reported."""
NOT_MEASURED = {
    "Produce latency (p99)", "Bytes produced", "Bytes fetched by consumers", "Request handler idle ratio (minimum)",
    "Open findings of $application",
}  # fmt: skip
"""Panels of metrics that the sample fleet does not have."""


@pytest.fixture(scope="module")
def fleet(spare_warehouses: SpareWarehouses) -> Iterator[sa.Engine]:
    """The sample fleet with one application."""
    from streamwarden.base.warehouse import engine

    url = spare_warehouses.take()
    warehouse = engine(url)
    run_hours(warehouse, NEWEST, Config(), [])
    row = {
        "hour": NEWEST, "cluster": CLUSTER, "app": APP, "endpoint": "http://10.0.2.1:8778", "covered_seconds": 60,
        "heap_used_after_gc_bytes": 2**28, "resident_bytes": 2**29, "records_processed": 6000, "gc_seconds": 1.5,
        "cpu_ratio": 0.2, "records_to_restore": 0,
    }  # fmt: skip
    with warehouse.begin() as connection:
        insert_rows(connection, "metrics.jvm_app_hourly", [row])
    yield warehouse
    warehouse.dispose()


def sent(sql: str, **variables: str) -> str:
    """The SQL as Grafana's PostgreSQL data source sends it, for the last 35 days."""
    finish = datetime.now(UTC)
    times = {"$__timeFrom()": finish - timedelta(days=35), "$__timeTo()": finish}
    for macro, moment in times.items():
        sql = sql.replace(macro, f"'{moment:%Y-%m-%dT%H:%M:%SZ}'")
    values = {"cluster": CLUSTER, "application": APP, "volume": VOLUME} | variables
    sql = re.sub(r"\$\{(\w+):sqlstring\}", lambda found: "'" + values[found[1]].replace("'", "''") + "'", sql)
    assert "$" not in sql, sql
    return sql


def run(warehouse: sa.Engine, sql: str) -> tuple[list[str], list[Any]]:
    with warehouse.connect() as connection:
        answer = connection.exec_driver_sql(sql.replace("%", "%%"))
        return list(answer.keys()), list(answer.all())


def test_the_json_is_current() -> None:
    for board in BOARDS:
        file = FOLDER / f"{board.uid.removeprefix('streamwarden-')}.json"
        assert file.read_text() == as_json(board), f"{file.name}: run `PYTHONPATH=docker python -m grafana.build`"
    assert len(FILES) == len(BOARDS)


def test_every_query_is_drawn() -> None:
    drawn = {chart.query for board in BOARDS for chart in board.charts}
    drawn |= {query for board in BOARDS for _, query in board.variables}
    assert drawn == {file.stem for file in (SQL / "grafana").glob("*.sql")}


@pytest.mark.parametrize(("name", "panel"), PANELS, ids=[f"{name}: {panel['title']}" for name, panel in PANELS])
def test_a_panel_gets_the_columns_that_it_draws(fleet: sa.Engine, name: str, panel: dict[str, Any]) -> None:
    (target,) = panel["targets"]
    columns, rows = run(fleet, sent(target["rawSql"]))
    if panel["type"] == "timeseries":
        assert target["format"] == "time_series" and columns[0] == "time"
        is_long = columns[1:] == ["metric", "value"]
        for row in rows:
            assert isinstance(row.time, datetime)
            assert not is_long or isinstance(row.metric, str)
            numbers = row[2:] if is_long else row[1:]
            assert numbers and all(number is None or isinstance(number, float) for number in numbers)
        assert [row.time for row in rows] == sorted(row.time for row in rows)
    else:
        assert target["format"] == "table" and len(set(columns)) == len(columns) >= 1
    if panel["title"] not in EMPTY | NOT_MEASURED:
        assert rows, "the sample fleet has rows for it"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_variables_list_what_panels_select(fleet: sa.Engine, name: str) -> None:
    document = DOCUMENTS[name]
    defined = [variable["name"] for variable in document.get("templating", {}).get("list", [])]
    used = {found for panel in document["panels"] for found in re.findall(r"\$\{(\w+):", panel["targets"][0]["rawSql"])}
    assert used == set(defined) - {"cluster"} | (used & {"cluster"})
    for variable in document.get("templating", {}).get("list", []):
        columns, rows = run(fleet, sent(variable["query"]))
        assert len(columns) == 1
        expected = {"cluster": CLUSTER, "application": APP, "volume": VOLUME}[variable["name"]]
        assert expected in [row[0] for row in rows]


def test_a_value_of_a_variable_cannot_change_the_query(fleet: sa.Engine) -> None:
    for _, panel in PANELS:
        _, rows = run(fleet, sent(panel["targets"][0]["rawSql"], cluster="x' or true --", volume="\\' or true --"))
        if "$cluster" in panel["title"] or "$volume" in panel["title"]:
            assert rows == []


def test_the_data_source_of_the_panels_is_provisioned() -> None:
    folder = PROJECT_ROOT / "docker" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "streamwarden.yaml").read_text())["datasources"]
    assert {panel["datasource"]["uid"] for _, panel in PANELS} == {source["uid"]}
    assert {panel["datasource"]["type"] for _, panel in PANELS} == {source["type"]}
    assert source["secureJsonData"]["password"].startswith("$"), "secrets come from the environment"
    compose = yaml.safe_load((FOLDER.parent / "compose.yaml").read_text())
    grafana = compose["services"]["grafana"]
    (provider,) = yaml.safe_load((folder / "dashboards" / "streamwarden.yaml").read_text())["providers"]
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in grafana["volumes"]}
    assert mounted[provider["options"]["path"]] == "./grafana/dashboards"
    assert mounted["/etc/grafana/provisioning"] == "./grafana/provisioning"
    assert all(port.startswith("127.0.0.1:") for port in grafana["ports"])
    assert all(grafana["environment"][name[2:-1]] for name in (source["url"], source["user"]))
