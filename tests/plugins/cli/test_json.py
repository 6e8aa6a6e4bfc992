"""Every command that lists something prints it as JSON too: all commands of the command line are walked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import typer
from streamwarden.base.catalog import APPS
from streamwarden.base.config import CONFIG_ENV
from streamwarden.cli.main import app

from tests.plugins.cli.test_cli import in_this_process
from tests.sql.rows import HOUR, insert_rows

FINGERPRINT = "a" * 64
NO_LISTS = {
    "init": "writes a config file",
    "run": "shows the progress of an hour",
    "migrate": "changes the warehouse",
    "docs": "writes files",
    "report": "writes a file",
    "detectors explain": "is a text with SQL to paste",
    "detectors new": "writes files",
    "tickets acknowledge": "responds",
    "tickets mute": "responds",
    "tickets unmute": "responds",
    "tickets false-positive": "responds",
    "tickets comment": "responds",
    "tickets split": "responds",
    "tickets link": "responds",
    "config check": "reports errors of a file",
    "warehouse url": "prints one line",
    "warehouse psql": "is psql",
    "warehouse stop": "stops a server",
    "plan removal": "prints commands to paste",
    "plan rebalance": "prints commands to paste",
    "plan replicas": "prints commands to paste",
}
"""Commands without a list, and what they do instead."""
ARGUMENTS = {
    "tickets responses": ["aaaa"],
    "tickets explain": ["aaaa"],
    "backtest": ["broker_down", "--from", f"{HOUR:%Y-%m-%dT%H:%M}", "--to", f"{HOUR.replace(hour=12):%Y-%m-%dT%H:%M}"],
    "whatif topic": ["--cluster", "c", "--partitions", "6", "--mb-per-second", "1"],
    "detectors causes": ["--hour", f"{HOUR:%Y-%m-%dT%H:%M}"],
}
"""What a command needs."""
KEYS = {
    "ask": "question", "detectors list": "id", "tickets list": "fingerprint", "tickets responses": "verb",
    "warehouse size": "table", "warehouse prices": "region", "whatif topic": "broker_id",
}  # fmt: skip
"""A key of each row of the lists that have rows in this warehouse."""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Name and command of all leaves of the command line."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.fixture
def filled(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warehouse with a ticket, a response, a price, and a broker; and a config."""
    config = tmp_path / "streamwarden.yaml"
    config.write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(config))
    ticket = {"fingerprint": FINGERPRINT, "detector": "d", "title": "Slow", "state": "open", "severity": "warning"}
    rows: dict[str, dict[str, Any]] = {
        "tickets.ticket": ticket | {"opened_hour": HOUR},
        "tickets.response": {"fingerprint": FINGERPRINT, "verb": "comment", "who": "ana", "words": '"><script>\u202e'},
        "inventory.ebs_price": {"region": "eu-central-1", "as_of": HOUR.date()},
        "metrics.broker_hourly": {"cluster": "c", "broker_id": 1, "endpoint": "b1:8778"},
    }
    with warehouse.begin() as connection:
        for table, row in rows.items():
            insert_rows(connection, table, [{"hour": HOUR, **row}])
        insert_rows(connection, "detect.load", [{"hour": HOUR, "app": one, "status": "loaded"} for one in APPS])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_json_or_has_no_list(name: str) -> None:
    has_json = any("--json" in parameter.opts for parameter in COMMANDS[name].params)
    assert has_json != (name in NO_LISTS), f"{name}: add --json (`JsonOption`), or say here why it has no list"


def test_no_command_is_left_over() -> None:
    assert set(NO_LISTS) | set(ARGUMENTS) | set(KEYS) <= set(COMMANDS)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(NO_LISTS)))
def test_the_json_of_a_list_is_all_that_is_printed(name: str) -> None:
    done = in_this_process(*name.split(), *ARGUMENTS.get(name, []), "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert isinstance(printed, dict if name == "backtest" else list)
    if name in KEYS:
        assert printed and all(KEYS[name] in row for row in printed)


@pytest.mark.usefixtures("filled")
def test_json_of_partitions_that_are_dropped_is_refused() -> None:
    done = in_this_process("warehouse", "housekeeping", "--do", "--json")
    assert (done.returncode, done.stdout) == (2, "") and "either --json or --do" in done.stderr
