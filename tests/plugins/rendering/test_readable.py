"""Rendering of metrics: units by column name, nested lists, unknown values, forged names."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.rendering.labels import LABELS
from streamwarden.rendering.readable import (
    _by_name,
    clean,
    counted,
    labels,
    readable,
    readable_metrics,
    since_text,
    unit_of,
)


@pytest.mark.parametrize(
    ("column", "value", "label", "text"),
    [
        ("heap_max_bytes", 4 * 1024**3, "Heap max", "4.0 GiB"),
        ("heap_max_bytes", 0, "Heap max", "0 B"),
        ("read_bytes_per_second", 1536.0, "Disk reads", "1.5 KiB/s"),
        ("replication_bytes_in_per_second", 2048, "Replication bytes in", "2.0 KiB/s"),
        ("lag_seconds_max", 5400, "Lag max", "1 h 30 min"),
        ("lag_seconds", 0.25, "Lag", "250 ms"),
        ("iops_p95", 280.4, "IOPS p95", "280 IOPS"),
        ("bytes_per_second_now", 3 * 1024**2, "Traffic now", "3.0 MiB/s"),
        ("iops_now", 280.4, "IOPS now", "280 IOPS"),
        ("baseline_iops", 100, "Baseline", "100 IOPS"),
        ("burst_balance_last_percent", 1.34, "Burst balance last", "1.34 %"),
        ("cpu_ratio", 0.5, "CPU", "50 %"),
        ("minutes_throttled", 75, "Time throttled", "1 h 15 min"),
        ("hours_to_exhaustion", 0.4, "Time to exhaustion", "24 min"),
        ("size_gib", 10, "Size", "10 GiB"),
        ("log_flush_p95_ms", 1500, "Log flush p95", "1.5 s"),
        ("lag_records", 120034, "Lag", "120,034 records"),
        ("stores", 3, "Stores", "3"),
        ("shared_cache", True, "Shared cache", "yes"),
        ("throttled_since", "2026-01-05T09:40:00+00:00", "Throttled since", "2026-01-05 09:40 UTC"),
        ("lag_seconds", None, "Lag", "not known"),
        ("lag_seconds", float("nan"), "Lag", "not known"),
        ("note", "a\nb", "Note", "a b"),
    ],
)
def test_the_unit_comes_from_the_column_name(column: str, value: object, label: str, text: str) -> None:
    assert readable(column, value) == (label, text)


def test_lists_have_a_line_per_entry_with_the_name_first() -> None:
    metrics = {"topics": [{"bytes": 2048, "topic": "orders"}, {"bytes": None}]}
    assert readable_metrics(metrics) == [("Topics", "orders, bytes 2.0 KiB"), ("", "not known")]
    assert readable_metrics({"names": ["a", "b"], "none": [], "map": {"path": "$.a", "count": 3}}) == [
        ("Names", "a"), ("", "b"), ("None", "none"), ("Map", "$.a, count 3"),
    ]  # fmt: skip


def test_labels_are_unique() -> None:
    assert labels(["baseline_iops", "baseline_bytes_per_second", "size_gib"]) == {
        "baseline_iops": "Baseline (IOPS)", "baseline_bytes_per_second": "Baseline (bytes/second)", "size_gib": "Size",
    }  # fmt: skip
    # Equal in label and unit.
    named = labels(["lag_seconds", "lag_records", "worst_lag_records"])
    assert list(named.values()) == ["Lag (seconds)", "Lag records", "Worst lag records"]


def test_a_name_cannot_forge_a_line_or_contain_control_characters() -> None:
    assert clean("a\r\nfingerprint: 0\x1b[2J\u202ecba\u2028z") == "a fingerprint: 0[2Jcba z"


@pytest.mark.parametrize(
    ("first", "exact", "until", "expected"),
    [
        # Exact where a sample gives the start.
        ("07:00", "05:40", "08:00", "since 2026-01-05 05:40 UTC (2 h 20 min)"),
        ("07:00", "07:41", None, "since 2026-01-05 07:41 UTC"),
        ("07:00", "08:00", "08:00", "since 2026-01-05 08:00 UTC"),
        # Otherwise within an hour: it may have begun in the hour before, which did not fire.
        ("07:00", None, "11:00", "since 2026-01-05 07:00 UTC (± 1 h)"),
        ("07:00", None, None, "since 2026-01-05 07:00 UTC (± 1 h)"),
    ],
)
def test_since_is_exact_or_within_an_hour(first: str, exact: str | None, until: str | None, expected: str) -> None:
    def at(time: str | None) -> datetime | None:
        return datetime.fromisoformat(f"2026-01-05T{time}+00:00") if time else None

    moment = at(first)
    assert moment is not None and since_text(moment, at(exact), at(until)) == expected


def test_a_label_differs_from_the_words_of_its_column() -> None:
    assert not [column for column, label in LABELS.items() if _by_name(column, None)[0] == label]
    assert readable("left_seconds", 3600) == ("Time until deletion", "1 h")


def test_a_labeled_column_is_a_metric_of_a_detector() -> None:
    named = "\n".join(file.read_text() for file in (PROJECT_ROOT / "sql" / "detectors").rglob("*.sql"))
    assert not [column for column in LABELS if not re.search(rf"\b{column}\b", named)]


@pytest.mark.parametrize(
    ("column", "unit"),
    [("log_flush_p95_ms", "ms"), ("minutes_throttled", "minutes"), ("hours_to_exhaustion", "hours"), ("members", ""),
     ("bytes_in_per_second", "bytes_per_second"), ("lag_seconds_max", "seconds"), ("cpu_ratio", "ratio")],
)  # fmt: skip
def test_the_unit_is_part_of_the_name(column: str, unit: str) -> None:
    assert unit_of(column) == unit


def test_a_missing_number_is_said_to_be_unknown() -> None:
    assert counted(1, "value") == "1 value"
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(None, "value") == "an unknown number of values"
    assert counted(None, "entry", "entries") == "an unknown number of entries"
