"""The REST API and the Prometheus page in process, on the sample fleet: data, paging, hostile requests, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
import sqlalchemy as sa
import yaml
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from prometheus_client.parser import text_string_to_metric_families
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config
from streamwarden.base.config.interfaces import Prometheus
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.base.paths import PROJECT_ROOT

from tests.sample_fleet import CLUSTER, GROUPS, TOPICS, run_hours

pytestmark = pytest.mark.slow
TOKEN = "prometheus-s3cr3t"
EDITOR = {"Authorization": "Bearer of-the-editor"}
JSON = {"Content-Type": "application/json"}
NOWHERE = "0" * 64
_GROUPS = sa.text("""
    update metrics.consumer_group_hourly as g
    set lag_seconds_max = p.seconds, lag_records = p.records, worst_topic = p.topic
    from (
      select hour, group_id, max(lag_seconds) as seconds, sum(lag_records) as records, min(topic) as topic
      from metrics.consumer_partition_hourly group by hour, group_id
    ) as p
    where g.hour = p.hour and g.group_id = p.group_id""")


@pytest.fixture(scope="module")
def place(module_warehouse: sa.Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """The sample fleet in the warehouse, and a config that the API loads."""
    run_hours(module_warehouse, last_full_hour(), Config(), [])
    with module_warehouse.begin() as connection:
        connection.execute(_GROUPS)
    config = tmp_path_factory.mktemp("api") / "streamwarden.yaml"
    config.write_text(f"prometheus: {{token: {TOKEN}, lag_series: 2}}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONFIG_ENV, str(config))
        patch.setenv(WAREHOUSE_ENV, module_warehouse.url.set(drivername="postgresql").render_as_string(False))
        patch.setenv("AIRFLOW__API__SECRET_KEY", "a secret of the test's")
        yield SimpleNamespace(config=config, warehouse=module_warehouse)


@pytest.fixture(scope="module")
def api(place: SimpleNamespace) -> Iterator[TestClient]:
    """A client of the API whose user may read and respond; `test_api_access` tests the login."""
    from airflow.api_fastapi.core_api.security import get_user
    from streamwarden.api import app as module

    user = SimpleNamespace(get_name=lambda: "vera", get_id=lambda: "vera")
    module.app.dependency_overrides = {
        module.require_viewer: lambda: None, module.require_editor: lambda: None, get_user: lambda: user,
    }  # fmt: skip
    yield TestClient(module.app, raise_server_exceptions=False)
    module.app.dependency_overrides = {}


def items(api: TestClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """All items of a list, page by page."""
    found, cursor = [], None
    for _ in range(100):
        page = api.get(path, params={**query, **({"cursor": cursor} if cursor else {})}).raise_for_status().json()
        found += page["items"]
        if (cursor := page["next_cursor"]) is None:
            return found
        assert len(page["items"]) == query.get("limit", 100)
    raise AssertionError(f"{path} has no last page")


def test_resources_are_paged_and_filtered(api: TestClient) -> None:
    every = items(api, "/resources")
    assert [one["key"] for one in every] == sorted({one["key"] for one in every})
    assert items(api, "/resources", limit=3) == every
    assert api.get("/resources?cursor=").json()["items"] == every, "an empty cursor is the first page"
    brokers = items(api, "/resources", kind="broker", cluster=CLUSTER)
    assert [one["key"] for one in brokers] == [f"broker:{CLUSTER}/{broker}" for broker in (1, 2, 3)]
    assert {one["key"].split(":")[0] for one in items(api, "/resources", owner="streaming")} >= {"volume", "instance"}
    assert items(api, "/resources", application="nothing") == []


def test_a_resource_has_its_dependencies_and_findings(api: TestClient) -> None:
    broker = api.get(f"/resources/broker/{CLUSTER}/3").raise_for_status().json()
    assert broker["upstream"] and broker["downstream"] and all(link["basis"] for link in broker["upstream"])
    for link in broker["upstream"]:
        other = api.get(f"/resources/{link['key'].replace(':', '/', 1)}").raise_for_status().json()
        assert broker["key"] in {back["key"] for back in other["downstream"]}
    assert {one["detector"] for one in broker["findings"]} >= {"log_flush_slow"}
    assert all(one["resource"] == broker["key"] for one in broker["findings"])


def test_findings_are_worst_first_paged_and_filtered(api: TestClient) -> None:
    every = items(api, "/findings")
    ranks = [("critical", "warning", "info").index(one["severity"]) for one in every]
    assert len(every) > 3 and ranks == sorted(ranks) and len({one["fingerprint"] for one in every}) == len(every)
    assert items(api, "/findings", limit=1) == every
    for key in ("detector", "status", "severity", "owner", "cluster", "kind"):
        for value in {one[key] for one in every} - {None}:
            assert items(api, "/findings", **{key: value}) == [one for one in every if one[key] == value], (key, value)
    (volume,) = items(api, "/findings", detector="ebs_volume_starving")
    assert (volume["status"], volume["severity"], volume["owner"]) == ("firing", "critical", "streaming")
    assert volume["ticket"]["state"] == "open" and volume["actions"] and volume["metrics"]
    assert {"volume", "group"} <= {one["kind"] for one in every}


def test_a_finding_is_the_one_of_the_list(api: TestClient) -> None:
    for one in items(api, "/findings")[:5]:
        detail = api.get(f"/findings/{one['fingerprint']}").raise_for_status().json()
        assert one.items() <= detail.items() and "affected" in detail


def test_an_incident_has_its_root_cause_first(api: TestClient) -> None:
    every = items(api, "/incidents", limit=1)
    assert every == items(api, "/incidents")
    (root,) = [one for one in every if one["detector"] == "ebs_volume_starving"]
    assert (root["state"], root["severity"]) == ("open", "critical") and root["findings"] > 2
    incident = api.get(f"/incidents/{root['fingerprint']}").raise_for_status().json()
    first, *others = incident["members"]
    assert first["fingerprint"] == root["fingerprint"] and first["cause"] is None
    assert len(others) == root["findings"] - 1 and all(one["cause"] and one["evidence"] for one in others)
    effect = api.get(f"/incidents/{others[-1]['fingerprint']}").raise_for_status().json()
    assert effect == incident, "an effect leads to the incident of its root cause"
    assert items(api, "/incidents", state="closed") == []


def test_the_lag_of_a_group_by_partition(api: TestClient, place: SimpleNamespace) -> None:
    groups = items(api, f"/clusters/{CLUSTER}/groups")
    assert (
        [one["group_id"] for one in groups]
        == sorted(GROUPS)
        == [one["group_id"] for one in items(api, f"/clusters/{CLUSTER}/groups", limit=1)]
    )
    with place.warehouse.begin() as connection:
        nobody = "update metrics.consumer_partition_hourly set client_id = null, host = null where group_id = 'billing'"
        connection.execute(sa.text(nobody))
        connection.execute(
            sa.text(
                "update metrics.consumer_partition_hourly set client_id = 'billing-1', host = '10.0.0.9',"
                " log_end_offset = 120, committed_offset = 100 where group_id = 'billing' and partition = 2"
            )
        )
    path = f"/clusters/{CLUSTER}/groups/billing/lag"
    lag = api.get(path).raise_for_status().json()
    assert [one["partition"] for one in lag["items"]] == list(range(TOPICS["orders"]))
    assert lag["items"] == items(api, path, limit=5)
    third = lag["items"][2]
    assert (third["committed_offset"], third["log_end_offset"]) == (100, 120)
    assert third["owner_member"] == {"client_id": "billing-1", "host": "10.0.0.9"}
    assert lag["items"][1]["owner_member"] is None
    assert lag["lag_seconds_max"] == max(one["lag_seconds"] for one in lag["items"]) > 0
    assert lag["state"] and datetime.fromisoformat(lag["hour"]) == last_full_hour()


@pytest.mark.parametrize(
    "path",
    [
        f"/findings/{NOWHERE}", f"/incidents/{NOWHERE}", "/resources/broker/nowhere/1", "/clusters/nowhere/groups",
        f"/clusters/{CLUSTER}/groups/nobody/lag", "/nothing", "/clusters/a/groups/x/y/lag",
        f"/resources/topic/{quote('<script>alert(1)</script>')}", f"/clusters/{quote('‮😀')}/groups",
    ],
)  # fmt: skip
def test_an_unknown_object_is_a_problem_with_status_404(api: TestClient, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json().keys() == {"type", "title", "status", "detail"} and answer.json()["status"] == 404


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/findings?limit=0", "limit"), ("/findings?limit=501", "limit"), ("/findings?limit=ten", "limit"),
        ("/findings?status=broken", "status"), ("/findings?severity=", "severity"), ("/findings/abc", "fingerprint"),
        ("/findings?owner=%00", "owner"), (f"/findings?owner={'x' * 301}", "owner"), ("/findings?owner=", "owner"),
        ("/resources/broker/a%00b", "key"), (f"/clusters/{'c' * 400}/groups", "cluster"),
        ("/incidents?state=ajar", "state"), ("/resources?cursor=!!", "cursor"), ("/findings?cursor=WzFd", "cursor"),
        ("/incidents?cursor=WyJhIl0", "cursor"), ("/resources?cursor=WyJcdTAwMDAiXQ", "cursor"),
        ("/resources?cursor=bnVsbA", "cursor"), ("/resources?cursor=%F0%9F%98%80", "cursor"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_named_with_status_422(api: TestClient, path: str, key: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), answer.text
    assert answer.json()["detail"].startswith(f"{key}: ")


def test_a_cursor_beyond_all_numbers_ends_the_list(api: TestClient) -> None:
    from streamwarden.api.cursor import cursor_of

    for path, position in (
        ("/incidents", (10**30,)), ("/incidents", (-(10**30),)), ("/findings", (10**30, 1e308, "z")),
        (f"/clusters/{CLUSTER}/groups/billing/lag", ("orders", 10**30)),
    ):  # fmt: skip
        assert api.get(path, params={"cursor": cursor_of(*position)}).status_code in (200, 422)


@pytest.fixture
def audit(api: TestClient) -> str:
    """Fingerprint of an open finding."""
    (found,) = [one for one in items(api, "/findings") if one["resource_name"] == f"{CLUSTER}/audit"]
    return str(found["fingerprint"])


def stored(place: SimpleNamespace) -> list[tuple[Any, ...]]:
    with place.warehouse.connect() as connection:
        rows = connection.execute(sa.text("select verb, who, place, words from tickets.response order by response_id"))
        return [tuple(row) for row in rows]


def test_responses_are_stored(api: TestClient, place: SimpleNamespace, audit: str) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    for body in (
        {"verb": "comment", "text": "Known."}, {"verb": "acknowledge"}, {"verb": "false_positive", "text": "Clock."},
        {"verb": "snooze", "until": until.isoformat()},
    ):  # fmt: skip
        answer = api.post(f"/findings/{audit}/responses", json=body, headers=EDITOR)
        assert answer.status_code == 201, answer.text
        assert (answer.json()["who"], answer.json()["verb"]) == ("vera", body["verb"])
    assert stored(place)[-4:] == [
        ("comment", "vera", "the API", "Known."), ("acknowledge", "vera", "the API", None),
        ("false_positive", "vera", "the API", "Clock."), ("snooze", "vera", "the API", None),
    ]  # fmt: skip
    ticket = api.get(f"/findings/{audit}").json()["ticket"]
    assert (ticket["acknowledged_by"], ticket["muted"]) == ("vera", "snoozed")


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"verb": "dance"}, 422, "verb: "), ({}, 422, "verb: "), ([], 422, "body: "), ("x", 422, "body: "),
        ({"verb": "comment"}, 422, "`comment` needs `text`"), ({"verb": "snooze"}, 422, "`snooze` needs `until`"),
        ({"verb": "comment", "text": "a\0b"}, 422, "NUL"), ({"verb": "comment", "text": "x" * 2001}, 422, "text: "),
        ({"verb": "comment", "text": "\ud800"}, 422, "text: "), ({"verb": "comment", "text": 7}, 422, "text: "),
        ({"verb": "snooze", "until": "0001-01-01T00:00:00+23:00"}, 422, "until: "),
        ({"verb": "snooze", "until": "9999-12-31T23:59:59-23:00"}, 422, "until: "),
        ({"verb": "snooze", "until": "2030-01-01T00:00:00"}, 422, "until: "),
        ({"verb": "snooze", "until": "2020-01-01T00:00:00Z"}, 409, "in the past"),
        ({"verb": "acknowledge", "who": "root"}, 422, "who: "),
        ({"verb": "comment", "text": "x" * 70_000}, 413, "larger than 64 KiB"),
    ],
)  # fmt: skip
def test_an_invalid_response_changes_nothing(
    api: TestClient, place: SimpleNamespace, audit: str, body: Any, status: int, detail: str
) -> None:
    before = stored(place)
    answer = api.post(f"/findings/{audit}/responses", content=json.dumps(body), headers=EDITOR | JSON)
    assert answer.status_code == status and detail in answer.json()["detail"], answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert stored(place) == before


def test_a_body_that_is_not_json_and_an_unknown_finding_are_refused(api: TestClient, audit: str) -> None:
    address = f"/findings/{audit}/responses"
    assert api.post(address, content=b"{", headers=EDITOR | JSON).status_code == 400
    body = {"verb": "comment", "text": "x"}
    assert api.post(f"/findings/{NOWHERE}/responses", json=body, headers=EDITOR).status_code == 404
    assert api.post(address, json=body).status_code == 401, "a cookie alone does not suffice"
    assert api.delete(address).status_code == 405


def test_reading_is_a_read_only_transaction_with_a_timeout(
    api: TestClient, place: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamwarden.api import reading

    with reading.warehouse() as (connection, _):
        assert connection.execute(sa.text("show transaction_read_only")).scalar() == "on"
        assert connection.execute(sa.text("show statement_timeout")).scalar() == reading.TIMEOUT
    monkeypatch.setattr(reading, "TIMEOUT", "50ms")
    monkeypatch.setattr(
        reading, "ask", lambda connection, *_, **__: connection.execute(sa.text("select pg_sleep(1)")).all()
    )
    answer = api.get("/findings")
    assert answer.status_code == 503 and "The query took longer" in answer.json()["detail"]


def test_an_error_leaks_nothing(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamwarden.api import reading

    def fails(*_: Any) -> Any:
        raise RuntimeError("password=s3cr3t")

    monkeypatch.setattr(reading, "incidents", fails)
    answer = api.get("/incidents")
    assert answer.status_code == 500 and "s3cr3t" not in answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    monkeypatch.setenv(WAREHOUSE_ENV, "postgresql://vera:s3cr3t@127.0.0.1:1/nothing")
    answer = api.get("/resources")
    assert answer.status_code == 503 and "s3cr3t" not in answer.text and "127.0.0.1" not in answer.text


def test_no_request_of_the_schema_fails(api: TestClient) -> None:
    """schemathesis: requests that the OpenAPI allows and forbids; no 5xx, and every response as declared."""
    document = api.get("/openapi.json").raise_for_status().json()
    assert document["info"]["title"] == "Streamwarden" and len(document["paths"]) == 9
    schema = schemathesis.openapi.from_dict(document)
    tried = [_try(api, result.ok()) for result in schema.get_all_operations()]
    assert sum(tried) > 9 * 10


def _try(api: TestClient, operation: Any) -> int:
    """Sends generated requests to an operation; returns how many."""
    tried = 0
    declared = {*operation.definition.raw["responses"], "404", "405", "413"}

    @settings(
        max_examples=40, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def run(case: schemathesis.Case) -> None:
        nonlocal tried
        request = case.as_transport_kwargs(base_url="http://testserver")
        request["headers"] = {**dict(request.get("headers") or {}), **EDITOR}
        request.pop("cookies", None)
        answer = api.request(**request)
        assert str(answer.status_code) in declared and answer.status_code < 500, (request, answer.text)
        tried += 1

    run()
    return tried


def metrics_client() -> TestClient:
    from streamwarden.api.metrics import app

    return TestClient(app, raise_server_exceptions=False)


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric and label values, in the order of the labels' names."""
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_the_metrics_are_those_of_the_warehouse(api: TestClient, place: SimpleNamespace) -> None:
    answer = metrics_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=")
    found = samples(answer.text)
    opened = found["streamwarden_open_findings"]
    assert opened["ebs_volume_starving", "streaming", "critical"] == 1
    muted = [one for one in items(api, "/findings") if one["ticket"] and one["ticket"]["muted"]]
    assert sum(opened.values()) == len(items(api, "/findings")) - len(muted)
    lag = found["streamwarden_consumer_lag_seconds"]
    assert len(lag) == 2 == len(found["streamwarden_consumer_lag_records"]), "bounded by lag_series"
    assert found["streamwarden_consumer_lag_pairs_omitted"] == {(): 1}
    worst = max(items(api, f"/clusters/{CLUSTER}/groups"), key=lambda one: one["lag_seconds_max"])
    assert lag[CLUSTER, worst["group_id"], worst["worst_topic"]] == worst["lag_seconds_max"] == max(lag.values())
    complete = found["streamwarden_newest_complete_hour_timestamp_seconds"]
    assert complete == {(): (last_full_hour() + HOUR).timestamp()}
    assert found["streamwarden_source_resources"]["brokers", "jmx"] == 3
    assert found["streamwarden_source_resources_missing"]["brokers", "jmx"] == 0
    assert all(name.startswith("streamwarden_") for name in found)
    advice = found["streamwarden_open_advice"]
    assert sum(advice.values()) == sum(
        one["severity"] == "info" and not one["ticket"] for one in items(api, "/findings")
    )


def test_the_documentation_lists_every_route_and_metric(api: TestClient, place: SimpleNamespace) -> None:
    page = (PROJECT_ROOT / "docs" / "interfaces.md").read_text()
    routes = {tuple(found) for found in re.findall(r"^\| `(GET|POST) ([^`]+)` \|", page, flags=re.MULTILINE)}
    paths = api.get("/openapi.json").json()["paths"]
    assert routes == {(method.upper(), path) for path, methods in paths.items() for method in methods}
    for method, path in routes - {("POST", "/findings/{fingerprint}/responses")}:
        line = next(line for line in page.splitlines() if line.startswith(f"| `{method} {path}` |"))
        parameters = {one["name"] for one in paths[path]["get"]["parameters"] if one["in"] == "query"}
        assert set(re.findall(r"`(\w+)`", line.split("|")[3])) == parameters - {"limit", "cursor"}
    text = metrics_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    assert set(re.findall(r"^\| `(streamwarden_\w+)` \|", page, flags=re.MULTILINE)) == set(samples(text))
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)]
    settings = next(block["prometheus"] for block in blocks if "prometheus" in block)
    assert Prometheus.model_validate(settings).lag_series == Prometheus().lag_series


def test_metrics_of_missing_data_are_not_healthy(place: SimpleNamespace) -> None:
    change = (
        "update detect.coverage set status = 'missing' where app = 'brokers' and resource_name = 'jmx-0';"
        "update detect.load set status = 'failed' where app = 'brokers'"
        f" and hour = '{last_full_hour().isoformat()}';"
        "update metrics.consumer_partition_hourly set lag_records = null, lag_seconds = null where group_id = 'audit'"
    )
    with place.warehouse.begin() as connection:
        connection.exec_driver_sql(change)
    answer = metrics_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    found = samples(answer.text)
    assert found["streamwarden_source_resources_missing"]["brokers", "jmx"] == 1
    complete = found["streamwarden_newest_complete_hour_timestamp_seconds"]
    assert complete == {(): last_full_hour().timestamp()}, "the hour before: an app failed in the newest"
    assert not [labels for labels in found["streamwarden_consumer_lag_records"] if "audit" in labels]


@pytest.mark.parametrize("header", [None, "", TOKEN, "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Bearer é"])
def test_metrics_need_the_token(place: SimpleNamespace, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    answer = metrics_client().get("/metrics", headers=headers)  # type: ignore[arg-type]
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert TOKEN not in answer.text


def test_metrics_are_off_without_a_token_and_unavailable_without_a_warehouse(
    place: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WAREHOUSE_ENV, "postgresql://vera:s3cr3t@127.0.0.1:1/nothing")
    answer = metrics_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 503 and "s3cr3t" not in answer.text
    (tmp_path / "s.yaml").write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    assert metrics_client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
