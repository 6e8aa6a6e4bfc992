"""The REST API and the Prometheus page on a real Airflow: who may read, who may respond, what a stranger gets."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from demo.airflow import Airflow

pytestmark = pytest.mark.slow
PATHS = (
    "/openapi.json", "/resources", "/resources/group/demo/billing", "/findings", f"/findings/{'0' * 64}", "/incidents",
    f"/incidents/{'0' * 64}", "/clusters/demo/groups", "/clusters/demo/groups/billing/lag",
)  # fmt: skip


def client(airflow: Airflow, user: str | None, *, by_cookie: bool = False) -> httpx.Client:
    """A client with the user's token, in the header or in Airflow's session cookie."""
    token = airflow.token(user) if user else ""
    headers = {"Authorization": f"Bearer {token}"} if user and not by_cookie else {}
    cookies = {"_token": token} if by_cookie else {}
    return httpx.Client(base_url=f"{airflow.url}/streamwarden/api/v1", headers=headers, cookies=cookies, timeout=60)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "x", "made.up.token"])
def test_a_stranger_reads_nothing(airflow: Airflow, findings: dict[str, str], path: str, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{airflow.url}/streamwarden/api/v1{path}", headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), answer.text
    assert answer.headers["www-authenticate"] == "Bearer" and "demo" not in answer.text


def test_a_viewer_reads_and_cannot_respond(
    airflow: Airflow, findings: dict[str, str], module_warehouse: sa.Engine
) -> None:
    viewer = client(airflow, "viewer")
    for path in PATHS:
        assert viewer.get(path).status_code == (404 if "0000" in path else 200), path
    (found,) = [one for one in viewer.get("/findings").json()["items"] if one["fingerprint"] == findings["billing"]]
    assert (found["status"], found["cluster"], found["kind"]) == ("firing", "demo", "group")
    answer = _respond(viewer, findings)
    assert answer.status_code == 403 and "permission to edit the DAG `hourly`" in answer.json()["detail"]
    assert _responses(module_warehouse) == []
    assert viewer.get("/openapi.json").json()["servers"] == [{"url": "/streamwarden/api/v1"}]


def test_an_editor_responds_with_the_token_and_not_with_a_cookie(
    airflow: Airflow, findings: dict[str, str], module_warehouse: sa.Engine
) -> None:
    by_cookie = client(airflow, "editor", by_cookie=True)
    assert by_cookie.get("/findings").status_code == 200
    refused = _respond(by_cookie, findings)
    assert refused.status_code == 401 and "a cookie is not accepted" in refused.json()["detail"]
    assert _responses(module_warehouse) == []
    answer = _respond(client(airflow, "editor"), findings)
    assert (answer.status_code, answer.json()["who"]) == (201, "editor")
    assert _responses(module_warehouse) == [("comment", "editor", "the API", "Known.")]


def test_the_metrics_are_off_without_a_token_in_the_config(airflow: Airflow, findings: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {airflow.token('admin')}"}
    answer = httpx.get(f"{airflow.url}/streamwarden/metrics", headers=headers)
    assert (answer.status_code, answer.text) == (403, "The page is off: set `prometheus.token` in the config.")


def _respond(by: httpx.Client, findings: dict[str, str]) -> httpx.Response:
    body: dict[str, Any] = {"verb": "comment", "text": "Known."}
    return by.post(f"/findings/{findings['billing']}/responses", json=body)


def _responses(warehouse: sa.Engine) -> list[tuple[Any, ...]]:
    with warehouse.connect() as connection:
        rows = connection.execute(sa.text("select verb, who, place, words from tickets.response"))
        return [tuple(row) for row in rows]
