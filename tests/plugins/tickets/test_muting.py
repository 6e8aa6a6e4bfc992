"""Tickets by hand: the command line on a real warehouse, and what the next hours make of it."""

from __future__ import annotations

import subprocess
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
from tests.plugins.tickets.story import DETECTORS, MemorySink, Story, hour, mute, print_of, unmute

LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)


@pytest.fixture
def command(warehouse_url: str, tmp_path: Path) -> Any:
    (tmp_path / "s.yaml").write_text("")
    environment = {CONFIG_ENV: str(tmp_path / "s.yaml"), "STREAMWARDEN_WAREHOUSE_URL": warehouse_url, "USER": "vera"}
    return lambda *arguments: in_this_process("tickets", *arguments, **environment)


def well(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_ticket_by_hand(story: Story, config: Config, command: Any) -> None:
    assert "There are no open or muted tickets." in well(command("list"))
    story.judge(0, {"[b]v1": "firing"})
    reconcile(story.engine, config, DETECTORS)
    finding = print_of("[b]v1")[:12]
    assert finding in well(command("list")) and "[b]v1" in well(command("list"))
    told = well(command("mute", finding, "--until", f"{LATER:%Y-%m-%dT%H:%M}", "--reason", "A migration runs."))
    assert f"snoozed until {LATER:%Y-%m-%d %H:%M} UTC" in told
    assert story.changes()[-1]["body"].startswith(
        f"Snoozed until {LATER:%Y-%m-%d %H:%M} UTC by vera: A migration runs. "
    )
    assert f"open, snoozed until {LATER:%Y-%m-%d %H:%M}" in well(command("list"))
    well(command("unmute", finding))
    well(command("mute", finding, "--forever", "--reason", "It is a test's."))
    assert "won't fix" in well(command("list"))
    assert story.actions() == ["create", "comment", "reopen", "close"]


def test_a_slip_is_told_in_a_line(story: Story, config: Config, command: Any) -> None:
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, config, DETECTORS)
    finding = print_of("v1")[:12]
    for arguments, said in (
        (["unmute", finding], "the ticket is not muted."),
        (["mute", finding, "--until", "soon", "--reason", "x"], "--until soon: not a time; write it like 2026-12-01"),
    ):
        done = command(*arguments)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)
        assert said in done.stderr
    assert command("mute", finding, "--reason", "x").returncode == 2
    assert story.actions() == ["create"]


def test_a_finding_is_named_by_how_its_fingerprint_begins(story: Story, config: Config) -> None:
    names = [f"v{number}" for number in range(17)]  # of 16 hexadecimal digits
    one, other = next(pair for pair in combinations(names, 2) if print_of(pair[0])[0] == print_of(pair[1])[0])
    story.judge(0, {one: "firing", other: "firing"})
    reconcile(story.engine, config, DETECTORS)
    with story.engine.connect() as connection:
        assert find(connection, print_of(one)[:20].upper())["resource_name"] == one
        with pytest.raises(StreamwardenError, match="2 fingerprints begin with it: "):
            find(connection, print_of(one)[0])
        with pytest.raises(StreamwardenError, match=r"no ticket has this fingerprint\. `streamwarden tickets list`"):
            find(connection, "0123456789abcdef")


@pytest.mark.parametrize("nothing", ["", " ", "z%", "%", "_", "0x1", "a" * 65])
def test_what_is_no_fingerprint_names_no_ticket(
    story: Story, config: Config, command: Callable[..., Any], nothing: str
) -> None:
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, config, DETECTORS)
    done = command("mute", nothing, "--forever", "--reason", "a slip")
    assert done.returncode == 1
    assert "not a fingerprint" in done.stderr
    assert story.actions() == ["create"]


@pytest.mark.parametrize("hours", [1, 200])
def test_what_is_unmuted_is_heard_of_at_the_next_alarm(story: Story, config: Config, hours: int) -> None:
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, config, DETECTORS)
    mute(story.engine, story.tickets()[0]["ticket_id"], until=None, who="Vera", why="Known.", now=hour(0))
    story.judge(hours, {"v1": "firing"})
    assert reconcile(story.engine, config, DETECTORS).reopened == 0
    unmute(story.engine, story.tickets()[0]["ticket_id"], who="Vera")
    plan = reconcile(story.engine, config, DETECTORS)
    assert plan.opened + plan.reopened == 1
    assert story.tickets()[-1]["state"] == "open"


def test_a_finding_of_a_storm_is_muted_without_a_word_to_the_tracker(
    story: Story, sink: MemorySink, config: Config
) -> None:
    """It has no ticket of its own there."""
    story.judge(0, {f"v{n}": "firing" for n in range(6)})
    reconcile(story.engine, config, DETECTORS)
    member = next(t["ticket_id"] for t in story.tickets() if t["summary_ticket_id"])
    told = len(story.actions())
    mute(story.engine, member, until=LATER, who="Vera", why="Known.")
    unmute(story.engine, member, who="Vera")
    mute(story.engine, member, until=None, who="Vera", why="Known.")
    assert len(story.actions()) == told
    assert deliver(story.engine, sink, config).failed == []


def test_what_is_not_muted_cannot_be_unmuted(story: Story) -> None:
    story.judge(0, {"v1": "firing"})
    reconcile(story.engine, Config(), DETECTORS)
    with pytest.raises(StreamwardenError, match="v1: cannot apply unmute: the ticket is not muted"):
        unmute(story.engine, 1, who="Vera")
