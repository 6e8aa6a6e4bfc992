"""Whose an internal topic of Kafka Streams is: `<application.id>-<store>-changelog`, `<id>-<name>-repartition`.

Both parts may contain dashes, so the name alone doesn't tell where the application id ends. A group of that name does:
a Streams application's group is its id. Then a name that Streams generated, in this topic or in a sibling; then what it
shares with other internal topics; and at last the first dash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

CHANGELOG, REPARTITION = "-changelog", "-repartition"
_INTERNAL = re.compile(rf"^(.+)(?:{CHANGELOG}|{REPARTITION})$")
_GENERATED = re.compile(r"-K(?:STREAM|TABLE)-.+-\d{10}(?:-store)?$")


def topic_kind(cleanup_policy: Column | None = None) -> Column:
    """Of column `topic`: internal (of Kafka itself), changelog (unless it isn't compacted), repartition or plain."""
    topic, policy = f.col("topic"), f.lit(None).cast("string") if cleanup_policy is None else cleanup_policy
    is_compacted = f.coalesce(policy.contains("compact"), f.lit(True))
    return (
        f.when(topic.startswith("__"), "internal")
        .when(topic.endswith(CHANGELOG) & is_compacted, "changelog")
        .when(topic.endswith(REPARTITION), "repartition")
        .otherwise("plain")
    )


class StreamsTopics:
    """The internal topics of one cluster, as its groups and all of its topics explain them."""

    def __init__(self, groups: Iterable[str], topics: Iterable[str]) -> None:
        stems = [found[1] for topic in topics if (found := _INTERNAL.match(topic))]
        self._known = [set(groups), {stem[: found.start()] for stem in stems if (found := _GENERATED.search(stem))}]
        counts = Counter(head for stem in stems for head in _heads(stem))
        self._known.append({head for head, count in counts.items() if count > 1})

    def has_store(self, topic: str, settings: Mapping[str, Mapping[str, Any]] | None) -> bool:
        """Whether a topic with a changelog's name is one, by its settings (none: nobody may ask) and who it belongs to.

        A state store's changelog is compacted, and Kafka Streams sets message.timestamp.type on each topic it makes
        (InternalTopicConfig). A topic of which that isn't known, or that somebody else made, needs a group that is its
        application's, or a name that Streams generated.
        """
        found = _INTERNAL.match(topic)
        if not topic.endswith(CHANGELOG) or not found:
            return False
        if settings and "compact" not in str(settings.get("cleanup.policy", {}).get("value") or ""):
            return False
        groups, generated, _ = self._known
        is_explained = any(head in groups or head in generated for head in _heads(found[1]))
        of_streams = settings.get("message.timestamp.type", {}).get("source") if settings else None
        return is_explained or of_streams == "dynamic_topic_config"

    def split(self, topic: str) -> tuple[str, str] | None:
        """Application id and store (of a repartition topic: its name); None: not an internal topic."""
        found = _INTERNAL.match(topic)
        if not found or not (heads := _heads(found[1])):
            return None
        owners = (max((head for head in heads if head in known), key=len, default=None) for known in self._known)
        application_id = next((owner for owner in owners if owner), heads[0])
        return application_id, found[1][len(application_id) + 1 :]


def _heads(stem: str) -> list[str]:
    """What stands before each dash: `a`, `a-b` of `a-b-c`."""
    return [stem[: dash.start()] for dash in re.finditer("-", stem) if dash.start()]
