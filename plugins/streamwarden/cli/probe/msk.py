"""Amazon MSK: what discovery finds, and what it may not read or is not exposed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial

from spark_apps.sources.msk_discovery import MskCluster, discover
from streamwarden.base.config import Config
from streamwarden.cli.probe.result import Answer, Question, sentence
from streamwarden.rendering.readable import counted

_PERMISSION = re.compile(r"access denied for ([a-z0-9]+:\w+)")


def questions(config: Config) -> Iterator[Question]:
    """One for all entries: names are unique over all of them."""
    if config.msk:
        yield Question("msk", partial(_ask, config))


def _ask(config: Config) -> Iterator[Answer]:
    found = discover(config)
    for cluster in found.clusters:
        yield Answer(f"msk {cluster.cluster}", "ListClustersV2, ListNodes", answer=_summary(cluster))
    for resource, reason in found.all_gaps:
        source, _, what = resource.partition(" MSK ")
        if reason.startswith("missing"):  # nothing is wrong: it is not exposed
            yield Answer(f"msk {source}", what, answer=sentence(reason))
        else:
            denied = _PERMISSION.search(reason)
            yield Answer(f"msk {source}", what, problem=sentence(reason), action=denied and _statement(denied[1]))


def _summary(cluster: MskCluster) -> str:
    level = f", monitoring level {cluster.monitoring_level}" if cluster.monitoring_level else ""
    return f"{cluster.state}, {cluster.kind}, {counted(len(cluster.brokers), 'broker')}{level}"


def _statement(action: str) -> str:
    statement = {"Effect": "Allow", "Action": [action], "Resource": "*"}
    return f"add to the policy of Streamwarden's role or user: {json.dumps(statement)}"
