"""Questions on pages: list, form, table, downloads, and errors that name the field."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient
from pyarrow import parquet
from streamwarden.base.config import CONFIG_ENV
from streamwarden.questions import load_questions
from streamwarden.ui import questions
from streamwarden.ui.pages import UnknownError
from streamwarden.ui.render import render

from tests.sql.rows import HOUR, insert_rows

NASTY = "=<script>alert(1)</script>"


@pytest.fixture
def client(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """The routes without Airflow, on a warehouse in which a group with a hostile name reads topic orders."""
    config = tmp_path / "streamwarden.yaml"
    config.write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(config))
    with warehouse.begin() as connection:
        insert_rows(connection, "detect.load", [{"hour": HOUR, "app": "consumer_groups", "status": "loaded"}])
        row = {"hour": HOUR, "cluster": "c", "topic": "orders", "partition": 0, "records_consumed": 3}
        groups = [row | {"group_id": NASTY, "lag_seconds": 1.5}, row | {"group_id": "b", "records_consumed": 2}]
        insert_rows(connection, "metrics.consumer_partition_hourly", groups)

    def page(request: Request, template: str, values: dict[str, Any], status: int) -> HTMLResponse:
        frame = {"root": "/streamwarden", "airflow": "/", "assets": "", "version": "0.1.0"}
        return HTMLResponse(render(template, frame | values), status)

    app = FastAPI()
    app.include_router(questions.routes(page))
    return TestClient(app)


def test_list_links_every_question(client: TestClient) -> None:
    page = client.get("/questions").text
    assert all(f'href="/streamwarden/questions/{name}"' in page for name in load_questions())
    assert 'href="/streamwarden/questions" aria-current="page"' in page


@pytest.mark.parametrize("name", load_questions())
def test_form_has_a_field_for_each_parameter(client: TestClient, name: str) -> None:
    done = client.get(f"/questions/{name}")
    assert done.status_code == 200
    assert all(f'name="{parameter}"' in done.text for parameter in load_questions()[name].params)
    assert '<h2 id="answer">' not in done.text


def test_answer_is_an_escaped_table(client: TestClient) -> None:
    done = client.get("/questions/topic_readers", params={"run": "true", "topic": "orders"})
    assert done.status_code == 200
    assert "2 rows" in done.text
    assert "<td>=&lt;script&gt;alert(1)&lt;/script&gt;</td>" in done.text
    assert "<script>alert" not in done.text


def test_page_shows_the_first_rows_only(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PAGE_ROWS", 1)
    page = client.get("/questions/topic_readers", params={"run": "true", "topic": "orders"}).text
    assert "1 row; only the first rows are shown" in page
    assert "format=csv" in page


def test_csv_has_no_formulas(client: TestClient) -> None:
    done = client.get("/questions/topic_readers", params={"topic": "orders", "format": "csv"})
    assert done.headers["content-disposition"] == 'attachment; filename="topic_readers.csv"'
    rows = list(csv.DictReader(StringIO(done.text)))
    assert [row["group_id"] for row in rows] == [f"'{NASTY}", "b"]
    assert rows[0]["last_hour"] == "2026-01-05T10:00:00Z"


def test_parquet_keeps_types(client: TestClient) -> None:
    done = client.get("/questions/topic_readers", params={"topic": "orders", "format": "parquet"})
    table = parquet.read_table(BytesIO(done.content))
    assert table.column_names == list(load_questions()["topic_readers"].columns)
    assert table["lag_seconds"].to_pylist() == [1.5, None]
    assert table["last_hour"].to_pylist()[0] == HOUR


@pytest.mark.parametrize("form", ["page", "csv", "parquet"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "topic: a value is required"),
        ({"topic": "x", "hours": "soon"}, "hours=&#39;soon&#39;: must be a number of hours"),
        ({"topic": "x", "nothing": "1"}, "nothing: topic_readers has no such parameter"),
    ],
)
def test_wrong_value_is_a_400_with_the_field(
    client: TestClient, form: str, values: dict[str, str], message: str
) -> None:
    done = client.get("/questions/topic_readers", params={"run": "true", "format": form, **values})
    assert done.status_code == 400
    assert message in done.text
    assert done.headers["content-type"].startswith("text/html")


def test_unknown_question(client: TestClient) -> None:
    with pytest.raises(UnknownError, match="No question has this name"):
        client.get("/questions/nothing")
