"""Kubernetes: what discovery finds, and what it may not list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from spark_apps.sources.kube.discover import Found, discover
from streamwarden.base.config import Config
from streamwarden.cli.probe.result import Answer, Question, sentence
from streamwarden.rendering.readable import counted

_ROLES = {"broker": "broker", "app": "application", "node": "node exporter"}
_DENIED = "access denied"


def questions(config: Config) -> Iterator[Question]:
    """One for all entries, which are read in parallel."""
    if config.kubernetes:
        yield Question("kubernetes", partial(_ask, config))


def _ask(config: Config) -> Iterator[Answer]:
    found = discover(config)
    for entry in config.kubernetes:
        yield Answer(f"kubernetes {entry.name}", "pods", answer=_summary(found, entry.name))
    for resource, reason in found.gaps:
        source, _, what = resource.removeprefix("Kubernetes ").partition(" ")
        if reason.startswith("missing"):  # nothing is wrong: it is not there, or not exposed
            yield Answer(f"kubernetes {source}", what or "API", answer=sentence(reason))
        else:
            _, _, rule = reason.partition("role: ")
            action = f"add to its ClusterRole: {rule.rstrip('.')}" if _DENIED in reason and rule else None
            yield Answer(f"kubernetes {source}", what or "API", problem=sentence(reason), action=action)


def _summary(found: Found, name: str) -> str:
    roles = Counter(pod.role for pod in found.pods if pod.kubernetes == name)
    exposed = sum(pod.kubernetes == name for pod, _ in found.endpoints)
    parts = [counted(roles[role], text) for role, text in _ROLES.items() if roles[role]]
    strimzi = [one for one in found.clusters if one.entry.name == name]
    if strimzi:
        parts.append(counted(len(strimzi), "Kafka cluster") + " of Strimzi")
    return f"{', '.join(parts) or 'no pods'}; {counted(exposed, 'metric endpoint')}"
