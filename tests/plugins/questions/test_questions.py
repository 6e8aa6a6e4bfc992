"""Every question runs on the sample fleet with its example parameters and returns rows with the declared columns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR as ONE_HOUR
from streamwarden.base.warehouse import engine
from streamwarden.questions import ParameterError, Question, load_questions, run_question, unknown_values
from streamwarden.questions.formats import rounded
from streamwarden.questions.load import load_question
from streamwarden.questions.run import parsed
from streamwarden.store.prices import load_prices

from tests import sample_fleet
from tests.conftest import a_database
from tests.plugins.questions.further_rows import add_further_rows
from tests.sql.rows import HOUR, insert_rows

QUESTIONS = load_questions()
HEADER = "/*\ntitle: T\nsubject: topics\ndescription: D\nparams: {{{params}}}\ncolumns: {{a: A}}\n*/\n{sql}\n"


@pytest.fixture(scope="module")
def fleet(migrated_template: str) -> Iterator[sa.Engine]:
    """The sample fleet, with rows of the tables that it leaves empty."""
    with a_database(like=migrated_template) as url:
        warehouse = engine(url)
        config = Config()
        load_prices(warehouse, config)
        sample_fleet.run_hours(warehouse, HOUR, config, [])
        add_further_rows(warehouse, HOUR)
        yield warehouse


@pytest.fixture
def topic_readers() -> Question:
    return QUESTIONS["topic_readers"]


def examples(question: Question) -> dict[str, str]:
    return {name: str(one.example) for name, one in question.params.items() if one.example is not None}


@pytest.mark.parametrize("name", QUESTIONS)
def test_question_returns_rows_with_the_declared_columns(fleet: sa.Engine, name: str) -> None:
    answer = run_question(fleet, QUESTIONS[name], examples(QUESTIONS[name]))
    assert answer.columns == list(QUESTIONS[name].columns)
    assert answer.rows, "extend further_rows.py so that this question has an answer"


@pytest.mark.parametrize("name", QUESTIONS)
def test_question_runs_on_an_empty_warehouse(module_warehouse: sa.Engine, name: str) -> None:
    answer = run_question(module_warehouse, QUESTIONS[name], examples(QUESTIONS[name]))
    assert answer.columns == list(QUESTIONS[name].columns)


def test_readers_of_a_topic(fleet: sa.Engine, topic_readers: Question) -> None:
    answer = run_question(fleet, topic_readers, {"topic": "orders"})
    assert {row[:2] for row in answer.rows} == {("orders-prod", "billing"), ("orders-prod", "stuck")}
    assert not run_question(fleet, topic_readers, {"topic": "orders", "cluster": "other"}).rows


@pytest.mark.parametrize(
    ("question", "values", "sentence"),
    [
        ("topic_readers", {"topic": "ordres"}, "No topic has the name 'ordres'; did you mean 'orders'?"),
        (
            "topic_readers",
            {"topic": "orders", "cluster": "x"},
            "No cluster has the name 'x'; the view `resource` ",
        ),
        ("group_members", {"group_id": "bill"}, "No group has the name 'bill'; did you mean 'billing'?"),
        ("resource_dependencies", {"resource": "broker 3"}, "No resource has the key 'broker 3'; "),
        ("resource_dependencies", {"resource": "orders-prod/3"}, "did you mean 'broker:orders-prod/3'?"),
    ],
)
def test_a_value_that_names_nothing_is_named(
    fleet: sa.Engine, question: str, values: dict[str, str], sentence: str
) -> None:
    (why,) = unknown_values(fleet, QUESTIONS[question], values)
    assert sentence in why


def test_a_known_value_and_an_empty_warehouse_have_no_sentence(
    fleet: sa.Engine, module_warehouse: sa.Engine, topic_readers: Question
) -> None:
    assert unknown_values(fleet, topic_readers, {"topic": "orders", "cluster": "orders-prod"}) == []
    assert unknown_values(module_warehouse, topic_readers, {"topic": "nothing"}) == []


def test_what_depends_on_a_broker_is_not_what_it_depends_on(fleet: sa.Engine) -> None:
    question = QUESTIONS["resource_dependencies"]
    answer = run_question(fleet, question, {"resource": "broker:orders-prod/3"})
    kinds = {row[answer.columns.index("kind")] for row in answer.rows}
    assert "topic" in kinds and not kinds & {"volume", "instance", "broker"}


def test_lagging_group_has_its_root_cause(fleet: sa.Engine) -> None:
    question = QUESTIONS["groups_lagging_most"]
    rows = [dict(zip(question.columns, row, strict=True)) for row in run_question(fleet, question, {}).rows]
    cause = {row["group_id"]: row["root_cause"] for row in rows}
    assert cause["billing"] is not None
    assert cause["audit"] is None


def test_changes_on_the_chain_of_a_group(fleet: sa.Engine) -> None:
    """The group search gets a third host in the first throttled hour, two hours before the newest one."""
    question = QUESTIONS["changes_on_chain"]
    key = {"resource": "group:orders-prod/search"}
    ((hour, *change),) = [row for row in run_question(fleet, question, key).rows if row[3] == "hosts"]
    assert hour == HOUR - 2 * ONE_HOUR
    assert change == [
        "group:orders-prod/search", "orders-prod/search", "hosts", '["10.0.1.0", "10.0.1.1"]',
        '["10.0.1.0", "10.0.1.1", "10.0.1.2"]', 0,
    ]  # fmt: skip
    earlier = {"before": (HOUR - 2 * ONE_HOUR).isoformat()}
    assert not [row for row in run_question(fleet, question, key | earlier).rows if row[3] == "hosts"]


@pytest.mark.parametrize(("minutes_after", "has_helped"), [(0, True), (3, False)])
def test_whether_a_resize_helped(warehouse: sa.Engine, minutes_after: int, has_helped: bool) -> None:
    place = {"account": "1", "region": "eu-central-1", "volume_id": "vol-1"}
    with warehouse.begin() as connection:
        insert_rows(connection, "detect.load", [{"hour": HOUR, "app": "ebs_volumes", "status": "loaded"}])
        for back in range(48, -1, -1):
            is_new = back <= 24
            volume = {"volume_type": "gp3" if is_new else "gp2", "size_gib": 100, "instance_id": None}
            row = place | {"hour": HOUR - back * ONE_HOUR}
            insert_rows(connection, "inventory.volume_hourly", [row | volume])
            minutes = minutes_after if is_new else 10
            insert_rows(connection, "metrics.volume_hourly", [row | {"minutes_throttled": minutes}])
    question = QUESTIONS["volumes_resized"]
    (row,) = (dict(zip(question.columns, one, strict=True)) for one in run_question(warehouse, question, {}).rows)
    assert row["changed_hour"] == HOUR - 24 * ONE_HOUR
    assert (row["throttled_minutes_per_day_before"], row["hours_after"]) == (240, 25)
    assert (row["old_configuration"], row["has_helped"]) == ("gp2, 100 GiB", has_helped)


def test_gp3_is_cheaper_than_gp2_of_the_same_size(fleet: sa.Engine) -> None:
    question = QUESTIONS["gp3_savings"]
    row = dict(zip(question.columns, run_question(fleet, question, {}).rows[0], strict=True))
    assert (row["size_gib"], row["gp3_iops"], row["gp3_throughput_mib_s"]) == (100, 3000, 128)
    assert 0 < row["saved_usd_per_month"] < row["gp2_usd_per_month"]


def test_row_limit(fleet: sa.Engine) -> None:
    answer = run_question(fleet, QUESTIONS["groups_lagging_most"], {}, max_rows=1)
    assert len(answer.rows) == 1
    assert answer.is_truncated
    assert not run_question(fleet, QUESTIONS["groups_lagging_most"], {}, max_rows=4).is_truncated


def test_timeout_names_the_question(fleet: sa.Engine, topic_readers: Question) -> None:
    slow = topic_readers.model_copy(update={"sql": "select pg_sleep(5)", "params": {}})
    with pytest.raises(StreamwardenError, match=r"topic_readers: the query took longer than 0\.05 s"):
        run_question(fleet, slow, {}, timeout_seconds=0.05)


@pytest.mark.parametrize(
    "sql",
    [
        "with gone as (delete from detect.load returning 1 as a) select * from gone",
        "select lo_create(0) as a",
        "select nextval('tickets.ticket_ticket_id_seq') as a",
    ],
)
def test_question_cannot_write(fleet: sa.Engine, topic_readers: Question, sql: str) -> None:
    writing = topic_readers.model_copy(update={"sql": sql, "params": {}})
    with pytest.raises(sa.exc.DBAPIError, match=r"read-only transaction|data-modifying statements"):
        run_question(fleet, writing, {})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", " a'b ", " a'b "),
        ("integer", "7", 7),
        ("number", "0.5", 0.5),
        ("hours", "2", timedelta(hours=2)),
        ("days", "2", timedelta(days=2)),
        ("timestamp", "2026-11-21T05:00", datetime(2026, 11, 21, 5, tzinfo=UTC)),
        ("timestamp", "2026-11-21T05:00+02:00", datetime(2026, 11, 21, 3, tzinfo=UTC)),
    ],
)
def test_values_by_type(topic_readers: Question, kind: str, text: str, value: object) -> None:
    assert parsed(_with_parameter(topic_readers, kind), {"one": text}) == {"one": value}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", "a\0b"),
        ("text", "x" * 501),
        ("text", "\ud800"),
        ("integer", "7.5"),
        ("integer", str(2**63)),
        ("number", "nan"),
        ("number", "many"),
        ("hours", "0"),
        ("hours", "11001"),
        ("days", "456"),
        ("timestamp", "yesterday"),
        ("timestamp", "0001-01-01"),
        ("timestamp", "9999-12-31T23:59-12:00"),
    ],
)
def test_wrong_type_names_parameter_and_value(topic_readers: Question, kind: str, text: str) -> None:
    with pytest.raises(ParameterError, match=r"^one='.*': must be ") as caught:
        parsed(_with_parameter(topic_readers, kind), {"one": text})
    assert caught.value.parameter == "one"
    assert len(str(caught.value)) < 150


def test_missing_and_unknown_parameters(topic_readers: Question) -> None:
    with pytest.raises(ParameterError, match="topic: a value is required"):
        parsed(topic_readers, {"topic": " "})
    with pytest.raises(ParameterError, match="tpoic: topic_readers has no such parameter; parameters: topic, cluster"):
        parsed(topic_readers, {"tpoic": "orders"})
    assert parsed(topic_readers, {"topic": "orders"}) == {
        "topic": "orders", "cluster": None, "hours": 24 * ONE_HOUR,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("params", "sql", "message"),
    [
        ("", "select :b as a", ":b: must be both in `params` and in the SQL"),
        ("b: {type: text, description: B}", "select 1 as a", ":b: must be both in `params` and in the SQL"),
        ("b: {type: color, description: B}", "select :b as a", "params.b.type: Input should be 'text'"),
        ("", "delete from detect.load", "must be one select"),
    ],
)
def test_invalid_file_names_file_and_key(tmp_path: Path, params: str, sql: str, message: str) -> None:
    file = tmp_path / "broken.sql"
    file.write_text(HEADER.format(params=params, sql=sql))
    with pytest.raises(StreamwardenError, match=r"broken\.sql: ") as caught:
        load_question(file)
    assert message in str(caught.value)


def _with_parameter(question: Question, kind: str) -> Question:
    parameter = question.params["topic"].model_copy(update={"type": kind})
    return question.model_copy(update={"params": {"one": parameter}})


@pytest.mark.parametrize(
    ("cell", "shown"),
    [(HOUR, f"{HOUR:%Y-%m-%d %H:%M}"), (0.123456, "0.1235"), (12345.6, "12,346"), (12345, "12345"), (True, "true")],
)
def test_a_cell_as_people_read_it(cell: object, shown: str) -> None:
    assert rounded(cell) == shown
