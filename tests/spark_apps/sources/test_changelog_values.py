"""Changelogs whose leader does not respond: the read ends."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from spark_apps.sources import changelog_values
from spark_apps.sources.changelog_values import Chunk


class _Lost:
    """A consumer that reports a lost connection at each poll."""

    def assign(self, _: object) -> None: ...

    def consume(self, **_: object) -> list[Message]:
        return [Message(error=KafkaError(KafkaError._TRANSPORT))]


@pytest.mark.timeout(10)
def test_the_wait_for_a_leader_that_is_lost_repeatedly_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_values, "STALLED_SECONDS", 0.2)
    read = changelog_values._fetch(cast(Consumer, _Lost()), "changelog", [Chunk(0, 0, 10, 0)])
    with pytest.raises(KafkaException) as raised:
        list(read)
    error: Any = raised.value.args[0]
    assert error.code() == KafkaError._TIMED_OUT
