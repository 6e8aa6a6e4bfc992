"""Muting by the command line on a real warehouse, and its effect on the next hours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets import deliver, reconcile
from streamwarden.tickets.listing import find

from tests.plugins.cli.test_cli import in_this_process
from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, MemorySink, fingerprint_of, hour, mute, unmute

LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)


@pytest.fixture
def command(warehouse_url: str, tmp_path: Path) -> Any:
    (tmp_path / "s.yaml").write_text("")
    environment = {CONFIG_ENV: str(tmp_path / "s.yaml"), "STREAMWARDEN_WAREHOUSE_URL": warehouse_url, "USER": "vera"}
    return lambda *arguments: in_this_process("tickets", *arguments, **environment)


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_list_in_a_pipe_is_not_cut(
    scenario: DeliveryScenario, config: Config, warehouse_url: str, tmp_path: Path
) -> None:
    scenario.evaluate(0, {f"volume {'of a long name ' * 9}": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    address = f"https://tracker.example/{'browse/' * 20}OPS-123456"
    with scenario.engine.begin() as connection:
        connection.exec_driver_sql(f"update tickets.issue set external_key = 'x', external_url = '{address}'")
    (tmp_path / "s.yaml").write_text("")
    own = {CONFIG_ENV: str(tmp_path / "s.yaml"), "STREAMWARDEN_WAREHOUSE_URL": warehouse_url}
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | own

    def listed(**more: str) -> list[str]:
        program = [Path(sys.executable).with_name("streamwarden"), "tickets", "list"]
        done = subprocess.run(program, env=environment | more, capture_output=True, text=True, timeout=120)
        return output_of(done).splitlines()

    header, line = listed()
    assert header.split() == ["finding", "severity", "since", "state", "title", "tracker"]
    assert line.endswith(address) and "of a long name " * 8 in line
    assert max(map(len, listed(COLUMNS="80"))) <= 80


def test_mute_and_unmute_by_the_command_line(scenario: DeliveryScenario, config: Config, command: Any) -> None:
    assert "There are no open or muted tickets." in output_of(command("list"))
    scenario.evaluate(0, {"[b]v1": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    finding = fingerprint_of("[b]v1")[:12]
    assert finding in output_of(command("list")) and "[b]v1" in output_of(command("list"))
    output = output_of(command("mute", finding, "--until", f"{LATER:%Y-%m-%dT%H:%M}", "--reason", "A migration runs."))
    assert f"snoozed until {LATER:%Y-%m-%d %H:%M} UTC" in output
    assert scenario.changes()[-1]["body"].startswith(
        f"Snoozed until {LATER:%Y-%m-%d %H:%M} UTC by vera: A migration runs. "
    )
    assert f"open, snoozed until {LATER:%Y-%m-%d %H:%M}" in output_of(command("list"))
    output_of(command("unmute", finding))
    output_of(command("mute", finding, "--forever", "--reason", "It is a test's."))
    assert "won't fix" in output_of(command("list"))
    assert scenario.actions() == ["create", "comment", "reopen", "close"]


def test_a_mistake_is_a_one_line_error(scenario: DeliveryScenario, config: Config, command: Any) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    finding = fingerprint_of("v1")[:12]
    for arguments, message in (
        (["unmute", finding], "the ticket is not muted."),
        (["mute", finding, "--until", "soon", "--reason", "x"], "--until soon: not a time; write it like 2026-12-01"),
    ):
        done = command(*arguments)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)
        assert message in done.stderr
    assert command("mute", finding, "--reason", "x").returncode == 2
    assert scenario.actions() == ["create"]


def test_a_finding_is_selected_by_the_start_of_its_fingerprint(scenario: DeliveryScenario, config: Config) -> None:
    names = [f"v{number}" for number in range(17)]  # of 16 hexadecimal digits
    one, other = next(
        pair for pair in combinations(names, 2) if fingerprint_of(pair[0])[0] == fingerprint_of(pair[1])[0]
    )
    scenario.evaluate(0, {one: "firing", other: "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    with scenario.engine.connect() as connection:
        assert find(connection, fingerprint_of(one)[:20].upper())["resource_name"] == one
        with pytest.raises(StreamwardenError, match="2 fingerprints begin with it: "):
            find(connection, fingerprint_of(one)[0])
        with pytest.raises(StreamwardenError, match=r"no ticket has this fingerprint\. `streamwarden tickets list`"):
            find(connection, "0123456789abcdef")


@pytest.mark.parametrize("text", ["", " ", "z%", "%", "_", "0x1", "a" * 65])
def test_an_invalid_fingerprint_selects_no_ticket(
    scenario: DeliveryScenario, config: Config, command: Callable[..., Any], text: str
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    done = command("mute", text, "--forever", "--reason", "a slip")
    assert done.returncode == 1
    assert "not a fingerprint" in done.stderr
    assert scenario.actions() == ["create"]


@pytest.mark.parametrize("hours", [1, 200])
def test_an_unmuted_finding_opens_or_reopens_when_it_fires_again(
    scenario: DeliveryScenario, config: Config, hours: int
) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, config, DETECTORS)
    mute(scenario.engine, scenario.tickets()[0]["ticket_id"], until=None, who="Vera", why="Known.", now=hour(0))
    scenario.evaluate(hours, {"v1": "firing"})
    assert reconcile(scenario.engine, config, DETECTORS).reopened == 0
    unmute(scenario.engine, scenario.tickets()[0]["ticket_id"], who="Vera")
    plan = reconcile(scenario.engine, config, DETECTORS)
    assert plan.opened + plan.reopened == 1
    assert scenario.tickets()[-1]["state"] == "open"


def test_muting_a_finding_of_a_storm_posts_nothing_to_the_tracker(
    scenario: DeliveryScenario, sink: MemorySink, config: Config
) -> None:
    """The finding has no issue of its own in the tracker."""
    scenario.evaluate(0, {f"v{n}": "firing" for n in range(6)})
    reconcile(scenario.engine, config, DETECTORS)
    member = next(t["ticket_id"] for t in scenario.tickets() if t["summary_ticket_id"])
    before = len(scenario.actions())
    mute(scenario.engine, member, until=LATER, who="Vera", why="Known.")
    unmute(scenario.engine, member, who="Vera")
    mute(scenario.engine, member, until=None, who="Vera", why="Known.")
    assert len(scenario.actions()) == before
    assert deliver(scenario.engine, sink, config).failed == []


def test_a_ticket_that_is_not_muted_cannot_be_unmuted(scenario: DeliveryScenario) -> None:
    scenario.evaluate(0, {"v1": "firing"})
    reconcile(scenario.engine, Config(), DETECTORS)
    with pytest.raises(StreamwardenError, match="v1: cannot apply unmute: the ticket is not muted"):
        unmute(scenario.engine, 1, who="Vera")
