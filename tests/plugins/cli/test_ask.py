"""`streamwarden ask`: the list, formats, exit codes, and errors that name parameter, value, and fix."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV
from streamwarden.questions import load_questions

from tests.plugins.cli.test_cli import in_this_process
from tests.sql.rows import HOUR, insert_rows


@pytest.fixture
def readers(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warehouse with two groups that read topic orders, and a config."""
    config = tmp_path / "streamwarden.yaml"
    config.write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(config))
    with warehouse.begin() as connection:
        insert_rows(connection, "detect.load", [{"hour": HOUR, "app": "consumer_groups", "status": "loaded"}])
        for group, lag_seconds in (("=billing", 1.5), ("search", None)):
            row = {"hour": HOUR, "cluster": "c", "group_id": group, "topic": "orders", "partition": 0}
            further = {"records_consumed": len(group), "lag_seconds": lag_seconds}
            insert_rows(connection, "metrics.consumer_partition_hourly", [row | further])


def ask(*arguments: str) -> CompletedProcess[str]:
    return in_this_process("ask", *arguments)


def test_list_names_every_question() -> None:
    assert [row["question"] for row in json.loads(ask("--json").stdout)] == list(load_questions())
    shown = ask()
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in load_questions())


@pytest.mark.usefixtures("readers")
def test_json_and_csv_have_typed_values_and_nulls() -> None:
    rows = json.loads(ask("topic_readers", "--param", "topic=orders", "--json").stdout)
    assert [(row["group_id"], row["lag_seconds"]) for row in rows] == [("=billing", 1.5), ("search", None)]
    assert rows[0]["last_hour"] == "2026-01-05T10:00:00Z"
    assert rows[0]["records_consumed"] == 8
    table = list(csv.DictReader(StringIO(ask("topic_readers", "--param", "topic=orders", "--csv").stdout)))
    assert [(row["group_id"], row["lag_seconds"]) for row in table] == [("=billing", "1.5"), ("search", "")]


@pytest.mark.usefixtures("readers")
def test_limit_is_reported_on_stderr() -> None:
    done = ask("topic_readers", "--param", "topic=orders", "--limit", "1", "--json")
    assert len(json.loads(done.stdout)) == 1
    assert done.stderr == "streamwarden: only the first 1 row; raise --limit.\n"


@pytest.mark.usefixtures("readers")
def test_no_rows(warehouse: sa.Engine) -> None:
    done = ask("topic_readers", "--param", "topic=nothing")
    assert (done.returncode, done.stdout.startswith("No rows. No hour has been evaluated yet")) == (0, True)
    with warehouse.begin() as connection:
        counts = dict.fromkeys(("firing", "ok", "unknown", "seconds"), 0)
        run = {"hour": HOUR, "detector": "d", "status": "evaluated", "sql_checksum": "a", "params": "{}"}
        insert_rows(connection, "detect.detector_run", [run | counts | {"evaluated_at": HOUR}])
    assert ask("topic_readers", "--param", "topic=nothing").stdout == (
        "No rows. `streamwarden ask data_missing` lists the sources that did not respond.\n"
    )
    assert json.loads(ask("topic_readers", "--param", "topic=nothing", "--json").stdout) == []


@pytest.mark.usefixtures("readers")
@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["nothing"], 1, "nothing: no such question; `streamwarden ask` lists all."),
        (["topic_readrs"], 1, "topic_readrs: no such question; did you mean 'topic_readers'?"),
        (["topic_readers"], 1, "--param topic: a value is required: Name of the topic. Example: topic=orders."),
        (["topic_readers", "--param", "orders"], 1, "--param orders: must be NAME=VALUE"),
        (["topic_readers", "--param", "topic=a", "--param", "topic=b"], 1, "--param topic=b: topic is given twice"),
        (
            ["topic_readers", "--param", "topik=a"],
            1,
            "--param topik: topic_readers has no such parameter",
        ),
        (
            ["topic_readers", "--param", "topic=a", "--param", "hours=soon"],
            1,
            "--param hours='soon': must be a number",
        ),
        (["topic_readers", "--json", "--csv"], 2, "give either --json or --csv"),
        (["topic_readers", "--limit", "0"], 2, "--limit"),
    ],
)
def test_errors_name_parameter_value_and_fix(arguments: list[str], code: int, expected: str) -> None:
    done = ask(*arguments)
    assert done.returncode == code
    assert expected in done.stderr
    assert done.stdout == ""


@pytest.mark.usefixtures("readers")
def test_listings_print_json(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        ticket = {"hour": HOUR, "fingerprint": "a" * 64, "detector": "d", "title": "Slow", "state": "open"}
        insert_rows(connection, "tickets.ticket", [ticket | {"opened_hour": HOUR, "severity": "warning"}])
        response = {"hour": HOUR, "fingerprint": "a" * 64, "verb": "comment", "who": "ana", "words": "checked"}
        insert_rows(connection, "tickets.response", [response])
    (listed,) = json.loads(in_this_process("tickets", "list", "--json").stdout)
    assert (listed["title"], listed["opened_hour"]) == ("Slow", "2026-01-05T10:00:00Z")
    (stored,) = json.loads(in_this_process("tickets", "responses", "aaaa", "--json").stdout)
    assert (stored["verb"], stored["words"]) == ("comment", "checked")
    detectors = {one["id"]: one for one in json.loads(in_this_process("detectors", "list", "--json").stdout)}
    assert detectors["broker_down"]["title"] == "Broker down"
    sizes = {one["table"]: one for one in json.loads(in_this_process("warehouse", "size", "--json").stdout)}
    assert sizes["tickets.ticket"]["held_bytes"] > 0
