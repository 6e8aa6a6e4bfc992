"""The hour in one process: its steps, output, and failures. The apps have their own tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden import pipeline
from streamwarden.base.catalog import APPS
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.main import app
from streamwarden.detectors import load_detectors
from typer.testing import CliRunner

from tests.sql.rows import insert_row

HOUR = datetime(2026, 11, 19, 8, tzinfo=UTC)
GAPS = [
    ("kafka_topics", "demo", "no broker answers."),
    ("kafka_groups", "demo", "no broker answers."),
    *(("jmx", f"app {n}", "a JVM only knows the present.") for n in range(5)),
    *(("prometheus", f"vol-{n}", f"reason {n}.") for n in range(pipeline.MOST_GAPS)),
]


def test_a_run_ends_with_a_list_of_missing_data(
    warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text("tickets: {trackers: {}}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    monkeypatch.setattr(pipeline._Spark, "run_app", lambda *_: {})
    with warehouse.begin() as connection:
        for source, resource_name, message in GAPS:
            connection.execute(
                sa.text(
                    "insert into detect.coverage (hour, app, source, resource_name, status, message, queried_at)"
                    " values (:hour, 'an app', :source, :resource_name, 'missing', :message, :hour)"
                ),
                {"hour": HOUR, "source": source, "resource_name": resource_name, "message": message},
            )
    lines = CliRunner().invoke(app, ["run", "--hour", f"{HOUR:%Y-%m-%dT%H:%M}"]).output.splitlines()
    lines = lines[lines.index("Missing data of this hour:") :]
    assert lines[1] == "  jmx: app 0, app 1, app 2 and 2 more: a JVM only knows the present."
    assert "  kafka_groups, kafka_topics: demo: no broker answers." in lines
    assert lines[-1] == "  and 3 more, in the view coverage_gaps (`streamwarden warehouse psql`)."


@pytest.mark.parametrize("command", [["run", "--hour", "2026-11-19T08:00"], ["tickets", "list"], ["report"]])
def test_no_command_runs_while_a_migration_is_due(
    warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    (tmp_path / "s.yaml").write_text("tickets: {trackers: {}}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    monkeypatch.setattr(pipeline._Spark, "run_app", lambda *_: pytest.fail("it gathered"))
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update public.schema_migration set checksum = '' where name = 'views/volumes.sql'")
    with pytest.raises(StreamwardenError, match=r"\(sql/views/volumes\.sql\): run `streamwarden migrate` first"):
        CliRunner().invoke(app, command, catch_exceptions=False, standalone_mode=False)
    with warehouse.connect() as connection:
        known = sa.text("select checksum from public.schema_migration where name = 'views/volumes.sql'")
        assert connection.execute(known).scalar_one() == ""


def test_apps_run_in_parallel_and_a_failed_one_blocks_only_readers_of_its_tables(
    warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2, timeout=20)

    def run_app(_: object, name: str, hour: datetime) -> dict[str, int]:
        if name in ("brokers", "jvm_apps"):
            together.wait()  # each waits until the other one has started
        if name == "state_stores":
            raise StreamwardenError("out of luck")
        with warehouse.begin() as connection:
            connection.execute(
                sa.text(
                    "insert into detect.load (hour, app, status, rows, started_at, finished_at)"
                    " values (:hour, :app, 'loaded', '{}', :hour, :hour)"
                ),
                {"hour": hour, "app": name},
            )
        return {"a.table": 3}

    monkeypatch.setattr(pipeline._Spark, "run_app", run_app)
    progress: list[tuple[str, str, bool]] = []
    run = pipeline.run_hour(Config(), HOUR, [], lambda *line: progress.append(line))
    statuses = {detector_run.detector: detector_run.status for detector_run in run.detector_runs}
    assert statuses.pop("state_store_schema_drift") == "blocked", run.detector_runs
    assert set(statuses.values()) == {"evaluated"}, [each for each in run.detector_runs if each.status == "failed"]
    assert run.failed == {"gather.state_stores": "out of luck"}
    assert ("gather state_stores", "out of luck", False) in progress
    assert ("gather brokers", "3 rows", True) in progress
    assert progress[-1][0] == "tickets" and progress[-1][2]
    assert not run.ok


def _loads(warehouse: sa.Engine, failing: str = "") -> Callable[[object, str, datetime], dict[str, int]]:
    """A replacement of Spark: every app except `failing` is loaded, without rows."""

    def run_app(_: object, name: str, hour: datetime) -> dict[str, int]:
        if name == failing:
            raise StreamwardenError("out of luck")
        with warehouse.begin() as connection:
            load = {
                "hour": hour,
                "app": name,
                "status": "loaded",
                "rows": "{}",
                "started_at": hour,
                "finished_at": hour,
            }
            connection.execute(sa.text("delete from detect.load where hour = :hour and app = :app"), load)
            insert_row(connection, "detect.load", load)
        return {}

    return run_app


def test_a_run_of_one_app_reports_no_other_app_and_succeeds(
    warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text("kafka: [{name: c, bootstrap_servers: 'b:1'}]\ntickets: {trackers: {}}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    monkeypatch.setattr(pipeline._Spark, "run_app", _loads(warehouse))
    command = ["run", "--hour", f"{HOUR:%Y-%m-%dT%H:%M}", "--app", "consumer_groups"]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    assert "  fail  " not in ran.output and "blocked" not in ran.output and "prices" not in ran.output
    steps = [line.split("done")[1].split() for line in ran.output.splitlines() if "done" in line]
    evaluated = {what for step, what, *_ in steps if step == "evaluate"}
    alone = {d.id for d in load_detectors().values() if {*d.apps} - {"kubernetes", "msk"} == {"consumer_groups"}}
    assert evaluated == alone and {step for step, *_ in steps} == {"gather", "evaluate", "causes", "tickets"}

    monkeypatch.setattr(pipeline._Spark, "run_app", _loads(warehouse, failing="consumer_groups"))
    with warehouse.begin() as connection:
        connection.execute(sa.text("delete from detect.load"))
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code != 0 and "out of luck" in ran.output


def test_an_unconfigured_source_is_one_line_and_no_failure(
    warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline._Spark, "run_app", _loads(warehouse))
    config = Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": "b:1"}]})
    progress: list[tuple[str, str, bool]] = []
    run = pipeline.run_hour(config, HOUR, [], lambda *line: progress.append(line))
    assert run.ok and all(went_well for _, _, went_well in progress)
    unasked = {name for name, one in APPS.items() if "kafka" not in one.sections}
    silent = [d for d in load_detectors().values() if d.apps and {*d.apps} <= unasked]
    of_aws = {d.id for d in silent if "aws" in APPS[d.apps[0]].sections}
    assert of_aws and not {f"evaluate {id_}" for id_ in of_aws} & {step for step, _, _ in progress}
    said = [what for step, what, _ in progress if step == "evaluate"]
    assert [what for what in said if "AWS" in what] == [
        f"no AWS account configured: {len(of_aws)} detectors not evaluated"
    ]


def test_a_detector_that_fails_does_not_stop_those_after_it(warehouse: sa.Engine) -> None:
    good = replace(load_detectors()["controllers_missing"], reads=(), params={}, sql="select 1 where :hour is null")
    bad = replace(good, id="bad", sql="select 1 / 0, :hour as x")
    said = replace(good, id="said", sql="select 'healthy' as reason, 'c' as cluster where :hour is not null")
    no_text = {"where": {"cluster": "c"}, "off": True, "why": "PostgreSQL's text holds no \0"}
    config = Config.model_validate({"detectors": {"said": {"exceptions": [no_text]}}})
    progress: list[str] = []
    detector_runs = pipeline.evaluate_detectors(
        warehouse, [bad, said, good], HOUR, config, lambda step, *_: progress.append(step)
    )
    assert [detector_run.status for detector_run in detector_runs] == ["failed", "failed", "evaluated"]
    assert "NUL" in str(detector_runs[1].message)
    assert progress == ["evaluate bad", "evaluate said", "evaluate controllers_missing"]
