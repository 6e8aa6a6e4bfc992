"""The command line as people use it: help everywhere, exit codes, one line for a problem."""

from __future__ import annotations

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.cli import main as cli
from streamwarden.cli import shared

COMMANDS = (
    [], ["run"], ["migrate"], ["docs"], ["report"], ["backtest"], ["tickets"], ["tickets", "list"],
    ["tickets", "mute"], ["tickets", "unmute"], ["detectors"], ["detectors", "list"], ["detectors", "explain"],
    ["detectors", "new"],
    ["config"], ["config", "check"], ["warehouse"], ["warehouse", "url"], ["warehouse", "psql"], ["warehouse", "stop"],
    ["plan"], ["plan", "removal"], ["whatif"], ["whatif", "topic"],
)  # fmt: skip


def streamwarden(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("streamwarden")
    base = {"PATH": f"{program.parent}:/usr/bin:/bin", "COLUMNS": "200"}
    return subprocess.run([program, *arguments], env=base | environment, capture_output=True, text=True, timeout=60)


def in_this_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same without a new Python, whose start takes longer than most commands."""
    told, failed = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told), redirect_stderr(failed):
        patch.setattr(sys, "argv", ["streamwarden", *arguments])
        patch.setattr(shared.out, "width", 200)
        for name, value in {"COLUMNS": "200", **environment}.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), told.getvalue(), failed.getvalue())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    done = in_this_process(*command, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout and " ".join([*command, "[OPTIONS]"]) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["config", "check", "/nowhere.yaml"], "/nowhere.yaml: no such config file"),
        (["detectors", "explain", "nothing"], "nothing: no such detector; there are: "),
        (["run", "--hour", "soon"], "hour 'soon': not a time; write it like 2026-11-21T05:00."),
        (["run", "--hour", "2026-11-21T05:30"], "must be the start of an hour, like 2026-11-21T05:00"),
        (["run", "--hour", "2099-01-01T00:00"], "--hour 2099-01-01T00:00: hasn't begun."),
        (["run", "--app", "nothing"], "--app nothing: no such app; there are: "),
        (["report", "--day", "soon"], "--day soon: not a day; write it like 2026-11-20."),
        (["report", "--day", "9999-12-31"], "--day 9999-12-31: must be between 1970 and 2261."),
        (["report", "--week", "--day", "0001-01-01"], "--day 0001-01-01: must be between 1970 and 2261."),
        (
            ["tickets", "mute", "f", "--reason", "r", "--until", "0001-01-01T00:00+05:00"],
            "--until 0001-01-01T00:00+05:00: not a time; write it like 2026-12-01",
        ),
    ],
)
def test_a_problem_is_one_line_and_exit_code_1(arguments: list[str], told: str) -> None:
    done = in_this_process(*arguments)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_wrong_usage_is_exit_code_2() -> None:
    assert streamwarden("run", "--colour", "red").returncode == 2


def test_a_warehouse_that_is_away_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("")
    url = "postgresql://nobody:secret-word@127.0.0.1:9/none"
    done = streamwarden("migrate", **{CONFIG_ENV: str(tmp_path / "s.yaml"), WAREHOUSE_ENV: url})
    assert done.returncode == 1
    assert done.stderr.startswith("streamwarden: warehouse: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "secret-word" not in done.stderr


def test_an_older_release_goes_back_only_when_told(
    warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text("")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    with warehouse.begin() as connection:
        newer = "update public.schema_migration set checksum = 'x', superseded = array[checksum] where name = '%s'"
        connection.exec_driver_sql(newer % "views/volumes.sql")
    done = in_this_process("migrate")
    assert done.returncode == 1
    assert "this one has an older text of sql/views/volumes.sql. Nothing was changed" in done.stderr
    done = in_this_process("migrate", "--back")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "applied views/volumes.sql")


def test_a_good_config_says_what_it_watches(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("kafka: [{name: a, bootstrap_servers: b}]\n")
    done = streamwarden("config", "check", str(file))
    assert done.returncode == 0
    assert "1 Kafka clusters" in done.stdout
    assert "warning" not in done.stdout


@pytest.mark.parametrize("text", ["", "# soon", "reports: {mail_from: a@b}", "jmx_files: [{path: /nowhere/*.json}]"])
def test_a_config_that_watches_nothing_is_warned_of(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    done = in_this_process("config", "check", str(tmp_path / "s.yaml"))
    assert done.returncode == 0
    assert "warning: nothing is watched: " in done.stdout


def test_a_cluster_under_two_names_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("kafka: [{name: a, bootstrap_servers: 'x:1,y:1'}, {name: b, bootstrap_servers: 'Y:1, x:1'}]")
    done = in_this_process("config", "check", str(file))
    assert done.returncode == 0
    assert "warning: kafka clusters 'a' and 'b' have the same bootstrap_servers." in done.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ebs_prices: /nowhere.csv", "ebs_prices: /nowhere.csv: No such file or directory."),
        (
            "kafka: [{name: a, bootstrap_servers: b, client: {sasl.pasword: c}}]",
            "kafka cluster 'a': No such configuration property: \"sasl.pasword\"",
        ),
        (
            "detectors: {consumer_rogue: {params: {spike_mads: -1}}}",
            "detectors.consumer_rogue.params.spike_mads: must be 0 or more and finite, not -1.",
        ),
    ],
)
def test_a_config_is_checked_with_all_that_it_names(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    done = in_this_process("config", "check", str(tmp_path / "s.yaml"))
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_explain_prints_what_psql_runs() -> None:
    done = streamwarden("detectors", "explain", "consumer_rogue", "--hour", "2026-11-21T05:00")
    assert done.returncode == 0
    assert "\\set hour '''2026-11-21 05:00+00'''" in done.stdout
    assert "\\i sql/detectors/consumers/consumer_rogue.sql" in done.stdout


def test_psql_gets_the_password_where_nobody_lists_it(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("")
    psql = tmp_path / "psql"
    psql.write_text('#!/bin/sh\necho "$PGPASSWORD"; printf "%s\\n" "$@"\n')
    psql.chmod(0o755)
    told = {
        CONFIG_ENV: str(tmp_path / "s.yaml"),
        WAREHOUSE_ENV: "postgresql://u:p%40ss@h:5432/d?sslmode=require",
        "PATH": f"{tmp_path}:/usr/bin:/bin",
    }
    done = streamwarden("warehouse", "psql", "-c", "select 1", **told)
    password, address, *rest = done.stdout.splitlines()
    assert (password, rest) == ("p@ss", ["-c", "select 1"])
    assert sorted(address.split()) == ["dbname=d", "host=h", "port=5432", "sslmode=require", "user=u"]
