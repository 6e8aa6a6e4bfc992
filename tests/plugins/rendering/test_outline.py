"""Templates of headers as people read them, in the docs and on a detector's page."""

from __future__ import annotations

import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors
from streamwarden.rendering.templates import outline


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ name }} is throttled at {{ burst_iops }}.", "[name] is throttled at [burst iops]."),
        ("It has {{ idle_topics | counted('topic') }}.", "It has [idle topics]."),
        ("{{ topics | plural('It is', 'They are') }} idle.", "They are idle."),
        ("{{ 'disk' if is_disk else 'memory ' ~ limit_bytes }} is full", "disk / memory [limit bytes] is full"),
        ("{% if lag %}It is {{ lag_records.value + 1 }}.{% else %}None.{% endif %}", "It is [lag records]. / None."),
        ("{% for one in topics %}{{ one.name }}{% endfor %}{{ iops_now or 'none' }}", "[one][iops now]"),
    ],
)
def test_a_template_is_outlined(template: str, text: str) -> None:
    assert outline(template) == text


def test_no_message_shows_what_is_not_a_text() -> None:
    messages = [outline(verdict.message) for one in load_detectors().values() for verdict in one.verdicts.values()]
    assert [message for message in messages if "{" in message or "…" in message] == []


def test_a_broken_template_is_one_line() -> None:
    with pytest.raises(StreamwardenError, match=r"^'\{\{ a': "):
        outline("{{ a")
