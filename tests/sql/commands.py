"""Checks commands of findings as they would be pasted into a shell."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import click
import typer
from streamwarden.cli.main import app
from streamwarden.detectors import Finding

PROGRAMS = {
    "aws", "cat", "du", "echo", "for", "free", "grep", "jcmd", "journalctl", "kafka-acls.sh", "kafka-configs.sh",
    "kafka-console-consumer.sh", "kafka-consumer-groups.sh", "kafka-get-offsets.sh", "kafka-leader-election.sh",
    "kafka-log-dirs.sh", "kafka-metadata-quorum.sh", "kafka-reassign-partitions.sh", "kafka-topics.sh",
    "kafka-transactions.sh", "curl", "kubectl", "lsof", "prlimit", "ps", "resize2fs", "streamwarden", "sysctl",
    "xfs_growfs",
}  # fmt: skip
"""What commands begin with; none of them waits for input."""


def faults_of(finding: Finding) -> list[str]:
    """What is wrong with the commands of a finding, a line each."""
    return [f"{why}: {command}" for command in finding.commands for why in _faults(command)]


@cache
def _faults(command: str) -> tuple[str, ...]:
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "''", command)  # without quoted text
    program = command.split()[0]
    faults = {
        f"bash: {done.stderr.strip()}": done.returncode != 0,
        f"unknown program {program}": program not in PROGRAMS,
        "several lines": len(command.splitlines()) != 1,
        "several commands": program != "for" and re.search(r";|&&|\|\|", bare),
        "the first of several processes of a host": "pgrep" in command and program != "for",
        "no such subcommand": program == "streamwarden" and not _is_subcommand(command.split()[1:]),
        "deletes data": re.search(r" --delete(?!-)", bare),
        "a value is missing": re.search(r"(?<!\w)''(?!\w)|\w=(?=\s|$)|\bNone\b|not known", command),
    }
    return tuple(why for why, is_wrong in faults.items() if is_wrong)


def _is_subcommand(words: list[str]) -> bool:
    """Whether the words begin with a command of `streamwarden`, such as `plan replicas`."""
    command: click.Command | None = typer.main.get_command(app)
    while command is not None and hasattr(command, "commands"):
        command, words = command.commands.get(words[0]) if words else None, words[1:]
    return command is not None
