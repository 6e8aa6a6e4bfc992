"""Backtests: what other parameters would have changed, for every detector, without storing anything."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.causes import find_causes
from streamwarden.detectors import Detector, load_detectors
from streamwarden.detectors.backtest import Backtest, backtest, for_scripts, parse_settings
from streamwarden.detectors.load import changed

from tests.plugins.cli.test_cli import in_this_process
from tests.sql.cases import CASES_OF, insert_given
from tests.sql.cause_cases import CASES as CAUSE_CASES
from tests.sql.rows import HOUR, insert_row

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
DETECTORS = load_detectors()
NOTHING_SET = Config()
LAGGY = """/*
title: A test
resource_kind: group
owner_role: tests
maturity: experimental
reads: [metrics.consumer_group_hourly]
params:
  limit: {default: 100, unit: records, why: "a test"}
  word: {default: plain, unit: text, why: "a test"}
verdicts:
  bad: {status: firing, severity: warning, message: "{{ word }} {{ lag_records }}", impact: "None.", actions: ["Wait."]}
  good: {status: ok, message: "{{ word }} {{ lag_records }}"}
  dark: {status: unknown, message: "Not evaluated: {{ word }}"}
open_after_hours: 2
clear_after_hours: 2
runbook: |
  ## Meaning
  A test.
  ## Impact
  None.
  ## Diagnosis
  1. Read the test.
  ## Mitigation
  1. Fix the test.
limitations: none
*/
select
  case
    when lag_records is null or :word = '' then 'dark' when lag_records > :limit then 'bad' else 'good'
  end as reason,
  cluster, group_id, lag_records
from metrics.consumer_group_hourly where hour = :hour
"""


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


@pytest.fixture
def laggy(tmp_path: Path) -> Detector:
    file = tmp_path / "tests" / "laggy.sql"
    file.parent.mkdir()
    file.write_text(LAGGY)
    return load_detectors(tmp_path)["laggy"]


def store_load(warehouse: sa.Engine, apps: tuple[str, ...], number: int, coverage: str = "complete") -> None:
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour(number).date()})
        for app in apps:
            connection.execute(
                sa.text("insert into detect.load values (:hour, :app, 'loaded', '{}', null, now(), now())"),
                {"hour": hour(number), "app": app},
            )
            connection.execute(
                sa.text(
                    "insert into detect.coverage values (:hour, :app, 'src', 'a', 'complete', null, now()),"
                    " (:hour, :app, 'src', 'b', :status, 'because', now())"
                ),
                {"hour": hour(number), "app": app, "status": coverage},
            )


def lags(warehouse: sa.Engine, group: str, by_hour: dict[int, int | None]) -> None:
    with warehouse.begin() as connection:
        for number, lag in by_hour.items():
            row = {"hour": hour(number), "cluster": "c", "group_id": group, "lag_records": lag}
            insert_row(connection, "metrics.consumer_group_hourly", row)


def run(
    warehouse: sa.Engine, detector: Detector, hours: int = 12, config: Config = NOTHING_SET,
    changed: Detector | None = None, **settings: Any,
) -> Backtest:  # fmt: skip
    params = detector.with_params(detector.params_in_force(config), settings, "--set ")
    return backtest(
        warehouse, config, detector, START, hour(hours), tried=(changed or detector, params),
        progress=lambda done, total: None,
    )  # fmt: skip


def differences(result: Backtest) -> list[tuple[str, str]]:
    return [(difference.resource_name, difference.words) for difference in result.differences()]


def row_counts(warehouse: sa.Engine) -> dict[str, Any]:
    """Number of rows of each table that evaluation and tickets write."""
    tables = ("detect.detector", "detect.detector_run", "detect.evaluation", "tickets.ticket", "tickets.change")
    with warehouse.connect() as connection:
        return {table: connection.execute(sa.text(f"select count(*) from {table}")).scalar() for table in tables}


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_every_detector_can_be_backtested(warehouse: sa.Engine, detector: Detector) -> None:
    """Runs on the rows and parameters of its first case, whose firing findings open tickets."""
    case = CASES_OF[detector.id][0]
    at = case.get("hour", START)
    for number in range(-24, 25, 24):
        store_load(warehouse, detector.apps, number)
    with warehouse.begin() as connection:
        insert_given(connection, case)
    before = row_counts(warehouse)
    params = detector.with_params(detector.params_in_force(Config()), case.get("params", {}), "--set ")
    result = backtest(
        warehouse, Config(), detector, at, at + timedelta(hours=1), tried=(detector, params),
        progress=lambda done, total: None,
    )  # fmt: skip
    statuses = [detector.verdicts[row["reason"]].status for row in case["expect"]]
    assert sorted(h[at] for h in result.tried.histories.values()) == sorted(statuses)
    opened = [f for f, episodes in result.tried.episodes.items() if episodes]
    assert len(opened) == (statuses.count("firing") if detector.open_after_hours == 1 else 0)
    json.dumps(for_scripts(result, timedelta(hours=72)))
    assert row_counts(warehouse) == before


def test_differences_are_tickets_that_open_stay_shut_or_move(warehouse: sa.Engine, laggy: Detector) -> None:
    for number in range(12):
        store_load(warehouse, laggy.apps, number)
    steady = dict.fromkeys(range(12), 0)
    lags(warehouse, "calm", steady)
    lags(warehouse, "low", steady | {3: 60, 4: 60, 5: 60})
    lags(warehouse, "high", steady | {3: 500, 4: 500})
    lags(warehouse, "rising", steady | {2: 60, 3: 80, 4: 200, 5: 200, 6: 200, 7: 60})
    lower = run(warehouse, laggy, limit=50)
    assert differences(lower) == [
        ("c/high", "unchanged"), ("c/low", "opens"), ("c/rising", "opens 2 h earlier, closes 1 h later"),
    ]  # fmt: skip
    assert differences(run(warehouse, laggy, limit=300)) == [("c/high", "unchanged"), ("c/rising", "is not opened")]
    assert (lower.in_force.tickets(timedelta(hours=72)), lower.in_force.hours_of("firing")) == ((2, 0), 5)
    assert (lower.tried.tickets(timedelta(hours=72)), lower.tried.hours_of("firing")) == ((3, 0), 11)
    assert differences(run(warehouse, laggy)) == [("c/high", "unchanged"), ("c/rising", "unchanged")]


def test_a_changed_detector_is_compared_with_the_one_in_force(
    warehouse: sa.Engine, laggy: Detector, tmp_path: Path
) -> None:
    for number in range(12):
        store_load(warehouse, laggy.apps, number)
    lags(warehouse, "low", dict.fromkeys(range(12), 0) | {3: 60, 4: 60, 5: 60})
    file = tmp_path / "draft.sql"
    file.write_text(LAGGY.replace("lag_records > :limit", "lag_records * 2 > :limit"))
    result = run(warehouse, laggy, changed=changed(laggy, file))
    assert differences(result) == [("c/low", "opens")]
    assert (result.in_force.detector.id, result.tried.detector.id) == ("laggy", "laggy")


def test_exceptions_of_the_config_apply(warehouse: sa.Engine, laggy: Detector) -> None:
    for number in range(12):
        store_load(warehouse, laggy.apps, number)
    lags(warehouse, "low", dict.fromkeys(range(12), 500))
    lags(warehouse, "high", dict.fromkeys(range(12), 500))
    exception = {"where": {"group_id": "low"}, "params": {"limit": 1000}, "why": "known"}
    config = Config.model_validate({"detectors": {"laggy": {"exceptions": [exception]}}})
    assert differences(run(warehouse, laggy, config=config)) == [("c/high", "unchanged")]


def test_an_episode_that_becomes_two_is_paired_once(warehouse: sa.Engine, laggy: Detector) -> None:
    for number in range(12):
        store_load(warehouse, laggy.apps, number)
    lags(warehouse, "g", dict.fromkeys(range(12), 500) | {4: 150, 5: 150, 6: 150})
    result = run(warehouse, laggy, limit=200)
    assert differences(result) == [("c/g", "is closed before the end"), ("c/g", "opens")]
    assert result.tried.tickets(timedelta(hours=72)) == (1, 1)  # firing again within three days: the same ticket
    assert result.tried.tickets(timedelta(hours=1)) == (2, 0)


def test_missing_data_closes_no_ticket(warehouse: sa.Engine, laggy: Detector) -> None:
    """Unknown hours, hours without data, and absence without full coverage close no ticket."""
    for number in (0, 1, 2, 3, 8, 9):
        store_load(warehouse, laggy.apps, number, coverage="failed")
    lags(warehouse, "g", {0: 500, 1: 500, 2: None, 3: None})
    result = run(warehouse, laggy)
    assert [episode.closed for episodes in result.tried.episodes.values() for episode in episodes] == [None]
    assert (len(result.hours), result.hours_asked, result.tried.hours_of("unknown")) == (6, 12, 2)


def test_the_ticket_of_a_deleted_resource_closes(warehouse: sa.Engine, laggy: Detector) -> None:
    for number in range(4):
        store_load(warehouse, laggy.apps, number)
    lags(warehouse, "g", {0: 500, 1: 500})
    (episode,) = next(iter(run(warehouse, laggy).tried.episodes.values()))
    assert (episode.since, episode.opened, episode.closed, episode.close_reason) == (
        hour(0), hour(1), hour(2), "deleted",
    )  # fmt: skip


def test_hours_without_data_are_an_error(warehouse: sa.Engine, laggy: Detector) -> None:
    with pytest.raises(StreamwardenError, match=r"the warehouse has no hour from .*; the warehouse has none yet\.$"):
        run(warehouse, laggy)
    for number in (20, 21, 30):
        store_load(warehouse, laggy.apps, number)
    has = "the warehouse has 2026-01-06 06:00 to 2026-01-06 08:00, 2026-01-06 16:00 to 2026-01-06 17:00 UTC."
    with pytest.raises(StreamwardenError, match=has):
        run(warehouse, laggy)


def test_settings_are_parsed_by_the_type_of_the_default(laggy: Detector) -> None:
    assert parse_settings(laggy, ["limit=8", "word=7"]) == {"limit": 8, "word": "7"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("limit", "--set limit: write it as name=value."),
        ("limits=1", "--set limits: unknown parameter; laggy has: limit, word."),
        ("limit=soon", "--set limit: must be a number like 100, not 'soon'."),
        ("limit=true", "--set limit: must be a number like 100, not True."),
        (f"limit=1{'0' * 400}", f"--set limit: must be 0 or more and finite, not 1{'0' * 39}."),
    ],
)
def test_an_invalid_setting_is_an_error(laggy: Detector, setting: str, message: str) -> None:
    with pytest.raises(StreamwardenError, match=re.escape(message)):
        laggy.with_params(laggy.params_in_force(Config()), parse_settings(laggy, [setting]), "--set ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nothing", "--from", "2026-01-05T10:00"],
            "nothing: no such detector; `streamwarden detectors list`",
        ),
        (["consumer_group_lagging", "--from", "2026-01-05", "--to", "2026-01-05"], "must be before --to"),
        (["consumer_group_lagging", "--from", "2026-01-05", "--to", "2026-01-06", "--set", "x=1"], "--set x: unknown"),
        (["consumer_group_lagging", "--from", "2026-01-05", "--to", "2026-01-06"], "the warehouse has none yet."),
    ],
)
def test_an_error_is_one_line(warehouse_url: str, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = command(warehouse_url, tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_command_prints_the_differences(warehouse: sa.Engine, warehouse_url: str, tmp_path: Path) -> None:
    for number in range(3):
        store_load(warehouse, DETECTORS["ebs_volume_starving"].apps, number)
    lasts = {"minutes_throttled": 0, "hours_to_exhaustion": 8, "burst_balance_last_percent": 80}
    with warehouse.begin() as connection:
        for number, volume_id, facts in (
            *((number, "vol-1", lasts) for number in range(3)),
            (2, "vol-2", {"minutes_throttled": 60, "minutes_at_iops_limit": 60}),
        ):
            key = {"hour": hour(number), "account": "1", "region": "r", "volume_id": volume_id}
            what = {"volume_type": "gp2", "size_gib": 100, "state": "in-use", "instance_id": "i-1"}
            insert_row(connection, "inventory.volume_hourly", key | what)
            insert_row(
                connection, "metrics.volume_hourly",
                key | facts | {
                    "known_until": hour(number + 1), "minutes_expected": 60, "minutes_present": 60,
                    "minutes_balance": 60, "iops_mean": 500, "baseline_iops": 300, "bucket_credits": 5400000,
                },
            )  # fmt: skip
    hours = ["--from", "2026-01-05T09:00", "--to", "2026-01-05T13:00"]
    arguments = ["ebs_volume_starving", *hours, "--set", "warn_hours=9"]
    done = command(warehouse_url, tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [part.strip() for part in lines[1].split("  ") if part.strip()] == [
        "vol-1", "–", "2026-01-05 10:00, open at the end", "opens",
    ]  # fmt: skip
    assert lines[2:4] == ["", "1 ticket unchanged"]
    assert lines[4].startswith("in force: 1 ticket, 1 h firing")
    assert lines[5].startswith("with warn_hours=9: 2 tickets, 4 h firing, 0 h not eval")
    assert lines[6] == "3 of 4 hours are in the warehouse: 2026-01-05 10:00 to 2026-01-05 13:00 UTC"
    scripted = json.loads(command(warehouse_url, tmp_path, *arguments, "--json").stdout)
    assert scripted["tried"]["params"]["warn_hours"] == 9
    assert [ticket["difference"] for ticket in scripted["tickets"]] == ["opens", "unchanged"]


def test_the_command_ranks_causes_with_other_parameters(
    warehouse: sa.Engine, warehouse_url: str, tmp_path: Path
) -> None:
    case = next(case for case in CAUSE_CASES if [row.get("accepted") for row in case.case["expect"]] == [True])
    with warehouse.begin() as connection:
        resources = case.insert(connection)
    find_causes(warehouse, DETECTORS, HOUR)
    effect, cause = (case.case["expect"][0][key].partition(":")[2] for key in ("effect", "cause"))
    arguments = ("causes", "--from", "2026-01-05T10:00", "--to", "2026-01-05T11:00", "--set", "accepted_strength=1.01")
    lines = command(warehouse_url, tmp_path, *arguments).stdout.splitlines()
    assert lines[1].startswith("2026-01-05 10:00") and effect in lines[1] and cause in lines[1]
    assert lines[1].rstrip().endswith("–")
    assert lines[3:] == [
        "in force: 1 accepted cause", "with accepted_strength=1.01: 0 accepted causes", "1 hour, 1 difference"
    ]  # fmt: skip
    scripted = json.loads(command(warehouse_url, tmp_path, *arguments, "--json").stdout)
    assert {scripted["changes"][0]["effect"], scripted["changes"][0]["in_force"]} <= set(resources)
    refused = command(warehouse_url, tmp_path, *arguments[:5])
    assert refused.returncode == 1 and "--set name=value is required" in refused.stderr + refused.stdout


def command(warehouse_url: str, folder: Path, *arguments: str) -> Any:
    (folder / "s.yaml").write_text("")
    return in_this_process(
        "backtest", *arguments, **{CONFIG_ENV: str(folder / "s.yaml"), "STREAMWARDEN_WAREHOUSE_URL": warehouse_url}
    )
