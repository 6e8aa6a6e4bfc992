"""The application of an internal topic. Kafka Streams: `<application.id>-<store>-changelog`,
`<id>-<name>-repartition`, and the two repartition topics of a foreign-key join, which end in `-topic`. Samza:
`__samza_coordinator_<job>_<id>`, `__samza_checkpoint_ver_1_for_<job>_<id>`, and changelogs.

Both parts of a Kafka Streams name may contain dashes, so the name alone does not show where the application id ends.
A group of that name does, because the group of a Kafka Streams application is its id; and so does a Samza job.
Otherwise a name that Kafka Streams generated, in this topic or a sibling; then the prefix shared with other internal
topics; and finally the first dash.

Samza replaces an underscore in a job's name or id by a dash (KafkaUtil.getCheckpointTopic, CoordinatorStreamUtil),
so the underscore ends the name. A job is called by its name, and `<job>-<id>` unless its id is 1, Samza's default.
Names of its changelogs are arbitrary: `jobs.changelog_patterns` in the config assign them to jobs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

CHANGELOG, REPARTITION = "-changelog", "-repartition"
_FOREIGN_KEY = (
    r"-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d{10}",  # numbered by KTableImpl
    r"-.+-subscription-(?:registration|response)",  # after the name of the join
)
_INTERNAL = re.compile(rf"^(.+)(?:{CHANGELOG}|{REPARTITION})$|^(.+(?:{'|'.join(_FOREIGN_KEY)}))-topic$")
_SAMZA = re.compile(r"^__samza_(coordinator|checkpoint)(?:_ver_\d+_for)?_([^_]+)_([^_]+)$")
_KSQL = re.compile(r"^_confluent-ksql-.+?(?:query|transient)_\w+_\d+(?=-)")
"""Application id of a query of ksqlDB: the service's id, and the query's, which ends in its number."""
_GENERATED = re.compile(r"-K(?:STREAM|TABLE)-.+-\d{10}(?:-store)?$")

OWN_FORMATS = (
    r"-(?:KTABLE-SUPPRESS-STATE-STORE-[0-9]{10}"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-[0-9]{10}|.+-subscription-store"
    rf"|.+-Buffer){CHANGELOG}$"
)
"""Changelogs with values in a binary format of Kafka Streams itself rather than of a serializer: buffers of
`suppress()` and of stream-table joins with a grace period (they begin with a timestamp), and subscriptions of a
foreign-key join (they begin with their version, 0 or 1). A `suppress()` with a name has a store with an arbitrary
name."""


class Part(NamedTuple):
    """Role of a topic in an application: changelog, repartition, coordinator, or checkpoint topic."""

    kind: str
    application_id: str
    store: str
    """Name of a repartition topic or store; the kind, if a job has only one such topic."""


class StreamsTopics:
    """The internal topics of one cluster, by its groups, all of its topics, and the config."""

    def __init__(self, groups: Iterable[str], topics: Iterable[str], changelog_patterns: Iterable[str] = ()) -> None:
        self._patterns = [re.compile(pattern) for pattern in changelog_patterns]
        names = list(topics)
        stems = [stem for topic in names if (stem := _stem(topic))]
        jobs = {_job(found) for topic in names if (found := _SAMZA.match(topic))}
        generated = {stem[: found.start()] for stem in stems if (found := _GENERATED.search(stem))}
        generated |= {found[0] for stem in stems if (found := _KSQL.match(stem))}
        counts = Counter(head for stem in stems for head in _heads(stem))
        self._known = [{*groups, *jobs}, generated, {head for head, count in counts.items() if count > 1}]

    def is_called_changelog(self, topic: str) -> bool:
        """Whether it has a changelog's name, by Kafka Streams or by the config's patterns."""
        return topic.endswith(CHANGELOG) or self._configured(topic) is not None

    def has_store(self, topic: str, settings: Mapping[str, Mapping[str, Any]] | None) -> bool:
        """Whether a topic with a changelog's name is one, by its settings (None: not authorized) and its
        application.

        A changelog of a state store is compacted, and Kafka Streams sets message.timestamp.type on each topic that
        it creates (InternalTopicConfig). If that is not known, or someone else created the topic, it needs a group
        with its application id, or a name that Kafka Streams generated.
        """
        stem = _stem(topic)
        if not self.is_called_changelog(topic):
            return False
        if settings and "compact" not in str(settings.get("cleanup.policy", {}).get("value") or ""):
            return False
        if self._configured(topic) or not stem:
            return True
        groups, generated, _ = self._known
        is_explained = any(head in groups or head in generated for head in _heads(stem))
        of_streams = settings.get("message.timestamp.type", {}).get("source") if settings else None
        return is_explained or of_streams == "dynamic_topic_config"

    def split(self, topic: str) -> Part | None:
        """Application and role of an internal topic; None: not an internal topic."""
        if own := _SAMZA.match(topic):
            return Part(own[1], _job(own), own[1])
        if part := self._configured(topic):
            return part
        stem = _stem(topic)
        if not stem or not (heads := _heads(stem)):
            return None
        owners = (max((head for head in heads if head in known), key=len, default=None) for known in self._known)
        application_id = next((owner for owner in owners if owner), heads[0])
        kind = "changelog" if topic.endswith(CHANGELOG) else "repartition"
        return Part(kind, application_id, stem[len(application_id) + 1 :])

    def kind(self, topic: str) -> str:
        """Kind by name: internal (Kafka's own), changelog, repartition, coordinator, checkpoint, or plain."""
        if part := self.split(topic):
            return part.kind
        if topic.startswith("__"):
            return "internal"
        return next((end[1:] for end in (CHANGELOG, REPARTITION) if topic.endswith(end)), "plain")

    def _configured(self, topic: str) -> Part | None:
        found = next((found for pattern in self._patterns if (found := pattern.fullmatch(topic))), None)
        if not found or not found["job"]:
            return None
        return Part("changelog", found["job"], found.groupdict().get("store") or topic)


def _job(found: re.Match[str]) -> str:
    """Job name from a match of _SAMZA."""
    return found[2] if found[3] == "1" else f"{found[2]}-{found[3]}"


def _stem(topic: str) -> str | None:
    """A name without the suffix of Kafka Streams; None if there is no such suffix."""
    found = _INTERNAL.match(topic)
    return (found[1] or found[2]) if found else None


def _heads(stem: str) -> list[str]:
    """Prefixes before each dash: `a`, `a-b` of `a-b-c`."""
    return [stem[: dash.start()] for dash in re.finditer("-", stem) if dash.start()]
