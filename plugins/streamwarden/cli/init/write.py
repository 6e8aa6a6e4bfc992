"""The text of the config: sections with comments, what was not reached and why, and what would fix it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import yaml

from streamwarden.base.addresses import masked
from streamwarden.cli.init.fleet import Entry, Fleet
from streamwarden.cli.probe.result import Answer

_ABOUT = {
    "aws": "Accounts and regions with volumes and instances. Credentials come from boto3's default provider chain.",
    "msk": "Amazon MSK: brokers, storage, and metrics come from AWS (docs/connect/msk.md).",
    "kubernetes": "Kubernetes: brokers and applications as pods (docs/connect/kubernetes.md).",
    "kafka": "Kafka clusters. `client` has librdkafka properties; a secret is written as ${NAME}.",
    "jmx": "JVMs and hosts. `instance_id` relates one to its volumes and its host's memory.",
}


def text_of(fleet: Fleet, answers: Sequence[Answer] = ()) -> str:
    """The file. `answers`: of the probe; its problems are added to those of the discovery."""
    lines = [
        f"# Written by `streamwarden init` at {datetime.now(UTC):%Y-%m-%dT%H:%MZ}. docs/config.md describes every key.",
        "# No secret is in this file: write ${NAME}, and set NAME in the environment.",
        *_problems([*fleet.notes(), *((one.source, one.problem or "", one.action) for one in answers)]),
        "",
    ]
    for key, entries in fleet.sections():
        if entries:
            lines += [f"# {_ABOUT[key]}", f"{key}:", *_entries(entries), ""]
    return "\n".join([*lines, *_NEXT]) + "\n"


def _problems(notes: Iterable[tuple[str, str, str | None]]) -> Iterator[str]:
    actions: dict[str, None] = {}
    reasons: dict[str, None] = {}
    for resource, reason, action in notes:
        if reason:
            reasons[f"{resource}: {reason}"] = None
        if action:
            actions[action] = None
    if reasons:
        yield from ("#", "# Found and not used, or not reached:", *_comments(reasons))
    if actions:
        yield from ("#", "# To fix this (IAM statements, ACLs, rules of exporters):", *_comments(actions))


def _comments(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        first, *others = [_one_line(line) for line in masked(text).splitlines()] or [""]
        yield f"# - {first}"
        yield from (f"#   {line}" for line in others)


def _one_line(text: str) -> str:
    """Text from outside as part of a comment: no character of it may end the line."""
    return "".join(c if c.isprintable() else " " for c in text).rstrip()


def _entries(entries: Iterable[tuple[Entry, str]]) -> Iterator[str]:
    for entry, comment in entries:
        if comment:
            yield f"  # {_one_line(comment)}"
        flow = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
        yield f"  - {flow.strip()}"


_NEXT = (
    "# Where tickets go: docs/tickets.md has a section for each tracker. Without one, they are written to the log.",
    "# tickets:",
    "#   trackers:",
    '#     github: {kind: github, repository: acme/ops, password: "${GITHUB_TOKEN}"}',
)
