"""Notifications as plain text."""

from __future__ import annotations

from datetime import UTC, datetime

from streamwarden.tickets.sinks.contract import Notification
from streamwarden.tickets.sinks.plain import LINE, notification_text


def test_a_number_stays_on_one_line_with_its_unit() -> None:
    for shift in range(12):
        note = "x" * shift + " burst balance is 0 % and I/O is capped at 100 IOPS and 25.0 MiB/s" * 6
        text = notification_text(Notification(note, datetime(2026, 1, 5, 10, tzinfo=UTC)))
        lines = text.splitlines()
        assert len(lines) > 3 and all(len(line) <= LINE for line in lines)
        assert not [line for line in lines if line.startswith(("% ", "IOPS ", "MiB/s"))]
        assert " ".join(lines) == note.strip()
